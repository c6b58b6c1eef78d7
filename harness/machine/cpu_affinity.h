// Which CPUs a thread may use, and binding it to one.

#ifndef FILTERBENCH_HARNESS_MACHINE_CPU_AFFINITY_H_
#define FILTERBENCH_HARNESS_MACHINE_CPU_AFFINITY_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace filterbench {

// The CPUs that the calling thread may run on, ascending. Empty when the kernel does not tell.
std::vector<int> AllowedCpus();

// The CPU to measure on when none is asked for: the last allowed one, since CPU 0 takes most
// interrupts. With several kinds of cores (`topology.core_kinds` of the environment), the last
// allowed one of the fastest kind that has any. nullopt when no CPU is allowed.
std::optional<int> DefaultCpu(const std::vector<int>& allowed_cpus,
                              const nlohmann::json& environment);

// Binds the calling thread (and threads that it starts later) to `cpu`, also to one that an earlier
// call or taskset excluded: ask AllowedCpus first. Returns nullopt when the thread runs there now,
// otherwise why not.
[[nodiscard]] std::optional<std::string> PinToCpu(int cpu);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_CPU_AFFINITY_H_
