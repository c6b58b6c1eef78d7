#ifndef FILTERBENCH_FILTERS_BLOOM_SPLIT_BLOCK_H_
#define FILTERBENCH_FILTERS_BLOOM_SPLIT_BLOCK_H_

// Split block Bloom filters: a block is eight words, and a key sets one bit in each.
//
// Idea: with one probe per word, all eight masks of a key are one multiplication, two shifts and
// one test in vectors, with nothing to select: the least work per key of all filters here.
// Source: Apache Parquet format, "Parquet Bloom Filter" (BloomFilter.md); before it Apache Impala,
// and Putze, Sanders, Singler 2007, section 3, for the register-sized block.
// Limits: k is 8 whatever the bits per key, best at about 11 bits; a block of 256 bits varies more
// in its load than one of 512. At 10 bits per key 1.26 % for 8 words of 32 bits and 1.05 % for 8 of
// 64, where a blocked filter of a cache line has 0.96 % and the classic one 0.82 %. When it loses:
// below 8 and above 16 bits per key, and where memory is dearer than time. `impala_bloom` is the
// filter's origin: a power of two of blocks, and 32 bits of hash for everything, so that n / 2^32
// becomes its rate where there are many keys.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "filters/bloom/block_filter.h"
#include "filters/theory/agreement.h"
#include "filters/theory/block_loads.h"
#include "filters/theory/blocked_bloom.h"

