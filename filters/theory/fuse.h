#ifndef FILTERBENCH_FILTERS_THEORY_FUSE_H_
#define FILTERBENCH_FILTERS_THEORY_FUSE_H_

// Slots and false-positive rate of xor and binary fuse filters.

#include <cstdint>

namespace filterbench::theory {

// Slots per key of many keys (Graf and Lemire 2020, section 3; Graf and Lemire 2022, section 4).
inline constexpr double kXorSlotsPerKey = 1.23;
inline constexpr double kBinaryFuse3SlotsPerKey = 1.125;

// An absent key's slots sum up to anything; its fingerprint is uniform and independent of which
// slots they are, so that it equals the sum with probability 2^-fingerprint_bits whatever the table
// holds, empty slots included (Graf and Lemire 2020, section 3). No instance differs from another:
// the rate of each is a mean over all 2^64 hashes.
double FingerprintSumFpr(double fingerprint_bits);

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_FUSE_H_
