#ifndef FILTERBENCH_HARNESS_PLAN_SELECT_H_
#define FILTERBENCH_HARNESS_PLAN_SELECT_H_

// Which filters of a spec are measured.

#include <optional>
#include <string>
#include <vector>

#include "filters/result.h"
#include "harness/spec/spec.h"

namespace filterbench {

// Keeps the filters and presets of `spec` whose names match one of `only` (all, if there is none) and
// none of `without`; patterns as in a shell ("*_bloom"). The baselines stay where others are named,
// since every speed is judged by them; to leave one out it must be in `without`. Refuses a pattern
// that matches no filter of the spec, and a spec that has none left.
std::optional<Error> SelectFilters(const std::vector<std::string>& only,
                                   const std::vector<std::string>& without, Spec& spec);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_PLAN_SELECT_H_
