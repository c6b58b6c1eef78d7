// Parameters from JSON, for knobs of every kind.

#include "filters/params_json.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tuple>

namespace filterbench {
namespace {

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
