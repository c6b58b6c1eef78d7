#include "harness/machine/topology.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace filterbench {
namespace {

using nlohmann::json;

using Topology = std::shared_ptr<hwloc_topology>;

// Sets an environment variable and restores it at the end of the scope: the only way to give hwloc
// 2.x another root.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (old_) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

// Loads without the named components of hwloc; null when nothing can be found out.
Topology LoadWithout(const SystemFiles& files, std::initializer_list<const char*> components) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Topology topology(raw, hwloc_topology_destroy);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_icache_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  for (const char* component : components) {
    hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  }
  std::optional<ScopedVariable> root;
  if (!files.is_live()) root.emplace("HWLOC_FSROOT", files.root().string());
  return hwloc_topology_load(raw) == 0 ? topology : nullptr;
}

int ThreadCount(const Topology& topology) {
  return topology == nullptr ? 0 : hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_PU);
}

constexpr std::string_view kNodesPath = "/sys/devices/system/node/online";

Fact<size_t> CountNumaNodes(const SystemFiles& files) {
  const Fact<std::vector<int>> nodes = files.ReadCpuList(kNodesPath);
  if (!nodes.known()) return Fact<size_t>::Unknown(nodes.reason());
  if (nodes.value().empty()) {
    return Fact<size_t>::Unknown(fmt::format("{} lists no node", kNodesPath));
  }
  return Fact<size_t>::Known(nodes.value().size());
}

Fact<Topology> LoadTopology(const SystemFiles& files) {
  if (!files.foreign_processor().empty()) return Fact<Topology>::Unknown(files.foreign_processor());
  // The count is checked because hwloc takes a machine with an unreadable list of CPUs for one
  // with a single CPU.
  const std::string_view online_path = "/sys/devices/system/cpu/online";
  const Fact<std::vector<int>> online = files.ReadCpuList(online_path);
  // hwloc 2.9 aborts the program when the list of NUMA nodes is there but cannot be parsed.
  const bool nodes_damaged = files.Exists(kNodesPath) && !CountNumaNodes(files).known();
  if (!files.is_live()) {
    if (!online.known()) return Fact<Topology>::Unknown(online.reason());
    if (nodes_damaged) return Fact<Topology>::Unknown(CountNumaNodes(files).reason());
    // Recorded files describe another machine: neither CPUID nor this one's CPU count may mix in.
    const Topology topology = LoadWithout(files, {"x86", "no_os"});
    if (static_cast<size_t>(ThreadCount(topology)) != online.value().size()) {
      return Fact<Topology>::Unknown(
          fmt::format("hwloc finds {} hardware threads where {} lists {}", ThreadCount(topology),
                      online_path, online.value().size()));
    }
    return Fact<Topology>::Known(topology);
  }

  const int expected = online.known() ? static_cast<int>(online.value().size())
                                      : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  Topology topology = nodes_damaged ? nullptr : LoadWithout(files, {});
  if (topology != nullptr && !hwloc_topology_is_thissystem(topology.get())) {
    return Fact<Topology>::Unknown("HWLOC_ variables make hwloc describe another machine");
  }
  // Without the Linux component hwloc asks each CPU by CPUID.
  if (ThreadCount(topology) != expected) topology = LoadWithout(files, {"linux"});
  if (ThreadCount(topology) != expected) {
    return Fact<Topology>::Unknown(fmt::format(
        "hwloc finds {} hardware threads where {} are online", ThreadCount(topology), expected));
  }
  return Fact<Topology>::Known(topology);
}

std::vector<int> CpusOf(hwloc_const_bitmap_t set) {
  std::vector<int> cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) {
    cpus.push_back(cpu);
  }
  return cpus;
}

// Intel's hybrid CPUs have one performance-monitoring device per kind of core. Slowest kind first.
constexpr const char* kHybridKinds[] = {"lowpower", "atom", "core"};

std::string HybridDirectory(const char* kind) { return fmt::format("/sys/devices/cpu_{}", kind); }

