// Everything that differs between Highway 1.0.3 (Debian 12) and current Highway, compiled once per
// target. Kernels use what stands here where the two versions disagree.

#if defined(FILTERBENCH_FILTERS_SIMD_HWY_COMPAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_SIMD_HWY_COMPAT_INL_H_
#undef FILTERBENCH_FILTERS_SIMD_HWY_COMPAT_INL_H_
#else
#define FILTERBENCH_FILTERS_SIMD_HWY_COMPAT_INL_H_
#endif

#include "hwy/highway.h"

#ifndef FILTERBENCH_FILTERS_SIMD_SELECTED_LANES_
#define FILTERBENCH_FILTERS_SIMD_SELECTED_LANES_
namespace filterbench {

// For each mask of kLanes lanes: the units of the selected lanes in order, kUnits to a lane, then
// the others.
template <int kLanes, int kUnits>
struct SelectedLanes {
  constexpr SelectedLanes() {
    for (int mask = 0; mask < 1 << kLanes; ++mask) {
      int to = 0;
      for (const bool selected : {true, false}) {
        for (int lane = 0; lane < kLanes; ++lane) {
          if (((mask >> lane & 1) != 0) != selected) continue;
          for (int unit = 0; unit < kUnits; ++unit) {
            units[mask][to++] = static_cast<uint8_t>(lane * kUnits + unit);
          }
        }
      }
    }
  }
  constexpr const uint8_t* operator[](uint64_t mask) const { return units[mask]; }

  uint8_t units[1 << kLanes][kLanes * kUnits] = {};
};
inline constexpr SelectedLanes<8, 1> kSelectedOf8;
inline constexpr SelectedLanes<4, 2> kSelectedPairsOf4;
inline constexpr SelectedLanes<4, 4> kSelectedBytesOf4;
inline constexpr SelectedLanes<2, 8> kSelectedBytesOf2;

}  // namespace filterbench
#endif  // FILTERBENCH_FILTERS_SIMD_SELECTED_LANES_

// For lambdas in the innermost loops, in place of HWY_ATTR: GCC calls those that it counts as
// large, and vectors then travel through memory.
#ifndef FILTERBENCH_INLINE_LAMBDA
#define FILTERBENCH_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))
#endif

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

// The lanes of `yes` where those of v are negative, of `no` elsewhere; 32 or 64 bits, signed.
// hn::IfNegativeThenElse is wrong on SSSE3 in Highway 1.0.3: it takes the sign for a whole mask.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V IfNegative(D d, V v, V yes, V no) {
  (void)d;
#if HWY_TARGET == HWY_SSSE3
  return hn::IfVecThenElse(hn::BroadcastSignBit(v), yes, no);
#else
  return hn::IfNegativeThenElse(v, yes, no);
#endif
}

// Stores the lanes of a vector that the mask selects, in order, and after them anything up to a
// whole vector. hn::Compress does this, but with GCC 12 the tables of Highway 1.0.3 for AVX2 and
// for 128-bit vectors are copied to the stack for each vector (1 KiB for AVX2), ten times the cost
// of the rest; here they are static. T has 32 or 64 bits.
template <class D, class M, class V, class T = hn::TFromD<D>>
HWY_INLINE void StoreSelected(D d, V v, M mask, T* HWY_RESTRICT to) {
#if HWY_TARGET == HWY_AVX2
  const hn::Repartition<uint32_t, D> d32;
  const hn::Rebind<uint8_t, decltype(d32)> d8;
  const uint64_t bits = MaskToBits(d, mask);
  // A 64-bit lane moves as its two halves.
  const uint8_t* order = sizeof(T) == 4 ? kSelectedOf8[bits] : kSelectedPairsOf4[bits];
  const auto indices = hn::IndicesFromVec(d32, hn::PromoteTo(d32, hn::LoadU(d8, order)));
  hn::StoreU(hn::BitCast(d, hn::TableLookupLanes(hn::BitCast(d32, v), indices)), d, to);
#elif HWY_MAX_BYTES == 16 && HWY_TARGET != HWY_SCALAR
  const hn::Repartition<uint8_t, D> d8;
  const uint64_t bits = MaskToBits(d, mask);
  const uint8_t* order = sizeof(T) == 4 ? kSelectedBytesOf4[bits] : kSelectedBytesOf2[bits];
  hn::StoreU(hn::BitCast(d, hn::TableLookupBytes(hn::BitCast(d8, v), hn::LoadU(d8, order))), d, to);
#else
  hn::StoreU(hn::Compress(v, mask), d, to);
#endif
}

#if !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
// The lanes of a, then those of b, as signed bytes with saturation, within each block of 16 bytes
// of the vectors: hn::ReorderDemote2To of later versions. D has int16_t.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Vec<hn::Repartition<int8_t, D>> PackToBytes(D d, V a, V b) {
  const hn::Repartition<int8_t, D> d8;
  (void)d;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  if constexpr (hn::MaxLanes(d8) == 64) {
    return hn::Vec<decltype(d8)>{_mm512_packs_epi16(a.raw, b.raw)};
  } else
#endif
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
      if constexpr (hn::MaxLanes(d8) == 32) {
    return hn::Vec<decltype(d8)>{_mm256_packs_epi16(a.raw, b.raw)};
  } else
#endif
  {
#if HWY_ARCH_X86
    return hn::Vec<decltype(d8)>{_mm_packs_epi16(a.raw, b.raw)};
#else
    const hn::Half<decltype(d8)> half;
    return hn::Combine(d8, hn::DemoteTo(half, b), hn::DemoteTo(half, a));
#endif
  }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
