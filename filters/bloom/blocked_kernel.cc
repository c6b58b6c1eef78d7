// Lookups of BlockedBloom in vectors: all probes of a key at once. The multipliers of up to 16
// probes fill one or more vectors of 32-bit lanes; a lane computes its position in the block, takes
// the 32-bit word there and tests its bit. The lines of a sub-batch are prefetched first.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/blocked_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/blocked.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

// One probe per lane; lanes beyond k test nothing.
class BlockedProbes {
  using D = hn::CappedTag<uint32_t, BlockedBloom::kWordsPerBlock>;
  using V = hn::Vec<D>;
  static constexpr size_t kMaxProbes = 16;

 public:
  explicit BlockedProbes(uint32_t k) {
    uint32_t multiplier = 1;
    for (size_t i = 0; i < kMaxProbes; ++i, multiplier *= BlockedBloom::kMultiplier) {
      multipliers_[i] = multiplier;
      bits_[i] = i < k ? 1 : 0;
    }
  }

  // Whether all of the key's bits are set in its block.
  HWY_INLINE bool AllSet(const uint32_t* HWY_RESTRICT block, uint32_t hash, uint32_t k) const {
    const D d;
    const hn::Rebind<int32_t, D> di;
    const size_t lanes = hn::Lanes(d);
    V missing = hn::Zero(d);
    for (size_t i = 0; i < k; i += lanes) {
      const V positions =
          hn::ShiftRight<23>(hn::Mul(hn::Set(d, hash), hn::Load(d, multipliers_ + i)));
      const V bits = hn::Shl(hn::Load(d, bits_ + i), hn::And(positions, hn::Set(d, 31)));
      const V indices = hn::ShiftRight<5>(positions);
#if HWY_TARGET <= HWY_AVX3  // 16 lanes: the block is one register
      const V words = hn::TableLookupLanes(hn::Load(d, block), hn::IndicesFromVec(d, indices));
      (void)di;
#elif HWY_TARGET == HWY_AVX2  // two registers of 8 words
      const V low_words = hn::Load(d, block);
      const V high_words = hn::Load(d, block + 8);
      const auto in_half = hn::IndicesFromVec(d, hn::And(indices, hn::Set(d, 7)));
      const V words = hn::IfThenElse(hn::RebindMask(d, hn::Gt(hn::BitCast(di, indices), hn::Set(di, 7))),
                                     hn::TableLookupLanes(high_words, in_half),
                                     hn::TableLookupLanes(low_words, in_half));
#else
      const V words = hn::GatherIndex(d, block, hn::BitCast(di, indices));
#endif
      missing = hn::Or(missing, hn::AndNot(words, bits));
    }
    return hn::AllTrue(d, hn::Eq(missing, hn::Zero(d)));
  }

 private:
  HWY_ALIGN uint32_t multipliers_[kMaxProbes];
  HWY_ALIGN uint32_t bits_[kMaxProbes];
};

struct BlockedAnswer {
  static constexpr size_t kSubBatch = 64;

  static void Words(const BlockedBloom::View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                    uint64_t* HWY_RESTRICT words) {
    const BlockedProbes probes(view.k);
    const uint32_t* blocks[kSubBatch];
    for (size_t i = 0; i < n; ++i) {
      blocks[i] = view.Block(hashes[i]);
      if (view.prefetch) hwy::Prefetch(blocks[i]);
    }
    uint64_t word = 0;
    for (size_t i = 0; i < n; ++i) {
      word |= uint64_t{probes.AllSet(blocks[i], static_cast<uint32_t>(hashes[i]), view.k)} << i;
    }
    words[0] = word;
  }
};

Kernel<BlockedBloom::View> BlockedBloomKernel() {
  return BatchedLoops<BlockedBloom::View, BlockedAnswer>::Make();
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(BlockedBloomKernel);

std::span<const Kernel<BlockedBloom::View>> BlockedBloom::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(BlockedBloomKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
