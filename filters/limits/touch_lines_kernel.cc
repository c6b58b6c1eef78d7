// Every way that is known to read random cache lines quickly, to find the fastest.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/limits/touch_lines_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/limits/touch_lines.h"
#include "filters/simd/gather-inl.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

using TouchD = hn::CappedTag<uint64_t, 8>;
using TouchV = hn::Vec<TouchD>;

// Bit hash % 64 of each word moved to the top.
HWY_INLINE TouchV TopBit(TouchV words, TouchV hash) {
  const TouchD d;
  return hn::Shl(words, hn::AndNot(hash, hn::Set(d, 63)));
}
HWY_INLINE uint64_t SignBits(TouchV v) {
  const hn::RebindToSigned<TouchD> di;
  return MaskToBits(di, hn::Lt(hn::BitCast(di, v), hn::Zero(di)));
}

// View::WordIndex of a vector of hashes. The number of lines fits 32 bits, that of words may not.
HWY_INLINE TouchV WordIndices(TouchV hash, uint64_t word_count) {
  const TouchD d;
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, filterbench::FastRange64(hn::GetLane(hash), word_count));
#else
  static_assert(TouchLines::kMaxLines < uint64_t{1} << 32);
  static_assert(TouchLines::kWordsPerLine == 8, "2^61 below is 2^64 over the words of a line");
  const TouchV lines = hn::Set(d, word_count / TouchLines::kWordsPerLine);
  const TouchV high = MulLow32(d, hn::ShiftRight<32>(hash), lines);
  const TouchV low = MulLow32(d, hash, lines);
  return hn::ShiftRight<61 - 32>(hn::Add(high, hn::ShiftRight<32>(low)));
#endif
}

// How the words of a chunk, whose addresses were computed in vectors, come to their test.
enum class TouchLoads { kScalar, kIntoVectors };

template <class View, TouchLoads kLoads>
class TouchLookup {
  static constexpr size_t kMaxTouched = 8;

 public:
  static constexpr size_t kGroup = 8;
  struct Chunk {
    const uint64_t* hashes;
    HWY_ALIGN uint64_t indices[kMaxTouched][kChunkKeys];  // of the word, line by line
  };

  explicit TouchLookup(const View& view) : view_(view) {}

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    const TouchD d;
    chunk.hashes = hashes;
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      TouchV hash = hn::LoadU(d, hashes + i);
      for (uint32_t l = 0; l < view_.lines; ++l) {
        if (l != 0) hash = hn::Mul(hash, hn::Set(d, View::kNextLine));
        hn::Store(WordIndices(hash, view_.word_count), d, chunk.indices[l] + i);
      }
    }
  }

  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const {
    for (uint32_t l = 0; l < view_.lines; ++l) hwy::Prefetch(view_.words + chunk.indices[l][i]);
  }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    uint64_t answers = 0;
    if constexpr (kLoads == TouchLoads::kScalar) {
      for (size_t j = 0; j < kGroup; ++j) {
        uint64_t hash = chunk.hashes[i + j];
        uint64_t parity = 0;
        for (uint32_t l = 0; l < view_.lines; ++l, hash *= View::kNextLine) {
          parity ^= view_.words[chunk.indices[l][i + j]] >> (hash % 64);
        }
        answers |= (parity & 1) << j;
      }
    } else {
      const TouchD d;
      for (size_t j = 0; j < kGroup; j += hn::Lanes(d)) {
        TouchV hash = hn::LoadU(d, chunk.hashes + i + j);
        TouchV parity = hn::Zero(d);
        for (uint32_t l = 0; l < view_.lines; ++l) {
          if (l != 0) hash = hn::Mul(hash, hn::Set(d, View::kNextLine));
          const TouchV words = WordsAt(d, view_.words, chunk.indices[l] + i + j);
          parity = hn::Xor(parity, TopBit(words, hash));
        }
        answers |= SignBits(parity) << j;
      }
    }
    return answers;
  }

 private:
  const View view_;
};

// The other ways, key by key or vector by vector.
template <class View>
class Touch {
 public:
  static HWY_INLINE uint64_t Plain(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                                   uint64_t* HWY_RESTRICT bits) {
    return LookUpByWords(hashes, n, bits, [&view](const uint64_t* from, size_t in_word)
                                              FILTERBENCH_INLINE_LAMBDA {
      uint64_t word = 0;
      for (size_t j = 0; j < in_word; ++j) word |= uint64_t{view.MayContain(from[j])} << j;
      return word;
    });
  }

