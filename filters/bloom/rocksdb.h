#ifndef FILTERBENCH_FILTERS_BLOOM_ROCKSDB_H_
#define FILTERBENCH_FILTERS_BLOOM_ROCKSDB_H_

// The Bloom filters of RocksDB, bit by bit: given the hash that RocksDB computes of a key, the
// table holds the bits that RocksDB stores.
//
// `rocksdb_bloom`: format_version 5 and later (FastLocalBloomImpl). Idea: a blocked filter whose
// line is chosen by the low 32 bits of the hash and whose probes are multiples of the high 32 bits.
// Limits: 32 bits choose the line, so that lines differ in their share of keys as the table grows
// (by 1.6 % at the largest one, 4 GiB). When it loses: as a blocked filter does; and what
// `blocked_bloom` gains by all bits of the hash shows only in tables that are larger than this
// format allows.
//
// `rocksdb_legacy_bloom`: format_version below 5, one filter for a whole file, one line per key
// (LegacyLocalityBloomImpl without extra rotations). Idea: double hashing inside a line, from 32
// bits of hash for everything. Limits: one step in 512 is zero and many are even, which costs a
// fifth of the rate at 10 bits per key, and n / 2^32 more. When it loses: always, to the format
// that replaced it. Where the number of lines is near a multiple of a large power of two (2^22 keys
// at 24 bits per key), line, start and step are tied and the rate is 2.8 instead of 0.35 %.
//
// `rocksdb_dynamic_bloom`: the filter of memtables (DynamicBloom). Idea: two bits in each of k / 2
// words of 64 bits, whose indices are the first one's with low bits flipped: few instructions,
// words that threads can write to without locks. Limits: k is even and at most 10, the hash has 32
// bits, and few words per key cost accuracy: 1.29 times the classic rate at 10 bits per key and k =
// 6. When it loses: for many keys, where n / 2^32 becomes its rate.
//
// Source: RocksDB, util/bloom_impl.h, util/dynamic_bloom.h, table/block_based/filter_policy.cc.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "filters/bloom/block_filter.h"
#include "filters/bloom/line_probes.h"
#include "filters/theory/rocksdb_bloom.h"

namespace filterbench {

// As fastrange32 of RocksDB.
constexpr uint64_t FastRange32(uint32_t hash, uint64_t range) { return hash * range >> 32; }

struct RocksDbBloomScheme {
  static constexpr FilterInfo kInfo = {
      .name = "rocksdb_bloom",
      .summary = "Bloom filter of RocksDB's SST files from format_version 5 on, bit by bit",
      .source = "RocksDB, util/bloom_impl.h, FastLocalBloomImpl",
      .fpr_formula = "sum over lines and loads of Binomial(n, share) * E[(set/512)^k], shares of "
                     "lines by 32 bits of hash (Putze et al. 2007, eq. 3, exact in the block)",
      .hash_bits = 64,
  };

  struct Params {
    double bits_per_key = 10;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 1, 100,
                           "as in NewBloomFilterPolicy; used in thousandths"},
  };

  static constexpr uint64_t kMaxBlocks = (uint64_t{1} << 26) - 1;  // 0xffffffc0 bytes

  struct View {
    static constexpr size_t kMaxProbes = 24;
    static constexpr bool kLineByLowHalf = true;
    const uint32_t* words;
    uint64_t blocks;
    uint32_t k;
    bool prefetch;  // batched lookups prefetch their lines first

    uint64_t BlockOf(uint64_t hash) const {
      return FastRange32(static_cast<uint32_t>(hash), blocks);
    }
    static uint32_t ProbeHash(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
    bool MayContain(uint64_t hash) const noexcept {
      return LineMayContain(words + BlockOf(hash) * kLineWords, ProbeHash(hash), k);
    }
  };

  static uint32_t MillibitsPerKey(double bits_per_key) {
    return static_cast<uint32_t>(bits_per_key * 1000 + 0.500001);
  }
  // FastLocalBloomImpl::ChooseNumProbes: the most accurate one by RocksDB's own measurements, with
  // a preference for one vector of eight.
  static constexpr uint32_t ProbesForMillibits(uint32_t millibits) {
    constexpr uint32_t kLast[] = {2080,  3580,  5100,  6640,  8300,  10070,
                                  11720, 14001, 16050, 18300, 22001, 25501};
    uint32_t k = 1;
    for (const uint32_t last : kLast) {
      if (millibits <= last) return k;
      ++k;
    }
    return millibits > 50000 ? View::kMaxProbes : (millibits - 1) / 2000 - 1;
  }

