#include "harness/commands/verify.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "filters/result.h"
#include "harness/registry/erased_filter.h"
#include "harness/run/rules.h"

namespace filterbench {
namespace {

// How long one rule may take to check; a rule builds filters of up to 100000 keys.
constexpr double kVerifySilenceSeconds = 60;

// Without names: the filters of plug-ins where there are any, else all.
int VerifyFilters(const std::vector<std::string>& names) {
  std::vector<const FilterType*> types;
  for (const std::string& name : names) {
    const Result<const FilterType*> type = FindFilterType(name);
    if (!type) return Complain(type.error(), kExitUsage);
    types.push_back(*type);
  }
  if (names.empty()) {
    for (const auto& type : FilterTypes()) {
      if (LoadedPlugins().empty() || type->is_external()) types.push_back(type.get());
    }
  }
  size_t broken = 0;
  for (const FilterType* type : types) {
    const std::vector<RuleOutcome> outcomes = CheckRules(*type, kVerifySilenceSeconds);
    size_t kept = 0;
    for (const RuleOutcome& outcome : outcomes) kept += outcome.broken.empty() ? 1 : 0;
    fmt::print("{}: keeps {} of {} rules\n", type->info().name, kept, outcomes.size());
    for (const RuleOutcome& outcome : outcomes) {
      if (outcome.broken.empty()) continue;
      ++broken;
      fmt::print("  broken   {}\n           {}\n", outcome.rule, outcome.broken);
    }
  }
  return broken == 0 ? kExitOk : kExitWrongAnswers;
}

}  // namespace

void AddVerify(CommandLine& line) {
  struct Arguments {
    std::vector<std::string> filters;
    PluginOption plugins;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* verify = line.app.add_subcommand(
      "verify", "Check filters against the rules that all must keep, in plain words");
  verify->add_option("filters", arguments->filters,
                     "Names; all filters of the plug-ins, or all, if none is given");
  arguments->plugins.AddTo(verify);
  verify->callback([&line, arguments] {
    line.exit_code = arguments->plugins.With([&] { return VerifyFilters(arguments->filters); });
  });
}

}  // namespace filterbench
