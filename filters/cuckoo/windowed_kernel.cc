// Lookups of WindowedCuckoo in vectors: both windows of several keys are compared in lanes of 64
// bits, tags of 11 bits as they are packed. Of the two windows over a byte that 12-bit slots share,
// one starts at its upper half.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/cuckoo/windowed_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/cuckoo/pair_lookup-inl.h"
#include "filters/cuckoo/windowed.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

template <class View>
class WindowLookup {
  using Slots = typename View::Slots;
  static constexpr int kBits = Slots::kTagBits + 1;
  static constexpr bool kHalfBytes = kBits % 8 != 0;

 public:
  static constexpr size_t kGroup = 8;
  struct Chunk {
    HWY_ALIGN uint64_t first_offsets[kChunkKeys];
    HWY_ALIGN uint64_t second_offsets[kChunkKeys];
    HWY_ALIGN uint64_t tags[kChunkKeys];
    // In the highest bit, whether the window starts in the upper half of its byte.
    HWY_ALIGN uint64_t first_halves[kHalfBytes ? kChunkKeys : 1];
    HWY_ALIGN uint64_t second_halves[kHalfBytes ? kChunkKeys : 1];
  };

  explicit WindowLookup(const View& view) : view_(view) {}

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    if (HWY_UNLIKELY(view_.windows >> 32 != 0)) return PrepareForHugeTable(hashes, chunk);
    const D64 d;
    const V64 windows = hn::Set(d, view_.windows);
    const V64 salt = hn::Set(d, view_.salt);
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      V64 tag, bucket, partner;
      PlacesOf<Slots::kTagBits, false>(hn::Xor(hn::LoadU(d, hashes + i), salt), windows, tag,
                                       bucket, partner);
      hn::Store(OffsetOf(bucket), d, chunk.first_offsets + i);
      hn::Store(OffsetOf(partner), d, chunk.second_offsets + i);
      hn::Store(tag, d, chunk.tags + i);
      if constexpr (kHalfBytes) {
        hn::Store(hn::ShiftLeft<63>(bucket), d, chunk.first_halves + i);
        hn::Store(hn::ShiftLeft<63>(partner), d, chunk.second_halves + i);
      }
    }
  }

  // A window may end in the next line; so may the words that are read, which does not matter unless
  // the window does.
  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const {
    hwy::Prefetch(view_.table + chunk.first_offsets[i]);
    hwy::Prefetch(view_.table + chunk.first_offsets[i] + 7);
    hwy::Prefetch(view_.table + chunk.second_offsets[i]);
    hwy::Prefetch(view_.table + chunk.second_offsets[i] + 7);
  }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    const D64 d;
    const V64 highest = hn::Set(d, Slots::kHighestBits);
    const V64 other = hn::Set(d, Slots::kOtherBits);
    const V64 second_half = hn::Set(d, Slots::kSecondHalf);
    uint64_t answers = 0;
    for (size_t j = 0; j < kGroup; j += hn::Lanes(d)) {
      const V64 twice = hn::ShiftLeft<1>(hn::Load(d, chunk.tags + i + j));
      const V64 pattern = hn::Or(hn::Or(twice, hn::ShiftLeft<kBits>(twice)), second_half);
      V64 first = LoadWords(view_.table, chunk.first_offsets + i + j);
      V64 second = LoadWords(view_.table, chunk.second_offsets + i + j);
      if constexpr (kHalfBytes) {
        first = FromHalfByte(first, hn::Load(d, chunk.first_halves + i + j));
        second = FromHalfByte(second, hn::Load(d, chunk.second_halves + i + j));
      }
      first = hn::Xor(first, pattern);
      second = hn::Xor(second, pattern);
      const V64 in_first = hn::Or(hn::Add(hn::And(first, other), other), first);
      const V64 in_second = hn::Or(hn::Add(hn::And(second, other), other), second);
      const V64 missing = hn::And(hn::And(in_first, in_second), highest);
      answers |= MaskToBits(d, hn::Ne(missing, highest)) << j;
    }
    return answers;
  }

 private:
  static HWY_INLINE V64 OffsetOf(V64 window) {
    if constexpr (kBits == 8) return window;
    if constexpr (kBits == 12) return hn::Add(window, hn::ShiftRight<1>(window));
    return hn::Add(window, window);
  }
  // `word` without its lowest four bits where the highest bit of `half` is set.
  static HWY_INLINE V64 FromHalfByte(V64 word, V64 half) {
    const D64 d;
    const hn::RebindToSigned<D64> di;
    return hn::BitCast(
        d, IfNegative(di, hn::BitCast(di, half), hn::BitCast(di, hn::ShiftRight<4>(word)),
                      hn::BitCast(di, word)));
  }

  HWY_NOINLINE void PrepareForHugeTable(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    for (size_t i = 0; i < kChunkKeys; ++i) {
      const CuckooPlace place = view_.PlaceOf(hashes[i]);
      chunk.first_offsets[i] = Slots::ByteOf(place.bucket);
      chunk.second_offsets[i] = Slots::ByteOf(place.partner);
      chunk.tags[i] = place.tag;
      if constexpr (kHalfBytes) {
        chunk.first_halves[i] = place.bucket << 63;
        chunk.second_halves[i] = place.partner << 63;
      }
    }
  }

  const View view_;
};

Kernel<WindowedCuckoo::View> WindowedKernel() {
  return ChunkedLoops<WindowedCuckoo::View, WindowLookup>::Make();
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(WindowedKernel);

template <>
std::span<const Kernel<WindowedCuckoo::View>> WindowedCuckoo::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(WindowedKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
