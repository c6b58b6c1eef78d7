#include "harness/run/workload_round.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/summary.h"
#include "harness/temporary_directory.h"

namespace filterbench {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// An application that does what a test tells it.
struct Script {
  std::string prepare_error;
  std::string start_error;
  std::string reset_error;
  std::string iterate_error;
  std::string report_error;
  uint64_t wrong_from_iteration = 1000;
  std::optional<uint64_t> expected = 30;
  WorkloadReport::Fpr fpr = {.false_positives = 100,
                             .queries = 10'000,
                             .expected = 0.01,
                             .expected_instance_sd = std::nullopt};
};

class ScriptedRun final : public WorkloadRun {
 public:
  explicit ScriptedRun(const Script& script) : script_(script) {}
  uint64_t operations() const override { return 50; }
  std::optional<uint64_t> positives_expected() const override { return script_.expected; }
  std::optional<Error> Reset() override {
    was_reset_ = true;
    if (!script_.reset_error.empty()) return Error{script_.reset_error};
    return std::nullopt;
  }
  Result<uint64_t> Iterate() override {
    EXPECT_TRUE(was_reset_);
    was_reset_ = false;
    if (!script_.iterate_error.empty()) return Error{script_.iterate_error};
    volatile uint64_t work = 0;
    for (int i = 0; i < 20'000; ++i) work = work + 1;
    return ++iterations_ > script_.wrong_from_iteration ? 29 : 30;
  }
  Result<WorkloadReport> Report() override {
    if (!script_.report_error.empty()) return Error{script_.report_error};
    WorkloadReport report;
    report.metrics = {{.name = "requests_per_get",
                       .by_chance = script_.fpr.false_positives,
                       .trials = script_.fpr.queries,
                       .per = 50,
                       .expected_by_chance = std::nullopt,
                       .quantity = std::nullopt}};
    report.fpr = script_.fpr;
    return report;
  }

 private:
  const Script& script_;
  uint64_t iterations_ = 0;
  bool was_reset_ = false;
};

class ScriptedState final : public WorkloadState {
 public:
  ScriptedState(const Script& script, std::unique_ptr<KeyFilter> filter)
      : script_(script), filter_(std::move(filter)) {}
  WorkloadFilters filters() const override {
    return {.filters = 1,
            .keys = 100,
            .size_bytes = filter_->SizeInBytes(),
            .build_ns = 500,
            .builds = 2,
            .digest = "0123456789abcdef"};
  }
  Result<std::unique_ptr<WorkloadRun>> Start(std::optional<double>, uint64_t) override {
    if (!script_.start_error.empty()) return Error{script_.start_error};
    return std::unique_ptr<WorkloadRun>(std::make_unique<ScriptedRun>(script_));
  }

 private:
  const Script& script_;
  std::unique_ptr<KeyFilter> filter_;
};

struct NoKnobs {
  struct Params {};
  static constexpr auto kKnobs = std::tuple{};
};

class ScriptedWorkload final : public WorkloadWithKnobs<NoKnobs> {
 public:
  explicit ScriptedWorkload(Script script) : script_(std::move(script)) {}
  std::string_view name() const override { return "scripted"; }
  std::string_view description() const override { return "for a test"; }
  std::string_view operation() const override { return "get"; }
  bool has_negative_share() const override { return true; }
  Cost EstimateCost(const json&, uint64_t) const override { return {}; }
  Result<std::unique_ptr<WorkloadState>> Prepare(const WorkloadSetup& setup) const override {
    EXPECT_TRUE(std::filesystem::is_empty(setup.directory));
    std::ofstream(setup.directory / "file") << "left behind";
    if (!script_.prepare_error.empty()) return Error{script_.prepare_error};
    const std::vector<uint64_t> hashes = {setup.key_set->Hash(0, setup.seed)};
    auto filter = setup.filters->policy().Build(hashes, setup.seed);
    EXPECT_TRUE(filter) << filter.error();
    EXPECT_TRUE((*filter)->MayContain(hashes[0]));
    return std::unique_ptr<WorkloadState>(
        std::make_unique<ScriptedState>(script_, std::move(*filter)));
  }

