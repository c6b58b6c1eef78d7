#ifndef FILTERBENCH_FILTERS_THEORY_TWO_CHOICE_H_
#define FILTERBENCH_FILTERS_THEORY_TWO_CHOICE_H_

// Blocked Bloom filters with two choices: blocks of 512 bits.

#include <cstdint>

#include "filters/fpr.h"

namespace filterbench::theory {

inline constexpr int kMaxTwoChoiceProbes = 16;

// What a key of k probes pays for a block that it leaves with `set` bits, `added` of them new: k (2
// set / 512)^2 + added, times 2^16; nothing where it adds none. Of the form of Schmitz, Zentgraf,
// Rahmann 2025, appendix A, k (2 set / 512)^k + added, but for the exponent: by the law below, 2 is
// better than k at all rates (0.86 against 0.88 % at 10 bits per key, 0.0066 against 0.0106 % at
// 20) and needs integers only.
constexpr uint64_t TwoChoiceCost(uint64_t k, uint64_t set, uint64_t added) {
  return added == 0 ? 0 : k * set * set + (added << 16);
}

// n keys with k uniform independent probes (two may coincide), the same in both of two uniform
// blocks; each goes to the cheaper one, in the order of insertion; a query asks both.
//
// Mean-field law: by symmetry the bits of a block that has j of them are any j of 512, so that how
// many a key adds to it is hypergeometric, and the shares f_j of blocks with j bits follow the
// differential equation d f / d(keys per block) = flow(f), exact for many blocks (Kurtz 1970;
// Mitzenmacher 2001 for balls and bins with two choices). Up to 4096 keys it is taken key by key,
// the two blocks being one with probability 1 / blocks. One block: the law of BlockedBloomFpr.
//
// Deviation: blocks differ by j beyond what their sum explains, and the sum of j by how many bits
// the keys happened to add (a linear noise approximation). Over 30 to 1000 filters each at 6, 10
// and 16 bits per key, simulated deviations are 0.72 times it with 2 blocks, 0.86 to 0.9 with 6,
// 0.92 to 1.2 from 20 on; the simulated mean is lower by 2 to 6 % (0.2 deviations) with 2 blocks,
// 1.3 % with 6, 0.2 % with 98, and agrees to 0.1 % from 1000 on. two_choice_blocked_test.cc repeats
// a part of it.
FprEstimate TwoChoiceFpr(uint64_t n, uint64_t blocks, int k);

// The limit for many keys.
double TwoChoiceFpr(double bits_per_key, int k);

// The k with the least rate for many keys, from a table that the law above was asked for once: it
// takes a while.
int TwoChoiceBestK(double bits_per_key);

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_TWO_CHOICE_H_