  static uint64_t BlockBytes(const Params&) { return kLineBits / 8; }
  // FastLocalBloomBitsBuilder::CalculateSpace, which stops growing where this refuses.
  static uint64_t BlocksFor(uint64_t n, const Params& params) {
    const unsigned __int128 millibits =
        static_cast<unsigned __int128>(n) * MillibitsPerKey(params.bits_per_key);
    const unsigned __int128 bytes = (millibits + 7999) / 8000;
    return std::max<uint64_t>(1, static_cast<uint64_t>((bytes + 63) / 64));
  }
  static uint32_t ProbesFor(const Params& params) {
    return ProbesForMillibits(MillibitsPerKey(params.bits_per_key));
  }
  static View MakeView(const Params&, uint32_t probes, const std::byte* table, uint64_t blocks,
                       bool prefetch) {
    return {reinterpret_cast<const uint32_t*>(table), blocks, probes, prefetch};
  }
  static void Insert(const View& view, std::byte* table, uint64_t hash) {
    InsertIntoLine(reinterpret_cast<uint32_t*>(table) + view.BlockOf(hash) * kLineWords,
                   View::ProbeHash(hash), view.k);
  }
  static FprEstimate Fpr(const Params&, uint32_t probes, uint64_t n, uint64_t blocks) {
    return theory::RocksDbBloomFpr(n, blocks, static_cast<int>(probes));
  }
  static double TheoryFpr(double bits_per_key) {
    return theory::RocksDbBloomFpr(
        bits_per_key, static_cast<int>(ProbesForMillibits(MillibitsPerKey(bits_per_key))));
  }
};

struct RocksDbLegacyScheme {
  static constexpr FilterInfo kInfo = {
      .name = "rocksdb_legacy_bloom",
      .summary = "Bloom filter of RocksDB's SST files before format_version 5, bit by bit",
      .source = "RocksDB, util/bloom_impl.h, LegacyLocalityBloomImpl<false>",
      .fpr_formula =
          "sum over lines and loads of the exact rate of double hashing mod 512 with any "
          "step, by inclusion-exclusion (Dillinger, Manolios 2004), and n / 2^32; drawn hashes "
          "where the number of lines ties line and probes",
      .hash_bits = 32,
  };

  // RocksDB allows 100; from 25 on the probes are more than theory computes.
  static constexpr double kMaxBitsPerKey = 24;
  struct Params {
    double bits_per_key = 10;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 1, kMaxBitsPerKey,
                           "as in NewBloomFilterPolicy; rounded to whole bits"},
  };

  static constexpr uint64_t kMaxBits = 0xffff0000;
  static constexpr uint64_t kMaxBlocks = kMaxBits / kLineBits + 1;

  struct View {
    const uint8_t* bytes;
    uint64_t blocks;
    uint32_t k;
    bool prefetch;

    // RocksDB takes the only hash that it has; here it is the low half.
    uint64_t BlockOf(uint64_t hash) const { return static_cast<uint32_t>(hash) % blocks; }
    bool MayContain(uint64_t hash) const noexcept {
      const uint8_t* line = bytes + BlockOf(hash) * (kLineBits / 8);
      uint32_t probe = static_cast<uint32_t>(hash);
      const uint32_t step = std::rotr(probe, 17);
      for (uint32_t i = 0; i < k; ++i, probe += step) {
        const uint32_t position = probe % kLineBits;
        if ((line[position / 8] >> (position % 8) & 1) == 0) return false;
      }
      return true;
    }
  };

  static uint64_t WholeBitsPerKey(double bits_per_key) {
    return (RocksDbBloomScheme::MillibitsPerKey(bits_per_key) + 500) / 1000;
  }
  static uint64_t BlockBytes(const Params&) { return kLineBits / 8; }
  // LegacyBloomBitsBuilder: an odd number of lines, so that more bits of the hash choose one.
  static uint64_t BlocksFor(uint64_t n, const Params& params) {
    const unsigned __int128 bits =
        static_cast<unsigned __int128>(n) * WholeBitsPerKey(params.bits_per_key);
    const auto lines = static_cast<uint64_t>((bits + kLineBits - 1) / kLineBits) | 1;
    return bits > kMaxBits ? std::max(lines, kMaxBlocks + 1) : lines;
  }
  static uint32_t ProbesFor(const Params& params) {
    const auto bits = static_cast<double>(WholeBitsPerKey(params.bits_per_key));
    return std::clamp(static_cast<uint32_t>(bits * 0.69), uint32_t{1}, uint32_t{30});
  }
  static View MakeView(const Params&, uint32_t probes, const std::byte* table, uint64_t blocks,
                       bool prefetch) {
    return {reinterpret_cast<const uint8_t*>(table), blocks, probes, prefetch};
  }
  static void Insert(const View& view, std::byte* table, uint64_t hash) {
    auto* line = reinterpret_cast<uint8_t*>(table) + view.BlockOf(hash) * (kLineBits / 8);
    uint32_t probe = static_cast<uint32_t>(hash);
    const uint32_t step = std::rotr(probe, 17);
    for (uint32_t i = 0; i < view.k; ++i, probe += step) {
      const uint32_t position = probe % kLineBits;
      line[position / 8] |= static_cast<uint8_t>(1 << (position % 8));
    }
  }
  static FprEstimate Fpr(const Params&, uint32_t probes, uint64_t n, uint64_t blocks) {
    return theory::RocksDbLegacyFpr(n, blocks, static_cast<int>(probes));
  }
  static std::optional<double> TheoryFpr(double bits_per_key) {
    if (bits_per_key < 1 || bits_per_key > kMaxBitsPerKey) return std::nullopt;
    const double whole = std::floor(bits_per_key);  // what the budget buys
    return theory::RocksDbLegacyFpr(whole, static_cast<int>(ProbesFor({.bits_per_key = whole})));
  }
};

