#include "workloads/lsm/lsm_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/bloom/blocked.h"
#include "filters/limits/always_maybe.h"
#include "workloads/lsm/store_workload_testing.h"

namespace filterbench::lsm {
namespace {

using nlohmann::json;
using ::testing::StartsWith;

json Knobs(json knobs = json::object()) {
  knobs["memtable_keys"] = 100;
  if (!knobs.contains("size_ratio") && knobs.value("shape", "") != "files") {
    knobs["size_ratio"] = 3;
  }
  return knobs;
}

TEST(LsmLoad, EachFlushOfUncompactedFilesBuildsOneFilter) {
  SourceOf<BlockedBloom> filters;
  Ready ready(MakeLsmLoad(), Knobs({{"shape", "files"}}), filters);
  const WorkloadReport report = ready.Report(std::nullopt);
  EXPECT_EQ(report.counters.at("puts"), kTestKeys);
  EXPECT_EQ(report.counters.at("flushes"), kTestKeys / 100);
  EXPECT_EQ(report.counters.at("compactions"), 0u);
  EXPECT_EQ(report.counters.at("entries_written"), kTestKeys);
  EXPECT_EQ(report.counters.at("filter_builds"), kTestKeys / 100);
  EXPECT_EQ(ValueOfMetric(report, "filter_builds_per_key"), 1);
  EXPECT_EQ(ValueOfMetric(report, "files"), kTestKeys / 100);
  EXPECT_EQ(report.facts.at("levels"), "0:20");
  const WorkloadFilters facts = ready.state().filters();
  EXPECT_EQ(facts.filters, kTestKeys / 100);
  EXPECT_EQ(facts.builds, kTestKeys / 100);
  EXPECT_EQ(facts.keys, kTestKeys);
  EXPECT_EQ(ValueOfMetric(report, "filter_bytes"), static_cast<double>(facts.size_bytes));
}

TEST(LsmLoad, CompactionsBuildFiltersAgainOverTheSameKeys) {
  SourceOf<BlockedBloom> filters;
  for (const char* shape : {"leveled", "size_tiered"}) {
    Ready ready(MakeLsmLoad(), Knobs({{"shape", shape}}), filters);
    const WorkloadReport report = ready.Report(std::nullopt);
    EXPECT_GT(report.counters.at("compactions"), 0u) << shape;
    EXPECT_EQ(report.counters.at("filter_keys"), report.counters.at("entries_written")) << shape;
    EXPECT_GT(ValueOfMetric(report, "filter_builds_per_key"), 1.5) << shape;
    EXPECT_GT(ValueOfMetric(report, "write_amplification"), 1.5) << shape;
    EXPECT_GT(report.counters.at("filter_builds"), ready.state().filters().filters) << shape;
    EXPECT_EQ(ready.state().filters().keys, kTestKeys) << shape;
    const double share = ValueOfMetric(report, "filter_build_share");
    EXPECT_GT(share, 0) << shape;
    EXPECT_LT(share, 1) << shape;
    EXPECT_GT(ValueOfMetric(report, "filter_build_ns_per_put"), 0) << shape;
  }
}

TEST(LsmLoad, OverwritesAreAShareOfThePutsAndTheLastValueStays) {
  SourceOf<BlockedBloom> filters;
  for (const char* shape : {"files", "leveled", "size_tiered"}) {
    // The report checks that every key has the value that was put last.
    const WorkloadReport report =
        Ready(MakeLsmLoad(), Knobs({{"shape", shape}, {"overwrites", 0.5}}), filters)
            .Report(std::nullopt);
    EXPECT_EQ(report.counters.at("puts"), 2 * kTestKeys) << shape;
    EXPECT_EQ(report.counters.at("keys"), kTestKeys) << shape;
    EXPECT_EQ(report.counters.at("user_bytes"), 2 * kTestKeys * 108) << shape;
  }
}

TEST(LsmLoad, WithoutFiltersNoneIsBuilt) {
  SourceOf<BlockedBloom> filters;
  const WorkloadReport none =
      Ready(MakeLsmLoad(), Knobs({{"filter_levels", "none"}}), filters).Report(std::nullopt);
  EXPECT_EQ(none.counters.at("filter_builds"), 0u);
  EXPECT_EQ(ValueOfMetric(none, "filter_bytes"), 0);
  SourceOf<AlwaysMaybe> baseline;
  ExpectSameCounts(none, Ready(MakeLsmLoad(), Knobs(), baseline).Report(std::nullopt));

  const WorkloadReport all = Ready(MakeLsmLoad(), Knobs(), filters).Report(std::nullopt);
  const WorkloadReport but_last =
      Ready(MakeLsmLoad(), Knobs({{"filter_levels", "but_last"}}), filters).Report(std::nullopt);
  EXPECT_EQ(but_last.parts.back().at("filter_bytes"), 0);
  EXPECT_GT(but_last.counters.at("filter_builds"), 0u);
  EXPECT_LT(but_last.counters.at("filter_builds"), all.counters.at("filter_builds"));
  EXPECT_EQ(but_last.facts, all.facts);
}

TEST(LsmLoad, EveryLoadMakesTheSameStore) {
  SourceOf<BlockedBloom> filters;
  Ready ready(MakeLsmLoad(), Knobs({{"overwrites", 0.25}}), filters);
  const WorkloadReport report = ready.Report(std::nullopt, 1);
  ExpectSameCounts(report, ready.Report(std::nullopt, 2));
  Ready again(MakeLsmLoad(), Knobs({{"overwrites", 0.25}}), filters);
  ExpectSameCounts(report, again.Report(std::nullopt));
  EXPECT_EQ(ready.state().filters().digest, again.state().filters().digest);
  for (const char* phase : {"memtable", "filter_build", "flush_and_compaction"}) {
    EXPECT_GE(report.phases_ns.at(phase), 0) << phase;
  }
}

TEST(LsmLoad, RefusesKnobsThatContradictEachOther) {
  const auto workload = MakeLsmLoad();
  const auto why = [&](const json& knobs, uint64_t keys = 100'000) {
    return workload->Contradiction(*workload->CompleteKnobs(knobs), keys);
  };
  EXPECT_EQ(why(json::object()), "");
  EXPECT_EQ(why({{"shape", "files"}, {"memtable_keys", 100}}), "");
  EXPECT_THAT(why({{"shape", "files"}, {"size_ratio", 4}}), StartsWith("size_ratio: "));
  EXPECT_THAT(why({{"shape", "files"}, {"filter_levels", "but_last"}}),
              StartsWith("filter_levels: "));
  EXPECT_THAT(why(json::object(), 4095), StartsWith("memtable_keys: "));
  EXPECT_THAT(why({{"shape", "files"}}, 4095), StartsWith("memtable_keys: "));
}

}  // namespace
}  // namespace filterbench::lsm
