#include "harness/plan/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/simd/targets.h"

namespace filterbench {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kPlenty = uint64_t{1} << 40;

Spec Parse(const std::string& text) {
  Result<LocatedJson> source = LocatedJson::Parse(text, "my.json");
  EXPECT_TRUE(source) << source.error();
  Result<Spec> spec = ParseSpec(std::move(*source), "my");
  EXPECT_TRUE(spec) << spec.error();
  return std::move(*spec);
}

Plan PlanOf(const std::string& text, uint64_t memory_limit = kPlenty,
            std::vector<int> thread_cpus = {3, 1}) {
  Result<Plan> plan = MakePlan(Parse(text), memory_limit, std::move(thread_cpus));
  EXPECT_TRUE(plan) << plan.error();
  return std::move(*plan);
}

TEST(MakePlan, IsTheProductOfTheLists) {
  const Plan plan = PlanOf(R"({"sweeps": [{
      "filters": {"blocked_bloom": {"bits_per_key": [8, 10, 12], "k": [4, 5]}},
      "keys": [100, 200], "modes": ["build", "lookup_batched"], "negative_shares": [0, 0.5, 1]}]})");
  EXPECT_EQ(plan.cases.size(), 3u * 2 * 2);
  EXPECT_EQ(plan.points(), 3u * 2 * 2 * (1 + 3));
}

// A spec of a few kilobytes can ask for more than any memory holds.
TEST(MakePlan, TooManyCombinationsAreRefusedBeforeTheyAreMade) {
  nlohmann::json values = nlohmann::json::array();
  for (int i = 0; i < 1001; ++i) values.push_back(8 + i / 1001.0);
  const nlohmann::json ribbon = {{"bits_per_key", values}, {"columns", values}};
  const nlohmann::json spec = {{"sweeps", {{{"filters", {{"ribbon", ribbon}}}}}}};
  const Result<Plan> plan = MakePlan(Parse(spec.dump()), kPlenty, {0});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error(),
              StartsWith("my.json:1: sweeps[0].filters.ribbon: more than 1000000 combinations"));
}

TEST(MakePlan, DefaultsAreFilledIn) {
  const Plan plan = PlanOf(R"({"sweeps": [{"filters": {"blocked_bloom": {"k": 4}}}]})");
  EXPECT_EQ(plan.cases[0].params, (nlohmann::json{{"bits_per_key", 10.0}, {"k", 4}}));
}

TEST(MakePlan, APointThatTwoSweepsAskForIsMeasuredOnce) {
  const Plan plan = PlanOf(R"({"sweeps": [
      {"filters": {"blocked_bloom": {"bits_per_key": [8, 10]}}, "keys": 100},
      {"filters": {"blocked_bloom": {"bits_per_key": 10.0, "k": 0}}, "keys": 1e2}]})");
  EXPECT_EQ(plan.points(), 2u);
}

// 1e9 keys: their hashes alone are 8 GB, and sorting them takes as much again. Filters that are
// filled in pieces need no more than their table.
TEST(MakePlan, FiltersThatAreBuiltInPiecesNeedNoMemoryForTheirKeys) {
  constexpr uint64_t kLimit = uint64_t{8} << 30;
  const Plan plan = PlanOf(R"({"sweeps": [
      {"filters": {"blocked_bloom": {}, "ribbon": {}}, "keys": [1e6, 1e9], "targets": "best"}]})",
                           kLimit);
  ASSERT_EQ(plan.skipped.size(), 1u);
  EXPECT_EQ(plan.skipped[0].point.filter, "ribbon");
  EXPECT_THAT(plan.skipped[0].reason, StartsWith("out of memory"));
  ASSERT_EQ(plan.cases.size(), 3u);
  for (const Case& work : plan.cases) {
    EXPECT_EQ(work.streams_keys(), work.keys == 1'000'000'000) << work.type->info().name;
  }
}

TEST(MakePlan, BestAndAllMeanTheTargetsOfTheFilter) {
  const Plan plan = PlanOf(R"({"sweeps": [
      {"filters": {"blocked_bloom": {}}, "targets": ["best", "all"]}]})");
  EXPECT_EQ(plan.points(), SupportedTargetNames().size());
}

