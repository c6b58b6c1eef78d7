// Batched lookups of Bloom filters whose probes fall anywhere, compiled once per target: in vectors
// over keys, in rounds. A round gathers the next probe of all keys of a sub-batch that are still
// undecided, several per vector, and keeps those whose bit is set. Half of the absent keys leave in
// each round, so they cost two probes each, without a branch per key that would be guessed wrong
// half the time. After a few rounds mostly present keys are left: then a round tests two probes,
// since moving keys costs as much as a gather. In large tables a round tests one probe and
// prefetches some vectors ahead, at its end for the next round: no line is fetched that the scalar
// lookup does not read.

#if defined(FILTERBENCH_FILTERS_BLOOM_PROBE_ROUNDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_BLOOM_PROBE_ROUNDS_INL_H_
#undef FILTERBENCH_FILTERS_BLOOM_PROBE_ROUNDS_INL_H_
#else
#define FILTERBENCH_FILTERS_BLOOM_PROBE_ROUNDS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "filters/bloom/bit_array.h"
#include "filters/simd/gather-inl.h"
#include "filters/simd/hwy_compat-inl.h"
#include "filters/simd/loops-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// `Probes` says how keys become positions:
//   T                          uint32_t or uint64_t, the lanes of states and positions
//   D                          the vectors of T
//   kMaxProbes                 the largest k
//   kStates                    values that a key carries from probe to probe: 1, the state, or 2, the
//                              state and a step; with 1, `step` below is anything and stays unused
//   kPositionIsState           the state is the position of the next probe; otherwise positions are
//                              dear, and are computed for some vectors before the first is tested
//   Begin(hashes, state, step) both, before probe 0, of a vector of T keys
//   Position(state, i)         position of probe i, in [0, bits), from a vector of states
//   Next(state, step, i)       from probe i to the next
// Zeros are states and steps too: those of lanes without a key. Vectors that are variables, not
// elements of an array: those of SVE can be nothing else.
template <class Probes, bool kPrefetch>
class ProbeRounds {
  using T = typename Probes::T;
  using D = typename Probes::D;
  using V = hn::Vec<D>;
  static constexpr size_t kStates = Probes::kStates;
  static_assert(kStates == 1 || kStates == 2);
  static constexpr size_t kPadding = 64 / sizeof(T);  // whole vectors are stored at the end
  static constexpr bool kKeepPositions = !Probes::kPositionIsState;
  static constexpr uint32_t kMaxProbesPerRound = kPrefetch ? 1 : 2;

 public:
  // Small enough that all of it stays in L1 beside the lines that are on their way.
  static constexpr size_t kSubBatch = 4096 / sizeof(T);

  ProbeRounds(const Probes& probes, const uint64_t* words, uint32_t k)
      : probes_(probes), table_(reinterpret_cast<const T*>(words)), k_(k) {}

  // Number of answers `maybe` of n <= kSubBatch lookups, which stand in front of keys().
  HWY_INLINE size_t LookUp(const uint64_t* HWY_RESTRICT hashes, size_t n) {
    constexpr uint32_t kSingleRounds = 2;  // an eighth of the absent keys is left after the next
    Begin(hashes, n);
    prefetched_ = 0;
    size_t undecided = n;
    for (uint32_t i = 0; i < k_ && undecided != 0;) {
      if (kPrefetch || i < kSingleRounds || i + 1 == k_) {
        undecided = Round<1>(i, undecided);
        i += 1;
      } else {
        undecided = Round<2>(i, undecided);
        i += 2;
      }
    }
    return undecided;
  }
  const T* keys() const { return keys_; }

