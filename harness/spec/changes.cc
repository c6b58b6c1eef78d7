#include "harness/spec/changes.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "filters/nearest_name.h"
#include "harness/utf8.h"

namespace filterbench {
namespace {

using nlohmann::json;

constexpr std::string_view kMeasureFields[] = {
    "seed",         "processes",      "max_processes", "rounds",       "passes", "width",
    "pass_seconds", "stream_lookups", "fpr_queries",   "point_seconds"};
constexpr std::string_view kSweepLists[] = {"keys",  "key_sets",        "modes",    "pages",
                                            "fills", "negative_shares", "hashings", "targets",
                                            "threads"};

template <size_t kSize>
bool Contains(const std::string_view (&names)[kSize], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// JSON where a spec could hold it (nested that deep, each name once), else a word.
json ParseWord(std::string_view text) {
  const Result<LocatedJson> value = LocatedJson::Parse(text, "");
  return value ? value->root() : json(std::string(text));
}

json ParseValue(std::string_view text) {
  if (const Result<LocatedJson> value = LocatedJson::Parse(text, "")) return value->root();
  if (text.find(',') == std::string_view::npos) return std::string(text);
  json list = json::array();
  while (true) {
    const size_t comma = text.find(',');
    list.push_back(ParseWord(text.substr(0, comma)));
    if (comma == std::string_view::npos) return list;
    text.remove_prefix(comma + 1);
  }
}

// What is no object or list is left to the reader of the spec, which says in which line it stands.
template <class Use>
void ForEachSweep(json& root, const Use& use) {
  if (!root.is_object() || !root.contains("sweeps") || !root["sweeps"].is_array()) return;
  for (json& sweep : root["sweeps"]) {
    if (sweep.is_object()) use(sweep);
  }
}

// Whether any sweep has the filter by its name.
bool SetParameter(json& root, const std::string& filter, const std::string& parameter,
                  const json& value) {
  bool found = false;
  ForEachSweep(root, [&](json& sweep) {
    if (!sweep.contains("filters")) return;
    json& filters = sweep["filters"];
    if (filters.is_object() && filters.contains(filter) && filters[filter].is_object()) {
      filters[filter][parameter] = value;
      found = true;
    }
    if (!filters.is_array()) return;
    for (json& entry : filters) {
      if (!entry.is_object() || entry.value("filter", json()) != filter) continue;
      entry["params"][parameter] = value;
      found = true;
    }
  });
  return found;
}

std::optional<Error> ApplySetting(const std::string& setting, json& root) {
  const auto refuse = [&](std::string_view problem) {
    return Error{fmt::format("--set {}: {}", ToValidUtf8(setting), problem)};
  };
  if (!IsValidUtf8(setting)) return refuse("is not UTF-8");
  const size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == setting.size()) {
    return refuse("must be name=value");
  }
  const std::string name = setting.substr(0, equals);
  const json value = ParseValue(std::string_view(setting).substr(equals + 1));
  if (Contains(kMeasureFields, name)) {
    root["measure"][name] = value;
    return std::nullopt;
  }
  if (Contains(kSweepLists, name)) {
    ForEachSweep(root, [&](json& sweep) { sweep[name] = value; });
    return std::nullopt;
  }
  if (const size_t dot = name.find('.'); dot != std::string::npos) {
    const std::string filter = name.substr(0, dot);
    if (SetParameter(root, filter, name.substr(dot + 1), value)) return std::nullopt;
    return refuse(fmt::format("no sweep of the spec names the filter '{}'", filter));
  }
  std::vector<std::string> valid(std::begin(kMeasureFields), std::end(kMeasureFields));
  valid.insert(valid.end(), std::begin(kSweepLists), std::end(kSweepLists));
  return refuse(UnknownName("setting", name, valid) + ", or FILTER.PARAMETER");
}

}  // namespace

std::optional<Error> Apply(const SpecChanges& changes, LocatedJson& spec) {
  json& root = spec.mutable_root();
  if (changes.empty()) return std::nullopt;
  if (!root.is_object()) return spec.At("", "must be an object");
  if (root.contains("measure") && !root["measure"].is_object()) {
    return spec.At("/measure", "must be an object");
  }
  json& measure = root["measure"];
  if (changes.care == Care::kQuick) {
    measure.update({{"processes", 2}, {"max_processes", 2}, {"rounds", 1}, {"passes", 3},
                    {"pass_seconds", 0.005}, {"width", nullptr}});
  }
  if (changes.care == Care::kRigorous) {
    measure.update({{"processes", 4}, {"max_processes", 20}, {"rounds", 2}, {"passes", 7},
                    {"pass_seconds", 0.05}, {"width", 0.01}});
  }
  if (changes.seed) measure["seed"] = *changes.seed;
  for (const std::string& setting : changes.settings) {
    if (const auto error = ApplySetting(setting, root)) return error;
  }
  if (measure.is_null()) root.erase("measure");
  return std::nullopt;
}

}  // namespace filterbench
