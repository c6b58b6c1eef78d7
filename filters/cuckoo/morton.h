#ifndef FILTERBENCH_FILTERS_CUCKOO_MORTON_H_
#define FILTERBENCH_FILTERS_CUCKOO_MORTON_H_

// Morton filter: a sparse cuckoo filter, compressed into cache lines.
//
// Idea: many small buckets of three slots, most of them hardly filled, share a block of one cache
// line that stores only the taken slots; a counter of two bits per bucket says where they are. A
// key goes to its first bucket if it can, and one bit, shared by a few buckets, remembers whether a
// key ever had to leave: most absent keys are denied after one line and less than one comparison,
// so that the rate is lower than that of `cuckoo` with the same tags.
// Source: Breslow, Jayasena, "Morton Filters: Faster, Space-Efficient Cuckoo Filters via Biasing,
// Compression, and Decoupled Logical Sparsity", 2018. The block for tags of 8 bits is the paper's
// (46 tags, 64 buckets, 16 overflow bits); those for 12 and 16 bits are made in the same way. The
// second bucket may lie anywhere (`CuckooPlaces::Partner`), where the paper keeps it near the
// first.
// Limits: overflow bits are never cleared, so that a filter whose keys come and go reads two lines
// more and more often. When it loses: in cache, where counting bits costs more than the second line
// saves; and below about 0.1 % FPR `ribbon` and `binary_fuse` are smaller where keys never leave.
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

#include "filters/cuckoo/cuckoo.h"
#include "filters/cuckoo/tag_filter.h"

namespace filterbench {

// A block of 64 bytes: from bit 0 on the tags of all its buckets without gaps, in the order of the
// buckets; at kCountersByte two bits for each bucket, the number of its tags; in the last two bytes
// the overflow bits. Slots behind the last tag are 0.
template <int kBits>
struct MortonBlock {
  static_assert(kBits == 8 || kBits == 12 || kBits == 16);
  static constexpr uint64_t kBytes = 64;
  static constexpr int kBucketSlots = 3;
  static constexpr int kSlots = kBits == 8 ? 46 : kBits == 12 ? 34 : 26;
  static constexpr int kBuckets = kBits == 8 ? 64 : kBits == 12 ? 44 : 40;
  static constexpr int kOverflowBits = 16;
  static constexpr int kCountersByte = kSlots * kBits / 8;
  static constexpr int kOverflowByte = 62;
  static_assert(kSlots * kBits % 8 == 0 && kBuckets % 4 == 0);
  static_assert(kCountersByte + kBuckets / 4 == kOverflowByte);

  static constexpr uint64_t kTagMask = (uint64_t{1} << kBits) - 1;
  static constexpr uint64_t kLowestBits =
      uint64_t{1} | uint64_t{1} << kBits | uint64_t{1} << (2 * kBits);
  static constexpr uint64_t kHighestBits = kLowestBits << (kBits - 1);
  static constexpr uint64_t kOtherBits = kHighestBits - kLowestBits;

  static uint64_t Word(const std::byte* block, int byte) {
    uint64_t word;
    std::memcpy(&word, block + byte, sizeof(word));
    return word;
  }
  // Counters of the first 32 buckets, and those of the others below bits without meaning.
  static uint64_t LowCounters(const std::byte* block) { return Word(block, kCountersByte); }
  static uint64_t HighCounters(const std::byte* block) {
    constexpr int kByte = std::min(kCountersByte + 8, 56);  // no further than the block
    return Word(block, kByte) >> (8 * (kCountersByte + 8 - kByte));
  }
  static int Count(const std::byte* block, int bucket) {
    return static_cast<int>(block[kCountersByte + bucket / 4]) >> (2 * (bucket % 4)) & 3;
  }
  // Tags in the buckets before `bucket`, which may be kBuckets. Without a branch: which half of the
  // block a key goes to nobody can predict.
  [[gnu::always_inline]] static int CountBefore(const std::byte* block, int bucket) {
    constexpr uint64_t kTwos = 0xaaaaaaaaaaaaaaaa;
    const uint64_t below = (uint64_t{1} << (2 * bucket % 64)) - 1;
    const uint64_t low = LowCounters(block) & (bucket < 32 ? below : ~uint64_t{0});
    const uint64_t high = HighCounters(block) & (bucket < 32   ? 0
                                                 : bucket < 64 ? below
                                                               : ~uint64_t{0});
    // Each bit once, those of the value two twice.
    return std::popcount(low) + std::popcount(high) +
           std::popcount((low & kTwos) >> 1 | (high & kTwos));
  }
  static int CountAll(const std::byte* block) { return CountBefore(block, kBuckets); }

  static bool Overflowed(const std::byte* block, int bucket) {
    const int bit = bucket % kOverflowBits;
    return (static_cast<int>(block[kOverflowByte + bit / 8]) >> (bit % 8) & 1) != 0;
  }
  static void SetOverflowed(std::byte* block, int bucket) {
    const int bit = bucket % kOverflowBits;
    block[kOverflowByte + bit / 8] |= std::byte{1} << (bit % 8);
  }

