#ifndef FILTERBENCH_HARNESS_PLAN_SHARD_CASES_H_
#define FILTERBENCH_HARNESS_PLAN_SHARD_CASES_H_

#include <vector>

#include "harness/plan/plan.h"
#include "harness/spec/shard.h"

namespace filterbench {

// The cases of one shard, in their old order. All shards of a count are disjoint and make up the
// whole; a case is never split, so that a filter is built once and its points stay together.
//
// Who gets what follows from the cases and their `seconds` alone, longest first, each to the shard
// with the least to do (Graham 1969, LPT: the longest shard takes at most 4/3 of the best there is).
// Every node of a cluster works this out for itself: `seconds` must be the same everywhere, a guess
// and not a measurement. No shard of at most cases.size() is empty.
std::vector<Case> CasesOfShard(std::vector<Case> cases, const Shard& shard);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_PLAN_SHARD_CASES_H_
