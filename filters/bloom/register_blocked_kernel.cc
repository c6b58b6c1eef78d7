// Lookups of RegisterBlocked in vectors over keys: words and masks of as many keys as there are
// lanes of 64 bits, words of 32 bits in the lower half of a lane.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/register_blocked_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/register_blocked.h"
#include "filters/simd/gather-inl.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "filters/simd/missing-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <class View>
class RegisterLookup {
  using Word = typename View::Word;
  using D = hn::CappedTag<uint64_t, 8>;
  using V = hn::Vec<D>;

 public:
  static constexpr size_t kGroup = 8;
  struct Chunk {
    HWY_ALIGN uint64_t indices[kChunkKeys];
    HWY_ALIGN uint64_t masks[kChunkKeys];
  };

  explicit RegisterLookup(const View& view) : view_(view) {
    for (uint32_t p = 0; p < kLanesOfProbes; ++p) {
      shifts_[p] = p < view.k ? p * View::kPositionBits : 0;
      bits_[p] = p < view.k ? 1 : 0;
    }
  }

  // The probes of one key in the lanes of one or two vectors.
  HWY_INLINE bool MayContain(uint64_t hash) const {
    const D d;
    const V words = hn::Set(d, uint64_t{view_.words[view_.BlockOf(hash)]});
    V missing = hn::AndNot(words, Bits(hash, 0));
    for (size_t p = hn::Lanes(d); p < RegisterBlockedScheme::kMaxProbes && p < view_.k;
         p += hn::Lanes(d)) {
      missing = hn::Or(missing, hn::AndNot(words, Bits(hash, p)));
    }
    return NothingMissing(d, missing);
  }

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    static_assert(RegisterBlockedScheme::kMaxBlocks < uint64_t{1} << 32);
    const D d;
    const V one = hn::Set(d, 1);
    const V position = hn::Set(d, 8 * sizeof(Word) - 1);
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      const V hash = hn::LoadU(d, hashes + i);
      hn::Store(FastRange64<true>(d, hash, view_.blocks), d, chunk.indices + i);
      V fields = hash;
      V mask = hn::Shl(one, hn::And(fields, position));
      for (uint32_t p = 1; p < view_.k; ++p) {
        fields = hn::ShiftRight<View::kPositionBits>(fields);
        mask = hn::Or(mask, hn::Shl(one, hn::And(fields, position)));
      }
      hn::Store(mask, d, chunk.masks + i);
    }
  }

  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const {
    hwy::Prefetch(view_.words + chunk.indices[i]);
  }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    const D d;
    uint64_t answers = 0;
    for (size_t j = 0; j < kGroup; j += hn::Lanes(d)) {
      const V words = WordsAt(d, view_.words, chunk.indices + i + j);
      const V missing = hn::AndNot(words, hn::Load(d, chunk.masks + i + j));
      answers |= MaskToBits(d, hn::Eq(missing, hn::Zero(d))) << j;
    }
    return answers;
  }

  HWY_INLINE void Add(std::byte* HWY_RESTRICT table, const Chunk& chunk, size_t i) const {
    reinterpret_cast<Word*>(table)[chunk.indices[i]] |= static_cast<Word>(chunk.masks[i]);
  }

 private:
  static constexpr size_t kLanesOfProbes = 8;
  static_assert(RegisterBlockedScheme::kMaxProbes <= kLanesOfProbes);

  HWY_INLINE V Bits(uint64_t hash, size_t first) const {
    const D d;
    const V fields = hn::Shr(hn::Set(d, hash), hn::Load(d, shifts_ + first));
    return hn::Shl(hn::Load(d, bits_ + first), hn::And(fields, hn::Set(d, 8 * sizeof(Word) - 1)));
  }

  const View view_;
  HWY_ALIGN uint64_t shifts_[kLanesOfProbes];
  HWY_ALIGN uint64_t bits_[kLanesOfProbes];
};

Kernel<RegisterBlocked::View> RegisterBlockedKernel() {
  using Loops = ChunkedLoops<RegisterBlocked::View, RegisterLookup>;
#if HWY_MAX_BYTES == 16  // two probes per vector, each shift emulated: slower than the scalar loop
  return Loops::MakeWithInsert();
#else
  return Loops::MakeWithSingleAndInsert();
#endif
}

#else  // HWY_SCALAR: one lane has no second key

Kernel<RegisterBlocked::View> RegisterBlockedKernel() {
  return ReferenceKernel<RegisterBlocked::View>(TargetName(HWY_TARGET));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(RegisterBlockedKernel);

template <>
std::span<const Kernel<RegisterBlocked::View>> RegisterBlocked::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(RegisterBlockedKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
