#ifndef FILTERBENCH_HARNESS_PLAN_PLAN_H_
#define FILTERBENCH_HARNESS_PLAN_PLAN_H_

// From what is asked (a spec) to what will be done: all points, each on a filter that is built once
// per round, what is left out and why, and what it takes.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/registry/erased_filter.h"
#include "harness/spec/point.h"
#include "harness/spec/shard.h"
#include "harness/spec/spec.h"
#include "workloads/keys.h"

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
  std::vector<Point> points;

  // Too many hashes to hold: the filter is built from pieces of them, see FilterType::can_stream.
  bool streams_keys() const;
  // How many keys it is given: `keys`, or as many as `fill` says.
  uint64_t given_keys() const;

  // Keys, table and streams, as far as they can be known beforehand.
  uint64_t memory_bytes = 0;
  double seconds = 0;  // one round, a guess from typical costs
};

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
  double seconds() const;         // of all rounds
};

// What decides which keys a run of this seed is about, the same in all of its rounds.
uint64_t KeySeed(uint64_t seed);

// `memory_limit_bytes`: cases beyond it are skipped. With a shard, the plan is about its cases only
// (harness/plan/shard_cases.h), and the first shard alone skips what no shard can measure. Errors
// name file, line and field of the spec.
Result<Plan> MakePlan(const Spec& spec, uint64_t memory_limit_bytes,
                      const std::optional<Shard>& shard = std::nullopt);

// The order in which the cases of a round are visited: for even rounds a shuffle drawn from
// (seed, round), for odd ones the reverse of the round before. Over a pair of rounds every case has
// the same mean position, so that a drift of the machine favours none.
std::vector<size_t> VisitOrder(size_t cases, uint64_t seed, uint64_t round);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_PLAN_PLAN_H_
