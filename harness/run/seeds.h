#ifndef FILTERBENCH_HARNESS_RUN_SEEDS_H_
#define FILTERBENCH_HARNESS_RUN_SEEDS_H_

#include <cstdint>

#include "filters/hash.h"
#include "harness/plan/plan.h"

namespace filterbench {

// Seeds of one round of one case: the same for all filters over the same keys, so that they are
// asked the same questions.
struct Seeds {
  uint64_t keys;
  uint64_t hash;
  uint64_t filter;
  uint64_t lookups;

  Seeds(uint64_t seed, uint64_t round)
      : keys(KeySeed(seed)),
        hash(Mix64(keys ^ Mix64(round + kGoldenGamma))),
        filter(Mix64(hash + kGoldenGamma)),
        lookups(Mix64(hash + 2 * kGoldenGamma)) {}
};

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RUN_SEEDS_H_