TEST(MakePlan, ATargetThatTheMachineHasNotIsSkippedWithTheReason) {
  std::string missing;
  for (const int64_t target : CompiledTargets()) {
    const auto supported = SupportedTargets();
    if (std::find(supported.begin(), supported.end(), target) == supported.end()) {
      missing = TargetName(target);
    }
  }
  if (missing.empty()) GTEST_SKIP() << "this machine supports every compiled target";
  const Plan plan = PlanOf(R"({"sweeps": [
      {"filters": {"blocked_bloom": {}}, "targets": [")" + missing + R"(", "scalar"]}]})");
  EXPECT_EQ(plan.points(), 1u);
  ASSERT_EQ(plan.skipped.size(), 1u);
  EXPECT_THAT(plan.skipped[0].reason, HasSubstr(missing));
}

// Case C9: what cannot fit is skipped in words, and nothing else is built instead.
TEST(MakePlan, WhatDoesNotFitIntoMemoryIsSkippedWithTheReason) {
  const Plan plan = PlanOf(
      R"({"sweeps": [{"filters": {"blocked_bloom": {}}, "keys": [1000, 1e9]}]})", 1 << 30);
  EXPECT_EQ(plan.points(), 1u);
  ASSERT_EQ(plan.skipped.size(), 1u);
  EXPECT_THAT(plan.skipped[0].reason, StartsWith("out of memory: needs about"));
}

TEST(MakePlan, CombinationsWithoutMeaningAreLeftOut) {
  const Plan plan = PlanOf(R"({"sweeps": [{"filters": {"blocked_bloom": {}},
      "key_sets": [{"kind": "mixed"}, {"kind": "bytes", "length_bytes": 16}],
      "modes": ["lookup_single", "latency"], "hashings": ["prehashed", "xxh3_u64", "xxh3_bytes"]}]})");
  EXPECT_EQ(plan.points(), 4u + 2u);
  EXPECT_EQ(plan.meaningless.size(), 6u);
  EXPECT_TRUE(plan.skipped.empty());
}

// A filter that hashes keys itself is built anew for each form of the keys, others once.
TEST(MakePlan, FiltersThatHashKeysAreBuiltFromThem) {
  const auto cases = [](const std::string& filter) {
    return PlanOf(R"({"sweeps": [{"filters": {")" + filter + R"(": {}},
        "hashings": ["prehashed", "xxh3_u64"]}]})")
        .cases.size();
  };
  EXPECT_EQ(cases("blocked_bloom"), 1u);
  EXPECT_EQ(cases("classic_bloom"), 2u);
}

TEST(MakePlan, OverfillTakesItsFillsAndAnswersForStaticFilters) {
  const Plan plan =
      PlanOf(R"({"sweeps": [{"filters": {"blocked_bloom": {}, "xor": {}}, "keys": 1000,
      "modes": ["overfill", "build"]}]})");
  std::set<double> fills;
  for (const Case& work : plan.cases) {
    if (work.fill) fills.insert(*work.fill);
    EXPECT_EQ(work.given_keys(), work.fill ? static_cast<uint64_t>(1000 * *work.fill) : 1000u);
  }
  EXPECT_EQ(fills, (std::set<double>{0.5, 1, 1.5, 2, 3}));
  ASSERT_EQ(plan.skipped.size(), 5u);
  EXPECT_THAT(plan.skipped[0].reason, HasSubstr("xor takes no single keys"));
}

// A twentieth of the keys, or what there is.
TEST(MakePlan, InsertTakesItsFillsAndTheLastKeysBeforeThem) {
  const Plan plan =
      PlanOf(R"({"sweeps": [{"filters": {"cuckoo": {}, "xor": {}}, "keys": 1000,
      "modes": ["insert"]}]})");
  std::map<double, uint64_t> stretches;
  for (const Case& work : plan.cases) {
    ASSERT_TRUE(work.fill);
    stretches[*work.fill] = work.stretch_keys();
    ASSERT_EQ(work.points.size(), 1u);
    EXPECT_EQ(work.points[0].mode, Mode::kInsert);
    EXPECT_FALSE(work.points[0].negative_share);
    EXPECT_EQ(work.points[0].target, "scalar");
    const Result<Point> read = PointFromJson(PointToJson(work.points[0]));
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(*read, work.points[0]);
  }
  EXPECT_EQ(stretches, (std::map<double, uint64_t>{{0.1, 50}, {0.3, 50}, {0.5, 50}, {0.7, 50},
                                                   {0.8, 50}, {0.9, 50}, {0.95, 50}, {1, 50}}));
  ASSERT_EQ(plan.skipped.size(), 8u);
  EXPECT_THAT(plan.skipped[0].reason, HasSubstr("xor takes no single keys"));

  const auto stretch_of = [](const std::string& keys, const std::string& fill) {
    return PlanOf(R"({"sweeps": [{"filters": {"cuckoo": {}}, "modes": ["insert"], "keys": )" +
                  keys + R"(, "fills": [)" + fill + "]}]}")
        .cases.at(0)
        .stretch_keys();
  };
  EXPECT_EQ(stretch_of("1000", "0.02"), 20u) << "all that are given";
  EXPECT_EQ(stretch_of("1000", "2"), 50u);
  EXPECT_EQ(stretch_of("10", "1"), 1u);
  EXPECT_EQ(stretch_of("0", "1"), 0u);
}

