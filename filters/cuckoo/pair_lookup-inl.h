// Lookups in vectors where a tag lies in one of two buckets, compiled once per target: tags and
// buckets of several keys are computed at once, the words of the two buckets of each key are
// gathered into 64-bit lanes and all their slots are compared there, as they are packed.

#if defined(FILTERBENCH_FILTERS_CUCKOO_PAIR_LOOKUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_CUCKOO_PAIR_LOOKUP_INL_H_
#undef FILTERBENCH_FILTERS_CUCKOO_PAIR_LOOKUP_INL_H_
#else
#define FILTERBENCH_FILTERS_CUCKOO_PAIR_LOOKUP_INL_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>

#include "filters/cuckoo/cuckoo.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

using D64 = hn::CappedTag<uint64_t, 8>;
using V64 = hn::Vec<D64>;

// CuckooPlaces::PlaceOf of a vector of keys; fewer than 2^32 buckets. No class holds the three
// vectors: those of SVE can be members of none.
template <int kBits, bool kXor>
HWY_INLINE void PlacesOf(V64 salted, V64 buckets, V64& tag, V64& bucket, V64& partner) {
  const D64 d;
  tag = hn::And(salted, hn::Set(d, (uint64_t{1} << kBits) - 1));
  // 0 becomes 1: the mask is -1 in those lanes.
  tag = hn::Sub(tag, hn::VecFromMask(d, hn::Eq(tag, hn::Zero(d))));
  // FastRange64 with 32-bit products: (high m + (low m >> 32)) >> 32, whose sum is below 2^64.
  const V64 low = hn::ShiftRight<32>(MulLow32(d, salted, buckets));
  bucket = hn::ShiftRight<32>(hn::Add(MulLow32(d, hn::ShiftRight<32>(salted), buckets), low));
  V64 sum = MulLow32(d, tag, hn::Set(d, CuckooPlaces::kPairMultiplier1));
  sum = MulLow32(d, hn::Xor(sum, hn::ShiftRight<15>(sum)),
                 hn::Set(d, CuckooPlaces::kPairMultiplier2));
  if constexpr (kXor) {
    const V64 one = hn::Set(d, 1);
    sum = hn::ShiftRight<32>(MulLow32(d, sum, hn::Sub(buckets, one)));
    // The mask is -1 where the table has two buckets or more.
    sum = hn::Sub(sum, hn::VecFromMask(d, hn::Ne(buckets, one)));
    partner = hn::Xor(bucket, sum);
  } else {
    sum = hn::ShiftRight<32>(MulLow32(d, sum, buckets));
    // Both are below 2^32: the difference is negative where its highest bit is set.
    const hn::RebindToSigned<D64> di;
    const V64 difference = hn::Sub(sum, bucket);
    const V64 wrapped = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(di, difference)));
    partner = hn::Add(difference, hn::And(wrapped, buckets));
  }
}

// `bucket` times a number of bytes that is a power of two or three times one.
template <uint64_t kBytes>
HWY_INLINE V64 ByteOffset(V64 bucket) {
  constexpr int kShift = std::countr_zero(kBytes);
  if constexpr (kBytes == uint64_t{1} << kShift) {
    return hn::ShiftLeft<kShift>(bucket);
  } else {
    static_assert(kBytes == uint64_t{3} << kShift);
    return hn::Add(hn::ShiftLeft<kShift + 1>(bucket), hn::ShiftLeft<kShift>(bucket));
  }
}

// A tag in all slots of a word.
template <int kBits, int kSlots>
HWY_INLINE V64 Repeat(V64 tag) {
  V64 repeated = hn::Or(tag, hn::ShiftLeft<kBits>(tag));
  if constexpr (kSlots >= 4) repeated = hn::Or(repeated, hn::ShiftLeft<2 * kBits>(repeated));
  if constexpr (kSlots == 8) repeated = hn::Or(repeated, hn::ShiftLeft<4 * kBits>(repeated));
  return repeated;
}

