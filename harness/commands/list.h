#ifndef FILTERBENCH_HARNESS_COMMANDS_LIST_H_
#define FILTERBENCH_HARNESS_COMMANDS_LIST_H_

// filterbench list: what this build can measure.

#include "harness/commands/command_line.h"

namespace filterbench {

void AddList(CommandLine& line);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_COMMANDS_LIST_H_
