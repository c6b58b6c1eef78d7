// The front door: filterbench list | plan | run | verify | export, and what front_door.h hands on to
// Python. Data goes to stdout, talk to stderr.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "filters/nearest_name.h"
#include "filters/presets.h"
#include "filters/simd/targets.h"
#include "harness/front_door.h"
#include "harness/machine/cpu_affinity.h"
#include "harness/machine/environment.h"
#include "harness/machine/provenance.h"
#include "harness/plan/plan.h"
#include "harness/record/run_directory.h"
#include "harness/record/sample.h"
#include "harness/record/summary.h"
#include "harness/record/theory_export.h"
#include "harness/registry/erased_filter.h"
#include "harness/run/manifest.h"
#include "harness/run/rules.h"
#include "harness/run/runner.h"
#include "harness/spec/shard.h"
#include "harness/spec/spec.h"

namespace filterbench {
namespace {

using nlohmann::json;

constexpr int kExitOk = 0;
constexpr int kExitUsage = 2;
constexpr int kExitWrongAnswers = 3;
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
};

Result<Ready> Prepare(const std::string& spec_name, const std::optional<Shard>& shard) {
  Result<Spec> spec = ReadSpec(spec_name);
  if (!spec) return Error{spec.error()};
  for (size_t i = 0; i < spec->plugins.size(); ++i) {
    if (const auto error = LoadPlugin(spec->plugins[i])) {
      return spec->source.At(fmt::format("/plugins/{}", i), error->message);
    }
  }
  json environment = ReadEnvironment();
  Result<Plan> plan = MakePlan(*spec, AvailableMemoryBytes(environment), shard);
  if (!plan) return Error{plan.error()};
  return Ready{std::move(*spec), std::move(*plan), std::move(environment)};
}

std::string Duration(double seconds) {
  const auto whole = static_cast<uint64_t>(seconds + 0.5);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
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

int PrintPlan(const std::string& spec_name, const std::optional<Shard>& shard, bool as_json) {
  const Result<Ready> ready = Prepare(spec_name, shard);
  if (!ready) return Complain(ready.error(), kExitUsage);
  const Plan& plan = ready->plan;
  if (as_json) {
    fmt::print("{}\n", json{{"spec", ResolvedSpec(ready->spec, plan)},
                            {"skipped", SkippedToJson(plan.skipped)},
                            {"meaningless", SkippedToJson(plan.meaningless)},
                            {"filters", plan.cases.size()},
                            {"memory_bytes", plan.memory_bytes()},
                            {"seconds", plan.seconds()}}
                           .dump(2));
    return kExitOk;
  }
  for (const Case& work : plan.cases) {
    const std::string fill = work.fill ? fmt::format(" filled {} times", *work.fill) : "";
    fmt::print("{} {} keys{} {}: {} points, {} MiB, {} a round\n", work.type->info().name,
               work.keys, fill, work.params.dump(), work.points.size(), work.memory_bytes >> 20,
               Duration(work.seconds));
  }
  PrintSkipped("skipped", plan.skipped);
  PrintSkipped("left out, means nothing", plan.meaningless);
  fmt::print("{}{} points on {} filters, {} rounds, {} skipped; needs {} MiB and about {}\n",
             shard ? fmt::format("shard {}: ", ShardText(*shard)) : "", plan.points(), plan.cases.size(), plan.measure.rounds, plan.skipped.size(),
             plan.memory_bytes() >> 20, Duration(plan.seconds()));
  return kExitOk;
}

void ShowProgress(const RunProgress& progress) {
  static auto last = std::chrono::steady_clock::time_point();
  const auto now = std::chrono::steady_clock::now();
  if (isatty(STDERR_FILENO) == 0 || now - last < std::chrono::milliseconds(200)) return;
  last = now;
  const double done = static_cast<double>(progress.samples_done);
  const double left =
      done > 0 ? progress.seconds / done * (static_cast<double>(progress.samples_total) - done) : 0;
  fmt::print(stderr, "\r\033[K{}/{} samples, {} left: {}", progress.samples_done,
             progress.samples_total, done > 0 ? Duration(left) : "?", progress.now);
}

// A directory to write to: a new one, or one of an earlier run that is to be finished.
Result<RunDirectory> OpenDirectory(const Ready& ready, const std::string& results_root,
                                   const std::string& resume) {
  const json provenance = ReadProvenance();
  const json resolved = ResolvedSpec(ready.spec, ready.plan);
  if (!resume.empty()) {
    Result<RunDirectory> directory = RunDirectory::Open(resume);
    if (!directory) return Error{directory.error()};
    const Result<json> manifest = directory->ReadManifest();
    if (!manifest) return Error{manifest.error()};
    const auto refuse = [&](const char* what) {
      return Error{fmt::format("{}: not resumed: {} is not the one of that run", resume, what)};
    };
    if ((*manifest)["spec_hash"] != SpecHash(resolved)) return refuse("the spec");
    const json shard = ready.plan.shard ? ShardToJson(*ready.plan.shard) : json();
    if (manifest->value("shard", json()) != shard) return refuse("the shard");
    if ((*manifest)["provenance"]["binary_xxh3"] != provenance["binary_xxh3"]) {
      return refuse("the program");
    }
    if ((*manifest)["machine"] != MachineSlug(ready.environment)) return refuse("the machine");
    for (const std::string& repair : directory->repairs()) fmt::print(stderr, "{}\n", repair);
    return directory;
  }
  const auto now = std::chrono::system_clock::now();
  const json& commit = provenance["git_commit"];
  const json& dirty = provenance["git_dirty"];
  Result<RunDirectory> directory =
      RunDirectory::Create(results_root, MachineSlug(ready.environment),
                           {.start = now,
                            .git_commit = commit.is_string() ? commit.get<std::string>() : "",
                            .git_dirty = dirty.is_boolean() && dirty.get<bool>(),
                            .spec_hash = SpecHash(resolved),
                            .shard = ready.plan.shard});
  if (!directory) return Error{directory.error()};
  if (const auto error = directory->WriteManifest(MakeManifest(
          ready.spec, ready.plan, ready.environment, provenance, *directory, FormatUtc(now)))) {
    return *error;
  }
  return directory;
}

int Run(const std::string& spec_name, const std::optional<Shard>& shard,
        const std::string& results_root, const std::string& resume) {
  const Result<Ready> ready = Prepare(spec_name, shard);
  if (!ready) return Complain(ready.error(), kExitUsage);
  Result<RunDirectory> directory = OpenDirectory(*ready, results_root, resume);
  if (!directory) return Complain(directory.error(), kExitUsage);

  const std::optional<int> cpu = DefaultCpu(AllowedCpus(), ready->environment);
  if (!cpu) {
    fmt::print(stderr, "not pinned: no CPU is known to be allowed\n");
  } else if (const auto problem = PinToCpu(*cpu)) {
    fmt::print(stderr, "not pinned to CPU {}: {}\n", *cpu, *problem);
  }
  fmt::print(stderr, "{}: {} points, {} rounds, about {}, into {}\n", ready->spec.name,
             ready->plan.points(), ready->plan.measure.rounds, Duration(ready->plan.seconds()),
             directory->path().string());

  std::signal(SIGINT, [](int) { g_interrupted = 1; });
  std::signal(SIGTERM, [](int) { g_interrupted = 1; });
  const Result<RunOutcome> outcome =
      ExecutePlan(ready->plan, *directory,
                  {.on_progress = ShowProgress, .should_stop = [] { return g_interrupted != 0; }});
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
  if (!outcome) return Complain(outcome.error(), kExitIncomplete);

  const Result<SamplesFile> samples = directory->ReadSamples();
  if (!samples) return Complain(samples.error(), kExitIncomplete);
  const Result<json> manifest = directory->ReadManifest();
  if (!manifest) return Complain(manifest.error(), kExitIncomplete);
  if (const auto error = directory->WriteSummary(Summarise(*manifest, samples->samples))) {
    return Complain(error->message, kExitIncomplete);
  }
  std::set<std::string> filters;
  for (const Sample& sample : samples->samples) filters.insert(sample.point.filter);
  if (const auto error = directory->WriteTheory(TheoryCurves(filters))) {
    return Complain(error->message, kExitIncomplete);
  }
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
  fmt::print(stderr, "{} samples measured, {} reused; of all, {} have wrong answers, {} failed\n",
             outcome->samples_measured, outcome->samples_reused, wrong, failed);
  if (outcome->interrupted) {
    fmt::print(stderr, "interrupted; go on with: filterbench run {}{} --resume {}\n", spec_name,
               shard ? " --shard " + ShardText(*shard) : "", directory->path().string());
    return kExitInterrupted;
  }
  if (const auto error = directory->MarkComplete()) {
    return Complain(error->message, kExitIncomplete);
  }
  fmt::print("{}\n", directory->path().string());
  if (wrong != 0) return kExitWrongAnswers;
  return failed != 0 ? kExitIncomplete : kExitOk;
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

}  // namespace
}  // namespace filterbench

int main(int argc, char** argv) {
  using namespace filterbench;  // NOLINT: main lives outside of the namespace
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

  std::optional<Shard> shard;
  const auto add_shard = [&](CLI::App* command) {
    command
        ->add_option_function<std::string>(
            "--shard",
            [&](const std::string& text) {
              const Result<Shard> parsed = ParseShard(text);
              if (!parsed) throw CLI::ValidationError(parsed.error());
              shard = *parsed;
            },
            "Only the I-th of N parts of the sweep, which other runs complete (merge joins them)")
        ->type_name("I/N");
  };

  std::string spec;
  CLI::App* plan = app.add_subcommand("plan", "Show what a sweep would measure, and its cost");
  plan->add_option("spec", spec, "Name of a spec (smoke, quick, families, ...) or path of a file")
      ->required();
  plan->add_flag("--json", as_json, "As JSON");
  add_shard(plan);
  add_plugins(plan);
  plan->callback(
      [&] { exit_code = with_plugins([&] { return PrintPlan(spec, shard, as_json); }); });

  std::string results_root = "results";
  std::string resume;
  CLI::App* run = app.add_subcommand("run", "Measure a sweep; prints the directory of the results");
  run->add_option("spec", spec, "Name of a spec (smoke, quick, families, ...) or path of a file")
      ->required();
  run->add_option("--results", results_root, "Where runs are kept")->capture_default_str();
  run->add_option("--resume", resume, "Directory of an unfinished run of the same spec");
  add_shard(run);
  add_plugins(run);
  run->callback(
      [&] { exit_code = with_plugins([&] { return Run(spec, shard, results_root, resume); }); });

  std::vector<std::string> names;
  CLI::App* verify = app.add_subcommand(
      "verify", "Check filters against the rules that all must keep, in plain words");
  verify->add_option("filters", names,
                     "Names; all filters of the plug-ins, or all, if none is given");
  add_plugins(verify);
  verify->callback([&] { exit_code = with_plugins([&] { return VerifyFilters(names); }); });

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
