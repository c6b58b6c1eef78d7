#ifndef FILTERBENCH_HARNESS_COMMANDS_RUN_H_
#define FILTERBENCH_HARNESS_COMMANDS_RUN_H_

// filterbench run: measures a sweep, and goes on with one that was interrupted.

#include "harness/commands/command_line.h"

namespace filterbench {

void AddRun(CommandLine& line);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_COMMANDS_RUN_H_
