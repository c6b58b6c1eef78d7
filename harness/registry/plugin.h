#ifndef FILTERBENCH_HARNESS_REGISTRY_PLUGIN_H_
#define FILTERBENCH_HARNESS_REGISTRY_PLUGIN_H_

// Filters from shared libraries (filters/plugin/abi.h), as types like those of the catalogue.

#include <memory>
#include <string>
#include <vector>

#include "filters/result.h"
#include "harness/registry/erased_filter.h"

namespace filterbench {

struct Plugin {
  std::string path;    // as the user wrote it
  std::string digest;  // XXH3-64 of the file, 16 hex digits
  std::vector<std::unique_ptr<FilterType>> types;
};

// Loads a library for the rest of this process, after a process of its own has shown that its code
// can be loaded and its table be read. The error starts with the path.
Result<Plugin> OpenPlugin(const std::string& path);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_REGISTRY_PLUGIN_H_
