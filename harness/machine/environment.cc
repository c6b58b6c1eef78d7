#include "harness/machine/environment.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/machine/cgroup.h"
#include "harness/machine/core_clock.h"
#include "harness/machine/cpu_affinity.h"
#include "harness/machine/cpu_identity.h"
#include "harness/machine/fact.h"
#include "harness/machine/system_files.h"
#include "harness/machine/topology.h"

namespace filterbench {
namespace {

using nlohmann::json;

Fact<int64_t> ReadIntegerInRange(const SystemFiles& files, std::string_view path, int64_t smallest,
                                 int64_t largest) {
  const Fact<int64_t> value = files.ReadInteger(path);
  if (!value.known() || (smallest <= value.value() && value.value() <= largest)) return value;
  return Fact<int64_t>::Unknown(
      fmt::format("{} holds {}, outside of {} to {}", path, value.value(), smallest, largest));
}

json ReadMemory(const SystemFiles& files) {
  constexpr std::string_view kPath = "/proc/meminfo";
  const Fact<std::string> meminfo = files.Read(kPath);
  json memory;
  PutFact(memory, "total_bytes", FindKibibytesAsBytes(meminfo, "MemTotal", kPath));
  PutFact(memory, "available_bytes", FindKibibytesAsBytes(meminfo, "MemAvailable", kPath));
  PutFact(memory, "swap_total_bytes", FindKibibytesAsBytes(meminfo, "SwapTotal", kPath));
  PutFact(memory, "swap_free_bytes", FindKibibytesAsBytes(meminfo, "SwapFree", kPath));
  PutFact(memory, "cgroup_limit_bytes", CgroupMemoryLimitBytes(files));
  return memory;
}

// {"<vulnerability>": "<what the kernel does about it>", ...}
Fact<json> ReadMitigations(const SystemFiles& files) {
  const std::string directory = "/sys/devices/system/cpu/vulnerabilities";
  const Fact<std::vector<std::string>> names = files.List(directory);
  if (!names.known()) return Fact<json>::Unknown(names.reason());
  if (names.value().empty()) return Fact<json>::Unknown(directory + " is empty");
  json mitigations;
  for (const std::string& name : names.value()) {
    PutFact(mitigations, name, files.ReadText(directory + "/" + name));
  }
  return Fact<json>::Known(std::move(mitigations));
}

// The ids of the online CPUs; where the list is unreadable, of all that have a directory.
Fact<std::vector<int>> OnlineCpus(const SystemFiles& files) {
  Fact<std::vector<int>> online = files.ReadCpuList("/sys/devices/system/cpu/online");
  if (online.known() && !online.value().empty()) return online;
  const Fact<std::vector<std::string>> names = files.List("/sys/devices/system/cpu");
  if (!names.known()) return Fact<std::vector<int>>::Unknown(names.reason());
  std::vector<int> cpus;
  for (const std::string& name : names.value()) {
    if (!name.starts_with("cpu")) continue;
    if (const auto cpu = ParseInteger(name.substr(3))) cpus.push_back(static_cast<int>(*cpu));
  }
  if (cpus.empty()) return Fact<std::vector<int>>::Unknown("/sys/devices/system/cpu lists no CPU");
  return Fact<std::vector<int>>::Known(std::move(cpus));
}

// A text that every online CPU has in its cpufreq directory; several distinct ones are joined by
// commas. One CPU that does not tell makes the whole unknown.
Fact<std::string> ReadCpufreqOfAll(const SystemFiles& files, std::string_view name) {
  const Fact<std::vector<int>> cpus = OnlineCpus(files);
  if (!cpus.known()) return Fact<std::string>::Unknown(cpus.reason());
  std::vector<std::string> values;
  for (const int cpu : cpus.value()) {
    const Fact<std::string> value =
        files.ReadText(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/{}", cpu, name));
    if (!value.known()) return value;
    values.push_back(value.value());
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return Fact<std::string>::Known(fmt::format("{}", fmt::join(values, ",")));
}

void PutBoost(const SystemFiles& files, json& frequency) {
  const std::string no_turbo_path = "/sys/devices/system/cpu/intel_pstate/no_turbo";
  const bool is_intel_pstate = files.Exists(no_turbo_path);
  const std::string path =
      is_intel_pstate ? no_turbo_path : "/sys/devices/system/cpu/cpufreq/boost";
  const Fact<int64_t> flag = ReadIntegerInRange(files, path, 0, 1);
  if (!flag.known()) return PutUnknown(frequency, "boost", flag.reason());
  frequency["boost"] = is_intel_pstate ? flag.value() == 0 : flag.value() == 1;
  frequency["boost_source"] = path;
}

void PutMhz(const SystemFiles& files, json& frequency) {
  const Fact<std::vector<int>> cpus = OnlineCpus(files);
  const int cpu = cpus.known() ? cpus.value().front() : 0;
  const std::string path =
      fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", cpu);
  const Fact<int64_t> khz = files.ReadInteger(path);
  if (khz.known() && khz.value() > 0) {
    frequency["mhz"] = static_cast<double>(khz.value()) / 1000.0;
    frequency["mhz_source"] = path;
    return;
  }
  const Fact<std::string> cpuinfo = files.Read("/proc/cpuinfo");
  if (!cpuinfo.known()) return PutUnknown(frequency, "mhz", cpuinfo.reason());
  const auto text = FindColonValue(cpuinfo.value(), "cpu MHz");
  if (!text) return PutUnknown(frequency, "mhz", "/proc/cpuinfo has no 'cpu MHz'");
  const std::optional<double> mhz = ParseDecimal(*text);
  if (!mhz || *mhz <= 0) {
    return PutUnknown(frequency, "mhz", fmt::format("/proc/cpuinfo: 'cpu MHz' is '{:.40}'", *text));
  }
  frequency["mhz"] = *mhz;
  frequency["mhz_source"] = "/proc/cpuinfo";
}

json ReadFrequency(const SystemFiles& files) {
  json frequency;
  PutFact(frequency, "driver", ReadCpufreqOfAll(files, "scaling_driver"));
  PutFact(frequency, "governor", ReadCpufreqOfAll(files, "scaling_governor"));
  PutBoost(files, frequency);
  PutMhz(files, frequency);
  if (files.is_live()) {
    const Fact<CoreClock> clock = MeasureCoreClock();
    PutFact(frequency, "core_clock_mhz",
            clock.known() ? Fact<double>::Known(clock.value().cycles_per_ns * 1000.0)
                          : Fact<double>::Unknown(clock.reason()));
  } else {
    PutUnknown(frequency, "core_clock_mhz", "not measurable from recorded files");
  }
  return frequency;
}

// The word in brackets of a file such as "always [madvise] never".
Fact<std::string> ReadSelectedWord(const SystemFiles& files, std::string_view path) {
  const Fact<std::string> text = files.Read(path);
  if (!text.known()) return text;
  const size_t open = text.value().find('[');
  const size_t close = text.value().find(']', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos || close == open + 1) {
    return Fact<std::string>::Unknown(
        fmt::format("{} selects nothing: '{:.60}'", path, text.value()));
  }
  return Fact<std::string>::Known(text.value().substr(open + 1, close - open - 1));
}

Fact<int64_t> FindCount(const Fact<std::string>& text, std::string_view key,
                        std::string_view path) {
  if (!text.known()) return Fact<int64_t>::Unknown(text.reason());
  const auto value = FindColonValue(text.value(), key);
  if (!value) return Fact<int64_t>::Unknown(fmt::format("{} has no line {}", path, key));
  const std::optional<int64_t> count = ParseInteger(*value);
  if (!count || *count < 0) {
    return Fact<int64_t>::Unknown(
        fmt::format("{}: {} is '{:.40}' instead of a count", path, key, *value));
  }
  return Fact<int64_t>::Known(*count);
}

json ReadPages(const SystemFiles& files) {
  constexpr std::string_view kMeminfo = "/proc/meminfo";
  const std::string thp = "/sys/kernel/mm/transparent_hugepage/";
  const Fact<std::string> meminfo = files.Read(kMeminfo);
  json pages;
  pages["page_bytes"] = sysconf(_SC_PAGESIZE);
  PutFact(pages, "transparent_huge_pages", ReadSelectedWord(files, thp + "enabled"));
  PutFact(pages, "transparent_huge_pages_defrag", ReadSelectedWord(files, thp + "defrag"));
  PutFact(pages, "transparent_huge_page_bytes",
          ReadIntegerInRange(files, thp + "hpage_pmd_size", 1, int64_t{1} << 40));
  PutFact(pages, "huge_page_bytes", FindKibibytesAsBytes(meminfo, "Hugepagesize", kMeminfo));
  PutFact(pages, "huge_pages_total", FindCount(meminfo, "HugePages_Total", kMeminfo));
  PutFact(pages, "huge_pages_free", FindCount(meminfo, "HugePages_Free", kMeminfo));
  return pages;
}

// Whether this process asked the kernel for fixed addresses (ADDR_NO_RANDOMIZE of personality(2)).
Fact<bool> ReadAslrDisabledForProcess(const SystemFiles& files) {
  constexpr int64_t kAddrNoRandomize = 0x0040000;
  const Fact<std::string> text = files.Read("/proc/self/personality");
  if (!text.known()) return Fact<bool>::Unknown(text.reason());
  const std::optional<int64_t> flags = ParseInteger(text.value(), 16);
  if (!flags) {
    return Fact<bool>::Unknown(fmt::format("/proc/self/personality holds '{:.40}'", text.value()));
  }
  return Fact<bool>::Known((*flags & kAddrNoRandomize) != 0);
}

Fact<std::vector<int>> ReadAllowedCpus(const SystemFiles& files) {
  using Cpus = Fact<std::vector<int>>;
  if (files.is_live()) {
    std::vector<int> cpus = AllowedCpus();
    if (cpus.empty()) return Cpus::Unknown("sched_getaffinity fails");
    return Cpus::Known(std::move(cpus));
  }
  const Fact<std::string> status = files.Read("/proc/self/status");
  if (!status.known()) return Cpus::Unknown(status.reason());
  const auto text = FindColonValue(status.value(), "Cpus_allowed_list");
  if (!text) return Cpus::Unknown("/proc/self/status has no line Cpus_allowed_list");
  std::optional<std::vector<int>> cpus = ParseCpuList(*text);
  if (!cpus || cpus->empty()) {
    return Cpus::Unknown(fmt::format("/proc/self/status: Cpus_allowed_list is '{:.40}'", *text));
  }
  return Cpus::Known(*std::move(cpus));
}

Fact<std::array<double, 3>> ReadLoadAverage(const SystemFiles& files) {
  using Load = Fact<std::array<double, 3>>;
  const Fact<std::string> text = files.Read("/proc/loadavg");
  if (!text.known()) return Load::Unknown(text.reason());
  const std::vector<std::string_view> words = SplitAtBlanks(text.value());
  std::array<double, 3> load = {};
  for (size_t i = 0; i < load.size(); ++i) {
    const std::optional<double> value =
        i < words.size() ? ParseDecimal(words[i]) : std::optional<double>();
    if (!value || *value < 0) {
      return Load::Unknown(fmt::format("/proc/loadavg holds '{:.40}'", text.value()));
    }
    load[i] = *value;
  }
  return Load::Known(load);
}

// The smallest difference, above zero, of two successive readings: the step of the clock or the
// cost of a reading, whichever is larger.
Fact<int64_t> MeasureClockStepNs() {
  using Clock = std::chrono::steady_clock;
  std::optional<int64_t> smallest_ns;
  const Clock::time_point begin = Clock::now();
  Clock::time_point previous = begin;
  for (int reading = 0; reading < 10000; ++reading) {
    const Clock::time_point now = Clock::now();
    const int64_t step_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(now - previous).count();
    if (step_ns > 0) smallest_ns = std::min(step_ns, smallest_ns.value_or(step_ns));
    previous = now;
  }
  if (!smallest_ns) return Fact<int64_t>::Unknown("the clock stood still for 10000 readings");
  return Fact<int64_t>::Known(*smallest_ns);
}

// Whether a battery drives the machine. Batteries of mice and the like have the scope "Device"
// (Linux, Documentation/ABI/testing/sysfs-class-power).
Fact<bool> ReadOnBattery(const SystemFiles& files) {
  const std::string directory = "/sys/class/power_supply";
  const Fact<std::vector<std::string>> supplies = files.List(directory);
  if (!supplies.known()) return Fact<bool>::Unknown(supplies.reason());
  bool on_battery = false;
  for (const std::string& supply : supplies.value()) {
    const std::string path = fmt::format("{}/{}/", directory, supply);
    const Fact<std::string> type = files.ReadText(path + "type");
    if (!type.known()) return Fact<bool>::Unknown(type.reason());
    if (type.value() != "Battery") continue;
    if (files.Exists(path + "scope")) {
      const Fact<std::string> scope = files.ReadText(path + "scope");
      if (!scope.known()) return Fact<bool>::Unknown(scope.reason());
      if (scope.value() == "Device") continue;
    }
    const Fact<std::string> status = files.ReadText(path + "status");
    if (!status.known()) return Fact<bool>::Unknown(status.reason());
    const std::string& word = status.value();
    if (word != "Discharging" && word != "Charging" && word != "Full" && word != "Not charging") {
      return Fact<bool>::Unknown(fmt::format("{}status holds '{:.40}'", path, word));
    }
    on_battery |= word == "Discharging";
  }
  return Fact<bool>::Known(on_battery);
}

Fact<std::vector<std::string>> ReadWords(const SystemFiles& files, std::string_view path) {
  using Words = Fact<std::vector<std::string>>;
  const Fact<std::string> text = files.ReadText(path);
  if (!text.known()) return Words::Unknown(text.reason());
  const std::vector<std::string_view> words = SplitAtBlanks(text.value());
  return Words::Known(std::vector<std::string>(words.begin(), words.end()));
}

json ReadClock(const SystemFiles& files) {
  const std::string sources = "/sys/devices/system/clocksource/clocksource0/";
  json clock;
  PutFact(clock, "source", files.ReadText(sources + "current_clocksource"));
  PutFact(clock, "available_sources", ReadWords(files, sources + "available_clocksource"));
  timespec resolution = {};
  if (clock_getres(CLOCK_MONOTONIC, &resolution) == 0) {
    clock["resolution_ns"] = int64_t{resolution.tv_sec} * 1'000'000'000 + resolution.tv_nsec;
  } else {
    PutUnknown(clock, "resolution_ns", "clock_getres(CLOCK_MONOTONIC) fails");
  }
  PutFact(clock, "smallest_step_ns", MeasureClockStepNs());
  clock["steal_ticks_per_second"] = sysconf(_SC_CLK_TCK);
  return clock;
}

std::string LowerCaseSlug(std::string_view text) {
  std::string slug;
  for (const char c : text) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      slug.push_back(c);
    } else if (c >= 'A' && c <= 'Z') {
      slug.push_back(static_cast<char>(c - 'A' + 'a'));
    } else if (!slug.empty() && slug.back() != '-') {
      slug.push_back('-');
    }
  }
  while (slug.ends_with('-')) slug.pop_back();
  return slug;
}

// "12th Gen Intel(R) Core(TM) i7-1260P CPU @ 2.10GHz" -> "intel-core-i7-1260p"
std::string BrandSlug(std::string brand) {
  constexpr size_t kMaxLength = 40;
  for (const std::string_view mark : {"(R)", "(r)", "(TM)", "(tm)"}) {
    for (size_t at; (at = brand.find(mark)) != std::string::npos;) brand.erase(at, mark.size());
  }
  brand.resize(std::min({brand.find('@'), brand.find(" with "), brand.size()}));
  std::string kept;
  for (const std::string_view word : SplitAtBlanks(brand)) {
    const bool is_ordinal =
        std::isdigit(static_cast<unsigned char>(word[0])) != 0 && word.ends_with("th");
    const bool says_nothing = word == "CPU" || word == "Processor" || word == "Gen" || is_ordinal ||
                              word.ends_with("-Core");
    if (!says_nothing) kept.append(word).push_back(' ');
  }
  std::string slug = LowerCaseSlug(kept);
  slug.resize(std::min(slug.size(), kMaxLength));
  return LowerCaseSlug(slug);
}

json FieldOrNull(const json& object, const char* field) {
  return object.is_object() && object.contains(field) ? object[field] : json();
}

}  // namespace

json ReadEnvironment(const std::filesystem::path& root) {
  const SystemFiles files(root);
  json environment;
  environment["cpu"] = ReadCpuIdentity(files);
  PutTopology(files, environment);
  environment["memory"] = ReadMemory(files);
  PutFact(environment, "kernel", files.ReadText("/proc/sys/kernel/osrelease"));
  PutFact(environment, "hypervisor", HypervisorName(files));
  PutFact(environment, "mitigations", ReadMitigations(files));
  environment["frequency"] = ReadFrequency(files);
  environment["pages"] = ReadPages(files);
  PutFact(environment, "aslr",
          ReadIntegerInRange(files, "/proc/sys/kernel/randomize_va_space", 0, 2));
  PutFact(environment, "aslr_disabled_for_process", ReadAslrDisabledForProcess(files));
  PutFact(environment, "allowed_cpus", ReadAllowedCpus(files));
  PutFact(environment, "isolated_cpus", files.ReadCpuList("/sys/devices/system/cpu/isolated"));
  PutFact(environment, "cgroup_cpu_quota", CgroupCpuQuota(files));
  PutFact(environment, "load_average", ReadLoadAverage(files));
  environment["clock"] = ReadClock(files);
  PutFact(environment, "on_battery", ReadOnBattery(files));
  return environment;
}

std::string MachineSlug(const json& environment) {
  const json cpu = FieldOrNull(environment, "cpu");
  const json topology = FieldOrNull(environment, "topology");

  json facts;
  for (const char* field : {"architecture", "vendor", "brand", "family", "model", "stepping",
                            "part", "variant", "revision"}) {
    facts["cpu"][field] = FieldOrNull(cpu, field);
  }
  for (const char* field : {"packages", "cores", "hardware_threads"}) {
    facts["topology"][field] = FieldOrNull(topology, field);
  }
  facts["caches"] = FieldOrNull(environment, "caches");
  facts["hypervisor"] = FieldOrNull(environment, "hypervisor");
  const std::string text = facts.dump();
  const uint64_t hash = XXH3_64bits(text.data(), text.size());

  std::string slug;
  const auto append = [&slug](const std::string& part) {
    if (part.empty()) return;
    if (!slug.empty()) slug.push_back('-');
    slug.append(part);
  };
  const json& brand = facts["cpu"]["brand"];
  if (brand.is_string()) append(BrandSlug(brand));
  if (slug.empty()) {
    for (const char* field : {"architecture", "vendor", "part"}) {
      if (facts["cpu"][field].is_string()) append(LowerCaseSlug(std::string(facts["cpu"][field])));
    }
  }
  if (slug.empty()) append("unknown-cpu");
  const json name = FieldOrNull(cpu, "microarchitecture");
  if (name.is_string()) append(LowerCaseSlug(std::string(name)));
  const json& cores = facts["topology"]["cores"];
  if (cores.is_number_integer()) append(fmt::format("{}c", cores.get<int64_t>()));
  append(fmt::format("{:08x}", hash >> 32));
  return slug;
}

}  // namespace filterbench