 private:
  Script script_;
};

Sample MeasureOne(const Script& script, const std::string& filter = "blocked_bloom") {
  const ScriptedWorkload workload(script);
  const FilterType& type = **FindFilterType(filter);
  Case work{.type = &type, .params = *type.CompleteParams(json::object()), .keys = 100};
  work.key_set = *KeySet::Open({}, KeySeed(1));
  work.workload = &workload;
  work.knobs = json::object();
  work.points = {{.filter = filter,
                  .params = work.params,
                  .keys = 100,
                  .mode = Mode::kWorkload,
                  .negative_share = 0.4,
                  .target = std::string(type.targets().front()),
                  .workload = json{{"name", "scripted"}}}};
  MeasureSpec measure;
  measure.passes = 3;
  measure.pass_seconds = 1e-4;
  const TemporaryDirectory scratch;
  std::vector<Sample> samples;
  MeasureWorkloadRound(work, measure, 4, work.points, scratch.path(),
                       {.record = [&](Sample sample) { samples.push_back(std::move(sample)); }});
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
  EXPECT_EQ(samples.size(), 1u);
  // What is recorded can be read again, whatever it came to.
  samples[0].time_utc = "2026-11-30T15:20:01.123Z";
  const Result<Sample> again = SampleFromJson(SampleToJson(samples[0]));
  EXPECT_TRUE(again) << again.error();
  if (again) {
    EXPECT_EQ(SampleToJson(*again), SampleToJson(samples[0]));
  }
  return samples[0];
}

TEST(WorkloadRound, GivesASampleWithTimesFactsAndCounts) {
  const Sample sample = MeasureOne({});
  ASSERT_EQ(sample.status, SampleStatus::kOk) << sample.reason;
  EXPECT_EQ(sample.ns_per_op.size(), 3u);
  EXPECT_EQ(sample.round, 4u);
  EXPECT_EQ(sample.stream_lookups, 50u);
  EXPECT_EQ(*sample.operations_per_pass, *sample.iterations_per_pass * 50);
  EXPECT_EQ(sample.positives, 30u);
  EXPECT_EQ(sample.filter->distinct_keys, 100u);
  EXPECT_EQ(sample.filter->build_ns_per_key, 5);
  EXPECT_EQ(sample.fpr->false_positives, 100u);
  EXPECT_EQ(sample.workload["metrics"]["requests_per_get"]["value"], 2);
}

TEST(WorkloadRound, TheSummaryHasIt) {
  const std::vector<Sample> samples = {MeasureOne({})};
  const json summary = Summarise(
      {{"run", "a"}, {"machine", "b"}, {"spec", {{"name", "c"}}}}, samples);
  const json& entry = summary["points"][0];
  EXPECT_EQ(entry["workload"]["rounds"], 1);
  EXPECT_EQ(entry["workload"]["metrics"]["requests_per_get"]["by_chance"], 100);
  EXPECT_EQ(entry["floor_reason"], "a workload has no floor");
  EXPECT_FALSE(entry.contains("build_attempts"));
  EXPECT_THAT(SummaryCsv(summary), HasSubstr("workload.metrics.requests_per_get.value"));
}

TEST(WorkloadRound, AnUnknownCountOfAnswersMustStayTheSame) {
  EXPECT_EQ(MeasureOne({.expected = std::nullopt}).status, SampleStatus::kOk);
  const Sample changed = MeasureOne({.wrong_from_iteration = 2, .expected = std::nullopt});
  EXPECT_EQ(changed.status, SampleStatus::kWrongAnswers);
}

TEST(WorkloadRound, AWrongCountOfAnswersIsAWrongAnswer) {
  for (const uint64_t good_iterations : {0, 1, 2, 3}) {
    const Sample sample = MeasureOne({.wrong_from_iteration = good_iterations});
    EXPECT_EQ(sample.status, SampleStatus::kWrongAnswers);
    EXPECT_THAT(sample.reason, HasSubstr("29 of 50 operations found something, 30 must"));
    EXPECT_TRUE(sample.ns_per_op.empty());
  }
}

TEST(WorkloadRound, ErrorsSayWhatTheyAre) {
  using S = Script;
  const std::string wrong = std::string(kWrongAnswer) + "x";
  const std::string not_here = std::string(kNotHere) + "x";
  EXPECT_EQ(MeasureOne(S{.prepare_error = "x"}).status, SampleStatus::kBuildFailed);
  EXPECT_EQ(MeasureOne(S{.prepare_error = not_here}).status, SampleStatus::kSkipped);
  EXPECT_EQ(MeasureOne(S{.prepare_error = "out of memory: x"}).status, SampleStatus::kOutOfMemory);
  EXPECT_EQ(MeasureOne(S{.start_error = "x"}).status, SampleStatus::kInvalid);
  EXPECT_EQ(MeasureOne(S{.reset_error = "x"}).status, SampleStatus::kInvalid);
  EXPECT_EQ(MeasureOne(S{.iterate_error = "x"}).status, SampleStatus::kInvalid);
  EXPECT_EQ(MeasureOne(S{.iterate_error = wrong}).status, SampleStatus::kWrongAnswers);
  EXPECT_EQ(MeasureOne(S{.report_error = "x"}).status, SampleStatus::kInvalid);
  EXPECT_EQ(MeasureOne(S{.report_error = wrong}).status, SampleStatus::kWrongAnswers);
  EXPECT_EQ(MeasureOne(S{.report_error = wrong}).reason, wrong);
}

TEST(WorkloadRound, AnFprThatTheoryRulesOutIsAWrongAnswer) {
  const Sample sample = MeasureOne({.fpr = {.false_positives = 400,
                                            .queries = 10'000,
                                            .expected = 0.01,
                                            .expected_instance_sd = std::nullopt}});
  EXPECT_EQ(sample.status, SampleStatus::kWrongAnswers);
  EXPECT_THAT(sample.reason, StartsWith("FPR: 400 false positives among 10000 absent keys"));
}

TEST(WorkloadRound, NoFilterHasNoFpr) {
  const Sample sample = MeasureOne({.fpr = {.false_positives = 10'000,
                                            .queries = 10'000,
                                            .expected = std::nullopt,
                                            .expected_instance_sd = std::nullopt}},
                                   "always_maybe");
  EXPECT_EQ(sample.status, SampleStatus::kOk) << sample.reason;
  EXPECT_FALSE(sample.fpr);
}

}  // namespace
}  // namespace filterbench
