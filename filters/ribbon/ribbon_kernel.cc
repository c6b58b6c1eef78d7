// Lookups of Ribbon in vectors. Lanes are columns: the words of a block's columns lie side by side,
// so that one load, one AND with a piece of the key's row and one XOR serve 2, 4 or 8 columns.
//
// The parity of each lane is not counted key by key (counting bits in vectors is emulated before
// AVX-512 VPOPCNTDQ): the lanes of eight keys are folded together, each fold XORs the halves of all
// lanes and packs two vectors into one, until a vector holds a byte per key and column; a table of
// 16 nibbles gives their parity: 7 folds of 4 instructions for 8 keys.
//
// Chunks of 64 keys: their rows and addresses are computed in vectors into L1 (and prefetched a
// chunk ahead where the table is large). Then a group of columns is tested for all keys. Few
// negatives survive one group: the next one is tested for the survivors only, again eight at once.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/ribbon/ribbon_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include <algorithm>
#include <bit>
#include <type_traits>

#include "filters/ribbon/ribbon.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

inline constexpr size_t kRibbonChunk = 64;

// 2, 4 or 8 columns of a key, or as many keys.
using RibbonLanes = hn::CappedTag<uint64_t, 8>;

template <class V>
HWY_INLINE V Fold(V x) {
  return hn::Xor(x, hn::ShiftRight<32>(x));
}

// Upper half of the product with `factor`. The lower 32 bits of each lane enter MulEven.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V MulHigh(D d, V x, uint64_t factor) {
  const hn::Repartition<uint32_t, D> d32;
  const V low_factor = hn::Set(d, factor & 0xffffffff);
  const auto mul = [&](V a, V b)
                       HWY_ATTR { return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b)); };
  const V x_high = hn::ShiftRight<32>(x);
  const V middle = hn::Add(mul(x_high, low_factor), hn::ShiftRight<32>(mul(x, low_factor)));
  if (factor >> 32 == 0) return hn::ShiftRight<32>(middle);
  const V high_factor = hn::Set(d, factor >> 32);
  const V other_middle = hn::Add(mul(x, high_factor), hn::And(middle, hn::Set(d, 0xffffffff)));
  return hn::Add(mul(x_high, high_factor),
                 hn::Add(hn::ShiftRight<32>(middle), hn::ShiftRight<32>(other_middle)));
}

// XORs the halves of all T2 lanes of a and b (T2 twice as wide as T) and interleaves the results: T
// lane 2i comes from a, 2i + 1 from b.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V FoldPair(D d, V a, V b) {
  using T = hn::TFromD<D>;
  const V low_a_high_b = hn::OddEven(b, a);
  const V low_b_high_a = hn::OddEven(a, b);
  if constexpr (sizeof(T) == 4) {
    return hn::Xor(low_a_high_b, hn::Shuffle2301(low_b_high_a));
  } else {
    static constexpr uint8_t kSwapPairs2[16] = {2,  3,  0, 1, 6,  7,  4,  5,
                                                10, 11, 8, 9, 14, 15, 12, 13};
    static constexpr uint8_t kSwapPairs1[16] = {1, 0, 3,  2,  5,  4,  7,  6,
                                                9, 8, 11, 10, 13, 12, 15, 14};
    const hn::Repartition<uint8_t, D> d8;
    const auto swap = hn::LoadDup128(d8, sizeof(T) == 2 ? kSwapPairs2 : kSwapPairs1);
    return hn::Xor(low_a_high_b,
                   hn::BitCast(d, hn::TableLookupBytes(hn::BitCast(d8, low_b_high_a), swap)));
  }
}

template <class View, bool kMixed>
class RibbonChunk {
  using Row = typename View::Row;
  static constexpr size_t kPieces = View::kPieces;
  // One index per key gives all pieces where all blocks have as many words.
  static constexpr size_t kIndices = kMixed ? kPieces : 1;
  static constexpr size_t kKeysAtOnce = 8;
  // With more survivors than that, to test all 64 keys is cheaper than to collect them.
  static constexpr size_t kManySurvivors = 2 * kKeysAtOnce;

 public:
  // Functions over a whole chunk are not inlined: a call for 64 keys is nothing, and their copies
  // would be most of the binary.

  // Rows and addresses of n <= kRibbonChunk keys.
  HWY_INLINE void Prepare(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n) {
    n_ = n;
    if (HWY_LIKELY(n == kRibbonChunk)) {
      PrepareFull(view, hashes, n);
    } else {
      // Whole folds: keys that nobody asked for read addresses that are valid for any hash.
      HWY_ALIGN uint64_t padded[kRibbonChunk] = {};
      for (size_t i = 0; i < n; ++i) padded[i] = hashes[i];
      PrepareFull(view, padded, (n + kKeysAtOnce - 1) / kKeysAtOnce * kKeysAtOnce);
    }
  }

