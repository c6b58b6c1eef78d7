#ifndef FILTERBENCH_FILTERS_CUCKOO_WINDOWED_H_
#define FILTERBENCH_FILTERS_CUCKOO_WINDOWED_H_

// Windowed cuckoo filter: buckets overlap.
//
// Idea: a bucket is a window of two slots that starts at any slot, so that neighbours share one.
// Windows of two fill to 0.965 of the slots, nearly as far as buckets of four (0.980), while
// disjoint buckets of two stop at 0.897; and a lookup compares four slots instead of eight. Half as
// many comparisons are half the rate of `cuckoo` at the same number of bits.
// Source: Schmitz, Zentgraf, Rahmann, "Smaller and More Flexible Cuckoo Filters", 2025; thresholds
// of overlapping blocks: Walzer, "Load Thresholds for Cuckoo Hashing with Overlapping Blocks",
// 2018.
// A slot has to say which of the two windows over it its tag belongs to. It costs a bit of the slot
// and no accuracy, since that bit is compared too: a tag in the wrong half of a window is no match.
// Limits: those of `cuckoo`. When it loses: against the same rate by four slots it is the slower
// one to build, since with fewer places per key more tags have to move; windows may lie across
// lines.
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
#include <type_traits>

#include "filters/cuckoo/cuckoo.h"
#include "filters/cuckoo/tag_filter.h"

namespace filterbench {

// Slots of kBits bits one after the other: slot i holds the bits [i kBits, (i + 1) kBits) of the
// table in little-endian order. A taken slot holds 2 tag + half: the tag lies in half 0 or 1 of its
// window, which starts at slot i - half. Tags are not 0, and 0 is a free slot.
template <int kBits>
struct WindowedSlots {
  static constexpr int kTagBits = kBits - 1;
  static constexpr uint64_t kSlotMask = (uint64_t{1} << kBits) - 1;
  static constexpr uint64_t kLowestBits = uint64_t{1} | uint64_t{1} << kBits;
  static constexpr uint64_t kHighestBits = kLowestBits << (kBits - 1);
  static constexpr uint64_t kOtherBits = kHighestBits - kLowestBits;
  static constexpr uint64_t kSecondHalf = uint64_t{1} << kBits;

  static constexpr uint64_t ByteOf(uint64_t slot) { return slot * kBits / 8; }
  static constexpr int ShiftOf(uint64_t slot) { return static_cast<int>(slot * kBits % 8); }

  // The window that starts at `slot` in the lowest 2 kBits bits; those above belong to others.
  static uint64_t Window(const std::byte* table, uint64_t slot) {
    std::conditional_t<kBits == 8, uint16_t, uint32_t> word;
    std::memcpy(&word, table + ByteOf(slot), sizeof(word));
    return word >> ShiftOf(slot);
  }
  static uint64_t Get(const std::byte* table, uint64_t slot) {
    uint16_t word;
    std::memcpy(&word, table + ByteOf(slot), sizeof(word));
    return word >> ShiftOf(slot) & kSlotMask;
  }
  static void Set(std::byte* table, uint64_t slot, uint64_t value) {
    std::conditional_t<kBits == 8, uint8_t, uint16_t> word;
    std::memcpy(&word, table + ByteOf(slot), sizeof(word));
    word = static_cast<decltype(word)>((word & ~(kSlotMask << ShiftOf(slot))) |
                                       value << ShiftOf(slot));
    std::memcpy(table + ByteOf(slot), &word, sizeof(word));
  }

  // What a window holds where `tag` lies in both halves.
  static constexpr uint64_t Pattern(uint64_t tag) { return (tag << 1) * kLowestBits + kSecondHalf; }
  // The highest bit of each half of `window` that holds `tag`; see CuckooBucket::SlotsWith.
  static constexpr uint64_t HalvesWith(uint64_t window, uint64_t tag) {
    const uint64_t difference = window ^ Pattern(tag);
    return ~(((difference & kOtherBits) + kOtherBits) | difference) & kHighestBits;
  }
  static constexpr uint64_t FreeHalves(uint64_t window) {
    return ~(((window & kOtherBits) + kOtherBits) | window) & kHighestBits;
  }
  // Of a non-empty set of halves.
  static constexpr uint64_t FirstHalf(uint64_t halves) { return std::countr_zero(halves) / kBits; }
};

struct WindowedScheme : CuckooPlaces {
  static constexpr FilterInfo kInfo = {
      .name = "windowed_cuckoo",
      .summary =
          "cuckoo filter whose buckets are overlapping windows of two slots; insert and erase",
      .source = "Schmitz, Zentgraf, Rahmann 2025",
      .fpr_formula =
          "sum over tags of p (1 - (1 - 2p/windows)^n), p the probability of a tag of f - 1 "
          "bits in slots of f: about 4 load / 2^f (Schmitz et al. 2025; exact as in Fan et "
          "al. 2014, section 5.1)",
      .hash_bits = 64,
  };
  static constexpr uint32_t kWireVersion = 1;
  static constexpr std::string_view kUnits = "slot_pairs";

