// Lookups of PrefixFilter in vectors: bins and fingerprints of several keys are computed at once,
// then the remainder of a key is compared with its whole bin, and the fingerprint with the greatest
// one there. One absent key in ten meets an equal remainder and about one in twelve is passed on to
// the spare; both are looked at again, without a branch for each of the others.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/quotient/prefix_filter_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/quotient/mini_filter-inl.h"
#include "filters/quotient/prefix_filter.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <class View>
class PrefixFilterLookup {
 public:
  static constexpr size_t kGroup = 16;
  struct Chunk {
    HWY_ALIGN uint64_t offsets[kChunkKeys];  // of the bins
    HWY_ALIGN uint64_t fingerprints[kChunkKeys];
  };

  explicit PrefixFilterLookup(const View& view) : view_(view) {}

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    const hn::CappedTag<uint64_t, 8> d;
    const auto salt = hn::Set(d, view_.salt);
    const auto gamma = hn::Set(d, kGoldenGamma);
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      const auto mixed = hn::Mul(hn::Xor(hn::LoadU(d, hashes + i), salt), gamma);
      hn::Store(hn::ShiftLeft<5>(FastRange64<true>(d, mixed, view_.bins)), d, chunk.offsets + i);
      hn::Store(hn::ShiftRight<32>(MulLow32(d, mixed, hn::Set(d, PrefixBin::kFingerprints))), d,
                chunk.fingerprints + i);
    }
  }
  static_assert(PrefixBin::kBytes == 1 << 5);

  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const {
    hwy::Prefetch(view_.table + chunk.offsets[i]);
  }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    uint32_t candidates[kGroup + 1];
    uint64_t candidate_slots[kGroup + 1];
    size_t count = 0;
    uint32_t forwarded_keys[kGroup + 1];
    size_t forwarded_count = 0;
    for (uint32_t j = 0; j < kGroup; ++j) {
      const std::byte* bin = view_.table + chunk.offsets[i + j];
      const uint64_t fingerprint = chunk.fingerprints[i + j];
      const uint64_t slots = SlotsWithRemainder(bin, fingerprint);
      const bool forwarded = fingerprint > PrefixBin::Greatest(bin, PrefixBin::Load(bin));
      candidates[count] = j;
      candidate_slots[count] = slots;
      // What is passed on has no slot in its bucket: it is greater than all fingerprints here.
      count += slots != 0 ? 1 : 0;
      forwarded_keys[forwarded_count] = j;
      forwarded_count += forwarded ? 1 : 0;
    }
    MiniFilterPlace places[kGroup];
    for (size_t f = 0; f < forwarded_count; ++f) {
      const size_t key = i + forwarded_keys[f];
      places[f] = view_.spare.PlaceOf(PrefixFilter::SpareHash(
          {chunk.offsets[key] / PrefixBin::kBytes, chunk.fingerprints[key]}));
      if (view_.prefetch) {
        hwy::Prefetch(view_.spare.table + places[f].block * SpareBlock::kBytes);
        hwy::Prefetch(view_.spare.table + places[f].partner * SpareBlock::kBytes);
      }
    }
    uint64_t answers = 0;
    for (size_t c = 0; c < count; ++c) {
      const uint32_t j = candidates[c];
      const uint64_t header = PrefixBin::Load(view_.table + chunk.offsets[i + j]);
      const int quotient = PrefixBin::Quotient(chunk.fingerprints[i + j]);
      answers |= uint64_t{HasSlotOfBucket(header, candidate_slots[c], quotient)} << j;
    }
    for (size_t f = 0; f < forwarded_count; ++f) {
      answers |= uint64_t{SpareContains(places[f])} << forwarded_keys[f];
    }
    return answers;
  }

  HWY_INLINE bool MayContain(uint64_t hash) const {
    const PrefixFilter::Place place = view_.PlaceOf(hash);
    const std::byte* bin = view_.table + place.bin * PrefixBin::kBytes;
    const uint64_t header = PrefixBin::Load(bin);
    const uint64_t slots = SlotsWithRemainder(bin, place.fingerprint);
    if (place.fingerprint > PrefixBin::Greatest(bin, header)) {
      return SpareContains(view_.spare.PlaceOf(PrefixFilter::SpareHash(place)));
    }
    return slots != 0 &&
           HasSlotOfBucket(header, slots, PrefixBin::Quotient(place.fingerprint));
  }

 private:
  using SpareBlock = PrefixFilter::Spare::Block;

  // Bit i: slot i of the bin holds this remainder, or is free and the remainder is 0. Positions of
  // slots in the unary part of the header end before `code`.
  static HWY_INLINE uint64_t SlotsWithRemainder(const std::byte* HWY_RESTRICT bin,
                                                uint64_t fingerprint) {
    return EqualLanes<PrefixBin::kBytes>(bin, static_cast<uint8_t>(fingerprint)) >>
           PrefixBin::kHeaderBytes;
  }

  HWY_INLINE bool SpareContains(const MiniFilterPlace& place) const {
    constexpr int kBits = PrefixFilter::kSpareRemainderBits;
    const int bucket = SpareBlock::Bucket(place.tag);
    for (const uint64_t block : {place.block, place.partner}) {
      const std::byte* at = view_.spare.table + block * SpareBlock::kBytes;
      const uint64_t slots = filterbench::HWY_NAMESPACE::SlotsWithRemainder<kBits>(at, place.tag);
      if (slots != 0 && HasSlotOfBucket<kBits>(at, slots, bucket)) return true;
    }
    return false;
  }

  const View view_;
};

Kernel<PrefixFilter::View> PrefixFilterKernel() {
  auto kernel = ChunkedLoops<PrefixFilter::View, PrefixFilterLookup>::Make();
  UseForSingleKeys<PrefixFilterLookup>(kernel);
  return kernel;
}

#else

// Comparing byte by byte loses to looking at the one quotient.
Kernel<PrefixFilter::View> PrefixFilterKernel() {
  return ReferenceKernel<PrefixFilter::View>(TargetName(HWY_TARGET));
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(PrefixFilterKernel);

std::span<const Kernel<PrefixFilter::View>> PrefixFilter::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(PrefixFilterKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
