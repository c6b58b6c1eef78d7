#include "harness/plan/shard_cases.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace filterbench {

std::vector<Case> CasesOfShard(std::vector<Case> cases, const Shard& shard) {
  std::vector<size_t> longest_first(cases.size());
  std::iota(longest_first.begin(), longest_first.end(), size_t{0});
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](size_t a, size_t b) { return cases[a].seconds > cases[b].seconds; });

  // A heap whose top has the least to do. Of shards with as much to do, the one with fewer cases:
  // cases that cost nothing are spread too.
  using Load = std::tuple<double, size_t, uint64_t>;  // seconds, cases, shard
  const auto more = [](const Load& a, const Load& b) { return a > b; };
  std::vector<Load> loads;
  for (uint64_t i = 0; i < std::min<uint64_t>(shard.count, cases.size()); ++i) {
    loads.emplace_back(0.0, 0, i);
  }
  std::vector<size_t> mine;
  for (const size_t index : longest_first) {
    std::pop_heap(loads.begin(), loads.end(), more);
    auto& [seconds, count, owner] = loads.back();
    seconds += cases[index].seconds;
    ++count;
    if (owner == shard.index) mine.push_back(index);
    std::push_heap(loads.begin(), loads.end(), more);
  }
  std::sort(mine.begin(), mine.end());

  std::vector<Case> kept;
  for (const size_t index : mine) kept.push_back(std::move(cases[index]));
  return kept;
}

}  // namespace filterbench
