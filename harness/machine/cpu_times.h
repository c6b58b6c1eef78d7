// What the CPUs and the processes have done since boot, in clock ticks of 1 / sysconf(_SC_CLK_TCK)
// seconds (proc(5)).

#ifndef FILTERBENCH_HARNESS_MACHINE_CPU_TIMES_H_
#define FILTERBENCH_HARNESS_MACHINE_CPU_TIMES_H_

#include <cstdint>
#include <map>
#include <optional>

#include "harness/machine/fact.h"
#include "harness/machine/system_files.h"

namespace filterbench {

struct CpuTicks {
  int64_t busy = 0;   // user, nice, system and interrupts; guests of this machine are user time
  int64_t idle = 0;   // with waiting for input and output
  int64_t steal = 0;  // the CPU wanted to run and the hypervisor ran another guest

  int64_t total() const { return busy + idle + steal; }
};

struct CpuTimes {
  std::optional<CpuTicks> all;
  // By CPU. One whose line is short or garbled is left out.
  std::map<int, CpuTicks> of_cpu;
};

// From /proc/stat.
Fact<CpuTimes> ReadCpuTimes(const SystemFiles& files);

// User and system ticks of each process that can be seen, by process id. Processes that end while
// they are listed are left out.
Fact<std::map<int64_t, int64_t>> ReadProcessTicks(const SystemFiles& files);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_CPU_TIMES_H_
