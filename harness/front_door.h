#ifndef FILTERBENCH_HARNESS_FRONT_DOOR_H_
#define FILTERBENCH_HARNESS_FRONT_DOOR_H_

// Subcommands that are Python: what reads finished runs lives in scripts/ and plots/, and
// `filterbench NAME ARGUMENT...` becomes `python3 -m MODULE ARGUMENT...`, from any working directory. Three variables of the environment decide:
//
//   FILTERBENCH_HOME    the source tree; without it the one that this program was built in
//   FILTERBENCH_PYTHON  the interpreter; without it the system's, which has the system's packages
//   FILTERBENCH         is set, to this program, for modules that call it
//
// A tool for main.cc that knows nothing else of the harness.

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "filters/result.h"

namespace filterbench {

struct PythonCommand {
  std::string_view name;     // "compare-cpus"
  std::string_view module;   // "scripts.compare_cpus": scripts/compare_cpus.py of the source tree
  std::string_view summary;  // one line for --help
};

std::span<const PythonCommand> PythonCommands();

const PythonCommand* FindPythonCommand(std::string_view name);

// The directory that holds the file of `module`: `home` if that is not empty, else one or two
// directories above that of `program`, an absolute path ("TREE/build/release/filterbench").
Result<std::filesystem::path> SourceTree(std::string_view module, const std::string& home,
                                         const std::filesystem::path& program);

// Turns this process into the interpreter that runs `command`. Returns only if that fails, with the
// reason. `arguments` go through untouched.
Error BecomePython(const PythonCommand& command, std::span<char* const> arguments);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_FRONT_DOOR_H_
