// The front door: filterbench list | plan | run | summarise | verify | doctor | export, and what
// front_door.h hands on to Python. Data goes to stdout, talk to stderr.

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "filters/nearest_name.h"
#include "filters/presets.h"
#include "filters/simd/targets.h"
#include "harness/front_door.h"
#include "harness/machine/activity.h"
#include "harness/machine/cpu_affinity.h"
#include "harness/machine/doctor.h"
#include "harness/machine/environment.h"
#include "harness/machine/provenance.h"
#include "harness/machine/system_files.h"
#include "harness/plan/plan.h"
#include "harness/plan/select.h"
#include "harness/process/isolated.h"
#include "harness/record/run_directory.h"
#include "harness/record/sample.h"
#include "harness/record/summary.h"
#include "harness/record/theory_export.h"
#include "harness/record/validate.h"
#include "harness/registry/erased_filter.h"
#include "harness/run/manifest.h"
#include "harness/run/rules.h"
#include "harness/run/runner.h"
#include "harness/run/worker.h"
#include "harness/spec/shard.h"
#include "harness/spec/spec.h"

namespace filterbench {
namespace {

using nlohmann::json;

constexpr int kExitOk = 0;
constexpr int kExitUsage = 2;
constexpr int kExitWrongAnswers = 3;
constexpr int kExitUnfit = 4;
constexpr int kExitIncomplete = 5;
constexpr int kExitInterrupted = 130;

// How long one rule may take to check; a rule builds filters of up to 100000 keys.
constexpr double kVerifySilenceSeconds = 60;

volatile std::sig_atomic_t g_interrupted = 0;

int Complain(const std::string& message, int exit_code) {
  fmt::print(stderr, "filterbench: {}\n", message);
  return exit_code;
}

uint64_t AvailableMemoryBytes(const json& environment) {
  const json& available = environment.at("memory").at("available_bytes");
  // A tenth stays for the system.
  return available.is_number() ? available.get<uint64_t>() / 10 * 9 : UINT64_MAX;
}

std::string KnobText(const KnobInfo& knob) {
  const std::string range =
      knob.choices.empty() ? fmt::format("{}..{}", knob.low.dump(), knob.high.dump())
                           : fmt::format("{}", fmt::join(knob.choices, " | "));
  return fmt::format("{} = {} ({}): {}", knob.name, knob.default_value.dump(), range, knob.meaning);
}

std::vector<std::string_view> TargetsByReference(const FilterType& type) {
  std::vector<std::string_view> names;
  for (const std::string_view target : type.targets()) {
    if (target != "scalar" && type.batched_by_reference(target)) names.push_back(target);
  }
  return names;
}

// Empty if a sweep can name the preset.
std::string WhyNotInThisBuild(const Preset& preset) {
  if (!preset.filter) return preset.reason;
  return FindFilterType(*preset.filter) ? "" : fmt::format("needs filter {}", *preset.filter);
}

json ListAsJson() {
  json filters = json::array();
  for (const auto& type : FilterTypes()) {
    json knobs = json::array();
    for (const KnobInfo& knob : type->knobs()) {
      knobs.push_back({{"name", knob.name},
                       {"default", knob.default_value},
                       {"low", knob.low},
                       {"high", knob.high},
                       {"choices", knob.choices},
                       {"meaning", knob.meaning}});
    }
    const FilterInfo& info = type->info();
    filters.push_back({{"name", info.name},
                       {"summary", info.summary},
                       {"source", info.source},
                       {"fpr_formula", info.fpr_formula},
                       {"hash_bits", info.hash_bits},
                       {"is_baseline", info.is_baseline},
                       {"insert", type->can_insert()},
                       {"erase", type->can_erase()},
                       {"stream", type->can_stream()},
                       {"targets", type->targets()},
                       {"targets_by_reference", TargetsByReference(*type)},
                       {"parameters", knobs}});
  }
  json not_built = json::array();
  for (const auto& [name, reason] : FiltersNotBuilt()) {
    not_built.push_back({{"type", name}, {"reason", reason}});
  }
  json presets = json::array();
  for (const Preset& preset : Presets()) {
    const std::string problem = WhyNotInThisBuild(preset);
    presets.push_back({{"name", preset.name},
                       {"filter", preset.filter ? json(*preset.filter) : json()},
                       {"params", preset.params},
                       {"default", preset.default_state},
                       {"source", preset.source},
                       {"remembered", preset.remembered},
                       {"note", preset.note},
                       {"not_built", problem.empty() ? json() : json(problem)}});
  }
  return {{"filters", filters}, {"not_built", not_built}, {"presets", presets}};
}

int List(bool as_json) {
  if (as_json) {
    fmt::print("{}\n", ListAsJson().dump(2));
    return kExitOk;
  }
  for (const auto& type : FilterTypes()) {
    const FilterInfo& info = type->info();
    fmt::print("{}: {}\n", info.name, info.summary);
    fmt::print("  built    yes; targets {}{}{}{}\n", fmt::join(type->targets(), ", "),
               type->can_insert() ? "; insert" : "", type->can_erase() ? ", erase" : "",
               type->can_stream() ? "; built in pieces" : "");
    if (const auto names = TargetsByReference(*type); !names.empty()) {
      fmt::print(
          "  scalar   vectors do not help batched lookups on {}: the scalar reference is used\n",
          fmt::join(names, ", "));
    }
    fmt::print("  source   {}\n", info.source);
    fmt::print("  FPR      {}; {} hash bits\n", info.fpr_formula, info.hash_bits);
    for (const KnobInfo& knob : type->knobs()) fmt::print("  param    {}\n", KnobText(knob));
  }
  for (const auto& [name, reason] : FiltersNotBuilt()) {
    fmt::print("{}: not built: {}\n", name, reason);
  }
  for (const Preset& preset : Presets()) {
    if (preset.filter) {
      fmt::print("preset {}: {} {}\n", preset.name, *preset.filter, preset.params.dump());
    } else {
      fmt::print("preset {}: no filter\n", preset.name);
    }
    if (const std::string problem = WhyNotInThisBuild(preset); !problem.empty()) {
      fmt::print("  built    no: {}\n", problem);
    }
    fmt::print("  default  {}\n", preset.default_state);
    fmt::print("  source   {}\n", preset.source);
    for (const std::string& value : preset.remembered) {
      fmt::print("  from memory, not verified: {}\n", value);
    }
    if (!preset.note.empty()) fmt::print("  note     {}\n", preset.note);
  }
  return kExitOk;
}

struct Ready {
  Spec spec;
  Plan plan;
  json environment;
  uint64_t memory_limit_bytes = 0;
};

// What a command line says about a sweep.
struct SweepOptions {
  std::string spec;
  SpecChanges changes;
  std::vector<std::string> only_filters;
  std::vector<std::string> without_filters;
  std::optional<Shard> shard;
};

// `memory_limit_bytes`: that of an earlier run, whose plan is to come out again.
Result<Ready> Prepare(const SweepOptions& options,
                      std::optional<uint64_t> memory_limit_bytes = std::nullopt) {
  Result<Spec> spec = ReadSpec(options.spec, options.changes);
  if (!spec) return Error{spec.error()};
  if (const auto error =
          SelectFilters(options.only_filters, options.without_filters, *spec)) {
    return *error;
  }
  for (size_t i = 0; i < spec->plugins.size(); ++i) {
    if (const auto error = LoadPlugin(spec->plugins[i])) {
      return spec->source.At(fmt::format("/plugins/{}", i), error->message);
    }
  }
  json environment = ReadEnvironment();
  const uint64_t limit = memory_limit_bytes.value_or(AvailableMemoryBytes(environment));
  Result<Plan> plan = MakePlan(*spec, limit,
                               ThreadCpus(AllowedCpus(), environment, SystemFiles("/")),
                               options.shard);
  if (!plan) return Error{plan.error()};
  EstimateTime(*plan);
  return Ready{std::move(*spec), std::move(*plan), std::move(environment), limit};
}

std::string Duration(double seconds) {
  const auto whole = static_cast<uint64_t>(seconds + 0.5);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string TimeText(const Plan& plan) {
  const std::string least = Duration(plan.least_seconds());
  const std::string most = Duration(plan.most_seconds());
  if (least == most) return fmt::format("about {}", least);
  return fmt::format("about {}, up to {} if points need more processes", least, most);
}

json SkippedToJson(const std::vector<SkippedPoint>& points) {
  json list = json::array();
  for (const SkippedPoint& skipped : points) {
    list.push_back({{"point", PointToJson(skipped.point)}, {"reason", skipped.reason}});
  }
  return list;
}

// One line per reason, with how many points it concerns.
void PrintSkipped(const char* what, const std::vector<SkippedPoint>& points) {
  std::map<std::string, uint64_t> count_of;
  for (const SkippedPoint& skipped : points) {
    ++count_of[fmt::format("{}, {} keys: {}", skipped.point.filter, skipped.point.keys,
                           skipped.reason)];
  }
  for (const auto& [reason, count] : count_of) {
    fmt::print("{}: {} points of {}\n", what, count, reason);
  }
}

int PrintPlan(const SweepOptions& options, bool as_json) {
  const Result<Ready> ready = Prepare(options);
  if (!ready) return Complain(ready.error(), kExitUsage);
  const Plan& plan = ready->plan;
  if (as_json) {
    fmt::print("{}\n", json{{"spec", ResolvedSpec(ready->spec, plan)},
                            {"skipped", SkippedToJson(plan.skipped)},
                            {"meaningless", SkippedToJson(plan.meaningless)},
                            {"filters", plan.cases.size()},
                            {"memory_bytes", plan.memory_bytes()},
                            {"least_seconds", plan.least_seconds()},
                            {"most_seconds", plan.most_seconds()}}
                           .dump(2));
    return kExitOk;
  }
  for (const Case& work : plan.cases) {
    const std::string fill = work.fill ? fmt::format(" filled {} times", *work.fill) : "";
    const std::string pages =
        work.pages ? fmt::format(" on {} pages", kPagesNames[static_cast<size_t>(*work.pages)])
                   : "";
    fmt::print("{} {} keys{}{} {}: {} points, {} MiB, {} a round\n", work.type->info().name,
               work.keys, fill, pages, work.params.dump(), work.points.size(),
               work.memory_bytes >> 20, Duration(work.seconds));
  }
  PrintSkipped("skipped", plan.skipped);
  PrintSkipped("left out, means nothing", plan.meaningless);
  const MeasureSpec& measure = plan.measure;
  fmt::print("{}{} points on {} filters, {} skipped; {} builds in each of {} processes{}\n",
             plan.shard ? fmt::format("shard {}: ", ShardText(*plan.shard)) : "", plan.points(),
             plan.cases.size(), plan.skipped.size(), measure.rounds,
             measure.processes,
             measure.width ? fmt::format(", up to {} until the interval of a point is {} % wide",
                                         measure.max_processes, *measure.width * 100)
                           : "");
  fmt::print("needs {} MiB and {}\n", plan.memory_bytes() >> 20, TimeText(plan));
  return kExitOk;
}

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
  if (const auto error = directory->WriteManifest(manifest)) return *error;
  return directory;
}

// `text` as one word of a shell.
std::string ShellWord(const std::string& text) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_-./=,:+@").find(static_cast<char>(c)) !=
                                       std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
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

// The CPU to measure on; nothing if none is known.
Result<std::optional<int>> ChooseCpu(std::optional<int> asked, const json& environment) {
  const std::vector<int> allowed = AllowedCpus();
  if (!asked) return DefaultCpu(allowed, environment);
  if (std::find(allowed.begin(), allowed.end(), *asked) == allowed.end()) {
    return Error{fmt::format("--cpu {}: must be one of the CPUs that this process may use: {}",
                             *asked, fmt::join(allowed, ", "))};
  }
  return asked;
}

// Summary and theory of a run, from its manifest and samples; returns the summary.
Result<json> WriteWhatFollows(RunDirectory& directory, const json& manifest,
                              const std::vector<Sample>& samples) {
  json summary = Summarise(manifest, samples);
  if (auto error = directory.WriteSummary(summary)) return *error;
  if (auto error = directory.WriteTheory(TheoryCurves(samples))) return *error;
  return summary;
}

// `complete`: whoever calls knows that nothing is missing; all files are checked first.
int SummariseRun(const std::string& path, bool complete) {
  Result<RunDirectory> directory = RunDirectory::Open(path);
  if (!directory) return Complain(directory.error(), kExitUsage);
  for (const std::string& repair : directory->repairs()) fmt::print(stderr, "{}\n", repair);
  const Result<SamplesFile> samples = directory->ReadSamples();
  if (!samples) return Complain(samples.error(), kExitUsage);
  const Result<json> manifest = directory->ReadManifest();
  if (!manifest) return Complain(manifest.error(), kExitIncomplete);
  const Result<json> summary = WriteWhatFollows(*directory, *manifest, samples->samples);
  if (!summary) return Complain(summary.error(), kExitIncomplete);
  if (complete) {
    if (const auto error = WhyIncomplete(*manifest, samples->samples)) {
      return Complain(directory->path().string() + ": " + error->message, kExitIncomplete);
    }
    if (const auto error = directory->MarkComplete()) {
      return Complain(error->message, kExitIncomplete);
    }
  }
  fmt::print("{}\n", directory->path().string());
  return kExitOk;
}

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

// Without names: the filters of plug-ins where there are any, else all.
int VerifyFilters(const std::vector<std::string>& names) {
  std::vector<const FilterType*> types;
  for (const std::string& name : names) {
    const Result<const FilterType*> type = FindFilterType(name);
    if (!type) return Complain(type.error(), kExitUsage);
    types.push_back(*type);
  }
  if (names.empty()) {
    for (const auto& type : FilterTypes()) {
      if (LoadedPlugins().empty() || type->is_external()) types.push_back(type.get());
    }
  }
  size_t broken = 0;
  for (const FilterType* type : types) {
    const std::vector<RuleOutcome> outcomes = CheckRules(*type, kVerifySilenceSeconds);
    size_t kept = 0;
    for (const RuleOutcome& outcome : outcomes) kept += outcome.broken.empty() ? 1 : 0;
    fmt::print("{}: keeps {} of {} rules\n", type->info().name, kept, outcomes.size());
    for (const RuleOutcome& outcome : outcomes) {
      if (outcome.broken.empty()) continue;
      ++broken;
      fmt::print("  broken   {}\n           {}\n", outcome.rule, outcome.broken);
    }
  }
  return broken == 0 ? kExitOk : kExitWrongAnswers;
}

// Without a CPU: the one that a run would choose.
int Doctor(std::optional<int> asked_cpu, bool as_json) {
  json environment = ReadEnvironment();
  const Result<std::optional<int>> cpu = ChooseCpu(asked_cpu, environment);
  if (!cpu) return Complain(cpu.error(), kExitUsage);
  environment["activity"] = ObserveActivity(*cpu);
  const std::vector<Finding> findings = Examine(environment, ReadProvenance());
  const bool is_unfit = Unfit(findings);
  if (as_json) {
    fmt::print("{}\n", json{{"fit", !is_unfit},
                            {"findings", FindingsToJson(findings)},
                            {"activity", environment["activity"]}}
                           .dump(2));
  } else {
    fmt::print("{}", FindingsToText(findings));
  }
  return is_unfit ? kExitUnfit : kExitOk;
}

}  // namespace
}  // namespace filterbench

