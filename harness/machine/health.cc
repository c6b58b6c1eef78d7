#include "harness/machine/health.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "harness/machine/core_clock.h"
#include "harness/machine/cpu_identity.h"
#include "harness/machine/cpu_times.h"

namespace filterbench {
namespace {

using nlohmann::json;

Fact<int64_t> ReadMigrations(const SystemFiles& files) {
  constexpr std::string_view kPath = "/proc/thread-self/sched";
  const Fact<std::string> text = files.Read(kPath);
  if (!text.known()) return Fact<int64_t>::Unknown(text.reason());
  const auto value = FindColonValue(text.value(), "se.nr_migrations");
  if (!value) return Fact<int64_t>::Unknown(fmt::format("{} has no se.nr_migrations", kPath));
  const std::optional<int64_t> count = ParseInteger(*value);
  if (!count) {
    return Fact<int64_t>::Unknown(fmt::format("{}: se.nr_migrations is '{:.40}'", kPath, *value));
  }
  return Fact<int64_t>::Known(*count);
}

Fact<int64_t> ReadStealTicks(const SystemFiles& files, int cpu, bool is_guest) {
  const Fact<CpuTimes> times = ReadCpuTimes(files);
  if (!times.known()) return Fact<int64_t>::Unknown(times.reason());
  const auto this_cpu = times.value().of_cpu.find(cpu);
  if (this_cpu == times.value().of_cpu.end()) {
    return Fact<int64_t>::Unknown(fmt::format("/proc/stat gives no steal time for cpu{}", cpu));
  }
  if (is_guest && times.value().all.value_or(CpuTicks()).steal == 0) {
    return Fact<int64_t>::Unknown(
        "a guest without any steal time since boot: the hypervisor may not report it");
  }
  return Fact<int64_t>::Known(this_cpu->second.steal);
}

Fact<double> ReadFrequencyMhz(const SystemFiles& files, int cpu) {
  const std::string path =
      fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", cpu);
  const Fact<int64_t> khz = files.ReadInteger(path);
  if (!khz.known()) return Fact<double>::Unknown(khz.reason());
  if (khz.value() <= 0) {
    return Fact<double>::Unknown(fmt::format("{} holds {}", path, khz.value()));
  }
  return Fact<double>::Known(static_cast<double>(khz.value()) / 1000.0);
}

Fact<double> ReadCoreClockMhz() {
  // A fraction of a millisecond: enough for the fastest repetitions to agree.
  constexpr int kRepetitions = 8;
  const Fact<CoreClock> clock = MeasureCoreClock(kRepetitions);
  if (!clock.known()) return Fact<double>::Unknown(clock.reason());
  return Fact<double>::Known(clock.value().cycles_per_ns * 1000.0);
}

Fact<int64_t> ReadHugePageBytes(const SystemFiles& files) {
  constexpr std::string_view kPath = "/proc/self/smaps_rollup";
  const Fact<std::string> text = files.Read(kPath);
  int64_t total_bytes = 0;
  for (const char* key : {"AnonHugePages", "Private_Hugetlb", "Shared_Hugetlb"}) {
    const Fact<int64_t> bytes = FindKibibytesAsBytes(text, key, kPath);
    if (!bytes.known()) return bytes;
    total_bytes += bytes.value();
  }
  return Fact<int64_t>::Known(total_bytes);
}

}  // namespace

HealthProbe::HealthProbe(const std::filesystem::path& root) : files_(root) {
  const Fact<std::string> hypervisor = HypervisorName(files_);
  is_guest_ = !hypervisor.known() || hypervisor.value() != "none";
}

void HealthProbe::ReadUsage(Counters& counters) const {
  rusage usage = {};
  if (getrusage(RUSAGE_THREAD, &usage) != 0) {
    const std::string reason = "getrusage: " + std::generic_category().message(errno);
    counters.voluntary_switches = Fact<int64_t>::Unknown(reason);
    counters.involuntary_switches = Fact<int64_t>::Unknown(reason);
    counters.minor_faults = Fact<int64_t>::Unknown(reason);
    counters.major_faults = Fact<int64_t>::Unknown(reason);
    return;
  }
  counters.voluntary_switches = Fact<int64_t>::Known(usage.ru_nvcsw);
  counters.involuntary_switches = Fact<int64_t>::Known(usage.ru_nivcsw);
  counters.minor_faults = Fact<int64_t>::Known(usage.ru_minflt);
  counters.major_faults = Fact<int64_t>::Known(usage.ru_majflt);
}

void HealthProbe::ReadFiles(Counters& counters) const {
  const int cpu = sched_getcpu();
  if (cpu < 0) {
    const std::string reason = "sched_getcpu: " + std::generic_category().message(errno);
    counters.cpu = Fact<int>::Unknown(reason);
    counters.steal_ticks = Fact<int64_t>::Unknown(reason);
    counters.frequency_mhz = Fact<double>::Unknown(reason);
  } else {
    counters.cpu = Fact<int>::Known(cpu);
    counters.steal_ticks = ReadStealTicks(files_, cpu, is_guest_);
    counters.frequency_mhz = ReadFrequencyMhz(files_, cpu);
  }
  counters.migrations = ReadMigrations(files_);
}

void HealthProbe::Begin() {
  before_.core_clock_mhz = ReadCoreClockMhz();
  ReadFiles(before_);
  // Last, so that what the reading itself costs stays outside of the section.
  ReadUsage(before_);
}

json HealthProbe::End() const {
  Counters after;
  ReadUsage(after);
  ReadFiles(after);
  after.core_clock_mhz = ReadCoreClockMhz();

  json health;
  PutFact(health, "voluntary_switches",
          Difference(before_.voluntary_switches, after.voluntary_switches));
  PutFact(health, "involuntary_switches",
          Difference(before_.involuntary_switches, after.involuntary_switches));
  PutFact(health, "minor_faults", Difference(before_.minor_faults, after.minor_faults));
  PutFact(health, "major_faults", Difference(before_.major_faults, after.major_faults));
  const Fact<int64_t> migrations = Difference(before_.migrations, after.migrations);
  PutFact(health, "migrations", migrations);

  const bool same_cpu =
      before_.cpu.known() && after.cpu.known() && before_.cpu.value() == after.cpu.value();
  const bool moved = !same_cpu || (migrations.known() && migrations.value() > 0);
  PutFact(health, "steal_ticks",
          moved ? Fact<int64_t>::Unknown("the thread moved between CPUs")
                : Difference(before_.steal_ticks, after.steal_ticks));
  PutFact(health, "huge_page_bytes", ReadHugePageBytes(files_));
  PutFact(health, "cpu_before", before_.cpu);
  PutFact(health, "cpu", after.cpu);
  PutFact(health, "frequency_mhz_before", before_.frequency_mhz);
  PutFact(health, "frequency_mhz", after.frequency_mhz);
  PutFact(health, "core_clock_mhz_before", before_.core_clock_mhz);
  PutFact(health, "core_clock_mhz", after.core_clock_mhz);
  return health;
}

}  // namespace filterbench
