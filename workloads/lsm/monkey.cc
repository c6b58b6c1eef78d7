#include "workloads/lsm/monkey.h"

#include <cmath>
#include <cstddef>

namespace filterbench::lsm {

std::vector<double> MonkeyBitsPerKey(const std::vector<LevelKeys>& levels, double bits_per_key,
                                     double decay,
                                     const std::function<bool(double bits_per_key)>& possible) {
  const auto keys_per_run = [&](size_t i) {
    return static_cast<double>(levels[i].keys) / static_cast<double>(levels[i].runs);
  };
  std::vector<double> bits(levels.size(), 0);
  std::vector<size_t> with_filter;
  double budget = 0;
  for (size_t i = 0; i < levels.size(); ++i) {
    if (levels[i].keys == 0) continue;
    with_filter.push_back(i);
    budget += bits_per_key * static_cast<double>(levels[i].keys);
  }
  // The FPR of level i is c * keys_per_run(i); c follows from the budget, as the bits of level i
  // are -ln(c * keys_per_run(i)) / decay for each of its keys.
  while (!with_filter.empty()) {
    double keys = 0;
    double weighted_logs = 0;
    size_t largest = 0;  // in with_filter
    for (size_t j = 0; j < with_filter.size(); ++j) {
      const size_t i = with_filter[j];
      keys += static_cast<double>(levels[i].keys);
      weighted_logs += static_cast<double>(levels[i].keys) * std::log(keys_per_run(i));
      if (keys_per_run(i) > keys_per_run(with_filter[largest])) largest = j;
    }
    const double log_c = -(decay * budget + weighted_logs) / keys;
    const auto bits_of = [&](size_t i) { return -(log_c + std::log(keys_per_run(i))) / decay; };
    const double fewest = bits_of(with_filter[largest]);
    if (fewest <= 0 || !possible(fewest)) {
      // What it would have had goes to the others.
      with_filter.erase(with_filter.begin() + static_cast<std::ptrdiff_t>(largest));
      continue;
    }
    for (const size_t i : with_filter) bits[i] = bits_of(i);
    break;
  }
  return bits;
}

}  // namespace filterbench::lsm
