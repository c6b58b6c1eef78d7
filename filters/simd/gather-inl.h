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

// Lane i of the result is words[indices[i]], zero-extended where T has 32 bits. Indices lie in
// memory, so that scalar loads need not take them out of a vector first. May read four bytes beyond
// a word of 32 bits.
template <class D, class T>
HWY_INLINE hn::Vec<D> WordsAt(D d, const T* HWY_RESTRICT words,
                              const uint64_t* HWY_RESTRICT indices) {
  static_assert(sizeof(hn::TFromD<D>) == 8 && (sizeof(T) == 4 || sizeof(T) == 8));
#if HWY_TARGET == HWY_AVX2
  (void)d;
  const auto word = [=](size_t lane) FILTERBENCH_INLINE_LAMBDA {
    return static_cast<long long>(words[indices[lane]]);
  };
  return hn::Vec<D>{_mm256_setr_epi64x(word(0), word(1), word(2), word(3))};
#elif HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
  (void)d;
  return hn::Vec<D>{_mm_set_epi64x(static_cast<long long>(words[indices[1]]),
                                   static_cast<long long>(words[indices[0]]))};
#else
  const hn::RebindToSigned<D> di;
  const auto index = hn::BitCast(di, hn::Load(d, indices));
  if constexpr (sizeof(T) == 8) {
    return hn::GatherIndex(d, words, index);
  } else {
    return hn::And(hn::GatherOffset(d, reinterpret_cast<const uint64_t*>(words),
                                    hn::ShiftLeft<2>(index)),
                   hn::Set(d, 0xffffffff));
  }
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
