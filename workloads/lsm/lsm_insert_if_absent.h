#ifndef FILTERBENCH_WORKLOADS_LSM_LSM_INSERT_IF_ABSENT_H_
#define FILTERBENCH_WORKLOADS_LSM_LSM_INSERT_IF_ABSENT_H_

#include <memory>

#include "workloads/workload.h"

namespace filterbench {

// Inserts of keys that may be there already: each asks first, and a new key, which no file has,
// asks in vain.
std::unique_ptr<Workload> MakeLsmInsertIfAbsent();

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_LSM_LSM_INSERT_IF_ABSENT_H_
