// Lookups of Cuckoo in vectors: tags and buckets of several keys are computed at once, the two
// buckets of each key are gathered into 64-bit lanes and all eight slots are compared there, tags
// of 12 bits as they are packed. The loops are not those of BatchedLoops: these overlap one
// sub-batch with the next.

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

// A tag in all four slots.
template <int kBits>
HWY_INLINE V64 Repeat(V64 tag) {
  const V64 two = hn::Or(tag, hn::ShiftLeft<kBits>(tag));
  return hn::Or(two, hn::ShiftLeft<2 * kBits>(two));
}

// The highest bit of each slot of `word` that is not zero; see CuckooBucket::NonZeroSlots.
template <int kBits>
HWY_INLINE V64 NonZeroSlots(V64 word) {
  const D64 d;
  const V64 other = hn::Set(d, CuckooBucket<kBits>::kOtherBits);
  return hn::Or(hn::Add(hn::And(word, other), other), word);
}

#if !HWY_HAVE_SCALABLE && HWY_TARGET != HWY_SCALAR
// Separate loads and shuffles: on Zen 3 (AVX2, 12-bit tags, table in the second-level cache) faster
// than gathers by a factor of 1.4 to 2. Not measured on other processors or targets.
template <class D>
HWY_INLINE hn::Vec<D> LoadWordsOf(D d, const std::byte* HWY_RESTRICT table,
                                  const uint64_t* HWY_RESTRICT offsets) {
  if constexpr (hn::MaxLanes(d) == 1) {
    return hn::LoadU(d, reinterpret_cast<const uint64_t*>(table + offsets[0]));
  } else {
    const hn::Half<D> half;
    const size_t lanes = hn::MaxLanes(half);
    const auto low = LoadWordsOf(half, table, offsets);
    return hn::Combine(d, LoadWordsOf(half, table, offsets + lanes), low);
  }
}
#endif

// The words at table + offsets[0 .. lanes).
HWY_INLINE V64 LoadWords(const std::byte* HWY_RESTRICT table,
                         const uint64_t* HWY_RESTRICT offsets) {
  const D64 d;
#if HWY_HAVE_SCALABLE || HWY_TARGET == HWY_SCALAR
  const hn::RebindToSigned<D64> di;
  return hn::GatherOffset(d, reinterpret_cast<const uint64_t*>(table),
                          hn::BitCast(di, hn::Load(d, offsets)));
#else
  return LoadWordsOf(d, table, offsets);
#endif
}

// The places of the keys of one word of answers.
template <int kBits>
struct PlacesOfWord {
  static constexpr size_t kKeys = 64;
  HWY_ALIGN uint64_t first_offsets[kKeys];
  HWY_ALIGN uint64_t second_offsets[kKeys];
  HWY_ALIGN uint64_t tags[kKeys];

  HWY_INLINE void Compute(const Cuckoo::SizedView<kBits>& view,
                          const uint64_t* HWY_RESTRICT hashes) {
    const D64 d;
    const V64 buckets = hn::Set(d, view.buckets);
    const V64 salt = hn::Set(d, view.salt);
    for (size_t i = 0; i < kKeys; i += hn::Lanes(d)) {
      const Places<kBits> places(hn::Xor(hn::LoadU(d, hashes + i), salt), buckets);
      hn::Store(ByteOffset<kBits>(places.bucket), d, first_offsets + i);
      hn::Store(ByteOffset<kBits>(places.partner), d, second_offsets + i);
      hn::Store(places.tag, d, tags + i);
    }
  }
  // From 2^32 buckets on, 16 GiB and more: the arithmetic is nothing beside the memory.
  void ComputeForHugeTable(const Cuckoo::SizedView<kBits>& view,
                           const uint64_t* HWY_RESTRICT hashes) {
    for (size_t i = 0; i < kKeys; ++i) {
      const auto place = Cuckoo::PlaceOf<kBits>(hashes[i], view.salt, view.buckets);
      first_offsets[i] = place.bucket * CuckooBucket<kBits>::kBytes;
      second_offsets[i] = place.partner * CuckooBucket<kBits>::kBytes;
      tags[i] = place.tag;
    }
  }
  // A word that is read at a bucket of 12-bit tags may end in the next line.
  HWY_INLINE void Prefetch(const std::byte* table, size_t i) const {
    hwy::Prefetch(table + first_offsets[i]);
    if (kBits == 12) hwy::Prefetch(table + first_offsets[i] + 7);
    hwy::Prefetch(table + second_offsets[i]);
    if (kBits == 12) hwy::Prefetch(table + second_offsets[i] + 7);
  }
  // One answer per lane for the keys from i on, as bits.
  HWY_INLINE uint64_t Compare(const std::byte* HWY_RESTRICT table, size_t i) const {
    const D64 d;
    const V64 highest = hn::Set(d, CuckooBucket<kBits>::kHighestBits);
    const V64 pattern = Repeat<kBits>(hn::Load(d, tags + i));
    const V64 first = LoadWords(table, first_offsets + i);
    const V64 second = LoadWords(table, second_offsets + i);
    const V64 missing = hn::And(NonZeroSlots<kBits>(hn::Xor(first, pattern)),
                                NonZeroSlots<kBits>(hn::Xor(second, pattern)));
    return MaskToBits(d, hn::Ne(hn::And(missing, highest), highest));
  }
};

