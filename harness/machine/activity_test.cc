#include "harness/machine/activity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/machine/cpu_affinity.h"
#include "harness/machine/fixture_tree.h"

namespace filterbench {
namespace {

using nlohmann::json;

constexpr char kStatBefore[] =
    "cpu  200 0 0 600 100 0 0 100 0 0\ncpu0 100 0 0 900 0 0 0 0 0 0\n"
    "cpu1 10 20 30 40 50 60 70 80 9 9\ncpu2 1 2 3\nintr 1\n";
// CPU 1 has had 75 ticks: 60 of user, nice, system and interrupts, 5 idle, 10 stolen.
constexpr char kStatAfter[] =
    "cpu  300 0 0 700 100 0 0 110 0 0\ncpu0 100 0 0 1000 0 0 0 0 0 0\n"
    "cpu1 20 30 40 43 52 75 85 90 9 9\ncpu2 1 2 3\nintr 1\n";

std::string ProcessStat(int id, const std::string& name, int user, int system) {
  return fmt::format("{} ({}) S 1 1 1 0 -1 0 0 0 0 0 {} {} 0 0 20 0 1 0 9 0 0\n", id, name, user,
                     system);
}

void WriteBefore(const FixtureTree& tree) {
  tree.Write("/proc/cpuinfo", "processor: 0\nflags\t: fpu hypervisor\n");
  tree.Write("/proc/stat", kStatBefore);
  tree.Write("/proc/vmstat", "pgfault 7\npswpin 3\npswpout 4\n");
  tree.Write("/proc/self/stat", ProcessStat(42, "filterbench", 0, 0));
  tree.Write("/proc/42/stat", ProcessStat(42, "filterbench", 0, 0));
  tree.Write("/proc/7/stat", ProcessStat(7, "a) S (b", 100, 50));
  tree.Write("/proc/8/stat", ProcessStat(8, "idle", 100, 50));
  tree.Write("/proc/9/stat", ProcessStat(9, "ends", 100, 50));
  tree.Write("/proc/11/stat", ProcessStat(11, "takes the id of another", 900, 0));
}

json Watch(const FixtureTree& tree, const std::vector<std::string>& missing_after = {}) {
  ActivityProbe probe(1, tree.root());
  probe.Begin();
  tree.Write("/proc/stat", kStatAfter);
  tree.Write("/proc/vmstat", "pgfault 9\npswpin 5\npswpout 4\n");
  tree.Write("/proc/42/stat", ProcessStat(42, "filterbench", 500, 0));
  tree.Write("/proc/7/stat", ProcessStat(7, "a) S (b", 120, 60));
  tree.Write("/proc/10/stat", ProcessStat(10, "new", 4, 1));
  tree.Write("/proc/11/stat", ProcessStat(11, "takes the id of another", 2, 0));
  tree.Remove("/proc/9");
  for (const std::string& path : missing_after) tree.Remove(path);
  return probe.End();
}

TEST(ActivityTest, SharesOfCpus) {
  const FixtureTree tree;
  WriteBefore(tree);
  const json activity = Watch(tree);
  EXPECT_EQ(activity["cpu"], 1);
  EXPECT_EQ(activity["cpu_busy_shares"], (json{{"0", 0.0}, {"1", 70.0 / 75}}));
  EXPECT_EQ(activity["steal_share"], 10.0 / 75);
  EXPECT_EQ(activity["steal_share_since_boot"], 0.1);
  EXPECT_EQ(activity["swapped_pages"], 2);
}

// Without itself, without names, and over the time that really went by.
TEST(ActivityTest, LargestProcesses) {
  const FixtureTree tree;
  WriteBefore(tree);
  const json activity = Watch(tree);
  const double ticks_of_a_cpu =
      activity["seconds"].get<double>() * static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_EQ(activity["largest_process_shares"],
            json::array({30 / ticks_of_a_cpu, 5 / ticks_of_a_cpu, 2 / ticks_of_a_cpu}));
  EXPECT_EQ(activity.dump().find("idle"), std::string::npos);

  EXPECT_TRUE(Watch(tree, {"/proc/self/stat"})["largest_process_shares"].is_null());
}

TEST(ActivityTest, AGuestWithoutAnyStealMayNotReportIt) {
  const FixtureTree tree;
  WriteBefore(tree);
  ActivityProbe probe(0, tree.root());
  tree.Write("/proc/stat", "cpu  1 0 0 6 0 0 0 0\ncpu0 1 0 0 6 0 0 0 0\n");
  probe.Begin();
  tree.Write("/proc/stat", "cpu  2 0 0 7 0 0 0 0\ncpu0 2 0 0 7 0 0 0 0\n");
  json activity = probe.End();
  EXPECT_TRUE(activity["steal_share"].is_null());
  EXPECT_TRUE(activity["steal_share_since_boot"].is_null());
  EXPECT_EQ(activity["cpu_busy_shares"]["0"], 0.5);

  tree.Write("/proc/cpuinfo", "processor: 0\nflags\t: fpu\n");
  ActivityProbe on_metal(0, tree.root());
  on_metal.Begin();
  tree.Write("/proc/stat", "cpu  3 0 0 8 0 0 0 0\ncpu0 3 0 0 8 0 0 0 0\n");
  activity = on_metal.End();
  EXPECT_EQ(activity["steal_share"], 0);
  EXPECT_EQ(activity["steal_share_since_boot"], 0);
}

TEST(ActivityTest, CountersThatStandStillOrFallAreUnknown) {
  const FixtureTree tree;
  WriteBefore(tree);
  ActivityProbe probe(1, tree.root());
  probe.Begin();
  EXPECT_TRUE(probe.End()["cpu_busy_shares"].is_null());
  tree.Write("/proc/stat", kStatAfter);
  tree.Write("/proc/vmstat", "pswpin 1\npswpout 1\n");
  probe.Begin();
  tree.Write("/proc/stat", kStatBefore);
  tree.Write("/proc/vmstat", "pswpin 0\npswpout 1\n");
  const json activity = probe.End();
  EXPECT_TRUE(activity["steal_share"].is_null());
  EXPECT_EQ(activity["swapped_pages_reason"], "the counter fell from 2 to 1");
}

TEST(ActivityTest, EveryNullIsExplained) {
  const FixtureTree empty;
  for (const std::filesystem::path& root :
       std::vector<std::filesystem::path>{empty.root(), std::filesystem::path("/")}) {
    for (const std::optional<int> cpu : {std::optional<int>(), std::optional<int>(0)}) {
      ActivityProbe probe(cpu, root);
      probe.Begin();
      const json activity = probe.End();
      for (const char* field :
           {"seconds", "cpu", "cpu_busy_shares", "steal_share", "steal_share_since_boot",
            "largest_process_shares", "throttled_periods", "throttled_periods_before",
            "thermal_throttles", "thermal_throttles_before", "swapped_pages"}) {
        ASSERT_TRUE(activity.contains(field)) << field;
        EXPECT_EQ(activity[field].is_null(), activity.contains(std::string(field) + "_reason"))
            << field;
      }
    }
  }
}

TEST(ActivityTest, ThisMachine) {
  const std::vector<int> allowed = AllowedCpus();
  ASSERT_FALSE(allowed.empty());
  json activity = ObserveActivity(allowed.back(), 0.05);
  EXPECT_GT(activity["obtained_share"], 0);
  EXPECT_LE(activity["obtained_share"], 1);
  EXPECT_GE(activity["seconds"], 0.05);
  EXPECT_EQ(activity["cpu"], allowed.back());
  EXPECT_EQ(AllowedCpus(), allowed) << "the calling thread keeps its CPUs";

  activity = ObserveActivity(16383, 0.001);
  for (const char* field :
       {"obtained_share", "steal_share", "core_clock_mhz_low", "core_clock_mhz_high"}) {
    EXPECT_TRUE(activity[field].is_null()) << field;
    EXPECT_TRUE(activity[std::string(field) + "_reason"].is_string()) << field;
  }
}

}  // namespace
}  // namespace filterbench
