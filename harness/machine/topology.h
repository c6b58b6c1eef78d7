// Cores, SMT, NUMA nodes and caches. hwloc reads /sys and completes what is missing there by CPUID.

#ifndef FILTERBENCH_HARNESS_MACHINE_TOPOLOGY_H_
#define FILTERBENCH_HARNESS_MACHINE_TOPOLOGY_H_

#include <nlohmann/json.hpp>

#include "harness/machine/system_files.h"

namespace filterbench {

// Sets in `environment`:
//   topology  {packages, cores, hardware_threads, threads_per_core, numa_nodes, smt_active,
//              core_threads: [[CPU, ...] per core, ...],
//              core_kinds: [{name, cpus}, ...] slowest kind first}
//   caches    [{level, type: data | instruction | unified, size_bytes, line_bytes,
//               shared_by: hardware threads per cache, instances}, ...], one entry per distinct
//              cache, ordered by level, type and size
// or null with a reason, for either as a whole or for a field inside. Online CPUs are counted, not
// only those that this process may use.
//
// With a root other than "/" this sets HWLOC_FSROOT while it runs, so no other thread may use the
// environment variables of the process at that time.
void PutTopology(const SystemFiles& files, nlohmann::json& environment);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_TOPOLOGY_H_
