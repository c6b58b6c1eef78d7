#ifndef FILTERBENCH_HARNESS_COMMANDS_EXPORT_H_
#define FILTERBENCH_HARNESS_COMMANDS_EXPORT_H_

// filterbench export: the theory curves, for what draws them.

#include "harness/commands/command_line.h"

namespace filterbench {

void AddExport(CommandLine& line);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_COMMANDS_EXPORT_H_
