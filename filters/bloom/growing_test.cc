// The rules of the filters that grow in layers; what holds for every filter is in
// filters/conformance.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "filters/bloom/scalable_bloom.h"
#include "filters/bloom/taffy_block.h"
#include "filters/test_support.h"
#include "filters/test_wire.h"
#include "filters/theory/agreement.h"
#include "filters/theory/blocked_bloom.h"

namespace filterbench {
namespace {

using test::CountDenied;
using test::TestHash;
using test::TestHashes;

constexpr double kFalseAlarm = 1e-9;

template <class T>
T Must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error());
  return std::move(*result);
}

template <class F>
double DetailOf(const F& filter, std::string_view name) {
  for (const Detail& detail : filter.GetDetails()) {
    if (detail.name == name) return detail.value;
  }
  return -1;
}

template <class F>
class GrowingTest : public ::testing::Test {
 protected:
  using Params = typename F::Params;
  // Grows from one key.
  static F FromOne(Params params = {}) {
    params.initial_keys = 1;
    return Must(F::Create(0, params));
  }
};
using Growing = ::testing::Types<ScalableBloom, TaffyBlock>;
TYPED_TEST_SUITE(GrowingTest, Growing, test::FilterNames);

// The promise: whatever the number of keys, the rate is under the bound. Theory must say so at
// every size, also where a layer is about to be full, and measurement must agree with theory and
// with the bound.
TYPED_TEST(GrowingTest, RateStaysUnderTheBoundFromOneKeyToAMillion) {
  constexpr uint64_t kQueries = uint64_t{1} << 19;
  for (const double fpr : {0.01, 1e-4}) {
    const uint64_t keys = fpr == 0.01 ? 1000000 : 60000;
    typename TypeParam::Params params;
    params.fpr = fpr;
    TypeParam filter = this->FromOne(params);
    uint64_t checked = 0;
    uint64_t measured = 0;
    uint32_t layers = 0;
    double highest = 0;
    for (uint64_t n = 1; n <= keys; ++n) {
      ASSERT_EQ(filter.Insert(TestHash(n - 1)), InsertStatus::kOk);
      const auto now = static_cast<uint32_t>(DetailOf(filter, "layers"));
      ASSERT_GE(now, layers);
      layers = now;
      if (n != keys && n < checked + 1 + checked / 32) continue;
      checked = n;
      SCOPED_TRACE(fmt::format("fpr {} n {} layers {}", fpr, n, layers));
      const FprEstimate expected = *filter.ExpectedFpr();
      ASSERT_LE(expected.mean, fpr);
      highest = std::max(highest, expected.mean);
      if (n != keys && n < 10 * measured) continue;
      measured = n;
      ASSERT_EQ(CountDenied(filter, TestHashes(0, n)), 0u);
      const uint64_t false_positives =
          CountContained(filter, TestHashes(uint64_t{1} << 40, kQueries));
      EXPECT_TRUE(theory::FprAgrees(false_positives, kQueries, expected, kFalseAlarm))
          << false_positives << " expected " << expected.mean * kQueries;
      EXPECT_GE(theory::BinomialUpperTail(false_positives, kQueries, fpr), kFalseAlarm);
    }
    EXPECT_GT(layers, 8u);
    // The bound is not kept by wasting memory: the rate comes near it.
    EXPECT_GT(highest, 0.6 * fpr);
    EXPECT_LE(filter.keys(), keys);
    EXPECT_GT(static_cast<double>(filter.keys()), (1 - 2 * fpr) * static_cast<double>(keys));
  }
}

// Nothing that may come exceeds the bound: the rates of all layers add up to it.
TYPED_TEST(GrowingTest, RatesOfAllLayersAddUpToTheBound) {
  typename TypeParam::Params params;
  for (const double fpr : {0.3, 0.01, 1e-6}) {
    params.fpr = fpr;
    double sum = 0;
    double last = 1;
    for (uint32_t layer = 0; layer < 48; ++layer) {
      const auto geometry = TypeParam::GeometryOf(params, 1000, layer);
      EXPECT_LT(geometry.fpr, last);
      last = geometry.fpr;
      sum += geometry.fpr;
      EXPECT_LT(sum, fpr * (1 + 1e-12));
    }
    EXPECT_GT(sum, 0.98 * fpr);
  }
}

