// Lookups of KmBloom in vectors over keys, in rounds: round i gathers probe i of all keys of a
// sub-batch that are still undecided, several per vector, and keeps those whose bit is set. Half of
// the absent keys leave in each round, so they cost two gathers each, without a branch per key that
// would be guessed wrong half the time. In large tables the lines of a round are prefetched when the
// round before leaves the keys over: as many misses are in flight as the processor allows, and no
// line is fetched that the scalar lookup would not read.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/kirsch_mitzenmacher_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/kirsch_mitzenmacher.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// High halves of the 128-bit products of `a` with a factor.
template <bool kNarrow>  // the factor is below 2^32
class MulHighBy {
  using D = hn::CappedTag<uint64_t, 8>;
  using V = hn::Vec<D>;

 public:
  explicit MulHighBy(uint64_t factor)
      : low_(hn::Set(D(), factor & 0xffffffffu)), high_(hn::Set(D(), factor >> 32)) {}

  HWY_INLINE V operator()(V a) const {
    const V a_high = hn::ShiftRight<32>(a);
    const V low_low = Mul32(a, low_);
    const V high_low = Mul32(a_high, low_);
    const V middle = hn::Add(high_low, hn::ShiftRight<32>(low_low));  // below 2^64
    if constexpr (kNarrow) {
      return hn::ShiftRight<32>(middle);
    } else {
      const V low_high = hn::Add(Mul32(a, high_), hn::And(middle, hn::Set(D(), 0xffffffffu)));
      return hn::Add(hn::Add(Mul32(a_high, high_), hn::ShiftRight<32>(middle)),
                     hn::ShiftRight<32>(low_high));
    }
  }

 private:
  // Full products of the low halves.
  static HWY_INLINE V Mul32(V a, V b) {
    const hn::Repartition<uint32_t, D> d32;
    return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
  }

  V low_;
  V high_;
};

// The undecided keys of a sub-batch. T holds positions: 32 bits where they and their sums fit,
// which doubles the keys per vector.
template <class T, KmBloom::Probing kProbing, size_t kSubBatch>
class KmRounds {
  using D = hn::CappedTag<T, 64 / sizeof(T)>;
  using V = hn::Vec<D>;
  using DHash = hn::CappedTag<uint64_t, 8>;
  static constexpr bool kNarrow = sizeof(T) == 4;
  static constexpr size_t kPadding = 64 / sizeof(T);  // whole vectors are stored at the end

 public:
  using View = KmBloom::FixedView<kProbing>;

  static HWY_INLINE void Words(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                               uint64_t* HWY_RESTRICT words) {
    KmRounds rounds;
    rounds.Hash(view, hashes, n);
    size_t undecided = n;
    for (uint32_t i = 0; i < view.k && undecided != 0; ++i) {
      undecided = rounds.Round(view, i, undecided);
    }
    for (size_t w = 0; w < (n + 63) / 64; ++w) words[w] = 0;
    for (size_t i = 0; i < undecided; ++i) {
      words[rounds.keys_[i] / 64] |= uint64_t{1} << (rounds.keys_[i] % 64);
    }
  }