// Slowest kind first. Where there are no such devices, hwloc ranks CPUs by capacity and frequency.
Fact<json> CoreKinds(const SystemFiles& files, hwloc_topology_t topology) {
  json kinds = json::array();
  for (const char* name : kHybridKinds) {
    const std::string directory = HybridDirectory(name);
    if (!files.Exists(directory)) continue;
    const Fact<std::vector<int>> cpus = files.ReadCpuList(directory + "/cpus");
    if (!cpus.known()) return Fact<json>::Unknown(cpus.reason());
    if (cpus.value().empty()) return Fact<json>::Unknown(directory + "/cpus lists no CPU");
    kinds.push_back({{"name", name}, {"cpus", cpus.value()}});
  }
  if (!kinds.empty()) return Fact<json>::Known(std::move(kinds));

  const int count = hwloc_cpukinds_get_nr(topology, 0);
  if (count <= 0) {
    return Fact<json>::Unknown("nothing tells whether all cores are of one kind");
  }
  hwloc_bitmap_t set = hwloc_bitmap_alloc();
  Fact<json> result = Fact<json>::Unknown("hwloc cannot list the kinds of cores");
  for (int kind = 0; kind < count; ++kind) {
    int efficiency = -1;
    unsigned info_count = 0;
    hwloc_info_s* infos = nullptr;
    if (hwloc_cpukinds_get_info(topology, kind, set, &efficiency, &info_count, &infos, 0) != 0) {
      break;
    }
    if (count > 1 && efficiency < 0) {
      result = Fact<json>::Unknown(
          fmt::format("there are {} kinds of cores and hwloc cannot rank them", count));
      break;
    }
    const std::string name = count == 1 ? "uniform" : fmt::format("efficiency_{}", efficiency);
    kinds.push_back({{"name", name}, {"cpus", CpusOf(set)}});
  }
  hwloc_bitmap_free(set);
  if (kinds.size() == static_cast<size_t>(count)) result = Fact<json>::Known(std::move(kinds));
  return result;
}

void PutCount(json& object, const std::string& field, hwloc_topology_t topology,
              hwloc_obj_type_t type) {
  const int count = hwloc_get_nbobjs_by_type(topology, type);
  if (count > 0) {
    object[field] = count;
  } else {
    PutUnknown(object, field, fmt::format("hwloc finds no {}", hwloc_obj_type_string(type)));
  }
}

Fact<bool> ReadSmtActive(const SystemFiles& files) {
  const std::string_view path = "/sys/devices/system/cpu/smt/active";
  const Fact<int64_t> flag = files.ReadInteger(path);
  if (!flag.known()) return Fact<bool>::Unknown(flag.reason());
  if (flag.value() != 0 && flag.value() != 1) {
    return Fact<bool>::Unknown(fmt::format("{} holds {}", path, flag.value()));
  }
  return Fact<bool>::Known(flag.value() == 1);
}

json DescribeTopology(const SystemFiles& files, hwloc_topology_t topology) {
  json description;
  PutCount(description, "packages", topology, HWLOC_OBJ_PACKAGE);
  PutCount(description, "cores", topology, HWLOC_OBJ_CORE);
  PutCount(description, "hardware_threads", topology, HWLOC_OBJ_PU);

  int threads_per_core = 0;
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr;) {
    threads_per_core = std::max(threads_per_core, hwloc_bitmap_weight(core->cpuset));
  }
  if (threads_per_core > 0) {
    description["threads_per_core"] = threads_per_core;
  } else {
    PutUnknown(description, "threads_per_core", "hwloc finds no Core");
  }

  // hwloc reports one node also where /sys lists none.
  PutFact(description, "numa_nodes", CountNumaNodes(files));

  PutFact(description, "smt_active", ReadSmtActive(files));
  PutFact(description, "core_kinds", CoreKinds(files, topology));
  return description;
}

Fact<json> CoreThreads(hwloc_topology_t topology) {
  json cores = json::array();
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr;) {
    cores.push_back(CpusOf(core->cpuset));
  }
  if (cores.empty()) return Fact<json>::Unknown("hwloc finds no Core");
  return Fact<json>::Known(std::move(cores));
}

const char* CacheTypeName(hwloc_obj_cache_type_t type) {
  switch (type) {
    case HWLOC_OBJ_CACHE_DATA:
      return "data";
    case HWLOC_OBJ_CACHE_INSTRUCTION:
      return "instruction";
    case HWLOC_OBJ_CACHE_UNIFIED:
      break;
  }
  return "unified";
}

