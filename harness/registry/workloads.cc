#include "harness/registry/workloads.h"

#include <fmt/format.h>

#include "filters/nearest_name.h"

namespace filterbench {
namespace {

struct List {
  std::vector<std::unique_ptr<Workload>> built;
  std::vector<std::pair<std::string, std::string>> not_built;
};

// The one list of workloads.
List MakeList() {
  List list;
  return list;
}

const List& All() {
  static const List list = MakeList();
  return list;
}

}  // namespace

std::span<const std::unique_ptr<Workload>> Workloads() { return All().built; }

std::span<const std::pair<std::string, std::string>> WorkloadsNotBuilt() {
  return All().not_built;
}

Result<const Workload*> FindWorkload(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& workload : Workloads()) {
    if (workload->name() == name) return workload.get();
    names.emplace_back(workload->name());
  }
  if (const auto reason = WhyWorkloadNotBuilt(name)) {
    return Error{fmt::format("workload {}: not built: {}", name, *reason)};
  }
  return Error{UnknownName("workload", name, names)};
}

std::optional<std::string> WhyWorkloadNotBuilt(std::string_view name) {
  for (const auto& [not_built, reason] : WorkloadsNotBuilt()) {
    if (not_built == name) return reason;
  }
  return std::nullopt;
}

}  // namespace filterbench
