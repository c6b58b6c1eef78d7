#include "filters/table.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <locale>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "filters/pages.h"
#include "filters/test_tables.h"

namespace filterbench {
namespace {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

// Linux 5.14; absent from older headers.
#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;
#endif

constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Where a table lies, zeroed.
struct Place {
  std::byte* data = nullptr;
  uint64_t allocated = 0;
  void* mapping = nullptr;  // null: from the heap
};

Error OutOfMemory(uint64_t bytes) {
  return Error{fmt::format("out of memory: needs {} bytes", bytes)};
}

Result<Place> Map(uint64_t bytes, int flags = 0) {
  void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (mapping == MAP_FAILED) return OutOfMemory(bytes);
  return Place{static_cast<std::byte*>(mapping), bytes, mapping};
}

Result<Place> FromHeap(uint64_t bytes) {
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kCacheLineBytes, bytes));
  if (data == nullptr) return OutOfMemory(bytes);
  std::memset(data, 0, bytes);
  return Place{data, bytes, nullptr};
}

Result<Place> OnSmallPages(uint64_t bytes, int flags = 0) {
  Result<Place> place = Map(RoundUp(bytes, static_cast<uint64_t>(sysconf(_SC_PAGESIZE))), flags);
  // Refused only by kernels that have no transparent huge pages.
  if (place) madvise(place->data, place->allocated, MADV_NOHUGEPAGE);
  return place;
}

Result<Place> OnTransparentHugePages(uint64_t bytes) {
  // One huge page more than needed, so that an aligned start lies inside. What is left of it stays
  // unmarked between the table and its neighbour: each table is an entry of its own in
  // /proc/self/smaps.
  Result<Place> place = Map(RoundUp(bytes, kHugePageBytes) + kHugePageBytes);
  if (!place) return place;
  const uint64_t start = reinterpret_cast<uint64_t>(place->mapping);
  place->data += RoundUp(start, kHugePageBytes) - start;
  // A refusal leaves small pages; the record says what was obtained.
  madvise(place->data, RoundUp(bytes, kHugePageBytes), MADV_HUGEPAGE);
  return place;
}

// The kernel's pool of huge pages of the default size (proc(5), /proc/meminfo).
struct HugePagePool {
  uint64_t page_bytes = 0;  // 0: the kernel has none
  uint64_t total = 0;
  uint64_t free = 0;
  uint64_t reserved = 0;  // of the free ones, promised to mappings that have not touched them yet
};

HugePagePool ReadHugePagePool() {
  HugePagePool pool;
  std::ifstream file("/proc/meminfo");
  file.imbue(std::locale::classic());
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string name = line.substr(0, colon);
    const uint64_t value = std::strtoull(line.c_str() + colon + 1, nullptr, 10);
    if (name == "HugePages_Total") pool.total = value;
    if (name == "HugePages_Free") pool.free = value;
    if (name == "HugePages_Rsvd") pool.reserved = value;
    if (name == "Hugepagesize") pool.page_bytes = value * 1024;
  }
  return pool;
}

// The error where `needed` pages were not to be had, with how many there must be for that.
Error NoHugePages(uint64_t needed, uint64_t page_bytes) {
  const HugePagePool pool = ReadHugePagePool();
  const uint64_t used = pool.total - std::min(pool.total, pool.free) + pool.reserved;
  return Error{fmt::format("{}sysctl -w vm.nr_hugepages={} ({} of {} KiB are needed, {} of {} are "
                           "free)",
                           kNoHugePages, used + needed, needed, page_bytes / 1024,
                           pool.total - std::min(pool.total, used), pool.total)};
}

Result<Place> OnReservedHugePages(uint64_t bytes) {
  const uint64_t page_bytes = ReadHugePagePool().page_bytes;
  if (page_bytes == 0) {
    return Error{fmt::format("{}/proc/meminfo says nothing of them", kNoHugePages)};
  }
  const uint64_t needed = RoundUp(bytes, page_bytes) / page_bytes;
  const Result<Place> place = Map(needed * page_bytes, MAP_HUGETLB);
  if (!place) return NoHugePages(needed, page_bytes);
  // The mapping holds a promise of pages, which the limit of a control group may still break when
  // they are touched, by a signal. Better here; kernels that do not know the call keep the risk.
  if (madvise(place->data, place->allocated, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
    munmap(place->mapping, place->allocated);
    return Error{fmt::format("{}the kernel refuses to hand out {} of {} KiB (the control group's "
                             "limit on huge pages?)",
                             kNoHugePages, needed, page_bytes / 1024)};
  }
  return place;
}

// Between two pages that may not be touched; `bytes` are whole cache lines.
Result<Place> BetweenGuards(uint64_t bytes, bool at_the_end) {
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t inner_bytes = RoundUp(bytes, page_bytes);
  Result<Place> place = Map(inner_bytes + 2 * page_bytes);
  if (!place) return place;
  if (mprotect(place->data, page_bytes, PROT_NONE) != 0 ||
      mprotect(place->data + page_bytes + inner_bytes, page_bytes, PROT_NONE) != 0) {
    munmap(place->mapping, place->allocated);
    return Error{"no guards: mprotect fails"};
  }
  place->data += page_bytes + (at_the_end ? inner_bytes - bytes : 0);
  return place;
}

Result<Place> FindPlace(uint64_t bytes) {
  if (const std::optional<TestTables> tables = ScopedTestTables::tables()) {
    switch (*tables) {
      case TestTables::kGuardBefore:
      case TestTables::kGuardBehind:
        return BetweenGuards(bytes, *tables == TestTables::kGuardBehind);
      case TestTables::kRefused:
        return OutOfMemory(bytes);
      case TestTables::kSparse:
        return OnSmallPages(bytes, MAP_NORESERVE);
    }
  }
  const std::optional<Pages> pages = ScopedPages::pages();
  if (!pages) return bytes >= kHugePageBytes ? OnTransparentHugePages(bytes) : FromHeap(bytes);
  switch (*pages) {
    case Pages::kSmall:
      return OnSmallPages(bytes);
    case Pages::kTransparent:
      return OnTransparentHugePages(bytes);
    case Pages::kHugetlb:
      break;
  }
  return OnReservedHugePages(bytes);
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
  const Result<Place> place = FindPlace(RoundUp(bytes, kCacheLineBytes) + kCacheLineBytes);
  if (!place) return Error{place.error()};
  ScopedPages::CountTable();
  AlignedTable table;
  table.data_ = place->data;
  table.size_ = bytes;
  table.allocated_ = place->allocated;
  table.mapping_ = place->mapping;
  return table;
}

}  // namespace filterbench
