#include "harness/commands/run.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/commands/cpu_option.h"
#include "harness/commands/summarise.h"
#include "harness/commands/sweep.h"
#include "harness/machine/activity.h"
#include "harness/machine/doctor.h"
#include "harness/machine/environment.h"
#include "harness/machine/provenance.h"
#include "harness/record/run_directory.h"
#include "harness/record/sample.h"
#include "harness/run/manifest.h"
#include "harness/run/runner.h"
#include "harness/spec/shard.h"
#include "harness/spec/spec.h"

namespace filterbench {
namespace {

using nlohmann::json;

volatile std::sig_atomic_t g_interrupted = 0;

void ShowProgress(const RunProgress& progress) {
  static auto last = std::chrono::steady_clock::time_point();
  const auto now = std::chrono::steady_clock::now();
  if (isatty(STDERR_FILENO) == 0 || now - last < std::chrono::milliseconds(200)) return;
  last = now;
  fmt::print(stderr, "\r\033[K{}/{} samples, {} left, process {}: {}", progress.samples_done,
             progress.samples_total, Duration(progress.seconds_left), progress.process + 1,
             progress.now);
}

// An unfinished run that is to be finished, with its manifest.
struct Resumed {
  RunDirectory directory;
  json manifest;
};

Result<Resumed> OpenResumed(const std::string& path) {
  Result<RunDirectory> directory = RunDirectory::Open(path);
  if (!directory) return Error{directory.error()};
  Result<json> manifest = directory->ReadManifest();
  if (!manifest) return Error{manifest.error()};
  return Resumed{std::move(*directory), std::move(*manifest)};
}

// Why what is on disk must not be mixed with what would be measured now; nothing if it may.
std::optional<Error> WhyNotResumed(const Resumed& resumed, const Ready& ready,
                                   const json& provenance) {
  const auto refuse = [&](const char* what) {
    return Error{fmt::format("{}: not resumed: {} is not the one of that run",
                             resumed.directory.path().string(), what)};
  };
  const json& manifest = resumed.manifest;
  if (manifest["spec_hash"] != SpecHash(ResolvedSpec(ready.spec, ready.plan))) {
    return refuse("the spec");
  }
  const json shard = ready.plan.shard ? ShardToJson(*ready.plan.shard) : json();
  if (manifest.value("shard", json()) != shard) return refuse("the shard");
  // An unknown program may be another one.
  if (provenance["binary_xxh3"].is_null() ||
      manifest["provenance"]["binary_xxh3"] != provenance["binary_xxh3"]) {
    return refuse("the program");
  }
  if (manifest["machine"] != MachineSlug(ready.environment)) return refuse("the machine");
  return std::nullopt;
}

Result<RunDirectory> CreateDirectory(const Ready& ready, const std::string& results_root,
                                     const json& provenance, const std::vector<Finding>& findings,
                                     std::optional<int> cpu) {
  const json& commit = provenance["git_commit"];
  const json& dirty = provenance["git_dirty"];
  RunName name{.start = std::chrono::system_clock::now(),
               .git_commit = commit.is_string() ? commit.get<std::string>() : "",
               .git_dirty = dirty.is_boolean() && dirty.get<bool>(),
               .spec_hash = SpecHash(ResolvedSpec(ready.spec, ready.plan)),
               .shard = ready.plan.shard};
  const std::string machine = MachineSlug(ready.environment);
  // Names tell seconds: another run may have begun in this one.
  constexpr int kAttempts = 3;
  Result<RunDirectory> directory = RunDirectory::Create(results_root, machine, name);
  for (int attempt = 1; !directory && attempt < kAttempts; ++attempt) {
    if (!std::filesystem::exists(std::filesystem::path(results_root) / machine /
                                 RunDirectoryName(name))) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
    name.start = std::chrono::system_clock::now();
    directory = RunDirectory::Create(results_root, machine, name);
  }
  if (!directory) return Error{directory.error()};
  json manifest = MakeManifest(ready.spec, ready.plan, ready.environment, provenance, *directory,
                               FormatUtc(name.start));
  manifest["memory_limit_bytes"] = ready.memory_limit_bytes;
  manifest["cpus"] = cpu ? json::array({*cpu}) : json::array();
  manifest["doctor"] = FindingsToJson(findings);
  if (const auto error = directory->WriteManifest(manifest)) {
    directory->Discard();
    return *error;
  }
  return directory;
}

struct RunCommand {
  std::string words;  // as they were given, for a shell
  SweepOptions sweep;
  std::string results_root = "results";
  std::string resume;
  std::optional<int> cpu;
  bool fork_only = false;
  bool strict = false;
};

uint64_t CountUnstable(const json& summary) {
  uint64_t count = 0;
  for (const json& entry : summary["points"]) {
    const auto stability = entry.find("stability");
    count += stability != entry.end() && stability->is_object() && !stability->at("stable") ? 1 : 0;
  }
  return count;
}

int Run(const RunCommand& command) {
  std::optional<Resumed> resumed;
  std::optional<uint64_t> memory_limit_bytes;
  if (!command.resume.empty()) {
    Result<Resumed> opened = OpenResumed(command.resume);
    if (!opened) return Complain(opened.error(), kExitUsage);
    resumed.emplace(std::move(*opened));
    const json& limit = resumed->manifest.value("memory_limit_bytes", json());
    if (limit.is_number_unsigned()) memory_limit_bytes = limit.get<uint64_t>();
  }
  Result<Ready> ready = Prepare(command.sweep, memory_limit_bytes);
  if (!ready) return Complain(ready.error(), kExitUsage);
  const Result<std::optional<int>> cpu = ChooseCpu(command.cpu, ready->environment);
  if (!cpu) return Complain(cpu.error(), kExitUsage);
  const json provenance = ReadProvenance();
  ready->environment["activity"] = ObserveActivity(*cpu);
  const std::vector<Finding> findings = Examine(ready->environment, provenance);
  if (command.strict && Unfit(findings)) {
    return Complain("this machine is unfit to be measured on\n" + FindingsToText(findings),
                    kExitUnfit);
  }
  if (resumed) {
    if (const auto error = WhyNotResumed(*resumed, *ready, provenance)) {
      return Complain(error->message, kExitUsage);
    }
    for (const std::string& repair : resumed->directory.repairs()) {
      fmt::print(stderr, "{}\n", repair);
    }
  }
  Result<RunDirectory> directory =
      resumed ? Result<RunDirectory>(std::move(resumed->directory))
              : CreateDirectory(*ready, command.results_root, provenance, findings, *cpu);
  if (!directory) return Complain(directory.error(), kExitUsage);

  for (const Finding& finding : findings) {
    if (finding.state != FindingState::kFail) continue;
    fmt::print(stderr, "unfit: {}: {} (filterbench doctor says more)\n", finding.check,
               finding.found);
  }
  if (!*cpu) fmt::print(stderr, "not pinned: no CPU is known to be allowed\n");
  fmt::print(stderr, "{}: {} points, {}, into {}\n", ready->spec.name, ready->plan.points(),
             TimeText(ready->plan), directory->path().string());

  std::signal(SIGINT, [](int) { g_interrupted = 1; });
  std::signal(SIGTERM, [](int) { g_interrupted = 1; });
  const Result<RunOutcome> outcome =
      ExecutePlan(ready->plan, *directory,
                  {.on_progress = ShowProgress,
                   .should_stop = [] { return g_interrupted != 0; },
                   .cpu = *cpu,
                   .start_anew = !command.fork_only});
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
  if (!outcome) return Complain(outcome.error(), kExitIncomplete);

  const Result<SamplesFile> samples = directory->ReadSamples();
  if (!samples) return Complain(samples.error(), kExitIncomplete);
  const Result<json> manifest = directory->ReadManifest();
  if (!manifest) return Complain(manifest.error(), kExitIncomplete);
  const Result<json> written = WriteWhatFollows(*directory, *manifest, samples->samples);
  if (!written) return Complain(written.error(), kExitIncomplete);
  const json& summary = *written;
  // Of the whole run, reused samples included: a resumed run is as good as all of it.
  uint64_t wrong = 0;
  uint64_t failed = 0;
  for (const Sample& sample : samples->samples) {
    wrong += sample.status == SampleStatus::kWrongAnswers ? 1 : 0;
    failed += sample.status == SampleStatus::kInvalid ||
                      sample.status == SampleStatus::kOutOfMemory ||
                      sample.status == SampleStatus::kBuildFailed ||
                      sample.status == SampleStatus::kTimedOut ||
                      sample.status == SampleStatus::kCrashed
                  ? 1
                  : 0;
  }
  const uint64_t unstable = CountUnstable(summary);
  fmt::print(stderr, "{} samples measured, {} reused; of all, {} have wrong answers, {} failed\n",
             outcome->samples_measured, outcome->samples_reused, wrong, failed);
  if (unstable != 0) {
    fmt::print(stderr, "{} of {} points are unstable: their intervals are wider than {} %\n",
               unstable, summary["points"].size(), *ready->plan.measure.width * 100);
  }
  if (outcome->interrupted) {
    fmt::print(stderr, "interrupted; go on with: {}{}\n", command.words,
               command.resume.empty() ? " --resume " + ShellWord(directory->path().string()) : "");
    return kExitInterrupted;
  }
  if (const auto error = directory->MarkComplete()) {
    return Complain(error->message, kExitIncomplete);
  }
  fmt::print("{}\n", directory->path().string());
  if (wrong != 0) return kExitWrongAnswers;
  return failed + unstable != 0 ? kExitIncomplete : kExitOk;
}

}  // namespace

void AddRun(CommandLine& line) {
  struct Arguments {
    SweepArguments sweep;
    RunCommand command;
  };
  const auto arguments = std::make_shared<Arguments>();
  RunCommand& command = arguments->command;
  CLI::App* run =
      line.app.add_subcommand("run", "Measure a sweep; prints the directory of the results");
  arguments->sweep.AddTo(run);
  run->add_option("--results", command.results_root, "Where runs are kept")
      ->capture_default_str()
      ->check([](const std::string& path) { return path.empty() ? "must be a directory" : ""; });
  run->add_option("--resume", command.resume, "Directory of an unfinished run of the same spec")
      ->check([](const std::string& path) {
        return path.empty() ? "must be the directory of a run" : "";
      });
  run->add_option("--cpu", command.cpu, "CPU to measure on; else the last one that is allowed");
  run->add_flag("--strict", command.strict, "Refuse a machine that `doctor` finds unfit (exit 4)");
  run->add_flag("--fork-only", command.fork_only,
                "Measure in forks instead of fresh starts, whose addresses are the same: for "
                "emulators, where a program cannot start itself");
  run->callback([&line, arguments] {
    arguments->command.words = line.words;
    line.exit_code = arguments->sweep.With([&](const SweepOptions& sweep) {
      arguments->command.sweep = sweep;
      return Run(arguments->command);
    });
  });
}

}  // namespace filterbench