  HWY_INLINE void Prefetch(const View& view) const {
    constexpr size_t kWordsPerLine = kCacheLineBytes / sizeof(uint64_t);
    const size_t columns = view.shape.max_columns();
    const size_t last = kPieces * columns - 1;
    for (size_t i = 0; i < n_; ++i) {
      const uint64_t* first = view.words + index_[0][i];
      if (columns <= kWordsPerLine) {
        for (size_t word = 0; word < last; word += kWordsPerLine) hwy::Prefetch(first + word);
        hwy::Prefetch(first + last);
      } else {
        // Most lookups end in the first group of columns.
        for (size_t p = 0; p < kPieces; ++p) hwy::Prefetch(Block(view, p, i));
      }
    }
  }

  HWY_INLINE uint64_t Answers(const View& view) const {
    const uint32_t lanes = static_cast<uint32_t>(hn::Lanes(RibbonLanes()));
    const uint32_t columns = view.shape.max_columns();
    uint64_t word = MatchAll(view, 0) & (~uint64_t{0} >> (kRibbonChunk - n_));
    for (uint32_t first = lanes; first < columns && word != 0; first += lanes) {
      word = hwy::PopCount(word) > kManySurvivors ? word & MatchAll(view, first)
                                                  : MatchSurvivors(view, word, first);
    }
    return word;
  }

 private:
  HWY_INLINE const uint64_t* Block(const View& view, size_t piece, size_t key) const {
    if constexpr (kMixed) return view.words + index_[piece][key];
    return view.words + index_[0][key] + piece * view.shape.columns;
  }

  HWY_NOINLINE void PrepareFull(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n) {
    const RibbonLanes d;
    const hn::Repartition<uint32_t, RibbonLanes> d32;
    using V = hn::Vec<RibbonLanes>;
    const V one = hn::Set(d, 1);
    const V low6 = hn::Set(d, 63);
    const V columns = hn::Set(d, view.shape.columns);
    const V first_wide = hn::Set(d, view.shape.first_wide_block);
    for (size_t i = 0; i < n; i += hn::Lanes(d)) {
      const V mixed = hn::Mul(hn::Xor(hn::LoadU(d, hashes + i), hn::Set(d, view.salt)),
                              hn::Set(d, RibbonHash::kMixMultiplier));
      const V start = MulHigh(d, mixed, view.starts);
      const V low = Fold(hn::Mul(Fold(mixed), hn::Set(d, RibbonHash::kRowMultiplier)));
      const V row_low = hn::Or(low, one);

      // Blocks are below 2^31, so that products and maxima of 32 bits suffice.
      V block = hn::ShiftRight<6>(start);
      for (size_t p = 0; p < kIndices; ++p) {
        V index = hn::MulEven(hn::BitCast(d32, block), hn::BitCast(d32, columns));
        if constexpr (kMixed) {
          const auto past = hn::Max(hn::BitCast(d32, block), hn::BitCast(d32, first_wide));
          index = hn::Add(index, hn::Sub(hn::BitCast(d, past), first_wide));
          block = hn::Add(block, one);
        }
        hn::Store(index, d, index_[p] + i);
      }

      const V offset = hn::And(start, low6);
      const V from_before = hn::Xor(offset, low6);  // after a shift by 1: 64 is no valid shift
      hn::Store(hn::Shl(row_low, offset), d, piece_[0] + i);
      V next = hn::Shr(hn::ShiftRight<1>(row_low), from_before);
      V last_mixed = low;
      if constexpr (sizeof(Row) == 16) {
        const V high = Fold(hn::Mul(low, hn::Set(d, RibbonHash::kHighRowMultiplier)));
        hn::Store(hn::Or(next, hn::Shl(high, offset)), d, piece_[1] + i);
        next = hn::Shr(hn::ShiftRight<1>(high), from_before);
        last_mixed = high;
      }
      hn::Store(next, d, piece_[kPieces - 1] + i);
      if constexpr (!View::kHomogeneous) {
        hn::Store(
            hn::ShiftRight<32>(hn::Mul(last_mixed, hn::Set(d, RibbonHash::kResultMultiplier))), d,
            result_ + i);
      }
    }
  }

  // Columns [first, first + lanes) of a key, each to be reduced to its parity.
  HWY_INLINE hn::Vec<RibbonLanes> Products(const View& view, size_t key, uint32_t first) const {
    const RibbonLanes d;
    auto sum = hn::And(hn::LoadU(d, Block(view, 0, key) + first), hn::Set(d, piece_[0][key]));
    for (size_t p = 1; p < kPieces; ++p) {
      sum = hn::Xor(sum,
                    hn::And(hn::LoadU(d, Block(view, p, key) + first), hn::Set(d, piece_[p][key])));
    }
    return sum;
  }

