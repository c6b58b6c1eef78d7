#ifndef FILTERBENCH_FILTERS_CUCKOO_SEMI_SORTED_H_
#define FILTERBENCH_FILTERS_CUCKOO_SEMI_SORTED_H_

// Cuckoo filter with semi-sorted buckets.
//
// Idea: the order of the four tags in a bucket says nothing, so they are sorted by their lowest
// four bits. There are 3876 sorted sequences of four numbers below 16, whose index takes 12 bits
// instead of 16: one bit per tag is saved. Tags have one bit more than in `cuckoo` in the same
// space, which halves the rate.
// Source: Fan, Andersen, Kaminsky, Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom",
// 2014, section 5.2. The high bits of the tags stand in the order of the sorted low bits, so that a
// lookup compares them first and decodes the index only where some of them are equal.
// Limits: those of `cuckoo`. When it loses: every change decodes and encodes a bucket, and lookups
// that find their key decode one, through a table of 8 KiB; `cuckoo` is faster at its size wherever
// twice the rate is good enough.
//
// Not thread-safe, as `cuckoo`.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "filters/cuckoo/cuckoo.h"
#include "filters/cuckoo/tag_filter.h"

namespace filterbench {

// Sequences of four numbers below 16 that do not decrease, by their index: a <= b <= c <= d has the
// index C(a, 1) + C(b + 1, 2) + C(c + 2, 3) + C(d + 3, 4) (the combinatorial number system: Knuth,
// The Art of Computer Programming 4A, section 7.2.1.3).
inline constexpr uint32_t kSortedSequences = 3876;

// Four numbers, the least in the lowest four bits.
constexpr uint32_t EncodeSortedNibbles(uint32_t nibbles) {
  uint32_t index = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t nibble = nibbles >> (4 * i) & 15;
    uint32_t term = 1;  // C(nibble + i, i + 1)
    for (uint32_t j = 0; j <= i; ++j) term = term * (nibble + i - j) / (j + 1);
    index += term;
  }
  return index;
}

// The sequence of every index; zeros from kSortedSequences on.
inline constexpr std::array<uint16_t, 4096> kSortedNibbles = [] {
  std::array<uint16_t, 4096> sequences = {};
  for (uint32_t d = 0; d < 16; ++d) {
    for (uint32_t c = 0; c <= d; ++c) {
      for (uint32_t b = 0; b <= c; ++b) {
        for (uint32_t a = 0; a <= b; ++a) {
          const uint32_t nibbles = a | b << 4 | c << 8 | d << 12;
          sequences[EncodeSortedNibbles(nibbles)] = static_cast<uint16_t>(nibbles);
        }
      }
    }
  }
  return sequences;
}();

// Four tags of kBits bits in 4 kBits - 4: the index of the sorted low bits in the lowest 12 bits,
// then the high bits in the same order. Tags with equal low bits stand in the order of their high
// bits, so that a set of tags has one form. Tag 0 marks a free slot; free slots come first.
template <int kBits>
struct SemiSortedBucket {
  static constexpr int kSlots = 4;
  static constexpr int kWords = 1;
  static constexpr int kWordSlots = kSlots;
  static constexpr int kTagShift = 4;
  static constexpr int kWordShift = 12;
  static constexpr int kFieldBits = kBits - kTagShift;
  static constexpr uint64_t kBytes = (kWordShift + kSlots * kFieldBits) / 8;
  static constexpr uint64_t kWordBytes = kBytes;
  static_assert((kWordShift + kSlots * kFieldBits) % 8 == 0 && kBytes <= 8);

  static constexpr uint64_t kFieldMask = (uint64_t{1} << kFieldBits) - 1;
  static constexpr uint64_t kLowestBits =
      (uint64_t{1} | uint64_t{1} << kFieldBits | uint64_t{1} << (2 * kFieldBits) |
       uint64_t{1} << (3 * kFieldBits))
      << kWordShift;
  static constexpr uint64_t kHighestBits = kLowestBits << (kFieldBits - 1);
  static constexpr uint64_t kOtherBits = kHighestBits - kLowestBits;

  using Tags = std::array<uint64_t, kSlots>;

