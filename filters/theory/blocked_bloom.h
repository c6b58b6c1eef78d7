#ifndef FILTERBENCH_FILTERS_THEORY_BLOCKED_BLOOM_H_
#define FILTERBENCH_FILTERS_THEORY_BLOCKED_BLOOM_H_

// The false-positive rate of Bloom filters whose keys lie in one block each.

#include <cstdint>

#include "filters/fpr.h"

namespace filterbench::theory {

inline constexpr int kMaxBlockedProbes = 16;

// n keys spread over `blocks` blocks of `block_bits` bits, k probes each, uniform in the block and
// independent (two may coincide). A block receives X ~ Binomial(n, 1 / blocks) keys (Putze,
// Sanders, Singler 2007, eq. 3, with the Poisson law made exact); inside, the number of set bits
// after k X probes follows the occupancy law exactly, where eq. 3 takes its mean.
FprEstimate BlockedBloomFpr(uint64_t n, uint64_t blocks, int k, int block_bits);

// The same for n to infinity at a number of bits per key: X ~ Poisson(block_bits / bits_per_key).
double BlockedBloomFpr(double bits_per_key, int k, int block_bits);

// The k in 1..kMaxBlockedProbes with the least BlockedBloomFpr. Below the classic optimum
// bits_per_key ln 2, since crowded blocks decide.
int BlockedBloomBestK(double bits_per_key, int block_bits);

// One uniform probe in each of `words` words of a block, `word_bits` bits each: given the load of
// the block, words are independent, and a bit is set with probability 1 - (1 - 1 / word_bits)^load.
FprEstimate SplitBlockFpr(uint64_t n, uint64_t blocks, int words, int word_bits);
double SplitBlockFpr(double bits_per_key, int words, int word_bits);

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_BLOCKED_BLOOM_H_
