#include "filters/cuckoo/windowed.h"

#include <fmt/format.h>

#include "filters/cuckoo/tag_filter-inl.h"
#include "filters/theory/cuckoo.h"

namespace filterbench {
namespace {

constexpr double kTheoryLoad = 0.95;

// What changes a table of overlapping windows.
template <class View>
class WindowWriter {
  using Slots = typename View::Slots;

 public:
  using Place = CuckooPlace;
  // Slots that an insertion looks through before it gives up. Near their threshold windows need
  // long searches: 1024 slots end at a load of 0.935, 8192 at 0.955. Most searches are short, and
  // are spared the clearing of a large set.
  static constexpr size_t kFewSlots = 256;
  static constexpr size_t kMaxSearchedSlots = 8192;

  WindowWriter(const View& view, std::byte* table) : view_(view), table_(table) {}

  Place PlaceOf(uint64_t hash) const { return view_.PlaceOf(hash); }
  void Prefetch(const Place& place) const {
    __builtin_prefetch(table_ + Slots::ByteOf(place.bucket), 1);
    __builtin_prefetch(table_ + Slots::ByteOf(place.partner), 1);
  }

  bool Contains(const Place& place) const {
    return (HalvesWith(place.bucket, place.tag) | HalvesWith(place.partner, place.tag)) != 0;
  }

  // Into the emptier of the two windows; where both are full, by moving others.
  bool Insert(const Place& place) {
    const uint64_t first_free = Slots::FreeHalves(Slots::Window(table_, place.bucket));
    const uint64_t second_free = Slots::FreeHalves(Slots::Window(table_, place.partner));
    if ((first_free | second_free) == 0) {
      return InsertByMoving<kFewSlots>(place) || InsertByMoving<kMaxSearchedSlots>(place);
    }
    const bool to_second = std::popcount(second_free) > std::popcount(first_free);
    const uint64_t half = Slots::FirstHalf(to_second ? second_free : first_free);
    Store((to_second ? place.partner : place.bucket) + half, half, place.tag);
    return true;
  }

  bool Erase(const Place& place) {
    for (const uint64_t window : {place.bucket, place.partner}) {
      const uint64_t halves = HalvesWith(window, place.tag);
      if (halves != 0) {
        Slots::Set(table_, window + Slots::FirstHalf(halves), 0);
        return true;
      }
    }
    return false;
  }

 private:
  uint64_t HalvesWith(uint64_t window, uint64_t tag) const {
    return Slots::HalvesWith(Slots::Window(table_, window), tag);
  }
  void Store(uint64_t slot, uint64_t half, uint64_t tag) {
    Slots::Set(table_, slot, tag << 1 | half);
  }
  // Into that slot, as a tag of the one of the two windows that it lies in.
  void Store(uint64_t slot, uint64_t tag, uint64_t window, uint64_t partner) {
    Store(slot, slot - (slot - window <= 1 ? window : partner), tag);
  }

  // Breadth-first search for a free slot from the slots of both windows, along the other three
  // slots that the tag in a slot may take. As in pair_writer-inl.h nothing is moved before a chain
  // of moves is found, and it is the shortest one.
  template <size_t kMaxSlots>
  bool InsertByMoving(const Place& place) {
    // A slot that the tag in the slot at `parent` may move to.
    struct Reached {
      uint64_t slot;
      uint64_t parent;
    };
    constexpr uint64_t kNoParent = kMaxSlots;
    Reached reached[kMaxSlots];
    size_t count = 0;
    // Every slot once: a chain that visits a slot twice could move one tag twice. Slots share bits
    // of the set where the table is larger than it; a few are then passed over.
    constexpr size_t kSetWords = kMaxSlots / 8;
    uint64_t seen[kSetWords] = {};
    const auto reach = [&](uint64_t slot, uint64_t parent) {
      uint64_t& word = seen[slot / 64 % kSetWords];
      const uint64_t bit = uint64_t{1} << (slot % 64);
      if ((word & bit) != 0 || count == kMaxSlots) return;
      word |= bit;
      __builtin_prefetch(table_ + Slots::ByteOf(slot), 1);
      reached[count++] = {slot, parent};
    };
    for (const uint64_t window : {place.bucket, place.partner}) {
      reach(window, kNoParent);
      reach(window + 1, kNoParent);
    }

    size_t checked = count;  // those before it are taken
    for (size_t expanded = 0; expanded < count; ++expanded) {
      const Tenant tenant = TenantOf(reached[expanded].slot);
      for (const uint64_t window : {tenant.window, tenant.partner}) {
        reach(window, expanded);
        reach(window + 1, expanded);
      }
      for (; checked < count; ++checked) {
        if (Slots::Get(table_, reached[checked].slot) != 0) continue;
        size_t at = checked;
        for (; reached[at].parent != kNoParent; at = reached[at].parent) {
          const Tenant moved = TenantOf(reached[reached[at].parent].slot);
          Store(reached[at].slot, moved.tag, moved.window, moved.partner);
        }
        Store(reached[at].slot, place.tag, place.bucket, place.partner);
        return true;
      }
    }
    return false;
  }

  struct Tenant {
    uint64_t tag;
    uint64_t window;
    uint64_t partner;
  };
  Tenant TenantOf(uint64_t slot) const {
    const uint64_t value = Slots::Get(table_, slot);
    const uint64_t tag = value >> 1;
    const uint64_t window = slot - (value & 1);
    return {tag, window, view_.PartnerOf(window, tag)};
  }

  const View view_;
  std::byte* const table_;
};

}  // namespace

uint64_t WindowedScheme::UnitsFor(uint64_t n, const Params& params) {
  return UnitsAtLoad(static_cast<double>(n), 2, params.load);
}

uint64_t WindowedScheme::UnitsToInsert(uint64_t n, const Params& params) {
  // The threshold is Walzer's for two windows of two.
  constexpr InsertLoad kLoad = {0.95, 0.9650, 1.0};
  if (n <= 2) return 1;
  Params safe = params;
  safe.load = kLoad.For(n, params.load);
  return UnitsFor(n, safe);
}

template <class Use>
decltype(auto) WindowedScheme::WithWriter(const View& view, std::byte* table, Use&& use) {
  return view.Specialize(
      [&]<class V>(const V& sized) { return use(WindowWriter<V>(sized, table)); });
}

Result<uint64_t> WindowedScheme::CountTags(const View& view) {
  return view.Specialize([&]<class V>(const V& sized) -> Result<uint64_t> {
    uint64_t tags = 0;
    for (uint64_t slot = 0; slot <= sized.windows; ++slot) {
      const uint64_t value = V::Slots::Get(sized.table, slot);
      if (value == 0) continue;
      // No tag is 0, and the tag's window must be one.
      const uint64_t window = slot - (value & 1);
      if (value == 1 || window >= sized.windows) {
        return Error{fmt::format("slot {} holds {}, which is no tag", slot, value)};
      }
      ++tags;
    }
    return tags;
  });
}

FprEstimate WindowedScheme::Fpr(const View& view, uint64_t stored) {
  return theory::CuckooFpr(stored, view.windows, BitsOf(view.slot_bits) - 1,
                           theory::CuckooPairs::kInvolution);
}

std::optional<double> WindowedScheme::TheoryFpr(double bits_per_key) {
  return theory::CuckooFpr(bits_per_key * kTheoryLoad - 1, kTheoryLoad, 2);
}

template class TagFilter<WindowedScheme>;

}  // namespace filterbench
