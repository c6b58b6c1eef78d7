#ifndef FILTERBENCH_FILTERS_BLOOM_TWO_CHOICE_BLOCKED_H_
#define FILTERBENCH_FILTERS_BLOOM_TWO_CHOICE_BLOCKED_H_

// Blocked Bloom filter with two choices: a key lies in the better one of two cache lines.
//
// Idea: blocks of a blocked filter differ in their load, and crowded ones decide the rate. With two
// blocks to choose from, insertion takes the one that it costs less: the one that needs fewer new
// bits, unless it is the fuller one by far. Loads even out, and bits are shared more often; a
// lookup asks both blocks and so has two chances to be wrong, which is less than what is gained.
// Source: Schmitz, Zentgraf, Rahmann, "Blocked Bloom Filters with Choices", 2025 (SEA 2025, LIPIcs
// 338, article 25; arXiv 2501.18977). As there, the positions of a key are the same in both blocks;
// the cost has another exponent (theory::TwoChoiceCost), hash functions are this project's.
// Limits: two cache misses per lookup where a blocked filter has one; which bits are set depends on
// the order of the keys, so that a build cannot be divided among threads, nor filters be united by
// OR. The rate is 0.87 % at 10 bits per key against 0.97 % of a blocked and 0.82 % of a classic
// filter, and 0.0067 against 0.0194 and 0.0067 % at 20. When it loses: below about 10 bits per key,
// to a blocked filter, and where memory is not what is short.
//
// Not thread-safe: Insert reads what it decides by.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "filters/bloom/line_probes.h"
#include "filters/filter.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"
#include "filters/theory/two_choice.h"

namespace filterbench {

class TwoChoiceBlocked {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "two_choice_blocked",
      .summary = "blocked Bloom filter; a key lies in the better one of two cache lines",
      .source = "Schmitz, Zentgraf, Rahmann 2025",
      .fpr_formula =
          "sum over numbers d of distinct probes of P(d) (1 - (1 - p_d)^2), p_d the share "
          "of blocks with d given bits, by the mean-field law of their loads "
          "(Mitzenmacher 2001)",
      .hash_bits = 64,
  };

  static constexpr uint32_t kMaxProbes = theory::kMaxTwoChoiceProbes;
  struct Params {
    double bits_per_key = 10;
    uint32_t k = 0;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 0.5, 128,
                           "size of the table over the number of keys"},
      Knob<Params, uint32_t>{"k", &Params::k, 0, kMaxProbes,
                             "probes per key; 0 takes the optimum"},
  };

  static constexpr uint64_t kMaxBlocks = uint64_t{1} << 31;  // 2^40 bits

  // The second block is chosen by the hash times this, the first one by the hash itself: both are
  // uniform, and keys of one first block have second ones all over the table.
  static constexpr uint64_t kSecondMultiplier = 0x9e3779b1;
  static constexpr uint64_t FirstBlock(uint64_t hash, uint64_t blocks) {
    return FastRange64(hash, blocks);
  }
  static constexpr uint64_t SecondBlock(uint64_t hash, uint64_t blocks) {
    return FastRange64(hash * kSecondMultiplier, blocks);
  }
  static constexpr uint32_t ProbeHash(uint64_t hash) { return static_cast<uint32_t>(hash); }

  struct View {
    const uint32_t* words;
    uint64_t blocks;
    uint32_t k;
    bool prefetch;  // batched lookups prefetch their lines first

    const uint32_t* Block(uint64_t block) const { return words + block * kLineWords; }
    bool MayContain(uint64_t hash) const noexcept {
      return LineMayContain(Block(FirstBlock(hash, blocks)), ProbeHash(hash), k) ||
             LineMayContain(Block(SecondBlock(hash, blocks)), ProbeHash(hash), k);
    }
  };

  // Sets the bits of a key in one of two blocks: in the cheaper one, in the first one if they cost
  // the same, in none if one of them has all of them. Compiled into the loops of each target, where
  // counting bits is an instruction.
  [[gnu::always_inline]] static inline void InsertIntoOneOf(std::byte* first, std::byte* second,
                                                            uint32_t hash, uint32_t k) {
    constexpr int kWords = kLineBits / 64;
    uint64_t bits[kWords] = {};
    for (uint32_t i = 0; i < k; ++i, hash *= kLineProbeMultiplier) {
      const uint32_t position = hash >> 23;
      bits[position / 64] |= uint64_t{1} << (position % 64);
    }
    const auto cost = [&bits, k](const std::byte* block) __attribute__((always_inline)) {
      uint64_t set = 0;
      uint64_t added = 0;
      for (int w = 0; w < kWords; ++w) {
        uint64_t word;
        std::memcpy(&word, block + w * sizeof(word), sizeof(word));
        set += static_cast<uint64_t>(std::popcount(word | bits[w]));
        added += static_cast<uint64_t>(std::popcount(bits[w] & ~word));
      }
      return theory::TwoChoiceCost(k, set, added);
    };
    std::byte* block = cost(second) < cost(first) ? second : first;
    for (int w = 0; w < kWords; ++w) {
      uint64_t word;
      std::memcpy(&word, block + w * sizeof(word), sizeof(word));
      word |= bits[w];
      std::memcpy(block + w * sizeof(word), &word, sizeof(word));
    }
  }

  static Result<TwoChoiceBlocked> Create(uint64_t keys, const Params& params);
  static Result<TwoChoiceBlocked> Build(std::span<const uint64_t> hashes, const Params& params);
  static Result<TwoChoiceBlocked> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Never refused; each key beyond the number that the filter was made for raises the FPR. A key
  // that the filter claims to hold already changes nothing.
  InsertStatus Insert(uint64_t hash);

  View view() const {
    return {table_.As<uint32_t>(), blocks_, probes_, PrefetchPays(table_.size())};
  }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  // Of the keys inserted so far, taken as distinct.
  std::optional<FprEstimate> ExpectedFpr() const;
  static std::optional<double> TheoryFpr(double bits_per_key);

  // Blocks for n keys, at least 1; beyond kMaxBlocks where that is too large to be offered.
  static uint64_t BlocksFor(uint64_t n, const Params& params);

 private:
  TwoChoiceBlocked(const Params& params, uint64_t capacity, uint64_t blocks, AlignedTable table);

  Params params_;
  uint64_t capacity_;
  uint64_t inserted_ = 0;
  uint64_t blocks_;
  uint32_t probes_;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_TWO_CHOICE_BLOCKED_H_
