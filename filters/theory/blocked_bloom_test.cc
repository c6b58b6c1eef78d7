// The closed forms of blocked Bloom filters against independent tables and against simulation.

#include "filters/theory/blocked_bloom.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "filters/hash.h"
#include "filters/theory/test_support.h"

namespace filterbench::theory {
namespace {

using test::ExpectRelative;
using test::ReferenceRows;

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

}  // namespace
}  // namespace filterbench::theory
