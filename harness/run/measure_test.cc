#include "harness/run/measure.h"

#include <linux/perf_event.h>

#include <string>

#include <gtest/gtest.h>

#include "harness/machine/clock_step.h"

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

// One slow build in the beginning, of cold memory, does not make the passes short.
TEST(MeasureTimed, PassesThatAreFarTooShortAreRunAgain) {
  int calls = 0;
  const Measured measured =
      MeasureTimed({.name = "x", .passes = 2, .pass_seconds = 1.0},
                   [&] { return ++calls == 1 ? 0.9 : 0.05; });
  EXPECT_EQ(measured.iterations, 20u);
  EXPECT_EQ(measured.seconds.size(), 2u) << "only those of the last attempt";
  EXPECT_EQ(calls, 1 + 2 * 2 + 2 * 20);
}

// Writes down when groups are switched: '(' on, ')' off.
class LoggingKernel : public PerfKernel {
 public:
  explicit LoggingKernel(std::string* log) : log_(log) {}
  int Open(const perf_event_attr& attributes, int leader) override {
    return attributes.type == PERF_TYPE_SOFTWARE && leader < 0 ? 3 : leader < 0 ? -ENOENT : 4;
  }
  int Switch(int, bool on) override {
    *log_ += on ? '(' : ')';
    return 0;
  }
  int Read(int, PerfReading&) override {
    if (log_->empty() || log_->back() != '|') *log_ += '|';
    return 0;
  }
  void Close(int) override {}

 private:
  std::string* log_;
};

TEST(MeasureLoop, CountersAreOnDuringThePassesOnly) {
  std::string log;
  LoggingKernel kernel(&log);
  PerfCounters counters(kernel);
  MeasureLoop({.name = "x", .passes = 3, .pass_seconds = 0, .counters = &counters}, 7, [&] {
    log += 'i';
    return uint64_t{7};
  });
  EXPECT_EQ(log, "ii|(i)(i)(i)");
}

TEST(MeasureTimed, CountersAreBegunBeforeThePasses) {
  std::string log;
  LoggingKernel kernel(&log);
  PerfCounters counters(kernel);
  MeasureTimed({.name = "x", .passes = 2, .pass_seconds = 0, .counters = &counters}, [&] {
    log += 'i';
    return 1.0;
  });
  EXPECT_EQ(log, "i|ii");
  log.clear();
  int calls = 0;
  MeasureTimed({.name = "x", .passes = 1, .pass_seconds = 8, .counters = &counters}, [&] {
    log += 'i';
    return ++calls == 1 ? 8.0 : 1.0;
  });
  EXPECT_EQ(log, "i|i|iiiiiiii") << "begun again with the second attempt";
}

// Case F3: a pass must last for a thousand steps of the clock, of which this one has whole
// milliseconds.
TEST(WhyTooShort, DependsOnTheStepOfTheClock) {
  int64_t now_ns = 0;
  const Fact<int64_t> coarse =
      MeasureClockStepNs([&] { return (now_ns += 50) / 1'000'000 * 1'000'000; });
  EXPECT_EQ(WhyTooShort(std::vector<double>{1.5, 0.02, 3.0}, coarse),
            "a pass took 2e+07 ns, less than 1000 steps of the clock of 1000000 ns");
  EXPECT_EQ(WhyTooShort(std::vector<double>{1.5, 1.0}, coarse), "");
  EXPECT_NE(WhyTooShort(std::vector<double>{0}, Fact<int64_t>::Known(1)), "");
  EXPECT_EQ(WhyTooShort(std::vector<double>{1.5}, Fact<int64_t>::Unknown("it stands still")),
            "the resolution of the clock is not known: it stands still");

  EXPECT_EQ(WhyPiecesTooShort(0.0499, coarse),
            "a timed piece of a pass took 4.99e+07 ns, less than 50 steps of the clock of 1000000 "
            "ns");
  EXPECT_EQ(WhyPiecesTooShort(0.05, coarse), "");
  EXPECT_EQ(WhyPiecesTooShort(1, Fact<int64_t>::Unknown("it stands still")),
            "the resolution of the clock is not known: it stands still");

  EXPECT_EQ(ShortestPassSeconds(0, coarse), 4.0);
  EXPECT_EQ(ShortestPassSeconds(5, coarse), 5.0);
  EXPECT_EQ(ShortestPassSeconds(0.02, Fact<int64_t>::Known(25)), 0.02);
  EXPECT_EQ(ShortestPassSeconds(0.02, Fact<int64_t>::Unknown("why")), 0.02);
}

}  // namespace
}  // namespace filterbench
