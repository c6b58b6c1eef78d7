#ifndef FILTERBENCH_FILTERS_THEORY_SYSTEMS_H_
#define FILTERBENCH_FILTERS_THEORY_SYSTEMS_H_

// The false-positive rate of Bloom filters as production systems build them: probes are words of 32
// or 64 bits, computed with wrap-around and then reduced modulo a number of bits that is any
// number.

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
// To the classic rate is added, in first order of 1 / bits, what the plain sequences cost: a key
// and a query, or a query with itself, whose positions agree more often than independent ones would
// (Dillinger and Manolios 2004, section 5; Kirsch and Mitzenmacher 2006). Words wrap around, and a
// wrap moves all positions that follow by 2^word_bits mod `bits`: two progressions go on agreeing
// only where both wrap at the same places. That halves the penalty of double hashing for numbers of
// bits that are no power of two; the absolute value mirrors half of the probes and leaves a
// quarter. Where `bits` divides 2^word_bits there is no such shift, and plain sequences have the
// whole penalty. First order is 4 % of the rate low at 500 bits and k = 6, 2 % at 2000 bits and k =
// 7.
//
// Words of 32 bits are not uniform modulo `bits` where that is not far below 2^32: 2^32 mod `bits`
// positions are the value of one word more than the others, and beyond 2^32 none is used.
FprEstimate WordProbesFpr(uint64_t n, uint64_t bits, int k, int word_bits, WordSequence sequence);

// LevelDB's: one word h of 32 bits, probes h + i d with d = h rotated right by 17. As kPlain of 32
// bits, and:
//   - n keys share their whole word with a query with probability 1 - (1 - 2^-32)^n;
//   - the probes of a key are tied together: modulo 2^32 - 1 probe i is h (1 + i 2^15) minus its
//   wraps.
//     The third is 65537 u - c and has 3 2^16 values in all, which from some 1e5 keys on are all
//     set: the rate goes to that of one probe less, 1.2 % at 1e5 keys and 10 bits per key instead
//     of 0.84 %. Numbers of bits that 3, 5 or 17 divide cost some percent more at every size.
// The latter is a mean over 2^16 sampled queries, whose deviation is part of instance_sd; at 400 to
// 3e6 bits it is within 2 % of simulations.
FprEstimate RotatedDoubleHashingFpr(uint64_t n, uint64_t bits, int k);

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_SYSTEMS_H_
