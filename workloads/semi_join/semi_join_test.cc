#include "workloads/semi_join/semi_join.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/bloom/blocked.h"
#include "filters/limits/always_maybe.h"
#include "filters/ribbon/ribbon.h"
#include "filters/theory/agreement.h"
#include "workloads/testing.h"

namespace filterbench {
namespace {

constexpr uint64_t kKeys = 5000;

template <class F>
void ExpectEveryMatchIsJoined(const KeySetSpec& key_set) {
  SourceOf<F> source;
  // Batches that do not divide the rows, and such of less than a word.
  for (const uint64_t batch_rows : {1, 63, 1000, 4096}) {
    TestedWorkload tested(*MakeSemiJoin(), source,
                          {{"rows", 30'000}, {"batch_rows", batch_rows}, {"row_bytes", 24}}, kKeys,
                          key_set);
    for (const double share : {0.5, 0.9, 0.999, 1.0}) {
      const WorkloadReport report = tested.Report(share);
      const auto matching = static_cast<uint64_t>(std::llround(30'000 * (1 - share)));
      EXPECT_EQ(tested.positives(), matching);
      EXPECT_EQ(report.counters.at("rows_sent"), matching + report.fpr.false_positives);
      EXPECT_EQ(report.counters.at("bytes_sent"), report.counters.at("rows_sent") * 24);
      if (!report.fpr.expected) continue;
      EXPECT_TRUE(theory::FprAgrees(report.fpr.false_positives, report.fpr.queries,
                                    {*report.fpr.expected, *report.fpr.expected_instance_sd},
                                    1e-9));
    }
  }
}

TEST(SemiJoin, EveryMatchIsJoinedAndFewOthersAreSent) {
  const KeySetsOfEachKind key_sets(kKeys + 40'000);
  for (const KeySetSpec& key_set : key_sets.specs()) {
    ExpectEveryMatchIsJoined<BlockedBloom>(key_set);
    ExpectEveryMatchIsJoined<Ribbon>(key_set);
  }
}

TEST(SemiJoin, WithoutAFilterAllRowsAreSent) {
  SourceOf<AlwaysMaybe> source;
  TestedWorkload tested(*MakeSemiJoin(), source, {{"rows", 3000}}, kKeys);
  const WorkloadReport report = tested.Report(0.9);
  EXPECT_EQ(report.counters.at("rows_sent"), 3000u);
  EXPECT_EQ(ValueOfMetric(report, "rows_dropped_per_row"), 0);
  EXPECT_EQ(tested.positives(), 300u);
}

TEST(SemiJoin, WithoutAJoinTheRowsThatAreSentAreCounted) {
  SourceOf<BlockedBloom> source;
  TestedWorkload tested(*MakeSemiJoin(), source, {{"rows", 3000}, {"join", "off"}}, kKeys);
  const WorkloadReport report = tested.Report(0.9);
  EXPECT_EQ(tested.positives(), report.counters.at("rows_sent"));
}

TEST(SemiJoin, AMatchThatIsLostIsAWrongAnswer) {
  // So many false positives that more rows are sent than match.
  SourceOf<Denying<Ribbon>> source(nlohmann::json{{"bits_per_key", 2}});
  for (const char* join : {"on", "off"}) {
    TestedWorkload tested(*MakeSemiJoin(), source, {{"rows", 10'000}, {"join", join}}, kKeys);
    const Result<WorkloadReport> report = tested.ReportAlone(0.9);
    ASSERT_FALSE(report) << join;
    EXPECT_THAT(report.error(), testing::StartsWith(kWrongAnswer));
    EXPECT_THAT(report.error(), testing::HasSubstr("of 1000 matching rows"));
  }
}

TEST(SemiJoin, GivesSignsOfLifeWhileKeysAreHashed) {
  SourceOf<AlwaysMaybe> source;
  const KeySet key_set;
  uint64_t signs = 0;
  const WorkloadSetup setup{.knobs = *MakeSemiJoin()->CompleteKnobs({{"rows", 1000}}),
                            .filters = &source,
                            .key_set = &key_set,
                            .keys = (uint64_t{2} << 20) + 1,
                            .directory = {},
                            .alive = [&] { ++signs; }};
  ASSERT_TRUE(MakeSemiJoin()->Prepare(setup));
  EXPECT_GE(signs, 3u);
}

TEST(SemiJoin, EstimatesTheMemoryOfItsBatches) {
  const auto workload = MakeSemiJoin();
  const auto bytes = [&](uint64_t batch_rows) {
    return workload
        ->EstimateCost(*workload->CompleteKnobs({{"batch_rows", batch_rows}, {"row_bytes", 4096}}),
                       kKeys)
        .memory_bytes;
  };
  EXPECT_GE(bytes(65'536) - bytes(1), 2.0 * 65'535 * 4096);
}

}  // namespace
}  // namespace filterbench
