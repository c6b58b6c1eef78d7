#include "filters/ribbon/ribbon.h"

#include <sys/mman.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "filters/ribbon/bumped.h"
#include "filters/theory/agreement.h"
#include "filters/theory/ribbon.h"

namespace filterbench {
namespace {

using ::testing::HasSubstr;
using Width = Ribbon::Width;
using System = Ribbon::System;

constexpr double kFalseAlarm = 1e-9;

// Mix64 is a bijection: different indices are different hashes.
std::vector<uint64_t> Hashes(uint64_t first, uint64_t n) {
  std::vector<uint64_t> hashes(n);
  for (uint64_t i = 0; i < n; ++i) hashes[i] = Mix64(first + i);
  return hashes;
}

uint64_t CountFalseNegatives(const Ribbon& filter, const std::vector<uint64_t>& hashes) {
  return hashes.size() - CountContained(filter, hashes);
}

struct Kind {
  Width width;
  System system;
};
constexpr Kind kKinds[] = {{Width::k64, System::kStandard},
                           {Width::k64, System::kHomogeneous},
                           {Width::k128, System::kStandard},
                           {Width::k128, System::kHomogeneous}};

TEST(RibbonTest, EveryNumberOfKeysBuildsWithinItsBudget) {
  for (const Kind kind : kKinds) {
    for (uint64_t n = 0; n <= 2000; ++n) {
      const uint64_t seed = n % 7;
      const auto hashes = Hashes(n * 10'000, n);
      const auto filter =
          Ribbon::Build(hashes, {.width = kind.width, .system = kind.system, .seed = seed});
      ASSERT_TRUE(filter) << filter.error();
      ASSERT_EQ(CountFalseNegatives(*filter, hashes), 0u) << n;
      ASSERT_EQ(filter->report().distinct_keys, n);
      if (filter->shape().max_columns() > 1) {
        ASSERT_EQ(filter->Table().size(), 10 * n / 64 * 8) << n;  // whole words, none left over
      }
      if (kind.system == System::kHomogeneous) {
        ASSERT_EQ(filter->report().attempts, 1u);
      }
    }
  }
}

// Every number of keys to 20000, for random hashes, hashes in a row and hashes of keys in a row.
// FILTERBENCH_RIBBON_SWEEP=all builds all of them with four seeds; otherwise every 1237th.
TEST(RibbonTest, EveryNumberOfKeys) {
  const bool all = std::getenv("FILTERBENCH_RIBBON_SWEEP") != nullptr;
  constexpr uint64_t kMaxKeys = 20'000;
  std::vector<uint64_t> in_a_row(kMaxKeys);
  std::vector<uint64_t> of_keys_in_a_row(kMaxKeys);
  for (uint64_t i = 0; i < kMaxKeys; ++i) {
    in_a_row[i] = i;
    of_keys_in_a_row[i] = HashU64(i, 0);
  }
  for (const auto& hashes : {Hashes(0, kMaxKeys), in_a_row, of_keys_in_a_row}) {
    for (uint64_t seed = 0; seed < (all ? 4 : 1); ++seed) {
      for (size_t n = 0; n <= kMaxKeys; n += all ? 1 : 1237) {
        for (const Kind kind : kKinds) {
          const std::vector<uint64_t> keys(hashes.begin(),
                                           hashes.begin() + static_cast<int64_t>(n));
          const auto filter = Ribbon::Build(
              keys, {.width = kind.width, .system = kind.system, .seed = Mix64(seed + n)});
          ASSERT_TRUE(filter) << filter.error();
          ASSERT_EQ(CountFalseNegatives(*filter, keys), 0u) << n;
          // Each fails with a probability of at most 1 in 20.
          ASSERT_LE(filter->report().attempts, 8u) << n;
        }
      }
    }
  }
}

TEST(RibbonTest, EmptyFilterDeniesEverything) {
  for (const Kind kind : kKinds) {
    const auto filter = Ribbon::Build({}, {.width = kind.width, .system = kind.system});
    ASSERT_TRUE(filter);
    EXPECT_EQ(CountContained(*filter, Hashes(0, 1000)), 0u);
    EXPECT_FALSE(filter->MayContain(0));
    EXPECT_EQ(filter->ExpectedFpr()->mean, 0);
    const auto copy = Ribbon::Deserialize(filter->Serialize());
    ASSERT_TRUE(copy) << copy.error();
    EXPECT_FALSE(copy->MayContain(0));
  }
}

TEST(RibbonTest, FirstSeedWorksAtLeast19TimesOutOf20) {
  for (const Width width : {Width::k64, Width::k128}) {
    for (const uint64_t n : {59u, 121u, 250u, 1000u, 10'000u}) {
      constexpr uint64_t kTrials = 200;
      uint64_t failures = 0;
      for (uint64_t seed = 0; seed < kTrials; ++seed) {
        const auto filter = Ribbon::Build(Hashes(seed << 32, n), {.width = width, .seed = seed});
        ASSERT_TRUE(filter) << filter.error();
        failures += filter->report().attempts > 1 ? 1 : 0;
      }
      EXPECT_GE(theory::BinomialUpperTail(failures, kTrials, 0.05), kFalseAlarm)
          << n << " keys: " << failures;
    }
  }
}

// Case C5: nothing is left of attempts that failed.
TEST(RibbonTest, LaterAttemptsAreReportedAndSurviveTheWire) {
  bool seen = false;
  for (uint64_t seed = 0; seed < 400 && !seen; ++seed) {
    const auto hashes = Hashes(seed << 32, 2000);
    const auto filter = Ribbon::Build(hashes, {.width = Width::k64, .seed = seed});
    ASSERT_TRUE(filter);
    seen = filter->report().attempts > 1;
    if (!seen) continue;
    EXPECT_LE(filter->report().attempts, 8u);  // each fails with a probability of about 1 in 20
    const auto copy = Ribbon::Deserialize(filter->Serialize());
    ASSERT_TRUE(copy) << copy.error();
    EXPECT_EQ(copy->report().attempts, filter->report().attempts);
    // Nothing is left of the attempts that failed: the table is what the last salt alone gives.
    const auto view = filter->view();
    auto banding = Banding<uint64_t>::Allocate(view.shape.slots(), true);
    ASSERT_TRUE(banding);
    for (const uint64_t hash : hashes) {
      const uint64_t mixed = RibbonHash::Mix(hash, view.salt);
      const RibbonHash equation(mixed);
      const uint64_t mask = (uint64_t{1} << view.shape.max_columns()) - 1;
      banding->Add<true>(RibbonHash::Start(mixed, view.starts),
                         equation.ByteCoefficientRow<uint64_t>(),
                         static_cast<uint32_t>(equation.ResultRow<uint64_t>() & mask));
    }
    std::vector<uint64_t> words(view.shape.words());
    banding->Solve(view.shape, false, 0, words.data());
    EXPECT_TRUE(std::equal(words.begin(), words.end(), view.words));
    EXPECT_EQ(CountFalseNegatives(*copy, hashes), 0u);
  }
  EXPECT_TRUE(seen);  // at 4 % failures, 400 seeds all work with probability 1e-7
}

// Case C2: bits per key count distinct keys.
TEST(RibbonTest, DuplicatesAreCountedAndHarmless) {
  for (const Kind kind : kKinds) {
    for (const uint64_t distinct : {1u, 50u, 3000u, 20'000u}) {
      std::vector<uint64_t> hashes = Hashes(0, distinct);
      for (uint64_t i = 0; i < 2 * distinct; ++i) hashes.push_back(hashes[i % (distinct / 2 + 1)]);
      const auto filter = Ribbon::Build(hashes, {.width = kind.width, .system = kind.system});
      ASSERT_TRUE(filter) << filter.error();
      EXPECT_EQ(filter->report().distinct_keys, distinct);
      EXPECT_EQ(CountFalseNegatives(*filter, hashes), 0u);
    }
  }
  const std::vector<uint64_t> same(10'000, 12345);
  const auto filter = Ribbon::Build(same, {});
  ASSERT_TRUE(filter);
  EXPECT_EQ(filter->report().distinct_keys, 1u);
  EXPECT_EQ(filter->report().attempts, 1u);
}

// Case C9: no bits per key, or contradicting sizes, are refused in words.
TEST(RibbonTest, SizeIsAskedForInOneWay) {
  const auto error = [](const Ribbon::Params& params) {
    const auto shape = Ribbon::ShapeFor(1000, params, 0);
    return shape ? std::string() : shape.error();
  };
  EXPECT_THAT(error({.fpr = 0.01, .columns = 8}), HasSubstr("contradict"));
  EXPECT_THAT(error({.bits_per_key = 9, .fpr = 0.01}), HasSubstr("contradict"));
  EXPECT_THAT(error({.bits_per_key = 9, .columns = 8}), HasSubstr("contradict"));
  EXPECT_THAT(error({.bits_per_key = 0}), HasSubstr("one must be given"));
  EXPECT_THAT(error({.fpr = 1e-11}), HasSubstr("fpr: must be"));
  EXPECT_THAT(error({.columns = 0.5}), HasSubstr("columns: must be"));
  EXPECT_THAT(error({.bits_per_key = std::nan("")}), HasSubstr("must be"));
  // The default of bits_per_key gives way; 0 is the same.
  EXPECT_EQ(error({.columns = 8}), "");
  EXPECT_EQ(Ribbon::ShapeFor(1000, {.columns = 8}, 0)->columns, 8u);
  EXPECT_EQ(*Ribbon::ShapeFor(1000, {.columns = 8}, 0),
            *Ribbon::ShapeFor(1000, {.bits_per_key = 0, .columns = 8}, 0));
}

TEST(RibbonTest, ColumnsMayBeFractions) {
  const RibbonShape shape = *Ribbon::ShapeFor(1'000'000, {.columns = 7.25}, 0);
  EXPECT_EQ(shape.columns, 7u);
  EXPECT_EQ(shape.blocks - shape.first_wide_block, shape.blocks / 4);
  const RibbonShape whole = *Ribbon::ShapeFor(1'000'000, {.columns = 7}, 0);
  EXPECT_EQ(whole.first_wide_block, whole.blocks);
  EXPECT_EQ(whole.words(), 7 * whole.blocks);
}

TEST(RibbonTest, FprIsMetFromBelowAndClosely) {
  for (const double fpr : {0.5, 0.3, 0.01, 1.0 / 128, 1e-3, 1e-5, 3e-10}) {
    const auto filter = Ribbon::Build(Hashes(0, 100'000), {.fpr = fpr});
    ASSERT_TRUE(filter) << filter.error();
    EXPECT_LE(filter->ExpectedFpr()->mean, fpr);
    // One block of 1,600 is the grain.
    EXPECT_GE(filter->ExpectedFpr()->mean, fpr * (1 - 1e-3));
  }
}

// Cases A1, A2: 2^33 keys and more.
TEST(RibbonTest, SizesBeyond32BitsAndTheLimit) {
  const uint64_t n = uint64_t{1} << 33;
  const RibbonShape shape = *Ribbon::ShapeFor(n, {.columns = 7.5}, 0);
  EXPECT_GT(shape.slots(), n);
  const uint64_t starts = Ribbon::StartsFor(shape, Width::k128);
  EXPECT_EQ(RibbonHash::Start(UINT64_MAX, starts), starts - 1);
  EXPECT_EQ(RibbonHash::Start(0, starts), 0u);
  EXPECT_EQ((starts - 1 + 127) / 64, shape.blocks - 1);
  EXPECT_THAT(Ribbon::ShapeFor(uint64_t{1} << 36, {}, 0).error(), HasSubstr("too large"));
  EXPECT_THAT(Ribbon::ShapeFor(UINT64_MAX, {.system = System::kHomogeneous}, 0).error(),
              HasSubstr("too large"));
}

// Case A2: from one key to 2^45 of them, in every way of asking for a size.
TEST(RibbonTest, SizesDoNotDecreaseUntilTheyAreRefused) {
  for (const Kind kind : kKinds) {
    for (Ribbon::Params params :
         {Ribbon::Params{}, {.fpr = 0.01}, {.fpr = 1e-9}, {.columns = 1}, {.columns = 32}}) {
      params.width = kind.width;
      params.system = kind.system;
      uint64_t last = 0;
      bool refused = false;
      for (int log2 = 0; log2 <= 45; ++log2) {
        const uint64_t n = uint64_t{1} << log2;
        const Result<RibbonShape> shape = Ribbon::ShapeFor(n, params, 0);
        if (!shape) {
          refused = true;
          EXPECT_EQ(shape.error().find("too large: needs "), 0u) << shape.error();
          continue;
        }
        EXPECT_FALSE(refused) << n;
        EXPECT_GE(shape->words(), last) << n;
        EXPECT_GT(shape->slots(), n);
        EXPECT_LE(shape->words() * 8, Ribbon::kMaxTableBytes);
        last = shape->words();
      }
      EXPECT_TRUE(refused);
    }
  }
}

// Slots beyond 2^32 without the memory. Half of the hashes are made keys: with a byte of a plane, or
// a bit of each column, at the first slot of the row, which every row has.
template <class F>
void CheckHugeTable(typename F::View view) {
  const uint64_t bytes = (view.shape.words() + 2) * 8 + kCacheLineBytes;
  void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) GTEST_SKIP() << "no address space for " << bytes << " bytes";
  auto* words = static_cast<uint64_t*>(mapping);
  view.words = words;
  const auto hashes = Hashes(0, 1000);
  uint64_t beyond = 0;
  for (size_t i = 0; i < hashes.size(); i += 2) {
    const uint64_t start =
        RibbonHash::Start(RibbonHash::Mix(hashes[i], view.salt), view.starts);
    beyond += start >> 32 != 0 ? 1 : 0;
    const uint64_t block = start / RibbonShape::kBlockSlots;
    for (uint32_t value = 0; value < 256 && !view.MayContain(hashes[i]); ++value) {
      if (view.shape.planes() != 0) {
        reinterpret_cast<uint8_t*>(words)[start] = static_cast<uint8_t>(value);
        continue;
      }
      for (uint32_t c = 0; c < view.shape.columns; ++c) {
        uint64_t& word = words[view.shape.WordIndex(block) + c];
        const uint64_t bit = uint64_t{1} << (start % RibbonShape::kBlockSlots);
        word = (value >> c & 1) != 0 ? word | bit : word & ~bit;
      }
    }
    ASSERT_TRUE(view.MayContain(hashes[i])) << i;
  }
  // Slots below 2^32 are a third: fewer beyond than 1 in 3 has a chance below 1e-60.
  EXPECT_GT(beyond, hashes.size() / 6);
  for (const auto& kernel : F::Kernels()) {
    std::vector<uint64_t> answers((hashes.size() + 63) / 64);
    kernel.bits_batched(view, hashes.data(), hashes.size(), answers.data());
    for (size_t i = 0; i < hashes.size(); ++i) {
      ASSERT_EQ(answers[i / 64] >> (i % 64) & 1, view.MayContain(hashes[i]) ? 1u : 0u)
          << kernel.target << " " << i;
    }
  }
  munmap(mapping, bytes);
}

// Case A1: all targets find the slots beyond 2^32.
TEST(RibbonTest, TargetsAgreeBeyond32BitSlots) {
  const uint64_t blocks = uint64_t{3} << 26;  // 3 2^32 slots
  for (const uint32_t columns : {3u, 8u}) {
    const RibbonShape shape{.blocks = blocks, .columns = columns, .first_wide_block = blocks};
    for (const Width width : {Width::k64, Width::k128}) {
      for (const bool prefetch : {false, true}) {
        CheckHugeTable<Ribbon>({{nullptr, Ribbon::StartsFor(shape, width), Mix64(1), shape, prefetch},
                                width, System::kStandard});
      }
    }
    for (const auto width : {BumpedRibbon::Width::k32, BumpedRibbon::Width::k64}) {
      RibbonLayers layers;
      layers.count = 1;
      layers.end = shape.slots() - 64;
      CheckHugeTable<BumpedRibbon>({{nullptr, layers.end, Mix64(1), shape, true}, layers, width});
    }
  }
}

TEST(RibbonTest, FprOfTheStandardFilterAgreesWithTheory) {
  constexpr uint64_t kQueries = 2'000'000;
  const auto queries = Hashes(uint64_t{1} << 40, kQueries);
  for (const Width width : {Width::k64, Width::k128}) {
    for (const double bits_per_key : {2.0, 4.0, 8.0, 10.0, 12.0, 20.0}) {
      const auto filter =
          Ribbon::Build(Hashes(0, 50'000), {.bits_per_key = bits_per_key, .width = width});
      ASSERT_TRUE(filter);
      const uint64_t found = CountContained(*filter, queries);
      EXPECT_TRUE(theory::FprAgrees(found, kQueries, *filter->ExpectedFpr(), kFalseAlarm))
          << bits_per_key << ": " << found << " against " << filter->ExpectedFpr()->mean * kQueries;
    }
  }
}

// The block where a row starts decides, also for rows that reach from a narrow into a wide block.
TEST(RibbonTest, NarrowAndWideStartsHaveTheirOwnRate) {
  for (const Width width : {Width::k64, Width::k128}) {
    const auto filter = Ribbon::Build(Hashes(0, 50'000), {.columns = 4.5, .width = width});
    ASSERT_TRUE(filter);
    const auto view = filter->view();
    const uint64_t border = filter->shape().first_wide_block * RibbonShape::kBlockSlots;
    uint64_t asked[3] = {};
    uint64_t found[3] = {};
    for (const uint64_t hash : Hashes(uint64_t{1} << 40, 4'000'000)) {
      const uint64_t start = RibbonHash::Start(RibbonHash::Mix(hash, view.salt), view.starts);
      const int region = start >= border ? 2 : start + 128 > border ? 1 : 0;
      ++asked[region];
      found[region] += view.MayContain(hash) ? 1 : 0;
    }
    ASSERT_GT(asked[1], 5'000u);
    EXPECT_TRUE(theory::FprAgrees(found[0], asked[0], {1.0 / 16}, kFalseAlarm));
    EXPECT_TRUE(theory::FprAgrees(found[1], asked[1], {1.0 / 16}, kFalseAlarm));
    EXPECT_TRUE(theory::FprAgrees(found[2], asked[2], {1.0 / 32}, kFalseAlarm));
  }
}

TEST(RibbonTest, FprOfTheHomogeneousFilterAgreesWithTheory) {
  constexpr uint64_t kQueries = 1'000'000;
  const auto queries = Hashes(uint64_t{1} << 40, kQueries);
  for (const Width width : {Width::k64, Width::k128}) {
    for (const double columns : {4.0, 7.5, 8.0}) {
      const auto filter =
          Ribbon::Build(Hashes(0, 1'000'000),
                        {.columns = columns, .width = width, .system = System::kHomogeneous});
      ASSERT_TRUE(filter);
      const uint64_t found = CountContained(*filter, queries);
      EXPECT_TRUE(theory::FprAgrees(found, kQueries, *filter->ExpectedFpr(), kFalseAlarm))
          << columns << ": " << found << " against " << filter->ExpectedFpr()->mean * kQueries;
      // No instance is better than its columns.
      EXPECT_GE(theory::BinomialLowerTail(found, kQueries, theory::RibbonFpr(columns)),
                kFalseAlarm);
    }
  }
}

// Where the table is small or n next to a border of blocks, some slots must stay free.
TEST(RibbonTest, SmallHomogeneousFiltersAreNotSolved) {
  const auto queries = Hashes(uint64_t{1} << 40, 20'000);
  for (const Width width : {Width::k64, Width::k128}) {
    for (const uint64_t n : {1u, 30u, 58u, 63u, 117u, 122u, 175u, 234u, 488u, 936u, 1872u}) {
      uint64_t found = 0;
      constexpr uint64_t kSeeds = 10;
      for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        const auto filter = Ribbon::Build(
            Hashes(seed << 32, n),
            {.columns = 8, .width = width, .system = System::kHomogeneous, .seed = seed});
        ASSERT_TRUE(filter);
        found += CountContained(*filter, queries);
      }
      const uint64_t asked = kSeeds * queries.size();
      // A tenth more than 2^-8 is allowed for the excess of small tables.
      EXPECT_GE(theory::BinomialUpperTail(found, asked, 1.1 / 256), kFalseAlarm) << n;
      EXPECT_GE(theory::BinomialLowerTail(found, asked, 1.0 / 256), kFalseAlarm) << n;
    }
  }
}

TEST(RibbonTest, KernelsAnswerAsTheReferenceDoes) {
  const auto keys = Hashes(0, 3000);
  auto queries = Hashes(uint64_t{1} << 40, 1200);
  for (size_t i = 0; i < queries.size(); ++i) {
    if (Mix64(i) % 4 != 0) queries[i] = keys[i];
  }
  for (const Kind kind : kKinds) {
    for (const double columns : {1.0, 2.5, 4.0, 4.5, 7.0, 7.25, 8.0, 8.5, 11.0, 16.5, 31.5, 32.0}) {
      const auto filter =
          Ribbon::Build(keys, {.columns = columns, .width = kind.width, .system = kind.system});
      ASSERT_TRUE(filter) << filter.error();
      auto view = filter->view();
      for (const bool prefetch : {false, true}) {
        view.prefetch = prefetch;
        for (const auto& kernel : Ribbon::Kernels()) {
          for (const size_t n : {0, 1, 7, 8, 9, 63, 64, 65, 130, 1023, 1024, 1025, 1190}) {
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

// Case C9: the matrix counts.
TEST(RibbonTest, PeakMemoryHoldsTheMatrix) {
  constexpr uint64_t kKeys = 100'000;
  const auto filter = Ribbon::Build(Hashes(0, kKeys), {});
  ASSERT_TRUE(filter);
  // 16 bytes of row, 4 of result per slot; 8 per ordered key.
  EXPECT_GE(filter->report().peak_bytes, filter->shape().slots() * 20 + kKeys * 8);
  EXPECT_LE(filter->report().peak_bytes, filter->shape().slots() * 20 + kKeys * 8 + (16 << 20));
}

// shared/reference/theory_tables.json: ribbon_standard_overhead (RocksDB's capacities at 95 %),
// ribbon_homogeneous_overhead_rule, rocksdb_ribbon_vs_bloom.
TEST(RibbonTheoryTest, SlotsPerKeyFollowTheTables) {
  struct Row {
    uint64_t n;
    double w64;
    double w128;
  };
  for (const Row& row :
       {Row{3000, 1.0553, 1.0227}, Row{10'000, 1.0664, 1.0249}, Row{100'000, 1.0925, 1.0353},
        Row{300'000, 1.1057, 1.0411}, Row{3'000'000, 1.1335, 1.0538},
        Row{10'000'000, 1.1482, 1.0605}, Row{900'000'000, 1.2020, 1.0851}}) {
    EXPECT_NEAR(theory::RibbonSlotsPerKey(row.n, 64), row.w64, 0.006) << row.n;
    EXPECT_NEAR(theory::RibbonSlotsPerKey(row.n, 128), row.w128, 0.004) << row.n;
  }
  for (uint64_t n = 1; n < (uint64_t{1} << 40); n = n * 3 / 2 + 1) {
    EXPECT_LE(theory::RibbonSlotsPerKey(n, 64), theory::RibbonSlotsPerKey(n + n / 2 + 1, 64)) << n;
  }
  EXPECT_EQ(theory::HomogeneousRibbonSlotsPerKey(8, 64), 1.09375);
  EXPECT_EQ(theory::HomogeneousRibbonSlotsPerKey(11, 64), 1.10546875);
  EXPECT_EQ(theory::HomogeneousRibbonSlotsPerKey(16, 128), 1.0625);
}

TEST(RibbonTheoryTest, MixedColumns) {
  EXPECT_EQ(theory::RibbonFpr(7, 0), 1.0 / 128);
  EXPECT_EQ(theory::RibbonFpr(7, 1), 1.0 / 256);
  EXPECT_NEAR(theory::RibbonFpr(6.779817651899947), 0.009532674594531667, 1e-15);
  EXPECT_NEAR(theory::RibbonFpr(12.60026589230452), 0.0001708659799432958, 1e-17);
  EXPECT_FALSE(Ribbon::TheoryFpr(1.0));
  EXPECT_NEAR(*Ribbon::TheoryFpr(10),
              theory::RibbonFpr(10 / theory::RibbonSlotsPerKey(1'000'000, 128)), 1e-15);
}

// Shares of 2 * 60 filters of 1e5 keys with 64-bit rows in solved regions, simulated with random
// rows: mean over instances, and the deviation of that mean.
TEST(RibbonTheoryTest, HomogeneousExcessFollowsSimulations) {
  struct Row {
    int columns;
    double in_span;
    double deviation;
  };
  for (const Row& row : {Row{2, 2.2e-3, 3.7e-4}, Row{4, 8.8e-4, 2.1e-4}, Row{8, 2.0e-4, 1.0e-4}}) {
    const FprEstimate estimate = theory::HomogeneousRibbonFpr(100'000, row.columns, 0, 64);
    const double nominal = theory::RibbonFpr(row.columns, 0);
    EXPECT_NEAR((estimate.mean - nominal) / (1 - nominal), row.in_span, 4 * row.deviation);
    EXPECT_GT(estimate.instance_sd, 0);
  }
}

}  // namespace
}  // namespace filterbench
