#include "harness/record/summary.h"

#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <locale>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/document.h"
#include "harness/record/testing.h"
#include "harness/temporary_directory.h"
#include "harness/statistics.h"

namespace filterbench {
namespace {

using nlohmann::json;
using record_testing::MakeFailure;
using record_testing::MakeManifest;
using record_testing::MakePoint;
using record_testing::MakeSample;
using testing::HasSubstr;

json Summary(const std::vector<Sample>& samples) {
  json summary = Summarise(MakeManifest("run", "machine"), samples);
  const auto error = ValidateDocument("summary", summary);
  EXPECT_FALSE(error) << error->message;
  return summary;
}

Sample Timed(Point point, std::vector<double> ns_per_op, uint32_t round = 0) {
  Sample sample = MakeSample(0, std::move(point), round);
  sample.ns_per_op = std::move(ns_per_op);
  return sample;
}

TEST(Summarise, PutsRoundsTogether) {
  std::vector<Sample> samples = {Timed(MakePoint(), {5, 1, 3}, 1), Timed(MakePoint("ribbon"), {9}),
                                 Timed(MakePoint(), {2, 4, 60}, 0)};
  samples[0].filter->filter_digest = "1111111111111111";
  samples[2].filter->build_ns_per_key = 4.125;
  const json summary = Summary(samples);
  EXPECT_EQ(summary["run"], "run");
  EXPECT_EQ(summary["machine"], "machine");
  EXPECT_EQ(summary["spec"], "quick");
  ASSERT_EQ(summary["points"].size(), 2u);
  const json& entry = summary["points"][0];
  EXPECT_EQ(entry["point_id"], PointId(MakePoint()));
  EXPECT_EQ(entry["point"], PointToJson(MakePoint()));
  EXPECT_EQ(entry["status"], "ok");
  EXPECT_EQ(entry["reason"], nullptr);
  EXPECT_EQ(entry["rounds"], 2);
  EXPECT_EQ(entry["passes"], 6);
  const json& time = entry["ns_per_op"];
  EXPECT_EQ(time["median"], 3.5);
  EXPECT_EQ(time["min"], 1.0);
  // Nothing says which processes they are of, so there are two.
  const Interval interval = *NestedMedianInterval({{{2, 4, 60}}, {{5, 1, 3}}});
  EXPECT_EQ(time["low"], interval.low);
  EXPECT_EQ(time["high"], interval.high);
  EXPECT_EQ(time["confidence"], 0.8);
  EXPECT_EQ(entry["size_bytes"], 1250000);
  EXPECT_EQ(entry["bits_per_key"], 10.0);
  EXPECT_EQ(entry["build_ns_per_key"], (3.125 + 4.125) / 2);
  // By round, not by the order of measuring.
  EXPECT_EQ(entry["filter_digest"], json({"0123456789abcdef", "1111111111111111"}));
  EXPECT_EQ(summary["points"][1]["ns_per_op"]["confidence"], 0.0);
}

// --- Repetition ---

// Three processes of two builds of three passes, the rounds counted on; in another order.
std::vector<Sample> Repeated(double factor_of_process) {
  std::vector<Sample> samples;
  for (const uint32_t round : {3u, 0u, 5u, 1u, 2u, 4u}) {
    const uint32_t process = round / 2;
    const double base = 2 * std::pow(factor_of_process, process);
    samples.push_back(Timed(MakePoint(), {base * 1.001, base * 0.999, base}, round));
    samples.back().process = process;
  }
  return samples;
}

TEST(NestTimes, FollowsProcessesAndRounds) {
  std::vector<Sample> samples = {Timed(MakePoint(), {5, 6}, 2), Timed(MakePoint(), {3}, 1),
                                 Timed(MakePoint(), {1, 2}, 0)};
  const std::vector<const Sample*> pointers = {&samples[0], &samples[1], &samples[2]};
  EXPECT_EQ(NestTimes(pointers), (NestedValues{{{1, 2}}, {{3}}, {{5, 6}}}))
      << "older samples: each round is a process of its own";
  samples[0].process = 1;
  samples[1].process = 0;
  samples[2].process = 0;
  EXPECT_EQ(NestTimes(pointers), (NestedValues{{{1, 2}, {3}}, {{5, 6}}}));
  EXPECT_EQ(NestTimes({}), NestedValues());
}

TEST(Summarise, SaysWhetherARunWasLongEnough) {
  json manifest = MakeManifest("run", "machine");
  const auto entry = [&](const std::vector<Sample>& samples) {
    const json summary = Summarise(manifest, samples);
    const auto error = ValidateDocument("summary", summary);
    EXPECT_FALSE(error) << error->message;
    return summary["points"][0];
  };
  EXPECT_FALSE(entry(Repeated(1.0)).contains("stability")) << "no width was asked for";
  manifest["spec"]["measure"]["passes"] = 3;
  EXPECT_FALSE(entry(Repeated(1.0)).contains("stability"));
  manifest["spec"]["measure"]["width"] = 0.02;
  const json stable = entry(Repeated(1.0));
  EXPECT_EQ(stable["stability"]["asked_width"], 0.02);
  EXPECT_EQ(stable["stability"]["stable"], true);
  const json& time = stable["ns_per_op"];
  EXPECT_EQ(time["confidence"], 0.95);
  EXPECT_NEAR(stable["stability"]["width"].get<double>(),
              (time["high"].get<double>() - time["low"].get<double>()) / 2, 1e-12);
  const json unstable = entry(Repeated(1.02));
  EXPECT_EQ(unstable["stability"]["stable"], false);
  EXPECT_GT(unstable["stability"]["width"], 0.04);
  // Without a time there is nothing to say.
  std::vector<Sample> failed = Repeated(1.0);
  failed.push_back(MakeFailure(SampleStatus::kCrashed, "signal 11", 9, MakePoint(), 6));
  for (const char* field : {"stability", "variance_shares", "clusters"}) {
    EXPECT_FALSE(entry(failed).contains(field)) << field;
  }
}

TEST(Summarise, SharesTheVariance) {
  std::vector<Sample> samples = Repeated(1.02);
  const std::vector<Sample> once = {Timed(MakePoint("xor"), {1, 2})};
  samples.insert(samples.end(), once.begin(), once.end());
  const json summary = Summary(samples);
  const json& shares = summary["points"][0]["variance_shares"];
  EXPECT_GT(shares["process"], 0.98);
  EXPECT_EQ(shares["build"], 0.0);
  EXPECT_EQ(summary["points"][1]["variance_shares"], nullptr);
  EXPECT_THAT(summary["points"][1]["variance_shares_reason"].get<std::string>(),
              HasSubstr("two processes"));
  json of_all = shares;
  of_all["points"] = 1;
  EXPECT_EQ(summary["variance_shares"], of_all);

  for (Sample& sample : samples) sample.process.reset();
  const json older = Summary(samples);
  EXPECT_FALSE(older.contains("variance_shares"));
  EXPECT_THAT(older["points"][0]["variance_shares_reason"].get<std::string>(),
              HasSubstr("two builds"));
}

// Case F11: two clusters of one point are named.
TEST(Summarise, NamesTwoModes) {
  const std::vector<double> ten(5, 10.0);
  const std::vector<double> sixteen(5, 16.0);
  std::vector<Sample> samples = {Timed(MakePoint(), ten, 0), Timed(MakePoint(), sixteen, 1),
                                 Timed(MakePoint("xor"), {10, 10, 10, 10, 10, 10.1}, 0)};
  const json expected = {
      {"centers_ns", {10.0, 16.0}}, {"shares", {0.5, 0.5}}, {"explained_by", "process"}};
  EXPECT_EQ(Summary(samples)["points"][0]["clusters"], expected);
  EXPECT_EQ(Summary(samples)["points"][1]["clusters"], nullptr);
  EXPECT_EQ(Summary(samples)["points"][1]["clusters_reason"], "one mode explains the values");
  for (Sample& sample : samples) sample.process = 0;
  EXPECT_EQ(Summary(samples)["points"][0]["clusters"]["explained_by"], "build");
  const std::string csv = SummaryCsv(Summary(samples));
  EXPECT_THAT(csv, HasSubstr(",10.0;16.0,0.5;0.5,build,,"));
}

TEST(Summarise, PoolsTheFpr) {
  std::vector<Sample> samples = {MakeSample(0, MakePoint(), 0), MakeSample(1, MakePoint(), 1)};
  samples[0].fpr = MeasuredFpr{0.01, 1e-5, 30, 1000};
  samples[1].fpr = MeasuredFpr{0.02, 1e-5, 70, 3000};
  const json fpr = Summary(samples)["points"][0]["fpr"];
  const Interval interval = BinomialInterval(100, 4000);
  EXPECT_EQ(fpr["false_positives"], 100);
  EXPECT_EQ(fpr["queries"], 4000);
  EXPECT_EQ(fpr["measured"], 0.025);
  EXPECT_EQ(fpr["low"], interval.low);
  EXPECT_EQ(fpr["high"], interval.high);
  EXPECT_NEAR(fpr["expected"].get<double>(), 0.0175, 1e-15);

  samples[1].fpr->expected.reset();
  const json without = Summary(samples)["points"][0]["fpr"];
  EXPECT_EQ(without["expected"], nullptr);
  EXPECT_TRUE(without["expected_reason"].is_string());

  for (Sample& sample : samples) sample.fpr.reset();
  EXPECT_EQ(Summary(samples)["points"][0]["fpr"], nullptr);
}

TEST(Summarise, TheWorstStatusWinsWithItsReason) {
  const auto entry = [](std::vector<Sample> samples) { return Summary(samples)["points"][0]; };
  const json mixed = entry({MakeSample(0), MakeFailure(SampleStatus::kInvalid, "too fast", 1,
                                                       MakePoint(), 1),
                            MakeFailure(SampleStatus::kWrongAnswers, "3 false negatives", 2,
                                        MakePoint(), 2),
                            MakeFailure(SampleStatus::kSkipped, "no time", 3, MakePoint(), 3)});
  EXPECT_EQ(mixed["status"], "wrong_answers");
  EXPECT_EQ(mixed["reason"], "3 false negatives");
  EXPECT_EQ(mixed["ns_per_op"], nullptr);
  EXPECT_EQ(mixed["floor"], nullptr);
  EXPECT_EQ(mixed["rounds"], 4);
  EXPECT_EQ(mixed["passes"], 3);
  EXPECT_EQ(mixed["size_bytes"], 1250000) << "the round that was built tells the size";
  const json none = entry({MakeFailure(SampleStatus::kOutOfMemory, "needs 2 TiB")});
  EXPECT_EQ(none["status"], "out_of_memory");
  EXPECT_EQ(none["size_bytes"], nullptr);
  EXPECT_EQ(none["filter_digest"], json::array());
}

TEST(Summarise, WhatDependsOnKeysIsUnknownWithoutThem) {
  Sample sample = MakeSample(0, MakePoint("blocked_bloom", 0));
  sample.filter->bits_per_key.reset();
  sample.filter->build_ns_per_key.reset();
  const json entry = Summary({sample})["points"][0];
  EXPECT_EQ(entry["bits_per_key"], nullptr);
  EXPECT_TRUE(entry["bits_per_key_reason"].is_string());
  EXPECT_EQ(entry["build_ns_per_key"], nullptr);
  EXPECT_TRUE(entry["build_ns_per_key_reason"].is_string());
}

TEST(Summarise, MediansOfCountersOverTheSamplesThatHaveThem) {
  const auto value = [](double per_op) {
    return json{{"per_op", per_op}, {"running_share", 1.0}, {"kernel_excluded", true}};
  };
  const auto none = [](const char* reason) {
    return json{{"per_op", nullptr}, {"reason", reason}};
  };
  std::vector<Sample> samples;
  for (uint32_t round = 0; round < 4; ++round) {
    samples.push_back(MakeSample(round, MakePoint(), round));
  }
  EXPECT_FALSE(Summary(samples)["points"][0].contains("counters")) << "older records";
  // The fourth is older, and one of the others had no register.
  samples[0].counters = {{"cycles", value(3)}, {"page_faults", value(0)}, {"l1d", none("no PMU")},
                         {"tlb", none("no PMU")}, {"switches", none("closed")}};
  samples[1].counters = samples[0].counters;
  samples[1].counters["cycles"] = value(7);
  samples[2].counters = samples[0].counters;
  samples[2].counters["cycles"] = none("never ran");
  const json entry = Summary(samples)["points"][0];
  EXPECT_EQ(entry["counters"], json({{"cycles", 5.0}, {"page_faults", 0.0}, {"l1d", nullptr},
                                     {"tlb", nullptr}, {"switches", nullptr}}));
  EXPECT_EQ(entry["counters_reason"], "switches: closed; l1d, tlb: no PMU");
  const std::string csv = SummaryCsv(Summary(samples));
  EXPECT_THAT(csv, HasSubstr("counters.cycles,counters.page_faults,counters_reason,floor"));

  for (Sample& sample : samples) {
    if (!sample.counters.is_null()) sample.counters = {{"cycles", value(3)}};
  }
  EXPECT_FALSE(Summary(samples)["points"][0].contains("counters_reason"));
  samples.push_back(MakeFailure(SampleStatus::kInvalid, "too fast", 4, MakePoint(), 4));
  EXPECT_FALSE(Summary(samples)["points"][0].contains("counters")) << "as its time";
}

TEST(Summarise, OfNoSamplesIsEmpty) {
  const json summary = Summary({});
  EXPECT_EQ(summary["points"], json::array());
  const std::string csv = SummaryCsv(summary);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1) << csv;
}

// --- Floors ---

struct FloorAt {
  uint64_t keys;
  double bits_per_key;  // sizes are keys * bits_per_key / 8
  double ns;
};

Sample TouchLines(const FloorAt& at, int lines = 1) {
  Point point = MakePoint("touch_lines", at.keys, at.bits_per_key);
  point.params = {{"bits_per_key", at.bits_per_key}, {"lines", lines}};
  Sample sample = Timed(std::move(point), {at.ns});
  sample.fpr.reset();
  return sample;
}

class FloorTest : public testing::Test {
 protected:
  FloorTest() : samples_{Timed(MakePoint(), {3.0})} {}  // 1,250,000 bytes

