#include "workloads/lookups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

namespace filterbench {
namespace {

TEST(MakeLookups, TheShareOfNegativesIsExact) {
  for (const double share : {0.0, 0.1, 0.5, 0.9, 0.95, 1.0}) {
    const LookupIndices stream = MakeLookups(1000, uint64_t{1} << 63, 10'000, share, 7);
    const auto negatives = std::count_if(stream.indices.begin(), stream.indices.end(),
                                         [](uint64_t index) { return index >= 1000; });
    EXPECT_EQ(negatives, std::llround(10'000 * share));
    EXPECT_EQ(stream.negatives, static_cast<uint64_t>(negatives));
    EXPECT_EQ(stream.indices.size(), 10'000u);
  }
}

TEST(MakeLookups, EveryPresentKeyIsAskedEquallyOften) {
  for (const uint64_t n : {1, 2, 3, 7, 64, 1000}) {
    const LookupIndices stream = MakeLookups(n, uint64_t{1} << 63, 4096, 0, n);
    std::map<uint64_t, uint64_t> times;
    for (const uint64_t index : stream.indices) ++times[index];
    EXPECT_EQ(times.size(), std::min<uint64_t>(n, 4096));
    for (const auto& [index, count] : times) {
      EXPECT_LT(index, n);
      EXPECT_NEAR(static_cast<double>(count), 4096.0 / static_cast<double>(n), 1);
    }
  }
}

TEST(MakeLookups, AbsentKeysAreAskedOnceWhileThereAreEnough) {
  const LookupIndices stream = MakeLookups(5, uint64_t{1} << 63, 8192, 1, 3);
  const std::set<uint64_t> distinct(stream.indices.begin(), stream.indices.end());
  EXPECT_EQ(distinct.size(), 8192u);
  EXPECT_GE(*distinct.begin(), 5u);
}

TEST(MakeLookups, AFixedSetOfKeysBoundsTheAbsentOnes) {
  const LookupIndices stream = MakeLookups(90, 100, 4096, 0.5, 3);
  EXPECT_LT(*std::max_element(stream.indices.begin(), stream.indices.end()), 100u);
  EXPECT_EQ(MakeLookups(100, 100, 4096, 0.5, 3).negatives, 0u);
  EXPECT_EQ(MakeLookups(0, 100, 4096, 0.5, 3).negatives, 4096u);
}

// Case I4: present and absent keys are mixed.
// A stream sorted by kind would let the branch predictor answer: in a shuffled one the number of
// runs of equal kinds is N(1 + n/2, sqrt(n)/2) at a share of one half (Wald and Wolfowitz 1940).
// Six standard deviations: a false alarm in 2e-9 of all seeds, and the seed is fixed.
TEST(MakeLookups, KindsAreShuffled) {
  constexpr size_t kLookups = 1 << 16;
  const LookupIndices stream = MakeLookups(1000, uint64_t{1} << 63, kLookups, 0.5, 11);
  size_t runs = 1;
  for (size_t i = 1; i < kLookups; ++i) {
    runs += (stream.indices[i] < 1000) != (stream.indices[i - 1] < 1000);
  }
  EXPECT_NEAR(static_cast<double>(runs), 1 + kLookups / 2.0, 6 * std::sqrt(kLookups) / 2);
}

TEST(MakeLookups, TheSeedDecides) {
  EXPECT_EQ(MakeLookups(100, 1000, 4096, 0.5, 1).indices,
            MakeLookups(100, 1000, 4096, 0.5, 1).indices);
  EXPECT_NE(MakeLookups(100, 1000, 4096, 0.5, 1).indices,
            MakeLookups(100, 1000, 4096, 0.5, 2).indices);
}

TEST(LookupsWithoutRepeats, AsksNoKeyTwice) {
  EXPECT_EQ(LookupsWithoutRepeats(1000, 0.5, 500, 500), 1000u);
  EXPECT_EQ(LookupsWithoutRepeats(1000, 0, 100, 0), 100u);
  EXPECT_EQ(LookupsWithoutRepeats(1000, 1, 0, 1000), 1000u);
  EXPECT_EQ(LookupsWithoutRepeats(1000, 1, 0, 0), 1u);
  for (const double share : {0.0, 0.1, 0.33, 0.5, 0.9, 0.999}) {
    for (const uint64_t present : {1, 7, 100, 3000}) {
      const uint64_t length = LookupsWithoutRepeats(5000, share, present, 4000);
      const LookupIndices stream = MakeLookups(present, present + 4000, length, share, 3);
      const std::set<uint64_t> distinct(stream.indices.begin(), stream.indices.end());
      EXPECT_EQ(distinct.size(), length) << share << " of " << present;
      EXPECT_GT(static_cast<double>(length) + 2,
                std::min({5000.0, static_cast<double>(present) / (1 - share), 4000 / share}));
    }
  }
}

}  // namespace
}  // namespace filterbench
