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

// How many absent keys share their whole hash with one of n keys: 1 - (1 - 2^-hash_bits)^n. A part
// of every filter's rate (Dillinger and Manolios 2004, section 4).
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

// One uniform probe in each of `words` words of a block, `word_bits` bits each: given the load of
// the block, words are independent, and a bit is set with probability 1 - (1 - 1 / word_bits)^load.
FprEstimate SplitBlockFpr(uint64_t n, uint64_t blocks, int words, int word_bits);
double SplitBlockFpr(double bits_per_key, int words, int word_bits);

// --- Classic and double-hashing Bloom filters ---

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

// Probes a + i b + (i^3 - i) / 6 mod `bits`, b not 0: enhanced double hashing (Dillinger and
// Manolios 2004, section 5.2). Two keys share three or more probes hardly ever unless they share a
// and b: the classic rate of n keys with k probes, and that of n pairs (a, b) of bits (bits - 1).
FprEstimate EnhancedDoubleHashingFpr(uint64_t n, uint64_t bits, int k);

// --- Cuckoo filters, four slots per bucket ---

// The rate at a load in [0, 1] with tags of `fingerprint_bits` bits, whole or not: 1 - (1 - q)^(8
// load), 8 load slots being compared (Fan, Andersen, Kaminsky, Mitzenmacher 2014, section 5.1), and
// q = (2^f + 2) / 4^f the chance that two tags are equal where tag 0 is stored as 1.
double CuckooFpr(double fingerprint_bits, double load);

// n distinct keys in `buckets` buckets, exactly. Two tags that are equal have the same two buckets
// or none in common, so a false positive is a key whose tag and pair of buckets are those of the
// query, wherever keys were moved: sum over tags of p (1 - (1 - 2 p / buckets)^n), p the tag's
// probability. A share 1 / buckets of all pairs is one bucket twice and counts half. Section 5.1
// differs from it by a factor 1 + q / 2, since it takes the tags that lie together as independent.
// The deviation is that of the number of occupied cells when n balls fall into one cell for each
// tag and pair of buckets.
FprEstimate CuckooFpr(uint64_t n, uint64_t buckets, int fingerprint_bits);

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
