#ifndef FILTERBENCH_FILTERS_THEORY_BLOCK_LOADS_H_
#define FILTERBENCH_FILTERS_THEORY_BLOCK_LOADS_H_

// The rate of a filter of blocks from the rate inside a block by its load: what all blocked Bloom
// filters share (Putze, Sanders, Singler 2007, eq. 3, with exact laws in place of the Poisson law).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "filters/fpr.h"

namespace filterbench::theory {

// The rate inside one block that holds i keys, and its square, as means over where the keys' bits
// fell.
struct RateInBlock {
  double mean;
  double mean_square;
};

// For i = 0, 1, ...; beyond the end the rate is 1 for all purposes.
using RatesByLoad = std::vector<RateInBlock>;

// Where computing rates by load ends: the last rate is above 1 - kRateIsOne.
inline constexpr double kRateIsOne = 1e-12;

// k independent uniform probes in `bits` cells: E[(S / bits)^k] and E[(S / bits)^2k], S the number
// of distinct cells hit by k i balls. Computed once per (bits, k); the reference stays valid.
const RatesByLoad& RatesOfUniformProbes(int bits, int k);

// `count` blocks that receive the share `share` each of all keys, and of all queries.
struct BlockClass {
  double count;
  double share;
};

// n keys in blocks whose shares add up to 1: the load of a block is Binomial(n, share).
FprEstimate FprOfBlocks(uint64_t n, std::span<const BlockClass> classes, const RatesByLoad& rates);

// The same for `blocks` blocks of equal share.
FprEstimate FprOfBlocks(uint64_t n, uint64_t blocks, const RatesByLoad& rates);

// Blocks that are chosen by 32 bits of a hash, all values alike: 2^32 mod `blocks` of them are
// reached by one value more than the others. `blocks` below 2^32.
std::vector<BlockClass> BlocksOf32Bits(uint64_t blocks);

// The greatest load that matters where the mean is this: all but 1e-20 of the blocks have no more.
// Rates are 1 long before the bound that it never exceeds.
size_t LastLoad(double mean_load);

// The limit for n to infinity: loads follow the Poisson law.
double FprOfManyBlocks(double keys_per_block, const RatesByLoad& rates);

// The rate where `same` is the share of queries whose whole hash is a key's, counted on top of a
// law that takes all fields of a hash as independent. That counts a little twice: such a key is
// also one of those that set single bits of the query. By measurement (RocksDB's filters, 4e6 keys,
// 4 to 24 bits per key) the rate is lower than this by up to 0.35 same where it is 1 to 20 %, by
// less than 0.05 same below; the deviation has a tenth of `same` for it.
FprEstimate WithSameHash(FprEstimate fpr, double same);

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_BLOCK_LOADS_H_
