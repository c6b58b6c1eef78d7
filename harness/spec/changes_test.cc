#include "harness/spec/changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/spec/spec.h"

namespace filterbench {
namespace {

using testing::HasSubstr;

constexpr const char* kSpec = R"({
  "measure": {"passes": 5},
  "sweeps": [
    {"filters": {"cuckoo": {"fingerprint_bits": "8"}, "xor": {}}, "keys": [1000, 2000]},
    {"filters": [{"filter": "cuckoo"}, {"preset": "redisbloom-cf"}], "modes": ["build"]}
  ]
})";

Result<Spec> Changed(const SpecChanges& changes) {
  LocatedJson source = *LocatedJson::Parse(kSpec, "test.json");
  if (const auto error = Apply(changes, source)) return *error;
  return ParseSpec(std::move(source), "test");
}

TEST(ChangesTest, NothingChangesNothing) {
  const Result<Spec> spec = Changed({});
  ASSERT_TRUE(spec) << spec.error();
  EXPECT_EQ(spec->source.root(), LocatedJson::Parse(kSpec, "test.json")->root());
}

TEST(ChangesTest, SettingsReachMeasureListsAndParameters) {
  const Result<Spec> spec = Changed({.seed = 7,
                                     .settings = {"passes=9", "keys=1e4,1e6", "width=null",
                                                  "modes=lookup_batched,latency",
                                                  "cuckoo.fingerprint_bits=8,12"}});
  ASSERT_TRUE(spec) << spec.error();
  EXPECT_EQ(spec->measure.seed, 7u);
  EXPECT_EQ(spec->measure.passes, 9u);
  EXPECT_FALSE(spec->measure.width);
  for (const SweepSpec& sweep : spec->sweeps) {
    EXPECT_THAT(sweep.keys, testing::ElementsAre(10'000, 1'000'000));
    EXPECT_THAT(sweep.modes, testing::ElementsAre(Mode::kLookupBatched, Mode::kLatency));
    EXPECT_EQ(sweep.filters[0].params["fingerprint_bits"], nlohmann::json({8, 12}));
  }
  EXPECT_EQ(spec->sweeps[0].filters[1].params, nlohmann::json::object());
}

TEST(ChangesTest, SettingsWinOverCare) {
  const Result<Spec> spec = Changed({.care = Care::kRigorous, .settings = {"passes=2"}});
  ASSERT_TRUE(spec) << spec.error();
  EXPECT_EQ(spec->measure.passes, 2u);
  EXPECT_EQ(spec->measure.max_processes, 20u);
  EXPECT_EQ(spec->measure.width, 0.01);
}

TEST(ChangesTest, EveryFieldOfMeasureCanBeSet) {
  const nlohmann::json defaults = MeasureToJson(MeasureSpec());
  for (const auto& [name, value] : defaults.items()) {
    const Result<Spec> spec = Changed({.settings = {name + "=" + value.dump()}});
    EXPECT_TRUE(spec) << name << ": " << spec.error();
  }
}

TEST(ChangesTest, WhatMeansNothingIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"passes", "--set passes: must be name=value"},
      {"=3", "must be name=value"},
      {"passes=", "must be name=value"},
      {"pases=3", "did you mean 'passes'"},
      {"passes=many", "measure.passes: must be a whole number"},
      {"keys=", "must be name=value"},
      {"ribbon.width=64", "no sweep of the spec names the filter 'ribbon'"},
      {"width=\xff,1", "is not UTF-8"},
      {"\xff=1", "is not UTF-8"},
  };
  for (const auto& [setting, problem] : cases) {
    const Result<Spec> spec = Changed({.settings = {setting}});
    ASSERT_FALSE(spec) << setting;
    EXPECT_THAT(spec.error(), HasSubstr(problem));
  }
}

// Nested that deep it would be a stack overflow where it is shown.
TEST(ChangesTest, AValueThatNoSpecCouldHoldIsAWord) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const Result<Spec> spec = Changed({.settings = {"targets=" + deep}});
  ASSERT_TRUE(spec) << spec.error();
  EXPECT_EQ(spec->sweeps[0].targets, std::vector<std::string>{deep});
}

}  // namespace
}  // namespace filterbench
