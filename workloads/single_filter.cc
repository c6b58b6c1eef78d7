#include "workloads/single_filter.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "filters/hash.h"

namespace filterbench {

WorkloadFilters FactsOf(const KeyFilter& filter, uint64_t keys, double build_ns) {
  const std::span<const std::byte> table = filter.Table();
  return {.filters = 1,
          .keys = keys,
          .size_bytes = filter.SizeInBytes(),
          .peak_build_bytes = filter.PeakBuildBytes(),
          .build_ns = build_ns,
          .builds = 1,
          .digest = fmt::format("{:016x}", XXH3_64bits(table.data(), table.size()))};
}

Result<SingleFilter> BuildSingleFilter(const WorkloadSetup& setup,
                                       std::span<const uint64_t> hashes) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  auto filter = setup.filters->policy().Build(hashes, Mix64(setup.seed + kGoldenGamma));
  const double build_ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  setup.alive();
  if (!filter) return Error{filter.error()};
  WorkloadFilters facts = FactsOf(**filter, hashes.size(), build_ns);
  return SingleFilter{std::move(*filter), std::move(facts)};
}

WorkloadReport::Fpr MetFpr(const KeyFilter& filter, uint64_t false_positives, uint64_t queries) {
  WorkloadReport::Fpr fpr;
  fpr.false_positives = false_positives;
  fpr.queries = queries;
  if (const std::optional<FprEstimate> expected = filter.ExpectedFpr()) {
    fpr.expected = expected->mean;
    fpr.expected_instance_sd = expected->instance_sd;
  }
  return fpr;
}

Metric WithFalsePositives(std::string name, uint64_t certain, const WorkloadReport::Fpr& fpr,
                          uint64_t per) {
  Metric metric = {.name = std::move(name),
                   .certain = certain,
                   .by_chance = fpr.false_positives,
                   .trials = fpr.queries,
                   .per = per,
                   .expected_by_chance = std::nullopt,
                   .quantity = std::nullopt};
  if (fpr.expected) metric.expected_by_chance = *fpr.expected * static_cast<double>(fpr.queries);
  return metric;
}

}  // namespace filterbench
