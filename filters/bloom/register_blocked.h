#ifndef FILTERBENCH_FILTERS_BLOOM_REGISTER_BLOCKED_H_
#define FILTERBENCH_FILTERS_BLOOM_REGISTER_BLOCKED_H_

// Register-blocked Bloom filter: a block is one machine word.
//
// Idea: all k bits of a key lie in one word of 32 or 64 bits, so that a lookup is one load, one AND
// and one comparison, for several keys per vector.
// Source: Putze, Sanders, Singler 2007, section 3; Lang, Neumann, Kemper, Boncz,
// "Performance-Optimal Filtering", 2019.
// Limits: a word holds few keys and their number varies widely: at 10 bits per key 1.9 % with 64
// bits and 3.1 % with 32, against 0.82 % of the classic filter. When it loses: wherever a false
// positive costs more than some ten nanoseconds, since split blocks are nearly as fast.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "filters/bloom/block_filter.h"
#include "filters/theory/blocked_bloom.h"

namespace filterbench {

struct RegisterBlockedScheme {
  static constexpr FilterInfo kInfo = {
      .name = "register_blocked",
      .summary = "Bloom filter whose probes stay in one word of 32 or 64 bits",
      .source = "Lang, Neumann, Kemper, Boncz 2019",
      .fpr_formula = "sum over loads of Binomial(n, 1/words) * E[(set/bits)^k], exact in the word",
      .hash_bits = 64,
  };

  enum class WordBits { k64, k32 };
  struct Params {
    double bits_per_key = 10;
    WordBits word_bits = WordBits::k64;
    uint32_t k = 0;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  // Positions are fields of the low half of the hash, 6 bits each for words of 64, 5 for 32.
  static constexpr uint32_t kMaxProbes = 5;
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 0.5, 128,
                           "size of the table over the number of keys"},
      Choice{"word_bits", &Params::word_bits, std::array<std::string_view, 2>{"64", "32"},
             "bits of a block"},
      Knob<Params, uint32_t>{"k", &Params::k, 0, kMaxProbes,
                             "probes per key; 0 takes the optimum for the word, at most 5"},
  };
  static constexpr uint64_t kMaxBlocks = (uint64_t{1} << 32) - 1;  // 2^38 bits

  template <class WordT>
  struct WordView {
    using Word = WordT;
    static constexpr int kPositionBits = sizeof(Word) == 8 ? 6 : 5;
    const Word* words;
    uint64_t blocks;
    uint32_t k;
    bool prefetch;

    uint64_t BlockOf(uint64_t hash) const { return FastRange64(hash, blocks); }
    Word MaskOf(uint64_t hash) const {
      constexpr uint32_t kPosition = 8 * sizeof(Word) - 1;
      Word mask = 0;
      uint32_t fields = static_cast<uint32_t>(hash);
      for (uint32_t i = 0; i < k; ++i, fields >>= kPositionBits) {
        mask |= Word{1} << (fields & kPosition);
      }
      return mask;
    }
    bool MayContain(uint64_t hash) const noexcept {
      return (MaskOf(hash) & ~words[BlockOf(hash)]) == 0;
    }
  };

  struct View {
    const std::byte* table;
    uint64_t blocks;
    uint32_t k;
    WordBits word_bits;
    bool prefetch;  // batched lookups prefetch their lines first

    template <class Use>
    decltype(auto) Specialize(Use&& use) const {
      if (word_bits == WordBits::k32) {
        return use(
            WordView<uint32_t>{reinterpret_cast<const uint32_t*>(table), blocks, k, prefetch});
      }
      return use(WordView<uint64_t>{reinterpret_cast<const uint64_t*>(table), blocks, k, prefetch});
    }
    uint64_t BlockOf(uint64_t hash) const { return FastRange64(hash, blocks); }
    bool MayContain(uint64_t hash) const noexcept {
      return Specialize([hash](const auto& view) { return view.MayContain(hash); });
    }
  };

  static constexpr int BitsOf(WordBits word_bits) { return word_bits == WordBits::k32 ? 32 : 64; }
  static uint64_t BlockBytes(const Params& params) { return BitsOf(params.word_bits) / 8; }
  static uint32_t ProbesFor(const Params& params) {
    if (params.k != 0) return params.k;
    return BestK(params.bits_per_key, BitsOf(params.word_bits));
  }
  static View MakeView(const Params& params, uint32_t probes, const std::byte* table,
                       uint64_t blocks, bool prefetch) {
    return {table, blocks, probes, params.word_bits, prefetch};
  }
  static void Insert(const View& view, std::byte* table, uint64_t hash) {
    view.Specialize([table, hash]<class Word>(const WordView<Word>& sized) {
      reinterpret_cast<Word*>(table)[sized.BlockOf(hash)] |= sized.MaskOf(hash);
    });
  }
  static FprEstimate Fpr(const Params& params, uint32_t probes, uint64_t n, uint64_t blocks) {
    return theory::BlockedBloomFpr(n, blocks, static_cast<int>(probes), BitsOf(params.word_bits));
  }
  // Words of 64 bits.
  static double TheoryFpr(double bits_per_key) {
    return theory::BlockedBloomFpr(bits_per_key, static_cast<int>(BestK(bits_per_key, 64)), 64);
  }

 private:
  static uint32_t BestK(double bits_per_key, int word_bits) {
    return std::min<uint32_t>(theory::BlockedBloomBestK(bits_per_key, word_bits), kMaxProbes);
  }
};

using RegisterBlocked = BlockFilter<RegisterBlockedScheme>;

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_REGISTER_BLOCKED_H_
