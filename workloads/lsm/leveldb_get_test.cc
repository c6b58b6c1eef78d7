#include "workloads/lsm/leveldb_get.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "filters/bloom/blocked.h"
#include "filters/bloom/leveldb_bloom.h"
#include "filters/peers/leveldb_peer.h"
#include "filters/theory/agreement.h"
#include "workloads/key_bytes.h"
#include "workloads/lsm/counting_env.h"
#include "workloads/lsm/leveldb_database.h"
#include "workloads/testing.h"

namespace filterbench {
namespace {

using nlohmann::json;

// A directory of a test, empty and its own.
class Directory {
 public:
  explicit Directory(const std::string& name) : path_(std::filesystem::path(testing::TempDir())) {
    path_ /= fmt::format("leveldb_get_test_{}_{}", ::getpid(), name);
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A database without filters, by the name that a sweep has for it.
class NoFilters final : public FilterSource {
 public:
  std::string_view filter() const override { return "always_maybe"; }
  const json& params() const override { return params_; }
  const FilterPolicy& policy() const override { throw std::logic_error("is not asked"); }
  Result<const FilterPolicy*> WithBitsPerKey(double) override { return Error{"has none"}; }

 private:
  const json params_ = json::object();
};

// A workload that was made ready, and its directory.
struct Prepared {
  Directory directory;
  KeySet key_set;
  std::unique_ptr<Workload> workload = MakeLevelDbGet();
  std::unique_ptr<WorkloadState> state;

  Prepared(const std::string& name, FilterSource& filters, json knobs, uint64_t keys,
           uint64_t seed = 7)
      : directory(name) {
    if (!knobs.contains("reads")) knobs["reads"] = "cached";
    auto complete = workload->CompleteKnobs(knobs);
    EXPECT_TRUE(complete) << complete.error();
    EXPECT_EQ(workload->Contradiction(*complete, keys), "");
    auto prepared = workload->Prepare({.knobs = *complete,
                                       .filters = &filters,
                                       .key_set = &key_set,
                                       .keys = keys,
                                       .seed = seed,
                                       .directory = directory.path()});
    if (prepared) {
      state = std::move(*prepared);
    } else {
      error = prepared.error();
    }
  }
  std::string error;

  WorkloadReport Report(double negative_share, uint64_t seed = 3) const {
    auto run = state->Start(negative_share, seed);
    EXPECT_TRUE(run) << run.error();
    const auto found = (*run)->Iterate();
    EXPECT_TRUE(found) << found.error();
    EXPECT_EQ(*found, *(*run)->positives_expected());
    auto report = (*run)->Report();
    EXPECT_TRUE(report) << report.error();
    return report ? *report : WorkloadReport{};
  }
};

void ExpectLaws(const WorkloadReport& report) {
  auto counters = report.counters;
  EXPECT_EQ(counters["candidates"],
            counters["not_consulted"] + counters["filter_negatives"] + counters["maybe_true"] +
                counters["maybe_false"]);
  EXPECT_EQ(counters["block_reads"],
            counters["not_consulted"] + counters["maybe_true"] + counters["maybe_false"]);
  for (const char* name : {"candidates", "filter_negatives", "maybe_true", "maybe_false",
                           "block_reads", "block_bytes"}) {
    uint64_t sum = 0;
    for (const json& part : report.parts) sum += part.at(name).get<uint64_t>();
    EXPECT_EQ(sum, counters[name]) << name;
  }
}

// All table files of a database, one after the other in the order of their names.
std::string TableBytes(const std::filesystem::path& directory) {
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".ldb") paths.insert(entry.path());
  }
  std::ostringstream bytes;
  for (const auto& path : paths) bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

constexpr uint64_t kKeys = 12'000;
const json kFiveFiles = {{"files", 5}, {"operations", 4000}};

// Without filters, every file is a candidate and has a block read, but for keys outside of a file's
// range, and for present keys those behind the file that has it.
TEST(LevelDbGetTest, WithoutFiltersEveryFileIsRead) {
  NoFilters none;
  const Prepared prepared("none", none, kFiveFiles, kKeys);
  ASSERT_NE(prepared.state, nullptr) << prepared.error;
  const WorkloadReport absent = prepared.Report(1);
  ExpectLaws(absent);
  EXPECT_NEAR(ValueOfMetric(absent, "block_reads_per_get"), 5, 0.02);
  EXPECT_EQ(absent.counters.at("not_consulted"), absent.counters.at("block_reads"));
  EXPECT_EQ(absent.fpr.queries, 0u);
  EXPECT_EQ(absent.facts.at("levels"), "0:5");
  EXPECT_EQ(prepared.state->filters().filters, 0u);
  ASSERT_EQ(absent.parts.size(), 5u);
  // Key i is in file i % 5, and each file is as likely.
  const WorkloadReport present = prepared.Report(0);
  ExpectLaws(present);
  EXPECT_NEAR(ValueOfMetric(present, "block_reads_per_get"), 3, 0.2);
}

TEST(LevelDbGetTest, BlockReadsAreOneAndTheFalsePositives) {
  SourceOf<BlockedBloom> filters(json{{"bits_per_key", 10}});
  json knobs = kFiveFiles;
  knobs["present_keys"] = "oldest";
  const Prepared prepared("blocked", filters, knobs, kKeys);
  ASSERT_NE(prepared.state, nullptr) << prepared.error;
  const WorkloadFilters all = prepared.state->filters();
  EXPECT_EQ(all.keys, kKeys);
  EXPECT_EQ(all.filters, all.builds);
  EXPECT_GT(all.filters, kKeys / 50);
  EXPECT_LT(all.filters, kKeys / 25);
  for (const double share : {0.0, 0.5, 1.0}) {
    const WorkloadReport report = prepared.Report(share);
    ExpectLaws(report);
    const Metric& reads = MetricOf(report, "block_reads_per_get");
    const auto gets = report.counters.at("gets");
    EXPECT_EQ(reads.certain, static_cast<uint64_t>(std::llround(gets * (1 - share)))) << share;
    EXPECT_EQ(report.counters.at("maybe_true"), reads.certain);
    // The present ones are asked last: all files before theirs are asked for an absent key.
    EXPECT_NEAR(static_cast<double>(reads.trials) / gets, 4 + share, 0.02);
    ASSERT_TRUE(reads.expected_by_chance && report.fpr.expected);
    EXPECT_TRUE(theory::FprAgrees(report.fpr.false_positives, report.fpr.queries,
                                  {*report.fpr.expected, *report.fpr.expected_instance_sd}, 1e-9))
        << report.fpr.false_positives << " of " << report.fpr.queries << ", expected "
        << *reads.expected_by_chance;
    EXPECT_GT(report.fpr.false_positives, 0u);
  }
}

// Bytes of the files, answers and counters are those of LevelDB with its own policy.
TEST(LevelDbGetTest, LevelDbBloomIsTheBuiltInPolicy) {
  SourceOf<LevelDbBloom> ours(json{{"bits_per_key", 10}});
  SourceOf<LevelDbPeer> built_in(json{{"bits_per_key", 10}});
  for (const json& shape : {json{{"files", 3}}, json{{"shape", "leveled"}}}) {
    json knobs = shape;
    knobs["operations"] = 3000;
    const Prepared a("ours", ours, knobs, kKeys);
    const Prepared b("built_in", built_in, knobs, kKeys);
    ASSERT_TRUE(a.state && b.state) << a.error << b.error;
    EXPECT_EQ(TableBytes(a.directory.path() / "leveldb"),
              TableBytes(b.directory.path() / "leveldb"));
    EXPECT_FALSE(TableBytes(a.directory.path() / "leveldb").empty());
    EXPECT_EQ(a.state->filters().digest, b.state->filters().digest);
    EXPECT_EQ(a.state->filters().size_bytes, b.state->filters().size_bytes);
    const WorkloadReport of_a = a.Report(0.5);
    const WorkloadReport of_b = b.Report(0.5);
    EXPECT_EQ(of_a.counters, of_b.counters);
    EXPECT_EQ(of_a.parts, of_b.parts);
    EXPECT_EQ(of_a.metrics, of_b.metrics);
    EXPECT_NE(of_a.facts.at("policy"), of_b.facts.at("policy"));
    EXPECT_TRUE(theory::FprAgrees(of_a.fpr.false_positives, of_a.fpr.queries,
                                  {*of_a.fpr.expected, *of_a.fpr.expected_instance_sd}, 1e-9))
        << of_a.fpr.false_positives << " of " << of_a.fpr.queries;
  }
}

// The same filter in its own wire format is another FPR for few keys, but the same answers to gets.
TEST(LevelDbGetTest, CountsAreTheSameEachTimeAndInEachKindOfRead) {
  SourceOf<BlockedBloom> filters(json{{"bits_per_key", 8}});
  for (const char* shape : {"files", "leveled"}) {
    const json knobs = {{"shape", shape}, {"files", 7}, {"memtable_keys", 1000},
                        {"operations", 2000}};
    json direct_knobs = knobs;
    direct_knobs["reads"] = "direct";
    const Prepared first("first", filters, knobs, kKeys);
    const Prepared again("again", filters, knobs, kKeys);
    ASSERT_TRUE(first.state && again.state) << first.error << again.error;
    const WorkloadReport report = first.Report(0.5);
    ExpectLaws(report);
    EXPECT_EQ(report.counters, first.Report(0.5).counters);
    EXPECT_EQ(report.counters, again.Report(0.5).counters);
    EXPECT_EQ(report.parts, again.Report(0.5).parts);
    EXPECT_EQ(report.facts.at("levels"), again.Report(0.5).facts.at("levels"));
    EXPECT_EQ(first.state->filters().digest, again.state->filters().digest);

    const Prepared direct("direct", filters, direct_knobs, kKeys);
    if (direct.error.starts_with(kNotHere)) GTEST_SKIP() << direct.error;
    ASSERT_NE(direct.state, nullptr) << direct.error;
    EXPECT_EQ(report.counters, direct.Report(0.5).counters);
    EXPECT_EQ(report.parts, direct.Report(0.5).parts);
    EXPECT_EQ(direct.Report(0.5).facts.at("reads"), "direct");
  }
}

// Reading makes LevelDB compact: a table that many gets came to in vain is merged away, after a
// hundred of them if it is small. The shape that was asked for must stay.
TEST(LevelDbGetTest, ReadingDoesNotChangeTheShape) {
  NoFilters none;
  const Prepared prepared("shape", none, {{"files", 20}, {"operations", 3000}}, 2000);
  ASSERT_NE(prepared.state, nullptr) << prepared.error;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(prepared.Report(1, i).facts.at("levels"), "0:20");
  }
}

TEST(LevelDbGetTest, LeveledIsCompactedAndTheDeepestLevelIsAskedLast) {
  SourceOf<BlockedBloom> filters(json{{"bits_per_key", 10}});
  const Prepared prepared("leveled", filters,
                          {{"shape", "leveled"},
                           {"memtable_keys", 1500},
                           {"value_bytes", 400},
                           {"present_keys", "oldest"},
                           {"operations", 2000}},
                          20'000);
  ASSERT_NE(prepared.state, nullptr) << prepared.error;
  const WorkloadReport report = prepared.Report(0);
  ExpectLaws(report);
  ASSERT_GE(report.parts.size(), 2u);
  for (const json& part : report.parts) {
    const bool deepest = part == report.parts.back();
    EXPECT_EQ(part.at("maybe_true"), deepest ? 2000u : 0u);
    EXPECT_LE(part.at("level"), report.parts.back().at("level"));
  }
  EXPECT_GT(report.parts.back().at("level"), 0);
  // Nothing is due any more: level 0 is merged when it has four tables.
  uint64_t at_level_0 = 0;
  for (const json& part : report.parts) at_level_0 += part.at("level") == 0;
  EXPECT_LT(at_level_0, 4u);
  EXPECT_GT(ValueOfMetric(report, "write_amplification"), 1.0);
}

// Filters that cannot be built for so few keys.
class NeverBuilt final : public FilterSource {
 public:
  std::string_view filter() const override { return "never_built"; }
  const json& params() const override { return params_; }
  const FilterPolicy& policy() const override { return policy_; }
  Result<const FilterPolicy*> WithBitsPerKey(double) override { return Error{"has none"}; }

 private:
  class Policy final : public FilterPolicy {
   public:
    std::string_view identity() const override { return "never_built"; }
    bool can_insert() const override { return false; }
    Result<std::unique_ptr<KeyFilter>> Build(std::span<const uint64_t>, uint64_t) const override {
      return Error{"too few keys"};
    }
    Result<std::unique_ptr<KeyFilter>> Create(uint64_t, uint64_t) const override {
      return Error{"takes no single keys"};
    }
    Result<std::unique_ptr<KeyFilter>> Load(std::span<const std::byte>) const override {
      return Error{"no filter"};
    }
  };
  const Policy policy_;
  const json params_ = json::object();
};

TEST(LevelDbGetTest, FiltersThatCannotBeBuiltAreCountedAndReadAsNone) {
  NeverBuilt filters;
  NoFilters none;
  const Prepared prepared("never", filters, kFiveFiles, kKeys);
  const Prepared without("without", none, kFiveFiles, kKeys);
  ASSERT_TRUE(prepared.state && without.state) << prepared.error << without.error;
  auto counters = prepared.Report(0.5).counters;
  auto expected = without.Report(0.5).counters;
  EXPECT_GT(counters["filters_not_built"], 100u);
  counters.erase("filters_not_built");
  expected.erase("filters_not_built");
  EXPECT_EQ(counters, expected);
}

TEST(LevelDbGetTest, KnobsThatContradictAreNamed) {
  const auto workload = MakeLevelDbGet();
  const auto contradiction = [&](const json& knobs, uint64_t keys) {
    return workload->Contradiction(*workload->CompleteKnobs(knobs), keys);
  };
  EXPECT_EQ(contradiction({{"files", 64}}, 64), "");
  EXPECT_TRUE(contradiction({{"files", 64}}, 63).starts_with("files: "));
  EXPECT_TRUE(contradiction({{"files", 1}}, 100'000'000).starts_with("files: "));
  EXPECT_TRUE(contradiction({{"shape", "leveled"}}, 0).starts_with("keys: "));
  EXPECT_EQ(contradiction({{"shape", "leveled"}}, 100'000'000), "");
  EXPECT_TRUE(contradiction({{"shape", "leveled"}, {"memtable_keys", 50'000'000}}, 100'000'000)
                  .starts_with("memtable_keys: "));
  EXPECT_FALSE(workload->CompleteKnobs({{"shape", "size_tiered"}}));
}

// Below the workload: a database on files that are damaged.
class DamagedDatabaseTest : public testing::Test {
 protected:
  static constexpr uint64_t kEntries = 3000;

  lsm::LevelDbDatabase::Entry EntryOf(uint64_t i) const {
    std::string key = KeyBytes(key_set_, i);
    std::string value = ValueOf(key, 100);
    return {std::move(key), std::move(value)};
  }
  // Writes one table, and hands over its bytes to be changed before it is opened for reads.
  void Make(const lsm::CountingPolicy* policy) {
    database_ = std::make_unique<lsm::LevelDbDatabase>(directory_.path() / "db", policy, false);
    ASSERT_FALSE(database_->AddTable(kEntries, [&](uint64_t i) { return EntryOf(i); }));
  }
  std::filesystem::path TablePath() const {
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path() / "db")) {
      if (entry.path().extension() == ".ldb") return entry.path();
    }
    throw std::logic_error("no table");
  }
  void FlipByte(const std::filesystem::path& path, uint64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(file.get() ^ 0x10);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
  }