namespace filterbench {

inline constexpr uint32_t kSplitWords = 8;

// The salts of the Parquet format, all odd: bit i of a key is decided by the top bits of the low
// half of its hash times salt i.
alignas(32) inline constexpr uint32_t kSplitBlockSalts[kSplitWords] = {
    0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

// A block of eight words of 32 bits: half a cache line.
struct SplitBlockView {
  static constexpr int kWordBits = 32;
  const uint32_t* words;
  uint64_t blocks;
  bool prefetch;  // batched lookups prefetch their lines first

  // By the high half of the hash alone, as in the Parquet format.
  uint64_t BlockOf(uint64_t hash) const { return (hash >> 32) * blocks >> 32; }

  struct Bit {
    uint32_t word;  // among those of the block
    uint32_t mask;
  };
  static Bit BitOf(uint64_t hash, uint32_t i) {
    return {i, uint32_t{1} << (static_cast<uint32_t>(hash) * kSplitBlockSalts[i] >> 27)};
  }
  bool MayContain(uint64_t hash) const noexcept;
};

// A block of eight words of 64 bits: a cache line. It is stored as the lower halves of all words
// and then the higher ones, so that the lanes of 32 bits of a vector choose between two halves
// where lanes of 64 bits would need twice the multiplications and shifts.
struct SplitBlock512View {
  static constexpr int kWordBits = 64;
  const uint32_t* words;
  uint64_t blocks;
  bool prefetch;

  uint64_t BlockOf(uint64_t hash) const { return FastRange64(hash, blocks); }

  using Bit = SplitBlockView::Bit;
  // The top bit of the product says which half.
  static Bit BitOf(uint64_t hash, uint32_t i) {
    const uint32_t product = static_cast<uint32_t>(hash) * kSplitBlockSalts[i];
    return {i + (product >> 31) * kSplitWords, uint32_t{1} << (product >> 26 & 31)};
  }
  bool MayContain(uint64_t hash) const noexcept;
};

// Blocks as above for 32 bits of hash: the low half, as Impala has no more of it. The block comes
// from the same 32 bits by a strongly universal function (Dietzfelbinger 1996, with Impala's
// constants).
struct ImpalaView {
  static constexpr int kWordBits = 32;
  static constexpr uint64_t kRehashFactor = 0x7850f11ec6d14889;
  static constexpr uint64_t kRehashSummand = 0x6773610597ca4c63;
  const uint32_t* words;
  uint64_t blocks;  // a power of two
  bool prefetch;

  uint64_t BlockOf(uint64_t hash) const {
    return (static_cast<uint32_t>(hash) * kRehashFactor + kRehashSummand) >> 32 & (blocks - 1);
  }

  using Bit = SplitBlockView::Bit;
  static Bit BitOf(uint64_t hash, uint32_t i) { return SplitBlockView::BitOf(hash, i); }
  bool MayContain(uint64_t hash) const noexcept;
};

// Without a branch: the words are one line, and the compiler may use vectors.
template <class View>
inline bool SplitBlockMayContain(const View& view, uint64_t hash) {
  const uint32_t* block = view.words + view.BlockOf(hash) * (kSplitWords * View::kWordBits / 32);
  uint32_t missing = 0;
  for (uint32_t i = 0; i < kSplitWords; ++i) {
    const auto bit = View::BitOf(hash, i);
    missing |= bit.mask & ~block[bit.word];
  }
  return missing == 0;
}
inline bool SplitBlockView::MayContain(uint64_t hash) const noexcept {
  return SplitBlockMayContain(*this, hash);
}
inline bool SplitBlock512View::MayContain(uint64_t hash) const noexcept {
  return SplitBlockMayContain(*this, hash);
}
inline bool ImpalaView::MayContain(uint64_t hash) const noexcept {
  return SplitBlockMayContain(*this, hash);
}

// `words` is the table that the view looks at.
template <class View>
inline void SplitBlockInsert(const View& view, uint32_t* words, uint64_t hash) {
  uint32_t* block = words + view.BlockOf(hash) * (kSplitWords * View::kWordBits / 32);
  for (uint32_t i = 0; i < kSplitWords; ++i) {
    const auto bit = View::BitOf(hash, i);
    block[bit.word] |= bit.mask;
  }
}

template <class ViewT, class ParamsT>
struct SplitBlockScheme {
  using Params = ParamsT;
  using View = ViewT;

  static uint64_t BlockBytes(const Params&) { return kSplitWords * View::kWordBits / 8; }
  static uint32_t ProbesFor(const Params&) { return kSplitWords; }
  static View MakeView(const Params&, uint32_t, const std::byte* table, uint64_t blocks,
                       bool prefetch) {
    return {reinterpret_cast<const uint32_t*>(table), blocks, prefetch};
  }
  static void Insert(const View& view, std::byte* table, uint64_t hash) {
    SplitBlockInsert(view, reinterpret_cast<uint32_t*>(table), hash);
  }
  static FprEstimate Fpr(const Params&, uint32_t, uint64_t n, uint64_t blocks) {
    return theory::SplitBlockFpr(n, blocks, kSplitWords, View::kWordBits);
  }
  static double TheoryFpr(double bits_per_key) {
    return theory::SplitBlockFpr(bits_per_key, kSplitWords, View::kWordBits);
  }
};

// The format takes any number of blocks; some writers, and Impala before it, take powers of two.
enum class SplitBlockCount { kAny, kPowerOfTwo };

struct SplitBlockParams {
  double bits_per_key = 10;
  SplitBlockCount blocks = SplitBlockCount::kAny;
  uint64_t seed = 0;
  bool operator==(const SplitBlockParams&) const = default;
};

struct SplitBlock512Params {
  double bits_per_key = 10;
  uint64_t seed = 0;
  bool operator==(const SplitBlock512Params&) const = default;
};

struct SplitBlock256Scheme : SplitBlockScheme<SplitBlockView, SplitBlockParams> {
  static constexpr FilterInfo kInfo = {
      .name = "split_block",
      .summary = "Bloom filter of 256-bit blocks, one bit in each of 8 words (Parquet, Impala)",
      .source = "Apache Parquet format, BloomFilter.md",
      .fpr_formula = "sum over loads of Binomial(n, 1/blocks) * (1 - (1 - 1/32)^load)^8",
      .hash_bits = 64,
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 0.5, 128,
                           "size of the table over the number of keys"},
      Choice{"blocks", &Params::blocks, std::array<std::string_view, 2>{"any", "power_of_two"},
             "number of blocks; a power of two holds bits_per_key or up to twice that"},
  };
  // Of the 32 bits of the hash that choose a block, at least six are left to even out the shares:
  // they differ by less than 1.6 %. The size in bytes is 31 bits in the format, too.
  static constexpr uint64_t kMaxBlocks = (uint64_t{1} << 26) - 1;

  static uint64_t BlocksFor(uint64_t n, const Params& params) {
    const double blocks = std::ceil(static_cast<double>(n) * params.bits_per_key / 256);
    const auto whole = static_cast<uint64_t>(std::clamp(blocks, 1.0, 0x1p57));
    return params.blocks == SplitBlockCount::kPowerOfTwo ? std::bit_ceil(whole) : whole;
  }
};

struct SplitBlock512Scheme : SplitBlockScheme<SplitBlock512View, SplitBlock512Params> {
  static constexpr FilterInfo kInfo = {
      .name = "split_block_512",
      .summary = "Bloom filter of 512-bit blocks (a cache line), one bit in each of 8 words",
      .source = "Putze, Sanders, Singler 2007, section 3; word by word as in the Parquet format",
      .fpr_formula = "sum over loads of Binomial(n, 1/blocks) * (1 - (1 - 1/64)^load)^8",
      .hash_bits = 64,
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 0.5, 128,
                           "size of the table over the number of keys"},
  };
  static constexpr uint64_t kMaxBlocks = uint64_t{1} << 31;  // 2^40 bits
};

