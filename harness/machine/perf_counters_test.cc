#include "harness/machine/perf_counters.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "harness/machine/fixture_tree.h"

namespace filterbench {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kHardware[] = {"cycles",          "instructions",    "branch_misses",
                                     "cache_references", "cache_misses",    "llc_read_misses",
                                     "l1d_read_misses", "dtlb_read_misses"};
constexpr const char* kSoftware[] = {"task_clock_ns", "page_faults", "context_switches",
                                     "cpu_migrations"};

// A kernel that opens what `refuse` does not, and whose counters read what the test says.
class FakeKernel : public PerfKernel {
 public:
  struct Counter {
    uint32_t type = 0;
    uint64_t config = 0;
    bool exclude_kernel = false;
    bool is_disabled = false;
    bool is_open = true;
    int leader = -1;
    PerfReading reading;
  };

  int Open(const perf_event_attr& attributes, int leader) override {
    if (leader >= 0 && !counters.contains(leader)) ADD_FAILURE() << "no leader " << leader;
    if (const int error = refuse(attributes, leader); error != 0) return -error;
    EXPECT_EQ(attributes.read_format,
              uint64_t{PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING});
    const int counter = next_++;
    counters[counter] = {.type = attributes.type,
                         .config = attributes.config,
                         .exclude_kernel = attributes.exclude_kernel != 0,
                         .is_disabled = attributes.disabled != 0,
                         .leader = leader,
                         .reading = {}};
    return counter;
  }
  int Switch(int leader, bool on) override {
    EXPECT_EQ(counters.at(leader).leader, -1) << "groups are switched by their leader";
    switches.emplace_back(leader, on);
    return switch_result;
  }
  int Read(int counter, PerfReading& reading) override {
    EXPECT_TRUE(counters.at(counter).is_open);
    reading = counters.at(counter).reading;
    return read_result;
  }
  void Close(int counter) override {
    EXPECT_TRUE(counters.at(counter).is_open);
    counters.at(counter).is_open = false;
  }

  Counter& Find(uint32_t type, uint64_t config) {
    for (auto& [number, counter] : counters) {
      if (counter.type == type && counter.config == config && counter.is_open) return counter;
    }
    ADD_FAILURE() << "no counter of type " << type << ", config " << config;
    return none_;
  }
  Counter& Cycles() { return Find(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES); }
  Counter& BranchMisses() { return Find(PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES); }

  void Advance(const PerfReading& by) {
    for (auto& [number, counter] : counters) {
      counter.reading.value += by.value;
      counter.reading.enabled_ns += by.enabled_ns;
      counter.reading.running_ns += by.running_ns;
    }
  }

  std::function<int(const perf_event_attr&, int leader)> refuse = [](const auto&, int) { return 0; };
  std::map<int, Counter> counters;
  std::vector<std::pair<int, bool>> switches;
  int switch_result = 0;
  int read_result = 0;

 private:
  int next_ = 100;
  Counter none_;
};

class PerfCountersTest : public testing::Test {
 protected:
  PerfCountersTest() { tree_.Write("/proc/sys/kernel/perf_event_paranoid", "2\n"); }

  // Opens the counters, lets `change` happen between Begin and the end; per 1000 operations.
  json Count(const std::function<void()>& change) {
    PerfCounters counters(kernel_, tree_.root());
    counters.Begin();
    counters.Resume();
    change();
    counters.Pause();
    return Checked(counters.PerOperation(1000));
  }

  // Every event has a value with what it needs, or a reason and nothing that could be taken for a
  // value.
  static json Checked(json counters) {
    EXPECT_EQ(counters.size(), std::size(kHardware) + std::size(kSoftware));
    for (const auto& [name, entry] : counters.items()) {
      if (entry.at("per_op").is_null()) {
        EXPECT_EQ(entry.size(), 2u) << entry;
        EXPECT_NE(entry.at("reason").get<std::string>(), "") << name;
      } else {
        EXPECT_GT(entry.at("running_share").get<double>(), 0) << name;
        EXPECT_LE(entry.at("running_share").get<double>(), 1) << name;
        EXPECT_TRUE(entry.at("kernel_excluded").is_boolean()) << name;
        EXPECT_FALSE(entry.contains("reason")) << name;
      }
    }
    return counters;
  }

