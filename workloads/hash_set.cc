#include "workloads/hash_set.h"

#include <cmath>
#include <stdexcept>

namespace filterbench {

HashSet::HashSet(uint64_t keys, double load)
    // One slot stays empty, so that every search ends.
    : slots_(static_cast<size_t>(std::ceil(static_cast<double>(keys) / load)) + 1, kEmpty) {}

bool HashSet::Insert(uint64_t hash) {
  if (hash == kEmpty) {
    if (has_empty_) return false;
    has_empty_ = true;
    ++size_;
    return true;
  }
  if (size_ + 1 >= slots_.size() + (has_empty_ ? 1 : 0)) {
    throw std::length_error("HashSet: more hashes than it was made for");
  }
  uint64_t slot = FastRange64(hash, slots_.size());
  for (; slots_[slot] != kEmpty; slot = Next(slot)) {
    if (slots_[slot] == hash) return false;
  }
  slots_[slot] = hash;
  ++size_;
  return true;
}

}  // namespace filterbench
