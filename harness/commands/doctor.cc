#include "harness/commands/doctor.h"

#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "filters/result.h"
#include "harness/commands/cpu_option.h"
#include "harness/machine/activity.h"
#include "harness/machine/doctor.h"
#include "harness/machine/environment.h"
#include "harness/machine/provenance.h"

namespace filterbench {
namespace {

using nlohmann::json;

// Without a CPU: the one that a run would choose.
int Doctor(std::optional<int> asked_cpu, bool as_json) {
  json environment = ReadEnvironment();
  const Result<std::optional<int>> cpu = ChooseCpu(asked_cpu, environment);
  if (!cpu) return Complain(cpu.error(), kExitUsage);
  environment["activity"] = ObserveActivity(*cpu);
  const std::vector<Finding> findings = Examine(environment, ReadProvenance());
  const bool is_unfit = Unfit(findings);
  if (as_json) {
    fmt::print("{}\n", json{{"fit", !is_unfit},
                            {"findings", FindingsToJson(findings)},
                            {"activity", environment["activity"]}}
                           .dump(2));
  } else {
    fmt::print("{}", FindingsToText(findings));
  }
  return is_unfit ? kExitUnfit : kExitOk;
}

}  // namespace

void AddDoctor(CommandLine& line) {
  struct Arguments {
    std::optional<int> cpu;
    bool as_json = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* doctor = line.app.add_subcommand(
      "doctor", "Say what makes this machine unfit to be measured on, and the commands to mend it");
  doctor->add_option("--cpu", arguments->cpu,
                     "The CPU to be measured on; the one that a run would choose");
  doctor->add_flag("--json", arguments->as_json, "As JSON");
  doctor->callback(
      [&line, arguments] { line.exit_code = Doctor(arguments->cpu, arguments->as_json); });
}

}  // namespace filterbench
