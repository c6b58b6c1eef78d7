#include "workloads/admission/cdn_admission.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/bloom/blocked.h"
#include "filters/cuckoo/cuckoo.h"
#include "workloads/testing.h"

namespace filterbench {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kRequests = 100'000;

nlohmann::json Knobs() { return {{"requests", kRequests}, {"cache_mib", 16}}; }

TEST(CdnAdmission, ThreeQuartersOfTheObjectsAreAskedForOnce) {
  SourceOf<BlockedBloom> source;
  TestedWorkload tested(*MakeCdnAdmission(), source, Knobs(), 5000);
  const WorkloadReport report = tested.Report(std::nullopt);
  // The limit is approached slowly.
  EXPECT_NEAR(ValueOfMetric(report, "one_hit_share_of_objects"), 0.75, 0.02);
  EXPECT_EQ(tested.positives(), report.counters.at("hits"));
}

TEST(CdnAdmission, WritesFarLessThanAdmittingAll) {
  SourceOf<BlockedBloom> source(nlohmann::json{{"bits_per_key", 12}});
  TestedWorkload tested(*MakeCdnAdmission(), source, Knobs(), 5000);
  const WorkloadReport report = tested.Report(std::nullopt);
  EXPECT_LT(ValueOfMetric(report, "disk_bytes_written_per_byte_admitting_all"), 0.7);
  EXPECT_LT(MetricOf(report, "disk_writes_per_request").certain,
            MetricOf(report, "disk_writes_per_request_admitting_all").certain);
  EXPECT_GT(report.counters.at("rotations"), 0u);
}

// Each trial asks two filters at their rate of then: the count of false admissions is a sum of
// independent events, whose variance is below its mean; seven deviations are exceeded with a chance
// below 1e-9 at these counts (Bernstein's bound).
TEST(CdnAdmission, FalseAdmissionsAreThoseThatTheoryExpects) {
  SourceOf<BlockedBloom> source(nlohmann::json{{"bits_per_key", 6}});
  TestedWorkload tested(*MakeCdnAdmission(), source, Knobs(), 2000);
  const WorkloadReport report = tested.Report(std::nullopt);
  const Metric& admissions = MetricOf(report, "false_admissions_per_new_object");
  ASSERT_TRUE(admissions.expected_by_chance);
  EXPECT_GT(*admissions.expected_by_chance, 100);
  EXPECT_NEAR(static_cast<double>(admissions.by_chance), *admissions.expected_by_chance,
              7 * std::sqrt(*admissions.expected_by_chance));
}

TEST(CdnAdmission, AFilterThatIsFullMakesRoomForTheNext) {
  SourceOf<Cuckoo> source;
  TestedWorkload tested(*MakeCdnAdmission(), source, Knobs(), 1000);
  const WorkloadReport report = tested.Report(std::nullopt);
  EXPECT_GT(report.counters.at("rotations"), 5u);
  EXPECT_EQ(tested.Report(std::nullopt).metrics, report.metrics);
}

TEST(CdnAdmission, AFilterThatTakesNoSingleKeysIsRefused) {
  EXPECT_THAT(MakeCdnAdmission()->WhyNotWith("xor", {}, false), HasSubstr("no single keys"));
  EXPECT_EQ(MakeCdnAdmission()->WhyNotWith("cuckoo", {}, true), "");
  EXPECT_THAT(MakeCdnAdmission()->Contradiction({}, 0), HasSubstr("keys"));
}

}  // namespace
}  // namespace filterbench
