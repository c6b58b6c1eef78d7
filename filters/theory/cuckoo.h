#ifndef FILTERBENCH_FILTERS_THEORY_CUCKOO_H_
#define FILTERBENCH_FILTERS_THEORY_CUCKOO_H_

// The false-positive rate of cuckoo filters with four slots per bucket.

#include <cstdint>

#include "filters/fpr.h"

namespace filterbench::theory {

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

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_CUCKOO_H_