  using Bytes = hn::Repartition<uint8_t, RibbonLanes>;

  // Which columns of a group count. Bit j of a key's byte is column first + j, whose parity stands
  // in lane j.
  struct Group {
    Group(const RibbonShape& shape, uint32_t first_column) : first(first_column) {
      const uint32_t lanes = static_cast<uint32_t>(hn::Lanes(RibbonLanes()));
      for (uint32_t j = 0; j < lanes; ++j) {
        const uint64_t bit = uint64_t{0x0101010101010101} << j;
        always[j] = first + j < shape.columns ? bit : 0;
        if_wide[j] = first + j == shape.columns ? bit : 0;
      }
      has_wide_column = kMixed && first <= shape.columns && shape.columns < first + lanes;
      first_wide_index = static_cast<int64_t>(shape.WordIndex(shape.first_wide_block));
    }

    uint32_t first;
    bool has_wide_column;
    int64_t first_wide_index;
    HWY_ALIGN uint64_t always[8];
    HWY_ALIGN uint64_t if_wide[8];
  };

  HWY_INLINE uint8_t Expected(const Group& group, size_t key) const {
    return static_cast<uint8_t>(result_[key] >> group.first);
  }
  HWY_INLINE uint8_t Wide(const Group& group, size_t key) const {
    return static_cast<int64_t>(index_[0][key]) > group.first_wide_index - 1 ? 0xff : 0;
  }

  HWY_INLINE hn::Vec<hn::Repartition<uint32_t, RibbonLanes>> FoldKeys(const View& view,
                                                                      size_t key_a, size_t key_b,
                                                                      uint32_t first) const {
    const hn::Repartition<uint32_t, RibbonLanes> d32;
    return FoldPair(d32, hn::BitCast(d32, Products(view, key_a, first)),
                    hn::BitCast(d32, Products(view, key_b, first)));
  }

  HWY_INLINE hn::Vec<hn::Repartition<uint16_t, RibbonLanes>> FoldKeys(const View& view,
                                                                      size_t key_a, size_t key_b,
                                                                      size_t key_c, size_t key_d,
                                                                      uint32_t first) const {
    const hn::Repartition<uint16_t, RibbonLanes> d16;
    return FoldPair(d16, hn::BitCast(d16, FoldKeys(view, key_a, key_b, first)),
                    hn::BitCast(d16, FoldKeys(view, key_c, key_d, first)));
  }

