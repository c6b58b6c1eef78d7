#ifndef FILTERBENCH_HARNESS_COMMANDS_SWEEP_H_
#define FILTERBENCH_HARNESS_COMMANDS_SWEEP_H_

// A sweep as a command line names it, for the subcommands that plan or measure one.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "filters/result.h"
#include "harness/commands/command_line.h"
#include "harness/plan/plan.h"
#include "harness/spec/shard.h"
#include "harness/spec/spec.h"

namespace filterbench {

// What a command line says about a sweep.
struct SweepOptions {
  std::string spec;
  SpecChanges changes;
  std::vector<std::string> only_filters;
  std::vector<std::string> without_filters;
  std::optional<Shard> shard;
};

// The arguments of a subcommand that takes a sweep.
class SweepArguments {
 public:
  // `command` refers to this object from then on.
  void AddTo(CLI::App* command);
  // Runs `use` with what was read; returns its exit code.
  int With(const std::function<int(const SweepOptions&)>& use) const;

 private:
  SweepOptions options_;
  bool quick_ = false;
  bool rigorous_ = false;
  PluginOption plugins_;
};

// A sweep that can be planned on this machine, with its plan.
struct Ready {
  Spec spec;
  Plan plan;
  nlohmann::json environment;
  uint64_t memory_limit_bytes = 0;
};

// `memory_limit_bytes`: that of an earlier run, whose plan is to come out again.
Result<Ready> Prepare(const SweepOptions& options,
                      std::optional<uint64_t> memory_limit_bytes = std::nullopt);

// "1:02:03".
std::string Duration(double seconds);

// How long `plan` takes, in words.
std::string TimeText(const Plan& plan);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_COMMANDS_SWEEP_H_
