#include "workloads/lsm/store.h"

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/bloom/blocked.h"
#include "filters/cuckoo/cuckoo.h"
#include "filters/fuse/xor.h"
#include "filters/ribbon/ribbon.h"
#include "workloads/lsm/testing.h"
#include "workloads/testing.h"

namespace filterbench::lsm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Model = std::map<std::string, std::string>;

constexpr Shape kShapes[] = {Shape::kFiles, Shape::kLeveled, Shape::kSizeTiered};
constexpr uint32_t kPrefixBytes = 5;

std::string KeyOf(uint64_t i) { return fmt::format("key{:03}", i); }

const FilterPolicy* Blocked() {
  static const filterbench::PolicyOf<BlockedBloom> policy;
  return &policy;
}
const FilterPolicy* Yes() {
  static const AlwaysYes policy;
  return &policy;
}

StoreOptions OptionsOf(Shape shape, Files& files, const FilterPolicy* policy) {
  return {.shape = shape,
          .memtable_bytes = 1 << 20,
          .block_bytes = 256,
          .level0_files = 3,
          .size_ratio = 3,
          .level1_bytes = 1200,
          .file_bytes = 600,
          .policy_of = [policy](int, bool) { return policy; },
          .prefix_bytes = kPrefixBytes,
          .hash_seed = 7,
          .filter_seed = 9,
          .files = &files};
}

std::unique_ptr<Store> OpenOrThrow(const StoreOptions& options) {
  Result<std::unique_ptr<Store>> store = Store::Open("d", options);
  if (!store) throw std::runtime_error(store.error());
  return *std::move(store);
}

void Check(const std::optional<Error>& error) {
  if (error) throw std::runtime_error(error->message);
}

bool Has(Store& store, std::string_view key, std::string* value = nullptr,
         ReadStats* stats = nullptr) {
  const Result<bool> found = store.Get(key, value, stats);
  if (!found) throw std::runtime_error(found.error());
  return *found;
}

Model Scanned(Store& store, std::string_view first) {
  Model entries;
  Check(store.Scan(first, nullptr, [&](std::string_view key, std::string_view value) {
    EXPECT_TRUE(entries.empty() || entries.rbegin()->first < key) << key;
    entries.emplace(key, value);
    return true;
  }));
  return entries;
}

Model ScannedPrefix(Store& store, std::string_view prefix, ReadStats* stats = nullptr) {
  Model entries;
  Check(store.ScanPrefix(prefix, stats, [&](std::string_view key, std::string_view value) {
    EXPECT_TRUE(entries.empty() || entries.rbegin()->first < key) << key;
    entries.emplace(key, value);
    return true;
  }));
  return entries;
}

Model PartOf(const Model& model, std::string_view prefix) {
  Model part;
  for (auto at = model.lower_bound(std::string(prefix));
       at != model.end() && at->first.starts_with(prefix); ++at) {
    part.insert(*at);
  }
  return part;
}

void ExpectLaws(const ReadStats& stats) {
  for (const ReadCounters& run : stats.runs) {
    EXPECT_EQ(run.candidates, run.range_skips + run.not_consulted + run.probes());
    EXPECT_EQ(run.probes(), run.filter_negatives + run.maybe_true + run.maybe_false);
  }
}

uint64_t DataBytesOf(const Table& table) {
  uint64_t bytes = 0;
  ReadCounters unused;
  for (auto cursor = table.Seek({}, unused); cursor->valid(); cursor->Next()) {
    bytes += cursor->key().size() + (cursor->value() ? cursor->value()->size() : 0);
  }
  return bytes;
}

// --- Answers do not depend on filters (J4) ---

struct Named {
  std::string name;
  const FilterPolicy* policy;
};

std::vector<Named> Policies() {
  // By columns: few keys have few bits each of a ribbon's least size.
  static const filterbench::PolicyOf<Ribbon> ribbon(nlohmann::json{{"columns", 7}});
  static const filterbench::PolicyOf<Cuckoo> cuckoo;
  static const filterbench::PolicyOf<Xor> xor_filter;
  return {{"none", nullptr},    {"always yes", Yes()}, {"blocked_bloom", Blocked()},
          {"ribbon", &ribbon},  {"cuckoo", &cuckoo},   {"xor", &xor_filter}};
}

// One store per policy, written alike.
struct Twin {
  std::string name;
  std::unique_ptr<MemoryFiles> files;
  StoreOptions options;
  std::unique_ptr<Store> store;
  ReadStats stats;
};

