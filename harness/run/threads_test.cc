#include "harness/run/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "harness/machine/cpu_affinity.h"

namespace filterbench {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// One CPU per thread, where there are as many; tests of what threads do need no more.
std::vector<int> Cpus(size_t threads) {
  const std::vector<int> allowed = AllowedCpus();
  std::vector<int> cpus;
  for (size_t t = 0; t < threads && !allowed.empty(); ++t) {
    cpus.push_back(allowed[allowed.size() - 1 - t % allowed.size()]);
  }
  return cpus;
}

TEST(RunTogether, EachThreadRunsOnItsCpuAndTheCallerStaysWhereItWas) {
  const std::vector<int> allowed = AllowedCpus();
  if (allowed.empty()) GTEST_SKIP() << "no CPU is known to be allowed";
  const std::vector<int> cpus = Cpus(allowed.size());
  std::vector<int> seen(cpus.size(), -1);
  const Result<TogetherRun> run =
      RunTogether(cpus, [&](size_t thread) { seen[thread] = sched_getcpu(); });
  ASSERT_TRUE(run) << run.error();
  EXPECT_EQ(seen, cpus);
  EXPECT_EQ(run->seconds.size(), cpus.size());
  EXPECT_EQ(AllowedCpus(), allowed);
}

// Each thread waits inside its work for all others: one after the other they would wait for ever.
TEST(RunTogether, AllWorkAtTheSameTime) {
  const std::vector<int> cpus = Cpus(4);
  if (cpus.empty()) GTEST_SKIP() << "no CPU is known to be allowed";
  std::atomic<size_t> at_work = 0;
  std::atomic<int> alone = 0;
  const Result<TogetherRun> run = RunTogether(cpus, [&](size_t) {
    at_work.fetch_add(1);
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (at_work.load() < cpus.size()) {
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() > give_up) {
        alone.fetch_add(1);
        return;
      }
    }
  });
  ASSERT_TRUE(run) << run.error();
  EXPECT_EQ(alone.load(), 0);
}

