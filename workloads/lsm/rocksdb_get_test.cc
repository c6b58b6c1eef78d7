#include "workloads/lsm/rocksdb_get.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/bloom/rocksdb.h"
#include "filters/bloom/split_block.h"
#include "filters/limits/always_maybe.h"
#include "filters/ribbon/ribbon.h"
#include "filters/theory/agreement.h"
#include "workloads/lsm/block_reads.h"
#include "workloads/lsm/rocksdb_policy.h"
#include "workloads/testing.h"

namespace filterbench {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kFalseAlarm = 1e-9;
constexpr uint64_t kKeys = 20'000;
constexpr uint64_t kFiles = 8;
constexpr uint64_t kGets = 20'000;

// A database that was made ready in a directory of its own.
class Database {
 public:
  Database(FilterSource& filters, const json& knobs, uint64_t keys = kKeys, uint64_t seed = 7,
           const KeySetSpec& key_set = {})
      : key_set_(*KeySet::Open(key_set, seed)) {
    std::string name = (std::filesystem::temp_directory_path() / "rocksdb_get-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error(name);
    directory_ = name;
    const auto complete = workload_->CompleteKnobs(knobs);
    if (!complete) throw std::runtime_error(complete.error());
    if (const auto why = workload_->Contradiction(*complete, keys); !why.empty()) {
      throw std::runtime_error(why);
    }
    auto state = workload_->Prepare({.knobs = *complete,
                                     .filters = &filters,
                                     .key_set = &key_set_,
                                     .keys = keys,
                                     .seed = seed,
                                     .directory = directory_});
    if (state) {
      state_ = std::move(*state);
    } else {
      problem_ = state.error();
    }
  }
  ~Database() {
    state_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  WorkloadState& state() { return *state_; }
  const std::string& problem() const { return problem_; }
  const std::filesystem::path& directory() const { return directory_; }
  void Close() { state_.reset(); }

  std::unique_ptr<WorkloadRun> Start(double negative_share, uint64_t seed = 3) {
    auto run = state_->Start(negative_share, seed);
    if (!run) throw std::runtime_error(run.error());
    return std::move(*run);
  }
  // After an iteration, whose answers are checked as the harness does.
  WorkloadReport Report(double negative_share) {
    const auto run = Start(negative_share);
    const Result<uint64_t> found = run->Iterate();
    if (!found) throw std::runtime_error(found.error());
    EXPECT_EQ(*found, *run->positives_expected());
    auto report = run->Report();
    if (!report) throw std::runtime_error(report.error());
    return std::move(*report);
  }

 private:
  const std::unique_ptr<Workload> workload_ = MakeRocksdbGet();
  const KeySet key_set_;
  std::filesystem::path directory_;
  std::unique_ptr<WorkloadState> state_;
  std::string problem_;
};

json FilesShape(const char* present_keys = "any") {
  return {{"shape", "files"},     {"files", kFiles},
          {"reads", "cached"},    {"present_keys", present_keys},
          {"operations", kGets}};
}

json LeveledShape() {
  return {{"shape", "leveled"}, {"memtable_keys", 1000}, {"reads", "cached"},
          {"operations", kGets}};
}

// A file has 2500 keys, and the share of other keys that lie outside of their range is about two
// parts in 2501: exponential tails, of which ten times the mean is exp(-20) and less.
constexpr double kOutsiders = 20.0 / 2501;

void ExpectAllButOutsiders(uint64_t count, uint64_t all) {
  EXPECT_LE(count, all);
  EXPECT_GT(static_cast<double>(count), static_cast<double>(all) * (1 - kOutsiders));
}

void ExpectFprAsTheorySays(const WorkloadReport& report) {
  ASSERT_TRUE(report.fpr.expected.has_value());
  EXPECT_TRUE(theory::FprAgrees(
      report.fpr.false_positives, report.fpr.queries,
      {.mean = *report.fpr.expected, .instance_sd = *report.fpr.expected_instance_sd},
      kFalseAlarm))
      << report.fpr.false_positives << " of " << report.fpr.queries << ", theory says "
      << *report.fpr.expected;
}

// The counters agree with each other, however the files are shaped.
void ExpectLaws(const WorkloadReport& report, double negative_share) {
  const auto& counters = report.counters;
  // Fewer than were asked for where a key would be asked twice.
  const uint64_t gets = counters.at("gets");
  EXPECT_LE(gets, kGets);
  EXPECT_EQ(counters.at("probes"), counters.at("filter_negatives") + counters.at("maybe_true") +
                                       counters.at("maybe_false"));
  EXPECT_EQ(counters.at("maybe_true"),
            gets - static_cast<uint64_t>(std::llround(static_cast<double>(gets) * negative_share)));
  EXPECT_EQ(counters.at("block_reads"), counters.at("maybe_true") + counters.at("maybe_false"));
  EXPECT_EQ(counters.at("filter_reads"), 0);
  EXPECT_EQ(counters.at("memtable_hits"), 0);

  const Metric& reads = MetricOf(report, "block_reads_per_get");
  EXPECT_EQ(reads.by_chance, report.fpr.false_positives);
  EXPECT_EQ(reads.trials, report.fpr.queries);
  EXPECT_LE(reads.per, kGets);
  if (reads.per == kGets) {  // no key was asked twice
    EXPECT_EQ(report.fpr.false_positives, counters.at("maybe_false"));
    EXPECT_EQ(report.fpr.queries, counters.at("maybe_false") + counters.at("filter_negatives"));
    EXPECT_EQ(reads.certain, counters.at("maybe_true"));
  }

  std::map<std::string, uint64_t> sums;
  for (const json& part : report.parts) {
    for (const auto& [name, value] : part.items()) sums[name] += value.get<uint64_t>();
  }
  for (const char* name : {"filter_negatives", "maybe_true", "maybe_false", "probes"}) {
    EXPECT_EQ(sums[name], counters.at(name)) << name;
  }
}

class FilterSources {
 public:
  FilterSource& bloom() { return bloom_; }
  FilterSource& ribbon() { return ribbon_; }
  FilterSource& none() { return none_; }

 private:
  SourceOf<RocksDbBloom> bloom_{json{{"bits_per_key", 6}}};
  SourceOf<Ribbon> ribbon_{json{{"fpr", 0.0095}, {"bits_per_key", 10}}};
  SourceOf<AlwaysMaybe> none_;
};

TEST(RocksdbGetTest, BloomFiltersHaveSizeAndRateOfOurs) {
  FilterSources sources;
  Database database(sources.bloom(), FilesShape());
  ASSERT_EQ(database.problem(), "");

  const WorkloadFilters filters = database.state().filters();
  EXPECT_EQ(filters.filters, kFiles);
  EXPECT_EQ(filters.keys, kKeys);
  EXPECT_EQ(filters.builds, kFiles);
  EXPECT_EQ(filters.digest.size(), 16u);
  // The engine puts five bytes behind the bits: kind, number of probes, and what is reserved.
  std::vector<uint64_t> hashes(kKeys / kFiles);
  for (uint64_t i = 0; i < hashes.size(); ++i) hashes[i] = HashU64(i, 1);
  const auto ours = sources.bloom().policy().Build(hashes, 0);
  ASSERT_TRUE(ours);
  EXPECT_EQ(filters.size_bytes, kFiles * ((*ours)->Table().size() + 5));

  const WorkloadReport report = database.Report(1);
  ExpectLaws(report, 1);
  ExpectFprAsTheorySays(report);
  EXPECT_GT(report.fpr.queries, 100'000u);
  // Candidates * FPR.
  const Metric& reads = MetricOf(report, "block_reads_per_get");
  EXPECT_EQ(reads.certain, 0u);
  ExpectAllButOutsiders(reads.trials, kFiles * kGets);
  EXPECT_LE(std::abs(*reads.expected_by_chance / kGets -
                     BlockReadsPerGet(kFiles, SoughtKey::kAbsent).At(*report.fpr.expected)),
            kOutsiders * kFiles * *report.fpr.expected);

  EXPECT_THAT(report.facts.at("policy"), StartsWith("bloomfilter:6"));
  EXPECT_THAT(report.facts.at("engine"), StartsWith("rocksdb "));
  EXPECT_EQ(report.facts.at("levels"), "0:8");
  EXPECT_EQ(*MetricOf(report, "filter_bytes").quantity, static_cast<double>(filters.size_bytes));
}

TEST(RocksdbGetTest, RibbonFiltersHaveTheRateThatWasAskedFor) {
  FilterSources sources;
  Database database(sources.ribbon(), FilesShape());
  ASSERT_EQ(database.problem(), "");
  const WorkloadReport report = database.Report(1);
  ExpectLaws(report, 1);
  ExpectFprAsTheorySays(report);
  EXPECT_GT(report.fpr.queries, 100'000u);
  EXPECT_THAT(report.facts.at("policy"), StartsWith("ribbonfilter:"));

  // Not a Bloom filter, which takes 10 bits per key for this rate.
  const WorkloadFilters filters = database.state().filters();
  const double bits_per_key =
      8.0 * static_cast<double>(filters.size_bytes) / static_cast<double>(filters.keys);
  EXPECT_LT(bits_per_key, 8);
  EXPECT_GT(bits_per_key, 6.7);
}

TEST(RocksdbGetTest, RibbonIsRefusedWhereAllFilesAreTooSmallForIt) {
  FilterSources sources;
  Database database(sources.ribbon(), {{"files", 8}, {"reads", "cached"}}, 8 * 100);
  EXPECT_THAT(database.problem(), StartsWith(kNotHere));
  EXPECT_THAT(database.problem(), HasSubstr("100 keys"));
}

TEST(RocksdbGetTest, BloomFiltersOfSmallFilesAmongRibbonFiltersAreKnown) {
  FilterSources sources;
  // The last flush has 100 keys.
  json knobs = LeveledShape();
  knobs["memtable_keys"] = 4000;
  Database database(sources.ribbon(), knobs, 8100);
  ASSERT_EQ(database.problem(), "");
  const WorkloadReport report = database.Report(1);
  EXPECT_EQ(report.facts.at("levels"), "0:3");
  EXPECT_THAT(report.facts.at("policy"), HasSubstr("1 small files with Bloom filters"));
  ExpectFprAsTheorySays(report);
}

// Of so few files RocksDB asks every filter, though the file ends before the key.
TEST(RocksdbGetTest, KeysBeyondTheEndOfFewFilesReadNothing) {
  FilterSources sources;
  for (const uint64_t files : {1, 3, 4}) {
    json knobs = FilesShape();
    knobs["files"] = files;
    Database database(sources.bloom(), knobs, 4000, 7, {.kind = KeyKind::kSequential});
    const WorkloadReport report = database.Report(1);
    EXPECT_EQ(report.fpr.queries, files > 3 ? 0 : files * kGets);
    const Metric& reads = MetricOf(report, "block_reads_per_get");
    EXPECT_EQ(reads.certain + reads.by_chance + reads.trials, 0u);
    EXPECT_EQ(report.counters.at("block_reads"), 0u);
  }
}

TEST(RocksdbGetTest, WithoutFiltersEveryFileIsRead) {
  FilterSources sources;
  constexpr uint64_t kFewGets = 4000;
  json knobs = FilesShape();
  knobs["operations"] = kFewGets;
  Database database(sources.none(), knobs);
  ASSERT_EQ(database.problem(), "");
  const WorkloadFilters filters = database.state().filters();
  EXPECT_EQ(filters.filters, 0u);
  EXPECT_EQ(filters.size_bytes, 0u);
  const WorkloadReport report = database.Report(1);
  EXPECT_EQ(report.counters.at("probes"), 0u);
  EXPECT_EQ(report.fpr.queries, 0u);
  const Metric& reads = MetricOf(report, "block_reads_per_get");
  EXPECT_EQ(reads.trials, 0u);
  EXPECT_EQ(reads.by_chance, 0u);
  EXPECT_EQ(reads.certain, report.counters.at("block_reads"));
  ExpectAllButOutsiders(reads.certain, kFiles * kFewGets);
  EXPECT_EQ(report.facts.at("policy"), "none");
}

TEST(RocksdbGetTest, BlockReadsOfTheOldestKeysAreThoseOfTheModel) {
  FilterSources sources;
  Database database(sources.bloom(), FilesShape("oldest"));
  const WorkloadReport report = database.Report(0);
  ExpectLaws(report, 0);
  ExpectFprAsTheorySays(report);
  // Each of the oldest file's keys is asked for many times, and counts once.
  const uint64_t distinct = kKeys / kFiles;
  const Metric& reads = MetricOf(report, "block_reads_per_get");
  EXPECT_EQ(reads.per, distinct);
  EXPECT_EQ(reads.certain, distinct);
  // Every newer file is asked first.
  ExpectAllButOutsiders(reads.trials, (kFiles - 1) * distinct);
  EXPECT_LE(std::abs(1 + *reads.expected_by_chance / static_cast<double>(reads.per) -
                     BlockReadsPerGet(kFiles, SoughtKey::kInDeepestLevel)
                         .At(*report.fpr.expected)),
            kOutsiders * (kFiles - 1) * *report.fpr.expected);
}

TEST(RocksdbGetTest, OptimizeFiltersForHitsAsksNoFilterOfTheOldestFile) {
  FilterSources sources;
  json knobs = FilesShape("oldest");
  knobs["optimize_filters_for_hits"] = 1;
  Database database(sources.bloom(), knobs);
  const WorkloadReport report = database.Report(0);
  EXPECT_EQ(report.counters.at("maybe_true"), 0u);
  EXPECT_EQ(MetricOf(report, "block_reads_per_get").certain, kKeys / kFiles);
  EXPECT_EQ(report.counters.at("block_reads"),
            report.counters.at("gets") + report.counters.at("maybe_false"));
  ExpectFprAsTheorySays(report);
}

TEST(RocksdbGetTest, LeveledDatabasesObeyTheSameLaws) {
  FilterSources sources;
  Database database(sources.bloom(), LeveledShape());
  ASSERT_EQ(database.problem(), "");
  for (const double negative_share : {0.0, 0.5, 1.0}) {
    const WorkloadReport report = database.Report(negative_share);
    ExpectLaws(report, negative_share);
    ExpectFprAsTheorySays(report);
    EXPECT_GE(report.parts.size(), 2u) << report.facts.at("levels");
  }
  const WorkloadFilters filters = database.state().filters();
  EXPECT_EQ(filters.keys, kKeys);
  EXPECT_GT(filters.builds, filters.filters);  // those that were compacted away too
}

TEST(RocksdbGetTest, KeysOfTheDeepestLevelAreAskedWhereTheyAre) {
  FilterSources sources;
  json knobs = LeveledShape();
  knobs["present_keys"] = "oldest";
  Database database(sources.bloom(), knobs);
  const WorkloadReport report = database.Report(0);
  ExpectLaws(report, 0);
  for (size_t i = 0; i < report.parts.size(); ++i) {
    const bool deepest = i + 1 == report.parts.size();
    EXPECT_EQ(report.parts[i].at("maybe_true"), deepest ? report.counters.at("gets") : 0);
  }
}

TEST(RocksdbGetTest, OptimizeFiltersForHitsLeavesTheDeepestLevelWithoutFilters) {
  FilterSources sources;
  json knobs = LeveledShape();
  knobs["present_keys"] = "oldest";
  knobs["optimize_filters_for_hits"] = 1;
  Database database(sources.bloom(), knobs);
  const WorkloadReport report = database.Report(0);
  EXPECT_LT(database.state().filters().keys, kKeys);
  EXPECT_EQ(report.parts.back().at("probes"), 0);
  EXPECT_EQ(report.counters.at("block_reads"),
            report.counters.at("gets") + report.counters.at("maybe_false"));
}

TEST(RocksdbGetTest, DirectReadsCountTheSame) {
  FilterSources sources;
  json knobs = FilesShape();
  knobs["operations"] = 2000;
  Database cached(sources.bloom(), knobs);
  knobs["reads"] = "direct";
  Database direct(sources.bloom(), knobs);
  if (direct.problem().starts_with(kNotHere)) GTEST_SKIP() << direct.problem();
  ASSERT_EQ(direct.problem(), "");
  const WorkloadReport report = direct.Report(0.5);
  EXPECT_EQ(report.facts.at("reads"), "direct");
  EXPECT_EQ(report.counters, cached.Report(0.5).counters);
}

TEST(RocksdbGetTest, CountsFollowFromTheSeed) {
  FilterSources sources;
  for (json knobs : {FilesShape(), LeveledShape()}) {
    constexpr uint64_t kFewKeys = 6000;
    knobs["operations"] = 3000;
    Database first(sources.bloom(), knobs, kFewKeys);
    Database again(sources.bloom(), knobs, kFewKeys);
    Database other(sources.bloom(), knobs, kFewKeys, 8);
    EXPECT_EQ(first.state().filters().digest, again.state().filters().digest);
    EXPECT_NE(first.state().filters().digest, other.state().filters().digest);
    const WorkloadReport report = first.Report(0.5);
    EXPECT_EQ(report.counters, again.Report(0.5).counters);
    EXPECT_EQ(report.parts, first.Report(0.5).parts);
    EXPECT_NE(report.counters, other.Report(0.5).counters);
  }
}

TEST(RocksdbGetTest, PhasesAreTimedAndNothingIsLeftBehind) {
  FilterSources sources;
  Database database(sources.bloom(), FilesShape());
  EXPECT_FALSE(std::filesystem::is_empty(database.directory()));
  const WorkloadReport report = database.Report(0);
  EXPECT_GT(report.phases_ns.at("block"), 0);
  EXPECT_GT(report.phases_ns.at("filter_index_search"), 0);
  // It is empty, and the engine does not time that.
  EXPECT_FALSE(report.phases_ns.contains("memtable"));
  database.Close();
  EXPECT_TRUE(std::filesystem::is_empty(database.directory()));
}

// The first file in the order of names that ends so.
std::filesystem::path FirstFile(const std::filesystem::path& directory, std::string_view ending) {
  std::filesystem::path first;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    const std::filesystem::path& path = entry.path();
    if (path.string().ends_with(ending) && (first.empty() || path < first)) first = path;
  }
  return first;
}

TEST(RocksdbGetTest, DamageIsAnErrorWithTheTextOfTheEngine) {
  FilterSources sources;
  Database database(sources.none(), FilesShape());
  const auto run = database.Start(0);
  // All of the data of a file.
  const std::filesystem::path table = FirstFile(database.directory(), ".sst");
  ASSERT_FALSE(table.empty());
  {
    std::fstream file(table, std::ios::in | std::ios::out | std::ios::binary);
    for (int i = 0; i < 200; ++i) {
      file.seekp(i * 1000);
      file.put('\x55');
      file.put('\x2a');
    }
  }
  const auto found = run->Iterate();
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error(), StartsWith("rocksdb: get: Corruption"));
  const auto report = run->Report();
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error(), StartsWith("rocksdb: get: Corruption"));
}

TEST(RocksdbGetTest, AFileThatIsGoneIsAnErrorOfOpening) {
  FilterSources sources;
  Database database(sources.bloom(), FilesShape());
  const auto run = database.Start(0);
  std::filesystem::remove(FirstFile(database.directory(), ".sst"));
  const auto report = run->Report();
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error(), StartsWith("rocksdb: open "));
  EXPECT_FALSE(run->Iterate());
  EXPECT_TRUE(run->Reset().has_value());
}

TEST(RocksdbGetTest, OtherFiltersAreRefusedByName) {
  const auto workload = MakeRocksdbGet();
  const json bloom = SourceOf<RocksDbBloom>().params();
  EXPECT_EQ(workload->WhyNotWith("rocksdb_bloom", bloom, false), "");
  EXPECT_EQ(workload->WhyNotWith("always_maybe", json::object(), true), "");
  EXPECT_EQ(workload->WhyNotWith("ribbon", SourceOf<Ribbon>().params(), false), "");
  EXPECT_THAT(workload->WhyNotWith("split_block", SourceOf<SplitBlock>().params(), true),
              HasSubstr("rocksdb_bloom"));
  EXPECT_THAT(
      workload->WhyNotWith("ribbon", SourceOf<Ribbon>(json{{"width", "64"}}).params(), false),
      HasSubstr("width 128"));
  EXPECT_THAT(workload->WhyNotWith(
                  "ribbon", SourceOf<Ribbon>(json{{"system", "homogeneous"}}).params(), false),
              HasSubstr("standard"));
}

TEST(RocksdbGetTest, KnobsThatMeanNothingAreRefused) {
  const auto workload = MakeRocksdbGet();
  const auto contradiction = [&](const json& knobs, uint64_t keys) {
    return workload->Contradiction(*workload->CompleteKnobs(knobs), keys);
  };
  EXPECT_EQ(contradiction(json::object(), 1000), "");
  EXPECT_THAT(contradiction(json::object(), 0), StartsWith("keys:"));
  EXPECT_THAT(contradiction({{"files", 9}}, 8), StartsWith("files:"));
  EXPECT_THAT(contradiction({{"memtable_keys", 100}}, 1000), StartsWith("memtable_keys:"));
  EXPECT_EQ(contradiction({{"shape", "leveled"}, {"memtable_keys", 100}}, 1000), "");
  EXPECT_THAT(contradiction({{"shape", "leveled"}, {"memtable_keys", 1001}}, 1000),
              StartsWith("memtable_keys:"));
  EXPECT_THAT(contradiction({{"shape", "leveled"}, {"files", 3}}, 10'000), StartsWith("files:"));
  EXPECT_FALSE(workload->CompleteKnobs({{"shape", "size_tiered"}}));
}

TEST(RocksdbPolicyTest, BitsOfTheBloomFilterOfARate) {
  // "10 for bloom_equivalent_bits_per_key: the same 0.95 % as Bloom filters" (filter_policy.h).
  const std::optional<double> bits = lsm::BloomEquivalentBits(0.0095);
  ASSERT_TRUE(bits.has_value());
  EXPECT_NEAR(*bits, 10, 0.05);
  EXPECT_GT(*lsm::BloomEquivalentBits(0.001), *bits);
  EXPECT_FALSE(lsm::BloomEquivalentBits(0.9).has_value());
  EXPECT_FALSE(lsm::BloomEquivalentBits(0).has_value());
}

}  // namespace
}  // namespace filterbench
