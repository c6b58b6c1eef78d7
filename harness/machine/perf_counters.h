// What the CPU and the kernel count while passes are timed: the `counters` object of samples.jsonl.
//
// perf_event_open(2) is called directly. Of what Debian has over it, libpfm only translates names of
// events (the few here have names in the kernel's own interface), Google Benchmark's counters need a
// build with libpfm and are not scaled, and PAPI stands on libpfm too; a counter that is missing
// would still have to be explained here.

#ifndef FILTERBENCH_HARNESS_MACHINE_PERF_COUNTERS_H_
#define FILTERBENCH_HARNESS_MACHINE_PERF_COUNTERS_H_

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/machine/fact.h"

struct perf_event_attr;

namespace filterbench {

// What the kernel says of a counter. Times are those during which it was switched on, and during
// which it had a register of the CPU to count in.
struct PerfReading {
  uint64_t value = 0;
  uint64_t enabled_ns = 0;
  uint64_t running_ns = 0;
};

// The system calls, so that a test can stand in for other kernels and CPUs. Errors are negated
// error numbers.
class PerfKernel {
 public:
  virtual ~PerfKernel() = default;
  // Opens a counter of the calling thread and of threads that it makes later. `leader` is the
  // counter whose group it joins, or -1. Returns a file descriptor.
  virtual int Open(const perf_event_attr& attributes, int leader) = 0;
  // Switches a leader and with it its group on or off; 0 if it worked.
  virtual int Switch(int leader, bool on) = 0;
  virtual int Read(int counter, PerfReading& reading) = 0;
  virtual void Close(int counter) = 0;
};

PerfKernel& LivePerfKernel();

// Counters of the thread that makes the object and of threads that this thread makes later; all
// else than making and destroying it may be done by that thread only. They are opened once and
// serve many measurements, one after the other. What cannot be counted is remembered with its
// reason and costs nothing.
//
//   PerfCounters counters;
//   counters.Begin();
//   for each pass { counters.Resume(); ...timed loop...; counters.Pause(); }
//   sample["counters"] = counters.PerOperation(operations);
class PerfCounters {
 public:
  // `root` as in SystemFiles; the setting that forbids counting is read there.
  explicit PerfCounters(PerfKernel& kernel = LivePerfKernel(),
                        const std::filesystem::path& root = "/");
  ~PerfCounters();
  PerfCounters(const PerfCounters&) = delete;
  PerfCounters& operator=(const PerfCounters&) = delete;

  void Begin();
  // Each is one system call per group, some microseconds in all, outside of what is timed.
  void Resume();
  void Pause();

  // What was counted since Begin between Resume and Pause, by name:
  //   {"per_op": 3.21, "running_share": 1.0, "kernel_excluded": true}  or
  //   {"per_op": null, "reason": "..."}
  // `running_share` is the share of the time during which it really counted, where there are more
  // counters than the CPU has registers for; the value is scaled by it.
  //
  // Hardware events are those of user space: cycles, instructions, branch_misses, cache_references,
  // cache_misses, l1d_read_misses, llc_read_misses, dtlb_read_misses. Software events are those of
  // the kernel too, where it lets us: task_clock_ns, page_faults, context_switches, cpu_migrations.
  nlohmann::json PerOperation(uint64_t operations) const;

 private:
  struct Event;

  void Open(Event& event, int& leader, const Fact<int64_t>& paranoid);
  Fact<PerfReading> Read(const Event& event) const;
  Fact<PerfReading> Counted(const Event& event) const;
  void Switch(int leader, bool on);

  PerfKernel& kernel_;
  std::vector<Event> events_;
  std::vector<int> leaders_;
  int switch_error_ = 0;
};

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_PERF_COUNTERS_H_