 private:
  HWY_INLINE void Hash(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n) {
    const D d;
    const DHash dh;
    const MulHighBy<kNarrow> by_bits(view.bits);
    const MulHighBy<kNarrow> by_allowed(view.bits - view.forbidden_divisor);
    const MulHighBy<kNarrow> by_forbidden(view.forbidden_divisor);
    const size_t lanes = hn::Lanes(d);
    const size_t hash_lanes = hn::Lanes(dh);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      const auto start_and_step = [&](size_t at, auto& start, auto& step) HWY_ATTR {
        const auto hash = hn::LoadU(dh, hashes + at);
        const auto second = hn::Mul(hash, hn::Set(dh, KmBloom::kStepMultiplier));
        start = by_bits(hash);
        step = hn::Add(hn::Add(by_allowed(second), by_forbidden(second)), hn::Set(dh, 1));
      };
      auto start = hn::Undefined(dh);
      auto step = hn::Undefined(dh);
      start_and_step(i, start, step);
      if constexpr (kNarrow) {
        auto start_high = hn::Undefined(dh);
        auto step_high = hn::Undefined(dh);
        start_and_step(i + hash_lanes, start_high, step_high);
        hn::Store(hn::ConcatEven(d, hn::BitCast(d, start_high), hn::BitCast(d, start)), d,
                  positions_ + i);
        hn::Store(hn::ConcatEven(d, hn::BitCast(d, step_high), hn::BitCast(d, step)), d,
                  steps_ + i);
      } else {
        hn::Store(start, d, positions_ + i);
        hn::Store(step, d, steps_ + i);
      }
      hn::Store(hn::Iota(d, static_cast<T>(i)), d, keys_ + i);
      if (view.prefetch) Prefetch(view, i, lanes);
    }
    for (; i < n; ++i) {
      const auto walk = view.WalkFor(hashes[i]);
      positions_[i] = static_cast<T>(walk.position);
      steps_[i] = static_cast<T>(walk.step);
      keys_[i] = static_cast<T>(i);
      if (view.prefetch) Prefetch(view, i, 1);
    }
  }

  // Probe i of the first `undecided` keys; those whose bit is set move to the front, one step
  // further. Returns how many they are.
  HWY_INLINE size_t Round(const View& view, uint32_t i, size_t undecided) {
    const D d;
    const hn::RebindToSigned<D> di;
    const size_t lanes = hn::Lanes(d);
    const T* HWY_RESTRICT table = reinterpret_cast<const T*>(view.words);
    const V bits = hn::Set(d, static_cast<T>(view.bits));
    const V growth = hn::Set(d, static_cast<T>((i + uint64_t{1}) % view.bits));
    constexpr T kInWord = sizeof(T) * 8 - 1;
    constexpr int kWordShift = sizeof(T) == 4 ? 5 : 6;
    // Sums are below twice the table: the smaller of the two is the one that did not wrap.
    const auto add_mod = [bits](V a, V b) HWY_ATTR {
      const V sum = hn::Add(a, b);
      return hn::Min(sum, hn::Sub(sum, bits));
    };
    // Lanes behind the last key gather position 0.
    hn::StoreU(hn::Zero(d), d, positions_ + undecided);
    size_t left = 0;
    for (size_t from = 0; from < undecided; from += lanes) {
      const V position = hn::Load(d, positions_ + from);
      const V key = hn::Load(d, keys_ + from);
      V step = hn::Load(d, steps_ + from);
      const V word =
          hn::GatherIndex(d, table, hn::BitCast(di, hn::ShiftRight<kWordShift>(position)));
      const V bit_on_top = hn::Shl(word, hn::AndNot(position, hn::Set(d, kInWord)));
      auto set = hn::RebindMask(d, hn::Lt(hn::BitCast(di, bit_on_top), hn::Zero(di)));
      if (from + lanes > undecided) set = hn::And(set, hn::FirstN(d, undecided - from));
      const V next = add_mod(position, step);
      if constexpr (kProbing == KmBloom::Probing::kEnhanced) step = add_mod(step, growth);
      // Never ahead of what was read.
      const LaneSelection<D> selection(d, set);
      selection.Store(next, d, positions_ + left);
      selection.Store(step, d, steps_ + left);
      selection.Store(key, d, keys_ + left);
      if (view.prefetch && i + 1 < view.k) Prefetch(view, left, selection.count());
      left += selection.count();
    }
    return left;
  }

  HWY_INLINE void Prefetch(const View& view, size_t first, size_t count) const {
    for (size_t i = first; i < first + count; ++i) hwy::Prefetch(view.words + positions_[i] / 64);
  }

  HWY_ALIGN T positions_[kSubBatch + kPadding];
  HWY_ALIGN T steps_[kSubBatch + kPadding];
  HWY_ALIGN T keys_[kSubBatch + kPadding];
};

#endif  // HWY_TARGET != HWY_SCALAR

struct KmAnswer {
  static constexpr size_t kSubBatch = 512;

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