void PutPositive(json& object, const std::string& field, int64_t value) {
  if (value > 0) {
    object[field] = value;
  } else {
    PutUnknown(object, field, "neither /sys nor CPUID tells");
  }
}

Fact<json> DescribeCaches(hwloc_topology_t topology) {
  // level, type, size, line, shared by
  using Kind = std::tuple<int, std::string, int64_t, int64_t, int>;
  std::map<Kind, int> instances;
  for (int depth = 0; depth < hwloc_topology_get_depth(topology); ++depth) {
    if (!hwloc_obj_type_is_cache(hwloc_get_depth_type(topology, depth))) continue;
    const unsigned count = hwloc_get_nbobjs_by_depth(topology, depth);
    for (unsigned i = 0; i < count; ++i) {
      const hwloc_obj_t cache = hwloc_get_obj_by_depth(topology, depth, i);
      const hwloc_obj_attr_u::hwloc_cache_attr_s& facts = cache->attr->cache;
      ++instances[Kind(static_cast<int>(facts.depth), CacheTypeName(facts.type),
                       static_cast<int64_t>(facts.size), static_cast<int64_t>(facts.linesize),
                       hwloc_bitmap_weight(cache->cpuset))];
    }
  }
  if (instances.empty()) {
    return Fact<json>::Unknown("neither /sys/devices/system/cpu/cpu*/cache nor CPUID lists caches");
  }
  json caches = json::array();
  for (const auto& [kind, count] : instances) {
    const auto& [level, type, size_bytes, line_bytes, shared_by] = kind;
    json cache = {{"level", level}, {"type", type}, {"shared_by", shared_by}, {"instances", count}};
    PutPositive(cache, "size_bytes", size_bytes);
    PutPositive(cache, "line_bytes", line_bytes);
    caches.push_back(std::move(cache));
  }
  return Fact<json>::Known(std::move(caches));
}

}  // namespace

void PutTopology(const SystemFiles& files, json& environment) {
  const Fact<Topology> topology = LoadTopology(files);
  if (!topology.known()) {
    for (const char* field : {"packages", "cores", "hardware_threads", "threads_per_core",
                              "numa_nodes", "smt_active", "core_kinds"}) {
      PutUnknown(environment["topology"], field, topology.reason());
    }
    PutUnknown(environment, "core_threads", topology.reason());
    PutUnknown(environment, "caches", topology.reason());
    return;
  }
  environment["topology"] = DescribeTopology(files, topology.value().get());
  PutFact(environment, "core_threads", CoreThreads(topology.value().get()));
  PutFact(environment, "caches", DescribeCaches(topology.value().get()));
}

std::optional<Fact<std::string>> CoreKindOf(const SystemFiles& files, int cpu) {
  using Kind = Fact<std::string>;
  bool is_hybrid = false;
  for (const char* name : kHybridKinds) {
    const Fact<std::vector<int>> cpus = files.ReadCpuList(HybridDirectory(name) + "/cpus");
    is_hybrid |= files.Exists(HybridDirectory(name));
    if (!cpus.known()) continue;
    if (std::find(cpus.value().begin(), cpus.value().end(), cpu) != cpus.value().end()) {
      return Kind::Known(name);
    }
  }
  if (is_hybrid) return Kind::Unknown(fmt::format("no /sys/devices/cpu_*/cpus lists CPU {}", cpu));

  constexpr std::string_view kCpus = "/sys/devices/system/cpu";
  const auto capacity_of = [&](std::string_view cpu_name) {
    return files.ReadInteger(fmt::format("{}/{}/cpu_capacity", kCpus, cpu_name));
  };
  const Fact<int64_t> capacity = capacity_of(fmt::format("cpu{}", cpu));
  if (!capacity.known()) return std::nullopt;
  const Fact<std::vector<std::string>> names = files.List(kCpus);
  if (!names.known()) return std::nullopt;
  for (const std::string& name : names.value()) {
    const Fact<int64_t> other = capacity_of(name);
    if (other.known() && other.value() != capacity.value()) {
      return Kind::Known(fmt::format("capacity_{}", capacity.value()));
    }
  }
  return std::nullopt;
}

}  // namespace filterbench
