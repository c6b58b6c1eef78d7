#ifndef FILTERBENCH_FILTERS_BLOOM_BLOCKED_H_
#define FILTERBENCH_FILTERS_BLOOM_BLOCKED_H_

// Blocked Bloom filter with blocks of one cache line.
//
// Idea: the hash chooses one 512-bit block, all k probes of a key fall anywhere inside it. A lookup
// costs one cache miss, whatever k is and whatever the answer.
// Source: Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007.
// Limits: the number of keys per block varies, and crowded blocks decide the FPR: 1.17 times the
// classic one at 10 bits per key, 2.9 times at 20. When it loses: where memory is dearer than time,
// and below about 0.1 % FPR, where ribbon or cuckoo filters are smaller.

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "filters/bloom/block_filter.h"
#include "filters/theory/blocked_bloom.h"

namespace filterbench {

struct BlockedBloomScheme {
  static constexpr FilterInfo kInfo = {
      .name = "blocked_bloom",
      .summary = "Bloom filter whose probes stay in one 512-bit cache line",
      .source = "Putze, Sanders, Singler 2007",
      .fpr_formula = "sum over loads of Binomial(n, 1/blocks) * E[(set/512)^k] (Putze et al. 2007, "
                     "eq. 3, exact inside the block)",
      .hash_bits = 64,
  };

  struct Params {
    double bits_per_key = 10;
    uint32_t k = 0;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 0.5, 128,
                           "size of the table over the number of keys"},
      Knob<Params, uint32_t>{"k", &Params::k, 0, 16,
                             "probes per key; 0 takes the optimum for 512-bit blocks"},
  };

  static constexpr int kBlockBits = 512;
  static constexpr int kWordsPerBlock = kBlockBits / 32;
  static constexpr uint64_t kMaxBlocks = uint64_t{1} << 31;  // 2^40 bits

  // Multipliers of the probes: powers of the odd number nearest to 2^32 over the golden ratio, from
  // the power 0 on. Probe i is the top 9 bits of the low half of the hash times the i-th: uniform,
  // since the multiplier is odd; the block is chosen by the high half.
  static constexpr uint32_t kMultiplier = 0x9e3779b9;

  struct View {
    const uint32_t* words;
    uint64_t blocks;
    uint32_t k;
    bool prefetch;  // batched lookups prefetch their lines first

    uint64_t BlockOf(uint64_t hash) const { return FastRange64(hash, blocks); }
    bool MayContain(uint64_t hash) const noexcept {
      const uint32_t* block = words + BlockOf(hash) * kWordsPerBlock;
      uint32_t probe = static_cast<uint32_t>(hash);
      for (uint32_t i = 0; i < k; ++i, probe *= kMultiplier) {
        const uint32_t position = probe >> 23;
        if ((block[position / 32] >> (position % 32) & 1) == 0) return false;
      }
      return true;
    }
  };

  static uint64_t BlockBytes(const Params&) { return kBlockBits / 8; }
  static uint32_t ProbesFor(const Params& params) {
    if (params.k != 0) return params.k;
    return theory::BlockedBloomBestK(params.bits_per_key, kBlockBits);
  }
  static View MakeView(const Params&, uint32_t probes, const std::byte* table, uint64_t blocks,
                       bool prefetch) {
    return {reinterpret_cast<const uint32_t*>(table), blocks, probes, prefetch};
  }
  static void InsertInto(uint32_t* block, uint32_t hash, uint32_t k) {
    uint32_t probe = hash;
    for (uint32_t i = 0; i < k; ++i, probe *= kMultiplier) {
      const uint32_t position = probe >> 23;
      block[position / 32] |= uint32_t{1} << (position % 32);
    }
  }
  static void Insert(const View& view, std::byte* table, uint64_t hash) {
    InsertInto(reinterpret_cast<uint32_t*>(table) + view.BlockOf(hash) * kWordsPerBlock,
               static_cast<uint32_t>(hash), view.k);
  }

  static FprEstimate Fpr(const Params&, uint32_t probes, uint64_t n, uint64_t blocks) {
    return theory::BlockedBloomFpr(n, blocks, static_cast<int>(probes), kBlockBits);
  }
  static double TheoryFpr(double bits_per_key) {
    return theory::BlockedBloomFpr(
        bits_per_key, theory::BlockedBloomBestK(bits_per_key, kBlockBits), kBlockBits);
  }
};

using BlockedBloom = BlockFilter<BlockedBloomScheme>;

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_BLOCKED_H_
