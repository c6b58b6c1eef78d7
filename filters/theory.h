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
