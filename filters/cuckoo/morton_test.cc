// The rules of Morton filters; those of all filters that move tags are in tag_filter_test.cc.

#include "filters/cuckoo/morton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "filters/test_support.h"

namespace filterbench {
namespace {

using test::TestHash;
using test::TestHashes;

// A block is an array of small buckets, however it is packed.
template <int kBits>
void CheckBlockAgainstBuckets() {
  using Block = MortonBlock<kBits>;
  alignas(64) std::byte memory[3 * 64];
  std::fill(std::begin(memory), std::end(memory), std::byte{0xff});
  std::byte* block = memory + 64;
  std::fill_n(block, 64, std::byte{0});
  std::array<std::vector<uint64_t>, Block::kBuckets> buckets;
  std::array<bool, Block::kOverflowBits> overflowed = {};
  int taken = 0;
  for (uint64_t step = 0; step < 20000; ++step) {
    const uint64_t random = Mix64(step + 1);
    const int at = static_cast<int>(random % Block::kBuckets);
    std::vector<uint64_t>& bucket = buckets[at];
    const bool has_room = bucket.size() < 3 && taken < Block::kSlots;
    ASSERT_EQ(Block::HasRoom(block, at), has_room);
    // Filling up and emptying in turn.
    const bool add = step / 150 % 2 == 0;
    if (add && has_room) {
      const uint64_t tag = std::max<uint64_t>(1, random >> 20 & Block::kTagMask);
      Block::Add(block, at, tag);
      bucket.push_back(tag);
      ++taken;
    } else if (!add && !bucket.empty()) {
      const size_t victim = (random >> 32) % bucket.size();
      const int slot = Block::Find(block, at, bucket[victim]);
      ASSERT_GE(slot, 0);
      ASSERT_EQ(Block::Tag(block, slot), bucket[victim]);
      Block::Remove(block, at, slot);
      bucket.erase(std::find(bucket.begin(), bucket.end(), bucket[victim]));
      --taken;
    }
    if (step % 1000 == 0) {
      Block::SetOverflowed(block, at);
      overflowed[at % Block::kOverflowBits] = true;
    }
    ASSERT_EQ(Block::CountAll(block), taken);
    int before = 0;
    for (int i = 0; i < Block::kBuckets; ++i) {
      ASSERT_EQ(Block::CountBefore(block, i), before);
      ASSERT_EQ(Block::Count(block, i), static_cast<int>(buckets[i].size()));
      ASSERT_EQ(Block::Overflowed(block, i), overflowed[i % Block::kOverflowBits]);
      for (const uint64_t tag : buckets[i]) {
        ASSERT_TRUE(Block::Holds(block, i, tag));
        const uint64_t other = tag ^ 1;
        ASSERT_EQ(Block::Holds(block, i, other),
                  std::find(buckets[i].begin(), buckets[i].end(), other) != buckets[i].end());
      }
      before += static_cast<int>(buckets[i].size());
    }
    for (int slot = taken; slot < Block::kSlots; ++slot) ASSERT_EQ(Block::Tag(block, slot), 0u);
  }
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(memory[i], std::byte{0xff});
    ASSERT_EQ(memory[128 + i], std::byte{0xff});
  }
}

TEST(MortonBlockTest, IsAnArrayOfSmallBuckets) {
  CheckBlockAgainstBuckets<8>();
  CheckBlockAgainstBuckets<12>();
  CheckBlockAgainstBuckets<16>();
}

double DetailOf(const Morton& filter, std::string_view name) {
  for (const Detail& detail : filter.GetDetails()) {
    if (detail.name == name) return detail.value;
  }
  ADD_FAILURE() << "no detail " << name;
  return 0;
}

// The point of the filter: keys stay in their first bucket while there is room, so that absent keys
// need no second line, and the rate is that of one bucket.
TEST(MortonTest, HalfFullNobodyLeavesTheFirstBucket) {
  const std::vector<uint64_t> keys = TestHashes(0, 100000);
  for (const auto bits : {Morton::FingerprintBits::k8, Morton::FingerprintBits::k16}) {
    const auto sparse = Morton::Build(keys, {.fingerprint_bits = bits, .load = 0.3});
    const auto full = Morton::Build(keys, {.fingerprint_bits = bits, .load = 0.95});
    ASSERT_TRUE(sparse && full);
    EXPECT_LT(DetailOf(*sparse, "second_lookups"), 0.005);
    EXPECT_GT(DetailOf(*full, "second_lookups"), 0.08);
    EXPECT_LT(DetailOf(*full, "second_lookups"), 0.14);
    EXPECT_GT(DetailOf(*full, "overflow_of_tags"), DetailOf(*full, "second_lookups"));
  }
}

// A lookup that needs only its first bucket does not look at the second one.
TEST(MortonTest, OverflowBitsSayWhetherTheSecondBucketCounts) {
  auto filter = Morton::WithUnits(100, {});
  ASSERT_TRUE(filter);
  const MortonScheme::View view = filter->view();
  view.Specialize([&]<class V>(const V& sized) {
    using Block = typename V::Block;
    std::vector<std::byte> table(100 * Block::kBytes + kCacheLineBytes);
    V own = sized;
    own.table = table.data();
    for (uint64_t i = 0; i < 200; ++i) {
      const CuckooPlace place = own.PlaceOf(TestHash(i));
      if (place.bucket == place.partner) continue;
      std::fill(table.begin(), table.end(), std::byte{0});
      const auto block_of = [&](uint64_t bucket) {
        return table.data() + bucket / Block::kBuckets * Block::kBytes;
      };
      Block::Add(block_of(place.partner), V::InBlock(place.partner), place.tag);
      ASSERT_FALSE(own.MayContain(TestHash(i)));
      Block::SetOverflowed(block_of(place.bucket), V::InBlock(place.bucket));
      ASSERT_TRUE(own.MayContain(TestHash(i)));
    }
  });
}

TEST(MortonTest, RefusesBlocksThatCannotBe) {
  alignas(64) std::byte table[64 + kCacheLineBytes] = {};
  const Morton::View view = {table, 1, 0, Morton::FingerprintBits::k8, false};
  const auto result = [&] {
    const Result<uint64_t> count = MortonScheme::CountTags(view);
    return count ? "counts " + std::to_string(*count) : count.error();
  };
  EXPECT_EQ(result(), "counts 0");
  table[46] = std::byte{1};
  EXPECT_EQ(result(), "slot 0 of block 0 is empty");
  table[0] = std::byte{7};
  EXPECT_EQ(result(), "counts 1");
  table[1] = std::byte{7};
  EXPECT_EQ(result(), "slot 1 of block 0 is taken, but no bucket counts it");
  std::fill_n(table + 46, 16, std::byte{0xff});
  EXPECT_EQ(result(), "block 0 counts 192 tags, its limit is 46");
}

TEST(MortonTest, ABlockIsALine) {
  for (const auto bits : {0, 1, 2}) {
    const auto filter = Morton::Build(
        TestHashes(0, 10000), {.fingerprint_bits = static_cast<Morton::FingerprintBits>(bits)});
    ASSERT_TRUE(filter);
    EXPECT_EQ(filter->Table().size(), filter->units() * 64);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(filter->Table().data()) % 64, 0u);
  }
}

}  // namespace
}  // namespace filterbench
