#ifndef FILTERBENCH_FILTERS_CONFORMANCE_PARAMS_H_
#define FILTERBENCH_FILTERS_CONFORMANCE_PARAMS_H_

// Parameters to and from JSON, for every filter of the catalogue and for knobs of every kind.

#include "filters/params_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "filters/filter.h"
#include "filters/conformance/tested.h"
#include "filters/test_support.h"

namespace filterbench {
namespace {

template <class F>
class ParamsJsonTest : public ::testing::Test {};
TYPED_TEST_SUITE(ParamsJsonTest, test::TestedFilters, test::FilterNames);

TYPED_TEST(ParamsJsonTest, EveryValueComesBack) {
  auto cases = test::UsualParams<TypeParam>(0);
  for (const auto& corner : test::CornerParams<TypeParam>(0)) cases.push_back(corner);
  for (const auto& [name, params] : cases) {
    SCOPED_TRACE(name);
    const nlohmann::json json = ParamsToJson<TypeParam>(params);
    // Through text, as in a spec file.
    const auto read = ParamsFromJson<TypeParam>(nlohmann::json::parse(json.dump()));
    ASSERT_TRUE(read) << read.error();
    EXPECT_TRUE(*read == params) << json.dump();
  }
}

TYPED_TEST(ParamsJsonTest, NothingGivenMeansTheDefaults) {
  const auto read = ParamsFromJson<TypeParam>(nlohmann::json::object());
  ASSERT_TRUE(read) << read.error();
  EXPECT_TRUE(*read == typename TypeParam::Params{});
}

TYPED_TEST(ParamsJsonTest, EveryKnobIsDescribedAndNamedOnce) {
  std::set<std::string> names;
  for (const KnobInfo& knob : DescribeKnobs<TypeParam>()) {
    EXPECT_TRUE(names.insert(knob.name).second) << knob.name << " twice";
    EXPECT_NE(knob.name, "seed") << "the seed is passed beside the parameters";
    EXPECT_FALSE(knob.meaning.empty()) << knob.name;
    if (knob.choices.empty()) {
      EXPECT_LE(knob.low, knob.default_value) << knob.name;
      EXPECT_LE(knob.default_value, knob.high) << knob.name;
    } else {
      EXPECT_NE(std::ranges::find(knob.choices, knob.default_value.get<std::string>()),
                knob.choices.end());
      EXPECT_EQ(std::set(knob.choices.begin(), knob.choices.end()).size(), knob.choices.size());
    }
  }
  // A member of Params without a knob would be lost on the way through a spec.
  EXPECT_EQ(names.size(), ParamsToJson<TypeParam>({}).size());
}

TYPED_TEST(ParamsJsonTest, RefusesValuesOutsideTheirRange) {
  for (const KnobInfo& knob : DescribeKnobs<TypeParam>()) {
    SCOPED_TRACE(knob.name);
    std::vector<nlohmann::json> wrong = {
        nullptr, true, nlohmann::json::array(), nlohmann::json::object(), -1, "no such value"};
    if (knob.choices.empty()) {
      wrong.push_back(knob.high.get<double>() + 1);
      wrong.push_back(1e300);
      if (knob.low.get<double>() > 0) wrong.push_back(knob.low.get<double>() / 2);
    } else {
      wrong.push_back(0);  // a choice is made by name, never by number
    }
    for (const nlohmann::json& value : wrong) {
      const auto read = ParamsFromJson<TypeParam>({{knob.name, value}});
      ASSERT_FALSE(read) << value.dump();
      EXPECT_EQ(read.error().find(knob.name + ": "), 0u) << read.error();
    }
  }
}

// A plan asks Contradiction, a build refuses for itself: they must agree.
TYPED_TEST(ParamsJsonTest, BuildRefusesWhatContradicts) {
  if constexpr (requires(const typename TypeParam::Params& params) {
                  TypeParam::Contradiction(params);
                }) {
    EXPECT_EQ(TypeParam::Contradiction({}), "");
    const std::vector<uint64_t> hashes = test::TestHashes(0, 1000);
    for (const auto& [name, params] : test::CornerParams<TypeParam>(0)) {
      SCOPED_TRACE(name);
      const std::string contradiction = TypeParam::Contradiction(params);
      if (contradiction.empty()) continue;
      const auto built = TypeParam::Build(hashes, params);
      ASSERT_FALSE(built);
      EXPECT_EQ(built.error(), contradiction);
    }
  } else {
    GTEST_SKIP() << "no two of its knobs contradict each other";
  }
}

TYPED_TEST(ParamsJsonTest, RefusesUnknownNames) {
  const auto read = ParamsFromJson<TypeParam>({{"no_such_knob", 1}});
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().find("no_such_knob"), std::string::npos) << read.error();
  EXPECT_FALSE(ParamsFromJson<TypeParam>(nlohmann::json::array()));
  EXPECT_FALSE(ParamsFromJson<TypeParam>(nullptr));
}

}  // namespace
}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CONFORMANCE_PARAMS_H_
