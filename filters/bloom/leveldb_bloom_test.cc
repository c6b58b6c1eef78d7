// What LevelDbBloom promises beyond the contract of every filter: LevelDB's bytes and LevelDB's
// rate.

#include "filters/bloom/leveldb_bloom.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "filters/test_support.h"
#include "filters/theory/agreement.h"
#include "filters/theory/systems.h"

#ifdef FILTERBENCH_HAS_LIBLEVELDB
#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>
#endif

namespace filterbench {
namespace {

// Byte strings of all lengths from 0 to 40 and some longer, most bytes with the highest bit set.
std::vector<std::string> Strings(size_t n) {
  std::vector<std::string> strings(n);
  for (size_t i = 0; i < n; ++i) {
    const size_t length = i % 97 == 0 ? 1000 + i : i % 41;
    for (size_t j = 0; j < length; ++j) {
      strings[i].push_back(
          static_cast<char>(test::TestHash(i * 1000 + j) | (j % 3 == 0 ? 0x80 : 0)));
    }
  }
  return strings;
}

struct Arena {
  std::string bytes;
  std::vector<uint64_t> offsets{0};
  explicit Arena(const std::vector<std::string>& strings) {
    for (const std::string& string : strings) {
      bytes += string;
      offsets.push_back(bytes.size());
    }
  }
  ByteKeys keys() const { return {bytes.data(), offsets.data(), offsets.size() - 1}; }
};

TEST(LevelDbBloomTest, RemainderIsExact) {
  const std::vector<uint64_t> words = {0, 1, 2, 62, 63, 64, 65, UINT32_MAX / 2, UINT32_MAX - 1,
                                       UINT32_MAX};
  for (uint64_t i = 0; i < 200000; ++i) {
    const uint64_t random = Mix64(i + 1);
    // Numbers of bits of every magnitude, and those around powers of two.
    const uint64_t bits = i < 300 ? (uint64_t{1} << (i % 40)) + i / 40 - (i >= 120 ? 3 : 0)
                                  : 1 + (random >> (i % 63 + 1)) % (uint64_t{1} << 40);
    if (bits == 0 || bits > kMaxBloomBits) continue;
    const Remainder32 remainder(bits);
    for (const uint64_t word : words) {
      ASSERT_EQ(remainder(static_cast<uint32_t>(word)), word % bits) << word << " mod " << bits;
    }
    const auto word = static_cast<uint32_t>(Mix64(random));
    ASSERT_EQ(remainder(word), word % bits) << word << " mod " << bits;
    // Around multiples, where a multiplier that is too small shows.
    const uint64_t multiple = UINT32_MAX / bits * bits;
    ASSERT_EQ(remainder(static_cast<uint32_t>(multiple)), 0u) << bits;
    if (multiple != 0) {
      ASSERT_EQ(remainder(static_cast<uint32_t>(multiple - 1)), bits - 1) << bits;
    }
  }
}

TEST(LevelDbBloomTest, AnIntegerIsItsEightBytes) {
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t value = i < 500 ? i : test::TestHash(i);
    EXPECT_EQ(LevelDbBloom::HashOfInteger(value),
              LevelDbBloom::Hash({reinterpret_cast<const char*>(&value), sizeof(value)}));
  }
}

TEST(LevelDbBloomTest, SizesAndProbesAreLevelDbs) {
  EXPECT_EQ(LevelDbBloom::ProbesFor(1), 1u);
  EXPECT_EQ(LevelDbBloom::ProbesFor(10), 6u);
  EXPECT_EQ(LevelDbBloom::ProbesFor(20), 13u);
  EXPECT_EQ(LevelDbBloom::ProbesFor(43), 29u);
  EXPECT_EQ(LevelDbBloom::ProbesFor(128), 30u);
  EXPECT_EQ(LevelDbBloom::BitsFor(0, 10), 64u);
  EXPECT_EQ(LevelDbBloom::BitsFor(6, 10), 64u);
  EXPECT_EQ(LevelDbBloom::BitsFor(7, 10), 72u);
  EXPECT_EQ(LevelDbBloom::BitsFor(8, 9), 72u);
  EXPECT_GT(LevelDbBloom::BitsFor(UINT64_MAX, 128), kMaxBloomBits);
}

#ifdef FILTERBENCH_HAS_LIBLEVELDB

TEST(LevelDbBloomTest, BytesAndAnswersAreThoseOfTheLibrary) {
  const std::vector<std::string> strings = Strings(6000);
  const std::vector<std::string> all(strings.begin(), strings.begin() + 3000);
  for (const uint32_t bits_per_key : {1, 2, 5, 10, 13, 20, 43, 44, 100, 128}) {
    const std::unique_ptr<const leveldb::FilterPolicy> policy(
        leveldb::NewBloomFilterPolicy(static_cast<int>(bits_per_key)));
    for (const size_t n : {0, 1, 2, 6, 7, 8, 63, 64, 65, 100, 777, 3000}) {
      const std::vector<std::string> in(all.begin(), all.begin() + static_cast<long>(n));
      const std::vector<leveldb::Slice> slices(in.begin(), in.end());
      std::string expected;
      policy->CreateFilter(slices.data(), static_cast<int>(n), &expected);

      const Arena arena(in);
      const Result<LevelDbBloom> filter =
          LevelDbBloom::BuildFromBytes(arena.keys(), {.bits_per_key = bits_per_key});
      ASSERT_TRUE(filter) << filter.error();
      const std::span<const std::byte> table = filter->Table();
      ASSERT_EQ(std::string(reinterpret_cast<const char*>(table.data()), table.size()), expected)
          << n << " keys, " << bits_per_key << " bits";
      for (const std::string& key : strings) {
        ASSERT_EQ(filter->MayContainBytes(key), policy->KeyMayMatch(key, expected)) << n;
      }
    }
  }
}

TEST(LevelDbBloomTest, IntegersAreThoseOfTheLibraryToo) {
  const std::vector<uint64_t> hashes = test::TestHashes(0, 20000);
  const std::unique_ptr<const leveldb::FilterPolicy> policy(leveldb::NewBloomFilterPolicy(10));
  std::vector<leveldb::Slice> slices;
  for (const uint64_t& hash : hashes) {
    slices.emplace_back(reinterpret_cast<const char*>(&hash), sizeof(hash));
  }
  std::string expected;
  policy->CreateFilter(slices.data(), static_cast<int>(slices.size()), &expected);
  const Result<LevelDbBloom> filter = LevelDbBloom::Build(hashes, {});
  ASSERT_TRUE(filter) << filter.error();
  const std::span<const std::byte> table = filter->Table();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(table.data()), table.size()), expected);
  for (const uint64_t hash : test::MixedHashes(100000, hashes.size())) {
    ASSERT_EQ(filter->MayContain(hash),
              policy->KeyMayMatch({reinterpret_cast<const char*>(&hash), sizeof(hash)}, expected));
  }
}

