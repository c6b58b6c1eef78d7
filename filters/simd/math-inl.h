// The arithmetic of filters/hash.h in vectors, compiled once per target.

#if defined(FILTERBENCH_FILTERS_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_SIMD_MATH_INL_H_
#undef FILTERBENCH_FILTERS_SIMD_MATH_INL_H_
#else
#define FILTERBENCH_FILTERS_SIMD_MATH_INL_H_
#endif

#include <cstdint>

#include "filters/hash.h"
#include "filters/simd/hwy_compat-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

// Full products of the lower 32 bits of each 64-bit lane.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V MulLow32(D d, V a, V b) {
#if HWY_TARGET == HWY_SCALAR  // one lane of 64 bits is not two of 32
  const V low = hn::Set(d, 0xffffffff);
  return hn::Mul(hn::And(a, low), hn::And(b, low));
#else
  const hn::RepartitionToNarrow<D> d32;
  (void)d;
  return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
#endif
}

// The product with a factor of 32 bits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V MulBy32(D d, V x, uint64_t factor) {
  const V f = hn::Set(d, factor);
  const V high = MulLow32(d, hn::ShiftRight<32>(x), f);
  return hn::Add(MulLow32(d, x, f), hn::ShiftLeft<32>(high));
}

// x ^ x >> 32 of each lane.
template <class V>
HWY_INLINE V Fold(V x) {
  return hn::Xor(x, hn::ShiftRight<32>(x));
}

// FastRange64 of each lane, that is the upper half of the product with `range`. Where the range is
// known to be below 2^32 (kNarrow), two products of 32 bits do instead of four.
template <bool kNarrow, class D, class V = hn::Vec<D>>
HWY_INLINE V FastRange64(D d, V hash, uint64_t range) {
  const V low = hn::Set(d, range & 0xffffffff);
  const V hash_high = hn::ShiftRight<32>(hash);
  // At most (2^32 - 1)^2 + 2^32 - 2: no carry is lost.
  const V middle =
      hn::Add(MulLow32(d, hash_high, low), hn::ShiftRight<32>(MulLow32(d, hash, low)));
  if constexpr (kNarrow) {
    return hn::ShiftRight<32>(middle);
  } else {
    const V high = hn::Set(d, range >> 32);
    const V low_middle = hn::And(middle, hn::Set(d, 0xffffffff));
    const V other_middle = hn::Add(MulLow32(d, hash, high), low_middle);
    return hn::Add(hn::Add(MulLow32(d, hash_high, high), hn::ShiftRight<32>(middle)),
                   hn::ShiftRight<32>(other_middle));
  }
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Mix64(D d, V x) {
  x = hn::Xor(x, hn::ShiftRight<33>(x));
  x = hn::Mul(x, hn::Set(d, 0xff51afd7ed558ccdULL));
  x = hn::Xor(x, hn::ShiftRight<33>(x));
  x = hn::Mul(x, hn::Set(d, 0xc4ceb9fe1a85ec53ULL));
  return hn::Xor(x, hn::ShiftRight<33>(x));
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
