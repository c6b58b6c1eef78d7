#ifndef FILTERBENCH_FILTERS_CUCKOO_CUCKOO_H_
#define FILTERBENCH_FILTERS_CUCKOO_CUCKOO_H_

// Cuckoo filter.
//
// Idea: a key is kept as a short tag in one of two buckets, and each bucket follows from the other
// one and the tag alone, so that stored tags can move without their keys. A lookup costs two cache
// lines whatever the answer is; keys can be inserted and erased.
// Source: Fan, Andersen, Kaminsky, Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom",
// 2014. Two things differ from the paper: the number of buckets need not be a power of two
// (`CuckooPlaces`; the paper's XOR is a choice), and an insertion looks for a free slot before it
// moves anything (pair_writer-inl.h).
// Buckets have four slots; two compare half as many tags, which halves the rate at the same width,
// and fill to 0.84 only; eight double the rate and fill to 0.98.
// Limits: the rate is set by the width of the tag, in steps of a factor 16. When it loses: above
// about 0.4 % FPR a Bloom filter is smaller, and where keys are never erased ribbon and fuse
// filters are smaller at every rate. With partner = xor up to half of the table is air.
//
// Not thread-safe: Insert moves tags one store at a time, so that a reader beside it may miss a key
// that is on its way. Lookups of several threads are safe while nobody inserts or erases.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "filters/cuckoo/tag_filter.h"

namespace filterbench {

static_assert(std::endian::native == std::endian::little,
              "buckets are read as little-endian words, so that tables are the same everywhere");

// Slots of kBits bits packed into words of at most 64 bits: slot i of a word holds the bits
// [i kBits, (i + 1) kBits). A bucket of more than 64 bits is two words. Tag 0 marks a free slot.
template <int kBits, int kBucketSlots = 4>
struct CuckooBucket {
  static constexpr int kSlots = kBucketSlots;
  static constexpr int kWords = (kSlots * kBits + 63) / 64;
  static constexpr int kWordSlots = kSlots / kWords;
  static constexpr uint64_t kWordBytes = kWordSlots * kBits / 8;
  static constexpr uint64_t kBytes = kWords * kWordBytes;
  // What vectors compare: pair_lookup-inl.h.
  static constexpr int kFieldBits = kBits;
  static constexpr int kTagShift = 0;
  static constexpr int kWordShift = 0;
  static constexpr uint64_t kTagMask = (uint64_t{1} << kBits) - 1;
  static constexpr uint64_t kLowestBits = [] {
    uint64_t bits = 0;
    for (int slot = 0; slot < kWordSlots; ++slot) bits |= uint64_t{1} << (slot * kBits);
    return bits;
  }();
  static constexpr uint64_t kHighestBits = kLowestBits << (kBits - 1);
  static constexpr uint64_t kOtherBits = kHighestBits - kLowestBits;
  static_assert(kWordSlots * kBits % 8 == 0 && kWordSlots * kBits <= 64, "whole bytes of a word");

  // Reads no more than the word where a load of that size exists, otherwise 8 bytes, of which those
  // from kWordBytes on belong to others: they change no answer below.
  static uint64_t Load(const std::byte* word) {
    std::conditional_t<kWordBytes == 2, uint16_t,
                       std::conditional_t<kWordBytes == 4, uint32_t, uint64_t>>
        loaded;
    std::memcpy(&loaded, word, sizeof(loaded));
    return loaded;
  }
  static void Store(std::byte* word, uint64_t value) { std::memcpy(word, &value, kWordBytes); }

  static constexpr uint64_t Repeat(uint64_t tag) { return tag * kLowestBits; }
  static constexpr uint64_t Tag(uint64_t word, int slot) {
    return word >> (slot * kBits) & kTagMask;
  }
  static constexpr uint64_t WithTag(uint64_t word, int slot, uint64_t tag) {
    return (word & ~(kTagMask << (slot * kBits))) | tag << (slot * kBits);
  }

