#ifndef FILTERBENCH_HARNESS_REGISTRY_WORKLOADS_H_
#define FILTERBENCH_HARNESS_REGISTRY_WORKLOADS_H_

// The workloads of this build by name, as filters are found by theirs.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "filters/result.h"
#include "workloads/workload.h"

namespace filterbench {

// In the order in which they are listed.
std::span<const std::unique_ptr<Workload>> Workloads();
// Workloads that this build cannot offer: name and reason.
std::span<const std::pair<std::string, std::string>> WorkloadsNotBuilt();
// By name; the error names the nearest one, or says why this build has it not.
Result<const Workload*> FindWorkload(std::string_view name);
// Why this build has no workload of a name that others have; nothing if it has it, or if there is
// none.
std::optional<std::string> WhyWorkloadNotBuilt(std::string_view name);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_REGISTRY_WORKLOADS_H_
