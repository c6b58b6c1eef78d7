#include "harness/machine/activity.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "harness/machine/core_clock.h"
#include "harness/machine/cpu_affinity.h"
#include "harness/machine/cpu_identity.h"

namespace filterbench {
namespace {

using nlohmann::json;

constexpr char kNoCpu[] = "no CPU is known to be allowed";

Fact<int64_t> ReadThrottledPeriods(const SystemFiles& files) {
  const Fact<CgroupThrottling> throttling = CgroupCpuThrottling(files);
  return throttling.known() ? Fact<int64_t>::Known(throttling.value().throttled_periods)
                            : Fact<int64_t>::Unknown(throttling.reason());
}

// Linux, arch/x86/kernel/cpu/mce/therm_throt.c. Of Intel's CPUs on bare metal.
Fact<int64_t> ReadThermalThrottles(const SystemFiles& files, std::optional<int> cpu) {
  if (!cpu) return Fact<int64_t>::Unknown(kNoCpu);
  const std::string directory =
      fmt::format("/sys/devices/system/cpu/cpu{}/thermal_throttle/", *cpu);
  int64_t sum = 0;
  for (const char* name : {"core_throttle_count", "package_throttle_count"}) {
    const Fact<int64_t> count = files.ReadInteger(directory + name);
    if (!count.known()) return count;
    if (count.value() < 0 || count.value() > int64_t{1} << 60) {
      return Fact<int64_t>::Unknown(fmt::format("{}{} holds {}", directory, name, count.value()));
    }
    sum += count.value();
  }
  return Fact<int64_t>::Known(sum);
}

Fact<int64_t> ReadSwappedPages(const SystemFiles& files) {
  constexpr std::string_view kPath = "/proc/vmstat";
  const Fact<std::string> text = files.Read(kPath);
  if (!text.known()) return Fact<int64_t>::Unknown(text.reason());
  int64_t sum = 0;
  for (const char* key : {"pswpin", "pswpout"}) {
    std::optional<int64_t> count;
    for (const std::string_view line : SplitLines(text.value())) {
      const std::vector<std::string_view> words = SplitAtBlanks(line);
      if (words.size() == 2 && words[0] == key) count = ParseInteger(words[1]);
    }
    if (!count || *count < 0 || *count > int64_t{1} << 60) {
      return Fact<int64_t>::Unknown(fmt::format("{} tells no {}", kPath, key));
    }
    sum += *count;
  }
  return Fact<int64_t>::Known(sum);
}

double Share(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

// What one CPU did between two readings; nothing if its counters fell or stood still, as on a CPU
// that went offline.
std::optional<CpuTicks> TicksBetween(const CpuTicks& before, const CpuTicks& after) {
  const CpuTicks ticks = {.busy = after.busy - before.busy,
                          // The kernel lets it fall at times: proc(5), "iowait".
                          .idle = std::max(after.idle - before.idle, int64_t{0}),
                          .steal = after.steal - before.steal};
  if (ticks.busy < 0 || ticks.steal < 0 || ticks.total() <= 0) return std::nullopt;
  return ticks;
}

double ThreadCpuSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Spin {
  double obtained_share = 0;
  std::vector<double> core_clock_mhz;
};

Spin KeepBusy(double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr int kRepetitionsPerWindow = 8;
  Spin spin;
  const Clock::time_point begin = Clock::now();
  const double cpu_begin = ThreadCpuSeconds();
  double elapsed = 0;
  do {
    const Fact<CoreClock> clock = MeasureCoreClock(kRepetitionsPerWindow);
    if (clock.known()) spin.core_clock_mhz.push_back(clock.value().cycles_per_ns * 1000.0);
    elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  } while (elapsed < seconds);
  spin.obtained_share = std::min((ThreadCpuSeconds() - cpu_begin) / elapsed, 1.0);
  return spin;
}

void PutCoreClock(std::vector<double> mhz, json& activity) {
  constexpr size_t kFewestWindows = 20;
  if (mhz.size() < kFewestWindows) {
    const std::string reason =
        fmt::format("only {} windows were quiet enough to tell the core clock", mhz.size());
    PutUnknown(activity, "core_clock_mhz_low", reason);
    PutUnknown(activity, "core_clock_mhz_high", reason);
    return;
  }
  std::sort(mhz.begin(), mhz.end());
  const size_t tail = mhz.size() / 20;
  activity["core_clock_mhz_low"] = mhz[tail];
  activity["core_clock_mhz_high"] = mhz[mhz.size() - 1 - tail];
}

}  // namespace

ActivityProbe::ActivityProbe(std::optional<int> cpu, const std::filesystem::path& root)
    : files_(root), cpu_(cpu) {
  const Fact<std::string> hypervisor = HypervisorName(files_);
  is_guest_ = !hypervisor.known() || hypervisor.value() != "none";
}

ActivityProbe::Counters ActivityProbe::Read() const {
  return {.cpu_times = ReadCpuTimes(files_),
          .process_ticks = ReadProcessTicks(files_),
          .throttled_periods = ReadThrottledPeriods(files_),
          .thermal_throttles = ReadThermalThrottles(files_, cpu_),
          .swapped_pages = ReadSwappedPages(files_)};
}

void ActivityProbe::Begin() {
  before_ = Read();
  begin_ = std::chrono::steady_clock::now();
}

void ActivityProbe::PutCpuShares(const Counters& after, json& activity) const {
  const Fact<CpuTimes>& unreadable =
      before_.cpu_times.known() ? after.cpu_times : before_.cpu_times;
  if (!unreadable.known()) {
    for (const char* field : {"cpu_busy_shares", "steal_share", "steal_share_since_boot"}) {
      PutUnknown(activity, field, unreadable.reason());
    }
    return;
  }
  json busy_shares = json::object();
  Fact<double> steal_share = Fact<double>::Unknown(
      cpu_ ? fmt::format("/proc/stat gives no steal time for cpu{}", *cpu_) : kNoCpu);
  for (const auto& [cpu, ticks_before] : before_.cpu_times.value().of_cpu) {
    const auto ticks_after = after.cpu_times.value().of_cpu.find(cpu);
    if (ticks_after == after.cpu_times.value().of_cpu.end()) continue;
    const std::optional<CpuTicks> ticks = TicksBetween(ticks_before, ticks_after->second);
    if (!ticks) continue;
    busy_shares[std::to_string(cpu)] = Share(ticks->busy + ticks->steal, ticks->total());
    if (cpu == cpu_) steal_share = Fact<double>::Known(Share(ticks->steal, ticks->total()));
  }
  if (busy_shares.empty()) {
    PutUnknown(activity, "cpu_busy_shares", "the counters of /proc/stat stand still");
  } else {
    activity["cpu_busy_shares"] = std::move(busy_shares);
  }

  const std::optional<CpuTicks>& since_boot = before_.cpu_times.value().all;
  Fact<double> steal_since_boot = Fact<double>::Unknown("/proc/stat has no line cpu");
  if (since_boot && since_boot->total() > 0) {
    steal_since_boot = Fact<double>::Known(Share(since_boot->steal, since_boot->total()));
  }
  const std::optional<CpuTicks>& all_after = after.cpu_times.value().all;
  if (is_guest_ && all_after.value_or(CpuTicks()).steal == 0) {
    const std::string reason =
        "a guest without any steal time since boot: the hypervisor may not report it";
    steal_share = Fact<double>::Unknown(reason);
    steal_since_boot = Fact<double>::Unknown(reason);
  }
  PutFact(activity, "steal_share", steal_share);
  PutFact(activity, "steal_share_since_boot", steal_since_boot);
}

Fact<json> ActivityProbe::LargestProcessShares(const Counters& after, double seconds) const {
  if (!before_.process_ticks.known()) return Fact<json>::Unknown(before_.process_ticks.reason());
  if (!after.process_ticks.known()) return Fact<json>::Unknown(after.process_ticks.reason());
  const Fact<std::string> self = files_.Read("/proc/self/stat");
  if (!self.known()) return Fact<json>::Unknown(self.reason());
  const std::vector<std::string_view> words = SplitAtBlanks(self.value());
  const std::optional<int64_t> self_id = words.empty() ? std::nullopt : ParseInteger(words[0]);
  if (!self_id) return Fact<json>::Unknown("/proc/self/stat does not tell which process is ours");

  std::vector<int64_t> ticks;
  for (const auto& [process, ticks_after] : after.process_ticks.value()) {
    const auto ticks_before = before_.process_ticks.value().find(process);
    // One that began in between, or took the id of one that ended.
    const bool is_new =
        ticks_before == before_.process_ticks.value().end() || ticks_before->second > ticks_after;
    const int64_t used = is_new ? ticks_after : ticks_after - ticks_before->second;
    if (process != *self_id && used > 0) ticks.push_back(used);
  }
  std::sort(ticks.begin(), ticks.end(), std::greater<>());
  constexpr size_t kLargest = 3;
  ticks.resize(std::min(ticks.size(), kLargest));
  const double ticks_of_a_cpu = seconds * static_cast<double>(sysconf(_SC_CLK_TCK));
  json shares = json::array();
  for (const int64_t used : ticks) shares.push_back(static_cast<double>(used) / ticks_of_a_cpu);
  return Fact<json>::Known(std::move(shares));
}

json ActivityProbe::End() const {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  const Counters after = Read();
  json activity;
  activity["seconds"] = seconds;
  PutFact(activity, "cpu", cpu_ ? Fact<int>::Known(*cpu_) : Fact<int>::Unknown(kNoCpu));
  PutCpuShares(after, activity);
  PutFact(activity, "largest_process_shares", LargestProcessShares(after, seconds));
  PutFact(activity, "throttled_periods",
          Difference(before_.throttled_periods, after.throttled_periods));
  PutFact(activity, "throttled_periods_before", before_.throttled_periods);
  PutFact(activity, "thermal_throttles",
          Difference(before_.thermal_throttles, after.thermal_throttles));
  PutFact(activity, "thermal_throttles_before", before_.thermal_throttles);
  PutFact(activity, "swapped_pages", Difference(before_.swapped_pages, after.swapped_pages));
  return activity;
}

json ObserveActivity(std::optional<int> cpu, double seconds) {
  json activity;
  std::thread([&] {
    std::optional<std::string> problem = kNoCpu;
    if (cpu) problem = PinToCpu(*cpu);
    ActivityProbe probe(cpu);
    probe.Begin();
    const Spin spin = KeepBusy(seconds);
    activity = probe.End();
    if (problem) {
      for (const char* field :
           {"obtained_share", "steal_share", "core_clock_mhz_low", "core_clock_mhz_high"}) {
        PutUnknown(activity, field, *problem);
      }
      return;
    }
    activity["obtained_share"] = spin.obtained_share;
    PutCoreClock(spin.core_clock_mhz, activity);
  }).join();
  return activity;
}

}  // namespace filterbench
