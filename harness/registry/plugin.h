#ifndef FILTERBENCH_HARNESS_REGISTRY_PLUGIN_H_
#define FILTERBENCH_HARNESS_REGISTRY_PLUGIN_H_

// Filters from shared libraries (filters/plugin/abi.h), as types like those of the catalogue.

#include <memory>
#include <string>
#include <vector>

#include "filters/result.h"
#include "harness/registry/erased_filter.h"
#include "harness/registry/plugin_table.h"

namespace filterbench {

struct Plugin {
  std::string path;    // as the user wrote it
  std::string digest;  // XXH3-64 of the file, 16 hex digits
  std::vector<std::unique_ptr<FilterType>> types;
};

// Reads the table of a library in a process of its own; it is loaded into this one only where one
// of its filters is built here. The error starts with the path.
Result<Plugin> OpenPlugin(const std::string& path);

// Types for what the table of the library `file` says.
std::vector<std::unique_ptr<FilterType>> PluginTypes(
    const std::string& file, const std::vector<PluginFilterDescription>& filters);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_REGISTRY_PLUGIN_H_
