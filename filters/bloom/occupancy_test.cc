// Every bit of a word and every word of a cache line carries the same load, in all tables of bits.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#include "filters/bloom/acero.h"
#include "filters/bloom/blocked.h"
#include "filters/bloom/cache_sectorized.h"
#include "filters/bloom/classic.h"
#include "filters/bloom/counting_blocked.h"
#include "filters/bloom/counting_bloom.h"
#include "filters/bloom/kirsch_mitzenmacher.h"
#include "filters/bloom/leveldb_bloom.h"
#include "filters/bloom/prefix_bloom.h"
#include "filters/bloom/register_blocked.h"
#include "filters/bloom/rocksdb.h"
#include "filters/bloom/scalable_bloom.h"
#include "filters/bloom/split_block.h"
#include "filters/bloom/system_bloom.h"
#include "filters/bloom/taffy_block.h"
#include "filters/bloom/two_choice_blocked.h"
#include "filters/test_support.h"

namespace filterbench {
namespace {

template <class F>
class OccupancyTest : public ::testing::Test {};
using BitTables =
    ::testing::Types<ClassicBloom, KmBloom, BlockedBloom, SplitBlock, SplitBlock512,
                     RegisterBlocked, CacheSectorized, TwoChoiceBlocked, CountingBloom,
                     CountingBlocked, ScalableBloom, TaffyBlock, PrefixBloom, SystemBloom,
                     LevelDbBloom, RocksDbBloom, RocksDbLegacyBloom, RocksDbDynamicBloom,
                     ImpalaBloom, AceroBloom>;
TYPED_TEST_SUITE(OccupancyTest, BitTables, test::FilterNames);

// Upper tail of chi-square with so many degrees of freedom at 1e-9, by Wilson and Hilferty's cube.
double ChiSquareLimit(double freedom) {
  const double c = 2 / (9 * freedom);
  return freedom * std::pow(1 - c + 6.0 * std::sqrt(c), 3);
}

// Of counts that should be alike. Bits of one key avoid each other, so that counts vary less than
// independent ones would: the bound holds all the more.
template <size_t kBins>
double ChiSquare(const std::array<double, kBins>& counts) {
  const double mean = std::accumulate(counts.begin(), counts.end(), 0.0) / kBins;
  double sum = 0;
  for (const double count : counts) sum += (count - mean) * (count - mean) / mean;
  return sum;
}

struct Occupancy {
  std::array<double, 64> by_bit{};   // position modulo 64
  std::array<double, 8> by_lane{};   // word of 64 bits in its cache line
  std::array<double, 16> by_part{};  // sixteenth of the table
};

Occupancy Count(std::span<const std::byte> table) {
  Occupancy seen;
  const auto* words = reinterpret_cast<const uint64_t*>(table.data());
  // What is no whole line would give its lanes more.
  const size_t n = table.size() / 64 * 8;
  for (size_t w = 0; w < n; ++w) {
    for (size_t b = 0; b < 64; ++b) seen.by_bit[b] += static_cast<double>(words[w] >> b & 1);
    seen.by_lane[w % 8] += std::popcount(words[w]);
    seen.by_part[w * 16 / n] += std::popcount(words[w]);
  }
  return seen;
}

// Bits that one key may set in the same word or line: they come together, so that counts vary as
// many times more.
template <class F>
double BitsTogether(const F& filter) {
  for (const Detail& detail : filter.GetDetails()) {
    if (detail.name == "k") return detail.value;
  }
  return 8;
}

// Case A8: in a table of any scheme each of the 64 positions in a word, each of the 8 words of a
// line and each sixteenth of the table has its share of the bits that are set.
TYPED_TEST(OccupancyTest, EveryBitAndLaneAndPartCarriesTheSame) {
  const auto filter = TypeParam::Build(test::TestHashes(0, 400'000), {.seed = 5});
  ASSERT_TRUE(filter) << filter.error();
  const double together = BitsTogether(*filter);
  if constexpr (std::is_same_v<TypeParam, CountingBloom> ||
                std::is_same_v<TypeParam, CountingBlocked>) {
    // The bits of a counter differ; the counters of a word do not.
    std::array<double, 16> by_counter{};
    std::array<double, 8> by_lane{};
    const auto* words = reinterpret_cast<const uint64_t*>(filter->Table().data());
    for (size_t w = 0; w < filter->Table().size() / 64 * 8; ++w) {
      for (size_t c = 0; c < 16; ++c) {
        const bool counts = (words[w] >> (4 * c) & 15) != 0;
        by_counter[c] += counts;
        by_lane[w % 8] += counts;
      }
    }
    EXPECT_LT(ChiSquare(by_counter), ChiSquareLimit(15));
    EXPECT_LT(ChiSquare(by_lane), together * ChiSquareLimit(7));
  } else {
    const Occupancy seen = Count(filter->Table());
    EXPECT_LT(ChiSquare(seen.by_bit), ChiSquareLimit(63));
    EXPECT_LT(ChiSquare(seen.by_lane), together * ChiSquareLimit(7));
    if (!TypeParam::kInfo.grows) {
      EXPECT_LT(ChiSquare(seen.by_part), together * ChiSquareLimit(15));
    }
  }
}

TEST(OccupancyCountTest, ALaneThatIsLeftOutWouldBeSeen) {
  std::vector<uint64_t> words(8 * 1000);
  for (size_t i = 0; i < words.size(); ++i) words[i] = Mix64(i + 1) & ~uint64_t{1 << 9};
  Occupancy seen = Count(std::as_bytes(std::span(words)));
  EXPECT_GT(ChiSquare(seen.by_bit), ChiSquareLimit(63));
  EXPECT_LT(ChiSquare(seen.by_lane), ChiSquareLimit(7));
  for (size_t i = 3; i < words.size(); i += 8) words[i] = 0;
  seen = Count(std::as_bytes(std::span(words)));
  EXPECT_GT(ChiSquare(seen.by_lane), ChiSquareLimit(7));
}

}  // namespace
}  // namespace filterbench
