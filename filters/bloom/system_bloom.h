#ifndef FILTERBENCH_FILTERS_BLOOM_SYSTEM_BLOOM_H_
#define FILTERBENCH_FILTERS_BLOOM_SYSTEM_BLOOM_H_

// Bloom filters as production systems build them, each choice a knob.
//
// Idea: k probes anywhere in the table, made from one or two words of hash by double hashing, and
// reduced by a remainder. Systems differ in how many bits a table of n keys has (a share per key, a
// surplus, bounds, rounding), in the words (32 or 64 bits, one or two), in the step from probe to
// probe, and in what becomes of negative words. filters/presets.json names the values of each.
// Source: the sources of Cassandra, ScyllaDB, Guava, PostgreSQL (lib/bloomfilter.c), HBase, Squid,
// Chromium and SQLite; double hashing: Kirsch, Mitzenmacher 2006; enhanced: Dillinger, Manolios
// 2004. Words: systems hash keys with functions of their own; here words come from the 64-bit hash,
// so that a table equals the system's where its words do. two_64: the hash, and a mix of it.
// two_32: its lower half, then its higher one. one_32: its lower half, and that rotated right by 17
// (LevelDB). `independent` goes on with mixes of the hash plus multiples of a constant.
// Limits: words of 32 bits end at 2^32 bits, and one_32 at a rate of n / 2^32. Unguarded steps cost
// 2 to 20 % of the rate below 1000 bits: filters/theory/systems.h. When it loses: everywhere on
// time, to filters of one cache line per key; the remainder costs as much as the probe.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "filters/bloom/bit_array.h"
#include "filters/bloom/remainder.h"
#include "filters/filter.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

