#ifndef FILTERBENCH_FILTERS_BLOOM_BIT_ARRAY_H_
#define FILTERBENCH_FILTERS_BLOOM_BIT_ARRAY_H_

// The table of the Bloom filters whose probes fall anywhere: bit i is bit i % 64 of word i / 64.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "filters/result.h"
#include "filters/table.h"

namespace filterbench {

inline constexpr uint64_t kMaxBloomBits = uint64_t{1} << 40;

// Bits for n keys, at least 1; beyond kMaxBloomBits where the table is too large to be offered.
inline uint64_t BloomBitsFor(uint64_t n, double bits_per_key) {
  const double bits = std::ceil(static_cast<double>(n) * bits_per_key);
  return static_cast<uint64_t>(std::clamp(bits, 1.0, 0x1p62));
}

// Bytes of the whole 64-bit words that hold so many bits.
constexpr uint64_t BitArrayBytes(uint64_t bits) { return (bits + 63) / 64 * 8; }

inline bool TestBit(const uint64_t* words, uint64_t position) {
  return (words[position / 64] >> (position % 64) & 1) != 0;
}

inline void SetBit(uint64_t* words, uint64_t position) {
  words[position / 64] |= uint64_t{1} << (position % 64);
}

// All zero.
inline Result<AlignedTable> AllocateBitArray(uint64_t bits) {
  if (bits > kMaxBloomBits) {
    return Error{fmt::format("too large: needs {} bytes, limit {}", BitArrayBytes(bits),
                             BitArrayBytes(kMaxBloomBits))};
  }
  return AlignedTable::Allocate(BitArrayBytes(bits));
}

// Whether the unused bits of the last word are 0, as they are in every table that was built.
inline bool UnusedBitsAreZero(const uint64_t* words, uint64_t bits) {
  return bits % 64 == 0 || words[bits / 64] >> (bits % 64) == 0;
}

// Sets all bits of n keys, in order. `positions(i, out)` writes the k <= kMaxProbes positions of
// key i. Where `prefetch`, the positions of a batch of keys are computed and their lines fetched
// before the first is written, since the misses of one key alone would not fill the memory system.
template <uint32_t kMaxProbes, class Positions>
void SetBitsOfKeys(uint64_t* words, size_t n, uint32_t k, bool prefetch,
                   const Positions& positions) {
  constexpr size_t kBatch = 16;
  uint64_t batch[kBatch * kMaxProbes];
  for (size_t first = 0; first < n; first += kBatch) {
    const size_t keys = std::min(kBatch, n - first);
    for (size_t i = 0; i < keys; ++i) positions(first + i, batch + i * k);
    if (prefetch) {
      for (size_t p = 0; p < keys * k; ++p) __builtin_prefetch(words + batch[p] / 64, 1);
    }
    for (size_t p = 0; p < keys * k; ++p) SetBit(words, batch[p]);
  }
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_BIT_ARRAY_H_
