#ifndef FILTERBENCH_HARNESS_REGISTRY_KEY_FILTERS_H_
#define FILTERBENCH_HARNESS_REGISTRY_KEY_FILTERS_H_

// Filters of the catalogue as workloads hold them.

#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "harness/registry/erased_filter.h"
#include "workloads/key_filter.h"

namespace filterbench {

// The filter `type` with complete parameters, asked by the kernel of `target`, which is one of its
// targets.
std::unique_ptr<FilterSource> MakeFilterSource(const FilterType& type, nlohmann::json params,
                                               std::string_view target);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_REGISTRY_KEY_FILTERS_H_
