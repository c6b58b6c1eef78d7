#include "harness/plan/plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "filters/hash.h"
#include "filters/nearest_name.h"
#include "filters/presets.h"
#include "filters/simd/targets.h"
#include "harness/plan/shard_cases.h"
#include "harness/registry/workloads.h"
#include "workloads/lookups.h"

namespace filterbench {
namespace {

using nlohmann::json;

// A sweep of more points is a slip of the pen: at a second each it would take two weeks.
constexpr size_t kMaxPoints = 1'000'000;

// All combinations of lists of values: {"a": [1, 2], "b": 3} gives {1, 3} and {2, 3}, each completed
// by `complete`. The error is at the pointer of the value that is refused.
Result<std::vector<json>> Expand(const Spec& spec, const std::string& pointer, const json& grid,
                                 const std::function<Result<json>(const json&)>& complete) {
  if (!grid.is_object()) return spec.source.At(pointer, "must be an object of parameters");
  std::vector<json> combinations = {json::object()};
  for (const auto& [name, values] : grid.items()) {
    const json list = values.is_array() ? values : json::array({values});
    if (list.empty()) return spec.source.At(pointer + "/" + name, "must not be empty");
    if (list.size() > kMaxPoints / combinations.size()) {
      return spec.source.At(pointer, fmt::format("more than {} combinations", kMaxPoints));
    }
    std::vector<json> longer;
    for (size_t i = 0; i < list.size(); ++i) {
      const Result<json> alone = complete({{name, list[i]}});
      if (!alone) {
        std::string at = pointer + "/" + name;
        if (values.is_array()) at += "/" + std::to_string(i);
        return spec.source.At(at, alone.error());
      }
      for (const json& combination : combinations) {
        longer.push_back(combination);
        longer.back()[name] = list[i];
      }
    }
    combinations = std::move(longer);
  }
  for (json& combination : combinations) {
    Result<json> completed = complete(combination);
    if (!completed) return spec.source.At(pointer, completed.error());
    combination = std::move(*completed);
  }
  return combinations;
}

Result<std::vector<json>> ExpandParams(const Spec& spec, const std::string& pointer,
                                       const FilterType& type, const json& grid) {
  const Result<std::vector<json>> combinations = Expand(
      spec, pointer, grid, [&](const json& params) { return type.CompleteParams(params); });
  if (!combinations) return combinations;
  for (const json& params : *combinations) {
    if (const std::string problem = type.Contradiction(params); !problem.empty()) {
      return spec.source.At(pointer, problem);
    }
  }
  return combinations;
}

// The workload of a sweep: null with the reason where this build has it not, and its combinations
// of knobs, as they stand in the spec where it is not built.
struct ResolvedWorkload {
  const Workload* workload = nullptr;
  std::string reason;
  std::vector<json> knobs;
};

Result<ResolvedWorkload> ResolveWorkload(const Spec& spec, const SweepSpec& sweep) {
  const WorkloadEntry& entry = *sweep.workload;
  ResolvedWorkload resolved;
  const Result<const Workload*> workload = FindWorkload(entry.name);
  if (workload) {
    resolved.workload = *workload;
    if (sweep.has_negative_shares && !(*workload)->has_negative_share()) {
      return spec.source.At(sweep.pointer + "/negative_shares",
                            fmt::format("the operations of {} have no share of absent keys",
                                        entry.name));
    }
  } else if (const auto reason = WhyWorkloadNotBuilt(entry.name)) {
    resolved.reason = *reason;
  } else {
    return spec.source.At(entry.pointer, workload.error());
  }
  Result<std::vector<json>> knobs =
      Expand(spec, entry.pointer, entry.knobs, [&](const json& given) -> Result<json> {
        return resolved.workload != nullptr ? resolved.workload->CompleteKnobs(given) : given;
      });
  if (!knobs) return Error{knobs.error()};
  resolved.knobs = std::move(*knobs);
  return resolved;
}

// A preset replaced by its filter and parameters; other entries as they are.
Result<FilterEntry> ResolvePreset(const Spec& spec, const FilterEntry& entry) {
  if (entry.preset.empty()) return entry;
  const Result<const Preset*> preset = FindPreset(entry.preset);
  if (!preset) return spec.source.At(entry.pointer, preset.error());
  if (!(*preset)->filter) {
    return spec.source.At(entry.pointer, fmt::format("preset '{}' has no filter: {}", entry.preset,
                                                     (*preset)->reason));
  }
  const std::string& filter = *(*preset)->filter;
  if (!FindFilterType(filter)) {
    return spec.source.At(entry.pointer,
                          fmt::format("preset '{}' needs filter '{}', which this build has not",
                                      entry.preset, filter));
  }
  return FilterEntry{.filter = filter,
                     .params = (*preset)->params,
                     .preset = entry.preset,
                     .pointer = entry.pointer,
                     .params_pointer = entry.pointer};
}

// Names of a spec's targets resolved for one filter; what this machine or this filter has not is
// given back with the reason.
struct ResolvedTargets {
  std::vector<std::string> usable;
  std::vector<std::pair<std::string, std::string>> unusable;  // name, reason
};

Result<ResolvedTargets> ResolveTargets(const Spec& spec, const SweepSpec& sweep,
                                       const FilterType& type) {
  const std::vector<std::string_view> of_filter = type.targets();
  std::vector<std::string> compiled;
  for (const int64_t target : CompiledTargets()) compiled.emplace_back(TargetName(target));
  compiled.emplace_back("scalar");

  ResolvedTargets resolved;
  const auto add = [&](std::string_view name) {
    if (std::find(resolved.usable.begin(), resolved.usable.end(), name) == resolved.usable.end()) {
      resolved.usable.emplace_back(name);
    }
  };
  for (const std::string& name : sweep.targets) {
    if (name == "best") {
      add(of_filter.front());
    } else if (name == "all") {
      for (const std::string_view target : of_filter) add(target);
    } else if (std::find(of_filter.begin(), of_filter.end(), name) != of_filter.end()) {
      add(name);
    } else if (std::find(compiled.begin(), compiled.end(), name) != compiled.end()) {
      const bool runs_here = std::ranges::count(SupportedTargetNames(), name) != 0;
      resolved.unusable.emplace_back(
          name, runs_here ? fmt::format("{} has no kernel for {}", type.info().name, name)
                          : fmt::format("this CPU does not support {}", name));
    } else {
      std::vector<std::string> valid = compiled;
      valid.insert(valid.begin(), {"best", "all"});
      return spec.source.At(sweep.pointer + "/targets", UnknownName("target", name, valid));
    }
  }
  return resolved;
}

bool IsBytes(const KeySetSpec& key_set) {
  return key_set.kind == KeyKind::kBytes || key_set.kind == KeyKind::kFile;
}

// The baseline that workloads may have.
constexpr std::string_view kNoFilter = "always_maybe";

json KnobsOf(const Point& point) {
  json knobs = *point.workload;
  knobs.erase("name");
  return knobs;
}

// Why a combination of modes, hashing, keys and workload means nothing; empty if it does.
std::string WhyMeaningless(const Point& point, const FilterType& type, const Workload* workload) {
  if (workload != nullptr) {
    std::string reason = workload->Contradiction(KnobsOf(point), point.keys);
    if (reason.empty() && type.info().is_baseline && point.filter != kNoFilter) {
      reason = fmt::format("{} is a baseline, whose answers mean nothing; {} is the application "
                           "without a filter",
                           point.filter, kNoFilter);
    }
    if (reason.empty()) {
      reason = workload->WhyNotWith(point.filter, point.params, type.can_insert());
    }
    return reason.empty() ? reason : fmt::format("{}: {}", workload->name(), reason);
  }
  if (point.hashing == Hashing::kXxh3Bytes && !IsBytes(point.key_set)) {
    return "xxh3_bytes hashes byte strings, the key set has integers";
  }
  if (point.hashing == Hashing::kXxh3U64 && IsBytes(point.key_set)) {
    return "xxh3_u64 hashes integers, the key set has byte strings";
  }
  if (point.hashing != Hashing::kPrehashed && point.mode == Mode::kLatency) {
    return "latency chains run over hashes: the next key must depend on the answer";
  }
  if (point.hashing != Hashing::kPrehashed && point.fill) {
    return "filters are filled key by key with hashes";
  }
  if (point.hashing != Hashing::kPrehashed && point.mode == Mode::kReference) {
    return "the scalar reference is measured on hashes alone, to be compared with the kernels";
  }
  if (point.threads && !MayHaveThreads(point.mode)) {
    return fmt::format("several threads are measured in modes lookup_batched and lookup_single, "
                       "not in {}",
                       kModeNames[static_cast<size_t>(point.mode)]);
  }
  return {};
}

uint64_t StreamLookups(const Case& work, const MeasureSpec& measure) {
  return measure.stream_lookups != 0 ? measure.stream_lookups : DefaultStreamLookups(work.keys);
}

void EstimateMemory(Case& work, const MeasureSpec& measure) {
  if (work.workload != nullptr) {
    work.memory_bytes = (64 << 20) + static_cast<uint64_t>(
        work.workload->EstimateCost(work.knobs, work.keys).memory_bytes);
    return;
  }
  double bits_per_key = 16;
  if (const auto bits = work.params.find("bits_per_key"); bits != work.params.end()) {
    bits_per_key = std::max(bits_per_key, bits->get<double>());
  }
  const double n = static_cast<double>(work.given_keys());
  const KeySetSpec& key_set = work.key_set.spec();
  const uint64_t stream = StreamLookups(work, measure);
  const uint64_t bytes_per_key = key_set.kind == KeyKind::kBytes  ? key_set.length_bytes
                                 : key_set.kind == KeyKind::kFile ? 64
                                                                  : 0;
  // Each thread has a stream of its own, of each kind.
  std::map<std::pair<double, Hashing>, uint64_t> threads_of;
  for (const Point& point : work.points) {
    if (!point.negative_share) continue;
    uint64_t& threads = threads_of[{*point.negative_share, point.hashing}];
    threads = std::max(threads, point.threads.value_or(1));
  }
  uint64_t streams = 0;
  for (const auto& [kind, threads] : threads_of) streams += threads;
  // All streams of a case are held at once, and their indices while they are made. A build may hold
  // a second time (sorted) and as much again in working memory.
  const double bytes_of_build =
      work.streams_keys() ? bits_per_key / 8 : 8 * 4 + 2 * bits_per_key / 8 + bytes_per_key;
  work.memory_bytes = static_cast<uint64_t>(n * bytes_of_build) +
                      measure.fpr_queries * (8 + bytes_per_key) +
                      stream * (8 + (8 + bytes_per_key) * streams) + (64 << 20);
}

double SecondsOfRound(const Case& work, const MeasureSpec& measure, const Costs& costs) {
  if (work.workload != nullptr) {
    const Workload::Cost cost = work.workload->EstimateCost(work.knobs, work.keys);
    // Two iterations come before the passes, and one is counted after them.
    const double points = static_cast<double>(work.points.size());
    return cost.prepare_seconds +
           points * (3 * cost.iteration_seconds +
                     static_cast<double>(measure.passes) *
                         std::max(measure.pass_seconds, cost.iteration_seconds));
  }
  const double n = static_cast<double>(work.given_keys());
  const double stream = static_cast<double>(StreamLookups(work, measure));
  // Misses beyond the caches cost more than the keys of a calibration.
  const double beyond_caches = 1 + std::max(0.0, std::log10(n / 1e6));
  double seconds = (n * costs.prepare_ns_per_key +
                    static_cast<double>(measure.fpr_queries) * costs.ns_per_query) *
                   beyond_caches * 1e-9;
  for (const Point& point : work.points) {
    const double once = IsLookup(point.mode)
                            ? stream * costs.ns_per_lookup * beyond_caches * 1e-9
                            : n * costs.prepare_ns_per_key * beyond_caches * 1e-9;
    double pass = std::max(measure.pass_seconds, once);
    if (point.mode == Mode::kInsert && n > 0) {
      // Of the keys of a filter few are timed, and these for as long as the clock needs.
      constexpr double kShortestPassSeconds = 1e-4;  // at a step of 25 ns
      pass = std::max(pass, kShortestPassSeconds * n / static_cast<double>(work.stretch_keys()));
    }
    // Two iterations come before the passes.
    seconds += 2 * once + static_cast<double>(measure.passes) * pass;
  }
  return seconds;
}

// How a filter is fed whose points are hashed as `hashing` says.
Hashing BuildHashing(const FilterType& type, Hashing hashing) {
  return type.hashes_keys() ? hashing : Hashing::kPrehashed;
}

Case NewCase(const FilterType& type, const KeySet& key_set, const Point& point,
             const Workload* workload) {
  Case work = {.type = &type,
          .params = point.params,
          .keys = point.keys,
          .key_set = key_set,
          .fill = point.fill,
          .build_hashing = BuildHashing(type, point.hashing),
          .pages = point.pages};
  if (workload != nullptr) {
    work.workload = workload;
    work.knobs = KnobsOf(point);
  }
  return work;
}

// Equal for points that share a case.
std::string CaseIdentity(const FilterType& type, const Point& point) {
  return nlohmann::json({point.filter, point.params, point.keys, KeySetToJson(point.key_set),
                         point.fill ? json(*point.fill) : json(),
                         kHashingNames[static_cast<size_t>(BuildHashing(type, point.hashing))],
                         point.pages ? json(kPagesNames[static_cast<size_t>(*point.pages)])
                                     : json(),
                         point.workload ? json({*point.workload, point.target}) : json()})
      .dump();
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Costs MeasureCosts(const FilterType& type) {
  using Clock = std::chrono::steady_clock;
  constexpr uint64_t kKeys = 20000;
  std::vector<uint64_t> hashes(kKeys);
  for (uint64_t i = 0; i < kKeys; ++i) hashes[i] = Mix64(i + kGoldenGamma);
  const KeyStream keys{.words = hashes};
  const Result<json> params = type.CompleteParams(json::object());
  Costs costs;
  if (!params || !type.Build({.words = {}}, *params, 1)) return costs;
  // The second time counts: the first one computes what later ones know.
  double build_seconds = 0;
  double lookup_seconds = 0;
  for (int repetition = 0; repetition < 2; ++repetition) {
    auto start = Clock::now();
    const auto filter = type.Build(keys, *params, 1);
    if (!filter) return costs;
    build_seconds = SecondsSince(start);
    start = Clock::now();
    (void)(*filter)->Count(keys, Mode::kLookupSingle, "scalar");
    lookup_seconds = SecondsSince(start);
  }
  const double ns_per_lookup = lookup_seconds * 1e9 / kKeys;
  // Keys are looked up by the reference and by each kernel; making one costs some ten nanoseconds.
  const double ns_to_verify = ns_per_lookup * static_cast<double>(1 + type.targets().size());
  constexpr double kNsToMakeKey = 10;
  return {.prepare_ns_per_key = build_seconds * 1e9 / kKeys + ns_to_verify + kNsToMakeKey,
          .ns_per_query = ns_to_verify + kNsToMakeKey,
          .ns_per_lookup = ns_per_lookup};
}

// Why a point cannot be measured on this machine or with this filter; empty if it can.
std::string WhyNotHere(const Point& point, const FilterType& type, size_t cpus) {
  if (point.pages && type.is_external()) {
    return "a plug-in takes its memory by itself: its pages cannot be chosen";
  }
  if (!point.threads) return {};
  if (type.is_external()) return "a plug-in is promised calls from one thread alone";
  if (*point.threads > cpus) {
    return fmt::format("{} threads on {} CPU{} (allowed to this process, within the cgroup quota): "
                       "oversubscription is refused",
                       *point.threads, cpus, cpus == 1 ? "" : "s");
  }
  return {};
}

// Why a filter cannot be filled as far as a case asks; empty if it can.
std::string WhyNotFilled(const Case& work) {
  if (!work.fill) return {};
  if (!work.type->can_insert()) {
    return fmt::format("{} takes no single keys: it holds just what it is built from",
                       work.type->info().name);
  }
  if (work.given_keys() > work.key_set.size()) {
    return fmt::format("a fill of {} needs {} keys, {} has {}", *work.fill, work.given_keys(),
                       work.key_set.spec().path, work.key_set.size());
  }
  return {};
}

}  // namespace

bool Case::streams_keys() const {
  constexpr uint64_t kMaxKeysInMemory = uint64_t{1} << 28;  // 2 GiB of hashes
  return !fill && keys > kMaxKeysInMemory && build_hashing == Hashing::kPrehashed &&
         type->can_stream();
}

uint64_t Case::given_keys() const {
  return fill ? static_cast<uint64_t>(std::llround(static_cast<double>(keys) * *fill)) : keys;
}

uint64_t Case::stretch_keys() const {
  constexpr uint64_t kStretchesPerFilter = 20;
  return std::min(given_keys(), std::max<uint64_t>(keys / kStretchesPerFilter, 1));
}

uint64_t KeySeed(uint64_t seed) { return Mix64(seed + 1); }

uint64_t Plan::points() const {
  return std::accumulate(cases.begin(), cases.end(), uint64_t{0},
                         [](uint64_t sum, const Case& work) { return sum + work.points.size(); });
}

uint64_t Plan::memory_bytes() const {
  uint64_t largest = 0;
  for (const Case& work : cases) largest = std::max(largest, work.memory_bytes);
  return largest;
}

double Plan::seconds_of_round() const {
  double sum = 0;
  for (const Case& work : cases) sum += work.seconds;
  return sum;
}

double Plan::least_seconds() const {
  return seconds_of_round() * static_cast<double>(measure.rounds * measure.processes);
}

double Plan::most_seconds() const {
  if (!measure.width) return least_seconds();
  return seconds_of_round() * static_cast<double>(measure.rounds * measure.max_processes);
}

std::map<const FilterType*, Costs> Calibrate(const std::vector<const FilterType*>& types) {
  std::map<const FilterType*, Costs> costs;
  for (const FilterType* type : types) {
    if (costs.contains(type)) continue;
    costs.emplace(type, type->is_external() ? Costs() : MeasureCosts(*type));
  }
  return costs;
}

void EstimateTime(Plan& plan) {
  std::vector<const FilterType*> types;
  for (const Case& work : plan.cases) types.push_back(work.type);
  const std::map<const FilterType*, Costs> costs = Calibrate(types);
  for (Case& work : plan.cases) {
    work.seconds = SecondsOfRound(work, plan.measure, costs.at(work.type));
  }
}

Result<Case> CaseOfPoints(std::vector<Point> points, const KeySet& key_set) {
  const Result<const FilterType*> type = FindFilterType(points.front().filter);
  if (!type) return Error{type.error()};
  const Workload* workload = nullptr;
  if (points.front().workload) {
    const Result<const Workload*> found =
        FindWorkload(points.front().workload->at("name").get<std::string>());
    if (!found) return Error{found.error()};
    workload = *found;
  }
  Case work = NewCase(**type, key_set, points.front(), workload);
  work.points = std::move(points);
  return work;
}

Result<Plan> MakePlan(const Spec& spec, uint64_t memory_limit_bytes,
                      std::vector<int> thread_cpus, const std::optional<Shard>& shard) {
  Plan plan;
  plan.measure = spec.measure;
  std::map<std::string, size_t> case_of;  // by its canonical JSON
  std::set<std::string> seen;             // ids of points: two sweeps may overlap
  size_t combinations = 0;                // tried, seen ones included
  // Ends the loops, whose lists a spec may make as long as it likes.
  const auto too_many = [&] { return combinations > kMaxPoints; };

  const auto add = [&](const FilterType& type, const KeySet& key_set, Point point,
                       const Workload* workload = nullptr) {
    if (++combinations > kMaxPoints || !seen.insert(PointId(point)).second) return;
    if (std::string reason = WhyMeaningless(point, type, workload); !reason.empty()) {
      plan.meaningless.push_back({std::move(point), std::move(reason)});
      return;
    }
    if (std::string reason = WhyNotHere(point, type, thread_cpus.size()); !reason.empty()) {
      plan.skipped.push_back({std::move(point), std::move(reason)});
      return;
    }
    const auto [found, is_new] =
        case_of.emplace(CaseIdentity(type, point), plan.cases.size());
    if (is_new) {
      plan.cases.push_back(NewCase(type, key_set, point, workload));
      plan.cases.back().thread_cpus = thread_cpus;
    }
    plan.cases[found->second].points.push_back(std::move(point));
  };

  // The points of a filter in a mode: the product of the lists that are left.
  const auto add_points = [&](const SweepSpec& sweep, const FilterType& type,
                              const ResolvedTargets& targets, const KeySet& key_set, Point point) {
    if (point.mode == Mode::kBuild) {
      add(type, key_set, point);  // builds do not dispatch and are fed with hashes
      return;
    }
    if (IsFilling(point.mode)) {
      const std::vector<double> defaults =
          point.mode == Mode::kOverfill
              ? std::vector<double>{0.5, 1, 1.5, 2, 3}
              : std::vector<double>{0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1};
      for (const double fill : sweep.fills.empty() ? defaults : sweep.fills) {
        if (too_many()) return;
        point.fill = fill;
        add(type, key_set, point);
      }
      return;
    }
    std::vector<std::optional<double>> fills(sweep.fills.begin(), sweep.fills.end());
    if (fills.empty()) fills = {std::nullopt};
    for (const std::optional<double> fill : fills) {
      point.fill = fill;
      for (const Hashing hashing : sweep.hashings) {
        for (const double share : sweep.negative_shares) {
          if (too_many()) return;
          point.hashing = hashing;
          point.negative_share = share;
          for (const std::string& target : targets.usable) {
            point.target = target;
            add(type, key_set, point);
          }
          for (const auto& [target, reason] : targets.unusable) {
            point.target = target;
            if (++combinations <= kMaxPoints && WhyMeaningless(point, type, nullptr).empty() &&
                seen.insert(PointId(point)).second) {
              plan.skipped.push_back({point, reason});
            }
          }
        }
      }
    }
  };

  // The points of a filter in a workload.
  const auto add_workload = [&](const SweepSpec& sweep, const ResolvedWorkload& workload,
                                const FilterType& type, const ResolvedTargets& targets,
                                const KeySet& key_set, Point point) {
    point.mode = Mode::kWorkload;
    std::vector<std::optional<double>> shares(sweep.negative_shares.begin(),
                                              sweep.negative_shares.end());
    if (workload.workload != nullptr && !workload.workload->has_negative_share()) {
      shares = {std::nullopt};
    }
    const auto skip = [&](const std::string& reason) {
      if (++combinations <= kMaxPoints && seen.insert(PointId(point)).second) {
        plan.skipped.push_back({point, reason});
      }
    };
    for (const json& knobs : workload.knobs) {
      point.workload = knobs;
      (*point.workload)["name"] = sweep.workload->name;
      for (const std::optional<double> share : shares) {
        if (too_many()) return;
        point.negative_share = share;
        for (const std::string& target : targets.usable) {
          point.target = target;
          if (workload.workload != nullptr) {
            add(type, key_set, point, workload.workload);
          } else {
            skip(fmt::format("{}: not built: {}", sweep.workload->name, workload.reason));
          }
        }
        for (const auto& [target, reason] : targets.unusable) {
          point.target = target;
          skip(reason);
        }
      }
    }
  };

  // A file is read once, for all filters.
  std::map<std::string, KeySet> opened;
  const auto open = [&](const KeySetSpec& key_set) -> Result<KeySet> {
    const std::string name = KeySetToJson(key_set).dump();
    if (const auto found = opened.find(name); found != opened.end()) return found->second;
    Result<KeySet> keys = KeySet::Open(key_set, KeySeed(spec.measure.seed));
    if (keys) opened.emplace(name, *keys);
    return keys;
  };

  for (const SweepSpec& sweep : spec.sweeps) {
    ResolvedWorkload workload;
    if (sweep.workload) {
      Result<ResolvedWorkload> resolved = ResolveWorkload(spec, sweep);
      if (!resolved) return Error{resolved.error()};
      workload = std::move(*resolved);
    }
    for (const FilterEntry& given : sweep.filters) {
      const Result<FilterEntry> entry = ResolvePreset(spec, given);
      if (!entry) return Error{entry.error()};
      const std::string& filter = entry->filter;
      const Result<const FilterType*> type = FindFilterType(filter);
      if (!type) return spec.source.At(given.pointer, type.error());
      const Result<std::vector<json>> params =
          ExpandParams(spec, given.params_pointer, **type, entry->params);
      if (!params) return Error{params.error()};
      const Result<ResolvedTargets> targets = ResolveTargets(spec, sweep, **type);
      if (!targets) return Error{targets.error()};

      for (const KeySetSpec& key_set_spec : sweep.key_sets) {
        const Result<KeySet> key_set = open(key_set_spec);
        if (!key_set) return spec.source.At(sweep.pointer + "/key_sets", key_set.error());
        for (const uint64_t keys : sweep.keys) {
          if (keys > key_set->size()) {
            return spec.source.At(sweep.pointer + "/keys",
                                  fmt::format("{} keys are asked for, {} has {}", keys,
                                              key_set_spec.path, key_set->size()));
          }
          for (const json& one : *params) {
            if (too_many()) {
              return spec.source.At("/sweeps", fmt::format("more than {} points", kMaxPoints));
            }
            if (sweep.workload) {
              add_workload(sweep, workload, **type, *targets, *key_set,
                           {.filter = filter,
                            .preset = given.preset.empty() ? std::nullopt
                                                           : std::optional(given.preset),
                            .params = one,
                            .keys = keys,
                            .key_set = key_set->spec(),
                            .fill = std::nullopt,
                            .negative_share = std::nullopt,
                            .target = ""});
              continue;
            }
            for (const std::optional<Pages> pages : sweep.pages) {
              for (const Mode mode : sweep.modes) {
                for (const uint64_t threads : sweep.threads) {
                  add_points(sweep, **type, *targets, *key_set,
                             {.filter = filter,
                              .preset = given.preset.empty() ? std::nullopt
                                                             : std::optional(given.preset),
                              .params = one,
                              .keys = keys,
                              .key_set = key_set->spec(),
                              .mode = mode,
                              .fill = std::nullopt,
                              .negative_share = std::nullopt,
                              .hashing = Hashing::kPrehashed,
                              .target = "scalar",
                              .pages = pages,
                              .threads = threads > 1 ? std::optional(threads) : std::nullopt});
                }
              }
            }
          }
        }
      }
    }
  }
  if (too_many()) {
    return spec.source.At("/sweeps", fmt::format("more than {} points", kMaxPoints));
  }
  if (plan.points() + plan.skipped.size() == 0) {
    std::string problem = "there is nothing to measure: no combination has a meaning";
    if (!plan.meaningless.empty()) problem += "; the first: " + plan.meaningless[0].reason;
    return spec.source.At("/sweeps", problem);
  }
  std::vector<Case> possible;
  for (Case& work : plan.cases) {
    EstimateMemory(work, plan.measure);
    work.seconds = SecondsOfRound(work, plan.measure, Costs());
    if (const std::string reason = WhyNotFilled(work); !reason.empty()) {
      for (Point& point : work.points) plan.skipped.push_back({std::move(point), reason});
      continue;
    }
    plan.sweep_points.insert(plan.sweep_points.end(), work.points.begin(), work.points.end());
    possible.push_back(std::move(work));
  }
  // Before anything that another node may see otherwise, such as its memory.
  if (shard) {
    if (shard->count > possible.size()) {
      return spec.source.At("/sweeps", fmt::format("shard {}: there are only {} filters to build, "
                                                   "which are shared among at most {} shards",
                                                   ShardText(*shard), possible.size(),
                                                   possible.size()));
    }
    plan.shard = shard;
    possible = CasesOfShard(std::move(possible), *shard);
    if (shard->index != 0) {
      plan.skipped.clear();
      plan.meaningless.clear();
    }
  }
  std::vector<Case> fitting;
  for (Case& work : possible) {
    if (work.memory_bytes <= memory_limit_bytes) {
      fitting.push_back(std::move(work));
      continue;
    }
    for (Point& point : work.points) {
      plan.skipped.push_back({std::move(point),
                              fmt::format("out of memory: needs about {} MiB, limit {} MiB",
                                          work.memory_bytes >> 20, memory_limit_bytes >> 20)});
    }
  }
  plan.cases = std::move(fitting);
  return plan;
}

std::vector<size_t> VisitOrder(size_t cases, uint64_t seed, uint64_t round) {
  std::vector<size_t> order(cases);
  std::iota(order.begin(), order.end(), size_t{0});
  const uint64_t drawn_from = Mix64(seed ^ Mix64(round / 2 + kGoldenGamma));
  for (size_t i = cases; i > 1; --i) {
    std::swap(order[i - 1], order[FastRange64(Mix64(drawn_from + i * kGoldenGamma), i)]);
  }
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace filterbench
