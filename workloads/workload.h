#ifndef FILTERBENCH_WORKLOADS_WORKLOAD_H_
#define FILTERBENCH_WORKLOADS_WORKLOAD_H_

// An application that uses filters, as the harness measures it: made ready once with fresh seeds,
// then asked streams of operations. Which applications there are stands in
// harness/registry/workloads.cc.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "filters/params_json.h"
#include "filters/result.h"
#include "workloads/key_filter.h"
#include "workloads/keys.h"

namespace filterbench {

// Errors of a workload that begin so are more than failures: an answer was wrong, or this machine
// or this filter cannot do what is asked, which no other attempt would change.
inline constexpr std::string_view kWrongAnswer = "wrong answer: ";
inline constexpr std::string_view kNotHere = "not here: ";

// One result of a workload, over the operations that were counted. Its name ends with its unit:
// block_reads_per_get, byte_hit_ratio, filter_bytes.
//
// Most are ratios, and held as whole counts, so that rounds can be added up:
//   value = (certain + by_chance) / per,
// where `by_chance` of `trials` independent events happened (false positives among absent keys
// asked), so that the value has a binomial interval. Where trials is 0 there is none.
struct Metric {
  std::string name;
  uint64_t certain = 0;
  uint64_t by_chance = 0;
  uint64_t trials = 0;
  uint64_t per = 0;
  // Theory's by_chance: the sum over the trials of their probabilities. Nothing: no closed form.
  std::optional<double> expected_by_chance;
  // Of a metric that is no ratio; then all of the above are nothing.
  std::optional<double> quantity;

  bool operator==(const Metric&) const = default;
};

// A metric that is no ratio: bytes, nanoseconds.
inline Metric Quantity(std::string name, double value) {
  return {.name = std::move(name), .expected_by_chance = std::nullopt, .quantity = value};
}

// What one pass over a stream of operations came to.
struct WorkloadReport {
  std::vector<Metric> metrics;
  // What was counted, over all operations; names as in results/README.md.
  std::map<std::string, uint64_t> counters;
  // The same per part of the application (of a store: a sorted run), as objects of whole numbers and
  // names, all with the same fields. Empty where it has no parts.
  nlohmann::json parts = nlohmann::json::array();
  // Mean nanoseconds per operation by phase, the clock's own cost taken off.
  std::map<std::string, double> phases_ns;
  // Conditions of the measurement, as text: how files are read, version of an engine.
  std::map<std::string, std::string> facts;
  // Absent keys that filters were asked, and how many of them they let through: the FPR as it was
  // met. `expected` as in MeasuredFpr: of the filters that were asked, weighted by how often; nothing
  // where one has no closed form. Queries 0: filters were asked no absent key.
  struct Fpr {
    uint64_t false_positives = 0;
    uint64_t queries = 0;
    std::optional<double> expected;
    std::optional<double> expected_instance_sd;
  } fpr;
};

// Facts about all filters of an application together.
struct WorkloadFilters {
  uint64_t filters = 0;
  uint64_t keys = 0;        // sum over the filters
  uint64_t size_bytes = 0;
  std::optional<uint64_t> peak_build_bytes;  // of the largest build
  std::optional<double> build_ns;  // of all builds that led to these filters; nothing if not known
  uint64_t builds = 0;
  std::string digest;       // XXH3-64 over the tables in order, 16 hex digits
};

// A stream of operations on an application.
class WorkloadRun {
 public:
  virtual ~WorkloadRun() = default;

  virtual uint64_t operations() const = 0;  // per iteration
  // What Iterate must return; nothing where that is not known beforehand: then every iteration must
  // return what the first one did.
  virtual std::optional<uint64_t> positives_expected() const = 0;

  // Before each iteration, not timed: back to the state from which it begins.
  virtual std::optional<Error> Reset() { return std::nullopt; }
  // All operations once: timed. The number of those that found something.
  virtual Result<uint64_t> Iterate() = 0;
  // All operations once more, not timed: counted, by phases, every answer checked.
  virtual Result<WorkloadReport> Report() = 0;
};

// An application that was made ready.
class WorkloadState {
 public:
  virtual ~WorkloadState() = default;

  virtual WorkloadFilters filters() const = 0;
  // `negative_share`: absent keys over operations; only where Workload::has_negative_share().
  virtual Result<std::unique_ptr<WorkloadRun>> Start(std::optional<double> negative_share,
                                                     uint64_t seed) = 0;
};

struct WorkloadSetup {
  nlohmann::json knobs;      // all of them
  FilterSource* filters = nullptr;
  const KeySet* key_set = nullptr;
  uint64_t keys = 0;         // present: those with an index below
  uint64_t seed = 0;         // of all that is drawn
  std::filesystem::path directory;  // for its files: empty, its own, removed afterwards
  // To be called every few seconds of long work, so that whoever waits knows that it goes on.
  std::function<void()> alive = [] {};
};

class Workload {
 public:
  virtual ~Workload() = default;

  virtual std::string_view name() const = 0;
  virtual std::string_view description() const = 0;
  virtual std::string_view operation() const = 0;  // what is timed: "get", "put"
  virtual bool has_negative_share() const = 0;

  virtual std::vector<KnobInfo> knobs() const = 0;
  // All knobs of the given ones, defaults filled in; the error starts with the knob's name.
  virtual Result<nlohmann::json> CompleteKnobs(const nlohmann::json& knobs) const = 0;
  // Why complete knobs contradict each other, or the number of keys; empty if they do not.
  virtual std::string Contradiction([[maybe_unused]] const nlohmann::json& knobs,
                                    [[maybe_unused]] uint64_t keys) const {
    return {};
  }
  // Why a filter cannot be used; empty if it can.
  virtual std::string WhyNotWith([[maybe_unused]] std::string_view filter,
                                 [[maybe_unused]] const nlohmann::json& params,
                                 [[maybe_unused]] bool can_insert) const {
    return {};
  }
  // For estimates: bytes in memory, and seconds to make ready and for one iteration.
  struct Cost {
    double memory_bytes = 0;
    double prepare_seconds = 0;
    double iteration_seconds = 0;
  };
  virtual Cost EstimateCost(const nlohmann::json& knobs, uint64_t keys) const = 0;

  virtual Result<std::unique_ptr<WorkloadState>> Prepare(const WorkloadSetup& setup) const = 0;
};

// The part of a workload that follows from its knobs: an aggregate `Knobs` with a tuple
// `Described::kKnobs` as filters have one (filters/params.h).
template <class Described>
class WorkloadWithKnobs : public Workload {
 public:
  using Knobs = typename Described::Params;

  std::vector<KnobInfo> knobs() const override { return DescribeKnobs<Described>(); }
  Result<nlohmann::json> CompleteKnobs(const nlohmann::json& knobs) const override {
    const Result<Knobs> parsed = ParamsFromJson<Described>(knobs);
    if (!parsed) return Error{parsed.error()};
    return ParamsToJson<Described>(*parsed);
  }

 protected:
  // Of complete knobs.
  static Knobs Parse(const nlohmann::json& knobs) { return *ParamsFromJson<Described>(knobs); }
};

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_WORKLOAD_H_
