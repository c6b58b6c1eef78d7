#ifndef FILTERBENCH_WORKLOADS_LSM_LSM_PREFIX_SCAN_H_
#define FILTERBENCH_WORKLOADS_LSM_LSM_PREFIX_SCAN_H_

#include <memory>

#include "workloads/workload.h"

namespace filterbench {

// Scans of all rows under a prefix, where filters of prefixes say which files have none of them. The
// rows of a prefix are written together, as those of an order or of an hour are: files then have
// different prefixes, and their filters err independently. Filters of the same hashes err alike.
std::unique_ptr<Workload> MakeLsmPrefixScan();

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_LSM_LSM_PREFIX_SCAN_H_
