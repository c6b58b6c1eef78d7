// Lookups of ClassicBloom in rounds over keys (filters/bloom/probe_rounds-inl.h); each round hashes
// the keys that are left with the seed of its probe.
//
// With 128-bit vectors present keys lose, since they need all hash values anyway and two lanes
// bring little there: on Zen 3, in cache, SSE4 takes 0.40 of the scalar time for absent keys, 0.71
// mixed, 1.07 for present ones; SSSE3 0.51, 0.95 and 1.46.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/classic_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/classic.h"
#include "filters/bloom/probe_rounds-inl.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "filters/simd/xxh3-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

template <bool kNarrow>  // the table has less than 2^32 bits
class ClassicProbes {
 public:
  using T = uint64_t;
  using D = hn::CappedTag<T, 8>;
  using V = hn::Vec<D>;
  static constexpr size_t kMaxProbes = ClassicBloom::kMaxProbes;
  static constexpr size_t kStates = 1;  // what all hash functions share of the key
  static constexpr bool kPositionIsState = false;

  explicit ClassicProbes(const ClassicBloom::View& view) : bits_(view.bits) {
    for (uint32_t i = 0; i < view.k; ++i) {
      seeds_[i] = Xxh3OfSeed(ClassicBloom::HashSeed(view.seed, i));
    }
  }

  HWY_INLINE void Begin(const uint64_t* HWY_RESTRICT values, V& state, V&) const {
    const D d;
    state = Xxh3OfKey(d, hn::LoadU(d, values));
  }

  HWY_INLINE V Position(V state, uint32_t i) const {
    const D d;
    return FastRange64<kNarrow>(d, Xxh3(d, state, seeds_[i]), bits_);
  }

  HWY_INLINE void Next(V&, V&, uint32_t) const {}

 private:
  uint64_t bits_;
  uint64_t seeds_[ClassicBloom::kMaxProbes];
};

template <class View>
struct ClassicProbesOf {
  template <class Use>
  static HWY_INLINE auto Call(const View& view, const Use& use) {
    if (view.bits < uint64_t{1} << 32) return use(ClassicProbes<true>(view));
    return use(ClassicProbes<false>(view));
  }
};

Kernel<ClassicBloom::View> ClassicBloomKernel() {
  return RoundLoops<ClassicBloom::View, ClassicProbesOf>::Make();
}

void ClassicBloomInsertPart(const ClassicBloom::View& view, uint64_t* words,
                            const uint64_t* values, size_t n, BitRange part) {
  RoundLoops<ClassicBloom::View, ClassicProbesOf>::Insert(view, words, values, n, part);
}

#else  // HWY_SCALAR: rounds of one key

Kernel<ClassicBloom::View> ClassicBloomKernel() {
  return ReferenceKernel<ClassicBloom::View>(TargetName(HWY_TARGET));
}

void ClassicBloomInsertPart(const ClassicBloom::View& view, uint64_t* words,
                            const uint64_t* values, size_t n, BitRange part) {
  SetBitsOfKeys<ClassicBloom::kMaxProbes>(
      words, n, view.k, view.prefetch, part, [&](size_t key, uint64_t* out) {
        for (uint32_t i = 0; i < view.k; ++i) {
          const uint64_t seed = ClassicBloom::HashSeed(view.seed, i);
          out[i] = ClassicBloom::Position(HashU64(values[key], seed), view.bits);
        }
      });
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(ClassicBloomKernel);
HWY_EXPORT(ClassicBloomInsertPart);

std::span<const Kernel<ClassicBloom::View>> ClassicBloom::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(ClassicBloomKernel)(); });
  return kernels;
}

void ClassicBloom::InsertPart(const View& view, uint64_t* words, const uint64_t* values, size_t n,
                              BitRange part) {
  HWY_DYNAMIC_DISPATCH(ClassicBloomInsertPart)(view, words, values, n, part);
}

}  // namespace filterbench
#endif  // HWY_ONCE