  const Directory directory_{"damaged"};
  const KeySet key_set_;
  std::unique_ptr<lsm::LevelDbDatabase> database_;
};

TEST_F(DamagedDatabaseTest, ADamagedFilterBlockDeniesNoKey) {
  for (const bool built_in : {false, true}) {
    std::filesystem::remove_all(directory_.path() / "db");
    lsm::CountingPolicy policy(built_in ? lsm::BuiltInFilters(10) : lsm::LevelDbBloomFilters(10));
    Make(&policy);
    // Filters lie behind the last data block: some 3000 * 10 bits.
    const auto path = TablePath();
    const uint64_t size = std::filesystem::file_size(path);
    std::ifstream file(path, std::ios::binary);
    std::string bytes(size, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(size));
    const std::string first_name = "filter.";
    const uint64_t metaindex = bytes.rfind(first_name);
    ASSERT_NE(metaindex, std::string::npos);
    // Bits that are lost deny keys.
    std::fstream damaged(path, std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(static_cast<std::streamoff>(metaindex - 2000));
    damaged << std::string(500, '\0');
    damaged.close();
    const auto entries = database_->OpenForReads({});
    ASSERT_TRUE(entries) << entries.error();
    EXPECT_EQ(*entries, kEntries);
    std::vector<lsm::FilterProbe> probes;
    policy.Trace(&probes);
    std::string value;
    for (uint64_t i = 0; i < kEntries; ++i) {
      const auto found = database_->Get(EntryOf(i).key, &value);
      ASSERT_TRUE(found && *found) << i;
      ASSERT_EQ(value, EntryOf(i).value);
    }
    EXPECT_TRUE(probes.empty());  // LevelDB uses none of them
    database_.reset();
  }
}

TEST_F(DamagedDatabaseTest, ADamagedDataBlockIsAnErrorNotAnAnswer) {
  Make(nullptr);
  FlipByte(TablePath(), 2000);
  EXPECT_FALSE(database_->OpenForReads({}));  // the scan meets it
  uint64_t errors = 0;
  std::string value;
  for (uint64_t i = 0; i < kEntries; ++i) {
    const auto found = database_->Get(EntryOf(i).key, &value);
    if (!found) {
      ++errors;
    } else {
      ASSERT_TRUE(*found) << i;
      ASSERT_EQ(value, EntryOf(i).value);
    }
  }
  EXPECT_GT(errors, 20u);
  EXPECT_LT(errors, 60u);
}

TEST_F(DamagedDatabaseTest, ReadsAreCountedByWhatTheyRead) {
  lsm::CountingPolicy policy(lsm::BuiltInFilters(10));
  Make(&policy);
  uint64_t filter_block_bytes = 0;
  uint64_t filters = 0;
  const lsm::TableReads before = database_->env().reads();
  const auto entries = database_->OpenForReads([&](uint64_t, std::string_view block) {
    filter_block_bytes += block.size();
    const auto parts = lsm::FiltersOfBlock(block);
    ASSERT_TRUE(parts);
    filters += parts->size();
  });
  ASSERT_TRUE(entries) << entries.error();
  const lsm::TableReads reads = database_->env().reads() - before;
  EXPECT_EQ(reads.filter_reads, 1u);
  EXPECT_EQ(reads.filter_bytes, filter_block_bytes + 5);
  EXPECT_EQ(filters, policy.filters_made());
  EXPECT_EQ(reads.data_reads, filters);  // one for each block, and the scan reads each once
  EXPECT_EQ(reads.index_reads, 3u);      // footer, index, metaindex
  EXPECT_EQ(reads.data_bytes + reads.filter_bytes + reads.index_bytes,
            std::filesystem::file_size(TablePath()));
}

}  // namespace
}  // namespace filterbench
