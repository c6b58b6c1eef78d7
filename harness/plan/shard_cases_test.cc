#include "harness/plan/shard_cases.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/hash.h"

namespace filterbench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Cases that are told apart by `keys`.
std::vector<Case> CasesOf(const std::vector<double>& seconds) {
  std::vector<Case> cases(seconds.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].keys = i;
    cases[i].seconds = seconds[i];
  }
  return cases;
}

std::vector<uint64_t> NamesOfShard(const std::vector<double>& seconds, uint64_t index,
                                   uint64_t count) {
  std::vector<uint64_t> names;
  for (const Case& work : CasesOfShard(CasesOf(seconds), {.index = index, .count = count})) {
    names.push_back(work.keys);
  }
  return names;
}

// Costs from milliseconds to hours, many of them alike.
std::vector<double> SomeSeconds(size_t count, uint64_t seed) {
  std::vector<double> seconds;
  for (size_t i = 0; i < count; ++i) {
    seconds.push_back(static_cast<double>(uint64_t{1} << (Mix64(seed + i * kGoldenGamma) % 20)) /
                      100);
  }
  return seconds;
}

TEST(CasesOfShard, AreDisjointMakeUpTheWholeAndNoneIsEmpty) {
  for (const size_t cases : {1, 2, 7, 100}) {
    const std::vector<double> seconds = SomeSeconds(cases, cases);
    for (size_t count = 1; count <= cases; ++count) {
      std::vector<uint64_t> all;
      for (size_t index = 0; index < count; ++index) {
        const auto names = NamesOfShard(seconds, index, count);
        EXPECT_FALSE(names.empty()) << index << " of " << count << ", " << cases << " cases";
        EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
        all.insert(all.end(), names.begin(), names.end());
      }
      std::sort(all.begin(), all.end());
      std::vector<uint64_t> expected(cases);
      std::iota(expected.begin(), expected.end(), uint64_t{0});
      EXPECT_EQ(all, expected) << count;
    }
  }
}

// When a shard got its last case it had the least to do, so no more than the mean; and its last
// case is its shortest.
TEST(CasesOfShard, AreBalanced) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const std::vector<double> seconds = SomeSeconds(100, seed);
    const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    for (const uint64_t count : {2, 3, 8, 50}) {
      for (uint64_t index = 0; index < count; ++index) {
        double sum = 0;
        double shortest = total;
        for (const uint64_t name : NamesOfShard(seconds, index, count)) {
          sum += seconds[name];
          shortest = std::min(shortest, seconds[name]);
        }
        EXPECT_LE(sum - shortest, total / static_cast<double>(count) * (1 + 1e-12))
            << "seed " << seed << ", shard " << index << " of " << count;
      }
    }
  }
}

TEST(CasesOfShard, TheLongestCaseIsAlone) {
  EXPECT_THAT(NamesOfShard({1, 1, 10, 1, 1}, 0, 2), ElementsAre(2));
  EXPECT_THAT(NamesOfShard({1, 1, 10, 1, 1}, 1, 2), ElementsAre(0, 1, 3, 4));
}

TEST(CasesOfShard, CasesThatCostNothingAreSpread) {
  EXPECT_THAT(NamesOfShard({0, 0, 0, 0}, 0, 2), ElementsAre(0, 2));
  EXPECT_THAT(NamesOfShard({0, 0, 0, 0}, 1, 2), ElementsAre(1, 3));
}

TEST(CasesOfShard, MoreShardsThanCasesLeaveSomeEmpty) {
  EXPECT_THAT(NamesOfShard({1, 2}, 1, 3), ElementsAre(0));
  EXPECT_THAT(NamesOfShard({1, 2}, 2, 3), IsEmpty());
  EXPECT_THAT(NamesOfShard({}, 0, 1), IsEmpty());
}

constexpr uint64_t kPlenty = uint64_t{1} << 40;

