#ifndef FILTERBENCH_HARNESS_REGISTRY_PLUGIN_TABLE_H_
#define FILTERBENCH_HARNESS_REGISTRY_PLUGIN_TABLE_H_

// What a plug-in says of its filters (filters/plugin/abi.h), checked; none of their code is called.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "filters/plugin/abi.h"
#include "filters/result.h"

namespace filterbench {

struct PluginKnob {
  std::string name, meaning;
  double low = 0, high = 0, initial = 0;
  bool whole = false;
  bool operator==(const PluginKnob&) const = default;
};

// What the harness itself knows of a filter: the library is loaded where its code is to run and
// nowhere else.
struct PluginFilterDescription {
  std::string name, summary, source, fpr_formula;
  int hash_bits = 64;
  std::vector<PluginKnob> knobs;
  bool batched = false, inserts = false, erases = false;
  bool operator==(const PluginFilterDescription&) const = default;
};

// All filters of a table, fields that it was compiled without NULL; or the first thing that is
// wrong. Pointers that are not NULL are believed.
Result<std::vector<filterbench_plugin_filter>> CheckPluginTable(const filterbench_plugin* plugin);

// Of a filter that CheckPluginTable gave.
PluginFilterDescription DescribePluginFilter(const filterbench_plugin_filter& filter);

// How it goes from the process that loaded the library to the one that asked. The library could
// write there too: what comes is believed as little as the table.
nlohmann::json PluginFilterToJson(const PluginFilterDescription& filter);
Result<std::vector<PluginFilterDescription>> PluginFiltersFromJson(const nlohmann::json& list);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_REGISTRY_PLUGIN_TABLE_H_