  // The highest bit of each slot that is not zero, other bits arbitrary. Exact: the sum of a slot's
  // lower bits and kBits - 1 ones is at most 2^kBits - 2 and carries into the slot's own highest
  // bit and never further.
  static constexpr uint64_t NonZeroSlots(uint64_t word) {
    return ((word & kOtherBits) + kOtherBits) | word;
  }
  // The highest bit of each slot that holds `tag`, no other bit.
  static constexpr uint64_t SlotsWith(uint64_t word, uint64_t tag) {
    return ~NonZeroSlots(word ^ Repeat(tag)) & kHighestBits;
  }
  static constexpr uint64_t FreeSlots(uint64_t word) { return ~NonZeroSlots(word) & kHighestBits; }
  // Of a non-empty set of slots in the form of SlotsWith.
  static constexpr int FirstSlot(uint64_t slots) { return std::countr_zero(slots) / kBits; }

  // --- The whole bucket, its slots counted through its words ---

  // Not 0 where a slot holds `tag`.
  static uint64_t Match(const std::byte* bucket, uint64_t tag) {
    uint64_t found = 0;
    for (int i = 0; i < kWords; ++i) found |= SlotsWith(Load(bucket + i * kWordBytes), tag);
    return found;
  }
  static bool Holds(const std::byte* bucket, uint64_t tag) { return Match(bucket, tag) != 0; }
  static int CountFree(const std::byte* bucket) {
    int count = 0;
    for (int i = 0; i < kWords; ++i) {
      count += std::popcount(FreeSlots(Load(bucket + i * kWordBytes)));
    }
    return count;
  }
  // The first slot with that tag, -1 if there is none.
  static int Find(const std::byte* bucket, uint64_t tag) {
    for (int i = 0; i < kWords; ++i) {
      const uint64_t slots = SlotsWith(Load(bucket + i * kWordBytes), tag);
      if (slots != 0) return i * kWordSlots + FirstSlot(slots);
    }
    return -1;
  }
  static uint64_t Get(const std::byte* bucket, int slot) {
    return Tag(Load(bucket + slot / kWordSlots * kWordBytes), slot % kWordSlots);
  }
  static void Set(std::byte* bucket, int slot, uint64_t tag) {
    std::byte* word = bucket + slot / kWordSlots * kWordBytes;
    Store(word, WithTag(Load(word), slot % kWordSlots, tag));
  }
};

// Where a key may lie.
struct CuckooPlace {
  uint64_t tag;
  uint64_t bucket;
  uint64_t partner;
};

// From hashes to tags and buckets, the same for all filters whose tags lie in one of two buckets.
struct CuckooPlaces {
  // The tag of a salted hash: its low bits, which FastRange64 hardly looks at (below 2^35 buckets
  // they decide one key in 2^13 at most). 0 means free and becomes 1.
  template <int kBits>
  static constexpr uint64_t TagOf(uint64_t salted) {
    const uint64_t tag = salted & ((uint64_t{1} << kBits) - 1);
    return tag + (tag == 0 ? 1 : 0);
  }

  // The two buckets of a tag add up to this number in [0, buckets), modulo `buckets`. The
  // multiplications are 32 bits wide for the sake of vectors; the shift between them keeps the sum
  // of two tags from having the sum of their values, since paths through the table would otherwise
  // reach only as many buckets as there are sums of tags. 32 bits are enough at any number of
  // buckets: there are no more values than tags, and `bucket` is uniform by itself.
  static constexpr uint64_t PairSum(uint64_t tag, uint64_t buckets) {
    const uint64_t once = tag * kPairMultiplier1;
    const uint64_t twice = static_cast<uint32_t>(once ^ once >> 15) * kPairMultiplier2;
    return MulHigh64(twice << 32, buckets);
  }
  static constexpr uint64_t kPairMultiplier1 = 0x9e3779b1;  // odd, near 2^32 / golden ratio
  static constexpr uint64_t kPairMultiplier2 = 0x85ebca77;  // odd, bits without pattern

