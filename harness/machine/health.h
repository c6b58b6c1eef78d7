// What disturbed a timed section: the `health` object of samples.jsonl.

#ifndef FILTERBENCH_HARNESS_MACHINE_HEALTH_H_
#define FILTERBENCH_HARNESS_MACHINE_HEALTH_H_

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "harness/machine/fact.h"
#include "harness/machine/system_files.h"

namespace filterbench {

// Reads the counters of the calling thread before and after a section. Begin and End belong to one
// thread, and one probe can serve many sections, one after the other. Each takes a few hundred
// microseconds, outside of the section; End also walks the page tables of the process once.
//
//   HealthProbe probe;
//   probe.Begin();
//   ...timed section...
//   sample["health"] = probe.End();
class HealthProbe {
 public:
  explicit HealthProbe(const std::filesystem::path& root = "/");

  void Begin();

  // Differences since Begin, of this thread unless said otherwise:
  //   involuntary_switches, voluntary_switches, minor_faults, major_faults   getrusage(2)
  //   migrations            moves between CPUs, /proc/thread-self/sched
  //   steal_ticks           time the hypervisor gave to others while this CPU wanted to run, in
  //                         units of 1 / clock.steal_ticks_per_second; /proc/stat, of the whole
  //                         CPU. Null when the thread moved, and in a guest that has seen no steal
  //                         since boot, where "none" and "not reported" look alike
  // and at the end:
  //   huge_page_bytes       anonymous transparent and hugetlbfs pages of the process
  //   cpu, cpu_before       where the thread runs, and ran at Begin
  //   frequency_mhz(_before)   cpufreq's reading for that CPU
  //   core_clock_mhz(_before)  measured, see core_clock.h
  //   clock_step_ns         of the clock that times passes, measured once, see clock_step.h
  //   core_kind             of `cpu`; only where cores differ
  // Null with a reason for what cannot be read.
  nlohmann::json End() const;

 private:
  struct Counters {
    Fact<int64_t> voluntary_switches = Fact<int64_t>::Unknown("");
    Fact<int64_t> involuntary_switches = Fact<int64_t>::Unknown("");
    Fact<int64_t> minor_faults = Fact<int64_t>::Unknown("");
    Fact<int64_t> major_faults = Fact<int64_t>::Unknown("");
    Fact<int64_t> migrations = Fact<int64_t>::Unknown("");
    Fact<int64_t> steal_ticks = Fact<int64_t>::Unknown("");
    Fact<int> cpu = Fact<int>::Unknown("");
    Fact<double> frequency_mhz = Fact<double>::Unknown("");
    Fact<double> core_clock_mhz = Fact<double>::Unknown("");
  };

  void ReadUsage(Counters& counters) const;
  void ReadFiles(Counters& counters) const;

  SystemFiles files_;
  bool is_guest_;
  Counters before_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_HEALTH_H_
