#ifndef FILTERBENCH_FILTERS_THEORY_SYSTEMS_H_
#define FILTERBENCH_FILTERS_THEORY_SYSTEMS_H_

// The false-positive rate of Bloom filters as production systems build them: probes are words of 32
// or 64 bits, computed with wrap-around and then reduced modulo a number of bits that is any number.

#include <cstdint>

#include "filters/fpr.h"

namespace filterbench::theory {

// How the words of a key's k probes follow from its hash. The arithmetic is modulo 2^word_bits.
enum class WordSequence {
  kPlain,        // x + i y
  kPlainSigned,  // |x + i y|, the words taken as two's complement
  kEnhanced,     // x + i y + (i^3 - i) / 6
  kIndependent,
};

// Words are uniform over 2^word_bits values, a probe is word mod `bits`.
//
// To the classic rate is added, in first order of 1 / bits, what the plain sequences cost: a key and
// a query, or a query with itself, whose positions agree more often than independent ones would
// (Dillinger and Manolios 2004, section 5; Kirsch and Mitzenmacher 2006). Words wrap around, and a
// wrap moves all positions that follow by 2^word_bits mod `bits`: two progressions go on agreeing
// only where both wrap at the same places. That halves the penalty of double hashing for numbers of
// bits that are no power of two; the absolute value mirrors half of the probes and leaves a quarter.
// Where `bits` divides 2^word_bits there is no such shift, and plain sequences have the whole
// penalty. Agrees with simulation to 2 % of the rate from 500 bits on for k <= 7.
//
// Words of 32 bits are not uniform modulo `bits` where that is not far below 2^32: 2^32 mod `bits`
// positions are the value of one word more than the others, and beyond 2^32 none is used.
FprEstimate WordProbesFpr(uint64_t n, uint64_t bits, int k, int word_bits, WordSequence sequence);

// LevelDB's: one word h of 32 bits, probes h + i d with d = h rotated right by 17. As kPlain of 32
// bits, and:
//   - n keys share their whole word with a query with probability 1 - (1 - 2^-32)^n;
//   - 2^17 d = h + (2^32 - 1) y for the lower 17 bits y of h, so that (h, d) mod `bits` have
//     1 / g of all pairs of values, g = gcd(2^32 - 1, bits): a key is g times as likely to have the
//     same pair as a query. 2^32 - 1 = 3 5 17 257 65537; multiples of 5 are every second table at 10
//     bits per key.
FprEstimate RotatedDoubleHashingFpr(uint64_t n, uint64_t bits, int k);

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_SYSTEMS_H_
