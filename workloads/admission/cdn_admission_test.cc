#include "workloads/admission/cdn_admission.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/bloom/blocked.h"
#include "filters/cuckoo/cuckoo.h"
#include "filters/limits/always_maybe.h"
#include "filters/theory/agreement.h"
#include "workloads/testing.h"

namespace filterbench {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kRequests = 100'000;

nlohmann::json Knobs() { return {{"requests", kRequests}, {"cache_mib", 16}}; }

// Of n draws, the expected numbers of objects that are drawn, and that are drawn once: sums over
// ranks, those beyond 2^16 as integrals, where an object is hardly ever drawn twice.
struct ExpectedObjects {
  double drawn = 0;
  double once = 0;
};
ExpectedObjects ExpectObjects(double exponent, double n) {
  constexpr uint64_t kExact = 1 << 16;
  const double from = kExact + 0.5;
  const double to = 0x1p40 + 0.5;
  const auto integral = [&](double power) {
    return (std::pow(from, 1 - power) - std::pow(to, 1 - power)) / (power - 1);
  };
  double sum = integral(exponent);
  for (uint64_t r = 1; r <= kExact; ++r) sum += std::pow(static_cast<double>(r), -exponent);
  const double one = n * integral(exponent) / sum;
  const double two = n * n * integral(2 * exponent) / (sum * sum) / 2;
  ExpectedObjects expected{.drawn = one - two, .once = one - 2 * two};
  for (uint64_t r = 1; r <= kExact; ++r) {
    const double p = std::pow(static_cast<double>(r), -exponent) / sum;
    expected.drawn += -std::expm1(n * std::log1p(-p));
    expected.once += n * p * std::exp((n - 1) * std::log1p(-p));
  }
  return expected;
}

// Seven deviations: about 1e-11 of a normal law. Were the number of requests drawn by Poisson's
// law, objects would be drawn independently of each other, and the variance of both counts below
// their mean; that the number is fixed only takes from it.
TEST(CdnAdmission, AsManyObjectsAreAskedForOnceAsTheLawSays) {
  for (const double exponent : {1.2, 4.0 / 3, 2.0}) {
    SourceOf<BlockedBloom> source;
    nlohmann::json knobs = Knobs();
    knobs["zipf_exponent"] = exponent;
    TestedWorkload tested(*MakeCdnAdmission(), source, knobs, 5000);
    const WorkloadReport report = tested.Report(std::nullopt);
    const ExpectedObjects expected = ExpectObjects(exponent, kRequests);
    EXPECT_NEAR(static_cast<double>(report.counters.at("objects")), expected.drawn,
                7 * std::sqrt(expected.drawn)) << exponent;
    EXPECT_NEAR(static_cast<double>(report.counters.at("objects_asked_once")), expected.once,
                7 * std::sqrt(expected.once)) << exponent;
    EXPECT_EQ(tested.positives(), report.counters.at("hits"));
  }
}

TEST(CdnAdmission, ThreeQuartersOfTheObjectsAreAskedForOnceByDefault) {
  const nlohmann::json knobs = *MakeCdnAdmission()->CompleteKnobs(nlohmann::json::object());
  const ExpectedObjects expected = ExpectObjects(knobs["zipf_exponent"], knobs["requests"]);
  EXPECT_NEAR(expected.once / expected.drawn, 0.75, 0.005);
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

// A cache that holds few objects asks again and again for those that came in by a false positive:
// one trial each, or the count would be far above theory's.
TEST(CdnAdmission, FalseAdmissionsAreThoseThatTheoryExpects) {
  for (const double cache_mib : {1.0, 16.0, 1024.0}) {
    SourceOf<BlockedBloom> source(nlohmann::json{{"bits_per_key", 6}});
    nlohmann::json knobs = Knobs();
    knobs["cache_mib"] = cache_mib;
    TestedWorkload tested(*MakeCdnAdmission(), source, knobs, 2000);
    const WorkloadReport report = tested.Report(std::nullopt);
    const Metric& admissions = MetricOf(report, "false_admissions_per_new_object");
    ASSERT_TRUE(admissions.expected_by_chance);
    EXPECT_GT(*admissions.expected_by_chance, 100);
    EXPECT_EQ(report.fpr.false_positives, admissions.by_chance);
    EXPECT_EQ(report.fpr.queries, admissions.trials);
    ASSERT_TRUE(report.fpr.expected && report.fpr.expected_instance_sd);
    EXPECT_DOUBLE_EQ(*report.fpr.expected * static_cast<double>(report.fpr.queries),
                     *admissions.expected_by_chance);
    EXPECT_TRUE(theory::FprAgrees(report.fpr.false_positives, report.fpr.queries,
                                  {*report.fpr.expected, *report.fpr.expected_instance_sd}, 1e-9))
        << admissions.by_chance << " of " << *admissions.expected_by_chance << ", " << cache_mib
        << " MiB";
  }
}

// Of filters that hold fewer keys than theory has steps, too, and with no rotation at all.
TEST(CdnAdmission, TheoryHoldsForFiltersOfAnySize) {
  for (const uint64_t keys : {1, 7, 33, 1000, 1'000'000}) {
    SourceOf<Cuckoo> source(nlohmann::json{{"fingerprint_bits", "8"}});
    TestedWorkload tested(*MakeCdnAdmission(), source, Knobs(), keys);
    const WorkloadReport report = tested.Report(std::nullopt);
    EXPECT_TRUE(theory::FprAgrees(report.fpr.false_positives, report.fpr.queries,
                                  {*report.fpr.expected, *report.fpr.expected_instance_sd}, 1e-9))
        << report.fpr.false_positives << " of " << report.fpr.queries << ", " << keys << " keys";
  }
}

TEST(CdnAdmission, WithoutAFilterEveryObjectIsAdmitted) {
  SourceOf<AlwaysMaybe> source;
  TestedWorkload tested(*MakeCdnAdmission(), source, Knobs(), 5000);
  const WorkloadReport report = tested.Report(std::nullopt);
  EXPECT_EQ(MetricOf(report, "disk_writes_per_request").certain,
            MetricOf(report, "disk_writes_per_request_admitting_all").certain);
  EXPECT_EQ(ValueOfMetric(report, "disk_bytes_written_per_byte_admitting_all"), 1);
  EXPECT_EQ(ValueOfMetric(report, "byte_hit_ratio"),
            ValueOfMetric(report, "byte_hit_ratio_admitting_all"));
  EXPECT_EQ(report.counters.at("rotations"), 0u);
  EXPECT_EQ(ValueOfMetric(report, "filter_bytes"), 0);
}

// Every request is a hit, or is written, where all that is missed is admitted, but for objects that
// do not fit: sizes reach 16 MiB.
TEST(CdnAdmission, ObjectsLargerThanTheCacheAreNotWritten) {
  for (const double cache_mib : {1.0, 16.0}) {
    SourceOf<AlwaysMaybe> source;
    nlohmann::json knobs = Knobs();
    knobs["cache_mib"] = cache_mib;
    TestedWorkload tested(*MakeCdnAdmission(), source, knobs, 5000);
    const WorkloadReport report = tested.Report(std::nullopt);
    const uint64_t hits_and_writes =
        report.counters.at("hits") + report.counters.at("disk_writes");
    if (cache_mib == 1) {
      EXPECT_LT(hits_and_writes, kRequests);
    } else {
      EXPECT_EQ(hits_and_writes, kRequests);
    }
  }
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
  EXPECT_EQ(MakeCdnAdmission()->WhyNotWith("always_maybe", {}, false), "");
  EXPECT_THAT(MakeCdnAdmission()->Contradiction({}, 0), HasSubstr("keys"));
}

}  // namespace
}  // namespace filterbench
