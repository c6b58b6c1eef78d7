// Lookups of ribbon filters in vectors, in chunks of 64 keys: their starts, rows and results are
// computed in vectors into L1, those of the next chunk while the lines of this one are on their
// way.
//
// A plane of eight columns: the bits of the row become a mask of bytes, and the XOR of the selected
// bytes is the sum of all eight columns. Bytes of eight keys are folded together: each step XORs
// the halves of two vectors into one. No branch depends on the data, so positives cost what
// negatives cost: with AVX2 four instructions for each 32 slots, and four for the folds.
//
// Columns in words: lanes are columns, so that one load, one AND with a piece of the key's row and
// one XOR serve 2, 4 or 8 columns. The parity of each lane is not counted key by key (counting bits
// in vectors is emulated before AVX-512 VPOPCNTDQ): the lanes of eight keys are folded together,
// until a vector holds a byte per key and column; a table of 16 nibbles gives their parity: 7 folds
// of 4 instructions for 8 keys. Few negatives survive the first columns: the next ones are tested
// for the survivors only, again eight at once.
//
// The loop over chunks is this file's own instead of ChunkedLoops, since survivors are collected
// from 64 keys: eight keys at once would have one survivor as often as none, a branch per group
// that nobody predicts. Every target with vectors beats the reference in its own region (AVX2 3 to
// 8 times, SSE4 and SSSE3 2 to 4).

#if defined(FILTERBENCH_FILTERS_RIBBON_LOOKUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_RIBBON_LOOKUP_INL_H_
#undef FILTERBENCH_FILTERS_RIBBON_LOOKUP_INL_H_
#else
#define FILTERBENCH_FILTERS_RIBBON_LOOKUP_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <type_traits>

#include "filters/ribbon/ribbon.h"
#include "filters/simd/gather-inl.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR  // one lane has nothing to fold

inline constexpr size_t kKeysAtOnce = 8;

// 2, 4 or 8 columns of a key, or as many keys.
using RibbonLanes = hn::CappedTag<uint64_t, 8>;

// Bytes of slots. Where the size of vectors is not known when compiling, the smallest that all
// have.
inline constexpr size_t kSlotBytes = HWY_HAVE_SCALABLE ? 16 : HWY_MIN(HWY_MAX_BYTES, 64);
using SlotBytes = hn::CappedTag<uint8_t, kSlotBytes>;

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

// XORs the halves of a and of b: the lower half of the result comes from a.
HWY_INLINE hn::Vec<SlotBytes> FoldHalves(hn::Vec<SlotBytes> a, hn::Vec<SlotBytes> b) {
  const SlotBytes d;
  return hn::Xor(hn::ConcatUpperLower(d, b, a), hn::ConcatLowerUpper(d, b, a));
}

// XORs the halves of the 128-bit blocks of a and of b: the lower half of each block comes from a.
HWY_INLINE hn::Vec<SlotBytes> FoldBlocks(hn::Vec<SlotBytes> a, hn::Vec<SlotBytes> b) {
  const SlotBytes d;
  const hn::Repartition<uint64_t, SlotBytes> d64;
  const auto a64 = hn::BitCast(d64, a);
  const auto b64 = hn::BitCast(d64, b);
  return hn::BitCast(
      d, hn::Xor(hn::InterleaveLower(d64, a64, b64), hn::InterleaveUpper(d64, a64, b64)));
}

// How a filter's columns are stored.
enum class Columns {
  kBytes,       // the first eight at least are a plane
  kWords,       // fewer than eight, the same number in all blocks
  kMixedWords,  // the same with wide blocks
};

