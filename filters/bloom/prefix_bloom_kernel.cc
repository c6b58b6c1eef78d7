// Lookups of PrefixBloom in rounds over keys (filters/bloom/probe_rounds-inl.h). Integers whose
// eight bytes all count are hashed in vectors, shorter prefixes one by one.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/prefix_bloom_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/prefix_bloom.h"
#include "filters/bloom/probe_chain-inl.h"
#include "filters/bloom/probe_rounds-inl.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/xxh3-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

class WholeIntegerHash {
 public:
  explicit WholeIntegerHash(const PrefixBloom::View& view) : of_seed_(Xxh3OfSeed(view.seed)) {}

  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, const uint64_t* HWY_RESTRICT keys) const {
    // The bytes in reverse: halves of words, of halves, and of those.
    auto x = hn::RotateRight<32>(hn::LoadU(d, keys));
    x = Swapped<16>(d, x, 0x0000ffff0000ffff);
    x = Swapped<8>(d, x, 0x00ff00ff00ff00ff);
    return Xxh3(d, Xxh3OfKey(d, x), of_seed_);
  }

 private:
  template <int kBits, class D, class V = hn::Vec<D>>
  static HWY_INLINE V Swapped(D d, V x, uint64_t low) {
    const V mask = hn::Set(d, low);
    return hn::Or(hn::And(hn::ShiftRight<kBits>(x), mask), hn::ShiftLeft<kBits>(hn::And(x, mask)));
  }

  uint64_t of_seed_;
};

class ShortPrefixHash {
 public:
  explicit ShortPrefixHash(const PrefixBloom::View& view) : view_(view) {}

  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, const uint64_t* HWY_RESTRICT keys) const {
    HWY_ALIGN uint64_t hashes[8] = {};
    for (size_t i = 0; i < hn::Lanes(d); ++i) hashes[i] = view_.HashOf(keys[i]);
    return hn::Load(d, hashes);
  }

 private:
  PrefixBloom::View view_;
};

template <class View>
struct PrefixProbesOf {
  template <class Use>
  static HWY_INLINE auto Call(const View& view, const Use& use) {
    if (view.prefix_bytes < sizeof(uint64_t)) return WithHash(view, ShortPrefixHash(view), use);
    return WithHash(view, WholeIntegerHash(view), use);
  }

 private:
  template <class Hash, class Use>
  static HWY_INLINE auto WithHash(const View& view, const Hash& hash, const Use& use) {
    if (view.bits < uint64_t{1} << 32) return use(ChainProbes<true, Hash>(hash, view.bits));
    return use(ChainProbes<false, Hash>(hash, view.bits));
  }
};

Kernel<PrefixBloom::View> PrefixBloomKernel() {
  return RoundLoops<PrefixBloom::View, PrefixProbesOf>::Make();
}

#else  // HWY_SCALAR: rounds of one key

Kernel<PrefixBloom::View> PrefixBloomKernel() {
  return ReferenceKernel<PrefixBloom::View>(TargetName(HWY_TARGET));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(PrefixBloomKernel);

std::span<const Kernel<PrefixBloom::View>> PrefixBloom::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(PrefixBloomKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
