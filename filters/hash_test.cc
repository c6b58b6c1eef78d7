// Keys to hashes, and hashes to positions. The mapping is tested at sizes whose tables nobody could
// allocate here.

#include "filters/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace filterbench {
namespace {

constexpr int kBins = 64;
// Upper quantile of chi-square with 63 degrees of freedom: scipy.stats.chi2.isf(1e-9, 63).
constexpr double kChiSquareLimit = 155.074;

double ChiSquare(const std::array<uint64_t, kBins>& counts, uint64_t total) {
  const double expected = static_cast<double>(total) / kBins;
  double sum = 0;
  for (const uint64_t count : counts) {
    const double deviation = static_cast<double>(count) - expected;
    sum += deviation * deviation / expected;
  }
  return sum;
}

class FastRangeTest : public ::testing::TestWithParam<uint64_t> {};

// Case A1: ranges beyond 2^32 are reached to their end, and evenly by high and by low bits.
TEST_P(FastRangeTest, ReachesAllOfTheRangeEvenly) {
  const uint64_t range = GetParam();
  constexpr uint64_t kHashes = 1000000;
  std::array<uint64_t, kBins> by_position{};
  std::array<uint64_t, kBins> by_low_bits{};
  uint64_t last = 0;
  for (uint64_t i = 0; i < kHashes; ++i) {
    const uint64_t position = FastRange64(Mix64(i + 1), range);
    ASSERT_LT(position, range);
    last = std::max(last, position);
    const auto wide = static_cast<unsigned __int128>(position);
    ++by_position[static_cast<size_t>(wide * kBins / range)];
    ++by_low_bits[position % kBins];
  }
  // All of a million hashes below 0.999 of the range: (0.999)^1e6 = e^-1000.
  EXPECT_GT(static_cast<double>(last), 0.999 * static_cast<double>(range));
  // Each fails with a probability of 1e-9 for hashes that are uniform.
  EXPECT_LT(ChiSquare(by_position, kHashes), kChiSquareLimit);
  EXPECT_LT(ChiSquare(by_low_bits, kHashes), kChiSquareLimit) << "some positions are never reached";
}

INSTANTIATE_TEST_SUITE_P(LargeRanges, FastRangeTest,
                         ::testing::Values((uint64_t{1} << 33) + 9, uint64_t{3} << 30,
                                           (uint64_t{1} << 32) - 1, uint64_t{1} << 32,
                                           (uint64_t{1} << 32) + 1, uint64_t{1} << 40));

// The bug that this guards against, to see that the test sees it: the range taken from half of the
// hash leaves gaps once it passes 2^32.
// Case A1: the fault itself is seen by that test.
TEST(FastRangeTest, AMappingFrom32BitsWouldBeSeen) {
  const uint64_t range = (uint64_t{1} << 40);
  std::array<uint64_t, kBins> by_low_bits{};
  for (uint64_t i = 0; i < 1000000; ++i) {
    ++by_low_bits[((Mix64(i + 1) >> 32) * range >> 32) % kBins];
  }
  EXPECT_GT(ChiSquare(by_low_bits, 1000000), kChiSquareLimit);
}

TEST(FastRangeTest, EdgesOfItsRange) {
  EXPECT_EQ(FastRange64(0, 10), 0u);
  EXPECT_EQ(FastRange64(UINT64_MAX, 10), 9u);
  EXPECT_EQ(FastRange64(UINT64_MAX, 1), 0u);
  EXPECT_EQ(FastRange64(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
  EXPECT_EQ(FastRange64(uint64_t{1} << 63, 3), 1u);
  static_assert(MulHigh64(uint64_t{1} << 32, uint64_t{1} << 32) == 1);
}

TEST(Mix64Test, MatchesTheFinalizerOfMurmurHash3) {
  // 0 is the fixed point of fmix64; the others are its definition in Python's integers.
  static_assert(Mix64(0) == 0);
  EXPECT_EQ(Mix64(1), 0xb456bcfc34c2cb2cu);
  EXPECT_EQ(Mix64(UINT64_MAX), 0x64b5720b4b825f21u);
}

TEST(Mix64Test, FlipsHalfOfTheBits) {
  for (int bit = 0; bit < 64; ++bit) {
    uint64_t flipped = 0;
    constexpr int kHashes = 1000;
    for (uint64_t i = 0; i < kHashes; ++i) {
      const uint64_t x = Mix64(i + 77);
      flipped +=
          static_cast<uint64_t>(__builtin_popcountll(Mix64(x) ^ Mix64(x ^ uint64_t{1} << bit)));
    }
    // 64000 bits deviate by sqrt(64000) / 2 = 126 if they flip independently; six of them, and as
    // much again since they do not quite.
    EXPECT_NEAR(static_cast<double>(flipped), 32000, 1500) << bit;
  }
}

// XXH3-64 of the first bytes of the buffer of xxHash's own sanity test (a byte is the top of
// 2654435761 times powers of 11400714785074694797), with the values that test states for release
// 0.8: seed 0, and the seed 11400714785074694797.
TEST(HashBytesTest, MatchesTheValuesOfXxhashItself) {
  constexpr uint64_t kPrime64 = 11400714785074694797ULL;
  std::string buffer;
  for (uint64_t generator = 2654435761ULL; buffer.size() < 32; generator *= kPrime64) {
    buffer.push_back(static_cast<char>(generator >> 56));
  }
  struct Row {
    size_t length;
    uint64_t seed;
    uint64_t hash;
  };
  for (const Row& row : std::vector<Row>{{0, 0, 0x2d06800538d394c2},
                                         {0, kPrime64, 0xa8a6b918b2f0364a},
                                         {1, 0, 0xc44bdff4074eecdb},
                                         {1, kPrime64, 0x032be332dd766ef8},
                                         {6, 0, 0x27b56a84cd2d7325},
                                         {6, kPrime64, 0x84589c116ab59ab9},
                                         {12, 0, 0xa713daf0dfbb77e7},
                                         {12, kPrime64, 0xe7303e1b2336de0e},
                                         {24, 0, 0xa3fe70bf9d3510eb},
                                         {24, kPrime64, 0x850e80fc35bdd690}}) {
    EXPECT_EQ(HashBytes({buffer.data(), row.length}, row.seed), row.hash)
        << row.length << " " << row.seed;
  }
}

TEST(HashU64Test, IsTheHashOfTheLittleEndianBytes) {
  for (const uint64_t key : {uint64_t{0}, uint64_t{1}, uint64_t{0x0123456789abcdef}, UINT64_MAX}) {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{99}, UINT64_MAX}) {
      char bytes[8];
      for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(key >> (8 * i));
      EXPECT_EQ(HashU64(key, seed), HashBytes({bytes, sizeof(bytes)}, seed));
    }
  }
  EXPECT_NE(HashU64(1, 0), HashU64(1, 1)) << "the seed is not used";
}

TEST(HashU64Test, SequentialKeysDoNotCollide) {
  std::unordered_set<uint64_t> hashes;
  for (uint64_t key = 0; key < 100000; ++key) hashes.insert(HashU64(key, 5));
  // By chance: 1e10 / 2^65, 3e-10.
  EXPECT_EQ(hashes.size(), 100000u);
}

TEST(ByteKeysTest, SlicesItsArena) {
  const std::string bytes = "abcde";
  const std::vector<uint64_t> offsets = {0, 1, 1, 5};
  const ByteKeys keys{bytes.data(), offsets.data(), 3};
  EXPECT_EQ(keys[0], "a");
  EXPECT_EQ(keys[1], "");
  EXPECT_EQ(keys[2], "bcde");
}

}  // namespace
}  // namespace filterbench