template <class View, Columns kColumns>
class RibbonChunk {
  using Row = typename View::Row;
  static constexpr size_t kRowWords = sizeof(Row) / 8;
  static constexpr size_t kRowSlots = View::kRowSlots;
  static constexpr size_t kPieces = View::kPieces;
  static constexpr bool kBytes = kColumns == Columns::kBytes;
  static constexpr bool kMixed = kColumns != Columns::kWords;
  // One index per key gives all pieces where all blocks have as many words.
  static constexpr size_t kIndices = kMixed ? kPieces : 1;
  static constexpr uint64_t kFirstCoefficient = kBytes ? RibbonHash::kFirstByteCoefficient : 1;
  static constexpr bool kBumps = requires(const View& view) { view.layers; };
  // Bits of the low word that are coefficients.
  static constexpr uint64_t kCoefficients = [] {
    if constexpr (kBumps) return kBytes ? View::kByteCoefficients : View::kWordCoefficients;
    return ~uint64_t{0};
  }();
  // With more survivors than that, to test all 64 keys is cheaper than to collect them.
  static constexpr size_t kManySurvivors = 2 * kKeysAtOnce;
  // With so few, nothing is worth the preparation.
  static constexpr size_t kFewSurvivors = 3;

 public:
  // What is done between the tests of keys: nothing, or to prefetch for the keys of another chunk.
  struct NothingAhead {
    HWY_INLINE void operator()(size_t) const {}
  };
  struct PrefetchAhead {
    HWY_INLINE void operator()(size_t key) const { chunk->Prefetch(*view, key); }
    const RibbonChunk* chunk;
    const View* view;
  };

  // Functions over a whole chunk are not inlined: a call for 64 keys is nothing, and their copies
  // would be most of the binary.

  // Rows and addresses of n <= kChunkKeys keys.
  HWY_INLINE void Prepare(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n) {
    n_ = n;
    if (HWY_LIKELY(n == kChunkKeys)) {
      PrepareFull(view, hashes);
    } else {
      // Keys that nobody asked for read addresses that are valid for any hash.
      HWY_ALIGN uint64_t padded[kChunkKeys] = {};
      for (size_t i = 0; i < n; ++i) padded[i] = hashes[i];
      PrepareFull(view, padded);
    }
  }

  // The lines that a key needs first.
  HWY_INLINE void Prefetch(const View& view, size_t key) const {
    constexpr size_t kWordsPerLine = kCacheLineBytes / sizeof(uint64_t);
    if constexpr (kBytes) {
      const uint8_t* slots = Plane(view, 0) + start_[key];
      for (size_t i = 0; i < kRowSlots; i += kCacheLineBytes) hwy::Prefetch(slots + i);
      hwy::Prefetch(slots + kRowSlots - 1);
    } else {
      const uint64_t* first = view.words + index_[0][key];
      const size_t last = kPieces * view.shape.max_word_columns() - 1;
      for (size_t word = 0; word < last; word += kWordsPerLine) hwy::Prefetch(first + word);
      hwy::Prefetch(first + last);
    }
  }

  // The answers as bits. Calls ahead(i) for every i < 64 between its tests.
  template <class Ahead>
  HWY_INLINE uint64_t Answers(const View& view, Ahead&& ahead) {
    const uint64_t asked = ~uint64_t{0} >> (kChunkKeys - n_);
    if constexpr (kBytes) {
      const uint64_t word = MatchAllBytes(view, 0, ahead) & asked;
      if (view.shape.max_columns() == RibbonShape::kPlaneColumns || word == 0) return word;
      return MatchLaterColumns(view, word);
    } else {
      const uint64_t word = MatchAll(view, 0, ahead) & asked;
      return MatchWords(view, word, hn::Lanes(RibbonLanes()));
    }
  }

 private:
  static HWY_INLINE const uint8_t* Plane(const View& view, uint32_t plane) {
    return reinterpret_cast<const uint8_t*>(view.words + view.shape.PlaneWord(plane));
  }

  HWY_INLINE const uint64_t* Block(const View& view, size_t piece, size_t key) const {
    if constexpr (kMixed) return view.words + index_[piece][key];
    return view.words + index_[0][key] + piece * view.shape.word_columns();
  }

