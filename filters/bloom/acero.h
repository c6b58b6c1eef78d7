#ifndef FILTERBENCH_FILTERS_BLOOM_ACERO_H_
#define FILTERBENCH_FILTERS_BLOOM_ACERO_H_

// The Bloom filter of Apache Arrow's hash joins (Acero), bit by bit.
//
// Idea: a word of 64 bits per key, as in a register-blocked filter, but the bits of a key are
// looked up instead of computed: 10 bits of its hash choose one of 1024 masks of four or five bits,
// six more rotate it. Masks are windows of one string of bits that overlap, so that the table has
// 136 bytes.
// Source: Apache Arrow, cpp/src/arrow/acero/bloom_filter.{h,cc}. Its folding of sparse filters into
// halves is left out: a filter here knows its number of keys.
// Limits: a power of two of words, at least `min_bits_per_key` for each key and up to twice that;
// 2^16 different keys per word, which neighbours in the string make more alike than chance. When it
// loses: where size counts, and to split blocks wherever a false positive costs more than some
// nanoseconds.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <vector>

#include "filters/bloom/block_filter.h"

namespace filterbench {

struct AceroScheme {
  static constexpr FilterInfo kInfo = {
      .name = "acero_bloom",
      .summary = "Bloom filter of Apache Arrow's joins: one of 1024 masks, rotated, in a word",
      .source = "Apache Arrow, cpp/src/arrow/acero/bloom_filter.h",
      .fpr_formula = "sum over loads of Binomial(n, 1/words) * P(masks cover the query's), by "
                     "inclusion-exclusion over its bits, exact for this table of masks",
      .hash_bits = 64,
  };

  struct Params {
    double min_bits_per_key = 8;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"min_bits_per_key", &Params::min_bits_per_key, 1, 64,
                           "size of the table over the number of keys before rounding up to a "
                           "power of two"},
  };

  static constexpr uint64_t kMaxBlocks = uint64_t{1} << 34;  // 2^40 bits
  static constexpr uint64_t kMinBlocks = 8;

  // Masks are the 57 bits from bit i on, so that one load of eight bytes from byte i / 8 on has
  // them.
  static constexpr int kMasks = 1024;
  static constexpr int kMaskBits = 57;
  static constexpr int kMinSet = 4;
  static constexpr int kMaxSet = 5;
  static constexpr int kMaskIdBits = 10;
  static constexpr int kRotationBits = 6;
  static constexpr size_t kStringBytes = (kMasks + 64) / 8;

  // The string of bits; made once, lives on.
  static const uint8_t* MaskString();
  static uint64_t MaskFrom(const uint8_t* string, uint64_t i) {
    uint64_t word;
    std::memcpy(&word, string + i / 8, sizeof(word));
    return word >> (i % 8) & ((uint64_t{1} << kMaskBits) - 1);
  }

  struct View {
    const uint64_t* words;
    const uint8_t* mask_string;
    uint64_t blocks;
    bool prefetch;  // batched lookups prefetch their lines first

    uint64_t BlockOf(uint64_t hash) const {
      return hash >> (kMaskIdBits + kRotationBits) & (blocks - 1);
    }
    uint64_t MaskOf(uint64_t hash) const {
      return std::rotl(MaskFrom(mask_string, hash & (kMasks - 1)),
                       static_cast<int>(hash >> kMaskIdBits & 63));
    }
    bool MayContain(uint64_t hash) const noexcept {
      return (MaskOf(hash) & ~words[BlockOf(hash)]) == 0;
    }
  };

  static uint64_t BlockBytes(const Params&) { return sizeof(uint64_t); }
  static uint64_t BlocksFor(uint64_t n, const Params& params) {
    const double bits = std::ceil(static_cast<double>(n) * params.min_bits_per_key);
    const double blocks = std::clamp(std::ceil(bits / 64), static_cast<double>(kMinBlocks), 0x1p57);
    return std::bit_ceil(static_cast<uint64_t>(blocks));
  }
  static uint32_t ProbesFor(const Params&) { return kMaxSet; }
  static View MakeView(const Params&, uint32_t, const std::byte* table, uint64_t blocks,
                       bool prefetch) {
    return {reinterpret_cast<const uint64_t*>(table), MaskString(), blocks, prefetch};
  }
  static void Insert(const View& view, std::byte* table, uint64_t hash) {
    reinterpret_cast<uint64_t*>(table)[view.BlockOf(hash)] |= view.MaskOf(hash);
  }
  static FprEstimate Fpr(const Params& params, uint32_t probes, uint64_t n, uint64_t blocks);
  // Where the power of two is just reached.
  static double TheoryFpr(double bits_per_key);
};

using AceroBloom = BlockFilter<AceroScheme>;

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_ACERO_H_
