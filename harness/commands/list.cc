#include "harness/commands/list.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "filters/presets.h"
#include "harness/registry/erased_filter.h"
#include "harness/registry/workloads.h"

namespace filterbench {
namespace {

using nlohmann::json;

std::string KnobText(const KnobInfo& knob) {
  const std::string range =
      knob.choices.empty() ? fmt::format("{}..{}", knob.low.dump(), knob.high.dump())
                           : fmt::format("{}", fmt::join(knob.choices, " | "));
  return fmt::format("{} = {} ({}): {}", knob.name, knob.default_value.dump(), range, knob.meaning);
}

std::vector<std::string_view> TargetsByReference(const FilterType& type) {
  std::vector<std::string_view> names;
  for (const std::string_view target : type.targets()) {
    if (target != "scalar" && type.batched_by_reference(target)) names.push_back(target);
  }
  return names;
}

// Empty if a sweep can name the preset.
std::string WhyNotInThisBuild(const Preset& preset) {
  if (!preset.filter) return preset.reason;
  return FindFilterType(*preset.filter) ? "" : fmt::format("needs filter {}", *preset.filter);
}

json KnobsToJson(const std::vector<KnobInfo>& knobs) {
  json list = json::array();
  for (const KnobInfo& knob : knobs) {
    list.push_back({{"name", knob.name},
                    {"default", knob.default_value},
                    {"low", knob.low},
                    {"high", knob.high},
                    {"choices", knob.choices},
                    {"meaning", knob.meaning}});
  }
  return list;
}

json WorkloadsToJson() {
  json list = json::array();
  for (const auto& workload : Workloads()) {
    list.push_back({{"name", workload->name()},
                    {"description", workload->description()},
                    {"operation", workload->operation()},
                    {"negative_share", workload->has_negative_share()},
                    {"parameters", KnobsToJson(workload->knobs())},
                    {"not_built", nullptr}});
  }
  for (const auto& [name, reason] : WorkloadsNotBuilt()) {
    list.push_back({{"name", name}, {"not_built", reason}});
  }
  return list;
}

json ListAsJson() {
  json filters = json::array();
  for (const auto& type : FilterTypes()) {
    const FilterInfo& info = type->info();
    filters.push_back({{"name", info.name},
                       {"summary", info.summary},
                       {"source", info.source},
                       {"fpr_formula", info.fpr_formula},
                       {"hash_bits", info.hash_bits},
                       {"is_baseline", info.is_baseline},
                       {"insert", type->can_insert()},
                       {"erase", type->can_erase()},
                       {"grow", info.grows},
                       {"stream", type->can_stream()},
                       {"targets", type->targets()},
                       {"targets_by_reference", TargetsByReference(*type)},
                       {"parameters", KnobsToJson(type->knobs())}});
  }
  json not_built = json::array();
  for (const auto& [name, reason] : FiltersNotBuilt()) {
    not_built.push_back({{"type", name}, {"reason", reason}});
  }
  json presets = json::array();
  for (const Preset& preset : Presets()) {
    const std::string problem = WhyNotInThisBuild(preset);
    presets.push_back({{"name", preset.name},
                       {"filter", preset.filter ? json(*preset.filter) : json()},
                       {"params", preset.params},
                       {"default", preset.default_state},
                       {"source", preset.source},
                       {"remembered", preset.remembered},
                       {"note", preset.note},
                       {"not_built", problem.empty() ? json() : json(problem)}});
  }
  return {{"filters", filters},
          {"not_built", not_built},
          {"presets", presets},
          {"workloads", WorkloadsToJson()}};
}

int List(bool as_json) {
  if (as_json) {
    fmt::print("{}\n", ListAsJson().dump(2));
    return kExitOk;
  }
  for (const auto& type : FilterTypes()) {
    const FilterInfo& info = type->info();
    fmt::print("{}: {}\n", info.name, info.summary);
    fmt::print("  built    yes; targets {}{}{}{}{}\n", fmt::join(type->targets(), ", "),
               type->can_insert() ? "; insert" : "", type->can_erase() ? ", erase" : "",
               info.grows ? ", grow" : "", type->can_stream() ? "; built in pieces" : "");
    if (const auto names = TargetsByReference(*type); !names.empty()) {
      fmt::print(
          "  scalar   vectors do not help batched lookups on {}: the scalar reference is used\n",
          fmt::join(names, ", "));
    }
    fmt::print("  source   {}\n", info.source);
    fmt::print("  FPR      {}; {} hash bits\n", info.fpr_formula, info.hash_bits);
    for (const KnobInfo& knob : type->knobs()) fmt::print("  param    {}\n", KnobText(knob));
  }
  for (const auto& [name, reason] : FiltersNotBuilt()) {
    fmt::print("{}: not built: {}\n", name, reason);
  }
  for (const Preset& preset : Presets()) {
    if (preset.filter) {
      fmt::print("preset {}: {} {}\n", preset.name, *preset.filter, preset.params.dump());
    } else {
      fmt::print("preset {}: no filter\n", preset.name);
    }
    if (const std::string problem = WhyNotInThisBuild(preset); !problem.empty()) {
      fmt::print("  built    no: {}\n", problem);
    }
    fmt::print("  default  {}\n", preset.default_state);
    fmt::print("  source   {}\n", preset.source);
    for (const std::string& value : preset.remembered) {
      fmt::print("  from memory, not verified: {}\n", value);
    }
    if (!preset.note.empty()) fmt::print("  note     {}\n", preset.note);
  }
  for (const auto& workload : Workloads()) {
    fmt::print("workload {}: {}\n", workload->name(), workload->description());
    fmt::print("  timed    ns per {}{}\n", workload->operation(),
               workload->has_negative_share() ? "; has a share of absent keys" : "");
    for (const KnobInfo& knob : workload->knobs()) fmt::print("  param    {}\n", KnobText(knob));
  }
  for (const auto& [name, reason] : WorkloadsNotBuilt()) {
    fmt::print("workload {}: not built: {}\n", name, reason);
  }
  return kExitOk;
}

}  // namespace

void AddList(CommandLine& line) {
  struct Arguments {
    PluginOption plugins;
    bool as_json = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* list =
      line.app.add_subcommand("list", "Show every filter, its parameters and its targets");
  list->add_flag("--json", arguments->as_json, "As JSON");
  arguments->plugins.AddTo(list);
  list->callback([&line, arguments] {
    line.exit_code = arguments->plugins.With([&] { return List(arguments->as_json); });
  });
}

}  // namespace filterbench
