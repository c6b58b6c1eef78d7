// The rules of semi-sorted buckets; those of all filters that move tags are in tag_filter_test.cc.

#include "filters/cuckoo/semi_sorted.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "filters/test_support.h"

namespace filterbench {
namespace {

TEST(SortedNibblesTest, EverySequenceHasItsIndex) {
  std::set<uint32_t> indices;
  for (uint32_t d = 0; d < 16; ++d) {
    for (uint32_t c = 0; c <= d; ++c) {
      for (uint32_t b = 0; b <= c; ++b) {
        for (uint32_t a = 0; a <= b; ++a) {
          const uint32_t nibbles = a | b << 4 | c << 8 | d << 12;
          const uint32_t index = EncodeSortedNibbles(nibbles);
          ASSERT_LT(index, kSortedSequences);
          ASSERT_EQ(kSortedNibbles[index], nibbles);
          indices.insert(index);
        }
      }
    }
  }
  EXPECT_EQ(indices.size(), kSortedSequences);
  EXPECT_EQ(EncodeSortedNibbles(0), 0u);
}

// A bucket is the multiset of its tags: whatever the order in which they came, the bytes are the
// same, and nothing behind it changes.
template <int kBits>
void CheckBucketAgainstMultiset() {
  using Bucket = SemiSortedBucket<kBits>;
  static_assert(Bucket::kBytes == (kBits - 1) / 2);
  std::vector<std::byte> table(Bucket::kBytes + kCacheLineBytes, std::byte{0xff});
  std::fill_n(table.begin(), Bucket::kBytes, std::byte{0});
  std::byte* bucket = table.data();
  std::multiset<uint64_t> tags = {0, 0, 0, 0};
  constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
  for (uint64_t step = 0; step < 20000; ++step) {
    const uint64_t random = Mix64(step + 1);
    // Often equal low bits, equal high bits, or both.
    const uint64_t masks[] = {kMask, 0x31 & kMask, 0xf, kMask & ~uint64_t{15}};
    const uint64_t tag = random >> 8 & masks[step % 4];
    const int slot = static_cast<int>(random % 4);
    tags.erase(tags.find(Bucket::Get(bucket, slot)));
    tags.insert(tag);
    Bucket::Set(bucket, slot, tag);

    std::multiset<uint64_t> found;
    for (int i = 0; i < 4; ++i) found.insert(Bucket::Get(bucket, i));
    ASSERT_EQ(found, tags);
    ASSERT_EQ(Bucket::CountFree(bucket), static_cast<int>(tags.count(0)));
    for (const uint64_t wanted : {tag, tag ^ 1, tag ^ 16, (tag + 1) & kMask, kMask}) {
      if (wanted == 0) continue;
      ASSERT_EQ(Bucket::Holds(bucket, wanted), tags.contains(wanted)) << tag << " " << wanted;
      ASSERT_EQ(Bucket::Find(bucket, wanted) >= 0, tags.contains(wanted));
    }
    typename Bucket::Tags shuffled;
    std::copy(tags.begin(), tags.end(), shuffled.begin());
    std::rotate(shuffled.begin(), shuffled.begin() + random % 4, shuffled.end());
    ASSERT_EQ(Bucket::Encode(shuffled) << (64 - 8 * Bucket::kBytes),
              Bucket::Load(bucket) << (64 - 8 * Bucket::kBytes));
  }
  for (size_t i = Bucket::kBytes; i < table.size(); ++i) ASSERT_EQ(table[i], std::byte{0xff});
}

TEST(SemiSortedBucketTest, IsAMultisetOfTags) {
  CheckBucketAgainstMultiset<9>();
  CheckBucketAgainstMultiset<13>();
  CheckBucketAgainstMultiset<17>();
}

TEST(SemiSortedTest, RefusesBucketsThatAreNotSorted) {
  alignas(64) std::byte table[6 + kCacheLineBytes] = {};
  const SemiSortedCuckoo::View view = {table, 1, 0, SemiSortedCuckoo::FingerprintBits::k13, false};
  ASSERT_TRUE(SemiSortedScheme::CountTags(view));
  EXPECT_EQ(*SemiSortedScheme::CountTags(view), 0u);
  // The first index that is none.
  table[0] = std::byte{kSortedSequences & 0xff};
  table[1] = std::byte{kSortedSequences >> 8};
  EXPECT_FALSE(SemiSortedScheme::CountTags(view));
  // Equal low bits, and the greater high bits first: slot 0 holds 16, the others are free.
  table[0] = table[1] = std::byte{0};
  table[1] = std::byte{1 << 4};
  const Result<uint64_t> refused = SemiSortedScheme::CountTags(view);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), "bucket 0 is not sorted");
}

TEST(SemiSortedTest, TakesTheSpaceOfOneBitLess) {
  const std::vector<uint64_t> keys = test::TestHashes(0, 10000);
  for (const auto bits : {0, 1, 2}) {
    const auto sorted = SemiSortedCuckoo::Build(
        keys, {.fingerprint_bits = static_cast<SemiSortedCuckoo::FingerprintBits>(bits)});
    const auto plain =
        Cuckoo::Build(keys, {.fingerprint_bits = static_cast<Cuckoo::FingerprintBits>(bits)});
    ASSERT_TRUE(sorted && plain);
    EXPECT_EQ(sorted->Table().size(), plain->Table().size());
    EXPECT_NEAR(sorted->ExpectedFpr()->mean / plain->ExpectedFpr()->mean, 0.5, 0.01);
  }
}

}  // namespace
}  // namespace filterbench
