#ifndef FILTERBENCH_FILTERS_BLOOM_CLASSIC_H_
#define FILTERBENCH_FILTERS_BLOOM_CLASSIC_H_

// Bloom filter with k independent hash functions: the textbook structure at its textbook price.
//
// Idea: each of k hash functions of the key sets, or asks for, one bit anywhere in the table. The
// functions are k seeded XXH3-64 calls over the key itself: eight bytes of an integer, or the whole
// byte string.
// Source: Bloom, "Space/Time Trade-offs in Hash Coding with Allowable Errors", 1970.
// Limits: a negative lookup costs two hash calls and two cache misses on average, a positive one k
// of both. When it loses: always on time; it is here as the reference for the FPR and to show what
// independent hashing costs (KmBloom has nearly the same FPR from one hash).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "filters/bloom/bit_array.h"
#include "filters/filter.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"
#include "filters/theory/bloom.h"

namespace filterbench {

class ClassicBloom {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "classic_bloom",
      .summary = "Bloom filter with k independent hash functions, each over the whole key",
      .source = "Bloom 1970",
      .fpr_formula = "E[(set/m)^k] over the occupancy of n k balls in m cells (Bose et al. 2008); "
                     "(1 - e^(-k n / m))^k for many keys (Bloom 1970)",
      .hash_bits = 64,
  };

  static constexpr uint32_t kMaxProbes = theory::kMaxClassicProbes;

  struct Params {
    double bits_per_key = 10;
    uint32_t k = 0;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 0.5, 128,
                           "size of the table over the number of keys"},
      Knob<Params, uint32_t>{"k", &Params::k, 0, kMaxProbes,
                             "probes per key; 0 takes the optimum, near bits_per_key ln 2"},
  };

  // Seed of hash function i: a Weyl sequence with the odd number nearest to 2^64 over the golden
  // ratio, not seed + i. XXH3 of eight bytes xors the key with a word made from the seed, then
  // mixes: two keys that differ as two such words do share a hash value. Words of seeds in a row
  // differ in the same few bits, so that integers on a grid in those bits share nearly all values
  // (93 % false positives on half of such a grid). The low halves of these seeds differ in many
  // bits, which integers below 2^32 cannot match.
  static constexpr uint64_t HashSeed(uint64_t seed, uint32_t i) {
    return seed + i * 0x9e3779b97f4a7c15ULL;
  }
  static constexpr uint64_t Position(uint64_t hash, uint64_t bits) {
    return FastRange64(hash, bits);
  }

  struct View {
    const uint64_t* words;
    uint64_t bits;
    uint64_t seed;
    uint32_t k;
    bool prefetch;  // batched lookups prefetch their lines

    // `value`: an integer key, or the hash of a key that was hashed before.
    bool MayContain(uint64_t value) const noexcept {
      for (uint32_t i = 0; i < k; ++i) {
        if (!TestBit(words, Position(HashU64(value, HashSeed(seed, i)), bits))) return false;
      }
      return true;
    }
    bool MayContainBytes(std::string_view key) const noexcept {
      for (uint32_t i = 0; i < k; ++i) {
        if (!TestBit(words, Position(HashBytes(key, HashSeed(seed, i)), bits))) return false;
      }
      return true;
    }
  };

  // Sized for `keys` keys, holding none.
  static Result<ClassicBloom> Create(uint64_t keys, const Params& params);
  static Result<ClassicBloom> Build(std::span<const uint64_t> values, const Params& params);
  // Answers MayContainBytes for what was built from byte strings.
  static Result<ClassicBloom> BuildFromBytes(ByteKeys keys, const Params& params);
  static Result<ClassicBloom> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Never refused; each key beyond the number that Build was given raises the FPR.
  InsertStatus Insert(uint64_t value);
  // Leaves the bytes of Build over all values, whatever the pieces and the threads.
  void InsertAll(std::span<const uint64_t> values, unsigned threads = 1);

  View view() const {
    return {table_.As<uint64_t>(), bits_, params_.seed, k_, PrefetchPays(table_.size())};
  }
  bool MayContain(uint64_t value) const noexcept { return view().MayContain(value); }
  bool MayContainBytes(std::string_view key) const noexcept {
    return view().MayContainBytes(key);
  }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  std::optional<FprEstimate> ExpectedFpr() const;
  static std::optional<double> TheoryFpr(double bits_per_key);

 private:
  ClassicBloom(const Params& params, BitArray array);
  // The bits in `part` of n keys, by the best kernel of this machine.
  static void InsertPart(const View& view, uint64_t* words, const uint64_t* values, size_t n,
                         BitRange part);

  void CountInserted(uint64_t keys) {
    inserted_ += keys;
    report_.distinct_keys = inserted_;
  }

  Params params_;
  uint64_t capacity_;  // the number of keys that it was sized for
  uint64_t inserted_;  // keys, duplicates counted
  uint64_t bits_;
  uint32_t k_;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_CLASSIC_H_
