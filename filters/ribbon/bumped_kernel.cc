// Lookups of BumpedRibbon in vectors: see lookup-inl.h.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/ribbon/bumped_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/ribbon/bumped.h"
#include "filters/ribbon/lookup-inl.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

Kernel<BumpedRibbon::View> BumpedRibbonKernel() {
#if HWY_TARGET == HWY_SCALAR
  return ReferenceKernel<BumpedRibbon::View>(TargetName(HWY_TARGET));
#else
  return RibbonLoops<BumpedRibbon::View>::Make();
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(BumpedRibbonKernel);

std::span<const Kernel<BumpedRibbon::View>> BumpedRibbon::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(BumpedRibbonKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
