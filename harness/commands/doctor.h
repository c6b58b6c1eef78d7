#ifndef FILTERBENCH_HARNESS_COMMANDS_DOCTOR_H_
#define FILTERBENCH_HARNESS_COMMANDS_DOCTOR_H_

// filterbench doctor: what makes this machine unfit to be measured on.

#include "harness/commands/command_line.h"

namespace filterbench {

void AddDoctor(CommandLine& line);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_COMMANDS_DOCTOR_H_
