// Lookups of KmBloom in vectors over keys, in rounds: a round gathers the next probe of all keys of
// a sub-batch that are still undecided, several per vector, and keeps those whose bit is set. Half
// of the absent keys leave in each round, so they cost two gathers each, without a branch per key
// that would be guessed wrong half the time. After a few rounds mostly present keys are left: then
// a round tests two probes, since moving keys costs as much as a gather. In large tables a round
// tests one probe and prefetches some vectors ahead: no line is fetched that the scalar lookup does
// not read.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/kirsch_mitzenmacher_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/kirsch_mitzenmacher.h"
#include "filters/simd/gather-inl.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

using DHash = hn::CappedTag<uint64_t, 8>;
using VHash = hn::Vec<DHash>;

// Full products of the low halves.
HWY_INLINE VHash Mul32(VHash a, VHash b) {
  const hn::Repartition<uint32_t, DHash> d32;
  return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
}

// FastRange64(hash, range); kNarrow: range < 2^32.
template <bool kNarrow>
HWY_INLINE VHash Range64(VHash hash, uint64_t range) {
  const DHash d;
  const VHash low = hn::Set(d, range & 0xffffffffu);
  const VHash hash_high = hn::ShiftRight<32>(hash);
  const VHash middle =
      hn::Add(Mul32(hash_high, low), hn::ShiftRight<32>(Mul32(hash, low)));  // below 2^64
  if constexpr (kNarrow) {
    return hn::ShiftRight<32>(middle);
  } else {
    const VHash high = hn::Set(d, range >> 32);
    const VHash low_middle = hn::And(middle, hn::Set(d, 0xffffffffu));
    return hn::Add(hn::Add(Mul32(hash_high, high), hn::ShiftRight<32>(middle)),
                   hn::ShiftRight<32>(hn::Add(Mul32(hash, high), low_middle)));
  }
}

// FastRange64(low half of hash << 32, range); the high half is not looked at.
template <bool kNarrow>
HWY_INLINE VHash Range32(VHash hash, uint64_t range) {
  const DHash d;
  const VHash result =
      hn::ShiftRight<32>(Mul32(hash, hn::Set(d, range & 0xffffffffu)));
  if constexpr (kNarrow) return result;
  return hn::Add(result, Mul32(hash, hn::Set(d, range >> 32)));
}

// The undecided keys of a sub-batch. T holds positions: 32 bits where they and their sums fit,
// which doubles the keys per vector.
template <class T, KmBloom::Probing kProbing, size_t kSubBatch>
class KmRounds {
  using D = hn::CappedTag<T, 64 / sizeof(T)>;
  using V = hn::Vec<D>;
  static constexpr bool kNarrow = sizeof(T) == 4;
  static constexpr size_t kPadding = 64 / sizeof(T);  // whole vectors are stored at the end

 public:
  using View = KmBloom::FixedView<kProbing>;

  static HWY_INLINE void Words(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                               uint64_t* HWY_RESTRICT words) {
    KmRounds rounds;
    rounds.Hash(view, hashes, n);
    const size_t undecided =
        view.prefetch ? rounds.template AllRounds<true>(view, n)
                      : rounds.template AllRounds<false>(view, n);
    for (size_t w = 0; w < (n + 63) / 64; ++w) words[w] = 0;
    for (size_t i = 0; i < undecided; ++i) {
      words[rounds.keys_[i] / 64] |= uint64_t{1} << (rounds.keys_[i] % 64);
    }
  }