void ExpectAnswers(Twin& twin, const Model& model) {
  SCOPED_TRACE(twin.name);
  Store& store = *twin.store;
  // 200 keys, and as many between and around them that were never there.
  for (int i = 0; i < 200; ++i) {
    std::string value;
    const auto at = model.find(KeyOf(i));
    ASSERT_EQ(Has(store, KeyOf(i), &value, &twin.stats), at != model.end()) << KeyOf(i);
    if (at != model.end()) {
      ASSERT_EQ(value, at->second) << KeyOf(i);
    }
    ASSERT_FALSE(Has(store, KeyOf(i) + "x", nullptr, &twin.stats));
  }
  ASSERT_FALSE(Has(store, "a", nullptr, &twin.stats));
  ASSERT_FALSE(Has(store, "z", nullptr, &twin.stats));
  ASSERT_EQ(Scanned(store, {}), model);
  ASSERT_EQ(Scanned(store, KeyOf(130)),
            Model(model.lower_bound(KeyOf(130)), model.end()));
  for (const char* prefix : {"key00", "key07", "key19", "key20", "aaaaa", "zzzzz"}) {
    ASSERT_EQ(ScannedPrefix(store, prefix, &twin.stats), PartOf(model, prefix)) << prefix;
  }
  // Of lengths that filters of prefixes do not know.
  for (const char* prefix : {"key1", "key077", ""}) {
    ASSERT_EQ(ScannedPrefix(store, prefix), PartOf(model, prefix)) << prefix;
  }
  ExpectLaws(twin.stats);
  ASSERT_THAT(store.warnings(), IsEmpty());
}

void ExpectSameTree(const Twin& twin, const Twin& other) {
  SCOPED_TRACE(twin.name);
  ASSERT_EQ(twin.store->runs().size(), other.store->runs().size());
  for (size_t run = 0; run < twin.store->runs().size(); ++run) {
    const auto tables = twin.store->tables(run);
    const auto others = other.store->tables(run);
    ASSERT_EQ(tables.size(), others.size());
    for (size_t i = 0; i < tables.size(); ++i) {
      ASSERT_EQ(tables[i]->facts().number, others[i]->facts().number);
      ASSERT_EQ(tables[i]->facts().entries, others[i]->facts().entries);
      ASSERT_EQ(tables[i]->facts().smallest, others[i]->facts().smallest);
    }
  }
}

class EveryShape : public ::testing::TestWithParam<Shape> {};

