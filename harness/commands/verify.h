#ifndef FILTERBENCH_HARNESS_COMMANDS_VERIFY_H_
#define FILTERBENCH_HARNESS_COMMANDS_VERIFY_H_

// filterbench verify: filters against the rules that all must keep.

#include "harness/commands/command_line.h"

namespace filterbench {

void AddVerify(CommandLine& line);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_COMMANDS_VERIFY_H_
