#include "harness/machine/table_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "filters/pages.h"
#include "filters/table.h"
#include "harness/machine/fixture_tree.h"

namespace filterbench {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kBase = 0x7f0000000000;  // of the tables below; nothing is read there

std::span<const std::byte> At(uint64_t begin, uint64_t bytes) {
  return {reinterpret_cast<const std::byte*>(begin), bytes};
}

struct Entry {
  uint64_t begin;
  uint64_t end;
  uint64_t page_kib = 4;
  uint64_t transparent_kib = 0;
  uint64_t reserved_kib = 0;
  std::string flags = "rd wr mr mw me ac";
};

std::string Smaps(const std::vector<Entry>& entries) {
  std::string text = "00400000-00500000 r-xp 00000000 08:01 1   /usr/bin/a-b\n"
                     "KernelPageSize:        4 kB\nAnonHugePages:      2048 kB\nVmFlags: rd hg\n";
  for (const Entry& entry : entries) {
    text += fmt::format("{:x}-{:x} rw-p 00000000 00:00 0 \nSize: {} kB\nKernelPageSize: {} kB\n"
                        "AnonHugePages: {} kB\nShared_Hugetlb: 0 kB\nPrivate_Hugetlb: {} kB\n"
                        "VmFlags: {} \n",
                        entry.begin, entry.end, (entry.end - entry.begin) / 1024, entry.page_kib,
                        entry.transparent_kib, entry.reserved_kib, entry.flags);
  }
  return text;
}

PagesOfTable Read(const std::string& smaps, std::span<const std::byte> table) {
  const FixtureTree tree;
  tree.Write("/proc/self/smaps", smaps);
  tree.Write("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
  return ReadPagesOfTable(table, SystemFiles(tree.root()));
}

void ExpectPages(const PagesOfTable& pages, std::optional<uint64_t> page_bytes,
                 std::optional<uint64_t> asked, std::optional<uint64_t> obtained) {
  const auto value = [](const Fact<uint64_t>& fact) {
    EXPECT_EQ(fact.known(), fact.reason().empty());
    return fact.known() ? std::optional(fact.value()) : std::nullopt;
  };
  EXPECT_EQ(value(pages.page_bytes), page_bytes);
  EXPECT_EQ(value(pages.huge_page_bytes_asked), asked);
  EXPECT_EQ(value(pages.huge_page_bytes), obtained);
}

TEST(ReadPagesOfTable, AMappingOfItsOwn) {
  const auto table = At(kBase, 3 * kMiB);
  ExpectPages(Read(Smaps({{kBase, kBase + 4 * kMiB, 4, 4096, 0, "rd wr hg"}}), table), 4096,
              4 * kMiB, 4 * kMiB);
  // Asked for and not obtained.
  ExpectPages(Read(Smaps({{kBase, kBase + 4 * kMiB, 4, 0, 0, "rd wr hg"}}), table), 4096, 4 * kMiB,
              0);
  ExpectPages(Read(Smaps({{kBase, kBase + 4 * kMiB, 4, 2048, 0, "rd wr hg"}}), table), 4096,
              4 * kMiB, 2 * kMiB);
  ExpectPages(Read(Smaps({{kBase, kBase + 3 * kMiB, 4, 0, 0, "rd wr nh"}}), table), 4096, 0, 0);
  ExpectPages(Read(Smaps({{kBase, kBase + 4 * kMiB, 2048, 0, 4096, "rd wr de ht"}}), table),
              2 * kMiB, 4 * kMiB, 4 * kMiB);
}

// A table in the middle of the heap: the count of the heap is the table's where it leaves no doubt.
TEST(ReadPagesOfTable, AMappingSharedWithOtherMemory) {
  const auto table = At(kBase + 3 * kMiB, kMiB / 2);
  const auto heap = [&](uint64_t kib) {
    return Read(Smaps({{kBase, kBase + 10 * kMiB, 4, kib, 0, "rd wr"}}), table);
  };
  ExpectPages(heap(0), 4096, 0, 0);
  ExpectPages(heap(10 * 1024), 4096, 0, 2 * kMiB);
  const PagesOfTable doubt = heap(4096);
  ExpectPages(doubt, 4096, 0, std::nullopt);
  EXPECT_THAT(doubt.huge_page_bytes.reason(), HasSubstr("of which 4194304 lie on huge pages"));
}

TEST(ReadPagesOfTable, SeveralMappings) {
  const auto table = At(kBase, 4 * kMiB);
  ExpectPages(Read(Smaps({{kBase, kBase + 2 * kMiB, 4, 2048, 0, "hg"},
                          {kBase + 2 * kMiB, kBase + 4 * kMiB, 4, 0, 0, "rd"}}),
                   table),
              4096, 2 * kMiB, 2 * kMiB);
  ExpectPages(Read(Smaps({{kBase, kBase + 2 * kMiB, 4, 0, 0, "rd"},
                          {kBase + 2 * kMiB, kBase + 4 * kMiB, 2048, 0, 2048, "ht"}}),
                   table),
              std::nullopt, 2 * kMiB, 2 * kMiB);
  // A hole: what lies there is not known.
  ExpectPages(Read(Smaps({{kBase, kBase + kMiB}, {kBase + 2 * kMiB, kBase + 4 * kMiB}}), table),
              std::nullopt, std::nullopt, std::nullopt);
}

TEST(ReadPagesOfTable, WhatIsNotReadableIsUnknown) {
  const auto table = At(kBase, kMiB);
  const FixtureTree tree;
  ExpectPages(ReadPagesOfTable(table, SystemFiles(tree.root())), std::nullopt, std::nullopt,
              std::nullopt);
  for (const char* text : {"", "\n", "nonsense", "7f0000000000-\n", "-1-2 rw\n"}) {
    ExpectPages(Read(text, table), std::nullopt, std::nullopt, std::nullopt);
  }
  // Old kernels and sandboxes list mappings without these lines.
  ExpectPages(Read(Smaps({{kBase, kBase + kMiB, 0}}), table), std::nullopt, 0, 0);
  ExpectPages(Read(fmt::format("{:x}-{:x} rw-p 0 0:0 0\n", kBase, kBase + kMiB), table),
              std::nullopt, std::nullopt, std::nullopt);
  ExpectPages(Read("", {}), std::nullopt, 0, 0);
}

TEST(ReadPagesOfTable, OnThisMachine) {
  const SystemFiles live("/");
  if (!live.Read("/proc/self/smaps").known()) GTEST_SKIP() << "/proc/self/smaps is not readable";
  for (const uint64_t bytes : {uint64_t{1000}, 3 * kMiB}) {
    const ScopedPages scope(Pages::kSmall);
    const Result<AlignedTable> table = AlignedTable::Allocate(bytes);
    ASSERT_TRUE(table) << table.error();
    const PagesOfTable pages = ReadPagesOfTable(table->bytes(), live);
    ExpectPages(pages, static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), 0, 0);
  }
  for (const uint64_t bytes : {uint64_t{1000}, 3 * kMiB}) {
    const ScopedPages scope(Pages::kTransparent);
    Result<AlignedTable> table = AlignedTable::Allocate(bytes);
    ASSERT_TRUE(table) << table.error();
    std::memset(table->data(), 1, bytes);
    const PagesOfTable pages = ReadPagesOfTable(table->bytes(), live);
    ASSERT_TRUE(pages.huge_page_bytes.known()) << pages.huge_page_bytes.reason();
    EXPECT_EQ(pages.huge_page_bytes_asked.value(), (bytes + 2 * kMiB - 1) / (2 * kMiB) * 2 * kMiB);
    EXPECT_LE(pages.huge_page_bytes.value(), pages.huge_page_bytes_asked.value());
  }
}

}  // namespace
}  // namespace filterbench
