#ifndef FILTERBENCH_FILTERS_THEORY_CACHE_SECTORIZED_H_
#define FILTERBENCH_FILTERS_THEORY_CACHE_SECTORIZED_H_

// The false-positive rate of cache-sectorized Bloom filters: 512-bit blocks, sectors of 64 bits.

#include <cstdint>

#include "filters/fpr.h"

namespace filterbench::theory {

inline constexpr int kMaxProbesPerSector = 5;

// n keys; the eight sectors of a block form `groups` groups (2 or 4) of equal size; a key chooses
// one sector of each group and has `probes` independent uniform bits in it (Lang, Neumann, Kemper,
// Boncz 2019, section on cache-sectorization, whose formula takes mean loads). Exact here: given
// that X keys share the block, groups are independent; the sector asked for holds Y ~ Binomial(X,
// groups / 8) keys, and its bits follow the occupancy law.
FprEstimate CacheSectorizedFpr(uint64_t n, uint64_t blocks, int groups, int probes);

// The limit for many keys at a number of bits per key.
double CacheSectorizedFpr(double bits_per_key, int groups, int probes);

// The number of bits per sector in 1..kMaxProbesPerSector with the least rate.
int CacheSectorizedBestProbes(double bits_per_key, int groups);

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_CACHE_SECTORIZED_H_