// Calls `use(i, word)` for each word of the answers. Places are computed one word ahead; prefetches
// run a fixed number of keys before the comparisons and never pause, also not between words.
template <int kBits, bool kPrefetch, class Use>
HWY_INLINE void ForEachWord(const Cuckoo::SizedView<kBits>& view,
                            const uint64_t* HWY_RESTRICT hashes, size_t n, Use use) {
  constexpr size_t kKeys = PlacesOfWord<kBits>::kKeys;
  constexpr size_t kAhead = 32;
  static_assert(kAhead <= kKeys && kAhead % hn::MaxLanes(D64()) == 0);
  const size_t lanes = hn::Lanes(D64());
  const size_t words = (n + kKeys - 1) / kKeys;
  if (words == 0) return;

  // The last word is filled up with hashes whose answers are not used.
  uint64_t last_hashes[kKeys];
  std::fill(std::copy(hashes + (words - 1) * kKeys, hashes + n, last_hashes),
            last_hashes + kKeys, hashes[n - 1]);
  PlacesOfWord<kBits> ring[2];
  const auto compute = [&](size_t word) HWY_ATTR {
    const uint64_t* from = word + 1 == words ? last_hashes : hashes + word * kKeys;
    if (HWY_LIKELY(view.buckets >> 32 == 0)) {
      ring[word % 2].Compute(view, from);
    } else {
      ring[word % 2].ComputeForHugeTable(view, from);
    }
  };

  compute(0);
  if (kPrefetch) {
    for (size_t i = 0; i < kAhead; ++i) ring[0].Prefetch(view.table, i);
  }
  for (size_t word = 0; word < words; ++word) {
    const PlacesOfWord<kBits>& places = ring[word % 2];
    const bool is_last = word + 1 == words;
    if (!is_last) compute(word + 1);
    const PlacesOfWord<kBits>& next = ring[(word + 1) % 2];
    uint64_t bits = 0;
    size_t i = 0;
    for (; i < kKeys - kAhead; i += lanes) {
      if (kPrefetch) {
        for (size_t j = 0; j < lanes; ++j) places.Prefetch(view.table, i + kAhead + j);
      }
      bits |= places.Compare(view.table, i) << i;
    }
    for (; i < kKeys; i += lanes) {
      if (kPrefetch && !is_last) {
        for (size_t j = 0; j < lanes; ++j) next.Prefetch(view.table, i + kAhead - kKeys + j);
      }
      bits |= places.Compare(view.table, i) << i;
    }
    if (is_last) bits &= ~uint64_t{0} >> ((words * kKeys - n) % kKeys);
    use(word, bits);
  }
}

template <class Use>
HWY_INLINE void ForEachWordOf(const Cuckoo::View& any_view, const uint64_t* HWY_RESTRICT hashes,
                              size_t n, Use use) {
  any_view.Specialize([&]<int kBits>(const Cuckoo::SizedView<kBits>& view) HWY_ATTR {
    if (view.prefetch) {
      ForEachWord<kBits, true>(view, hashes, n, use);
    } else {
      ForEachWord<kBits, false>(view, hashes, n, use);
    }
  });
}

uint64_t CountBatched(const Cuckoo::View& view, const uint64_t* hashes, size_t n) {
  uint64_t count = 0;
  ForEachWordOf(view, hashes, n,
                [&](size_t, uint64_t word) HWY_ATTR { count += hwy::PopCount(word); });
  return count;
}

void BitsBatched(const Cuckoo::View& view, const uint64_t* hashes, size_t n, uint64_t* bits) {
  ForEachWordOf(view, hashes, n, [&](size_t i, uint64_t word) HWY_ATTR { bits[i] = word; });
}

Kernel<Cuckoo::View> CuckooKernel() {
  return MakeKernel<Cuckoo::View>(&CountBatched, &BitsBatched);
}

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
