#ifndef FILTERBENCH_FILTERS_BLOOM_CACHE_SECTORIZED_H_
#define FILTERBENCH_FILTERS_BLOOM_CACHE_SECTORIZED_H_

// Cache-sectorized Bloom filter: a key has its bits in a few words of one cache line.
//
// Idea: the eight words of a 512-bit block form z groups; in each group the hash chooses one word
// and k / z bits in it. A lookup reads z words, not eight, so that vectors over keys need z gathers
// and z comparisons, at any k; and it has more places for bits than a split block of k words.
// Source: Lang, Neumann, Kemper, Boncz, "Performance-Optimal Filtering: Bloom Overtakes Cuckoo at
// High Throughput", 2019, the section on cache-sectorization.
// Limits: a word's load varies more than that of its block, which costs accuracy: at 10 bits per
// key 1.11 % for z = 2 and 1.06 % for z = 4, where a blocked filter of the same line has 0.97 %. k
// is a multiple of z. When it loses: where registers hold whole lines (a blocked filter is then as
// fast and more accurate), and with 128-bit vectors, which gain little from words of several keys.

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "filters/bloom/block_filter.h"
#include "filters/theory/block_loads.h"
#include "filters/theory/cache_sectorized.h"

namespace filterbench {

struct CacheSectorizedScheme {
  static constexpr FilterInfo kInfo = {
      .name = "cache_sectorized",
      .summary = "Bloom filter of 512-bit blocks, k/z bits in one word of each of z groups",
      .source = "Lang, Neumann, Kemper, Boncz 2019",
      .fpr_formula = "sum over loads of Binomial(n, 1/blocks) * E[(set/64)^(k/z)]^z, a word's load "
                     "Binomial(load, z/8), exact in the word (Lang et al. 2019)",
      .hash_bits = 64,
  };

  enum class Groups { k2, k4 };
  struct Params {
    double bits_per_key = 10;
    Groups groups = Groups::k2;
    uint32_t k = 0;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr uint32_t kMaxProbesPerSector = theory::kMaxProbesPerSector;
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 0.5, 128,
                           "size of the table over the number of keys"},
      Choice{"groups", &Params::groups, std::array<std::string_view, 2>{"2", "4"},
             "z: groups of words in a block, one word of each being used by a key"},
      Knob<Params, uint32_t>{"k", &Params::k, 0, 4 * kMaxProbesPerSector,
                             "bits per key, a multiple of z, at most 5 z; 0 takes the optimum"},
  };

  static constexpr uint64_t kMaxBlocks = uint64_t{1} << 31;  // 2^40 bits
  static constexpr uint32_t kWordsPerBlock = 8;

  // What a group takes its word and its bits from: 32 bits that are a bijection of the low half of
  // the hash, another one for each group, so that all fields of a group are jointly uniform. The
  // shift between the products keeps the fields of two groups from being multiples of each other.
  static constexpr uint32_t kFirstMultiplier[4] = {0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f};
  static constexpr uint32_t kSecondMultiplier = 0x2c1b3c6d;
  static constexpr int kShift = 16;
  static constexpr uint32_t Fields(uint64_t hash, uint32_t group) {
    const uint32_t once = static_cast<uint32_t>(hash) * kFirstMultiplier[group];
    return (once ^ once >> kShift) * kSecondMultiplier;
  }

  // A view that knows the number of groups. Fields are, from the top, the word in the group and
  // then six bits for each bit in it: 2 + 5 * 6 bits at most.
  template <uint32_t kGroupsOfView>
  struct GroupedView {
    static constexpr uint32_t kGroups = kGroupsOfView;
    static constexpr uint32_t kWordsPerGroup = kWordsPerBlock / kGroups;
    static constexpr int kWordShift = kWordsPerGroup == 4 ? 30 : 31;
    static constexpr int kPositionBits = 6;
    static_assert(kWordShift >= static_cast<int>(kMaxProbesPerSector) * kPositionBits);
    const uint64_t* words;
    uint64_t blocks;
    uint32_t probes;  // bits per group
    bool prefetch;    // batched lookups prefetch their lines first