// Case J4: with every filter, with one that always says yes, and with none.
TEST_P(EveryShape, AnswersAreThoseOfAMapWhateverTheFilters) {
  std::vector<Twin> twins;
  for (const auto& [name, policy] : Policies()) {
    Twin& twin = twins.emplace_back();
    twin.name = name;
    twin.files = std::make_unique<MemoryFiles>();
    twin.options = OptionsOf(GetParam(), *twin.files, policy);
    twin.options.memtable_bytes = 1500;
    twin.store = OpenOrThrow(twin.options);
  }
  Model model;
  std::mt19937_64 random(1);
  uint64_t most_runs = 0;
  for (int step = 1; step <= 10'000; ++step) {
    const uint64_t draw = random() % 1000;
    const std::string key = KeyOf(random() % 200);
    const std::string value(random() % 40, static_cast<char>('a' + random() % 26));
    for (Twin& twin : twins) {
      if (draw < 680) {
        Check(twin.store->Put(key, value));
      } else if (draw < 960) {
        Check(twin.store->Delete(key));
      } else if (draw < 995) {
        Check(twin.store->Flush());
      } else {
        Check(twin.store->CompactAll());
      }
    }
    if (draw < 680) {
      model[key] = value;
    } else if (draw < 960) {
      model.erase(key);
    }
    most_runs = std::max<uint64_t>(most_runs, twins[0].store->runs().size());
    if (step % 100 != 0) continue;
    if (step % 1000 == 0) {
      // What is in the memtable would be lost.
      for (Twin& twin : twins) {
        Check(twin.store->Flush());
        twin.store.reset();
        twin.store = OpenOrThrow(twin.options);
      }
    }
    SCOPED_TRACE(fmt::format("step {}", step));
    for (Twin& twin : twins) {
      ASSERT_NO_FATAL_FAILURE(ExpectAnswers(twin, model));
      ASSERT_NO_FATAL_FAILURE(ExpectSameTree(twin, twins[0]));
    }
  }
  EXPECT_GE(most_runs, 4u);

  const ReadCounters none = twins[0].stats.total();
  EXPECT_EQ(none.probes(), 0u);
  EXPECT_GT(none.not_consulted, 10'000u);
  for (const Twin& twin : twins) {
    SCOPED_TRACE(twin.name);
    const ReadCounters total = twin.stats.total();
    EXPECT_EQ(total.candidates, none.candidates);
    EXPECT_EQ(total.range_skips, none.range_skips);
    if (twin.name == "none") continue;
    EXPECT_EQ(total.not_consulted, 0u);
    if (twin.name == "always yes") {
      EXPECT_EQ(total.block_reads, none.block_reads);
      EXPECT_EQ(total.filter_negatives, 0u);
    } else {
      EXPECT_LT(total.block_reads, none.block_reads);
      EXPECT_GT(total.filter_negatives, 20 * total.maybe_false);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, EveryShape, ::testing::ValuesIn(kShapes), [](const auto& info) {
  return std::string(kShapeNames[static_cast<size_t>(info.param)]);
});

// --- Counters (J1) ---

// Case J1: what the memtable answers is no probe.
TEST(ReadStats, WhatIsInTheMemtableAsksNoFilter) {
  MemoryFiles files;
  const auto store = OpenOrThrow(OptionsOf(Shape::kLeveled, files, Blocked()));
  for (int i = 0; i < 16; ++i) Check(store->Put(KeyOf(i), "v"));
  Check(store->Delete(KeyOf(3)));
  ReadStats stats;
  for (int i = 0; i < 32; ++i) EXPECT_EQ(Has(*store, KeyOf(i), nullptr, &stats), i < 16 && i != 3);
  EXPECT_EQ(stats.memtable_hits, 16u);
  EXPECT_EQ(stats.total(), ReadCounters{});

  Check(store->Flush());
  stats = {};
  for (int i = 0; i < 32; ++i) Has(*store, KeyOf(i), nullptr, &stats);
  EXPECT_EQ(stats.memtable_hits, 0u);
  ASSERT_THAT(stats.runs, SizeIs(1));
  EXPECT_EQ(stats.runs[0].candidates, 32u);
  EXPECT_EQ(stats.runs[0].range_skips, 16u);
  EXPECT_EQ(stats.runs[0].maybe_true, 16u);  // the tombstone is one
  EXPECT_EQ(stats.runs[0].block_reads, 16u);
  ExpectLaws(stats);
}

// Files of level 0 from the oldest: a, c, e; then a, a tombstone of c, f.
std::unique_ptr<Store> TwoFiles(MemoryFiles& files, const FilterPolicy* policy) {
  auto store = OpenOrThrow(OptionsOf(Shape::kFiles, files, policy));
  for (const char* key : {"a", "c", "e"}) Check(store->Put(key, "old"));
  Check(store->Flush());
  for (const char* key : {"a", "f"}) Check(store->Put(key, "new"));
  Check(store->Delete("c"));
  Check(store->Flush());
  return store;
}

TEST(ReadStats, PerRunFromTheNewestUntilTheFirstVersion) {
  MemoryFiles files;
  const auto store = TwoFiles(files, Yes());
  struct Case {
    const char* key;
    bool found;
    ReadCounters newer;
    ReadCounters older;
  };
  const ReadCounters skip = {.candidates = 1, .range_skips = 1};
  const ReadCounters hit = {.candidates = 1, .maybe_true = 1, .index_lookups = 1,
                            .block_reads = 1};
  const ReadCounters miss = {.candidates = 1, .maybe_false = 1, .index_lookups = 1,
                             .block_reads = 1};
  for (const Case& c : {Case{"a", true, hit, {}},      // the older version is not asked for
                        Case{"c", false, hit, {}},     // nor what was deleted
                        Case{"e", true, miss, hit}, Case{"d", false, miss, miss},
                        Case{"f", true, hit, {}}, Case{"ee", false, miss, skip},
                        Case{"g", false, skip, skip}, Case{"A", false, skip, skip}}) {
    SCOPED_TRACE(c.key);
    ReadStats stats;
    std::string value;
    EXPECT_EQ(Has(*store, c.key, &value, &stats), c.found);
    ASSERT_THAT(stats.runs, SizeIs(2));
    for (ReadCounters& run : stats.runs) {
      EXPECT_EQ(run.block_bytes > 0, run.block_reads > 0);
      run.block_bytes = 0;
    }
    EXPECT_EQ(stats.runs[0], c.newer);
    EXPECT_EQ(stats.runs[1], c.older);
    ExpectLaws(stats);
  }
  std::string value;
  EXPECT_TRUE(Has(*store, "a", &value));
  EXPECT_EQ(value, "new");
}

TEST(ReadStats, ALevelIsOneCandidateEvenWhereNoFileOfItHasTheKeyInItsRange) {
  MemoryFiles files;
  const auto store = OpenOrThrow(OptionsOf(Shape::kLeveled, files, Blocked()));
  for (int i = 0; i < 200; ++i) Check(store->Put(KeyOf(i), std::string(20, 'v')));
  Check(store->CompactAll());
  ASSERT_THAT(store->runs(), SizeIs(1));
  ASSERT_GT(store->runs()[0].files, 4u);
  const std::string gap = store->tables(0)[1]->facts().largest + "+";
  for (const std::string& key : {std::string("a"), std::string("z"), gap}) {
    ReadStats stats;
    EXPECT_FALSE(Has(*store, key, nullptr, &stats));
    EXPECT_EQ(stats.total(), (ReadCounters{.candidates = 1, .range_skips = 1})) << key;
  }
}

TEST(ReadStats, PrefixesAreCountedAsKeysAre) {
  MemoryFiles files;
  const auto store = OpenOrThrow(OptionsOf(Shape::kFiles, files, Blocked()));
  for (const char* key : {"aaaaa1", "ccccc1", "ccccc2", "eeeee1"}) Check(store->Put(key, "v"));
  Check(store->Flush());
  const auto counted = [&](const char* prefix, size_t found) {
    ReadStats stats;
    EXPECT_THAT(ScannedPrefix(*store, prefix, &stats), SizeIs(found)) << prefix;
    ExpectLaws(stats);
    return stats.total();
  };
  EXPECT_EQ(counted("ccccc", 2).maybe_true, 1u);
  EXPECT_EQ(counted("bbbbb", 0).filter_negatives, 1u);
  EXPECT_EQ(counted("bbbbb", 0).block_reads, 0u);
  EXPECT_EQ(counted("zzzzz", 0).range_skips, 1u);
  // Of another length: filters do not know it.
  EXPECT_EQ(counted("cccc", 2).not_consulted, 1u);
  EXPECT_EQ(counted("ccccc2", 1).not_consulted, 1u);
  EXPECT_EQ(counted("zz", 0).range_skips, 1u);
}

TEST(ReadPhases, OnlyWhenAskedFor) {
  MemoryFiles files;
  const auto store = TwoFiles(files, Blocked());
  ReadStats stats;
  Has(*store, "e", nullptr, &stats);
  EXPECT_EQ(stats.phases.clock_readings, 0u);
  EXPECT_EQ(stats.phases.block_ns, 0);
  stats.time_phases = true;
  Has(*store, "e", nullptr, &stats);
  EXPECT_GE(stats.phases.clock_readings, 4u);
  EXPECT_GT(stats.phases.memtable_ns, 0);
  EXPECT_GT(stats.phases.filter_ns, 0);
  EXPECT_GT(stats.phases.index_ns, 0);
  EXPECT_GT(stats.phases.block_ns, 0);
}

// --- Filters that cannot be used (J2) ---

// Case J2: written with one policy, read with another.
TEST(Warnings, FiltersOfAnotherPolicyAreNamedAndNotUsed) {
  static const filterbench::PolicyOf<Ribbon> ribbon;
  static const filterbench::PolicyOf<BlockedBloom> more_bits(
      nlohmann::json{{"bits_per_key", 16}});
  for (const FilterPolicy* other :
       {static_cast<const FilterPolicy*>(&ribbon), static_cast<const FilterPolicy*>(&more_bits),
        static_cast<const FilterPolicy*>(nullptr)}) {
    MemoryFiles files;
    TwoFiles(files, Blocked());
    auto options = OptionsOf(Shape::kFiles, files, other);
    const auto store = OpenOrThrow(options);
    EXPECT_THAT(store->warnings(),
                ElementsAre(HasSubstr("000002.table: "), HasSubstr("000001.table: ")));
    EXPECT_EQ(store->runs()[0].unusable_filters, 1u);
    EXPECT_EQ(store->runs()[1].unusable_filters, 1u);
    ReadStats stats;
    EXPECT_TRUE(Has(*store, "e", nullptr, &stats));
    EXPECT_FALSE(Has(*store, "d", nullptr, &stats));
    EXPECT_FALSE(Has(*store, "c", nullptr, &stats));
    EXPECT_EQ(stats.total().not_consulted, 5u);
    EXPECT_EQ(stats.total().probes(), 0u);
    ExpectLaws(stats);

    // Written again they can be used.
    Check(store->RebuildFilters());
    EXPECT_THAT(store->warnings(), IsEmpty());
    stats = {};
    EXPECT_TRUE(Has(*store, "e", nullptr, &stats));
    EXPECT_EQ(stats.total().not_consulted, other == nullptr ? 2u : 0u);
  }
}

TEST(Warnings, HashesWithAnotherSeedWouldMissKeys) {
  MemoryFiles files;
  TwoFiles(files, Blocked());
  auto options = OptionsOf(Shape::kFiles, files, Blocked());
  options.hash_seed = 8;
  const auto store = OpenOrThrow(options);
  EXPECT_THAT(store->warnings(), SizeIs(2));
  for (const char* key : {"a", "e", "f"}) EXPECT_TRUE(Has(*store, key)) << key;
}

TEST(Warnings, NoneWhereFilesHaveNoFilter) {
  MemoryFiles files;
  TwoFiles(files, nullptr);
  const auto store = OpenOrThrow(OptionsOf(Shape::kFiles, files, Blocked()));
  EXPECT_THAT(store->warnings(), IsEmpty());
  ReadStats stats;
  EXPECT_FALSE(Has(*store, "d", nullptr, &stats));
  EXPECT_EQ(stats.total().not_consulted, 2u);
}

TEST(Policies, OfEachLevelAreFoundByTheirNames) {
  static const filterbench::PolicyOf<BlockedBloom> more_bits(
      nlohmann::json{{"bits_per_key", 16}});
  MemoryFiles files;
  auto options = OptionsOf(Shape::kLeveled, files, nullptr);
  std::set<std::pair<int, bool>> asked;
  options.policy_of = [&](int level, bool deepest) -> const FilterPolicy* {
    asked.emplace(level, deepest);
    if (deepest) return nullptr;
    return level == 0 ? &more_bits : Blocked();
  };
  options.policy_named = [](std::string_view identity) -> const FilterPolicy* {
    for (const FilterPolicy* policy : {Blocked(), static_cast<const FilterPolicy*>(&more_bits)}) {
      if (policy->identity() == identity) return policy;
    }
    return nullptr;
  };
  auto store = OpenOrThrow(options);
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 10; ++i) {
      Check(store->Put(KeyOf((round * 77 + i * 13) % 997), std::string(20, 'v')));
    }
    Check(store->Flush());
  }
  EXPECT_FALSE(asked.contains({0, true}));
  for (const auto& at : {std::pair{0, false}, {1, false}, {1, true}, {2, true}}) {
    EXPECT_TRUE(asked.contains(at)) << at.first << at.second;
  }
  Check(store->Put(KeyOf(0), "v"));
  Check(store->Flush());
  store = OpenOrThrow(options);
  EXPECT_THAT(store->warnings(), IsEmpty());
  const std::vector<RunInfo> runs = store->runs();
  ASSERT_GE(runs.size(), 3u);
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool last = i + 1 == runs.size();
    EXPECT_EQ(runs[i].filter_keys, last ? 0 : runs[i].entries) << i;
  }
}

