// Lookups of CountingBlocked in vectors: all probes of a key at once, as those of BlockedBloom; a
// counter that is not 0 becomes a bit on the way.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/counting_blocked_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/counting_blocked.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "filters/simd/missing-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <class View>
class CountingBlockedLookup {
  static constexpr size_t kWordsPerBlock = CountingBlocked::kBlockBytes / 4;
  using D = hn::CappedTag<uint32_t, kWordsPerBlock>;
  using D64 = hn::CappedTag<uint64_t, 8>;
  using V = hn::Vec<D>;
  static constexpr size_t kMaxProbes = 16;
  static constexpr size_t kMinLanes = HWY_HAVE_SCALABLE ? 4 : hn::MaxLanes(D());
  static constexpr size_t kMaxVectors = kMaxProbes / kMinLanes;

 public:
  static constexpr size_t kGroup = 8;
  struct Chunk {
    const uint64_t* hashes;
    HWY_ALIGN uint64_t offsets[kChunkKeys];  // of the block, in bytes
  };

  explicit CountingBlockedLookup(const View& view) : view_(view) {
    uint32_t multiplier = 1;
    for (size_t i = 0; i < kMaxProbes; ++i, multiplier *= CountingBlocked::kMultiplier) {
      multipliers_[i] = multiplier;
      bits_[i] = i < view.k ? 1 : 0;
    }
  }

  HWY_INLINE bool MayContain(uint64_t hash) const {
    const D d;
    const auto* block = reinterpret_cast<const uint32_t*>(view_.words + view_.WordOf(hash));
    V missing = Missing(block, static_cast<uint32_t>(hash), 0);
    for (size_t v = 1; v < kMaxVectors && v * hn::Lanes(d) < view_.k; ++v) {
      missing = hn::Or(missing, Missing(block, static_cast<uint32_t>(hash), v * hn::Lanes(d)));
    }
    return NothingMissing(d, missing);
  }

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    static_assert(CountingBlocked::kMaxBlocks < uint64_t{1} << 32);
    static_assert(CountingBlocked::kBlockBytes == 1 << 6);
    const D64 d;
    chunk.hashes = hashes;
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      const auto block = FastRange64<true>(d, hn::LoadU(d, hashes + i), view_.blocks);
      hn::Store(hn::ShiftLeft<6>(block), d, chunk.offsets + i);
    }
  }

  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const { hwy::Prefetch(Block(chunk, i)); }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    const size_t lanes = hn::Lanes(D());
    if (view_.k <= lanes) return TestVectors<1>(chunk, i);
    if constexpr (kMaxVectors == 4) {
      return view_.k <= 2 * lanes ? TestVectors<2>(chunk, i) : TestVectors<4>(chunk, i);
    }
    return TestVectors<kMaxVectors>(chunk, i);
  }

 private:
  HWY_INLINE const uint32_t* Block(const Chunk& chunk, size_t i) const {
    return reinterpret_cast<const uint32_t*>(reinterpret_cast<const std::byte*>(view_.words) +
                                             chunk.offsets[i]);
  }

  template <size_t kVectors>
  HWY_INLINE uint64_t TestVectors(const Chunk& chunk, size_t i) const {
    return NothingMissingOf8(D(), [&](size_t j) FILTERBENCH_INLINE_LAMBDA {
      const auto hash = static_cast<uint32_t>(chunk.hashes[i + j]);
      V missing = Missing(Block(chunk, i + j), hash, 0);
      for (size_t v = 1; v < kVectors; ++v) {
        missing = hn::Or(missing, Missing(Block(chunk, i + j), hash, v * hn::Lanes(D())));
      }
      return missing;
    });
  }

  // A bit for each counter that is 0, of probes `first` and on, one per lane; lanes beyond k miss
  // nothing. In little-endian order a counter is the same four bits of a word of 32 as of one
  // of 64.
  HWY_INLINE V Missing(const uint32_t* HWY_RESTRICT block, uint32_t hash, size_t first) const {
    const D d;
    const V product = hn::Mul(hn::Set(d, hash), hn::Load(d, multipliers_ + first));
    // Four times the number of the counter in its word: bits 25 to 27 of the product.
    const V shift = hn::And(hn::ShiftRight<23>(product), hn::Set(d, 28));
    const V lowest_bits = hn::Shl(hn::Load(d, bits_ + first), shift);
    const V indices = hn::ShiftRight<28>(product);
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86  // 16 lanes: the block is one register
    V words = hn::TableLookupLanes(hn::Load(d, block), hn::IndicesFromVec(d, indices));
#elif HWY_TARGET == HWY_AVX2
    // Two registers of 8 words; the highest bit of the product says which of the two.
    const auto low = _mm256_permutevar8x32_epi32(hn::Load(d, block).raw, indices.raw);
    const auto high = _mm256_permutevar8x32_epi32(hn::Load(d, block + 8).raw, indices.raw);
    V words{_mm256_castps_si256(_mm256_blendv_ps(
        _mm256_castsi256_ps(low), _mm256_castsi256_ps(high), _mm256_castsi256_ps(product.raw)))};
#else
    const hn::Rebind<int32_t, D> di;
    V words = hn::GatherIndex(d, block, hn::BitCast(di, indices));
#endif
    // The lowest bit of each counter becomes the OR of its four; what the others become is not
    // looked at.
    words = hn::Or(words, hn::ShiftRight<2>(words));
    words = hn::Or(words, hn::ShiftRight<1>(words));
    return hn::AndNot(words, lowest_bits);
  }

  const View view_;
  HWY_ALIGN uint32_t multipliers_[kMaxProbes];
  HWY_ALIGN uint32_t bits_[kMaxProbes];
};

Kernel<CountingBlocked::View> CountingBlockedKernel() {
  Kernel<CountingBlocked::View> kernel =
      ChunkedLoops<CountingBlocked::View, CountingBlockedLookup>::Make();
  UseForSingleKeys<CountingBlockedLookup>(kernel);
  return kernel;
}

#else  // HWY_SCALAR: one lane has no probes to share

Kernel<CountingBlocked::View> CountingBlockedKernel() {
  return ReferenceKernel<CountingBlocked::View>(TargetName(HWY_TARGET));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(CountingBlockedKernel);

std::span<const Kernel<CountingBlocked::View>> CountingBlocked::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(CountingBlockedKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
