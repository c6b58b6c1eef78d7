#ifndef FILTERBENCH_WORKLOADS_NAME_TAKEN_NAME_TAKEN_H_
#define FILTERBENCH_WORKLOADS_NAME_TAKEN_NAME_TAKEN_H_

// Is this user name taken, was this post seen: lookups that mostly find nothing, of a filter before
// an exact set, or of a filter alone.

#include <memory>

#include "workloads/workload.h"

namespace filterbench {

std::unique_ptr<Workload> MakeNameTaken();

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_NAME_TAKEN_NAME_TAKEN_H_
