#ifndef FILTERBENCH_FILTERS_THEORY_CUCKOO_H_
#define FILTERBENCH_FILTERS_THEORY_CUCKOO_H_

// The false-positive rates of cuckoo filters.

#include <cstdint>

#include "filters/fpr.h"

namespace filterbench::theory {

// The rate at a load in [0, 1] with `slots` tags of `fingerprint_bits` bits, whole or not, to a
// bucket: 1 - (1 - q)^(2 slots load), that many tags being compared (Fan, Andersen, Kaminsky,
// Mitzenmacher 2014, section 5.1), and q = (2^f + 2) / 4^f the chance that two tags are equal where
// tag 0 is stored as 1.
double CuckooFpr(double fingerprint_bits, double load, int slots);

// How the two buckets of a tag may lie.
enum class CuckooPairs {
  kInvolution,  // a share 1 / buckets of all pairs is one bucket twice and counts half
  kDistinct,    // two buckets, unless there is but one
};

// n distinct keys in `buckets` buckets of any number of slots, exactly. Two tags that are equal
// have the same two buckets or none in common, so a false positive is a key whose tag and pair of
// buckets are those of the query, wherever keys were moved: sum over tags of p (1 - (1 - 2 p /
// buckets)^n), p the tag's probability. Section 5.1 differs from it by a factor 1 + q / 2, since it
// takes the tags that lie together as independent. The deviation is that of the number of occupied
// cells when n balls fall into one cell for each tag and pair of buckets.
FprEstimate CuckooFpr(uint64_t n, uint64_t buckets, int fingerprint_bits, CuckooPairs pairs);

// Morton filters (Breslow and Jayasena 2018, section 5): a query finds a key with its tag in its
// first bucket, where n / buckets keys lie; in its second one only if the first has overflowed.
// `overflow` is the share of stored tags for whose other bucket that holds: it is larger than the
// share of such buckets, since keys that moved see to it that theirs is one. Of each pair of
// buckets a key answers for one order surely and for the other with probability `overflow`: sum
// over tags of p (1 - (1 - p (1 + overflow) / buckets)^n), p the tag's probability, where a share 1
// / buckets of all pairs is one bucket twice. `overflow_error`: the standard deviation of
// `overflow`, a part of that of the rate; the rest is as for cuckoo filters.
FprEstimate MortonFpr(uint64_t n, uint64_t buckets, int fingerprint_bits, double overflow,
                      double overflow_error);

// The same for n to infinity: `keys_per_bucket` keys to a bucket, tags of any width.
double MortonFpr(double fingerprint_bits, double keys_per_bucket, double overflow);

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_CUCKOO_H_
