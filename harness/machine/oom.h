// Whether the kernel killed a process for want of memory.

#ifndef FILTERBENCH_HARNESS_MACHINE_OOM_H_
#define FILTERBENCH_HARNESS_MACHINE_OOM_H_

#include <cstdint>
#include <filesystem>

#include "harness/machine/fact.h"

namespace filterbench {

// Processes that the kernel killed since boot because memory ended, of the system or of a control
// group: oom_kill of /proc/vmstat.
Fact<int64_t> ReadOomKills(const std::filesystem::path& root = "/");

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_OOM_H_
