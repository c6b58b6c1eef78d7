#include "harness/registry/plugin_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "harness/utf8.h"

namespace filterbench {
namespace {

using nlohmann::json;
using Functions = filterbench_plugin_filter;

constexpr size_t kMaxFilters = 1024;
constexpr size_t kMaxKnobs = 64;

std::string Text(const char* text) { return text == nullptr ? "" : text; }

bool IsSnakeCase(std::string_view name) {
  return !name.empty() && name.size() <= 36 && name[0] >= 'a' && name[0] <= 'z' &&
         std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

constexpr const char* kNotOneLine = "must be one line of UTF-8, up to 500 bytes";
bool IsOneLine(const std::string& text) {
  return text.size() <= 500 && IsValidUtf8(text) && std::ranges::none_of(text, [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
  });
}

// What is wrong with a description; empty if nothing.
std::string WhatIsWrong(const PluginFilterDescription& filter) {
  if (!IsSnakeCase(filter.name)) {
    return "name: must be 1 to 36 characters out of a-z, 0-9 and _, a letter first";
  }
  if (filter.summary.empty()) return "summary: is missing";
  for (const auto& [name, text] : {std::pair{"summary", &filter.summary},
                                   std::pair{"source", &filter.source},
                                   std::pair{"fpr_formula", &filter.fpr_formula}}) {
    if (!IsOneLine(*text)) return fmt::format("{}: {}", name, kNotOneLine);
  }
  if (filter.hash_bits < 1 || filter.hash_bits > 64) {
    return fmt::format("hash_bits: must be in 1..64, is {}", filter.hash_bits);
  }
  if (filter.erases && !filter.inserts) return "erase: needs insert";
  std::set<std::string> names;
  for (size_t i = 0; i < filter.knobs.size(); ++i) {
    const PluginKnob& knob = filter.knobs[i];
    const std::string at = fmt::format("knobs[{}]", i);
    if (!IsSnakeCase(knob.name)) return at + ".name: must be lower_snake_case";
    if (!names.insert(knob.name).second) return at + ".name: stands twice: " + knob.name;
    if (knob.name == "seed") return at + ".name: seed is passed to build";
    if (knob.meaning.empty()) return at + ".meaning: is missing";
    if (!IsOneLine(knob.meaning)) return fmt::format("{}.meaning: {}", at, kNotOneLine);
    if (!(knob.low <= knob.initial && knob.initial <= knob.high) || !std::isfinite(knob.low) ||
        !std::isfinite(knob.high)) {
      return at + ": needs low <= initial <= high, all finite";
    }
    for (const double bound : {knob.low, knob.high, knob.initial}) {
      if (knob.whole && (bound != std::floor(bound) || std::abs(bound) > 0x1p53)) {
        return fmt::format("{}: is whole, but a bound is {}", at, bound);
      }
    }
  }
  return {};
}

// What is wrong with the pointers of a filter; empty if nothing.
std::string WhatIsMissing(const Functions& filter) {
  const std::pair<const char*, bool> needed[] = {
      {"build", filter.build != nullptr},
      {"destroy", filter.destroy != nullptr},
      {"may_contain", filter.may_contain != nullptr},
      {"size_in_bytes", filter.size_in_bytes != nullptr}};
  for (const auto& [name, there] : needed) {
    if (!there) return fmt::format("{}: is missing", name);
  }
  if ((filter.create == nullptr) != (filter.insert == nullptr)) {
    return "create, insert: one is there without the other";
  }
  if (filter.knob_count > kMaxKnobs) {
    return fmt::format("knob_count: must be at most {}, is {}", kMaxKnobs, filter.knob_count);
  }
  if (filter.knob_count != 0 && filter.knobs == nullptr) return "knobs: is NULL";
  return {};
}

PluginFilterDescription FilterFromJson(const json& filter) {
  PluginFilterDescription description{
      filter.at(0).get<std::string>(),
      filter.at(1).get<std::string>(),
      filter.at(2).get<std::string>(),
      filter.at(3).get<std::string>(),
      filter.at(4).get<int>(),
      {},
      filter.at(6).get<bool>(),
      filter.at(7).get<bool>(),
      filter.at(8).get<bool>()};
  for (const json& knob : filter.at(5)) {
    description.knobs.push_back({knob.at(0).get<std::string>(), knob.at(1).get<std::string>(),
                                 knob.at(2).get<double>(), knob.at(3).get<double>(),
                                 knob.at(4).get<double>(), knob.at(5).get<bool>()});
  }
  return description;
}

}  // namespace

Result<std::vector<Functions>> CheckPluginTable(const filterbench_plugin* plugin) {
  if (plugin == nullptr) return Error{"filterbench_plugin_entry returned NULL"};
  if (plugin->abi != FILTERBENCH_PLUGIN_ABI) {
    return Error{fmt::format("abi: is {}, this program speaks {}", plugin->abi,
                             FILTERBENCH_PLUGIN_ABI)};
  }
  constexpr size_t kLeastBytes = offsetof(Functions, count_batched);
  if (plugin->filter_bytes < kLeastBytes) {
    return Error{fmt::format("filter_bytes: is {}, at least {} are needed", plugin->filter_bytes,
                             kLeastBytes)};
  }
  if (plugin->filter_count == 0 || plugin->filters == nullptr) return Error{"has no filters"};
  if (plugin->filter_count > kMaxFilters) {
    return Error{fmt::format("filter_count: must be at most {}, is {}", kMaxFilters,
                             plugin->filter_count)};
  }
  std::vector<Functions> filters;
  for (size_t i = 0; i < plugin->filter_count; ++i) {
    if (plugin->filters[i] == nullptr) return Error{fmt::format("filters[{}]: is NULL", i)};
    // Fields that the plug-in was compiled without are NULL.
    Functions& filter = filters.emplace_back();
    std::memcpy(&filter, plugin->filters[i],
                std::min<size_t>(plugin->filter_bytes, sizeof(Functions)));
    std::string wrong = WhatIsMissing(filter);
    if (wrong.empty()) wrong = WhatIsWrong(DescribePluginFilter(filter));
    if (!wrong.empty()) return Error{fmt::format("filters[{}].{}", i, wrong)};
  }
  return filters;
}

PluginFilterDescription DescribePluginFilter(const Functions& filter) {
  PluginFilterDescription description{
      Text(filter.name),
      Text(filter.summary),
      filter.source == nullptr ? "not stated" : filter.source,
      filter.fpr_formula == nullptr ? "not stated" : filter.fpr_formula,
      filter.hash_bits,
      {},
      filter.count_batched != nullptr,
      filter.insert != nullptr,
      filter.erase != nullptr};
  for (size_t i = 0; i < filter.knob_count; ++i) {
    const filterbench_knob& knob = filter.knobs[i];
    description.knobs.push_back({Text(knob.name), Text(knob.meaning), knob.low, knob.high,
                                 knob.initial, knob.whole != 0});
  }
  return description;
}

json PluginFilterToJson(const PluginFilterDescription& filter) {
  json knobs = json::array();
  for (const PluginKnob& knob : filter.knobs) {
    knobs.push_back(
        json::array({knob.name, knob.meaning, knob.low, knob.high, knob.initial, knob.whole}));
  }
  return json::array({filter.name, filter.summary, filter.source, filter.fpr_formula,
                      filter.hash_bits, std::move(knobs), filter.batched, filter.inserts,
                      filter.erases});
}

Result<std::vector<PluginFilterDescription>> PluginFiltersFromJson(const json& list) {
  std::vector<PluginFilterDescription> filters;
  if (!list.is_array() || list.empty() || list.size() > kMaxFilters) {
    return Error{"it sent no description"};
  }
  for (const json& filter : list) {
    try {
      filters.push_back(FilterFromJson(filter));
    } catch (const json::exception&) {
      return Error{"it sent a description of another form"};
    }
    if (filters.back().knobs.size() > kMaxKnobs) return Error{"it sent too many knobs"};
    if (const std::string wrong = WhatIsWrong(filters.back()); !wrong.empty()) {
      return Error{fmt::format("it sent filters[{}].{}", filters.size() - 1, wrong)};
    }
  }
  return filters;
}

}  // namespace filterbench
