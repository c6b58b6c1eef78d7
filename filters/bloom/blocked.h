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
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "filters/filter.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

class BlockedBloom {
 public:
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

    const uint32_t* Block(uint64_t hash) const {
      return words + FastRange64(hash, blocks) * kWordsPerBlock;
    }
    bool MayContain(uint64_t hash) const noexcept {
      const uint32_t* block = Block(hash);
      uint32_t probe = static_cast<uint32_t>(hash);
      for (uint32_t i = 0; i < k; ++i, probe *= kMultiplier) {
        const uint32_t position = probe >> 23;
        if ((block[position / 32] >> (position % 32) & 1) == 0) return false;
      }
      return true;
    }
  };

  static Result<BlockedBloom> Build(std::span<const uint64_t> hashes, const Params& params);
  static Result<BlockedBloom> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Never refused; each key beyond the number that Build was given raises the FPR.
  InsertStatus Insert(uint64_t hash);

  View view() const {
    return {table_.As<uint32_t>(), blocks_, k_, PrefetchPays(table_.size())};
  }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  std::optional<FprEstimate> ExpectedFpr() const;
  static std::optional<double> TheoryFpr(double bits_per_key);

  // Blocks for n keys, at least 1; beyond kMaxBlocks where it is too large to be offered.
  static uint64_t BlocksFor(uint64_t n, double bits_per_key);

 private:
  BlockedBloom(const Params& params, uint64_t n, uint64_t blocks, AlignedTable table);

  Params params_;
  uint64_t n_;
  uint64_t blocks_;
  uint32_t k_;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_BLOCKED_H_
