#include "filters/bloom/acero.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "filters/test_support.h"
#include "filters/theory/rotated_masks.h"

namespace filterbench {
namespace {

// Arrow's description of its masks, read plainly: one bit per byte, and the standard library's own
// distribution in place of the words that it draws.
std::vector<int> DescribedString() {
  constexpr int kBits = 57;
  std::seed_seq seed{0, 0, 0, 0, 0, 0, 0, 0};
  std::mt19937 engine(seed);
  std::uniform_int_distribution<uint64_t> any;
  const auto between = [&](uint64_t low, uint64_t high) {
    return low + any(engine) % (high - low + 1);
  };
  std::vector<int> string(1024 + kBits - 1);
  const uint64_t in_first = between(4, 5);
  for (uint64_t set = 0; set < in_first;) {
    int& bit = string[between(0, kBits - 1)];
    set += bit == 0 ? 1 : 0;
    bit = 1;
  }
  for (size_t i = kBits; i < string.size(); ++i) {
    int others = 0;  // in the window that ends here, without this bit
    for (size_t j = i - kBits + 1; j < i; ++j) others += string[j];
    if (others == 3) {
      string[i] = 1;
    } else if (others < 5) {
      string[i] = between(0, 2 * kBits - 1) < 9 ? 1 : 0;
    }
  }
  return string;
}

TEST(AceroBloomTest, MasksAreThoseOfTheDescription) {
  const std::vector<int> described = DescribedString();
  for (uint64_t i = 0; i < 1024; ++i) {
    const uint64_t mask = AceroScheme::MaskFrom(AceroScheme::MaskString(), i);
    EXPECT_GE(std::popcount(mask), 4);
    EXPECT_LE(std::popcount(mask), 5);
    for (int bit = 0; bit < 57; ++bit) {
      ASSERT_EQ(static_cast<int>(mask >> bit & 1), described[i + bit]) << i << " " << bit;
    }
    EXPECT_EQ(mask >> 57, 0u);
  }
}

// The description's distribution is the library's: these are the words that it draws with
// libstdc++.
TEST(AceroBloomTest, TheStringIsTheSameEverywhere) {
  uint64_t words[3];
  std::memcpy(words, AceroScheme::MaskString(), sizeof(words));
  EXPECT_EQ(words[0], 0x4000080001140020u);
  EXPECT_EQ(words[1], 0x0802000000422000u);
  EXPECT_EQ(words[2], 0x0040200000808400u);
}

TEST(AceroBloomTest, BitsAreThoseOfTheDescription) {
  const std::vector<uint64_t> hashes = test::TestHashes(0, 1000);
  const auto filter = AceroBloom::Build(hashes, {});
  ASSERT_TRUE(filter) << filter.error();
  ASSERT_EQ(filter->Table().size(), 1024u);  // 8000 bits, rounded up to 8192
  std::vector<uint64_t> expected(128);
  for (const uint64_t hash : hashes) {
    const uint64_t mask = AceroScheme::MaskFrom(AceroScheme::MaskString(), hash % 1024);
    const uint64_t by = hash / 1024 % 64;
    expected[hash / 65536 % 128] |= by == 0 ? mask : mask << by | mask >> (64 - by);
  }
  EXPECT_TRUE(test::EqualBytes(filter->Table(), std::as_bytes(std::span(expected))));
}

// Case A10: what was allocated counts, not what was asked for.
TEST(AceroBloomTest, SizesArePowersOfTwo) {
  const auto blocks = [](uint64_t n) { return AceroBloom::BlocksFor(n, {}); };
  EXPECT_EQ(blocks(0), 8u);
  EXPECT_EQ(blocks(64), 8u);
  EXPECT_EQ(blocks(65), 16u);
  EXPECT_EQ(blocks(uint64_t{1} << 20), uint64_t{1} << 17);
  EXPECT_EQ(blocks((uint64_t{1} << 20) + 1), uint64_t{1} << 18);
}

// A few masks whose overlaps can be counted by hand.
TEST(RotatedMaskTheory, OneBitAndTwoBits) {
  const std::vector<uint64_t> one_bit = {1};
  const theory::RotatedMaskLaw single(one_bit);
  // A word with one random bit per key: the share of set bits.
  for (const uint64_t n : {1, 5, 100}) {
    EXPECT_NEAR(single.Fpr(n, 1).mean, 1 - std::pow(63.0 / 64, static_cast<double>(n)), 1e-12);
  }
  // Neighbouring bits: a query is covered by its own mask, or by its two neighbours together.
  const std::vector<uint64_t> pair = {3};
  const theory::RotatedMaskLaw neighbours(pair);
  EXPECT_NEAR(neighbours.Fpr(1, 1).mean, 1.0 / 64, 1e-15);
  EXPECT_NEAR(neighbours.Fpr(2, 1).mean, 1 - std::pow(63.0 / 64, 2) + 2.0 / 64 / 64, 1e-12);
}

}  // namespace
}  // namespace filterbench
