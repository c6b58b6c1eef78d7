#ifndef FILTERBENCH_FILTERS_THEORY_ROCKSDB_BLOOM_H_
#define FILTERBENCH_FILTERS_THEORY_ROCKSDB_BLOOM_H_

// The false-positive rates of RocksDB's Bloom filters.

#include <cstdint>

#include "filters/fpr.h"

namespace filterbench::theory {

// k independent uniform probes in the 512 bits of a line that is chosen by 32 bits of hash: lines
// have one of two shares of the keys. Inside, as BlockedBloomFpr. Two keys that share line and the
// other 32 bits of hash, n / (lines 2^32) of them, are added.
FprEstimate RocksDbBloomFpr(uint64_t n, uint64_t lines, int k);
double RocksDbBloomFpr(double bits_per_key, int k);

inline constexpr int kMaxLegacyProbes = 16;

// Line h mod `lines`, probes a + i b mod 512, a and b being 9 bits of h each that do not overlap, b
// of any value: 2^18 keys that differ. Exact for keys uniform among them: inclusion-exclusion over
// the positions of the query (Dillinger and Manolios 2004, section 5). Queries whose steps have the
// same power of two in them are alike, since multiplying all a and b by an odd number permutes
// everything; so ten steps stand for 512. Where 2^32 hashes leave less than 2^18 for a line, keys
// share all of h more often than a line and (a, b): the difference is added. k <= kMaxLegacyProbes.
//
// A number of lines near a multiple of 2^9 or more ties a and b to the line: 196609 lines, those of
// 2^22 keys at 24 bits, leave a thousand keys that differ and eight times the rate. Where hashes
// drawn at random contradict the law, the drawn rate stands, with its error as a part of the
// deviation.
FprEstimate RocksDbLegacyFpr(uint64_t n, uint64_t lines, int k);
double RocksDbLegacyFpr(double bits_per_key, int k);

// Word w uniform among those of all groups, `words` (a power of two) to a group; pair i < `pairs`
// of bits, uniform and independent, in word w ^ i. Exact: which words a key has follows from its
// offset in the group alone; given how many keys hit each word, words are independent, and moments
// of the share of set bits are sums of powers of the number of keys. n / 2^32 keys share the hash
// of a query: added, with a doubt of a tenth of it. `groups` as if all had one share: 32 bits of
// hash make shares differ by 1 / (64 words) at most, which changes the rate by the square of it.
FprEstimate RocksDbDynamicFpr(uint64_t n, uint64_t groups, int words, int pairs);
double RocksDbDynamicFpr(double bits_per_key, int words, int pairs);

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_ROCKSDB_BLOOM_H_