  enum class SlotBits { k8, k12, k16 };

  struct Params {
    SlotBits slot_bits = SlotBits::k12;
    double load = 0.95;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Choice{"slot_bits", &Params::slot_bits, std::array<std::string_view, 3>{"8", "12", "16"},
             "bits of a slot: a tag, and one that tells which half of its window it lies in"},
      Knob<Params, double>{"load", &Params::load, 0.05, 0.96,
                           "share of the slots that the keys of the build fill"},
  };

  // A view that knows the width of its slots. `bucket` and `partner` of a place are the first slots
  // of its windows.
  template <int kBits>
  struct SizedView {
    using Slots = WindowedSlots<kBits>;
    const std::byte* table;
    uint64_t windows;
    uint64_t salt;
    bool prefetch;  // batched lookups prefetch their lines first

    CuckooPlace PlaceOf(uint64_t hash) const {
      return CuckooPlaces::PlaceOf<Slots::kTagBits>(hash, salt, windows);
    }
    uint64_t PartnerOf(uint64_t window, uint64_t tag) const {
      return Partner(window, tag, windows);
    }

    bool MayContain(uint64_t hash) const noexcept {
      const CuckooPlace place = PlaceOf(hash);
      const uint64_t first = Slots::Window(table, place.bucket);
      const uint64_t second = Slots::Window(table, place.partner);
      return (Slots::HalvesWith(first, place.tag) | Slots::HalvesWith(second, place.tag)) != 0;
    }
  };

  struct View {
    const std::byte* table;
    uint64_t windows;
    uint64_t salt;
    SlotBits slot_bits;
    bool prefetch;

    template <class Use>
    decltype(auto) Specialize(Use&& use) const {
      switch (slot_bits) {
        case SlotBits::k8:
          return use(SizedView<8>{table, windows, salt, prefetch});
        case SlotBits::k12:
          return use(SizedView<12>{table, windows, salt, prefetch});
        case SlotBits::k16:
          break;
      }
      return use(SizedView<16>{table, windows, salt, prefetch});
    }
    bool MayContain(uint64_t hash) const noexcept {
      return Specialize([hash](const auto& view) { return view.MayContain(hash); });
    }
  };

  // A table is made of pairs of slots, which are whole bytes: an odd number of windows.
  static View MakeView(const Params& params, const std::byte* table, uint64_t pairs, uint64_t salt,
                       bool prefetch) {
    return {table, 2 * pairs - 1, salt, params.slot_bits, prefetch};
  }

  static constexpr int BitsOf(SlotBits bits) { return 8 + 4 * static_cast<int>(bits); }
  static constexpr uint64_t SlotsPerUnit(const Params&) { return 2; }
  static constexpr uint64_t UnitBytes(const Params& params) { return BitsOf(params.slot_bits) / 4; }
  static uint64_t UnitsFor(uint64_t n, const Params& params);
  static uint64_t UnitsToInsert(uint64_t n, const Params& params);
  static uint64_t Grown(uint64_t pairs, const Params&) {
    return pairs + std::max<uint64_t>(1, pairs / 100);
  }
  static bool AllowsUnits(uint64_t, const Params&) { return true; }
  template <class Use>
  static decltype(auto) WithWriter(const View& view, std::byte* table, Use&& use);
  static Result<uint64_t> CountTags(const View& view);
  static FprEstimate Fpr(const View& view, uint64_t stored);
  // At a load of 0.95 with slots of bits_per_key * 0.95 bits, whole or not.
  static std::optional<double> TheoryFpr(double bits_per_key);
  static void AddDetails(const View&, uint64_t, Details&) {}
};

using WindowedCuckoo = TagFilter<WindowedScheme>;
template <>
std::span<const Kernel<WindowedScheme::View>> WindowedCuckoo::Kernels();
extern template class TagFilter<WindowedScheme>;

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CUCKOO_WINDOWED_H_
