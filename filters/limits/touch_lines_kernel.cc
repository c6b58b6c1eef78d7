// Every way that is known to read random cache lines quickly, to find the fastest.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/limits/touch_lines_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/limits/touch_lines.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

// View::WordIndex of a vector of hashes: floor(hash * line_count * 8 / 2^64). The number of lines
// fits 32 bits, so two products of 32 bits do where 64-bit ranges need four.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V WordIndices(D d, V hash, uint64_t word_count) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, FastRange64(hn::GetLane(hash), word_count));
#else
  static_assert(TouchLines::kMaxLines < uint64_t{1} << 32);
  static_assert(TouchLines::kWordsPerLine == 8, "2^61 below is 2^64 over the words of a line");
  const hn::Repartition<uint32_t, D> d32;
  const auto lines = hn::BitCast(d32, hn::Set(d, word_count / TouchLines::kWordsPerLine));
  // MulEven multiplies the low halves of the 64-bit lanes. The sum is at most
  // (2^32 - 1)^2 + 2^32 - 2: no carry is lost.
  const V high = hn::MulEven(hn::BitCast(d32, hn::ShiftRight<32>(hash)), lines);
  const V low = hn::MulEven(hn::BitCast(d32, hash), lines);
  return hn::ShiftRight<61 - 32>(hn::Add(high, hn::ShiftRight<32>(low)));
#endif
}

// Takes a word of answers per 64 keys, in order: counts them, and stores them if asked to. Both
// cost nothing beside 64 lookups.
class Answers {
 public:
  explicit Answers(uint64_t* bits_or_null) : bits_(bits_or_null) {}
  HWY_INLINE void Append(uint64_t word) {
    count_ += hwy::PopCount(word);
    if (bits_ != nullptr) *bits_++ = word;
  }
  uint64_t count() const { return count_; }

 private:
  uint64_t* bits_;
  uint64_t count_ = 0;
};

// The ways. Each takes any number of hashes.
template <class View>
class Touch {
  using D = hn::ScalableTag<uint64_t>;
  using V = hn::Vec<D>;
  static constexpr size_t kWord = 64;  // keys per word of answers
  static constexpr size_t kMaxTouched = 8;

 public:
  static HWY_INLINE void Plain(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                               Answers& answers) {
    for (size_t i = 0; i < n; i += kWord) {
      const size_t in_word = std::min(kWord, n - i);
      uint64_t word = 0;
      for (size_t j = 0; j < in_word; ++j) {
        word |= uint64_t{view.MayContain(hashes[i + j])} << j;
      }
      answers.Append(word);
    }
  }

  static HWY_INLINE void FullLine(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                                  Answers& answers) {
    const hn::CappedTag<uint64_t, TouchLines::kWordsPerLine> d;
    // Loaded from window + 7 - i, eight lanes select word i of the line.
    alignas(64) static constexpr uint64_t kWindow[15] = {0, 0, 0, 0, 0, 0, 0, ~uint64_t{0}};
    for (size_t i = 0; i < n; i += kWord) {
      const size_t in_word = std::min(kWord, n - i);
      uint64_t word = 0;
      for (size_t j = 0; j < in_word; ++j) {
        uint64_t hash = hashes[i + j];
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
        word |= parity << j;
      }
      answers.Append(word);
    }
  }

  // Prefetches kDepth keys ahead. The hashes are read and reduced twice: that is cheaper than a
  // ring of addresses through memory.
  template <size_t kDepth>
  static HWY_INLINE void Ring(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                              Answers& answers) {
    const auto prefetch = [&](uint64_t hash) HWY_ATTR {
      for (uint32_t l = 0; l < view.lines; ++l, hash *= View::kNextLine) {
        hwy::Prefetch(view.words + view.WordIndex(hash));
      }
    };
    for (size_t i = 0; i < std::min(kDepth, n); ++i) prefetch(hashes[i]);
    for (size_t i = 0; i < n; i += kWord) {
      const size_t in_word = std::min(kWord, n - i);
      const size_t with_prefetch = std::min(in_word, n - std::min(n, i + kDepth));
      uint64_t word = 0;
      size_t j = 0;
      for (; j < with_prefetch; ++j) {
        prefetch(hashes[i + j + kDepth]);
        word |= uint64_t{view.MayContain(hashes[i + j])} << j;
      }
      for (; j < in_word; ++j) word |= uint64_t{view.MayContain(hashes[i + j])} << j;
      answers.Append(word);
    }
  }

  static HWY_INLINE void Gather(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                                Answers& answers) {
    const D d;
    const hn::RebindToSigned<D> di;
    for (size_t i = 0; i < n; i += kWord) {
      const size_t in_word = std::min(kWord, n - i);
      uint64_t word = 0;
      size_t j = 0;
      for (; j + hn::Lanes(d) <= in_word; j += hn::Lanes(d)) {
        V hash = hn::LoadU(d, hashes + i + j);
        V parity = hn::Zero(d);
        for (uint32_t l = 0; l < view.lines; ++l) {
          if (l != 0) hash = hn::Mul(hash, hn::Set(d, View::kNextLine));
          const V index = WordIndices(d, hash, view.word_count);
          parity = hn::Xor(parity,
                           TopBit(d, hn::GatherIndex(d, view.words, hn::BitCast(di, index)), hash));
        }
        word |= SignBits(d, parity) << j;
      }
      for (; j < in_word; ++j) word |= uint64_t{view.MayContain(hashes[i + j])} << j;
      answers.Append(word);
    }
  }

