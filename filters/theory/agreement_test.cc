// What holds for every filter, against independent tables, against scipy, and against simulation.

#include "filters/theory/agreement.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "filters/hash.h"
#include "filters/theory/test_support.h"

namespace filterbench::theory {
namespace {

using test::ExpectRelative;
using test::ReferenceRows;

// Case A4: the floor that the width of a hash sets.
TEST(HashCollisionTheory, MatchesTheTable) {
  const nlohmann::json rows = ReferenceRows("hash_saturation");
  ASSERT_EQ(rows.size(), 14u);
  for (const nlohmann::json& row : rows) {
    SCOPED_TRACE(row.dump());
    // The table has e^(-n/2^b) for (1 - 2^-b)^n: their exponents differ by n / 2^(2b + 1), below
    // 1e-9 in every row.
    ExpectRelative(HashCollisionFpr(row.at("n"), row.at("hash_bits")), row.at("added_fpr"), 1e-9);
  }
  EXPECT_EQ(HashCollisionFpr(0, 64), 0);
  EXPECT_GT(HashCollisionFpr(1, 64), 0);
}

TEST(InformationBound, IsTheBinaryLogarithm) {
  EXPECT_DOUBLE_EQ(InformationBoundBitsPerKey(0.5), 1);
  EXPECT_DOUBLE_EQ(InformationBoundBitsPerKey(1.0 / 1024), 10);
}

// scipy.stats.binom.cdf(x, n, p) and .sf(x - 1, n, p), scipy 1.10.
TEST(BinomialTails, MatchScipy) {
  struct Row {
    uint64_t x;
    uint64_t trials;
    double p;
    double lower;
    double upper;
  };
  for (const Row& row :
       std::vector<Row>{{0, 10, 0.1, 0.34867844009999993, 1.0},
                        {3, 10, 0.3, 0.6496107184000002, 0.6172172136000003},
                        {50, 1000, 0.1, 5.995167632379605e-09, 0.9999999972132897},
                        {9000, 1000000, 0.01, 8.35041591692495e-25, 1.0},
                        {10600, 1000000, 0.01, 0.9999999988742401, 1.1959227172781592e-09},
                        {130, 2000000, 0.0001, 8.111713096272398e-08, 0.9999999479761001},
                        {0, 10000000, 1e-08, 0.9048374175835409, 1.0},
                        {99, 100, 0.99, 0.6339676587267709, 0.7357619789229561},
                        {700, 1000000000, 1e-06, 6.932695548034329e-24, 1.0},
                        {4999500, 10000000, 0.5, 0.37603482781560693, 0.624205179969282}}) {
    SCOPED_TRACE(fmt::format("x={} trials={} p={}", row.x, row.trials, row.p));
    // Logarithms of factorials are sums of about trials ln(trials), rounded once each.
    const double trials = static_cast<double>(row.trials);
    const double tolerance =
        1e-12 + 4 * trials * std::log(trials) * std::numeric_limits<double>::epsilon();
    ExpectRelative(BinomialLowerTail(row.x, row.trials, row.p), row.lower, tolerance);
    ExpectRelative(BinomialUpperTail(row.x, row.trials, row.p), row.upper, tolerance);
  }
}

TEST(BinomialTails, EdgesOfTheirRange) {
  EXPECT_EQ(BinomialLowerTail(10, 10, 0.3), 1);
  EXPECT_EQ(BinomialUpperTail(0, 10, 0.3), 1);
  EXPECT_EQ(BinomialUpperTail(11, 10, 0.3), 0);
  EXPECT_EQ(BinomialLowerTail(0, 10, 0), 1);
  EXPECT_EQ(BinomialUpperTail(1, 10, 0), 0);
  EXPECT_EQ(BinomialUpperTail(10, 10, 1), 1);
  EXPECT_EQ(BinomialLowerTail(9, 10, 1), 0);
  EXPECT_EQ(BinomialLowerTail(0, 0, 0.5), 1);
}

TEST(BinomialTails, SumToOneWithTheTermBetween) {
  for (const double p : {0.001, 0.2, 0.5, 0.93}) {
    for (uint64_t x = 0; x <= 60; ++x) {
      const double both = BinomialLowerTail(x, 60, p) + BinomialUpperTail(x + 1, 60, p);
      EXPECT_NEAR(both, 1, 1e-12) << p << " " << x;
    }
  }
}

// scipy.stats.norm.isf(two_sided / 2), scipy 1.10.
TEST(NormalQuantile, MatchesScipy) {
  ExpectRelative(NormalQuantileTwoSided(0.5), 0.6744897501960817, 1e-12);
  ExpectRelative(NormalQuantileTwoSided(0.05), 1.9599639845400545, 1e-12);
  ExpectRelative(NormalQuantileTwoSided(0.01), 2.575829303548901, 1e-12);
  ExpectRelative(NormalQuantileTwoSided(1e-6), 4.891638475698591, 1e-12);
  ExpectRelative(NormalQuantileTwoSided(1e-9), 6.1094102048693975, 1e-12);
  ExpectRelative(NormalQuantileTwoSided(1e-12), 7.130506848171324, 1e-12);
}

// A source of binomial counts for the tests of FprAgrees.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}

  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  uint64_t Binomial(uint64_t trials, double p) {
    const auto threshold = static_cast<uint64_t>(p * 0x1p64);
    uint64_t successes = 0;
    for (uint64_t i = 0; i < trials; ++i) successes += Next() < threshold ? 1 : 0;
    return successes;
  }
  double Normal() {  // Box and Muller
    return std::sqrt(-2 * std::log1p(-Uniform())) * std::cos(2 * M_PI * Uniform());
  }

