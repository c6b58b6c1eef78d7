#include "workloads/lsm/block_reads.h"

#include <bit>
#include <cmath>

#include <gtest/gtest.h>

namespace filterbench {
namespace {

// All outcomes of all filters, one by one: file 0 is asked first, the key is in the last or nowhere.
double ByEnumeration(unsigned files, double fpr, bool present) {
  double reads = 0;
  const unsigned chances = present ? files - 1 : files;
  for (unsigned says_maybe = 0; says_maybe < 1u << chances; ++says_maybe) {
    const int maybes = std::popcount(says_maybe);
    const double probability =
        std::pow(fpr, maybes) * std::pow(1 - fpr, static_cast<int>(chances) - maybes);
    reads += probability * (maybes + (present ? 1 : 0));
  }
  return reads;
}

TEST(BlockReads, EqualEnumeration) {
  for (const unsigned files : {1, 2, 7, 12}) {
    for (const double fpr : {0.0, 0.01, 0.3, 1.0}) {
      EXPECT_NEAR(BlockReadsPerGet(files, SoughtKey::kAbsent).At(fpr),
                  ByEnumeration(files, fpr, false), 1e-12);
      EXPECT_NEAR(BlockReadsPerGet(files, SoughtKey::kInDeepestLevel).At(fpr),
                  ByEnumeration(files, fpr, true), 1e-12);
    }
  }
}

TEST(BlockReads, WithoutFiltersEveryCandidateIsRead) {
  for (const uint64_t files : {1, 2, 40}) {
    EXPECT_EQ(BlockReadsPerGet(files, SoughtKey::kAbsent).At(1), static_cast<double>(files));
    EXPECT_EQ(BlockReadsPerGet(files, SoughtKey::kInDeepestLevel).At(1),
              static_cast<double>(files));
  }
}

}  // namespace
}  // namespace filterbench