  // Three tags and more from `slot` on, the first one lowest.
  static uint64_t TagsFrom(const std::byte* block, int slot) {
    return Word(block, slot * kBits / 8) >> (slot * kBits % 8);
  }
  static uint64_t Tag(const std::byte* block, int slot) { return TagsFrom(block, slot) & kTagMask; }

  // Which of the first three slots of `tags` hold `tag`, as their highest bits; see
  // CuckooBucket::SlotsWith.
  static constexpr uint64_t SlotsWith(uint64_t tags, uint64_t tag) {
    const uint64_t difference = tags ^ tag * kLowestBits;
    return ~(((difference & kOtherBits) + kOtherBits) | difference) & kHighestBits;
  }
  // The slot of the block where `bucket` holds `tag`, -1 if it does not.
  static int Find(const std::byte* block, int bucket, uint64_t tag) {
    const int first = CountBefore(block, bucket);
    const uint64_t found = SlotsWith(TagsFrom(block, first), tag) &
                           ((uint64_t{1} << (Count(block, bucket) * kBits)) - 1);
    return found == 0 ? -1 : first + std::countr_zero(found) / kBits;
  }
  [[gnu::always_inline]] static bool Holds(const std::byte* block, int bucket, uint64_t tag) {
    const uint64_t tags = TagsFrom(block, CountBefore(block, bucket));
    return (SlotsWith(tags, tag) & ((uint64_t{1} << (Count(block, bucket) * kBits)) - 1)) != 0;
  }

  static bool HasRoom(const std::byte* block, int bucket) {
    return Count(block, bucket) < kBucketSlots && CountAll(block) < kSlots;
  }
  // Only where there is room: behind the tags of the bucket, all later ones move up.
  static void Add(std::byte* block, int bucket, uint64_t tag) {
    const int slot = CountBefore(block, bucket) + Count(block, bucket);
    Words words = Read(block);
    const int at = slot * kBits / 64;
    const int shift = slot * kBits % 64;
    const uint64_t before = words[at] & ((uint64_t{1} << shift) - 1);
    Wide wide = static_cast<Wide>(words[at] ^ before) << kBits | static_cast<Wide>(tag) << shift;
    words[at] = before | static_cast<uint64_t>(wide);
    for (int i = at + 1; i < kTagWords; ++i) {
      wide = static_cast<Wide>(words[i]) << kBits | wide >> 64;
      words[i] = static_cast<uint64_t>(wide);
    }
    Write(block, words);
    block[kCountersByte + bucket / 4] = static_cast<std::byte>(
        static_cast<int>(block[kCountersByte + bucket / 4]) + (1 << (2 * (bucket % 4))));
  }
  // The tag in a slot of that bucket; all later ones move down.
  static void Remove(std::byte* block, int bucket, int slot) {
    Words words = Read(block);
    const int at = slot * kBits / 64;
    const uint64_t below = (uint64_t{1} << (slot * kBits % 64)) - 1;
    const uint64_t before = words[at] & below;
    for (int i = at; i < kTagWords; ++i) {
      const uint64_t next = i + 1 < kTagWords ? words[i + 1] : 0;
      words[i] = words[i] >> kBits | next << (64 - kBits);
    }
    words[at] = (words[at] & ~below) | before;
    Write(block, words);
    block[kCountersByte + bucket / 4] = static_cast<std::byte>(
        static_cast<int>(block[kCountersByte + bucket / 4]) - (1 << (2 * (bucket % 4))));
  }

 private:
  static constexpr int kTagWords = (kSlots * kBits + 63) / 64;
  using Wide = unsigned __int128;
  using Words = std::array<uint64_t, kTagWords>;

  // All tags, and zeros behind them.
  static Words Read(const std::byte* block) {
    Words words = {};
    std::memcpy(words.data(), block, kCountersByte);
    return words;
  }
  static void Write(std::byte* block, const Words& words) {
    std::memcpy(block, words.data(), kCountersByte);
  }
};

struct MortonScheme : CuckooPlaces {
  static constexpr FilterInfo kInfo = {
      .name = "morton",
      .summary =
          "cuckoo filter compressed into cache lines, one line for most absent keys; insert "
          "and erase",
      .source = "Breslow, Jayasena 2018",
      .fpr_formula =
          "sum over tags of p (1 - (1 - p (1 + g)/buckets)^n), p the tag's probability, g "
          "the share of stored tags whose other bucket has overflowed (Breslow and "
          "Jayasena 2018, section 5, with g for the second bucket)",
      .hash_bits = 64,
  };
  static constexpr uint32_t kWireVersion = 1;
  static constexpr std::string_view kUnits = "blocks";

  enum class FingerprintBits { k8, k12, k16 };

