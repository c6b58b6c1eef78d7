#ifndef FILTERBENCH_FILTERS_TEST_SUPPORT_H_
#define FILTERBENCH_FILTERS_TEST_SUPPORT_H_

// What tests of filters share.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "filters/filter.h"
#include "filters/params_json.h"
#include "filters/simd/prefetch.h"

namespace filterbench::test {

// Names typed tests: `Contract/blocked_bloom.DeniesAllWhenEmpty`.
struct FilterNames {
  template <class F>
  static std::string GetName(int) {
    return std::string(F::kInfo.name);
  }
};

// Hash of key i: a bijection of i, so that indices from n on are absent from a filter of the
// indices below n. SplitMix64's sequence, finalized as in filters/hash.h.
inline uint64_t TestHash(uint64_t i) { return Mix64(i * 0x9e3779b97f4a7c15 + 0x1234567); }

inline std::vector<uint64_t> TestHashes(uint64_t first, size_t n) {
  std::vector<uint64_t> hashes(n);
  for (size_t i = 0; i < n; ++i) hashes[i] = TestHash(first + i);
  return hashes;
}

// Of n hashes about every other one is among the first `keys` test hashes, in no order that a
// predictor or a vector of any width could follow.
inline std::vector<uint64_t> MixedHashes(size_t n, uint64_t keys) {
  std::vector<uint64_t> hashes(n);
  for (size_t i = 0; i < n; ++i) {
    const uint64_t random = Mix64(i + 0x5eed);
    const bool present = keys != 0 && random % 2 == 0;
    hashes[i] = present ? TestHash(FastRange64(random, keys)) : TestHash((uint64_t{1} << 40) + i);
  }
  return hashes;
}

template <class F>
struct ParamsCase {
  std::string name;
  typename F::Params params;
};

// The defaults, every value of every choice, and bits_per_key 4 and 20 where that is a knob.
template <class F>
std::vector<ParamsCase<F>> UsualParams(uint64_t seed) {
  typename F::Params defaults;
  defaults.seed = seed;
  std::vector<ParamsCase<F>> cases = {{"defaults", defaults}};
  std::apply(
      [&](const auto&... knob) {
        (
            [&] {
              using Value = typename std::remove_cvref_t<decltype(knob)>::Value;
              typename F::Params params = defaults;
              if constexpr (std::is_enum_v<Value>) {
                for (size_t i = 0; i < knob.choices.size(); ++i) {
                  params.*knob.member = static_cast<Value>(i);
                  if (params == defaults) continue;
                  cases.push_back({fmt::format("{}={}", knob.name, knob.choices[i]), params});
                }
              } else if (knob.name == "bits_per_key") {
                for (const Value bits : {Value{4}, Value{20}}) {
                  params.*knob.member = bits;
                  cases.push_back({fmt::format("{}={}", knob.name, bits), params});
                }
              }
            }(),
            ...);
      },
      F::kKnobs);
  return cases;
}

// Every numeric knob at both ends of its range, the others at their defaults. A filter may refuse
// these, with a reason.
template <class F>
std::vector<ParamsCase<F>> CornerParams(uint64_t seed) {
  typename F::Params defaults;
  defaults.seed = seed;
  std::vector<ParamsCase<F>> cases;
  std::apply(
      [&](const auto&... knob) {
        (
            [&] {
              using Value = typename std::remove_cvref_t<decltype(knob)>::Value;
              if constexpr (!std::is_enum_v<Value>) {
                for (const Value value : {knob.low, knob.high}) {
                  typename F::Params params = defaults;
                  params.*knob.member = value;
                  cases.push_back({fmt::format("{}={}", knob.name, value), params});
                }
              }
            }(),
            ...);
      },
      F::kKnobs);
  return cases;
}

// The number of keys, doubled from 2^16 on, whose table is large enough for kernels to prefetch on
// this machine; capped at 2^23 for filters without a table.
template <class F>
size_t KeysBeyondCache(const typename F::Params& params) {
  for (size_t n = size_t{1} << 16; n < size_t{1} << 23; n *= 2) {
    const Result<F> filter = F::Build(TestHashes(0, n), params);
    if (!filter || filter->Table().empty()) return n;
    // Twice, so that parts of a table that lie apart outgrow the cache as well.
    if (PrefetchPays(filter->Table().size() / 2)) return n;
  }
  return size_t{1} << 23;
}

// An array that ends at a page which may not be touched, after another such page: one element
// too many, at either end of a whole number of pages, is a crash.
template <class T>
class GuardedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit GuardedArray(size_t size)
      : page_bytes_(static_cast<size_t>(sysconf(_SC_PAGESIZE))), size_(size) {
    const size_t inner_bytes = (size * sizeof(T) + page_bytes_ - 1) / page_bytes_ * page_bytes_;
    mapped_bytes_ = inner_bytes + 2 * page_bytes_;
    void* mapping = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(mapping, MAP_FAILED);
    mapping_ = static_cast<std::byte*>(mapping);
    if (inner_bytes != 0) {
      EXPECT_EQ(mprotect(mapping_ + page_bytes_, inner_bytes, PROT_READ | PROT_WRITE), 0);
    }
    begin_ = reinterpret_cast<T*>(mapping_ + page_bytes_ + inner_bytes) - size;
  }
  GuardedArray(const GuardedArray&) = delete;
  GuardedArray& operator=(const GuardedArray&) = delete;
  ~GuardedArray() { munmap(mapping_, mapped_bytes_); }

  T* data() { return begin_; }
  T* end() { return begin_ + size_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return begin_[i]; }

 private:
  size_t page_bytes_;
  size_t size_;
  size_t mapped_bytes_;
  std::byte* mapping_;
  T* begin_;
};

inline bool EqualBytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

// Number of hashes that the scalar reference denies: must be 0 for those that were built in.
template <class F>
size_t CountDenied(const F& filter, std::span<const uint64_t> hashes) {
  size_t denied = 0;
  for (const uint64_t hash : hashes) denied += filter.MayContain(hash) ? 0 : 1;
  return denied;
}

}  // namespace filterbench::test

#endif  // FILTERBENCH_FILTERS_TEST_SUPPORT_H_
