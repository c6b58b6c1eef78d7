#ifndef FILTERBENCH_HARNESS_COMMANDS_CPU_OPTION_H_
#define FILTERBENCH_HARNESS_COMMANDS_CPU_OPTION_H_

// The CPU that a command line asks for.

#include <optional>

#include <nlohmann/json.hpp>

#include "filters/result.h"

namespace filterbench {

// The CPU to measure on: the one asked for, or DefaultCpu. Nothing if none is known.
Result<std::optional<int>> ChooseCpu(std::optional<int> asked,
                                     const nlohmann::json& environment);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_COMMANDS_CPU_OPTION_H_
