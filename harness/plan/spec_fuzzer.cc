// Specs from anywhere, with changes of a command line: an error that names the file, or a plan
// whose points are themselves again after they were written and read.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "filters/fuzzer.h"
#include "harness/plan/plan.h"
#include "harness/spec/changes.h"
#include "harness/spec/located_json.h"
#include "harness/spec/point.h"
#include "harness/spec/spec.h"

namespace filterbench {
namespace {

using nlohmann::json;

constexpr std::string_view kFile = "fuzz.json";

// How many combinations the lists of a spec have, and no fewer.
double Combinations(const Spec& spec) {
  const auto product_of = [](const json& lists) {
    double product = 1;
    for (const auto& [name, values] : lists.items()) {
      if (values.is_array()) product *= static_cast<double>(values.size());
    }
    return product;
  };
  double sum = 0;
  for (const SweepSpec& sweep : spec.sweeps) {
    double filters = 0;
    for (const FilterEntry& entry : sweep.filters) filters += product_of(entry.params);
    double product = filters;
    for (const size_t size :
         {sweep.keys.size(), sweep.key_sets.size(), sweep.modes.size(), sweep.fills.size() + 8,
          sweep.negative_shares.size(), sweep.hashings.size(), sweep.targets.size() + 8,
          sweep.pages.size(), sweep.threads.size()}) {
      product *= static_cast<double>(size);
    }
    if (sweep.workload) product *= product_of(sweep.workload->knobs);
    sum += product;
  }
  return sum;
}

// Other people's files would make an input mean something else on each machine.
bool ReadsFiles(const Spec& spec) {
  for (const SweepSpec& sweep : spec.sweeps) {
    for (const KeySetSpec& key_set : sweep.key_sets) {
      if (key_set.kind == KeyKind::kFile) return true;
    }
  }
  return false;
}

void CheckPoint(const Point& point) {
  const std::string text = PointToJson(point).dump();
  const Result<Point> read = PointFromJson(json::parse(text));
  FuzzRequire(read.has_value(), "a point that cannot be read: " + text);
  FuzzRequire(*read == point && PointId(*read) == PointId(point), "another point: " + text);
}

}  // namespace
}  // namespace filterbench

// Lines that begin with `--set ` come before the spec.
FILTERBENCH_FUZZER(Spec) {
  std::string_view text = FuzzText(input);
  SpecChanges changes;
  while (text.starts_with("--set ")) {
    const size_t end = text.find('\n');
    changes.settings.emplace_back(text.substr(6, end == text.npos ? end : end - 6));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  Result<LocatedJson> source = LocatedJson::Parse(text, std::string(kFile));
  if (!source) {
    FuzzRequire(source.error().starts_with(kFile), "the error names no file: " + source.error());
    return;
  }
  if (const auto error = Apply(changes, *source)) {
    FuzzRequire(error->message.starts_with("--set ") || error->message.starts_with(kFile),
                "the error names no setting: " + error->message);
    return;
  }
  const Result<Spec> spec = ParseSpec(std::move(*source), "fuzz");
  if (!spec) {
    FuzzRequire(spec.error().starts_with(kFile), "the error names no file: " + spec.error());
    return;
  }
  FuzzRequire(ParseMeasure(spec->source).has_value(), "measure");
  constexpr double kMaxCombinations = 2000;
  if (Combinations(*spec) > kMaxCombinations || ReadsFiles(*spec)) return;
  constexpr uint64_t kMemoryLimit = uint64_t{1} << 32;
  const Result<Plan> plan = MakePlan(*spec, kMemoryLimit, {0, 1});
  if (!plan) {
    FuzzRequire(plan.error().starts_with(kFile), "the error names no file: " + plan.error());
    return;
  }
  FuzzRequire(plan->points() + plan->skipped.size() > 0, "a plan of nothing");
  FuzzRequire(plan->memory_bytes() <= kMemoryLimit, "does not fit");
  FuzzRequire(plan->least_seconds() >= 0 && plan->most_seconds() >= plan->least_seconds(), "time");
  for (const Case& work : plan->cases) {
    for (const Point& point : work.points) CheckPoint(point);
  }
  for (const SkippedPoint& skipped : plan->skipped) {
    FuzzRequire(!skipped.reason.empty(), "skipped without a reason");
    CheckPoint(skipped.point);
  }
}
