#ifndef FILTERBENCH_HARNESS_COMMANDS_EXPLAIN_H_
#define FILTERBENCH_HARNESS_COMMANDS_EXPLAIN_H_

// filterbench explain: a small Bloom filter, bit by bit, in the terminal.

#include "harness/commands/command_line.h"

namespace filterbench {

void AddExplain(CommandLine& line);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_COMMANDS_EXPLAIN_H_
