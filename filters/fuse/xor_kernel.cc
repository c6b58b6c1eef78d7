// Lookups of Xor in vectors: see lookup-inl.h.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/fuse/xor_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/fuse/xor.h"
#include "filters/fuse/lookup-inl.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

Kernel<Xor::View> XorKernel() {
  // With two lanes of 64 bits, batching takes 1.2 times as long as the scalar loop in cache (SSE4
  // and SSSE3 on Zen 3), which overlaps the three loads of several keys as well.
#if HWY_TARGET == HWY_SCALAR || HWY_MAX_BYTES == 16
  return ReferenceKernel<Xor::View>(TargetName(HWY_TARGET));
#else
  return ChunkedLoops<Xor::View, FingerprintLookup>::Make();
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(XorKernel);

std::span<const Kernel<Xor::View>> Xor::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(XorKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
