// Whether a machine is fit to be measured on, and what would make it so.
//
// Each check passes, warns (times are valid but spread more, or do not hold elsewhere), fails
// (times of this machine, as it stands, would mislead) or is unknown. Unknown is not good news: a
// fact that is missing, empty or garbled never passes. "The CPU" is the one to be measured on.
//
//   check                   warn                                     fail
//   governor                userspace; powersave of intel_pstate or  any other but performance
//                           amd-pstate-epp, which follow the load
//   boost                   on                                       -
//   smt                     the CPU's sibling is online              and busy for more than 5 %
//   transparent_huge_pages  defrag never or defer                    never
//   huge_pages              none reserved, or none free              -
//   aslr                    off, partial, or off for the process     -
//   load                    from 0.25 per CPU on                     from 1 per CPU on
//   steal                   any while watched, or 1 % since boot     from 5 % while watched on
//   cgroup_quota            any                                      below one CPU
//   cgroup_throttling       any since the group was made             any while watched
//   clock_source            read through a hypervisor's page         hpet, acpi_pm, jiffies, ...
//   timer                   steps above 100 ns                       above 1000 ns
//   memory                  below 2 GiB or 10 % available            below 512 MiB available
//   swap                    in use                                   moving while watched
//   build                   below -O2, or checks of the library      not optimised, build type Debug,
//                                                                    sanitizers, coverage, profiling
//   hypervisor              a guest                                  -
//   mitigations             microcode slows gathers                  -
//   frequency_drift         the core clock varies by 2 %             by 5 %
//   measured_cpu            others take 1 % of the CPU               5 %
//   other_cpus              5 % busy                                 25 % busy
//   isolation               the CPU is not isolated                  -
//   power                   -                                        on battery
//   thermal                 throttled since boot                     throttled while watched
//
// Randomised addresses pass, and fixed ones do not: a run measures every point in several processes
// so that its intervals cover the luck of the layout (Mytkowicz et al., "Producing wrong data
// without doing anything obviously wrong!", ASPLOS 2009). With one layout for all they do not.

#ifndef FILTERBENCH_HARNESS_MACHINE_DOCTOR_H_
#define FILTERBENCH_HARNESS_MACHINE_DOCTOR_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace filterbench {

enum class FindingState { kPass, kWarn, kFail, kUnknown };

// "pass", "warn", "fail", "unknown".
std::string_view FindingStateName(FindingState state);

struct Finding {
  std::string check;
  FindingState state = FindingState::kUnknown;
  std::string found;    // what is the case, or why it is not known
  std::string why;      // why it matters
  std::string remedy;   // in words; empty when the check passes
  std::string command;  // shell lines for root on Debian; empty where no command helps
};

// One finding per check, always all of them and in the order above. `environment` as of
// ReadEnvironment, with an `activity` as of ObserveActivity; `provenance` as of ReadProvenance.
// Touches nothing else, so that the record of a run tells the same later. Facts that these objects
// lack, as those of older records, are unknown.
std::vector<Finding> Examine(const nlohmann::json& environment, const nlohmann::json& provenance);

// At least one check fails: `run --strict` refuses.
bool Unfit(const std::vector<Finding>& findings);

// The `doctor` of manifest.json: [{check, state, found, why, remedy, command}, ...]; remedy and
// command are null where they are empty.
nlohmann::json FindingsToJson(const std::vector<Finding>& findings);

// For people, at most 96 columns wide but for long commands; the last line counts the states.
std::string FindingsToText(const std::vector<Finding>& findings);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_DOCTOR_H_
