// Lookups of Quotient in batches: fingerprints of several keys are computed at once and their lines
// asked for ahead; keys whose quotient has no run are sorted out without a branch for each. What is
// left is counting bits, one key at a time.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/quotient/quotient_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/quotient/quotient.h"
#include "filters/simd/loops-inl.h"
#include "filters/simd/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

template <class View>
class QuotientLookup {
 public:
  static constexpr size_t kGroup = 16;
  struct Chunk {
    HWY_ALIGN uint64_t fingerprints[kChunkKeys];
  };

  explicit QuotientLookup(const View& view) : view_(view) {}

  HWY_INLINE void Prepare(const uint64_t* HWY_RESTRICT hashes, Chunk& chunk) const {
    const hn::CappedTag<uint64_t, 8> d;
    const auto salt = hn::Set(d, view_.salt);
    const auto gamma = hn::Set(d, kGoldenGamma);
    const uint64_t range = view_.quotients << view_.remainder_bits;
    for (size_t i = 0; i < kChunkKeys; i += hn::Lanes(d)) {
      const auto mixed = hn::Mul(hn::Xor(hn::LoadU(d, hashes + i), salt), gamma);
      hn::Store(FastRange64<false>(d, mixed, range), d, chunk.fingerprints + i);
    }
  }

  // The words of the block, and the remainder where it belongs: most are not shifted far.
  HWY_INLINE void Prefetch(const Chunk& chunk, size_t i) const {
    const uint64_t quotient = chunk.fingerprints[i] >> view_.remainder_bits;
    const std::byte* block = view_.Block(quotient / Quotient::kSlotsPerBlock);
    hwy::Prefetch(block);
    hwy::Prefetch(block + Quotient::kRemaindersAt +
                  quotient % Quotient::kSlotsPerBlock * view_.remainder_bits / 8);
  }

  HWY_INLINE uint64_t Test(const Chunk& chunk, size_t i) const {
    uint64_t with_run[kGroup + 1];
    size_t count = 0;
    for (size_t j = 0; j < kGroup; ++j) {
      with_run[count] = j;
      count += view_.IsOccupied(chunk.fingerprints[i + j] >> view_.remainder_bits) ? 1 : 0;
    }
    uint64_t answers = 0;
    for (size_t c = 0; c < count; ++c) {
      const uint64_t fingerprint = chunk.fingerprints[i + with_run[c]];
      const Quotient::Place place{fingerprint >> view_.remainder_bits,
                                  fingerprint & LowBits(view_.remainder_bits)};
      answers |= uint64_t{view_.Contains(place)} << with_run[c];
    }
    return answers;
  }

 private:
  const View view_;
};

Kernel<Quotient::View> QuotientKernel() {
  return ChunkedLoops<Quotient::View, QuotientLookup>::Make();
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(QuotientKernel);

std::span<const Kernel<Quotient::View>> Quotient::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(QuotientKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
