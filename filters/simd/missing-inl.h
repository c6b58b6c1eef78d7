// Which of eight keys have all their bits, compiled once per target.
//
// A key's test leaves a vector that is zero where nothing is missing. To turn it into a bit of the
// answer key by key takes a vector test, a flag and two instructions that place the bit. Packing
// two vectors into one with saturation keeps what is not zero not zero: eight keys take about
// eleven instructions together.

#if defined(FILTERBENCH_FILTERS_SIMD_MISSING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_SIMD_MISSING_INL_H_
#undef FILTERBENCH_FILTERS_SIMD_MISSING_INL_H_
#else
#define FILTERBENCH_FILTERS_SIMD_MISSING_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "filters/simd/hwy_compat-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

// Whether all lanes are zero, for one key.
template <class D, class V = hn::Vec<D>>
HWY_INLINE bool NothingMissing(D d, V missing) {
#if HWY_TARGET == HWY_AVX2
  if constexpr (sizeof(V) == 32) return _mm256_testz_si256(missing.raw, missing.raw) != 0;
#elif HWY_TARGET == HWY_SSE4
  return _mm_testz_si128(missing.raw, missing.raw) != 0;
#endif
  return hn::AllTrue(d, hn::Eq(missing, hn::Zero(d)));
}

// Bit j of the result, j < 8: all lanes of miss(j) are zero. D has 4 or 8 lanes of uint32_t.
template <class D, class Miss>
HWY_INLINE uint64_t NothingMissingOf8(D d, const Miss& miss) {
  static_assert(sizeof(hn::TFromD<D>) == 4);
#if !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  if constexpr (hn::MaxLanes(d) == 4 || hn::MaxLanes(d) == 8) {
    const hn::RebindToSigned<D> d32;
    const hn::Repartition<int16_t, D> d16;
    const auto pair = [&](size_t j) FILTERBENCH_INLINE_LAMBDA {
      return hn::ReorderDemote2To(d16, hn::BitCast(d32, miss(j)), hn::BitCast(d32, miss(j + 1)));
    };
    // Four bytes per key, in each block of 16 bytes.
    const auto low = hn::BitCast(d, PackToBytes(d16, pair(0), pair(2)));
    const auto high = hn::BitCast(d, PackToBytes(d16, pair(4), pair(6)));
    const auto zero = hn::Zero(d);
    if constexpr (hn::MaxLanes(d) == 8) {
      return MaskToBits(d, hn::Eq(hn::Or(hn::ConcatLowerLower(d, high, low),
                                         hn::ConcatUpperUpper(d, high, low)),
                                  zero));
    } else {
      return MaskToBits(d, hn::Eq(low, zero)) | MaskToBits(d, hn::Eq(high, zero)) << 4;
    }
  }
#endif
  uint64_t bits = 0;
  for (size_t j = 0; j < 8; ++j) {
    bits |= uint64_t{hn::AllTrue(d, hn::Eq(miss(j), hn::Zero(d)))} << j;
  }
  return bits;
}

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
// The same where two keys share a vector of 16 lanes: those of key j, then those of key j + 4, in
// miss(j), j < 4.
template <class D, class Miss>
HWY_INLINE uint64_t NothingMissingOf8InPairs(D d, const Miss& miss) {
  const hn::RebindToSigned<D> d32;
  const hn::Repartition<int16_t, D> d16;
  const auto pair = [&](size_t j) FILTERBENCH_INLINE_LAMBDA {
    return hn::ReorderDemote2To(d16, hn::BitCast(d32, miss(j)), hn::BitCast(d32, miss(j + 1)));
  };
  const auto bytes = hn::BitCast(d, PackToBytes(d16, pair(0), pair(2)));
  // Keys 0 to 3 have a bit each in the first four and the second four, keys 4 to 7 after them.
  const uint64_t zero = MaskToBits(d, hn::Eq(bytes, hn::Zero(d)));
  const uint64_t both = zero & (zero >> 4);
  return (both & 0x0f) | (both >> 4 & 0xf0);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