  // All events are unknown; returns the reason of one of them.
  std::string AllUnknown(const std::function<void()>& change = [] {}) {
    const json counters = Count(change);
    for (const auto& [name, entry] : counters.items()) {
      EXPECT_TRUE(entry.at("per_op").is_null()) << name;
    }
    return counters.at("cycles").at("reason");
  }

  FakeKernel kernel_;
  FixtureTree tree_;
};

TEST_F(PerfCountersTest, ValuesArePerOperationSinceBegin) {
  json counters;
  {
    PerfCounters perf(kernel_, tree_.root());
    kernel_.Advance({.value = 999, .enabled_ns = 99, .running_ns = 99});
    perf.Begin();
    kernel_.Advance({.value = 2500, .enabled_ns = 50, .running_ns = 50});
    counters = Checked(perf.PerOperation(1000));
    EXPECT_TRUE(Checked(perf.PerOperation(0))["cycles"]["per_op"].is_null());
  }
  for (const auto& [name, entry] : counters.items()) {
    EXPECT_EQ(entry["per_op"], 2.5) << name;
    EXPECT_EQ(entry["running_share"], 1.0) << name;
  }
  for (const char* name : kHardware) EXPECT_EQ(counters[name]["kernel_excluded"], true) << name;
  for (const char* name : kSoftware) EXPECT_EQ(counters[name]["kernel_excluded"], false) << name;
  for (const auto& [number, counter] : kernel_.counters) EXPECT_FALSE(counter.is_open) << number;
}

TEST_F(PerfCountersTest, GroupsAreOffUntilResumeAndSwitchedByTheirLeaders) {
  Count([&] {
    std::set<int> leaders;
    for (const auto& [number, counter] : kernel_.counters) {
      EXPECT_EQ(counter.is_disabled, counter.leader < 0) << "members follow their leader";
      if (counter.leader < 0) leaders.insert(number);
    }
    EXPECT_EQ(leaders.size(), 4u);
    EXPECT_EQ(kernel_.switches.size(), leaders.size());
    for (const auto& [leader, on] : kernel_.switches) EXPECT_TRUE(on && leaders.contains(leader));
    kernel_.switches.clear();
  });
  EXPECT_EQ(kernel_.switches.size(), 4u);
  for (const auto& [leader, on] : kernel_.switches) EXPECT_FALSE(on);
}

// Case F5: more events than registers.
TEST_F(PerfCountersTest, MultiplexedValuesAreScaledAndSaySo) {
  const json counters = Count([&] {
    kernel_.Advance({.value = 1000, .enabled_ns = 400, .running_ns = 400});
    PerfReading& reading = kernel_.BranchMisses().reading;
    reading = {.value = 300, .enabled_ns = 400, .running_ns = 100};
  });
  EXPECT_EQ(counters["cycles"]["per_op"], 1.0);
  EXPECT_EQ(counters["branch_misses"]["per_op"], 1.2);
  EXPECT_EQ(counters["branch_misses"]["running_share"], 0.25);
}

TEST_F(PerfCountersTest, WhatNeverRanIsUnknown) {
  const json counters = Count([&] {
    kernel_.Advance({.value = 1000, .enabled_ns = 400, .running_ns = 400});
    kernel_.BranchMisses().reading = {.value = 0, .enabled_ns = 400, .running_ns = 0};
  });
  EXPECT_THAT(counters["branch_misses"]["reason"].get<std::string>(), HasSubstr("never ran"));
  EXPECT_THAT(AllUnknown(), HasSubstr("never on"));
}

// Case F5: 12 events at once on a PMU that takes groups of two only, and on one that takes none.
TEST_F(PerfCountersTest, WhereTheGroupHasNoRoomTheEventStartsAnother) {
  for (const size_t room : {1, 2}) {
    kernel_.counters.clear();
    kernel_.switches.clear();
    kernel_.refuse = [&](const perf_event_attr& attributes, int leader) {
      if (leader < 0 || attributes.type == PERF_TYPE_SOFTWARE) return 0;
      size_t members = 1;
      for (const auto& [number, counter] : kernel_.counters) members += counter.leader == leader;
      return members < room ? 0 : EINVAL;
    };
    const json counters =
        Count([&] { kernel_.Advance({.value = 1000, .enabled_ns = 400, .running_ns = 100}); });
    for (const auto& [name, entry] : counters.items()) EXPECT_EQ(entry["per_op"], 4.0) << name;
    EXPECT_EQ(kernel_.counters.size(), 12u);
    EXPECT_EQ(kernel_.switches.size(), 2 * (room == 1 ? 8u + 1 : 5u + 1));
    for (const auto& [number, counter] : kernel_.counters) {
      EXPECT_EQ(counter.is_disabled, counter.leader < 0);
    }
  }
}

TEST_F(PerfCountersTest, AnEventThatTheCpuHasNotLeavesTheOthers) {
  // The first of a group and one in the middle.
  kernel_.refuse = [](const perf_event_attr& attributes, int) {
    if (attributes.type != PERF_TYPE_HARDWARE) return 0;
    if (attributes.config == PERF_COUNT_HW_CACHE_REFERENCES) return ENOENT;
    return attributes.config == PERF_COUNT_HW_INSTRUCTIONS ? EINVAL : 0;
  };
  const json counters =
      Count([&] { kernel_.Advance({.value = 1000, .enabled_ns = 400, .running_ns = 400}); });
  for (const auto& [name, entry] : counters.items()) {
    const bool is_missing = name == "cache_references" || name == "instructions";
    EXPECT_EQ(entry["per_op"].is_null(), is_missing) << name;
  }
  EXPECT_EQ(kernel_.switches.size(), 2 * 4u);
}

// Case F5: a setting above what the kernel itself knows, as Debian has it.
TEST_F(PerfCountersTest, AForbiddenCounterNamesTheSetting) {
  tree_.Write("/proc/sys/kernel/perf_event_paranoid", "3\n");
  kernel_.refuse = [](const auto&, int) { return EACCES; };
  EXPECT_EQ(AllUnknown(),
            "closed to this user (kernel.perf_event_paranoid = 3, without CAP_PERFMON)");
  tree_.Remove("/proc/sys/kernel/perf_event_paranoid");
  EXPECT_THAT(AllUnknown(), HasSubstr("/proc/sys/kernel/perf_event_paranoid"));
}

// A context switch happens in the kernel: with the kernel excluded the kernel would count 0 for
// ever, which would be read as a quiet run.
TEST_F(PerfCountersTest, WhereTheKernelIsClosedItsEventsAreUnknownAndNotZero) {
  kernel_.refuse = [](const perf_event_attr& attributes, int) {
    return attributes.exclude_kernel != 0 ? 0 : EACCES;
  };
  const json counters =
      Count([&] { kernel_.Advance({.value = 1000, .enabled_ns = 400, .running_ns = 400}); });
  for (const char* name : kHardware) EXPECT_EQ(counters[name]["per_op"], 1.0) << name;
  for (const char* name : {"task_clock_ns", "page_faults"}) {
    EXPECT_EQ(counters[name]["per_op"], 1.0) << name;
    EXPECT_EQ(counters[name]["kernel_excluded"], true) << name;
  }
  for (const char* name : {"context_switches", "cpu_migrations"}) {
    EXPECT_THAT(counters[name].dump(), HasSubstr("kernel.perf_event_paranoid = 2")) << name;
    EXPECT_TRUE(counters[name]["per_op"].is_null()) << name;
  }
}

TEST_F(PerfCountersTest, AMachineWithoutAPmuKeepsItsSoftwareEvents) {
  kernel_.refuse = [](const perf_event_attr& attributes, int) {
    return attributes.type == PERF_TYPE_SOFTWARE ? 0 : ENOENT;
  };
  const json counters =
      Count([&] { kernel_.Advance({.value = 1000, .enabled_ns = 400, .running_ns = 400}); });
  for (const char* name : kHardware) {
    EXPECT_TRUE(counters[name]["per_op"].is_null()) << name;
    EXPECT_THAT(counters[name]["reason"].get<std::string>(),
                HasSubstr("no performance monitoring unit"));
  }
  for (const char* name : kSoftware) EXPECT_EQ(counters[name]["per_op"], 1.0) << name;
}

TEST_F(PerfCountersTest, EveryErrorHasItsReason) {
  const std::pair<int, const char*> reasons[] = {
      {ENOSYS, "no perf_event_open"},   {EPERM, "profile of a container"},
      {EOPNOTSUPP, "monitoring unit"},  {ENODEV, "monitoring unit"},
      {EMFILE, "ulimit -n"},            {EINVAL, "does not know the event"},
      {E2BIG, "perf_event_open: Argument list too long"}};
  for (const auto& [error, reason] : reasons) {
    kernel_.refuse = [error = error](const auto&, int) { return error; };
    EXPECT_THAT(AllUnknown(), HasSubstr(reason)) << error;
  }
  EXPECT_TRUE(kernel_.switches.empty()) << "what is not open costs nothing";
}

TEST_F(PerfCountersTest, ReadingsThatMakeNoSenseAreUnknown) {
  const auto cycles = [&](PerfReading reading) -> std::string {
    const json counters = Count([&] {
      kernel_.Advance({.value = 1000, .enabled_ns = 400, .running_ns = 400});
      kernel_.Cycles().reading = reading;
    });
    EXPECT_EQ(counters["branch_misses"]["per_op"], 1.0);
    EXPECT_TRUE(counters["cycles"]["per_op"].is_null());
    return counters["cycles"]["reason"];
  };
  EXPECT_THAT(cycles({.value = 5, .enabled_ns = 400, .running_ns = 401}),
              HasSubstr("401 ns of 400 ns"));
  EXPECT_THAT(cycles({.value = 0, .enabled_ns = 400, .running_ns = 400}),
              HasSubstr("stood still while it ran for 400 ns"));
}

TEST_F(PerfCountersTest, ACounterThatFallsIsUnknown) {
  PerfCounters counters(kernel_, tree_.root());
  kernel_.Advance({.value = 500, .enabled_ns = 50, .running_ns = 50});
  counters.Begin();
  kernel_.Advance({.value = 500, .enabled_ns = 50, .running_ns = 50});
  kernel_.Cycles().reading.value = 499;
  kernel_.BranchMisses().reading.running_ns = 49;
  const json result = Checked(counters.PerOperation(10));
  EXPECT_EQ(result["cycles"]["reason"], "the counter fell from 500 to 499");
  EXPECT_EQ(result["branch_misses"]["reason"], "the times of the counter fell");
  EXPECT_EQ(result["instructions"]["per_op"], 50.0);
}

// A virtual PMU that takes every event and counts none.
TEST_F(PerfCountersTest, NoMissesInNoCyclesIsUnknown) {
  const json counters = Count([&] {
    kernel_.Advance({.value = 0, .enabled_ns = 400, .running_ns = 400});
    kernel_.Find(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK).reading.value = 400;
  });
  for (const char* name : kHardware) EXPECT_TRUE(counters[name]["per_op"].is_null()) << name;
  EXPECT_EQ(counters["page_faults"]["per_op"], 0.0) << "none is a number here";
  EXPECT_EQ(counters["branch_misses"]["reason"], "the counter stood still while it ran for 400 ns");
}

TEST_F(PerfCountersTest, FailingCallsAreUnknown) {
  EXPECT_THAT(AllUnknown([&] { kernel_.read_result = -ENODATA; }), HasSubstr("cannot be read"));
  kernel_.read_result = -EIO;
  EXPECT_THAT(AllUnknown([&] { kernel_.read_result = 0; }), HasSubstr("cannot be read"));
  kernel_.switch_result = -EBADF;
  EXPECT_THAT(AllUnknown(), HasSubstr("cannot be switched"));
}

// What this machine's kernel counts itself, without a PMU.
class LivePerfCountersTest : public testing::Test {
 protected:
  static constexpr uint64_t kPages = 512;

