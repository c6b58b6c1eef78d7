// Lookups of BlockedBloom in vectors, all probes of a key at once
// (filters/bloom/line_lookup-inl.h).

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/blocked_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/blocked.h"
#include "filters/bloom/line_lookup-inl.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

Kernel<BlockedBloom::View> BlockedBloomKernel() {
  return ChunkedLoops<BlockedBloom::View, LineLookup>::MakeWithSingleAndInsert();
}

#else  // HWY_SCALAR: one lane has no probes to share

Kernel<BlockedBloom::View> BlockedBloomKernel() {
  return ReferenceKernel<BlockedBloom::View>(TargetName(HWY_TARGET));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(BlockedBloomKernel);

template <>
std::span<const Kernel<BlockedBloom::View>> BlockedBloom::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(BlockedBloomKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