// --- Damage ---

TEST(Damage, OfAnyByteIsNamedOrChangesNoAnswer) {
  MemoryFiles files;
  Model model;
  {
    const auto store = OpenOrThrow(OptionsOf(Shape::kFiles, files, Blocked()));
    for (int file = 0; file < 2; ++file) {
      for (int i = file; i < 30; i += 2 - file) {
        Check(store->Put(KeyOf(i), fmt::format("{}/{}", file, i)));
        model[KeyOf(i)] = fmt::format("{}/{}", file, i);
      }
      Check(store->Delete(KeyOf(7)));
      model.erase(KeyOf(7));
      Check(store->Flush());
    }
  }
  uint64_t at_open = 0;
  uint64_t warned = 0;
  uint64_t at_reading = 0;
  for (const auto& [path, content] : files.files) {
    // What sections begin with, and samples of the rest, which is mostly padding.
    for (size_t i = 0; i < content->bytes.size(); i += i % 4096 < 200 ? 1 : 97) {
      const char sound = content->bytes[i];
      content->bytes[i] = static_cast<char>(sound ^ (1 << i % 8));
      const auto opened = Store::Open("d", OptionsOf(Shape::kFiles, files, Blocked()));
      if (!opened) {
        ASSERT_THAT(opened.error(), HasSubstr(path)) << i;
        ++at_open;
      } else {
        ASSERT_NE(path, "d/MANIFEST") << i;
        Store& store = **opened;
        if (!store.warnings().empty()) {
          ASSERT_THAT(store.warnings(), ElementsAre(HasSubstr(path))) << i;
          ++warned;
        }
        bool damaged = false;
        for (int k = 0; k < 32; ++k) {
          std::string value;
          const Result<bool> found = store.Get(KeyOf(k), &value, nullptr);
          if (!found) {
            ASSERT_THAT(found.error(), HasSubstr(path)) << i;
            damaged = true;
            continue;
          }
          const auto expected = model.find(KeyOf(k));
          ASSERT_EQ(*found, expected != model.end()) << path << " " << i << " " << k;
          if (*found) {
            ASSERT_EQ(value, expected->second);
          }
        }
        // Scans and compactions meet the same damage.
        Model scanned;
        const auto error = store.Scan({}, nullptr, [&](std::string_view key,
                                                       std::string_view value) {
          scanned.emplace(key, value);
          return true;
        });
        // A block may have none but older versions, which gets do not come to.
        ASSERT_TRUE(error || !damaged) << path << " " << i;
        ASSERT_NE(error.has_value(), !store.warnings().empty()) << path << " " << i;
        if (error) {
          ASSERT_THAT(error->message, HasSubstr(path)) << i;
          ++at_reading;
        } else {
          ASSERT_EQ(scanned, model);
        }
      }
      content->bytes[i] = sound;
    }
  }
  EXPECT_GT(at_open, 0u);
  EXPECT_GT(warned, 0u);
  EXPECT_GT(at_reading, 0u);
}