  HWY_NOINLINE void PrepareFull(const View& any_view, const uint64_t* HWY_RESTRICT hashes) {
    const View view = any_view;  // which the stores below cannot change
    const RibbonLanes d;
    const hn::Repartition<uint32_t, RibbonLanes> d32;
    const size_t lanes = hn::Lanes(d);
    for (size_t i = 0; i < kChunkKeys; i += 2 * lanes) {
      const auto low = PrepareVector(view, hashes + i, i);
      const auto high = PrepareVector(view, hashes + i + lanes, i + lanes);
      if constexpr (!View::kHomogeneous) {
        hn::Store(hn::ConcatEven(d32, hn::BitCast(d32, high), hn::BitCast(d32, low)), d32,
                  result_ + i);
      }
    }
    if constexpr (kBumps) {
      if (view.layers.count > 1) PrepareBumped(view, hashes);
    }
    if constexpr (!kBytes) PreparePieces(view);
  }

  // Where the first layer bumps a key, replaces what was prepared by what the key's own layer asks.
  HWY_INLINE void PrepareBumped(const View& view, const uint64_t* HWY_RESTRICT hashes) {
    using Buckets = typename View::FirstBuckets;
    constexpr int kBucketBits = std::countr_zero(Buckets::kBucketSlots);
    constexpr int kWordBits = std::countr_zero(Buckets::kBucketsPerWord);
    static_assert(Buckets::kLevelBits == 2);
    const RibbonLanes d;
    const hn::RebindToSigned<RibbonLanes> di;
    using V = hn::Vec<RibbonLanes>;
    const size_t lanes = hn::Lanes(d);
    const uint64_t* levels = view.levels();
    HWY_ALIGN uint64_t word[kChunkKeys];
    for (size_t i = 0; i < kChunkKeys; i += lanes) {
      hn::Store(hn::ShiftRight<kBucketBits + kWordBits>(hn::Load(d, start_ + i)), d, word + i);
    }
    uint64_t bumped = 0;
    for (size_t i = 0; i < kChunkKeys; i += lanes) {
      const V start = hn::Load(d, start_ + i);
      const V bucket = hn::ShiftRight<kBucketBits>(start);
      const V in_word = hn::ShiftLeft<1>(hn::And(bucket, hn::Set(d, Buckets::kBucketsPerWord - 1)));
      const V level = hn::And(hn::Shr(WordsAt(d, levels, word + i), in_word), hn::Set(d, 3));
      const V threshold = hn::And(
          hn::Shr(hn::Set(d, Buckets::kLevelBytes), hn::ShiftLeft<3>(level)), hn::Set(d, 0xff));
      const V offset = hn::And(start, hn::Set(d, Buckets::kBucketSlots - 1));
      bumped |= MaskToBits(di, hn::Lt(hn::BitCast(di, offset), hn::BitCast(di, threshold))) << i;
    }
    for (; bumped != 0; bumped &= bumped - 1) {
      const auto key = static_cast<size_t>(std::countr_zero(bumped));
      uint64_t mixed = RibbonHash::Mix(hashes[key], view.salt);
      start_[key] = view.MoveOn(mixed);
      const RibbonHash equation(mixed);
      row_[0][key] = (equation.low & kCoefficients) | kFirstCoefficient;
      result_[key] = equation.ResultRow<Row>();
    }
  }

  // Returns the result rows in the low half of each lane.
  HWY_INLINE hn::Vec<RibbonLanes> PrepareVector(const View& view,
                                                const uint64_t* HWY_RESTRICT hashes, size_t i) {
    const RibbonLanes d;
    using V = hn::Vec<RibbonLanes>;
    const V mixed = hn::Mul(hn::Xor(hn::LoadU(d, hashes), hn::Set(d, view.salt)),
                            hn::Set(d, RibbonHash::kMixMultiplier));
    hn::Store(view.starts >> 32 == 0 ? FastRange64<true>(d, mixed, view.starts)
                                     : FastRange64<false>(d, mixed, view.starts),
              d, start_ + i);
    const V low = MulBy32(d, Fold(mixed), RibbonHash::kRowMultiplier);
    V row = low;
    if constexpr (kRowSlots < 64) row = hn::And(row, hn::Set(d, kCoefficients));
    hn::Store(hn::Or(row, hn::Set(d, kFirstCoefficient)), d, row_[0] + i);
    V last = low;
    if constexpr (sizeof(Row) == 16) {
      last = MulBy32(d, Fold(low), RibbonHash::kHighRowMultiplier);
      hn::Store(last, d, row_[1] + i);
    }
    if constexpr (View::kHomogeneous) return last;
    return hn::ShiftRight<24>(MulLow32(d, last, hn::Set(d, RibbonHash::kResultMultiplier)));
  }

