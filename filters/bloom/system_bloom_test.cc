// What SystemBloom promises beyond the contract of every filter: the positions and sizes of the
// systems that it is named after, written here as their sources have them.

#include "filters/bloom/system_bloom.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

#include "filters/bloom/leveldb_bloom.h"
#include "filters/test_support.h"
#include "filters/theory/agreement.h"

namespace filterbench {
namespace {

using Params = SystemBloom::Params;
using Words = SystemBloom::Words;
using Probing = SystemBloom::Probing;
using Sign = SystemBloom::Sign;
using Rounding = SystemBloom::Rounding;
using Positions = std::vector<uint64_t>;

// The table of a filter whose keys have these positions, bit i being bit i % 8 of byte i / 8.
std::vector<uint8_t> TableOf(const std::vector<uint64_t>& hashes, uint64_t bytes,
                             const std::function<Positions(uint64_t)>& positions) {
  std::vector<uint8_t> table(bytes);
  for (const uint64_t hash : hashes) {
    for (const uint64_t position : positions(hash)) {
      table.at(position / 8) |= static_cast<uint8_t>(1 << (position % 8));
    }
  }
  return table;
}

void ExpectTable(const Params& params, uint64_t bits,
                 const std::function<Positions(uint64_t)>& positions) {
  const std::vector<uint64_t> hashes = test::TestHashes(0, 5000);
  const Result<SystemBloom> filter = SystemBloom::Build(hashes, params);
  ASSERT_TRUE(filter) << filter.error();
  ASSERT_EQ(filter->GetDetails()[1].value, static_cast<double>(bits));
  const std::vector<uint8_t> expected = TableOf(hashes, (bits + 63) / 64 * 8, positions);
  ASSERT_TRUE(test::EqualBytes(filter->Table(), std::as_bytes(std::span(expected))));
  for (const uint64_t hash : test::MixedHashes(20000, 5000)) {
    bool all = true;
    for (const uint64_t position : positions(hash)) {
      all &= (expected[position / 8] >> (position % 8) & 1) != 0;
    }
    ASSERT_EQ(filter->MayContain(hash), all);
  }
}

uint64_t SecondWord(uint64_t hash) { return Mix64(hash + kGoldenGamma); }

// Java's long and int wrap around, its remainder has the sign of the dividend.
TEST(SystemBloomTest, Cassandra) {
  const uint64_t bits = (5000 * 10 + 20 + 63) / 64 * 64;
  ExpectTable({.bits_per_key = 10, .k = 5, .extra_bits = 20, .sign = Sign::kAbs}, bits,
              [bits](uint64_t hash) {
                Positions positions;
                uint64_t base = hash;
                for (int i = 0; i < 5; ++i, base += SecondWord(hash)) {
                  const auto index = static_cast<int64_t>(base) % static_cast<int64_t>(bits);
                  positions.push_back(static_cast<uint64_t>(std::llabs(index)));
                }
                return positions;
              });
}

TEST(SystemBloomTest, Guava) {
  const uint64_t bits = (5000 * 7298440845ULL / 1000000000 + 63) / 64 * 64;
  ExpectTable({.bits_per_key = 7.298440845, .k = 5, .sign = Sign::kMask}, bits,
              [bits](uint64_t hash) {
                Positions positions;
                uint64_t combined = hash;
                for (int i = 0; i < 5; ++i, combined += SecondWord(hash)) {
                  positions.push_back((combined & INT64_MAX) % bits);
                }
                return positions;
              });
}

TEST(SystemBloomTest, HBase) {
  const uint64_t bits = (47965 + 7) / 8 * 8;
  ExpectTable({.bits_per_key = 9.593, .k = 7, .rounding = Rounding::kBytes,
               .words = Words::kTwo32, .sign = Sign::kAbs},
              bits, [bits](uint64_t hash) {
                Positions positions;
                auto composite = static_cast<uint32_t>(hash);
                for (int i = 0; i < 7; ++i, composite += static_cast<uint32_t>(hash >> 32)) {
                  const int32_t location =
                      static_cast<int32_t>(composite) % static_cast<int32_t>(bits);
                  positions.push_back(static_cast<uint64_t>(std::abs(location)));
                }
                return positions;
              });
}

TEST(SystemBloomTest, PostgreSql) {
  // 16 bits a key, rounded down to a power of two; rint(ln 2 65536 / 5000) = 9 hash functions.
  ExpectTable({.bits_per_key = 16, .max_k = 10, .rounding = Rounding::kPowerOfTwoDown,
               .words = Words::kTwo32, .probing = Probing::kEnhanced},
              65536, [](uint64_t hash) {
                Positions positions;
                uint32_t x = static_cast<uint32_t>(hash) & 65535;
                uint32_t y = static_cast<uint32_t>(hash >> 32) & 65535;
                positions.push_back(x);
                for (uint32_t i = 1; i < 9; ++i) {
                  x = (x + y) & 65535;
                  y = (y + i) & 65535;
                  positions.push_back(x);
                }
                return positions;
              });
}

TEST(SystemBloomTest, Squid) {
  ExpectTable({.bits_per_key = 5, .k = 4, .rounding = Rounding::kBytes, .words = Words::kTwo32,
               .probing = Probing::kIndependent},
              25000, [](uint64_t hash) {
                return Positions{static_cast<uint32_t>(hash) % 25000u, (hash >> 32) % 25000,
                                 static_cast<uint32_t>(SecondWord(hash)) % 25000u,
                                 (SecondWord(hash) >> 32) % 25000};
              });
}

TEST(SystemBloomTest, LevelDbOfOneWord) {
  // 10 bits a key are whole bytes here, so that there is room for no byte of k.
  const std::vector<uint64_t> hashes = test::TestHashes(0, 5000);
  const Result<SystemBloom> filter = SystemBloom::Build(
      hashes, {.bits_per_key = 10, .k = 6, .min_bits = 64, .rounding = Rounding::kBytes,
               .words = Words::kOne32});
  ASSERT_TRUE(filter) << filter.error();
  const LevelDbBloom::View view{reinterpret_cast<const uint64_t*>(filter->Table().data()),
                                Remainder32(50000), 6, false};
  for (const uint64_t hash : test::MixedHashes(50000, 5000)) {
    ASSERT_EQ(filter->MayContain(hash), view.MayContainHash(static_cast<uint32_t>(hash)));
  }
}

// Case A2: sizes of every rule never wrap around.
TEST(SystemBloomTest, SizesFollowTheirRules) {
  const auto bits = [](uint64_t keys, const Params& params) {
    return SystemBloom::BitsFor(keys, params);
  };
  EXPECT_EQ(bits(0, {}), 64u);
  EXPECT_EQ(bits(100, {.extra_bits = 20}), 1024u);
  EXPECT_EQ(bits(101, {.rounding = Rounding::kBytes}), 1016u);
  EXPECT_EQ(bits(1000, {.rounding = Rounding::kPowerOfTwoDown}), 8192u);
  EXPECT_EQ(bits(1000, {.rounding = Rounding::kPowerOfTwoUp}), 16384u);
  EXPECT_EQ(bits(0, {.rounding = Rounding::kPowerOfTwoDown}), 1u);
  EXPECT_EQ(bits(10, {.bits_per_key = 8, .min_bits = 80000, .max_bits = 80000000}), 80000u);
  EXPECT_EQ(bits(uint64_t{1} << 40, {.bits_per_key = 8, .max_bits = 80000000}), 80000000u);
  for (const Rounding rounding : {Rounding::kWords, Rounding::kBytes, Rounding::kPowerOfTwoDown,
                                  Rounding::kPowerOfTwoUp}) {
    uint64_t last = 0;
    for (int e = 0; e < 64; ++e) {  // never wraps
      const uint64_t now = bits(uint64_t{1} << e, {.bits_per_key = 128, .rounding = rounding});
      EXPECT_GE(now, last);
      last = now;
    }
    EXPECT_GT(last, kMaxBloomBits);
  }
  EXPECT_EQ(SystemBloom::ProbesFor(1000, 16384, {.max_k = 10}), 10u);
  EXPECT_EQ(SystemBloom::ProbesFor(1000, 10000, {}), 7u);
  EXPECT_EQ(SystemBloom::ProbesFor(1 << 30, 64, {}), 1u);
}

// The mean over small filters, where what progressions share shows: theory is right to 2 %.
// Case A5: unguarded, growing and repeated steps of production systems, each with the rate of its
// theory.
TEST(SystemBloomTest, SmallFiltersHaveTheRateOfTheory) {
  struct Case {
    const char* name;
    Params params;
  };
  for (const Case& c : std::vector<Case>{
           {"plain", {}},
           {"abs", {.sign = Sign::kAbs}},
           {"mask", {.sign = Sign::kMask}},
           {"two 32-bit words", {.words = Words::kTwo32}},
           {"a power of two", {.rounding = Rounding::kPowerOfTwoUp}},
           {"enhanced", {.probing = Probing::kEnhanced}},
           {"independent", {.probing = Probing::kIndependent}}}) {
    constexpr int kFilters = 1500;
    constexpr uint64_t kKeys = 203;
    constexpr uint64_t kQueries = 1000;
    Params params = c.params;
    params.k = 7;
    uint64_t positives = 0;
    FprEstimate expected;
    for (uint64_t f = 0; f < kFilters; ++f) {
      const Result<SystemBloom> filter =
          SystemBloom::Build(test::TestHashes(f << 20, kKeys), params);
      ASSERT_TRUE(filter) << filter.error();
      positives += CountContained(*filter, test::TestHashes((f << 20) + kKeys, kQueries));
      if (f == 0) expected = *filter->ExpectedFpr();
    }
    const double sd = std::sqrt(expected.mean / (kFilters * kQueries) +
                                expected.instance_sd * expected.instance_sd / kFilters);
    EXPECT_NEAR(static_cast<double>(positives) / (kFilters * kQueries), expected.mean,
                6.1 * sd + 0.02 * expected.mean)
        << c.name;
  }
}

}  // namespace
}  // namespace filterbench
