#ifndef FILTERBENCH_FILTERS_BLOOM_BIT_ARRAY_H_
#define FILTERBENCH_FILTERS_BLOOM_BIT_ARRAY_H_

// The table of the Bloom filters whose probes fall anywhere: bit i is bit i % 64 of word i / 64.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "filters/bloom/key_count.h"
#include "filters/result.h"
#include "filters/table.h"
#include "filters/wire.h"

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

// Of a filter, what its wire format holds besides its parameters.
struct BitArray {
  uint64_t capacity;  // the number of keys that it was sized for
  uint64_t inserted;  // keys, duplicates counted
  uint64_t bits;
  AlignedTable table;
};

// For so many keys, all zero.
inline Result<BitArray> MakeBitArray(uint64_t capacity, double bits_per_key) {
  const uint64_t bits = BloomBitsFor(capacity, bits_per_key);
  Result<AlignedTable> table = AllocateBitArray(bits);
  if (!table) return Error{table.error()};
  return BitArray{capacity, 0, bits, std::move(*table)};
}

inline constexpr uint32_t kBitArrayWireVersion = 2;

template <class F>
std::vector<std::byte> WriteBitArray(const typename F::Params& params, uint64_t capacity,
                                     uint64_t inserted, uint64_t bits,
                                     std::span<const std::byte> table) {
  WireWriter writer(F::kInfo.name, kBitArrayWireVersion);
  WriteParams<F>(writer, params);
  writer.U64(capacity).U64(inserted).U64(bits).Bytes(table);
  return std::move(writer).Finish();
}

// `probes_for(params)` bits at most are set by a key.
template <class F, class ProbesFor>
Result<std::pair<typename F::Params, BitArray>> ReadBitArray(std::span<const std::byte> wire,
                                                              const ProbesFor& probes_for) {
  WireReader reader(wire, F::kInfo.name, kBitArrayWireVersion);
  const typename F::Params params = ReadParams<F>(reader);
  const uint64_t capacity = reader.U64("capacity", 0, UINT64_MAX);
  const uint64_t inserted = reader.U64("inserted", 0, UINT64_MAX);
  const uint64_t expected_bits = BloomBitsFor(capacity, params.bits_per_key);
  const uint64_t bits = reader.U64("bits", 1, kMaxBloomBits);
  if (reader.ok() && bits != expected_bits) {
    reader.Refuse("bits", fmt::format("is {}, {} keys need {}", bits, capacity, expected_bits));
  }
  AlignedTable table = reader.Table("table", BitArrayBytes(bits));
  if (reader.ok() && !UnusedBitsAreZero(table.As<uint64_t>(), bits)) {
    reader.Refuse("table", fmt::format("has bits set beyond bit {}", bits - 1));
  }
  reader.ExpectEnd();
  if (reader.ok()) CheckKeys(reader, "inserted", inserted, probes_for(params), table.bytes());
  if (!reader.ok()) return Error{reader.error()};
  return std::pair(params, BitArray{capacity, inserted, bits, std::move(table)});
}

// A part of the table: positions [first, first + size).
struct BitRange {
  uint64_t first;
  uint64_t size;
  bool Contains(uint64_t position) const { return position - first < size; }
};

// Calls insert(part) for parts of whole cache lines that together are the table, each in its own
// thread where there are several: no two write to the same line, and the bytes do not depend on the
// number of threads. Every thread computes the positions of all keys, so this pays where writing
// costs more than that: in tables beyond the second-level cache.
template <class InsertPart>
void InsertInParts(uint64_t bits, unsigned threads, const InsertPart& insert) {
  if (threads <= 1) return insert(BitRange{0, bits});
  constexpr uint64_t kLineBits = kCacheLineBytes * 8;
  const uint64_t lines = (bits + kLineBits - 1) / kLineBits;
  std::vector<std::jthread> workers;
  for (unsigned t = 0; t < threads; ++t) {
    const auto first_line = [lines, threads](unsigned part) {
      return static_cast<uint64_t>(static_cast<unsigned __int128>(lines) * part / threads);
    };
    const BitRange part{first_line(t) * kLineBits,
                        (first_line(t + 1) - first_line(t)) * kLineBits};
    if (part.size != 0) workers.emplace_back([&insert, part] { insert(part); });
  }
}

// Sets the bits of n keys that lie in `part`. `positions(i, out)` writes the k <= kMaxProbes
// positions of key i. Where `prefetch`, the positions of a batch of keys are computed and their
// lines fetched before the first is written, since the misses of one key alone would not fill the
// memory system.
template <uint32_t kMaxProbes, class Positions>
void SetBitsOfKeys(uint64_t* words, size_t n, uint32_t k, bool prefetch, BitRange part,
                   const Positions& positions) {
  constexpr size_t kBatch = 16;
  uint64_t batch[kBatch * kMaxProbes];
  for (size_t first = 0; first < n; first += kBatch) {
    const size_t keys = std::min(kBatch, n - first);
    for (size_t i = 0; i < keys; ++i) positions(first + i, batch + i * k);
    if (prefetch) {
      for (size_t p = 0; p < keys * k; ++p) {
        if (part.Contains(batch[p])) __builtin_prefetch(words + batch[p] / 64, 1);
      }
    }
    for (size_t p = 0; p < keys * k; ++p) {
      if (part.Contains(batch[p])) SetBit(words, batch[p]);
    }
  }
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_BIT_ARRAY_H_
