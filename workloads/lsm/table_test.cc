#include "workloads/lsm/table.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
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
#include "workloads/lsm/testing.h"
#include "workloads/testing.h"
#include "workloads/workload.h"

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

// Filters that are never wrong, so that what a get must count is known.
class ExactSets final : public FilterPolicy {
 public:
  explicit ExactSets(bool builds = true) : builds_(builds) {}
  std::string_view identity() const override { return "exact"; }
  bool can_insert() const override { return false; }
  Result<std::unique_ptr<KeyFilter>> Build(std::span<const uint64_t> hashes,
                                           uint64_t) const override {
    if (!builds_) return Error{"no room for its keys"};
    return std::unique_ptr<KeyFilter>(
        std::make_unique<ExactSet>(std::vector<uint64_t>(hashes.begin(), hashes.end())));
  }
  Result<std::unique_ptr<KeyFilter>> Create(uint64_t, uint64_t) const override {
    return Error{"takes no single keys"};
  }
  Result<std::unique_ptr<KeyFilter>> Load(std::span<const std::byte> bytes) const override {
    if (bytes.size() % sizeof(uint64_t) != 0) return Error{"is no list of hashes"};
    std::vector<uint64_t> hashes(bytes.size() / sizeof(uint64_t));
    if (!bytes.empty()) std::memcpy(hashes.data(), bytes.data(), bytes.size());
    return std::unique_ptr<KeyFilter>(std::make_unique<ExactSet>(std::move(hashes)));
  }

 private:
  class ExactSet final : public KeyFilter {
   public:
    explicit ExactSet(std::vector<uint64_t> hashes) : hashes_(std::move(hashes)) {}
    bool MayContain(uint64_t hash) const override {
      return std::find(hashes_.begin(), hashes_.end(), hash) != hashes_.end();
    }
    void MayContainBits(std::span<const uint64_t> hashes, uint64_t* bits) const override {
      std::fill_n(bits, (hashes.size() + 63) / 64, 0);
      for (size_t i = 0; i < hashes.size(); ++i) {
        bits[i / 64] |= uint64_t{MayContain(hashes[i])} << (i % 64);
      }
    }
    uint64_t SizeInBytes() const override { return hashes_.size() * sizeof(uint64_t); }
    std::optional<uint64_t> PeakBuildBytes() const override { return 0; }
    std::optional<FprEstimate> ExpectedFpr() const override { return std::nullopt; }
    std::span<const std::byte> Table() const override { return std::as_bytes(std::span(hashes_)); }
    std::vector<std::byte> Serialize() const override {
      return {Table().begin(), Table().end()};
    }
    bool Insert(uint64_t) override { return false; }

   private:
    std::vector<uint64_t> hashes_;
  };

  const bool builds_;
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
          if (!table && table.error().starts_with(kNotHere)) continue;
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
    uint64_t which = 0;
    for (const uint64_t value_bytes : {0, 1, 127, 4000, 20'000}) {
      std::string key(bytes, 'k');
      if (!key.empty()) key.back() = static_cast<char>('a' + which++);
      entries[key] = ValueOf(key, value_bytes);
    }
  }
  entries[std::string(300, 'z')] = std::nullopt;
  const PolicyOf<BlockedBloom> blocked;
  const PolicyOf<Ribbon> ribbon;
  for (const FilterPolicy* policy :
       std::initializer_list<const FilterPolicy*>{nullptr, &blocked, &ribbon}) {
    Write(entries, {.policy = policy, .hash_seed = 5});
    for (const bool direct : {false, true}) {
      for (const bool in_memory : {true, false}) {
        const auto table = Open({.policy = policy,
                                 .hash_seed = 5,
                                 .direct_io = direct,
                                 .filters_in_memory = in_memory});
        if (!table && table.error().starts_with(kNotHere)) continue;
        ASSERT_TRUE(table) << table.error();
        ReadCounters counters;
        ExpectHolds(**table, entries, counters);
        ExpectLaws(counters);
      }
    }
  }
}

