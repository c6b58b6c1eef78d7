// The split block filter as the Parquet format has it.

#include "filters/bloom/split_block.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "filters/test_support.h"

namespace filterbench {
namespace {

// Words of the bitset that hold hash h in a filter of the Parquet format: computed from the text of
// BloomFilter.md, word by word.
TEST(SplitBlockTest, BitsAreThoseOfTheParquetFormat) {
  auto filter = SplitBlock::Create(1000, {.bits_per_key = 8});
  ASSERT_TRUE(filter) << filter.error();
  const uint64_t blocks = filter->Table().size() / 32;
  std::vector<uint32_t> expected(blocks * 8);
  constexpr uint32_t kSalt[8] = {0x47b6137bU, 0x44974d91U, 0x8824ad5bU, 0xa2b7289dU,
                                 0x705495c7U, 0x2df1424bU, 0x9efc4947U, 0x5c6bfb31U};
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t hash = test::TestHash(i);
    filter->Insert(hash);
    const uint64_t block = ((hash >> 32) * blocks) >> 32;
    for (int word = 0; word < 8; ++word) {
      const auto key = static_cast<uint32_t>(hash);
      expected[block * 8 + word] |= uint32_t{1} << (key * kSalt[word] >> 27);
    }
  }
  EXPECT_EQ(std::memcmp(filter->Table().data(), expected.data(), filter->Table().size()), 0);
}

// XXH64 with seed 0, read from its specification (Collet, "xxHash fast digest algorithm", XXH64):
// an implementation of its own, for inputs of any length.
uint64_t DescribedXxh64(const std::string& input) {
  constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
  constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
  constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
  constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
  constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;
  const auto round = [](uint64_t accumulator, uint64_t lane) {
    return std::rotl(accumulator + lane * kPrime2, 31) * kPrime1;
  };
  size_t at = 0;
  const auto take = [&](int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      value |= uint64_t{static_cast<uint8_t>(input[at++])} << (8 * i);
    }
    return value;
  };
  uint64_t hash = kPrime5;
  if (input.size() >= 32) {
    uint64_t lanes[4] = {kPrime1 + kPrime2, kPrime2, 0, uint64_t{0} - kPrime1};
    while (input.size() - at >= 32) {
      for (uint64_t& lane : lanes) lane = round(lane, take(8));
    }
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
           std::rotl(lanes[3], 18);
    for (const uint64_t lane : lanes) hash = (hash ^ round(0, lane)) * kPrime1 + kPrime4;
  }
  hash += input.size();
  while (input.size() - at >= 8) {
    hash = std::rotl(hash ^ round(0, take(8)), 27) * kPrime1 + kPrime4;
  }
  if (input.size() - at >= 4) {
    hash = std::rotl(hash ^ take(4) * kPrime1, 23) * kPrime2 + kPrime3;
  }
  while (at < input.size()) hash = std::rotl(hash ^ take(1) * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

TEST(ParquetHashTest, IsXxh64WithSeedZero) {
  EXPECT_EQ(ParquetHash(""), 0xef46db3751d8e999u);
  EXPECT_EQ(ParquetHash("a"), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(ParquetHash("abc"), 0x44bc2cf5ad770999u);
  std::string input;
  for (int length = 0; length < 200; ++length) {
    EXPECT_EQ(ParquetHash(input), DescribedXxh64(input)) << length;
    input.push_back(static_cast<char>(length * 37 + 11));
  }
}

std::vector<uint64_t> HashesOfStrings(int n) {
  std::vector<uint64_t> hashes;
  for (int i = 0; i < n; ++i) hashes.push_back(ParquetHash("value " + std::to_string(i)));
  return hashes;
}

TEST(SplitBlockTest, ReadsAndWritesTheBitsetOfParquet) {
  const std::vector<uint64_t> hashes = HashesOfStrings(3000);
  for (const double bits_per_key : {4.0, 9.7, 100.0}) {
    const auto built = SplitBlock::Build(hashes, {.bits_per_key = bits_per_key});
    ASSERT_TRUE(built) << built.error();
    const auto read = SplitBlockFromParquet(built->Table(), hashes.size());
    ASSERT_TRUE(read) << read.error();
    EXPECT_TRUE(test::EqualBytes(read->Table(), built->Table()));
    EXPECT_EQ(test::CountDenied(*read, hashes), 0u);
    EXPECT_EQ(read->ExpectedFpr()->mean, built->ExpectedFpr()->mean);
    for (const uint64_t hash : test::TestHashes(0, 10000)) {
      ASSERT_EQ(read->MayContain(hash), built->MayContain(hash));
    }
    // It is a filter like any other: the wire format takes it too.
    const auto again = SplitBlock::Deserialize(read->Serialize());
    ASSERT_TRUE(again) << again.error();
    EXPECT_TRUE(test::EqualBytes(again->Table(), built->Table()));
  }
}

TEST(SplitBlockTest, TakesBitsetsOfAnyWholeNumberOfBlocks) {
  for (const size_t blocks : {1, 2, 3, 7, 100, 1023, 4097}) {
    const std::vector<std::byte> bitset(blocks * 32);
    const auto filter = SplitBlockFromParquet(bitset, 1);
    ASSERT_TRUE(filter) << filter.error();
    EXPECT_EQ(filter->Table().size(), bitset.size());
  }
  for (const size_t bytes : {0, 1, 31, 33, 100}) {
    const std::vector<std::byte> bitset(bytes);
    const auto filter = SplitBlockFromParquet(bitset, 1);
    ASSERT_FALSE(filter);
    EXPECT_EQ(filter.error().rfind("bitset: ", 0), 0u) << filter.error();
  }
  // The span has no memory behind it.
  const std::span<const std::byte> huge(static_cast<const std::byte*>(nullptr), size_t{1} << 40);
  const auto filter = SplitBlockFromParquet(huge, 1);
  ASSERT_FALSE(filter);
  EXPECT_NE(filter.error().find("too large"), std::string::npos) << filter.error();
}

TEST(ImpalaBloomTest, BitsAreThoseOfTheDescription) {
  const std::vector<uint64_t> hashes = test::TestHashes(0, 1000);
  const auto filter = ImpalaBloom::Build(hashes, {});
  ASSERT_TRUE(filter) << filter.error();
  ASSERT_EQ(filter->Table().size(), 1024u);  // 1000 bytes, rounded up
  constexpr uint32_t kSalt[8] = {0x47b6137bU, 0x44974d91U, 0x8824ad5bU, 0xa2b7289dU,
                                 0x705495c7U, 0x2df1424bU, 0x9efc4947U, 0x5c6bfb31U};
  std::vector<uint32_t> expected(256);
  for (const uint64_t hash : hashes) {
    const auto h32 = static_cast<uint32_t>(hash);
    const auto rehashed =
        static_cast<uint32_t>((uint64_t{h32} * 0x7850f11ec6d14889u + 0x6773610597ca4c63u) >> 32);
    for (int word = 0; word < 8; ++word) {
      expected[rehashed % 32 * 8 + word] |= uint32_t{1} << (h32 * kSalt[word] >> 27);
    }
  }
  EXPECT_EQ(std::memcmp(filter->Table().data(), expected.data(), filter->Table().size()), 0);
}

TEST(SplitBlockTest, PowersOfTwoHoldAtLeastWhatWasAskedFor) {
  for (const uint64_t n : {0, 1, 25, 26, 51, 52, 1000, 100000}) {
    const uint64_t any = SplitBlock::BlocksFor(n, {});
    const uint64_t power = SplitBlock::BlocksFor(n, {.blocks = SplitBlockCount::kPowerOfTwo});
    EXPECT_TRUE(std::has_single_bit(power)) << n;
    EXPECT_GE(power, any);
    EXPECT_LT(power, 2 * any) << n;
  }
}

}  // namespace
}  // namespace filterbench
