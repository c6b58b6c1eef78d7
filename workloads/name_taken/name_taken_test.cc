#include "workloads/name_taken/name_taken.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/bloom/blocked.h"
#include "filters/limits/always_maybe.h"
#include "filters/ribbon/ribbon.h"
#include "filters/theory/agreement.h"
#include "workloads/testing.h"

namespace filterbench {
namespace {

constexpr uint64_t kKeys = 20'000;
constexpr double kFalseAlarm = 1e-9;

TEST(NameTaken, TheSetIsAskedForWhatIsThereAndForFalsePositives) {
  const KeySetsOfEachKind key_sets(kKeys + 60'000);
  for (const KeySetSpec& key_set : key_sets.specs()) {
    SourceOf<BlockedBloom> source;
    TestedWorkload tested(*MakeNameTaken(), source, {{"operations", 50'000}}, kKeys, key_set);
    for (const double share : {0.0, 0.5, 0.9, 1.0}) {
      const WorkloadReport report = tested.Report(share);
      const uint64_t absent = static_cast<uint64_t>(50'000 * share);
      EXPECT_EQ(tested.positives(), 50'000 - absent);
      EXPECT_EQ(report.fpr.queries, absent);
      const Metric& probes = MetricOf(report, "set_probes_per_lookup");
      EXPECT_EQ(probes.certain, 50'000 - absent);
      EXPECT_EQ(probes.by_chance, report.fpr.false_positives);
      if (absent == 0) continue;
      EXPECT_TRUE(theory::FprAgrees(report.fpr.false_positives, report.fpr.queries,
                                    {*report.fpr.expected, *report.fpr.expected_instance_sd},
                                    kFalseAlarm));
    }
    EXPECT_GT(ValueOfMetric(tested.Report(1), "set_bytes_per_filter_byte"), 5);
  }
}

TEST(NameTaken, WithNothingBehindFalsePositivesAreWrongAnswers) {
  SourceOf<BlockedBloom> source;
  TestedWorkload tested(*MakeNameTaken(), source, {{"operations", 50'000}, {"behind", "nothing"}},
                        kKeys);
  const WorkloadReport report = tested.Report(0.8);
  EXPECT_EQ(tested.positives(), 10'000 + report.fpr.false_positives);
  EXPECT_GT(report.fpr.false_positives, 200u);
  EXPECT_EQ(ValueOfMetric(report, "wrong_answers_per_lookup"),
            static_cast<double>(report.fpr.false_positives) / 50'000);
}

TEST(NameTaken, WithoutAFilterTheSetIsAlwaysAsked) {
  SourceOf<AlwaysMaybe> source;
  TestedWorkload tested(*MakeNameTaken(), source, {{"operations", 5000}}, kKeys);
  const WorkloadReport report = tested.Report(0.9);
  EXPECT_EQ(ValueOfMetric(report, "set_probes_per_lookup"), 1);
  EXPECT_EQ(tested.positives(), 500u);
}

TEST(NameTaken, TheSameSeedCountsTheSame) {
  SourceOf<BlockedBloom> source;
  TestedWorkload tested(*MakeNameTaken(), source, {{"operations", 5000}}, kKeys);
  EXPECT_EQ(tested.Report(0.9).metrics, tested.Report(0.9).metrics);
  EXPECT_NE(tested.Report(0.9).fpr.false_positives, tested.Report(0.9, 77).fpr.false_positives);
}

TEST(NameTaken, ANameThatIsDeniedIsAWrongAnswer) {
  SourceOf<Denying<Ribbon>> source(nlohmann::json{{"bits_per_key", 2}});
  for (const char* behind : {"hash_set", "nothing"}) {
    TestedWorkload tested(*MakeNameTaken(), source, {{"operations", 10'000}, {"behind", behind}},
                          kKeys);
    const Result<WorkloadReport> report = tested.ReportAlone(0.9);
    ASSERT_FALSE(report) << behind;
    EXPECT_THAT(report.error(), testing::StartsWith(kWrongAnswer));
  }
}

TEST(NameTaken, EstimatesTheMemoryOfAHundredMillionKeys) {
  const auto workload = MakeNameTaken();
  const double bytes =
      workload->EstimateCost(*workload->CompleteKnobs(nlohmann::json::object()), 100'000'000)
          .memory_bytes;
  EXPECT_GT(bytes, 1.8e9);  // the set and the hashes alone
  EXPECT_LT(bytes, 12e9);
}

}  // namespace
}  // namespace filterbench
