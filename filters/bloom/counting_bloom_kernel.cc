// Lookups of CountingBloom: starts and steps of 64 keys come from vectors, the first two lines of a
// key are asked for while others are tested, and the counters are tested one by one. Half of the
// absent keys need no third line.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/counting_bloom_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/counting_bloom.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <class View>
class CountingLookup {
  using D = hn::CappedTag<uint64_t, 8>;
  using V = hn::Vec<D>;

 public:
  static constexpr size_t kGroup = 8;
  struct Chunk {
    HWY_ALIGN uint64_t starts[kChunkKeys];
    HWY_ALIGN uint64_t steps[kChunkKeys];
  };

  explicit CountingLookup(const View& view) : view_(view) {}

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    if (view_.counters < uint64_t{1} << 32) {
      PrepareFor<true>(hashes, chunk);
    } else {
      PrepareFor<false>(hashes, chunk);
    }
  }

  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const {
    typename View::Walk walk{view_.counters, chunk.starts[i], chunk.steps[i]};
    hwy::Prefetch(view_.words + walk.position / kCountersPerWord);
    walk.Next();
    hwy::Prefetch(view_.words + walk.position / kCountersPerWord);
  }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    uint64_t answers = 0;
    for (size_t j = 0; j < kGroup; ++j) {
      const typename View::Walk walk{view_.counters, chunk.starts[i + j], chunk.steps[i + j]};
      answers |= uint64_t{view_.AllCounted(walk)} << j;
    }
    return answers;
  }

 private:
  template <bool kNarrow>
  HWY_INLINE void PrepareFor(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    const D d;
    const uint64_t forbidden = view_.forbidden_divisor;
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      const V hash = hn::LoadU(d, hashes + i);
      hn::Store(FastRange64<kNarrow>(d, hash, view_.counters), d, chunk.starts + i);
      // KmBloom::Step of KmBloom::StepHash: of the product, the lower half is what counts.
      const V fraction = hn::ShiftLeft<32>(MulLow32(d, hash, hn::Set(d, KmBloom::kStepMultiplier)));
      const V steps = hn::Add(FastRange64<kNarrow>(d, fraction, view_.counters - forbidden),
                              FastRange64<kNarrow>(d, fraction, forbidden));
      hn::Store(hn::Add(steps, hn::Set(d, 1)), d, chunk.steps + i);
    }
  }

  const View view_;
};

Kernel<CountingBloom::View> CountingBloomKernel() {
  return ChunkedLoops<CountingBloom::View, CountingLookup>::Make();
}

#else  // HWY_SCALAR: a vector holds one key

Kernel<CountingBloom::View> CountingBloomKernel() {
  return ReferenceKernel<CountingBloom::View>(TargetName(HWY_TARGET));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(CountingBloomKernel);

std::span<const Kernel<CountingBloom::View>> CountingBloom::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(CountingBloomKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
