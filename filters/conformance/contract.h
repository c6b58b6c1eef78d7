#ifndef FILTERBENCH_FILTERS_CONFORMANCE_CONTRACT_H_
#define FILTERBENCH_FILTERS_CONFORMANCE_CONTRACT_H_

// The contract of filters/filter.h, for every filter of the catalogue.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "filters/filter.h"
#include "filters/simd/targets.h"
#include "filters/conformance/tested.h"
#include "filters/test_support.h"

namespace filterbench {
namespace {

using test::CornerParams;
using test::CountDenied;
using test::EqualBytes;
using test::TestHashes;
using test::UsualParams;

template <class F>
class Contract : public ::testing::Test {
 protected:
  static_assert(Filter<F>);
  // Half of a concept would be ignored without a word.
  static_assert(DynamicFilter<F> || !requires(F& filter) { filter.Insert(uint64_t{}); });
  static_assert(ErasableFilter<F> || !requires(F& filter) { filter.Erase(uint64_t{}); });
  using Params = typename F::Params;

  static Params Defaults() { return {.seed = 7}; }

  // Builds and checks that no key is denied: by the reference, by the best kernel.
  static void ExpectHoldsAll(std::span<const uint64_t> hashes, const Params& params) {
    const Result<F> filter = F::Build(hashes, params);
    ASSERT_TRUE(filter) << filter.error();
    if (F::kInfo.is_baseline) return;
    EXPECT_EQ(CountDenied(*filter, hashes), 0u);
    EXPECT_EQ(CountContained(*filter, hashes), hashes.size());
  }
};
TYPED_TEST_SUITE(Contract, test::TestedFilters, test::FilterNames);

TYPED_TEST(Contract, IsDescribed) {
  const FilterInfo info = TypeParam::kInfo;
  EXPECT_FALSE(info.name.empty());
  EXPECT_TRUE(std::ranges::all_of(info.name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  })) << info.name;
  EXPECT_LE(info.name.size(), 36u) << "the wire format has no room for more";
  EXPECT_FALSE(info.summary.empty());
  EXPECT_FALSE(info.source.empty());
  EXPECT_FALSE(info.fpr_formula.empty());
  EXPECT_GE(info.hash_bits, 1);
  EXPECT_LE(info.hash_bits, 64);
}

// Case C6: every small number of keys is built and held.
TYPED_TEST(Contract, HoldsEveryKey) {
  for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
    SCOPED_TRACE(name);
    for (const size_t n : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 63, 64, 65, 1000, 100000}) {
      SCOPED_TRACE(n);
      this->ExpectHoldsAll(TestHashes(0, n), params);
    }
  }
}

// Case C6: single keys with the hashes 0, 1 and the greatest.
TYPED_TEST(Contract, HoldsExtremeHashes) {
  const std::vector<uint64_t> hashes = {
      0, 1, UINT64_MAX, UINT64_MAX - 1, uint64_t{1} << 63, UINT32_MAX, uint64_t{UINT32_MAX} << 32};
  for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
    SCOPED_TRACE(name);
    this->ExpectHoldsAll(hashes, params);
    for (const uint64_t hash : hashes) this->ExpectHoldsAll(std::span(&hash, 1), params);
  }
}

// Case C2: two, three and 256 copies of one key, a third of the keys twice, one in a hundred twice:
// all are built and hold their keys.
TYPED_TEST(Contract, HoldsDuplicates) {
  const auto check = [&](const std::vector<uint64_t>& hashes) {
    for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
      SCOPED_TRACE(name);
      this->ExpectHoldsAll(hashes, params);
    }
  };
  check({1, 1});
  check({0, 0, 0});
  check(std::vector<uint64_t>(256, test::TestHash(3)));
  std::vector<uint64_t> some_repeat = TestHashes(0, 81);
  for (size_t i = 0; i < 40; ++i) some_repeat.push_back(some_repeat[i]);
  check(some_repeat);
  std::vector<uint64_t> one_percent_repeat = TestHashes(0, 99000);
  for (size_t i = 0; i < 1000; ++i) one_percent_repeat.push_back(one_percent_repeat[i * 99]);
  check(one_percent_repeat);
}

