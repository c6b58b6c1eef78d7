// The rules of the two filters of counters; what holds for every filter is in filters/conformance.
//
// Case D1 does not apply: to merging two filters, which nothing here offers.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "filters/bloom/counters.h"
#include "filters/bloom/counting_blocked.h"
#include "filters/bloom/counting_bloom.h"
#include "filters/bloom/kirsch_mitzenmacher.h"
#include "filters/test_support.h"
#include "filters/test_wire.h"

namespace filterbench {
namespace {

using test::CountDenied;
using test::TestHash;
using test::TestHashes;

template <class T>
T Must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error());
  return std::move(*result);
}

template <class F>
std::vector<std::byte> Bytes(const F& filter) {
  return {filter.Table().begin(), filter.Table().end()};
}

template <class F>
std::span<const uint64_t> Words(const F& filter) {
  return {reinterpret_cast<const uint64_t*>(filter.Table().data()), filter.Table().size() / 8};
}

template <class F>
double DetailOf(const F& filter, std::string_view name) {
  for (const Detail& detail : filter.GetDetails()) {
    if (detail.name == name) return detail.value;
  }
  return -1;
}

// Case D1: against a model: no counter passes 15, leaves 15, or falls below 0.
TEST(CountersTest, CountUpAndDownBetweenZeroAndFifteen) {
  std::vector<uint64_t> words(3, 0);
  std::vector<int> model(48, 0);
  for (uint64_t i = 0; i < 20000; ++i) {
    const uint64_t random = Mix64(i + 1);
    const size_t at = FastRange64(random, model.size());
    if (random % 16 < 9) {
      const bool saturates = model[at] == 14;
      ASSERT_EQ(CountUp(words.data(), at), saturates);
      model[at] = std::min(model[at] + 1, 15);
    } else {
      CountDown(words.data(), at);
      if (model[at] != 15 && model[at] != 0) --model[at];
    }
    for (size_t j = 0; j < model.size(); ++j) {
      ASSERT_EQ(CountAt(words.data(), j), static_cast<uint64_t>(model[j])) << i << ' ' << j;
    }
    ASSERT_EQ(CountSaturated(words), static_cast<uint64_t>(std::ranges::count(model, 15)));
    uint64_t sum = 0;
    for (const int count : model) sum += static_cast<uint64_t>(count);
    ASSERT_EQ(SumOfCounts(words), sum);
  }
  EXPECT_GT(std::ranges::count(model, 15), 0);
}

template <class F>
class CountingTest : public ::testing::Test {};
using BothFilters = ::testing::Types<CountingBloom, CountingBlocked>;
TYPED_TEST_SUITE(CountingTest, BothFilters, test::FilterNames);

// Case D1: 16 inserts and 15 erases, or a hundred more, leave the key; saturated counters are
// reported.
TYPED_TEST(CountingTest, SaturatedCountersAreNeverCountedDown) {
  auto filter = Must(TypeParam::Build(TestHashes(1, 100), {}));
  const uint64_t key = TestHash(0);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(filter.Insert(key), InsertStatus::kOk);
  EXPECT_GT(filter.saturated(), 0u);
  EXPECT_EQ(DetailOf(filter, "saturated_counters"), static_cast<double>(filter.saturated()));
  for (int i = 0; i < 15; ++i) ASSERT_EQ(filter.Erase(key), EraseStatus::kOk);
  EXPECT_TRUE(filter.MayContain(key));
  const std::vector<std::byte> before = Bytes(filter);
  const uint64_t saturated = filter.saturated();
  for (int i = 0; i < 100; ++i) (void)filter.Erase(key);
  EXPECT_TRUE(filter.MayContain(key)) << "nobody knows that it is gone";
  EXPECT_EQ(Bytes(filter), before);
  EXPECT_EQ(filter.saturated(), saturated);
  EXPECT_EQ(CountSaturated(Words(filter)), saturated);
  EXPECT_EQ(CountDenied(filter, TestHashes(1, 100)), 0u);
}

