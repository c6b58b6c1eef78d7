// Intervals against values from tables and by hand, and their coverage by simulation.

#include "harness/statistics.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "filters/theory/agreement.h"

namespace filterbench {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> OneTo(int n) {
  std::vector<double> values;
  for (int i = n; i >= 1; --i) values.push_back(i);
  return values;
}

TEST(Median, IsTheMiddle) {
  EXPECT_EQ(Median({}), std::nullopt);
  EXPECT_EQ(Median(std::vector{3.0}), 3.0);
  EXPECT_EQ(Median(std::vector{5.0, 1.0, 3.0}), 3.0);
  EXPECT_EQ(Median(std::vector{4.0, 1.0, 3.0, 2.0}), 2.5);
  const double huge = std::numeric_limits<double>::max();
  EXPECT_EQ(Median(std::vector{huge, huge}), huge);
}

TEST(Median, OfWhatIsNotFiniteIsUnknown) {
  for (double bad : {kNan, kInfinity, -kInfinity}) {
    EXPECT_EQ(Median(std::vector{1.0, bad, 2.0}), std::nullopt);
    EXPECT_FALSE(MedianInterval(std::vector{1.0, bad, 2.0}));
  }
}

// Ranks and coverage from the table of the sign test (2^-n sums of binomial coefficients).
TEST(MedianInterval, TakesTheRanksOfTheSignTest) {
  struct Row {
    int n, low, high;
    double confidence;
  };
  for (const Row& row : {Row{6, 1, 6, 1 - 2 / 64.0}, Row{8, 1, 8, 1 - 2 / 256.0},
                         Row{9, 2, 8, 1 - 2 * 10 / 512.0}, Row{10, 2, 9, 1 - 2 * 11 / 1024.0},
                         Row{15, 4, 12, 1 - 2 * 576 / 32768.0},
                         Row{20, 6, 15, 1 - 2 * 21700 / 1048576.0}}) {
    const auto interval = MedianInterval(OneTo(row.n));
    ASSERT_TRUE(interval);
    EXPECT_EQ(interval->low, row.low) << row.n;
    EXPECT_EQ(interval->high, row.high) << row.n;
    EXPECT_NEAR(interval->confidence, row.confidence, 1e-12) << row.n;
  }
}

TEST(MedianInterval, OfFewValuesIsTheRangeWithItsTrueConfidence) {
  EXPECT_FALSE(MedianInterval({}));
  const double confidence[] = {0, 0.5, 0.75, 0.875, 0.9375};
  for (int n = 1; n <= 5; ++n) {
    const auto interval = MedianInterval(OneTo(n));
    ASSERT_TRUE(interval);
    EXPECT_EQ(interval->low, 1);
    EXPECT_EQ(interval->high, n);
    EXPECT_NEAR(interval->confidence, confidence[n - 1], 1e-12);
  }
}

TEST(MedianInterval, ReachesTheConfidenceAndNoNarrowerPairDoes) {
  for (int n = 6; n <= 3000; n = n * 5 / 4 + 1) {
    const auto interval = MedianInterval(OneTo(n));
    ASSERT_TRUE(interval);
    EXPECT_GE(interval->confidence, 0.95) << n;
    EXPECT_EQ(interval->low + interval->high, n + 1) << n;
    const uint64_t rank = static_cast<uint64_t>(interval->low);
    EXPECT_NEAR(interval->confidence, 1 - 2 * theory::BinomialLowerTail(rank - 1, n, 0.5), 1e-12);
    if (2 * (rank + 1) <= static_cast<uint64_t>(n)) {
      EXPECT_LT(1 - 2 * theory::BinomialLowerTail(rank, n, 0.5), 0.95) << n;
    }
  }
}

// Covered ~ Binomial(4000, confidence): outside of six standard deviations with a chance below
// 2e-9 per law and length.
TEST(MedianInterval, CoversAsOftenAsItSays) {
  std::mt19937_64 random(20261130);
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  constexpr int kTrials = 4000;
  for (int n : {1, 3, 6, 15, 40}) {
    for (bool heavy_tail : {false, true}) {
      int covered = 0;
      double confidence = 0;
      for (int trial = 0; trial < kTrials; ++trial) {
        std::vector<double> values(n);
        for (double& v : values) {
          const double u = uniform();
          v = heavy_tail ? std::tan(M_PI * (u - 0.5)) : -std::log(u) - std::log(2.0);  // median 0
        }
        const auto interval = MedianInterval(values);
        confidence = interval->confidence;
        covered += interval->low <= 0 && 0 <= interval->high;
      }
      const double sd = std::sqrt(kTrials * confidence * (1 - confidence));
      EXPECT_NEAR(covered, kTrials * confidence, 6 * sd + 1e-9) << n << " " << heavy_tail;
    }
  }
}

// The quantiles of the beta law of Clopper and Pearson, from scipy.stats.beta.ppf.
TEST(BinomialInterval, IsThatOfClopperAndPearson) {
  struct Row {
    uint64_t successes, trials;
    double low, high;
  };
  for (const Row& row : {
           Row{1, 10, 0.0025285785444617848, 0.4450161170281954},
           Row{5, 10, 0.18708602844739855, 0.8129139715526014},
           Row{9660, 1000000, 0.009469218245970263, 0.009853629949448314},
           Row{1, 1000000000, 2.5317807983969383e-11, 5.5716434291233906e-09},
           Row{500000000, 1000000000, 0.49996900974827113, 0.5000309902517288},
       }) {
    const Interval interval = BinomialInterval(row.successes, row.trials);
    // lgamma(1e9) is known to 4e-6 only, and so is each probability made from it.
    EXPECT_NEAR(interval.low / row.low, 1, 4e-6) << row.successes;
    EXPECT_NEAR(interval.high / row.high, 1, 4e-6) << row.successes;
    EXPECT_EQ(interval.confidence, 0.95);
  }
}

TEST(BinomialInterval, OfNoSuccessIsAnUpperLimit) {
  for (uint64_t trials : {1ull, 10ull, 1000000ull, 1000000000000ull}) {
    const Interval none = BinomialInterval(0, trials);
    EXPECT_EQ(none.low, 0);
    const double upper = -std::expm1(std::log(0.025) / static_cast<double>(trials));
    EXPECT_NEAR(none.high / upper, 1, 1e-7) << trials;
    const Interval all = BinomialInterval(trials, trials);
    EXPECT_EQ(all.high, 1);
    EXPECT_NEAR(all.low, 1 - upper, 1e-9);
  }
}

TEST(BinomialInterval, IsTotal) {
  for (uint64_t trials : {0ull, 1ull, 2ull, 1000ull}) {
    for (uint64_t successes : {0ull, 1ull, 999ull, 1000ull, 5000ull}) {
      for (double confidence : {-1.0, 0.0, 0.5, 0.95, 1.0, 2.0, kNan}) {
        const Interval interval = BinomialInterval(successes, trials, confidence);
        EXPECT_TRUE(interval.low >= 0 && interval.low <= interval.high && interval.high <= 1)
            << successes << "/" << trials << " at " << confidence;
        EXPECT_TRUE(interval.confidence >= 0 && interval.confidence <= 1) << confidence;
      }
    }
  }
}

// The exact chance of coverage, summed over all outcomes, never falls short.
TEST(BinomialInterval, CoversWithAtLeastItsConfidence) {
  constexpr uint64_t kTrials = 60;
  std::vector<Interval> intervals;
  for (uint64_t x = 0; x <= kTrials; ++x) intervals.push_back(BinomialInterval(x, kTrials));
  for (double p = 0.005; p < 1; p += 0.005) {
    double coverage = 0;
    for (uint64_t x = 0; x <= kTrials; ++x) {
      if (intervals[x].low > p || p > intervals[x].high) continue;
      coverage += theory::BinomialUpperTail(x, kTrials, p) -
                  theory::BinomialUpperTail(x + 1, kTrials, p);
    }
    EXPECT_GE(coverage, 0.95 - 1e-9) << p;
  }
}

}  // namespace
}  // namespace filterbench
