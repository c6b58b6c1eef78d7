// The closed forms against tables that were computed elsewhere
// (filters/testdata/theory_tables.json), against scipy, and against simulation.

#include "filters/theory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "filters/hash.h"

namespace filterbench::theory {
namespace {

nlohmann::json ReferenceRows(const std::string& table) {
  const std::string path = FILTERBENCH_FILTERS_DIRECTORY "/testdata/theory_tables.json";
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return nlohmann::json::parse(file).at(table).at("rows");
}

void ExpectRelative(double actual, double expected, double tolerance) {
  EXPECT_NEAR(actual, expected, tolerance * std::abs(expected))
      << fmt::format("relative deviation {:.3g}", actual / expected - 1);
}

// Putze, Sanders, Singler 2007, eq. 3 as printed: the mean number of set bits where BlockedBloomFpr
// has its law. An independent second implementation, by its own sum.
double PutzeFpr(double bits_per_key, int k, int block_bits) {
  const double load = block_bits / bits_per_key;
  double poisson = std::exp(-load);
  double sum = 0;
  for (int i = 0; i < 4000; ++i) {
    const double set = -std::expm1(k * i * std::log1p(-1.0 / block_bits));
    sum += poisson * std::pow(set, k);
    poisson *= load / (i + 1);
  }
  return sum;
}

TEST(BlockedBloomTheory, MatchesTheExactColumnToAllPrintedDigits) {
  const nlohmann::json rows = ReferenceRows("blocked_inner_model_sensitivity");
  ASSERT_EQ(rows.size(), 6u);
  for (const nlohmann::json& row : rows) {
    SCOPED_TRACE(row.dump());
    ExpectRelative(BlockedBloomFpr(row.at("bits_per_key").get<double>(), row.at("k"), row.at("B")),
                   row.at("exact"), 1e-11);
  }
}

TEST(BlockedBloomTheory, MatchesTheExactColumnForWordsAsBlocks) {
  const nlohmann::json rows = ReferenceRows("register_blocked");
  ASSERT_GT(rows.size(), 50u);
  for (const nlohmann::json& row : rows) {
    SCOPED_TRACE(row.dump());
    ExpectRelative(BlockedBloomFpr(row.at("bits_per_key").get<double>(), row.at("k"), row.at("B")),
                   row.at("replacement_exact"), 1e-11);
  }
}

// The printed table takes the mean number of set bits. x^k is convex: the exact rate lies above it,
// by no more than the spread of the occupancy allows, and not at all for k = 1.
TEST(BlockedBloomTheory, LiesJustAbovePutzesApproximation) {
  const nlohmann::json rows = ReferenceRows("blocked_poisson");
  ASSERT_EQ(rows.size(), 80u);
  for (const nlohmann::json& row : rows) {
    SCOPED_TRACE(row.dump());
    const double bits_per_key = row.at("bits_per_key");
    const int k = row.at("k");
    const int block_bits = row.at("B");
    const double printed = row.at("fpr");
    ExpectRelative(PutzeFpr(bits_per_key, k, block_bits), printed, 1e-11);
    const double exact = BlockedBloomFpr(bits_per_key, k, block_bits);
    if (k == 1) {
      ExpectRelative(exact, printed, 1e-11);
    } else {
      EXPECT_GT(exact, printed);
      // Second-order term of the expansion about the mean s of the set share: its variance is below
      // s (1 - s) / bits, so the excess is below k (k - 1) (1 - s) / (2 s bits), s taken at the
      // mean load; twice that for what the expansion leaves out.
      const double share = -std::expm1(-k / bits_per_key);
      EXPECT_LT(exact / printed - 1, k * (k - 1) * (1 - share) / (share * block_bits));
    }
  }
}

// The list of shared anchors: 4, 6, 8, 10, 12, 16, 20 bits per key -> 3, 4, 5, 6, 8, 9 or 10, 11.
TEST(BlockedBloomTheory, BestNumberOfProbes) {
  EXPECT_EQ(BlockedBloomBestK(4, 512), 3);
  EXPECT_EQ(BlockedBloomBestK(6, 512), 4);
  EXPECT_EQ(BlockedBloomBestK(8, 512), 5);
  EXPECT_EQ(BlockedBloomBestK(10, 512), 6);
  EXPECT_EQ(BlockedBloomBestK(12, 512), 8);
  EXPECT_GE(BlockedBloomBestK(16, 512), 9);
  EXPECT_LE(BlockedBloomBestK(16, 512), 10);
  EXPECT_EQ(BlockedBloomBestK(20, 512), 11);
}

TEST(BlockedBloomTheory, BestNumberOfProbesBeatsAllOthers) {
  for (const int block_bits : {32, 64, 256, 512}) {
    for (const double bits_per_key : {0.5, 1.0, 3.3, 4.0, 8.0, 10.0, 16.0, 24.0, 64.0}) {
      const int best = BlockedBloomBestK(bits_per_key, block_bits);
      for (int k = 1; k <= kMaxBlockedProbes; ++k) {
        EXPECT_LE(BlockedBloomFpr(bits_per_key, best, block_bits),
                  BlockedBloomFpr(bits_per_key, k, block_bits))
            << block_bits << " " << bits_per_key << " " << k;
      }
    }
  }
}

TEST(BlockedBloomTheory, ManyKeysApproachThePoissonLimit) {
  const uint64_t blocks = 1 << 24;
  const auto n = static_cast<uint64_t>(blocks * 51.2);
  ExpectRelative(BlockedBloomFpr(n, blocks, 6, 512).mean, BlockedBloomFpr(10.0, 6, 512), 1e-6);
}

TEST(BlockedBloomTheory, EdgesOfItsRange) {
  EXPECT_EQ(BlockedBloomFpr(0, 5, 6, 512).mean, 0);
  EXPECT_EQ(BlockedBloomFpr(0, 5, 6, 512).instance_sd, 0);
  // One key in one block of one probe: one bit of 512.
  ExpectRelative(BlockedBloomFpr(1, 1, 1, 512).mean, 1.0 / 512, 1e-12);
  // One key, k = 2: both bits alike with probability 1/B, so E[(S/B)^2] = (1/B 1 + (1-1/B) 4) /
  // B^2.
  ExpectRelative(BlockedBloomFpr(1, 1, 2, 64).mean, (1.0 / 64 + 4 * 63.0 / 64) / (64.0 * 64),
                 1e-12);
  // A block that is full denies nothing.
  EXPECT_NEAR(BlockedBloomFpr(1000000, 1, 8, 512).mean, 1, 1e-9);
  EXPECT_LE(BlockedBloomFpr(1000000, 1, 8, 512).mean, 1);
}

// Filters by simulation: their mean rate is the predicted one, and its spread is bounded by the
// predicted deviation without being lost in it. `rate_of(draw)` fills a filter by draw(range) and
// returns its rate.
template <class RateOf>
void ExpectMeanAndSpread(uint64_t seed, const FprEstimate& expected, const RateOf& rate_of) {
  constexpr int kFilters = 2000;
  uint64_t state = seed;
  const auto draw = [&](uint64_t range) {
    state += 0x9e3779b97f4a7c15;
    return FastRange64(Mix64(state), range);
  };
  double sum = 0;
  double sum_square = 0;
  for (int f = 0; f < kFilters; ++f) {
    const double rate = rate_of(draw);
    sum += rate;
    sum_square += rate * rate;
  }
  const double mean = sum / kFilters;
  const double sd = std::sqrt(sum_square / kFilters - mean * mean);
  // Six standard errors: a false alarm of 2e-9, on a fixed seed.
  EXPECT_NEAR(mean, expected.mean, 6 * expected.instance_sd / std::sqrt(double{kFilters}));
  // The deviation of an estimated deviation is sd / sqrt(2 kFilters) = 1.6 %; six of them.
  EXPECT_LT(sd, expected.instance_sd * 1.1);
  EXPECT_GT(sd, expected.instance_sd * 0.2);
}

TEST(BlockedBloomTheory, MeanAndSpreadOfSimulatedFilters) {
  constexpr int kBlocks = 64;
  constexpr int kBlockBits = 512;
  constexpr int kProbes = 6;
  constexpr int kKeys = 3276;
  const FprEstimate expected = BlockedBloomFpr(kKeys, kBlocks, kProbes, kBlockBits);
  ExpectMeanAndSpread(12345, expected, [](const auto& draw) {
    std::vector<uint8_t> bits(kBlocks * kBlockBits);
    for (int key = 0; key < kKeys; ++key) {
      const uint64_t block = draw(kBlocks);
      for (int i = 0; i < kProbes; ++i) bits[block * kBlockBits + draw(kBlockBits)] = 1;
    }
    double rate = 0;
    for (int b = 0; b < kBlocks; ++b) {
      int set = 0;
      for (int i = 0; i < kBlockBits; ++i) set += bits[b * kBlockBits + i];
      rate += std::pow(set / double{kBlockBits}, kProbes) / kBlocks;
    }
    return rate;
  });
}

TEST(SplitBlockTheory, MatchesTheTable) {
  for (const nlohmann::json& row : ReferenceRows("split_block")) {
    SCOPED_TRACE(row.dump());
    const double bits_per_key = row.at("bits_per_key");
    for (const int words : {4, 8, 16}) {
      for (const int word_bits : {32, 64}) {
        const std::string column = fmt::format("fpr_{}x{}", words, word_bits);
        if (!row.contains(column)) continue;
        ExpectRelative(SplitBlockFpr(bits_per_key, words, word_bits), row.at(column), 1e-9);
      }
    }
  }
}

// One probe in each of eight words.
TEST(SplitBlockTheory, MeanAndSpreadOfSimulatedFilters) {
  constexpr int kBlocks = 64;
  constexpr int kWords = 8;
  constexpr int kWordBits = 32;
  constexpr int kKeys = 1638;
  const FprEstimate expected = SplitBlockFpr(kKeys, kBlocks, kWords, kWordBits);
  ExpectMeanAndSpread(54321, expected, [](const auto& draw) {
    std::vector<uint32_t> bits(kBlocks * kWords);
    for (int key = 0; key < kKeys; ++key) {
      const uint64_t block = draw(kBlocks);
      for (int w = 0; w < kWords; ++w) bits[block * kWords + w] |= uint32_t{1} << draw(kWordBits);
    }
    double rate = 0;
    for (int b = 0; b < kBlocks; ++b) {
      double of_block = 1.0 / kBlocks;
      for (int w = 0; w < kWords; ++w) {
        of_block *= std::popcount(bits[b * kWords + w]) / double{kWordBits};
      }
      rate += of_block;
    }
    return rate;
  });
}

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