TYPED_TEST(CountingTest, AKeyInsertedTwiceIsErasedTwice) {
  auto filter = Must(
      TypeParam::Build(std::vector{TestHash(5), TestHash(6), TestHash(5)}, {.bits_per_key = 400}));
  EXPECT_EQ(filter.keys(), 3u);
  ASSERT_EQ(filter.Erase(TestHash(5)), EraseStatus::kOk);
  EXPECT_TRUE(filter.MayContain(TestHash(5)));
  ASSERT_EQ(filter.Erase(TestHash(5)), EraseStatus::kOk);
  EXPECT_FALSE(filter.MayContain(TestHash(5)));
  EXPECT_EQ(filter.Erase(TestHash(5)), EraseStatus::kNotFound);
  EXPECT_TRUE(filter.MayContain(TestHash(6)));
}

TYPED_TEST(CountingTest, ErasingWhatIsDeniedChangesNothing) {
  auto filter = Must(TypeParam::Build(TestHashes(0, 5000), {}));
  const std::vector<std::byte> wire = filter.Serialize();
  int denied = 0;
  for (const uint64_t hash : TestHashes(5000, 5000)) {
    if (filter.MayContain(hash)) continue;
    ASSERT_EQ(filter.Erase(hash), EraseStatus::kNotFound);
    ++denied;
  }
  EXPECT_GT(denied, 4500);
  EXPECT_EQ(filter.Serialize(), wire);
}

// Cases B3, D1: whoever erases what was never inserted may lose keys, but no counter
// wraps.
TYPED_TEST(CountingTest, ErasingFalsePositivesWrapsNoCounter) {
  auto filter = Must(TypeParam::Build(TestHashes(0, 3000), {.bits_per_key = 8}));
  uint64_t sum = SumOfCounts(Words(filter));
  int erased = 0;
  for (const uint64_t hash : TestHashes(3000, 20000)) {
    const std::vector<std::byte> before = Bytes(filter);
    if (filter.Erase(hash) == EraseStatus::kNotFound) continue;
    ++erased;
    const uint64_t sum_after = SumOfCounts(Words(filter));
    ASSERT_LT(sum_after, sum);
    ASSERT_LE(sum - sum_after, 64u);
    sum = sum_after;
  }
  EXPECT_GT(erased, 100);
  const auto read = TypeParam::Deserialize(filter.Serialize());
  EXPECT_TRUE(read) << read.error();
}

// In small tables probes of one key coincide: it must count such a position down as often as up.
TYPED_TEST(CountingTest, ErasingAllLeavesNothing) {
  for (uint64_t size = 1; size <= 70; ++size) {
    for (const uint32_t k : {1u, 2u, 7u, 16u}) {
      SCOPED_TRACE(fmt::format("size {} k {}", size, k));
      auto filter = Must(TypeParam::Create(size, {.bits_per_key = 4, .k = k}));
      const std::vector<uint64_t> hashes = TestHashes(size * 100, 10);
      for (const uint64_t hash : hashes) ASSERT_EQ(filter.Insert(hash), InsertStatus::kOk);
      if (filter.saturated() != 0) continue;
      for (size_t i = 0; i < hashes.size(); ++i) {
        ASSERT_EQ(filter.Erase(hashes[i]), EraseStatus::kOk);
        ASSERT_EQ(CountDenied(filter, std::span(hashes).subspan(i + 1)), 0u);
      }
      EXPECT_EQ(filter.keys(), 0u);
      EXPECT_EQ(SumOfCounts(Words(filter)), 0u);
    }
  }
}

// A counter counts keys, not probes, or coinciding probes would saturate it early.
// Case A5: probes that coincide count once.
TYPED_TEST(CountingTest, AKeyCountsEachOfItsPositionsOnce) {
  bool some_coincide = false;
  for (uint64_t size = 1; size <= 70; ++size) {
    const auto filter =
        Must(TypeParam::Build(std::vector{TestHash(size)}, {.bits_per_key = 4.0 * size, .k = 16}));
    uint64_t positions = 0;
    for (uint64_t i = 0; i < Words(filter).size() * kCountersPerWord; ++i) {
      const uint64_t count = CountAt(Words(filter).data(), i);
      ASSERT_LE(count, 1u) << "size " << size << " counter " << i;
      positions += count;
    }
    ASSERT_GE(positions, 1u);
    some_coincide |= positions < 16;
  }
  EXPECT_TRUE(some_coincide);
}

