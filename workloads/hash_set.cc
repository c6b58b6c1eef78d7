#include "workloads/hash_set.h"

#include <sys/mman.h>

#include <cmath>
#include <new>
#include <stdexcept>

namespace filterbench {
namespace {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

HashSet::HashSet(uint64_t keys, double load)
    // One slot stays empty, so that every search ends.
    : slot_count_(static_cast<uint64_t>(std::ceil(static_cast<double>(keys) / load)) + 1) {
  const uint64_t table_bytes = RoundUp(slot_count_ * sizeof(uint64_t), kHugePageBytes);
  // One huge page more than needed, so that an aligned start lies inside. Fresh pages are zero,
  // which is kEmpty.
  static_assert(kEmpty == 0);
  const uint64_t mapped_bytes = table_bytes + kHugePageBytes;
  void* mapping = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = {mapping, Unmap{mapped_bytes}};
  const uint64_t start = reinterpret_cast<uint64_t>(mapping);
  slots_ = reinterpret_cast<uint64_t*>(RoundUp(start, kHugePageBytes));
  // Not a table that is smaller than one: filters of that size are on small pages too. A refusal
  // leaves small pages.
  if (slot_count_ * sizeof(uint64_t) >= kHugePageBytes) {
    madvise(slots_, table_bytes, MADV_HUGEPAGE);
  }
}

void HashSet::Unmap::operator()(void* mapping) const { munmap(mapping, bytes); }

bool HashSet::Insert(uint64_t hash) {
  if (hash == kEmpty) {
    if (has_empty_) return false;
    has_empty_ = true;
    ++size_;
    return true;
  }
  if (size_ + 1 >= slot_count_ + (has_empty_ ? 1 : 0)) {
    throw std::length_error("HashSet: more hashes than it was made for");
  }
  uint64_t slot = FastRange64(hash, slot_count_);
  for (; slots_[slot] != kEmpty; slot = Next(slot)) {
    if (slots_[slot] == hash) return false;
  }
  slots_[slot] = hash;
  ++size_;
  return true;
}

}  // namespace filterbench