// Which counter each kind of get adds to, where the filter is known to be right, to be of no use,
// or absent.
TEST_F(TableTest, EachGetIsCountedOnceAsWhatItIs) {
  const Entries entries = {{"d", "1"}, {"f", std::nullopt}, {"h", "3"}};
  const ExactSets exact;
  const AlwaysYes always;
  for (const bool in_memory : {true, false}) {
    for (const FilterPolicy* policy :
         std::initializer_list<const FilterPolicy*>{nullptr, &exact, &always}) {
      Write(entries, {.policy = policy, .hash_seed = 5});
      const auto table =
          Open({.policy = policy, .hash_seed = 5, .filters_in_memory = in_memory});
      ASSERT_TRUE(table) << table.error();
      ReadCounters counters;
      // Out of range, absent within it, and present, of which one is a tombstone.
      for (const char* key : {"a", "c", "i", "zz", "", "e", "g", "d", "f", "h"}) {
        ASSERT_TRUE((*table)->Get(key, HashBytes(key, 5), nullptr, counters, nullptr));
      }
      ReadCounters wanted = {.candidates = 10, .range_skips = 5};
      if (policy == nullptr) {
        wanted.not_consulted = 5;
      } else {
        wanted.maybe_true = 3;
        (policy == &exact ? wanted.filter_negatives : wanted.maybe_false) = 2;
        wanted.filter_reads = in_memory ? 0 : 5;
      }
      wanted.index_lookups = wanted.block_reads = policy == &exact ? 3 : 5;
      wanted.block_bytes = wanted.block_reads * kDirectAlignment;
      wanted.filter_bytes = wanted.filter_reads * kDirectAlignment;
      EXPECT_EQ(counters, wanted);
    }
  }
}

