#ifndef FILTERBENCH_FILTERS_THEORY_BLOOM_H_
#define FILTERBENCH_FILTERS_THEORY_BLOOM_H_

// The false-positive rate of Bloom filters whose probes fall anywhere in the table.

#include <cstdint>

#include "filters/fpr.h"

namespace filterbench::theory {

inline constexpr int kMaxClassicProbes = 64;

// k probes per key for n to infinity: (1 - e^(-k / bits_per_key))^k (Bloom 1970; Broder and
// Mitzenmacher 2004, section 2.1). Double hashing has the same limit (Kirsch and Mitzenmacher 2006,
// theorem 4.1), plain and enhanced.
double ClassicBloomFpr(double bits_per_key, int k);

// The k in 1..kMaxClassicProbes with the least ClassicBloomFpr: a neighbour of bits_per_key ln 2.
int ClassicBloomBestK(double bits_per_key);

// n keys of k independent uniform probes in `bits` bits. An instance with X bits set has the rate
// (X / bits)^k, so this is E[(X / bits)^k], not E[X / bits]^k, which is too low for small tables
// (Bose et al. 2008; Christensen, Roginsky, Jimeno 2010). Below 4096 bits the law of X is computed
// exactly, from there on it is taken as normal with its exact mean and variance, which is right to
// a relative 1e-5 for k <= 16.
FprEstimate ClassicBloomFpr(uint64_t n, uint64_t bits, int k);

// Steps of plain double hashing that are never taken: multiples of bits / divisor. The divisor is
// the least common multiple of those divisors of `bits` that are below k: every step that returns
// to its start within k probes is such a multiple. Where that would forbid all steps (`bits`
// divides lcm(1..k-1)), 1: only the step 0 is forbidden.
uint64_t ForbiddenStepDivisor(uint64_t bits, int k);

// Probes a + i b mod `bits`, a uniform, b uniform over the steps that are not multiples of bits /
// forbidden_divisor; forbidden_divisor = 0 forbids none, not even 0. Larger than the classic rate
// by O(1 / bits): two keys that share two probes are likely to share more (Dillinger and Manolios
// 2004, section 5; Kirsch and Mitzenmacher 2006). For k <= 16 the mean is exact up to 2^16 bits (to
// an absolute 1e-13): inclusion-exclusion over the subsets of the query's probes. Otherwise the
// excess is of first order: one key that shares three or more probes, over independent others.
// Where both can be computed (k = 6..16 at the optimal load) they differ by less than 4 % of the
// rate from 512 bits on for k <= 10, by 5 % at 4096 bits and 0.7 % at 2^16 bits for k = 16.
FprEstimate DoubleHashingFpr(uint64_t n, uint64_t bits, int k, uint64_t forbidden_divisor);
// Whether that is near the truth: with more than 16 probes in a few hundred bits a key's probes
// come back to where they were, and the first order says little (1 for 0.22 at 10 bits and k = 64).
constexpr bool DoubleHashingFprHolds(uint64_t bits, int k) { return k <= 16 || bits >= 4096; }

// Probes a + i b + (i^3 - i) / 6 mod `bits`, b not 0: enhanced double hashing (Dillinger and
// Manolios 2004, section 5.2). Two keys share three or more probes hardly ever unless they share a
// and b: the classic rate of n keys with k probes, and that of n pairs (a, b) of bits (bits - 1).
FprEstimate EnhancedDoubleHashingFpr(uint64_t n, uint64_t bits, int k);

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_BLOOM_H_
