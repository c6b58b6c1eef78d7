// Every state of every check, from recorded /proc and /sys files where the fact comes from files.
// Case F8: what is missing, empty or garbled is unknown, and never good news.

#include "harness/machine/doctor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/machine/activity.h"
#include "harness/machine/environment.h"
#include "harness/machine/fixture_tree.h"
#include "harness/machine/provenance.h"

namespace filterbench {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr int kCpus = 4;
constexpr int kMeasured = 3;

// Busy and steal ticks per CPU, of 1000 in all.
std::string Stat(const std::vector<std::pair<int, int>>& busy_and_steal, int scale) {
  std::string cpus;
  int busy_sum = 0;
  int steal_sum = 0;
  for (size_t cpu = 0; cpu < busy_and_steal.size(); ++cpu) {
    const auto [busy, steal] = busy_and_steal[cpu];
    cpus += fmt::format("cpu{} {} 0 0 {} 0 0 0 {} 0 0\n", cpu, busy * scale,
                        (1000 - busy - steal) * scale, steal * scale);
    busy_sum += busy * scale;
    steal_sum += steal * scale;
  }
  return fmt::format("cpu  {} 0 0 {} 0 0 0 {} 0 0\n{}intr 5\n", busy_sum,
                     1000 * scale * static_cast<int>(busy_and_steal.size()) - busy_sum - steal_sum,
                     steal_sum, cpus);
}

constexpr char kCpuinfoTail[] =
    "vendor_id\t: AuthenticAMD\nmodel name\t: EPYC\nflags\t\t: fpu avx2";

void WriteCpuinfo(const FixtureTree& tree, std::string_view more_flags) {
  std::string text;
  for (int cpu = 0; cpu < kCpus; ++cpu) {
    text += fmt::format("processor\t: {}\n{} {}\n\n", cpu, kCpuinfoTail, more_flags);
  }
  tree.Write("/proc/cpuinfo", text);
}

// Bare metal on which every check passes: four cores of one thread, measured on CPU 3.
void WriteFitMachine(const FixtureTree& tree) {
  WriteCpuinfo(tree, "");
  for (const char* list : {"online", "possible", "present"}) {
    tree.Write(fmt::format("/sys/devices/system/cpu/{}", list), "0-3\n");
  }
  for (int cpu = 0; cpu < kCpus; ++cpu) {
    tree.WriteCpu(cpu, cpu, fmt::format("{:x}", 1 << cpu), "f", {});
    const std::string cpufreq = fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/", cpu);
    tree.Write(cpufreq + "scaling_driver", "acpi-cpufreq\n");
    tree.Write(cpufreq + "scaling_governor", "performance\n");
  }
  const std::string thermal = "/sys/devices/system/cpu/cpu3/thermal_throttle/";
  tree.Write(thermal + "core_throttle_count", "0\n");
  tree.Write(thermal + "package_throttle_count", "0\n");
  tree.Write("/sys/devices/system/cpu/cpufreq/boost", "0\n");
  tree.Write("/sys/devices/system/cpu/isolated", "2-3\n");
  tree.Write("/sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n");
  tree.Write("/sys/devices/system/cpu/vulnerabilities/gather_data_sampling", "Not affected\n");
  tree.Write("/sys/devices/system/node/online", "0\n");
  tree.Write("/sys/devices/system/node/node0/cpumap", "f\n");
  tree.Write("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
  tree.Write("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet \n");
  tree.Write("/sys/class/power_supply/AC/type", "Mains\n");
  tree.Write("/sys/class/power_supply/BAT0/type", "Battery\n");
  tree.Write("/sys/class/power_supply/BAT0/status", "Full\n");
  tree.Write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  tree.Write("/sys/kernel/mm/transparent_hugepage/defrag", "always defer [madvise] never\n");
  tree.Write("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
  tree.Write("/proc/meminfo",
             "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nSwapTotal: 1024 kB\n"
             "SwapFree: 1024 kB\nHugePages_Total: 4\nHugePages_Free: 4\nHugepagesize: 2048 kB\n");
  tree.Write("/proc/loadavg", "0.35 0.26 0.10 1/80 4508\n");
  tree.Write("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  tree.Write("/proc/sys/kernel/randomize_va_space", "2\n");
  tree.Write("/proc/self/personality", "00000000\n");
  tree.Write("/proc/self/status", "Cpus_allowed_list:\t0-3\n");
  tree.Write("/proc/self/cgroup", "0::/bench\n");
  tree.Write("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  tree.Write("/sys/fs/cgroup/bench/cpu.max", "max 100000\n");
  tree.Write("/sys/fs/cgroup/bench/cpu.stat",
             "usage_usec 5\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
  tree.Write("/sys/fs/cgroup/bench/memory.max", "max\n");
  tree.Write("/proc/stat", Stat({{500, 0}, {500, 0}, {500, 0}, {500, 0}}, 1));
  tree.Write("/proc/vmstat", "pgfault 7\npswpin 3\npswpout 4\n");
  tree.Write("/proc/self/stat", "42 (filterbench) R 1 1 1 0 -1 0 0 0 0 0 70 30 0 0 20 0 1 0 9\n");
}

struct Edit {
  std::string path;
  const char* content;  // nullptr: removed
};

void Apply(const FixtureTree& tree, const std::vector<Edit>& edits) {
  for (const Edit& edit : edits) {
    if (edit.content == nullptr) {
      tree.Remove(edit.path);
    } else {
      tree.Write(edit.path, edit.content);
    }
  }
}

const json& GoodProvenance() {
  static const json provenance = {{"build_type", "Release"}, {"flags", "-O3"}};
  return provenance;
}

// What cannot come from recorded files.
void PutMeasured(json& environment) {
  environment["clock"]["resolution_ns"] = 1;
  environment["clock"]["smallest_step_ns"] = 30;
  environment["activity"]["obtained_share"] = 0.999;
  environment["activity"]["core_clock_mhz_low"] = 2990.0;
  environment["activity"]["core_clock_mhz_high"] = 3000.0;
}

// The environment of a tree that changes by `meanwhile` while it is watched.
json Watch(const FixtureTree& tree, const std::vector<Edit>& meanwhile) {
  ActivityProbe probe(kMeasured, tree.root());
  probe.Begin();
  // CPU 3 was kept busy by the watch itself.
  tree.Write("/proc/stat", Stat({{505, 0}, {505, 0}, {505, 0}, {1000, 0}}, 2));
  Apply(tree, meanwhile);
  json environment = ReadEnvironment(tree.root());
  environment["activity"] = probe.End();
  PutMeasured(environment);
  return environment;
}

Finding Find(const std::vector<Finding>& findings, std::string_view check) {
  for (const Finding& finding : findings) {
    if (finding.check == check) return finding;
  }
  ADD_FAILURE() << "no finding of " << check;
  return {};
}

TEST(DoctorTest, AFitMachinePassesEveryCheck) {
  const FixtureTree tree;
  WriteFitMachine(tree);
  const std::vector<Finding> findings = Examine(Watch(tree, {}), GoodProvenance());
  EXPECT_EQ(findings.size(), 23u);
  for (const Finding& finding : findings) {
    EXPECT_EQ(FindingStateName(finding.state), "pass") << finding.check << ": " << finding.found;
    EXPECT_FALSE(finding.found.empty()) << finding.check;
    EXPECT_FALSE(finding.why.empty()) << finding.check;
    EXPECT_TRUE(finding.remedy.empty()) << finding.check;
    EXPECT_TRUE(finding.command.empty()) << finding.check;
  }
  EXPECT_FALSE(Unfit(findings));
}

struct StateCase {
  const char* name;
  const char* check;
  const char* state;
  const char* found;    // a part of it
  const char* command;  // a part of it; "" where there must be none
  std::vector<Edit> before;
  std::vector<Edit> meanwhile;
  // Facts that are measured or compiled in, by JSON pointer into {environment, provenance}.
  std::vector<std::pair<const char*, json>> facts;
};

void PrintTo(const StateCase& test, std::ostream* stream) { *stream << test.name; }

class DoctorStateTest : public testing::TestWithParam<StateCase> {};

TEST_P(DoctorStateTest, State) {
  const StateCase& test = GetParam();
  const FixtureTree tree;
  WriteFitMachine(tree);
  Apply(tree, test.before);
  json all = {{"environment", Watch(tree, test.meanwhile)}, {"provenance", GoodProvenance()}};
  for (const auto& [pointer, value] : test.facts) all[json::json_pointer(pointer)] = value;
  const std::vector<Finding> findings = Examine(all["environment"], all["provenance"]);
  const Finding finding = Find(findings, test.check);
  EXPECT_EQ(FindingStateName(finding.state), test.state) << finding.found;
  EXPECT_THAT(finding.found, HasSubstr(test.found));
  if (std::string_view(test.command).empty()) {
    EXPECT_EQ(finding.command, "");
  } else {
    EXPECT_THAT(finding.command, HasSubstr(test.command));
  }
  const bool passes = finding.state == FindingState::kPass;
  EXPECT_EQ(finding.remedy.empty(), passes);
  EXPECT_EQ(Unfit(findings), std::any_of(findings.begin(), findings.end(), [](const Finding& each) {
              return each.state == FindingState::kFail;
            }));
  if (finding.state == FindingState::kFail) EXPECT_TRUE(Unfit(findings));
}

const std::string kCpu = "/sys/devices/system/cpu/";
const std::string kGovernor3 = kCpu + "cpu3/cpufreq/scaling_governor";
const std::string kThp = "/sys/kernel/mm/transparent_hugepage/";
const std::string kClock = "/sys/devices/system/clocksource/clocksource0/";
const std::string kGroup = "/sys/fs/cgroup/bench/";
const std::string kGather = kCpu + "vulnerabilities/gather_data_sampling";
const Edit kGuest = {"/proc/cpuinfo",
                     "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t: fpu "
                     "hypervisor\n"};

// CPU 3 and its sibling in one core.
std::vector<Edit> Siblings(int sibling) {
  std::vector<Edit> edits;
  for (const int cpu : {sibling, kMeasured}) {
    const std::string topology = fmt::format("{}cpu{}/topology/", kCpu, cpu);
    const char* map = sibling == 0 ? "9" : "c";
    edits.push_back({topology + "core_id", "7\n"});
    edits.push_back({topology + "thread_siblings", map});
    edits.push_back({topology + "core_cpus", map});
  }
  return edits;
}

const char kBusySibling[] =
    "cpu  5 0 0 9 0 0 0 0 0 0\ncpu0 1000 0 0 1000 0 0 0 0\ncpu1 1000 0 0 1000 0 0 0 0\n"
    "cpu2 600 0 0 1400 0 0 0 0\ncpu3 1500 0 0 500 0 0 0 0\n";
const char kStolen[] =
    "cpu  5000 0 0 3000 0 0 0 1000 0 0\ncpu0 1000 0 0 1000 0 0 0 0\ncpu1 500 0 0 1500 0 0 0 0\n"
    "cpu2 500 0 0 1500 0 0 0 0\ncpu3 900 0 0 500 0 0 0 100\n";
const char kLittleStolen[] =
    "cpu  5000 0 0 3000 0 0 0 10 0 0\ncpu0 500 0 0 1500 0 0 0 0\ncpu1 500 0 0 1500 0 0 0 0\n"
    "cpu2 500 0 0 1500 0 0 0 0\ncpu3 900 0 0 500 0 0 0 10\n";

INSTANTIATE_TEST_SUITE_P(
    States, DoctorStateTest,
    testing::Values(
        StateCase{"GovernorOfOneCpu",
                  "governor",
                  "fail",
                  "performance,schedutil, driver acpi",
                  "echo performance | tee",
                  {{kGovernor3, "schedutil\n"}},
                  {},
                  {}},
        StateCase{"GovernorLowest",
                  "governor",
                  "fail",
                  "powersave",
                  "echo performance",
                  {{kGovernor3, "powersave\n"}},
                  {},
                  {}},
        StateCase{"GovernorOfTheCpuItself",
                  "governor",
                  "warn",
                  "powersave, driver intel_pstate",
                  "echo performance",
                  {},
                  {},
                  {{"/environment/frequency/governor", "powersave"},
                   {"/environment/frequency/driver", "intel_pstate"}}},
        StateCase{"GovernorUserspace",
                  "governor",
                  "warn",
                  "userspace",
                  "echo performance",
                  {{kGovernor3, "userspace\n"}},
                  {},
                  {}},
        StateCase{"GovernorGarbled",
                  "governor",
                  "unknown",
                  "'garbage' is no governor",
                  "echo performance",
                  {{kGovernor3, "garbage\n"}},
                  {},
                  {}},
        StateCase{"GovernorMissing",
                  "governor",
                  "unknown",
                  "No such file",
                  "modprobe",
                  {{kGovernor3, nullptr}},
                  {},
                  {}},
        StateCase{"GovernorInAGuest",
                  "governor",
                  "unknown",
                  "No such file",
                  "",
                  {kGuest, {kGovernor3, nullptr}},
                  {},
                  {}},
        StateCase{"BoostOn",
                  "boost",
                  "warn",
                  "on",
                  "echo 0 > /sys/devices/system/cpu/cpufreq/boost",
                  {{kCpu + "cpufreq/boost", "1\n"}},
                  {},
                  {}},
        StateCase{"BoostOfIntel",
                  "boost",
                  "warn",
                  "on",
                  "echo 1 > /sys/devices/system/cpu/intel",
                  {{kCpu + "intel_pstate/no_turbo", "0\n"}},
                  {},
                  {}},
        StateCase{"BoostOffOfIntel",
                  "boost",
                  "pass",
                  "off",
                  "",
                  {{kCpu + "intel_pstate/no_turbo", "1\n"}},
                  {},
                  {}},
        StateCase{"BoostGarbled",
                  "boost",
                  "unknown",
                  "boost holds 7",
                  "",
                  {{kCpu + "cpufreq/boost", "7\n"}},
                  {},
                  {}},
        StateCase{"SiblingIdle",
                  "smt",
                  "warn",
                  "CPU 3 shares its core with CPU 2, busy for 1",
                  "echo 0 > /sys/devices/system/cpu/cpu2/online",
                  Siblings(2),
                  {},
                  {}},
        StateCase{"SiblingBusy",
                  "smt",
                  "fail",
                  "CPU 2, busy for 10.0 %",
                  "echo 0 > /sys/devices/system/cpu/cpu2/online",
                  Siblings(2),
                  {{"/proc/stat", kBusySibling}},
                  {}},
        StateCase{"SiblingOfUnknownLoad",
                  "smt",
                  "warn",
                  "CPU 2, of unknown load",
                  "cpu2/online",
                  Siblings(2),
                  {{"/proc/stat", "cpu3 2000 0 0 3000 0 0 0 0\n"}},
                  {}},
        StateCase{"SiblingIsCpu0", "smt", "warn", "with CPU 0", "smt/control", Siblings(0), {}, {}},
        StateCase{
            "SiblingsHidden", "smt", "unknown", "a hypervisor may hide one", "", {kGuest}, {}, {}},
        StateCase{"ThpNever",
                  "transparent_huge_pages",
                  "fail",
                  "never",
                  "echo madvise > /sys/ker",
                  {{kThp + "enabled", "always madvise [never]\n"}},
                  {},
                  {}},
        StateCase{"ThpAlways",
                  "transparent_huge_pages",
                  "pass",
                  "always",
                  "",
                  {{kThp + "enabled", "[always] madvise never\n"}},
                  {},
                  {}},
        StateCase{"ThpDefrag",
                  "transparent_huge_pages",
                  "warn",
                  "madvise, defrag never",
                  "transparent_hugepage/defrag",
                  {{kThp + "defrag", "always [never]\n"}},
                  {},
                  {}},
        StateCase{"ThpGarbled",
                  "transparent_huge_pages",
                  "unknown",
                  "'banana' is no mode",
                  "enabled",
                  {{kThp + "enabled", "[banana]\n"}},
                  {},
                  {}},
        StateCase{
            "HugePagesNone",
            "huge_pages",
            "warn",
            "none reserved",
            "vm.nr_hugepages",
            {{"/proc/meminfo", "HugePages_Total: 0\nHugePages_Free: 0\nHugepagesize: 2048 kB\n"}},
            {},
            {}},
        StateCase{
            "HugePagesTaken",
            "huge_pages",
            "warn",
            "0 of 9 free, of 2048 KiB",
            "sysctl -w",
            {{"/proc/meminfo", "HugePages_Total: 9\nHugePages_Free: 0\nHugepagesize: 2048 kB\n"}},
            {},
            {}},
        StateCase{"AslrOff",
                  "aslr",
                  "warn",
                  "off (kernel.randomize_va_space = 0)",
                  "sysctl -w kernel.randomize_va_space=2",
                  {{"/proc/sys/kernel/randomize_va_space", "0\n"}},
                  {},
                  {}},
        StateCase{"AslrPartial",
                  "aslr",
                  "warn",
                  "not for the heap",
                  "sysctl",
                  {{"/proc/sys/kernel/randomize_va_space", "1\n"}},
                  {},
                  {}},
        StateCase{"AslrOffForTheProcess",
                  "aslr",
                  "warn",
                  "switched off for this process",
                  "",
                  {{"/proc/self/personality", "00040000\n"}},
                  {},
                  {}},
        StateCase{"LoadSome",
                  "load",
                  "warn",
                  "1.00 over the last minute, on 4 CPUs",
                  "top -b",
                  {{"/proc/loadavg", "1.00 0.26 0.10 1/80 4508\n"}},
                  {},
                  {}},
        StateCase{"LoadFull",
                  "load",
                  "fail",
                  "4.00",
                  "top -b",
                  {{"/proc/loadavg", "4.00 0.26 0.10 1/80 4508\n"}},
                  {},
                  {}},
        StateCase{"StealMuch",
                  "steal",
                  "fail",
                  "10.0 % while watched",
                  "",
                  {kGuest},
                  {{"/proc/stat", kStolen}},
                  {}},
        StateCase{"StealLittle",
                  "steal",
                  "warn",
                  "1.1 % while watched",
                  "",
                  {kGuest},
                  {{"/proc/stat", kLittleStolen}},
                  {}},
        StateCase{"StealSinceBoot",
                  "steal",
                  "warn",
                  "0.0 % while watched, 3.0 % since boot",
                  "",
                  {},
                  {},
                  {{"/environment/activity/steal_share", 0.0},
                   {"/environment/activity/steal_share_since_boot", 0.03}}},
        StateCase{"StealPerhapsNotReported",
                  "steal",
                  "unknown",
                  "may not report it",
                  "",
                  {kGuest},
                  {},
                  {}},
        StateCase{"QuotaBelowOne",
                  "cgroup_quota",
                  "fail",
                  "0.50 CPUs",
                  "systemd-run --scope",
                  {{kGroup + "cpu.max", "50000 100000\n"}},
                  {},
                  {}},
        StateCase{"QuotaAboveOne",
                  "cgroup_quota",
                  "warn",
                  "2.50 CPUs",
                  "systemd-run --scope",
                  {{kGroup + "cpu.max", "250000 100000\n"}},
                  {},
                  {}},
        StateCase{
            "QuotaOfV1",
            "cgroup_quota",
            "fail",
            "0.75 CPUs",
            "systemd-run",
            {{"/proc/self/cgroup", "4:cpu,cpuacct:/d\n"},
             {"/proc/self/mountinfo", "32 30 0:29 / /sys/fs/cgroup/cpu rw - cgroup c rw,cpu\n"},
             {"/sys/fs/cgroup/cpu/d/cpu.cfs_quota_us", "75000\n"},
             {"/sys/fs/cgroup/cpu/d/cpu.cfs_period_us", "100000\n"}},
            {},
            {}},
        StateCase{"QuotaHidden",
                  "cgroup_quota",
                  "unknown",
                  "outer groups are hidden",
                  "cgtop",
                  {{"/sys/fs/cgroup/cgroup.events", "populated 1\n"}},
                  {},
                  {}},
        StateCase{"ThrottledNow",
                  "cgroup_throttling",
                  "fail",
                  "2 periods while watched, 0 before",
                  "systemd-run",
                  {},
                  {{kGroup + "cpu.stat", "nr_throttled 2\nthrottled_usec 9\n"}},
                  {}},
        StateCase{"ThrottledBefore",
                  "cgroup_throttling",
                  "warn",
                  "0 periods while watched, 5 befo",
                  "systemd-run",
                  {{kGroup + "cpu.stat", "nr_throttled 5\nthrottled_usec 9\n"}},
                  {},
                  {}},
        StateCase{
            "ThrottledNowV1",
            "cgroup_throttling",
            "fail",
            "1 periods while watched, 3 before",
            "systemd-run",
            {{"/proc/self/cgroup", "4:cpu,cpuacct:/d\n"},
             {"/proc/self/mountinfo", "32 30 0:29 / /sys/fs/cgroup/cpu rw - cgroup c rw,cpu\n"},
             {"/sys/fs/cgroup/cpu/d/cpu.stat", "nr_throttled 3\nthrottled_time 1\n"}},
            {{"/sys/fs/cgroup/cpu/d/cpu.stat", "nr_throttled 4\nthrottled_time 2\n"}},
            {}},
        StateCase{"NoQuotaNoThrottling",
                  "cgroup_throttling",
                  "pass",
                  "there is no quota",
                  "",
                  {{kGroup + "cpu.max", nullptr}},
                  {},
                  {}},
        StateCase{"ThrottlingGarbled",
                  "cgroup_throttling",
                  "unknown",
                  "does not tell",
                  "",
                  {{kGroup + "cpu.max", "max 100000"},
                   {kGroup + "cpu.stat", "nr_throttled x\n"},
                   {"/sys/fs/cgroup/cgroup.events", "populated 1\n"}},
                  {},
                  {}},
        StateCase{"ClockHpet",
                  "clock_source",
                  "fail",
                  "hpet",
                  "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
                  {{kClock + "current_clocksource", "hpet\n"}},
                  {},
                  {}},
        StateCase{"ClockAcpi",
                  "clock_source",
                  "fail",
                  "acpi_pm",
                  "tsc=reliable",
                  {{kClock + "current_clocksource", "acpi_pm\n"},
                   {kClock + "available_clocksource", "acpi_pm\n"}},
                  {},
                  {}},
        StateCase{"ClockJiffies",
                  "clock_source",
                  "fail",
                  "jiffies",
                  "update-grub",
                  {{kClock + "current_clocksource", "jiffies\n"},
                   {kClock + "available_clocksource", nullptr}},
                  {},
                  {}},
        StateCase{"ClockOfKvm",
                  "clock_source",
                  "warn",
                  "kvm-clock",
                  "echo tsc",
                  {{kClock + "current_clocksource", "kvm-clock\n"}},
                  {},
                  {}},
        StateCase{"ClockGarbled",
                  "clock_source",
                  "unknown",
                  "'sundial' is no clock source",
                  "echo tsc",
                  {{kClock + "current_clocksource", "sundial\n"}},
                  {},
                  {}},
        StateCase{"TimerSlow",
                  "timer",
                  "warn",
                  "steps of 400 ns",
                  "cmdline",
                  {},
                  {},
                  {{"/environment/clock/smallest_step_ns", 400}}},
        StateCase{"TimerCoarse",
                  "timer",
                  "fail",
                  "resolution 4000000 ns",
                  "cmdline",
                  {},
                  {},
                  {{"/environment/clock/resolution_ns", 4000000}}},
        StateCase{"TimerStandsStill",
                  "timer",
                  "unknown",
                  "steps of 0 ns",
                  "",
                  {},
                  {},
                  {{"/environment/clock/smallest_step_ns", 0}}},
        StateCase{"MemoryScarce",
                  "memory",
                  "warn",
                  "1024 of 16384 MiB available",
                  "ps -eo rss",
                  {{"/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 1048576 kB\n"}},
                  {},
                  {}},
        StateCase{"MemoryATenth",
                  "memory",
                  "warn",
                  "3072 of 65536 MiB",
                  "ps -eo rss",
                  {{"/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 3145728 kB\n"}},
                  {},
                  {}},
        StateCase{"MemoryGone",
                  "memory",
                  "fail",
                  "100 of 16384 MiB available",
                  "ps -eo rss",
                  {{"/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 102400 kB\n"}},
                  {},
                  {}},
        StateCase{"MemoryLimited",
                  "memory",
                  "fail",
                  "cgroup limit 256 MiB",
                  "ps -eo rss",
                  {{kGroup + "memory.max", "268435456\n"}},
                  {},
                  {}},
        StateCase{"MemoryLimitGarbled",
                  "memory",
                  "unknown",
                  "memory.max holds 'much'",
                  "cgtop",
                  {{kGroup + "memory.max", "much\n"}},
                  {},
                  {}},
        StateCase{"SwapNone",
                  "swap",
                  "pass",
                  "none",
                  "",
                  {{"/proc/meminfo", "SwapTotal: 0 kB\nSwapFree: 0 kB\n"}},
                  {},
                  {}},
        StateCase{"SwapUsed",
                  "swap",
                  "warn",
                  "24 of 1024 KiB used",
                  "swapoff -a",
                  {{"/proc/meminfo", "SwapTotal: 1024 kB\nSwapFree: 1000 kB\n"}},
                  {},
                  {}},
        StateCase{"SwapMoving",
                  "swap",
                  "fail",
                  "6 pages moved",
                  "swapoff -a",
                  {},
                  {{"/proc/vmstat", "pswpin 8\npswpout 5\n"}},
                  {}},
        StateCase{"SwapImpossible",
                  "swap",
                  "unknown",
                  "-1 of",
                  "",
                  {{"/proc/meminfo", "SwapTotal: 1024 kB\nSwapFree: 1025 kB\n"}},
                  {},
                  {}},
        StateCase{"BuildForADebugger",
                  "build",
                  "fail",
                  "build type Debug",
                  "cmake --preset release",
                  {},
                  {},
                  {{"/provenance/build_type", "Debug"}}},
        StateCase{"BuildWithACheckingLibrary",
                  "build",
                  "warn",
                  "_GLIBCXX_ASSERTIONS",
                  "cmake",
                  {},
                  {},
                  {{"/provenance/flags", "-O3 -D_GLIBCXX_ASSERTIONS"}}},
        StateCase{"BuildFlagsUnknown",
                  "build",
                  "unknown",
                  "null without a reason",
                  "cmake",
                  {},
                  {},
                  {{"/provenance/flags", nullptr}}},
        StateCase{"BuildSanitized",
                  "build",
                  "fail",
                  "-fsanitize=address",
                  "cmake",
                  {},
                  {},
                  {{"/provenance/flags", "-O2 -fsanitize=address,undefined"}}},
        StateCase{"BuildForCoverage",
                  "build",
                  "fail",
                  "--coverage",
                  "cmake",
                  {},
                  {},
                  {{"/provenance/flags", "-O2 --coverage"}}},
        StateCase{"BuildUnoptimised",
                  "build",
                  "fail",
                  "not optimised",
                  "cmake",
                  {},
                  {},
                  {{"/provenance/flags", "-g"}}},
        StateCase{"BuildLastLevelCounts",
                  "build",
                  "fail",
                  "not optimised",
                  "cmake",
                  {},
                  {},
                  {{"/provenance/flags", "-O3 -O0"}}},
        StateCase{"BuildForSize",
                  "build",
                  "warn",
                  "-Os",
                  "cmake",
                  {},
                  {},
                  {{"/provenance/flags", "-Os -DNDEBUG"}}},
        StateCase{"BuildWithSymbols",
                  "build",
                  "pass",
                  "RelWithDebInfo",
                  "",
                  {},
                  {},
                  {{"/provenance/build_type", "RelWithDebInfo"},
                   {"/provenance/flags", "-O2 -g -DNDEBUG"}}},
        StateCase{"BuildTypeUnknown",
                  "build",
                  "unknown",
                  "null without a reason",
                  "cmake",
                  {},
                  {},
                  {{"/provenance/build_type", nullptr}}},
        StateCase{"Guest", "hypervisor", "warn", "a guest of", "", {kGuest}, {}, {}},
        StateCase{"HypervisorUnknown",
                  "hypervisor",
                  "unknown",
                  "",
                  "systemd-detect-virt",
                  {{"/proc/cpuinfo", nullptr}},
                  {},
                  {}},
        StateCase{"GathersSlowed",
                  "mitigations",
                  "warn",
                  "gather_data_sampling: Mitigation: Micro",
                  "gather_data_sampling=off",
                  {{kGather, "Mitigation: Microcode\n"}},
                  {},
                  {}},
        StateCase{"GathersSlowedByTheHost",
                  "mitigations",
                  "warn",
                  "Mitigation: Microcode",
                  "",
                  {kGuest, {kGather, "Mitigation: Microcode\n"}},
                  {},
                  {}},
        StateCase{"GathersDependOnTheHost",
                  "mitigations",
                  "unknown",
                  "Dependent on hypervisor",
                  "",
                  {kGuest, {kGather, "Unknown: Dependent on hypervisor status\n"}},
                  {},
                  {}},
        StateCase{"GathersOfAnOldKernel",
                  "mitigations",
                  "unknown",
                  "does not tell",
                  "linux-image",
                  {kGuest, {kGather, nullptr}},
                  {},
                  {}},
        StateCase{"GathersOfAnOldKernelOnAmd",
                  "mitigations",
                  "pass",
                  "1 of 1",
                  "",
                  {{kGather, nullptr}},
                  {},
                  {}},
        StateCase{"DriftSome",
                  "frequency_drift",
                  "warn",
                  "3.0 %",
                  "",
                  {},
                  {},
                  {{"/environment/activity/core_clock_mhz_low", 3000.0},
                   {"/environment/activity/core_clock_mhz_high", 3090.0}}},
        StateCase{"DriftMuch",
                  "frequency_drift",
                  "fail",
                  "core clock 2000 to 3000 MHz",
                  "",
                  {},
                  {},
                  {{"/environment/activity/core_clock_mhz_low", 2000.0}}},
        StateCase{"DriftBackwards",
                  "frequency_drift",
                  "unknown",
                  "no range",
                  "",
                  {},
                  {},
                  {{"/environment/activity/core_clock_mhz_low", 4000.0}}},
        StateCase{"CpuShared",
                  "measured_cpu",
                  "warn",
                  "others take 3.0 % of CPU 3",
                  "top -b",
                  {},
                  {},
                  {{"/environment/activity/obtained_share", 0.97}}},
        StateCase{"CpuLost",
                  "measured_cpu",
                  "fail",
                  "others take 50.0 % of CPU 3",
                  "top -b",
                  {},
                  {},
                  {{"/environment/activity/obtained_share", 0.5}}},
        StateCase{"CpuUnknown",
                  "measured_cpu",
                  "unknown",
                  "activity/cpu is recorded as \"x\"",
                  "",
                  {},
                  {},
                  {{"/environment/activity/cpu", "x"}}},
        StateCase{"OthersBusy",
                  "other_cpus",
                  "fail",
                  "36.7 % busy",
                  "top -b",
                  {},
                  {{"/proc/stat", kBusySibling}},
                  {}},
        StateCase{"OthersSomewhatBusy",
                  "other_cpus",
                  "warn",
                  "16.7 % busy",
                  "top -b",
                  {},
                  {{"/proc/stat", kStolen}},
                  {}},
        StateCase{"OthersIncomplete",
                  "other_cpus",
                  "unknown",
                  "1 of 3 other CPUs",
                  "",
                  {},
                  {{"/proc/stat", "cpu0 500 0 0 5000 0 0 0 0\ncpu3 500 0 0 5000 0 0 0 0\n"}},
                  {}},
        StateCase{"NoOthers",
                  "other_cpus",
                  "pass",
                  "none",
                  "",
                  {},
                  {},
                  {{"/environment/topology/hardware_threads", 1},
                   {"/environment/activity/cpu_busy_shares", {{"3", 1.0}}}}},
        StateCase{"NotIsolated",
                  "isolation",
                  "warn",
                  "CPU 3 is not isolated",
                  "isolcpus=3 nohz_full=3",
                  {{kCpu + "isolated", "\n"}},
                  {},
                  {}},
        StateCase{"AnotherIsolated",
                  "isolation",
                  "warn",
                  "CPU 1 is",
                  "taskset -c 1",
                  {{kCpu + "isolated", "1\n"}},
                  {},
                  {}},
        StateCase{"OnBattery",
                  "power",
                  "fail",
                  "on battery",
                  "",
                  {{"/sys/class/power_supply/BAT0/status", "Discharging\n"}},
                  {},
                  {}},
        StateCase{"BatteryOfAMouse",
                  "power",
                  "pass",
                  "not on battery",
                  "",
                  {{"/sys/class/power_supply/BAT0/status", "Discharging\n"},
                   {"/sys/class/power_supply/BAT0/scope", "Device\n"}},
                  {},
                  {}},
        StateCase{"BatteryGarbled",
                  "power",
                  "unknown",
                  "status holds 'Unknown'",
                  "",
                  {{"/sys/class/power_supply/BAT0/status", "Unknown\n"}},
                  {},
                  {}},
        StateCase{"HotNow",
                  "thermal",
                  "fail",
                  "3 while watched, 0 before",
                  "",
                  {},
                  {{kCpu + "cpu3/thermal_throttle/package_throttle_count", "3\n"}},
                  {}},
        StateCase{"HotBefore",
                  "thermal",
                  "warn",
                  "0 while watched, 8 before",
                  "",
                  {{kCpu + "cpu3/thermal_throttle/core_throttle_count", "8\n"}},
                  {},
                  {}},
        StateCase{"ThermalUncounted",
                  "thermal",
                  "unknown",
                  "No such file",
                  "",
                  {{kCpu + "cpu3/thermal_throttle", nullptr}},
                  {},
                  {}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(DoctorTest, NothingThereIsAllUnknown) {
  const FixtureTree tree;
  ActivityProbe probe(std::nullopt, tree.root());
  probe.Begin();
  json environment = ReadEnvironment(tree.root());
  environment["activity"] = probe.End();
  environment["clock"].erase("smallest_step_ns");
  for (const auto& findings :
       {Examine(environment, json::object()), Examine(json::object(), json::object()),
        Examine(json(), json()), Examine(json::array({1}), json("x"))}) {
    for (const Finding& finding : findings) {
      EXPECT_EQ(FindingStateName(finding.state), "unknown") << finding.check << finding.found;
      EXPECT_FALSE(finding.found.empty()) << finding.check;
      EXPECT_FALSE(finding.remedy.empty()) << finding.check;
    }
    EXPECT_FALSE(Unfit(findings)) << "not knowing is no reason to refuse";
  }
}

// nullptr: the file is missing.
class DoctorDamageTest : public testing::TestWithParam<const char*> {};

TEST_P(DoctorDamageTest, MakesTheCheckUnknown) {
  for (const auto& [check, path] : std::vector<std::pair<std::string, std::string>>{
           {"governor", kGovernor3},
           {"boost", kCpu + "cpufreq/boost"},
           {"smt", kCpu + "online"},
           {"transparent_huge_pages", kThp + "enabled"},
           {"transparent_huge_pages", kThp + "defrag"},
           {"huge_pages", "/proc/meminfo"},
           {"aslr", "/proc/sys/kernel/randomize_va_space"},
           {"aslr", "/proc/self/personality"},
           {"load", "/proc/loadavg"},
           {"load", kCpu + "online"},
           {"steal", "/proc/stat"},
           {"cgroup_quota", "/proc/self/cgroup"},
           {"cgroup_quota", "/proc/self/mountinfo"},
           {"cgroup_throttling", "/proc/self/cgroup"},
           {"clock_source", kClock + "current_clocksource"},
           {"memory", "/proc/meminfo"},
           {"memory", "/proc/self/cgroup"},
           {"swap", "/proc/meminfo"},
           {"swap", "/proc/vmstat"},
           {"hypervisor", "/proc/cpuinfo"},
           {"other_cpus", "/proc/stat"},
           {"isolation", kCpu + "isolated"},
           {"power", "/sys/class/power_supply/BAT0/status"},
           {"thermal", kCpu + "cpu3/thermal_throttle/core_throttle_count"},
           {"thermal", kCpu + "cpu3/thermal_throttle/package_throttle_count"}}) {
    // The kernel writes an empty list of CPUs so; it is known then that none is isolated.
    const bool is_empty_list =
        check == "isolation" && GetParam() != nullptr && GetParam() == std::string_view("\n");
    const FixtureTree tree;
    WriteFitMachine(tree);
    const json environment = Watch(tree, {{path, GetParam()}});
    const Finding finding = Find(Examine(environment, GoodProvenance()), check);
    EXPECT_EQ(FindingStateName(finding.state), is_empty_list ? "warn" : "unknown")
        << check << " with damaged " << path << ": " << finding.found;
    EXPECT_FALSE(finding.remedy.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Damages, DoctorDamageTest,
                         testing::Values(nullptr, "", "\n", "garbage\n", "-7\n", "nan nan nan\n",
                                         "99999999999999999999 kB\n"));

// Whatever happens to one file of a machine that is bad throughout, nothing begins to pass.
TEST(DoctorTest, NoDamageIsGoodNews) {
  const FixtureTree tree;
  WriteFitMachine(tree);
  Apply(tree,
        {{kGovernor3, "ondemand\n"},
         {kCpu + "cpufreq/boost", "1\n"},
         {kThp + "enabled", "always madvise [never]\n"},
         {"/proc/sys/kernel/randomize_va_space", "0\n"},
         {"/proc/loadavg", "9.00 9.00 9.00 1/80 4508\n"},
         {kGroup + "cpu.max", "50000 100000\n"},
         {kGroup + "cpu.stat", "nr_throttled 5\nthrottled_usec 9\n"},
         {kGroup + "memory.max", "268435456\n"},
         {kClock + "current_clocksource", "hpet\n"},
         {"/proc/meminfo",
          "MemTotal: 16777216 kB\nMemAvailable: 10240 kB\nSwapTotal: 1024 kB\nSwapFree: 7 kB\n"
          "HugePages_Total: 0\nHugePages_Free: 0\nHugepagesize: 2048 kB\n"},
         {kGather, "Mitigation: Microcode\n"},
         {kCpu + "isolated", "\n"},
         {"/sys/class/power_supply/BAT0/status", "Discharging\n"},
         {kCpu + "cpu3/thermal_throttle/core_throttle_count", "8\n"}});
  WriteCpuinfo(tree, "hypervisor");
  Apply(tree, Siblings(2));
  std::set<std::string> bad;
  const std::vector<Edit> meanwhile = {{"/proc/stat", kStolen}};
  const std::string stat = tree.Content("/proc/stat");
  for (const Finding& finding : Examine(Watch(tree, meanwhile), GoodProvenance())) {
    if (finding.state != FindingState::kPass) bad.insert(finding.check);
  }
  EXPECT_EQ(bad.size(), 19u);  // all but the four that are not read from files
  for (const std::string& file : tree.Files()) {
    // hwloc guesses where these are damaged one by one (environment_test.cc). Without a limit file
    // a group has no limit, and without a battery there is none: absence is a statement there.
    if (file.find("/topology/") != std::string::npos || file.find("cpumap") != std::string::npos) {
      continue;
    }
    const std::string content = tree.Content(file);
    for (const char* damage : {"", "garbage\n", "-7\n"}) {
      tree.Write("/proc/stat", stat);
      std::vector<Edit> edits = meanwhile;
      edits.push_back({file, damage});
      for (const Finding& finding : Examine(Watch(tree, edits), GoodProvenance())) {
        if (bad.count(finding.check) != 0) {
          EXPECT_NE(finding.state, FindingState::kPass)
              << finding.check << " with " << file << " = '" << damage << "': " << finding.found;
        }
      }
      tree.Write(file, content);
    }
  }
}

TEST(DoctorTest, TheReportIsReadable) {
  const FixtureTree tree;
  WriteFitMachine(tree);
  Apply(tree, {{kGovernor3, "ondemand\n"}, {kCpu + "isolated", "\n"}});
  for (const auto& findings :
       {Examine(Watch(tree, {}), GoodProvenance()), Examine(json::object(), json::object())}) {
    const std::string text = FindingsToText(findings);
    std::string_view rest = text;
    std::string_view last;
    while (!rest.empty()) {
      last = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(last.size() + 1, rest.size()));
      EXPECT_LE(last.size(), 100u) << last;
      EXPECT_FALSE(last.ends_with(' ')) << last;
    }
    EXPECT_EQ(last, findings[0].state == FindingState::kFail
                        ? "1 fail, 1 warn, 0 unknown, 21 pass: unfit to be measured on"
                        : "0 fail, 0 warn, 23 unknown, 0 pass: no check fails");
  }
}

TEST(DoctorTest, Json) {
  const FixtureTree tree;
  WriteFitMachine(tree);
  Apply(tree, {{kGovernor3, "ondemand\n"}});
  const json list = FindingsToJson(Examine(Watch(tree, {}), GoodProvenance()));
  ASSERT_EQ(list.size(), 23u);
  EXPECT_EQ(list[0]["check"], "governor");
  EXPECT_EQ(list[0]["state"], "fail");
  EXPECT_TRUE(list[0]["command"].is_string());
  EXPECT_EQ(list[1]["state"], "pass");
  EXPECT_TRUE(list[1]["remedy"].is_null());
  EXPECT_TRUE(list[1]["command"].is_null());
}

TEST(DoctorTest, ThisMachine) {
  json environment = ReadEnvironment();
  environment["activity"] = ObserveActivity(std::nullopt, 0.01);
  EXPECT_EQ(Examine(environment, ReadProvenance()).size(), 23u);
}

}  // namespace
}  // namespace filterbench
