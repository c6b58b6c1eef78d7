#include "harness/plan/select.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "filters/nearest_name.h"
#include "harness/registry/erased_filter.h"

namespace filterbench {
namespace {

const std::string& NameOf(const FilterEntry& entry) {
  return entry.preset.empty() ? entry.filter : entry.preset;
}

bool Matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

bool IsBaseline(const FilterEntry& entry) {
  if (!entry.preset.empty()) return false;
  const Result<const FilterType*> type = FindFilterType(entry.filter);
  return type && (*type)->info().is_baseline;
}

}  // namespace

std::optional<Error> SelectFilters(const std::vector<std::string>& only,
                                   const std::vector<std::string>& without, Spec& spec) {
  std::set<std::string> names;
  for (const SweepSpec& sweep : spec.sweeps) {
    for (const FilterEntry& entry : sweep.filters) names.insert(NameOf(entry));
  }
  const auto find_unmatched = [&](const char* option, const std::vector<std::string>& patterns)
      -> std::optional<Error> {
    for (const std::string& pattern : patterns) {
      if (std::none_of(names.begin(), names.end(), [&](const std::string& name) {
            return Matches({pattern}, name);
          })) {
        const std::vector<std::string> valid(names.begin(), names.end());
        return Error{
            fmt::format("{}: {}", option, UnknownName("filter of the spec", pattern, valid))};
      }
    }
    return std::nullopt;
  };
  if (auto error = find_unmatched("--filter", only)) return error;
  if (auto error = find_unmatched("--exclude", without)) return error;

  bool any = false;
  for (SweepSpec& sweep : spec.sweeps) {
    std::erase_if(sweep.filters, [&](const FilterEntry& entry) {
      if (Matches(without, NameOf(entry))) return true;
      return !only.empty() && !Matches(only, NameOf(entry)) && !IsBaseline(entry);
    });
    any |= !sweep.filters.empty();
  }
  std::erase_if(spec.sweeps, [](const SweepSpec& sweep) { return sweep.filters.empty(); });
  if (!any) return Error{"--exclude: no filter of the spec is left"};
  spec.only_filters = only;
  spec.without_filters = without;
  return std::nullopt;
}

}  // namespace filterbench