    uint64_t BlockOf(uint64_t hash) const { return FastRange64(hash, blocks); }
    // Among the words of the block.
    static uint32_t WordOf(uint32_t fields, uint32_t group) {
      return group * kWordsPerGroup + (fields >> kWordShift);
    }
    uint64_t MaskOf(uint32_t fields) const {
      uint64_t mask = 0;
      for (uint32_t i = 0; i < probes; ++i, fields >>= kPositionBits) {
        mask |= uint64_t{1} << (fields & 63);
      }
      return mask;
    }
    bool MayContain(uint64_t hash) const noexcept {
      const uint64_t* block = words + BlockOf(hash) * kWordsPerBlock;
      uint64_t missing = 0;
      for (uint32_t group = 0; group < kGroups; ++group) {
        const uint32_t fields = Fields(hash, group);
        missing |= MaskOf(fields) & ~block[WordOf(fields, group)];
      }
      return missing == 0;
    }
  };

  struct View {
    const uint64_t* words;
    uint64_t blocks;
    uint32_t probes;
    Groups groups;
    bool prefetch;

    template <class Use>
    decltype(auto) Specialize(Use&& use) const {
      if (groups == Groups::k4) return use(GroupedView<4>{words, blocks, probes, prefetch});
      return use(GroupedView<2>{words, blocks, probes, prefetch});
    }
    uint64_t BlockOf(uint64_t hash) const { return FastRange64(hash, blocks); }
    bool MayContain(uint64_t hash) const noexcept {
      return Specialize([hash](const auto& view) { return view.MayContain(hash); });
    }
  };

  static constexpr uint32_t GroupsOf(const Params& params) {
    return params.groups == Groups::k4 ? 4 : 2;
  }
  static std::string Contradiction(const Params& params) {
    if (params.k % GroupsOf(params) != 0) return "k: must be a multiple of groups";
    if (params.k > kMaxProbesPerSector * GroupsOf(params)) return "k: more than 5 times groups";
    return {};
  }
  static uint64_t BlockBytes(const Params&) { return kWordsPerBlock * sizeof(uint64_t); }
  static uint32_t ProbesFor(const Params& params) {
    if (params.k != 0) return params.k;
    const uint32_t groups = GroupsOf(params);
    return groups * static_cast<uint32_t>(theory::CacheSectorizedBestProbes(
                        params.bits_per_key, static_cast<int>(groups)));
  }
  static View MakeView(const Params& params, uint32_t probes, const std::byte* table,
                       uint64_t blocks, bool prefetch) {
    return {reinterpret_cast<const uint64_t*>(table), blocks, probes / GroupsOf(params),
            params.groups, prefetch};
  }
  static void Insert(const View& view, std::byte* table, uint64_t hash) {
    view.Specialize([table, hash](const auto& grouped) {
      auto* block = reinterpret_cast<uint64_t*>(table) + grouped.BlockOf(hash) * kWordsPerBlock;
      for (uint32_t group = 0; group < grouped.kGroups; ++group) {
        const uint32_t fields = Fields(hash, group);
        block[grouped.WordOf(fields, group)] |= grouped.MaskOf(fields);
      }
    });
  }
  static FprEstimate Fpr(const Params& params, uint32_t probes, uint64_t n, uint64_t blocks) {
    const uint32_t groups = GroupsOf(params);
    return theory::CacheSectorizedFpr(n, blocks, static_cast<int>(groups),
                                      static_cast<int>(probes / groups));
  }
  // Two groups.
  static double TheoryFpr(double bits_per_key) {
    return theory::CacheSectorizedFpr(bits_per_key, 2,
                                      theory::CacheSectorizedBestProbes(bits_per_key, 2));
  }
};

using CacheSectorized = BlockFilter<CacheSectorizedScheme>;

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_CACHE_SECTORIZED_H_
