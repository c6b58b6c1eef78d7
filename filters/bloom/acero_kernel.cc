// Lookups of AceroBloom: masks one by one, since each is a load of its own; words in vectors.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/acero_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/acero.h"
#include "filters/simd/gather-inl.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <class View>
class AceroLookup {
  using D = hn::CappedTag<uint64_t, 8>;
  using V = hn::Vec<D>;

 public:
  static constexpr size_t kGroup = 8;
  struct Chunk {
    HWY_ALIGN uint64_t indices[kChunkKeys];
    HWY_ALIGN uint64_t masks[kChunkKeys];
  };

  explicit AceroLookup(const View& view) : view_(view) {}

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    for (size_t i = 0; i < kChunkKeys; ++i) {
      chunk.indices[i] = view_.BlockOf(hashes[i]);
      chunk.masks[i] = view_.MaskOf(hashes[i]);
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
    reinterpret_cast<uint64_t*>(table)[chunk.indices[i]] |= chunk.masks[i];
  }

 private:
  const View view_;
};

Kernel<AceroBloom::View> AceroBloomKernel() {
  return ChunkedLoops<AceroBloom::View, AceroLookup>::MakeWithInsert();
}

#else  // HWY_SCALAR: one lane has no second key

Kernel<AceroBloom::View> AceroBloomKernel() {
  return ReferenceKernel<AceroBloom::View>(TargetName(HWY_TARGET));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(AceroBloomKernel);

template <>
std::span<const Kernel<AceroBloom::View>> AceroBloom::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(AceroBloomKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
