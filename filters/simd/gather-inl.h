// Gathers of table words, compiled once per target.

#if defined(FILTERBENCH_FILTERS_SIMD_GATHER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_SIMD_GATHER_INL_H_
#undef FILTERBENCH_FILTERS_SIMD_GATHER_INL_H_
#else
#define FILTERBENCH_FILTERS_SIMD_GATHER_INL_H_
#endif

#include <cstdint>

#include "filters/simd/hwy_compat-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

// Lane i of the result is base[lane i of indices]; T is uint32_t or uint64_t, indices are below
// 2^31 or 2^63.
//
// With AVX2 the words are loaded one by one and inserted: on Zen 3 the gather instruction takes
// 0.58 ns per word of a table in L1, this 0.35, and km_bloom as a whole 3.8 and 2.6 ns per absent
// key. On Intel processors of that target, gathers are slow too since the mitigation of Downfall.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> GatherWords(D d, const T* HWY_RESTRICT base, hn::Vec<D> indices) {
#if HWY_TARGET == HWY_AVX2
  const __m128i low = _mm256_castsi256_si128(indices.raw);
  const __m128i high = _mm256_extracti128_si256(indices.raw, 1);
  const auto i0 = static_cast<uint64_t>(_mm_cvtsi128_si64(low));
  const auto i1 = static_cast<uint64_t>(_mm_extract_epi64(low, 1));
  const auto i2 = static_cast<uint64_t>(_mm_cvtsi128_si64(high));
  const auto i3 = static_cast<uint64_t>(_mm_extract_epi64(high, 1));
  const auto word = [base](uint64_t index) HWY_ATTR {
    if constexpr (sizeof(T) == 4) {
      return static_cast<int>(base[index]);
    } else {
      return static_cast<long long>(base[index]);
    }
  };
  (void)d;
  if constexpr (sizeof(T) == 4) {
    constexpr uint64_t kLow = 0xffffffff;
    return hn::Vec<D>{_mm256_setr_epi32(word(i0 & kLow), word(i0 >> 32), word(i1 & kLow),
                                        word(i1 >> 32), word(i2 & kLow), word(i2 >> 32),
                                        word(i3 & kLow), word(i3 >> 32))};
  } else {
    return hn::Vec<D>{_mm256_setr_epi64x(word(i0), word(i1), word(i2), word(i3))};
  }
#else
  return hn::GatherIndex(d, base, hn::BitCast(hn::RebindToSigned<D>(), indices));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
