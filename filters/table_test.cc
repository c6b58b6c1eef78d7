#include "filters/table.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "filters/pages.h"
#include "filters/test_tables.h"

namespace filterbench {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class AlignedTableTest : public ::testing::TestWithParam<uint64_t> {};

// Case B8: every table is aligned to a cache line, wherever its filter lives.
TEST_P(AlignedTableTest, IsZeroAlignedAndReadableALineBeyond) {
  const uint64_t bytes = GetParam();
  const Result<AlignedTable> table = AlignedTable::Allocate(bytes);
  ASSERT_TRUE(table) << table.error();
  EXPECT_EQ(table->size(), bytes);
  EXPECT_EQ(table->bytes().size(), bytes);
  EXPECT_GE(table->allocated_bytes(), bytes + kCacheLineBytes);
  const auto address = reinterpret_cast<uintptr_t>(table->data());
  EXPECT_EQ(address % kCacheLineBytes, 0u);
  if (bytes >= 2 * kMiB) {
    EXPECT_EQ(address % (2 * kMiB), 0u);
  }
  EXPECT_TRUE(std::all_of(table->data(), table->data() + bytes + kCacheLineBytes,
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

INSTANTIATE_TEST_SUITE_P(Sizes, AlignedTableTest,
                         ::testing::Values(0, 1, 63, 64, 65, 4096, 2 * kMiB - 65, 2 * kMiB - 64,
                                           2 * kMiB - 1, 2 * kMiB, 2 * kMiB + 1, 7 * kMiB));

// Case B8: a move of the owner moves no byte of the table.
TEST(AlignedTableTest, MovesKeepTheMemoryInPlace) {
  for (const uint64_t bytes : {uint64_t{100}, 3 * kMiB}) {
    Result<AlignedTable> first = AlignedTable::Allocate(bytes);
    Result<AlignedTable> second = AlignedTable::Allocate(bytes);
    ASSERT_TRUE(first && second);
    std::memset(first->data(), 1, bytes);
    const std::byte* data = first->data();

    AlignedTable moved = std::move(*first);
    EXPECT_EQ(moved.data(), data);
    EXPECT_EQ(first->data(), nullptr);
    EXPECT_EQ(first->size(), 0u);
    EXPECT_EQ(first->allocated_bytes(), 0u);

    *second = std::move(moved);
    EXPECT_EQ(second->data(), data);
    EXPECT_EQ(second->size(), bytes);
    EXPECT_EQ(second->data()[bytes - 1], std::byte{1});

    AlignedTable& itself = *second;
    *second = std::move(itself);
    EXPECT_EQ(second->data(), data);
  }
}

TEST(AlignedTableTest, RefusesWhatNoMachineHas) {
  for (const uint64_t bytes : {uint64_t{1} << 47, uint64_t{1} << 60, UINT64_MAX, UINT64_MAX - 63}) {
    const Result<AlignedTable> table = AlignedTable::Allocate(bytes);
    ASSERT_FALSE(table) << bytes;
    EXPECT_EQ(table.error().find("too large: needs "), 0u) << table.error();
  }
}

// The guards that tests of filters rely on are there, and let pass what the table promises.
TEST(TestTablesTest, GuardsAreWhereTheyAreSaidToBe) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const uint64_t bytes : {0u, 1u, 64u, 4096u, 5000u}) {
    SCOPED_TRACE(bytes);
    const auto read = [](const std::byte* address) {
      return *static_cast<const volatile std::byte*>(address);
    };
    {
      const ScopedTestTables scope(TestTables::kGuardBefore);
      const Result<AlignedTable> table = AlignedTable::Allocate(bytes);
      ASSERT_TRUE(table) << table.error();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(table->data()) % kCacheLineBytes, 0u);
      EXPECT_EQ(read(table->data()), std::byte{0});
      EXPECT_EQ(read(table->data() + bytes + kCacheLineBytes - 1), std::byte{0});
      EXPECT_DEATH(read(table->data() - 1), "");
    }
    {
      const ScopedTestTables scope(TestTables::kGuardBehind);
      const Result<AlignedTable> table = AlignedTable::Allocate(bytes);
      ASSERT_TRUE(table) << table.error();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(table->data()) % kCacheLineBytes, 0u);
      const std::byte* end =
          table->data() + (bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
      EXPECT_EQ(read(end + kCacheLineBytes - 1), std::byte{0});
      EXPECT_DEATH(read(end + kCacheLineBytes), "");
    }
  }
  // Its end ends them.
  const Result<AlignedTable> table = AlignedTable::Allocate(100);
  ASSERT_TRUE(table);
  EXPECT_LT(table->allocated_bytes(), 4096u);
}

TEST(TestTablesTest, RefusedTablesSayWhatWasAskedFor) {
  const ScopedTestTables scope(TestTables::kRefused);
  const Result<AlignedTable> table = AlignedTable::Allocate(1000);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error(), "out of memory: needs 1088 bytes");
}

