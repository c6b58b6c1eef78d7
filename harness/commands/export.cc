#include "harness/commands/export.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/record/theory_export.h"

namespace filterbench {

void AddExport(CommandLine& line) {
  CLI::App* theory = line.app.add_subcommand("export", "Print the theory curves as JSON");
  theory->callback([] { fmt::print("{}\n", TheoryCurves().dump(2)); });
}

}  // namespace filterbench
