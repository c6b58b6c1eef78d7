// Lookups in one mini-filter in vectors, compiled once per target; not for one lane.

#if defined(FILTERBENCH_FILTERS_QUOTIENT_MINI_FILTER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_QUOTIENT_MINI_FILTER_INL_H_
#undef FILTERBENCH_FILTERS_QUOTIENT_MINI_FILTER_INL_H_
#else
#define FILTERBENCH_FILTERS_QUOTIENT_MINI_FILTER_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "filters/quotient/mini_filter.h"
#include "filters/simd/hwy_compat-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// Bit i: the i-th T of `kBytes` aligned bytes is `value`.
template <size_t kBytes, class T>
HWY_INLINE uint64_t EqualLanes(const std::byte* HWY_RESTRICT from, T value) {
  const hn::CappedTag<T, kBytes / sizeof(T)> d;
  const auto wanted = hn::Set(d, value);
  uint64_t equal = 0;
  for (size_t i = 0; i < kBytes / sizeof(T); i += hn::Lanes(d)) {
    const auto lanes = hn::LoadU(d, reinterpret_cast<const T*>(from) + i);
    equal |= MaskToBits(d, hn::Eq(lanes, wanted)) << i;
  }
  return equal;
}

// Bit i: slot i of the block holds the remainder of this tag, in whatever bucket, or is free and
// the remainder is 0.
template <int kBits>
HWY_INLINE uint64_t SlotsWithRemainder(const std::byte* HWY_RESTRICT block, uint64_t tag) {
  using Block = MiniFilter<kBits>;
  using Remainder = typename Block::Remainder;
  // The metadata are compared as well, and their lanes dropped.
  return EqualLanes<Block::kBytes>(block, static_cast<Remainder>(tag)) >>
         (Block::kMetadataBytes / sizeof(Remainder));
}

// Whether one of a non-empty set of slots lies in the bucket. Slot s does if the bit at s + bucket
// is that of a key and s keys are below it: then as many zeros are below it as buckets before this
// one. Both are seen when that bit is shifted to the top.
template <class Metadata>
HWY_INLINE bool HasSlotOfBucket(Metadata metadata, uint64_t slots, int bucket) {
  constexpr int kTop = 8 * sizeof(Metadata) - 1;
  do {
    const int slot = static_cast<int>(hwy::Num0BitsBelowLS1Bit_Nonzero64(slots));
    const Metadata up_to_slot = metadata << (kTop - slot - bucket);
    size_t keys = hwy::PopCount(static_cast<uint64_t>(up_to_slot));
    if constexpr (sizeof(Metadata) == 16) {
      keys += hwy::PopCount(static_cast<uint64_t>(up_to_slot >> 64));
    }
    if ((up_to_slot >> kTop) != 0 && keys == static_cast<size_t>(slot) + 1) return true;
    slots &= slots - 1;
  } while (slots != 0);
  return false;
}
template <int kBits>
HWY_INLINE bool HasSlotOfBucket(const std::byte* HWY_RESTRICT block, uint64_t slots, int bucket) {
  return HasSlotOfBucket(MiniFilter<kBits>::Load(block), slots, bucket);
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