  // Reads 8 bytes, of which those from kBytes on belong to others: they change no answer below.
  static uint64_t Load(const std::byte* bucket) {
    uint64_t word;
    std::memcpy(&word, bucket, sizeof(word));
    return word;
  }
  static constexpr uint32_t IndexOf(uint64_t word) { return word & 0xfff; }
  static constexpr Tags Decode(uint64_t word) {
    const uint64_t nibbles = kSortedNibbles[IndexOf(word)];
    Tags tags;
    for (int slot = 0; slot < kSlots; ++slot) {
      tags[slot] = (word >> (kWordShift + slot * kFieldBits) & kFieldMask) << kTagShift |
                   (nibbles >> (4 * slot) & 15);
    }
    return tags;
  }
  // Bits of `word` behind the bucket are 0.
  static constexpr uint64_t Encode(Tags tags) {
    const auto order = [](uint64_t a, uint64_t b) {
      return (a & 15) != (b & 15) ? (a & 15) < (b & 15) : a < b;
    };
    for (const auto& [i, j] : {std::pair{0, 1}, {2, 3}, {0, 2}, {1, 3}, {1, 2}}) {
      if (order(tags[j], tags[i])) std::swap(tags[i], tags[j]);
    }
    uint64_t word = 0;
    uint32_t nibbles = 0;
    for (int slot = 0; slot < kSlots; ++slot) {
      word |= tags[slot] >> kTagShift << (kWordShift + slot * kFieldBits);
      nibbles |= (tags[slot] & 15) << (4 * slot);
    }
    return word | EncodeSortedNibbles(nibbles);
  }

  // The highest bit of each field that may belong to `tag`: its high bits are equal. The sums are
  // those of CuckooBucket::NonZeroSlots.
  static constexpr uint64_t Candidates(uint64_t word, uint64_t tag) {
    const uint64_t difference = word ^ (tag >> kTagShift) * kLowestBits;
    return ~(((difference & kOtherBits) + kOtherBits) | difference) & kHighestBits;
  }
  static bool IsAmong(uint64_t candidates, uint64_t word, uint64_t tag) {
    const uint64_t nibbles = kSortedNibbles[IndexOf(word)];
    for (; candidates != 0; candidates &= candidates - 1) {
      const int slot = (std::countr_zero(candidates) - kWordShift) / kFieldBits;
      if ((nibbles >> (4 * slot) & 15) == (tag & 15)) return true;
    }
    return false;
  }

  static bool Holds(const std::byte* bucket, uint64_t tag) {
    const uint64_t word = Load(bucket);
    const uint64_t candidates = Candidates(word, tag);
    return candidates != 0 && IsAmong(candidates, word, tag);
  }
  static int CountFree(const std::byte* bucket) {
    const Tags tags = Decode(Load(bucket));
    return static_cast<int>(std::count(tags.begin(), tags.end(), uint64_t{0}));
  }
  // The first slot with that tag, -1 if there is none.
  static int Find(const std::byte* bucket, uint64_t tag) {
    const Tags tags = Decode(Load(bucket));
    const auto at = std::find(tags.begin(), tags.end(), tag);
    return at == tags.end() ? -1 : static_cast<int>(at - tags.begin());
  }
  static uint64_t Get(const std::byte* bucket, int slot) { return Decode(Load(bucket))[slot]; }
  // All tags may get other slots.
  static void Set(std::byte* bucket, int slot, uint64_t tag) {
    Tags tags = Decode(Load(bucket));
    tags[slot] = tag;
    const uint64_t word = Encode(tags);
    std::memcpy(bucket, &word, kBytes);
  }
};

struct SemiSortedScheme : CuckooPlaces {
  static constexpr FilterInfo kInfo = {
      .name = "semi_sorted_cuckoo",
      .summary = "cuckoo filter that saves a bit per tag by sorting its buckets; insert and erase",
      .source = "Fan, Andersen, Kaminsky, Mitzenmacher 2014, section 5.2",
      .fpr_formula =
          "that of cuckoo with one more bit: sum over tags of p (1 - (1 - 2p/buckets)^n), "
          "p the tag's probability (Fan et al. 2014, section 5.1)",
      .hash_bits = 64,
  };
  static constexpr uint32_t kWireVersion = 1;
  static constexpr std::string_view kUnits = "buckets";

