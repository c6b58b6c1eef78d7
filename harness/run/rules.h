#ifndef FILTERBENCH_HARNESS_RUN_RULES_H_
#define FILTERBENCH_HARNESS_RUN_RULES_H_

// What every filter must keep to, checked on a filter without its type: for authors of plug-ins,
// who read which rule is broken in plain words, and for anybody who doubts ours on their machine.

#include <string>
#include <vector>

#include "harness/registry/erased_filter.h"

namespace filterbench {

struct RuleOutcome {
  std::string rule;    // one sentence
  std::string broken;  // how it is broken; empty if it is kept
};

// All rules that apply to the filter, each checked in a process of its own, so that one that
// crashes or does not return is reported like any other. Takes seconds.
std::vector<RuleOutcome> CheckRules(const FilterType& type, double silence_limit_seconds);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RUN_RULES_H_
