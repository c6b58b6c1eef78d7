#include "workloads/lsm/lsm_insert_if_absent.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/bloom/blocked.h"
#include "filters/limits/always_maybe.h"
#include "workloads/lsm/store_workload_testing.h"

namespace filterbench::lsm {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

json Knobs(json knobs = json::object()) {
  knobs["operations"] = 3000;
  knobs["reads"] = "cached";
  return knobs;
}

TEST(LsmInsertIfAbsent, NewKeysReadBlocksByFalsePositivesOnly) {
  SourceOf<BlockedBloom> filters;
  Ready ready(MakeLsmInsertIfAbsent(), Knobs(), filters);
  const WorkloadReport report = ready.Report(1.0);
  EXPECT_EQ(report.counters.at("inserted"), 3000u);
  EXPECT_EQ(ValueOfMetric(report, "inserted"), 1);
  const Metric& reads = MetricOf(report, "block_reads_per_insert");
  EXPECT_EQ(reads.certain, 0u);
  EXPECT_EQ(reads.by_chance, report.counters.at("maybe_false"));
  EXPECT_EQ(reads.by_chance, report.counters.at("block_reads"));
  EXPECT_EQ(reads.per, 3000u);
  EXPECT_EQ(report.counters.at("memtable_hits"), 0u);
  EXPECT_EQ(report.facts.at("memtable"), "3000 entries");
}

// Ready::Run iterates twice before the report: each begins with a store of the loaded keys alone.
TEST(LsmInsertIfAbsent, EveryIterationInsertsTheSameKeys) {
  SourceOf<BlockedBloom> filters;
  for (const char* shape : {"files", "leveled", "size_tiered"}) {
    json knobs = Knobs({{"shape", shape}});
    if (knobs["shape"] != "files") knobs["memtable_keys"] = 100;
    Ready ready(MakeLsmInsertIfAbsent(), knobs, filters);
    const WorkloadReport report = ready.Report(0.25, 5);
    EXPECT_EQ(report.counters.at("inserted"), 667u) << shape;
    EXPECT_EQ(report.counters.at("maybe_true"), 2000u) << shape;
    ExpectSameCounts(report, ready.Report(0.25, 5));
  }
}

TEST(LsmInsertIfAbsent, WithoutFiltersEveryNewKeyReadsAllFilesInRange) {
  SourceOf<BlockedBloom> filters;
  const WorkloadReport none =
      Ready(MakeLsmInsertIfAbsent(), Knobs({{"filter_levels", "none"}}), filters).Report(1.0);
  EXPECT_EQ(none.counters.at("block_reads"),
            none.counters.at("candidates") - none.counters.at("range_skips"));
  SourceOf<AlwaysMaybe> baseline;
  ExpectSameCounts(none, Ready(MakeLsmInsertIfAbsent(), Knobs(), baseline).Report(1.0));
}

TEST(LsmInsertIfAbsent, AFilterThatLosesKeysIsAWrongAnswer) {
  ConstantSource filters(false, true);
  Ready ready(MakeLsmInsertIfAbsent(), Knobs(), filters);
  const auto run = ready.state().Start(0.5, 1);
  ASSERT_TRUE(run);
  const auto report = (*run)->Report();
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error(), StartsWith(std::string(kWrongAnswer)));
}

// 2010 lines, of which 2000 are in the store: a stream inserts ten new ones and no more, and is as
// short as its share of them asks.
TEST(LsmInsertIfAbsent, AKeySetWithFewAbsentKeysMakesShortStreams) {
  TestDirectory directory;
  const std::filesystem::path path = directory.path() / "keys.txt";
  {
    std::ofstream lines(path);
    for (int i = 0; i < 2010; ++i) lines << "user " << i << "\n";
  }
  const auto key_set = KeySet::Open({.kind = KeyKind::kFile, .path = path.string()}, 1);
  ASSERT_TRUE(key_set) << key_set.error();
  SourceOf<BlockedBloom> filters;
  Ready ready(MakeLsmInsertIfAbsent(), Knobs(), filters, *key_set);
  const WorkloadReport report = ready.Report(0.5);
  EXPECT_EQ(report.counters.at("inserted"), 10u);
  EXPECT_EQ(report.counters.at("gets"), 20u);
}

TEST(LsmInsertIfAbsent, RefusesKnobsThatContradictEachOther) {
  const auto workload = MakeLsmInsertIfAbsent();
  const json knobs = *workload->CompleteKnobs({{"files", 8}});
  EXPECT_EQ(workload->Contradiction(knobs, 8), "");
  EXPECT_THAT(workload->Contradiction(knobs, 7), HasSubstr("files"));
}

}  // namespace
}  // namespace filterbench::lsm
