#include "harness/machine/health.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "harness/machine/core_clock.h"
#include "harness/machine/cpu_affinity.h"
#include "harness/machine/fixture_tree.h"

namespace filterbench {
namespace {

using nlohmann::json;

TEST(HealthTest, CountsFaultsAndSwitchesOfThisThread) {
  constexpr int64_t kPages = 512;
  const size_t bytes = static_cast<size_t>(kPages * sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  // One fault per page; fails, and is not needed, on a kernel without huge pages.
  static_cast<void>(madvise(memory, bytes, MADV_NOHUGEPAGE));

  HealthProbe probe;
  probe.Begin();
  for (size_t i = 0; i < bytes; i += static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    static_cast<volatile char*>(memory)[i] = 1;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const json health = probe.End();
  munmap(memory, bytes);

  // A kernel that fills folios of up to 16 pages at a fault still takes kPages / 16 faults.
  EXPECT_GE(health["minor_faults"], kPages / 16);
  EXPECT_GE(health["voluntary_switches"], 1);

  // Another thread's faults do not count.
  probe.Begin();
  std::thread([] {
    std::vector<char> other(size_t{8} << 20, 1);
    static_cast<volatile char&>(other[0]) = 2;
  }).join();
  EXPECT_LT(probe.End()["minor_faults"], 512);
}

TEST(HealthTest, EveryNullIsExplained) {
  HealthProbe probe;
  probe.Begin();
  const json health = probe.End();
  for (const char* field :
       {"voluntary_switches", "involuntary_switches", "minor_faults", "major_faults", "migrations",
        "steal_ticks", "huge_page_bytes", "cpu", "cpu_before", "frequency_mhz",
        "frequency_mhz_before", "core_clock_mhz", "core_clock_mhz_before"}) {
    ASSERT_TRUE(health.contains(field)) << field;
    EXPECT_EQ(health[field].is_null(), health.contains(std::string(field) + "_reason")) << field;
  }
}

// A thread bound to one CPU reads recorded files that change between Begin and End.
class HealthFixtureTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<int> allowed = AllowedCpus();
    ASSERT_FALSE(allowed.empty());
    cpu_ = allowed.back();
    tree_.Write("/proc/cpuinfo", "processor: 0\nflags\t: fpu hypervisor\n");
    WriteFiles(100, 7, 5, 3000000);
  }

  void WriteFiles(int all_steal, int cpu_steal, int migrations, int khz) const {
    tree_.Write("/proc/stat",
                fmt::format("cpu  1 2 3 4 5 6 7 {} 9 10\ncpu{} 1 2 3 4 5 6 7 {} 9 10\nintr 8\n",
                            all_steal, cpu_, cpu_steal));
    tree_.Write(
        "/proc/thread-self/sched",
        fmt::format("x (1, #threads: 1)\n-----\nse.nr_migrations          :  {}\n", migrations));
    tree_.Write("/proc/self/smaps_rollup",
                "0-1 ---p 0 0:0 0 [rollup]\nRss:  9 kB\nAnonHugePages:      4096 kB\n"
                "Shared_Hugetlb:   2 kB\nPrivate_Hugetlb:  1024 kB\n");
    tree_.Write(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", cpu_),
                fmt::format("{}\n", khz));
  }

  template <typename Change>
  json Probe(const Change& change) const {
    json health;
    std::thread([&] {
      const std::optional<std::string> error = PinToCpu(cpu_);
      EXPECT_EQ(error, std::nullopt);
      HealthProbe probe(tree_.root());
      probe.Begin();
      change();
      health = probe.End();
    }).join();
    return health;
  }

  FixtureTree tree_;
  int cpu_ = -1;
};

TEST_F(HealthFixtureTest, Differences) {
  const json health = Probe([&] { WriteFiles(100, 18, 5, 2500500); });
  EXPECT_EQ(health["steal_ticks"], 11);
  EXPECT_EQ(health["migrations"], 0);
  EXPECT_EQ(health["huge_page_bytes"], (4096 + 2 + 1024) * 1024);
  EXPECT_EQ(health["cpu"], cpu_);
  EXPECT_EQ(health["cpu_before"], cpu_);
  EXPECT_EQ(health["frequency_mhz_before"], 3000.0);
  EXPECT_EQ(health["frequency_mhz"], 2500.5);
}

TEST_F(HealthFixtureTest, StealIsUnknownAfterAMove) {
  const json health = Probe([&] { WriteFiles(100, 18, 6, 3000000); });
  EXPECT_EQ(health["migrations"], 1);
  EXPECT_TRUE(health["steal_ticks"].is_null());
}

TEST_F(HealthFixtureTest, AGuestWithoutAnyStealMayNotReportIt) {
  WriteFiles(0, 0, 5, 3000000);
  EXPECT_TRUE(Probe([] {})["steal_ticks"].is_null());
  tree_.Write("/proc/cpuinfo", "processor: 0\nflags\t: fpu\n");
  EXPECT_EQ(Probe([] {})["steal_ticks"], 0);
}

TEST_F(HealthFixtureTest, ACounterThatFallsIsUnknown) {
  const json health = Probe([&] { WriteFiles(100, 6, 4, 3000000); });
  EXPECT_TRUE(health["steal_ticks"].is_null());
  EXPECT_EQ(health["migrations_reason"], "the counter fell from 5 to 4");
}

TEST_F(HealthFixtureTest, EmptyFiles) {
  const json health = Probe([&] {
    for (const std::string& file : tree_.Files()) tree_.Write(file, "");
  });
  for (const char* field : {"steal_ticks", "migrations", "huge_page_bytes", "frequency_mhz"}) {
    EXPECT_TRUE(health[field].is_null()) << field;
    EXPECT_TRUE(std::string(health[std::string(field) + "_reason"]).ends_with("is empty")) << field;
  }
}

TEST_F(HealthFixtureTest, OlderKernelsWithoutAHugePageLine) {
  tree_.Write("/proc/self/smaps_rollup", "Rss:  9 kB\nAnonHugePages:      4096 kB\n");
  EXPECT_EQ(Probe([] {})["huge_page_bytes_reason"],
            "/proc/self/smaps_rollup has no line Private_Hugetlb");
}

TEST(CpuAffinityTest, PinningWorksAndIsRefusedWithAReason) {
  std::thread([] {
    for (const int cpu : AllowedCpus()) {
      EXPECT_EQ(PinToCpu(cpu), std::nullopt);
      EXPECT_EQ(sched_getcpu(), cpu);
      EXPECT_EQ(AllowedCpus(), std::vector<int>({cpu}));
    }
    EXPECT_EQ(PinToCpu(-1), "-1 is not a CPU");
    EXPECT_EQ(PinToCpu(16384), "16384 is not a CPU");
    EXPECT_EQ(PinToCpu(16383), "CPU 16383 does not exist, is offline or is closed to this process");
  }).join();
}

TEST(CpuAffinityTest, DefaultIsTheLastAllowedCpu) {
  EXPECT_EQ(DefaultCpu({}, json::object()), std::nullopt);
  EXPECT_EQ(DefaultCpu({0, 1, 5}, json::object()), 5);
  EXPECT_EQ(DefaultCpu({0, 1, 5}, {{"topology", nullptr}}), 5);
  EXPECT_EQ(DefaultCpu({0, 1, 5}, {{"topology", {{"core_kinds", nullptr}}}}), 5);
}

void WriteSiblings(const FixtureTree& tree, int cpu, std::string_view siblings) {
  tree.Write(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu),
             siblings);
}

TEST(CpuAffinityTest, ThreadsTakeEachCoreBeforeItsSibling) {
  const FixtureTree tree;
  const SystemFiles files(tree.root());
  const std::vector<int> cpus = {0, 1, 2, 3};
  // Nothing is known: the last first, as alone.
  EXPECT_EQ(ThreadCpus(cpus, json::object(), files), (std::vector<int>{3, 2, 1, 0}));
  EXPECT_EQ(ThreadCpus({}, json::object(), files), std::vector<int>{});
  for (const int cpu : cpus) WriteSiblings(tree, cpu, cpu < 2 ? "0-1\n" : "2,3\n");
  EXPECT_EQ(ThreadCpus(cpus, json::object(), files), (std::vector<int>{3, 1, 2, 0}));
  // A sibling that may not be used leaves its core to the other.
  EXPECT_EQ(ThreadCpus({0, 2, 3}, json::object(), files), (std::vector<int>{3, 0, 2}));
}

TEST(CpuAffinityTest, ThreadsTakeFastCoresFirstAndBeginWithTheDefault) {
  const FixtureTree tree;
  const SystemFiles files(tree.root());
  for (const int cpu : {0, 1}) WriteSiblings(tree, cpu, "0-1\n");
  const json environment = json::parse(R"({"topology": {"core_kinds": [
      {"name": "atom", "cpus": [2, 3]}, {"name": "core", "cpus": [0, 1]}]}})");
  for (const std::vector<int>& allowed :
       {std::vector<int>{0, 1, 2, 3}, {0, 2, 3}, {2, 3}, {0, 1}}) {
    EXPECT_EQ(ThreadCpus(allowed, environment, files).front(), DefaultCpu(allowed, environment));
  }
  EXPECT_EQ(ThreadCpus({0, 1, 2, 3}, environment, files), (std::vector<int>{1, 3, 2, 0}));
}

