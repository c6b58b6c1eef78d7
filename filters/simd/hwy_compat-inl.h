// Everything that differs between Highway 1.0.3 (Debian 12) and current Highway, compiled once per
// target. Kernels use what stands here where the two versions disagree.

#if defined(FILTERBENCH_FILTERS_SIMD_HWY_COMPAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_SIMD_HWY_COMPAT_INL_H_
#undef FILTERBENCH_FILTERS_SIMD_HWY_COMPAT_INL_H_
#else
#define FILTERBENCH_FILTERS_SIMD_HWY_COMPAT_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The lanes of a mask as the low bits of a word, lane 0 lowest; for vectors of at most 64 lanes.
template <class D, class M>
HWY_INLINE uint64_t MaskToBits(D d, M mask) {
  uint8_t bytes[8] = {};  // StoreMaskBits writes at least one byte, at most eight
  hn::StoreMaskBits(d, mask, bytes);
  uint64_t bits;
  hwy::CopyBytes<8>(bytes, &bits);
  return bits & (~uint64_t{0} >> (64 - hn::Lanes(d)));
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