 private:
  uint64_t Next() { return Mix64(state_ += 0x9e3779b97f4a7c15); }
  uint64_t state_;
};

// Number of alarms of FprAgrees among `rounds` filters whose own rate is normal around `true_mean`.
uint64_t Alarms(uint64_t rounds, const FprEstimate& estimate, double true_mean, uint64_t queries,
                double false_alarm) {
  Draws draws(42);
  uint64_t alarms = 0;
  for (uint64_t i = 0; i < rounds; ++i) {
    const double rate = true_mean + estimate.instance_sd * draws.Normal();
    alarms += FprAgrees(draws.Binomial(queries, rate), queries, estimate, false_alarm) ? 0 : 1;
  }
  return alarms;
}

TEST(FprAgreesTest, AlarmsNoMoreOftenThanItSays) {
  constexpr uint64_t kRounds = 10000;
  constexpr double kFalseAlarm = 0.01;
  for (const FprEstimate& estimate : {FprEstimate{0.05, 0}, FprEstimate{0.05, 0.005}}) {
    const uint64_t alarms = Alarms(kRounds, estimate, estimate.mean, 2000, kFalseAlarm);
    // Fails with a probability of 1e-9 if the share of alarms is as large as it may be.
    EXPECT_GT(BinomialUpperTail(alarms, kRounds, kFalseAlarm), 1e-9) << alarms;
    EXPECT_GT(alarms, 0u) << "never alarms: the test is blind";
  }
}

TEST(FprAgreesTest, AlarmsWhereTheRateIsAnother) {
  constexpr uint64_t kRounds = 1000;
  // 2000 queries at 0.05 deviate by 9.7; a shift of 50 is five of them on each side of a limit at
  // three: all but 2 % alarm.
  const FprEstimate estimate{0.05, 0};
  EXPECT_GT(Alarms(kRounds, estimate, 0.05 + 0.025, 2000, 0.01), 900u);
  EXPECT_GT(Alarms(kRounds, estimate, 0.05 - 0.025, 2000, 0.01), 900u);
}

TEST(FprAgreesTest, EdgesOfItsRange) {
  EXPECT_TRUE(FprAgrees(0, 1000000, {0, 0}, 1e-9));
  EXPECT_FALSE(FprAgrees(1, 1000000, {0, 0}, 1e-9));
  EXPECT_TRUE(FprAgrees(1000000, 1000000, {1, 0}, 1e-9));
  EXPECT_FALSE(FprAgrees(999999, 1000000, {1, 0}, 1e-9));
  EXPECT_FALSE(FprAgrees(0, 1000000, {0.01, 0}, 1e-9));
  EXPECT_TRUE(FprAgrees(0, 1000000, {0.01, 0.01}, 1e-9));  // the interval of the rate reaches 0
}

}  // namespace
}  // namespace filterbench::theory
