#ifndef FILTERBENCH_WORKLOADS_SINGLE_FILTER_H_
#define FILTERBENCH_WORKLOADS_SINGLE_FILTER_H_

// What workloads with one filter have in common.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "filters/result.h"
#include "workloads/keys.h"
#include "workloads/workload.h"

namespace filterbench {

struct SingleFilter {
  std::unique_ptr<KeyFilter> filter;
  WorkloadFilters facts;
};

// Use(hash) for each present key in turn: of 1e8 keys half a minute, with signs of life.
template <class Use>
void ForEachPresentHash(const WorkloadSetup& setup, const Use& use) {
  constexpr uint64_t kKeysBetweenSignsOfLife = uint64_t{1} << 20;
  for (uint64_t i = 0; i < setup.keys; ++i) {
    use(setup.key_set->Hash(i, setup.seed));
    if (i % kKeysBetweenSignsOfLife == 0) setup.alive();
  }
}

// Over hashes, timed.
Result<SingleFilter> BuildSingleFilter(const WorkloadSetup& setup,
                                       std::span<const uint64_t> hashes);

// Facts of a filter over `keys` keys that took `build_ns` to make.
WorkloadFilters FactsOf(const KeyFilter& filter, uint64_t keys, double build_ns);

// What was met of the FPR: of `queries` absent keys asked, so many were let through.
WorkloadReport::Fpr MetFpr(const KeyFilter& filter, uint64_t false_positives, uint64_t queries);

// A metric that is certain + false positives over `per`, with theory's number of them.
Metric WithFalsePositives(std::string name, uint64_t certain, const WorkloadReport::Fpr& fpr,
                          uint64_t per);

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_SINGLE_FILTER_H_
