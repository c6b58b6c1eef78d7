// Lookups of KmBloom in rounds over keys (filters/bloom/probe_rounds-inl.h); starts and steps come
// from vectors of hashes.
//
// With 128-bit vectors present keys gain little: on Zen 3, in cache, SSE4 takes 0.25 of the scalar
// time for absent keys, 0.5 mixed, 0.9 for present ones; SSSE3, which lacks 32-bit Min and variable
// shifts, 0.4, 0.75 and 1.55.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/kirsch_mitzenmacher_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/kirsch_mitzenmacher.h"
#include "filters/bloom/probe_rounds-inl.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// A lane type of 32 bits where positions and their sums fit doubles the keys per vector.
template <class LaneType, KmBloom::Probing kProbing>
class KmProbes {
  using DHash = hn::CappedTag<uint64_t, 8>;
  using VHash = hn::Vec<DHash>;
  static constexpr bool kNarrow = sizeof(LaneType) == 4;

 public:
  using T = LaneType;
  using D = hn::CappedTag<T, 64 / sizeof(T)>;
  using V = hn::Vec<D>;
  static constexpr size_t kMaxProbes = KmBloom::kMaxProbes;
  static constexpr size_t kStates = 2;  // position, step
  static constexpr bool kPositionIsState = true;

  explicit KmProbes(const KmBloom::View& view)
      : bits_(view.bits),
        forbidden_(view.forbidden_divisor),
        allowed_(view.bits - view.forbidden_divisor) {}

  HWY_INLINE void Begin(const uint64_t* HWY_RESTRICT hashes, V& position, V& step) const {
    const D d;
    const DHash dh;
    const VHash hash = hn::LoadU(dh, hashes);
    if constexpr (kNarrow) {
      const VHash hash_after = hn::LoadU(dh, hashes + hn::Lanes(dh));
      position = hn::ConcatEven(d, hn::BitCast(d, Start(hash_after)), hn::BitCast(d, Start(hash)));
      step = hn::ConcatEven(d, hn::BitCast(d, Step(hash_after)), hn::BitCast(d, Step(hash)));
    } else {
      position = Start(hash);
      step = Step(hash);
    }
  }

  HWY_INLINE V Position(V position, uint32_t) const { return position; }

  HWY_INLINE void Next(V& position, V& step, uint32_t i) const {
    position = AddMod(position, step);
    if constexpr (kProbing == KmBloom::Probing::kEnhanced) {
      step = AddMod(step, hn::Set(D(), static_cast<T>((i + uint64_t{1}) % bits_)));
    }
  }

 private:
  HWY_INLINE VHash Start(VHash hash) const { return FastRange64<kNarrow>(DHash(), hash, bits_); }

  HWY_INLINE VHash Step(VHash hash) const {
    const DHash d;
    const VHash step_hash = MulLow32(d, hash, hn::Set(d, KmBloom::kStepMultiplier));
    return hn::Add(hn::Add(FastRange32(step_hash, allowed_), FastRange32(step_hash, forbidden_)),
                   hn::Set(d, 1));
  }

  // FastRange64(low half of hash << 32, range); the high half is not looked at.
  static HWY_INLINE VHash FastRange32(VHash hash, uint64_t range) {
    const DHash d;
    const VHash result =
        hn::ShiftRight<32>(MulLow32(d, hash, hn::Set(d, range & 0xffffffff)));
    if constexpr (kNarrow) return result;
    return hn::Add(result, MulLow32(d, hash, hn::Set(d, range >> 32)));
  }

  // Sums are below twice the table: the smaller of the two is the one that did not wrap.
  HWY_INLINE V AddMod(V a, V b) const {
    const V sum = hn::Add(a, b);
    return hn::Min(sum, hn::Sub(sum, hn::Set(D(), static_cast<T>(bits_))));
  }

  uint64_t bits_;
  uint64_t forbidden_;
  uint64_t allowed_;
};

template <class View>
struct KmProbesOf {
  template <class Use>
  static HWY_INLINE auto Call(const View& view, const Use& use) {
    constexpr uint64_t kMaxNarrowBits = uint64_t{1} << 31;
    if (view.bits <= kMaxNarrowBits) return use(KmProbes<uint32_t, View::kFixedProbing>(view));
    return use(KmProbes<uint64_t, View::kFixedProbing>(view));
  }
};

Kernel<KmBloom::View> KmBloomKernel() { return RoundLoops<KmBloom::View, KmProbesOf>::Make(); }

void KmBloomInsertPart(const KmBloom::View& view, uint64_t* words, const uint64_t* hashes, size_t n,
                       BitRange part) {
  RoundLoops<KmBloom::View, KmProbesOf>::Insert(view, words, hashes, n, part);
}

#else  // HWY_SCALAR: rounds of one key

Kernel<KmBloom::View> KmBloomKernel() {
  return ReferenceKernel<KmBloom::View>(TargetName(HWY_TARGET));
}

void KmBloomInsertPart(const KmBloom::View& view, uint64_t* words, const uint64_t* hashes, size_t n,
                       BitRange part) {
  view.Specialize([=](const auto& fixed) {
    SetBitsOfKeys<KmBloom::kMaxProbes>(words, n, view.k, view.prefetch, part,
                                       [&](size_t key, uint64_t* out) {
                                         auto walk = fixed.WalkFor(hashes[key]);
                                         for (uint32_t i = 0; i < fixed.k; ++i, walk.Next()) {
                                           out[i] = walk.position;
                                         }
                                       });
  });
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(KmBloomKernel);
HWY_EXPORT(KmBloomInsertPart);

std::span<const Kernel<KmBloom::View>> KmBloom::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(KmBloomKernel)(); });
  return kernels;
}

void KmBloom::InsertPart(const View& view, uint64_t* words, const uint64_t* hashes, size_t n,
                         BitRange part) {
  HWY_DYNAMIC_DISPATCH(KmBloomInsertPart)(view, words, hashes, n, part);
}

}  // namespace filterbench
#endif  // HWY_ONCE
