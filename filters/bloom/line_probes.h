#ifndef FILTERBENCH_FILTERS_BLOOM_LINE_PROBES_H_
#define FILTERBENCH_FILTERS_BLOOM_LINE_PROBES_H_

// Probes anywhere in a block of one cache line, from a hash of 32 bits.
//
// Multipliers of the probes are powers of the odd number nearest to 2^32 over the golden ratio,
// from the power 0 on. Probe i is the top 9 bits of the hash times the i-th: uniform, since the
// multiplier is odd. These are the probes of RocksDB's format version 5, too (FastLocalBloomImpl).

#include <cstdint>

namespace filterbench {

inline constexpr int kLineBits = 512;
inline constexpr int kLineWords = kLineBits / 32;
inline constexpr uint32_t kLineProbeMultiplier = 0x9e3779b9;

inline bool LineMayContain(const uint32_t* block, uint32_t hash, uint32_t k) {
  for (uint32_t i = 0; i < k; ++i, hash *= kLineProbeMultiplier) {
    const uint32_t position = hash >> 23;
    if ((block[position / 32] >> (position % 32) & 1) == 0) return false;
  }
  return true;
}

inline void InsertIntoLine(uint32_t* block, uint32_t hash, uint32_t k) {
  for (uint32_t i = 0; i < k; ++i, hash *= kLineProbeMultiplier) {
    const uint32_t position = hash >> 23;
    block[position / 32] |= uint32_t{1} << (position % 32);
  }
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_LINE_PROBES_H_
