#ifndef FILTERBENCH_FILTERS_PRESETS_H_
#define FILTERBENCH_FILTERS_PRESETS_H_

// Filters as named systems use them, each with exactly its parameters: filters/presets.json, which
// the build embeds.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "filters/result.h"

namespace filterbench {

struct Preset {
  std::string name;
  // By its name on the command line; nothing where `reason` says why the system has no such filter.
  std::optional<std::string> filter;
  std::string reason;
  nlohmann::json params;      // of the filter; what is left out has its default
  std::string default_state;  // what the system does when nobody asks for anything
  std::string source;
  // Values that were not verified in the source.
  std::vector<std::string> remembered;
  std::string note;  // what is left out, and what else is worth knowing
};

// In the order of the file.
std::span<const Preset> Presets();
// The error names the nearest preset.
Result<const Preset*> FindPreset(std::string_view name);

// The error names the preset and the field.
Result<std::vector<Preset>> ParsePresets(std::string_view text);

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_PRESETS_H_
