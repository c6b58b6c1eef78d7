#ifndef FILTERBENCH_WORKLOADS_LSM_LSM_PREFIX_SCAN_H_
#define FILTERBENCH_WORKLOADS_LSM_LSM_PREFIX_SCAN_H_

#include <memory>

#include "workloads/workload.h"

namespace filterbench {

// Scans of all rows under a prefix, where filters of prefixes say which files have none of them.
std::unique_ptr<Workload> MakeLsmPrefixScan();

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_LSM_LSM_PREFIX_SCAN_H_
