#include "harness/registry/workloads.h"

#include <fmt/format.h>

#include "filters/nearest_name.h"
#include "workloads/admission/cdn_admission.h"
#include "workloads/adversarial/adversarial_keys.h"
#include "workloads/lsm/leveldb_get.h"
#include "workloads/lsm/lsm_get.h"
#include "workloads/lsm/lsm_insert_if_absent.h"
#include "workloads/lsm/lsm_load.h"
#include "workloads/lsm/lsm_prefix_scan.h"
#include "workloads/lsm/rocksdb_get.h"
#include "workloads/name_taken/name_taken.h"
#include "workloads/safe_browsing/safe_browsing.h"
#include "workloads/semi_join/semi_join.h"

namespace filterbench {
namespace {

struct List {
  std::vector<std::unique_ptr<Workload>> built;
  std::vector<std::pair<std::string, std::string>> not_built;
};

// The one list of workloads.
List MakeList() {
  List list;
  list.built.push_back(MakeLsmGet());
  list.built.push_back(MakeLsmPrefixScan());
  list.built.push_back(MakeLsmInsertIfAbsent());
  list.built.push_back(MakeLsmLoad());
#ifdef FILTERBENCH_HAS_LIBROCKSDB
  list.built.push_back(MakeRocksdbGet());
#else
  list.not_built.emplace_back("rocksdb_get", "librocksdb was not found");
#endif
#ifdef FILTERBENCH_HAS_LIBLEVELDB
  list.built.push_back(MakeLevelDbGet());
#else
  list.not_built.emplace_back("leveldb_get", "libleveldb was not found");
#endif
  list.built.push_back(MakeCdnAdmission());
  list.built.push_back(MakeSafeBrowsing());
  list.built.push_back(MakeSemiJoin());
  list.built.push_back(MakeNameTaken());
  list.built.push_back(MakeAdversarialKeys());
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
