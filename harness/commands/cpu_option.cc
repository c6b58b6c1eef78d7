#include "harness/commands/cpu_option.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "harness/machine/cpu_affinity.h"

namespace filterbench {

Result<std::optional<int>> ChooseCpu(std::optional<int> asked,
                                     const nlohmann::json& environment) {
  const std::vector<int> allowed = AllowedCpus();
  if (!asked) return DefaultCpu(allowed, environment);
  if (std::find(allowed.begin(), allowed.end(), *asked) == allowed.end()) {
    return Error{fmt::format("--cpu {}: must be one of the CPUs that this process may use: {}",
                             *asked, fmt::join(allowed, ", "))};
  }
  return asked;
}

}  // namespace filterbench