  static HWY_INLINE uint64_t FullLine(const View& view, const uint64_t* HWY_RESTRICT hashes,
                                      size_t n, uint64_t* HWY_RESTRICT bits) {
    const hn::CappedTag<uint64_t, TouchLines::kWordsPerLine> d;
    // Loaded from window + 7 - i, eight lanes select word i of the line.
    alignas(64) static constexpr uint64_t kWindow[15] = {0, 0, 0, 0, 0, 0, 0, ~uint64_t{0}};
    const auto parity_of = [&view, d](uint64_t hash) FILTERBENCH_INLINE_LAMBDA {
      uint64_t parity = 0;
      for (uint32_t l = 0; l < view.lines; ++l, hash *= View::kNextLine) {
        const uint64_t index = view.WordIndex(hash);
        const uint64_t in_line = index % TouchLines::kWordsPerLine;
        const uint64_t* line = view.words + (index - in_line);
        const uint64_t* window = kWindow + (TouchLines::kWordsPerLine - 1 - in_line);
        const auto bit = hn::Set(d, uint64_t{1} << (hash % 64));
        auto found = hn::Zero(d);
        for (size_t lane = 0; lane < TouchLines::kWordsPerLine; lane += hn::Lanes(d)) {
          found = hn::Or(found, hn::And(hn::Load(d, line + lane), hn::LoadU(d, window + lane)));
        }
        parity ^= hn::AllTrue(d, hn::Eq(hn::And(found, bit), hn::Zero(d))) ? 0 : 1;
      }
      return parity;
    };
    return LookUpByWords(hashes, n, bits, [parity_of](const uint64_t* from, size_t in_word)
                                              FILTERBENCH_INLINE_LAMBDA {
      uint64_t word = 0;
      for (size_t j = 0; j < in_word; ++j) word |= parity_of(from[j]) << j;
      return word;
    });
  }

  static HWY_INLINE uint64_t Gather(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                                    uint64_t* HWY_RESTRICT bits) {
    const TouchD d;
    const hn::RebindToSigned<TouchD> di;
    return LookUpByWords(hashes, n, bits, [&view, d, di](const uint64_t* from, size_t in_word)
                                              FILTERBENCH_INLINE_LAMBDA {
      uint64_t word = 0;
      size_t j = 0;
      for (; j + hn::Lanes(d) <= in_word; j += hn::Lanes(d)) {
        TouchV hash = hn::LoadU(d, from + j);
        TouchV parity = hn::Zero(d);
        for (uint32_t l = 0; l < view.lines; ++l) {
          if (l != 0) hash = hn::Mul(hash, hn::Set(d, View::kNextLine));
          const auto index = hn::BitCast(di, WordIndices(hash, view.word_count));
          parity = hn::Xor(parity, TopBit(hn::GatherIndex(d, view.words, index), hash));
        }
        word |= SignBits(parity) << j;
      }
      for (; j < in_word; ++j) word |= uint64_t{view.MayContain(from[j])} << j;
      return word;
    });
  }

  // Prefetches kDepth keys ahead. The hashes are read and reduced twice: that is cheaper than a
  // ring of addresses through memory.
  template <size_t kDepth>
  static HWY_INLINE uint64_t Ring(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                                  uint64_t* HWY_RESTRICT bits) {
    const auto prefetch = [&view](uint64_t hash) FILTERBENCH_INLINE_LAMBDA {
      for (uint32_t l = 0; l < view.lines; ++l, hash *= View::kNextLine) {
        hwy::Prefetch(view.words + view.WordIndex(hash));
      }
    };
    for (size_t i = 0; i < std::min(kDepth, n); ++i) prefetch(hashes[i]);
    const uint64_t* const end = hashes + n;
    return LookUpByWords(hashes, n, bits, [&view, prefetch, end](const uint64_t* from,
                                                                 size_t in_word)
                                              FILTERBENCH_INLINE_LAMBDA {
      const size_t left = static_cast<size_t>(end - from);
      const size_t with_prefetch = std::min(in_word, left - std::min(left, kDepth));
      uint64_t word = 0;
      size_t j = 0;
      for (; j < with_prefetch; ++j) {
        prefetch(from[j + kDepth]);
        word |= uint64_t{view.MayContain(from[j])} << j;
      }
      for (; j < in_word; ++j) word |= uint64_t{view.MayContain(from[j])} << j;
      return word;
    });
  }
};

template <class View>
HWY_INLINE uint64_t TouchBy(const View& view, const uint64_t* hashes, size_t n, uint64_t* bits) {
  using T = Touch<View>;
  using Way = TouchLines::Way;
  switch (view.way) {
    case Way::kFullLine:
      return T::FullLine(view, hashes, n, bits);
    case Way::kGather:
      return T::Gather(view, hashes, n, bits);
    case Way::kRing16:
      return T::template Ring<16>(view, hashes, n, bits);
    case Way::kRing32:
      return T::template Ring<32>(view, hashes, n, bits);
    case Way::kRing64:
      return T::template Ring<64>(view, hashes, n, bits);
    case Way::kVectorAddress:
      return LookUpInChunks<false>(TouchLookup<View, TouchLoads::kScalar>(view), hashes, n, bits);
    case Way::kVectorWord:
      return LookUpInChunks<false>(TouchLookup<View, TouchLoads::kIntoVectors>(view), hashes, n,
                                   bits);
    case Way::kAhead:
      return LookUpInChunks<true>(TouchLookup<View, TouchLoads::kScalar>(view), hashes, n, bits);
    case Way::kBest:
    case Way::kPlain:
      break;
  }
  return T::Plain(view, hashes, n, bits);
}

uint64_t TouchAll(const TouchLines::View& any_view, const uint64_t* hashes, size_t n,
                  uint64_t* bits) {
  return SpecializeView(any_view, [=](const auto& view) HWY_ATTR {
    return TouchBy(view, hashes, n, bits);
  });
}

Kernel<TouchLines::View> TouchLinesKernel() {
  return MakeKernel<TouchLines::View, &TouchAll>();
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(TouchLinesKernel);

std::span<const Kernel<TouchLines::View>> TouchLines::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(TouchLinesKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
