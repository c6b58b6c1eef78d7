// What the machine does beside us, over a fraction of a second: the `activity` of an environment.

#ifndef FILTERBENCH_HARNESS_MACHINE_ACTIVITY_H_
#define FILTERBENCH_HARNESS_MACHINE_ACTIVITY_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "harness/machine/cgroup.h"
#include "harness/machine/cpu_times.h"
#include "harness/machine/fact.h"
#include "harness/machine/system_files.h"

namespace filterbench {

// Counters of /proc and /sys before and after an interval. `cpu` is the one that is going to be
// measured on, if that is known.
class ActivityProbe {
 public:
  explicit ActivityProbe(std::optional<int> cpu, const std::filesystem::path& root = "/");

  void Begin();

  // Over the interval since Begin, null with a reason for what cannot be read:
  //   seconds                   its length
  //   cpu                       the CPU to measure on
  //   cpu_busy_shares           {"<CPU>": share of the time that it ran or wanted to run anything}
  //   steal_share               of the CPU to measure on: share of the time that the hypervisor
  //                             gave to others. Only grows while that CPU wants to run
  //   steal_share_since_boot    of all CPUs, until Begin
  //   largest_process_shares    the three largest users of CPU other than this process, in CPUs;
  //                             no names, which are nobody's business
  //   throttled_periods, throttled_periods_before    of the CPU quota, and until Begin
  //   thermal_throttles, thermal_throttles_before    of the CPU to measure on and its package
  //   swapped_pages             written to and read from swap
  // The two shares of steal are null in a guest that has seen no steal since boot, where "none" and
  // "not reported" look alike.
  nlohmann::json End() const;

 private:
  struct Counters {
    Fact<CpuTimes> cpu_times = Fact<CpuTimes>::Unknown("");
    Fact<std::map<int64_t, int64_t>> process_ticks = Fact<std::map<int64_t, int64_t>>::Unknown("");
    Fact<int64_t> throttled_periods = Fact<int64_t>::Unknown("");
    Fact<int64_t> thermal_throttles = Fact<int64_t>::Unknown("");
    Fact<int64_t> swapped_pages = Fact<int64_t>::Unknown("");
  };

  Counters Read() const;
  void PutCpuShares(const Counters& after, nlohmann::json& activity) const;
  Fact<nlohmann::json> LargestProcessShares(const Counters& after, double seconds) const;

  SystemFiles files_;
  std::optional<int> cpu_;
  bool is_guest_;
  Counters before_;
  std::chrono::steady_clock::time_point begin_;
};

// Watches this machine while a thread of its own keeps `cpu` busy, since neither steal nor
// competition shows on an idle CPU. Beside what the probe tells:
//   obtained_share                           share of the time that the thread ran
//   core_clock_mhz_low, core_clock_mhz_high  5th and 95th percentile of the core clock
//                                            (core_clock.h) over windows of a quarter millisecond
// Does not change the CPUs of the calling thread.
nlohmann::json ObserveActivity(std::optional<int> cpu, double seconds = 0.5);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_ACTIVITY_H_
