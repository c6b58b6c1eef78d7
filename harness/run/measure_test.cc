#include "harness/run/measure.h"

#include <gtest/gtest.h>

namespace filterbench {
namespace {

TEST(MeasureLoop, EveryPassRunsTheSameIterations) {
  uint64_t calls = 0;
  const Measured measured = MeasureLoop({.name = "x", .passes = 4, .pass_seconds = 0}, 7, [&] {
    ++calls;
    return uint64_t{7};
  });
  EXPECT_EQ(measured.seconds.size(), 4u);
  EXPECT_EQ(measured.iterations, 1u);
  EXPECT_EQ(measured.mismatches, 0u);
  EXPECT_EQ(calls, 2u + 4u);  // a warm-up, one to find the number of iterations, four passes
}

// Case F1: work that the optimiser drops, or that answers otherwise while it is timed, is seen.
TEST(MeasureLoop, AResultThatChangesUnderTheClockIsCounted) {
  uint64_t calls = 0;
  const Measured measured = MeasureLoop({.name = "x", .passes = 3, .pass_seconds = 0}, 7,
                                        [&] { return ++calls == 4 ? uint64_t{6} : uint64_t{7}; });
  EXPECT_EQ(measured.mismatches, 1u);
  EXPECT_EQ(measured.last_result, 6u);
}

TEST(MeasureLoop, AWrongResultIsNotTimed) {
  const Measured measured =
      MeasureLoop({.name = "x", .passes = 3, .pass_seconds = 0}, 7, [] { return uint64_t{8}; });
  EXPECT_TRUE(measured.seconds.empty());
  EXPECT_EQ(measured.mismatches, 1u);
}

TEST(MeasureTimed, OnlyTheSecondsThatAreReturnedCount) {
  const Measured measured =
      MeasureTimed({.name = "x", .passes = 2, .pass_seconds = 1.0}, [] { return 0.25; });
  EXPECT_EQ(measured.iterations, 4u);
  ASSERT_EQ(measured.seconds.size(), 2u);
  EXPECT_DOUBLE_EQ(measured.seconds[0], 1.0);
}

}  // namespace
}  // namespace filterbench
