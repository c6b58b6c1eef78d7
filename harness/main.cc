// The front door: filterbench list | plan | run | ..., a family of subcommands per file of
// commands/, and what front_door.h hands on to Python. Data goes to stdout, talk to stderr.

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "filters/nearest_name.h"
#include "harness/commands/command_line.h"
#include "harness/commands/doctor.h"
#include "harness/commands/explain.h"
#include "harness/commands/export.h"
#include "harness/commands/list.h"
#include "harness/commands/plan.h"
#include "harness/commands/run.h"
#include "harness/commands/summarise.h"
#include "harness/commands/verify.h"
#include "harness/front_door.h"
#include "harness/process/isolated.h"
#include "harness/run/worker.h"

int main(int argc, char** argv) {
  using namespace filterbench;  // NOLINT: main lives outside of the namespace
  if (argc == 2 && std::string_view(argv[1]) == "worker") {
    ServeIsolated(DoWork);
    return Complain("worker: is what `run` starts; it cannot be called", kExitUsage);
  }
  CLI::App app("Measures approximate-membership filters: lookups, builds, space, errors.",
               "filterbench");
  app.require_subcommand(1);
  CommandLine line{app};
  for (int i = 0; i < argc; ++i) {
    line.words += (i == 0 ? "" : " ") + ShellWord(i == 0 ? "filterbench" : argv[i]);
  }
  AddList(line);
  AddPlan(line);
  AddRun(line);
  AddSummarise(line);
  AddVerify(line);
  AddDoctor(line);
  AddExport(line);
  AddExplain(line);

  // Their arguments are theirs, --help included; CLI11 knows them for the help of the whole only.
  if (const PythonCommand* command = argc > 1 ? FindPythonCommand(argv[1]) : nullptr) {
    return Complain(BecomePython(*command, {argv + 2, static_cast<size_t>(argc - 2)}).message,
                    kExitUsage);
  }
  for (const PythonCommand& command : PythonCommands()) {
    app.add_subcommand(std::string(command.name), std::string(command.summary));
  }
  if (argc > 1 && argv[1][0] != '-') {
    bool is_known = false;
    std::vector<std::string> shown;
    for (const CLI::App* subcommand : app.get_subcommands({})) {
      is_known = is_known || subcommand->get_name() == argv[1];
      if (!subcommand->get_group().empty()) shown.push_back(subcommand->get_name());
    }
    if (!is_known) return Complain(UnknownName("subcommand", argv[1], shown), kExitUsage);
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kExitOk : kExitUsage;
  } catch (const std::exception& error) {
    // What is longer than the buffer of standard output fails where it is printed.
    if (std::ferror(stdout) == 0) return Complain(error.what(), kExitIncomplete);
  }
  if (std::ferror(stdout) != 0 || std::fflush(stdout) != 0) {
    return Complain("standard output cannot be written", kExitIncomplete);
  }
  return line.exit_code;
}
