// The mixing step in vectors: eight hashes at a time cost a tenth of one at a time.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/limits/hash_only_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/limits/hash_only.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

uint64_t HashOnlyRun(const HashOnly::View& view, const uint64_t* hashes, size_t n,
                     uint64_t* bits) {
  const hn::ScalableTag<uint64_t> d;
  return LookUpByWords(hashes, n, bits, [&view, d](const uint64_t* from, size_t in_word)
                                            FILTERBENCH_INLINE_LAMBDA {
    const auto seed = hn::Set(d, view.seed);
    uint64_t word = 0;
    size_t i = 0;
    for (; i + hn::Lanes(d) <= in_word; i += hn::Lanes(d)) {
      const auto mixed = Mix64(d, hn::Xor(hn::LoadU(d, from + i), seed));
      word |= MaskToBits(d, hn::Ne(hn::And(mixed, hn::Set(d, 1)), hn::Zero(d))) << i;
    }
    for (; i < in_word; ++i) word |= uint64_t{view.MayContain(from[i])} << i;
    return word;
  });
}

Kernel<HashOnly::View> HashOnlyKernel() {
  return MakeKernel<HashOnly::View, &HashOnlyRun>();
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(HashOnlyKernel);

std::span<const Kernel<HashOnly::View>> HashOnly::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(HashOnlyKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