  // The rows cut at the borders of blocks, and where those lie.
  HWY_NOINLINE void PreparePieces(const View& view) {
    const RibbonLanes d;
    const hn::Repartition<uint32_t, RibbonLanes> d32;
    using V = hn::Vec<RibbonLanes>;
    const V one = hn::Set(d, 1);
    const V low6 = hn::Set(d, 63);
    const V columns = hn::Set(d, view.shape.word_columns());
    const V first_wide = hn::Set(d, view.shape.first_wide_block);
    const V first_index = hn::Set(d, view.shape.WordIndex(0));
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      const V start = hn::Load(d, start_ + i);
      // Blocks are below 2^31, so that products and maxima of 32 bits suffice.
      V block = hn::ShiftRight<6>(start);
      for (size_t p = 0; p < kIndices; ++p) {
        V index = hn::MulEven(hn::BitCast(d32, block), hn::BitCast(d32, columns));
        if constexpr (kBytes) index = hn::Add(index, first_index);
        if constexpr (kMixed) {
          const auto past = hn::Max(hn::BitCast(d32, block), hn::BitCast(d32, first_wide));
          index = hn::Add(index, hn::Sub(hn::BitCast(d, past), first_wide));
          block = hn::Add(block, one);
        }
        hn::Store(index, d, index_[p] + i);
      }

      const V offset = hn::And(start, low6);
      const V from_before = hn::Xor(offset, low6);  // after a shift by 1: 64 is no valid shift
      V row = LinearRow(0, i);
      hn::Store(hn::Shl(row, offset), d, piece_[0] + i);
      for (size_t p = 1; p < kPieces; ++p) {
        V piece = hn::Shr(hn::ShiftRight<1>(row), from_before);
        if (p < kRowWords) {
          row = LinearRow(p, i);
          piece = hn::Or(piece, hn::Shl(row, offset));
        }
        hn::Store(piece, d, piece_[p] + i);
      }
    }
  }

  // Coefficients in the order of slots.
  HWY_INLINE hn::Vec<RibbonLanes> LinearRow(size_t word, size_t i) const {
    const RibbonLanes d;
    auto x = hn::Load(d, row_[word] + i);
    if constexpr (kBytes) {  // RibbonHash::FromByteOrder
      auto swapped = hn::And(hn::Xor(x, hn::ShiftRight<7>(x)), hn::Set(d, 0x00aa00aa00aa00aa));
      x = hn::Xor(x, hn::Xor(swapped, hn::ShiftLeft<7>(swapped)));
      swapped = hn::And(hn::Xor(x, hn::ShiftRight<14>(x)), hn::Set(d, 0x0000cccc0000cccc));
      x = hn::Xor(x, hn::Xor(swapped, hn::ShiftLeft<14>(swapped)));
      swapped = hn::And(hn::Xor(x, hn::ShiftRight<28>(x)), hn::Set(d, 0x00000000f0f0f0f0));
      x = hn::Xor(x, hn::Xor(swapped, hn::ShiftLeft<28>(swapped)));
      static constexpr uint8_t kReverse8[16] = {7,  6,  5,  4,  3,  2,  1, 0,
                                                15, 14, 13, 12, 11, 10, 9, 8};
      const Bytes d8;
      x = hn::BitCast(d, hn::TableLookupBytes(hn::BitCast(d8, x), hn::LoadDup128(d8, kReverse8)));
    }
    return x;
  }

  // --- Columns in bytes ---

  // The bytes of slots from `slot` on that the row selects; the others are 0.
  static HWY_INLINE hn::Vec<SlotBytes> Selected(hn::Vec<SlotBytes> row, size_t slot,
                                                const uint8_t* HWY_RESTRICT slots) {
    const SlotBytes d;
    alignas(64) static constexpr uint64_t kByteOfSlot[8] = {
        0x8080808080808080, 0x4040404040404040, 0x2020202020202020, 0x1010101010101010,
        0x0808080808080808, 0x0404040404040404, 0x0202020202020202, 0x0101010101010101};
    const hn::Repartition<uint64_t, SlotBytes> d64;
    const auto bit = hn::BitCast(d, hn::Load(d64, kByteOfSlot + slot / 8));
    return hn::IfThenElseZero(hn::TestBit(row, bit), hn::LoadU(d, slots));
  }

  // XOR of the bytes that the row of a key selects, to be folded into one.
  HWY_INLINE hn::Vec<SlotBytes> SelectedBytes(const uint8_t* plane, size_t key) const {
    const SlotBytes d;
    const hn::Repartition<uint64_t, SlotBytes> d64;
    const uint8_t* slots = plane + start_[key];
    auto sum = hn::Zero(d);
    for (size_t w = 0; w < kRowWords; ++w, slots += 64) {
      const auto row = hn::BitCast(d, hn::Set(d64, row_[w][key]));
      for (size_t i = 0; i < HWY_MIN(64, kRowSlots); i += kSlotBytes) {
        const auto bytes = Selected(row, i, slots + i);
        sum = w == 0 && i == 0 ? bytes : hn::Xor(sum, bytes);
      }
    }
    return sum;
  }

  // Bit j: key(j) agrees in all columns of the plane. `expected` holds the results of the keys,
  // moved so that their low bytes count.
  template <class Key, class Ahead>
  HWY_INLINE uint64_t MatchEightBytes(const uint8_t* plane, Key&& key,
                                      const uint32_t* HWY_RESTRICT expected, int shift,
                                      Ahead&& ahead) const {
    const hn::Repartition<uint32_t, SlotBytes> d32;
    const auto selected = [&](size_t j) HWY_ATTR {
      ahead(j);
      return SelectedBytes(plane, key(j));
    };
    // Paired so that key j ends in lane j.
    if constexpr (kSlotBytes == 16) {
      const auto four = [&](size_t j) HWY_ATTR {
        const auto even = FoldBlocks(selected(j), selected(j + 2));
        const auto odd = FoldBlocks(selected(j + 1), selected(j + 3));
        return AgreesInByte(d32, FoldPair(d32, hn::BitCast(d32, even), hn::BitCast(d32, odd)),
                            expected + j, shift);
      };
      const uint64_t low = four(0);
      return low | four(4) << 4;
    } else {
      const auto pair = [&](size_t a, size_t b)
                            HWY_ATTR { return FoldHalves(selected(a), selected(b)); };
      if constexpr (kSlotBytes == 32) {
        const auto even = FoldBlocks(pair(0, 4), pair(2, 6));
        const auto odd = FoldBlocks(pair(1, 5), pair(3, 7));
        return AgreesInByte(d32, FoldPair(d32, hn::BitCast(d32, even), hn::BitCast(d32, odd)),
                            expected, shift);
      } else {
        // XORs the halves of the halves: blocks of 128 bits come from a, b, a, b.
        const auto quarters = [](auto a, auto b) HWY_ATTR {
          return hn::Xor(hn::OddEvenBlocks(b, a), hn::SwapAdjacentBlocks(hn::OddEvenBlocks(a, b)));
        };
        const hn::Repartition<uint64_t, SlotBytes> d64;
        const auto even = quarters(pair(0, 4), pair(2, 6));
        const auto odd = quarters(pair(1, 5), pair(3, 7));
        return AgreesInByte(d64, Fold(hn::BitCast(d64, FoldBlocks(even, odd))), expected, shift);
      }
    }
  }

  // Lane i of `sum` agrees with expected[i] after its bytes, four of a lane, are folded into one.
  template <class D>
  static HWY_INLINE uint64_t AgreesInByte(D d, hn::Vec<D> sum,
                                          const uint32_t* HWY_RESTRICT expected, int shift) {
    sum = hn::Xor(sum, hn::ShiftRight<16>(sum));
    sum = hn::Xor(sum, hn::ShiftRight<8>(sum));
    if constexpr (!View::kHomogeneous) {
      hn::Vec<D> results;
      if constexpr (sizeof(hn::TFromD<D>) == 8) {
        results = hn::PromoteTo(d, hn::LoadU(hn::Rebind<uint32_t, D>(), expected));
      } else {
        results = hn::LoadU(d, expected);
      }
      sum = hn::Xor(sum, shift == 0 ? results : hn::ShiftRightSame(results, shift));
    }
    return MaskToBits(d, hn::Eq(hn::And(sum, hn::Set(d, 0xff)), hn::Zero(d)));
  }

  // Bit i: key i agrees in all columns of the plane.
  template <class Ahead>
  HWY_NOINLINE uint64_t MatchAllBytes(const View& view, uint32_t plane, Ahead ahead) const {
    const uint8_t* bytes = Plane(view, plane);
    const int shift = static_cast<int>(RibbonShape::kPlaneColumns * plane);
    uint64_t word = 0;
    for (size_t i = 0; i < kChunkKeys; i += kKeysAtOnce) {
      const auto key = [i](size_t j) HWY_ATTR { return i + j; };
      const auto ahead_of_key = [&ahead, i](size_t j) HWY_ATTR { ahead(i + j); };
      word |= MatchEightBytes(bytes, key, View::kHomogeneous ? nullptr : result_ + i, shift,
                              ahead_of_key)
              << i;
    }
    return word;
  }

  // The same for the keys of `word`, which is not 0; those that agree stay.
  HWY_NOINLINE uint64_t MatchSurvivorsBytes(const View& view, uint64_t word, uint32_t plane) const {
    const uint8_t* bytes = Plane(view, plane);
    const int shift = static_cast<int>(RibbonShape::kPlaneColumns * plane);
    return ForSurvivors(word, [&](const size_t* keys) HWY_ATTR {
      uint32_t expected[kKeysAtOnce] = {};
      if constexpr (!View::kHomogeneous) {
        for (size_t j = 0; j < kKeysAtOnce; ++j) expected[j] = result_[keys[j]];
      }
      const auto key = [keys](size_t j) HWY_ATTR { return keys[j]; };
      return MatchEightBytes(bytes, key, expected, shift, NothingAhead());
    });
  }

  // All columns but the first eight, of keys that agree in those.
  HWY_NOINLINE uint64_t MatchLaterColumns(const View& view, uint64_t word) {
    if (hwy::PopCount(word) <= kFewSurvivors) {
      uint64_t agreeing = 0;
      for (; word != 0; word &= word - 1) {
        const auto key = static_cast<size_t>(std::countr_zero(word));
        const RibbonHash equation(row_[0][key], row_[kRowWords - 1][key]);
        const uint32_t result = View::kHomogeneous ? 0 : result_[key];
        agreeing |= uint64_t{view.AgreesFromPlane(1, start_[key], equation, result)} << key;
      }
      return agreeing;
    }
    const uint32_t planes = view.shape.planes();
    const bool words = view.shape.max_word_columns() != 0;
    if (words) PreparePieces(view);
    if (view.prefetch) {
      for (uint64_t left = word; left != 0; left &= left - 1) {
        const auto key = static_cast<size_t>(std::countr_zero(left));
        for (uint32_t p = 1; p < planes; ++p) {
          hwy::Prefetch(Plane(view, p) + start_[key]);
          hwy::Prefetch(Plane(view, p) + start_[key] + kRowSlots - 1);
        }
        if (words) {
          hwy::Prefetch(Block(view, 0, key));
          hwy::Prefetch(Block(view, kPieces - 1, key));
        }
      }
    }
    for (uint32_t p = 1; p < planes && word != 0; ++p) {
      word = std::popcount(word) > static_cast<int>(kManySurvivors)
                 ? word & MatchAllBytes(view, p, NothingAhead())
                 : MatchSurvivorsBytes(view, word, p);
    }
    return words ? MatchWords(view, word, 0) : word;
  }

  // Calls match(keys) for eight keys of `word` at once, which is not 0, and returns the bits of
  // those whose bit is set in the result. Always eight, so that the number of survivors is nothing
  // to guess: some key stands in for those that are missing.
  template <class Match>
  static HWY_INLINE uint64_t ForSurvivors(uint64_t word, Match&& match) {
    uint64_t agreeing = 0;
    do {
      const size_t left = hwy::PopCount(word);
      size_t keys[kKeysAtOnce];
      for (size_t j = 0; j < kKeysAtOnce; ++j) {
        keys[j] = static_cast<size_t>(std::countr_zero(word)) % kChunkKeys;
        word &= word - 1;
      }
      uint64_t right = match(static_cast<const size_t*>(keys));
      if (left < kKeysAtOnce) right &= (uint64_t{1} << left) - 1;
      for (size_t j = 0; j < kKeysAtOnce; ++j) agreeing |= (right >> j & 1) << keys[j];
    } while (word != 0);
    return agreeing;
  }

  // --- Columns in words ---

  // The columns from `first` on of the keys of `word`.
  HWY_INLINE uint64_t MatchWords(const View& view, uint64_t word, size_t first) const {
    const size_t columns = view.shape.max_word_columns();
    for (; first < columns && word != 0; first += hn::Lanes(RibbonLanes())) {
      const auto from = static_cast<uint32_t>(first);
      word = hwy::PopCount(word) > kManySurvivors ? word & MatchAll(view, from, NothingAhead())
                                                  : MatchSurvivors(view, word, from);
    }
    return word;
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
        always[j] = first + j < shape.word_columns() ? bit : 0;
        if_wide[j] = first + j == shape.word_columns() ? bit : 0;
      }
      has_wide_column =
          kMixed && first <= shape.word_columns() && shape.word_columns() < first + lanes;
      first_result = first + RibbonShape::kPlaneColumns * shape.planes();
      first_wide_start = shape.first_wide_block * RibbonShape::kBlockSlots;
    }

    uint32_t first;         // of the columns in words
    uint32_t first_result;  // the same column among all
    bool has_wide_column;
    uint64_t first_wide_start;
    HWY_ALIGN uint64_t always[8];
    HWY_ALIGN uint64_t if_wide[8];
  };

  HWY_INLINE uint8_t Expected(const Group& group, size_t key) const {
    return static_cast<uint8_t>(result_[key] >> group.first_result);
  }
  HWY_INLINE uint8_t Wide(const Group& group, size_t key) const {
    return start_[key] >= group.first_wide_start ? 0xff : 0;
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
  template <class Ahead>
  HWY_NOINLINE uint64_t MatchAll(const View& view, uint32_t first, Ahead ahead) const {
    const Group group(view.shape, first);
    HWY_ALIGN uint8_t expected[kChunkKeys] = {};
    HWY_ALIGN uint8_t wide[kChunkKeys] = {};
    if constexpr (!View::kHomogeneous) {
      for (size_t i = 0; i < kChunkKeys; ++i) expected[i] = Expected(group, i);
    }
    if (kMixed && group.has_wide_column) {
      for (size_t i = 0; i < kChunkKeys; ++i) wide[i] = Wide(group, i);
    }
    uint64_t word = 0;
    for (size_t i = 0; i < kChunkKeys; i += kKeysAtOnce) {
      const auto key = [&ahead, i](size_t j) HWY_ATTR {
        ahead(i + j);
        return i + j;
      };
      word |= MatchEight(view, group, key, EightBytes(expected + i), EightBytes(wide + i)) << i;
    }
    return word;
  }

  // The same for the keys of `word`, which is not 0; those that agree stay.
  HWY_NOINLINE uint64_t MatchSurvivors(const View& view, uint64_t word, uint32_t first) const {
    const Group group(view.shape, first);
    return ForSurvivors(word, [&](const size_t* keys) HWY_ATTR {
      uint64_t expected = 0;
      uint64_t wide = 0;
      for (size_t j = 0; j < kKeysAtOnce; ++j) {
        if constexpr (!View::kHomogeneous) {
          expected |= uint64_t{Expected(group, keys[j])} << (8 * j);
        }
        if constexpr (kMixed) wide |= uint64_t{Wide(group, keys[j])} << (8 * j);
      }
      const auto key = [keys](size_t j) HWY_ATTR { return keys[j]; };
      return MatchEight(view, group, key, expected, wide);
    });
  }

  static HWY_INLINE uint64_t EightBytes(const uint8_t* HWY_RESTRICT bytes) {
    uint64_t eight;
    hwy::CopyBytes<8>(bytes, &eight);
    return eight;
  }

  size_t n_;
  HWY_ALIGN uint64_t start_[kChunkKeys];
  HWY_ALIGN uint64_t row_[kRowWords][kChunkKeys];
  HWY_ALIGN uint32_t result_[View::kHomogeneous ? 1 : kChunkKeys];
  // Of columns in words only:
  HWY_ALIGN uint64_t index_[kIndices][kChunkKeys];  // of the first word of each block
  HWY_ALIGN uint64_t piece_[kPieces][kChunkKeys];   // the row, cut at the borders of blocks
};