 private:
  HWY_INLINE void Begin(const uint64_t* HWY_RESTRICT hashes, size_t n) {
    const size_t lanes = hn::Lanes(D());
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) BeginVector(hashes + i, i);
    if (i == n) return;
    HWY_ALIGN uint64_t last_hashes[kPadding] = {};
    std::copy(hashes + i, hashes + n, last_hashes);
    BeginVector(last_hashes, i);
  }

  HWY_INLINE void BeginVector(const uint64_t* HWY_RESTRICT hashes, size_t first) {
    const D d;
    V state = hn::Zero(d);
    V step = hn::Zero(d);
    probes_.Begin(hashes, state, step);
    hn::Store(state, d, states_[0] + first);
    if constexpr (kStates == 2) hn::Store(step, d, states_[1] + first);
    hn::Store(hn::Iota(d, static_cast<T>(first)), d, keys_ + first);
  }

  // kProbes probes, from probe `first` on, of the keys in front; those whose bits are set move to
  // the front, so many steps further. Returns how many they are.
  template <uint32_t kProbes>
  HWY_INLINE size_t Round(uint32_t first, size_t undecided) {
    const D d;
    const hn::RebindToSigned<D> di;
    const size_t lanes = hn::Lanes(d);
    constexpr T kInWord = sizeof(T) * 8 - 1;
    constexpr int kWordShift = sizeof(T) == 4 ? 5 : 6;
    // Lanes behind the last key: every probe of theirs is inside the table too.
    for (size_t s = 0; s < kStates; ++s) hn::StoreU(hn::Zero(d), d, states_[s] + undecided);
    size_t ahead = prefetched_;
    size_t next_ahead = 0;
    size_t left = 0;
    for (size_t from = 0; from < undecided; from += lanes) {
      if (kPrefetch || (kKeepPositions && ahead == from)) {
        for (; ahead < std::min(from + kAhead, undecided); ahead += lanes) {
          Prepare<kProbes>(first, ahead);
        }
      }
      if (kPrefetch && ahead >= undecided && next_ahead + lanes <= left && first + 1 < k_) {
        Prepare<1>(first + 1, next_ahead);
        next_ahead += lanes;
      }
      V state = hn::Load(d, states_[0] + from);
      V step = LoadStep(from);
      const V keys = hn::Load(d, keys_ + from);
      auto tested = hn::Set(di, -1);  // the sign bits count
      for (uint32_t p = 0; p < kProbes; ++p) {
        const V position = kKeepPositions ? hn::Load(d, positions_[p] + from)
                                          : probes_.Position(state, first + p);
        const V word = GatherWords(d, table_, hn::ShiftRight<kWordShift>(position));
        const V bit_on_top = hn::Shl(word, hn::AndNot(position, hn::Set(d, kInWord)));
        tested = hn::And(tested, hn::BitCast(di, bit_on_top));
        probes_.Next(state, step, first + p);
      }
      auto set = hn::RebindMask(d, hn::Lt(tested, hn::Zero(di)));
      if (from + lanes > undecided) set = hn::And(set, hn::FirstN(d, undecided - from));
      // Never ahead of what was read.
      StoreSelected(d, state, set, states_[0] + left);
      if constexpr (kStates == 2) StoreSelected(d, step, set, states_[1] + left);
      StoreSelected(d, keys, set, keys_ + left);
      left += hn::CountTrue(d, set);
    }
    prefetched_ = next_ahead;
    return left;
  }

  // What a vector of keys, from key `from` on, needs before a round from probe `first` on: its
  // positions and lines.
  template <uint32_t kProbes>
  HWY_INLINE void Prepare(uint32_t first, size_t from) {
    const D d;
    const T* positions = states_[0];
    if constexpr (kKeepPositions) {
      V state = hn::Load(d, states_[0] + from);
      V step = LoadStep(from);
      for (uint32_t p = 0; p < kProbes; ++p) {
        hn::Store(probes_.Position(state, first + p), d, positions_[p] + from);
        probes_.Next(state, step, first + p);
      }
      positions = positions_[0];
    }
    if constexpr (kPrefetch) {
      for (size_t j = from; j < from + hn::Lanes(d); ++j) {
        hwy::Prefetch(table_ + positions[j] / (sizeof(T) * 8));
      }
    }
  }

  HWY_INLINE V LoadStep(size_t from) const {
    const D d;
    if constexpr (kStates == 2) return hn::Load(d, states_[1] + from);
    return hn::Zero(d);
  }

  // Keys between the prefetch of a line and its use: more than the misses that a core can have
  // in flight.
  static constexpr size_t kAhead = 64;

  const Probes probes_;
  const T* const table_;
  const uint32_t k_;
  size_t prefetched_;  // keys in front whose next line is on its way
  HWY_ALIGN T states_[kStates][kSubBatch + kPadding];
  HWY_ALIGN T keys_[kSubBatch + kPadding];
  HWY_ALIGN T positions_[kMaxProbesPerRound][kKeepPositions ? kSubBatch + kPadding : 1];
};