// Case A2: layers never shrink or wrap around, whatever the first was made for.
TYPED_TEST(GrowingTest, LayersGrowWithTheirNumberAndDoNotWrap) {
  for (const uint64_t initial_keys : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 45, UINT64_MAX}) {
    double last = 0;
    for (uint32_t layer = 0; layer < 48; ++layer) {
      const auto geometry = TypeParam::GeometryOf({}, initial_keys, layer);
      double size;
      if constexpr (requires { geometry.bits; }) {
        size = static_cast<double>(geometry.bits);
      } else {
        size = static_cast<double>(geometry.blocks);
      }
      EXPECT_GE(size, last) << initial_keys << ' ' << layer;
      EXPECT_GE(geometry.capacity, 1u);
      last = size;
    }
  }
}

TYPED_TEST(GrowingTest, AViewSeesWhatIsInsertedAfterwards) {
  TypeParam filter = this->FromOne();
  const auto view = filter.view();
  for (uint64_t i = 0; i < 20000; ++i) {
    (void)filter.Insert(TestHash(i));
    ASSERT_TRUE(view.MayContain(TestHash(i)));
  }
  const TypeParam moved = std::move(filter);
  for (uint64_t i = 0; i < 20000; ++i) ASSERT_TRUE(view.MayContain(TestHash(i)));
  EXPECT_GT(moved.view().all->count, 5u);
}

// Many layers, of which the last are beyond the second-level cache, and keys of all of them.
TYPED_TEST(GrowingTest, KernelsAnswerLikeTheReferenceOverManyLayers) {
  const TypeParam filter = Must(TypeParam::Build(TestHashes(0, 600000), {.initial_keys = 4000}));
  ASSERT_GT(DetailOf(filter, "layers"), 6);
  const auto view = filter.view();
  EXPECT_TRUE(PrefetchPays(filter.Table().size() / 2));
  // Half present; of those, equally many of each power of two.
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < 4000; ++i) {
    const uint64_t random = Mix64(i + 1);
    const bool present = random >> 63 != 0;
    hashes.push_back(TestHash(present ? random % (uint64_t{2} << (random >> 32) % 20)
                                      : (uint64_t{1} << 40) + i));
  }
  std::vector<uint8_t> answers;
  for (const uint64_t hash : hashes) answers.push_back(view.MayContain(hash) ? 1 : 0);
  const auto sum = [&](size_t first, size_t n) {
    uint64_t count = 0;
    for (size_t i = first; i < first + n; ++i) count += answers[i];
    return count;
  };
  ASSERT_GT(sum(0, 4000), 1500u);
  ASSERT_LT(sum(0, 4000), 2500u);
  for (const auto& kernel : TypeParam::Kernels()) {
    SCOPED_TRACE(kernel.target);
    for (const size_t n : {0, 1, 7, 8, 9, 63, 64, 65, 100, 128, 129, 1000, 3990}) {
      for (const size_t first : {0, 1, 5, 10}) {
        ASSERT_EQ(kernel.count_batched(view, hashes.data() + first, n), sum(first, n)) << n;
        ASSERT_EQ(kernel.count_single(view, hashes.data() + first, n), sum(first, n)) << n;
        std::vector<uint64_t> bits((n + 63) / 64 + 1, 0xdead);
        kernel.bits_batched(view, hashes.data() + first, n, bits.data());
        ASSERT_EQ(bits.back(), 0xdeadu);
        for (size_t i = 0; i < (n + 63) / 64 * 64; ++i) {
          ASSERT_EQ(bits[i / 64] >> (i % 64) & 1, i < n ? answers[first + i] : 0) << n << ' ' << i;
        }
      }
    }
  }
}

TYPED_TEST(GrowingTest, AnySizeHoldsItsKeys) {
  for (const uint64_t initial_keys : {0, 1, 100}) {
    for (uint64_t n = 0; n <= 20000; n = n < 40 ? n + 1 : n * 4 / 3) {
      SCOPED_TRACE(fmt::format("n {} initial {}", n, initial_keys));
      typename TypeParam::Params params;
      params.initial_keys = initial_keys;
      params.seed = n;
      const std::vector<uint64_t> hashes = TestHashes(0, n);
      const TypeParam filter = Must(TypeParam::Build(hashes, params));
      ASSERT_EQ(CountDenied(filter, hashes), 0u);
      ASSERT_EQ(CountContained(filter, hashes), n);
      ASSERT_LE(filter.ExpectedFpr()->mean, params.fpr);
      ASSERT_GE(filter.report().peak_bytes, filter.Table().size());
    }
  }
}

