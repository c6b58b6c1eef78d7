#ifndef FILTERBENCH_WORKLOADS_LSM_LSM_LOAD_H_
#define FILTERBENCH_WORKLOADS_LSM_LSM_LOAD_H_

#include <memory>

#include "workloads/workload.h"

namespace filterbench {

// Puts into an empty store, with the flushes and compactions that they lead to: what filters cost
// where files are written.
std::unique_ptr<Workload> MakeLsmLoad();

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_LSM_LSM_LOAD_H_