TEST(Damage, ACompactionOfADamagedFileFailsAndLosesNothing) {
  MemoryFiles files;
  auto store = TwoFiles(files, Blocked());
  MemoryFiles::Content& older = *files.files.at("d/000001.table");
  older.bytes[0] = static_cast<char>(older.bytes[0] ^ 1);  // of the first data block
  const auto error = store->CompactAll();
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("d/000001.table"));
  EXPECT_THAT(store->runs(), SizeIs(2));
  EXPECT_THAT(files.files, SizeIs(3));
  older.bytes[0] = static_cast<char>(older.bytes[0] ^ 1);
  Check(store->CompactAll());
  EXPECT_EQ(Scanned(*store, {}), (Model{{"a", "new"}, {"e", "old"}, {"f", "new"}}));
}

TEST(Open, MissingFilesAreNamed) {
  for (const char* path : {"d/MANIFEST", "d/000001.table"}) {
    MemoryFiles files;
    TwoFiles(files, nullptr);
    files.files.erase(path);
    const size_t left = files.files.size();
    const auto opened = Store::Open("d", OptionsOf(Shape::kFiles, files, nullptr));
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error(), AllOf(HasSubstr(path), HasSubstr("missing")));
    EXPECT_THAT(files.files, SizeIs(left));  // nothing was tidied up
  }
}