TEST(AlignedTableTest, DefaultIsEmpty) {
  const AlignedTable table;
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.allocated_bytes(), 0u);
  EXPECT_TRUE(table.bytes().empty());
}

// What /proc/self/smaps says of the mapping that holds an address.
struct Mapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t page_bytes = 0;
  uint64_t huge_bytes = 0;  // transparent or reserved
  std::set<std::string> flags;
};

std::optional<Mapping> MappingOf(const std::byte* address) {
  const auto at = reinterpret_cast<uint64_t>(address);
  std::ifstream file("/proc/self/smaps");
  std::optional<Mapping> found;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name.back() != ':') {
      if (found) break;
      Mapping mapping;
      char dash = 0;
      std::istringstream range(name);
      range >> std::hex >> mapping.begin >> dash >> mapping.end;
      if (mapping.begin <= at && at < mapping.end) found = mapping;
      continue;
    }
    if (!found) continue;
    uint64_t kib = 0;
    if (name == "VmFlags:") {
      for (std::string flag; words >> flag;) found->flags.insert(flag);
    } else if (words >> kib) {
      if (name == "KernelPageSize:") found->page_bytes = kib * 1024;
      if (name == "AnonHugePages:" || name == "Private_Hugetlb:") found->huge_bytes += kib * 1024;
    }
  }
  return found;
}

// Sizes below, at and above one huge page.
constexpr uint64_t kPagesSizes[] = {0, 100, 5000, 2 * kMiB - 64, 2 * kMiB, 5 * kMiB};

AlignedTable MakeOn(Pages pages, uint64_t bytes) {
  const ScopedPages scope(pages);
  Result<AlignedTable> table = AlignedTable::Allocate(bytes);
  EXPECT_TRUE(table) << table.error();
  EXPECT_EQ(ScopedPages::tables(), 1u);
  EXPECT_EQ(table->size(), bytes);
  EXPECT_GE(table->allocated_bytes(), bytes + kCacheLineBytes);
  EXPECT_TRUE(std::all_of(table->data(), table->data() + bytes + kCacheLineBytes,
                          [](std::byte byte) { return byte == std::byte{0}; }));
  std::memset(table->data(), 1, bytes);
  return std::move(*table);
}

TEST(ScopedPagesTest, SmallPagesAreSmallAtEverySize) {
  for (const uint64_t bytes : kPagesSizes) {
    const AlignedTable table = MakeOn(Pages::kSmall, bytes);
    const auto mapping = MappingOf(table.data());
    if (!mapping || mapping->flags.empty()) GTEST_SKIP() << "/proc/self/smaps has no VmFlags";
    EXPECT_TRUE(mapping->flags.contains("nh")) << bytes;
    EXPECT_EQ(mapping->huge_bytes, 0u) << bytes;
  }
}

// Also tables that are smaller than one huge page, and several side by side: none shares its
// mapping with a neighbour, so that what it obtained can be told.
TEST(ScopedPagesTest, TransparentHugePagesAreAskedForAtEverySize) {
  for (const uint64_t bytes : kPagesSizes) {
    const AlignedTable tables[] = {MakeOn(Pages::kTransparent, bytes),
                                   MakeOn(Pages::kTransparent, bytes)};
    for (const AlignedTable& table : tables) {
      const auto mapping = MappingOf(table.data());
      if (!mapping || mapping->flags.empty()) GTEST_SKIP() << "/proc/self/smaps has no VmFlags";
      EXPECT_TRUE(mapping->flags.contains("hg")) << bytes;
      EXPECT_EQ(mapping->begin, reinterpret_cast<uint64_t>(table.data())) << bytes;
      EXPECT_LT(mapping->end, mapping->begin + bytes + 64 + 2 * kMiB) << bytes;
    }
  }
}

