// Lookups of ScalableBloom: sub-batches of keys go through the layers from the newest one, in
// rounds over keys (filters/bloom/probe_rounds-inl.h); those that a layer contains do not go on to
// the next.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/bloom/scalable_bloom_kernel.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "filters/bloom/probe_chain-inl.h"
#include "filters/bloom/probe_rounds-inl.h"
#include "filters/bloom/scalable_bloom.h"
#include "filters/simd/loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

struct GivenHash {
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, const uint64_t* HWY_RESTRICT hashes) const {
    return hn::LoadU(d, hashes);
  }
};

using NarrowChain = ChainProbes<true, GivenHash>;
using WideChain = ChainProbes<false, GivenHash>;
constexpr size_t kSubBatch = ProbeRounds<NarrowChain, false>::kSubBatch;

// Writes one byte per key, 1 where the layer contains it; returns how many it contains.
template <class Probes, bool kPrefetch>
HWY_NOINLINE size_t MarkContained(const ScalableBloom::Layer& layer,
                                  const uint64_t* HWY_RESTRICT hashes, size_t n,
                                  uint8_t* HWY_RESTRICT contained) {
  ProbeRounds<Probes, kPrefetch> rounds(Probes(GivenHash(), layer.bits), layer.words, layer.k);
  const size_t positives = rounds.LookUp(hashes, n);
  std::fill(contained, contained + n, uint8_t{0});
  for (size_t i = 0; i < positives; ++i) contained[rounds.keys()[i]] = 1;
  return positives;
}

size_t MarkContained(const ScalableBloom::Layer& layer, const uint64_t* HWY_RESTRICT hashes,
                     size_t n, uint8_t* HWY_RESTRICT contained) {
  if (layer.bits < uint64_t{1} << 32) {
    return layer.prefetch ? MarkContained<NarrowChain, true>(layer, hashes, n, contained)
                          : MarkContained<NarrowChain, false>(layer, hashes, n, contained);
  }
  return layer.prefetch ? MarkContained<WideChain, true>(layer, hashes, n, contained)
                        : MarkContained<WideChain, false>(layer, hashes, n, contained);
}

uint64_t ScalableBloomRun(const ScalableBloom::View& view, const uint64_t* hashes, size_t n,
                          uint64_t* bits) {
  const ScalableBloom::Layers& all = *view.all;
  uint64_t open_hashes[kSubBatch];
  uint16_t open_keys[kSubBatch];
  uint8_t contained[kSubBatch];
  uint64_t count = 0;
  if (bits != nullptr) std::fill(bits, bits + (n + 63) / 64, 0);
  for (size_t from = 0; from < n; from += kSubBatch) {
    size_t open = std::min(kSubBatch, n - from);
    std::copy(hashes + from, hashes + from + open, open_hashes);
    for (size_t i = 0; i < open; ++i) open_keys[i] = static_cast<uint16_t>(i);
    for (uint32_t l = all.count; l-- > 0 && open != 0;) {
      const size_t positives = MarkContained(all.layers[l], open_hashes, open, contained);
      if (positives == 0) continue;
      count += positives;
      size_t left = 0;
      for (size_t i = 0; i < open; ++i) {
        const size_t key = open_keys[i];
        if (bits != nullptr) bits[(from + key) / 64] |= uint64_t{contained[i]} << (key % 64);
        open_hashes[left] = open_hashes[i];
        open_keys[left] = static_cast<uint16_t>(key);
        left += 1 - contained[i];
      }
      open = left;
    }
  }
  return count;
}

Kernel<ScalableBloom::View> ScalableBloomKernel() {
  return MakeKernel<ScalableBloom::View, &ScalableBloomRun>();
}

#else  // HWY_SCALAR: rounds of one key

Kernel<ScalableBloom::View> ScalableBloomKernel() {
  return ReferenceKernel<ScalableBloom::View>(TargetName(HWY_TARGET));
}

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(ScalableBloomKernel);

std::span<const Kernel<ScalableBloom::View>> ScalableBloom::Kernels() {
  static const auto kernels =
      CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(ScalableBloomKernel)(); });
  return kernels;
}

}  // namespace filterbench
#endif  // HWY_ONCE
