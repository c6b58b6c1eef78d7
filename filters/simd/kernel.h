#ifndef FILTERBENCH_FILTERS_SIMD_KERNEL_H_
#define FILTERBENCH_FILTERS_SIMD_KERNEL_H_

// The loops over lookups that are timed, as one table of function pointers per SIMD target.
// Types are erased here, at the loop: inside, the lookup is inlined.

#include <cstddef>
#include <cstdint>
#include <concepts>
#include <string_view>
#include <vector>

#include "filters/hash.h"

namespace filterbench {

template <class View>
struct Kernel {
  std::string_view target;  // "scalar", or a Highway target in lower case: "avx2"

  // Number of answers `maybe`; any n, any alignment of `hashes`.
  uint64_t (*count_batched)(const View& view, const uint64_t* hashes, size_t n);
  // Answer i into bit i % 64 of bits[i / 64], unused bits of the last word 0; n = 0 writes nothing.
  void (*bits_batched)(const View& view, const uint64_t* hashes, size_t n, uint64_t* bits);

  // One key at a time, as well as this target can: with vectors inside a key where that pays.
  uint64_t (*count_single)(const View& view, const uint64_t* hashes, size_t n);
  // The same with the hashing inside the loop: XXH3 of an integer key, or of a byte string.
  uint64_t (*count_single_u64)(const View& view, const uint64_t* keys, size_t n, uint64_t seed);
  uint64_t (*count_single_bytes)(const View& view, ByteKeys keys, uint64_t seed);
  // Lookup i + 1 waits for answer i: the latency of a lookup. Where a filter decides by a branch,
  // the processor may guess the answer and run ahead, as it does in real code.
  uint64_t (*chain)(const View& view, const uint64_t* hashes, size_t n);

  // The scalar reference one key at a time, compiled with this target's instructions, so that a
  // comparison with the others shows what vectors and batching bring and nothing else.
  uint64_t (*count_reference)(const View& view, const uint64_t* hashes, size_t n);

  // Inserts keys into the table of `view`, leaving the same bytes as one key at a time; null where
  // that is not vectorised.
  void (*insert)(const View& view, std::byte* table, const uint64_t* hashes, size_t n) = nullptr;
};

// A view whose lookups hash the key themselves (see KeyHashingFilter).
template <class View>
concept KeyHashingView = requires(const View& view, std::string_view key) {
  { view.MayContainBytes(key) } noexcept -> std::same_as<bool>;
};

// A view whose lookup depends on parameters that are fixed for a filter (a width, a bucket layout)
// has `Specialize(use)`: it calls `use` with a view that knows them at compile time. Loops
// specialise once, so that no lookup decides anew.
template <class View, class Use>
inline decltype(auto) SpecializeView(const View& view, Use&& use) {
  if constexpr (requires { view.Specialize(use); }) {
    return view.Specialize(use);
  } else {
    return use(view);
  }
}

// The reference loops compiled for any machine. They stand last in every list of kernels.
template <class View>
Kernel<View> ScalarKernel();

// A filter without vector kernels: `static const auto kernels = ScalarKernels<View>();`
template <class View>
std::vector<Kernel<View>> ScalarKernels() {
  return {ScalarKernel<View>()};
}

}  // namespace filterbench

#include "filters/simd/scalar_loops.h"

#endif  // FILTERBENCH_FILTERS_SIMD_KERNEL_H_