  static HWY_INLINE void VectorAddress(const View& view, const uint64_t* HWY_RESTRICT hashes,
                                       size_t n, Answers& answers) {
    HWY_ALIGN uint64_t indices[kMaxTouched * kWord];
    for (size_t i = 0; i < n; i += kWord) {
      const size_t in_word = std::min(kWord, n - i);
      Indices<false>(view, hashes + i, in_word, indices);
      answers.Append(Read(view, hashes + i, in_word, indices));
    }
  }

  static HWY_INLINE void SubBatch(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                                  Answers& answers) {
    HWY_ALIGN uint64_t indices[kMaxTouched * kWord];
    for (size_t i = 0; i < n; i += kWord) {
      const size_t in_word = std::min(kWord, n - i);
      Indices<true>(view, hashes + i, in_word, indices);
      answers.Append(Read(view, hashes + i, in_word, indices));
    }
  }

  static HWY_INLINE void NextBatch(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                                   Answers& answers) {
    HWY_ALIGN uint64_t indices[2][kMaxTouched * kWord];
    if (n != 0) Indices<true>(view, hashes, std::min(kWord, n), indices[0]);
    for (size_t i = 0; i < n; i += kWord) {
      const size_t in_word = std::min(kWord, n - i);
      const size_t next = i + in_word;
      const size_t now = i / kWord % 2;
      if (next < n) {
        Indices<true>(view, hashes + next, std::min(kWord, n - next), indices[1 - now]);
      }
      answers.Append(Read(view, hashes + i, in_word, indices[now]));
    }
  }

 private:
  // Bit hash % 64 of each word moved to the top.
  static HWY_INLINE V TopBit(D d, V words, V hash) {
    return hn::Shl(words, hn::AndNot(hash, hn::Set(d, 63)));
  }
  static HWY_INLINE uint64_t SignBits(D, V v) {
    const hn::RebindToSigned<D> di;
    return MaskToBits(di, hn::Lt(hn::BitCast(di, v), hn::Zero(di)));
  }

  // Word indices of n <= 64 keys, those of line l from indices + l * 64 on.
  template <bool kPrefetch>
  static HWY_INLINE void Indices(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                                 uint64_t* HWY_RESTRICT indices) {
    const D d;
    size_t i = 0;
    for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
      V hash = hn::LoadU(d, hashes + i);
      for (uint32_t l = 0; l < view.lines; ++l) {
        if (l != 0) hash = hn::Mul(hash, hn::Set(d, View::kNextLine));
        uint64_t* HWY_RESTRICT to = indices + l * kWord + i;
        hn::StoreU(WordIndices(d, hash, view.word_count), d, to);
        if constexpr (kPrefetch) {
          for (size_t lane = 0; lane < hn::Lanes(d); ++lane) hwy::Prefetch(view.words + to[lane]);
        }
      }
    }
    for (; i < n; ++i) {
      uint64_t hash = hashes[i];
      for (uint32_t l = 0; l < view.lines; ++l, hash *= View::kNextLine) {
        indices[l * kWord + i] = view.WordIndex(hash);
        if constexpr (kPrefetch) hwy::Prefetch(view.words + indices[l * kWord + i]);
      }
    }
  }

  // Answers of n <= 64 keys whose word indices are known.
  static HWY_INLINE uint64_t Read(const View& view, const uint64_t* HWY_RESTRICT hashes, size_t n,
                                  const uint64_t* HWY_RESTRICT indices) {
    uint64_t word = 0;
    for (size_t i = 0; i < n; ++i) {
      uint64_t hash = hashes[i];
      uint64_t parity = 0;
      for (uint32_t l = 0; l < view.lines; ++l, hash *= View::kNextLine) {
        parity ^= view.words[indices[l * kWord + i]] >> (hash % 64);
      }
      word |= (parity & 1) << i;
    }
    return word;
  }
};

template <class View>
HWY_INLINE void TouchBy(const View& view, const uint64_t* hashes, size_t n, Answers& answers) {
  using T = Touch<View>;
  using Way = TouchLines::Way;
  switch (view.way) {
    case Way::kFullLine:
      return T::FullLine(view, hashes, n, answers);
    case Way::kGather:
      return T::Gather(view, hashes, n, answers);
    case Way::kVectorAddress:
      return T::VectorAddress(view, hashes, n, answers);
    case Way::kRing16:
      return T::template Ring<16>(view, hashes, n, answers);
    case Way::kRing32:
      return T::template Ring<32>(view, hashes, n, answers);
    case Way::kRing64:
      return T::template Ring<64>(view, hashes, n, answers);
    case Way::kSubBatch:
      return T::SubBatch(view, hashes, n, answers);
    case Way::kNextBatch:
      return T::NextBatch(view, hashes, n, answers);
    case Way::kBest:
    case Way::kPlain:
      break;
  }
  T::Plain(view, hashes, n, answers);
}

uint64_t TouchAll(const TouchLines::View& any_view, const uint64_t* hashes, size_t n,
                  uint64_t* bits_or_null) {
  return SpecializeView(any_view, [=](const auto& view_ref) HWY_ATTR {
    const auto view = view_ref;
    Answers answers(bits_or_null);
    TouchBy(view, hashes, n, answers);
    return answers.count();
  });
}

uint64_t TouchLinesCount(const TouchLines::View& view, const uint64_t* hashes, size_t n) {
  return TouchAll(view, hashes, n, nullptr);
}

void TouchLinesBits(const TouchLines::View& view, const uint64_t* hashes, size_t n,
                    uint64_t* bits) {
  TouchAll(view, hashes, n, bits);
}

Kernel<TouchLines::View> TouchLinesKernel() {
  return MakeKernel<TouchLines::View>(&TouchLinesCount, &TouchLinesBits);
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