  struct Params {
    FingerprintBits fingerprint_bits = FingerprintBits::k8;
    double load = 0.95;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Choice{"fingerprint_bits", &Params::fingerprint_bits,
             std::array<std::string_view, 3>{"8", "12", "16"}, "bits of a stored tag"},
      Knob<Params, double>{"load", &Params::load, 0.05, 0.97,
                           "share of the slots that the keys of the build fill"},
  };

  // A view that knows the layout of its blocks. Inlined by force: a call would leave the loops of a
  // target for code without its instruction that counts bits.
  template <int kBits>
  struct SizedView {
    using Block = MortonBlock<kBits>;
    static constexpr int kTagBits = kBits;
    const std::byte* table;
    uint64_t buckets;
    uint64_t salt;
    bool prefetch;  // batched lookups prefetch their lines first

    const std::byte* BlockOf(uint64_t bucket) const {
      return table + bucket / Block::kBuckets * Block::kBytes;
    }
    static int InBlock(uint64_t bucket) { return static_cast<int>(bucket % Block::kBuckets); }
    CuckooPlace PlaceOf(uint64_t hash) const {
      return CuckooPlaces::PlaceOf<kBits>(hash, salt, buckets);
    }
    uint64_t PartnerOf(uint64_t bucket, uint64_t tag) const {
      return Partner(bucket, tag, buckets);
    }

    [[gnu::always_inline]] bool MayContain(uint64_t hash) const noexcept {
      const uint64_t salted = hash ^ salt;
      return MayContain(TagOf<kBits>(salted), FastRange64(salted, buckets));
    }
    [[gnu::always_inline]] bool MayContain(uint64_t tag, uint64_t bucket) const noexcept {
      return Holds(bucket, tag) || (Overflowed(bucket) && Holds(PartnerOf(bucket, tag), tag));
    }
    [[gnu::always_inline]] bool Holds(uint64_t bucket, uint64_t tag) const noexcept {
      return Block::Holds(BlockOf(bucket), InBlock(bucket), tag);
    }
    // Whether keys of that bucket, or of those that share its bit, may be in their second one.
    [[gnu::always_inline]] bool Overflowed(uint64_t bucket) const noexcept {
      return Block::Overflowed(BlockOf(bucket), InBlock(bucket));
    }
  };

  struct View {
    const std::byte* table;
    uint64_t blocks;
    uint64_t salt;
    FingerprintBits fingerprint_bits;
    bool prefetch;

    template <class Use>
    decltype(auto) Specialize(Use&& use) const {
      switch (fingerprint_bits) {
        case FingerprintBits::k8:
          return use(SizedView<8>{table, blocks * MortonBlock<8>::kBuckets, salt, prefetch});
        case FingerprintBits::k12:
          return use(SizedView<12>{table, blocks * MortonBlock<12>::kBuckets, salt, prefetch});
        case FingerprintBits::k16:
          break;
      }
      return use(SizedView<16>{table, blocks * MortonBlock<16>::kBuckets, salt, prefetch});
    }
    bool MayContain(uint64_t hash) const noexcept {
      return Specialize([hash](const auto& view) { return view.MayContain(hash); });
    }
  };

  static View MakeView(const Params& params, const std::byte* table, uint64_t blocks, uint64_t salt,
                       bool prefetch) {
    return {table, blocks, salt, params.fingerprint_bits, prefetch};
  }

  static constexpr uint64_t SlotsPerUnit(const Params& params) {
    constexpr uint64_t kSlots[] = {MortonBlock<8>::kSlots, MortonBlock<12>::kSlots,
                                   MortonBlock<16>::kSlots};
    return kSlots[static_cast<int>(params.fingerprint_bits)];
  }
  static constexpr uint64_t UnitBytes(const Params&) { return 64; }
  static uint64_t UnitsFor(uint64_t n, const Params& params);
  static uint64_t UnitsToInsert(uint64_t n, const Params& params);
  static uint64_t Grown(uint64_t blocks, const Params&) {
    return blocks + std::max<uint64_t>(1, blocks / 100);
  }
  static bool AllowsUnits(uint64_t, const Params&) { return true; }
  template <class Use>
  static decltype(auto) WithWriter(const View& view, std::byte* table, Use&& use);
  static Result<uint64_t> CountTags(const View& view);
  // With the overflow that the table has now, counted in at most 2^16 blocks.
  static FprEstimate Fpr(const View& view, uint64_t stored);
  // At a load of 0.95, for tags of a width between the three that there are.
  static std::optional<double> TheoryFpr(double bits_per_key);
  // `second_lookups`: the share of absent keys that ask for their second bucket.
  static void AddDetails(const View& view, uint64_t stored, Details& details);
};

using Morton = TagFilter<MortonScheme>;
template <>
std::span<const Kernel<MortonScheme::View>> Morton::Kernels();
extern template class TagFilter<MortonScheme>;

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CUCKOO_MORTON_H_