// Case C6: without keys everything is denied, the hash 0 among 100,000 others, in at most 64 KiB.
TYPED_TEST(Contract, DeniesAllWhenEmpty) {
  if (TypeParam::kInfo.is_baseline) GTEST_SKIP() << "a baseline answers by what it costs";
  std::vector<uint64_t> hashes = TestHashes(0, 100000);
  hashes.insert(hashes.end(), {0, 1, UINT64_MAX});
  for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
    SCOPED_TRACE(name);
    const Result<TypeParam> filter = TypeParam::Build({}, params);
    ASSERT_TRUE(filter) << filter.error();
    EXPECT_EQ(CountDenied(*filter, hashes), hashes.size());
    EXPECT_EQ(CountContained(*filter, hashes), 0u);
    EXPECT_LE(filter->SizeInBytes(), 1u << 16);
  }
}

// Case E1: built twice with one seed, the bytes are equal.
TYPED_TEST(Contract, BuildsTheSameTwice) {
  const std::vector<uint64_t> hashes = TestHashes(0, 5000);
  for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
    SCOPED_TRACE(name);
    const Result<TypeParam> first = TypeParam::Build(hashes, params);
    const Result<TypeParam> second = TypeParam::Build(hashes, params);
    ASSERT_TRUE(first && second);
    EXPECT_TRUE(EqualBytes(first->Table(), second->Table()));
    EXPECT_EQ(first->Serialize(), second->Serialize());
    EXPECT_EQ(first->report().attempts, second->report().attempts);
    EXPECT_TRUE(first->params() == params);
  }
}

TYPED_TEST(Contract, BuildsAtTheEndsOfEveryKnobOrSaysWhyNot) {
  const std::vector<uint64_t> hashes = TestHashes(0, 1000);
  for (const auto& [name, params] : CornerParams<TypeParam>(7)) {
    SCOPED_TRACE(name);
    const Result<TypeParam> filter = TypeParam::Build(hashes, params);
    if (!filter) {
      EXPECT_FALSE(filter.error().empty());
    } else {
      this->ExpectHoldsAll(hashes, params);
    }
  }
}

// The seed is a knob of the experiment: rounds with different seeds must be different filters. A
// filter that draws nothing at random keeps its table; what it may not do is lose keys.
TYPED_TEST(Contract, HoldsEveryKeyWithAnySeed) {
  const std::vector<uint64_t> hashes = TestHashes(0, 3000);
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, UINT64_MAX}) {
    SCOPED_TRACE(seed);
    typename TypeParam::Params params;
    params.seed = seed;
    this->ExpectHoldsAll(hashes, params);
  }
}

// Case B8: moved, assigned and in a vector.
TYPED_TEST(Contract, AnswersLikeItsViewAlsoAfterMoves) {
  const std::vector<uint64_t> hashes = test::MixedHashes(20000, 3000);
  Result<TypeParam> built = TypeParam::Build(TestHashes(0, 3000), this->Defaults());
  ASSERT_TRUE(built) << built.error();
  const auto view = built->view();
  std::vector<bool> answers;
  for (const uint64_t hash : hashes) {
    answers.push_back(view.MayContain(hash));
    ASSERT_EQ(built->MayContain(hash), answers.back());
  }
  const auto expect_same_answers = [&](const auto& lookup) {
    for (size_t i = 0; i < hashes.size(); ++i) {
      ASSERT_EQ(lookup.MayContain(hashes[i]), answers[i]) << i;
    }
  };
  TypeParam moved = std::move(*built);
  expect_same_answers(moved);
  expect_same_answers(view);  // valid while the filter lives, also after a move of it

  Result<TypeParam> other = TypeParam::Build(TestHashes(100, 50), this->Defaults());
  ASSERT_TRUE(other) << other.error();
  *other = std::move(moved);
  expect_same_answers(*other);
  std::vector<TypeParam> in_vector;
  in_vector.push_back(std::move(*other));
  in_vector.reserve(in_vector.capacity() + 1);
  expect_same_answers(in_vector.front());
  EXPECT_EQ(CountContained(in_vector.front(), hashes),
            static_cast<uint64_t>(std::ranges::count(answers, true)));
}

// Case A10: allocated bytes, slack and padding included, are no fewer than what counts as the size;
// the peak of a build is no less than its table.
TYPED_TEST(Contract, AccountsForItsMemory) {
  for (const size_t n : {0, 1, 1000, 200000}) {
    for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
      SCOPED_TRACE(fmt::format("{} n={}", name, n));
      const Result<TypeParam> filter = TypeParam::Build(TestHashes(0, n), params);
      ASSERT_TRUE(filter) << filter.error();
      EXPECT_GE(filter->SizeInBytes(), filter->Table().size());
      // The view lives in whoever looks up, not in the filter.
      EXPECT_GE(filter->AllocatedBytes() + sizeof(typename TypeParam::View), filter->SizeInBytes());
      const BuildReport& report = filter->report();
      EXPECT_GE(report.peak_bytes, filter->Table().size());
      EXPECT_GE(report.attempts, 1u);
      EXPECT_LE(report.distinct_keys, n);
    }
  }
}

