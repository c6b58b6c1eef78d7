#include "filters/bloom/two_choice_blocked.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "filters/bloom/blocked.h"
#include "filters/test_support.h"

namespace filterbench {
namespace {

static_assert(DynamicFilter<TwoChoiceBlocked>);
static_assert(!StreamingFilter<TwoChoiceBlocked>, "its bytes depend on the order of the keys");

std::vector<int> SetBitsOfBlocks(std::span<const std::byte> table) {
  std::vector<int> set(table.size() / 64);
  for (size_t i = 0; i < table.size(); ++i) {
    set[i / 64] += std::popcount(static_cast<uint8_t>(table[i]));
  }
  return set;
}

double Deviation(const std::vector<int>& values) {
  double sum = 0;
  double squares = 0;
  for (const int v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  const auto n = static_cast<double>(values.size());
  return std::sqrt(squares / n - sum / n * (sum / n));
}

// Case B1: batches and single keys, on every target.
TEST(TwoChoiceBlockedTest, BatchesAndSingleKeysLeaveTheSameBytesOnEveryTarget) {
  for (const auto& [name, params] : test::UsualParams<TwoChoiceBlocked>(1)) {
    for (const size_t n : {size_t{0}, size_t{1}, size_t{63}, size_t{65}, size_t{1000},
                           test::KeysBeyondCache<TwoChoiceBlocked>(params)}) {
      SCOPED_TRACE(fmt::format("{} n={}", name, n));
      const std::vector<uint64_t> hashes = test::TestHashes(0, n);
      const auto built = TwoChoiceBlocked::Build(hashes, params);
      ASSERT_TRUE(built) << built.error();
      auto single = TwoChoiceBlocked::Create(n, params);
      ASSERT_TRUE(single) << single.error();
      for (const uint64_t hash : hashes) single->Insert(hash);
      EXPECT_TRUE(test::EqualBytes(single->Table(), built->Table()));
      EXPECT_EQ(single->Serialize(), built->Serialize());
      for (const auto& kernel : TwoChoiceBlocked::Kernels()) {
        if (kernel.insert == nullptr) continue;
        const auto empty = TwoChoiceBlocked::Create(n, params);
        ASSERT_TRUE(empty) << empty.error();
        auto* table = const_cast<std::byte*>(empty->Table().data());
        kernel.insert(empty->view(), table, hashes.data(), hashes.size());
        EXPECT_TRUE(test::EqualBytes(empty->Table(), built->Table())) << kernel.target;
      }
    }
  }
}

// Case B4: a filter that could choose the other block the second time.
TEST(TwoChoiceBlockedTest, WhatIsContainedChangesNothing) {
  const std::vector<uint64_t> hashes = test::TestHashes(0, 5000);
  auto filter = TwoChoiceBlocked::Build(hashes, {});
  ASSERT_TRUE(filter) << filter.error();
  const std::vector<std::byte> before(filter->Table().begin(), filter->Table().end());
  for (const uint64_t hash : hashes) filter->Insert(hash);
  EXPECT_TRUE(test::EqualBytes(filter->Table(), before));
}

TEST(TwoChoiceBlockedTest, TakesTheCheaperBlock) {
  // Fewer new bits, unless the block is fuller by far; nothing new is free.
  using theory::TwoChoiceCost;
  EXPECT_EQ(TwoChoiceCost(8, 512, 0), 0u);
  EXPECT_LT(TwoChoiceCost(8, 200, 3), TwoChoiceCost(8, 200, 4));
  EXPECT_LT(TwoChoiceCost(8, 210, 3), TwoChoiceCost(8, 200, 4));
  EXPECT_GT(TwoChoiceCost(8, 250, 3), TwoChoiceCost(8, 200, 4));

  alignas(64) std::byte first[64] = {};
  alignas(64) std::byte second[64] = {};
  const auto set_bits = [](const std::byte* block) {
    return SetBitsOfBlocks({block, 64})[0];
  };
  TwoChoiceBlocked::InsertIntoOneOf(first, second, 0x12345678, 8);
  EXPECT_GT(set_bits(first), 0) << "the first of equals";
  EXPECT_EQ(set_bits(second), 0);
  TwoChoiceBlocked::InsertIntoOneOf(first, second, 0x9abcdef1, 8);
  EXPECT_GT(set_bits(second), 0) << "the emptier one";
  const int set = set_bits(second);
  // The same key with the blocks changing places: it is there already.
  TwoChoiceBlocked::InsertIntoOneOf(second, first, 0x12345678, 8);
  EXPECT_EQ(set_bits(second), set);
}

TEST(TwoChoiceBlockedTest, LoadsAreEven) {
  const std::vector<uint64_t> hashes = test::TestHashes(0, 100000);
  const auto two = TwoChoiceBlocked::Build(hashes, {.k = 6});
  const auto one = BlockedBloom::Build(hashes, {.k = 6});
  ASSERT_TRUE(two && one);
  // By the laws 8 against 21 bits.
  EXPECT_LT(Deviation(SetBitsOfBlocks(two->Table())),
            0.6 * Deviation(SetBitsOfBlocks(one->Table())));
}

TEST(TwoChoiceBlockedTest, BothBlocksAreUniformAndUnrelated) {
  constexpr uint64_t kBins = 16;
  constexpr int kHashes = 1 << 20;
  for (const uint64_t blocks : {uint64_t{16}, uint64_t{1000003}, TwoChoiceBlocked::kMaxBlocks}) {
    std::vector<int> pairs(kBins * kBins);
    for (int i = 0; i < kHashes; ++i) {
      const uint64_t hash = test::TestHash(i);
      const uint64_t first = TwoChoiceBlocked::FirstBlock(hash, blocks);
      const uint64_t second = TwoChoiceBlocked::SecondBlock(hash, blocks);
      ASSERT_LT(first, blocks);
      ASSERT_LT(second, blocks);
      ++pairs[first * kBins / blocks * kBins + second * kBins / blocks];
    }
    // A bin is Binomial(kHashes, 1 / 256): 7 deviations, a false alarm of 2e-9 in all.
    const double mean = static_cast<double>(kHashes) / (kBins * kBins);
    for (const int pair : pairs) EXPECT_NEAR(pair, mean, 7 * std::sqrt(mean));
  }
}

// The rates of 200 filters of 1000 keys, from how many bits their blocks have: mean and deviation
// are those that theory says of itself.
TEST(TwoChoiceTheory, AgreesWithSimulation) {
  constexpr int kFilters = 200;
  constexpr uint64_t kKeys = 1000;
  double sum = 0;
  double squares = 0;
  FprEstimate law;
  for (int f = 0; f < kFilters; ++f) {
    const auto filter = TwoChoiceBlocked::Build(test::TestHashes(f * kKeys, kKeys), {.k = 8});
    ASSERT_TRUE(filter) << filter.error();
    law = *filter->ExpectedFpr();
    const std::vector<int> set = SetBitsOfBlocks(filter->Table());
    const auto blocks = static_cast<double>(set.size());
    double in_block = 0;
    double in_block_square = 0;
    for (const int bits : set) {
      const double rate = std::pow(bits / 512.0, 8);
      in_block += rate / blocks;
      in_block_square += rate * rate / blocks;
    }
    // Two blocks that are one with probability 1 / blocks and independent otherwise.
    const double both = (in_block * in_block * blocks - in_block_square) / (blocks - 1);
    const double rate = in_block / blocks + (1 - 1 / blocks) * (2 * in_block - both);
    sum += rate;
    squares += rate * rate;
  }
  const double mean = sum / kFilters;
  const double deviation = std::sqrt(squares / kFilters - mean * mean);
  // The mean is low by 0.6 % with 20 blocks; its own error is 0.3 %.
  EXPECT_NEAR(mean / law.mean, 1, 0.02);
  EXPECT_NEAR(deviation / law.instance_sd, 1, 0.3);
}

TEST(TwoChoiceTheory, TheTableOfProbesIsThatOfTheLaw) {
  for (const double bits : {4.0, 10.0, 16.5}) {
    const int best = theory::TwoChoiceBestK(bits);
    const double rate = theory::TwoChoiceFpr(bits, best);
    EXPECT_LE(rate, theory::TwoChoiceFpr(bits, best - 1)) << bits;
    EXPECT_LE(rate, theory::TwoChoiceFpr(bits, best + 1)) << bits;
  }
  EXPECT_EQ(theory::TwoChoiceBestK(0.5), 1);
  EXPECT_EQ(theory::TwoChoiceBestK(128), theory::kMaxTwoChoiceProbes);
}

TEST(TwoChoiceTheory, OneBlockIsABlockedFilter) {
  EXPECT_DOUBLE_EQ(theory::TwoChoiceFpr(40, 1, 6).mean,
                   theory::BlockedBloomFpr(40, 1, 6, 512).mean);
  EXPECT_EQ(theory::TwoChoiceFpr(0, 5, 6).mean, 0);
}

}  // namespace
}  // namespace filterbench
