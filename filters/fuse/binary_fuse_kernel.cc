// Lookups of BinaryFuse in vectors: see lookup-inl.h.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/fuse/binary_fuse_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/fuse/binary_fuse.h"
#include "filters/fuse/lookup-inl.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

Kernel<BinaryFuse::View> BinaryFuseKernel() {
#if HWY_TARGET == HWY_SCALAR
  return ReferenceKernel<BinaryFuse::View>(TargetName(HWY_TARGET));
#else
  return ChunkedLoops<BinaryFuse::View, FingerprintLookup>::Make();
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(BinaryFuseKernel);

std::span<const Kernel<BinaryFuse::View>> BinaryFuse::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(BinaryFuseKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