TEST(MakePlan, PointsThatInsertHaveAFill) {
  nlohmann::json point = PointToJson(
      PlanOf(R"({"sweeps": [{"filters": {"cuckoo": {}}, "modes": ["insert"], "keys": 1000}]})")
          .cases.at(0)
          .points.at(0));
  point.erase("fill");
  EXPECT_EQ(PointFromJson(point).error(), "point.fill: is missing in mode insert");
}

// Of a small filter few keys are timed, and these for as long as the clock needs: most of the work
// of a pass is not timed.
TEST(MakePlan, TheTimeOfInsertIsThatOfWholeFilters) {
  const auto seconds = [](const std::string& mode) {
    return PlanOf(R"({"measure": {"passes": 100, "pass_seconds": 0}, "sweeps": [{
        "filters": {"cuckoo": {}}, "keys": 1000, "fills": [1], "modes": [")" +
                  mode + R"("]}]})")
        .least_seconds();
  };
  EXPECT_GT(seconds("insert"), 5 * seconds("overfill"));
}

// Lookups are measured at a fill where one is asked for, on a filter of their own.
TEST(MakePlan, LookupsAtAFill) {
  const Plan plan = PlanOf(R"({"sweeps": [{"filters": {"cuckoo": {}}, "keys": 1000,
      "modes": ["overfill", "lookup_batched", "build"], "fills": [0.5, 1]}]})");
  EXPECT_EQ(plan.cases.size(), 3u);  // two fills, and the build
  EXPECT_EQ(plan.points(), 2u + 2u + 1u);
}

TEST(MakePlan, APresetHasExactlyItsParameters) {
  const Plan plan = PlanOf(R"({"sweeps": [{
      "filters": [{"preset": "cassandra-0.01"}, {"preset": "leveldb-builtin"},
                  {"filter": "blocked_bloom", "params": {"k": [4, 5]}}],
      "keys": 100}]})");
  ASSERT_EQ(plan.cases.size(), 4u);
  const Point& point = plan.cases[0].points[0];
  EXPECT_EQ(point.filter, "system_bloom");
  EXPECT_EQ(point.preset, "cassandra-0.01");
  EXPECT_EQ(point.params.at("extra_bits"), 20);
  EXPECT_EQ(point.params.at("sign"), "abs");
  EXPECT_EQ(plan.cases[1].points[0].filter, "leveldb_bloom");
  EXPECT_FALSE(plan.cases[2].points[0].preset);

  // The record keeps the name.
  const nlohmann::json json = PointToJson(point);
  EXPECT_EQ(json.at("preset"), "cassandra-0.01");
  const Result<Point> read = PointFromJson(json);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(*read, point);
  EXPECT_FALSE(PointToJson(plan.cases[2].points[0]).contains("preset"));
}

TEST(MakePlan, APresetAndItsFilterShareTheBuild) {
  const Plan plan = PlanOf(R"({"sweeps": [
      {"filters": [{"preset": "leveldb-builtin"}], "keys": 100},
      {"filters": {"leveldb_bloom": {"bits_per_key": 10}}, "keys": 100}]})");
  EXPECT_EQ(plan.cases.size(), 1u);
  EXPECT_EQ(plan.points(), 2u);
}

