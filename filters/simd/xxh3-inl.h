// XXH3-64 of eight-byte keys in vectors, compiled once per target: HashU64 of filters/hash.h.
//
// XXH3 of 4 to 8 bytes (xxhash.h, XXH3_len_4to8_64b) is Finish(L(rotl(key, 32) ^ flip)): `flip`
// depends on the seed only, and L(x) = x ^ rotl(x, 24) ^ rotl(x, 49) is linear over xor. So L of
// the key is computed once for all hash functions of a key, and L of the flip once for all keys.

#if defined(FILTERBENCH_FILTERS_SIMD_XXH3_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_SIMD_XXH3_INL_H_
#undef FILTERBENCH_FILTERS_SIMD_XXH3_INL_H_
#else
#define FILTERBENCH_FILTERS_SIMD_XXH3_INL_H_
#endif

#include <bit>
#include <cstdint>

#include "filters/simd/hwy_compat-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

// What the hash functions with all seeds share of a key.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Xxh3OfKey(D d, V key) {
  (void)d;
  // L(rotl(key, 32)); a rotation by 32 + 49 is one by 17.
  return hn::Xor(hn::RotateRight<32>(key),
                 hn::Xor(hn::RotateRight<64 - 56>(key), hn::RotateRight<64 - 17>(key)));
}

// What the hash functions of all keys share of a seed.
inline uint64_t Xxh3OfSeed(uint64_t seed) {
  constexpr uint64_t kSecret8 = 0x1cad21f72c81017cULL;  // bytes 8 to 15 of the default secret
  constexpr uint64_t kSecret16 = 0xdb979083e96dd4deULL;
  seed ^= uint64_t{__builtin_bswap32(static_cast<uint32_t>(seed))} << 32;
  const uint64_t flip = (kSecret8 ^ kSecret16) - seed;
  return flip ^ std::rotl(flip, 24) ^ std::rotl(flip, 49);
}

// HashU64(key, seed).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Xxh3(D d, V of_key, uint64_t of_seed) {
  const V multiplier = hn::Set(d, 0x9fb21c651e98df25ULL);
  V hash = hn::Mul(hn::Xor(of_key, hn::Set(d, of_seed)), multiplier);
  hash = hn::Xor(hash, hn::Add(hn::ShiftRight<35>(hash), hn::Set(d, sizeof(uint64_t))));
  hash = hn::Mul(hash, multiplier);
  return hn::Xor(hash, hn::ShiftRight<28>(hash));
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
