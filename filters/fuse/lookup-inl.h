// Lookups of fingerprints as sums of slots, compiled once per target: what the kernels of xor and
// binary fuse filters share.
//
// Hashes, slots and fingerprints are computed in vectors; the slots themselves are read one by one.
// Gathers are no faster, neither with AVX2 nor with AVX-512: each slot is a load of its own either
// way, and the vectors of 32-bit words that a gather returns hold one byte of use.

#if defined(FILTERBENCH_FILTERS_FUSE_LOOKUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_FUSE_LOOKUP_INL_H_
#undef FILTERBENCH_FILTERS_FUSE_LOOKUP_INL_H_
#else
#define FILTERBENCH_FILTERS_FUSE_LOOKUP_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "filters/fuse/positions.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR  // one lane gains nothing: the kernels take the reference

template <class View>
class FingerprintLookup {
  using Layout = typename View::Layout;
  using Fingerprint = typename View::Fingerprint;
  using D = hn::CappedTag<uint64_t, kChunkKeys>;
  using V = hn::Vec<D>;
  static constexpr int kArity = Layout::kArity;

 public:
  static constexpr size_t kGroup = 8;
  struct Chunk {
    HWY_ALIGN uint64_t slots[kArity][kChunkKeys];
    HWY_ALIGN uint64_t fingerprints[kChunkKeys];  // in the low bits
  };

  explicit FingerprintLookup(const View& view) : view_(view) {}

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    if (HWY_LIKELY(view_.layout.FirstSlots() >> 32 == 0)) {
      PrepareAs<true>(hashes, chunk);
    } else {
      PrepareAs<false>(hashes, chunk);
    }
  }

  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const {
    for (int slot = 0; slot < kArity; ++slot) {
      hwy::Prefetch(view_.table + chunk.slots[slot][i]);
    }
  }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    uint64_t answers = 0;
    // The last key first: each answer moves those before it up by one bit.
    for (size_t j = i + kGroup; j-- > i;) {
      auto sum = static_cast<Fingerprint>(chunk.fingerprints[j]);
      for (int slot = 0; slot < kArity; ++slot) sum ^= view_.table[chunk.slots[slot][j]];
      answers = answers + answers + (sum == 0 ? 1 : 0);
    }
    return answers;
  }

 private:
  static HWY_INLINE V SwapHalves(V x) {
    const hn::RepartitionToNarrow<D> d32;
    return hn::BitCast(D(), hn::Shuffle2301(hn::BitCast(d32, x)));
  }

  // FuseHash and the layout's SlotsOf, of vectors of keys; kNarrow: fewer than 2^32 first slots.
  template <bool kNarrow>
  HWY_INLINE void PrepareAs(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    const D d;
    const V salt = hn::Set(d, view_.salt);
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      const V salted = hn::Xor(hn::LoadU(d, hashes + i), salt);
      const V mixed =
          hn::Mul(hn::Xor(salted, hn::ShiftRight<FuseHash::kSaltedShift>(salted)),
                  hn::Set(d, FuseHash::kMixMultiplier));
      // Fold(mixed) * kSpreadMultiplier from the halves of the factor, the upper one still that of
      // `mixed`.
      static_assert(FuseHash::kSpreadMultiplier >> 32 == 0);
      const V multiplier = hn::Set(d, FuseHash::kSpreadMultiplier);
      const V upper = hn::ShiftRight<32>(mixed);
      const V product =
          hn::Add(MulLow32(d, hn::Xor(mixed, upper), multiplier),
                  hn::ShiftLeft<32>(MulLow32(d, upper, multiplier)));
      const V first = Fold(product);
      const V second = hn::Xor(SwapHalves(first), mixed);
      hn::Store(hn::Xor(first, second), d, chunk.fingerprints + i);
      StoreSlots<kNarrow>(view_.layout, mixed, first, second, chunk, i);
    }
  }

  template <bool kNarrow>
  static HWY_INLINE void StoreSlots(const XorLayout& layout, V mixed, V first, V second,
                                    Chunk& chunk, size_t i) {
    const D d;
    const uint64_t block_slots = layout.block_slots;
    const V third = hn::Or(hn::ShiftLeft<32>(second), hn::And(mixed, hn::Set(d, 0xffffffff)));
    hn::Store(FastRange64<kNarrow>(d, first, block_slots), d, chunk.slots[0] + i);
    hn::Store(hn::Add(FastRange64<kNarrow>(d, second, block_slots), hn::Set(d, block_slots)), d,
              chunk.slots[1] + i);
    hn::Store(hn::Add(FastRange64<kNarrow>(d, third, block_slots), hn::Set(d, 2 * block_slots)), d,
              chunk.slots[2] + i);
  }

  template <bool kNarrow>
  static HWY_INLINE void StoreSlots(const FuseLayout<kArity>& layout, V /*mixed*/, V first,
                                    V second, Chunk& chunk, size_t i) {
    using L = FuseLayout<kArity>;
    const D d;
    const V segment_slots = hn::Set(d, layout.segment_slots);
    const V in_segment = hn::Set(d, layout.segment_slots - 1);
    V start = FastRange64<kNarrow>(d, first, layout.first_slots);
    hn::Store(start, d, chunk.slots[0] + i);
    const auto store = [&](int slot, V displacement) HWY_ATTR {
      start = hn::Add(start, segment_slots);
      hn::Store(hn::Xor(start, hn::And(displacement, in_segment)), d, chunk.slots[slot] + i);
    };
    store(1, hn::ShiftRight<L::DisplacementShift(1)>(second));
    store(2, hn::ShiftRight<L::DisplacementShift(2)>(second));
    if constexpr (kArity == 4) store(3, hn::ShiftRight<L::DisplacementShift(3)>(second));
  }

  View view_;
};

template <>
class FingerprintLookup<NoFingerprints> {
 public:
  static constexpr size_t kGroup = kChunkKeys;
  struct Chunk {};

  explicit FingerprintLookup(const NoFingerprints&) {}
  HWY_INLINE void Prepare(const uint64_t*, Chunk&) const {}
  HWY_INLINE void Prefetch(const Chunk&, size_t) const {}
  HWY_INLINE uint64_t Test(const Chunk&, size_t) const { return 0; }
};

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
