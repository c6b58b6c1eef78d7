// Lookups of Cuckoo: the two buckets of several keys in vectors, see pair_lookup-inl.h.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/cuckoo/cuckoo_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/cuckoo/cuckoo.h"
#include "filters/cuckoo/pair_lookup-inl.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

Kernel<Cuckoo::View> CuckooKernel() { return ChunkedLoops<Cuckoo::View, PairLookup>::Make(); }

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(CuckooKernel);

template <>
std::span<const Kernel<Cuckoo::View>> Cuckoo::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(CuckooKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
