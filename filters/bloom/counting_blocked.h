#ifndef FILTERBENCH_FILTERS_BLOOM_COUNTING_BLOCKED_H_
#define FILTERBENCH_FILTERS_BLOOM_COUNTING_BLOCKED_H_

// Counting Bloom filter whose counters of a key lie in one cache line.
//
// Idea: a block of 512 bits holds 128 counters of four bits. The hash chooses the block, all probes
// of a key fall anywhere inside it: lookup, insertion and erasure cost one cache miss each.
// Source: blocks after Putze, Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters",
// 2007; counters after Fan, Cao, Almeida, Broder 2000, section V.C.
// Limits: a block has a quarter of the cells of a blocked filter of bits, so that its load varies
// more: at 40 bits per key 1.35 % where `counting_bloom` has 0.82 %. A counter that has reached 15
// is never counted down (see counting_bloom.h), and a crowded block gets there sooner. When it
// loses: where keys are never erased, and where memory counts: a cuckoo filter erases in a third of
// the space, at two cache misses.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "filters/bloom/counters.h"
#include "filters/bloom/line_probes.h"
#include "filters/filter.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

class CountingBlocked {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "counting_blocked",
      .summary = "128 counters of 4 bits in a cache line, all of a key in one; insert and erase",
      .source = "Putze, Sanders, Singler 2007; Fan, Cao, Almeida, Broder 2000",
      .fpr_formula =
          "sum over loads of Binomial(n, 1/blocks) * E[(counters above 0 / 128)^k] "
          "(Putze et al. 2007, eq. 3, exact inside the block)",
      .hash_bits = 64,
  };

  struct Params {
    double bits_per_key = 40;
    uint32_t k = 0;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 4, 512,
                           "size of the table over the number of keys: four bits per counter"},
      Knob<Params, uint32_t>{"k", &Params::k, 0, 16,
                             "probes per key; 0 takes the optimum for blocks of 128 counters"},
  };

  static constexpr uint64_t kBlockBytes = kCacheLineBytes;
  static constexpr int kBlockCounters = 8 * kBlockBytes / kCounterBits;
  static constexpr uint64_t kMaxBlocks = uint64_t{1} << 31;  // 2^40 bits

  // Probe i is the top 7 bits of the low half of the hash times the i-th power of the multiplier
  // (line_probes.h); the block is chosen by the high half.
  static constexpr uint32_t kMultiplier = kLineProbeMultiplier;
  static constexpr int kProbeShift = 32 - 7;
  static_assert(kBlockCounters == 1 << 7);

  struct View {
    const uint64_t* words;
    uint64_t blocks;
    uint32_t k;
    bool prefetch;  // batched lookups prefetch their lines first

    uint64_t BlockOf(uint64_t hash) const { return FastRange64(hash, blocks); }
    // The first word of the block of a key.
    uint64_t WordOf(uint64_t hash) const { return BlockOf(hash) * (kBlockBytes / 8); }

    bool MayContain(uint64_t hash) const noexcept {
      const uint64_t* block = words + WordOf(hash);
      uint32_t probe = static_cast<uint32_t>(hash);
      for (uint32_t i = 0; i < k; ++i, probe *= kMultiplier) {
        if (CountAt(block, probe >> kProbeShift) == 0) return false;
      }
      return true;
    }

    // Calls use(position in the block) for every position of a key once, also where probes
    // coincide, as those of every ninth key do for k = 6.
    template <class Use>
    void ForEachPosition(uint64_t hash, const Use& use) const {
      uint64_t seen[kBlockCounters / 64] = {};
      uint32_t probe = static_cast<uint32_t>(hash);
      for (uint32_t i = 0; i < k; ++i, probe *= kMultiplier) {
        const uint32_t position = probe >> kProbeShift;
        const uint64_t bit = uint64_t{1} << (position % 64);
        if ((seen[position / 64] & bit) == 0) use(position);
        seen[position / 64] |= bit;
      }
    }
  };

  // Sized for `keys` keys, holding none.
  static Result<CountingBlocked> Create(uint64_t keys, const Params& params);
  // Counts a hash as often as it is given.
  static Result<CountingBlocked> Build(std::span<const uint64_t> hashes, const Params& params);
  static Result<CountingBlocked> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Never refused; each key beyond the number that the filter was made for raises the FPR. Counts
  // at every call, so that each Insert can be taken back by one Erase, up to the 15th.
  InsertStatus Insert(uint64_t hash);
  // Only for a hash that was inserted or built in and not erased since. kNotFound, and nothing
  // changed, for one that the filter denies.
  EraseStatus Erase(uint64_t hash);

  View view() const { return {table_.As<uint64_t>(), blocks_, k_, PrefetchPays(table_.size())}; }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  // Of the keys that are held now, taken as distinct; saturated counters that nobody holds are not
  // part of it.
  std::optional<FprEstimate> ExpectedFpr() const;
  static std::optional<double> TheoryFpr(double bits_per_key);

  // Keys inserted and not erased, and counters that have reached 15.
  uint64_t keys() const { return keys_; }
  uint64_t saturated() const { return saturated_; }

  // Blocks for n keys, at least 1; beyond kMaxBlocks where that is too large to be offered.
  static uint64_t BlocksFor(uint64_t n, const Params& params);

 private:
  CountingBlocked(const Params& params, uint64_t capacity, uint64_t blocks, AlignedTable table);

  Params params_;
  uint64_t capacity_;  // keys that the filter was made for
  uint64_t blocks_;
  uint32_t k_;
  uint64_t keys_ = 0;
  uint64_t saturated_ = 0;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_COUNTING_BLOCKED_H_