TYPED_TEST(CountingTest, AnySizeHoldsItsKeysAndForgetsTheOthers) {
  for (uint64_t n = 0; n <= 20000; n = n < 70 ? n + 1 : n * 9 / 7) {
    SCOPED_TRACE(n);
    const std::vector<uint64_t> hashes = TestHashes(0, n);
    auto filter = Must(TypeParam::Build(hashes, {.seed = n}));
    ASSERT_EQ(CountDenied(filter, hashes), 0u);
    const std::span<const uint64_t> first = std::span(hashes).first(n / 2);
    for (const uint64_t hash : first) ASSERT_EQ(filter.Erase(hash), EraseStatus::kOk);
    ASSERT_EQ(CountDenied(filter, std::span(hashes).subspan(n / 2)), 0u);
    // What is left is what a filter holds that never saw the others.
    auto other = Must(TypeParam::Create(n, {.seed = n}));
    for (size_t i = n / 2; i < n; ++i) (void)other.Insert(hashes[i]);
    ASSERT_EQ(Bytes(filter), Bytes(other));
    ASSERT_EQ(filter.keys(), other.keys());
  }
}

// Hashes in a row, as no hash function makes them.
TYPED_TEST(CountingTest, SequentialHashesLoseNoKey) {
  std::vector<uint64_t> hashes(5000);
  for (size_t i = 0; i < hashes.size(); ++i) hashes[i] = i;
  auto filter = Must(TypeParam::Build(hashes, {}));
  EXPECT_EQ(CountDenied(filter, hashes), 0u);
  for (size_t i = 0; i < 2500; ++i) ASSERT_EQ(filter.Erase(hashes[i]), EraseStatus::kOk);
  EXPECT_EQ(CountDenied(filter, std::span(hashes).subspan(2500)), 0u);
}

TEST(CountingBloomTest, AnswersLikeKmBloomOfAsManyBits) {
  for (const uint64_t n : {1, 2, 3, 6, 10, 60, 1000, 30000}) {
    for (const uint32_t k : {0u, 1u, 3u, 11u}) {
      SCOPED_TRACE(fmt::format("n {} k {}", n, k));
      const std::vector<uint64_t> keys = TestHashes(0, n);
      const auto counting = Must(CountingBloom::Build(keys, {.bits_per_key = 40, .k = k}));
      const auto bits = Must(KmBloom::Build(keys, {.bits_per_key = 10, .k = k}));
      for (const uint64_t hash : test::MixedHashes(20000, n)) {
        ASSERT_EQ(counting.MayContain(hash), bits.MayContain(hash));
      }
      EXPECT_EQ(counting.ExpectedFpr()->mean, bits.ExpectedFpr()->mean);
    }
  }
}

// Case E2: a number of keys that the counters contradict, under a right checksum.
TEST(CountingBloomTest, RefusesCountersThatDoNotAddUp) {
  const auto filter = Must(CountingBloom::Build(TestHashes(0, 1000), {}));
  std::vector<std::byte> wire = filter.Serialize();
  constexpr size_t kKeysAt = 64 + 5 * 8;  // after seed, two knobs, capacity and counters
  uint64_t keys;
  std::memcpy(&keys, wire.data() + kKeysAt, sizeof(keys));
  ASSERT_EQ(keys, 1000u);
  keys = 999;
  std::memcpy(wire.data() + kKeysAt, &keys, sizeof(keys));
  test::FixChecksum(wire);
  const auto read = CountingBloom::Deserialize(wire);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().find("keys: is 999"), 0u) << read.error();
}

}  // namespace
}  // namespace filterbench