TYPED_TEST(GrowingTest, SequentialHashesLoseNoKey) {
  std::vector<uint64_t> hashes(20000);
  for (size_t i = 0; i < hashes.size(); ++i) hashes[i] = i;
  const TypeParam filter = Must(TypeParam::Build(hashes, {.initial_keys = 10}));
  EXPECT_EQ(CountDenied(filter, hashes), 0u);
}

// Made in one piece or in the order of growth, over the wire and on from there.
TYPED_TEST(GrowingTest, ComesBackFromTheWireAndGrowsOn) {
  TypeParam filter = this->FromOne();
  TypeParam other = this->FromOne();
  for (uint64_t i = 0; i < 30000; ++i) {
    (void)filter.Insert(TestHash(i));
    (void)other.Insert(TestHash(i));
    if (i % 1777 == 0) other = Must(TypeParam::Deserialize(other.Serialize()));
  }
  EXPECT_EQ(filter.Serialize(), other.Serialize());
  EXPECT_EQ(filter.keys(), other.keys());
  EXPECT_EQ(filter.ExpectedFpr()->mean, other.ExpectedFpr()->mean);
}

// One byte of one field at a time, under a checksum that is right: refused, or a filter of the same
// size that says the same of itself. Fields: seed and knobs, then those of the layers.
// Cases E1, E2: the geometry of layers is checked against the table.
TYPED_TEST(GrowingTest, RefusesFieldsThatContradictTheTable) {
  TypeParam filter = this->FromOne();
  for (uint64_t i = 0; i < 3000; ++i) (void)filter.Insert(TestHash(i));
  const std::vector<std::byte> wire = filter.Serialize();
  const auto with = [&](size_t field, uint64_t value) {
    std::vector<std::byte> hostile = wire;
    std::memcpy(hostile.data() + 64 + 8 * field, &value, sizeof(value));
    test::FixChecksum(hostile);
    return TypeParam::Deserialize(hostile);
  };
  const auto field = [&](size_t i) {
    uint64_t value;
    std::memcpy(&value, wire.data() + 64 + 8 * i, sizeof(value));
    return value;
  };
  // Seed, knobs, first_layer_keys.
  const size_t layers_at = 1 + std::tuple_size_v<decltype(TypeParam::kKnobs)> + 1;
  const uint64_t layers = field(layers_at);
  ASSERT_EQ(layers, filter.view().all->count);
  for (const uint64_t value : {uint64_t{0}, layers - 1, layers + 1, uint64_t{64}, uint64_t{65},
                               uint64_t{1} << 40, UINT64_MAX}) {
    EXPECT_FALSE(with(layers_at, value)) << value;
  }
  for (const uint64_t value : {uint64_t{0}, uint64_t{2}, UINT64_MAX}) {
    EXPECT_FALSE(with(layers_at - 1, value)) << value;
  }
  EXPECT_FALSE(with(layers_at + 1, 0));  // keys of a layer below others, or of the newest
  EXPECT_TRUE(with(layers_at, layers));
}

TYPED_TEST(GrowingTest, RefusesATooLargeBeginning) {
  for (const uint64_t keys : {uint64_t{1} << 40, uint64_t{1} << 60, UINT64_MAX}) {
    const auto filter = TypeParam::Create(keys, {.initial_keys = 0});
    ASSERT_FALSE(filter);
    EXPECT_EQ(filter.error().find("too large: needs "), 0u) << filter.error();
  }
}

// --- Scalable Bloom filter ---

TEST(ScalableBloomTest, RateStaysUnderTheBoundForEveryGrowthAndTightening) {
  for (const double growth : {1.5, 2.0, 4.0, 16.0}) {
    for (const double tightening : {0.1, 0.5, 0.9, 0.95}) {
      for (const double fpr : {0.5, 0.02, 1e-6}) {
        SCOPED_TRACE(fmt::format("growth {} tightening {} fpr {}", growth, tightening, fpr));
        ScalableBloom filter = Must(ScalableBloom::Create(
            1, {.fpr = fpr, .initial_keys = 1, .growth = growth, .tightening = tightening}));
        for (uint64_t i = 0; i < 3000; ++i) {
          (void)filter.Insert(TestHash(i));
          ASSERT_LE(filter.ExpectedFpr()->mean, fpr) << i;
        }
      }
    }
  }
}

