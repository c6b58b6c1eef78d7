// Any filter with any parameters over any keys: all targets answer like the scalar reference, for
// spans of any length at any place, and write nothing beside their answers.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "filters/catalogue.h"
#include "filters/filter.h"
#include "filters/fuzzer.h"
#include "filters/hash.h"

namespace filterbench {
namespace {

// Keys, and a table of so many bytes at most: an input is to take a millisecond.
constexpr uint64_t kMaxKeys = 3000;
constexpr uint64_t kMaxSpan = 700;
constexpr uint64_t kCanary = 0xdeadbeefcafef00d;

// A value of each knob; the ends of its range come often.
template <class F>
typename F::Params AnyParams(FuzzInput& input) {
  typename F::Params params;
  params.seed = input.Number<uint64_t>();
  std::apply(
      [&](const auto&... knob) {
        (
            [&] {
              using Value = typename std::remove_cvref_t<decltype(knob)>::Value;
              const uint16_t drawn = input.Number<uint16_t>();
              if constexpr (std::is_enum_v<Value>) {
                params.*knob.member = static_cast<Value>(drawn % knob.choices.size());
              } else if (drawn % 4 == 0) {
                return;  // the default
              } else if (drawn % 4 == 1) {
                params.*knob.member = drawn / 4 % 2 == 0 ? knob.low : knob.high;
              } else if constexpr (std::is_floating_point_v<Value>) {
                params.*knob.member = knob.low + (knob.high - knob.low) * (drawn / 65536.0);
              } else {
                // Small distances from the low end: the whole range where it is short.
                const uint64_t range = static_cast<uint64_t>(knob.high - knob.low);
                params.*knob.member = static_cast<Value>(
                    knob.low +
                    (range == UINT64_MAX ? drawn / 4 : drawn / 4 % (range + 1)));
              }
            }(),
            ...);
      },
      F::kKnobs);
  return params;
}

// Hash i of those that a filter is built from.
uint64_t Member(uint64_t i, uint64_t salt) { return Mix64(salt + i * kGoldenGamma); }

template <class F>
void TryKernels(FuzzInput& input) {
  const auto require = [](bool holds, std::string_view target, std::string_view what) {
    if (holds) return;
    FuzzRequire(false, std::string(F::kInfo.name) + ' ' + std::string(target) + ": " +
                           std::string(what));
  };
  const typename F::Params params = AnyParams<F>(input);
  if constexpr (requires { F::Contradiction(params); }) {
    if (!F::Contradiction(params).empty()) return;
  }
  const uint64_t n = input.InRange(0, kMaxKeys);
  const uint64_t salt = input.Number<uint64_t>();
  const uint64_t offset = input.InRange(0, 15);
  const uint64_t length = input.InRange(0, kMaxSpan);
  const uint8_t absent = input.Number<uint8_t>();  // of 256 lookups

  // What is left of the input are keys too, so that hashes need not be random.
  std::vector<uint64_t> keys;
  FuzzInput raw(input.rest());
  while (!raw.empty() && keys.size() < n) keys.push_back(raw.Number<uint64_t>());
  for (uint64_t i = keys.size(); i < n; ++i) keys.push_back(Member(i, salt));

  const Result<F> filter = F::Build(keys, params);
  if (!filter) {
    require(!filter.error().empty(), "build", "refused without a reason");
    return;
  }
  const auto view = filter->view();
  if (!F::kInfo.is_baseline) {
    for (const uint64_t key : keys) require(view.MayContain(key), "scalar", "denies a key");
  }

  // Of just this size: what is read outside of it is seen by AddressSanitizer.
  std::vector<uint64_t> spans(offset + length);
  for (size_t i = 0; i < spans.size(); ++i) {
    const uint64_t drawn = Mix64(i + salt);
    const bool present = !keys.empty() && (drawn & 0xff) >= absent;
    spans[i] = present ? keys[FastRange64(drawn, keys.size())] : Mix64(drawn);
  }
  spans.shrink_to_fit();
  const uint64_t* hashes = spans.data() + offset;

  uint64_t expected = 0;
  std::vector<uint64_t> expected_bits((length + 63) / 64);
  for (size_t i = 0; i < length; ++i) {
    const uint64_t answer = view.MayContain(hashes[i]) ? 1 : 0;
    expected += answer;
    expected_bits[i / 64] |= answer << (i % 64);
  }
  for (const auto& kernel : F::Kernels()) {
    const std::string_view target = kernel.target;
    require(kernel.count_batched(view, hashes, length) == expected, target, "count_batched");
    require(kernel.count_single(view, hashes, length) == expected, target, "count_single");
    require(kernel.count_reference(view, hashes, length) == expected, target, "count_reference");
    require(kernel.chain(view, hashes, length) == expected, target, "chain");
    std::vector<uint64_t> bits(expected_bits.size() + 2, kCanary);
    kernel.bits_batched(view, hashes, length, bits.data() + 1);
    require(bits.front() == kCanary && bits.back() == kCanary, target,
            "bits_batched writes beside its answers");
    require(std::equal(expected_bits.begin(), expected_bits.end(), bits.begin() + 1), target,
            "bits_batched");
  }
}

}  // namespace
}  // namespace filterbench

FILTERBENCH_FUZZER(Kernel) {
  FuzzInput rest(input);
  size_t types = 0;
  Catalogue::ForEach([&]<class F>() { ++types; });
  const size_t chosen = rest.Number<uint8_t>() % types;
  size_t index = 0;
  Catalogue::ForEach([&]<class F>() {
    if (index++ == chosen) TryKernels<F>(rest);
  });
}