struct RocksDbDynamicScheme {
  static constexpr FilterInfo kInfo = {
      .name = "rocksdb_dynamic_bloom",
      .summary = "Bloom filter of RocksDB's memtables, bit by bit: two bits in each of k/2 words",
      .source = "RocksDB, util/dynamic_bloom.h, DynamicBloom",
      .fpr_formula = "sum over loads of Binomial(n, 1/groups) * E[product over k/2 words of "
                     "(set/64)^2], exact for words that are shared by offset, and n / 2^32",
      .hash_bits = 32,
  };

  static constexpr uint32_t kMaxProbes = 10;
  struct Params {
    double bits_per_key = 10;
    uint32_t k = 6;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 0.5, 128,
                           "size of the table over the number of keys"},
      Knob<Params, uint32_t>{"k", &Params::k, 2, kMaxProbes, "probes per key, even"},
  };

  static constexpr uint64_t kMaxBits = (uint64_t{1} << 32) - 1;
  static constexpr uint64_t kMaxBlocks = uint64_t{1} << 26;  // of one word each

  struct View {
    const uint64_t* words;
    uint64_t blocks;
    uint32_t pairs;
    uint32_t words_per_block;
    bool prefetch;

    // The hash that RocksDB has is 32 bits wide; here it is the low half.
    uint64_t WordOf(uint64_t hash) const {
      return FastRange32(static_cast<uint32_t>(hash), blocks * words_per_block);
    }
    uint64_t BlockOf(uint64_t hash) const { return WordOf(hash) / words_per_block; }
    static uint64_t Fields(uint64_t hash) {
      return 0x9e3779b97f4a7c13 * static_cast<uint32_t>(hash);
    }
    static uint64_t PairOf(uint64_t fields) {
      return uint64_t{1} << (fields & 63) | uint64_t{1} << (fields >> 6 & 63);
    }
    bool MayContain(uint64_t hash) const noexcept {
      const uint64_t first = WordOf(hash);
      uint64_t fields = Fields(hash);
      uint64_t missing = 0;
      for (uint32_t i = 0; i < pairs; ++i, fields = std::rotr(fields, 12)) {
        missing |= PairOf(fields) & ~words[first ^ i];
      }
      return missing == 0;
    }
  };

  // So many that index ^ i stays inside for all i.
  static uint32_t WordsPerBlock(const Params& params) { return std::bit_ceil(params.k / 2); }
  static std::string Contradiction(const Params& params) {
    return params.k % 2 == 0 ? "" : "k: must be even";
  }
  static uint64_t BlockBytes(const Params& params) {
    return WordsPerBlock(params) * sizeof(uint64_t);
  }
  static uint64_t MaxBlocks(const Params& params) { return kMaxBlocks / WordsPerBlock(params); }
  static uint64_t BlocksFor(uint64_t n, const Params& params) {
    const double bits = std::ceil(static_cast<double>(n) * params.bits_per_key);
    const double blocks = std::ceil(bits / (8.0 * static_cast<double>(BlockBytes(params))));
    // RocksDB counts bits in 32 bits, whatever the size of a block.
    if (bits > static_cast<double>(kMaxBits)) {
      const double least = static_cast<double>(MaxBlocks(params)) + 1;
      return static_cast<uint64_t>(std::clamp(blocks, least, 0x1p57));
    }
    return std::max<uint64_t>(1, static_cast<uint64_t>(blocks));
  }
  static uint32_t ProbesFor(const Params& params) { return params.k; }
  static View MakeView(const Params& params, uint32_t probes, const std::byte* table,
                       uint64_t blocks, bool prefetch) {
    return {reinterpret_cast<const uint64_t*>(table), blocks, probes / 2, WordsPerBlock(params),
            prefetch};
  }
  static void Insert(const View& view, std::byte* table, uint64_t hash) {
    auto* words = reinterpret_cast<uint64_t*>(table);
    const uint64_t first = view.WordOf(hash);
    uint64_t fields = View::Fields(hash);
    for (uint32_t i = 0; i < view.pairs; ++i, fields = std::rotr(fields, 12)) {
      words[first ^ i] |= View::PairOf(fields);
    }
  }
  static FprEstimate Fpr(const Params& params, uint32_t probes, uint64_t n, uint64_t blocks) {
    return theory::RocksDbDynamicFpr(n, blocks, static_cast<int>(WordsPerBlock(params)),
                                     static_cast<int>(probes / 2));
  }
  // With RocksDB's six probes.
  static double TheoryFpr(double bits_per_key) {
    return theory::RocksDbDynamicFpr(bits_per_key, 4, 3);
  }
};

using RocksDbBloom = BlockFilter<RocksDbBloomScheme>;
using RocksDbLegacyBloom = BlockFilter<RocksDbLegacyScheme>;
using RocksDbDynamicBloom = BlockFilter<RocksDbDynamicScheme>;

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_ROCKSDB_H_