// The law behind ExpectedFpr in tables of few bits, where probes that depend on each other show:
// many filters, judged together.
TEST(ScalableBloomTest, FillDecidesTheRateOfSmallLayers) {
  constexpr uint64_t kFilters = 2000;
  constexpr uint64_t kQueries = 4096;
  double expected = 0;
  uint64_t false_positives = 0;
  for (uint64_t i = 0; i < kFilters; ++i) {
    const ScalableBloom filter = Must(ScalableBloom::Build(TestHashes(i << 32, 40), {.fpr = 0.02}));
    ASSERT_EQ(filter.layers(), 1u);
    ASSERT_LE(filter.Table().size(), 128u);
    expected += filter.ExpectedFpr()->mean / kFilters;
    false_positives += CountContained(filter, TestHashes((i << 32) + 1000000, kQueries));
  }
  EXPECT_TRUE(theory::FprAgrees(false_positives, kFilters * kQueries, {expected, 0}, kFalseAlarm))
      << false_positives << " expected " << expected * kFilters * kQueries;
}

// The bound of a layer is a number of set bits; with those, theory and geometry agree.
TEST(ScalableBloomTest, MaxSetIsWhereALayerHasItsRate) {
  for (const double fpr : {0.5, 0.01, 1e-6}) {
    for (uint32_t layer = 0; layer < 20; ++layer) {
      const auto geometry = ScalableBloom::GeometryOf({.fpr = fpr}, 1000, layer);
      const double share =
          static_cast<double>(geometry.max_set) / static_cast<double>(geometry.bits);
      EXPECT_LE(std::pow(share, geometry.k), geometry.fpr);
      EXPECT_GT(std::pow(share, geometry.k), 0.98 * geometry.fpr);
      EXPECT_GE(share, 0.49);
      EXPECT_LE(std::ldexp(1.0, -static_cast<int>(geometry.k)), geometry.fpr);
    }
  }
}

// Made for n keys it holds them in one layer, for any seed of the keys.
TEST(ScalableBloomTest, HoldsInOneLayerWhatItIsMadeFor) {
  for (const uint64_t n : {1, 2, 5, 10, 100, 1000, 10000}) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
      const auto filter = Must(ScalableBloom::Build(TestHashes(seed << 32, n), {}));
      ASSERT_EQ(filter.layers(), 1u) << n << ' ' << seed;
    }
  }
}

TEST(ScalableBloomTest, RepeatedKeysCostNothing) {
  auto filter = Must(ScalableBloom::Build(TestHashes(0, 1000), {.initial_keys = 100}));
  const std::vector<std::byte> wire = filter.Serialize();
  for (int round = 0; round < 10; ++round) {
    for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(filter.Insert(TestHash(i)), InsertStatus::kOk);
  }
  EXPECT_EQ(filter.Serialize(), wire);
}

// Numbers of RedisBloom for a chain of 100 keys at 1 %: half the rate, bits per key ln(1 / rate) /
// ln^2 2, whole words, k = ceil(ln 2 * bits per key); then twice the keys at half the rate.
TEST(ScalableBloomTest, KeysModeIsRedisBloom) {
  const ScalableBloom::Params params = {
      .fpr = 0.01, .initial_keys = 100, .layer_full = ScalableBloom::LayerFull::kKeys};
  const auto first = ScalableBloom::GeometryOf(params, 100, 0);
  EXPECT_DOUBLE_EQ(first.fpr, 0.005);
  EXPECT_EQ(first.bits, 1152u);  // floor(100 * 11.0277) = 1102
  EXPECT_EQ(first.k, 8u);
  const auto second = ScalableBloom::GeometryOf(params, 100, 1);
  EXPECT_DOUBLE_EQ(second.fpr, 0.0025);
  EXPECT_EQ(second.capacity, 200u);
  EXPECT_EQ(second.bits, 2496u);  // floor(200 * 12.4704) = 2494
  EXPECT_EQ(second.k, 9u);

  auto filter = Must(ScalableBloom::Create(0, params));
  uint64_t i = 0;
  while (filter.keys() < 100) (void)filter.Insert(TestHash(i++));
  EXPECT_EQ(filter.layers(), 1u);
  while (filter.keys() < 300) {
    (void)filter.Insert(TestHash(i++));
    if (filter.keys() > 100) {
      ASSERT_EQ(filter.layers(), 2u);
    }
  }
  while (filter.keys() < 301) (void)filter.Insert(TestHash(i++));
  EXPECT_EQ(filter.layers(), 3u);
}

