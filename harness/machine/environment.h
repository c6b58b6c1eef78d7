// The machine and its state, as recorded in manifest.json.

#ifndef FILTERBENCH_HARNESS_MACHINE_ENVIRONMENT_H_
#define FILTERBENCH_HARNESS_MACHINE_ENVIRONMENT_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace filterbench {

// The `environment` object of manifest.json (results/README.md). It never fails: what cannot be
// read is null with a `<field>_reason` beside it.
//
// /proc and /sys are read below `root`. With another root than "/" nothing is asked from this
// machine itself (CPUID, system calls) but the page size and the clock.
//
// Call it before PinToCpu, which narrows `allowed_cpus`, and while no other thread touches the
// environment variables. Takes some tens of milliseconds, most for `frequency.core_clock_mhz`.
nlohmann::json ReadEnvironment(const std::filesystem::path& root = "/");

// The name of results/<machine>: brand, microarchitecture, number of cores, and 8 hex digits of
// the XXH3-64 of the hardware facts, for example "amd-epyc-zen3-2c-1a2b3c4d". Only [a-z0-9-].
// Facts that change without the hardware changing (kernel, microcode, free memory, load,
// settings, host name) do not enter, nor do those that depend on what the kernel shows of the
// hardware (size of memory, NUMA nodes). The hypervisor does: a guest is another machine than its
// host.
std::string MachineSlug(const nlohmann::json& environment);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_ENVIRONMENT_H_