template <class AnyView>
struct RibbonLoops {
  // Gives `use` the answers of each 64 keys in order, in bits.
  template <Columns kColumns, class View, class Use>
  static HWY_INLINE void Chunks(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                                Use&& use) {
    using Chunk = RibbonChunk<View, kColumns>;
    Chunk chunks[2];
    const auto in_chunk = [n](size_t i) HWY_ATTR { return HWY_MIN(kChunkKeys, n - i); };
    if (!view.prefetch) {
      for (size_t i = 0; i < n; i += kChunkKeys) {
        chunks[0].Prepare(view, hashes + i, in_chunk(i));
        use(chunks[0].Answers(view, typename Chunk::NothingAhead()));
      }
      return;
    }
    // A processor has few lines in flight: a burst of prefetches waits for them, one for each key
    // tested does not.
    if (n == 0) return;
    chunks[0].Prepare(view, hashes, in_chunk(0));
    for (size_t j = 0; j < kChunkKeys; ++j) chunks[0].Prefetch(view, j);
    for (size_t i = 0; i < n; i += kChunkKeys) {
      Chunk& now = chunks[i / kChunkKeys % 2];
      const size_t next_i = i + kChunkKeys;
      if (next_i < n) {
        Chunk& next = chunks[next_i / kChunkKeys % 2];
        next.Prepare(view, hashes + next_i, in_chunk(next_i));
        use(now.Answers(view, typename Chunk::PrefetchAhead{&next, &view}));
      } else {
        use(now.Answers(view, typename Chunk::NothingAhead()));
      }
    }
  }

