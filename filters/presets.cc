#include "filters/presets.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "filters/nearest_name.h"
#include "filters/presets_json.h"

namespace filterbench {

using nlohmann::json;

Result<std::vector<Preset>> ParsePresets(std::string_view text) {
  const json root = json::parse(text, nullptr, false);
  if (!root.is_object() || !root.contains("presets") || !root["presets"].is_array()) {
    return Error{"presets: must be a list in a JSON object"};
  }
  const std::vector<std::string> fields = {"name",       "filter", "reason", "params", "default",
                                           "source", "remembered", "note"};
  std::vector<Preset> presets;
  for (const json& entry : root["presets"]) {
    const std::string at = fmt::format("presets[{}]", presets.size());
    if (!entry.is_object()) return Error{at + ": must be an object"};
    for (const auto& item : entry.items()) {
      if (std::find(fields.begin(), fields.end(), item.key()) == fields.end()) {
        return Error{at + ": " + UnknownName("field", item.key(), fields)};
      }
    }
    Preset preset;
    for (const auto& [field, member] : {std::pair("name", &Preset::name),
                                        std::pair("default", &Preset::default_state),
                                        std::pair("source", &Preset::source),
                                        std::pair("note", &Preset::note)}) {
      if (!entry.contains(field) || !entry[field].is_string()) {
        return Error{fmt::format("{}.{}: must be a string", at, field)};
      }
      preset.*member = entry[field].get<std::string>();
    }
    const json filter = entry.value("filter", json());
    const json reason = entry.value("reason", json());
    if (filter.is_string() == reason.is_string()) {
      return Error{at + ": must have either a filter or a reason why there is none"};
    }
    if (filter.is_string()) preset.filter = filter.get<std::string>();
    if (reason.is_string()) preset.reason = reason.get<std::string>();
    preset.params = entry.value("params", json());
    if (!preset.params.is_object()) return Error{at + ".params: must be an object"};
    const json remembered = entry.value("remembered", json());
    if (!remembered.is_array() ||
        !std::all_of(remembered.begin(), remembered.end(),
                     [](const json& value) { return value.is_string(); })) {
      return Error{at + ".remembered: must be a list of strings"};
    }
    preset.remembered = remembered.get<std::vector<std::string>>();
    for (const Preset& other : presets) {
      if (other.name == preset.name) return Error{at + ".name: stands twice: " + preset.name};
    }
    presets.push_back(std::move(preset));
  }
  return presets;
}

std::span<const Preset> Presets() {
  static const std::vector<Preset> presets = [] {
    Result<std::vector<Preset>> parsed = ParsePresets(kPresetsJson);
    // The tests read the same text: this is never thrown by a build that passed them.
    if (!parsed) throw std::logic_error("filters/presets.json: " + parsed.error());
    return std::move(*parsed);
  }();
  return presets;
}

Result<const Preset*> FindPreset(std::string_view name) {
  std::vector<std::string> names;
  for (const Preset& preset : Presets()) {
    if (preset.name == name) return &preset;
    names.push_back(preset.name);
  }
  return Error{UnknownName("preset", name, names)};
}

}  // namespace filterbench
