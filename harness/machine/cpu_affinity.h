// Which CPUs a thread may use, and binding it to one.

#ifndef FILTERBENCH_HARNESS_MACHINE_CPU_AFFINITY_H_
#define FILTERBENCH_HARNESS_MACHINE_CPU_AFFINITY_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/machine/system_files.h"

namespace filterbench {

// The CPUs that the calling thread may run on, ascending. Empty when the kernel does not tell.
std::vector<int> AllowedCpus();

// The CPU to measure on when none is asked for: the last allowed one, since CPU 0 takes most
// interrupts. With several kinds of cores (`topology.core_kinds` of the environment), the last
// allowed one of the fastest kind that has any. nullopt when no CPU is allowed.
std::optional<int> DefaultCpu(const std::vector<int>& allowed_cpus,
                              const nlohmann::json& environment);

// The CPUs that threads measuring together are bound to, in the order in which they are taken: one
// of each core before a second one, the fastest kind of cores first, DefaultCpu at the head. As many
// as may be busy at once: of the allowed ones no more than the whole CPUs of
// `environment.cgroup_cpu_quota`. Where /sys tells no siblings, each CPU counts as a core.
std::vector<int> ThreadCpus(const std::vector<int>& allowed_cpus,
                            const nlohmann::json& environment, const SystemFiles& files);

// Binds the calling thread (and threads that it starts later) to `cpu`, also to one that an earlier
// call or taskset excluded: ask AllowedCpus first. Returns nullopt when the thread runs there now,
// otherwise why not.
[[nodiscard]] std::optional<std::string> PinToCpu(int cpu);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_CPU_AFFINITY_H_
