// Lookups of TaffyBlock in vectors: 64 keys at a time, level by level from the newest one; keys in
// groups of eight, a group only as long as one of its keys is open. The lines of the next level are
// asked for before this one is tested.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/taffy_block_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/taffy_block.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "filters/simd/missing-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <class View>
class TaffyLookup {
  using D = hn::CappedTag<uint32_t, kSplitWords>;
  using D64 = hn::CappedTag<uint64_t, 8>;
  using V = hn::Vec<D>;
  using Level = TaffyBlock::Level;
  static constexpr size_t kGroup = 8;
  struct Offsets {
    HWY_ALIGN uint64_t bytes[kChunkKeys];  // of the block of each key
  };

 public:
  explicit TaffyLookup(const View& view) : all_(view.all) {}

  HWY_INLINE bool MayContain(uint64_t hash) const {
    for (uint32_t l = all_->count; l-- > 0;) {
      const Level& level = all_->levels[l];
      const D d;
      const uint32_t* block = level.words + level.BlockOf(hash) * kSplitWords;
      if (NothingMissing(d, Missing(block, hash))) return true;
    }
    return false;
  }

  // The answers of n <= 64 keys.
  HWY_INLINE uint64_t Word(const uint64_t* HWY_RESTRICT hashes, size_t n) const {
    HWY_ALIGN uint64_t last_hashes[kChunkKeys] = {};
    if (n < kChunkKeys) {
      std::copy(hashes, hashes + n, last_hashes);
      hashes = last_hashes;
    }
    const uint64_t asked = ~uint64_t{0} >> (kChunkKeys - n);
    uint64_t answers = 0;
    Offsets offsets[2];
    Prepare(all_->levels[all_->count - 1], hashes, asked, offsets[(all_->count - 1) % 2]);
    for (uint32_t l = all_->count; l-- > 0 && answers != asked;) {
      const uint64_t open = asked & ~answers;
      if (l > 0) Prepare(all_->levels[l - 1], hashes, open, offsets[(l - 1) % 2]);
      const auto* table = reinterpret_cast<const std::byte*>(all_->levels[l].words);
      for (size_t i = 0; i < kChunkKeys; i += kGroup) {
        if ((open >> i & 0xff) == 0) continue;
        answers |= NothingMissingOf8(D(),
                                     [&](size_t j) FILTERBENCH_INLINE_LAMBDA {
                                       const std::byte* block = table + offsets[l % 2].bytes[i + j];
                                       return Missing(reinterpret_cast<const uint32_t*>(block),
                                                      hashes[i + j]);
                                     })
                   << i;
      }
      answers &= asked;
    }
    return answers;
  }

 private:
  static HWY_INLINE void Prepare(const Level& level, const uint64_t* HWY_RESTRICT hashes,
                                 uint64_t open, Offsets& offsets) {
    static_assert(TaffyBlock::kBlockBytes == 1 << 5);
    const D64 d;
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      const auto block = FastRange64<false>(d, hn::LoadU(d, hashes + i), level.blocks);
      hn::Store(hn::ShiftLeft<5>(block), d, offsets.bytes + i);
    }
    if (!level.prefetch) return;
    const auto* table = reinterpret_cast<const std::byte*>(level.words);
    for (; open != 0; open &= open - 1) {
      hwy::Prefetch(table + offsets.bytes[hwy::Num0BitsBelowLS1Bit_Nonzero64(open)]);
    }
  }

  // The bits of a key that are not set in a block.
  static HWY_INLINE V Missing(const uint32_t* HWY_RESTRICT block, uint64_t hash) {
    const D d;
    V missing = MissingFrom(block, hash, 0);
    for (size_t first = hn::Lanes(d); first < kSplitWords; first += hn::Lanes(d)) {
      missing = hn::Or(missing, MissingFrom(block, hash, first));
    }
    return missing;
  }
  static HWY_INLINE V MissingFrom(const uint32_t* HWY_RESTRICT block, uint64_t hash, size_t first) {
    const D d;
    const V products =
        hn::Mul(hn::Set(d, static_cast<uint32_t>(hash)), hn::LoadU(d, kSplitBlockSalts + first));
    return hn::AndNot(hn::Load(d, block + first),
                      hn::Shl(hn::Set(d, 1), hn::ShiftRight<27>(products)));
  }

  const TaffyBlock::Levels* const all_;
};

uint64_t TaffyBlockRun(const TaffyBlock::View& view, const uint64_t* hashes, size_t n,
                       uint64_t* bits) {
  const TaffyLookup<TaffyBlock::View> lookup(view);
  return LookUpByWords(hashes, n, bits,
                       [&](const uint64_t* first, size_t count)
                           FILTERBENCH_INLINE_LAMBDA { return lookup.Word(first, count); });
}

Kernel<TaffyBlock::View> TaffyBlockKernel() {
  Kernel<TaffyBlock::View> kernel = MakeKernel<TaffyBlock::View, &TaffyBlockRun>();
  UseForSingleKeys<TaffyLookup>(kernel);
  return kernel;
}

#else  // HWY_SCALAR: a vector holds no two words of a block

Kernel<TaffyBlock::View> TaffyBlockKernel() {
  return ReferenceKernel<TaffyBlock::View>(TargetName(HWY_TARGET));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(TaffyBlockKernel);

std::span<const Kernel<TaffyBlock::View>> TaffyBlock::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(TaffyBlockKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
