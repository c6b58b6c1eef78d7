#ifndef FILTERBENCH_FILTERS_BLOOM_PROBE_CHAIN_H_
#define FILTERBENCH_FILTERS_BLOOM_PROBE_CHAIN_H_

// Bloom probes from one hash whose rate is that of independent ones in tables of any size: probe i
// is FastRange64 of the hash times the i-th power of an odd multiplier.
//
// Double hashing draws two numbers below m, so that keys share all probes with a probability of
// about k / m^2, which shows below some 1e5 bits (KmBloom). Products draw on all 64 bits of the
// hash: two hashes differ by d, their i-th products by d times the i-th power, and all of those are
// small only where the lattice of the multiplier is bad. This one is from the lists of multipliers
// with good lattices of Steele, Vigna, "Computationally easy, spectrally good multipliers for
// congruential pseudorandom number generators", 2022 (64 bits, multiplicative).

#include <cstdint>

#include "filters/bloom/bit_array.h"
#include "filters/hash.h"

namespace filterbench {

class ProbeChain {
 public:
  static constexpr uint64_t kMultiplier = 0xf1357aea2e62a9c5ULL;

  constexpr explicit ProbeChain(uint64_t hash) : state_(hash) {}
  // In [0, bits).
  constexpr uint64_t Position(uint64_t bits) const { return FastRange64(state_, bits); }
  constexpr void Next() { state_ *= kMultiplier; }

 private:
  uint64_t state_;
};

// Whether all k bits of a hash are set.
inline bool TestChain(const uint64_t* words, uint64_t bits, uint32_t k, uint64_t hash) {
  ProbeChain chain(hash);
  for (uint32_t i = 0; i < k; ++i, chain.Next()) {
    if (!TestBit(words, chain.Position(bits))) return false;
  }
  return true;
}

// Sets them and returns how many were not set before.
inline uint32_t SetChain(uint64_t* words, uint64_t bits, uint32_t k, uint64_t hash) {
  ProbeChain chain(hash);
  uint32_t added = 0;
  for (uint32_t i = 0; i < k; ++i, chain.Next()) {
    const uint64_t position = chain.Position(bits);
    added += TestBit(words, position) ? 0 : 1;
    SetBit(words, position);
  }
  return added;
}

inline void PrefetchChain(const uint64_t* words, uint64_t bits, uint32_t k, uint64_t hash) {
  ProbeChain chain(hash);
  for (uint32_t i = 0; i < k; ++i, chain.Next()) {
    __builtin_prefetch(words + chain.Position(bits) / 64);
  }
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_PROBE_CHAIN_H_
