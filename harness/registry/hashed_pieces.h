#ifndef FILTERBENCH_HARNESS_REGISTRY_HASHED_PIECES_H_
#define FILTERBENCH_HARNESS_REGISTRY_HASHED_PIECES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "filters/hash.h"
#include "harness/registry/erased_filter.h"

namespace filterbench {

// The sum of count(hashes) over a stream of keys that are not hashed yet: each piece of hashes is
// made right before it is asked for, and stays in the first-level cache.
template <class Count>
uint64_t SumOverHashedPieces(const KeyStream& stream, const Count& count) {
  constexpr size_t kSubBatch = 1024;
  std::array<uint64_t, kSubBatch> hashes;
  uint64_t sum = 0;
  for (size_t i = 0; i < stream.size(); i += kSubBatch) {
    const size_t in_batch = std::min(kSubBatch, stream.size() - i);
    for (size_t j = 0; j < in_batch; ++j) {
      hashes[j] = stream.hashing == Hashing::kXxh3U64
                      ? HashU64(stream.words[i + j], stream.hash_seed)
                      : HashBytes(stream.bytes[i + j], stream.hash_seed);
    }
    sum += count(std::span<const uint64_t>(hashes).first(in_batch));
  }
  return sum;
}

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_REGISTRY_HASHED_PIECES_H_