// The highest bit of each slot of `word` that is not zero; see CuckooBucket::NonZeroSlots.
template <class Bucket>
HWY_INLINE V64 NonZeroSlots(V64 word) {
  const D64 d;
  const V64 other = hn::Set(d, Bucket::kOtherBits);
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

// Tags in one of two buckets. Of each slot a field of Bucket::kFieldBits bits is compared, the tag
// without its lowest kTagShift bits; fields start at bit kWordShift of a word. Where that is not
// the whole tag, the scalar reference decides about the keys that pass.
template <class View>
class PairLookup {
  using Bucket = typename View::Bucket;
  static constexpr int kBits = View::kTagBits;

 public:
  static constexpr size_t kGroup = 8;
  struct Chunk {
    HWY_ALIGN uint64_t first_offsets[kChunkKeys];
    HWY_ALIGN uint64_t second_offsets[kChunkKeys];
    HWY_ALIGN uint64_t tags[kChunkKeys];
  };

  explicit PairLookup(const View& view) : view_(view) {}

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    if (HWY_UNLIKELY(view_.buckets >> 32 != 0)) return PrepareForHugeTable(hashes, chunk);
    if (HWY_UNLIKELY(view_.by_xor)) return PrepareByXor(hashes, chunk);
    PrepareAll<false>(hashes, chunk);
  }

  // A word that is read at a bucket which does not divide a line may end in the next one.
  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const {
    constexpr bool kStraddles = Bucket::kBytes % 3 == 0 || Bucket::kBytes == 2;
    constexpr uint64_t kLastByte = Bucket::kBytes - Bucket::kWordBytes + 7;
    hwy::Prefetch(view_.table + chunk.first_offsets[i]);
    if (kStraddles) hwy::Prefetch(view_.table + chunk.first_offsets[i] + kLastByte);
    hwy::Prefetch(view_.table + chunk.second_offsets[i]);
    if (kStraddles) hwy::Prefetch(view_.table + chunk.second_offsets[i] + kLastByte);
  }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    const D64 d;
    const V64 highest = hn::Set(d, Bucket::kHighestBits);
    uint64_t answers = 0;
    for (size_t j = 0; j < kGroup; j += hn::Lanes(d)) {
      V64 field = hn::Load(d, chunk.tags + i + j);
      if constexpr (Bucket::kTagShift != 0) field = hn::ShiftRight<Bucket::kTagShift>(field);
      V64 pattern = Repeat<Bucket::kFieldBits, Bucket::kWordSlots>(field);
      if constexpr (Bucket::kWordShift != 0) pattern = hn::ShiftLeft<Bucket::kWordShift>(pattern);
      V64 missing = highest;
      for (int word = 0; word < Bucket::kWords; ++word) {
        const std::byte* words = view_.table + word * Bucket::kWordBytes;
        const V64 first = LoadWords(words, chunk.first_offsets + i + j);
        const V64 second = LoadWords(words, chunk.second_offsets + i + j);
        missing = hn::And(missing, hn::And(NonZeroSlots<Bucket>(hn::Xor(first, pattern)),
                                           NonZeroSlots<Bucket>(hn::Xor(second, pattern))));
      }
      answers |= MaskToBits(d, hn::Ne(missing, highest)) << j;
    }
    if constexpr (Bucket::kTagShift != 0) {
      for (uint64_t left = answers; left != 0; left &= left - 1) {
        const size_t key = static_cast<size_t>(std::countr_zero(left));
        if (!HoldsTag(chunk, i + key)) answers &= ~(uint64_t{1} << key);
      }
    }
    return answers;
  }

 private:
  HWY_INLINE bool HoldsTag(const Chunk& chunk, size_t i) const {
    return Bucket::Holds(view_.table + chunk.first_offsets[i], chunk.tags[i]) ||
           Bucket::Holds(view_.table + chunk.second_offsets[i], chunk.tags[i]);
  }

  template <bool kXor>
  HWY_INLINE void PrepareAll(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    const D64 d;
    const V64 buckets = hn::Set(d, view_.buckets);
    const V64 salt = hn::Set(d, view_.salt);
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      V64 tag, bucket, partner;
      PlacesOf<kBits, kXor>(hn::Xor(hn::LoadU(d, hashes + i), salt), buckets, tag, bucket, partner);
      hn::Store(ByteOffset<Bucket::kBytes>(bucket), d, chunk.first_offsets + i);
      hn::Store(ByteOffset<Bucket::kBytes>(partner), d, chunk.second_offsets + i);
      hn::Store(tag, d, chunk.tags + i);
    }
  }
  // Apart, so that its code does not stand between that of the others.
  HWY_NOINLINE void PrepareByXor(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    PrepareAll<true>(hashes, chunk);
  }

  // From 2^32 buckets on, 16 GiB and more: the arithmetic is nothing beside the memory.
  HWY_NOINLINE void PrepareForHugeTable(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    for (size_t i = 0; i < kChunkKeys; ++i) {
      const CuckooPlace place = view_.PlaceOf(hashes[i]);
      chunk.first_offsets[i] = place.bucket * Bucket::kBytes;
      chunk.second_offsets[i] = place.partner * Bucket::kBytes;
      chunk.tags[i] = place.tag;
    }
  }

  const View view_;
};

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