TYPED_TEST(Contract, SizeGrowsWithBitsPerKeyAndMatchesThem) {
  constexpr size_t kKeys = 100000;
  typename TypeParam::Params params = this->Defaults();
  if constexpr (requires { params.bits_per_key; }) {
    uint64_t last = 0;
    for (const double bits : {4.0, 8.0, 10.0, 12.0, 20.0}) {
      params.bits_per_key = bits;
      const Result<TypeParam> filter = TypeParam::Build(TestHashes(0, kKeys), params);
      ASSERT_TRUE(filter) << filter.error();
      EXPECT_GT(filter->SizeInBytes(), last);
      last = filter->SizeInBytes();
      // Case A10: what was asked for is what is paid, up to whole blocks and the view.
      EXPECT_NEAR(8.0 * static_cast<double>(last) / kKeys, bits, 0.02 * bits);
    }
  } else {
    GTEST_SKIP() << "not sized by bits_per_key";
  }
}

TYPED_TEST(Contract, TheoryExistsUnlessABaseline) {
  const Result<TypeParam> filter = TypeParam::Build(TestHashes(0, 10000), this->Defaults());
  ASSERT_TRUE(filter) << filter.error();
  const std::optional<FprEstimate> expected = filter->ExpectedFpr();
  ASSERT_EQ(expected.has_value(), !TypeParam::kInfo.is_baseline);
  if (!expected) return;
  EXPECT_GT(expected->mean, 0);
  EXPECT_LT(expected->mean, 1);
  EXPECT_GE(expected->instance_sd, 0);
  double last = 1;
  for (const double bits : {4.0, 8.0, 12.0, 20.0}) {
    const std::optional<double> fpr = TypeParam::TheoryFpr(bits);
    if (!fpr) continue;
    EXPECT_LT(*fpr, last) << bits;
    EXPECT_GE(*fpr, std::exp2(-bits)) << "below the information bound at " << bits;
    last = *fpr;
  }
}

// Cases A1, A2: above its limit a build refuses; sizes do not wrap around.
TYPED_TEST(Contract, RefusesWhatIsTooLargeWithoutTryingIt) {
  if (TypeParam::kInfo.is_baseline) GTEST_SKIP() << "a baseline may have no size";
  for (const int log2_keys : {45, 58, 60}) {
    // The span has no memory behind it: whoever reads it before looking at its size crashes.
    const std::span<const uint64_t> too_many(static_cast<const uint64_t*>(nullptr),
                                             size_t{1} << log2_keys);
    for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
      SCOPED_TRACE(fmt::format("{} n=2^{}", name, log2_keys));
      const Result<TypeParam> filter = TypeParam::Build(too_many, params);
      ASSERT_FALSE(filter);
      EXPECT_NE(filter.error().find("too large"), std::string::npos) << filter.error();
      if constexpr (DynamicFilter<TypeParam>) {
        const Result<TypeParam> empty = TypeParam::Create(too_many.size(), params);
        ASSERT_FALSE(empty);
        EXPECT_NE(empty.error().find("too large"), std::string::npos) << empty.error();
      }
    }
  }
}

TYPED_TEST(Contract, KernelsAreListedBestFirst) {
  std::vector<std::string_view> names;
  for (const auto& kernel : TypeParam::Kernels()) names.push_back(kernel.target);
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.back(), "scalar");
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size()) << "a target twice";
  // A filter has vector kernels for all targets that this machine runs, or for none.
  if (names.size() > 1) {
    EXPECT_EQ(names, SupportedTargetNames());
  }
  for (const auto& kernel : TypeParam::Kernels()) {
    EXPECT_TRUE(kernel.count_batched && kernel.bits_batched && kernel.count_single &&
                kernel.count_single_u64 && kernel.count_single_bytes && kernel.chain);
  }
}

