// A word of answers at a time: nothing is computed, so that what is left is the loop.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/limits/always_maybe_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/limits/always_maybe.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

uint64_t AlwaysMaybeRun(const AlwaysMaybe::View&, const uint64_t* hashes, size_t n,
                        uint64_t* bits) {
  return LookUpByWords(hashes, n, bits,
                       [](const uint64_t*, size_t in_word) FILTERBENCH_INLINE_LAMBDA {
                         return in_word == 64 ? ~uint64_t{0} : (uint64_t{1} << in_word) - 1;
                       });
}

Kernel<AlwaysMaybe::View> AlwaysMaybeKernel() {
  return MakeKernel<AlwaysMaybe::View, &AlwaysMaybeRun>();
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(AlwaysMaybeKernel);

std::span<const Kernel<AlwaysMaybe::View>> AlwaysMaybe::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(AlwaysMaybeKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