  void Add(Sample sample) { samples_.push_back(std::move(sample)); }
  // The floor of the first point, or the reason as a string.
  json Floor() {
    const json entry = Summary(samples_)["points"][0];
    return entry["floor"].is_null() ? entry["floor_reason"] : entry["floor"];
  }
  double FloorNs() {
    const json floor = Floor();
    if (!floor.is_object()) {
      ADD_FAILURE() << floor;
      return 0;
    }
    EXPECT_DOUBLE_EQ(floor["ratio"].get<double>(), 3.0 / floor["ns_per_op"].get<double>());
    return floor["ns_per_op"].get<double>();
  }

  std::vector<Sample> samples_;
};

TEST_F(FloorTest, IsInterpolatedInTheLogarithmOfTheSize) {
  Add(TouchLines({1000000, 5, 1.0}));   // half the size
  Add(TouchLines({1000000, 40, 4.0}));  // four times the size
  Add(TouchLines({1000000, 80, 100.0}));
  EXPECT_DOUBLE_EQ(FloorNs(), 2.0);  // a third of the way in log size
  EXPECT_EQ(Floor()["from"], json({PointId(samples_[1].point), PointId(samples_[2].point)}));
}

TEST_F(FloorTest, OfTheSameSizeIsTaken) {
  Add(TouchLines({1000000, 5, 1.0}));
  Add(TouchLines({1000000, 10, 1.25}));
  Add(TouchLines({1000000, 20, 4.0}));
  EXPECT_EQ(FloorNs(), 1.25);
  EXPECT_EQ(Floor()["from"], json({PointId(samples_[2].point)}));
}

TEST_F(FloorTest, TheBestTargetAndTheBestWayCount) {
  Add(TouchLines({1000000, 10, 2.0}));
  Add(TouchLines({1000000, 10, 1.5}));
  samples_.back().point.target = "scalar";
  EXPECT_EQ(FloorNs(), 1.5);
  Add(TouchLines({1000000, 10, 1.125}));
  samples_.back().point.params["prefetch"] = "always";
  EXPECT_EQ(FloorNs(), 1.125);
}

TEST_F(FloorTest, OnlyOneLineOfTheSameModeAndHashingCounts) {
  Add(TouchLines({1000000, 10, 1.0}, 2));
  EXPECT_THAT(Floor().get<std::string>(), HasSubstr("no touch_lines with lines = 1"));
  Add(TouchLines({1000000, 10, 1.0}));
  samples_.back().point.mode = Mode::kLatency;
  EXPECT_TRUE(Floor().is_string());
  Add(TouchLines({1000000, 10, 1.0}));
  samples_.back().point.hashing = Hashing::kXxh3U64;
  EXPECT_TRUE(Floor().is_string());
  Add(MakeFailure(SampleStatus::kInvalid, "too fast", 0, TouchLines({1000000, 10, 1.0}).point));
  EXPECT_TRUE(Floor().is_string());
  Add(TouchLines({1000000, 10.25, 1.75}));
  EXPECT_EQ(FloorNs(), 1.75);
}

TEST_F(FloorTest, TheSameKeyCountGoesBeforeOthers) {
  Add(TouchLines({500000, 20, 9.0}));  // the same size
  Add(TouchLines({1000000, 5, 1.0}));
  Add(TouchLines({1000000, 20, 2.0}));
  EXPECT_DOUBLE_EQ(FloorNs(), 1.5);
}

TEST_F(FloorTest, OtherKeyCountsServeWhereTheSizeLiesOutside) {
  Add(TouchLines({1000000, 16, 7.0}));
  EXPECT_EQ(FloorNs(), 7.0) << "within a factor of two, and nothing better";
  Add(TouchLines({100000, 25, 1.0}));  // a quarter of the size
  Add(TouchLines({100000, 400, 5.0}));
  EXPECT_NEAR(FloorNs(), 1 + 6.0 * std::log(4) / std::log(6.4), 1e-12)
      << "the neighbours in size, whatever their key counts";
  samples_.erase(samples_.begin() + 1);
  EXPECT_DOUBLE_EQ(FloorNs(), 3.0);
}

TEST_F(FloorTest, TheSameShareOfNegativesGoesBeforeTheNearest) {
  Add(TouchLines({1000000, 10, 2.0}));
  samples_.back().point.negative_share = 1.0;
  EXPECT_EQ(FloorNs(), 2.0) << "another share serves where there is none";
  Add(TouchLines({1000000, 10, 1.25}));
  samples_.back().point.negative_share = 0.0;
  samples_[0].point.negative_share = 0.25;
  EXPECT_EQ(FloorNs(), 1.25) << "the nearest share";
  Add(TouchLines({1000000, 10, 1.75}));
  samples_.back().point.negative_share = 0.25;
  EXPECT_EQ(FloorNs(), 1.75) << "the same share";
}

TEST_F(FloorTest, OtherKeySetsServeForStreamsOfHashesOnly) {
  samples_[0].point.key_set = {.kind = KeyKind::kSequential, .path = {}, .digest = {}};
  Add(TouchLines({1000000, 10, 2.0}));
  EXPECT_EQ(FloorNs(), 2.0);
  for (Sample& sample : samples_) sample.point.hashing = Hashing::kXxh3U64;
  EXPECT_TRUE(Floor().is_string());
}

TEST_F(FloorTest, IsUnknownFarFromAllSizes) {
  Add(TouchLines({1000000, 4, 1.0}));
  EXPECT_THAT(Floor().get<std::string>(), HasSubstr("factor of two of 1250000 bytes"));
  Add(TouchLines({1000000, 21, 1.0}));
  samples_.erase(samples_.begin() + 1);
  EXPECT_TRUE(Floor().is_string());
}

// A floor on other pages, or by another number of threads, is the floor of something else.
TEST_F(FloorTest, IsOfTheSamePagesAndThreads) {
  Add(TouchLines({1000000, 10, 1.0}));
  EXPECT_EQ(FloorNs(), 1.0);
  samples_[0].point.pages = Pages::kSmall;
  EXPECT_THAT(Floor().get<std::string>(), HasSubstr(" on 4k pages"));
  samples_[1].point.pages = Pages::kTransparent;
  EXPECT_THAT(Floor().get<std::string>(), HasSubstr(" on 4k pages"));
  samples_[1].point.pages = Pages::kSmall;
  EXPECT_EQ(FloorNs(), 1.0);
  samples_[0].point.threads = 2;
  EXPECT_THAT(Floor().get<std::string>(), HasSubstr(" on 4k pages by 2 threads"));
  samples_[1].point.threads = 2;
  EXPECT_EQ(FloorNs(), 1.0);
}

TEST(Summarise, TellsTheMemoryOfTheBuildWhoseSizeItTells) {
  std::vector<Sample> samples = {MakeSample(0), MakeSample(1, MakePoint(), 1),
                                 MakeSample(2, MakePoint(), 2)};
  for (uint64_t i = 0; i < 3; ++i) {
    FilterFacts& filter = *samples[i].filter;
    filter.size_bytes = 1000 * (3 - i);
    filter.allocated_bytes = filter.size_bytes + 64;
    filter.peak_build_bytes = 1'000'000 * (i + 1);
    filter.pages = TablePages{{4096, ""}, {4096, ""}, {4096 * i, ""}};
  }
  const json entry = Summary(samples)["points"][0];
  EXPECT_EQ(entry["size_bytes"], 2000);
  EXPECT_EQ(entry["allocated_bytes"], 2064);
  EXPECT_EQ(entry["peak_build_bytes_per_key"], 2.0);
  EXPECT_EQ(entry["huge_page_bytes"], 4096);
  EXPECT_FALSE(entry.contains("operations_per_second"));

  // Older records, and filters that do not say.
  const json unknown = Summary({MakeSample()})["points"][0];
  EXPECT_EQ(unknown["huge_page_bytes_reason"], "not recorded");
  EXPECT_EQ(unknown["peak_build_bytes_per_key_reason"], "the filter does not say");
  const json failed =
      Summary({MakeFailure(SampleStatus::kBuildFailed, "no seed")})["points"][0];
  EXPECT_EQ(failed["allocated_bytes_reason"], "no filter was built");
}

TEST(Summarise, TellsHowManySeedsBuildsTriedAndHowManyFailed) {
  std::vector<Sample> samples = {
      MakeSample(0), MakeSample(1, MakePoint(), 1), MakeSample(2, MakePoint(), 2),
      MakeFailure(SampleStatus::kBuildFailed, "no seed works", 3, MakePoint(), 3),
      MakeFailure(SampleStatus::kOutOfMemory, "needs 1 TiB", 4, MakePoint(), 4)};
  samples[0].filter->build_attempts = 1;
  samples[1].filter->build_attempts = 6;
  samples[2].filter->build_attempts = 2;
  EXPECT_EQ(Summary(samples)["points"][0]["build_attempts"],
            json({{"builds", 3}, {"failed_builds", 1}, {"median", 2.0}, {"mean", 3.0},
                  {"max", 6.0}}));
  const json failed = Summary({samples[3]})["points"][0]["build_attempts"];
  EXPECT_EQ(failed["failed_builds"], 1);
  EXPECT_TRUE(failed["max"].is_null());
  EXPECT_EQ(failed["reason"], "no build succeeded");
  EXPECT_FALSE(Summary({samples[4]})["points"][0].contains("build_attempts"));
}

TEST(Summarise, SlotsArePerDistinctKeyOfTheBuildWhoseSizeItTells) {
  std::vector<Sample> samples = {MakeSample(0), MakeSample(1, MakePoint(), 1),
                                 MakeSample(2, MakePoint(), 2)};
  for (uint64_t i = 0; i < 3; ++i) {
    FilterFacts& filter = *samples[i].filter;
    filter.size_bytes = 1000 * (i + 1);
    filter.distinct_keys = 1000;
    filter.extra["slots"] = 1100.0 * static_cast<double>(i + 1);
  }
  EXPECT_EQ(Summary(samples)["points"][0]["slots_per_key"], 2.2);
  samples[1].filter->distinct_keys = 0;
  EXPECT_EQ(Summary(samples)["points"][0]["slots_per_key_reason"], "there are no keys");
  EXPECT_EQ(Summary({MakeSample()})["points"][0]["slots_per_key_reason"],
            "the filter does not count slots");
}

TEST(Summarise, ThreadsHaveATotalPerSecond) {
  Sample sample = Timed(MakePoint(), {0.5, 0.5});
  sample.point.threads = 4;
  EXPECT_EQ(Summary({sample})["points"][0]["operations_per_second"], 2e9);
}

TEST_F(FloorTest, BuildingHasNone) {
  Add(TouchLines({1000000, 10, 1.0}));
  for (Sample& sample : samples_) {
    sample.point.mode = Mode::kBuild;
    sample.point.negative_share.reset();
  }
  EXPECT_THAT(Floor().get<std::string>(), HasSubstr("building has no floor"));
}

// --- CSV and locales ---

// Case G5: rows with different fields.
TEST(SummaryCsv, HasTheUnionOfColumns) {
  Sample ribbon = Timed(MakePoint("ribbon"), {0.5});
  ribbon.point.params = {{"bits_per_key", 9.5}, {"width", 128}, {"layout", "a,\"b\""}};
  ribbon.fpr.reset();
  std::vector<Sample> samples = {MakeSample(0), MakeSample(1, MakePoint(), 1), ribbon,
                                 MakeFailure(SampleStatus::kSkipped, "needs 8 GiB,\nhas 4", 2,
                                             MakePoint("cuckoo"))};
  const std::string csv = SummaryCsv(Summary(samples));
  std::istringstream lines(csv);
  std::string header, first, second;
  std::getline(lines, header);
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_EQ(
      header,
      "point_id,filter,preset,params.bits_per_key,params.k,params.layout,params.width,keys,"
      "key_set.kind,mode,fill,negative_share,hashing,target,pages,threads,status,reason,rounds,"
      "passes,ns_per_op.median,ns_per_op.low,ns_per_op.high,ns_per_op.confidence,ns_per_op.min,"
      "stability.asked_width,stability.width,stability.stable,variance_shares.process,"
      "variance_shares.build,variance_shares.pass,variance_shares_reason,clusters.centers_ns,"
      "clusters.shares,clusters.explained_by,clusters_reason,"
      "floor.ns_per_op,floor.ratio,floor.from,floor_reason,size_bytes,bits_per_key,"
      "build_ns_per_key,keys_held,allocated_bytes,peak_build_bytes_per_key,huge_page_bytes,"
      "slots_per_key,build_attempts.builds,build_attempts.failed_builds,build_attempts.median,"
      "build_attempts.mean,build_attempts.max,operations_per_second,fpr.expected,fpr.measured,fpr.low,fpr.high,fpr.false_positives,"
      "fpr.queries,filter_digest,answers_digest,allocated_bytes_reason,huge_page_bytes_reason,"
      "peak_build_bytes_per_key_reason,slots_per_key_reason");
  EXPECT_THAT(first,
              HasSubstr(",blocked_bloom,,10.0,6,,,1000000,mixed,lookup_batched,,0.5,prehashed,"
                        "avx2,,,ok,,2,6,1.375,1.3125,1.4375,0.8,1.25,,,,,,,"
                        "no process has two builds,,,,one mode explains the values,,,"));
  EXPECT_THAT(first, HasSubstr(",0123456789abcdef;0123456789abcdef,"));
  EXPECT_THAT(second, HasSubstr(",ribbon,,9.5,,\"a,\"\"b\"\"\",128,1000000,"));
  EXPECT_THAT(csv, HasSubstr(",skipped,\"needs 8 GiB,\nhas 4\",1,0,,,,,,"));
  const auto commas = [](const std::string& line) {
    return std::count(line.begin(), line.end(), ',');
  };
  EXPECT_EQ(commas(first), commas(header));
  EXPECT_EQ(commas(second), commas(header) + 1) << "one of them quoted";
}

// A decimal comma and dots between thousands, as in German, in the C++ library.
class Grouping : public std::numpunct<char> {
 protected:
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

std::string EverythingWritten() {
  const std::vector<Sample> samples = {MakeSample(1234567), MakeSample(1, MakePoint("ribbon")),
                                       TouchLines({1000000, 10, 0.5})};
  const json summary = Summary(samples);
  return SampleToJson(samples[0]).dump() + "\n" + summary.dump(1) + "\n" + SummaryCsv(summary) +
         MakeManifest("run", "machine").dump() + FormatUtc({});
}

// German in the C++ library, and in the C library too where its locale can be had: it is seldom
// compiled, so it is compiled here.
class German {
 public:
  German() : old_(std::locale::global(std::locale(std::locale::classic(), new Grouping))) {
    const std::string command =
        "localedef -i de_DE -f UTF-8 " + (directory_.path() / "de_DE.UTF-8").string();
    if (std::system((command + " >/dev/null 2>&1").c_str()) == 0) {
      setenv("LOCPATH", directory_.path().c_str(), 1);
    }
    in_c_library_ = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  }
  ~German() {
    unsetenv("LOCPATH");
    std::locale::global(old_);
    std::setlocale(LC_ALL, "C");
  }
  bool in_c_library() const { return in_c_library_; }

 private:
  TemporaryDirectory directory_;
  std::locale old_;
  bool in_c_library_;
};

// Case G2: written and read, with a global C++ locale that groups digits.
TEST(Locale, ChangesNoNumber) {
  const std::string expected = EverythingWritten();
  EXPECT_THAT(expected, HasSubstr("\"operations_per_pass\":1234567"));
  const German german;
  std::ostringstream probe;
  probe << 1234567 << " " << 0.5;
  ASSERT_EQ(probe.str(), "1.234.567 0,5") << "the C++ locale is not in force";
  EXPECT_EQ(EverythingWritten(), expected);
  const Result<json> parsed = ParseStrictJson("[0.01, 1e-3, 1234567]");
  ASSERT_TRUE(parsed) << parsed.error();
  EXPECT_EQ(*parsed, json({0.01, 0.001, 1234567}));
  EXPECT_FALSE(ParseStrictJson("[0,01.5]"));
  if (!german.in_c_library()) {
    GTEST_SKIP() << "checked for the C++ library only: there is no locale de_DE.UTF-8";
  }
  EXPECT_EQ(std::localeconv()->decimal_point, std::string(","));
}

}  // namespace
}  // namespace filterbench
