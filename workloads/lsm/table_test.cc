#include "workloads/lsm/table.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/bloom/blocked.h"
#include "filters/cuckoo/cuckoo.h"
#include "filters/fuse/xor.h"
#include "filters/hash.h"
#include "filters/limits/always_maybe.h"
#include "filters/ribbon/ribbon.h"
#include "workloads/key_bytes.h"
#include "workloads/lsm/table_format.h"
#include "workloads/testing.h"

namespace filterbench::lsm {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

using Entries = std::map<std::string, std::optional<std::string>>;

class Directory {
 public:
  Directory() {
    std::string name = (fs::temp_directory_path() / "table-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~Directory() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

class TableTest : public ::testing::Test {
 protected:
  TableFacts Write(const Entries& entries, const TableFormat& format, uint64_t number = 7) {
    fs::remove(PathOf(number));
    auto builder = TableBuilder::Create(*files_, directory_.path(), number, format);
    EXPECT_TRUE(builder) << builder.error();
    for (const auto& [key, value] : entries) {
      const auto error = (*builder)->Add(key, value ? std::optional<std::string_view>(*value)
                                                    : std::nullopt);
      EXPECT_FALSE(error) << error->message;
    }
    const Result<TableFacts> facts = (*builder)->Finish();
    EXPECT_TRUE(facts) << facts.error();
    return *facts;
  }

  fs::path PathOf(uint64_t number = 7) const { return directory_.path() / TableName(number); }

  Result<std::unique_ptr<Table>> Open(const TableReading& reading) {
    return Table::Open(*files_, directory_.path(), 7, reading);
  }

  const std::unique_ptr<Files> files_ = SystemFileCalls(/*durable=*/false);
  const Directory directory_;
};

std::string Key(uint64_t i) { return KeyBytes(KeySet(), i); }

// Even indices with values, of which every seventh is a tombstone.
Entries SomeEntries(uint64_t count, uint64_t value_bytes = 100) {
  Entries entries;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string key = Key(2 * i);
    entries[key] = i % 7 == 3 ? std::nullopt : std::optional(ValueOf(key, value_bytes));
  }
  return entries;
}

// Asks for all entries and as many absent keys; counts; and walks over all.
void ExpectHolds(const Table& table, const Entries& entries, ReadCounters& counters) {
  std::string value;
  for (const auto& [key, wanted] : entries) {
    const Result<Found> found = table.Get(key, HashBytes(key, 5), &value, counters, nullptr);
    ASSERT_TRUE(found) << found.error();
    ASSERT_EQ(*found, wanted ? Found::kValue : Found::kTombstone);
    if (wanted) {
      ASSERT_EQ(value, *wanted);
    }
  }
  for (uint64_t i = 0; i < entries.size(); ++i) {
    const std::string key = Key(2 * i + 1);
    if (entries.contains(key)) continue;
    const Result<Found> found = table.Get(key, HashBytes(key, 5), &value, counters, nullptr);
    ASSERT_TRUE(found) << found.error();
    ASSERT_EQ(*found, Found::kNothing);
  }
  ReadCounters scanned;
  auto next = entries.begin();
  const auto error = table.Scan("", scanned, [&](auto key, auto entry_value) {
    EXPECT_EQ(key, next->first);
    EXPECT_EQ(entry_value, next->second);
    ++next;
    return true;
  });
  ASSERT_FALSE(error) << error->message;
  ASSERT_TRUE(next == entries.end());
}

void ExpectLaws(const ReadCounters& counters) {
  EXPECT_EQ(counters.candidates,
            counters.range_skips + counters.not_consulted + counters.probes());
  EXPECT_EQ(counters.block_reads,
            counters.not_consulted + counters.maybe_true + counters.maybe_false);
  EXPECT_EQ(counters.index_lookups, counters.block_reads);
}

TEST_F(TableTest, HoldsWhatWasAddedWithEveryFilterAndWithNone) {
  const PolicyOf<BlockedBloom> blocked;
  const PolicyOf<Ribbon> ribbon;
  const PolicyOf<Cuckoo> cuckoo;
  const PolicyOf<Xor> xor_filter;
  const PolicyOf<AlwaysMaybe> always;
  for (const uint64_t count : {1, 2, 33, 1000, 10000}) {
    const Entries entries = SomeEntries(count);
    const uint64_t present = entries.size();
    for (const FilterPolicy* policy : std::initializer_list<const FilterPolicy*>{
             nullptr, &blocked, &ribbon, &cuckoo, &xor_filter, &always}) {
      const TableFacts facts =
          Write(entries, {.policy = policy, .hash_seed = 5, .filter_seed = 9});
      EXPECT_EQ(facts.entries, count);
      EXPECT_EQ(facts.smallest, entries.begin()->first);
      EXPECT_EQ(facts.largest, entries.rbegin()->first);
      EXPECT_EQ(facts.file_bytes, fs::file_size(PathOf()));
      for (const bool direct : {false, true}) {
        for (const bool in_memory : {true, false}) {
          if (count > 1000 && (direct || !in_memory)) continue;
          const auto table = Open({.policy = policy,
                                   .hash_seed = 5,
                                   .direct_io = direct,
                                   .filters_in_memory = in_memory});
          if (!table && table.error().starts_with("not here")) continue;
          ASSERT_TRUE(table) << table.error();
          EXPECT_EQ((*table)->facts(), facts);
          EXPECT_EQ((*table)->filter_problem(), "");
          EXPECT_EQ((*table)->filter() != nullptr, policy != nullptr && in_memory);
          ReadCounters counters;
          ExpectHolds(**table, entries, counters);
          ExpectLaws(counters);
          EXPECT_EQ(counters.candidates, 2 * present);
          if (policy == nullptr) {
            EXPECT_EQ(counters.probes(), 0u);
          } else {
            EXPECT_EQ(counters.maybe_true, present);
            EXPECT_EQ(counters.not_consulted, 0u);
            EXPECT_EQ(counters.filter_reads, in_memory ? 0 : counters.probes());
          }
          if (policy == &blocked && count == 10000) {
            EXPECT_LT(counters.maybe_false, 200u);
            EXPECT_GT(counters.filter_negatives, 9700u);
          }
        }
      }
    }
  }
}

TEST_F(TableTest, KeysAndValuesOfAnySize) {
  Entries entries;
  for (const uint64_t bytes : {0, 1, 8, 127, 128, 300, 5000}) {
    for (const uint64_t value_bytes : {0, 1, 127, 4000, 20'000}) {
      const std::string key = std::string(bytes, 'k') + (bytes == 0 ? "" : fmt::format("{:05}", value_bytes));
      entries[key] = ValueOf(key, value_bytes);
    }
  }
  const PolicyOf<BlockedBloom> policy;
  Write(entries, {.policy = &policy, .hash_seed = 5});
  const auto table = Open({.policy = &policy, .hash_seed = 5});
  ASSERT_TRUE(table) << table.error();
  ReadCounters counters;
  ExpectHolds(**table, entries, counters);
  ExpectLaws(counters);
}

TEST_F(TableTest, KeysMustAscend) {
  auto builder = TableBuilder::Create(*files_, directory_.path(), 7, {});
  ASSERT_TRUE(builder);
  EXPECT_FALSE((*builder)->Add("b", "1"));
  EXPECT_THAT((*builder)->Add("b", "1")->message, HasSubstr("ascending"));
  EXPECT_THAT((*builder)->Add("a", "1")->message, HasSubstr("ascending"));
}

TEST_F(TableTest, WhatIsNotFinishedLeavesNothing) {
  {
    auto builder = TableBuilder::Create(*files_, directory_.path(), 7, {});
    ASSERT_TRUE(builder);
    EXPECT_FALSE((*builder)->Add("b", "1"));
    EXPECT_FALSE(fs::exists(PathOf()));
  }
  EXPECT_TRUE(fs::is_empty(directory_.path()));
  auto empty = TableBuilder::Create(*files_, directory_.path(), 7, {});
  EXPECT_THAT((*empty)->Finish().error(), HasSubstr("must have an entry"));
}

TEST_F(TableTest, AFilterThatCannotBeUsedIsNotUsed) {
  const PolicyOf<BlockedBloom> written(nlohmann::json{{"bits_per_key", 10}});
  const PolicyOf<BlockedBloom> other(nlohmann::json{{"bits_per_key", 12}});
  const Entries entries = SomeEntries(500);
  Write(entries, {.policy = &written, .hash_seed = 5});
  const std::vector<std::pair<TableReading, std::string>> cases = {
      {{.policy = &other, .hash_seed = 5}, "was asked for"},
      {{.policy = &other, .hash_seed = 5, .filters_in_memory = false}, "was asked for"},
      {{.policy = nullptr, .hash_seed = 5}, "no filter was asked for"},
      {{.policy = &written, .hash_seed = 6}, "seed"}};
  for (const auto& [reading, reason] : cases) {
    const auto table = Open(reading);
    ASSERT_TRUE(table) << table.error();
    EXPECT_THAT((*table)->filter_problem(), HasSubstr(reason));
    EXPECT_THAT((*table)->filter_problem(), HasSubstr(PathOf().string()));
    ReadCounters counters;
    ExpectHolds(**table, entries, counters);
    ExpectLaws(counters);
    EXPECT_EQ(counters.probes(), 0u);
  }
}

TEST_F(TableTest, PrefixesAreAskedOfTheirOwnFilter) {
  const PolicyOf<BlockedBloom> policy(nlohmann::json{{"bits_per_key", 20}});
  Entries entries;
  for (uint64_t i = 0; i < 300; ++i) {
    for (const char* suffix : {"", "a", "b"}) entries[Key(2 * i) + suffix] = "x";
  }
  entries["short"] = "y";
  Write(entries, {.policy = &policy, .prefix_bytes = 8, .hash_seed = 5});
  const auto table = Open({.policy = &policy, .prefix_bytes = 8, .hash_seed = 5});
  ASSERT_TRUE(table) << table.error();
  ReadCounters counters;
  for (uint64_t i = 0; i < 300; ++i) {
    const Result<bool> may_have = (*table)->MayHavePrefix(Key(2 * i), counters);
    ASSERT_TRUE(may_have && *may_have);
  }
  EXPECT_EQ(counters.filter_negatives, 0u);
  for (uint64_t i = 0; i < 300; ++i) {
    ASSERT_TRUE((*table)->MayHavePrefix(Key(2 * i + 1), counters));
  }
  EXPECT_GT(counters.filter_negatives + counters.range_skips, 290u);
  // Of another length there is no filter.
  const ReadCounters before = counters;
  EXPECT_TRUE(*(*table)->MayHavePrefix("shor", counters));
  EXPECT_EQ(counters.not_consulted, before.not_consulted + 1);
}

TEST_F(TableTest, SeeksBetweenBlocks) {
  const Entries entries = SomeEntries(2000);
  Write(entries, {});
  const auto table = Open({});
  ASSERT_TRUE(table) << table.error();
  ReadCounters counters;
  for (uint64_t i = 0; i < 400; ++i) {
    const std::string first = Key(i * 3 + 1);
    const auto cursor = (*table)->Seek(first, counters);
    const auto wanted = entries.lower_bound(first);
    ASSERT_EQ(cursor->valid(), wanted != entries.end());
    if (!cursor->valid()) continue;
    ASSERT_EQ(cursor->key(), wanted->first);
    const auto after = std::next(wanted);
    cursor->Next();
    ASSERT_EQ(cursor->valid(), after != entries.end());
    if (cursor->valid()) {
      ASSERT_EQ(cursor->key(), after->first);
    }
  }
}

TEST_F(TableTest, PhasesAreCountedOnlyWhereAsked) {
  Write(SomeEntries(100), {});
  const auto table = Open({});
  ReadCounters counters;
  ReadPhases phases;
  ASSERT_TRUE((*table)->Get(Key(0), 1, nullptr, counters, &phases));
  EXPECT_EQ(phases.clock_readings, 3u);
  EXPECT_GT(phases.block_ns, 0);
}

// No byte of a file can be changed, and no part cut off, so that an answer is wrong: opening or
// reading fails, or the filter is left out.
TEST_F(TableTest, DamageIsReportedAndNeverAnswered) {
  const PolicyOf<BlockedBloom> policy;
  const Entries entries = SomeEntries(60);
  Write(entries, {.policy = &policy, .prefix_bytes = 8, .hash_seed = 5});
  std::ifstream in(PathOf(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  in.close();
  const TableReading reading = {.policy = &policy, .prefix_bytes = 8, .hash_seed = 5};

  uint64_t not_opened = 0, not_read = 0, without_filter = 0;
  const auto check = [&](const std::string& bytes) {
    std::ofstream(PathOf(), std::ios::binary | std::ios::trunc) << bytes;
    const auto table = Open(reading);
    if (!table) {
      ++not_opened;
      ASSERT_THAT(table.error(), HasSubstr(PathOf().string()));
      return;
    }
    if (!(*table)->filter_problem().empty()) ++without_filter;
    bool reported = !(*table)->filter_problem().empty();
    ReadCounters counters;
    std::string value;
    for (const auto& [key, wanted] : entries) {
      const Result<Found> found = (*table)->Get(key, HashBytes(key, 5), &value, counters, nullptr);
      if (!found) {
        reported = true;
        ASSERT_THAT(found.error(), HasSubstr(PathOf().string()));
        continue;
      }
      ASSERT_EQ(*found, wanted ? Found::kValue : Found::kTombstone);
      if (wanted) {
        ASSERT_EQ(value, *wanted);
      }
    }
    if (!(*table)->filter_problem().empty()) return;
    ++not_read;
    ASSERT_TRUE(reported);
  };
  for (size_t i = 0; i < whole.size(); i += i % 4096 < 300 ? 7 : 97) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    ASSERT_NO_FATAL_FAILURE(check(bytes)) << "byte " << i;
  }
  EXPECT_GT(not_opened, 0u);
  EXPECT_GT(not_read, 0u);
  EXPECT_GT(without_filter, 0u);
  for (size_t size = 0; size < whole.size(); size += 2048) {
    ASSERT_NO_FATAL_FAILURE(check(whole.substr(0, size))) << size << " bytes";
  }
  ASSERT_NO_FATAL_FAILURE(check(whole + std::string(4096, '\0')));
}

// Sections with a right checksum and impossible contents.
TEST_F(TableTest, ARightChecksumIsNotTrusted) {
  Write(SomeEntries(60), {.hash_seed = 5});
  std::ifstream in(PathOf(), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  in.close();
  const uint64_t sections = whole.size() / kDirectAlignment;
  for (uint64_t section = 0; section < sections; ++section) {
    for (uint64_t at = kChecksumBytes; at < 400; at += 17) {
      for (const char byte : {'\x00', '\xff'}) {
        std::string bytes = whole;
        const uint64_t begin = section * kDirectAlignment;
        bytes[begin + at] = byte;
        const std::string_view changed = std::string_view(bytes).substr(begin, kDirectAlignment);
        const uint64_t checksum = SectionChecksum(changed);
        std::memcpy(&bytes[begin], &checksum, sizeof(checksum));
        std::ofstream(PathOf(), std::ios::binary | std::ios::trunc) << bytes;
        const auto table = Open({.hash_seed = 5});
        if (!table) continue;
        ReadCounters counters;
        std::string value;
        for (uint64_t i = 0; i < 20; ++i) {
          (void)(*table)->Get(Key(i), 0, &value, counters, nullptr);
        }
        (void)(*table)->Scan("", counters, [](auto, auto) { return true; });
      }
    }
  }
}

TEST_F(TableTest, ErrorsOfTheSystemNameTheFile) {
  EXPECT_THAT(Open({}).error(), HasSubstr(PathOf().string()));
  const auto nowhere = TableBuilder::Create(*files_, directory_.path() / "none", 7, {});
  EXPECT_THAT(nowhere.error(), HasSubstr("none"));
  Write(SomeEntries(3), {});
  const auto full = files_->CreateNew("/dev/full");
  EXPECT_FALSE(full);
  EXPECT_THAT(files_->CreateNew(PathOf()).error(), HasSubstr("File exists"));
  EXPECT_THAT(files_->OpenForReading(directory_.path(), false).error(), HasSubstr("is no file"));
  const auto file = files_->OpenForReading(PathOf(), false);
  std::vector<std::byte> beyond(4096);
  EXPECT_THAT((*file)->Read((*file)->size() - 100, beyond)->message, HasSubstr("ends at"));
}

}  // namespace
}  // namespace filterbench::lsm
