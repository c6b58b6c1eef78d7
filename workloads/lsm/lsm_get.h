#ifndef FILTERBENCH_WORKLOADS_LSM_LSM_GET_H_
#define FILTERBENCH_WORKLOADS_LSM_LSM_GET_H_

#include <memory>

#include "workloads/workload.h"

namespace filterbench {

// Point reads of a store that was loaded and is not written to: the read path of an LSM tree.
std::unique_ptr<Workload> MakeLsmGet();

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_LSM_LSM_GET_H_
