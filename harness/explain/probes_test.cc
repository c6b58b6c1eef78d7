#include "harness/explain/probes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/bloom/classic.h"
#include "filters/bloom/kirsch_mitzenmacher.h"
#include "filters/hash.h"

namespace filterbench::explain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> SomeKeys(size_t n) {
  std::vector<std::string> keys = {"", "two words", std::string("\0\xff", 2)};
  while (keys.size() < n) keys.push_back("key " + std::to_string(keys.size()));
  return keys;
}

// The bits of a filter of this project that was built of `keys`, against those of Probes.
template <class Filter>
void ExpectSameBits(const Filter& filter, uint64_t bits, Hashing hashing,
                    const std::vector<std::string>& keys) {
  const Result<Probes> probes = Probes::Create({bits, filter.view().k, hashing});
  ASSERT_TRUE(probes) << probes.error();
  ASSERT_EQ(filter.view().bits, bits);
  std::vector<bool> drawn(bits);
  for (const std::string& key : keys) {
    for (const uint64_t position : probes->Of(key)) drawn[position] = true;
  }
  for (uint64_t i = 0; i < bits; ++i) {
    EXPECT_EQ(drawn[i], TestBit(filter.view().words, i)) << "bit " << i;
  }
}

TEST(Probes, Xxh3AreThoseOfClassicBloom) {
  for (const uint64_t keys_count : {4, 10}) {
    const std::vector<std::string> keys = SomeKeys(keys_count);
    std::string bytes;
    std::vector<uint64_t> offsets = {0};
    for (const std::string& key : keys) {
      bytes += key;
      offsets.push_back(bytes.size());
    }
    for (const uint32_t k : {1, 3, 7}) {
      const auto filter = ClassicBloom::BuildFromBytes(
          {bytes.data(), offsets.data(), keys.size()}, {.bits_per_key = 16, .k = k});
      ASSERT_TRUE(filter) << filter.error();
      ExpectSameBits(*filter, 16 * keys_count, Hashing::kXxh3, keys);
    }
  }
}

TEST(Probes, KmAreThoseOfKmBloom) {
  // 160 bits have steps that plain probing forbids for k = 7.
  for (const uint64_t keys_count : {4, 10}) {
    const std::vector<std::string> keys = SomeKeys(keys_count);
    std::vector<uint64_t> hashes;
    for (const std::string& key : keys) hashes.push_back(HashBytes(key, 0));
    for (const uint32_t k : {1, 3, 7}) {
      const auto filter = KmBloom::Build(hashes, {.bits_per_key = 16, .k = k});
      ASSERT_TRUE(filter) << filter.error();
      ExpectSameBits(*filter, 16 * keys_count, Hashing::kKm, keys);
    }
  }
}

// printf apple | md5sum: 1f3870be274f6c49b3e31a0c6728957f
//   little-endian words be70381f 496c4f27 0c1ae3b3 7f952867
//   in decimal          3195025439 1231834919 203088819 2140481639
//   modulo 64           31 39 51 39;  modulo 1000  439 919 819 639
// printf '' | md5sum: d41d8cd98f00b204e9800998ecf8427e
//   words d98c1dd4 04b2008f 980980e9 7e42f8ec, modulo 64: 20 15 41 44
TEST(Probes, Md5AreWindowsOfTheDigest) {
  if (!HasMd5()) GTEST_SKIP() << kMd5Missing;
  EXPECT_EQ(Md5Hex("apple"), "1f3870be274f6c49b3e31a0c6728957f");
  EXPECT_EQ(Md5Hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  const auto of = [](uint64_t bits, uint32_t k, std::string_view key) {
    return (*Probes::Create({bits, k, Hashing::kMd5})).Of(key);
  };
  EXPECT_THAT(of(64, 3, "apple"), ElementsAre(31, 39, 51));
  EXPECT_THAT(of(1000, 4, "apple"), ElementsAre(439, 919, 819, 639));
  EXPECT_THAT(of(64, 3, ""), ElementsAre(20, 15, 41));
}

TEST(Probes, WithoutMd5TheErrorSaysWhatToInstall) {
  const Result<Probes> made = Probes::Create({64, 3, Hashing::kMd5});
  ASSERT_EQ(made.has_value(), HasMd5());
  if (!made) {
    EXPECT_THAT(made.error(), HasSubstr("libmd-dev"));
  }
}

TEST(Probes, EveryPositionIsInTheFilter) {
  for (const uint64_t bits : {1, 2, 7, 60, 64, 65536}) {
    for (const uint32_t k : {1u, 3u, 64u}) {
      for (const Hashing hashing : {Hashing::kXxh3, Hashing::kKm}) {
        const Result<Probes> probes = Probes::Create({bits, k, hashing});
        ASSERT_TRUE(probes) << probes.error();
        for (const std::string& key : SomeKeys(100)) {
          const std::vector<uint64_t> positions = probes->Of(key);
          ASSERT_EQ(positions.size(), k);
          EXPECT_LT(*std::max_element(positions.begin(), positions.end()), bits);
        }
      }
    }
  }
}

TEST(Probes, WhatDoesNotFitIsRefused) {
  const auto error = [](Shape shape, PositionsByHand by_hand = {}) {
    const Result<Probes> made = Probes::Create(shape, std::move(by_hand));
    return made ? "accepted" : made.error();
  };
  EXPECT_THAT(error({0, 3}), HasSubstr("m is 0: must be 1..65536"));
  EXPECT_THAT(error({65537, 3}), HasSubstr("must be 1..65536"));
  EXPECT_THAT(error({64, 0}), HasSubstr("k is 0: must be 1..64"));
  EXPECT_THAT(error({64, 65}), HasSubstr("must be 1..64"));
  if (HasMd5()) {
    EXPECT_THAT(error({64, 5, Hashing::kMd5}), HasSubstr("must be 1..4 with md5"));
  }
  EXPECT_THAT(error({32, 3, Hashing::kByHand}, {{"a b", {1, 2}}}),
              HasSubstr("positions of \"a b\": 2 of them, must be k = 3"));
  EXPECT_THAT(error({32, 3, Hashing::kByHand}, {{"kiwi", {1, 2, 32}}}),
              HasSubstr("positions of kiwi: 32 must be below m = 32"));
  EXPECT_EQ(error({32, 3, Hashing::kByHand}, {{"kiwi", {1, 1, 31}}}), "accepted");
}

}  // namespace
}  // namespace filterbench::explain
