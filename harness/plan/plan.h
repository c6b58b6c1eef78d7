#ifndef FILTERBENCH_HARNESS_PLAN_PLAN_H_
#define FILTERBENCH_HARNESS_PLAN_PLAN_H_

// From what is asked (a spec) to what will be done: all points, each on a filter that is built once
// per round, what is left out and why, and what it takes.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/registry/erased_filter.h"
#include "harness/spec/point.h"
#include "harness/spec/shard.h"
#include "harness/spec/spec.h"
#include "workloads/keys.h"
#include "workloads/workload.h"

namespace filterbench {

// A filter that is built once per round, and all points that are measured on it.
struct Case {
  const FilterType* type = nullptr;
  nlohmann::json params;
  uint64_t keys = 0;
  KeySet key_set;
  std::optional<double> fill;  // see Point
  // The form of the keys that it is built from: kPrehashed unless the filter hashes keys itself.
  Hashing build_hashing = Hashing::kPrehashed;
  std::optional<Pages> pages = std::nullopt;  // see Point
  // Of points of a workload, with its knobs; all of them have one target then. Null: the case is a
  // filter by itself.
  const Workload* workload = nullptr;
  nlohmann::json knobs = nullptr;
  std::vector<Point> points = {};
  // The CPUs that points of several threads run on: the first `threads` of them.
  std::vector<int> thread_cpus = {};

  // Too many hashes to hold: the filter is built from pieces of them, see FilterType::can_stream.
  bool streams_keys() const;
  // How many keys it is given: `keys`, or as many as `fill` says.
  uint64_t given_keys() const;
  // How many of these, the last, mode insert is about: few enough that the load hardly changes.
  uint64_t stretch_keys() const;

  // Keys, table and streams, as far as they can be known beforehand.
  uint64_t memory_bytes = 0;
  double seconds = 0;  // of one round, see Costs
};

// What work costs, for estimates of time. Without calibration typical values.
struct Costs {
  double prepare_ns_per_key = 150;  // make the key, hash, build, verify
  double ns_per_query = 30;         // of a rate of false positives
  double ns_per_lookup = 15;
};

// Measures costs of the filters of `types` on this machine, for some 20 ms each; of filters of
// plug-ins they are the typical ones.
std::map<const FilterType*, Costs> Calibrate(const std::vector<const FilterType*>& types);

// A point that was asked for and cannot be measured here: recorded, so that a missing row is seen.
struct SkippedPoint {
  Point point;
  std::string reason;
};

struct Plan {
  // Every point of the sweep that can be measured on this CPU, in all of its shards and whatever
  // fits into memory: what runs of a sweep have in common, and what its hash is about.
  std::vector<Point> sweep_points;
  std::optional<Shard> shard;  // the part of the sweep that this plan is
  std::vector<Case> cases;
  std::vector<SkippedPoint> skipped;
  // Combinations of a spec's lists that mean nothing on any machine, such as hashing byte strings
  // where the keys are integers. They are shown and not recorded.
  std::vector<SkippedPoint> meaningless;
  MeasureSpec measure;

  uint64_t points() const;
  uint64_t memory_bytes() const;  // of the largest case
  double seconds_of_round() const;
  // All rounds of the processes that every point gets, and of the most that one may get.
  double least_seconds() const;
  double most_seconds() const;
};

// What decides which keys a run of this seed is about, the same in all of its rounds.
uint64_t KeySeed(uint64_t seed);

// `memory_limit_bytes`: cases beyond it are skipped. `thread_cpus`: the CPUs that may be kept busy
// at the same time; points of more threads are skipped. With a shard, the plan is about its cases
// only (harness/plan/shard_cases.h), and the first shard alone skips what no shard can measure.
// Errors name file, line and field of the spec.
Result<Plan> MakePlan(const Spec& spec, uint64_t memory_limit_bytes,
                      std::vector<int> thread_cpus,
                      const std::optional<Shard>& shard = std::nullopt);

// Estimates the time anew, by costs of this machine.
void EstimateTime(Plan& plan);

// The case of points that share one, as a plan has it but for its `thread_cpus`, over keys that
// were opened for them. The error starts with the filter's name.
Result<Case> CaseOfPoints(std::vector<Point> points, const KeySet& key_set);

// The order in which the cases of a round are visited: for even rounds a shuffle drawn from
// (seed, round), for odd ones the reverse of the round before. Over a pair of rounds every case has
// the same mean position, so that a drift of the machine favours none.
std::vector<size_t> VisitOrder(size_t cases, uint64_t seed, uint64_t round);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_PLAN_PLAN_H_
