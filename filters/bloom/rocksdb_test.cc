// RocksDB's filters against a plain reading of what is published of them, and against filters that
// RocksDB itself has made.

#include "filters/bloom/rocksdb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "filters/test_support.h"
#include "filters/theory/block_loads.h"
#include "filters/theory/bloom.h"

namespace filterbench {
namespace {

// From librocksdb 7.8.3 (Debian 12): NewBloomFilterPolicy(bits_per_key), its builder for a format
// version, keys "key0", "key1", ... added in turn. Hashes are those of its Hash64 (format_version
// 5), or of its Hash with seed 0xbc9f1d34 (format_version 4); words are the filter without its
// trailer of five bytes. More sizes, 1 to 100 bits per key and up to 100000 keys, were equal when
// this was made.
constexpr uint64_t kHashes[] = {
    0x0e31e4c8c91617cc, 0x656809c4f775fbc3, 0x91780359f666efb0, 0x6bfb52b9fe244187,
    0x4d846e73e8ffcb87, 0x9c4ea4cd46cba556, 0x245af7d6c22c1590, 0x81350ea1dbdb1d33,
    0xca8750f20798100a, 0xd999902f510cf223, 0x07f329947e7e4cee, 0x53c268bf39cf9429,
    0xca34a83a7ea0b2cb, 0x41054ce77a9c268d, 0xc9b23778b607cf90, 0x026220a0a2a194cd,
    0xfc59369c97368144, 0x3c28e0157f8a28a5, 0xf3df77fdf18d56e5, 0x2aa214f52cf050aa,
    0x1f4d936ef2b14219, 0x51214d3d3e3abcdb, 0xa74010b0c03d1ea1, 0x93a25dbfe9d235ce,
    0xa2795f6d16607f28, 0xd9e886b07eb3cee4, 0x9fe107a6d79e634d, 0x31cd5ef90570eff4,
    0xfe0b530b98556734, 0x03853a5ab3c12f1c, 0xc496166495ab1269, 0xf95f0a0d4a411774,
    0x2a689bfd191422d7, 0x95a5709bd0fb1f25, 0xa32da649e88fb3c3, 0x407958985020e732,
    0xec671b74efaa44b4, 0x6c0e70dd8fda2415, 0xa84ec3bc1f304799, 0x7d32c3a0443adf83,
    0x4472b48ac0e17251, 0x337121abe74ff505, 0x438b8760768e9eed, 0x641e8720eedf41f5,
    0x9800b5b768ee8779, 0x125e6839e084f8a0, 0x4465404fc758f271, 0xb1f1040158a795d6,
    0x0b9beb7b36a9fab7, 0x7fdcbc7964b4b54e, 0x276658b9f807b953, 0x2513b6afc04265c1,
    0x08d6661cd36e0e66, 0xa8332ff7c6495780, 0xbb188fc630d24fba, 0x853325cbea5e4d67,
    0x92c87c5379adc5a4, 0x2fd5794963914c05, 0x0e6d5bd56bce6f5c, 0x6125c427ea0eaa84,
    0x99a4f8fadf0b1244, 0x4df772823c69a65b, 0x276a49163f83fdcc, 0x62cc9e3bd9082f20,
    0x667b83bc6a237b03, 0xd7b4602215331535, 0x1a3166f0e4d08cd5, 0xafc7ba21bed72243,
    0xf106b61f5ae9c56e, 0xf4a73aed46fb4496, 0x13e3283ea361dbad, 0xa783157db50d13c5,
    0xcc5bd5aad8b13d2e, 0xc99e474441a3abcd, 0x68eb7f3fcd57139e, 0x2c8b184694ad0d83,
    0x008d2f0e48af691e, 0x52a57639afbdcc9e, 0x223a6cf81232ee76, 0x10db5e5e13977a6b,
    0x05bdff25a7b2d8f0, 0x783333852b5fb63b, 0xc4145764449e23f5, 0x1a82b2dfaa58de3a,
    0x9f536b4e7cec7ed9, 0xcfe75caca6c0149e, 0xb681a6344dcb9841, 0x59d98af170c3edbb,
    0x1ab6527494133710, 0x2c38a2ebbcd03738, 0x47b878b4645ed1b2, 0x1f6ac653ed21866c,
    0xcda17341823badfe, 0x72e330971a59082b, 0x8ee56f62d3f63ff5, 0xd8b5960479f916b2,
    0x8604473467fd70ab, 0xabbda1f35559120a, 0x1764f7f66f4b3a75, 0x9bd4c723bb8ad2bf};
constexpr uint64_t kHundredKeysAtTenBits[] = {
    0x0c91418e31e2b803, 0x8172c8af867b5238, 0xec9a04c79836c4a5, 0x8e810620001090c2,
    0x57276922b18214b2, 0x06f0bd0945910875, 0x9b1a9c5c9a7ebd63, 0x373d238710c9a906,
    0xc370ac9918970cd8, 0x0a2d2c5913246da3, 0x1139be39da5c4331, 0x7607834e51c31527,
    0x90efad8ef8224ebf, 0xa018542b80e9d1c8, 0xa798401a8d9c3300, 0x3df309bcab6ff014};
constexpr uint64_t kFirst24KeysAtTwentyBits[] = {
    0x412b2efd3251a05a, 0x0b69008f363d219a, 0x812108adba845025, 0x664406e99081a506,
    0x07a4bc948efcdca4, 0x901c682110bd5845, 0x1f190c06963e9140, 0x4fb20b9da2b8290b};
constexpr uint64_t kLegacyHashes[] = {
    0xf4cf3b96, 0x87cf4896, 0x1acfd596, 0xadcf6296, 0x40cf8f96, 0xd3cf1c96, 0x66cfa996,
    0xf9cf3696, 0x8ccf4396, 0x1fcfd096, 0x030812d3, 0xc9acbaaa, 0x90516166, 0x56f609df,
    0x1d9ab101, 0xe43f584b, 0xaae400e8, 0x7188a7a4, 0x382d4f50, 0xfed1f605, 0x2c9bedfc,
    0xf3409590, 0xb9e53c4f, 0x8089e409, 0x472e8c5b, 0x0dd333a2, 0xd477db96, 0x9b1c824e,
    0x61c12a09, 0x2865d1d3, 0x1c0324cc, 0xe2a7cc81, 0xa94c735f, 0x6ff11be6, 0x3695c32a,
    0xfd3a6a52, 0xc3df1281, 0x8a83b95f, 0x51286139, 0x17cd08ec, 0x205a67f0, 0xe6ff0f85,
    0xada3b65b, 0x74485efd, 0x3aed0626, 0x0191adae, 0xc836558a, 0x8edafc5b};
constexpr uint64_t kLegacyKeysAtTenBits[] = {
    0x20acd24422939264, 0x24d1079aacc5ee80, 0x21910f156a420b5e, 0x21209348012ff8c0,
    0x422514a702042317, 0x31102748a4030862, 0x4043413492457623, 0x70c50042d85a7b41};

template <class F>
void ExpectTable(const F& filter, std::span<const uint64_t> words) {
  EXPECT_TRUE(test::EqualBytes(filter.Table(), std::as_bytes(words)));
}

TEST(RocksDbBloomTest, TablesAreThoseOfTheLibrary) {
  ExpectTable(*RocksDbBloom::Build(kHashes, {.bits_per_key = 10}), kHundredKeysAtTenBits);
  ExpectTable(*RocksDbBloom::Build(std::span(kHashes).first(24), {.bits_per_key = 20}),
              kFirst24KeysAtTwentyBits);
}

TEST(RocksDbLegacyBloomTest, TablesAreThoseOfTheLibrary) {
  ExpectTable(*RocksDbLegacyBloom::Build(kLegacyHashes, {.bits_per_key = 10}),
              kLegacyKeysAtTenBits);
}

TEST(RocksDbBloomTest, BitsAreThoseOfTheDescription) {
  for (const double bits_per_key : {1.0, 4.0, 10.0, 22.5, 40.0, 60.0, 100.0}) {
    const std::vector<uint64_t> hashes = test::TestHashes(0, 1000);
    const auto filter = RocksDbBloom::Build(hashes, {.bits_per_key = bits_per_key});
    ASSERT_TRUE(filter) << filter.error();
    const uint64_t lines = filter->Table().size() / 64;
    const double k = filter->GetDetails().front().value;
    std::vector<uint8_t> expected(filter->Table().size());
    for (const uint64_t hash : hashes) {
      const uint64_t line = (hash & 0xffffffff) * lines >> 32;
      uint32_t h = static_cast<uint32_t>(hash >> 32);
      for (int probe = 0; probe < k; ++probe) {
        const uint32_t bit = h >> 23;
        expected[line * 64 + bit / 8] |= static_cast<uint8_t>(1u << bit % 8);
        h *= 0x9e3779b9u;
      }
    }
    EXPECT_TRUE(test::EqualBytes(filter->Table(), std::as_bytes(std::span(expected))));
  }
}

TEST(RocksDbBloomTest, ProbesAndSizesAreThoseOfTheLibrary) {
  const auto probes = [](uint32_t millibits) {
    return RocksDbBloomScheme::ProbesForMillibits(millibits);
  };
  for (const auto& [last, k] : std::vector<std::pair<uint32_t, uint32_t>>{
           {2080, 1}, {3580, 2}, {5100, 3}, {6640, 4}, {8300, 5}, {10070, 6}, {11720, 7},
           {14001, 8}, {16050, 9}, {18300, 10}, {22001, 11}, {25501, 12}, {28000, 12}, {30000, 13},
           {50000, 23}}) {
    EXPECT_EQ(probes(last), k) << last;
    if (last != 25501) {
      EXPECT_EQ(probes(last + 1), k + 1) << last;
    }
  }
  EXPECT_EQ(probes(100000), 24u);
  // n * millibits / 8000 bytes, rounded up to 64: at 9.9 bits per key, 517 keys are 639.8 bytes.
  const auto bytes = [](uint64_t n, double bits_per_key) {
    return 64 * RocksDbBloom::BlocksFor(n, {.bits_per_key = bits_per_key});
  };
  EXPECT_EQ(bytes(0, 10), 64u);
  EXPECT_EQ(bytes(51, 10), 64u);
  EXPECT_EQ(bytes(52, 10), 128u);
  EXPECT_EQ(bytes(517, 9.9), 640u);
  EXPECT_EQ(bytes(518, 9.9), 704u);
  EXPECT_FALSE(RocksDbBloom::Create(uint64_t{3} << 30, {.bits_per_key = 16}));
}

// Lines of 32 bits of hash, counted: every share and how many lines have it.
TEST(RocksDbBloomTest, SharesOfLinesAreCounted) {
  for (const uint64_t lines : {uint64_t{1}, uint64_t{3}, uint64_t{1000003}, uint64_t{67108863}}) {
    double count = 0;
    double share = 0;
    for (const theory::BlockClass& c : theory::BlocksOf32Bits(lines)) {
      count += c.count;
      share += c.count * c.share;
    }
    EXPECT_DOUBLE_EQ(count, static_cast<double>(lines));
    EXPECT_NEAR(share, 1, 1e-12);
  }
  // At the largest size a line has 64 or 65 of 2^32 hashes, and a query meets the fuller ones more
  // often; that costs next to nothing.
  const uint64_t lines = RocksDbBloomScheme::kMaxBlocks;
  const uint64_t n = lines * 512 / 10;
  EXPECT_NEAR(theory::RocksDbBloomFpr(n, lines, 6).mean / theory::RocksDbBloomFpr(10.0, 6), 1,
              1e-3);
}

// One line is a table of 512 bits by double hashing, whose law is also known as
// theory::DoubleHashingFpr, computed in another way.
// Case A5: steps that are zero or even within a line, as RocksDB has them, are in the theory.
TEST(RocksDbLegacyBloomTest, LawOfOneLineIsThatOfDoubleHashing) {
  for (const int k : {1, 2, 3, 5, 6, 8}) {
    for (const uint64_t n : {uint64_t{1}, uint64_t{5}, uint64_t{51}, uint64_t{150}}) {
      EXPECT_NEAR(theory::RocksDbLegacyFpr(n, 1, k).mean,
                  theory::DoubleHashingFpr(n, 512, k, 0).mean, 1e-9)
          << k << " " << n;
    }
  }
}

TEST(RocksDbLegacyBloomTest, BitsAreThoseOfTheDescription) {
  const std::vector<uint64_t> hashes = test::TestHashes(0, 1000);
  for (const double bits_per_key : {1.0, 4.0, 9.6, 20.0}) {
    const auto filter = RocksDbLegacyBloom::Build(hashes, {.bits_per_key = bits_per_key});
    ASSERT_TRUE(filter) << filter.error();
    const double whole_bits = std::round(bits_per_key);
    const auto k = static_cast<int>(std::max(1.0, std::floor(0.69 * whole_bits)));
    EXPECT_EQ(filter->GetDetails().front().value, k);
    const uint64_t lines = filter->Table().size() / 64;
    EXPECT_EQ(lines % 2, 1u);
    EXPECT_NEAR(static_cast<double>(lines), 1000 * whole_bits / 512, 2);
    std::vector<uint8_t> expected(filter->Table().size());
    for (const uint64_t hash : hashes) {
      auto h = static_cast<uint32_t>(hash);
      const uint32_t line = h % static_cast<uint32_t>(lines);
      const uint32_t delta = h >> 17 | h << 15;
      for (int probe = 0; probe < k; ++probe, h += delta) {
        expected[line * 64 + h % 512 / 8] |= static_cast<uint8_t>(1u << h % 8);
      }
    }
    EXPECT_TRUE(test::EqualBytes(filter->Table(), std::as_bytes(std::span(expected))));
  }
}

TEST(RocksDbDynamicBloomTest, BitsAreThoseOfTheDescription) {
  const std::vector<uint64_t> hashes = test::TestHashes(0, 1000);
  for (const uint32_t k : {2u, 4u, 6u, 8u, 10u}) {
    const auto filter = RocksDbDynamicBloom::Build(hashes, {.k = k});
    ASSERT_TRUE(filter) << filter.error();
    const uint64_t words = filter->Table().size() / 8;
    std::vector<uint64_t> expected(words);
    for (const uint64_t hash : hashes) {
      const uint64_t h32 = hash & 0xffffffff;
      const uint64_t first = h32 * words >> 32;
      uint64_t h = 0x9e3779b97f4a7c13ull * h32;
      for (uint32_t pair = 0; pair < k / 2; ++pair) {
        expected.at(first ^ pair) |= uint64_t{1} << (h & 63);
        expected.at(first ^ pair) |= uint64_t{1} << (h >> 6 & 63);
        h = h >> 12 | h << 52;
      }
    }
    EXPECT_TRUE(test::EqualBytes(filter->Table(), std::as_bytes(std::span(expected))));
  }
  EXPECT_FALSE(RocksDbDynamicBloom::Create(10, {.k = 5}));
  // Tables end at 2^32 - 1 bits, whatever the words of a block.
  for (const uint32_t k : {2u, 10u}) {
    EXPECT_FALSE(RocksDbDynamicBloom::Create(429496730, {.k = k}));
  }
}

}  // namespace
}  // namespace filterbench