TEST(Open, ForeignFilesStay) {
  MemoryFiles files;
  TwoFiles(files, nullptr);
  const auto content = std::make_shared<MemoryFiles::Content>();
  for (const char* name : {"d/notes.txt", "d/1.table", "d/MANIFEST.old"}) {
    files.files[name] = content;
  }
  files.files["d/000044.table"] = content;
  const auto store = OpenOrThrow(OptionsOf(Shape::kFiles, files, nullptr));
  EXPECT_THAT(files.files, SizeIs(6));
  EXPECT_FALSE(files.files.contains("d/000044.table"));
  Check(store->Put("k", "v"));
  Check(store->Flush());
  EXPECT_TRUE(files.files.contains("d/000045.table"));  // 44 is not used a second time
}

TEST(Open, NumbersAreNeverReused) {
  MemoryFiles files;
  TwoFiles(files, nullptr);
  Check(OpenOrThrow(OptionsOf(Shape::kFiles, files, nullptr))->CompactAll());
  EXPECT_TRUE(files.files.contains("d/000003.table"));
  {
    const auto store = OpenOrThrow(OptionsOf(Shape::kFiles, files, nullptr));
    for (const char* key : {"a", "e", "f"}) Check(store->Delete(key));
    Check(store->CompactAll());  // nothing is left but the count
    EXPECT_THAT(files.files, SizeIs(1));
  }
  const auto store = OpenOrThrow(OptionsOf(Shape::kFiles, files, nullptr));
  Check(store->Put("k", "v"));
  Check(store->Flush());
  EXPECT_TRUE(files.files.contains("d/000005.table"));
}

TEST(Open, LevelsNeedTheLeveledShape) {
  MemoryFiles files;
  {
    const auto store = OpenOrThrow(OptionsOf(Shape::kLeveled, files, nullptr));
    Check(store->Put("k", "v"));
    Check(store->CompactAll());
  }
  const auto opened = Store::Open("d", OptionsOf(Shape::kSizeTiered, files, nullptr));
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error(), HasSubstr("cannot be opened as size_tiered"));
}

TEST(Open, OptionsThatMakeNoSenseAreNamed) {
  MemoryFiles files;
  const auto error_of = [&](const auto& change) {
    StoreOptions options = OptionsOf(Shape::kLeveled, files, nullptr);
    change(options);
    const auto opened = Store::Open("d", options);
    return opened ? std::string() : opened.error();
  };
  EXPECT_THAT(error_of([](StoreOptions& o) { o.files = nullptr; }), HasSubstr("files"));
  EXPECT_THAT(error_of([](StoreOptions& o) { o.size_ratio = 1; }), HasSubstr("size_ratio"));
  EXPECT_THAT(error_of([](StoreOptions& o) { o.level1_bytes = 0; }), HasSubstr("level1_bytes"));
  EXPECT_THAT(error_of([](StoreOptions& o) { o.min_threshold = 1; }), HasSubstr("min_threshold"));
  EXPECT_THAT(error_of([](StoreOptions& o) { o.max_threshold = 3; }), HasSubstr("max_threshold"));
  EXPECT_THAT(error_of([](StoreOptions& o) { o.bucket_low = 1; }), HasSubstr("bucket_low"));
  EXPECT_THAT(error_of([](StoreOptions& o) { o.bucket_high = 1; }), HasSubstr("bucket_high"));
}

// --- Shapes ---

