// Case F8: machine facts that are missing, empty or malformed stay unknown, and never become good
// news. Cases F7 (address randomisation) and F13 (huge pages) in so far as their state is recorded.

#include "harness/machine/environment.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <clocale>
#include <functional>
#include <locale>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "harness/machine/cgroup.h"
#include "harness/machine/cpu_affinity.h"
#include "harness/machine/cpu_identity.h"
#include "harness/machine/fixture_tree.h"

namespace filterbench {
namespace {

using nlohmann::json;

std::string CpuinfoBlock(int cpu, std::string_view vendor, int family, int model,
                         std::string_view name, int stepping, std::string_view microcode,
                         std::string_view flags) {
  return fmt::format(
      "processor\t: {}\nvendor_id\t: {}\ncpu family\t: {}\nmodel\t\t: {}\nmodel name\t: {}\n"
      "stepping\t: {}\nmicrocode\t: {}\ncpu MHz\t\t: 2445.406\nflags\t\t: {}\n\n",
      cpu, vendor, family, model, name, stepping, microcode, flags);
}

// What all fixtures share.
void WriteCommon(const FixtureTree& tree, int cpus) {
  tree.Write("/proc/meminfo",
             "MemTotal:       24683656 kB\nMemFree:        1 kB\nMemAvailable:   24284052 kB\n"
             "HugePages_Total:       3\nHugePages_Free:        1\nHugepagesize:       2048 kB\n");
  tree.Write("/proc/loadavg", "0.35 0.26 0.10 1/80 4508\n");
  tree.Write("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  tree.Write("/proc/sys/kernel/randomize_va_space", "2\n");
  tree.Write("/proc/self/personality", "00040000\n");
  tree.Write("/proc/self/status",
             fmt::format("Name:\tx\nCpus_allowed:\t7\nCpus_allowed_list:\t0-{}\n", cpus - 1));
  tree.Write("/proc/self/cgroup", "0::/user.slice/bench.scope\n");
  tree.Write("/proc/self/mountinfo",
             "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
  tree.Write("/sys/fs/cgroup/cgroup.procs", "1\n");
  tree.Write("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  tree.Write("/sys/fs/cgroup/user.slice/memory.max", "1073741824\n");
  tree.Write("/sys/fs/cgroup/user.slice/bench.scope/cpu.max", "max 100000\n");
  tree.Write("/sys/fs/cgroup/user.slice/bench.scope/memory.max", "max\n");
  tree.Write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  tree.Write("/sys/kernel/mm/transparent_hugepage/defrag", "always defer [never]\n");
  tree.Write("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
  tree.Write("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
  tree.Write("/sys/devices/system/node/online", "0\n");
  tree.Write("/sys/devices/system/node/node0/cpumap", "f\n");
  tree.Write("/sys/devices/system/cpu/isolated", "\n");
  tree.Write("/sys/devices/system/cpu/smt/active", "1\n");
  tree.Write("/sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n");
  tree.Write("/sys/devices/system/cpu/vulnerabilities/spectre_v2", "Mitigation: Retpolines\n");
  for (const char* list : {"online", "possible", "present"}) {
    tree.Write(fmt::format("/sys/devices/system/cpu/{}", list), fmt::format("0-{}\n", cpus - 1));
  }
}

// Two cores of two threads each on bare metal.
void WriteAmd(const FixtureTree& tree) {
  WriteCommon(tree, 4);
  std::string cpuinfo;
  for (int cpu = 0; cpu < 4; ++cpu) {
    cpuinfo += CpuinfoBlock(cpu, "AuthenticAMD", 25, 1, "AMD EPYC 7B13 64-Core Processor", 1,
                            "0xa0011d1", "fpu sse4_2 avx avx2 constant_tsc");
    const std::string core_map = cpu % 2 == 0 ? "5" : "a";
    tree.WriteCpu(cpu, cpu % 2, core_map, "f",
                  {{1, "Data", "32K", core_map},
                   {1, "Instruction", "32K", core_map},
                   {2, "Unified", "512K", core_map},
                   {3, "Unified", "32768K", "f"}});
    const std::string cpufreq = fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/", cpu);
    tree.Write(cpufreq + "scaling_driver", "acpi-cpufreq\n");
    tree.Write(cpufreq + "scaling_governor", "performance\n");
    tree.Write(cpufreq + "scaling_cur_freq", "2450123\n");
  }
  tree.Write("/proc/cpuinfo", cpuinfo);
  tree.Write("/sys/devices/system/cpu/cpufreq/boost", "0\n");
}

// CPUs 0 and 1 are the threads of a fast core, 2 and 3 are slow cores that share their L2.
void WriteIntelHybrid(const FixtureTree& tree) {
  WriteCommon(tree, 4);
  std::string cpuinfo;
  for (int cpu = 0; cpu < 4; ++cpu) {
    cpuinfo += CpuinfoBlock(cpu, "GenuineIntel", 6, 154, "12th Gen Intel(R) Core(TM) i7-1260P", 3,
                            cpu < 2 ? "0x433" : "0x434", "fpu avx2 hypervisor hybrid_cpu");
  }
  tree.Write("/proc/cpuinfo", cpuinfo);
  for (const int cpu : {0, 1}) {
    tree.WriteCpu(
        cpu, 0, "3", "f",
        {{1, "Data", "48K", "3"}, {2, "Unified", "1280K", "3"}, {3, "Unified", "18432K", "f"}});
  }
  for (const int cpu : {2, 3}) {
    const std::string map = cpu == 2 ? "4" : "8";
    tree.WriteCpu(
        cpu, cpu + 2, map, "f",
        {{1, "Data", "32K", map}, {2, "Unified", "2048K", "c"}, {3, "Unified", "18432K", "f"}});
  }
  tree.Write("/sys/devices/cpu_core/cpus", "0-1\n");
  tree.Write("/sys/devices/cpu_atom/cpus", "2-3\n");
  tree.Write("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
}

void WriteArm(const FixtureTree& tree) {
  WriteCommon(tree, 2);
  std::string cpuinfo;
  for (int cpu = 0; cpu < 2; ++cpu) {
    cpuinfo += fmt::format(
        "processor\t: {}\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd aes pmull crc32 atomics sve\n"
        "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: 0xd40\n"
        "CPU revision\t: 1\n\n",
        cpu);
    tree.WriteCpu(cpu, cpu, cpu == 0 ? "1" : "2", "3", {});
  }
  tree.Write("/proc/cpuinfo", cpuinfo);
}

// Every null has a reason beside it and no reason stands beside a value.
void ExpectNullsExplained(const json& value, const std::string& path) {
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      ExpectNullsExplained(value[i], fmt::format("{}[{}]", path, i));
    }
  }
  if (!value.is_object()) return;
  for (const auto& [key, field] : value.items()) {
    const std::string here = path + "." + key;
    if (field.is_null()) {
      ASSERT_TRUE(value.contains(key + "_reason")) << here;
      EXPECT_FALSE(value[key + "_reason"].get<std::string>().empty()) << here;
    }
    if (key.ends_with("_reason")) {
      const std::string explained = key.substr(0, key.size() - 7);
      ASSERT_TRUE(value.contains(explained)) << here;
      EXPECT_TRUE(value[explained].is_null()) << here;
    }
    ExpectNullsExplained(field, here);
  }
}

// The environment without what is asked from the machine that runs the test.
json ReadFixture(const FixtureTree& tree) {
  json environment = ReadEnvironment(tree.root());
  ExpectNullsExplained(environment, "");
  environment["clock"].erase("smallest_step_ns");
  environment["pages"].erase("page_bytes");
  return environment;
}

TEST(EnvironmentTest, AmdServer) {
  const FixtureTree tree;
  WriteAmd(tree);
  const json environment = ReadFixture(tree);

  const json& cpu = environment["cpu"];
  EXPECT_EQ(cpu["architecture"], "x86_64");
  EXPECT_EQ(cpu["vendor"], "AuthenticAMD");
  EXPECT_EQ(cpu["brand"], "AMD EPYC 7B13 64-Core Processor");
  EXPECT_EQ(cpu["family"], 25);
  EXPECT_EQ(cpu["model"], 1);
  EXPECT_EQ(cpu["stepping"], 1);
  EXPECT_EQ(cpu["microarchitecture"], "zen3");
  EXPECT_EQ(cpu["microcode"], "0xa0011d1");
  EXPECT_EQ(cpu["flags"], json({"sse4_2", "avx", "avx2", "constant_tsc"}));

  const json& topology = environment["topology"];
  EXPECT_EQ(topology["packages"], 1);
  EXPECT_EQ(topology["cores"], 2);
  EXPECT_EQ(topology["hardware_threads"], 4);
  EXPECT_EQ(topology["threads_per_core"], 2);
  EXPECT_EQ(topology["numa_nodes"], 1);
  EXPECT_EQ(topology["smt_active"], true);

  const json expected_caches = json::parse(R"([
    {"level": 1, "type": "data", "size_bytes": 32768, "line_bytes": 64, "shared_by": 2,
     "instances": 2},
    {"level": 1, "type": "instruction", "size_bytes": 32768, "line_bytes": 64, "shared_by": 2,
     "instances": 2},
    {"level": 2, "type": "unified", "size_bytes": 524288, "line_bytes": 64, "shared_by": 2,
     "instances": 2},
    {"level": 3, "type": "unified", "size_bytes": 33554432, "line_bytes": 64, "shared_by": 4,
     "instances": 1}])");
  EXPECT_EQ(environment["caches"], expected_caches);

  EXPECT_EQ(environment["memory"]["total_bytes"], int64_t{24683656} * 1024);
  EXPECT_EQ(environment["memory"]["available_bytes"], int64_t{24284052} * 1024);
  EXPECT_EQ(environment["memory"]["cgroup_limit_bytes"], 1 << 30);
  EXPECT_EQ(environment["kernel"], "6.1.0-18-amd64");
  EXPECT_EQ(environment["hypervisor"], "none");
  EXPECT_EQ(environment["mitigations"],
            json({{"meltdown", "Not affected"}, {"spectre_v2", "Mitigation: Retpolines"}}));

  const json& frequency = environment["frequency"];
  EXPECT_EQ(frequency["driver"], "acpi-cpufreq");
  EXPECT_EQ(frequency["governor"], "performance");
  EXPECT_EQ(frequency["boost"], false);
  EXPECT_EQ(frequency["mhz"], 2450.123);

  EXPECT_EQ(environment["pages"]["transparent_huge_pages"], "madvise");
  EXPECT_EQ(environment["pages"]["transparent_huge_pages_defrag"], "never");
  EXPECT_EQ(environment["pages"]["transparent_huge_page_bytes"], 2097152);
  EXPECT_EQ(environment["pages"]["huge_page_bytes"], 2097152);
  EXPECT_EQ(environment["pages"]["huge_pages_total"], 3);
  EXPECT_EQ(environment["pages"]["huge_pages_free"], 1);
  EXPECT_EQ(environment["aslr"], 2);
  EXPECT_EQ(environment["aslr_disabled_for_process"], true);
  EXPECT_EQ(environment["allowed_cpus"], json({0, 1, 2, 3}));
  EXPECT_EQ(environment["isolated_cpus"], json::array());
  EXPECT_EQ(environment["cgroup_cpu_quota"], 1.5);
  EXPECT_EQ(environment["load_average"], json({0.35, 0.26, 0.10}));
  EXPECT_EQ(environment["clock"]["source"], "tsc");

  EXPECT_TRUE(MachineSlug(environment).starts_with("amd-epyc-7b13-zen3-2c-"));
}

TEST(EnvironmentTest, IntelHybrid) {
  const FixtureTree tree;
  WriteIntelHybrid(tree);
  const json environment = ReadFixture(tree);

  EXPECT_EQ(environment["cpu"]["microarchitecture"], "alder-lake");
  EXPECT_EQ(environment["cpu"]["microcode"], "0x433,0x434");
  EXPECT_EQ(environment["hypervisor"], "unidentified");
  EXPECT_EQ(environment["topology"]["cores"], 3);
  EXPECT_EQ(environment["topology"]["core_kinds"],
            json::parse(R"([{"name": "atom", "cpus": [2, 3]}, {"name": "core", "cpus": [0, 1]}])"));
  EXPECT_EQ(environment["frequency"]["boost"], true);
  EXPECT_TRUE(environment["frequency"]["governor"].is_null());
  ASSERT_EQ(environment["caches"].size(), 5u);
  EXPECT_EQ(environment["caches"][0]["size_bytes"], 32 << 10);
  EXPECT_EQ(environment["caches"][0]["instances"], 2);
  EXPECT_EQ(environment["caches"][1]["size_bytes"], 48 << 10);
  EXPECT_EQ(environment["caches"][1]["shared_by"], 2);
  EXPECT_TRUE(MachineSlug(environment).starts_with("intel-core-i7-1260p-alder-lake-3c-"));

  EXPECT_EQ(DefaultCpu({0, 1, 2, 3}, environment), 1);
  EXPECT_EQ(DefaultCpu({0, 2, 3}, environment), 0);
  EXPECT_EQ(DefaultCpu({2, 3}, environment), 3);
}

TEST(EnvironmentTest, Arm) {
  const FixtureTree tree;
  WriteArm(tree);
  const json environment = ReadFixture(tree);
  const json& cpu = environment["cpu"];
  EXPECT_EQ(cpu["architecture"], "aarch64");
  EXPECT_EQ(cpu["vendor"], "0x41");
  EXPECT_EQ(cpu["part"], "0xd40");
  EXPECT_EQ(cpu["flags"], json({"aes", "asimd", "crc32", "pmull", "atomics", "sve"}));
  EXPECT_TRUE(cpu["family"].is_null());
  EXPECT_TRUE(environment["hypervisor"].is_null()) << "nothing tells, so it is not 'none'";
  EXPECT_TRUE(environment["caches"].is_null());
  EXPECT_TRUE(MachineSlug(environment).starts_with("aarch64-0x41-0xd40-2c-"));
}

TEST(EnvironmentTest, NothingThere) {
  const FixtureTree tree;
  const json environment = ReadFixture(tree);
  std::function<void(const json&, const std::string&)> expect_nulls = [&](const json& value,
                                                                          const std::string& path) {
    for (const auto& [key, field] : value.items()) {
      // These describe the process and not the files.
      if (key == "clock" || key.ends_with("_reason")) continue;
      if (field.is_object()) {
        expect_nulls(field, path + "." + key);
      } else {
        EXPECT_TRUE(field.is_null()) << path << "." << key << " = " << field;
      }
    }
  };
  expect_nulls(environment, "");
  EXPECT_TRUE(std::regex_match(MachineSlug(environment), std::regex("unknown-cpu-[0-9a-f]{8}")));
}

// The leaves of `value` that are known, by path.
void KnownLeaves(const json& value, const std::string& path, std::map<std::string, json>& leaves) {
  if (value.is_structured() && !value.empty()) {
    for (const auto& [key, field] : value.items()) {
      if (!key.ends_with("_reason")) KnownLeaves(field, path + "/" + key, leaves);
    }
  } else if (!value.is_null()) {
    leaves[path] = value;
  }
}

// Facts that the kernel words freely: any other word is a possible value.
bool IsFreeText(const std::string& path) {
  return path == "/kernel" || path == "/clock/source" || path == "/frequency/driver" ||
         path == "/frequency/governor" || path.starts_with("/mitigations/");
}

// nullptr: the file is missing.
class DamagedFileTest : public testing::TestWithParam<const char*> {};

// Whatever happens to one file, a fact keeps its value or becomes unknown: no damage invents facts.
TEST_P(DamagedFileTest, FactsStayOrBecomeUnknown) {
  const bool has_words = GetParam() != nullptr && !TrimBlanks(GetParam()).empty();
  for (const auto& write : {WriteAmd, WriteIntelHybrid}) {
    const FixtureTree tree;
    write(tree);
    std::map<std::string, json> intact;
    KnownLeaves(ReadFixture(tree), "", intact);
    for (const std::string& file : tree.Files()) {
      // hwloc guesses a place for a CPU whose topology or cache files are damaged one by one;
      // what must hold for these is tested below. CPUs 0 and 2 stand for all.
      const auto below = [&file](const char* part) { return file.find(part) != std::string::npos; };
      if (below("/topology/") || below("/cache/") || below("/cpumap") || below("/cpu1/") ||
          below("/cpu3/")) {
        continue;
      }
      const std::string content = tree.Content(file);
      if (GetParam() == nullptr) {
        tree.Remove(file);
      } else {
        tree.Write(file, GetParam());
      }
      std::map<std::string, json> damaged;
      KnownLeaves(ReadFixture(tree), "", damaged);
      for (const auto& [path, value] : damaged) {
        if (has_words && IsFreeText(path)) continue;
        // Two files can tell it; which one did is recorded.
        if (path == "/frequency/mhz" || path == "/frequency/mhz_source") continue;
        const auto found = intact.find(path);
        ASSERT_NE(found, intact.end()) << file << " damaged: " << path << " = " << value;
        EXPECT_EQ(value, found->second) << file << " damaged: " << path;
      }
      tree.Write(file, content);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Damages, DamagedFileTest,
                         testing::Values(nullptr, "", "\n", "garbage\n", "-7\n", "nan nan nan\n",
                                         "99999999999999999999 kB\n"));

TEST(EnvironmentTest, AnUnreadableListOfCpusMakesTheTopologyUnknown) {
  const FixtureTree tree;
  WriteAmd(tree);
  tree.Write("/sys/devices/system/cpu/online", "");
  const json environment = ReadFixture(tree);
  EXPECT_TRUE(environment["topology"].is_null());
  EXPECT_TRUE(environment["caches"].is_null());
  EXPECT_EQ(environment["frequency"]["governor"], "performance")
      << "the CPUs' own directories tell which there are";
}

TEST(EnvironmentTest, EmptyCacheFiles) {
  const FixtureTree tree;
  WriteAmd(tree);
  for (const std::string& file : tree.Files()) {
    if (file.ends_with("/size")) tree.Write(file, "");
  }
  for (const json& cache : ReadFixture(tree)["caches"]) {
    EXPECT_TRUE(cache["size_bytes"].is_null()) << cache;
  }
  for (int cpu = 0; cpu < 4; ++cpu) {
    tree.Remove(fmt::format("/sys/devices/system/cpu/cpu{}/cache", cpu));
  }
  EXPECT_TRUE(ReadFixture(tree)["caches"].is_null());
}

TEST(EnvironmentTest, OneCpuWithoutGovernorMakesItUnknown) {
  const FixtureTree tree;
  WriteAmd(tree);
  const std::string path = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor";
  tree.Write(path, "powersave\n");
  EXPECT_EQ(ReadFixture(tree)["frequency"]["governor"], "performance,powersave");
  tree.Write(path, "");
  EXPECT_EQ(ReadFixture(tree)["frequency"]["governor_reason"], path + " is empty");
}

TEST(EnvironmentTest, TransparentHugePages) {
  const FixtureTree tree;
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
  const auto read = [&] { return ReadFixture(tree)["pages"]["transparent_huge_pages"]; };
  EXPECT_TRUE(read().is_null());
  for (const auto& [text, expected] :
       std::vector<std::pair<std::string, json>>{{"[always] madvise never\n", "always"},
                                                 {"always [madvise] never\n", "madvise"},
                                                 {"always madvise [never]\n", "never"},
                                                 {"always madvise never\n", nullptr},
                                                 {"[]\n", nullptr},
                                                 {"]always[\n", nullptr},
                                                 {"", nullptr}}) {
    tree.Write(path, text);
    EXPECT_EQ(read(), expected) << text;
  }
}

TEST(EnvironmentTest, MicrocodeHiddenByTheHypervisor) {
  const FixtureTree tree;
  tree.Write("/proc/cpuinfo",
             CpuinfoBlock(0, "GenuineIntel", 6, 143, "Xeon", 8, "0xffffffff", "hypervisor"));
  EXPECT_TRUE(ReadFixture(tree)["cpu"]["microcode"].is_null());
}

// Writing and reading numbers, under a locale whose decimal sign is a comma.
TEST(EnvironmentTest, SameInEveryLocale) {
  class GroupingPunctuation : public std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const FixtureTree tree;
  WriteAmd(tree);
  const json before = ReadFixture(tree);
  const std::string text_before = before.dump();
  const std::locale old = std::locale::global(std::locale(std::locale(), new GroupingPunctuation));
  const std::string old_c = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // where installed
  const json after = ReadFixture(tree);
  EXPECT_EQ(after.dump(), text_before);
  EXPECT_EQ(MachineSlug(after), MachineSlug(before));
  std::setlocale(LC_ALL, old_c.c_str());
  std::locale::global(old);
}

TEST(EnvironmentTest, ThisMachine) {
  const json environment = ReadEnvironment();
  ExpectNullsExplained(environment, "");
  EXPECT_EQ(environment["allowed_cpus"].get<std::vector<int>>(), AllowedCpus());
  for (const char* field :
       {"cpu", "topology", "caches", "memory", "kernel", "hypervisor", "mitigations", "frequency",
        "pages", "aslr", "allowed_cpus", "cgroup_cpu_quota", "load_average", "clock"}) {
    EXPECT_TRUE(environment.contains(field)) << field;
  }
  EXPECT_GE(environment["pages"]["page_bytes"], 4096);
#if defined(__x86_64__)
  // CPUID tells these also where /proc and /sys do not.
  for (const char* field : {"vendor", "family", "model", "stepping"}) {
    EXPECT_FALSE(environment["cpu"][field].is_null()) << field;
  }
#endif
  const std::string slug = MachineSlug(environment);
  EXPECT_TRUE(std::regex_match(slug, std::regex("[a-z0-9][a-z0-9-]*-[0-9a-f]{8}"))) << slug;
  EXPECT_EQ(slug, MachineSlug(ReadEnvironment()));
}

struct CgroupCase {
  const char* name;
  std::vector<std::pair<const char*, const char*>> files;
  std::optional<double> quota;
  const char* reason;  // its beginning
};

void PrintTo(const CgroupCase& test, std::ostream* stream) { *stream << test.name; }

class CgroupCpuQuotaTest : public testing::TestWithParam<CgroupCase> {};

TEST_P(CgroupCpuQuotaTest, Quota) {
  const FixtureTree tree;
  for (const auto& [path, content] : GetParam().files) tree.Write(path, content);
  const Fact<double> quota = CgroupCpuQuota(SystemFiles(tree.root()));
  if (GetParam().quota) {
    ASSERT_TRUE(quota.known()) << quota.reason();
    EXPECT_EQ(quota.value(), *GetParam().quota);
  } else {
    ASSERT_FALSE(quota.known()) << quota.value();
    EXPECT_TRUE(quota.reason().starts_with(GetParam().reason)) << quota.reason();
  }
}

const char kV2Mount[] = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";
const char kV1Mount[] =
    "30 23 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "32 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";

INSTANTIATE_TEST_SUITE_P(
    Hierarchies, CgroupCpuQuotaTest,
    testing::Values(
        CgroupCase{"V2TightestOfAllLevels",
                   {{"/proc/self/cgroup", "0::/a/b\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/a/cpu.max", "50000 100000\n"},
                    {"/sys/fs/cgroup/a/b/cpu.max", "200000 100000\n"}},
                   0.5,
                   ""},
        CgroupCase{"V2Unlimited",
                   {{"/proc/self/cgroup", "0::/a\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/a/cpu.max", "max 100000\n"}},
                   std::nullopt,
                   "unlimited"},
        CgroupCase{"V2TopOfANamespace",
                   {{"/proc/self/cgroup", "0::/\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/cgroup.events", "populated 1\n"},
                    {"/sys/fs/cgroup/cpu.max", "max 100000\n"}},
                   std::nullopt,
                   "unlimited in the groups that are visible; outer"},
        CgroupCase{"V2NamespaceWithLimit",
                   {{"/proc/self/cgroup", "0::/\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/cgroup.events", "populated 1\n"},
                    {"/sys/fs/cgroup/cpu.max", "250000 100000\n"}},
                   2.5,
                   ""},
        CgroupCase{"V2NamespaceWithoutController",
                   {{"/proc/self/cgroup", "0::/\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/cgroup.events", "populated 1\n"}},
                   std::nullopt,
                   "the controller 'cpu' sets no limit files"},
        CgroupCase{"V2OutsideOfTheNamespace",
                   {{"/proc/self/cgroup", "0::/../other\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/cgroup.procs", "1\n"}},
                   std::nullopt,
                   "the group /../other of this process is not visible"},
        CgroupCase{"V2EmptyLevelBelowALimit",
                   {{"/proc/self/cgroup", "0::/a/b\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/a/cpu.max", "50000 100000\n"},
                    {"/sys/fs/cgroup/a/b/cpu.max", ""}},
                   std::nullopt,
                   "/sys/fs/cgroup/a/b/cpu.max is empty"},
        CgroupCase{"V2Malformed",
                   {{"/proc/self/cgroup", "0::/a\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/a/cpu.max", "50000 0\n"}},
                   std::nullopt,
                   "/sys/fs/cgroup/a/cpu.max holds '50000 0'"},
        CgroupCase{"V1Limit",
                   {{"/proc/self/cgroup", "4:cpu,cpuacct:/docker\n1:name=systemd:/x\n0::/y\n"},
                    {"/proc/self/mountinfo", kV1Mount},
                    {"/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "75000\n"},
                    {"/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "50000\n"},
                    {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"}},
                   1.5,
                   ""},
        CgroupCase{"V1Unlimited",
                   {{"/proc/self/cgroup", "4:cpu,cpuacct:/\n"},
                    {"/proc/self/mountinfo", kV1Mount},
                    {"/sys/fs/cgroup/cpu,cpuacct/release_agent", "\n"},
                    {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"}},
                   std::nullopt,
                   "unlimited"},
        CgroupCase{"V1ContainerSeesItsOwnGroupAsMount",
                   {{"/proc/self/cgroup", "4:cpu,cpuacct:/docker/1f\n"},
                    {"/proc/self/mountinfo",
                     "32 30 0:29 /docker/1f /sys/fs/cgroup/cpu\\040x ro - cgroup cgroup rw,cpu\n"},
                    {"/sys/fs/cgroup/cpu x/cpu.cfs_quota_us", "300000\n"},
                    {"/sys/fs/cgroup/cpu x/cpu.cfs_period_us", "100000\n"}},
                   3.0,
                   ""},
        CgroupCase{"V1NotMountedIsNotDecidedByV2",
                   {{"/proc/self/cgroup", "4:cpu,cpuacct:/docker\n0::/\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/cgroup.procs", "1\n"}},
                   std::nullopt,
                   "no cgroup hierarchy with the controller 'cpu' is mounted here"},
        CgroupCase{"V1SiblingWithTheSamePrefix",
                   {{"/proc/self/cgroup", "4:cpu:/docker2\n"},
                    {"/proc/self/mountinfo",
                     "32 30 0:29 /docker /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"},
                    {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"}},
                   std::nullopt,
                   "the group /docker2 of this process is not visible"},
        CgroupCase{"NoFiles", {}, std::nullopt, "cannot open /proc/self/cgroup"},
        CgroupCase{"EmptyFiles",
                   {{"/proc/self/cgroup", ""}, {"/proc/self/mountinfo", ""}},
                   std::nullopt,
                   "/proc/self/cgroup is empty"}),
    [](const testing::TestParamInfo<CgroupCase>& test) { return test.param.name; });

TEST(CgroupTest, MemoryLimit) {
  const FixtureTree tree;
  const SystemFiles files(tree.root());
  tree.Write("/proc/self/cgroup", "7:memory:/a\n");
  tree.Write("/proc/self/mountinfo",
             "32 30 0:29 / /sys/fs/cgroup/memory rw - cgroup m rw,memory\n");
  tree.Write("/sys/fs/cgroup/memory/release_agent", "\n");
  tree.Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(CgroupMemoryLimitBytes(files).reason(), "unlimited");
  tree.Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
  EXPECT_EQ(CgroupMemoryLimitBytes(files).value(), 536870912);
}

TEST(MachineSlugTest, DependsOnHardwareOnly) {
  const FixtureTree tree;
  WriteAmd(tree);
  const json environment = ReadFixture(tree);
  const std::string slug = MachineSlug(environment);

  const auto changed = [&](const char* pointer, const json& value) {
    json other = environment;
    EXPECT_NE(other.at(json::json_pointer(pointer)), value) << pointer;
    other[json::json_pointer(pointer)] = value;
    return MachineSlug(other);
  };
  EXPECT_EQ(slug, changed("/kernel", "7.0"));
  EXPECT_EQ(slug, changed("/cpu/microcode", "0x1"));
  EXPECT_EQ(slug, changed("/memory/total_bytes", 1));
  EXPECT_EQ(slug, changed("/memory/available_bytes", 1));
  EXPECT_EQ(slug, changed("/load_average", json({9, 9, 9})));
  EXPECT_EQ(slug, changed("/frequency/governor", "powersave"));
  EXPECT_EQ(slug, changed("/frequency/mhz", 1));
  EXPECT_EQ(slug, changed("/allowed_cpus", json({0})));
  EXPECT_EQ(slug, changed("/mitigations", nullptr));
  EXPECT_EQ(slug, changed("/pages/transparent_huge_pages", "never"));

  EXPECT_NE(slug, changed("/cpu/brand", "AMD EPYC 7B13"));
  EXPECT_NE(slug, changed("/cpu/family", 26));
  EXPECT_NE(slug, changed("/cpu/model", 2));
  EXPECT_NE(slug, changed("/cpu/stepping", 2));
  EXPECT_NE(slug, changed("/topology/cores", 4));
  EXPECT_NE(slug, changed("/topology/hardware_threads", 2));
  EXPECT_NE(slug, changed("/caches/3/size_bytes", 1 << 20));
  EXPECT_NE(slug, changed("/hypervisor", "kvm"));

  // The name of a directory that later runs must find again.
  EXPECT_EQ(slug, "amd-epyc-7b13-zen3-2c-4460e2c2");
}

TEST(MachineSlugTest, Brands) {
  for (const auto& [brand, expected] : std::vector<std::pair<std::string, std::string>>{
           {"AMD EPYC", "amd-epyc"},
           {"AMD Ryzen 9 7950X 16-Core Processor", "amd-ryzen-9-7950x"},
           {"AMD Ryzen 7 PRO 6850U with Radeon Graphics", "amd-ryzen-7-pro-6850u"},
           {"Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "intel-xeon-platinum-8481c"},
           {"12th Gen Intel(R) Core(TM) i7-1260P", "intel-core-i7-1260p"},
           {"  ~ODD/../name~  ", "odd-name"},
           {"???", "unknown-cpu"},
           {"", "unknown-cpu"}}) {
    const std::string slug = MachineSlug({{"cpu", {{"brand", brand}}}});
    EXPECT_EQ(slug.substr(0, slug.size() - 9), expected) << brand;
  }
  EXPECT_LE(MachineSlug({{"cpu", {{"brand", std::string(500, 'x')}}}}).size(), 50u);
}

TEST(MicroarchitectureTest, Names) {
  EXPECT_EQ(MicroarchitectureName("AuthenticAMD", 0x17, 0x31, 0).value(), "zen2");
  EXPECT_EQ(MicroarchitectureName("AuthenticAMD", 0x17, 0x01, 2).value(), "zen1");
  EXPECT_EQ(MicroarchitectureName("AuthenticAMD", 0x19, 0x11, 1).value(), "zen4");
  EXPECT_EQ(MicroarchitectureName("AuthenticAMD", 0x1a, 0x02, 1).value(), "zen5");
  EXPECT_EQ(MicroarchitectureName("GenuineIntel", 6, 0x55, 4).value(), "skylake-server");
  EXPECT_EQ(MicroarchitectureName("GenuineIntel", 6, 0x55, 7).value(), "cascade-lake");
  EXPECT_EQ(MicroarchitectureName("GenuineIntel", 6, 0x8f, 8).value(), "sapphire-rapids");
  EXPECT_FALSE(MicroarchitectureName("GenuineIntel", 6, 0xff, 0).known());
  EXPECT_FALSE(MicroarchitectureName("AuthenticAMD", 6, 0x8f, 8).known());
}

}  // namespace
}  // namespace filterbench