  enum class FingerprintBits { k9, k13, k17 };

  struct Params {
    FingerprintBits fingerprint_bits = FingerprintBits::k13;
    double load = 0.95;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Choice{"fingerprint_bits", &Params::fingerprint_bits,
             std::array<std::string_view, 3>{"9", "13", "17"}, "bits of a tag; it takes one less"},
      Knob<Params, double>{"load", &Params::load, 0.05, 0.98,
                           "share of the slots that the keys of the build fill"},
  };

  // A view that knows the width of its tags.
  template <int kBits>
  struct SizedView {
    using Bucket = SemiSortedBucket<kBits>;
    static constexpr int kTagBits = kBits;
    static constexpr bool by_xor = false;
    const std::byte* table;
    uint64_t buckets;
    uint64_t salt;
    bool prefetch;  // batched lookups prefetch their lines first

    CuckooPlace PlaceOf(uint64_t hash) const {
      return CuckooPlaces::PlaceOf<kBits>(hash, salt, buckets);
    }
    uint64_t PartnerOf(uint64_t bucket, uint64_t tag) const {
      return Partner(bucket, tag, buckets);
    }

    bool MayContain(uint64_t hash) const noexcept {
      const CuckooPlace place = PlaceOf(hash);
      const uint64_t first = Bucket::Load(table + place.bucket * Bucket::kBytes);
      const uint64_t second = Bucket::Load(table + place.partner * Bucket::kBytes);
      const uint64_t in_first = Bucket::Candidates(first, place.tag);
      const uint64_t in_second = Bucket::Candidates(second, place.tag);
      // One branch for both: nearly all absent keys end here.
      if ((in_first | in_second) == 0) return false;
      return Bucket::IsAmong(in_first, first, place.tag) ||
             Bucket::IsAmong(in_second, second, place.tag);
    }
  };

  struct View {
    const std::byte* table;
    uint64_t buckets;
    uint64_t salt;
    FingerprintBits fingerprint_bits;
    bool prefetch;

    template <class Use>
    decltype(auto) Specialize(Use&& use) const {
      switch (fingerprint_bits) {
        case FingerprintBits::k9:
          return use(SizedView<9>{table, buckets, salt, prefetch});
        case FingerprintBits::k13:
          return use(SizedView<13>{table, buckets, salt, prefetch});
        case FingerprintBits::k17:
          break;
      }
      return use(SizedView<17>{table, buckets, salt, prefetch});
    }
    bool MayContain(uint64_t hash) const noexcept {
      return Specialize([hash](const auto& view) { return view.MayContain(hash); });
    }
  };

  static View MakeView(const Params& params, const std::byte* table, uint64_t buckets,
                       uint64_t salt, bool prefetch) {
    return {table, buckets, salt, params.fingerprint_bits, prefetch};
  }

  static constexpr int TagBits(FingerprintBits bits) { return 9 + 4 * static_cast<int>(bits); }
  static constexpr uint64_t SlotsPerUnit(const Params&) { return 4; }
  static constexpr uint64_t UnitBytes(const Params& params) {
    return (TagBits(params.fingerprint_bits) - 1) / 2;
  }
  static uint64_t UnitsFor(uint64_t n, const Params& params);
  static uint64_t UnitsToInsert(uint64_t n, const Params& params);
  static uint64_t Grown(uint64_t buckets, const Params&) {
    return buckets + std::max<uint64_t>(1, buckets / 100);
  }
  static bool AllowsUnits(uint64_t, const Params&) { return true; }
  template <class Use>
  static decltype(auto) WithWriter(const View& view, std::byte* table, Use&& use);
  static Result<uint64_t> CountTags(const View& view);
  static FprEstimate Fpr(const View& view, uint64_t stored);
  // At a load of 0.95 with bits_per_key * 0.95 + 1 bits of tag, whole or not.
  static std::optional<double> TheoryFpr(double bits_per_key);
  static void AddDetails(const View&, uint64_t, Details&) {}
};

using SemiSortedCuckoo = TagFilter<SemiSortedScheme>;
template <>
std::span<const Kernel<SemiSortedScheme::View>> SemiSortedCuckoo::Kernels();
extern template class TagFilter<SemiSortedScheme>;

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CUCKOO_SEMI_SORTED_H_