 private:
  HWY_INLINE void Hash(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n) {
    const D d;
    const DHash dh;
    const size_t lanes = hn::Lanes(d);
    const size_t hash_lanes = hn::Lanes(dh);
    const uint64_t bits = view.bits;
    const uint64_t forbidden = view.forbidden_divisor;
    const uint64_t allowed = bits - forbidden;
    const auto start_of = [bits](VHash hash) HWY_ATTR { return Range64<kNarrow>(hash, bits); };
    const auto step_of = [dh, allowed, forbidden](VHash hash) HWY_ATTR {
      const VHash step_hash = Mul32(hash, hn::Set(dh, KmBloom::kStepMultiplier));
      return hn::Add(hn::Add(Range32<kNarrow>(step_hash, allowed),
                             Range32<kNarrow>(step_hash, forbidden)),
                     hn::Set(dh, 1));
    };
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      const VHash hash = hn::LoadU(dh, hashes + i);
      const VHash start = start_of(hash);
      const VHash step = step_of(hash);
      if constexpr (kNarrow) {
        const VHash hash_after = hn::LoadU(dh, hashes + i + hash_lanes);
        hn::Store(hn::ConcatEven(d, hn::BitCast(d, start_of(hash_after)), hn::BitCast(d, start)), d,
                  positions_ + i);
        hn::Store(hn::ConcatEven(d, hn::BitCast(d, step_of(hash_after)), hn::BitCast(d, step)), d,
                  steps_ + i);
      } else {
        hn::Store(start, d, positions_ + i);
        hn::Store(step, d, steps_ + i);
      }
      hn::Store(hn::Iota(d, static_cast<T>(i)), d, keys_ + i);
    }
    for (; i < n; ++i) {
      const auto walk = view.WalkFor(hashes[i]);
      positions_[i] = static_cast<T>(walk.position);
      steps_[i] = static_cast<T>(walk.step);
      keys_[i] = static_cast<T>(i);
    }
  }

  // All probes of n keys. Returns how many have all bits set: they stand in front.
  template <bool kPrefetch>
  HWY_INLINE size_t AllRounds(const View& view, size_t n) {
    constexpr uint32_t kSingleRounds = 2;  // an eighth of the absent keys is left after the next
    size_t undecided = n;
    for (uint32_t i = 0; i < view.k && undecided != 0;) {
      if (kPrefetch || i < kSingleRounds || i + 1 == view.k) {
        undecided = Round<kPrefetch, 1>(view, i, undecided);
        i += 1;
      } else {
        undecided = Round<kPrefetch, 2>(view, i, undecided);
        i += 2;
      }
    }
    return undecided;
  }

  // kProbes probes, from probe `first` on, of the keys in front; those whose bits are set move to
  // the front, so many steps further. Returns how many they are.
  template <bool kPrefetch, int kProbes>
  HWY_INLINE size_t Round(const View& view, uint32_t first, size_t undecided) {
    const D d;
    const hn::RebindToSigned<D> di;
    const size_t lanes = hn::Lanes(d);
    const T* HWY_RESTRICT table = reinterpret_cast<const T*>(view.words);
    const T bits = static_cast<T>(view.bits);
    T growth[kProbes];
    for (int p = 0; p < kProbes; ++p) {
      growth[p] = static_cast<T>((first + p + uint64_t{1}) % view.bits);
    }
    constexpr T kInWord = sizeof(T) * 8 - 1;
    constexpr int kWordShift = sizeof(T) == 4 ? 5 : 6;
    // Sums are below twice the table: the smaller of the two is the one that did not wrap.
    const auto add_mod = [d, bits](V a, V b) HWY_ATTR {
      const V sum = hn::Add(a, b);
      return hn::Min(sum, hn::Sub(sum, hn::Set(d, bits)));
    };
    // Lanes behind the last key start at position 0 and step by 0: every probe of theirs is inside
    // the table too.
    hn::StoreU(hn::Zero(d), d, positions_ + undecided);
    hn::StoreU(hn::Zero(d), d, steps_ + undecided);
    if (kPrefetch) Prefetch(view, 0, std::min(undecided, kAhead));
    size_t left = 0;
    for (size_t from = 0; from < undecided; from += lanes) {
      if (kPrefetch && from + kAhead < undecided) Prefetch(view, from + kAhead, lanes);
      V position = hn::Load(d, positions_ + from);
      V step = hn::Load(d, steps_ + from);
      const V key = hn::Load(d, keys_ + from);
      hn::Vec<decltype(di)> tested = hn::Set(di, -1);  // the sign bits count
      for (int p = 0; p < kProbes; ++p) {
        const V word = GatherWords(d, table, hn::ShiftRight<kWordShift>(position));
        const V bit_on_top = hn::Shl(word, hn::AndNot(position, hn::Set(d, kInWord)));
        tested = hn::And(tested, hn::BitCast(di, bit_on_top));
        position = add_mod(position, step);
        if constexpr (kProbing == KmBloom::Probing::kEnhanced) {
          step = add_mod(step, hn::Set(d, growth[p]));
        }
      }
      auto set = hn::RebindMask(d, hn::Lt(tested, hn::Zero(di)));
      if (from + lanes > undecided) set = hn::And(set, hn::FirstN(d, undecided - from));
      // Never ahead of what was read.
      StoreSelected(d, position, set, positions_ + left);
      StoreSelected(d, step, set, steps_ + left);
      StoreSelected(d, key, set, keys_ + left);
      left += hn::CountTrue(d, set);
    }
    return left;
  }

  // Reads up to a vector behind the last key: positions of earlier rounds, or 0.
  HWY_INLINE void Prefetch(const View& view, size_t first, size_t count) const {
    for (size_t i = first; i < first + count; ++i) hwy::Prefetch(view.words + positions_[i] / 64);
  }

  // Keys between the prefetch of a line and its use: more than the misses that a core can have
  // in flight.
  static constexpr size_t kAhead = 64;

  HWY_ALIGN T positions_[kSubBatch + kPadding];
  HWY_ALIGN T steps_[kSubBatch + kPadding];
  HWY_ALIGN T keys_[kSubBatch + kPadding];
};

#endif  // HWY_TARGET != HWY_SCALAR

struct KmAnswer {
  static constexpr size_t kSubBatch = 1024;

  template <class View>
  static void Words(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                    uint64_t* HWY_RESTRICT words) {
#if HWY_TARGET == HWY_SCALAR
    for (size_t w = 0; w < (n + 63) / 64; ++w) words[w] = 0;
    for (size_t i = 0; i < n; ++i) {
      words[i / 64] |= uint64_t{view.MayContain(hashes[i])} << (i % 64);
    }
#else
    constexpr uint64_t kMaxNarrowBits = uint64_t{1} << 31;
    if (view.bits <= kMaxNarrowBits) {
      KmRounds<uint32_t, View::kFixedProbing, kSubBatch>::Words(view, hashes, n, words);
    } else {
      KmRounds<uint64_t, View::kFixedProbing, kSubBatch>::Words(view, hashes, n, words);
    }
#endif
  }
};

Kernel<KmBloom::View> KmBloomKernel() { return BatchedLoops<KmBloom::View, KmAnswer>::Make(); }

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(KmBloomKernel);

std::span<const Kernel<KmBloom::View>> KmBloom::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(KmBloomKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
