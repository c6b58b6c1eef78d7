#ifndef FILTERBENCH_FILTERS_CONFORMANCE_KERNEL_H_
#define FILTERBENCH_FILTERS_CONFORMANCE_KERNEL_H_

// Case B6: every kernel of every filter on every target answers like the scalar reference, whatever
// the length and place of the span, and touches nothing outside it.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "filters/filter.h"
#include "filters/conformance/tested.h"
#include "filters/test_support.h"

namespace filterbench {
namespace {

using test::GuardedArray;
using test::MixedHashes;
using test::ParamsCase;
using test::TestHashes;
using test::UsualParams;

// Beyond four words of answers and the widest vectors, with a tail.
constexpr size_t kMaxLength = 4 * 64 + 5;
constexpr uint64_t kCanary = 0xdeadbeefcafef00d;

// Answers of the reference, one per element.
template <class View>
std::vector<uint8_t> Reference(const View& view, const uint64_t* hashes, size_t n) {
  std::vector<uint8_t> answers(n);
  for (size_t i = 0; i < n; ++i) answers[i] = view.MayContain(hashes[i]) ? 1 : 0;
  return answers;
}

std::vector<uint64_t> Packed(const uint8_t* answers, size_t n) {
  std::vector<uint64_t> bits((n + 63) / 64);
  for (size_t i = 0; i < n; ++i) bits[i / 64] |= uint64_t{answers[i]} << (i % 64);
  return bits;
}

uint64_t Sum(const uint8_t* answers, size_t n) {
  uint64_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum += answers[i];
  return sum;
}

// One span: batched loops, those of one key at a time, and the chain.
template <class View>
void ExpectLikeReference(const Kernel<View>& kernel, const View& view, const uint64_t* hashes,
                         const uint8_t* answers, size_t n) {
  const uint64_t expected = Sum(answers, n);
  ASSERT_EQ(kernel.count_batched(view, hashes, n), expected) << "count_batched of " << n;
  ASSERT_EQ(kernel.count_single(view, hashes, n), expected) << "count_single of " << n;
  ASSERT_EQ(kernel.chain(view, hashes, n), expected) << "chain of " << n;

  const std::vector<uint64_t> expected_bits = Packed(answers, n);
  std::vector<uint64_t> bits(expected_bits.size() + 1, kCanary);
  kernel.bits_batched(view, hashes, n, bits.data());
  ASSERT_EQ(bits.back(), kCanary) << "bits_batched of " << n << " writes too much";
  bits.pop_back();
  ASSERT_EQ(bits, expected_bits) << "bits_batched of " << n;
}

template <class F>
class KernelTest : public ::testing::Test {
 protected:
  // Calls `check(kernel, view)` for every kernel of a filter over n keys with each set of params.
  template <class Check>
  static void ForEachKernel(size_t n, const std::vector<ParamsCase<F>>& cases, const Check& check) {
    for (const ParamsCase<F>& params_case : cases) {
      const Result<F> filter = F::Build(TestHashes(0, n), params_case.params);
      ASSERT_TRUE(filter) << params_case.name << ": " << filter.error();
      for (const auto& kernel : F::Kernels()) {
        SCOPED_TRACE(fmt::format("{} n={} target={}", params_case.name, n, kernel.target));
        check(kernel, filter->view());
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
};
TYPED_TEST_SUITE(KernelTest, test::TestedFilters, test::FilterNames);

TYPED_TEST(KernelTest, EveryLengthAtEveryPlaceInACacheLine) {
  for (const size_t n : {0, 1, 50, 20000}) {
    // The array starts on a page; elements are eight bytes, so eight places there are.
    constexpr size_t kPlaces = 8;
    GuardedArray<uint64_t> hashes(kMaxLength + kPlaces + 512);
    const std::vector<uint64_t> mixed = MixedHashes(hashes.size(), n);
    std::copy(mixed.begin(), mixed.end(), hashes.data());
    const size_t to_line = (64 - reinterpret_cast<uintptr_t>(hashes.data()) % 64) / 8 % 8;
    this->ForEachKernel(n, UsualParams<TypeParam>(7), [&](const auto& kernel, const auto& view) {
      const std::vector<uint8_t> answers = Reference(view, hashes.data(), hashes.size());
      for (size_t place = 0; place < kPlaces; ++place) {
        const size_t first = to_line + place;
        for (size_t length = 0; length <= kMaxLength; ++length) {
          ExpectLikeReference(kernel, view, hashes.data() + first, answers.data() + first, length);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    });
  }
}

// Knobs at the ends of their ranges, where loops over probes and columns have their own tails.
TYPED_TEST(KernelTest, EveryLengthAtTheEndsOfEveryKnob) {
  constexpr size_t kKeys = 1000;
  std::vector<ParamsCase<TypeParam>> buildable;
  for (const auto& params_case : test::CornerParams<TypeParam>(7)) {
    if (TypeParam::Build(TestHashes(0, kKeys), params_case.params)) {
      buildable.push_back(params_case);
    }
  }
  const std::vector<uint64_t> hashes = MixedHashes(kMaxLength, kKeys);
  this->ForEachKernel(kKeys, buildable, [&](const auto& kernel, const auto& view) {
    const std::vector<uint8_t> answers = Reference(view, hashes.data(), hashes.size());
    for (size_t length = 0; length <= kMaxLength; ++length) {
      ExpectLikeReference(kernel, view, hashes.data(), answers.data(), length);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TYPED_TEST(KernelTest, ReadsAndWritesNothingOutsideItsSpans) {
  constexpr size_t kKeys = 3000;
  const std::vector<uint64_t> mixed = MixedHashes(kMaxLength, kKeys);
  this->ForEachKernel(kKeys, UsualParams<TypeParam>(7), [&](const auto& kernel, const auto& view) {
    GuardedArray<uint64_t> hashes(kMaxLength);
    std::copy(mixed.begin(), mixed.end(), hashes.data());
    GuardedArray<uint64_t> bits(kMaxLength / 64 + 1);
    const std::vector<uint8_t> answers = Reference(view, hashes.data(), hashes.size());
    for (size_t length = 0; length <= kMaxLength; ++length) {
      // Both end where the guard begins.
      const uint64_t* first = hashes.end() - length;
      const uint8_t* first_answer = answers.data() + (kMaxLength - length);
      ExpectLikeReference(kernel, view, first, first_answer, length);
      if (::testing::Test::HasFatalFailure()) return;
      const std::vector<uint64_t> expected = Packed(first_answer, length);
      uint64_t* first_word = bits.end() - expected.size();
      std::fill(bits.data(), bits.end(), kCanary);
      kernel.bits_batched(view, first, length, first_word);
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), first_word)) << length;
      ASSERT_TRUE(std::all_of(bits.data(), first_word, [](uint64_t w) { return w == kCanary; }))
          << length;
    }
    // A page full: begins where one guard ends and ends where the other begins.
    GuardedArray<uint64_t> page(static_cast<size_t>(sysconf(_SC_PAGESIZE)) / sizeof(uint64_t));
    for (size_t i = 0; i < page.size(); ++i) page[i] = mixed[i % mixed.size()];
    ExpectLikeReference(kernel, view, page.data(), Reference(view, page.data(), page.size()).data(),
                        page.size());
  });
}

// Tables that outgrow the caches take the path with prefetches.
TYPED_TEST(KernelTest, LikeTheReferenceBeyondTheCaches) {
  std::vector<ParamsCase<TypeParam>> cases;
  for (const auto& params_case : UsualParams<TypeParam>(7)) {
    if (!params_case.name.starts_with("bits_per_key")) cases.push_back(params_case);
  }
  const size_t n = test::KeysBeyondCache<TypeParam>(cases.front().params);
  const std::vector<uint64_t> hashes = MixedHashes(5000, n);
  this->ForEachKernel(n, cases, [&](const auto& kernel, const auto& view) {
    const std::vector<uint8_t> answers = Reference(view, hashes.data(), hashes.size());
    ExpectLikeReference(kernel, view, hashes.data(), answers.data(), hashes.size());
    for (size_t length = 0; length <= kMaxLength; length += length < 70 ? 1 : 13) {
      ExpectLikeReference(kernel, view, hashes.data() + 3, answers.data() + 3, length);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

// The answers depend on the keys: with about half of the lookups hits, neither all nor none of a
// long span is answered yes, or the comparisons above prove nothing.
TYPED_TEST(KernelTest, TheStreamHasHitsAndMisses) {
  constexpr size_t kKeys = 20000;
  const Result<TypeParam> filter = TypeParam::Build(TestHashes(0, kKeys), {.seed = 7});
  ASSERT_TRUE(filter) << filter.error();
  const std::vector<uint64_t> hashes = MixedHashes(10000, kKeys);
  const uint64_t yes = CountContained(*filter, hashes);
  EXPECT_GT(yes, 3000u);
  // A baseline may say maybe to all.
  EXPECT_LT(yes, TypeParam::kInfo.is_baseline ? 10001u : 9000u);
}

TYPED_TEST(KernelTest, LookupsThatHashTheirKeys) {
  constexpr uint64_t kSeed = 99;
  constexpr size_t kKeys = 400;
  std::vector<uint64_t> keys(2 * kKeys);
  std::string bytes;
  std::vector<uint64_t> offsets = {0};
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = i * i + 17;
    bytes += fmt::format("{:{}}", i, i % 40);
    offsets.push_back(bytes.size());
  }
  const auto byte_keys = [&](size_t n) { return ByteKeys{bytes.data(), offsets.data(), n}; };
  using View = typename TypeParam::View;

  for (const ParamsCase<TypeParam>& params_case : UsualParams<TypeParam>(7)) {
    SCOPED_TRACE(params_case.name);
    const auto& params = params_case.params;
    // A filter that hashes keys itself takes integer keys as they are.
    std::vector<uint64_t> built(keys.begin(), keys.begin() + kKeys);
    if constexpr (!KeyHashingView<View>) {
      for (uint64_t& key : built) key = HashU64(key, kSeed);
    }
    const Result<TypeParam> of_integers = TypeParam::Build(built, params);
    ASSERT_TRUE(of_integers) << of_integers.error();
    const Result<TypeParam> of_bytes = [&]() -> Result<TypeParam> {
      if constexpr (KeyHashingFilter<TypeParam>) {
        return TypeParam::BuildFromBytes(byte_keys(kKeys), params);
      } else {
        std::vector<uint64_t> hashes;
        for (size_t i = 0; i < kKeys; ++i) hashes.push_back(HashBytes(byte_keys(kKeys)[i], kSeed));
        return TypeParam::Build(hashes, params);
      }
    }();
    ASSERT_TRUE(of_bytes) << of_bytes.error();

    for (const auto& kernel : TypeParam::Kernels()) {
      SCOPED_TRACE(kernel.target);
      for (const size_t n : {size_t{0}, size_t{1}, size_t{33}, keys.size()}) {
        uint64_t expected_of_integers = 0;
        uint64_t expected_of_bytes = 0;
        for (size_t i = 0; i < n; ++i) {
          const View integers = of_integers->view();
          const View strings = of_bytes->view();
          if constexpr (KeyHashingView<View>) {
            expected_of_integers += integers.MayContain(keys[i]) ? 1 : 0;
            expected_of_bytes += strings.MayContainBytes(byte_keys(n)[i]) ? 1 : 0;
          } else {
            expected_of_integers += integers.MayContain(HashU64(keys[i], kSeed)) ? 1 : 0;
            expected_of_bytes += strings.MayContain(HashBytes(byte_keys(n)[i], kSeed)) ? 1 : 0;
          }
        }
        EXPECT_EQ(kernel.count_single_u64(of_integers->view(), keys.data(), n, kSeed),
                  expected_of_integers);
        EXPECT_EQ(kernel.count_single_bytes(of_bytes->view(), byte_keys(n), kSeed),
                  expected_of_bytes);
        if (!TypeParam::kInfo.is_baseline) {
          EXPECT_GE(expected_of_integers, std::min(n, kKeys));
          EXPECT_GE(expected_of_bytes, std::min(n, kKeys));
        }
      }
    }
  }
}

// Leaves a pattern on the stack where the next call has its buffers.
[[gnu::noinline]] void ScribbleOnTheStack() {
  volatile unsigned char scribble[256 << 10];
  for (volatile unsigned char& byte : scribble) byte = 0xa5;
}

// Lanes behind the last key of a short input must not gather where stale memory points to.
TYPED_TEST(KernelTest, ShortInputsDoNotFollowWhatTheStackHeld) {
  const std::vector<uint64_t> keys = test::TestHashes(0, 1000);
  for (const auto& [name, params] : test::UsualParams<TypeParam>(3)) {
    const Result<TypeParam> filter = TypeParam::Build(keys, params);
    ASSERT_TRUE(filter) << filter.error();
    const auto view = filter->view();
    for (const auto& kernel : TypeParam::Kernels()) {
      for (size_t n = 1; n < 40; ++n) {
        const uint64_t expected = kernel.count_single(view, keys.data() + 980 - n, n);
        ScribbleOnTheStack();
        EXPECT_EQ(kernel.count_batched(view, keys.data() + 980 - n, n), expected)
            << name << ' ' << kernel.target << ' ' << n;
      }
    }
  }
}

}  // namespace
}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CONFORMANCE_KERNEL_H_
