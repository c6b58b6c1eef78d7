#ifndef FILTERBENCH_FILTERS_THEORY_H_
#define FILTERBENCH_FILTERS_THEORY_H_

// Closed forms of the false-positive rate (FPR), and what follows from them: the best number of
// probes, and whether a measured rate agrees. Checked against independent tables in theory_test.cc.

#include <cstdint>

#include "filters/fpr.h"

namespace filterbench::theory {

// log2(1 / FPR): bits per key that no filter can go below (Carter, Floyd, Gill, Markowsky, Wegman
// 1978).
double InformationBoundBitsPerKey(double fpr);

// How many absent keys share their whole hash with one of n keys: 1 - (1 - 2^-hash_bits)^n. Added
// to every filter's own rate (Dillinger and Manolios 2004, section 4).
double HashCollisionFpr(uint64_t n, int hash_bits);

// --- Blocked Bloom filters ---

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

// --- Ribbon filters ---

// Slots per key of a standard ribbon filter of n keys for which a seed works with a probability of
// at least 95 %: grows with log(n) (Dillinger and Walzer 2021, section 4). Plain IEEE arithmetic,
// no logarithm from a library: layouts follow from it.
double RibbonSlotsPerKey(uint64_t n, int width);

// The same for the homogeneous filter, where it decides about the FPR: 1 + (4 + columns / 4) /
// width (the authors' rule, fastfilter_cpp, HomogRibbonFilter).
double HomogeneousRibbonSlotsPerKey(double columns, int width);

// Slots beyond that, whatever the number of keys: no row starts in the last width - 1 slots, so
// that the starts of n keys are denser than n / slots.
int HomogeneousRibbonExtraSlots(int width);

// A share `wide_share` of the starts has columns + 1 columns, the others `columns`; each column
// lets half of the absent keys pass: the result bits are uniform and independent of the solution.
double RibbonFpr(int columns, double wide_share);

// The mixture for a real number of columns: its fraction is the share of wide starts.
double RibbonFpr(double columns);

// The homogeneous filter: where the rows of the keys span all of a region, every row in it has the
// sum zero, so RibbonFpr + (1 - RibbonFpr) * P(row in span) (Dillinger and Walzer 2021, section 3).
FprEstimate HomogeneousRibbonFpr(uint64_t n, int columns, double wide_share, int width);

// --- Agreement of a measurement with theory ---

// Whether `false_positives` among `queries` independent absent keys is a likely outcome at the rate
// of `estimate`: false with a probability of at most `false_alarm` if theory holds. Both tails are
// exact binomial tails, taken at the edges of the interval that holds the instance's own rate with
// probability 1 - false_alarm / 2.
bool FprAgrees(uint64_t false_positives, uint64_t queries, const FprEstimate& estimate,
               double false_alarm);

// P(X <= x) and P(X >= x) for X ~ Binomial(trials, p), by summing the tail from x outwards.
double BinomialLowerTail(uint64_t x, uint64_t trials, double p);
double BinomialUpperTail(uint64_t x, uint64_t trials, double p);

// The z with P(|N(0, 1)| > z) = two_sided.
double NormalQuantileTwoSided(double two_sided);

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_H_
