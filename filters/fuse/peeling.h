#ifndef FILTERBENCH_FILTERS_FUSE_PEELING_H_
#define FILTERBENCH_FILTERS_FUSE_PEELING_H_

// Builds tables of fingerprints in which the slots of each key sum up (XOR) to its fingerprint.
//
// A slot that one key alone has can be set last, whatever the others say: take that key away, and
// go on until no key is left ("peeling"); then set the slots in the reverse order (Botelho, Pagh,
// Ziviani 2007; Graf and Lemire 2020, section 3). Each slot needs to know how many of the remaining
// keys have it and the XOR of their hashes, which is the hash of the last one.
//
// Memory is walked forwards. Keys are first ordered by the region of their first slot. Slots are
// then peeled region by region: what becomes single in a region not yet reached is found when its
// turn comes, so that the queue holds nothing but the neighbourhood. The result depends on the set
// of hashes alone, not on their order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "filters/fuse/positions.h"
#include "filters/out_of_memory.h"
#include "filters/result.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

// Seeds tried for one size of the table, and sizes tried, each larger than the one before.
inline constexpr uint64_t kPeelingSeedsPerSize = 2;
inline constexpr uint64_t kPeelingSizes = 32;
inline constexpr uint64_t kMaxPeelingAttempts = kPeelingSeedsPerSize * kPeelingSizes;

// The regions by which keys are ordered: 2^shift first slots each.
class KeyRegions {
 public:
  static constexpr uint64_t kMaxRegions = 1024;
  static constexpr uint64_t kMinSlotsPerRegion = 4096;

  explicit KeyRegions(uint64_t first_slots) {
    while (first_slots >> shift_ >= kMaxRegions || uint64_t{1} << shift_ < kMinSlotsPerRegion) {
      ++shift_;
    }
    ends_.resize((first_slots >> shift_) + 1);
  }

  size_t size() const { return ends_.size(); }
  uint64_t AllocatedBytes() const { return ends_.capacity() * sizeof(uint64_t); }
  // Of region i in the keys that were ordered.
  uint64_t Begin(size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }
  uint64_t End(size_t i) const { return ends_[i]; }

  // Writes the mixed hashes to `keys`, region by region.
  template <class Layout>
  void Order(std::span<const uint64_t> hashes, uint64_t salt, const Layout& layout,
             uint64_t* keys) {
    if (size() == 1) {
      for (size_t i = 0; i < hashes.size(); ++i) keys[i] = FuseHash::Mix(hashes[i], salt);
      ends_[0] = hashes.size();
      return;
    }
    const int shift = shift_;
    uint64_t* ends = ends_.data();
    std::fill(ends_.begin(), ends_.end(), 0);
    for (const uint64_t hash : hashes) {
      ++ends[layout.FirstSlot(FuseHash(FuseHash::Mix(hash, salt))) >> shift];
    }
    uint64_t begin = 0;
    for (uint64_t& end : ends_) begin += std::exchange(end, begin);
    for (const uint64_t hash : hashes) {
      const uint64_t mixed = FuseHash::Mix(hash, salt);
      keys[ends[layout.FirstSlot(FuseHash(mixed)) >> shift]++] = mixed;
    }
  }

 private:
  int shift_ = 0;
  std::vector<uint64_t> ends_;
};

template <class Layout>
class Peeling {
 public:
  // For up to `keys` hashes at a time.
  static Result<Peeling> Allocate(const Layout& layout, uint64_t keys) {
    Peeling peeling(layout);
    // Slots whose turn comes, and room for one that is written and not taken.
    const uint64_t queue_entries = std::max(keys, layout.Slots() + 1);
    for (const auto& [table, bytes] :
         {std::pair{&peeling.sums_, layout.Slots() * sizeof(uint64_t)},
          std::pair{&peeling.degrees_, layout.Slots()},
          std::pair{&peeling.queue_, queue_entries * sizeof(uint64_t)}}) {
      Result<AlignedTable> allocated = AlignedTable::Allocate(bytes);
      if (!allocated) return Error{allocated.error()};
      *table = std::move(*allocated);
    }
    return peeling;
  }

  const Layout& layout() const { return layout_; }
  uint64_t AllocatedBytes() const {
    return sums_.allocated_bytes() + degrees_.allocated_bytes() + queue_.allocated_bytes() +
           regions_.AllocatedBytes();
  }

