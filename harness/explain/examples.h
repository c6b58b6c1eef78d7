#ifndef FILTERBENCH_HARNESS_EXPLAIN_EXAMPLES_H_
#define FILTERBENCH_HARNESS_EXPLAIN_EXAMPLES_H_

// Scenes that are worth a look.

#include <span>
#include <string_view>
#include <vector>

#include "harness/explain/scene.h"

namespace filterbench::explain {

struct Example {
  std::string_view name;
  bool in_tour = true;  // shown where nothing particular is asked for
  Request request;
};

std::span<const Example> Examples();

std::vector<std::string_view> ExampleNames();

// Nothing where there is none of this name.
const Example* FindExample(std::string_view name);

}  // namespace filterbench::explain

#endif  // FILTERBENCH_HARNESS_EXPLAIN_EXAMPLES_H_
