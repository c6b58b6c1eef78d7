// The probes of probe_chain.h for rounds over keys (probe_rounds-inl.h), compiled once per target.

#if defined(FILTERBENCH_FILTERS_BLOOM_PROBE_CHAIN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_BLOOM_PROBE_CHAIN_INL_H_
#undef FILTERBENCH_FILTERS_BLOOM_PROBE_CHAIN_INL_H_
#else
#define FILTERBENCH_FILTERS_BLOOM_PROBE_CHAIN_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "filters/bloom/probe_chain.h"
#include "filters/simd/hwy_compat-inl.h"
#include "filters/simd/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// `Hash::Load(d, keys)` gives the hashes of a vector of keys.
template <bool kNarrow, class Hash>  // kNarrow: the table has less than 2^32 bits
class ChainProbes {
 public:
  using T = uint64_t;
  using D = hn::CappedTag<T, 8>;
  using V = hn::Vec<D>;
  static constexpr size_t kMaxProbes = 64;
  static constexpr size_t kStates = 1;  // the product so far
  static constexpr bool kPositionIsState = false;

  ChainProbes(const Hash& hash, uint64_t bits) : hash_(hash), bits_(bits) {}

  HWY_INLINE void Begin(const uint64_t* HWY_RESTRICT keys, V& state, V&) const {
    state = hash_.Load(D(), keys);
  }
  HWY_INLINE V Position(V state, uint32_t) const {
    return FastRange64<kNarrow>(D(), state, bits_);
  }
  HWY_INLINE void Next(V& state, V&, uint32_t) const {
    state = hn::Mul(state, hn::Set(D(), ProbeChain::kMultiplier));
  }

 private:
  Hash hash_;
  uint64_t bits_;
};

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
