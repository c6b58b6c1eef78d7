// Limits that control groups put on this process, cgroup v1 and v2 (Linux,
// Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst, scheduler/sched-bwc.rst).

#ifndef FILTERBENCH_HARNESS_MACHINE_CGROUP_H_
#define FILTERBENCH_HARNESS_MACHINE_CGROUP_H_

#include <cstdint>

#include "harness/machine/fact.h"
#include "harness/machine/system_files.h"

namespace filterbench {

// The tightest CPU quota of all groups above this process that can be seen, in CPUs (1.5 = one and
// a half). Not known also when there is no limit: the reason then begins with "unlimited".
Fact<double> CgroupCpuQuota(const SystemFiles& files);

// The tightest memory limit, in bytes; unlimited as above.
Fact<int64_t> CgroupMemoryLimitBytes(const SystemFiles& files);

struct CgroupThrottling {
  int64_t throttled_periods = 0;
  int64_t throttled_ns = 0;
};

// How often groups that hold this process have used up their CPU quota since they were made, and
// how long their CPUs then stood still; summed over all groups that can be seen and count it.
Fact<CgroupThrottling> CgroupCpuThrottling(const SystemFiles& files);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_CGROUP_H_
