#ifndef FILTERBENCH_FILTERS_BLOOM_LEVELDB_BLOOM_H_
#define FILTERBENCH_FILTERS_BLOOM_LEVELDB_BLOOM_H_

// LevelDB's Bloom filter, bit by bit: the bytes that its built-in policy stores.
//
// Idea: one 32-bit hash h of the key, k = 0.69 bits_per_key probes h + i d mod 2^32 with d = h
// rotated right by 17, each taken modulo the number of bits, which is a multiple of 8 and at least
// 64. The last byte of the filter is k.
// Source: LevelDB, util/bloom.cc and util/hash.cc (version 1.23). Keys: the hash is LevelDB's own,
// over the whole byte string, or over the eight little-endian bytes of an integer: a 64-bit hash is
// a key of eight bytes like any other, so that each table equals what the library makes of those
// bytes (LevelDbPeer). `system_bloom` with `words: one_32` takes the lower half of a 64-bit hash
// instead, for which it has the same probes.
// Limits: 32 bits of hash, a floor of n / 2^32; k is rounded down (6 at 10 bits per key, where 7 is
// the optimum); no bit beyond 2^32 is ever set. h + 2 d is a multiple of 65537 but for wraps: the
// third probe has 3 2^16 values, all of them set from some 1e5 keys on (1.2 to 1.5 % instead of
// 0.84 % at 1e5 keys, up to 2 % at 3e5). The filters that LevelDB makes, one for 2 KiB of data,
// stay below that and have a rate some percent above the classic one: filters/theory/systems.h.
// When it loses: k cache misses to a positive lookup, and a remainder to each probe.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "filters/bloom/bit_array.h"
#include "filters/bloom/remainder.h"
#include "filters/filter.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

static_assert(std::endian::native == std::endian::little,
              "bit i is bit i % 8 of byte i / 8, read here as bits of little-endian words");

class LevelDbBloom {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "leveldb_bloom",
      .summary = "LevelDB's built-in Bloom filter, bit by bit, with LevelDB's own hash of the key",
      .source = "LevelDB 1.23, util/bloom.cc, util/hash.cc",
      .fpr_formula =
          "classic rate of positions h mod m, plus what pairs of keys on one progression "
          "share (Dillinger, Manolios 2004), plus n / 2^32 for equal hashes",
      .hash_bits = 32,
  };

  struct Params {
    uint32_t bits_per_key = 10;
    uint64_t seed = 0;  // LevelDB's hash has a fixed one: changes nothing
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, uint32_t>{"bits_per_key", &Params::bits_per_key, 1, 128,
                             "size of the table over the number of keys"},
  };

  static constexpr uint32_t kMaxProbes = 30;

  // 0.69 for ln 2, rounded down "to reduce the cost of probing".
  static constexpr uint32_t ProbesFor(uint32_t bits_per_key) {
    const auto probes = static_cast<uint32_t>(bits_per_key * 0.69);
    return probes < 1 ? 1 : probes > kMaxProbes ? kMaxProbes : probes;
  }
  // Beyond kMaxBloomBits where the table is too large to be offered.
  static constexpr uint64_t BitsFor(uint64_t keys, uint32_t bits_per_key) {
    // Where the product might pass 2^64.
    if (keys > UINT64_MAX >> 8) return UINT64_MAX / 8 * 8;
    const uint64_t bits = keys * bits_per_key;
    return bits < 64 ? 64 : (bits + 7) / 8 * 8;
  }

  // LevelDB's Hash with the seed of its Bloom filter.
  static uint32_t Hash(std::string_view key) noexcept;
  static constexpr uint32_t HashOfInteger(uint64_t value) noexcept {
    uint32_t hash = kHashSeed ^ static_cast<uint32_t>(sizeof(value) * kHashMultiplier);
    for (const uint64_t word : {value & UINT32_MAX, value >> 32}) {
      hash = (hash + static_cast<uint32_t>(word)) * kHashMultiplier;
      hash ^= hash >> 16;
    }
    return hash;
  }

  struct View {
    const uint64_t* words;
    Remainder32 position;
    uint32_t k;
    bool prefetch;  // building prefetches

    // By the 32-bit hash of the key.
    bool MayContainHash(uint32_t hash) const noexcept {
      const uint32_t delta = std::rotr(hash, 17);
      for (uint32_t i = 0; i < k; ++i, hash += delta) {
        if (!TestBit(words, position(hash))) return false;
      }
      return true;
    }
    // `value`: an integer key, or the hash of a key that was hashed before.
    bool MayContain(uint64_t value) const noexcept { return MayContainHash(HashOfInteger(value)); }
    bool MayContainBytes(std::string_view key) const noexcept { return MayContainHash(Hash(key)); }
  };

  // Sized for `keys` keys, holding none.
  static Result<LevelDbBloom> Create(uint64_t keys, const Params& params);
  static Result<LevelDbBloom> Build(std::span<const uint64_t> values, const Params& params);
  static Result<LevelDbBloom> BuildFromBytes(ByteKeys keys, const Params& params);
  static Result<LevelDbBloom> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Never refused; each key beyond the number that Create was given raises the FPR.
  InsertStatus Insert(uint64_t value);
  // Leaves the bytes of Build over all values, whatever the pieces and the threads.
  void InsertAll(std::span<const uint64_t> values, unsigned threads = 1);

  View view() const {
    return {table_.As<uint64_t>(), Remainder32(bits_), k_, PrefetchPays(table_.size())};
  }
  bool MayContain(uint64_t value) const noexcept { return view().MayContain(value); }
  bool MayContainBytes(std::string_view key) const noexcept { return view().MayContainBytes(key); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  // What LevelDB stores: the bits, and a byte that is k.
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  std::optional<FprEstimate> ExpectedFpr() const;
  static std::optional<double> TheoryFpr(double bits_per_key);

 private:
  LevelDbBloom(const Params& params, uint64_t capacity, uint64_t keys, AlignedTable table);
  template <class HashOf>
  void SetBits(size_t n, unsigned threads, const HashOf& hash_of);

  static constexpr uint32_t kHashSeed = 0xbc9f1d34;
  static constexpr uint32_t kHashMultiplier = 0xc6a4a793;

  Params params_;
  uint64_t capacity_;  // keys that it was sized for
  uint64_t keys_;      // keys inserted
  uint64_t bits_;
  uint32_t k_;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_LEVELDB_BLOOM_H_
