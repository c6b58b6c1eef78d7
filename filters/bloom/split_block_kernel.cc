// Lookups of the split block filters in vectors: the eight words of a block lie in one vector or a
// few, and so do the masks of a key.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/split_block_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include <type_traits>

#include "filters/bloom/split_block.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "filters/simd/missing-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

using SplitD = hn::CappedTag<uint32_t, kSplitWords>;
using SplitV = hn::Vec<SplitD>;

// What the bits of a key in the words from `first` on come from; the sign chooses the half of a
// word of 64 bits.
HWY_INLINE SplitV SplitProducts(uint64_t hash, size_t first) {
  const SplitD d;
  return hn::Mul(hn::Set(d, static_cast<uint32_t>(hash)), hn::LoadU(d, kSplitBlockSalts + first));
}

// The bits, one in each word of 32 bits.
template <int kWordBits>
HWY_INLINE SplitV SplitMasks(SplitV products) {
  const SplitD d;
  const SplitV positions = kWordBits == 32
                               ? hn::ShiftRight<27>(products)
                               : hn::And(hn::ShiftRight<26>(products), hn::Set(d, 31));
  return hn::Shl(hn::Set(d, 1), positions);
}

template <class View>
class SplitLookup {
  using D64 = hn::CappedTag<uint64_t, 8>;
  static constexpr bool kHalves = View::kWordBits == 64;

 public:
  static constexpr size_t kGroup = 8;
  struct Chunk {
    const uint64_t* hashes;
    HWY_ALIGN uint64_t offsets[kChunkKeys];  // of the block, in bytes
  };

  explicit SplitLookup(const View& view) : view_(view) {}

  HWY_INLINE bool MayContain(uint64_t hash) const {
    const SplitD d;
    const uint32_t* block =
        view_.words + view_.BlockOf(hash) * (kSplitWords * View::kWordBits / 32);
    SplitV missing = Missing(block, hash, 0);
    for (size_t first = hn::Lanes(d); first < kSplitWords; first += hn::Lanes(d)) {
      missing = hn::Or(missing, Missing(block, hash, first));
    }
    return NothingMissing(d, missing);
  }

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    const D64 d;
    chunk.hashes = hashes;
    [[maybe_unused]] const auto blocks = hn::Set(d, view_.blocks);
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      const auto hash = hn::LoadU(d, hashes + i);
      if constexpr (kHalves) {
        hn::Store(hn::ShiftLeft<6>(FastRange64<true>(d, hash, view_.blocks)), d, chunk.offsets + i);
      } else if constexpr (std::is_same_v<View, ImpalaView>) {
        const auto low = MulLow32(d, hash, hn::Set(d, View::kRehashFactor & 0xffffffff));
        const auto high = MulLow32(d, hash, hn::Set(d, View::kRehashFactor >> 32));
        const auto sum = hn::Add(hn::Add(low, hn::ShiftLeft<32>(high)),
                                 hn::Set(d, View::kRehashSummand));
        const auto block = hn::And(hn::ShiftRight<32>(sum), hn::Set(d, view_.blocks - 1));
        hn::Store(hn::ShiftLeft<5>(block), d, chunk.offsets + i);
      } else {
        const auto block = hn::ShiftRight<32>(MulLow32(d, hn::ShiftRight<32>(hash), blocks));
        hn::Store(hn::ShiftLeft<5>(block), d, chunk.offsets + i);
      }
    }
  }

  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const { hwy::Prefetch(Block(chunk, i)); }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
    return TestPairs(chunk, i);
#else
    const SplitD d;
    return NothingMissingOf8(d, [&](size_t j) FILTERBENCH_INLINE_LAMBDA {
      const uint32_t* block = Block(chunk, i + j);
      SplitV missing = Missing(block, chunk.hashes[i + j], 0);
      for (size_t first = hn::Lanes(d); first < kSplitWords; first += hn::Lanes(d)) {
        missing = hn::Or(missing, Missing(block, chunk.hashes[i + j], first));
      }
      return missing;
    });
