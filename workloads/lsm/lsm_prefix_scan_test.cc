#include "workloads/lsm/lsm_prefix_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/bloom/blocked.h"
#include "filters/theory/agreement.h"
#include "workloads/lsm/store_workload_testing.h"

namespace filterbench::lsm {
namespace {

using nlohmann::json;
using ::testing::StartsWith;

json Knobs(json knobs = json::object()) {
  knobs["operations"] = 2000;
  knobs["reads"] = "cached";
  return knobs;
}

uint64_t Count(const WorkloadReport& report, const char* name) {
  return report.counters.at(name);
}

TEST(LsmPrefixScan, AbsentPrefixesOpenFilesByFalsePositivesOnly) {
  SourceOf<BlockedBloom> filters(json{{"bits_per_key", 6}});
  Ready ready(MakeLsmPrefixScan(), Knobs({{"keys_per_prefix", 4}}), filters);
  const WorkloadReport report = ready.Report(1.0);
  EXPECT_EQ(Count(report, "scans"), 2000u);
  EXPECT_EQ(Count(report, "rows"), 0u);
  EXPECT_EQ(Count(report, "not_consulted"), 0u);
  EXPECT_EQ(Count(report, "maybe_true"), 0u);
  EXPECT_EQ(Count(report, "candidates"), Count(report, "range_skips") + Count(report, "probes"));
  const Metric& opened = MetricOf(report, "files_opened_per_scan");
  EXPECT_EQ(opened.certain, 0u);
  EXPECT_EQ(opened.by_chance, Count(report, "maybe_false"));
  EXPECT_EQ(opened.trials, Count(report, "probes"));
  EXPECT_GT(opened.by_chance, 0u);
  // A false alarm has a chance of 1e-9.
  ASSERT_TRUE(report.fpr.expected);
  EXPECT_TRUE(theory::FprAgrees(
      report.fpr.false_positives, report.fpr.queries,
      {.mean = *report.fpr.expected, .instance_sd = *report.fpr.expected_instance_sd}, 1e-9));
}

TEST(LsmPrefixScan, WithoutFiltersOfPrefixesEveryFileInRangeIsOpened) {
  SourceOf<BlockedBloom> filters;
  for (const char* shape : {"files", "leveled", "size_tiered"}) {
    json knobs = Knobs({{"shape", shape}});
    if (knobs["shape"] != "files") knobs["memtable_keys"] = 100;
    Ready with(MakeLsmPrefixScan(), knobs, filters);
    knobs["prefix_filter"] = "off";
    Ready without(MakeLsmPrefixScan(), knobs, filters);
    EXPECT_EQ(without.state().filters().filters, 0u);
    for (const double absent : {0.0, 0.5, 1.0}) {
      const WorkloadReport on = with.Report(absent);
      const WorkloadReport off = without.Report(absent);
      EXPECT_EQ(Count(on, "rows"), Count(off, "rows")) << shape;
      EXPECT_EQ(Count(on, "candidates"), Count(off, "candidates")) << shape;
      EXPECT_EQ(Count(on, "range_skips"), Count(off, "range_skips")) << shape;
      EXPECT_EQ(Count(off, "probes"), 0u) << shape;
      EXPECT_EQ(MetricOf(off, "files_opened_per_scan").certain,
                Count(off, "candidates") - Count(off, "range_skips"))
          << shape;
      EXPECT_LE(Count(on, "block_reads"), Count(off, "block_reads")) << shape;
    }
    EXPECT_LT(ValueOfMetric(with.Report(1.0), "block_reads_per_scan"),
              ValueOfMetric(without.Report(1.0), "block_reads_per_scan") / 4)
        << shape;
  }
}

// All rows of a prefix are in one file: a filter says maybe to each prefix once for its own.
TEST(LsmPrefixScan, AllRowsOfAPrefixAreReturned) {
  SourceOf<BlockedBloom> filters;
  Ready ready(MakeLsmPrefixScan(), Knobs({{"files", 4}, {"keys_per_prefix", 9}}), filters);
  const WorkloadReport report = ready.Report(0.0);
  // 2000 keys are 222 prefixes of nine rows and one of two, and each is asked once.
  EXPECT_EQ(Count(report, "scans"), 223u);
  EXPECT_EQ(Count(report, "rows"), 2000u);
  EXPECT_EQ(ValueOfMetric(report, "rows_per_scan"), 2000.0 / 223);
  EXPECT_EQ(Count(report, "maybe_true"), 223u);
}

TEST(LsmPrefixScan, FiltersOfPrefixesCountTheirKeysOnce) {
  SourceOf<BlockedBloom> filters;
  Ready ready(MakeLsmPrefixScan(), Knobs({{"files", 1}, {"keys_per_prefix", 8}}), filters);
  EXPECT_EQ(ready.state().filters().filters, 2u);
  EXPECT_EQ(ready.state().filters().keys, kTestKeys + kTestKeys / 8);
}

TEST(LsmPrefixScan, TakesStringsThatBeginAlike) {
  SourceOf<BlockedBloom> filters;
  for (const KeySetSpec& spec : {KeySetSpec{.kind = KeyKind::kSequential},
                                 KeySetSpec{.kind = KeyKind::kBytes, .length_bytes = 30}}) {
    const WorkloadReport report =
        Ready(MakeLsmPrefixScan(), Knobs(), filters, *KeySet::Open(spec, 3)).Report(0.5);
    EXPECT_EQ(Count(report, "rows"), kTestKeys);
  }
}

TEST(LsmPrefixScan, ReportsFollowFromTheSeed) {
  SourceOf<BlockedBloom> filters(json{{"bits_per_key", 4}});
  Ready ready(MakeLsmPrefixScan(), Knobs(), filters);
  // 107 absent prefixes out of 250: others with another seed.
  const WorkloadReport report = ready.Report(0.3, 7);
  ExpectSameCounts(report, ready.Report(0.3, 7));
  EXPECT_NE(report.counters, ready.Report(0.3, 8).counters);
}

TEST(LsmPrefixScan, FiltersThatCannotBeUsedAreNotMeasured) {
  ConstantSource filters(true, false);
  EXPECT_THROW(Ready(MakeLsmPrefixScan(), Knobs(), filters), std::runtime_error);
}

TEST(LsmPrefixScan, AFilterThatLosesPrefixesIsAWrongAnswer) {
  ConstantSource filters(false, true);
  Ready ready(MakeLsmPrefixScan(), Knobs(), filters);
  const auto run = ready.state().Start(0.5, 1);
  ASSERT_TRUE(run);
  const auto report = (*run)->Report();
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error(), StartsWith(std::string(kWrongAnswer)));
}

TEST(LsmPrefixScan, RefusesMoreRowsOfAPrefixThanKeys) {
  const auto workload = MakeLsmPrefixScan();
  const json knobs = *workload->CompleteKnobs({{"keys_per_prefix", 100}, {"files", 1}});
  EXPECT_EQ(workload->Contradiction(knobs, 100), "");
  EXPECT_THAT(workload->Contradiction(knobs, 99), StartsWith("keys_per_prefix: "));
}

}  // namespace
}  // namespace filterbench::lsm
