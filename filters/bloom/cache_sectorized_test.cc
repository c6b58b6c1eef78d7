#include "filters/bloom/cache_sectorized.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "filters/test_support.h"
#include "filters/test_wire.h"
#include "filters/theory/blocked_bloom.h"

namespace filterbench {
namespace {

using Groups = CacheSectorizedScheme::Groups;

TEST(CacheSectorizedTest, AKeyHasItsBitsInOneWordOfEachGroup) {
  for (const Groups groups : {Groups::k2, Groups::k4}) {
    const int z = groups == Groups::k2 ? 2 : 4;
    const auto k = static_cast<uint32_t>(4 * z);
    std::vector<int> words_chosen(8);
    constexpr int kKeys = 4000;
    for (int i = 0; i < kKeys; ++i) {
      const uint64_t hash = test::TestHash(i);
      const auto filter = CacheSectorized::Build({&hash, 1}, {.groups = groups, .k = k});
      ASSERT_TRUE(filter) << filter.error();
      uint64_t words[8];
      ASSERT_EQ(filter->Table().size(), sizeof(words));
      std::memcpy(words, filter->Table().data(), sizeof(words));
      for (int group = 0; group < z; ++group) {
        int used = 0;
        for (int word = group * 8 / z; word < (group + 1) * 8 / z; ++word) {
          if (words[word] == 0) continue;
          ++used;
          ++words_chosen[word];
          EXPECT_LE(std::popcount(words[word]), 4);
        }
        EXPECT_EQ(used, 1) << "group " << group;
      }
    }
    // Binomial(kKeys, z / 8): 7 deviations, a false alarm of 3e-11 in all.
    const double p = z / 8.0;
    for (const int chosen : words_chosen) {
      EXPECT_NEAR(chosen, kKeys * p, 7 * std::sqrt(kKeys * p * (1 - p)));
    }
  }
}

TEST(CacheSectorizedTest, FieldsOfAGroupAreABijectionOfHalfTheHash) {
  // Odd multipliers and xor-shifts are; a sample that collides as random functions do not.
  for (uint32_t group = 0; group < 4; ++group) {
    std::vector<uint32_t> fields;
    for (uint32_t i = 0; i < 1 << 20; ++i) {
      fields.push_back(CacheSectorizedScheme::Fields(i * uint64_t{4093}, group));
    }
    std::sort(fields.begin(), fields.end());
    EXPECT_EQ(std::unique(fields.begin(), fields.end()), fields.end());
  }
}

TEST(CacheSectorizedTest, RefusesWhatIsNoMultipleOfTheGroups) {
  for (const auto& [groups, k] : std::vector<std::pair<Groups, uint32_t>>{
           {Groups::k2, 7}, {Groups::k2, 12}, {Groups::k4, 6}}) {
    const auto filter = CacheSectorized::Create(100, {.groups = groups, .k = k});
    ASSERT_FALSE(filter);
    EXPECT_EQ(filter.error().rfind("k: ", 0), 0u) << filter.error();
  }
  EXPECT_TRUE(CacheSectorized::Create(100, {.groups = Groups::k2, .k = 10}));
  EXPECT_TRUE(CacheSectorized::Create(100, {.groups = Groups::k4, .k = 20}));
}

// A wire of such parameters is refused as well: the checksum does not stop who writes one.
TEST(CacheSectorizedTest, DeserializeRefusesThemToo) {
  const auto filter = CacheSectorized::Create(100, {.k = 4});
  ASSERT_TRUE(filter) << filter.error();
  std::vector<std::byte> wire = filter->Serialize();
  constexpr size_t kHeader = 64;
  constexpr size_t kOffsetOfK = kHeader + 8 + 8 + 8;  // after seed, bits_per_key, groups
  const uint64_t k = 5;
  std::memcpy(wire.data() + kOffsetOfK, &k, sizeof(k));
  test::FixChecksum(wire);
  const auto read = CacheSectorized::Deserialize(wire);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().find("multiple of groups"), std::string::npos) << read.error();
}

// One key: a query passes a group if it chooses the same word and its bits fall on the key's.
TEST(CacheSectorizedTheory, OneKeyByHand) {
  // Two bits of the key in 64: they coincide with probability 1/64. One bit asked for.
  EXPECT_NEAR(theory::CacheSectorizedFpr(1, 1, 2, 1).mean, std::pow(1.0 / 4 / 64, 2), 1e-15);
  const double two = 1.0 / 64 * std::pow(1.0 / 64, 2) + 63.0 / 64 * std::pow(2.0 / 64, 2);
  EXPECT_NEAR(theory::CacheSectorizedFpr(1, 1, 4, 2).mean, std::pow(two / 2, 4), 1e-15);
  EXPECT_NEAR(theory::CacheSectorizedFpr(1, 3, 4, 2).mean, std::pow(two / 2, 4) / 3, 1e-15);
}

// Eight sectors that are full lines of their own would be register-blocked words; all laws of
// blocks lie between that of words and that of whole lines.
TEST(CacheSectorizedTheory, LiesBetweenWordsAndLines) {
  for (const double bits : {6.0, 8.0, 10.0, 12.0, 16.0}) {
    const double line =
        theory::BlockedBloomFpr(bits, theory::BlockedBloomBestK(bits, 512), 512);
    const double word = theory::BlockedBloomFpr(bits, theory::BlockedBloomBestK(bits, 64), 64);
    const auto sectors = [bits](int groups) {
      return theory::CacheSectorizedFpr(bits, groups,
                                        theory::CacheSectorizedBestProbes(bits, groups));
    };
    EXPECT_GT(sectors(4), line) << bits;
    EXPECT_GT(sectors(2), sectors(4)) << bits;
    EXPECT_LT(sectors(2), word) << bits;
  }
}

}  // namespace
}  // namespace filterbench
