#ifndef FILTERBENCH_HARNESS_SPEC_SPEC_H_
#define FILTERBENCH_HARNESS_SPEC_SPEC_H_

// A sweep specification: what a person asks to be measured, as it stands in workloads/specs/*.json.
// Only its form is checked here; which filters and parameters exist is the plan's business
// (harness/plan/plan.h), which reports by the same lines.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "filters/result.h"
#include "harness/spec/changes.h"
#include "harness/spec/located_json.h"
#include "harness/spec/point.h"

namespace filterbench {

inline constexpr uint64_t kMaxSeed = UINT64_MAX >> 1;

// How each point is measured. Repetition has three levels: processes (fresh starts of the program),
// in each of them builds with fresh seeds, over each build timed passes.
struct MeasureSpec {
  uint64_t seed = 1;
  uint64_t processes = 3;      // at least, for every point
  uint64_t max_processes = 9;  // for points whose interval is wider than `width`
  uint64_t rounds = 2;         // builds per process
  uint64_t passes = 5;         // timed passes per build
  // Asked of a point: the width of the 95 % interval of its median over the median. Points that do
  // not reach it within `max_processes` are unstable. Nothing: no width is asked.
  std::optional<double> width = 0.02;
  double pass_seconds = 0.02;        // shortest pass: whole streams until then
  uint64_t stream_lookups = 0;       // 0: workloads/lookups.h decides by the number of keys
  uint64_t fpr_queries = 1'000'000;  // absent keys asked per filter and build
  // How long a filter may take to be built, to be verified, or to be measured at one point.
  double point_seconds = 600;

  bool operator==(const MeasureSpec&) const = default;
};

nlohmann::json MeasureToJson(const MeasureSpec& measure);

// One filter of a sweep with lists of values for its parameters, or a preset, which has its own.
struct FilterEntry {
  std::string filter;     // empty for a preset
  nlohmann::json params;  // parameter name -> list of values
  std::string preset;     // of filters/presets.json; empty for a filter
  std::string pointer;    // of the name
  std::string params_pointer;
  bool operator==(const FilterEntry&) const = default;
};

// The workload of a sweep, with lists of values for its knobs.
struct WorkloadEntry {
  std::string name;
  nlohmann::json knobs;  // name of the knob -> value or list of values
  std::string pointer;   // of the field
  bool operator==(const WorkloadEntry&) const = default;
};

// One block of a spec: the product of all its lists.
struct SweepSpec {
  // In the spec an object, filter name -> parameters, or a list whose entries are
  // {"filter": name, "params": parameters} or {"preset": name}.
  std::vector<FilterEntry> filters;
  std::vector<uint64_t> keys;
  std::vector<KeySetSpec> key_sets;
  std::vector<Mode> modes;
  // How far filters are filled key by key; none: they are built at once, mode overfill takes 0.5,
  // 1, 1.5, 2, 3, and mode insert 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.
  std::vector<double> fills;
  std::vector<double> negative_shares;
  bool has_negative_shares = false;  // whether the spec names them
  // In the spec a name, or {"name": name, knob: value or list of values}. Instead of modes, hashings,
  // fills, pages and threads, which are then as they are by default.
  std::optional<WorkloadEntry> workload;
  std::vector<Hashing> hashings;
  std::vector<std::string> targets;  // "best", "all", "scalar", or a name
  // In the spec "default" for nothing, or a name of kPagesNames.
  std::vector<std::optional<Pages>> pages;
  std::vector<uint64_t> threads;
  std::string pointer;               // where it stands in the file, for errors
};

struct Spec {
  std::string name;
  std::string description;
  std::vector<std::string> plugins;  // paths of shared libraries (filters/plugin/abi.h)
  MeasureSpec measure;
  std::vector<SweepSpec> sweeps;
  LocatedJson source;
  // What SelectFilters (harness/plan/select.h) was asked for.
  std::vector<std::string> only_filters;
  std::vector<std::string> without_filters;
};

// A spec by the path of its file, or by its name among workloads/specs ("quick"). Errors name file,
// line and field.
Result<Spec> ReadSpec(const std::string& path_or_name, const SpecChanges& changes = {});
Result<Spec> ParseSpec(LocatedJson source, std::string name);
// The field `measure` of `source`.
Result<MeasureSpec> ParseMeasure(const LocatedJson& source);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_SPEC_SPEC_H_
