// Who made the CPU and which one it is.

#ifndef FILTERBENCH_HARNESS_MACHINE_CPU_IDENTITY_H_
#define FILTERBENCH_HARNESS_MACHINE_CPU_IDENTITY_H_

#include <nlohmann/json.hpp>
#include <string>

#include "harness/machine/fact.h"
#include "harness/machine/system_files.h"

namespace filterbench {

// {architecture, vendor, brand, family, model, stepping, microarchitecture, microcode, flags} from
// /proc/cpuinfo, on a live x86 from CPUID where that file tells nothing. `flags` lists, of the
// instruction sets that matter to filters and of the properties of the time stamp counter, those
// that are present. On Arm family, model and stepping are null; implementer, part, variant and
// revision take their place. The first CPU speaks for all but for the microcode, which lists every
// distinct version.
nlohmann::json ReadCpuIdentity(const SystemFiles& files);

// The name of a core design, for example "zen3" or "sapphire-rapids". `vendor` as in CPUID leaf 0.
Fact<std::string> MicroarchitectureName(const std::string& vendor, int family, int model,
                                        int stepping);

// "none" on bare metal, a lower-case name such as "kvm" below a hypervisor, "unidentified" below
// one that does not give its name; not known where nothing tells.
Fact<std::string> HypervisorName(const SystemFiles& files);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_CPU_IDENTITY_H_