  // The other bucket of a tag in `bucket`: an involution for every number of buckets, even or odd,
  // since sum - (sum - b) = b (mod buckets). XOR, as in the paper, is one only for powers of two.
  // 2 b = sum (mod buckets) makes b its own partner: one bucket of each tag if the number is odd,
  // two or none if it is even, one key in `buckets` in the mean. Such a key has four slots instead
  // of eight, and such a lookup reads one bucket twice.
  static constexpr uint64_t Partner(uint64_t bucket, uint64_t tag, uint64_t buckets) {
    const uint64_t sum = PairSum(tag, buckets);
    return sum - bucket + (sum < bucket ? buckets : 0);
  }

  // The same for powers of two, as in the paper: b xor a number that follows from the tag. It is
  // never 0 in tables of two buckets and more, so that every key has two buckets.
  static constexpr uint64_t XorPartner(uint64_t bucket, uint64_t tag, uint64_t buckets) {
    return bucket ^ (PairSum(tag, buckets - 1) + (buckets == 1 ? 0 : 1));
  }

  template <int kBits>
  static constexpr CuckooPlace PlaceOf(uint64_t hash, uint64_t salt, uint64_t buckets,
                                       bool by_xor = false) {
    const uint64_t salted = hash ^ salt;
    const uint64_t tag = TagOf<kBits>(salted);
    const uint64_t bucket = FastRange64(salted, buckets);
    return {tag, bucket, PartnerOf(bucket, tag, buckets, by_xor)};
  }
  // A branch that never changes, not a choice between two results: that would compute both.
  static constexpr uint64_t PartnerOf(uint64_t bucket, uint64_t tag, uint64_t buckets,
                                      bool by_xor) {
    if (by_xor) [[unlikely]] {
      return XorPartner(bucket, tag, buckets);
    }
    return Partner(bucket, tag, buckets);
  }
};

struct CuckooScheme : CuckooPlaces {
  static constexpr FilterInfo kInfo = {
      .name = "cuckoo",
      .summary = "tags of 8, 12 or 16 bits in one of two buckets of 2, 4 or 8; insert and erase",
      .source = "Fan, Andersen, Kaminsky, Mitzenmacher 2014",
      .fpr_formula =
          "sum over tags of p (1 - (1 - 2p/buckets)^n), p the tag's probability: about "
          "1 - (1 - q)^(2 slots load), q = (2^f + 2) / 4^f (Fan et al. 2014, section "
          "5.1)",
      .hash_bits = 64,
  };
  static constexpr uint32_t kWireVersion = 2;
  static constexpr std::string_view kUnits = "buckets";

  enum class FingerprintBits { k8, k12, k16 };
  enum class Slots { k2, k4, k8 };
  enum class PartnerKind { kInvolution, kXor };

  struct Params {
    FingerprintBits fingerprint_bits = FingerprintBits::k12;
    Slots slots = Slots::k4;
    PartnerKind partner = PartnerKind::kInvolution;
    double load = 0;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Choice{"fingerprint_bits", &Params::fingerprint_bits,
             std::array<std::string_view, 3>{"8", "12", "16"}, "bits of a stored tag"},
      Choice{"slots", &Params::slots, std::array<std::string_view, 3>{"2", "4", "8"},
             "slots of a bucket"},
      Choice{"partner", &Params::partner, std::array<std::string_view, 2>{"involution", "xor"},
             "how the second bucket is found; xor takes tables of a power of two of buckets"},
      Knob<Params, double>{"load", &Params::load, 0, 0.98,
                           "share of the slots that the keys of the build fill; 0 takes 0.84, 0.95 "
                           "or 0.98 for 2, 4 or 8 slots"},
  };

  using Place = CuckooPlace;

  // A view that knows the layout of its buckets.
  template <int kBits, int kSlots>
  struct SizedView {
    using Bucket = CuckooBucket<kBits, kSlots>;
    static constexpr int kTagBits = kBits;
    const std::byte* table;
    uint64_t buckets;
    uint64_t salt;
    bool prefetch;  // batched lookups prefetch their lines first
    bool by_xor;    // decided outside of loops, since it never changes: not worth twice the code