// The time of a thread runs from the start of all, not from its own.
TEST(RunTogether, SecondsCountFromTheCommonStart) {
  const std::vector<int> cpus = Cpus(2);
  if (cpus.empty()) GTEST_SKIP() << "no CPU is known to be allowed";
  const Result<TogetherRun> run = RunTogether(cpus, [](size_t thread) {
    if (thread == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  ASSERT_TRUE(run) << run.error();
  EXPECT_GE(run->seconds[1], 0.020);
  EXPECT_THAT(run->seconds, Each(::testing::Ge(0)));
}

TEST(RunTogether, ACpuThatIsNotThereEndsItForAll) {
  const std::vector<int> cpus = Cpus(2);
  if (cpus.empty()) GTEST_SKIP() << "no CPU is known to be allowed";
  for (const int missing : {-1, 16383}) {
    std::atomic<int> worked = 0;
    const Result<TogetherRun> run =
        RunTogether(std::vector<int>{cpus[0], missing, cpus[1]}, [&](size_t) { ++worked; });
    ASSERT_FALSE(run);
    EXPECT_THAT(run.error(), HasSubstr("CPU"));
    EXPECT_EQ(worked.load(), 0);
  }
}

TEST(RunTogether, AnExceptionIsAnError) {
  const std::vector<int> cpus = Cpus(2);
  if (cpus.empty()) GTEST_SKIP() << "no CPU is known to be allowed";
  const Result<TogetherRun> run = RunTogether(cpus, [](size_t thread) {
    if (thread == 1) throw std::runtime_error("no more");
  });
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error(), "thread 1: no more");
}

TEST(MeasureThreads, EveryThreadRunsTheSameIterationsOfItsOwnStream) {
  const std::vector<int> cpus = Cpus(3);
  if (cpus.empty()) GTEST_SKIP() << "no CPU is known to be allowed";
  std::atomic<uint64_t> calls[3] = {};
  const MeasuredThreads measured =
      MeasureThreads({.name = "x", .passes = 4, .pass_seconds = 0.0001}, cpus,
                     std::vector<uint64_t>{10, 11, 12}, [&](size_t thread) {
                       ++calls[thread];
                       return 10 + thread;
                     });
  EXPECT_EQ(measured.problem, "");
  ASSERT_EQ(measured.slowest.seconds.size(), 4u);
  ASSERT_EQ(measured.fastest_seconds.size(), 4u);
  for (size_t pass = 0; pass < 4; ++pass) {
    EXPECT_LE(measured.fastest_seconds[pass], measured.slowest.seconds[pass]);
    EXPECT_GT(measured.fastest_seconds[pass], 0);
  }
  EXPECT_EQ(measured.slowest.last_result, 33u);
  EXPECT_EQ(measured.slowest.mismatches, 0u);
  // Two untimed ones, and four passes; all four once more where an interrupted first estimate made
  // them too short.
  const uint64_t timed = calls[0].load() - 2;
  EXPECT_GE(timed, 4 * measured.slowest.iterations);
  EXPECT_EQ(timed % 4, 0u);
  EXPECT_EQ(calls[1].load(), calls[0].load());
  EXPECT_EQ(calls[2].load(), calls[0].load());
}

// A filter that answers otherwise to one of its threads, as one does whose lookups write. The sum
// alone would not show two errors that cancel.
TEST(MeasureThreads, AWrongCountInOneThreadLeavesNoTime) {
  const std::vector<int> cpus = Cpus(3);
  if (cpus.empty()) GTEST_SKIP() << "no CPU is known to be allowed";
  for (const uint64_t first_lie : {1, 2, 3, 5}) {
    std::atomic<uint64_t> calls = 0;
    const MeasuredThreads measured = MeasureThreads(
        {.name = "x", .passes = 4, .pass_seconds = 0}, cpus, std::vector<uint64_t>{7, 7, 7},
        [&](size_t thread) -> uint64_t {
          if (thread == 0) return 7;
          if (thread == 1) ++calls;
          return calls < first_lie ? 7 : thread == 1 ? 6 : 8;
        });
    EXPECT_TRUE(measured.slowest.seconds.empty());
    EXPECT_TRUE(measured.fastest_seconds.empty());
    EXPECT_GE(measured.slowest.mismatches, 1u);
    EXPECT_THAT(measured.problem, HasSubstr("positive answers in the timed loop, expected 7"));
    EXPECT_LE(calls.load(), first_lie + 1);
  }
}

TEST(MeasureThreads, WithoutItsThreadsThereIsNoTime) {
  const MeasuredThreads measured =
      MeasureThreads({.name = "x", .passes = 2, .pass_seconds = 0}, std::vector<int>{-1, -2},
                     std::vector<uint64_t>{0, 0}, [](size_t) { return uint64_t{0}; });
  EXPECT_TRUE(measured.slowest.seconds.empty());
  EXPECT_THAT(measured.problem, HasSubstr("is not a CPU"));
}

TEST(PutThreadHealth, WhatTheWaitingThreadSawIsNotTheirs) {
  nlohmann::json health = {{"involuntary_switches", nullptr}, {"involuntary_switches_reason", "x"},
                           {"cpu", 1}, {"huge_page_bytes", 5}};
  PutThreadHealth({.voluntary_switches = 1, .involuntary_switches = 2, .minor_faults = 3,
                   .major_faults = 4}, health);
  EXPECT_EQ(health.at("involuntary_switches"), 2);
  EXPECT_FALSE(health.contains("involuntary_switches_reason"));
  EXPECT_TRUE(health.at("cpu").is_null());
  EXPECT_THAT(health.at("cpu_reason").get<std::string>(), HasSubstr("several"));
  EXPECT_EQ(health.at("huge_page_bytes"), 5);
}

}  // namespace
}  // namespace filterbench
