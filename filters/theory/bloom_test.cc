// The theory of the classic and of the double-hashing Bloom filter against independently computed
// tables: rows of the project's reference file theory_tables.json, sections classic_asymptotic,
// classic_exact_small_m and double_hashing_exact_small_m.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "filters/theory/bloom.h"

namespace filterbench::theory {
namespace {

TEST(BloomTheoryTest, AsymptoticRateAndBestK) {
  // classic_asymptotic: (1 - exp(-k / c))^k, Bloom 1970.
  struct Row {
    double bits_per_key;
    int k;
    double fpr;
    bool is_best_k;
  };
  for (const Row& row : std::vector<Row>{{4, 2, 0.15481812174617549, false},
                                         {4, 3, 0.14689159766038104, true},
                                         {8, 5, 0.021679217053751712, false},
                                         {8, 6, 0.021577141463219263, true},
                                         {10, 6, 0.008436209268438546, false},
                                         {10, 7, 0.008193722065862417, true},
                                         {12, 8, 0.003142350345702593, true},
                                         {12, 9, 0.0031695007824763294, false},
                                         {20, 13, 6.792379529174887e-05, false},
                                         {20, 14, 6.713708129260065e-05, true}}) {
    EXPECT_NEAR(ClassicBloomFpr(row.bits_per_key, row.k) / row.fpr, 1, 1e-12)
        << row.bits_per_key << " bits per key, k = " << row.k;
    EXPECT_EQ(ClassicBloomBestK(row.bits_per_key) == row.k, row.is_best_k);
  }
  EXPECT_EQ(ClassicBloomBestK(0.5), 1);
  EXPECT_EQ(ClassicBloomBestK(128), kMaxClassicProbes);
}

TEST(BloomTheoryTest, ClassicInSmallTables) {
  // classic_exact_small_m: E[(X / m)^k], X by the occupancy law.
  struct Row {
    uint64_t bits;
    uint64_t n;
    int k;
    double fpr;
  };
  for (const Row& row : std::vector<Row>{{32, 2, 3, 0.005397378944508091},
                                         {32, 3, 3, 0.01588965317900845},
                                         {64, 10, 3, 0.0542667817000693},
                                         {64, 6, 6, 0.007083909372321105},
                                         {128, 12, 7, 0.006408253502716436},
                                         {256, 25, 7, 0.007559744410324251},
                                         {512, 51, 6, 0.008408666280891918},
                                         {1024, 102, 7, 0.00810967920761451}}) {
    EXPECT_NEAR(ClassicBloomFpr(row.n, row.bits, row.k).mean / row.fpr, 1, 1e-12) << row.bits;
  }
  // The first size at which the law of X is taken as normal.
  EXPECT_NEAR(ClassicBloomFpr(409, 4096, 7).mean / 0.008153412500073844, 1, 1e-6);
}

TEST(BloomTheoryTest, ClassicMeetsItsLimits) {
  // Continuous where the computation changes: at equal n, one bit more lowers the rate by k / m.
  const FprEstimate exact = ClassicBloomFpr(204, 4095, 14);
  const FprEstimate normal = ClassicBloomFpr(204, 4096, 14);
  EXPECT_NEAR(exact.mean / normal.mean, 1 + 14 * 0.7 / 4096, 14 * 0.1 / 4096);
  EXPECT_NEAR(exact.instance_sd / normal.instance_sd, 1, 0.02);
  EXPECT_NEAR(ClassicBloomFpr(100'000'000, 1'000'000'000, 7).mean / ClassicBloomFpr(10.0, 7), 1,
              1e-6);
  EXPECT_EQ(ClassicBloomFpr(0, 1, 7).mean, 0);
  EXPECT_EQ(ClassicBloomFpr(1, 1, 1).mean, 1);
  for (int k : {1, 7, 64}) {
    for (uint64_t bits : {uint64_t{1}, uint64_t{2'900'000'000}, uint64_t{1} << 40}) {
      for (uint64_t n : {uint64_t{1}, uint64_t{1'000}, (uint64_t{1} << 31) + 1}) {
        if (bits == 1 && n > 1000) continue;
        const FprEstimate fpr = ClassicBloomFpr(n, bits, k);
        EXPECT_GE(fpr.mean, 0);
        EXPECT_LE(fpr.mean, 1);
        EXPECT_TRUE(std::isfinite(fpr.instance_sd));
      }
    }
  }
}

TEST(BloomTheoryTest, DoubleHashingInSmallTables) {
  // double_hashing_exact_small_m: a and b uniform, b = 0 included.
  struct Row {
    uint64_t bits;
    uint64_t n;
    int k;
    double fpr;
  };
  for (const Row& row : std::vector<Row>{{64, 6, 6, 0.021845764800125136},
                                         {64, 6, 7, 0.026322331812122825},
                                         {61, 6, 7, 0.021834933015402097},
                                         {256, 25, 6, 0.011715009323901593},
                                         {257, 25, 6, 0.01031602864253102},
                                         {257, 25, 7, 0.0107080476251612},
                                         {512, 51, 7, 0.010789987217093353},
                                         {509, 50, 6, 0.009253207378195148},
                                         {1024, 102, 6, 0.009347242702512195},
                                         {1024, 102, 7, 0.009416630731796221},
                                         {1021, 102, 7, 0.009077429077148032},
                                         {4096, 409, 6, 0.008646820685105703},
                                         {32, 3, 3, 0.023887225514044985},
                                         {64, 5, 3, 0.013129516137222349}}) {
    EXPECT_NEAR(DoubleHashingFpr(row.n, row.bits, row.k, 0).mean / row.fpr, 1, 1e-10)
        << row.bits << " bits, k = " << row.k;
  }
}

TEST(BloomTheoryTest, EstimatesAreRatesEverywhere) {
  for (const uint64_t bits : {uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{60}, uint64_t{4096},
                              uint64_t{1} << 20, uint64_t{1} << 40}) {
    for (const uint64_t n : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{1000}, bits / 10}) {
      for (const int k : {1, 2, 7, 13, 64}) {
        for (const FprEstimate& fpr :
             {DoubleHashingFpr(n, bits, k, ForbiddenStepDivisor(bits, k)),
              EnhancedDoubleHashingFpr(n, bits, k), ClassicBloomFpr(n, bits, k)}) {
          EXPECT_TRUE(fpr.mean >= 0 && fpr.mean <= 1) << n << ' ' << bits << ' ' << k;
          EXPECT_TRUE(fpr.instance_sd >= 0 && fpr.instance_sd <= 1) << n << ' ' << bits << ' ' << k;
        }
      }
    }
  }
}

// All keys and queries of a small table, one by one.
double DoubleHashingByEnumeration(uint64_t n, uint64_t bits, int k, uint64_t forbidden_divisor) {
  std::vector<std::vector<bool>> keys;
  for (uint64_t b = 0; b < bits; ++b) {
    if (forbidden_divisor != 0 && b % (bits / forbidden_divisor) == 0) continue;
    for (uint64_t a = 0; a < bits; ++a) {
      std::vector<bool> set(bits);
      for (int i = 0; i < k; ++i) set[(a + static_cast<uint64_t>(i) * b) % bits] = true;
      keys.push_back(set);
    }
  }
  const double weight = std::pow(static_cast<double>(keys.size()), -static_cast<double>(n + 1));
  double fpr = 0;
  std::vector<size_t> chosen(n, 0);
  while (true) {
    std::vector<bool> table(bits);
    for (const size_t key : chosen) {
      for (uint64_t i = 0; i < bits; ++i) table[i] = table[i] || keys[key][i];
    }
    for (const auto& query : keys) {
      bool positive = true;
      for (uint64_t i = 0; i < bits; ++i) positive = positive && (!query[i] || table[i]);
      fpr += positive ? weight : 0;
    }
    size_t digit = 0;
    while (digit < n && ++chosen[digit] == keys.size()) chosen[digit++] = 0;
    if (digit == n) return fpr;
  }
}

TEST(BloomTheoryTest, DoubleHashingEqualsEnumeration) {
  for (uint64_t bits : {5, 6, 8, 9}) {
    for (int k : {1, 3, 4}) {
      for (uint64_t divisor : {uint64_t{0}, uint64_t{1}, ForbiddenStepDivisor(bits, k)}) {
        EXPECT_NEAR(DoubleHashingFpr(2, bits, k, divisor).mean,
                    DoubleHashingByEnumeration(2, bits, k, divisor), 1e-12)
            << bits << " bits, k = " << k << ", divisor " << divisor;
      }
    }
  }
}

TEST(BloomTheoryTest, ForbiddenStepsCoverAllThatReturn) {
  EXPECT_EQ(ForbiddenStepDivisor(1024, 7), 4u);
  EXPECT_EQ(ForbiddenStepDivisor(1021, 7), 1u);
  EXPECT_EQ(ForbiddenStepDivisor(1000, 7), 20u);
  EXPECT_EQ(ForbiddenStepDivisor(60, 7), 1u);  // would forbid all
  EXPECT_EQ(ForbiddenStepDivisor(uint64_t{1} << 40, 64), 32u);
}

TEST(BloomTheoryTest, GuardedPenaltyAndItsLimit) {
  // At 512 bits, k = 6, 10 bits per key, uniform steps cost a factor of 1.24; without the steps
  // that return it is 1.09.
  const double classic = ClassicBloomFpr(51, 512, 6).mean;
  EXPECT_NEAR(DoubleHashingFpr(51, 512, 6, 0).mean / classic, 1.24, 0.005);
  EXPECT_NEAR(DoubleHashingFpr(51, 512, 6, ForbiddenStepDivisor(512, 6)).mean / classic, 1.0927,
              0.0005);
  // Kirsch and Mitzenmacher: no penalty in the limit.
  for (int k : {7, 14, 24}) {
    const uint64_t bits = uint64_t{1} << 36;
    const uint64_t n = bits * 7 / static_cast<uint64_t>(10 * k);
    EXPECT_NEAR(DoubleHashingFpr(n, bits, k, ForbiddenStepDivisor(bits, k)).mean /
                    ClassicBloomFpr(n, bits, k).mean,
                1, 1e-4);
  }
}

TEST(BloomTheoryTest, FirstOrderMeetsTheExactExcess) {
  // The excess over the classic rate times m, just below 2^16 bits exact, just above of first
  // order.
  for (const int k : {7, 12, 14, 16}) {
    const auto excess_times_bits = [k](uint64_t bits) {
      const double m = static_cast<double>(bits);
      const auto n = static_cast<uint64_t>(std::numbers::ln2 * m / k);
      const double fpr = DoubleHashingFpr(n, bits, k, ForbiddenStepDivisor(bits, k)).mean;
      return (fpr / ClassicBloomFpr(n, bits, k).mean - 1) * m;
    };
    const uint64_t boundary = uint64_t{1} << 16;
    EXPECT_NEAR(excess_times_bits(boundary + 840) / excess_times_bits(boundary - 840), 1, 0.1)
        << "k = " << k;
  }
}

}  // namespace
}  // namespace filterbench::theory