    CuckooPlace PlaceOf(uint64_t hash) const {
      return CuckooPlaces::PlaceOf<kBits>(hash, salt, buckets, by_xor);
    }
    uint64_t PartnerOf(uint64_t bucket, uint64_t tag) const {
      return CuckooPlaces::PartnerOf(bucket, tag, buckets, by_xor);
    }

    bool MayContain(uint64_t hash) const noexcept {
      const CuckooPlace place = PlaceOf(hash);
      const std::byte* first = table + place.bucket * Bucket::kBytes;
      const std::byte* second = table + place.partner * Bucket::kBytes;
      // Both without a branch between them: a negative answer needs both, and the two lines may
      // arrive together.
      return (Bucket::Match(first, place.tag) | Bucket::Match(second, place.tag)) != 0;
    }
  };

  struct View {
    const std::byte* table;
    uint64_t buckets;
    uint64_t salt;
    FingerprintBits fingerprint_bits;
    bool prefetch;
    Slots slots = Slots::k4;
    PartnerKind partner = PartnerKind::kInvolution;

    template <int kSlots, class Use>
    decltype(auto) SpecializeBits(Use&& use) const {
      const bool by_xor = partner == PartnerKind::kXor;
      switch (fingerprint_bits) {
        case FingerprintBits::k8:
          return use(SizedView<8, kSlots>{table, buckets, salt, prefetch, by_xor});
        case FingerprintBits::k12:
          return use(SizedView<12, kSlots>{table, buckets, salt, prefetch, by_xor});
        case FingerprintBits::k16:
          break;
      }
      return use(SizedView<16, kSlots>{table, buckets, salt, prefetch, by_xor});
    }

    template <class Use>
    decltype(auto) Specialize(Use&& use) const {
      switch (slots) {
        case Slots::k2:
          return SpecializeBits<2>(use);
        case Slots::k4:
          return SpecializeBits<4>(use);
        case Slots::k8:
          break;
      }
      return SpecializeBits<8>(use);
    }
    bool MayContain(uint64_t hash) const noexcept {
      return Specialize([hash](const auto& view) { return view.MayContain(hash); });
    }
  };

  static View MakeView(const Params& params, const std::byte* table, uint64_t buckets,
                       uint64_t salt, bool prefetch) {
    return {table, buckets, salt, params.fingerprint_bits, prefetch, params.slots, params.partner};
  }

  static constexpr int TagBits(const Params& params) {
    return 8 + 4 * static_cast<int>(params.fingerprint_bits);
  }
  static constexpr uint64_t SlotsPerUnit(const Params& params) {
    return uint64_t{2} << static_cast<int>(params.slots);
  }
  static constexpr uint64_t UnitBytes(const Params& params) {
    return SlotsPerUnit(params) * TagBits(params) / 8;
  }
  static uint64_t UnitsFor(uint64_t n, const Params& params);
  static uint64_t UnitsToInsert(uint64_t n, const Params& params);
  static uint64_t Grown(uint64_t buckets, const Params& params);
  static bool AllowsUnits(uint64_t buckets, const Params& params) {
    return params.partner == PartnerKind::kInvolution || std::has_single_bit(buckets);
  }
  template <class Use>
  static decltype(auto) WithWriter(const View& view, std::byte* table, Use&& use);
  static Result<uint64_t> CountTags(const View& view);
  static FprEstimate Fpr(const View& view, uint64_t stored);
  // At a load of 0.95 with bits_per_key * 0.95 bits of tag, whole or not, in buckets of four.
  static std::optional<double> TheoryFpr(double bits_per_key);
  static void AddDetails(const View&, uint64_t, Details&) {}
};

using Cuckoo = TagFilter<CuckooScheme>;
template <>
std::span<const Kernel<CuckooScheme::View>> Cuckoo::Kernels();
extern template class TagFilter<CuckooScheme>;

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CUCKOO_CUCKOO_H_