// A table on other pages is another table; threads ask the same one.
// Case B10: several threads look up; points that build or insert by several are refused with the
// reason.
TEST(MakePlan, PagesMakeCasesAndThreadsMakePoints) {
  const Plan plan = PlanOf(R"({"sweeps": [{"filters": {"blocked_bloom": {}}, "keys": 1000,
      "pages": ["default", "4k", "thp", "hugetlb"], "threads": [1, 2],
      "modes": ["build", "lookup_batched", "lookup_single", "latency"]}]})");
  ASSERT_EQ(plan.cases.size(), 4u);
  EXPECT_FALSE(plan.cases[0].pages);
  EXPECT_EQ(plan.cases[3].pages, Pages::kHugetlb);
  for (const Case& work : plan.cases) {
    EXPECT_EQ(work.thread_cpus, (std::vector<int>{3, 1}));
    EXPECT_EQ(work.points.size(), 1u + 2 + 2 + 1);
    for (const Point& point : work.points) {
      EXPECT_EQ(point.pages, work.pages);
      EXPECT_TRUE(!point.threads || MayHaveThreads(point.mode));
      const nlohmann::json json = PointToJson(point);
      EXPECT_EQ(json.contains("pages"), point.pages.has_value());
      EXPECT_EQ(json.contains("threads"), point.threads.has_value());
      const Result<Point> read = PointFromJson(json);
      ASSERT_TRUE(read) << read.error();
      EXPECT_EQ(*read, point);
    }
  }
  ASSERT_EQ(plan.meaningless.size(), 4u * 2);  // builds and latency chains by two threads
  for (const SkippedPoint& point : plan.meaningless) {
    EXPECT_THAT(point.reason, HasSubstr("lookup_batched and lookup_single, not in"));
  }
}

TEST(MakePlan, MoreThreadsThanCpusAreRefused) {
  const std::string text = R"({"sweeps": [{"filters": {"blocked_bloom": {}}, "keys": 1000,
      "threads": [1, 2, 3]}]})";
  const Plan plan = PlanOf(text);
  EXPECT_EQ(plan.points(), 2u);
  ASSERT_EQ(plan.skipped.size(), 1u);
  EXPECT_EQ(plan.skipped[0].point.threads, 3u);
  EXPECT_THAT(plan.skipped[0].reason, StartsWith("3 threads on 2 CPUs "));
  EXPECT_THAT(plan.skipped[0].reason, HasSubstr("oversubscription is refused"));
  for (const std::vector<int>& cpus : {std::vector<int>{}, {0}}) {
    EXPECT_EQ(PlanOf(text, kPlenty, cpus).points(), 1u);
  }
}

TEST(MakePlan, EveryThreadNeedsMemoryForItsStream) {
  const auto needs = [](const std::string& threads) {
    return PlanOf(R"({"measure": {"stream_lookups": 1e6},
        "sweeps": [{"filters": {"blocked_bloom": {}}, "keys": 1000,
        "negative_shares": [0, 1], "threads": )" + threads + "}]}", kPlenty, {0, 1, 2, 3})
        .memory_bytes();
  };
  // The thread that is measured alone shares the first stream of the others.
  EXPECT_EQ(needs("[4]") - needs("[1]"), 2u * 3 * 8 * 1'000'000);
  EXPECT_EQ(needs("[1, 2, 4]"), needs("[4]"));
}

TEST(PointFromJson, PagesAndThreadsAreChecked) {
  nlohmann::json json = PointToJson(
      PlanOf(R"({"sweeps": [{"filters": {"blocked_bloom": {}}}]})").cases[0].points[0]);
  for (const auto& [field, value, problem] :
       {std::tuple<const char*, nlohmann::json, const char*>{"pages", "2m", "unknown point.pages"},
        {"pages", 4, "point.pages: must be a string"},
        {"threads", 1, "point.threads: must be a whole number, 2 or more"},
        {"threads", "2", "point.threads: must be"}}) {
    nlohmann::json changed = json;
    changed[field] = value;
    const Result<Point> point = PointFromJson(changed);
    ASSERT_FALSE(point) << changed;
    EXPECT_THAT(point.error(), HasSubstr(problem));
  }
  json["mode"] = "latency";
  json["threads"] = 2u;
  const Result<Point> latency = PointFromJson(json);
  ASSERT_FALSE(latency);
  EXPECT_THAT(latency.error(), HasSubstr("mode latency has one thread"));
}

struct BadPlan {
  const char* name;
  const char* sweep;
  const char* place;
  const char* problem;
};

void PrintTo(const BadPlan& bad, std::ostream* out) { *out << bad.sweep; }

class BadPlanTest : public ::testing::TestWithParam<BadPlan> {};