// Case B2: a refused insert changes no byte.
TYPED_TEST(Contract, InsertKeepsEveryPromise) {
  if constexpr (DynamicFilter<TypeParam>) {
    for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
      for (const size_t built : {0, 1, 1000}) {
        SCOPED_TRACE(fmt::format("{} built for {}", name, built));
        std::vector<uint64_t> accepted = TestHashes(0, built);
        Result<TypeParam> filter = TypeParam::Build(accepted, params);
        ASSERT_TRUE(filter) << filter.error();
        size_t refused = 0;
        for (const uint64_t hash : TestHashes(built, built + 200)) {
          const std::vector<std::byte> before(filter->Table().begin(), filter->Table().end());
          if (filter->Insert(hash) == InsertStatus::kOk) {
            accepted.push_back(hash);
            ASSERT_TRUE(filter->MayContain(hash));
          } else {
            ASSERT_TRUE(EqualBytes(filter->Table(), before)) << "a refused insert changed bytes";
            if (++refused == 20) break;
          }
        }
        EXPECT_EQ(CountDenied(*filter, accepted), 0u);
        EXPECT_EQ(CountContained(*filter, accepted), accepted.size());
      }
    }
  } else {
    GTEST_SKIP() << "has no Insert";
  }
}

// Case C7: what a filter was sized for it takes, one key at a time.
TYPED_TEST(Contract, AcceptsWhatItWasSizedFor) {
  if constexpr (DynamicFilter<TypeParam>) {
    // Of 100 seeds one may fail by what is promised: five or more by chance of 0.4 %.
    constexpr int kSeeds = 100;
    constexpr int kMaxFailed = 4;
    for (const size_t n : {0, 1, 2, 3, 7, 64, 1000}) {
      const std::vector<uint64_t> hashes = TestHashes(0, n);
      for (const auto& [name, usual] : UsualParams<TypeParam>(0)) {
        SCOPED_TRACE(fmt::format("{} n={}", name, n));
        int failed = 0;
        for (int seed = 0; seed < kSeeds; ++seed) {
          typename TypeParam::Params params = usual;
          params.seed = static_cast<uint64_t>(seed);
          Result<TypeParam> filter = TypeParam::Create(n, params);
          ASSERT_TRUE(filter) << filter.error();
          ASSERT_EQ(CountContained(*filter, hashes), 0u) << "made empty, it holds something";
          bool refused = false;
          for (const uint64_t hash : TestHashes(Mix64(params.seed), n)) {
            refused |= filter->Insert(hash) != InsertStatus::kOk;
          }
          failed += refused ? 1 : 0;
        }
        EXPECT_LE(failed, kMaxFailed) << "of " << kSeeds << " seeds";
      }
    }
    Result<TypeParam> filter = TypeParam::Create(50000, this->Defaults());
    ASSERT_TRUE(filter) << filter.error();
    const std::vector<uint64_t> hashes = TestHashes(0, 50000);
    for (const uint64_t hash : hashes) ASSERT_EQ(filter->Insert(hash), InsertStatus::kOk);
    EXPECT_EQ(CountDenied(*filter, hashes), 0u);
  } else {
    GTEST_SKIP() << "has no Insert";
  }
}

// Overfilled, a filter refuses or goes on; whatever it accepted it holds.
// Case B2: with three times the keys.
TYPED_TEST(Contract, LosesNothingBeyondWhatItWasSizedFor) {
  if constexpr (DynamicFilter<TypeParam>) {
    for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
      SCOPED_TRACE(name);
      Result<TypeParam> filter = TypeParam::Create(1000, params);
      ASSERT_TRUE(filter) << filter.error();
      std::vector<uint64_t> accepted;
      for (const uint64_t hash : TestHashes(0, 3000)) {
        if (filter->Insert(hash) == InsertStatus::kOk) accepted.push_back(hash);
      }
      EXPECT_GE(accepted.size(), 1000u);
      EXPECT_EQ(CountDenied(*filter, accepted), 0u);
      EXPECT_EQ(CountContained(*filter, accepted), accepted.size());
      const Result<TypeParam> read = TypeParam::Deserialize(filter->Serialize());
      ASSERT_TRUE(read) << read.error();
      EXPECT_EQ(CountDenied(*read, accepted), 0u);
      EXPECT_EQ(read->ExpectedFpr()->mean, filter->ExpectedFpr()->mean);
    }
  } else {
    GTEST_SKIP() << "has no Insert";
  }
}

