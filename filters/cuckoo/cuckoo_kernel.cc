// Lookups of Cuckoo in vectors: tags and buckets of several keys are computed at once, the two
// buckets of each key are gathered into 64-bit lanes and all eight slots are compared there, tags
// of 12 bits as they are packed.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/cuckoo/cuckoo_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/cuckoo/cuckoo.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

using D64 = hn::ScalableTag<uint64_t>;
using V64 = hn::Vec<D64>;

// Products of the lower 32 bits of each 64-bit lane.
HWY_INLINE V64 MulLow32(V64 a, V64 b) {
  const D64 d;
#if HWY_TARGET == HWY_SCALAR  // one lane of 64 bits is not two of 32
  const V64 low = hn::Set(d, 0xffffffffu);
  return hn::Mul(hn::And(a, low), hn::And(b, low));
#else
  const hn::RepartitionToNarrow<D64> d32;
  (void)d;
  return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
#endif
}

// Cuckoo::PlaceOf of a vector of keys; fewer than 2^32 buckets.
template <int kBits>
struct Places {
  V64 tag;
  V64 bucket;
  V64 partner;

  HWY_INLINE Places(V64 salted, V64 buckets) {
    using Bucket = CuckooBucket<kBits>;
    const D64 d;
    tag = hn::And(salted, hn::Set(d, Bucket::kTagMask));
    // 0 becomes 1: the mask is -1 in those lanes.
    tag = hn::Sub(tag, hn::VecFromMask(d, hn::Eq(tag, hn::Zero(d))));
    // FastRange64 with 32-bit products: (high m + (low m >> 32)) >> 32, whose sum is below 2^64.
    const V64 low = hn::ShiftRight<32>(MulLow32(salted, buckets));
    bucket = hn::ShiftRight<32>(hn::Add(MulLow32(hn::ShiftRight<32>(salted), buckets), low));
    V64 sum = MulLow32(tag, hn::Set(d, Cuckoo::kPairMultiplier1));
    sum = MulLow32(hn::Xor(sum, hn::ShiftRight<15>(sum)), hn::Set(d, Cuckoo::kPairMultiplier2));
    sum = hn::ShiftRight<32>(MulLow32(sum, buckets));
    // Both are below 2^32: the difference is negative where its highest bit is set.
    const hn::RebindToSigned<D64> di;
    const V64 difference = hn::Sub(sum, bucket);
    const V64 wrapped = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(di, difference)));
    partner = hn::Add(difference, hn::And(wrapped, buckets));
  }
};

template <int kBits>
HWY_INLINE V64 ByteOffset(V64 bucket) {
  if constexpr (kBits == 12) {
    return hn::Add(hn::ShiftLeft<2>(bucket), hn::ShiftLeft<1>(bucket));
  } else {
    return hn::ShiftLeft<kBits == 8 ? 2 : 3>(bucket);
  }
}

// The highest bit of each slot of `word` that is not zero; see CuckooBucket::NonZeroSlots.
template <int kBits>
HWY_INLINE V64 NonZeroSlots(V64 word) {
  const D64 d;
  const V64 other = hn::Set(d, CuckooBucket<kBits>::kOtherBits);
  return hn::Or(hn::Add(hn::And(word, other), other), word);
}

struct CuckooAnswer {
  static constexpr size_t kSubBatch = 256;

  template <int kBits>
  static void Words(const Cuckoo::SizedView<kBits>& view, const uint64_t* HWY_RESTRICT hashes,
                    size_t n, uint64_t* HWY_RESTRICT words) {
    using Bucket = CuckooBucket<kBits>;
    for (size_t i = 0; i < n; i += 64) words[i / 64] = 0;
    const D64 d;
    const hn::RebindToSigned<D64> di;
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    const V64 buckets = hn::Set(d, view.buckets);
    const V64 salt = hn::Set(d, view.salt);
    for (; i + lanes <= n; i += lanes) {
      const Places<kBits> p(hn::Xor(hn::LoadU(d, hashes + i), salt), buckets);
      const V64 pattern = hn::Mul(p.tag, hn::Set(d, Bucket::kLowestBits));
      const auto* base = reinterpret_cast<const uint64_t*>(view.table);
      const V64 first = hn::GatherOffset(d, base, hn::BitCast(di, ByteOffset<kBits>(p.bucket)));
      const V64 second = hn::GatherOffset(d, base, hn::BitCast(di, ByteOffset<kBits>(p.partner)));
      const V64 missing = hn::And(NonZeroSlots<kBits>(hn::Xor(first, pattern)),
                                  NonZeroSlots<kBits>(hn::Xor(second, pattern)));
      const V64 highest = hn::Set(d, Bucket::kHighestBits);
      words[i / 64] |= MaskToBits(d, hn::Ne(hn::And(missing, highest), highest)) << (i % 64);
    }
    for (; i < n; ++i) words[i / 64] |= uint64_t{view.MayContain(hashes[i])} << (i % 64);
  }
};

Kernel<Cuckoo::View> CuckooKernel() { return BatchedLoops<Cuckoo::View, CuckooAnswer>::Make(); }

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(CuckooKernel);

std::span<const Kernel<Cuckoo::View>> Cuckoo::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(CuckooKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
