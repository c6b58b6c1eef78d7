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
#include "filters/test_support.h"

namespace filterbench {
namespace {

template <class F>
class ParamsJsonTest : public ::testing::Test {};
TYPED_TEST_SUITE(ParamsJsonTest, test::AllFilters, test::FilterNames);

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

TYPED_TEST(ParamsJsonTest, RefusesUnknownNames) {
  const auto read = ParamsFromJson<TypeParam>({{"no_such_knob", 1}});
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().find("no_such_knob"), std::string::npos) << read.error();
  EXPECT_FALSE(ParamsFromJson<TypeParam>(nlohmann::json::array()));
  EXPECT_FALSE(ParamsFromJson<TypeParam>(nullptr));
}

// One knob of each kind, none of any filter's.
struct Toy {
  enum class Shape { kRound, kSquare };
  struct Params {
    double ratio = 1.5;
    uint32_t count = 3;
    uint64_t large = 0;
    Shape shape = Shape::kRound;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"ratio", &Params::ratio, 0.5, 2, "a ratio"},
      Knob<Params, uint32_t>{"count", &Params::count, 1, 2000000, "a count"},
      Knob<Params, uint64_t>{"large", &Params::large, 0, uint64_t{1} << 60, "a large count"},
      Choice{"shape", &Params::shape, std::array<std::string_view, 2>{"round", "square"}, "a form"},
  };
};

TEST(ParamsFromJsonTest, TakesNumbersInEveryNotation) {
  const auto read = ParamsFromJson<Toy>(nlohmann::json::parse(
      R"({"ratio": 1, "count": 1e6, "large": 1152921504606846975, "shape": "square"})"));
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->ratio, 1.0);
  EXPECT_EQ(read->count, 1000000u);
  EXPECT_EQ(read->large, (uint64_t{1} << 60) - 1);  // no detour through a double
  EXPECT_EQ(read->shape, Toy::Shape::kSquare);
}

TEST(ParamsFromJsonTest, SaysWhatIsWrong) {
  const auto error = [](const char* json) {
    const auto read = ParamsFromJson<Toy>(nlohmann::json::parse(json));
    return read ? std::string("accepted") : read.error();
  };
  EXPECT_EQ(error(R"({"count": 2.5})"), "count: must be a whole number in 1..2000000, is 2.5");
  EXPECT_EQ(error(R"({"count": 0})"), "count: must be a whole number in 1..2000000, is 0");
  EXPECT_EQ(error(R"({"count": 4294967297})"),
            "count: must be a whole number in 1..2000000, is 4294967297");
  EXPECT_EQ(error(R"({"ratio": "1"})"), "ratio: must be a number in 0.5..2, is \"1\"");
  EXPECT_EQ(error(R"({"shape": "oval"})"), "shape: must be one of round, square, is \"oval\"");
  EXPECT_NE(error(R"({"cuont": 2})").find("count"), std::string::npos) << error(R"({"cuont": 2})");
}

}  // namespace
}  // namespace filterbench
