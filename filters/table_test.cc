#include "filters/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace filterbench {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

class AlignedTableTest : public ::testing::TestWithParam<uint64_t> {};

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

TEST(AlignedTableTest, DefaultIsEmpty) {
  const AlignedTable table;
  EXPECT_EQ(table.size(), 0u);
  EXPECT_EQ(table.allocated_bytes(), 0u);
  EXPECT_TRUE(table.bytes().empty());
}

}  // namespace
}  // namespace filterbench
