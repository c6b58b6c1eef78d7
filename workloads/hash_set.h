#ifndef FILTERBENCH_WORKLOADS_HASH_SET_H_
#define FILTERBENCH_WORKLOADS_HASH_SET_H_

// An exact set of 64-bit hashes: what a filter stands in front of, or spares.

#include <cstdint>
#include <memory>

#include "filters/hash.h"

namespace filterbench {

// Open addressing, linear probing, eight bytes a slot. Two keys with one hash are one: among 1e8
// keys the chance that any two share one is 2.7e-4, and that any of 1e6 absent keys asked shares
// one with them 5.4e-6. Its table is on huge pages where those of filters are by themselves
// (filters/table.h), so that a comparison of both is not one of pages.
class HashSet {
 public:
  // For `keys` hashes at `load`, keys over slots, in (0, 1). Throws std::bad_alloc.
  HashSet(uint64_t keys, double load);

  // Whether it was not there. At most as many as it was made for.
  bool Insert(uint64_t hash);

  bool Contains(uint64_t hash) const {
    if (hash == kEmpty) return has_empty_;
    for (uint64_t slot = FastRange64(hash, slot_count_);; slot = Next(slot)) {
      if (slots_[slot] == hash) return true;
      if (slots_[slot] == kEmpty) return false;
    }
  }

  // Before Contains of the same hash, while others are looked up.
  void Prefetch(uint64_t hash) const {
    __builtin_prefetch(&slots_[FastRange64(hash, slot_count_)]);
  }

  uint64_t size() const { return size_; }
  uint64_t SizeInBytes() const { return slot_count_ * sizeof(uint64_t) + sizeof(*this); }

 private:
  static constexpr uint64_t kEmpty = 0;

  uint64_t Next(uint64_t slot) const { return slot + 1 == slot_count_ ? 0 : slot + 1; }

  struct Unmap {
    uint64_t bytes;
    void operator()(void* mapping) const;
  };

  std::unique_ptr<void, Unmap> mapping_;
  uint64_t* slots_ = nullptr;  // inside of the mapping
  uint64_t slot_count_;
  uint64_t size_ = 0;
  bool has_empty_ = false;  // the hash that marks empty slots is no slot itself
};

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_HASH_SET_H_
