// The theory of the classic and of the double-hashing Bloom filter against independently computed
// tables: filters/testdata/theory_tables.json, sections classic_exact_small_m,
// double_hashing_exact_small_m (start and step uniform, the step 0 included) and
// inblock_double_hashing_512; rows of classic_asymptotic are here.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "filters/theory/bloom.h"
#include "filters/theory/test_support.h"

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

TEST(BloomTheoryTest, SmallTablesAreThoseOfTheReference) {
  for (const nlohmann::json& row : test::ReferenceRows("classic_exact_small_m")) {
    const uint64_t bits = row["m"];
    SCOPED_TRACE(row.dump());
    // From 4096 bits on the law of the number of set bits is taken as normal.
    test::ExpectRelative(ClassicBloomFpr(row["n"], bits, row["k"]).mean, row["exact"],
                         bits < 4096 ? 1e-12 : 1e-6);
  }
  for (const nlohmann::json& row : test::ReferenceRows("double_hashing_exact_small_m")) {
    SCOPED_TRACE(row.dump());
    test::ExpectRelative(DoubleHashingFpr(row["n"], row["m"], row["k"], 0).mean,
                         row["fpr_double_hashing"], 1e-10);
    // At 4096 bits the table has the power of the mean, (1 - (1 - 1/m)^(k n))^k.
    if (row["m"] < 4096) {
      test::ExpectRelative(ClassicBloomFpr(row["n"], row["m"], row["k"]).mean,
                           row["fpr_independent"], 1e-12);
    }
  }
  // Double hashing inside a block of B bits, over the Poisson law of its keys.
  for (const nlohmann::json& row : test::ReferenceRows("inblock_double_hashing_512")) {
    SCOPED_TRACE(row.dump());
    const double mean = row["B"].get<double>() / row["bits_per_key"].get<double>();
    double fpr = 0;
    for (int n = 0; n < 40 + 3 * mean; ++n) {
      const double weight = std::exp(n * std::log(mean) - mean - std::lgamma(n + 1.0));
      fpr += weight * DoubleHashingFpr(static_cast<uint64_t>(n), row["B"], row["k"], 0).mean;
    }
    test::ExpectRelative(fpr, row["fpr_inblock_double_hashing"], 1e-9);
  }
}

// Enhanced double hashing exactly, as the mean over the steps of the query: inclusion-exclusion over
// its probes, and one by one over the steps and starts of a key.
double EnhancedByInclusionExclusion(uint64_t n, uint64_t bits, int k) {
  const auto probes_of = [&](uint64_t step) {
    std::vector<uint64_t> probes;
    uint64_t position = 0;
    for (uint64_t i = 1; i <= static_cast<uint64_t>(k); ++i) {
      probes.push_back(position);
      position = (position + step) % bits;
      step = (step + i) % bits;
    }
    return probes;
  };
  std::vector<std::vector<uint64_t>> probes(bits);
  for (uint64_t step = 1; step < bits; ++step) probes[step] = probes_of(step);
  const double per_key = 1.0 / (static_cast<double>(bits) * static_cast<double>(bits - 1));
  const size_t sets = size_t{1} << k;
  std::vector<double> inside(sets);  // probability that a key hits, and only inside the set
  std::vector<uint32_t> hit(bits);   // of the query's probes, by the start of the key
  double sum = 0;
  for (uint64_t query = 1; query < bits; ++query) {
    std::fill(inside.begin(), inside.end(), 0.0);
    for (uint64_t step = 1; step < bits; ++step) {
      std::fill(hit.begin(), hit.end(), 0);
      for (const uint64_t reach : probes[step]) {
        for (int j = 0; j < k; ++j) {
          hit[(probes[query][j] + bits - reach) % bits] |= uint32_t{1} << j;
        }
      }
      for (const uint32_t set : hit) inside[set] += set == 0 ? 0 : per_key;
    }
    for (size_t bit = 1; bit < sets; bit *= 2) {
      for (size_t set = 0; set < sets; ++set) inside[set] += set & bit ? inside[set ^ bit] : 0;
    }
    for (size_t set = 0; set < sets; ++set) {
      const double missed =
          std::pow(1 - (inside[sets - 1] - inside[sets - 1 - set]), static_cast<double>(n));
      sum += std::popcount(set) % 2 == 0 ? missed : -missed;
    }
  }
  return sum / static_cast<double>(bits - 1);
}

TEST(BloomTheoryTest, EnhancedIsOfFirstOrder) {
  // Below the exact mean, by what keys share that are not equal: a part of the excess over
  // independent probes that stays the same, of a rate that the excess is ever less of.
  struct Row {
    uint64_t bits;
    uint64_t n;
    int k;
    double lack;
  };
  for (const Row& row : {Row{130, 13, 6, 0.0111}, Row{260, 26, 6, 0.0094}}) {
    const double exact = EnhancedByInclusionExclusion(row.n, row.bits, row.k);
    EXPECT_NEAR(1 - EnhancedDoubleHashingFpr(row.n, row.bits, row.k).mean / exact, row.lack, 2e-4)
        << row.bits;
  }
}

// Case A2: estimates are in [0, 1] for any number of keys and bits.
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

// Case A5: the steps that are left out are those that return.
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