class SystemBloom {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "system_bloom",
      .summary =
          "Bloom filter as production systems build it, their sizes, words and steps as knobs",
      .source = "Cassandra, ScyllaDB, Guava, PostgreSQL, HBase, Squid, Chromium, SQLite",
      .fpr_formula =
          "classic rate of positions word mod m (Bose et al. 2008), plus what pairs of "
          "progressions share, words that wrap included (after Dillinger, Manolios 2004); "
          "one_32: plus n / 2^32",
      .hash_bits = 64,
  };

  static constexpr uint32_t kMaxProbes = 64;

  enum class Words { kTwo64, kTwo32, kOne32 };
  enum class Probing { kPlain, kEnhanced, kIndependent };
  enum class Sign { kUnsigned, kMask, kAbs };
  enum class Rounding { kWords, kBytes, kPowerOfTwoDown, kPowerOfTwoUp };

  struct Params {
    double bits_per_key = 10;
    uint32_t k = 0;
    uint32_t max_k = kMaxProbes;
    uint64_t extra_bits = 0;
    uint64_t min_bits = 0;
    uint64_t max_bits = 0;
    Rounding rounding = Rounding::kWords;
    Words words = Words::kTwo64;
    Probing probing = Probing::kPlain;
    Sign sign = Sign::kUnsigned;
    uint64_t seed = 0;  // changes nothing: hashes come seeded
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 0.5, 128,
                           "bits for each key, their sum rounded down"},
      Knob<Params, uint32_t>{"k", &Params::k, 0, kMaxProbes,
                             "probes per key; 0 takes ln 2 bits of the table per key, rounded"},
      Knob<Params, uint32_t>{"max_k", &Params::max_k, 1, kMaxProbes,
                             "most probes that k = 0 takes"},
      Knob<Params, uint64_t>{"extra_bits", &Params::extra_bits, 0, 1 << 20,
                             "bits whatever the number of keys"},
      Knob<Params, uint64_t>{"min_bits", &Params::min_bits, 0, 1 << 28,
                             "least size before rounding"},
      Knob<Params, uint64_t>{"max_bits", &Params::max_bits, 0, kMaxBloomBits,
                             "greatest size before rounding; 0: none"},
      Choice{
          "rounding", &Params::rounding,
          std::array<std::string_view, 4>{"words", "bytes", "power_of_two_down", "power_of_two_up"},
          "the number of bits becomes a multiple of 64 or 8, or a power of two"},
      Choice{"words", &Params::words, std::array<std::string_view, 3>{"two_64", "two_32", "one_32"},
             "words of hash that probes are made from"},
      Choice{"probing", &Params::probing,
             std::array<std::string_view, 3>{"plain", "enhanced", "independent"},
             "step between probes: the same each time, growing, or a new word for each"},
      Choice{"sign", &Params::sign, std::array<std::string_view, 3>{"unsigned", "mask", "abs"},
             "words that are negative in two's complement: a number like any other, without their "
             "sign bit, or their absolute value"},
  };

  // The number of bits for so many keys; beyond kMaxBloomBits where that is too large to be
  // offered.
  static uint64_t BitsFor(uint64_t keys, const Params& params);
  static uint32_t ProbesFor(uint64_t keys, uint64_t bits, const Params& params);

  // How a probe's word becomes a position.
  struct Reduction {
    Remainder32 remainder;  // of 32-bit words
    uint64_t bits;
    uint64_t mask;        // bits - 1 for powers of two, 0 for other numbers
    uint64_t keep;        // what a word keeps
    uint64_t abs_mask;    // all ones where negative words become positive

    template <class Word>
    uint64_t operator()(Word word) const noexcept {
      // All ones where the word is negative and `abs` is asked for: its complement plus one.
      const Word sign =
          static_cast<Word>(-(word >> (sizeof(Word) * 8 - 1))) & static_cast<Word>(abs_mask);
      const Word reduced = static_cast<Word>(((word ^ sign) - sign) & static_cast<Word>(keep));
      if (mask != 0) return reduced & mask;
      if constexpr (sizeof(Word) == 4) {
        return remainder(reduced);
      } else {
        return reduced % bits;
      }
    }
  };

  // The words of a key, one after the other.
  template <Words kWords, Probing kProbing>
  class Sequence {
   public:
    using Word = std::conditional_t<kWords == Words::kTwo64, uint64_t, uint32_t>;

    explicit Sequence(uint64_t hash) : hash_(kWords == Words::kOne32 ? hash & UINT32_MAX : hash) {
      word_ = static_cast<Word>(hash_);
      if constexpr (kProbing == Probing::kIndependent) return;
      if constexpr (kWords == Words::kTwo64) step_ = Mixed(1);
      if constexpr (kWords == Words::kTwo32) step_ = static_cast<Word>(hash_ >> 32);
      if constexpr (kWords == Words::kOne32) step_ = std::rotr(static_cast<uint32_t>(word_), 17);
    }
    Word word() const { return word_; }
    void Next() {
      ++index_;
      if constexpr (kProbing != Probing::kIndependent) {
        word_ += step_;
        if constexpr (kProbing == Probing::kEnhanced) step_ += index_;
      } else if constexpr (kWords == Words::kTwo32) {
        // Both halves of the hash, then both of each mix.
        const uint64_t whole = index_ < 2 ? hash_ : Mixed(index_ / 2);
        word_ = static_cast<Word>(index_ % 2 == 0 ? whole : whole >> 32);
      } else {
        word_ = static_cast<Word>(Mixed(index_));
      }
    }

   private:
    uint64_t Mixed(uint64_t i) const { return Mix64(hash_ + i * kGoldenGamma); }

    uint64_t hash_;
    Word word_;
    Word step_ = 0;
    uint32_t index_ = 0;
  };

  template <Words kWords, Probing kProbing>
  struct FixedView;

  struct View {
    const uint64_t* words;
    Reduction reduction;
    uint32_t k;
    Words words_of_hash;
    Probing probing;
    bool prefetch;  // building prefetches

    template <Words kWords, class Use>
    decltype(auto) SpecializeProbing(Use&& use) const {
      switch (probing) {
        case Probing::kPlain:
          return use(FixedView<kWords, Probing::kPlain>{*this});
        case Probing::kEnhanced:
          return use(FixedView<kWords, Probing::kEnhanced>{*this});
        case Probing::kIndependent:
          break;
      }
      return use(FixedView<kWords, Probing::kIndependent>{*this});
    }
    // Calls use with a view whose words and probing are known at compile time.
    template <class Use>
    decltype(auto) Specialize(Use&& use) const {
      switch (words_of_hash) {
        case Words::kTwo64:
          return SpecializeProbing<Words::kTwo64>(use);
        case Words::kTwo32:
          return SpecializeProbing<Words::kTwo32>(use);
        case Words::kOne32:
          break;
      }
      return SpecializeProbing<Words::kOne32>(use);
    }
    bool MayContain(uint64_t hash) const noexcept {
      return Specialize([hash](const auto& view) { return view.MayContain(hash); });
    }
  };

  template <Words kWords, Probing kProbing>
  struct FixedView : View {
    bool MayContain(uint64_t hash) const noexcept {
      Sequence<kWords, kProbing> sequence(hash);
      for (uint32_t i = 0; i < k; ++i, sequence.Next()) {
        if (!TestBit(words, reduction(sequence.word()))) return false;
      }
      return true;
    }
    void Positions(uint64_t hash, uint64_t* positions) const noexcept {
      Sequence<kWords, kProbing> sequence(hash);
      for (uint32_t i = 0; i < k; ++i, sequence.Next()) positions[i] = reduction(sequence.word());
    }
  };

  // Sized for `keys` keys, holding none. One word of 32 bits gives start and step, which then
  // depend on each other: theory knows what that does to plain steps of unsigned words only.
  static std::string Contradiction(const Params& params);
  static Result<SystemBloom> Create(uint64_t keys, const Params& params);
  static Result<SystemBloom> Build(std::span<const uint64_t> hashes, const Params& params);
  static Result<SystemBloom> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Never refused; each key beyond the number that Create was given raises the FPR.
  InsertStatus Insert(uint64_t hash);
  // Leaves the bytes of Build over all hashes, whatever the pieces and the threads.
  void InsertAll(std::span<const uint64_t> hashes, unsigned threads = 1);

  View view() const;
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  // Agrees with measurement for one filter of 4096 bits or more: in smaller ones the rates of
  // instances are not normal any more.
  std::optional<FprEstimate> ExpectedFpr() const;
  static std::optional<double> TheoryFpr(double bits_per_key);

 private:
  SystemBloom(const Params& params, uint64_t capacity, uint64_t keys, AlignedTable table);

  Params params_;
  uint64_t capacity_;  // keys that it was sized for
  uint64_t keys_;      // keys inserted
  uint64_t bits_;
  uint32_t k_;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_SYSTEM_BLOOM_H_
