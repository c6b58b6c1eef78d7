// Case F8: machine facts that are missing, empty or malformed stay unknown, and never become good
// news. Cases F7 (address randomisation) and F13 (huge pages) in so far as their state is recorded.

#include "harness/machine/environment.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <clocale>
#include <functional>
#include <locale>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

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

// Compares what `expected` names; `actual` may hold more. A table instead of one assertion per
// field also keeps this file quick to compile.
void ExpectFacts(const json& actual, const json& expected, const std::string& path = "") {
  for (const auto& [key, value] : expected.items()) {
    const std::string here = path + "/" + key;
    ASSERT_TRUE(actual.contains(key)) << here;
    if (value.is_object()) {
      ExpectFacts(actual[key], value, here);
    } else {
      EXPECT_EQ(actual[key], value) << here;
    }
  }
}

bool HasSlugWithHash(const std::string& slug, const std::string& readable) {
  const std::string hash = slug.substr(std::min(slug.size(), readable.size()));
  return slug.starts_with(readable) && hash.size() == 9 && hash[0] == '-' &&
         hash.find_first_not_of("0123456789abcdef", 1) == std::string::npos;
}

TEST(EnvironmentTest, AmdServer) {
  const FixtureTree tree;
  WriteAmd(tree);
  const json environment = ReadFixture(tree);
  ExpectFacts(environment, json::parse(R"({
    "cpu": {"architecture": "x86_64", "vendor": "AuthenticAMD",
            "brand": "AMD EPYC 7B13 64-Core Processor", "family": 25, "model": 1, "stepping": 1,
            "microarchitecture": "zen3", "microcode": "0xa0011d1",
            "flags": ["sse4_2", "avx", "avx2", "constant_tsc"]},
    "topology": {"packages": 1, "cores": 2, "hardware_threads": 4, "threads_per_core": 2,
                 "numa_nodes": 1, "smt_active": true},
    "core_threads": [[0, 2], [1, 3]],
    "caches": [
      {"level": 1, "type": "data", "size_bytes": 32768, "line_bytes": 64, "shared_by": 2,
       "instances": 2},
      {"level": 1, "type": "instruction", "size_bytes": 32768, "line_bytes": 64, "shared_by": 2,
       "instances": 2},
      {"level": 2, "type": "unified", "size_bytes": 524288, "line_bytes": 64, "shared_by": 2,
       "instances": 2},
      {"level": 3, "type": "unified", "size_bytes": 33554432, "line_bytes": 64, "shared_by": 4,
       "instances": 1}],
    "memory": {"total_bytes": 25276063744, "available_bytes": 24866869248,
               "cgroup_limit_bytes": 1073741824},
    "kernel": "6.1.0-18-amd64",
    "hypervisor": "none",
    "mitigations": {"meltdown": "Not affected", "spectre_v2": "Mitigation: Retpolines"},
    "frequency": {"driver": "acpi-cpufreq", "governor": "performance", "boost": false,
                  "boost_source": "/sys/devices/system/cpu/cpufreq/boost", "mhz": 2450.123},
    "pages": {"transparent_huge_pages": "madvise", "transparent_huge_pages_defrag": "never",
              "transparent_huge_page_bytes": 2097152, "huge_page_bytes": 2097152,
              "huge_pages_total": 3, "huge_pages_free": 1},
    "aslr": 2,
    "aslr_disabled_for_process": true,
    "allowed_cpus": [0, 1, 2, 3],
    "isolated_cpus": [],
    "cgroup_cpu_quota": 1.5,
    "load_average": [0.35, 0.26, 0.10],
    "clock": {"source": "tsc"}})"));
  EXPECT_TRUE(HasSlugWithHash(MachineSlug(environment), "amd-epyc-7b13-zen3-2c"));
}

TEST(EnvironmentTest, IntelHybrid) {
  const FixtureTree tree;
  WriteIntelHybrid(tree);
  const json environment = ReadFixture(tree);
  ExpectFacts(environment, json::parse(R"({
    "cpu": {"microarchitecture": "alder-lake", "microcode": "0x433,0x434"},
    "hypervisor": "unidentified",
    "topology": {"cores": 3, "hardware_threads": 4, "threads_per_core": 2,
                 "core_kinds": [{"name": "atom", "cpus": [2, 3]},
                                {"name": "core", "cpus": [0, 1]}]},
    "caches": [
      {"level": 1, "type": "data", "size_bytes": 32768, "line_bytes": 64, "shared_by": 1,
       "instances": 2},
      {"level": 1, "type": "data", "size_bytes": 49152, "line_bytes": 64, "shared_by": 2,
       "instances": 1},
      {"level": 2, "type": "unified", "size_bytes": 1310720, "line_bytes": 64, "shared_by": 2,
       "instances": 1},
      {"level": 2, "type": "unified", "size_bytes": 2097152, "line_bytes": 64, "shared_by": 2,
       "instances": 1},
      {"level": 3, "type": "unified", "size_bytes": 18874368, "line_bytes": 64, "shared_by": 4,
       "instances": 1}],
    "frequency": {"boost": true, "governor": null}})"));
  EXPECT_TRUE(HasSlugWithHash(MachineSlug(environment), "intel-core-i7-1260p-alder-lake-3c"));

  EXPECT_EQ(DefaultCpu({0, 1, 2, 3}, environment), 1);
  EXPECT_EQ(DefaultCpu({0, 2, 3}, environment), 0);
  EXPECT_EQ(DefaultCpu({2, 3}, environment), 3);
}

// Nothing tells whether there is a hypervisor, so it is not "none".
TEST(EnvironmentTest, Arm) {
  const FixtureTree tree;
  WriteArm(tree);
  const json environment = ReadFixture(tree);
  ExpectFacts(environment, json::parse(R"({
    "cpu": {"architecture": "aarch64", "vendor": "0x41", "part": "0xd40", "family": null,
            "flags": ["aes", "asimd", "crc32", "pmull", "atomics", "sve"]},
    "hypervisor": null,
    "caches": null})"));
  EXPECT_TRUE(HasSlugWithHash(MachineSlug(environment), "aarch64-0x41-0xd40-2c"));
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
  EXPECT_TRUE(HasSlugWithHash(MachineSlug(environment), "unknown-cpu"));
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
  EXPECT_TRUE(environment["topology"]["cores"].is_null());
  EXPECT_TRUE(environment["topology"]["cores_reason"].is_string());
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
                                                 {"always] madvise never\n", nullptr},
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
  EXPECT_EQ(slug.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos)
      << slug;
  EXPECT_TRUE(HasSlugWithHash(slug, slug.substr(0, slug.size() - 9))) << slug;
  EXPECT_EQ(slug, MachineSlug(ReadEnvironment()));
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
