// Lookups of TwoChoiceBlocked in vectors: all probes of a key at once, in both of its blocks.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/two_choice_blocked_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/line_lookup-inl.h"
#include "filters/bloom/two_choice_blocked.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <class View>
class TwoChoiceLookup {
  using D64 = hn::CappedTag<uint64_t, 8>;
  using Vectors = LineProbeVectors<TwoChoiceBlocked::kMaxProbes>;
  using D = typename Vectors::D;
  using V = typename Vectors::V;

 public:
  static constexpr size_t kGroup = 8;
  struct Chunk {
    const uint64_t* hashes;
    HWY_ALIGN uint64_t first[kChunkKeys];  // offsets of the blocks, in bytes
    HWY_ALIGN uint64_t second[kChunkKeys];
  };

  explicit TwoChoiceLookup(const View& view) : view_(view), vectors_(view.k) {}

  HWY_INLINE bool MayContain(uint64_t hash) const {
    const uint32_t* first = view_.Block(TwoChoiceBlocked::FirstBlock(hash, view_.blocks));
    const uint32_t* second = view_.Block(TwoChoiceBlocked::SecondBlock(hash, view_.blocks));
    const uint32_t probe_hash = TwoChoiceBlocked::ProbeHash(hash);
    V missing_first = vectors_.Missing(first, probe_hash, 0);
    V missing_second = vectors_.Missing(second, probe_hash, 0);
    const size_t vectors = vectors_.Vectors();
    for (size_t v = 1; v < Vectors::kMaxVectors && v < vectors; ++v) {
      missing_first = hn::Or(missing_first, vectors_.Missing(first, probe_hash, v));
      missing_second = hn::Or(missing_second, vectors_.Missing(second, probe_hash, v));
    }
    return NothingMissing(D(), missing_first) || NothingMissing(D(), missing_second);
  }

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    static_assert(TwoChoiceBlocked::kMaxBlocks < uint64_t{1} << 32);
    static_assert(kLineBits / 8 == 1 << 6);
    const D64 d;
    chunk.hashes = hashes;
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      const auto hash = hn::LoadU(d, hashes + i);
      const auto other = MulBy32(d, hash, TwoChoiceBlocked::kSecondMultiplier);
      hn::Store(hn::ShiftLeft<6>(FastRange64<true>(d, hash, view_.blocks)), d, chunk.first + i);
      hn::Store(hn::ShiftLeft<6>(FastRange64<true>(d, other, view_.blocks)), d, chunk.second + i);
    }
  }

  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const {
    hwy::Prefetch(At(chunk.first[i]));
    hwy::Prefetch(At(chunk.second[i]));
  }

  HWY_INLINE void Add(std::byte* HWY_RESTRICT table, const Chunk& chunk, size_t i) const {
    TwoChoiceBlocked::InsertIntoOneOf(table + chunk.first[i], table + chunk.second[i],
                                      TwoChoiceBlocked::ProbeHash(chunk.hashes[i]), view_.k);
  }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    return vectors_.WithVectors([&](auto vectors) FILTERBENCH_INLINE_LAMBDA {
      const auto in_block = [&](const uint64_t* offsets) FILTERBENCH_INLINE_LAMBDA {
        return NothingMissingOf8(D(), [&](size_t j) FILTERBENCH_INLINE_LAMBDA {
          const uint32_t hash = TwoChoiceBlocked::ProbeHash(chunk.hashes[i + j]);
          const uint32_t* block = At(offsets[i + j]);
          V missing = vectors_.Missing(block, hash, 0);
          for (size_t v = 1; v < vectors; ++v) {
            missing = hn::Or(missing, vectors_.Missing(block, hash, v));
          }
          return missing;
        });
      };
      return in_block(chunk.first) | in_block(chunk.second);
    });
  }

 private:
  HWY_INLINE const uint32_t* At(uint64_t offset) const {
    return reinterpret_cast<const uint32_t*>(reinterpret_cast<const std::byte*>(view_.words) +
                                             offset);
  }

  const View view_;
  const Vectors vectors_;
};

Kernel<TwoChoiceBlocked::View> TwoChoiceBlockedKernel() {
  return ChunkedLoops<TwoChoiceBlocked::View, TwoChoiceLookup>::MakeWithSingleAndInsert();
}

#else  // HWY_SCALAR: one lane has no probes to share

Kernel<TwoChoiceBlocked::View> TwoChoiceBlockedKernel() {
  return ReferenceKernel<TwoChoiceBlocked::View>(TargetName(HWY_TARGET));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(TwoChoiceBlockedKernel);

std::span<const Kernel<TwoChoiceBlocked::View>> TwoChoiceBlocked::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(TwoChoiceBlockedKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