TEST(CpuAffinityTest, ThreadsStayWithinTheQuota) {
  const FixtureTree tree;
  const SystemFiles files(tree.root());
  const auto count = [&](const json& quota) {
    return ThreadCpus({0, 1, 2, 3}, {{"cgroup_cpu_quota", quota}}, files).size();
  };
  EXPECT_EQ(count(nullptr), 4u);
  EXPECT_EQ(count(0.5), 1u);
  EXPECT_EQ(count(1.9), 1u);
  EXPECT_EQ(count(2), 2u);
  EXPECT_EQ(count(64.0), 4u);
}

TEST(CoreClockTest, IsPlausibleAndMeasuredOnce) {
  const Fact<CoreClock> clock = MeasureCoreClock();
  if (clock.known()) {
    // No core that this runs on is slower or faster; a wrong unit or count of additions is far out.
    EXPECT_GT(clock.value().cycles_per_ns, 0.2);
    EXPECT_LT(clock.value().cycles_per_ns, 8);
    EXPECT_GE(clock.value().relative_error, 0);
    EXPECT_LE(clock.value().relative_error, 0.02);
  } else {
    EXPECT_FALSE(clock.reason().empty());
  }
  EXPECT_EQ(CoreCyclesPerNanosecond(), CoreCyclesPerNanosecond());
}

}  // namespace
}  // namespace filterbench
