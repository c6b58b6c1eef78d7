// Lookups of RocksDB's filters: RocksDbBloom in vectors, all probes of a key at once
// (filters/bloom/line_lookup-inl.h); the two others are what they are in RocksDB, scalar code.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/rocksdb_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/line_lookup-inl.h"
#include "filters/bloom/rocksdb.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

Kernel<RocksDbBloom::View> RocksDbBloomKernel() {
  return ChunkedLoops<RocksDbBloom::View, LineLookup>::MakeWithSingleAndInsert();
}

#else  // HWY_SCALAR: one lane has no probes to share

Kernel<RocksDbBloom::View> RocksDbBloomKernel() {
  return ReferenceKernel<RocksDbBloom::View>(TargetName(HWY_TARGET));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(RocksDbBloomKernel);

template <>
std::span<const Kernel<RocksDbBloom::View>> RocksDbBloom::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(RocksDbBloomKernel)(); });
  return kernels;
}

template <>
std::span<const Kernel<RocksDbLegacyBloom::View>> RocksDbLegacyBloom::Kernels() {
  static const auto kernels = ScalarKernels<View>();
  return kernels;
}

template <>
std::span<const Kernel<RocksDbDynamicBloom::View>> RocksDbDynamicBloom::Kernels() {
  static const auto kernels = ScalarKernels<View>();
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
