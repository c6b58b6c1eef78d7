// Probes anywhere in a block of 512 bits, all of a key at once, compiled once per target: the
// multipliers of the probes fill one or more vectors of 32-bit lanes; a lane computes its position
// in the block, takes the 32-bit word there and tests its bit.

#if defined(FILTERBENCH_FILTERS_BLOOM_LINE_LOOKUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_BLOOM_LINE_LOOKUP_INL_H_
#undef FILTERBENCH_FILTERS_BLOOM_LINE_LOOKUP_INL_H_
#else
#define FILTERBENCH_FILTERS_BLOOM_LINE_LOOKUP_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "filters/bloom/line_probes.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "filters/simd/missing-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <size_t kMaxProbes>
class LineProbeVectors {
 public:
  using D = hn::CappedTag<uint32_t, kLineWords>;
  using V = hn::Vec<D>;
  static constexpr size_t kMinLanes = HWY_HAVE_SCALABLE ? 4 : hn::MaxLanes(D());
  static constexpr size_t kMaxVectors = (kMaxProbes + kMinLanes - 1) / kMinLanes;

  explicit LineProbeVectors(uint32_t k) : k_(k) {
    uint32_t multiplier = 1;
    for (size_t i = 0; i < kLanesOfProbes; ++i, multiplier *= kLineProbeMultiplier) {
      multipliers_[i] = multiplier;
      bits_[i] = i < k ? 1 : 0;
    }
  }

  // Vectors that k probes fill.
  HWY_INLINE size_t Vectors() const { return (k_ + hn::Lanes(D()) - 1) / hn::Lanes(D()); }

  // The v-th vector of a key's probes: the position in the block is the top 9 bits.
  HWY_INLINE V Products(uint32_t hash, size_t v) const {
    const D d;
    return hn::Mul(hn::Set(d, hash), hn::Load(d, multipliers_ + v * hn::Lanes(d)));
  }

  // The bits of the v-th vector of probes that the block lacks, one per lane; lanes beyond k have
  // no bit.
  HWY_INLINE V Missing(const uint32_t* HWY_RESTRICT block, V products, size_t v) const {
    const D d;
    const V indices = hn::ShiftRight<28>(products);
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86  // 16 lanes: the block is one register
    const V words = hn::TableLookupLanes(hn::Load(d, block), hn::IndicesFromVec(d, indices));
#elif HWY_TARGET == HWY_AVX2
    // Two registers of 8 words: the instruction takes the lower 3 bits of an index, the fourth,
    // which is the highest bit of the product, says which of the two.
    const auto low = _mm256_permutevar8x32_epi32(hn::Load(d, block).raw, indices.raw);
    const auto high = _mm256_permutevar8x32_epi32(hn::Load(d, block + 8).raw, indices.raw);
    const V words{_mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(low),
                                                       _mm256_castsi256_ps(high),
                                                       _mm256_castsi256_ps(products.raw)))};
#else
    const hn::Rebind<int32_t, D> di;
    const V words = hn::GatherIndex(d, block, hn::BitCast(di, indices));
#endif
    const V in_word = hn::And(hn::ShiftRight<23>(products), hn::Set(d, 31));
    return hn::AndNot(words, hn::Shl(hn::Load(d, bits_ + v * hn::Lanes(d)), in_word));
  }
  HWY_INLINE V Missing(const uint32_t* HWY_RESTRICT block, uint32_t hash, size_t v) const {
    return Missing(block, Products(hash, v), v);
  }

  // Calls `use` with the number of vectors, where that is one or two as a constant: the usual k
  // take no loop.
  template <class Use>
  HWY_INLINE uint64_t WithVectors(const Use& use) const {
    return CallUpTo<1>(use);
  }

 private:
  static constexpr size_t kLanesOfProbes = (kMaxProbes + 15) / 16 * 16;  // whole vectors

  template <size_t kVectors, class Use>
  HWY_INLINE uint64_t CallUpTo(const Use& use) const {
    if constexpr (kVectors >= kMaxVectors) {
      return use(std::integral_constant<size_t, kMaxVectors>());
    } else {
      if (k_ <= kVectors * hn::Lanes(D())) return use(std::integral_constant<size_t, kVectors>());
      return CallUpTo<2 * kVectors>(use);
    }
  }

  uint32_t k_;
  HWY_ALIGN uint32_t multipliers_[kLanesOfProbes];
  HWY_ALIGN uint32_t bits_[kLanesOfProbes];
};

