#ifndef FILTERBENCH_FILTERS_HASH_H_
#define FILTERBENCH_FILTERS_HASH_H_

// The one place where keys become 64-bit hashes, and the few arithmetic steps that turn a hash
// into positions. Filters take hashes; they never see keys, except those that are about hashing
// itself (ClassicBloom).

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace filterbench {

// Byte-string keys as one arena: key i is bytes[offsets[i], offsets[i + 1]).
struct ByteKeys {
  const char* bytes = nullptr;
  const uint64_t* offsets = nullptr;  // size + 1 entries
  size_t size = 0;

  std::string_view operator[](size_t i) const {
    return {bytes + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i])};
  }
};

// XXH3-64 of the key's eight bytes in little-endian order: the same hash on every machine.
inline uint64_t HashU64(uint64_t key, uint64_t seed) noexcept {
  if constexpr (std::endian::native == std::endian::big) key = __builtin_bswap64(key);
  return XXH3_64bits_withSeed(&key, sizeof(key), seed);
}

inline uint64_t HashBytes(std::string_view key, uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

// 2^64 over the golden ratio, made odd: successive multiples of it are spread evenly (Knuth, The
// Art of Computer Programming 3, section 6.4).
inline constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15ULL;

// The finalizer of MurmurHash3 (Appleby): a bijection of 64-bit words that mixes every input bit
// into every output bit. Used to derive independent values from a hash that is already uniform.
constexpr uint64_t Mix64(uint64_t x) noexcept {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  x ^= x >> 33;
  return x;
}

// Upper half of the 128-bit product.
constexpr uint64_t MulHigh64(uint64_t a, uint64_t b) noexcept {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
}

// Maps a uniform 64-bit hash to [0, range) (Lemire, "Fast random integer generation in an
// interval", 2019, section 4). Decided by the high bits of the hash: what chooses inside the
// chosen place must come from the others. All 64 bits count, so ranges beyond 2^32 are reached.
constexpr uint64_t FastRange64(uint64_t hash, uint64_t range) noexcept {
  return MulHigh64(hash, range);
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_HASH_H_