  static void TouchPages() {
    const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    void* memory = mmap(nullptr, kPages * page_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    // One fault per page; fails, and is not needed, on a kernel without huge pages.
    static_cast<void>(madvise(memory, kPages * page_bytes, MADV_NOHUGEPAGE));
    for (size_t i = 0; i < kPages; ++i) static_cast<volatile char*>(memory)[i * page_bytes] = 1;
    munmap(memory, kPages * page_bytes);
  }
};

TEST_F(LivePerfCountersTest, SoftwareEvents) {
  PerfCounters counters;
  TouchPages();
  counters.Begin();
  TouchPages();
  const json none = counters.PerOperation(1);
  ASSERT_TRUE(none["task_clock_ns"]["per_op"].is_null());
  if (none["task_clock_ns"]["reason"] != "the counter was never on") {
    GTEST_SKIP() << none["task_clock_ns"]["reason"];
  }
  counters.Resume();
  TouchPages();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  counters.Pause();
  TouchPages();
  const json counted = counters.PerOperation(1);
  for (const auto& [name, entry] : counted.items()) {
    EXPECT_EQ(entry["per_op"].is_null(), entry.contains("reason")) << name;
  }
  EXPECT_EQ(counted["task_clock_ns"]["running_share"], 1.0);
  EXPECT_GT(counted["task_clock_ns"]["per_op"], 0.0);
  // A kernel that fills folios of up to 16 pages at a fault still takes kPages / 16 faults. What
  // was touched before and after does not count.
  EXPECT_GE(counted["page_faults"]["per_op"], kPages / 16.0);
  EXPECT_LT(counted["page_faults"]["per_op"], kPages * 1.5);
  if (!counted["context_switches"]["per_op"].is_null()) {
    EXPECT_GE(counted["context_switches"]["per_op"], 1.0);
  }
  EXPECT_EQ(counters.PerOperation(2)["page_faults"]["per_op"],
            counted["page_faults"]["per_op"].get<double>() / 2);
}

// As for each pass. Members of a group must come back with their leader every time.
TEST_F(LivePerfCountersTest, CountInEveryPiece) {
  PerfCounters counters;
  counters.Begin();
  double faults = 0;
  for (int piece = 1; piece <= 3; ++piece) {
    counters.Resume();
    TouchPages();
    counters.Pause();
    const json counted = counters.PerOperation(1);
    for (const char* name : kSoftware) {
      if (counted[name]["per_op"].is_null()) GTEST_SKIP() << counted[name]["reason"];
      // Software counters need no register: but for the moments of switching they always run.
      EXPECT_GT(counted[name]["running_share"], 0.9) << name << " in piece " << piece;
    }
    const double more = counted["page_faults"]["per_op"].get<double>() - faults;
    EXPECT_GE(more, kPages / 16.0) << "in piece " << piece;
    faults += more;
  }
}

// Lookups by several threads are counted by the one that starts them.
TEST_F(LivePerfCountersTest, ThreadsThatAreMadeLaterCount) {
  PerfCounters counters;
  counters.Begin();
  counters.Resume();
  std::thread(TouchPages).join();
  counters.Pause();
  const json counted = counters.PerOperation(1);
  if (counted["page_faults"]["per_op"].is_null()) GTEST_SKIP() << counted["page_faults"]["reason"];
  EXPECT_GE(counted["page_faults"]["per_op"], kPages / 16.0);
}

}  // namespace
}  // namespace filterbench