// Sets the bits of n keys that lie in `part`. Where prefetching, the lines of a batch of keys are
// asked for one by one between the writes of the batch before.
template <bool kPrefetch, bool kWholeTable, class Probes>
void InsertProbes(const Probes& probes, uint64_t* HWY_RESTRICT words, uint32_t k,
                             const uint64_t* HWY_RESTRICT hashes, size_t n, BitRange part) {
  using T = typename Probes::T;
  using D = typename Probes::D;
  constexpr size_t kBatch = 32;
  const D d;
  const size_t lanes = hn::Lanes(d);
  const auto part_first = hn::Set(d, static_cast<T>(part.first));
  const auto part_size = hn::Set(d, static_cast<T>(part.size));
  // Whole vectors are stored at the end.
  HWY_ALIGN T positions[2][kBatch * Probes::kMaxProbes + 64 / sizeof(T)];
  size_t counts[2] = {0, 0};
  const auto prepare = [&](size_t first, T* HWY_RESTRICT out) HWY_ATTR {
    HWY_ALIGN uint64_t last_hashes[kBatch];
    const uint64_t* batch = hashes + first;
    if (first + kBatch > n) {
      // The last key again and again sets no other bits.
      std::fill(std::copy(batch, hashes + n, last_hashes), last_hashes + kBatch, hashes[n - 1]);
      batch = last_hashes;
    }
    size_t count = 0;
    for (size_t i = 0; i < kBatch; i += lanes) {
      hn::Vec<D> state = hn::Zero(d);
      hn::Vec<D> step = hn::Zero(d);
      probes.Begin(batch + i, state, step);
      for (uint32_t p = 0; p < k; ++p) {
        const hn::Vec<D> position = probes.Position(state, p);
        if constexpr (kWholeTable) {
          hn::Store(position, d, out + count);
          count += lanes;
        } else {
          const auto mine = hn::Lt(hn::Sub(position, part_first), part_size);
          StoreSelected(d, position, mine, out + count);
          count += hn::CountTrue(d, mine);
        }
        probes.Next(state, step, p);
      }
    }
    return count;
  };
  for (size_t first = 0, b = 0; first < n; first += kBatch, b ^= 1) {
    if (!kPrefetch || first == 0) counts[b] = prepare(first, positions[b]);
    size_t next_count = 0;
    if (kPrefetch && first + kBatch < n) {
      next_count = counts[b ^ 1] = prepare(first + kBatch, positions[b ^ 1]);
    }
    const T* HWY_RESTRICT now = positions[b];
    const T* HWY_RESTRICT next = positions[b ^ 1];
    const size_t count = counts[b];
    size_t p = 0;
    if constexpr (kPrefetch) {
      for (; p < std::min(count, next_count); ++p) {
        hwy::Prefetch(words + next[p] / 64);
        SetBit(words, now[p]);
      }
      for (size_t q = p; q < next_count; ++q) hwy::Prefetch(words + next[q] / 64);
    }
    for (; p < count; ++p) SetBit(words, now[p]);
  }
}

// Batched lookups and insertion of a filter. `ProbesOf<V>::Call(view, use)`, for the specialised
// view V, calls `use` with the Probes of the view.
template <class View, template <class> class ProbesOf>
struct RoundLoops {
  template <class Rounds>
  static HWY_INLINE uint64_t RunRounds(Rounds rounds, const uint64_t* HWY_RESTRICT hashes, size_t n,
                                       uint64_t* HWY_RESTRICT bits) {
    static_assert(Rounds::kSubBatch % 64 == 0);
    uint64_t count = 0;
    if (bits != nullptr) std::fill(bits, bits + (n + 63) / 64, 0);
    for (size_t i = 0; i < n; i += Rounds::kSubBatch) {
      const size_t positives = rounds.LookUp(hashes + i, std::min(Rounds::kSubBatch, n - i));
      count += positives;
      if (bits == nullptr) continue;
      uint64_t* HWY_RESTRICT words = bits + i / 64;
      const auto* HWY_RESTRICT keys = rounds.keys();
      for (size_t j = 0; j < positives; ++j) words[keys[j] / 64] |= uint64_t{1} << (keys[j] % 64);
    }
    return count;
  }

  static uint64_t Run(const View& any_view, const uint64_t* hashes, size_t n, uint64_t* bits) {
    return SpecializeView(any_view, [=](const auto& view) HWY_ATTR {
      using FixedView = std::decay_t<decltype(view)>;
      return ProbesOf<FixedView>::Call(view, [&](const auto& probes) HWY_ATTR {
        using Probes = std::decay_t<decltype(probes)>;
        if (view.prefetch) {
          return RunRounds(ProbeRounds<Probes, true>(probes, view.words, view.k), hashes, n, bits);
        }
        return RunRounds(ProbeRounds<Probes, false>(probes, view.words, view.k), hashes, n, bits);
      });
    });
  }

  static void Insert(const View& any_view, uint64_t* words, const uint64_t* hashes, size_t n,
                     BitRange part) {
    SpecializeView(any_view, [=](const auto& view) HWY_ATTR {
      ProbesOf<std::decay_t<decltype(view)>>::Call(view, [&](const auto& probes) HWY_ATTR {
        using Probes = std::decay_t<decltype(probes)>;
        const auto insert = part.size >= view.bits
                                ? (view.prefetch ? &InsertProbes<true, true, Probes>
                                                 : &InsertProbes<false, true, Probes>)
                                : (view.prefetch ? &InsertProbes<true, false, Probes>
                                                 : &InsertProbes<false, false, Probes>);
        insert(probes, words, view.k, hashes, n, part);
      });
    });
  }

  static Kernel<View> Make() { return MakeKernel<View, &Run>(); }
};

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
