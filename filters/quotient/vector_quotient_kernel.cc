// Lookups of VectorQuotient in vectors: blocks and tags of several keys are computed at once, then the
// remainder of a key is compared with all of its two blocks. Three of ten absent keys meet an equal
// remainder (8 bits); those are looked at again, without a branch for each of the others. On Zen 3
// with AVX2 ...

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
    HWY_ALIGN uint64_t first_offsets[kChunkKeys];
    HWY_ALIGN uint64_t second_offsets[kChunkKeys];
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
      hn::Store(hn::ShiftLeft<6>(block), d, chunk.first_offsets + i);
      hn::Store(hn::ShiftLeft<6>(partner), d, chunk.second_offsets + i);
      hn::Store(tag, d, chunk.tags + i);
    }
  }
  static_assert(Block::kBytes == 1 << 6);

  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const {
    hwy::Prefetch(view_.table + chunk.first_offsets[i]);
    hwy::Prefetch(view_.table + chunk.second_offsets[i]);
  }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    struct Candidate {
      uint64_t matches;
      const std::byte* block;
      uint64_t key;
    };
    Candidate candidates[2 * kGroup + 1];
    size_t count = 0;
    for (size_t j = 0; j < kGroup; ++j) {
      for (const uint64_t offset : {chunk.first_offsets[i + j], chunk.second_offsets[i + j]}) {
        const std::byte* block = view_.table + offset;
        const uint64_t matches = SlotsWithRemainder<kBits>(block, chunk.tags[i + j]);
        candidates[count] = {matches, block, j};
        count += matches != 0 ? 1 : 0;
      }
    }
    uint64_t answers = 0;
    for (size_t c = 0; c < count; ++c) {
      const Candidate& candidate = candidates[c];
      const bool found = HasSlotOfBucket<kBits>(candidate.block, candidate.matches,
                                                Block::Bucket(chunk.tags[i + candidate.key]));
      answers |= uint64_t{found} << candidate.key;
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
