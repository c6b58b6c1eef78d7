#ifndef FILTERBENCH_WORKLOADS_LSM_MONKEY_H_
#define FILTERBENCH_WORKLOADS_LSM_MONKEY_H_

// How many bits per key the filters of each level get, where all together have so many to spend.

#include <cstdint>
#include <functional>
#include <vector>

namespace filterbench::lsm {

// A level of a tree: `runs` sorted runs, of about the same size, with `keys` keys together.
struct LevelKeys {
  int level = 0;
  uint64_t runs = 0;
  uint64_t keys = 0;
};

// Bits per key of each level, 0 where it has no filter, so that the sum of the FPRs of all runs,
// which is the number of wasted block reads of an absent key, is as small as it can be with
// `bits_per_key` times the number of all keys to spend. The FPR of a run is then proportional to
// its number of keys, and where that would be 1 or more there is no filter (Dayan, Athanassoulis,
// Idreos 2017, "Monkey", section 4). `decay`: a filter with b bits per key has an FPR of
// exp(-decay * b), for a Bloom filter ln(2)^2. `possible`: whether there is a filter with so few
// bits per key; levels that would have fewer have none.
std::vector<double> MonkeyBitsPerKey(const std::vector<LevelKeys>& levels, double bits_per_key,
                                     double decay,
                                     const std::function<bool(double bits_per_key)>& possible);

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_MONKEY_H_
