#ifndef FILTERBENCH_WORKLOADS_SEMI_JOIN_SEMI_JOIN_H_
#define FILTERBENCH_WORKLOADS_SEMI_JOIN_SEMI_JOIN_H_

// A join whose build side sends a filter of its keys to the scan of the other side, so that rows
// without a partner are dropped before they cross the network.

#include <memory>

#include "workloads/workload.h"

namespace filterbench {

std::unique_ptr<Workload> MakeSemiJoin();

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_SEMI_JOIN_SEMI_JOIN_H_
