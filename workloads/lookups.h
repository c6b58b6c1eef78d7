#ifndef FILTERBENCH_WORKLOADS_LOOKUPS_H_
#define FILTERBENCH_WORKLOADS_LOOKUPS_H_

// A stream of lookups: which keys are asked, in which order. The share of absent keys is exact, and
// the order is a seeded shuffle.

#include <cstdint>
#include <vector>

#include "workloads/keys.h"

namespace filterbench {

// Keys of a stream by index, and how many of them are absent.
struct LookupIndices {
  std::vector<uint64_t> indices;
  uint64_t negatives = 0;
};

// `lookups` indices of which round(lookups * negative_share) lie in [n, limit), each once while
// there are enough, and the others in [0, n), each key as often as any other (give or take one).
// n = 0 makes all of them absent; limit == n makes all of them present.
LookupIndices MakeLookups(uint64_t n, uint64_t limit, uint64_t lookups, double negative_share,
                          uint64_t seed);

// The longest stream, of `lookups` at most, with this share of negatives that asks none of `present`
// and of `absent` keys twice: a filter errs for the same keys again, so that repeated ones are no
// further trials of its FPR. At least 1.
uint64_t LookupsWithoutRepeats(uint64_t lookups, double negative_share, uint64_t present,
                               uint64_t absent);

// How many lookups a stream needs: at least 2^18, so that no branch predictor learns it, and for
// large tables as many as there are keys, up to 2^22, so that a pass does not find its lines in the
// last cache from the pass before.
uint64_t DefaultStreamLookups(uint64_t n);

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_LOOKUPS_H_