  // Bit j: key(j) agrees in all of its columns of the group. `expected` and `wide` hold a byte per
  // key. The loads reach at most 7 words beyond the table, inside its slack.
  template <class Key>
  HWY_INLINE uint64_t MatchEight(const View& view, const Group& group, Key key, uint64_t expected,
                                 uint64_t wide) const {
    const RibbonLanes d;
    const hn::Repartition<uint16_t, RibbonLanes> d16;
    const Bytes d8;
    // Paired so that key j ends in byte j of each lane.
    const auto even = FoldKeys(view, key(0), key(4), key(2), key(6), group.first);
    const auto odd = FoldKeys(view, key(1), key(5), key(3), key(7), group.first);
    auto bytes = FoldPair(d8, hn::BitCast(d8, even), hn::BitCast(d8, odd));
    bytes = hn::Xor(bytes, hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(d16, bytes))));

    static constexpr uint8_t kParity[16] = {0,    0xff, 0xff, 0,    0xff, 0,    0,    0xff,
                                            0xff, 0,    0,    0xff, 0,    0xff, 0xff, 0};
    auto wrong = hn::TableLookupBytes(hn::LoadDup128(d8, kParity), hn::And(bytes, hn::Set(d8, 15)));
    if constexpr (!View::kHomogeneous) {
      wrong = hn::Xor(wrong, hn::BitCast(d8, hn::Set(d, expected)));
    }
    auto counts = hn::BitCast(d8, hn::Load(d, group.always));
    if (kMixed && group.has_wide_column) {
      counts =
          hn::Or(counts, hn::BitCast(d8, hn::And(hn::Load(d, group.if_wide), hn::Set(d, wide))));
    }
    uint64_t right = MaskToBits(d8, hn::Eq(hn::And(wrong, counts), hn::Zero(d8)));
    if (hn::Lanes(d) == 8) right &= right >> 32;
    if (hn::Lanes(d) >= 4) right &= right >> 16;
    right &= right >> 8;
    return right & 0xff;
  }

  // Bit i: key i agrees in all of its columns among [first, first + lanes).
  HWY_NOINLINE uint64_t MatchAll(const View& view, uint32_t first) const {
    const Group group(view.shape, first);
    HWY_ALIGN uint8_t expected[kRibbonChunk] = {};
    HWY_ALIGN uint8_t wide[kRibbonChunk] = {};
    if constexpr (!View::kHomogeneous) {
      for (size_t i = 0; i < kRibbonChunk; ++i) expected[i] = Expected(group, i);
    }
    if (kMixed && group.has_wide_column) {
      for (size_t i = 0; i < kRibbonChunk; ++i) wide[i] = Wide(group, i);
    }
    uint64_t word = 0;
    for (size_t i = 0; i < n_; i += kKeysAtOnce) {
      const auto key = [i](size_t j) HWY_ATTR { return i + j; };
      word |= MatchEight(view, group, key, EightBytes(expected + i), EightBytes(wide + i)) << i;
    }
    return word;
  }

  // The same for the keys of `word`, which is not 0; those that agree stay. Always eight steps, so
  // that the number of survivors is nothing to guess: key 0 stands in for those that are missing.
  HWY_NOINLINE uint64_t MatchSurvivors(const View& view, uint64_t word, uint32_t first) const {
    const Group group(view.shape, first);
    uint64_t agreeing = 0;
    do {
      const size_t left = hwy::PopCount(word);
      size_t keys[kKeysAtOnce];
      uint64_t expected = 0;
      uint64_t wide = 0;
      for (size_t j = 0; j < kKeysAtOnce; ++j) {
        keys[j] = static_cast<size_t>(std::countr_zero(word)) % kRibbonChunk;
        word &= word - 1;
        if constexpr (!View::kHomogeneous) {
          expected |= uint64_t{Expected(group, keys[j])} << (8 * j);
        }
        if constexpr (kMixed) wide |= uint64_t{Wide(group, keys[j])} << (8 * j);
      }
      const auto key = [&keys](size_t j) HWY_ATTR { return keys[j]; };
      uint64_t right = MatchEight(view, group, key, expected, wide);
      if (left < kKeysAtOnce) right &= (uint64_t{1} << left) - 1;
      for (; right != 0; right &= right - 1) {
        agreeing |= uint64_t{1} << keys[std::countr_zero(right)];
      }
    } while (word != 0);
    return agreeing;
  }

  static HWY_INLINE uint64_t EightBytes(const uint8_t* HWY_RESTRICT bytes) {
    uint64_t eight;
    hwy::CopyBytes<8>(bytes, &eight);
    return eight;
  }

  size_t n_;
  HWY_ALIGN uint64_t index_[kIndices][kRibbonChunk];  // of the first word of each block
  HWY_ALIGN uint64_t piece_[kPieces][kRibbonChunk];   // the row, cut at the borders of blocks
  HWY_ALIGN uint64_t result_[View::kHomogeneous ? 1 : kRibbonChunk];
};

struct RibbonAnswer {
  // Chunks inside a sub-batch are pipelined: the lines of one are on their way while the one
  // before is answered.
  static constexpr size_t kSubBatch = 16 * kRibbonChunk;

  template <bool kMixed, class View>
  static HWY_INLINE void MixedWords(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                                    uint64_t* HWY_RESTRICT words) {
    RibbonChunk<View, kMixed> chunks[2];
    if (!view.prefetch) {
      for (size_t i = 0; i < n; i += kRibbonChunk) {
        chunks[0].Prepare(view, hashes + i, HWY_MIN(kRibbonChunk, n - i));
        words[i / kRibbonChunk] = chunks[0].Answers(view);
      }
      return;
    }
    const auto start_chunk = [&](size_t i) HWY_ATTR {
      RibbonChunk<View, kMixed>& chunk = chunks[i / kRibbonChunk % 2];
      chunk.Prepare(view, hashes + i, HWY_MIN(kRibbonChunk, n - i));
      chunk.Prefetch(view);
    };
    start_chunk(0);
    for (size_t i = 0; i < n; i += kRibbonChunk) {
      if (i + kRibbonChunk < n) start_chunk(i + kRibbonChunk);
      words[i / kRibbonChunk] = chunks[i / kRibbonChunk % 2].Answers(view);
    }
  }

  template <class View>
  static void Words(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                    uint64_t* HWY_RESTRICT words) {
    if constexpr (std::is_same_v<View, Ribbon::NoKeys>) {
      std::fill_n(words, (n + 63) / 64, uint64_t{0});
    } else if (view.shape.first_wide_block < view.shape.blocks) {
      MixedWords<true>(view, hashes, n, words);
    } else {
      MixedWords<false>(view, hashes, n, words);
    }
  }
};

Kernel<Ribbon::View> RibbonKernel() { return BatchedLoops<Ribbon::View, RibbonAnswer>::Make(); }

#else  // HWY_SCALAR: one lane has nothing to fold

Kernel<Ribbon::View> RibbonKernel() {
  return ReferenceKernel<Ribbon::View>(TargetName(HWY_TARGET));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(RibbonKernel);

std::span<const Kernel<Ribbon::View>> Ribbon::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(RibbonKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
