// Lookups of SemiSortedCuckoo: the stored high bits of several keys in vectors, see
// pair_lookup-inl.h; the codes of the low bits are decoded only for keys that pass.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/cuckoo/semi_sorted_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/cuckoo/pair_lookup-inl.h"
#include "filters/cuckoo/semi_sorted.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

Kernel<SemiSortedCuckoo::View> SemiSortedKernel() {
  return ChunkedLoops<SemiSortedCuckoo::View, PairLookup>::Make();
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(SemiSortedKernel);

template <>
std::span<const Kernel<SemiSortedCuckoo::View>> SemiSortedCuckoo::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(SemiSortedKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
