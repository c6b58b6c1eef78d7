#ifndef FILTERBENCH_HARNESS_EXPLAIN_EXAMPLES_H_
#define FILTERBENCH_HARNESS_EXPLAIN_EXAMPLES_H_

// Scenes that are worth a look.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filters/result.h"
#include "harness/explain/scene.h"

namespace filterbench::explain {

struct Example {
  std::string_view name;
  bool in_tour = true;  // shown where nothing particular is asked for
  Request request;
};

std::span<const Example> Examples();

// An error that names all of them where there is none of this name.
Result<Request> FindExample(std::string_view name);

}  // namespace filterbench::explain

#endif  // FILTERBENCH_HARNESS_EXPLAIN_EXAMPLES_H_
