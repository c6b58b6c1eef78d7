#ifndef FILTERBENCH_FILTERS_THEORY_GROWING_H_
#define FILTERBENCH_FILTERS_THEORY_GROWING_H_

// Rates of filters that are made of parts, of parts whose fill is known, and of prefixes.

#include <cstdint>
#include <span>

#include "filters/fpr.h"

namespace filterbench::theory {

// A Bloom filter of k independent uniform probes with `set` of `bits` bits set: (set / bits)^k,
// exactly, whatever keys it holds and however often (Bloom 1970; Almeida, Baquero, Preguica,
// Hutchison 2007, section 2). Nothing is left to vary between instances of the same fill.
double FilledBloomFpr(uint64_t set, uint64_t bits, int k);

// A key is contained if any part contains it, and parts hold different keys: 1 - product of
// (1 - part) (Almeida et al. 2007, section 3, the compound error probability).
FprEstimate UnionFpr(std::span<const FprEstimate> parts);

// The least number of bits per key, in 64ths from 1/2 to 8192, at which a split block filter of
// many keys has at most the rate `fpr`: the inverse of SplitBlockFpr(bits_per_key, words,
// word_bits). In 64ths so that no last digit of a logarithm decides about a layout.
double SplitBlockBitsPerKey(double fpr, int words, int word_bits);

// How many uniform keys share their first `prefix_bits` bits with one of n others: the share of the
// 2^prefix_bits prefixes that n balls occupy.
FprEstimate SharedPrefixFpr(uint64_t n, int prefix_bits);

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_GROWING_H_
