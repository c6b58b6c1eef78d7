// Lookups of CacheSectorized in vectors over keys: word indices and masks of all groups, for as
// many keys as there are lanes of 64 bits.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/cache_sectorized_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/cache_sectorized.h"
#include "filters/simd/gather-inl.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <class View>
class SectorLookup {
  using Scheme = CacheSectorizedScheme;
  using D = hn::CappedTag<uint64_t, 8>;
  using V = hn::Vec<D>;
  static constexpr uint32_t kGroups = View::kGroups;

 public:
  static constexpr size_t kGroup = 8;
  struct Chunk {
    HWY_ALIGN uint64_t indices[kGroups][kChunkKeys];  // of words in the table
    HWY_ALIGN uint64_t masks[kGroups][kChunkKeys];
  };

  explicit SectorLookup(const View& view) : view_(view) {}

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    static_assert(Scheme::kMaxBlocks < uint64_t{1} << 32);
    static_assert(Scheme::kWordsPerBlock == 1 << 3);
    const D d;
    const V low = hn::Set(d, 0xffffffff);
    const V position = hn::Set(d, 63);
    const V one = hn::Set(d, 1);
    const V second_multiplier = hn::Set(d, Scheme::kSecondMultiplier);
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      const V hash = hn::LoadU(d, hashes + i);
      const V block = hn::ShiftLeft<3>(FastRange64<true>(d, hash, view_.blocks));
      for (uint32_t group = 0; group < kGroups; ++group) {
        const V multiplier = hn::Set(d, Scheme::kFirstMultiplier[group]);
        const V once = hn::And(MulLow32(d, hash, multiplier), low);
        const V mixed = hn::Xor(once, hn::ShiftRight<Scheme::kShift>(once));
        V fields = hn::And(MulLow32(d, mixed, second_multiplier), low);
        const V word = hn::Add(hn::ShiftRight<View::kWordShift>(fields),
                               hn::Set(d, uint64_t{group} * View::kWordsPerGroup));
        hn::Store(hn::Add(block, word), d, chunk.indices[group] + i);
        V mask = hn::Shl(one, hn::And(fields, position));
        for (uint32_t p = 1; p < view_.probes; ++p) {
          fields = hn::ShiftRight<View::kPositionBits>(fields);
          mask = hn::Or(mask, hn::Shl(one, hn::And(fields, position)));
        }
        hn::Store(mask, d, chunk.masks[group] + i);
      }
    }
  }

  // The words of a key lie in one line.
  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const {
    hwy::Prefetch(view_.words + chunk.indices[0][i]);
  }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    const D d;
    uint64_t answers = 0;
    for (size_t j = i; j < i + kGroup; j += hn::Lanes(d)) {
      V missing = Missing(chunk, 0, j);
      for (uint32_t group = 1; group < kGroups; ++group) {
        missing = hn::Or(missing, Missing(chunk, group, j));
      }
      answers |= MaskToBits(d, hn::Eq(missing, hn::Zero(d))) << (j - i);
    }
    return answers;
  }

  HWY_INLINE void Add(std::byte* HWY_RESTRICT table, const Chunk& chunk, size_t i) const {
    auto* words = reinterpret_cast<uint64_t*>(table);
    for (uint32_t group = 0; group < kGroups; ++group) {
      words[chunk.indices[group][i]] |= chunk.masks[group][i];
    }
  }

 private:
  HWY_INLINE V Missing(const Chunk& chunk, uint32_t group, size_t i) const {
    const D d;
    const V words = WordsAt(d, view_.words, chunk.indices[group] + i);
    return hn::AndNot(words, hn::Load(d, chunk.masks[group] + i));
  }

  const View view_;
};

Kernel<CacheSectorized::View> CacheSectorizedKernel() {
  return ChunkedLoops<CacheSectorized::View, SectorLookup>::MakeWithInsert();
}

#else  // HWY_SCALAR: one lane has no second key

Kernel<CacheSectorized::View> CacheSectorizedKernel() {
  return ReferenceKernel<CacheSectorized::View>(TargetName(HWY_TARGET));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(CacheSectorizedKernel);

template <>
std::span<const Kernel<CacheSectorized::View>> CacheSectorized::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(CacheSectorizedKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