// Lookups of a filter whose keys lie in one line each. The View has, beyond what a BlockFilter
// needs,
//   words, k, kMaxProbes
//   ProbeHash(hash)        what the probes are multiples of
//   kLineByLowHalf         the line is chosen by 32 bits, the low half of the hash, not by all bits
template <class View>
class LineLookup {
  using D64 = hn::CappedTag<uint64_t, 8>;
  using Vectors = LineProbeVectors<View::kMaxProbes>;
  using D = typename Vectors::D;
  using V = typename Vectors::V;

 public:
  static constexpr size_t kGroup = 8;
  struct Chunk {
    const uint64_t* hashes;
    HWY_ALIGN uint64_t offsets[kChunkKeys];  // of the block, in bytes
  };

  explicit LineLookup(const View& view) : view_(view), vectors_(view.k) {}

  HWY_INLINE bool MayContain(uint64_t hash) const {
    const uint32_t* block = view_.words + view_.BlockOf(hash) * kLineWords;
    const uint32_t probe_hash = View::ProbeHash(hash);
    V missing = vectors_.Missing(block, probe_hash, 0);
    const size_t vectors = vectors_.Vectors();
    for (size_t v = 1; v < Vectors::kMaxVectors && v < vectors; ++v) {
      missing = hn::Or(missing, vectors_.Missing(block, probe_hash, v));
    }
    return NothingMissing(D(), missing);
  }

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    static_assert(kLineBits / 8 == 1 << 6);
    const D64 d;
    chunk.hashes = hashes;
    const auto blocks = hn::Set(d, view_.blocks);
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      const auto hash = hn::LoadU(d, hashes + i);
      if constexpr (View::kLineByLowHalf) {
        const auto block = hn::ShiftRight<32>(MulLow32(d, hash, blocks));
        hn::Store(hn::ShiftLeft<6>(block), d, chunk.offsets + i);
      } else {
        hn::Store(hn::ShiftLeft<6>(FastRange64<true>(d, hash, view_.blocks)), d,
                  chunk.offsets + i);
      }
    }
  }

  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const { hwy::Prefetch(Block(chunk, i)); }

  HWY_INLINE void Add(std::byte* HWY_RESTRICT table, const Chunk& chunk, size_t i) const {
    InsertIntoLine(reinterpret_cast<uint32_t*>(table + chunk.offsets[i]),
                   View::ProbeHash(chunk.hashes[i]), view_.k);
  }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    return vectors_.WithVectors([&](auto vectors) FILTERBENCH_INLINE_LAMBDA {
      return NothingMissingOf8(D(), [&](size_t j) FILTERBENCH_INLINE_LAMBDA {
        const uint32_t hash = View::ProbeHash(chunk.hashes[i + j]);
        const uint32_t* block = Block(chunk, i + j);
        V missing = vectors_.Missing(block, hash, 0);
        for (size_t v = 1; v < vectors; ++v) {
          missing = hn::Or(missing, vectors_.Missing(block, hash, v));
        }
        return missing;
      });
    });
  }

 private:
  HWY_INLINE const uint32_t* Block(const Chunk& chunk, size_t i) const {
    return reinterpret_cast<const uint32_t*>(reinterpret_cast<const std::byte*>(view_.words) +
                                             chunk.offsets[i]);
  }

  const View view_;
  const Vectors vectors_;
};

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
