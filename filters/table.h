#ifndef FILTERBENCH_FILTERS_TABLE_H_
#define FILTERBENCH_FILTERS_TABLE_H_

// The memory of a filter: zeroed, aligned to cache lines, backed by huge pages where the kernel
// grants them.

#include <cstddef>
#include <cstdint>
#include <span>

#include "filters/result.h"

namespace filterbench {

inline constexpr size_t kCacheLineBytes = 64;

class AlignedTable {
 public:
  AlignedTable() = default;
  AlignedTable(AlignedTable&& other) noexcept;
  AlignedTable& operator=(AlignedTable&& other) noexcept;
  ~AlignedTable();

  // `bytes` zero bytes, followed by at least kCacheLineBytes more that may be read (a vector load
  // at the last byte stays inside) and are always zero. Tables of 2 MiB and more are aligned to
  // 2 MiB and ask for huge pages. An error where the system has not that much.
  static Result<AlignedTable> Allocate(uint64_t bytes);

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  uint64_t allocated_bytes() const { return allocated_; }
  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }

  template <class T>
  T* As() {
    return reinterpret_cast<T*>(data_);
  }
  template <class T>
  const T* As() const {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  void Release();

  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
  uint64_t allocated_ = 0;
  void* mapping_ = nullptr;  // null where the table came from the heap
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_TABLE_H_