TEST(ScopedPagesTest, EndsWithTheScopeAndIsOfOneThread) {
  {
    const ScopedPages outer(Pages::kTransparent);
    ASSERT_TRUE(AlignedTable::Allocate(1));
    {
      const ScopedPages inner(Pages::kSmall);
      EXPECT_EQ(ScopedPages::pages(), Pages::kSmall);
      EXPECT_EQ(ScopedPages::tables(), 0u);
    }
    EXPECT_EQ(ScopedPages::pages(), Pages::kTransparent);
    EXPECT_EQ(ScopedPages::tables(), 1u);
    std::thread([] { EXPECT_EQ(ScopedPages::pages(), std::nullopt); }).join();
  }
  EXPECT_EQ(ScopedPages::pages(), std::nullopt);
}

// The number of huge pages that the kernel keeps, which this object may change and restores. Tests
// that run at the same time in other processes wait for their turn.
class HugePagePoolOf {
 public:
  explicit HugePagePoolOf(uint64_t pages) : lock_(open(kPath, O_RDONLY | O_CLOEXEC)) {
    if (lock_ < 0 || flock(lock_, LOCK_EX) != 0) return;
    before_ = Read();
    Set(pages);
  }
  ~HugePagePoolOf() {
    if (before_) Set(*before_);
    if (lock_ >= 0) close(lock_);
  }
  // Whether the number was obtained: this process may not be allowed to.
  bool Set(uint64_t pages) {
    std::ofstream(kPath) << pages << std::endl;
    changed_ = Read() == pages;
    return changed_;
  }
  bool changed() const { return changed_; }

 private:
  static constexpr const char* kPath = "/proc/sys/vm/nr_hugepages";

  static std::optional<uint64_t> Read() {
    std::ifstream file(kPath);
    uint64_t pages = 0;
    return file >> pages ? std::optional(pages) : std::nullopt;
  }

  int lock_;
  std::optional<uint64_t> before_;
  bool changed_ = false;
};

TEST(ScopedPagesTest, ReservedHugePagesAreObtained) {
  const HugePagePoolOf pool(64);
  if (!pool.changed()) GTEST_SKIP() << "may not set vm.nr_hugepages to 64";
  for (const uint64_t bytes : kPagesSizes) {
    AlignedTable table = MakeOn(Pages::kHugetlb, bytes);
    const auto mapping = MappingOf(table.data());
    ASSERT_TRUE(mapping);
    EXPECT_GE(mapping->page_bytes, 2 * kMiB) << bytes;
    EXPECT_GE(mapping->huge_bytes, bytes + kCacheLineBytes) << bytes;
    EXPECT_EQ(table.allocated_bytes(), mapping->end - mapping->begin) << bytes;
    table = AlignedTable();  // given back whole: the next one may need all of them
  }
}

TEST(ScopedPagesTest, WithoutReservedHugePagesTheErrorNamesTheCommand) {
  const HugePagePoolOf pool(0);
  if (!pool.changed()) GTEST_SKIP() << "may not set vm.nr_hugepages to 0";
  const ScopedPages scope(Pages::kHugetlb);
  const Result<AlignedTable> table = AlignedTable::Allocate(5 * kMiB);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().find("no huge pages reserved: sysctl -w vm.nr_hugepages="), 0u)
      << table.error();
  EXPECT_EQ(ScopedPages::tables(), 0u);
}

// With as many pages as the error asks for there is a table, beside the one that was there.
TEST(ScopedPagesTest, TheCommandOfTheErrorIsEnough) {
  const uint64_t bytes = 5 * kMiB;
  HugePagePoolOf pool(3);
  if (!pool.changed()) GTEST_SKIP() << "may not set vm.nr_hugepages to 3";
  const ScopedPages scope(Pages::kHugetlb);
  const Result<AlignedTable> first = AlignedTable::Allocate(bytes);
  if (!first) GTEST_SKIP() << "huge pages of another size: " << first.error();
  const Result<AlignedTable> refused = AlignedTable::Allocate(bytes);
  ASSERT_FALSE(refused);
  const uint64_t enough = std::stoull(refused.error().substr(refused.error().find('=') + 1));
  EXPECT_EQ(enough, 6u);
  ASSERT_TRUE(pool.Set(enough));
  const Result<AlignedTable> second = AlignedTable::Allocate(bytes);
  EXPECT_TRUE(second) << second.error();
}

}  // namespace
}  // namespace filterbench
