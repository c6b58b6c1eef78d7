#include "harness/machine/clock_step.h"

#include <gtest/gtest.h>

namespace filterbench {
namespace {

TEST(ClockStepTest, IsThatOfTheClock) {
  int64_t now_ns = 0;
  // Every reading takes 40 ns.
  EXPECT_EQ(MeasureClockStepNs([&] { return now_ns += 40; }).value(), 40);
  // Case F3: a clock that shows whole milliseconds, of which the first 25,000 readings see no step.
  constexpr int64_t kMillisecond = 1'000'000;
  const auto quantised = [&] { return (now_ns += 40) / kMillisecond * kMillisecond; };
  EXPECT_EQ(MeasureClockStepNs(quantised).value(), kMillisecond);
}

TEST(ClockStepTest, AnInterruptionIsNoStepAndNeitherIsAFall) {
  int64_t now_ns = 0;
  int readings = 0;
  const Fact<int64_t> step_ns = MeasureClockStepNs([&] {
    ++readings;
    if (readings == 100) now_ns += 5'000'000;
    if (readings == 200) now_ns -= 1'000;
    return now_ns += 25;
  });
  EXPECT_EQ(step_ns.value(), 25);
}

TEST(ClockStepTest, AClockThatStandsStillIsUnknown) {
  EXPECT_EQ(MeasureClockStepNs([] { return int64_t{7}; }).reason(), "the clock stands still");
}

TEST(ClockStepTest, OfThisMachineIsMeasuredOnce) {
  ASSERT_TRUE(ClockStepNs().known());
  EXPECT_GT(ClockStepNs().value(), 0);
  EXPECT_EQ(&ClockStepNs(), &ClockStepNs());
}

}  // namespace
}  // namespace filterbench
