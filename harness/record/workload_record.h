#ifndef FILTERBENCH_HARNESS_RECORD_WORKLOAD_RECORD_H_
#define FILTERBENCH_HARNESS_RECORD_WORKLOAD_RECORD_H_

// What a workload reports, as it stands in samples and summaries (field `workload`,
// results/README.md).

#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "workloads/workload.h"

namespace filterbench {

nlohmann::json WorkloadToJson(const WorkloadReport& report);

// The counts of several samples of one point, which obey the schema, added up, with the values and
// intervals that follow; of what is no ratio the median.
nlohmann::json PoolWorkloads(std::span<const nlohmann::json> workloads);

// Empty, or where a value does not follow from the counts beside it.
std::string WorkloadProblem(const nlohmann::json& workload);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_WORKLOAD_RECORD_H_
