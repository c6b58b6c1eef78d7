#ifndef FILTERBENCH_FILTERS_CONFORMANCE_FPR_H_
#define FILTERBENCH_FILTERS_CONFORMANCE_FPR_H_

// The measured false-positive rate of every filter lies inside the interval that its own theory
// allows. The bound is derived (theory::FprAgrees), the seeds are fixed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "filters/filter.h"
#include "filters/params_json.h"
#include "filters/conformance/tested.h"
#include "filters/test_support.h"
#include "filters/theory/agreement.h"

namespace filterbench {
namespace {

using test::ParamsCase;

constexpr uint64_t kKeys = 100000;
constexpr uint64_t kQueries = uint64_t{1} << 22;
// Of one comparison; some hundreds are made.
constexpr double kFalseAlarm = 1e-9;

// bits_per_key 4, 8, 10, 12, 20 where that is a knob; every value of every choice.
template <class F>
std::vector<ParamsCase<F>> FprParams() {
  std::vector<ParamsCase<F>> cases = test::UsualParams<F>(11);
  typename F::Params params;
  params.seed = 11;
  if constexpr (requires { params.bits_per_key; }) {
    for (const double bits : {8.0, 10.0, 12.0}) {
      params.bits_per_key = bits;
      cases.push_back({fmt::format("bits_per_key={}", bits), params});
    }
  }
  return cases;
}

// What becomes of the answers before they are counted; identity, or a planted bug.
enum class Bug { kNone, kThreePercentMore, kAFifthFewer };

// Answers `maybe` for the first kQueries absent keys.
template <class F>
uint64_t FalsePositives(const F& filter, Bug bug = Bug::kNone) {
  constexpr size_t kChunk = 1 << 14;
  std::vector<uint64_t> bits(kChunk / 64);
  uint64_t count = 0;
  for (uint64_t i = 0; i < kQueries; i += kChunk) {
    MayContainBits(filter, test::TestHashes(kKeys + i, kChunk), bits.data());
    for (size_t word = 0; word < bits.size(); ++word) {
      if (bug != Bug::kNone) {
        uint64_t chosen = 0;
        const uint64_t one_in = bug == Bug::kThreePercentMore ? 33 : 5;
        for (uint64_t j = 0; j < 64; ++j) {
          chosen |= uint64_t{Mix64((i / 64 + word) * 64 + j + 1) % one_in == 0} << j;
        }
        bits[word] = bug == Bug::kThreePercentMore ? bits[word] | chosen : bits[word] & ~chosen;
      }
      count += static_cast<uint64_t>(std::popcount(bits[word]));
    }
  }
  return count;
}

template <class F>
class FprTest : public ::testing::Test {};
TYPED_TEST_SUITE(FprTest, test::TestedFilters, test::FilterNames);

// Case A7: from both sides, at 4 to 20 bits per key, by a bound derived from theory.
TYPED_TEST(FprTest, AgreesWithItsOwnTheory) {
  if (TypeParam::kInfo.is_baseline) GTEST_SKIP() << "a baseline has no FPR";
  const std::vector<uint64_t> keys = test::TestHashes(0, kKeys);
  for (const auto& [name, params] : FprParams<TypeParam>()) {
    SCOPED_TRACE(name);
    const Result<TypeParam> filter = TypeParam::Build(keys, params);
    ASSERT_TRUE(filter) << filter.error();
    const std::optional<FprEstimate> expected = filter->ExpectedFpr();
    ASSERT_TRUE(expected.has_value());
    const uint64_t false_positives = FalsePositives(*filter);
    EXPECT_TRUE(theory::FprAgrees(false_positives, kQueries, *expected, kFalseAlarm))
        << fmt::format(
               "measured {:.6g}, expected {:.6g} with an instance deviation of {:.2g}, {} "
               "false positives of {}",
               static_cast<double>(false_positives) / kQueries, expected->mean,
               expected->instance_sd, false_positives, kQueries);
  }
}

// A filter that is filled key by key: theory follows it from nearly empty to beyond its promise.
TYPED_TEST(FprTest, AgreesAtEveryFill) {
  if constexpr (DynamicFilter<TypeParam>) {
    for (const ParamsCase<TypeParam>& params_case : test::UsualParams<TypeParam>(17)) {
      SCOPED_TRACE(params_case.name);
      constexpr uint64_t kSizedFor = kKeys / 4;
      Result<TypeParam> filter = TypeParam::Create(kSizedFor, params_case.params);
      ASSERT_TRUE(filter) << filter.error();
      uint64_t given = 0;
      for (const uint64_t fill_percent : {50, 100, 200}) {
        for (; given < kSizedFor * fill_percent / 100; ++given) {
          if (filter->Insert(test::TestHash(given)) != InsertStatus::kOk) break;
        }
        SCOPED_TRACE(fill_percent);
        const FprEstimate expected = *filter->ExpectedFpr();
        const uint64_t false_positives = FalsePositives(*filter);
        EXPECT_TRUE(theory::FprAgrees(false_positives, kQueries, expected, kFalseAlarm))
            << fmt::format("measured {:.6g}, expected {:.6g} with an instance deviation of {:.2g}",
                           static_cast<double>(false_positives) / kQueries, expected.mean,
                           expected.instance_sd);
      }
    }
  } else {
    GTEST_SKIP() << "has no Insert";
  }
}

// Sizes where rounding and small numbers show.
// Cases A5, C6: small tables, where a step that repeats positions shows.
TYPED_TEST(FprTest, AgreesForFewKeysToo) {
  if (TypeParam::kInfo.is_baseline) GTEST_SKIP() << "a baseline has no FPR";
  for (const uint64_t n : {uint64_t{1}, uint64_t{10}, uint64_t{300}, uint64_t{5000}}) {
    SCOPED_TRACE(n);
    typename TypeParam::Params params;
    params.seed = 13;
    const Result<TypeParam> filter = TypeParam::Build(test::TestHashes(0, n), params);
    ASSERT_TRUE(filter) << filter.error();
    const uint64_t false_positives = FalsePositives(*filter);
    const FprEstimate expected = *filter->ExpectedFpr();
    EXPECT_TRUE(theory::FprAgrees(false_positives, kQueries, expected, kFalseAlarm)) << fmt::format(
        "measured {:.6g}, expected {:.6g} +- {:.2g}",
        static_cast<double>(false_positives) / kQueries, expected.mean, expected.instance_sd);
  }
}

// The test above can fail: wherever a planted bug moves the count by more than the interval is
// wide, it is seen, and for at least one setting of every filter it is.
TYPED_TEST(FprTest, SeesPlantedBugs) {
  if (TypeParam::kInfo.is_baseline) GTEST_SKIP() << "a baseline has no FPR";
  const std::vector<uint64_t> keys = test::TestHashes(0, kKeys);
  bool more_can_be_seen = false;
  bool fewer_can_be_seen = false;
  for (const auto& [name, params] : FprParams<TypeParam>()) {
    SCOPED_TRACE(name);
    const Result<TypeParam> filter = TypeParam::Build(keys, params);
    ASSERT_TRUE(filter) << filter.error();
    const FprEstimate expected = *filter->ExpectedFpr();
    const double mean = expected.mean * kQueries;
    // Half of the interval, and again as far: the true count is off by less than that but for 1e-9.
    const double z = theory::NormalQuantileTwoSided(kFalseAlarm / 2);
    const double clear = 2 * z * (std::sqrt(mean) + expected.instance_sd * kQueries);
    if (0.03 * (1 - expected.mean) * kQueries > clear) {
      more_can_be_seen = true;
      EXPECT_FALSE(theory::FprAgrees(FalsePositives(*filter, Bug::kThreePercentMore), kQueries,
                                     expected, kFalseAlarm));
    }
    if (0.2 * mean > clear) {
      fewer_can_be_seen = true;
      EXPECT_FALSE(theory::FprAgrees(FalsePositives(*filter, Bug::kAFifthFewer), kQueries, expected,
                                     kFalseAlarm));
    }
  }
  EXPECT_TRUE(more_can_be_seen);
  if (!fewer_can_be_seen) GTEST_SKIP() << "the rate is too low for a fifth less to show";
}

// Case A4: memory buys accuracy until the width of the hash ends it. n = 2^22 at 40 bits per key,
// where a hash of 32 bits inside would give about a thousand false positives.
TYPED_TEST(FprTest, FallsAsFarAsTheDeclaredHashAllows) {
  typename TypeParam::Params params;
  if constexpr (requires { params.bits_per_key; }) {
    if (TypeParam::kInfo.is_baseline) GTEST_SKIP() << "a baseline has no FPR";
    for (const KnobInfo& knob : DescribeKnobs<TypeParam>()) {
      if (knob.name == "bits_per_key")
        params.bits_per_key = std::min(40.0, knob.high.get<double>());
    }
    const uint64_t n = uint64_t{1} << 22;
    const Result<TypeParam> filter = TypeParam::Build(test::TestHashes(0, n), params);
    ASSERT_TRUE(filter) << filter.error();
    const uint64_t queries = 1000000;
    const uint64_t false_positives = CountContained(*filter, test::TestHashes(n, queries));
    const FprEstimate expected = *filter->ExpectedFpr();
    EXPECT_TRUE(theory::FprAgrees(false_positives, queries, expected, kFalseAlarm))
        << false_positives << " expected " << expected.mean * static_cast<double>(queries);
    EXPECT_GE(expected.mean, theory::HashCollisionFpr(n, TypeParam::kInfo.hash_bits));
  } else {
    GTEST_SKIP() << "not sized by bits_per_key";
  }
}

}  // namespace
}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CONFORMANCE_FPR_H_