Spec Parse(const std::string& text) {
  Result<LocatedJson> source = LocatedJson::Parse(text, "my.json");
  EXPECT_TRUE(source) << source.error();
  Result<Spec> spec = ParseSpec(std::move(*source), "my");
  EXPECT_TRUE(spec) << spec.error();
  return std::move(*spec);
}

std::vector<std::string> PointIds(const Plan& plan) {
  std::vector<std::string> ids;
  for (const Case& work : plan.cases) {
    for (const Point& point : work.points) ids.push_back(PointId(point));
  }
  for (const SkippedPoint& skipped : plan.skipped) ids.push_back(PointId(skipped.point));
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Six filters, one of which never fits, and points that this or any machine cannot measure.
constexpr char kSpec[] = R"({"sweeps": [{
    "filters": {"blocked_bloom": {}, "xor": {}, "ribbon": {}}, "keys": [1000, 1e5],
    "modes": ["build", "lookup_batched", "overfill"], "fills": [1], "negative_shares": [0, 1],
    "hashings": ["prehashed", "xxh3_bytes"]}, {
    "filters": {"ribbon": {}}, "keys": 1e9, "modes": "build"}]})";

TEST(MakePlan, ShardsTogetherAreThePlan) {
  const Spec spec = Parse(kSpec);
  constexpr uint64_t kLimit = uint64_t{8} << 30;
  const Plan whole = *MakePlan(spec, kLimit, {0});
  ASSERT_FALSE(whole.skipped.empty());
  ASSERT_FALSE(whole.meaningless.empty());
  for (const uint64_t count : {1, 2, 3, 5}) {
    std::vector<std::string> ids;
    size_t meaningless = 0;
    for (uint64_t index = 0; index < count; ++index) {
      const Result<Plan> part = MakePlan(spec, kLimit, {0}, Shard{.index = index, .count = count});
      ASSERT_TRUE(part) << part.error();
      EXPECT_EQ(part->shard, (Shard{.index = index, .count = count}));
      EXPECT_EQ(part->sweep_points, whole.sweep_points);
      const auto more = PointIds(*part);
      ids.insert(ids.end(), more.begin(), more.end());
      meaningless += part->meaningless.size();
    }
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(ids, PointIds(whole)) << count;
    EXPECT_EQ(meaningless, whole.meaningless.size());
  }
}

// Two nodes of a cluster seldom have the same memory free: what does not fit on one of them is
// skipped there, and the shards still make up the sweep.
TEST(MakePlan, ShardsAndPointsOfTheSweepDoNotDependOnMemory) {
  const Spec spec = Parse(kSpec);
  EXPECT_EQ(MakePlan(spec, 0, {0})->sweep_points, MakePlan(spec, kPlenty, {0})->sweep_points);
  for (const uint64_t index : {0, 1, 2}) {
    const Shard shard{.index = index, .count = 3};
    const Plan much = *MakePlan(spec, kPlenty, {0}, shard);
    const Plan little = *MakePlan(spec, 0, {0}, shard);
    EXPECT_TRUE(little.cases.empty());
    EXPECT_FALSE(much.cases.empty());
    EXPECT_EQ(PointIds(little), PointIds(much)) << index;
  }
}

TEST(MakePlan, MoreShardsThanFiltersToBuildAreRefused) {
  const Spec spec =
      Parse(R"({"sweeps": [{"filters": {"blocked_bloom": {}}, "keys": [100, 200]}]})");
  EXPECT_TRUE(MakePlan(spec, kPlenty, {0}, Shard{.index = 1, .count = 2}));
  for (const uint64_t index : {0, 2}) {
    const Result<Plan> plan = MakePlan(spec, kPlenty, {0}, Shard{.index = index, .count = 3});
    ASSERT_FALSE(plan);
    EXPECT_THAT(plan.error(), StartsWith("my.json:1: sweeps: shard "));
    EXPECT_THAT(plan.error(), HasSubstr("only 2 filters"));
  }
}

}  // namespace
}  // namespace filterbench
