// What holds for all filters that move tags: cuckoo_test.cc and the others have the rules of one.

#include "filters/cuckoo/tag_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "filters/cuckoo/cuckoo.h"
#include "filters/cuckoo/morton.h"
#include "filters/cuckoo/semi_sorted.h"
#include "filters/cuckoo/windowed.h"
#include "filters/test_support.h"
#include "filters/theory/agreement.h"

namespace filterbench {
namespace {

using test::CountDenied;
using test::TestHash;
using test::TestHashes;

template <class F>
std::vector<std::byte> Bytes(const F& filter) {
  return {filter.Table().begin(), filter.Table().end()};
}

template <class F>
class TagFilterTest : public ::testing::Test {};
using TagFilters = ::testing::Types<Cuckoo, SemiSortedCuckoo, WindowedCuckoo, Morton>;
struct Names {
  template <class F>
  static std::string GetName(int) {
    return std::string(F::kInfo.name);
  }
};
TYPED_TEST_SUITE(TagFilterTest, TagFilters, Names);

TYPED_TEST(TagFilterTest, EveryNumberOfKeys) {
  const std::vector<uint64_t> keys = TestHashes(0, 20000);
  for (const auto& [name, params] : test::UsualParams<TypeParam>(3)) {
    for (size_t n = 0; n <= keys.size(); n += n < 130 ? 1 : n / 3) {
      SCOPED_TRACE(name + " n=" + std::to_string(n));
      const std::span<const uint64_t> given(keys.data(), n);
      const Result<TypeParam> filter = TypeParam::Build(given, params);
      ASSERT_TRUE(filter) << filter.error();
      ASSERT_EQ(CountDenied(*filter, given), 0u);
      ASSERT_EQ(filter->stored(), n);
      ASSERT_EQ(filter->report().distinct_keys, n);
      // A few sizes of the growth that failures may cost.
      uint64_t largest = TypeParam::UnitsFor(n, params);
      for (int size = 0; size < 2; ++size) largest = TypeParam::Grown(largest, params);
      ASSERT_LE(filter->units(), largest);
    }
  }
}

// The promise is 99 %: no number of failures that would be unlikely (1e-6) at that rate.
// Case C7: for every filter of tags.
TYPED_TEST(TagFilterTest, CreateAcceptsWhatItPromises) {
  constexpr uint64_t kTables = 200;
  for (auto [name, params] : test::UsualParams<TypeParam>(0)) {
    for (const uint64_t n : {1, 2, 3, 5, 8, 13, 19, 20, 30, 46, 76, 150, 400}) {
      uint64_t failures = 0;
      for (params.seed = 0; params.seed < kTables; ++params.seed) {
        Result<TypeParam> filter = TypeParam::Create(n, params);
        ASSERT_TRUE(filter) << filter.error();
        ASSERT_EQ(filter->stored(), 0u);
        bool refused = false;
        for (uint64_t i = 0; i < n && !refused; ++i) {
          refused = filter->Insert(TestHash((params.seed << 32) + i)) == InsertStatus::kFull;
        }
        failures += refused ? 1 : 0;
      }
      EXPECT_GE(theory::BinomialUpperTail(failures, kTables, 0.01), 1e-6)
          << name << " n=" << n << " failures " << failures;
    }
    const Result<TypeParam> too_large = TypeParam::Create(uint64_t{1} << 50, params);
    ASSERT_FALSE(too_large);
    EXPECT_NE(too_large.error().find("too large"), std::string::npos) << too_large.error();
  }
}

// Case B2: for every filter of tags.
TYPED_TEST(TagFilterTest, ARefusedInsertChangesNothingAndLosesNobody) {
  for (const auto& [name, params] : test::UsualParams<TypeParam>(5)) {
    for (uint64_t table = 0; table < 20; ++table) {
      Result<TypeParam> filter = TypeParam::WithUnits(4, params);
      ASSERT_TRUE(filter) << filter.error();
      std::vector<uint64_t> accepted;
      int refused = 0;
      for (const uint64_t hash : TestHashes(table << 32, 400)) {
        const std::vector<std::byte> before = Bytes(*filter);
        if (filter->Insert(hash) == InsertStatus::kOk) {
          accepted.push_back(hash);
        } else {
          ++refused;
          ASSERT_EQ(Bytes(*filter), before) << name;
        }
        ASSERT_EQ(CountDenied(*filter, accepted), 0u) << name;
      }
      EXPECT_GT(refused, 0) << name;
      EXPECT_EQ(filter->stored(), accepted.size());
      EXPECT_GT(filter->Load(), 0.5) << name;
      for (const uint64_t hash : accepted) ASSERT_EQ(filter->Erase(hash), EraseStatus::kOk) << name;
      EXPECT_EQ(filter->stored(), 0u);
      EXPECT_EQ(CountDenied(*filter, accepted), accepted.size());
    }
  }
}

// Keys come and go in a table that is nearly full: nobody is lost, and the rate is that of those
// who are there.
// Case B3: what is erased was inserted: nobody is lost in a table that is nearly full.
TYPED_TEST(TagFilterTest, KeysThatComeAndGo) {
  constexpr uint64_t kKeys = 20000;
  for (const auto& [name, params] : test::UsualParams<TypeParam>(9)) {
    SCOPED_TRACE(name);
    Result<TypeParam> filter = TypeParam::Create(kKeys, params);
    ASSERT_TRUE(filter) << filter.error();
    for (uint64_t i = 0; i < kKeys; ++i) {
      ASSERT_EQ(filter->Insert(TestHash(i)), InsertStatus::kOk);
    }
    // The oldest leaves, then another one comes.
    for (uint64_t i = 0; i < 2 * kKeys; ++i) {
      ASSERT_EQ(filter->Erase(TestHash(i)), EraseStatus::kOk) << i;
      ASSERT_EQ(filter->Insert(TestHash(i + kKeys)), InsertStatus::kOk) << i;
    }
    EXPECT_EQ(filter->stored(), kKeys);
    EXPECT_EQ(CountDenied(*filter, TestHashes(2 * kKeys, kKeys)), 0u);
    constexpr uint64_t kQueries = 1 << 20;
    const uint64_t maybe = CountContained(*filter, TestHashes(uint64_t{1} << 40, kQueries));
    EXPECT_TRUE(theory::FprAgrees(maybe, kQueries, *filter->ExpectedFpr(), 1e-9))
        << maybe << " of " << kQueries << ", expected " << filter->ExpectedFpr()->mean;
    const Result<TypeParam> read = TypeParam::Deserialize(filter->Serialize());
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(Bytes(*read), Bytes(*filter));
  }
}

// Case C2: for every filter of tags.
TYPED_TEST(TagFilterTest, RepeatedHashesAreStoredOnceAndCostNoSpace) {
  std::vector<uint64_t> given = TestHashes(0, 5000);
  for (int i = 0; i < 2; ++i) given.insert(given.end(), given.begin(), given.begin() + 5000);
  for (const auto& [name, params] : test::UsualParams<TypeParam>(1)) {
    Result<TypeParam> filter = TypeParam::Build(given, params);
    ASSERT_TRUE(filter) << filter.error();
    EXPECT_EQ(filter->stored(), 5000u);
    EXPECT_LE(filter->units(), TypeParam::Grown(TypeParam::UnitsFor(5000, params), params));
    for (size_t i = 0; i < 5000; ++i) ASSERT_EQ(filter->Erase(given[i]), EraseStatus::kOk) << name;
    EXPECT_EQ(filter->Erase(given[0]), EraseStatus::kNotFound);
  }
}

TYPED_TEST(TagFilterTest, TheFirstSeedFillsTheDefaultLoad) {
  for (auto [name, params] : test::UsualParams<TypeParam>(0)) {
    const std::vector<uint64_t> keys = TestHashes(0, 100000);
    int first_seed = 0;
    for (params.seed = 0; params.seed < 5; ++params.seed) {
      const Result<TypeParam> filter = TypeParam::Build(keys, params);
      ASSERT_TRUE(filter) << filter.error();
      first_seed += filter->report().attempts == 1 ? 1 : 0;
    }
    EXPECT_EQ(first_seed, 5) << name;
  }
}

// Distinct hashes that no seed and no larger table tells apart: an error that says so.
// Case C5: for every filter of tags.
TYPED_TEST(TagFilterTest, KeysThatFitNoTableAreAnErrorNotAFilter) {
  std::vector<uint64_t> alike(200);
  for (uint64_t i = 0; i < alike.size(); ++i) alike[i] = 0x123456789a000000 + (i << 17);
  const Result<TypeParam> filter = TypeParam::Build(alike, {});
  ASSERT_FALSE(filter);
  EXPECT_NE(filter.error().find("a key found no free slot in 32 attempts"), std::string::npos)
      << filter.error();
}

}  // namespace
}  // namespace filterbench
