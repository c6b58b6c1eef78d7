#include "workloads/hash_set.h"

#include <cstdint>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include <gtest/gtest.h>

namespace filterbench {
namespace {

TEST(HashSet, AgreesWithTheStandardOne) {
  for (const double load : {0.25, 0.5, 0.75, 0.99}) {
    for (const uint64_t keys : {0, 1, 2, 100, 5000}) {
      HashSet set(keys, load);
      std::unordered_set<uint64_t> reference;
      uint64_t state = 3;
      for (uint64_t i = 0; i < keys; ++i) {
        // Few distinct ones at the ends of the range, where slots wrap, 0 among them.
        const uint64_t draw = Mix64(state += kGoldenGamma);
        const uint64_t hash = i % 3 == 0 ? draw : i % 3 == 1 ? draw % 50 : ~(draw % 50);
        EXPECT_EQ(set.Insert(hash), reference.insert(hash).second);
      }
      EXPECT_EQ(set.size(), reference.size());
      for (uint64_t i = 0; i < 200; ++i) {
        for (const uint64_t hash : {i, ~i, Mix64(i)}) {
          EXPECT_EQ(set.Contains(hash), reference.contains(hash)) << hash;
        }
      }
      for (const uint64_t hash : reference) EXPECT_TRUE(set.Contains(hash));
    }
  }
}

TEST(HashSet, GoesOnAtTheFirstSlotAfterTheLast) {
  // All of these belong into the last slot, and nothing lies in the first ones.
  HashSet set(10, 0.5);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_TRUE(set.Insert(~i));
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_FALSE(set.Insert(~i));
    EXPECT_TRUE(set.Contains(~i));
    EXPECT_FALSE(set.Contains(~(i + 10)));
    EXPECT_FALSE(set.Contains(i));
  }
}

TEST(HashSet, HoldsItsHashesInATableOfManyPagesThatMoved) {
  constexpr uint64_t kKeys = 400'000;
  HashSet made(kKeys, 0.75);
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(made.Insert(Mix64(i)));
  EXPECT_GE(made.SizeInBytes(), kKeys * 8 / 0.75);
  EXPECT_LT(made.SizeInBytes(), kKeys * 8 / 0.75 + 200);
  const HashSet set = std::move(made);
  uint64_t found = 0;
  for (uint64_t i = 0; i < 2 * kKeys; ++i) found += set.Contains(Mix64(i)) ? 1 : 0;
  EXPECT_EQ(found, kKeys);
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(set.Contains(Mix64(i)));
}

TEST(HashSet, RefusesToFillItsLastSlot) {
  HashSet set(10, 0.9);
  uint64_t hash = 1;
  EXPECT_THROW(
      {
        for (;; ++hash) set.Insert(hash);
      },
      std::length_error);
  EXPECT_FALSE(set.Contains(hash));
  EXPECT_GE(hash, 11u);
}

}  // namespace
}  // namespace filterbench
