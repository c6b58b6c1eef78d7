#include "harness/record/sample.h"

#include <chrono>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/document.h"
#include "harness/record/testing.h"

namespace filterbench {
namespace {

using nlohmann::json;
using record_testing::MakeFailure;
using record_testing::MakePoint;
using record_testing::MakeSample;
using testing::HasSubstr;
using testing::StartsWith;

void ExpectRoundTrip(const Sample& sample) {
  const std::string line = SampleToJson(sample).dump();
  const Result<json> document = ParseStrictJson(line);
  ASSERT_TRUE(document) << document.error();
  const Result<Sample> back = SampleFromJson(*document);
  ASSERT_TRUE(back) << back.error() << "\n" << line;
  EXPECT_EQ(*back, sample) << line;
  EXPECT_EQ(SampleToJson(*back).dump(), line);
}

TEST(Sample, RoundTrips) {
  ExpectRoundTrip(MakeSample());
  for (size_t i = 1; i < std::size(kSampleStatusNames); ++i) {
    ExpectRoundTrip(MakeFailure(static_cast<SampleStatus>(i), "a \"reason\"\nof two lines"));
  }
  // A baseline: no FPR.
  Sample baseline = MakeSample(7, MakePoint("touch_lines"));
  baseline.fpr.reset();
  ExpectRoundTrip(baseline);
  // A build: no stream.
  Sample build = MakeSample();
  build.point.mode = Mode::kBuild;
  build.point.negative_share.reset();
  build.stream_lookups.reset();
  build.positives.reset();
  build.positives_expected.reset();
  ExpectRoundTrip(build);
  // No keys: no quotients.
  Sample empty = MakeSample(0, MakePoint("blocked_bloom", 0));
  empty.filter->bits_per_key.reset();
  empty.filter->build_ns_per_key.reset();
  empty.fpr->expected.reset();
  empty.fpr->expected_instance_sd.reset();
  ExpectRoundTrip(empty);
  // Pages that were chosen and looked at.
  Sample pages = MakeSample();
  pages.point.pages = Pages::kHugetlb;
  pages.filter->pages = TablePages{{2097152, ""}, {4194304, ""}, {4194304, ""}};
  ExpectRoundTrip(pages);
  pages.filter->pages = TablePages{{4096, ""}, {0, ""}, {std::nullopt, "shared"}};
  ExpectRoundTrip(pages);
  // Several threads.
  Sample threads = MakeSample();
  threads.point.threads = 2;
  threads.threads = ThreadFacts{{3, 1}, {0.02, 0.03}, {0.025, 0.03}};
  ExpectRoundTrip(threads);
  // The edges of the numbers.
  Sample extreme = MakeSample();
  extreme.sequence = std::numeric_limits<uint64_t>::max();
  extreme.seed = std::numeric_limits<uint64_t>::max();
  extreme.ns_per_op = {std::numeric_limits<double>::min(), 0.1, 1 / 3.0, 1e300};
  extreme.filter->peak_build_bytes = uint64_t{1} << 45;
  extreme.fpr = MeasuredFpr{0, 0, 0, 1};
  ExpectRoundTrip(extreme);
  Sample of_process = MakeSample();
  of_process.process = 3;
  ExpectRoundTrip(of_process);
}

TEST(Sample, EveryFieldIsNeededAndNoOtherIsAllowed) {
  const json document = SampleToJson(MakeSample());
  for (const auto& [field, unused] : document.items()) {
    json damaged = document;
    damaged.erase(field);
    const auto sample = SampleFromJson(damaged);
    ASSERT_FALSE(sample) << field;
    EXPECT_EQ(sample.error(), field + ": is missing");
  }
  json damaged = document;
  damaged["sequenc"] = 1;
  EXPECT_THAT(SampleFromJson(damaged).error(), HasSubstr("did you mean 'sequence'"));
}

TEST(Sample, NoFieldMayHaveAnotherType) {
  const json document = SampleToJson(MakeSample());
  for (const json::json_pointer::string_t field :
       {"/sequence", "/time_utc", "/point_id", "/point", "/point/keys", "/round", "/seed",
        "/status", "/ns_per_op", "/ns_per_op/1", "/operations_per_pass", "/positives", "/filter",
        "/filter/size_bytes", "/filter/extra", "/filter/filter_digest", "/fpr/queries",
        "/fpr/low", "/health", "/health/cpu"}) {
    const json::json_pointer pointer(field);
    for (const json& wrong : {json(true), json("x"), json(-1), json(1.5), json(json::array({1}))}) {
      if (document.at(pointer).type() == wrong.type()) continue;
      if (document.at(pointer).is_number_float() && wrong.is_number_float()) continue;
      json damaged = document;
      damaged.at(pointer) = wrong;
      const auto sample = SampleFromJson(damaged);
      EXPECT_FALSE(sample) << field << " = " << wrong;
    }
  }
}

TEST(Sample, ErrorsNameTheField) {
  const json document = SampleToJson(MakeSample());
  const auto problem = [&](const char* pointer, const json& value) {
    json damaged = document;
    damaged[json::json_pointer(pointer)] = value;
    const auto sample = SampleFromJson(damaged);
    return sample ? std::string() : sample.error();
  };
  EXPECT_THAT(problem("/ns_per_op/1", std::numeric_limits<double>::quiet_NaN()),
              StartsWith("ns_per_op[1]: is NaN"));
  EXPECT_THAT(problem("/ns_per_op/1", 0), StartsWith("ns_per_op[1]: must be above 0"));
  EXPECT_THAT(problem("/filter/bits_per_key", nullptr),
              StartsWith("filter.bits_per_key_reason: is missing"));
  EXPECT_THAT(problem("/status", "great"), StartsWith("status: must be one of"));
  EXPECT_THAT(problem("/reason", "a reason, yet ok"), StartsWith("reason: must be of type null"));
  EXPECT_THAT(problem("/point/mode", "lookup"), StartsWith("point.mode: must be one of"));
  EXPECT_THAT(problem("/point/target", "avx3"), StartsWith("point_id: is "));
  EXPECT_THAT(problem("/round", 4294967296), StartsWith("round: must be a whole number that fits"));
  EXPECT_THAT(problem("/process", 4294967296), StartsWith("process: must be a whole number that"));
  EXPECT_THAT(problem("/process", nullptr), StartsWith("process: must be of type integer"));
  EXPECT_THAT(problem("/seed", 1e30), StartsWith("seed: must be a whole number that fits"));
  EXPECT_THAT(problem("/fpr/false_positives", 1000001), StartsWith("fpr.false_positives: exceeds"));
  EXPECT_THAT(problem("/fpr/measured", 0.0097), StartsWith("fpr.measured: is 0.0097, but 0.00966"));
  EXPECT_THAT(problem("/fpr/high", 0.01), StartsWith("fpr.high: is 0.01, but"));
  EXPECT_THAT(problem("/health/migrations_reason", nullptr), StartsWith("health.migrations"));
}

TEST(Sample, ThreadsAreThoseOfThePoint) {
  Sample sample = MakeSample();
  sample.threads = ThreadFacts{{3, 1}, {}, {}};
  EXPECT_THAT(SampleFromJson(SampleToJson(sample)).error(), StartsWith("threads: the point has"));
  sample.point.threads = 3;
  EXPECT_THAT(SampleFromJson(SampleToJson(sample)).error(), StartsWith("threads.cpus: has 2 CPUs"));
  sample.point.threads = 2;
  json document = SampleToJson(sample);
  EXPECT_TRUE(SampleFromJson(document));
  document["filter"]["page_bytes"] = 4096;
  EXPECT_THAT(SampleFromJson(document).error(), StartsWith("filter.huge_page_bytes_asked: is"));
}

TEST(Sample, AFailureHasAReasonAndNoTimes) {
  json document = SampleToJson(MakeFailure(SampleStatus::kOutOfMemory, "needs 2 TiB"));
  ASSERT_TRUE(SampleFromJson(document));
  document["reason"] = nullptr;
  EXPECT_THAT(SampleFromJson(document).error(), StartsWith("reason: must be of type string"));
  document["reason"] = "";
  EXPECT_FALSE(SampleFromJson(document));
  document["reason"] = "needs 2 TiB";
  document["ns_per_op"] = {1.0};
  EXPECT_THAT(SampleFromJson(document).error(), StartsWith("ns_per_op: must have at most 0"));
}

TEST(FormatUtc, HasMilliseconds) {
  using std::chrono::milliseconds;
  using TimePoint = std::chrono::system_clock::time_point;
  EXPECT_EQ(FormatUtc(TimePoint(milliseconds(1796052001123))), "2026-11-30T15:20:01.123Z");
  EXPECT_EQ(FormatUtc(TimePoint(milliseconds(0))), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatUtc(TimePoint(milliseconds(999)) + std::chrono::microseconds(999)),
            "1970-01-01T00:00:00.999Z");
}

}  // namespace
}  // namespace filterbench