struct ImpalaParams {
  double min_bits_per_key = 8;
  uint64_t seed = 0;
  bool operator==(const ImpalaParams&) const = default;
};

struct ImpalaScheme : SplitBlockScheme<ImpalaView, ImpalaParams> {
  static constexpr FilterInfo kInfo = {
      .name = "impala_bloom",
      .summary = "split block filter of Impala's and Kudu's runtime filters, bit by bit",
      .source = "Apache Impala, be/src/util/bloom-filter.h",
      .fpr_formula = "that of split_block, and n / 2^32",
      .hash_bits = 32,
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"min_bits_per_key", &Params::min_bits_per_key, 1, 128,
                           "size of the table over the number of keys before rounding up to a "
                           "power of two"},
  };
  static constexpr uint64_t kMaxBlocks = uint64_t{1} << 27;  // 2^32 bytes

  static uint64_t BlocksFor(uint64_t n, const Params& params) {
    const double blocks = std::ceil(static_cast<double>(n) * params.min_bits_per_key / 256);
    return std::bit_ceil(static_cast<uint64_t>(std::clamp(blocks, 1.0, 0x1p57)));
  }
  static FprEstimate Fpr(const Params&, uint32_t, uint64_t n, uint64_t blocks) {
    return theory::WithSameHash(theory::SplitBlockFpr(n, blocks, kSplitWords, 32),
                                theory::HashCollisionFpr(n, 32));
  }
};

using SplitBlock = BlockFilter<SplitBlock256Scheme>;
using SplitBlock512 = BlockFilter<SplitBlock512Scheme>;
using ImpalaBloom = BlockFilter<ImpalaScheme>;

// The hash of a key in the Parquet format: XXH64 with seed 0 of the value in plain encoding
// (integers as 4 or 8 little-endian bytes, strings without their length).
inline uint64_t ParquetHash(std::string_view plain) { return XXH64(plain.data(), plain.size(), 0); }

// The filter of a bitset as Parquet stores it, without its header; Table() is that bitset again.
// `keys` is the number of distinct values that were inserted: Parquet does not store it, only
// ExpectedFpr needs it. An error where the size is no whole number of blocks from 1 to kMaxBlocks.
inline Result<SplitBlock> SplitBlockFromParquet(std::span<const std::byte> bitset, uint64_t keys) {
  constexpr uint64_t kBlockBytes = kSplitWords * sizeof(uint32_t);
  if (bitset.empty() || bitset.size() % kBlockBytes != 0) {
    return Error{fmt::format("bitset: must be a multiple of {} bytes and not empty, has {} bytes",
                             kBlockBytes, bitset.size())};
  }
  // Any capacity that asks for as many blocks: at 8 bits per key each block is for 32 keys.
  const uint64_t capacity = bitset.size() / kBlockBytes * 32;
  return SplitBlock::FromTable(bitset, capacity, keys, {.bits_per_key = 8});
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_SPLIT_BLOCK_H_
