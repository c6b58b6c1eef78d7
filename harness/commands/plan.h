#ifndef FILTERBENCH_HARNESS_COMMANDS_PLAN_H_
#define FILTERBENCH_HARNESS_COMMANDS_PLAN_H_

// filterbench plan: what a sweep would measure, and its cost.

#include "harness/commands/command_line.h"

namespace filterbench {

void AddPlan(CommandLine& line);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_COMMANDS_PLAN_H_
