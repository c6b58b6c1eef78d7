#include "workloads/safe_browsing/safe_browsing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/bloom/blocked.h"
#include "filters/fuse/xor.h"
#include "filters/limits/always_maybe.h"
#include "filters/theory/agreement.h"
#include "workloads/testing.h"

namespace filterbench {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kKeys = 20'000;

TEST(SafeBrowsing, ListedSitesAreNoticedAndFewOthers) {
  SourceOf<Xor> source;
  TestedWorkload tested(*MakeSafeBrowsing(), source, {{"operations", 100'000}}, kKeys,
                        {.kind = KeyKind::kBytes, .length_bytes = 40});
  const WorkloadReport report = tested.Report(0.99);
  EXPECT_EQ(report.counters.at("clean_visits"), 99'000u);
  EXPECT_EQ(tested.positives(),
            1000 + report.fpr.false_positives + report.counters.at("prefix_collisions"));
  EXPECT_TRUE(theory::FprAgrees(report.fpr.false_positives, report.fpr.queries,
                                {*report.fpr.expected, *report.fpr.expected_instance_sd}, 1e-9));
  EXPECT_EQ(ValueOfMetric(report, "sorted_prefixes_bytes"), 4.0 * kKeys);
  EXPECT_EQ(ValueOfMetric(report, "list_bits_per_prefix"),
            ValueOfMetric(report, "list_bytes") * 8 / kKeys);
}

// With 20 bits a clean URL shares its prefix with a listed one with a chance of about
// 20000 / 2^20: those are requests whatever the filter.
TEST(SafeBrowsing, PrefixesThatCollideAreCountedApart) {
  SourceOf<BlockedBloom> source(nlohmann::json{{"bits_per_key", 20}});
  TestedWorkload tested(*MakeSafeBrowsing(), source,
                        {{"operations", 100'000}, {"prefix_bits", 20}}, kKeys);
  const WorkloadReport report = tested.Report(1);
  const uint64_t collisions = report.counters.at("prefix_collisions");
  const double listed = static_cast<double>(tested.state().filters().keys) / (1 << 20);
  EXPECT_TRUE(theory::FprAgrees(collisions, 100'000, {listed, 0}, 1e-9)) << collisions;
  EXPECT_LT(tested.state().filters().keys, kKeys);
  EXPECT_EQ(report.fpr.queries, 100'000 - collisions);
  EXPECT_EQ(MetricOf(report, "server_requests_per_clean_url").certain, collisions);
}

TEST(SafeBrowsing, WithoutAFilterEveryVisitIsARequest) {
  SourceOf<AlwaysMaybe> source;
  TestedWorkload tested(*MakeSafeBrowsing(), source, {{"operations", 5000}}, kKeys);
  EXPECT_EQ(ValueOfMetric(tested.Report(0.9), "server_requests_per_clean_url"), 1);
  EXPECT_EQ(tested.positives(), 5000u);
}

TEST(SafeBrowsing, ThereMustBeAsManyPrefixesAsSites) {
  const auto workload = MakeSafeBrowsing();
  const nlohmann::json knobs =
      *workload->CompleteKnobs({{"prefix_bits", 13}, {"operations", 1000}});
  EXPECT_THAT(workload->Contradiction(knobs, 8192), HasSubstr("no 8192 prefixes of 13 bits"));
  EXPECT_EQ(workload->Contradiction(knobs, 8191), "");
}

// Else a few false positives are counted many times, and a right filter is found to be wrong.
TEST(SafeBrowsing, VisitsMustNotShareManyPrefixes) {
  const auto workload = MakeSafeBrowsing();
  const auto contradiction = [&](uint64_t prefix_bits, uint64_t operations) {
    return workload->Contradiction(
        *workload->CompleteKnobs({{"prefix_bits", prefix_bits}, {"operations", operations}}), 100);
  };
  EXPECT_EQ(contradiction(20, 131072), "");
  EXPECT_THAT(contradiction(20, 131073), HasSubstr("at most 131072 operations"));
  for (const uint64_t bits : {32, 63, 64}) EXPECT_EQ(contradiction(bits, uint64_t{1} << 28), "");
  EXPECT_EQ(workload->Contradiction(*workload->CompleteKnobs(nlohmann::json::object()), 600'000),
            "");
}

TEST(PrefixSetBytes, CountsIndexEntriesAndDifferences) {
  EXPECT_EQ(PrefixSetBytes({}), 0u);
  EXPECT_EQ(PrefixSetBytes({7}), 8u);
  EXPECT_EQ(PrefixSetBytes({7, 8, 65543}), 8u + 2 + 2);  // 65535 apart
  EXPECT_EQ(PrefixSetBytes({7, 65543}), 8u + 8);         // 65536 apart
  std::vector<uint64_t> dense(202);
  for (size_t i = 0; i < dense.size(); ++i) dense[i] = i;
  EXPECT_EQ(PrefixSetBytes(dense), 2 * (8u + 100 * 2));
}

}  // namespace
}  // namespace filterbench
