// Lookups of BlockedBloom in vectors: all probes of a key at once. The multipliers of up to 16
// probes fill one or more vectors of 32-bit lanes; a lane computes its position in the block, takes
// the 32-bit word there and tests its bit.

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

  // Vectors that the probes of a key fill.
  static size_t StepsFor(uint32_t k) { return (k + hn::Lanes(D()) - 1) / hn::Lanes(D()); }

  // Whether all of the key's bits are set in its block; a constant `steps` unrolls the loop.
  HWY_INLINE bool AllSet(const uint32_t* HWY_RESTRICT block, uint32_t hash, size_t steps) const {
    const D d;
    const hn::Rebind<int32_t, D> di;
    const size_t lanes = hn::Lanes(d);
    V missing = hn::Zero(d);
    for (size_t i = 0; i < steps * lanes; i += lanes) {
      const V product = hn::Mul(hn::Set(d, hash), hn::Load(d, multipliers_ + i));
      const V positions = hn::ShiftRight<23>(product);
      const V bits = hn::Shl(hn::Load(d, bits_ + i), hn::And(positions, hn::Set(d, 31)));
      const V indices = hn::ShiftRight<5>(positions);
#if HWY_TARGET <= HWY_AVX3  // 16 lanes: the block is one register
      const V words = hn::TableLookupLanes(hn::Load(d, block), hn::IndicesFromVec(d, indices));
      (void)di;
#elif HWY_TARGET == HWY_AVX2  // two registers of 8 words
      const V low_words = hn::Load(d, block);
      const V high_words = hn::Load(d, block + 8);
      const auto in_half = hn::IndicesFromVec(d, hn::And(indices, hn::Set(d, 7)));
      // The top bit of the position, which is that of the product, says which one.
      const V words = hn::BitCast(
          d, hn::IfNegativeThenElse(hn::BitCast(di, product),
                                    hn::BitCast(di, hn::TableLookupLanes(high_words, in_half)),
                                    hn::BitCast(di, hn::TableLookupLanes(low_words, in_half))));
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

// Two phases, a word of 64 answers apart: the lines of the next word are under way while those of
// this one are tested.
class BlockedLookups {
 public:
  static uint64_t Count(const BlockedBloom::View& view, const uint64_t* HWY_RESTRICT hashes,
                        size_t n) {
    uint64_t count = 0;
    ForEachWord(view, hashes, n, [&](size_t, uint64_t word) { count += hwy::PopCount(word); });
    return count;
  }

  static void Bits(const BlockedBloom::View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                   uint64_t* HWY_RESTRICT bits) {
    ForEachWord(view, hashes, n, [&](size_t index, uint64_t word) { bits[index] = word; });
  }

 private:
  static constexpr size_t kBatch = 64;
  using Blocks = const uint32_t* [kBatch];

  static HWY_INLINE void Locate(const BlockedBloom::View& view,
                                const uint64_t* HWY_RESTRICT hashes, size_t n, Blocks& blocks) {
    for (size_t i = 0; i < n; ++i) blocks[i] = view.Block(hashes[i]);
    if (!view.prefetch) return;
    for (size_t i = 0; i < n; ++i) hwy::Prefetch(blocks[i]);
  }

  static HWY_INLINE uint64_t Test(const BlockedProbes& probes, const Blocks& blocks,
                                  const uint64_t* HWY_RESTRICT hashes, size_t n, size_t steps) {
    uint64_t word = 0;
    for (size_t i = 0; i < n; ++i) {
      word |= uint64_t{probes.AllSet(blocks[i], static_cast<uint32_t>(hashes[i]), steps)} << i;
    }
    return word;
  }

  template <class Use>
  static HWY_INLINE void ForEachWord(const BlockedBloom::View& view,
                                     const uint64_t* HWY_RESTRICT hashes, size_t n, Use use) {
    const BlockedProbes probes(view.k);
    const size_t steps = BlockedProbes::StepsFor(view.k);
    Blocks blocks[2];
    Locate(view, hashes, std::min(kBatch, n), blocks[0]);
    for (size_t i = 0, index = 0; i < n; i += kBatch, ++index) {
      const size_t next = i + kBatch;
      if (next < n) Locate(view, hashes + next, std::min(kBatch, n - next), blocks[(index + 1) % 2]);
      const Blocks& now = blocks[index % 2];
      const size_t in_word = std::min(kBatch, n - i);
      use(index, steps == 1 ? Test(probes, now, hashes + i, in_word, 1)
                            : Test(probes, now, hashes + i, in_word, steps));
    }
  }
};

Kernel<BlockedBloom::View> BlockedBloomKernel() {
  return MakeKernel<BlockedBloom::View>(&BlockedLookups::Count, &BlockedLookups::Bits);
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