  // Whether all hashes could be peeled. Where it is false, equal ones among them may be the reason.
  bool Peel(std::span<const uint64_t> hashes, uint64_t salt) {
    if (used_) {
      std::fill_n(sums_.data(), sums_.size(), std::byte{0});
      std::fill_n(degrees_.data(), degrees_.size(), std::byte{0});
    }
    used_ = true;
    peeled_ = 0;
    regions_.Order(hashes, salt, layout_, queue_.As<uint64_t>());
    if (!Add(hashes.size())) return false;
    TakeAway();
    return peeled_ == hashes.size();
  }

  // After Peel returned true: sets the slots of a table of zeros.
  template <class T>
  void Assign(T* table) const {
    const Layout layout = layout_;
    const uint64_t* order = queue_.As<uint64_t>();
    const uint64_t* sums = sums_.As<uint64_t>();
    const bool prefetch = PrefetchPays(layout.NeighbourSlots() * kBytesPerSlot);
    for (uint64_t i = peeled_; i-- > 0;) {
      if (prefetch && i >= 2 * kAhead) {
        __builtin_prefetch(sums + order[i - 2 * kAhead]);
        const auto ahead = layout.SlotsOf(FuseHash(sums[order[i - kAhead]]));
        for (const uint64_t slot : ahead) __builtin_prefetch(table + slot, 1);
      }
      const FuseHash hash(sums[order[i]]);
      // Its own slot is still zero.
      T sum = hash.template Fingerprint<T>();
      for (const uint64_t slot : layout.SlotsOf(hash)) sum ^= table[slot];
      table[order[i]] = sum;
    }
  }

  // The distinct ones of `hashes`, which are as many as Allocate was told or fewer, in the memory
  // of the queue.
  std::span<const uint64_t> Distinct(std::span<const uint64_t> hashes) {
    constexpr uint64_t kSalt = 0;
    uint64_t* keys = queue_.As<uint64_t>();
    regions_.Order(hashes, kSalt, layout_, keys);
    uint64_t* end = keys;
    for (size_t i = 0; i < regions_.size(); ++i) {
      uint64_t* region_begin = keys + regions_.Begin(i);
      uint64_t* region_end = keys + regions_.End(i);
      std::sort(region_begin, region_end);
      region_end = std::unique(region_begin, region_end);
      end = std::move(region_begin, region_end, end);
    }
    for (uint64_t* key = keys; key != end; ++key) *key = FuseHash::Unmix(*key, kSalt);
    return {keys, end};
  }

 private:
  static constexpr uint64_t kBytesPerSlot = 9;  // sum and degree
  // Keys between a prefetch and the use of what it brings.
  static constexpr uint64_t kAhead = 12;

  explicit Peeling(const Layout& layout) : layout_(layout), regions_(layout.FirstSlots()) {}

  // Adds all ordered keys to their slots. False if a slot has too many to count, which only equal
  // keys bring about: it might become single more than once, and the queue has no room for that.
  bool Add(uint64_t n) {
    const Layout layout = layout_;
    const uint64_t* keys = queue_.As<uint64_t>();
    uint64_t* sums = sums_.As<uint64_t>();
    uint8_t* degrees = degrees_.As<uint8_t>();
    bool overflow = false;
    for (uint64_t i = 0; i < n; ++i) {
      const FuseHash hash(keys[i]);
      for (const uint64_t slot : layout.SlotsOf(hash)) {
        sums[slot] ^= hash.mixed;
        overflow |= ++degrees[slot] == 0;
      }
    }
    return !overflow;
  }

  // Takes keys away while there is one with a slot of its own. The first `peeled_` entries of the
  // queue are then the slots of the keys taken away, in order; their sums are the keys.
  void TakeAway() {
    const Layout layout = layout_;
    uint64_t* queue = queue_.As<uint64_t>();
    uint64_t* sums = sums_.As<uint64_t>();
    uint8_t* degrees = degrees_.As<uint8_t>();
    const uint64_t slots = layout.Slots();
    const bool prefetch = PrefetchPays(layout.NeighbourSlots() * kBytesPerSlot);
    uint64_t peeled = 0;
    uint64_t head = 0;
    uint64_t tail = 0;
    // Each slot becomes single once at most, so that the queue has room for all.
    for (uint64_t reached = 0; reached < slots;) {
      const uint64_t end = std::min(slots, reached + kStep);
      for (; reached < end; ++reached) {
        queue[tail] = reached;
        tail += degrees[reached] == 1 ? 1 : 0;
      }
      for (; head < tail; ++head) {
        if (prefetch && head + 2 * kAhead < tail) {
          __builtin_prefetch(sums + queue[head + 2 * kAhead], 1);
          const auto ahead = layout.SlotsOf(FuseHash(sums[queue[head + kAhead]]));
          for (const uint64_t slot : ahead) {
            __builtin_prefetch(sums + slot, 1);
            __builtin_prefetch(degrees + slot, 1);
          }
        }
        const uint64_t single = queue[head];
        if (degrees[single] == 0) continue;  // its key went through another slot
        const FuseHash hash(sums[single]);
        for (const uint64_t slot : layout.SlotsOf(hash)) {
          sums[slot] ^= hash.mixed;
          --degrees[slot];
          queue[tail] = slot;
          tail += static_cast<uint64_t>(degrees[slot] == 1) & static_cast<uint64_t>(slot < end);
        }
        sums[single] = hash.mixed;
        queue[peeled++] = single;
      }
    }
    peeled_ = peeled;
  }

