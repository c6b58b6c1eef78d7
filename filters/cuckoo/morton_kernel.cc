// Lookups of Morton: places of 64 keys are computed ahead, and the lines of their first buckets
// asked for; the test is the scalar reference, which counts bits with the target's instructions.
// Testing all first buckets of a group and then the second ones that are needed was no faster.
// Second lines are needed for a tenth of the absent keys and are not asked for ahead.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/cuckoo/morton_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/cuckoo/morton.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

template <class View>
class MortonLookup {
 public:
  static constexpr size_t kGroup = 8;
  struct Chunk {
    uint64_t buckets[kChunkKeys];
    uint64_t tags[kChunkKeys];
  };

  explicit MortonLookup(const View& view) : view_(view) {}

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    for (size_t i = 0; i < kChunkKeys; ++i) {
      const uint64_t salted = hashes[i] ^ view_.salt;
      chunk.buckets[i] = FastRange64(salted, view_.buckets);
      chunk.tags[i] = CuckooPlaces::TagOf<View::kTagBits>(salted);
    }
  }

  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const {
    hwy::Prefetch(view_.BlockOf(chunk.buckets[i]));
  }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    uint64_t answers = 0;
    for (size_t j = 0; j < kGroup; ++j) {
      answers |= uint64_t{view_.MayContain(chunk.tags[i + j], chunk.buckets[i + j])} << j;
    }
    return answers;
  }

 private:
  const View view_;
};

Kernel<Morton::View> MortonKernel() { return ChunkedLoops<Morton::View, MortonLookup>::Make(); }

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(MortonKernel);

template <>
std::span<const Kernel<Morton::View>> Morton::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(MortonKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
