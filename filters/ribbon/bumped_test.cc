#include "filters/ribbon/bumped.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "filters/theory/agreement.h"
#include "filters/theory/ribbon.h"

namespace filterbench {
namespace {

using ::testing::HasSubstr;
using Width = BumpedRibbon::Width;
using Params = BumpedRibbon::Params;

constexpr double kFalseAlarm = 1e-9;
constexpr Width kWidths[] = {Width::k32, Width::k64};

// Mix64 is a bijection: different indices are different hashes.
std::vector<uint64_t> Hashes(uint64_t first, uint64_t n) {
  std::vector<uint64_t> hashes(n);
  for (uint64_t i = 0; i < n; ++i) hashes[i] = Mix64(first + i);
  return hashes;
}

uint64_t CountFalseNegatives(const BumpedRibbon& filter, std::span<const uint64_t> hashes) {
  return hashes.size() - CountContained(filter, hashes);
}

double BitsPerKey(const BumpedRibbon& filter, uint64_t n) {
  return 8.0 * static_cast<double>(filter.Table().size()) / static_cast<double>(n);
}

// What the filter is for.
TEST(BumpedRibbonTest, OverheadIsBelowOnePercent) {
  const auto hashes = Hashes(0, 1'000'000);
  for (uint64_t n = 10'000; n <= hashes.size(); n += n < 10'300 ? 1 : n / 5) {
    const auto filter = BumpedRibbon::Build(std::span(hashes).first(n), {.columns = 8, .seed = n});
    ASSERT_TRUE(filter) << filter.error();
    EXPECT_LE(BitsPerKey(*filter, n), 8.08) << n;
  }
  for (const uint64_t n : {uint64_t{10'000}, uint64_t{100'000}, uint64_t{1'000'000}}) {
    const auto filter = BumpedRibbon::Build(std::span(hashes).first(n), {.columns = 8});
    ASSERT_TRUE(filter) << filter.error();
    EXPECT_LE(BitsPerKey(*filter, n), n == 10'000 ? 8.06 : 8.03) << n;
    EXPECT_EQ(CountFalseNegatives(*filter, std::span(hashes).first(n)), 0u);
  }
}

// Every number of keys to 20000, for random hashes, hashes in a row and hashes of keys in a row.
// FILTERBENCH_RIBBON_SWEEP=all builds all of them with four seeds; otherwise every one to 300 and
// every 331st beyond.
TEST(BumpedRibbonTest, EveryNumberOfKeys) {
  const bool all = std::getenv("FILTERBENCH_RIBBON_SWEEP") != nullptr;
  constexpr uint64_t kMaxKeys = 20'000;
  std::vector<uint64_t> in_a_row(kMaxKeys);
  std::vector<uint64_t> of_keys_in_a_row(kMaxKeys);
  for (uint64_t i = 0; i < kMaxKeys; ++i) {
    in_a_row[i] = i;
    of_keys_in_a_row[i] = HashU64(i, 0);
  }
  uint64_t worst = 0;
  for (const auto& hashes : {Hashes(0, kMaxKeys), in_a_row, of_keys_in_a_row}) {
    for (uint64_t seed = 0; seed < (all ? 4 : 1); ++seed) {
      for (size_t n = 0; n <= kMaxKeys; n += n < 300 || all ? 1 : 331) {
        for (const Width width : kWidths) {
          const std::span<const uint64_t> keys = std::span(hashes).first(n);
          const auto filter = BumpedRibbon::Build(keys, {.width = width, .seed = Mix64(seed + n)});
          ASSERT_TRUE(filter) << filter.error();
          ASSERT_EQ(CountFalseNegatives(*filter, keys), 0u) << n;
          ASSERT_EQ(filter->report().distinct_keys, n);
          worst = std::max(worst, filter->report().attempts);
        }
      }
    }
  }
  RecordProperty("worst_attempts", static_cast<int>(worst));
  EXPECT_LE(worst, BumpedRibbon::kMaxAttempts / 4);
}

// In steps that leave the high bits, or the low ones, all equal.
TEST(BumpedRibbonTest, SequentialHashes) {
  for (const size_t n : {10, 1000, 4372, 50'000}) {
    for (const uint64_t step : {uint64_t{1}, uint64_t{1} << 20, uint64_t{1} << 32,
                                uint64_t{1} << 44, (uint64_t{1} << 32) + 1}) {
      std::vector<uint64_t> hashes(n);
      for (size_t i = 0; i < n; ++i) hashes[i] = i * step;
      for (const Width width : kWidths) {
        const auto filter = BumpedRibbon::Build(hashes, {.columns = 8, .width = width});
        ASSERT_TRUE(filter) << filter.error();
        ASSERT_EQ(CountFalseNegatives(*filter, hashes), 0u) << n << " " << step;
        if (n == 50'000) {
          EXPECT_LE(BitsPerKey(*filter, n), 8.25) << step;
        }
      }
    }
  }
}

TEST(BumpedRibbonTest, EmptyFilterDeniesEverything) {
  const auto filter = BumpedRibbon::Build({}, {});
  ASSERT_TRUE(filter);
  EXPECT_EQ(CountContained(*filter, Hashes(0, 1000)), 0u);
  EXPECT_EQ(filter->ExpectedFpr()->mean, 0);
  EXPECT_TRUE(filter->Table().empty());
}

// Case C2: bits per key count distinct keys.
TEST(BumpedRibbonTest, DuplicatesAreCountedAndHarmless) {
  for (const Width width : kWidths) {
    for (const uint64_t distinct : {1u, 50u, 3000u, 20'000u}) {
      std::vector<uint64_t> hashes = Hashes(0, distinct);
      for (uint64_t i = 0; i < 2 * distinct; ++i) hashes.push_back(hashes[i % (distinct / 2 + 1)]);
      // With one column half of all dependent rows agree by chance, equal or not.
      for (const double columns : {1.0, 8.0}) {
        const auto filter = BumpedRibbon::Build(hashes, {.columns = columns, .width = width});
        ASSERT_TRUE(filter) << filter.error();
        EXPECT_EQ(filter->report().distinct_keys, distinct);
        EXPECT_EQ(CountFalseNegatives(*filter, hashes), 0u);
      }
    }
  }
  // So few distinct keys leave more bits per key than the results have.
  for (const uint64_t copies : {256, 100'000}) {
    const std::vector<uint64_t> same(copies, 12345);
    for (const double bits_per_key : {4.0, 10.0, 20.0}) {
      const auto filter = BumpedRibbon::Build(same, {.bits_per_key = bits_per_key});
      ASSERT_TRUE(filter);
      EXPECT_EQ(filter->report().distinct_keys, 1u);
      EXPECT_EQ(CountFalseNegatives(*filter, same), 0u);
    }
  }
}

TEST(BumpedRibbonTest, OrderOfKeysLeavesNoTrace) {
  std::vector<uint64_t> keys = Hashes(0, 30'000);
  for (const Width width : kWidths) {
    const auto forwards = BumpedRibbon::Build(keys, {.columns = 8, .width = width});
    std::reverse(keys.begin(), keys.end());
    const auto backwards = BumpedRibbon::Build(keys, {.columns = 8, .width = width});
    ASSERT_TRUE(forwards && backwards);
    EXPECT_EQ(forwards->Serialize(), backwards->Serialize());
  }
}

// A share of the keys, here told by their first start, is answered in later layers, and there by
// the same rule: none is lost, and absent ones pass at the same rate.
TEST(BumpedRibbonTest, BumpedKeysAreAnsweredInTheirLayer) {
  const auto keys = Hashes(0, 100'000);
  const auto queries = Hashes(uint64_t{1} << 40, 4'000'000);
  for (const Width width : kWidths) {
    const auto filter = BumpedRibbon::Build(keys, {.columns = 4, .width = width});
    ASSERT_TRUE(filter);
    const auto view = filter->view();
    ASSERT_GE(view.layers.count, 3u);
    view.Specialize([&]<class V>(const V& sized) {
      if constexpr (requires { sized.layers; }) {
        const auto layer_of = [&](uint64_t hash) {
          uint64_t mixed = RibbonHash::Mix(hash, sized.salt);
          uint64_t start = RibbonHash::Start(mixed, sized.starts);
          if (!V::FirstBuckets::IsBumped(sized.levels(), start)) return 0u;
          start = sized.MoveOn(mixed);
          uint32_t layer = 1;
          while (layer + 1 < sized.layers.count && start >= sized.layers.First(layer + 1)) ++layer;
          return layer;
        };
        std::vector<uint64_t> built(sized.layers.count);
        for (const uint64_t hash : keys) {
          ++built[layer_of(hash)];
          ASSERT_TRUE(sized.MayContain(hash));
        }
        for (const uint64_t in_layer : built) EXPECT_GT(in_layer, 0u);
        EXPECT_LT(built[0], keys.size() * 97 / 100);
        EXPECT_GT(built[0], keys.size() * 85 / 100);
        uint64_t asked[2] = {};
        uint64_t found[2] = {};
        for (const uint64_t hash : queries) {
          const int later = layer_of(hash) != 0 ? 1 : 0;
          ++asked[later];
          found[later] += sized.MayContain(hash) ? 1 : 0;
        }
        ASSERT_GT(asked[1], 100'000u);
        for (const int later : {0, 1}) {
          EXPECT_TRUE(theory::FprAgrees(found[later], asked[later], {1.0 / 16}, kFalseAlarm));
        }
      }
    });
  }
}

TEST(BumpedRibbonTest, FprAgreesWithTheory) {
  constexpr uint64_t kQueries = 2'000'000;
  const auto queries = Hashes(uint64_t{1} << 40, kQueries);
  for (const Width width : kWidths) {
    for (const double bits_per_key : {2.0, 4.5, 7.99, 8.2, 8.5, 10.0, 12.0, 20.0}) {
      const auto filter =
          BumpedRibbon::Build(Hashes(0, 50'000), {.bits_per_key = bits_per_key, .width = width});
      ASSERT_TRUE(filter);
      EXPECT_LE(BitsPerKey(*filter, 50'000), bits_per_key);
      EXPECT_GE(BitsPerKey(*filter, 50'000), bits_per_key - 0.011);  // a word less of 781
      const uint64_t found = CountContained(*filter, queries);
      EXPECT_TRUE(theory::FprAgrees(found, kQueries, *filter->ExpectedFpr(), kFalseAlarm))
          << bits_per_key << ": " << found << " against " << filter->ExpectedFpr()->mean * kQueries;
    }
  }
}

TEST(BumpedRibbonTest, FprIsMetFromBelowAndClosely) {
  for (const Width width : kWidths) {
    for (const double fpr : {0.5, 0.3, 0.01, 1.0 / 128, 1.0 / 256, 1e-3, 1e-5, 3e-10}) {
      const auto filter = BumpedRibbon::Build(Hashes(0, 100'000), {.fpr = fpr, .width = width});
      ASSERT_TRUE(filter) << filter.error();
      EXPECT_LE(filter->ExpectedFpr()->mean, fpr);
      // One block of 1,560 is the grain.
      EXPECT_GE(filter->ExpectedFpr()->mean, fpr * (1 - 1e-3));
    }
  }
}

TEST(BumpedRibbonTest, KernelsAnswerAsTheReferenceDoes) {
  const auto keys = Hashes(0, 3000);
  auto queries = Hashes(uint64_t{1} << 40, 1200);
  for (size_t i = 0; i < queries.size(); ++i) {
    if (Mix64(i) % 4 != 0) queries[i] = keys[i];
  }
  for (const Width width : kWidths) {
    for (const double columns : {1.0, 2.5, 4.0, 7.0, 7.25, 8.0, 8.5, 11.0, 16.0, 31.5, 32.0}) {
      for (const size_t built : {size_t{50}, keys.size()}) {
        const auto filter =
            BumpedRibbon::Build(std::span(keys).first(built), {.columns = columns, .width = width});
        ASSERT_TRUE(filter) << filter.error();
        auto view = filter->view();
        for (const bool prefetch : {false, true}) {
          view.prefetch = prefetch;
          for (const auto& kernel : BumpedRibbon::Kernels()) {
            for (const size_t n : {0, 1, 8, 63, 64, 65, 130, 1190}) {
              const uint64_t* begin = queries.data() + n % 5;
              constexpr uint64_t kUntouched = 0x5555555555555555;
              std::vector<uint64_t> bits((n + 63) / 64 + 1, kUntouched);
              kernel.bits_batched(view, begin, n, bits.data());
              std::vector<uint64_t> expected(bits.size(), 0);
              expected.back() = kUntouched;
              uint64_t count = 0;
              for (size_t i = 0; i < n; ++i) {
                const uint64_t answer = view.MayContain(begin[i]) ? 1 : 0;
                expected[i / 64] |= answer << (i % 64);
                count += answer;
              }
              ASSERT_EQ(bits, expected) << kernel.target << " " << columns << " " << n;
              ASSERT_EQ(kernel.count_batched(view, begin, n), count);
            }
          }
        }
      }
    }
  }
}

// Case A2: above the limit an error.
TEST(BumpedRibbonTest, SizesAreRefusedBeforeAHashIsRead) {
  // Never read, so that no memory is needed.
  const std::span<const uint64_t> many(static_cast<const uint64_t*>(nullptr), size_t{1} << 36);
  EXPECT_THAT(BumpedRibbon::Build(many, {.columns = 8}).error(), HasSubstr("too large: needs"));
  EXPECT_THAT(BumpedRibbon::Build(many.first(size_t{3} << 34), {.columns = 32}).error(),
              HasSubstr("too large: needs"));
  EXPECT_THAT(BumpedRibbon::Build({}, {.fpr = 0.01, .columns = 8}).error(),
              HasSubstr("contradict"));
}

// Case C9: the matrix counts.
TEST(BumpedRibbonTest, PeakMemoryHoldsTheMatrix) {
  constexpr uint64_t kKeys = 100'000;
  const auto filter = BumpedRibbon::Build(Hashes(0, kKeys), {});
  ASSERT_TRUE(filter);
  // 8 bytes of row, 4 of result per slot; 8 per ordered key.
  EXPECT_GE(filter->report().peak_bytes, filter->shape().slots() * 12 + kKeys * 8);
  EXPECT_LE(filter->report().peak_bytes, filter->shape().slots() * 12 + kKeys * 8 + (16 << 20));
}

// The levels of all buckets, by hand.
TEST(RibbonBucketsTest, LevelsAreTwoBitsPerBucket) {
  std::vector<uint64_t> levels(2);
  levels[0] = uint64_t{1} << 2 | uint64_t{2} << 4 | uint64_t{3} << 62;
  levels[1] = 3;
  const auto bumped = [&]<class Buckets>(Buckets, uint64_t bucket) {
    uint64_t slots = 0;
    for (uint64_t i = 0; i < Buckets::kBucketSlots; ++i) {
      const bool is_bumped = Buckets::IsBumped(levels.data(), bucket * Buckets::kBucketSlots + i);
      EXPECT_TRUE(!is_bumped || slots == i);  // the first ones
      slots += is_bumped ? 1 : 0;
    }
    return slots;
  };
  EXPECT_EQ(bumped(RibbonBuckets<128>(), 0), 0u);
  EXPECT_EQ(bumped(RibbonBuckets<128>(), 1), 20u);
  EXPECT_EQ(bumped(RibbonBuckets<128>(), 2), 48u);
  EXPECT_EQ(bumped(RibbonBuckets<128>(), 31), 128u);
  EXPECT_EQ(bumped(RibbonBuckets<128>(), 32), 128u);
  EXPECT_EQ(bumped(RibbonBuckets<128>(), 33), 0u);
  EXPECT_EQ(bumped(RibbonBuckets<32>(), 1), 8u);
  EXPECT_EQ(bumped(RibbonBuckets<32>(), 2), 16u);
  EXPECT_EQ(bumped(RibbonBuckets<32>(), 31), 32u);
}

TEST(RibbonTheoryTest, BumpedCurveIsThatOfTheTable) {
  const auto filter = BumpedRibbon::Build(Hashes(0, 1'000'000), {.bits_per_key = 10});
  ASSERT_TRUE(filter);
  EXPECT_NEAR(*BumpedRibbon::TheoryFpr(10) / filter->ExpectedFpr()->mean, 1, 0.005);
  EXPECT_FALSE(BumpedRibbon::TheoryFpr(1.0));
}

}  // namespace
}  // namespace filterbench
