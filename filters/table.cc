#include "filters/table.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace filterbench {
namespace {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

AlignedTable::AlignedTable(AlignedTable&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      allocated_(std::exchange(other.allocated_, 0)),
      mapping_(std::exchange(other.mapping_, nullptr)) {}

AlignedTable& AlignedTable::operator=(AlignedTable&& other) noexcept {
  if (this != &other) {
    Release();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    allocated_ = std::exchange(other.allocated_, 0);
    mapping_ = std::exchange(other.mapping_, nullptr);
  }
  return *this;
}

AlignedTable::~AlignedTable() { Release(); }

void AlignedTable::Release() {
  if (mapping_ != nullptr) {
    munmap(mapping_, allocated_);
  } else {
    std::free(data_);
  }
}

Result<AlignedTable> AlignedTable::Allocate(uint64_t bytes) {
  constexpr uint64_t kLimit = uint64_t{1} << 47;  // user addresses of x86-64 and most of ARM
  if (bytes >= kLimit) {
    return Error{fmt::format("too large: needs {} bytes, limit {}", bytes, kLimit)};
  }
  AlignedTable table;
  table.size_ = bytes;
  const uint64_t padded = RoundUp(bytes, kCacheLineBytes) + kCacheLineBytes;
  if (padded >= kHugePageBytes) {
    // One huge page more than needed, so that an aligned start lies inside.
    table.allocated_ = RoundUp(padded, kHugePageBytes) + kHugePageBytes;
    void* mapping = mmap(nullptr, table.allocated_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) {
      return Error{fmt::format("out of memory: needs {} bytes", table.allocated_)};
    }
    table.mapping_ = mapping;
    const uint64_t start = reinterpret_cast<uint64_t>(mapping);
    table.data_ = static_cast<std::byte*>(mapping) + (RoundUp(start, kHugePageBytes) - start);
    // A refusal leaves small pages; the record says what was obtained.
    madvise(table.data_, RoundUp(padded, kHugePageBytes), MADV_HUGEPAGE);
  } else {
    table.allocated_ = padded;
    table.data_ = static_cast<std::byte*>(std::aligned_alloc(kCacheLineBytes, padded));
    if (table.data_ == nullptr) {
      return Error{fmt::format("out of memory: needs {} bytes", padded)};
    }
    std::memset(table.data_, 0, padded);
  }
  return table;
}

}  // namespace filterbench
