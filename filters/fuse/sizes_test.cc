// Sizes of xor and binary fuse tables: those of the authors, at any number of keys (A2 of the known
// cases), none allocated.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "filters/fuse/binary_fuse.h"
#include "filters/fuse/xor.h"
#include "filters/theory/fuse.h"

namespace filterbench {
namespace {

constexpr BinaryFuse::Params k3Wise = {.arity = BinaryFuse::Arity::k3};
constexpr BinaryFuse::Params k4Wise = {.arity = BinaryFuse::Arity::k4};

TEST(FuseSizesTest, AreThoseOfTheAuthors) {
  std::ifstream file(FILTERBENCH_FILTERS_DIRECTORY "/testdata/theory_tables.json");
  ASSERT_TRUE(file);
  const nlohmann::json rows =
      nlohmann::json::parse(file).at("xor_and_binary_fuse_layout").at("rows");
  ASSERT_EQ(rows.size(), 18u);
  for (const nlohmann::json& row : rows) {
    SCOPED_TRACE(row.dump());
    const uint64_t n = row.at("n");
    const uint64_t xor_slots = row.at("xor_slots");
    EXPECT_EQ(Xor::LayoutFor(n, {}, 0)->Slots(), xor_slots / 3 * 3);
    const BinaryFuse::Shape shape3 = *BinaryFuse::ShapeFor(n, k3Wise, 0);
    EXPECT_EQ(shape3.segment_slots, row.at("seglen_3"));
    EXPECT_EQ(shape3.first_slots, row.at("segcount_3").get<uint64_t>() * shape3.segment_slots);
    EXPECT_EQ(shape3.slots, row.at("array_3"));
    // Segments of 1 or 2 slots give two keys the same four slots too often: here they have 4.
    if (row.at("seglen_4") < 4) continue;
    const BinaryFuse::Shape shape4 = *BinaryFuse::ShapeFor(n, k4Wise, 0);
    EXPECT_EQ(shape4.segment_slots, row.at("seglen_4"));
    EXPECT_EQ(shape4.first_slots, row.at("segcount_4").get<uint64_t>() * shape4.segment_slots);
    EXPECT_EQ(shape4.slots, row.at("array_4"));
  }
}

// Segment lengths against the formula, on both sides of each step; an error of the logarithm does
// not decide there, since no power of 3.33 or 2.91 is within 1e-6 of a whole number of keys.
TEST(FuseSizesTest, SegmentsFollowTheFormulaAtItsSteps) {
  const auto check = [](const BinaryFuse::Params& params, double base, double offset) {
    const auto expected = [=](uint64_t n) {
      const double log2 = std::floor(std::log(static_cast<double>(n)) / std::log(base) + offset);
      return uint64_t{1} << static_cast<int>(std::fmin(std::fmax(log2, 2), 18));
    };
    for (int log2 = 3; log2 <= 18; ++log2) {
      const auto step = static_cast<uint64_t>(std::ceil(std::pow(base, log2 - offset)));
      for (const uint64_t n : {step - 1, step}) {
        EXPECT_EQ(BinaryFuse::ShapeFor(n, params, 0)->segment_slots, expected(n)) << n;
      }
      EXPECT_EQ(expected(step), uint64_t{1} << log2);
      EXPECT_EQ(expected(step - 1), uint64_t{1} << (log2 - 1));
    }
  };
  check(k3Wise, 3.33, 2.25);
  check(k4Wise, 2.91, -0.5);
}

// The size factor is computed in whole numbers; a library's logarithm differs by no slot or one.
TEST(FuseSizesTest, SlotsFollowTheFormula) {
  for (uint64_t n = 2; n < uint64_t{1} << 33; n += n / 7 + 1) {
    for (const auto& params : {k3Wise, k4Wise}) {
      const bool three = params.arity == BinaryFuse::Arity::k3;
      const double ln = std::log(static_cast<double>(n));
      const double factor = three ? std::fmax(1.125, 0.875 + 0.25 * std::log(1e6) / ln)
                                  : std::fmax(1.075, 0.77 + 0.305 * std::log(6e5) / ln);
      const double wanted = static_cast<double>(n) * factor;
      const BinaryFuse::Shape shape = *BinaryFuse::ShapeFor(n, params, 0);
      const double slots = static_cast<double>(shape.slots);
      EXPECT_GE(slots, wanted - 1) << n;
      EXPECT_LE(slots, std::fmax(wanted, (three ? 2.0 : 3.0) * shape.segment_slots) + 1 +
                           static_cast<double>(shape.segment_slots))
          << n;
    }
  }
}

template <class SlotsFor>
void CheckGrowth(const SlotsFor& slots_for) {
  uint64_t last = 0;
  for (int power = 0; power <= 36; ++power) {
    const uint64_t n = uint64_t{1} << power;
    const uint64_t slots = slots_for(n, 0);
    EXPECT_GE(slots, last);
    EXPECT_GT(slots, n);
    last = slots;
    // Each enlargement is one, of about a 32nd.
    uint64_t last_enlarged = slots;
    for (uint64_t enlargements = 1; enlargements < 4; ++enlargements) {
      const uint64_t enlarged = slots_for(n, enlargements);
      EXPECT_GT(enlarged, last_enlarged);
      if (n > 1000000) {
        EXPECT_LT(static_cast<double>(enlarged), 1.033 * static_cast<double>(last_enlarged));
      }
      last_enlarged = enlarged;
    }
  }
}

// Case A2: sizes never fall.
TEST(FuseSizesTest, GrowWithTheKeysAndWithEveryEnlargement) {
  CheckGrowth([](uint64_t n, uint64_t e) { return Xor::LayoutFor(n, {}, e)->Slots(); });
  CheckGrowth([](uint64_t n, uint64_t e) { return BinaryFuse::ShapeFor(n, k3Wise, e)->slots; });
  CheckGrowth([](uint64_t n, uint64_t e) { return BinaryFuse::ShapeFor(n, k4Wise, e)->slots; });
}

TEST(FuseSizesTest, NoKeysNeedNoSlots) {
  EXPECT_EQ(Xor::LayoutFor(0, {}, 0)->Slots(), 0u);
  EXPECT_EQ(BinaryFuse::ShapeFor(0, k3Wise, 3)->slots, 0u);
}

// Case A2: above the limit an error, nothing wraps around.
TEST(FuseSizesTest, BeyondTheLimitAreRefused) {
  constexpr const char* kLimit = "limit 137438953472";
  const auto xor_error = Xor::LayoutFor(uint64_t{1} << 37, {}, 0);
  ASSERT_FALSE(xor_error);
  EXPECT_EQ(xor_error.error(), std::string("too large: needs 169049912802 bytes, ") + kLimit);
  for (const auto& params : {k3Wise, k4Wise}) {
    for (const uint64_t n : {uint64_t{1} << 37, uint64_t{1} << 45, UINT64_MAX}) {
      const auto shape = BinaryFuse::ShapeFor(n, params, 0);
      ASSERT_FALSE(shape) << n;
      EXPECT_NE(shape.error().find("too large: needs "), std::string::npos) << shape.error();
      EXPECT_NE(shape.error().find(kLimit), std::string::npos) << shape.error();
    }
    // 2^40 bits are reached, not passed.
    EXPECT_TRUE(BinaryFuse::ShapeFor(uint64_t{1} << 36, params, 0));
    BinaryFuse::Params wide = params;
    wide.fingerprint_bits = BinaryFuse::FingerprintBits::k16;
    EXPECT_FALSE(BinaryFuse::ShapeFor(uint64_t{1} << 36, wide, 0));
  }
}

TEST(FuseTheoryTest, RatesAndCurves) {
  EXPECT_EQ(theory::FingerprintSumFpr(8), 1.0 / 256);
  EXPECT_EQ(theory::FingerprintSumFpr(16), 1.0 / 65536);
  EXPECT_NEAR(*Xor::TheoryFpr(8 * 1.23), 1.0 / 256, 1e-12);
  EXPECT_NEAR(*BinaryFuse::TheoryFpr(8 * 1.125), 1.0 / 256, 1e-12);
}

}  // namespace
}  // namespace filterbench
