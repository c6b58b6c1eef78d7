#include "workloads/lsm/monkey.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace filterbench::lsm {
namespace {

constexpr double kBloomDecay = std::numbers::ln2 * std::numbers::ln2;

bool Always(double) { return true; }

double Bits(const std::vector<LevelKeys>& levels, const std::vector<double>& bits) {
  double sum = 0;
  for (size_t i = 0; i < levels.size(); ++i) sum += bits[i] * static_cast<double>(levels[i].keys);
  return sum;
}

double SumOfFprs(const std::vector<LevelKeys>& levels, const std::vector<double>& bits) {
  double sum = 0;
  for (size_t i = 0; i < levels.size(); ++i) {
    sum += static_cast<double>(levels[i].runs) * std::exp(-kBloomDecay * bits[i]);
  }
  return sum;
}

TEST(MonkeyBitsPerKey, FprIsProportionalToTheKeysOfARun) {
  const std::vector<LevelKeys> levels = {{0, 4, 4000}, {1, 1, 10'000}, {2, 1, 100'000}};
  const std::vector<double> bits = MonkeyBitsPerKey(levels, 10, kBloomDecay, Always);
  EXPECT_NEAR(Bits(levels, bits), 10 * 114'000, 1e-6);
  const double per_key = std::exp(-kBloomDecay * bits[2]) / 100'000;
  EXPECT_NEAR(std::exp(-kBloomDecay * bits[0]) / 1000, per_key, 1e-15);
  EXPECT_NEAR(std::exp(-kBloomDecay * bits[1]) / 10'000, per_key, 1e-15);
}

// The optimum of a convex problem: moving bits between any two levels makes it worse.
TEST(MonkeyBitsPerKey, NoOtherAllocationOfAsManyBitsIsBetter) {
  const std::vector<LevelKeys> levels = {{0, 3, 3000}, {1, 1, 8000}, {3, 1, 60'000}};
  for (const double bits_per_key : {0.5, 2.0, 10.0}) {
    const std::vector<double> bits = MonkeyBitsPerKey(levels, bits_per_key, kBloomDecay, Always);
    EXPECT_NEAR(Bits(levels, bits), bits_per_key * 71'000, 1e-6);
    for (size_t from = 0; from < levels.size(); ++from) {
      for (size_t to = 0; to < levels.size(); ++to) {
        std::vector<double> other = bits;
        const double moved = std::min(1000.0, bits[from] * static_cast<double>(levels[from].keys));
        other[from] -= moved / static_cast<double>(levels[from].keys);
        other[to] += moved / static_cast<double>(levels[to].keys);
        EXPECT_GE(SumOfFprs(levels, other), SumOfFprs(levels, bits) - 1e-12)
            << bits_per_key << ": from " << from << " to " << to;
      }
    }
  }
}

TEST(MonkeyBitsPerKey, LevelsOfAnFprOfOneHaveNoFilter) {
  const std::vector<LevelKeys> levels = {{0, 1, 100}, {1, 1, 1000}, {2, 1, 100'000}};
  const std::vector<double> bits = MonkeyBitsPerKey(levels, 0.05, kBloomDecay, Always);
  EXPECT_EQ(bits[2], 0);
  EXPECT_GT(bits[1], 0);
  EXPECT_GT(bits[0], bits[1]);
  EXPECT_NEAR(Bits(levels, bits), 0.05 * 101'100, 1e-6);
}

TEST(MonkeyBitsPerKey, ALevelThatCannotHaveSoFewBitsHasNone) {
  const std::vector<LevelKeys> levels = {{0, 1, 1000}, {1, 1, 100'000}};
  const std::vector<double> free = MonkeyBitsPerKey(levels, 1, kBloomDecay, Always);
  ASSERT_GT(free[1], 0);
  const std::vector<double> bits =
      MonkeyBitsPerKey(levels, 1, kBloomDecay, [&](double bits) { return bits > free[1]; });
  EXPECT_EQ(bits[1], 0);
  EXPECT_NEAR(bits[0], 101, 1e-9);
}

TEST(MonkeyBitsPerKey, LevelsAlikeHaveTheSame) {
  const std::vector<double> bits =
      MonkeyBitsPerKey({{0, 4, 4000}, {1, 1, 1000}, {2, 0, 0}}, 10, kBloomDecay, Always);
  EXPECT_NEAR(bits[0], 10, 1e-9);
  EXPECT_NEAR(bits[1], 10, 1e-9);
  EXPECT_EQ(bits[2], 0);
  EXPECT_TRUE(MonkeyBitsPerKey({}, 10, kBloomDecay, Always).empty());
}

}  // namespace
}  // namespace filterbench::lsm