int main(int argc, char** argv) {
  using namespace filterbench;  // NOLINT: main lives outside of the namespace
  if (argc == 2 && std::string_view(argv[1]) == "worker") {
    ServeIsolated(DoWork);
    return Complain("worker: is what `run` starts; it cannot be called", kExitUsage);
  }
  CLI::App app("Measures approximate-membership filters: lookups, builds, space, errors.",
               "filterbench");
  app.require_subcommand(1);
  int exit_code = kExitOk;

  std::vector<std::string> plugins;
  const auto add_plugins = [&](CLI::App* command) {
    command
        ->add_option("--plugin", plugins,
                     "Shared library with filters (filters/plugin/abi.h); may be given again")
        ->allow_extra_args(false);
  };
  // Runs `command` with the plug-ins loaded.
  const auto with_plugins = [&](const std::function<int()>& command) {
    for (const std::string& path : plugins) {
      if (const auto error = LoadPlugin(path)) return Complain(error->message, kExitUsage);
    }
    return command();
  };

  bool as_json = false;
  CLI::App* list = app.add_subcommand("list", "Show every filter, its parameters and its targets");
  list->add_flag("--json", as_json, "As JSON");
  add_plugins(list);
  list->callback([&] { exit_code = with_plugins([&] { return List(as_json); }); });

  RunCommand command;
  for (int i = 0; i < argc; ++i) {
    command.words += (i == 0 ? "" : " ") + ShellWord(i == 0 ? "filterbench" : argv[i]);
  }
  SweepOptions& sweep = command.sweep;
  bool quick = false;
  bool rigorous = false;
  const auto add_sweep = [&](CLI::App* sub) {
    sub->add_option("spec", sweep.spec,
                    "Name of a spec (smoke, quick, families, ...) or path of a file")
        ->required();
    sub->add_option("--filter", sweep.only_filters,
                    "Only this filter or preset of the spec, and the baselines; may be a pattern "
                    "(\"*_bloom\") and given again")
        ->allow_extra_args(false);
    sub->add_option("--exclude", sweep.without_filters, "All but this one, baselines included")
        ->allow_extra_args(false);
    sub->add_option("--set", sweep.changes.settings,
                    "name=value: a field of measure (passes=7), a list of every sweep "
                    "(keys=1e4,1e6), or a parameter (cuckoo.fingerprint_bits=8,12)")
        ->allow_extra_args(false);
    sub->add_option("--seed", sweep.changes.seed, "Of keys, builds, lookups and the order")
        ->check(CLI::NonNegativeNumber);
    sub->add_option_function<std::string>(
           "--shard",
           [&sweep](const std::string& text) {
             const Result<Shard> shard = ParseShard(text);
             if (!shard) throw CLI::ValidationError("--shard", shard.error());
             sweep.shard = *shard;
           },
           "Only the I-th of N parts of the sweep; `merge` puts the parts together")
        ->type_name("I/N");
    CLI::Option* quick_flag = sub->add_flag(
        "--quick", quick, "A first look: two processes, a build in each, short passes");
    sub->add_flag("--rigorous", rigorous,
                  "At least four processes, up to twenty until intervals are 1 % wide")
        ->excludes(quick_flag);
    add_plugins(sub);
  };
  // Runs `use` with what add_sweep has read.
  const auto with_sweep = [&](const std::function<int()>& use) {
    sweep.changes.care = quick      ? Care::kQuick
                         : rigorous ? Care::kRigorous
                                    : Care::kAsSpecified;
    return with_plugins(use);
  };

  CLI::App* plan = app.add_subcommand("plan", "Show what a sweep would measure, and its cost");
  add_sweep(plan);
  plan->add_flag("--json", as_json, "As JSON");
  plan->callback([&] { exit_code = with_sweep([&] { return PrintPlan(sweep, as_json); }); });

  CLI::App* run = app.add_subcommand("run", "Measure a sweep; prints the directory of the results");
  add_sweep(run);
  run->add_option("--results", command.results_root, "Where runs are kept")
      ->capture_default_str();
  run->add_option("--resume", command.resume, "Directory of an unfinished run of the same spec")
      ->check([](const std::string& path) {
        return path.empty() ? "must be the directory of a run" : "";
      });
  run->add_option("--cpu", command.cpu, "CPU to measure on; else the last one that is allowed");
  run->add_flag("--strict", command.strict, "Refuse a machine that `doctor` finds unfit (exit 4)");
  run->add_flag("--fork-only", command.fork_only,
                "Measure in forks instead of fresh starts, whose addresses are the same: for "
                "emulators, where a program cannot start itself");
  run->callback([&] { exit_code = with_sweep([&] { return Run(command); }); });

  std::string unfinished;
  bool complete = false;
  CLI::App* summarise = app.add_subcommand(
      "summarise", "Write summary and theory of an unfinished run anew, from its samples");
  summarise->add_option("run", unfinished, "Directory of the run")->required();
  summarise->add_flag("--complete", complete, "It is all of its sweep: mark it as complete");
  summarise->callback([&] { exit_code = SummariseRun(unfinished, complete); });

  std::vector<std::string> names;
  CLI::App* verify = app.add_subcommand(
      "verify", "Check filters against the rules that all must keep, in plain words");
  verify->add_option("filters", names,
                     "Names; all filters of the plug-ins, or all, if none is given");
  add_plugins(verify);
  verify->callback([&] { exit_code = with_plugins([&] { return VerifyFilters(names); }); });

  std::optional<int> cpu;
  CLI::App* doctor = app.add_subcommand(
      "doctor", "Say what makes this machine unfit to be measured on, and the commands to mend it");
  doctor->add_option("--cpu", cpu, "The CPU to be measured on; the one that a run would choose");
  doctor->add_flag("--json", as_json, "As JSON");
  doctor->callback([&] { exit_code = Doctor(cpu, as_json); });

  CLI::App* theory = app.add_subcommand("export", "Print the theory curves as JSON");
  theory->callback([&] { fmt::print("{}\n", TheoryCurves().dump(2)); });

  // Their arguments are theirs, --help included; CLI11 knows them for the help of the whole only.
  if (const PythonCommand* command = argc > 1 ? FindPythonCommand(argv[1]) : nullptr) {
    return Complain(BecomePython(*command, {argv + 2, static_cast<size_t>(argc - 2)}).message,
                    kExitUsage);
  }
  for (const PythonCommand& command : PythonCommands()) {
    app.add_subcommand(std::string(command.name), std::string(command.summary));
  }
  if (argc > 1 && argv[1][0] != '-') {
    bool is_known = false;
    std::vector<std::string> shown;
    for (const CLI::App* subcommand : app.get_subcommands({})) {
      is_known = is_known || subcommand->get_name() == argv[1];
      if (!subcommand->get_group().empty()) shown.push_back(subcommand->get_name());
    }
    if (!is_known) return Complain(UnknownName("subcommand", argv[1], shown), kExitUsage);
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kExitOk : kExitUsage;
  } catch (const std::exception& error) {
    // What is longer than the buffer of standard output fails where it is printed.
    if (std::ferror(stdout) == 0) return Complain(error.what(), kExitIncomplete);
  }
  if (std::ferror(stdout) != 0 || std::fflush(stdout) != 0) {
    return Complain("standard output cannot be written", kExitIncomplete);
  }
  return exit_code;
}
