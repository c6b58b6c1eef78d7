// Lookups of Ribbon in vectors: see lookup-inl.h.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/ribbon/ribbon_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/ribbon/lookup-inl.h"
#include "filters/ribbon/ribbon.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

Kernel<Ribbon::View> RibbonKernel() {
#if HWY_TARGET == HWY_SCALAR
  return ReferenceKernel<Ribbon::View>(TargetName(HWY_TARGET));
#else
  return RibbonLoops<Ribbon::View>::Make();
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(RibbonKernel);

std::span<const Kernel<Ribbon::View>> Ribbon::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(RibbonKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
