#ifndef FILTERBENCH_FILTERS_THEORY_AGREEMENT_H_
#define FILTERBENCH_FILTERS_THEORY_AGREEMENT_H_

// What holds for every filter: the bound of information, the floor of a hash, and whether a
// measured rate agrees with a theoretical one.

#include <cstdint>

#include "filters/fpr.h"

namespace filterbench::theory {

// log2(1 / FPR): bits per key that no filter can go below (Carter, Floyd, Gill, Markowsky, Wegman
// 1978).
double InformationBoundBitsPerKey(double fpr);

// How many absent keys share their whole hash with one of n keys: 1 - (1 - 2^-hash_bits)^n. A part
// of every filter's rate (Dillinger and Manolios 2004, section 4).
double HashCollisionFpr(uint64_t n, int hash_bits);

// Whether `false_positives` among `queries` independent absent keys is a likely outcome at the rate
// of `estimate`: false with a probability of at most `false_alarm` if theory holds. Both tails are
// exact binomial tails, taken at the edges of the interval that holds the instance's own rate with
// probability 1 - false_alarm / 2.
bool FprAgrees(uint64_t false_positives, uint64_t queries, const FprEstimate& estimate,
               double false_alarm);

// ln P(X = x) for X ~ Binomial(trials, p).
double LogBinomialProbability(uint64_t x, uint64_t trials, double p);

// P(X <= x) and P(X >= x) for X ~ Binomial(trials, p), by summing the tail from x outwards.
double BinomialLowerTail(uint64_t x, uint64_t trials, double p);
double BinomialUpperTail(uint64_t x, uint64_t trials, double p);

// The z with P(|N(0, 1)| > z) = two_sided.
double NormalQuantileTwoSided(double two_sided);

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_AGREEMENT_H_
