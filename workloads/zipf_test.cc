#include "workloads/zipf.h"

#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace filterbench {
namespace {

// Pearson's statistic over ranks 1..15 and all others together. With 15 degrees of freedom it
// exceeds 77.4 with a chance of 2.1e-10 (the upper tail of chi-square), in one of the twelve cases
// with one of 2.5e-9.
TEST(Zipf, DrawsEachRankWithItsProbability) {
  constexpr uint64_t kDraws = 400'000;
  for (const double exponent : {0.5, 0.99, 1.0, 1.0 + 1e-9, 4.0 / 3, 2.5}) {
    for (const uint64_t ranks : {16, 1000}) {
      const ZipfSampler sampler(exponent, ranks);
      double sum = 0;
      for (uint64_t rank = 1; rank <= ranks; ++rank) {
        sum += std::pow(static_cast<double>(rank), -exponent);
      }
      std::vector<uint64_t> counts(16);
      uint64_t state = 17;
      for (uint64_t i = 0; i < kDraws; ++i) {
        const uint64_t rank = sampler.Draw(state);
        ASSERT_GE(rank, 1u);
        ASSERT_LE(rank, ranks);
        ++counts[rank <= 15 ? rank - 1 : 15];
      }
      double statistic = 0;
      double rest = 1;
      for (size_t i = 0; i < 16; ++i) {
        const double share =
            i < 15 ? std::pow(static_cast<double>(i + 1), -exponent) / sum : rest;
        rest -= share;
        const double expected = share * kDraws;
        statistic += (static_cast<double>(counts[i]) - expected) *
                     (static_cast<double>(counts[i]) - expected) / expected;
      }
      EXPECT_LT(statistic, 77.4) << "exponent " << exponent << ", " << ranks << " ranks";
    }
  }
}

TEST(Zipf, OneRankIsAlwaysDrawn) {
  const ZipfSampler sampler(1.2, 1);
  uint64_t state = 1;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(sampler.Draw(state), 1u);
}

TEST(Zipf, TheSameStateDrawsTheSame) {
  const ZipfSampler sampler(4.0 / 3, uint64_t{1} << 40);
  uint64_t a = 5, b = 5;
  std::set<uint64_t> ranks;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t rank = sampler.Draw(a);
    EXPECT_EQ(rank, sampler.Draw(b));
    ranks.insert(rank);
  }
  EXPECT_GT(ranks.size(), 50u);
}

}  // namespace
}  // namespace filterbench
