// What ClassicBloom promises beyond the contract of every filter.
//
// Case A5 does not apply: each probe is a hash of its own, there is no step.

#include "filters/bloom/classic.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "filters/theory/agreement.h"
#include "filters/theory/bloom.h"

namespace filterbench {
namespace {

constexpr double kFalseAlarm = 1e-9;

std::vector<uint64_t> MixedKeys(uint64_t first, uint64_t n) {
  std::vector<uint64_t> keys(n);
  for (uint64_t i = 0; i < n; ++i) keys[i] = Mix64(first + i + 1);
  return keys;
}

uint64_t SetBits(std::span<const std::byte> table) {
  uint64_t count = 0;
  for (const std::byte b : table) count += std::popcount(std::to_integer<unsigned>(b));
  return count;
}

uint64_t Positives(const ClassicBloom& filter, std::span<const uint64_t> keys) {
  return CountContained(filter, keys);
}

double Detail(const ClassicBloom& filter, std::string_view name) {
  for (const auto& detail : filter.GetDetails()) {
    if (detail.name == name) return detail.value;
  }
  return NAN;
}

// Upper tail of chi-square with 63 degrees of freedom at 1e-9, by Wilson and Hilferty's cube:
// 63 (1 - 2/567 + 6.0 sqrt(2/567))^3 = 157.
constexpr double kChiSquare63 = 157;

TEST(ClassicBloomTest, FprAgreesWithTheoryFromBothSides) {
  constexpr uint64_t kKeys = 100'000;
  const auto keys = MixedKeys(0, kKeys);
  const auto absent = MixedKeys(kKeys, 2'000'000);
  for (const double bits_per_key : {4, 8, 10, 12, 20}) {
    const auto filter = ClassicBloom::Build(keys, {.bits_per_key = bits_per_key});
    ASSERT_TRUE(filter) << filter.error();
    const uint64_t positives = Positives(*filter, absent);
    EXPECT_TRUE(
        theory::FprAgrees(positives, absent.size(), *filter->ExpectedFpr(), kFalseAlarm))
        << bits_per_key << ": " << positives << " of " << absent.size() << ", expected "
        << filter->ExpectedFpr()->mean;
  }
}

TEST(ClassicBloomTest, StructuredIntegersHaveTheSameFpr) {
  // In a row, and on a grid of the bits in which XXH3 would see seed and seed + i differ; half of
  // each is built in.
  for (const uint64_t seed : {0, 1, 99}) {
    for (const bool grid : {false, true}) {
      std::vector<uint64_t> keys;
      std::vector<uint64_t> absent;
      for (uint64_t i = 0; i < 1 << 17; ++i) {
        const uint64_t key = grid ? (i >> 8) << 32 | (i & 0xff) << 24 : i;
        (Mix64(i) % 2 == 0 ? keys : absent).push_back(key);
      }
      const auto filter = ClassicBloom::Build(keys, {.bits_per_key = 10, .seed = seed});
      ASSERT_TRUE(filter) << filter.error();
      EXPECT_TRUE(theory::FprAgrees(Positives(*filter, absent), absent.size(),
                                    *filter->ExpectedFpr(), kFalseAlarm))
          << "seed " << seed << ", grid " << grid << ": " << Positives(*filter, absent);
    }
  }
}

TEST(ClassicBloomTest, SmallTablesHaveTheExactRateOnAverage) {
  // Mean over 12000 filters of 128 bits: the rates of instances have the deviation of theory, so
  // their mean is normal with that over sqrt(12000), 6.1 of which are exceeded with 1e-9.
  constexpr int kFilters = 12'000;
  constexpr uint64_t kQueries = 1000;
  uint64_t positives = 0;
  FprEstimate expected;
  for (int f = 0; f < kFilters; ++f) {
    const uint64_t first = static_cast<uint64_t>(f) * 10'000;
    const auto filter = ClassicBloom::Build(MixedKeys(first, 16), {.bits_per_key = 8, .k = 6});
    ASSERT_TRUE(filter) << filter.error();
    positives += Positives(*filter, MixedKeys(first + 16, kQueries));
    expected = *filter->ExpectedFpr();
  }
  const double queries = static_cast<double>(kFilters) * kQueries;
  const double sd = std::sqrt(expected.mean / queries +
                              expected.instance_sd * expected.instance_sd / kFilters);
  EXPECT_NEAR(static_cast<double>(positives) / queries, expected.mean, 6.1 * sd);
  // The test can tell the exact rate from (1 - e^(-k n / m))^k.
  EXPECT_GT(expected.mean - theory::ClassicBloomFpr(8, 6), 12 * sd);
}

// Case A1: every bit of the hash counts, also in tables beyond 2^32 bits.
TEST(ClassicBloomTest, PositionsFillTablesOfAnySize) {
  for (const uint64_t bits : {(uint64_t{1} << 33) + 9, 3 * (uint64_t{1} << 30),
                              (uint64_t{1} << 32) - 1, (uint64_t{1} << 32) + 1, kMaxBloomBits}) {
    std::vector<double> bins(64);
    uint64_t largest = 0;
    constexpr int kHashes = 1'000'000;
    for (uint64_t i = 0; i < kHashes; ++i) {
      const uint64_t position =
          ClassicBloom::Position(HashU64(i, ClassicBloom::HashSeed(7, i % 8)), bits);
      ASSERT_LT(position, bits);
      largest = std::max(largest, position);
      bins[static_cast<size_t>(static_cast<double>(position) / static_cast<double>(bits) * 64)]++;
    }
    EXPECT_GT(static_cast<double>(largest), 0.999 * static_cast<double>(bits));
    double chi_square = 0;
    for (const double count : bins) {
      chi_square += (count - kHashes / 64.0) * (count - kHashes / 64.0) / (kHashes / 64.0);
    }
    EXPECT_LT(chi_square, kChiSquare63) << bits;
  }
}

// Case A2: bytes never fall and hold what formula and rate ask for, for 2^0 to 2^45 keys; beyond
// the limit an error names both.
TEST(ClassicBloomTest, SizesNeverWrap) {
  for (const double fpr : {0.5, 1e-2, 1e-3, 1e-9}) {
    const double bits_per_key = -std::log2(fpr) / std::numbers::ln2;
    uint64_t last_bytes = 0;
    for (int e = 0; e <= 45; ++e) {
      const uint64_t n = uint64_t{1} << e;
      const uint64_t bits = BloomBitsFor(n, bits_per_key);
      EXPECT_GE(static_cast<double>(bits), static_cast<double>(n) * bits_per_key);
      EXPECT_GE(BitArrayBytes(bits), last_bytes);
      EXPECT_GE(BitArrayBytes(bits) * 8, bits);
      last_bytes = BitArrayBytes(bits);
      if (bits > kMaxBloomBits) {
        const auto table = AllocateBitArray(bits);
        ASSERT_FALSE(table);
        EXPECT_EQ(table.error(), "too large: needs " + std::to_string(BitArrayBytes(bits)) +
                                     " bytes, limit 137438953472");
      }
    }
  }
  EXPECT_GT(BloomBitsFor(UINT64_MAX, 128), kMaxBloomBits);
}

// Case A7: k, size and FPR at a wanted rate, from both sides.
TEST(ClassicBloomTest, WantedRatesAreMet) {
  const auto keys = MixedKeys(0, 100'000);
  const auto absent = MixedKeys(100'000, 1'000'000);
  for (const double fpr : {0.1, 0.01, 0.001}) {
    const double bits_per_key = -std::log2(fpr) / std::numbers::ln2;
    const auto filter = ClassicBloom::Build(keys, {.bits_per_key = bits_per_key});
    ASSERT_TRUE(filter) << filter.error();
    const double measured = static_cast<double>(Positives(*filter, absent)) / 1e6;
    EXPECT_GE(measured, fpr / 3);
    EXPECT_LE(measured, fpr * 1.2);
    EXPECT_NEAR(static_cast<double>(filter->SizeInBytes()) * 8 / 1e5, bits_per_key,
                0.02 * bits_per_key);
  }
  const auto filter = ClassicBloom::Build(keys, {.bits_per_key = 10});
  ASSERT_TRUE(filter) << filter.error();
  EXPECT_EQ(Detail(*filter, "k"), 7);
  EXPECT_EQ(Detail(*filter, "bits"), 1'000'000);
}

// Case A8: the occupancy law, and every bit of a word used alike.
TEST(ClassicBloomTest, OccupancyFollowsItsLaw) {
  const auto filter =
      ClassicBloom::Build(MixedKeys(0, 2'000'000), {.bits_per_key = 5, .k = 1});
  ASSERT_TRUE(filter) << filter.error();
  // 1e7 (1 - e^-0.2) = 1812692; the deviation is below sqrt(1e7 e^-0.2 (1 - e^-0.2)).
  EXPECT_NEAR(static_cast<double>(SetBits(filter->Table())), 1'812'692, 6.1 * 1220);
  std::vector<double> by_bit(64);
  for (size_t i = 0; i < filter->Table().size(); ++i) {
    for (size_t b = 0; b < 8; ++b) {
      by_bit[i % 8 * 8 + b] += (std::to_integer<int>(filter->Table()[i]) >> b) & 1;
    }
  }
  double chi_square = 0;
  const double mean = static_cast<double>(SetBits(filter->Table())) / 64;
  for (const double count : by_bit) chi_square += (count - mean) * (count - mean) / mean;
  EXPECT_LT(chi_square, kChiSquare63);
}

TEST(ClassicBloomTest, ByteStringsAreHashedWhole) {
  std::string arena;
  std::vector<uint64_t> offsets = {0};
  const auto add = [&](const std::string& key) {
    arena += key;
    offsets.push_back(arena.size());
  };
  const std::string prefix(300, 'x');  // longer than what any XXH3 short path reads
  for (int i = 0; i < 5000; ++i) add(prefix.substr(0, i % 301) + std::to_string(i));
  add("");
  const ByteKeys keys{arena.data(), offsets.data(), offsets.size() - 1};
  const auto filter = ClassicBloom::BuildFromBytes(keys, {.bits_per_key = 12});
  ASSERT_TRUE(filter) << filter.error();
  for (size_t i = 0; i < keys.size; ++i) ASSERT_TRUE(filter->MayContainBytes(keys[i])) << i;
  EXPECT_EQ(ClassicBloom::Kernels().front().count_single_bytes(filter->view(), keys, 0),
            keys.size);

  uint64_t positives = 0;
  constexpr uint64_t kQueries = 200'000;
  for (uint64_t i = 0; i < kQueries; ++i) {
    positives += filter->MayContainBytes(prefix + std::to_string(5000 + i)) ? 1 : 0;
  }
  EXPECT_TRUE(theory::FprAgrees(positives, kQueries, *filter->ExpectedFpr(), kFalseAlarm));
}

TEST(ClassicBloomTest, EightByteStringsAreIntegers) {
  // The same hash functions over the same bytes: on little-endian machines the tables are equal.
  const auto keys = MixedKeys(0, 1000);
  std::vector<uint64_t> offsets(keys.size() + 1);
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = i * 8;
  const ByteKeys bytes{reinterpret_cast<const char*>(keys.data()), offsets.data(), keys.size()};
  const auto from_values = ClassicBloom::Build(keys, {.seed = 3});
  const auto from_bytes = ClassicBloom::BuildFromBytes(bytes, {.seed = 3});
  ASSERT_TRUE(from_values && from_bytes);
  EXPECT_EQ(from_values->Serialize(), from_bytes->Serialize());
}

TEST(ClassicBloomTest, KernelsEqualTheScalarLookupInAllShapes) {
  // Half of the keys asked are present; the others leave in each round, or at once. From 2^32 bits
  // on positions take the whole of the range arithmetic.
  struct Shape {
    uint64_t bits;
    uint32_t k;
    uint64_t keys;
  };
  for (const auto& [bits, k, keys] :
       std::vector<Shape>{{1, 1, 0}, {2, 3, 1}, {63, 7, 9}, {64, 2, 20}, {80'001, 7, 8000},
                          {200'000, 64, 1000}, {40'000'000, 7, 3000},
                          {(uint64_t{1} << 32) - 1, 7, 1500},
                          {(uint64_t{1} << 32) + 77, 8, 1500}}) {
    auto table = AllocateBitArray(bits);
    ASSERT_TRUE(table) << table.error();
    const auto hashes = MixedKeys(0, 2 * std::max<uint64_t>(keys, 1100));
    for (const uint64_t seed : {uint64_t{0}, uint64_t{0xfedcba9876543210}}) {
      for (uint64_t i = 0; i < keys; ++i) {
        for (uint32_t p = 0; p < k; ++p) {
          SetBit(table->As<uint64_t>(),
                 ClassicBloom::Position(
                     HashU64(hashes[2 * i], ClassicBloom::HashSeed(seed, p)), bits));
        }
      }
      for (const bool prefetch : {false, true}) {
        const ClassicBloom::View view{table->As<uint64_t>(), bits, seed, k, prefetch};
        for (const auto& kernel : ClassicBloom::Kernels()) {
          for (const size_t n : {0, 1, 7, 8, 9, 63, 64, 65, 129, 511, 512, 513, 1025, 2099}) {
            std::vector<uint64_t> answers((n + 63) / 64 + 1, 0xabababababababab);
            kernel.bits_batched(view, hashes.data() + 1, n, answers.data());
            uint64_t positives = 0;
            for (size_t i = 0; i < n; ++i) {
              const bool expected = view.MayContain(hashes[i + 1]);
              positives += expected ? 1 : 0;
              ASSERT_EQ(answers[i / 64] >> (i % 64) & 1, expected ? 1u : 0u)
                  << kernel.target << ", " << bits << " bits, key " << i << " of " << n;
            }
            if (n % 64 != 0) {
              ASSERT_EQ(answers[n / 64] >> (n % 64), 0u);
            }
            ASSERT_EQ(answers.back(), 0xabababababababab);
            ASSERT_EQ(kernel.count_batched(view, hashes.data() + 1, n), positives);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace filterbench