  static constexpr uint64_t kStep = Layout::kIsLocal ? 4096 : UINT64_MAX / 2;

  Layout layout_;
  KeyRegions regions_;
  AlignedTable sums_;     // 64 bits per slot: XOR of the mixed hashes of its keys
  AlignedTable degrees_;  // 8 bits per slot: number of its keys
  AlignedTable queue_;    // ordered keys, then slots, then distinct hashes
  uint64_t peeled_ = 0;
  bool used_ = false;
};

// A finished table and how it came about.
template <class Layout>
struct PeeledTable {
  Layout layout;
  uint64_t keys = 0;  // distinct hashes
  uint64_t attempt = 0;
  uint64_t peak_bytes = 0;
  AlignedTable table;
};

// Tries kPeelingSeedsPerSize seeds with the table that `layout_for(n, enlargements)` gives for no
// enlargement, then as many with one, and so on, up to `max_attempts` in all. The first failure
// leads to a search for equal hashes, and if there are any, to a fresh start without them.
template <class T, class Layout, class LayoutFor>
Result<PeeledTable<Layout>> BuildByPeeling(std::span<const uint64_t> hashes, uint64_t seed,
                                           uint64_t max_attempts, const LayoutFor& layout_for) try {
  PeeledTable<Layout> built;
  std::optional<Peeling<Layout>> peeling;
  AlignedTable distinct_hashes;
  bool distinct = false;
  for (uint64_t attempt = 0; attempt < max_attempts; ++attempt) {
    const Result<Layout> layout = layout_for(hashes.size(), attempt / kPeelingSeedsPerSize);
    if (!layout) return Error{layout.error()};
    if (!peeling || !(peeling->layout() == *layout)) {
      peeling.reset();
      Result<Peeling<Layout>> allocated = Peeling<Layout>::Allocate(*layout, hashes.size());
      if (!allocated) return Error{allocated.error()};
      peeling.emplace(std::move(*allocated));
    }
    const auto note_peak = [&](uint64_t others) {
      built.peak_bytes = std::max(built.peak_bytes, peeling->AllocatedBytes() +
                                                        distinct_hashes.allocated_bytes() + others);
    };
    if (!peeling->Peel(hashes, FuseHash::Salt(seed, attempt))) {
      note_peak(0);
      if (distinct) continue;
      distinct = true;
      const std::span<const uint64_t> once = peeling->Distinct(hashes);
      if (once.size() == hashes.size()) continue;
      Result<AlignedTable> copy = AlignedTable::Allocate(once.size_bytes());
      if (!copy) return Error{copy.error()};
      std::copy(once.begin(), once.end(), copy->template As<uint64_t>());
      distinct_hashes = std::move(*copy);
      note_peak(0);
      hashes = {distinct_hashes.As<uint64_t>(), once.size()};
      peeling.reset();
      attempt = UINT64_MAX;  // the next one is the first
      continue;
    }
    Result<AlignedTable> table = AlignedTable::Allocate(layout->Slots() * sizeof(T));
    if (!table) return Error{table.error()};
    note_peak(table->allocated_bytes());
    peeling->Assign(table->template As<T>());
    built.layout = *layout;
    built.keys = hashes.size();
    built.attempt = attempt;
    built.table = std::move(*table);
    return built;
  }
  return Error{fmt::format("no seed works: tried {} for {} keys", max_attempts, hashes.size())};
} catch (const std::bad_alloc&) {
  return Error{kOutOfMemory};
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_FUSE_PEELING_H_
