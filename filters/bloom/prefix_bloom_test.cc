// The rules of the prefix Bloom filter; what holds for every filter is in filters/conformance.

#include "filters/bloom/prefix_bloom.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "filters/test_support.h"
#include "filters/theory/agreement.h"
#include "filters/theory/bloom.h"

namespace filterbench {
namespace {

using test::TestHash;
using test::TestHashes;

constexpr double kFalseAlarm = 1e-9;

PrefixBloom Must(Result<PrefixBloom> result) {
  if (!result) throw std::runtime_error(result.error());
  return std::move(*result);
}

struct Strings {
  std::string bytes;
  std::vector<uint64_t> offsets = {0};
  void Add(std::string_view key) {
    bytes += key;
    offsets.push_back(bytes.size());
  }
  ByteKeys keys() const { return {bytes.data(), offsets.data(), offsets.size() - 1}; }
};

std::string BigEndian(uint64_t key) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(key >> (56 - 8 * i));
  return bytes;
}

TEST(PrefixBloomTest, AnIntegerIsItsEightBytesTheHighestFirst) {
  for (const uint32_t prefix_bytes : {1u, 3u, 7u, 8u, 9u, 100u}) {
    SCOPED_TRACE(prefix_bytes);
    const PrefixBloom::Params params = {.prefix_bytes = prefix_bytes};
    Strings strings;
    for (const uint64_t key : TestHashes(0, 100)) strings.Add(BigEndian(key));
    const PrefixBloom of_integers = Must(PrefixBloom::Build(TestHashes(0, 100), params));
    const PrefixBloom of_bytes = Must(PrefixBloom::BuildFromBytes(strings.keys(), params));
    EXPECT_TRUE(test::EqualBytes(of_integers.Table(), of_bytes.Table()));
    for (const uint64_t key : TestHashes(0, 3000)) {
      ASSERT_EQ(of_integers.MayContain(key), of_bytes.MayContainBytes(BigEndian(key)));
    }
  }
}

TEST(PrefixBloomTest, WhatSharesAPrefixIsContained) {
  Strings strings;
  for (int i = 0; i < 500; ++i) strings.Add(fmt::format("user{:04}/name", i));
  strings.Add("ab");
  strings.Add("");
  const PrefixBloom filter =
      Must(PrefixBloom::BuildFromBytes(strings.keys(), {.bits_per_key = 30, .prefix_bytes = 8}));
  for (int i = 0; i < 500; ++i) {
    EXPECT_TRUE(filter.MayContainBytes(fmt::format("user{:04}", i)));
    EXPECT_TRUE(filter.MayContainBytes(fmt::format("user{:04}/anything else", i)));
    EXPECT_FALSE(filter.MayContainBytes(fmt::format("user{:04}", i + 1000))) << i;
    EXPECT_FALSE(filter.MayContainBytes(fmt::format("user{:03}", i))) << "shorter than the prefix";
  }
  EXPECT_TRUE(filter.MayContainBytes("ab"));
  EXPECT_TRUE(filter.MayContainBytes(""));
  EXPECT_FALSE(filter.MayContainBytes("abc")) << "a short key is whole";
}

// With uniform integers the share of those that have a present prefix is known, and included.
TEST(PrefixBloomTest, RateOfUniformIntegersIncludesSharedPrefixes) {
  constexpr uint64_t kQueries = uint64_t{1} << 20;
  for (const uint32_t prefix_bytes : {1u, 2u, 3u, 4u}) {
    for (const uint64_t n : {100, 1000, 100000}) {
      SCOPED_TRACE(fmt::format("{} bytes, {} keys", prefix_bytes, n));
      const PrefixBloom filter =
          Must(PrefixBloom::Build(TestHashes(0, n), {.prefix_bytes = prefix_bytes}));
      const uint64_t positives = CountContained(filter, TestHashes(n, kQueries));
      const FprEstimate expected = filter.FprOfUniformIntegers();
      EXPECT_FALSE(filter.ExpectedFpr()) << "keys in a row would share prefixes";
      EXPECT_TRUE(theory::FprAgrees(positives, kQueries, expected, kFalseAlarm))
          << positives << " expected " << expected.mean * kQueries << " +- "
          << expected.instance_sd * kQueries;
    }
  }
}

// Of byte strings the rate is that of absent prefixes, however many keys share the present ones.
TEST(PrefixBloomTest, RateOfByteStringsIsThatOfAbsentPrefixes) {
  constexpr uint64_t kQueries = 200000;
  Strings strings;
  for (uint64_t i = 0; i < 20000; ++i) strings.Add(BigEndian(TestHash(i / 4)) + std::to_string(i));
  const PrefixBloom filter = Must(PrefixBloom::BuildFromBytes(strings.keys(), {.bits_per_key = 2}));
  uint64_t positives = 0;
  for (uint64_t i = 0; i < kQueries; ++i) {
    positives += filter.MayContainBytes(BigEndian(TestHash(1000000 + i)) + "x") ? 1 : 0;
  }
  const FprEstimate expected = filter.FprOfAbsentPrefixes();
  EXPECT_FALSE(filter.ExpectedFpr()) << "absent keys may have a present prefix";
  EXPECT_TRUE(theory::FprAgrees(positives, kQueries, expected, kFalseAlarm))
      << positives << " expected " << expected.mean * kQueries;
  // A quarter of the keys' number of prefixes: the table has eight bits for each, and one probe.
  EXPECT_NEAR(expected.mean, theory::ClassicBloomFpr(8.0, 1), 0.01);
}

TEST(PrefixBloomTest, InsertingOneByOneIsBuilding) {
  const std::vector<uint64_t> keys = TestHashes(0, 1000);
  const PrefixBloom built = Must(PrefixBloom::Build(keys, {}));
  PrefixBloom filled = Must(PrefixBloom::Create(1000, {}));
  for (const uint64_t key : keys) EXPECT_EQ(filled.Insert(key), InsertStatus::kOk);
  EXPECT_EQ(built.Serialize(), filled.Serialize());
  PrefixBloom of_bytes = Must(PrefixBloom::Create(1000, {}));
  for (const uint64_t key : keys)
    EXPECT_EQ(of_bytes.InsertBytes(BigEndian(key)), InsertStatus::kOk);
  EXPECT_TRUE(test::EqualBytes(built.Table(), of_bytes.Table()));
}

TEST(PrefixBloomTest, SeedsHashDifferently) {
  const std::vector<uint64_t> keys = TestHashes(0, 1000);
  const PrefixBloom one = Must(PrefixBloom::Build(keys, {.seed = 1}));
  const PrefixBloom two = Must(PrefixBloom::Build(keys, {.seed = 2}));
  EXPECT_FALSE(test::EqualBytes(one.Table(), two.Table()));
}

}  // namespace
}  // namespace filterbench
