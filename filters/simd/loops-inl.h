// What every kernel file shares, compiled once per Highway target.

#if defined(FILTERBENCH_FILTERS_SIMD_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_SIMD_LOOPS_INL_H_
#undef FILTERBENCH_FILTERS_SIMD_LOOPS_INL_H_
#else
#define FILTERBENCH_FILTERS_SIMD_LOOPS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "filters/simd/hwy_compat-inl.h"
#include "filters/simd/kernel.h"
#include "filters/simd/targets.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();

#define FILTERBENCH_LOOPS_NAMESPACE HWY_NAMESPACE
#define FILTERBENCH_LOOPS_ATTR HWY_ATTR
#include "filters/simd/reference_loops-inl.h"
#undef FILTERBENCH_LOOPS_NAMESPACE
#undef FILTERBENCH_LOOPS_ATTR

namespace filterbench {
namespace HWY_NAMESPACE {

// The reference loops of this target with batched loops of the filter's own.
template <class View>
Kernel<View> MakeKernel(uint64_t (*count_batched)(const View&, const uint64_t*, size_t),
                        void (*bits_batched)(const View&, const uint64_t*, size_t, uint64_t*)) {
  Kernel<View> kernel = ReferenceKernel<View>(TargetName(HWY_TARGET));
  kernel.count_batched = count_batched;
  kernel.bits_batched = bits_batched;
  return kernel;
}

// Both batched loops from one function over a sub-batch: `Answer::Words(view, hashes, n, words)`
// writes the answers of n <= kSubBatch lookups as bits and may prefetch for all of them first.
// The words live in L1; counting them costs a few instructions for 64 keys.
template <class View, class Answer>
struct BatchedLoops {
  static constexpr size_t kSubBatch = Answer::kSubBatch;
  static_assert(kSubBatch % 64 == 0, "sub-batches must end at a word of the answer");

  static uint64_t Count(const View& any_view, const uint64_t* hashes, size_t n) {
    return SpecializeView(any_view, [=](const auto& view_ref) HWY_ATTR {
      const auto view = view_ref;
      uint64_t words[kSubBatch / 64];
      uint64_t count = 0;
      for (size_t i = 0; i < n; i += kSubBatch) {
        const size_t in_batch = std::min(kSubBatch, n - i);
        Answer::Words(view, hashes + i, in_batch, words);
        for (size_t w = 0; w < (in_batch + 63) / 64; ++w) count += hwy::PopCount(words[w]);
      }
      return count;
    });
  }

  static void Bits(const View& any_view, const uint64_t* hashes, size_t n, uint64_t* bits) {
    SpecializeView(any_view, [=](const auto& view_ref) HWY_ATTR {
      const auto view = view_ref;
      for (size_t i = 0; i < n; i += kSubBatch) {
        Answer::Words(view, hashes + i, std::min(kSubBatch, n - i), bits + i / 64);
      }
    });
  }

  static Kernel<View> Make() { return MakeKernel<View>(&Count, &Bits); }
};

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