#endif
  }

  HWY_INLINE void Add(std::byte* HWY_RESTRICT table, const Chunk& chunk, size_t i) const {
    const SplitD d;
    uint32_t* block = reinterpret_cast<uint32_t*>(table + chunk.offsets[i]);
    for (size_t first = 0; first < kSplitWords; first += hn::Lanes(d)) {
      const SplitV products = SplitProducts(chunk.hashes[i], first);
      const SplitV masks = SplitMasks<View::kWordBits>(products);
      SplitV low = masks;
      if constexpr (kHalves) {
        const hn::RebindToSigned<SplitD> di;
        const auto high_half = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(di, products)));
        uint32_t* high = block + kSplitWords + first;
        hn::Store(hn::Or(hn::Load(d, high), hn::And(masks, high_half)), d, high);
        low = hn::AndNot(high_half, low);
      }
      hn::Store(hn::Or(hn::Load(d, block + first), low), d, block + first);
    }
  }

 private:
  HWY_INLINE const uint32_t* Block(const Chunk& chunk, size_t i) const {
    return reinterpret_cast<const uint32_t*>(reinterpret_cast<const std::byte*>(view_.words) +
                                             chunk.offsets[i]);
  }

  // The word halves that the products choose.
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V Chosen(D d, V products, V low, V high) {
    const hn::RebindToSigned<D> di;
    return hn::BitCast(
        d, IfNegative(di, hn::BitCast(di, products), hn::BitCast(di, high), hn::BitCast(di, low)));
  }

  // The bits that are not set, of the words from `first` on.
  static HWY_INLINE SplitV Missing(const uint32_t* HWY_RESTRICT block, uint64_t hash,
                                   size_t first) {
    const SplitD d;
    const SplitV products = SplitProducts(hash, first);
    SplitV words = hn::Load(d, block + first);
    if constexpr (kHalves) {
      words = Chosen(d, products, words, hn::Load(d, block + kSplitWords + first));
    }
    return hn::AndNot(words, SplitMasks<View::kWordBits>(products));
  }

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  // The eight lanes of two keys fill one register.
  HWY_INLINE uint64_t TestPairs(const Chunk& chunk, size_t i) const {
    const hn::CappedTag<uint32_t, 16> d;
    const SplitD half;
    const auto salts = hn::Load(half, kSplitBlockSalts);
    const auto both_salts = hn::Combine(d, salts, salts);
    return NothingMissingOf8InPairs(d, [&](size_t j) FILTERBENCH_INLINE_LAMBDA {
      const size_t first = i + j;
      const size_t second = first + 4;
      const auto hash_of = [&](size_t key) FILTERBENCH_INLINE_LAMBDA {
        return hn::Set(half, static_cast<uint32_t>(chunk.hashes[key]));
      };
      const auto words_from = [&](size_t word) FILTERBENCH_INLINE_LAMBDA {
        return hn::Combine(d, hn::Load(half, Block(chunk, second) + word),
                           hn::Load(half, Block(chunk, first) + word));
      };
      const auto products = hn::Mul(hn::Combine(d, hash_of(second), hash_of(first)), both_salts);
      const auto one = hn::Set(d, 1);
      if constexpr (kHalves) {
        const auto positions = hn::And(hn::ShiftRight<26>(products), hn::Set(d, 31));
        const auto words = Chosen(d, products, words_from(0), words_from(kSplitWords));
        return hn::AndNot(words, hn::Shl(one, positions));
      } else {
        return hn::AndNot(words_from(0), hn::Shl(one, hn::ShiftRight<27>(products)));
      }
    });
  }
#endif

  const View view_;
};

Kernel<SplitBlock::View> SplitBlockKernel() {
  return ChunkedLoops<SplitBlock::View, SplitLookup>::MakeWithSingleAndInsert();
}
Kernel<SplitBlock512::View> SplitBlock512Kernel() {
  return ChunkedLoops<SplitBlock512::View, SplitLookup>::MakeWithSingleAndInsert();
}
Kernel<ImpalaBloom::View> ImpalaBloomKernel() {
  return ChunkedLoops<ImpalaBloom::View, SplitLookup>::MakeWithSingleAndInsert();
}

#else  // HWY_SCALAR: a vector holds no two words of a block

Kernel<SplitBlock::View> SplitBlockKernel() {
  return ReferenceKernel<SplitBlock::View>(TargetName(HWY_TARGET));
}
Kernel<SplitBlock512::View> SplitBlock512Kernel() {
  return ReferenceKernel<SplitBlock512::View>(TargetName(HWY_TARGET));
}
Kernel<ImpalaBloom::View> ImpalaBloomKernel() {
  return ReferenceKernel<ImpalaBloom::View>(TargetName(HWY_TARGET));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(SplitBlockKernel);
HWY_EXPORT(SplitBlock512Kernel);
HWY_EXPORT(ImpalaBloomKernel);

template <>
std::span<const Kernel<SplitBlock::View>> SplitBlock::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(SplitBlockKernel)(); });
  return kernels;
}

template <>
std::span<const Kernel<SplitBlock512::View>> SplitBlock512::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(SplitBlock512Kernel)(); });
  return kernels;
}

template <>
std::span<const Kernel<ImpalaBloom::View>> ImpalaBloom::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(ImpalaBloomKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