#else

TEST(LevelDbBloomTest, BytesAndAnswersAreThoseOfTheLibrary) {
  GTEST_SKIP() << "libleveldb was not found when the build was configured";
}

#endif

TEST(LevelDbBloomTest, PiecesAndThreadsLeaveTheSameBytes) {
  const std::vector<uint64_t> hashes = test::TestHashes(0, 300000);
  const Result<LevelDbBloom> whole = LevelDbBloom::Build(hashes, {});
  Result<LevelDbBloom> pieces = LevelDbBloom::Create(hashes.size(), {});
  ASSERT_TRUE(whole && pieces);
  const std::span<const uint64_t> all(hashes);
  pieces->InsertAll(all.first(12345), 3);
  pieces->InsertAll(all.subspan(12345), 2);
  EXPECT_EQ(pieces->Serialize(), whole->Serialize());
  EXPECT_EQ(pieces->ExpectedFpr()->mean, whole->ExpectedFpr()->mean);
}

// The mean over many small filters, as LevelDB has them: far enough from the classic rate for the
// difference to be seen, and closer to theory than to that. Theory is of first order in 1 / bits: 2
// % at these sizes. Sizes that 3 and 5 divide, and one that neither does.
// Case A5: a step that is not guarded, as LevelDB has it; what it costs in small tables is in the
// theory.
TEST(LevelDbBloomTest, SmallFiltersHaveTheRateOfTheory) {
  for (const uint64_t keys : {202, 201, 203}) {
    constexpr int kFilters = 1500;
    constexpr uint64_t kQueries = 2000;
    uint64_t positives = 0;
    FprEstimate expected;
    uint64_t bits = 0;
    for (uint64_t f = 0; f < kFilters; ++f) {
      const uint64_t first = f << 20;
      const Result<LevelDbBloom> filter = LevelDbBloom::Build(test::TestHashes(first, keys), {});
      ASSERT_TRUE(filter) << filter.error();
      positives += CountContained(*filter, test::TestHashes(first + keys, kQueries));
      if (f == 0) expected = *filter->ExpectedFpr();
      bits = (filter->Table().size() - 1) * 8;
    }
    const double measured = static_cast<double>(positives) / (kFilters * kQueries);
    // One chance in 1e9 that the mean of instances is further off, and the 2 % of theory.
    const double sd = std::sqrt(expected.mean / (kFilters * kQueries) +
                                expected.instance_sd * expected.instance_sd / kFilters);
    EXPECT_NEAR(measured, expected.mean, 6.1 * sd + 0.02 * expected.mean) << bits << " bits";
  }
}