// With fifty times the keys it was made for, a filter that grows takes them all and stays within a
// small factor of its rate; any other refuses keys or says maybe to nearly all.
TYPED_TEST(Contract, GrowsIfItSaysSo) {
  if constexpr (DynamicFilter<TypeParam>) {
    constexpr uint64_t kKeys = 1000;
    Result<TypeParam> filter = TypeParam::Create(kKeys, typename TypeParam::Params{});
    ASSERT_TRUE(filter) << filter.error();
    double rate_when_full = 0;
    uint64_t accepted = 0;
    for (const uint64_t hash : TestHashes(0, 50 * kKeys)) {
      accepted += filter->Insert(hash) == InsertStatus::kOk;
      if (accepted == kKeys) rate_when_full = filter->ExpectedFpr()->mean;
    }
    const bool grew = accepted == 50 * kKeys && filter->ExpectedFpr()->mean < 4 * rate_when_full;
    EXPECT_EQ(grew, TypeParam::kInfo.grows);
  } else {
    EXPECT_FALSE(TypeParam::kInfo.grows);
  }
}

// Case B2: one key again and again must be accepted or refused, and nobody else's
// key may be lost to it.
TYPED_TEST(Contract, InsertOfOneKeyManyTimesLosesNoOther) {
  if constexpr (DynamicFilter<TypeParam>) {
    for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
      SCOPED_TRACE(name);
      const std::vector<uint64_t> hashes = TestHashes(0, 500);
      Result<TypeParam> filter = TypeParam::Build(hashes, params);
      ASSERT_TRUE(filter) << filter.error();
      for (int i = 0; i < 100; ++i) (void)filter->Insert(hashes[7]);
      EXPECT_EQ(CountDenied(*filter, hashes), 0u);
    }
  } else {
    GTEST_SKIP() << "has no Insert";
  }
}

// Case B3: half of the keys are erased, in another order than that of building, and the others
// stay; a filter without Erase has nothing like it (a static assertion of this suite).
TYPED_TEST(Contract, EraseForgetsNobodyElse) {
  if constexpr (ErasableFilter<TypeParam>) {
    for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
      SCOPED_TRACE(name);
      const std::vector<uint64_t> hashes = TestHashes(0, 20000);
      Result<TypeParam> filter = TypeParam::Build(hashes, params);
      ASSERT_TRUE(filter) << filter.error();
      const std::span<const uint64_t> all(hashes);
      // In an order that has nothing to do with that of building.
      for (size_t i = 0; i < 10000; ++i) {
        ASSERT_EQ(filter->Erase(hashes[i * 7919 % 10000]), EraseStatus::kOk) << i;
      }
      EXPECT_EQ(CountDenied(*filter, all.subspan(10000)), 0u);
      EXPECT_GT(CountDenied(*filter, all.first(10000)), 5000u) << "erased keys are still there";
      // The room is free again.
      for (size_t i = 0; i < 5000; ++i) {
        ASSERT_EQ(filter->Insert(hashes[i]), InsertStatus::kOk) << i;
      }
      EXPECT_EQ(CountDenied(*filter, all.first(5000)), 0u);
      EXPECT_EQ(CountDenied(*filter, all.subspan(10000)), 0u);
      for (size_t i = 0; i < 5000; ++i) ASSERT_EQ(filter->Erase(hashes[i]), EraseStatus::kOk);
      for (size_t i = 10000; i < 20000; ++i) ASSERT_EQ(filter->Erase(hashes[i]), EraseStatus::kOk);
      EXPECT_EQ(CountDenied(*filter, all), all.size()) << "a filter that is empty again denies all";
      EXPECT_EQ(filter->Erase(hashes[0]), EraseStatus::kNotFound);
    }
  } else {
    GTEST_SKIP() << "has no Erase";
  }
}

TYPED_TEST(Contract, HoldsByteStrings) {
  if constexpr (KeyHashingFilter<TypeParam>) {
    std::string bytes;
    std::vector<uint64_t> offsets = {0};
    for (size_t i = 0; i < 2000; ++i) {
      bytes += fmt::format("{:>{}}", i, 1 + i % 300);
      offsets.push_back(bytes.size());
    }
    offsets.push_back(bytes.size());  // the empty string is a key too
    const ByteKeys keys{bytes.data(), offsets.data(), offsets.size() - 1};
    for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
      SCOPED_TRACE(name);
      const Result<TypeParam> filter = TypeParam::BuildFromBytes(keys, params);
      ASSERT_TRUE(filter) << filter.error();
      for (size_t i = 0; i < keys.size; ++i) {
        ASSERT_TRUE(filter->view().MayContainBytes(keys[i])) << i;
      }
    }
  } else {
    GTEST_SKIP() << "takes hashes only";
  }
}

}  // namespace
}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CONFORMANCE_CONTRACT_H_
