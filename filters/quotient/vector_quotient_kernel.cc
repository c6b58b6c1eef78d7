// Lookups of VectorQuotient in vectors: blocks and tags of several keys are computed at once, then
// the remainder of a key is compared with all of its two blocks. Three of ten absent keys meet an
// equal remainder (8 bits); those are looked at again, without a branch for each of the others. On
// Zen 3 with AVX2 batches take about a fifth of the time of the scalar reference in cache and in
// memory (a rough ratio, the machine was busy), since that computes a select for each block.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/quotient/vector_quotient_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/quotient/mini_filter-inl.h"
#include "filters/quotient/vector_quotient.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <class View>
class VectorQuotientLookup {
  static constexpr int kBits = View::kRemainderBits;
  using Block = MiniFilter<kBits>;

 public:
  static constexpr size_t kGroup = 16;
  struct Chunk {
    HWY_ALIGN uint64_t offsets[2][kChunkKeys];  // of the first block, of its partner
    HWY_ALIGN uint64_t tags[kChunkKeys];
  };

  explicit VectorQuotientLookup(const View& view) : view_(view) {}

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    const hn::CappedTag<uint64_t, 8> d;
    using V = hn::Vec<decltype(d)>;
    const V blocks = hn::Set(d, view_.blocks);
    const V salt = hn::Set(d, view_.salt);
    const V gamma = hn::Set(d, kGoldenGamma);
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      const V mixed = hn::Mul(hn::Xor(hn::LoadU(d, hashes + i), salt), gamma);
      const V tag = hn::ShiftRight<32>(MulLow32(d, mixed, hn::Set(d, Block::kTags)));
      const V block = FastRange64<true>(d, mixed, view_.blocks);
      const V pair = MulLow32(d, tag, hn::Set(d, kMiniFilterPairMultiplier));
      const V sum = hn::ShiftRight<32>(MulLow32(d, pair, blocks));
      // Both are below 2^32: the difference is negative where its highest bit is set.
      const hn::RebindToSigned<decltype(d)> di;
      const V difference = hn::Sub(sum, block);
      const V wrapped = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(di, difference)));
      const V partner = hn::Add(difference, hn::And(wrapped, blocks));
      hn::Store(hn::ShiftLeft<6>(block), d, chunk.offsets[0] + i);
      hn::Store(hn::ShiftLeft<6>(partner), d, chunk.offsets[1] + i);
      hn::Store(tag, d, chunk.tags + i);
    }
  }
  static_assert(Block::kBytes == 1 << 6);

  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const {
    hwy::Prefetch(view_.table + chunk.offsets[0][i]);
    hwy::Prefetch(view_.table + chunk.offsets[1][i]);
  }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    // Pairs of a key and one of its blocks, 2 j + block, where a remainder is equal.
    uint32_t candidates[2 * kGroup + 1];
    uint64_t slots[2 * kGroup + 1];
    size_t count = 0;
    for (uint32_t j = 0; j < kGroup; ++j) {
      const uint64_t tag = chunk.tags[i + j];
      const uint64_t in_first =
          SlotsWithRemainder<kBits>(view_.table + chunk.offsets[0][i + j], tag);
      const uint64_t in_second =
          SlotsWithRemainder<kBits>(view_.table + chunk.offsets[1][i + j], tag);
      candidates[count] = 2 * j;
      slots[count] = in_first;
      count += in_first != 0 ? 1 : 0;
      candidates[count] = 2 * j + 1;
      slots[count] = in_second;
      count += in_second != 0 ? 1 : 0;
    }
    uint64_t answers = 0;
    for (size_t c = 0; c < count; ++c) {
      const uint32_t j = candidates[c] / 2;
      const std::byte* block = view_.table + chunk.offsets[candidates[c] % 2][i + j];
      const int bucket = Block::Bucket(chunk.tags[i + j]);
      answers |= uint64_t{HasSlotOfBucket<kBits>(block, slots[c], bucket)} << j;
    }
    return answers;
  }

  HWY_INLINE bool MayContain(uint64_t hash) const {
    const MiniFilterPlace place = view_.PlaceOf(hash);
    const std::byte* first = view_.table + place.block * Block::kBytes;
    const std::byte* second = view_.table + place.partner * Block::kBytes;
    const int bucket = Block::Bucket(place.tag);
    const uint64_t in_first = SlotsWithRemainder<kBits>(first, place.tag);
    const uint64_t in_second = SlotsWithRemainder<kBits>(second, place.tag);
    return (in_first != 0 && HasSlotOfBucket<kBits>(first, in_first, bucket)) ||
           (in_second != 0 && HasSlotOfBucket<kBits>(second, in_second, bucket));
  }

 private:
  const View view_;
};

Kernel<VectorQuotient::View> VectorQuotientKernel() {
  auto kernel = ChunkedLoops<VectorQuotient::View, VectorQuotientLookup>::Make();
  UseForSingleKeys<VectorQuotientLookup>(kernel);
  return kernel;
}

#else

// Comparing byte by byte loses to looking at the one bucket.
Kernel<VectorQuotient::View> VectorQuotientKernel() {
  return ReferenceKernel<VectorQuotient::View>(TargetName(HWY_TARGET));
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(VectorQuotientKernel);

std::span<const Kernel<VectorQuotient::View>> VectorQuotient::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(VectorQuotientKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