TEST_F(TableTest, ABuildThatUsesNoMemoryIsNotOneThatDoesNotSay) {
  const ExactSets says_none;                  // 0 bytes
  const PolicyOf<BlockedBloom> does_not_say;
  for (const FilterPolicy* policy : std::initializer_list<const FilterPolicy*>{
           &says_none, &does_not_say}) {
    const TableFacts facts = Write(SomeEntries(3), {.policy = policy});
    const auto table = Open({.policy = policy});
    ASSERT_TRUE(table) << table.error();
    EXPECT_EQ(facts.filter_peak_bytes.has_value(), policy == &says_none);
    EXPECT_EQ((*table)->facts(), facts);
  }
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

TEST_F(TableTest, AFilterThatCannotBeBuiltIsAnErrorOfTheFile) {
  const ExactSets policy(/*builds=*/false);
  {
    auto builder = TableBuilder::Create(*files_, directory_.path(), 7, {.policy = &policy});
    ASSERT_TRUE(builder);
    EXPECT_FALSE((*builder)->Add("b", "1"));
    const std::string error = (*builder)->Finish().error();
    EXPECT_THAT(error, HasSubstr(PathOf().string()));
    EXPECT_THAT(error, HasSubstr("no room for its keys"));
  }
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

// A file with a hole would be one that was written, to all that look at its name.
TEST_F(TableTest, AfterAWriteThatFailedNothingIsFinished) {
  const std::string value(3000, 'v');
  for (const auto fails : {FaultyFiles::Fails::kUndone, FaultyFiles::Fails::kHalf}) {
    MemoryFiles memory;
    FaultyFiles files(memory, {.at = 2, .fails = fails});  // 1 makes the file
    {
      auto builder = TableBuilder::Create(files, "d", 7, {});
      ASSERT_TRUE(builder);
      uint64_t failed = 0;
      for (const char* key : {"a", "b", "c", "d"}) {
        failed += (*builder)->Add(key, value).has_value();
      }
      EXPECT_EQ(failed, 3u);
      EXPECT_FALSE((*builder)->Finish());
    }
    EXPECT_TRUE(memory.files.empty());
  }
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

TEST_F(TableTest, FiltersOfPrefixesOfAnotherLengthAreNotAsked) {
  const ExactSets policy;
  Write({{"aaaa", "1"}, {"cccc", "2"}}, {.policy = &policy, .prefix_bytes = 2, .hash_seed = 5});
  for (const bool in_memory : {true, false}) {
    for (const uint32_t prefix_bytes : {0, 1, 3}) {
      const auto table = Open({.policy = &policy,
                               .prefix_bytes = prefix_bytes,
                               .hash_seed = 5,
                               .filters_in_memory = in_memory});
      ASSERT_TRUE(table) << table.error();
      ReadCounters counters;
      for (const char* prefix : {"", "a", "aa", "aaa", "aaaa"}) {
        const Result<bool> may_have = (*table)->MayHavePrefix(prefix, counters);
        ASSERT_TRUE(may_have && *may_have) << prefix;
      }
      EXPECT_EQ(counters.not_consulted, 5u);
    }
  }
}

TEST_F(TableTest, NoKeyNeedBeAsLongAsAPrefix) {
  const PolicyOf<BlockedBloom> blocked;
  const PolicyOf<Ribbon> ribbon;
  const PolicyOf<Cuckoo> cuckoo;
  const PolicyOf<Xor> xor_filter;
  for (const FilterPolicy* policy : std::initializer_list<const FilterPolicy*>{
           &blocked, &ribbon, &cuckoo, &xor_filter}) {
    const Entries entries = {{"", "0"}, {"a", "1"}, {"b", "2"}};
    Write(entries, {.policy = policy, .prefix_bytes = 8, .hash_seed = 5});
    const auto table = Open({.policy = policy, .prefix_bytes = 8, .hash_seed = 5});
    ASSERT_TRUE(table) << table.error();
    EXPECT_EQ((*table)->filter_problem(), "");
    ReadCounters counters;
    ExpectHolds(**table, entries, counters);
    EXPECT_TRUE((*table)->MayHavePrefix("aaaaaaaa", counters));
  }
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

// A table in memory that is damaged in many ways: opening or reading it must fail, or the filters
// be left out; no answer may be wrong.
class DamagedTableTest : public ::testing::Test {
 protected:
  DamagedTableTest() { whole_ = Write(7); }

  std::string Write(uint64_t number) {
    auto builder = TableBuilder::Create(
        files_, "d", number, {.policy = &policy_, .prefix_bytes = 8, .hash_seed = 5});
    for (const auto& [key, value] : entries_) {
      EXPECT_FALSE((*builder)->Add(key, value ? std::optional<std::string_view>(*value)
                                              : std::nullopt));
    }
    EXPECT_TRUE((*builder)->Finish());
    return files_.files.at(PathOf(number))->bytes;
  }
  static std::string PathOf(uint64_t number) {
    return (fs::path("d") / TableName(number)).string();
  }
  uint64_t sections() const { return whole_.size() / kDirectAlignment; }

  // Changes the file before it is opened, and again while it is open.
  void ExpectNoWrongAnswer(const std::string& bytes) {
    for (const bool in_memory : {true, false}) {
      const TableReading reading = {.policy = &policy_,
                                    .prefix_bytes = 8,
                                    .hash_seed = 5,
                                    .filters_in_memory = in_memory};
      std::string& file = files_.files.at(PathOf(7))->bytes;
      file = bytes;
      const auto table = Table::Open(files_, "d", 7, reading);
      if (table) {
        if (!(*table)->filter_problem().empty()) ++without_filter_;
        ASSERT_NO_FATAL_FAILURE(Ask(**table));
      } else {
        ++not_opened_;
        ASSERT_THAT(table.error(), HasSubstr(PathOf(7)));
      }
      file = whole_;
      const auto intact = Table::Open(files_, "d", 7, reading);
      ASSERT_TRUE(intact) << intact.error();
      file = bytes;
      // What is in memory by now need not be read again, so that no damage may be seen.
      ASSERT_NO_FATAL_FAILURE(Ask(**intact, /*must_report=*/false));
    }
  }

  bool OpenAndAskAnything() {
    const auto table =
        Table::Open(files_, "d", 7, {.policy = &policy_, .prefix_bytes = 8, .hash_seed = 5});
    if (!table) return false;
    ReadCounters counters;
    std::string value;
    for (const auto& [key, wanted] : entries_) {
      (void)(*table)->Get(key, HashBytes(key, 5), &value, counters, nullptr);
      (void)(*table)->MayHavePrefix(key.substr(0, 8), counters);
    }
    (void)(*table)->Scan("", counters, [](auto, auto) { return true; });
    return true;
  }

  uint64_t not_opened_ = 0;
  uint64_t not_read_ = 0;
  uint64_t without_filter_ = 0;
  std::string whole_;
  MemoryFiles files_;

 private:
  void Ask(const Table& table, bool must_report = true) {
    bool failed = false;
    ReadCounters counters;
    std::string value;
    for (const auto& [key, wanted] : entries_) {
      const Result<Found> found = table.Get(key, HashBytes(key, 5), &value, counters, nullptr);
      if (!found) {
        failed = true;
        ASSERT_THAT(found.error(), HasSubstr(PathOf(7)));
      } else {
        ASSERT_EQ(*found, wanted ? Found::kValue : Found::kTombstone) << key;
        if (wanted) {
          ASSERT_EQ(value, *wanted);
        }
      }
      const Result<bool> may_have = table.MayHavePrefix(key.substr(0, 8), counters);
      if (may_have) {
        ASSERT_TRUE(*may_have) << key;
      }
    }
    auto next = entries_.begin();
    const auto error = table.Scan("", counters, [&](auto key, auto entry_value) {
      const bool right =
          next != entries_.end() && key == next->first && entry_value == next->second;
      EXPECT_TRUE(right) << key;
      ++next;
      return right;
    });
    ASSERT_TRUE(error || next == entries_.end());
    failed |= error.has_value();
    if (failed) ++not_read_;
    if (must_report) {
      ASSERT_TRUE(failed || !table.filter_problem().empty());
    }
  }

  const ExactSets policy_;
  const Entries entries_ = SomeEntries(12, 600);
};

TEST_F(DamagedTableTest, AnyByte) {
  for (size_t i = 0; i < whole_.size(); ++i) {
    std::string bytes = whole_;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    ASSERT_NO_FATAL_FAILURE(ExpectNoWrongAnswer(bytes)) << "byte " << i;
  }
  // Two sections of each kind: data blocks, filters, index and footer.
  ASSERT_EQ(sections(), 6u);
  EXPECT_EQ(not_opened_, 2 * 2 * kDirectAlignment);
  EXPECT_EQ(without_filter_, 2 * 2 * kDirectAlignment);
  EXPECT_EQ(not_read_, 2 * 2 * 2 * kDirectAlignment);
}

TEST_F(DamagedTableTest, AnyLength) {
  for (size_t size = 0; size < whole_.size(); ++size) {
    ASSERT_NO_FATAL_FAILURE(ExpectNoWrongAnswer(whole_.substr(0, size))) << size << " bytes";
  }
  EXPECT_EQ(not_opened_, 2 * whole_.size());
  for (const uint64_t more : {uint64_t{1}, kDirectAlignment}) {
    ASSERT_NO_FATAL_FAILURE(ExpectNoWrongAnswer(whole_ + std::string(more, '\0')));
  }
}

// A write that went to another place, or was lost: sections that are right, but not here.
TEST_F(DamagedTableTest, SectionsOfOtherPlacesAndOtherFiles) {
  const std::string other = Write(8);
  const auto section = [](std::string& bytes, uint64_t index) {
    return std::span(bytes).subspan(index * kDirectAlignment, kDirectAlignment);
  };
  for (uint64_t to = 0; to < sections(); ++to) {
    for (uint64_t from = 0; from < sections(); ++from) {
      if (to == from) continue;
      std::string swapped = whole_;
      std::ranges::swap_ranges(section(swapped, to), section(swapped, from));
      ASSERT_NO_FATAL_FAILURE(ExpectNoWrongAnswer(swapped)) << to << " and " << from;
      std::string copied = whole_;
      std::ranges::copy(section(whole_, from), section(copied, to).begin());
      ASSERT_NO_FATAL_FAILURE(ExpectNoWrongAnswer(copied)) << from << " to " << to;
    }
    std::string mixed = whole_;
    std::string others = other;
    std::ranges::copy(section(others, to), section(mixed, to).begin());
    ASSERT_NO_FATAL_FAILURE(ExpectNoWrongAnswer(mixed)) << to << " of another file";
    std::string zeros = whole_;
    std::ranges::fill(section(zeros, to), '\0');
    ASSERT_NO_FATAL_FAILURE(ExpectNoWrongAnswer(zeros)) << to << " is zeros";
  }
  ASSERT_NO_FATAL_FAILURE(ExpectNoWrongAnswer(other));
}

// Sections with a right checksum and impossible contents: no promise but that nothing is read
// beyond them and no memory taken that the file does not have.
TEST_F(DamagedTableTest, ARightChecksumIsNotTrusted) {
  std::string& bytes = files_.files.at(PathOf(7))->bytes;
  uint64_t opened = 0;
  for (uint64_t section = 0; section < sections(); ++section) {
    const uint64_t begin = section * kDirectAlignment;
    const Home home = {.file_number = section + 1 == sections() ? 0u : 7u, .offset = begin};
    const auto sealed = [&] { return std::string_view(bytes).substr(begin, kDirectAlignment); };
    for (uint64_t at = kChecksumBytes; at < 400; ++at) {
      for (const char byte : {'\x00', '\x01', '\x7f', '\xff'}) {
        bytes = whole_;
        bytes[begin + at] = byte;
        const uint64_t checksum = SectionChecksum(sealed(), home);
        std::memcpy(&bytes[begin], &checksum, sizeof(checksum));
        opened += OpenAndAskAnything();
      }
    }
  }
  // Every change of a data block, and those of other sections that say nothing new.
  EXPECT_GT(opened, 2 * (400 - kChecksumBytes) * 4);
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
