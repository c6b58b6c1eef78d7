#include "filters/theory/growing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "filters/theory/blocked_bloom.h"

namespace filterbench::theory {
namespace {

TEST(FilledBloomFprTest, IsThePowerOfTheFill) {
  EXPECT_DOUBLE_EQ(FilledBloomFpr(50, 100, 3), 0.125);
  EXPECT_EQ(FilledBloomFpr(0, 64, 1), 0);
  EXPECT_EQ(FilledBloomFpr(64, 64, 9), 1);
}

TEST(UnionFprTest, IsOneMinusTheProductOfTheRest) {
  EXPECT_EQ(UnionFpr({}).mean, 0);
  const std::vector<FprEstimate> parts = {{0.5, 0.01}, {0.1, 0.02}};
  const FprEstimate both = UnionFpr(parts);
  EXPECT_NEAR(both.mean, 0.55, 1e-15);
  EXPECT_NEAR(both.instance_sd, std::hypot(0.9 * 0.01, 0.5 * 0.02), 1e-15);
  const std::vector<FprEstimate> small(1000, {1e-15, 0});
  EXPECT_NEAR(UnionFpr(small).mean, 1e-12, 1e-15);
  const std::vector<FprEstimate> certain = {{1, 0}, {0.5, 0.1}};
  EXPECT_EQ(UnionFpr(certain).mean, 1);
}

TEST(SplitBlockBitsPerKeyTest, InvertsTheRate) {
  for (const double fpr : {0.5, 0.1, 0.01, 6e-3, 1e-4, 1e-6, 1e-10}) {
    SCOPED_TRACE(fpr);
    const double bits = SplitBlockBitsPerKey(fpr, 8, 32);
    EXPECT_EQ(bits * 64, std::floor(bits * 64));
    EXPECT_LE(SplitBlockFpr(bits, 8, 32), fpr);
    if (bits > 0.5) {
      EXPECT_GT(SplitBlockFpr(bits - 1.0 / 64, 8, 32), fpr);
    }
  }
  // 10.67 bits per key, at which Parquet's filter has 0.94 % in the benchmarks of others.
  EXPECT_NEAR(SplitBlockBitsPerKey(0.0094, 8, 32), 10.67, 0.1);
}

// All ways in which n balls fall into `cells` cells.
FprEstimate SharedByEnumeration(int n, int cells) {
  double sum = 0;
  double square = 0;
  int ways = 1;
  for (int i = 0; i < n; ++i) ways *= cells;
  for (int way = 0; way < ways; ++way) {
    unsigned occupied = 0;
    for (int i = 0, rest = way; i < n; ++i, rest /= cells) occupied |= 1u << (rest % cells);
    const double share = static_cast<double>(__builtin_popcount(occupied)) / cells;
    sum += share;
    square += share * share;
  }
  const double mean = sum / ways;
  return {mean, std::sqrt(square / ways - mean * mean)};
}

TEST(SharedPrefixFprTest, IsTheShareOfOccupiedPrefixes) {
  for (const int n : {1, 2, 3, 5}) {
    for (const int bits : {1, 2, 3}) {
      SCOPED_TRACE(n * 10 + bits);
      const FprEstimate expected = SharedByEnumeration(n, 1 << bits);
      EXPECT_NEAR(SharedPrefixFpr(n, bits).mean, expected.mean, 1e-12);
      EXPECT_NEAR(SharedPrefixFpr(n, bits).instance_sd, expected.instance_sd, 1e-7);
    }
  }
  EXPECT_EQ(SharedPrefixFpr(0, 8).mean, 0);
  EXPECT_EQ(SharedPrefixFpr(7, 0).mean, 1);
  EXPECT_NEAR(SharedPrefixFpr(1 << 20, 64).mean, std::exp2(-44), 1e-20);
  // A number of keys that fills all but surely: no rest, no deviation, no error of rounding.
  EXPECT_NEAR(SharedPrefixFpr(1000000, 8).mean, 1, 1e-12);
  EXPECT_LT(SharedPrefixFpr(1000000, 8).instance_sd, 1e-9);
}

}  // namespace
}  // namespace filterbench::theory