  template <class Use>
  static HWY_INLINE void Words(const AnyView& any_view, const uint64_t* hashes, size_t n,
                               Use&& use) {
    SpecializeView(any_view, [&](const auto& view_ref) HWY_ATTR {
      const auto view = view_ref;
      if constexpr (std::is_same_v<decltype(view), const Ribbon::NoKeys>) {
        for (size_t i = 0; i < n; i += kChunkKeys) use(0);
      } else if (view.shape.planes() != 0) {
        Chunks<Columns::kBytes>(view, hashes, n, use);
      } else if (view.shape.first_wide_block < view.shape.blocks) {
        Chunks<Columns::kMixedWords>(view, hashes, n, use);
      } else {
        Chunks<Columns::kWords>(view, hashes, n, use);
      }
    });
  }

  static uint64_t Count(const AnyView& view, const uint64_t* hashes, size_t n) {
    uint64_t count = 0;
    Words(view, hashes, n, [&](uint64_t word) HWY_ATTR { count += hwy::PopCount(word); });
    return count;
  }

  static void Bits(const AnyView& view, const uint64_t* hashes, size_t n, uint64_t* bits) {
    Words(view, hashes, n, [&](uint64_t word) HWY_ATTR { *bits++ = word; });
  }

  static Kernel<AnyView> Make() { return MakeKernel<AnyView>(&Count, &Bits); }
};

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
