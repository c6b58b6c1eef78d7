#ifndef FILTERBENCH_FILTERS_BLOOM_PREFIX_BLOOM_H_
#define FILTERBENCH_FILTERS_BLOOM_PREFIX_BLOOM_H_

// Bloom filter over prefixes of keys.
//
// Idea: not the key is inserted but its first `prefix_bytes` bytes, or all of it where it is
// shorter. The filter then answers for whole ranges: a scan over a prefix asks once whether there
// is any key.
// Source: prefix Bloom filters of LSM stores: RocksDB's `prefix_extractor` with a fixed length
// (RocksDB wiki, "Prefix Seek" and "RocksDB Bloom Filter"); Bloom 1970.
// Keys: byte strings, by MayContainBytes. An integer key, by MayContain, is the string of its eight
// bytes in big-endian order, so that its order is theirs. Where only hashes are given they take the
// place of integer keys: with the default of eight bytes or more the hash stands for the prefix as
// it is, with fewer its leading bytes do.
// Limits: a key that shares its prefix with a present one is always answered yes. When it loses:
// for point lookups, where those are the keys that are asked for.
//
// An absent key is a false positive if its prefix is present, or if the Bloom filter errs about it.
// The second part is known from the set bits (FprOfAbsentPrefixes); the first depends on who asks.
// For uniform integers it is 1 - (1 - 256^-prefix_bytes)^n (FprOfUniformIntegers); keys in a row,
// or byte strings of one customer, may share all of it. So ExpectedFpr speaks of whole integers and
// hashes only, and what is measured of others stands without a theory beside it.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "filters/bloom/probe_chain.h"
#include "filters/filter.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

class PrefixBloom {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "prefix_bloom",
      .summary = "Bloom filter over the first bytes of keys",
      .source = "RocksDB's prefix Bloom filters; Bloom 1970",
      .fpr_formula =
          "(set bits / bits)^k for absent prefixes (Bloom 1970) and 1 - (1 - 2^-64)^n for equal "
          "integers; none where absent keys may have a present prefix",
      .hash_bits = 64,
  };

  static constexpr uint32_t kMaxProbes = 64;

  struct Params {
    double bits_per_key = 10;
    uint32_t k = 0;
    uint32_t prefix_bytes = 8;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{
          "bits_per_key", &Params::bits_per_key, 0.5, 128,
          "size of the table over the number of keys, whatever prefixes they share"},
      Knob<Params, uint32_t>{"k", &Params::k, 0, kMaxProbes,
                             "probes per key; 0 takes the optimum, near bits_per_key ln 2"},
      Knob<Params, uint32_t>{"prefix_bytes", &Params::prefix_bytes, 1, 1u << 16,
                             "bytes of a key that count; shorter keys count whole"},
  };

  struct View {
    const uint64_t* words;
    uint64_t bits;
    uint64_t seed;
    uint32_t k;
    uint32_t prefix_bytes;
    bool prefetch;  // batched lookups prefetch their lines

    uint64_t HashOf(std::string_view key) const {
      return HashBytes(key.substr(0, prefix_bytes), seed);
    }
    // Of the string of its eight bytes, the highest first.
    uint64_t HashOf(uint64_t key) const {
      static_assert(std::endian::native == std::endian::little);
      const uint64_t big_endian = __builtin_bswap64(key);
      char bytes[sizeof(big_endian)];
      std::memcpy(bytes, &big_endian, sizeof(bytes));
      return HashOf(std::string_view(bytes, sizeof(bytes)));
    }

    // `key`: an integer key, or the hash of a key that was hashed before.
    bool MayContain(uint64_t key) const noexcept { return TestChain(words, bits, k, HashOf(key)); }
    bool MayContainBytes(std::string_view key) const noexcept {
      return TestChain(words, bits, k, HashOf(key));
    }
  };

  // Sized for `keys` keys with a prefix each, holding none.
  static Result<PrefixBloom> Create(uint64_t keys, const Params& params);
  static Result<PrefixBloom> Build(std::span<const uint64_t> keys, const Params& params);
  static Result<PrefixBloom> BuildFromBytes(ByteKeys keys, const Params& params);
  static Result<PrefixBloom> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Never refused; each prefix beyond the number that the filter was made for raises the FPR.
  InsertStatus Insert(uint64_t key);
  InsertStatus InsertBytes(std::string_view key);

  View view() const {
    return {table_.As<uint64_t>(),      bits_, params_.seed, k_, params_.prefix_bytes,
            PrefetchPays(table_.size())};
  }
  bool MayContain(uint64_t key) const noexcept { return view().MayContain(key); }
  bool MayContainBytes(std::string_view key) const noexcept { return view().MayContainBytes(key); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  // Nothing where absent keys may share the prefix of a present one, which only the keys decide:
  // for byte strings, and for prefixes shorter than an integer.
  std::optional<FprEstimate> ExpectedFpr() const;
  FprEstimate FprOfAbsentPrefixes() const;
  FprEstimate FprOfUniformIntegers() const;  // with the share of present prefixes among them
  // Of keys that share no prefix.
  static std::optional<double> TheoryFpr(double bits_per_key);

 private:
  PrefixBloom(const Params& params, uint64_t capacity, uint64_t bits, AlignedTable table);

  Params params_;
  uint64_t capacity_;  // keys that the filter was made for
  uint64_t bits_;
  uint32_t k_;
  uint64_t keys_ = 0;         // inserted
  bool holds_bytes_ = false;  // some of them as byte strings
  uint64_t set_ = 0;          // bits
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_PREFIX_BLOOM_H_
