#include "harness/machine/cpu_affinity.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <memory>
#include <system_error>
#include <tuple>

namespace filterbench {
namespace {

// Twice the kernel's largest NR_CPUS on x86-64 (8192).
constexpr int kMaxCpus = 16384;

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using CpuSet = std::unique_ptr<cpu_set_t, FreeCpuSet>;

}  // namespace

std::vector<int> AllowedCpus() {
  const CpuSet set(CPU_ALLOC(kMaxCpus));
  const size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
  CPU_ZERO_S(bytes, set.get());
  std::vector<int> cpus;
  if (sched_getaffinity(0, bytes, set.get()) != 0) return cpus;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (CPU_ISSET_S(cpu, bytes, set.get())) cpus.push_back(cpu);
  }
  return cpus;
}

std::optional<int> DefaultCpu(const std::vector<int>& allowed_cpus,
                              const nlohmann::json& environment) {
  if (allowed_cpus.empty()) return std::nullopt;
  const nlohmann::json::json_pointer path("/topology/core_kinds");
  if (environment.contains(path) && environment[path].is_array()) {
    const nlohmann::json& kinds = environment[path];
    for (auto kind = kinds.rbegin(); kind != kinds.rend(); ++kind) {
      const std::vector<int> cpus = kind->at("cpus");
      const auto last = std::find_if(allowed_cpus.rbegin(), allowed_cpus.rend(), [&](int cpu) {
        return std::find(cpus.begin(), cpus.end(), cpu) != cpus.end();
      });
      if (last != allowed_cpus.rend()) return *last;
    }
  }
  return allowed_cpus.back();
}

std::vector<int> ThreadCpus(const std::vector<int>& allowed_cpus, const nlohmann::json& environment,
                            const SystemFiles& files) {
  const auto is_allowed = [&](int cpu) {
    return std::find(allowed_cpus.begin(), allowed_cpus.end(), cpu) != allowed_cpus.end();
  };
  const nlohmann::json::json_pointer path("/topology/core_kinds");
  const auto kind_of = [&](int cpu) {  // faster ones are greater
    int kind = 0;
    if (!environment.contains(path) || !environment[path].is_array()) return kind;
    for (const nlohmann::json& cpus : environment[path]) {
      ++kind;
      for (const nlohmann::json& one : cpus.at("cpus")) {
        if (one == cpu) return kind;
      }
    }
    return 0;
  };
  // How many threads of its core come before a CPU; higher numbers come first, as in DefaultCpu.
  const auto rank_in_core = [&](int cpu) {
    const Fact<std::vector<int>> siblings = files.ReadCpuList(
        fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    if (!siblings.known()) return ptrdiff_t{0};
    return std::count_if(siblings.value().begin(), siblings.value().end(),
                         [&](int other) { return other > cpu && is_allowed(other); });
  };
  std::vector<std::tuple<ptrdiff_t, int, int>> ranked;
  for (const int cpu : allowed_cpus) ranked.emplace_back(rank_in_core(cpu), -kind_of(cpu), -cpu);
  std::sort(ranked.begin(), ranked.end());

  size_t count = ranked.size();
  if (const auto quota = environment.find("cgroup_cpu_quota");
      quota != environment.end() && quota->is_number()) {
    const double whole = std::max(std::floor(quota->get<double>()), 1.0);
    if (whole < static_cast<double>(count)) count = static_cast<size_t>(whole);
  }
  std::vector<int> cpus;
  for (size_t i = 0; i < count; ++i) cpus.push_back(-std::get<2>(ranked[i]));
  return cpus;
}

std::optional<std::string> PinToCpu(int cpu) {
  if (cpu < 0 || cpu >= kMaxCpus) return fmt::format("{} is not a CPU", cpu);
  const CpuSet set(CPU_ALLOC(kMaxCpus));
  const size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
  CPU_ZERO_S(bytes, set.get());
  CPU_SET_S(cpu, bytes, set.get());
  if (sched_setaffinity(0, bytes, set.get()) != 0) {
    if (errno == EINVAL) {
      return fmt::format("CPU {} does not exist, is offline or is closed to this process", cpu);
    }
    return fmt::format("cannot bind to CPU {}: {}", cpu, std::generic_category().message(errno));
  }
  // Some sandboxes accept the call and ignore it.
  const int now = sched_getcpu();
  if (now != cpu) return fmt::format("bound to CPU {} but running on CPU {}", cpu, now);
  return std::nullopt;
}

}  // namespace filterbench
