// The rules against filters that break one each (filters/plugin/misbehaving_plugin.cc), and against
// our own, which keep all.

#include "harness/run/rules.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/registry/plugin.h"

namespace filterbench {
namespace {

using ::testing::HasSubstr;

const Plugin& Misbehaving() {
  static const Result<Plugin> plugin =
      OpenPlugin(FILTERBENCH_PLUGINS_DIRECTORY "/misbehaving_plugin.so");
  EXPECT_TRUE(plugin) << plugin.error();
  return *plugin;
}

const FilterType& Named(std::string_view name) {
  for (const auto& type : Misbehaving().types) {
    if (type->info().name == name) return *type;
  }
  throw std::logic_error(fmt::format("no filter {}", name));
}

std::vector<RuleOutcome> Broken(const FilterType& type, double silence_limit_seconds = 60) {
  std::vector<RuleOutcome> broken;
  for (RuleOutcome& outcome : CheckRules(type, silence_limit_seconds)) {
    if (!outcome.broken.empty()) broken.push_back(std::move(outcome));
  }
  return broken;
}

struct Bug {
  const char* filter;
  const char* rule;  // what at least must be found, in a part of its words
  const char* words;
};

class RulesTest : public ::testing::TestWithParam<Bug> {};

// Cases B2, B3, B6, C5, C6: each rule of the contract has a filter that breaks it, and is named.
TEST_P(RulesTest, ABrokenRuleIsNamed) {
  const Bug& bug = GetParam();
  std::string all;
  for (const RuleOutcome& outcome : Broken(Named(bug.filter), 2)) {
    if (outcome.rule.find(bug.rule) == std::string::npos) continue;
    EXPECT_THAT(outcome.broken, HasSubstr(bug.words));
    return;
  }
  FAIL() << "no rule about '" << bug.rule << "' is broken";
}

INSTANTIATE_TEST_SUITE_P(
    Misbehaving, RulesTest,
    ::testing::Values(
        Bug{"crashes_in_build", "holds every key", "with 1000 keys, seed 0x7"},
        Bug{"crashes_in_build", "holds every key", "it crashed: signal 11 (Segmentation fault)"},
        Bug{"crashes_in_lookups", "holds every key", "it crashed: signal 6 (Aborted)"},
        Bug{"exits", "holds every key", "it ended the process with exit code 0"},
        Bug{"never_returns", "any seed", "it did not return within 2 s"},
        Bug{"hangs_in_lookups", "any seed", "it did not return within 2 s"},
        Bug{"miscounts_long_spans", "hundred thousand", "in mode lookup_batched counts"},
        Bug{"states_no_rate", "holds every key", "expected_fpr: must be in 0..1, is nan"},
        Bug{"denies_a_key", "holds every key", "1 of 1000 keys are denied"},
        Bug{"batch_differs", "All loops answer", "mode lookup_batched counts"},
        Bug{"another_each_time", "Built twice", "differ"},
        Bug{"remembers_lookups", "leaves no trace", "is another one"},
        Bug{"smaller_than_possible", "size", "states 100 bytes"},
        Bug{"states_another_rate", "rate of false positives", "false positives"},
        Bug{"refuses_early", "accepts that many", "refuses key 0"},
        Bug{"forgets_others", "Erasing", "keys are denied"},
        Bug{"maybe_when_empty", "Built from no keys", "answers maybe"},
        Bug{"no_reason", "holds every key", "gives no reason"},
        Bug{"bits_overrun", "All loops answer", "write behind their last word"}),
    [](const auto& info) { return fmt::format("{}_{}", info.param.filter, info.index); });

TEST(RulesTest, AFilterWithoutABugKeepsThemAll) {
  for (const char* name : {"flawless", "prints"}) {
    for (const RuleOutcome& outcome : Broken(Named(name))) {
      ADD_FAILURE() << name << ": " << outcome.rule << ": " << outcome.broken;
    }
  }
}

TEST(RulesTest, TheExampleKeepsThemAll) {
  const Result<Plugin> plugin = OpenPlugin(FILTERBENCH_PLUGINS_DIRECTORY "/example_plugin.so");
  ASSERT_TRUE(plugin) << plugin.error();
  for (const RuleOutcome& outcome : Broken(*plugin->types.at(0))) {
    ADD_FAILURE() << outcome.rule << ": " << outcome.broken;
  }
}

// filters/conformance tests ours harder; here it is the rules that are tested.
TEST(RulesTest, OursKeepThemAll) {
  for (const char* name : {"blocked_bloom", "cuckoo", "xor", "ribbon", "touch_lines"}) {
    const Result<const FilterType*> type = FindFilterType(name);
    if (!type) continue;  // a build with FILTERBENCH_ONLY
    for (const RuleOutcome& outcome : Broken(**type)) {
      ADD_FAILURE() << name << ": " << outcome.rule << ": " << outcome.broken;
    }
  }
}

}  // namespace
}  // namespace filterbench
