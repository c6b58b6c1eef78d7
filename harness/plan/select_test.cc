#include "harness/plan/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace filterbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Spec TwoSweeps() {
  return *ParseSpec(*LocatedJson::Parse(R"({"sweeps": [
      {"filters": {"km_bloom": {}, "blocked_bloom": {}, "cuckoo": {}, "touch_lines": {}}},
      {"filters": [{"filter": "xor"}, {"preset": "cassandra-0.01"}]}]})",
                                        "test.json"),
                    "test");
}

std::vector<std::string> Left(const Spec& spec) {
  std::vector<std::string> names;
  for (const SweepSpec& sweep : spec.sweeps) {
    for (const FilterEntry& entry : sweep.filters) names.push_back(entry.filter + entry.preset);
  }
  return names;
}

TEST(SelectTest, NothingAskedKeepsAll) {
  Spec spec = TwoSweeps();
  EXPECT_FALSE(SelectFilters({}, {}, spec));
  EXPECT_EQ(Left(spec), Left(TwoSweeps()));
}

TEST(SelectTest, BaselinesStayUntilTheyAreExcluded) {
  Spec spec = TwoSweeps();
  EXPECT_FALSE(SelectFilters({"cuckoo"}, {}, spec));
  EXPECT_THAT(Left(spec), ElementsAre("cuckoo", "touch_lines"));
  spec = TwoSweeps();
  EXPECT_FALSE(SelectFilters({"cuckoo"}, {"touch_lines"}, spec));
  EXPECT_THAT(Left(spec), ElementsAre("cuckoo"));
}

TEST(SelectTest, PatternsAndPresets) {
  Spec spec = TwoSweeps();
  EXPECT_FALSE(SelectFilters({"*_bloom", "cassandra-*"}, {"km*"}, spec));
  EXPECT_THAT(Left(spec), ElementsAre("blocked_bloom", "touch_lines", "cassandra-0.01"));
}

TEST(SelectTest, NamesThatMatchNothingAreRefused) {
  Spec spec = TwoSweeps();
  const auto error = SelectFilters({"coockoo"}, {}, spec);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("did you mean 'cuckoo'"));
  EXPECT_TRUE(SelectFilters({}, {"ribbon"}, spec));
  EXPECT_THAT(SelectFilters({}, {"*"}, spec)->message, HasSubstr("no filter of the spec is left"));
}

}  // namespace
}  // namespace filterbench
