#ifndef FILTERBENCH_FILTERS_CUCKOO_PAIR_WRITER_INL_H_
#define FILTERBENCH_FILTERS_CUCKOO_PAIR_WRITER_INL_H_

// What changes a table in which a tag lies in one of two buckets that follow from each other.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "filters/cuckoo/cuckoo.h"

namespace filterbench {

// `View` is a view that knows its layout: PlaceOf, PartnerOf, and Bucket with Holds, CountFree,
// Find, Get and Set. A bucket may put its tags in another order at every Set.
template <class View>
class PairWriter {
  using Bucket = typename View::Bucket;

 public:
  using Place = CuckooPlace;
  // Buckets that an insertion looks through before it gives up.
  static constexpr uint64_t kMaxSearchedBuckets = 512;

  PairWriter(const View& view, std::byte* table) : view_(view), table_(table) {}

  Place PlaceOf(uint64_t hash) const { return view_.PlaceOf(hash); }
  void Prefetch(const Place& place) const {
    __builtin_prefetch(At(place.bucket), 1);
    __builtin_prefetch(At(place.partner), 1);
  }

  bool Contains(const Place& place) const {
    const bool in_first = Bucket::Holds(At(place.bucket), place.tag);
    const bool in_second = Bucket::Holds(At(place.partner), place.tag);
    return in_first || in_second;
  }

  // Into the emptier of the two buckets, which leaves fewer buckets full than taking the first;
  // where both are full, by moving others. That includes the copies of a tag that no longer fit
  // into its two buckets: twice the slots of a bucket, once where they are one.
  bool Insert(const Place& place) {
    const int first_free = Bucket::CountFree(At(place.bucket));
    const int second_free = Bucket::CountFree(At(place.partner));
    if ((first_free | second_free) == 0) return InsertByMoving(place);
    std::byte* bucket = At(second_free > first_free ? place.partner : place.bucket);
    Bucket::Set(bucket, Bucket::Find(bucket, 0), place.tag);
    return true;
  }

  bool Erase(const Place& place) {
    for (const uint64_t bucket : {place.bucket, place.partner}) {
      const int slot = Bucket::Find(At(bucket), place.tag);
      if (slot >= 0) {
        Bucket::Set(At(bucket), slot, 0);
        return true;
      }
    }
    return false;
  }

 private:
  std::byte* At(uint64_t bucket) const { return table_ + bucket * Bucket::kBytes; }

  // Breadth-first search for a bucket with a free slot, from both buckets of `place` along the
  // partners of the tags in them (as MemC3 and libcuckoo do for hash tables: Li, Andersen,
  // Kaminsky, Freedman, "Algorithmic Improvements for Fast Concurrent Cuckoo Hashing", 2014). It
  // finds the shortest chain of moves, and finds it before anything is moved: a search that fails
  // leaves the table as it was.
  bool InsertByMoving(const Place& place) {
    // A bucket that is reached by moving the tag in `slot` of the bucket at `parent`.
    struct Reached {
      uint64_t bucket;
      uint16_t parent;
      uint16_t slot;
    };
    static_assert(kMaxSearchedBuckets <= UINT16_MAX);
    constexpr uint16_t kNoParent = UINT16_MAX;
    Reached reached[kMaxSearchedBuckets];
    size_t count = 0;
    // Every bucket once: a chain that visits a bucket twice could move one tag twice.
    const auto reach = [&](uint64_t bucket, size_t parent, int slot) {
      if (count == kMaxSearchedBuckets) return;
      for (size_t i = 0; i < count; ++i) {
        if (reached[i].bucket == bucket) return;
      }
      __builtin_prefetch(At(bucket), 1);
      reached[count++] = {bucket, static_cast<uint16_t>(parent), static_cast<uint16_t>(slot)};
    };
    reach(place.bucket, kNoParent, 0);
    reach(place.partner, kNoParent, 0);

    size_t checked = count;  // those before it are full
    for (size_t expanded = 0; expanded < count; ++expanded) {
      const uint64_t bucket = reached[expanded].bucket;
      for (int slot = 0; slot < Bucket::kSlots; ++slot) {
        reach(view_.PartnerOf(bucket, Bucket::Get(At(bucket), slot)), expanded, slot);
      }
      if (expanded == 0 && count > 1 && reached[1].parent == kNoParent) continue;
      for (; checked < count; ++checked) {
        int slot = Bucket::Find(At(reached[checked].bucket), 0);
        if (slot < 0) continue;
        size_t at = checked;
        for (; reached[at].parent != kNoParent; at = reached[at].parent) {
          const Reached& step = reached[at];
          const uint64_t moved = Bucket::Get(At(reached[step.parent].bucket), step.slot);
          Bucket::Set(At(step.bucket), slot, moved);
          slot = step.slot;
        }
        Bucket::Set(At(reached[at].bucket), slot, place.tag);
        return true;
      }
    }
    return false;
  }

  const View view_;
  std::byte* const table_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CUCKOO_PAIR_WRITER_INL_H_
