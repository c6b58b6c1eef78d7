#ifndef FILTERBENCH_WORKLOADS_HASH_SET_H_
#define FILTERBENCH_WORKLOADS_HASH_SET_H_

// An exact set of 64-bit hashes: what a filter stands in front of, or spares.

#include <cstdint>
#include <span>
#include <vector>

#include "filters/hash.h"

namespace filterbench {

// Open addressing, linear probing, eight bytes a slot. Two keys with one hash are one: among 1e8
// keys the chance that any two share one is 2.7e-4.
class HashSet {
 public:
  // For `keys` hashes at `load`, keys over slots, in (0, 1).
  HashSet(uint64_t keys, double load);

  // Whether it was not there. At most as many as it was made for.
  bool Insert(uint64_t hash);

  bool Contains(uint64_t hash) const {
    if (hash == kEmpty) return has_empty_;
    for (uint64_t slot = FastRange64(hash, slots_.size());; slot = Next(slot)) {
      if (slots_[slot] == hash) return true;
      if (slots_[slot] == kEmpty) return false;
    }
  }

  uint64_t size() const { return size_; }
  uint64_t SizeInBytes() const { return slots_.size() * sizeof(uint64_t) + sizeof(*this); }

 private:
  static constexpr uint64_t kEmpty = 0;

  uint64_t Next(uint64_t slot) const { return slot + 1 == slots_.size() ? 0 : slot + 1; }

  std::vector<uint64_t> slots_;
  uint64_t size_ = 0;
  bool has_empty_ = false;  // the hash that marks empty slots is no slot itself
};

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_HASH_SET_H_