TEST(Leveled, LevelsDoNotOverlapAndKeepTheirLimits) {
  MemoryFiles files;
  const StoreOptions options = OptionsOf(Shape::kLeveled, files, Blocked());
  const auto store = OpenOrThrow(options);
  std::mt19937_64 random(2);
  int deepest = 0;
  for (int round = 0; round < 150; ++round) {
    for (int i = 0; i < 10; ++i) {
      Check(store->Put(fmt::format("key{:05}", random() % 100'000), std::string(20, 'v')));
    }
    Check(store->Flush());
    const std::vector<RunInfo> runs = store->runs();
    uint64_t level0 = 0;
    uint64_t limit = options.level1_bytes;
    int level = 1;
    for (size_t run = 0; run < runs.size(); ++run) {
      const auto tables = store->tables(run);
      ASSERT_THAT(tables, SizeIs(runs[run].files));
      if (runs[run].level == 0) {
        ++level0;
        ASSERT_THAT(tables, SizeIs(1));
        continue;
      }
      for (; level < runs[run].level; ++level) limit *= options.size_ratio;
      ASSERT_EQ(level, runs[run].level);  // ascending, each once
      uint64_t bytes = 0;
      for (size_t i = 0; i < tables.size(); ++i) {
        const uint64_t of_file = DataBytesOf(*tables[i]);
        ASSERT_LT(of_file, options.file_bytes + 28);  // an entry
        bytes += of_file;
        if (i > 0) {
          ASSERT_LT(tables[i - 1]->facts().largest, tables[i]->facts().smallest);
        }
      }
      ASSERT_LE(bytes, limit);
      deepest = std::max(deepest, level);
    }
    ASSERT_LT(level0, options.level0_files);
  }
  EXPECT_GE(deepest, 3);
}

TEST(Leveled, CompactAllMakesOneRunWithinItsLimit) {
  MemoryFiles files;
  const auto store = OpenOrThrow(OptionsOf(Shape::kLeveled, files, Blocked()));
  for (int i = 0; i < 200; ++i) Check(store->Put(KeyOf(i), std::string(20, 'v')));
  Check(store->CompactAll());
  ASSERT_THAT(store->runs(), SizeIs(1));
  EXPECT_EQ(store->runs()[0].level, 3);  // 5200 bytes: beyond 3600, the limit of level 2
  const uint64_t compactions = store->write_facts().compactions;
  Check(store->Put("a", "v"));
  Check(store->Flush());
  EXPECT_EQ(store->write_facts().compactions, compactions);
}

TEST(SizeTiered, FourOfASizeBecomeOne) {
  MemoryFiles files;
  const auto store = OpenOrThrow(OptionsOf(Shape::kSizeTiered, files, Blocked()));
  std::vector<size_t> counts;
  for (int file = 0; file < 16; ++file) {
    for (int i = 0; i < 10; ++i) Check(store->Put(KeyOf(file * 10 + i), "v"));
    Check(store->Flush());
    counts.push_back(store->runs().size());
  }
  EXPECT_THAT(counts, ElementsAre(1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6, 1));
  EXPECT_EQ(store->write_facts().compactions, 5u);
}

// What a merge of files that are not adjacent in age would get wrong.
TEST(SizeTiered, VersionsKeepTheirOrderWhenALargeFileIsBetween) {
  MemoryFiles files;
  const auto store = OpenOrThrow(OptionsOf(Shape::kSizeTiered, files, Blocked()));
  const auto flush = [&](const char* value, int bytes) {
    Check(store->Put("k", value));
    Check(store->Put("padding", std::string(bytes, 'v')));
    Check(store->Flush());
  };
  flush("1", 20);
  flush("2", 20);
  flush("3", 5000);
  flush("4", 20);
  flush("5", 20);
  EXPECT_THAT(store->runs(), SizeIs(5));
  std::string value;
  EXPECT_TRUE(Has(*store, "k", &value));
  EXPECT_EQ(value, "5");
  flush("6", 20);
  flush("7", 20);
  EXPECT_THAT(store->runs(), SizeIs(4));  // 7 to 4, 3, 2, 1
  EXPECT_TRUE(Has(*store, "k", &value));
  EXPECT_EQ(value, "7");
}

uint64_t Tombstones(const Store& store) {
  uint64_t tombstones = 0;
  for (size_t run = 0; run < store.runs().size(); ++run) {
    for (const Table* table : store.tables(run)) tombstones += table->facts().tombstones;
  }
  return tombstones;
}

TEST(Tombstones, OfLevelsStayWhileADeeperLevelMayHaveTheKey) {
  MemoryFiles files;
  const auto store = OpenOrThrow(OptionsOf(Shape::kLeveled, files, Blocked()));
  for (int i = 100; i < 200; ++i) Check(store->Put(KeyOf(i), std::string(20, 'v')));
  Check(store->CompactAll());
  ASSERT_EQ(store->runs()[0].level, 2);
  Check(store->Delete(KeyOf(150)));
  Check(store->Delete(KeyOf(7)));  // beyond the range of all files
  for (int i = 0; i < 3; ++i) {
    Check(store->Put("zz", "v"));
    Check(store->Flush());  // the third moves all to level 1
  }
  EXPECT_EQ(store->runs()[0].level, 1);
  EXPECT_EQ(Tombstones(*store), 1u);
  EXPECT_EQ(store->write_facts().tombstones_dropped, 1u);
  EXPECT_FALSE(Has(*store, KeyOf(150)));
  Check(store->CompactAll());
  EXPECT_EQ(Tombstones(*store), 0u);
  EXPECT_FALSE(Has(*store, KeyOf(150)));
  EXPECT_EQ(store->runs()[0].entries, 100u);  // 99 and zz
}

TEST(Tombstones, OfSizeTieredStayWhileAnOlderFileDoesNotTakePart) {
  for (const bool older_file : {false, true}) {
    MemoryFiles files;
    const auto store = OpenOrThrow(OptionsOf(Shape::kSizeTiered, files, Blocked()));
    if (older_file) {
      Check(store->Put("a", std::string(500, 'v')));
      Check(store->Flush());
    }
    for (int file = 0; file < 4; ++file) {
      Check(store->Delete("a"));
      Check(store->Put(KeyOf(file), "v"));
      Check(store->Flush());
    }
    EXPECT_THAT(store->runs(), SizeIs(older_file ? 2 : 1));
    EXPECT_EQ(Tombstones(*store), older_file ? 1u : 0u);
    EXPECT_FALSE(Has(*store, "a"));
  }
}

TEST(RebuildFilters, KeepsFilesAsTheyAre) {
  for (const Shape shape : kShapes) {
    MemoryFiles files;
    const FilterPolicy* policy = Blocked();
    StoreOptions options = OptionsOf(shape, files, nullptr);
    options.policy_of = [&](int, bool) { return policy; };
    auto store = OpenOrThrow(options);
    for (int i = 0; i < 300; ++i) {
      if (i % 7 == 0) {
        Check(store->Delete(KeyOf(i * 37 % 100)));
      } else {
        Check(store->Put(KeyOf(i * 37 % 100), fmt::format("{}", i)));
      }
      if (i % 30 == 29) Check(store->Flush());
    }
    const Model before = Scanned(*store, {});
    const std::vector<RunInfo> runs = store->runs();
    const uint64_t tombstones = Tombstones(*store);
    const WriteFacts facts = store->write_facts();
    policy = Yes();
    Check(store->RebuildFilters());
    uint64_t built = 0;
    uint64_t keys = 0;
    ASSERT_THAT(store->runs(), SizeIs(runs.size()));
    for (size_t run = 0; run < runs.size(); ++run) {
      EXPECT_EQ(store->runs()[run].level, runs[run].level);
      EXPECT_EQ(store->runs()[run].entries, runs[run].entries);
      EXPECT_GT(runs[run].filter_bytes, 0u);
      EXPECT_EQ(store->runs()[run].filter_bytes, 0u);
      built += runs[run].files;
      keys += runs[run].filter_keys;
    }
    EXPECT_EQ(store->write_facts().filter_builds, facts.filter_builds + built);
    EXPECT_EQ(store->write_facts().filter_keys, facts.filter_keys + keys);
    EXPECT_EQ(store->write_facts().compactions, facts.compactions);
    EXPECT_EQ(store->write_facts().compacted_bytes, facts.compacted_bytes);
    EXPECT_EQ(Tombstones(*store), tombstones);
    store = OpenOrThrow(options);
    EXPECT_THAT(store->warnings(), IsEmpty());
    EXPECT_EQ(Scanned(*store, {}), before);
  }
}

TEST(WriteFacts, CountWhatWasWritten) {
  MemoryFiles files;
  uint64_t signs_of_life = 0;
  StoreOptions options = OptionsOf(Shape::kSizeTiered, files, Blocked());
  options.alive = [&] { ++signs_of_life; };
  const auto store = OpenOrThrow(options);
  for (int file = 0; file < 4; ++file) {
    for (int i = 0; i < 10; ++i) Check(store->Put(KeyOf(i), "vv"));
    Check(store->Delete("a"));
    EXPECT_EQ(store->memtable_entries(), 11u);
    Check(store->Flush());
    EXPECT_EQ(store->memtable_entries(), 0u);
  }
  const WriteFacts& facts = store->write_facts();
  EXPECT_EQ(facts.flushes, 4u);
  EXPECT_EQ(facts.compactions, 1u);
  EXPECT_EQ(facts.user_bytes, 4u * (10 * 8 + 1));
  EXPECT_EQ(facts.entries_written, 4u * 11 + 10);
  EXPECT_EQ(facts.tombstones_dropped, 1u);
  EXPECT_EQ(facts.filter_builds, 5u);
  EXPECT_EQ(facts.filter_keys, 4u * 11 + 10);
  EXPECT_EQ(facts.compacted_bytes, store->runs()[0].file_bytes);
  EXPECT_GT(facts.flushed_bytes, 3 * facts.compacted_bytes);
  EXPECT_GT(facts.filter_build_ns, 0);
  EXPECT_GT(facts.flush_ns, 0);
  EXPECT_GT(facts.compaction_ns, 0);
  EXPECT_GE(signs_of_life, 1u);
}

// On the file system itself, with filters that are read at each lookup.
TEST(Store, OnDisk) {
  const std::filesystem::path directory =
      std::filesystem::path(::testing::TempDir()) / "filterbench_store_test";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  const auto files = SystemFileCalls(/*durable=*/true);
  for (const bool in_memory : {true, false}) {
    StoreOptions options = OptionsOf(Shape::kLeveled, *files, Blocked());
    options.filters_in_memory = in_memory;
    Result<std::unique_ptr<Store>> store = Store::Open(directory, options);
    ASSERT_TRUE(store) << store.error();
    for (int i = 0; i < 300; ++i) Check((*store)->Put(KeyOf(i), fmt::format("{}", i)));
    Check((*store)->Flush());
    store = Store::Open(directory, options);
    ASSERT_TRUE(store) << store.error();
    (*store)->DropFromPageCache();
    ReadStats stats;
    for (int i = 0; i < 300; ++i) {
      std::string value;
      ASSERT_TRUE(Has(**store, KeyOf(i), &value, &stats)) << i;
      ASSERT_EQ(value, fmt::format("{}", i));
    }
    EXPECT_EQ(stats.total().filter_reads, in_memory ? 0 : stats.total().probes());
    ExpectLaws(stats);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace filterbench::lsm
