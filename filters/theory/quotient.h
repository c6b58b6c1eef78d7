#ifndef FILTERBENCH_FILTERS_THEORY_QUOTIENT_H_
#define FILTERBENCH_FILTERS_THEORY_QUOTIENT_H_

// Closed forms for filters that store fingerprints by quotienting.

#include <cstdint>

#include "filters/fpr.h"

namespace filterbench::theory {

// --- Quotient filters ---

// n distinct keys with uniform fingerprints out of `fingerprints`: a false positive is a
// fingerprint that some key has, 1 - (1 - 1 / fingerprints)^n (Bender et al. 2012, section 3),
// wherever keys were shifted. The deviation is that of the number of occupied cells when n balls
// fall into that many.
FprEstimate QuotientFpr(uint64_t n, double fingerprints);

// For many keys: 1 - e^(-load / 2^remainder_bits), `load` keys for each quotient.
double QuotientFpr(double remainder_bits, double load);

// --- Vector quotient filters ---

// n distinct keys with uniform tags out of `tags`, each in one of two of `blocks` blocks that
// follow from each other and the tag. Two equal tags have the same two blocks or none in common, so
// a false positive is a key with the tag and the blocks of the query: sum over tags of p (1 - (1 -
// 2 p / blocks)^n), p = 1 / tags; a share 1 / blocks of all pairs is one block twice and counts
// half. To first order that is 2 slots load / (buckets 2^r) of Pandey et al. 2021, section 4. Exact
// in the mean over tables, with the deviation of the number of occupied cells.
FprEstimate VectorQuotientFpr(uint64_t n, uint64_t blocks, double tags);

// For many keys: 1 - e^(-2 load slots / (buckets 2^remainder_bits)).
double VectorQuotientFpr(double remainder_bits, double load, double slots, double buckets);

// --- Prefix filters ---

// What happens to an absent key in a bin that receives X keys and holds the `capacity` least of
// them: it is passed on to the spare if it is greater than all of those, that is not among the
// first `capacity` of X + 1 (Even, Even, Morrison 2022, section 4.2, there bounded by 1 / sqrt(2 pi
// capacity)).
struct ForwardedShare {
  double mean = 0;
  double instance_sd = 0;       // between filters of `bins` bins
  double overflowing_keys = 0;  // mean share of the keys that are passed on
};
ForwardedShare PrefixForwardedShare(uint64_t n, uint64_t bins, int capacity);

// n distinct keys in bins with `fingerprints` fingerprints each: the keys with the bin and the
// fingerprint of the query, wherever they lie, and those of the spare's false positives that are
// asked for (Even, Even, Morrison 2022, section 4.3). `forwarded` is the share of queries that go
// to the spare: that of the instance, since beyond the promise keys are refused where bins are
// full, and loads follow no law of theirs.
FprEstimate PrefixFilterFpr(uint64_t n, uint64_t bins, double fingerprints, double forwarded,
                            const FprEstimate& spare);

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_QUOTIENT_H_