// Case A1: for the probes alone.
TEST(ProbeChainTest, ReachesAllOfLargeTablesEvenly) {
  for (const uint64_t bits : {(uint64_t{1} << 33) + 9, 3 * (uint64_t{1} << 30),
                              (uint64_t{1} << 32) - 1, (uint64_t{1} << 32) + 1}) {
    constexpr uint64_t kHashes = 200000;
    constexpr int kProbes = 8;
    for (int probe = 0; probe < kProbes; ++probe) {
      std::vector<double> bins(64);
      uint64_t greatest = 0;
      for (uint64_t i = 0; i < kHashes; ++i) {
        ProbeChain chain(TestHash(i));
        for (int p = 0; p < probe; ++p) chain.Next();
        const uint64_t position = chain.Position(bits);
        ASSERT_LT(position, bits);
        greatest = std::max(greatest, position);
        bins[static_cast<unsigned __int128>(position) * 64 / bits] += 1;
      }
      EXPECT_GT(static_cast<double>(greatest), 0.999 * static_cast<double>(bits));
      double chi_square = 0;
      for (const double count : bins) {
        chi_square += (count - kHashes / 64.0) * (count - kHashes / 64.0) / (kHashes / 64.0);
      }
      EXPECT_LT(chi_square, 160);  // 63 degrees of freedom: once in 1e10
    }
  }
}

// --- Taffy block filter ---

TEST(TaffyBlockTest, LevelsDoubleAndHoldTheirRate) {
  for (const double fpr : {0.2, 0.01, 1e-5}) {
    for (const uint64_t initial_keys : {128, 300, 1000}) {
      for (uint32_t level = 0; level < 20; ++level) {
        SCOPED_TRACE(fmt::format("fpr {} first {} level {}", fpr, initial_keys, level));
        const auto geometry = TaffyBlock::GeometryOf({.fpr = fpr}, initial_keys, level);
        EXPECT_EQ(geometry.capacity, initial_keys << level);
        const double full =
            theory::SplitBlockFpr(geometry.capacity, geometry.blocks, kSplitWords, 32).mean;
        EXPECT_LE(full, geometry.fpr);
        if (geometry.blocks > 1000) {
          EXPECT_GT(full, 0.97 * geometry.fpr);
        }
      }
    }
  }
}

TEST(TaffyBlockTest, GrowsExactlyWhenALevelIsFull) {
  auto filter = Must(TaffyBlock::Create(0, {.initial_keys = 130}));
  for (uint64_t n = 1; n <= 130 * 255; ++n) {
    (void)filter.Insert(TestHash(n - 1));
    // L levels hold 130 (2^L - 1) keys.
    const uint32_t levels = 64 - static_cast<uint32_t>(__builtin_clzll((n - 1) / 130 + 1));
    ASSERT_EQ(filter.levels(), levels) << n;
    ASSERT_EQ(filter.keys(), n);
  }
}

// What growing costs: bits per key where levels are full, over those of a filter that knew the
// number of keys. The levels below hold as many keys again, at lower demands; the rates fall as 1 /
// L^2.
TEST(TaffyBlockTest, BitsPerKeyGrowSlowly) {
  auto filter = Must(TaffyBlock::Create(0, {}));
  double last = 0;
  for (uint32_t levels = 1; levels <= 9; ++levels) {
    const uint64_t keys = 1024 * ((uint64_t{1} << levels) - 1);
    while (filter.keys() < keys) (void)filter.Insert(TestHash(filter.keys()));
    ASSERT_EQ(filter.levels(), levels);
    const double bits = DetailOf(filter, "bits") / static_cast<double>(keys);
    EXPECT_GT(bits, last);
    last = bits;
  }
  EXPECT_GT(last, 16);
  EXPECT_LT(last, 30);
}

}  // namespace
}  // namespace filterbench