TEST_P(BadPlanTest, TheErrorNamesFileLineAndField) {
  const std::string text = std::string("{\"sweeps\": [{\n") + GetParam().sweep + "}]}";
  const Result<Plan> plan = MakePlan(Parse(text), kPlenty, {0});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error(), StartsWith(GetParam().place));
  EXPECT_THAT(plan.error(), HasSubstr(GetParam().problem));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadPlanTest,
    ::testing::Values(
        BadPlan{"UnknownFilter", "\"filters\": {\n\"blokced_bloom\": {}}",
                "my.json:3: sweeps[0].filters.blokced_bloom: ", "did you mean 'blocked_bloom'?"},
        BadPlan{"UnknownParameter", "\"filters\": {\"blocked_bloom\": {\n\"bits_pr_key\": 8}}",
                "my.json:3: sweeps[0].filters.blocked_bloom.bits_pr_key: ",
                "did you mean 'bits_per_key'?"},
        BadPlan{"TooManyBits", "\"filters\": {\"blocked_bloom\": {\n\"bits_per_key\": [8, 1e9]}}",
                "my.json:3: sweeps[0].filters.blocked_bloom.bits_per_key[1]: ", "0.5..128"},
        BadPlan{"WrongType", "\"filters\": {\"blocked_bloom\": {\n\"k\": \"six\"}}",
                "my.json:3: sweeps[0].filters.blocked_bloom.k: ", "must be a whole number"},
        BadPlan{"NoSuchChoice", "\"filters\": {\"km_bloom\": {\n\"probing\": \"plian\"}}",
                "my.json:3: sweeps[0].filters.km_bloom.probing: ", "plain, enhanced"},
        BadPlan{"ParamsNoObject", "\"filters\": {\n\"blocked_bloom\": 8}",
                "my.json:3: sweeps[0].filters.blocked_bloom: ", "must be an object"},
        BadPlan{"Contradiction",
                "\"filters\": {\n\"ribbon\": {\"fpr\": 0.01, \"columns\": 8}}",
                "my.json:3: sweeps[0].filters.ribbon: ", "contradict each other"},
        BadPlan{"UnknownFilterOfAList", "\"filters\": [{\"params\": {},\n\"filter\": \"km_blom\"}]",
                "my.json:3: sweeps[0].filters[0].filter: ", "did you mean 'km_bloom'?"},
        BadPlan{"UnknownParameterOfAList",
                "\"filters\": [{\"filter\": \"km_bloom\", \"params\": {\n\"q\": 1}}]",
                "my.json:3: sweeps[0].filters[0].params.q: ", "unknown parameter 'q'"},
        BadPlan{"UnknownPreset", "\"filters\": [\n{\"preset\": \"cassndra-0.01\"}]",
                "my.json:3: sweeps[0].filters[0].preset: ", "did you mean 'cassandra-0.01'?"},
        BadPlan{"PresetWithoutFilter", "\"filters\": [\n{\"preset\": \"postgres-contrib-bloom\"}]",
                "my.json:3: sweeps[0].filters[0].preset: ", "has no filter: a signature"},
        BadPlan{"UnknownTarget", "\"filters\": {\"blocked_bloom\": {}},\n\"targets\": \"axv2\"",
                "my.json:3: sweeps[0].targets: ", "unknown target 'axv2'"},
        BadPlan{"KeyFileAbsent",
                "\"filters\": {\"blocked_bloom\": {}},\n\"key_sets\": {\"kind\": \"file\", "
                "\"path\": \"/no/such/file\"}",
                "my.json:3: sweeps[0].key_sets: ", "/no/such/file"},
        BadPlan{"NothingToMeasure",
                "\"filters\": {\"blocked_bloom\": {}},\n\"hashings\": \"xxh3_bytes\"",
                "my.json:1: sweeps: ", "nothing to measure"}),
    [](const auto& info) { return info.param.name; });

TEST(VisitOrder, IsAPermutationThatTheNextRoundReverses) {
  for (const uint64_t round : {0, 2, 4}) {
    std::vector<size_t> order = VisitOrder(50, 9, round);
    std::vector<size_t> next = VisitOrder(50, 9, round + 1);
    std::reverse(next.begin(), next.end());
    EXPECT_EQ(order, next);
    EXPECT_EQ(std::set<size_t>(order.begin(), order.end()).size(), 50u);
  }
  EXPECT_NE(VisitOrder(50, 9, 0), VisitOrder(50, 9, 2));
  EXPECT_NE(VisitOrder(50, 9, 0), VisitOrder(50, 10, 0));
  EXPECT_TRUE(VisitOrder(0, 1, 0).empty());
}

}  // namespace
}  // namespace filterbench