// Multiples of 3 and of 5 cost some percent at every size: 3e6 bits against a neighbour.
// Case A5: steps that share a divisor with the size.
TEST(LevelDbBloomTest, UnevenPositionsAreInTheTheory) {
  const FprEstimate even = theory::RotatedDoubleHashingFpr(300000, 3000008, 6);  // 8 x 375001
  const FprEstimate uneven = theory::RotatedDoubleHashingFpr(300000, 3000000, 6);
  EXPECT_GT(uneven.mean, 1.08 * even.mean);
  for (const uint64_t keys : {uint64_t{300000}, uint64_t{300001}}) {
    const Result<LevelDbBloom> filter = LevelDbBloom::Build(test::TestHashes(0, keys), {});
    ASSERT_TRUE(filter) << filter.error();
    const uint64_t queries = 10'000'000;
    uint64_t positives = 0;
    for (uint64_t first = 0; first < queries; first += 100000) {
      positives += CountContained(*filter, test::TestHashes(keys + first, 100000));
    }
    EXPECT_TRUE(theory::FprAgrees(positives, queries, *filter->ExpectedFpr(), 1e-9))
        << keys << ": " << positives << ", expected "
        << filter->ExpectedFpr()->mean * static_cast<double>(queries);
  }
}

TEST(LevelDbBloomTest, BeyondTheHashTheRateIsComputedWithoutATable) {
  // Cases A1, A4: 32 bits of hash over 5e9 positions leave the upper ones unused.
  EXPECT_GT(theory::RotatedDoubleHashingFpr(500'000'000, 5'000'000'000, 6).mean,
            1.1 * theory::RotatedDoubleHashingFpr(500'000, 5'000'008, 6).mean);
  EXPECT_EQ(theory::RotatedDoubleHashingFpr(0, 64, 6).mean, 0);
  for (const uint64_t n : {uint64_t{1}, uint64_t{1} << 40, UINT64_MAX}) {
    const FprEstimate fpr = theory::RotatedDoubleHashingFpr(n, 64, 30);
    EXPECT_GE(fpr.mean, 0);
    EXPECT_LE(fpr.mean, 1);
    EXPECT_FALSE(std::isnan(fpr.instance_sd));
  }
}

}  // namespace
}  // namespace filterbench
