#include "harness/machine/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>

#include "harness/machine/fact.h"
#include "harness/machine/system_files.h"

namespace filterbench {
namespace {

using nlohmann::json;

bool Holds(const json& value, const std::string*) { return value.is_string(); }
bool Holds(const json& value, const double*) { return value.is_number(); }
bool Holds(const json& value, const int64_t*) { return value.is_number_integer(); }
bool Holds(const json& value, const bool*) { return value.is_boolean(); }
bool Holds(const json& value, const json*) { return value.is_structured(); }
bool Holds(const json& value, const std::vector<int>*) {
  return value.is_array() && std::all_of(value.begin(), value.end(),
                                         [](const json& item) { return item.is_number_integer(); });
}

// The fact at "a/b"; with a null on the way, the reason that stands beside the null.
template <typename T>
Fact<T> Get(const json& document, std::string_view path) {
  const json* value = &document;
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::string name(rest.substr(0, rest.find('/')));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    if (!value->is_object() || !value->contains(name)) {
      return Fact<T>::Unknown(fmt::format("{} is not recorded", path));
    }
    const json& parent = *value;
    value = &parent[name];
    if (value->is_null()) {
      const auto reason = parent.find(name + "_reason");
      return Fact<T>::Unknown(reason != parent.end() && reason->is_string()
                                  ? reason->template get<std::string>()
                                  : fmt::format("{} is null without a reason", path));
    }
  }
  if (!Holds(*value, static_cast<const T*>(nullptr))) {
    return Fact<T>::Unknown(fmt::format("{} is recorded as {:.40}", path, value->dump()));
  }
  return Fact<T>::Known(value->template get<T>());
}

enum class Guest { kNo, kYes, kUnknown };

struct Machine {
  const json& environment;
  const json& provenance;
  Guest guest = Guest::kUnknown;

  template <typename T>
  Fact<T> Get(std::string_view path) const {
    return filterbench::Get<T>(environment, path);
  }
  // The CPU to be measured on.
  Fact<int64_t> Cpu() const { return Get<int64_t>("activity/cpu"); }
};

struct Verdict {
  FindingState state = FindingState::kUnknown;
  std::string found;
  std::string remedy;
  std::string command;
};

Verdict Pass(std::string found) { return {FindingState::kPass, std::move(found), "", ""}; }
Verdict Warn(std::string found, std::string remedy, std::string command = "") {
  return {FindingState::kWarn, std::move(found), std::move(remedy), std::move(command)};
}
Verdict Fail(std::string found, std::string remedy, std::string command = "") {
  return {FindingState::kFail, std::move(found), std::move(remedy), std::move(command)};
}
Verdict Unknown(std::string reason, std::string remedy, std::string command = "") {
  return {FindingState::kUnknown, std::move(reason), std::move(remedy), std::move(command)};
}

constexpr char kSeeReason[] = "make what the reason names readable";

bool IsOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string Percent(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string KernelParameterCommand(std::string_view parameter) {
  return fmt::format(
      "echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {}\"' >> /etc/default/grub\n"
      "update-grub && reboot",
      parameter);
}

constexpr char kTopCommand[] = "top -b -n 1 -o %CPU | head -n 15";

Verdict ExamineGovernor(const Machine& machine) {
  const Fact<std::string> governor = machine.Get<std::string>("frequency/governor");
  if (!governor.known()) {
    if (machine.guest == Guest::kYes) {
      return Unknown(governor.reason(),
                     "no command inside of the guest helps: the host governs the clock; "
                     "frequency_drift tells what comes of it");
    }
    return Unknown(governor.reason(), "load a frequency driver, where the firmware offers one",
                   "modprobe acpi-cpufreq");
  }
  const Fact<std::string> driver = machine.Get<std::string>("frequency/driver");
  const bool cpu_raises_clock =
      driver.known() && IsOneOf(driver.value(), {"intel_pstate", "amd-pstate-epp"});
  bool fails = false;
  bool warns = false;
  std::string_view rest = governor.value();
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    if (word == "userspace" || (word == "powersave" && cpu_raises_clock)) {
      warns = true;
    } else if (IsOneOf(word, {"powersave", "ondemand", "conservative", "schedutil"})) {
      fails = true;
    } else if (word != "performance") {
      return Unknown(
          fmt::format("'{:.40}' is no governor that is known here", word),
          "choose the governor performance",
          "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
    }
  }
  std::string found =
      fmt::format("{}, driver {}", governor.value(), driver.known() ? driver.value() : "unknown");
  if (!fails && !warns) return Pass(std::move(found));
  return {fails ? FindingState::kFail : FindingState::kWarn, std::move(found),
          "let all CPUs run at their highest clock (or: cpupower frequency-set -g performance, of "
          "the package linux-cpupower)",
          "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"};
}

Verdict ExamineBoost(const Machine& machine) {
  const Fact<bool> boost = machine.Get<bool>("frequency/boost");
  if (!boost.known()) {
    return Unknown(boost.reason(),
                   machine.guest == Guest::kYes
                       ? "no command inside of the guest helps: the host decides about boost"
                       : "switch boost (turbo) off in the firmware");
  }
  if (!boost.value()) return Pass("off");
  const Fact<std::string> source = machine.Get<std::string>("frequency/boost_source");
  const bool is_no_turbo = source.known() && source.value().ends_with("no_turbo");
  return Warn("on", "switch it off while measuring",
              is_no_turbo ? "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"
                          : "echo 0 > /sys/devices/system/cpu/cpufreq/boost");
}

// The share of the time that a CPU was busy while watched.
Fact<double> BusyShare(const Machine& machine, int64_t cpu) {
  return machine.Get<double>(fmt::format("activity/cpu_busy_shares/{}", cpu));
}

Verdict ExamineSmt(const Machine& machine) {
  constexpr double kBusy = 0.05;
  const Fact<int64_t> cpu = machine.Cpu();
  if (!cpu.known()) return Unknown(cpu.reason(), kSeeReason);
  const Fact<json> cores = machine.Get<json>("topology/core_threads");
  if (!cores.known()) return Unknown(cores.reason(), kSeeReason);
  std::optional<std::vector<int64_t>> siblings;
  for (const json& core : cores.value()) {
    if (!Holds(core, static_cast<const std::vector<int>*>(nullptr))) continue;
    std::vector<int64_t> threads = core;
    const auto self = std::find(threads.begin(), threads.end(), cpu.value());
    if (self == threads.end()) continue;
    threads.erase(self);
    siblings = std::move(threads);
  }
  if (!siblings) {
    return Unknown(fmt::format("no core is known that CPU {} is part of", cpu.value()), kSeeReason);
  }
  if (siblings->empty()) {
    if (machine.guest == Guest::kNo) {
      return Pass(fmt::format("CPU {} has its core to itself", cpu.value()));
    }
    return Unknown(
        fmt::format("CPU {} is shown without a sibling; a hypervisor may hide one", cpu.value()),
        "no command inside of the guest tells: ask for a whole core from the host");
  }
  Fact<double> busy = Fact<double>::Known(0);
  for (const int64_t sibling : *siblings) {
    const Fact<double> share = BusyShare(machine, sibling);
    if (!share.known()) {
      busy = share;
      break;
    }
    busy = Fact<double>::Known(std::max(busy.value(), share.value()));
  }
  const bool is_busy = busy.known() && busy.value() > kBusy;
  // CPU 0 cannot be switched off on its own; of its core, the other threads can.
  const bool with_cpu_0 = std::find(siblings->begin(), siblings->end(), 0) != siblings->end();
  std::string command;
  if (with_cpu_0) {
    command = "echo off > /sys/devices/system/cpu/smt/control";
  } else {
    for (const int64_t sibling : *siblings) {
      command += fmt::format("{}echo 0 > /sys/devices/system/cpu/cpu{}/online",
                             command.empty() ? "" : "\n", sibling);
    }
  }
  return {
      is_busy ? FindingState::kFail : FindingState::kWarn,
      fmt::format(
          "CPU {} shares its core with CPU {}, {}", cpu.value(), fmt::join(*siblings, ", "),
          busy.known() ? "busy for " + Percent(busy.value()) : "of unknown load: " + busy.reason()),
      with_cpu_0 ? "switch SMT off and measure on CPU 0; the load on it goes elsewhere first"
                 : "switch the sibling off while measuring (1 instead of 0 brings it back)",
      std::move(command)};
}

Verdict ExamineTransparentHugePages(const Machine& machine) {
  constexpr char kCommand[] = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  const Fact<std::string> mode = machine.Get<std::string>("pages/transparent_huge_pages");
  if (!mode.known()) return Unknown(mode.reason(), kSeeReason);
  if (mode.value() == "never") {
    return Fail("never", "let tables that ask for them have them", kCommand);
  }
  if (!IsOneOf(mode.value(), {"always", "madvise"})) {
    return Unknown(fmt::format("'{:.40}' is no mode that is known here", mode.value()),
                   "let tables that ask for them have them", kCommand);
  }
  constexpr char kDefragCommand[] = "echo madvise > /sys/kernel/mm/transparent_hugepage/defrag";
  const Fact<std::string> defrag = machine.Get<std::string>("pages/transparent_huge_pages_defrag");
  if (!defrag.known()) return Unknown(defrag.reason(), kSeeReason);
  std::string found = fmt::format("{}, defrag {}", mode.value(), defrag.value());
  if (IsOneOf(defrag.value(), {"never", "defer"})) {
    return Warn(std::move(found), "let the kernel make room for them at the first fault",
                kDefragCommand);
  }
  if (!IsOneOf(defrag.value(), {"always", "madvise", "defer+madvise"})) {
    return Unknown(fmt::format("'{:.40}' is no mode of defrag that is known here", defrag.value()),
                   "let the kernel make room for them at the first fault", kDefragCommand);
  }
  return Pass(std::move(found));
}

Verdict ExamineHugePages(const Machine& machine) {
  constexpr char kCommand[] = "sysctl -w vm.nr_hugepages=512";
  constexpr char kRemedy[] = "reserve some, 512 of 2 MiB for 1 GiB of tables; best after a boot";
  const Fact<int64_t> total = machine.Get<int64_t>("pages/huge_pages_total");
  if (!total.known()) return Unknown(total.reason(), kSeeReason);
  const Fact<int64_t> free = machine.Get<int64_t>("pages/huge_pages_free");
  if (!free.known()) return Unknown(free.reason(), kSeeReason);
  const Fact<int64_t> bytes = machine.Get<int64_t>("pages/huge_page_bytes");
  if (!bytes.known()) return Unknown(bytes.reason(), kSeeReason);
  if (total.value() == 0) return Warn("none reserved", kRemedy, kCommand);
  std::string found = fmt::format("{} of {} free, of {} KiB each", free.value(), total.value(),
                                  bytes.value() / 1024);
  if (free.value() == 0) return Warn(std::move(found), kRemedy, kCommand);
  return Pass(std::move(found));
}

Verdict ExamineAslr(const Machine& machine) {
  const Fact<int64_t> mode = machine.Get<int64_t>("aslr");
  if (!mode.known()) return Unknown(mode.reason(), kSeeReason);
  const Fact<bool> disabled = machine.Get<bool>("aslr_disabled_for_process");
  if (mode.value() != 2) {
    return Warn(fmt::format("{} (kernel.randomize_va_space = {})",
                            mode.value() == 0 ? "off" : "not for the heap", mode.value()),
                "let every process have another layout", "sysctl -w kernel.randomize_va_space=2");
  }
  if (!disabled.known()) return Unknown(disabled.reason(), kSeeReason);
  if (disabled.value()) {
    return Warn("on, but switched off for this process",
                "start without setarch -R, and outside of a debugger");
  }
  return Pass("on: every process has another layout");
}

Verdict ExamineLoad(const Machine& machine) {
  constexpr double kWarnPerCpu = 0.25;
  constexpr double kFailPerCpu = 1;
  const Fact<json> load = machine.Get<json>("load_average");
  if (!load.known()) return Unknown(load.reason(), kSeeReason);
  if (!load.value().is_array() || load.value().empty() || !load.value()[0].is_number()) {
    return Unknown("load_average is not recorded as numbers", kSeeReason);
  }
  const Fact<int64_t> cpus = machine.Get<int64_t>("topology/hardware_threads");
  if (!cpus.known()) return Unknown(cpus.reason(), kSeeReason);
  const double minute = load.value()[0];
  std::string found = fmt::format("{:.2f} over the last minute, on {} CPUs", minute, cpus.value());
  const double per_cpu = minute / static_cast<double>(std::max<int64_t>(cpus.value(), 1));
  if (per_cpu < kWarnPerCpu) return Pass(std::move(found));
  return {per_cpu < kFailPerCpu ? FindingState::kWarn : FindingState::kFail, std::move(found),
          "end what is running, and wait for a minute or two", kTopCommand};
}

Verdict ExamineSteal(const Machine& machine) {
  constexpr double kFail = 0.05;
  constexpr double kWarnSinceBoot = 0.01;
  constexpr char kRemedy[] =
      "no command inside of the guest helps: ask for CPUs of its own (pinned, not overcommitted)";
  const Fact<double> now = machine.Get<double>("activity/steal_share");
  if (!now.known()) return Unknown(now.reason(), kRemedy);
  const Fact<double> since_boot = machine.Get<double>("activity/steal_share_since_boot");
  if (!since_boot.known() && now.value() < kFail) return Unknown(since_boot.reason(), kRemedy);
  std::string found =
      fmt::format("{} while watched, {} since boot", Percent(now.value()),
                  since_boot.known() ? Percent(since_boot.value()) : std::string("unknown"));
  if (now.value() >= kFail) return Fail(std::move(found), kRemedy);
  if (now.value() > 0 || since_boot.value() >= kWarnSinceBoot) {
    return Warn(std::move(found), kRemedy);
  }
  return Pass(std::move(found));
}

constexpr char kLeaveGroupRemedy[] =
    "run outside of the limited group; a container has to be started without --cpus, a Slurm job "
    "with whole nodes";
constexpr char kLeaveGroupCommand[] =
    "systemd-run --scope --slice=filterbench.slice filterbench run SPEC";

// The two reasons of CgroupCpuQuota and CgroupMemoryLimitBytes for no limit.
bool IsUnlimited(const std::string& reason) { return reason == "unlimited"; }
bool MayBeLimitedOutside(const std::string& reason) { return !IsUnlimited(reason); }

Verdict ExamineCgroupQuota(const Machine& machine) {
  const Fact<double> quota = machine.Get<double>("cgroup_cpu_quota");
  if (!quota.known()) {
    if (MayBeLimitedOutside(quota.reason())) {
      return Unknown(quota.reason(), "look at it from outside of the container",
                     "systemd-cgtop -n 1 -d 1");
    }
    return Pass("unlimited");
  }
  std::string found = fmt::format("{:.2f} CPUs", quota.value());
  if (quota.value() < 1) {
    return Fail(std::move(found), kLeaveGroupRemedy, kLeaveGroupCommand);
  }
  return Warn(std::move(found) + ", shared by all of the group", kLeaveGroupRemedy,
              kLeaveGroupCommand);
}

Verdict ExamineCgroupThrottling(const Machine& machine) {
  const Fact<int64_t> now = machine.Get<int64_t>("activity/throttled_periods");
  const Fact<int64_t> before = machine.Get<int64_t>("activity/throttled_periods_before");
  if (!now.known() || !before.known()) {
    const Fact<double> quota = machine.Get<double>("cgroup_cpu_quota");
    if (!quota.known() && IsUnlimited(quota.reason())) return Pass("never: there is no quota");
    return Unknown(now.known() ? before.reason() : now.reason(), kSeeReason);
  }
  std::string found =
      fmt::format("{} periods while watched, {} before", now.value(), before.value());
  if (now.value() > 0) return Fail(std::move(found), kLeaveGroupRemedy, kLeaveGroupCommand);
  if (before.value() > 0) return Warn(std::move(found), kLeaveGroupRemedy, kLeaveGroupCommand);
  return Pass(std::move(found));
}

// Names: Linux, drivers/clocksource, arch/x86/kernel, arch/arm64.
Verdict ExamineClockSource(const Machine& machine) {
  const Fact<std::string> source = machine.Get<std::string>("clock/source");
  if (!source.known()) return Unknown(source.reason(), kSeeReason);
  const std::string& name = source.value();
  if (IsOneOf(name, {"tsc", "arch_sys_counter", "timebase", "riscv_clocksource"})) {
    return Pass(name);
  }
  const Fact<json> available = machine.Get<json>("clock/available_sources");
  const bool tsc_offered = available.known() && available.value().is_array() &&
                           std::find(available.value().begin(), available.value().end(), "tsc") !=
                               available.value().end();
  const std::string remedy =
      tsc_offered
          ? "take the time stamp counter"
          : "the kernel does not offer tsc; where the CPU has constant_tsc and nonstop_tsc, "
            "a boot parameter makes it trust that";
  const std::string command =
      tsc_offered ? "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"
                  : KernelParameterCommand("tsc=reliable");
  if (IsOneOf(name, {"kvm-clock", "xen", "hyperv_clocksource_tsc_page"})) {
    return Warn(name, remedy, command);
  }
  if (IsOneOf(name, {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit", "tsc-early",
                     "hyperv_clocksource_msr", "vmware-clocksource"})) {
    return Fail(name, remedy, command);
  }
  return Unknown(fmt::format("'{:.40}' is no clock source that is known here", name), remedy,
                 command);
}

Verdict ExamineTimer(const Machine& machine) {
  constexpr int64_t kWarnNs = 100;
  constexpr int64_t kFailNs = 1000;
  constexpr char kRemedy[] =
      "mend clock_source; the boot parameter highres=off must not be set either";
  const Fact<int64_t> resolution = machine.Get<int64_t>("clock/resolution_ns");
  if (!resolution.known()) return Unknown(resolution.reason(), kRemedy);
  const Fact<int64_t> step = machine.Get<int64_t>("clock/smallest_step_ns");
  if (!step.known()) return Unknown(step.reason(), kRemedy);
  std::string found =
      fmt::format("steps of {} ns, resolution {} ns", step.value(), resolution.value());
  if (step.value() <= 0 || resolution.value() <= 0) return Unknown(std::move(found), kRemedy);
  const int64_t worst = std::max(step.value(), resolution.value());
  if (worst > kFailNs) return Fail(std::move(found), kRemedy, "cat /proc/cmdline");
  if (worst > kWarnNs) return Warn(std::move(found), kRemedy, "cat /proc/cmdline");
  return Pass(std::move(found));
}

Verdict ExamineMemory(const Machine& machine) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  constexpr int64_t kFailBytes = 512 * kMiB;
  constexpr int64_t kWarnBytes = 2048 * kMiB;
  constexpr char kRemedy[] = "end what holds memory; this shows it";
  constexpr char kCommand[] = "ps -eo rss,pid,comm --sort=-rss | head";
  const Fact<int64_t> total = machine.Get<int64_t>("memory/total_bytes");
  if (!total.known()) return Unknown(total.reason(), kSeeReason);
  const Fact<int64_t> available = machine.Get<int64_t>("memory/available_bytes");
  if (!available.known()) return Unknown(available.reason(), kSeeReason);
  const Fact<int64_t> limit = machine.Get<int64_t>("memory/cgroup_limit_bytes");
  int64_t usable = available.value();
  std::string found =
      fmt::format("{} of {} MiB available", available.value() / kMiB, total.value() / kMiB);
  if (limit.known()) {
    usable = std::min(usable, limit.value());
    found += fmt::format(", cgroup limit {} MiB", limit.value() / kMiB);
  }
  if (usable < kFailBytes) return Fail(std::move(found), kRemedy, kCommand);
  if (usable < kWarnBytes || available.value() < total.value() / 10) {
    return Warn(std::move(found), kRemedy, kCommand);
  }
  if (!limit.known() && MayBeLimitedOutside(limit.reason())) {
    return Unknown(
        fmt::format("{}; the limit of the group is not known: {}", found, limit.reason()),
        "look at it from outside of the container", "systemd-cgtop -m -n 1 -d 1");
  }
  return Pass(std::move(found));
}

Verdict ExamineSwap(const Machine& machine) {
  constexpr char kRemedy[] = "take back what is swapped out (needs as much free memory)";
  constexpr char kCommand[] = "swapoff -a && swapon -a";
  const Fact<int64_t> total = machine.Get<int64_t>("memory/swap_total_bytes");
  if (!total.known()) return Unknown(total.reason(), kSeeReason);
  const Fact<int64_t> free = machine.Get<int64_t>("memory/swap_free_bytes");
  if (!free.known()) return Unknown(free.reason(), kSeeReason);
  if (total.value() == 0) return Pass("none");
  const int64_t used_bytes = total.value() - free.value();
  const Fact<int64_t> moved = machine.Get<int64_t>("activity/swapped_pages");
  const std::string found =
      fmt::format("{} of {} KiB used, {} pages moved while watched", used_bytes / 1024,
                  total.value() / 1024, moved.known() ? std::to_string(moved.value()) : "unknown");
  if (used_bytes < 0) return Unknown(found, kSeeReason);
  if (moved.known() && moved.value() > 0) return Fail(found, kRemedy, kCommand);
  if (used_bytes > 0) return Warn(found, kRemedy, kCommand);
  if (!moved.known()) return Unknown(moved.reason(), kSeeReason);
  return Pass(found);
}

// assert() stays in release builds by design (CMakeLists.txt): it does not make a build unfit.
Verdict ExamineBuild(const Machine& machine) {
  constexpr char kRemedy[] = "build what is meant to be measured, in the source tree";
  constexpr char kCommand[] = "cmake --preset release && cmake --build --preset release";
  const Fact<std::string> type = Get<std::string>(machine.provenance, "build_type");
  if (type.known() && type.value() == "Debug") return Fail("build type Debug", kRemedy, kCommand);
  const Fact<std::string> flags = Get<std::string>(machine.provenance, "flags");
  if (!flags.known()) return Unknown(flags.reason(), kRemedy, kCommand);
  std::string_view level;
  bool checks_library = false;
  for (const std::string_view flag : SplitAtBlanks(flags.value())) {
    if (flag.starts_with("-fsanitize") || flag == "--coverage" || flag == "-pg" ||
        flag.starts_with("-fprofile-arcs") || flag.starts_with("-fprofile-instr-generate") ||
        flag.starts_with("-D_GLIBCXX_DEBUG")) {
      return Fail(fmt::format("instrumented: {}", flag), kRemedy, kCommand);
    }
    if (flag.starts_with("-O")) level = flag;
    checks_library |= flag.starts_with("-D_GLIBCXX_ASSERTIONS");
  }
  if (level.empty() || level == "-O0" || level == "-Og") {
    return Fail(fmt::format("not optimised: '{:.60}'", flags.value()), kRemedy, kCommand);
  }
  if (!type.known()) return Unknown(type.reason(), kRemedy, kCommand);
  std::string found = fmt::format("{}, {}", type.value(), flags.value());
  if (IsOneOf(level, {"-O2", "-O3", "-Ofast"}) && !checks_library) return Pass(std::move(found));
  return Warn(std::move(found), kRemedy, kCommand);
}

Verdict ExamineHypervisor(const Machine& machine) {
  const Fact<std::string> hypervisor = machine.Get<std::string>("hypervisor");
  if (!hypervisor.known()) {
    return Unknown(hypervisor.reason(), "ask systemd, which knows more ways to find out",
                   "systemd-detect-virt");
  }
  if (machine.guest == Guest::kNo) return Pass("none: bare metal");
  return Warn(fmt::format("a guest of {}", hypervisor.value()),
              "no command inside of the guest helps: measure on bare metal, or on a host of its "
              "own; compare ratios to the floor rather than times");
}

Verdict ExamineMitigations(const Machine& machine) {
  const Fact<json> mitigations = machine.Get<json>("mitigations");
  if (!mitigations.known()) return Unknown(mitigations.reason(), kSeeReason);
  if (!mitigations.value().is_object()) {
    return Unknown("mitigations are not recorded by name", kSeeReason);
  }
  size_t known = 0;
  size_t mitigated = 0;
  for (const auto& [name, state] : mitigations.value().items()) {
    if (name.ends_with("_reason")) continue;
    if (!state.is_string()) {
      return Unknown(Get<std::string>(mitigations.value(), name).reason(), kSeeReason);
    }
    ++known;
    mitigated += state.get<std::string>().find("Mitigation") != std::string::npos ? 1 : 0;
  }
  const std::string count = fmt::format("{} of {} vulnerabilities are mitigated", mitigated, known);
  constexpr char kGather[] = "gather_data_sampling";
  if (!mitigations.value().contains(kGather)) {
    const Fact<std::string> vendor = machine.Get<std::string>("cpu/vendor");
    if (vendor.known() && vendor.value() != "GenuineIntel") return Pass(count);
    return Unknown(count + "; this kernel does not tell about gather_data_sampling",
                   "take a kernel from 6.5 or 6.1.44 on", "apt-get install linux-image-amd64");
  }
  const std::string gather = mitigations.value()[kGather];
  std::string found = fmt::format("{}; gather_data_sampling: {:.60}", count, gather);
  if (gather.starts_with("Mitigation")) {
    if (machine.guest == Guest::kYes) {
      return Warn(std::move(found), "no command inside of the guest helps: the host decides");
    }
    return Warn(std::move(found), "on a machine that runs nothing else, boot without it",
                KernelParameterCommand("gather_data_sampling=off"));
  }
  if (gather.starts_with("Not affected") || gather.starts_with("Vulnerable")) {
    return Pass(std::move(found));
  }
  return Unknown(std::move(found), machine.guest == Guest::kYes
                                       ? "no command inside of the guest tells: ask the host"
                                       : kSeeReason);
}

Verdict ExamineFrequencyDrift(const Machine& machine) {
  constexpr double kWarn = 0.02;
  constexpr double kFail = 0.05;
  const Fact<double> low = machine.Get<double>("activity/core_clock_mhz_low");
  const Fact<double> high = machine.Get<double>("activity/core_clock_mhz_high");
  constexpr char kRemedy[] = "mend governor, boost, thermal and measured_cpu";
  if (!low.known()) return Unknown(low.reason(), kRemedy);
  if (!high.known()) return Unknown(high.reason(), kRemedy);
  if (low.value() <= 0 || high.value() < low.value()) {
    return Unknown("the core clock is recorded as no range", kRemedy);
  }
  const double drift = high.value() / low.value() - 1;
  std::string found = fmt::format("core clock {:.0f} to {:.0f} MHz while watched ({})", low.value(),
                                  high.value(), Percent(drift));
  if (drift < kWarn) return Pass(std::move(found));
  return {drift < kFail ? FindingState::kWarn : FindingState::kFail, std::move(found), kRemedy, ""};
}

Verdict ExamineMeasuredCpu(const Machine& machine) {
  constexpr double kWarn = 0.01;
  constexpr double kFail = 0.05;
  const Fact<int64_t> cpu = machine.Cpu();
  if (!cpu.known()) return Unknown(cpu.reason(), kSeeReason);
  const Fact<double> obtained = machine.Get<double>("activity/obtained_share");
  if (!obtained.known()) return Unknown(obtained.reason(), kSeeReason);
  const double lost = 1 - obtained.value();
  std::string found = fmt::format("others take {} of CPU {}", Percent(lost), cpu.value());
  if (lost < kWarn) return Pass(std::move(found));
  return {lost < kFail ? FindingState::kWarn : FindingState::kFail, std::move(found),
          "end what runs there, or measure on another CPU", kTopCommand};
}

Verdict ExamineOtherCpus(const Machine& machine) {
  constexpr double kWarn = 0.05;
  constexpr double kFail = 0.25;
  const Fact<json> shares = machine.Get<json>("activity/cpu_busy_shares");
  if (!shares.known()) return Unknown(shares.reason(), kSeeReason);
  const Fact<int64_t> cpu = machine.Cpu();
  if (!cpu.known()) return Unknown(cpu.reason(), kSeeReason);
  const Fact<int64_t> cpus = machine.Get<int64_t>("topology/hardware_threads");
  if (!cpus.known()) return Unknown(cpus.reason(), kSeeReason);
  double sum = 0;
  int64_t others = 0;
  for (const auto& [name, share] : shares.value().items()) {
    if (!share.is_number() || name == std::to_string(cpu.value())) continue;
    sum += share.get<double>();
    ++others;
  }
  if (cpus.value() == 1 && others == 0) return Pass("there are none");
  if (others < cpus.value() - 1) {
    return Unknown(fmt::format("/proc/stat tells of {} of {} other CPUs", others, cpus.value() - 1),
                   kSeeReason);
  }
  const double busy = sum / static_cast<double>(others);
  std::string found = fmt::format("{} busy", Percent(busy));
  const Fact<json> largest = machine.Get<json>("activity/largest_process_shares");
  if (largest.known() && largest.value().is_array() && !largest.value().empty() &&
      largest.value()[0].is_number()) {
    found += fmt::format("; the largest process takes {} of a CPU",
                         Percent(largest.value()[0].get<double>()));
  }
  if (busy < kWarn) return Pass(std::move(found));
  return {busy < kFail ? FindingState::kWarn : FindingState::kFail, std::move(found),
          "end what is running; this shows it", kTopCommand};
}

Verdict ExamineIsolation(const Machine& machine) {
  const Fact<int64_t> cpu = machine.Cpu();
  if (!cpu.known()) return Unknown(cpu.reason(), kSeeReason);
  const Fact<std::vector<int>> isolated = machine.Get<std::vector<int>>("isolated_cpus");
  if (!isolated.known()) return Unknown(isolated.reason(), kSeeReason);
  const std::vector<int>& cpus = isolated.value();
  if (std::find(cpus.begin(), cpus.end(), cpu.value()) != cpus.end()) {
    return Pass(fmt::format("CPU {} is isolated", cpu.value()));
  }
  if (!cpus.empty()) {
    return Warn(fmt::format("CPU {} is not isolated; CPU {} is", cpu.value(), cpus.back()),
                "measure on an isolated one",
                fmt::format("taskset -c {} filterbench run SPEC", cpus.back()));
  }
  if (machine.Get<int64_t>("topology/hardware_threads").known() &&
      machine.Get<int64_t>("topology/hardware_threads").value() == 1) {
    return Warn("the only CPU cannot be isolated", "no command helps: measure on a larger machine");
  }
  return Warn(
      fmt::format("CPU {} is not isolated", cpu.value()),
      fmt::format("keep other work away from boot on; then start with taskset -c {}", cpu.value()),
      KernelParameterCommand(fmt::format("isolcpus={} nohz_full={}", cpu.value(), cpu.value())));
}

Verdict ExaminePower(const Machine& machine) {
  const Fact<bool> on_battery = machine.Get<bool>("on_battery");
  if (!on_battery.known()) return Unknown(on_battery.reason(), kSeeReason);
  if (on_battery.value()) {
    return Fail("on battery", "no command helps: plug the power supply in");
  }
  return Pass("not on battery");
}

Verdict ExamineThermal(const Machine& machine) {
  const Fact<int64_t> now = machine.Get<int64_t>("activity/thermal_throttles");
  const Fact<int64_t> before = machine.Get<int64_t>("activity/thermal_throttles_before");
  if (!now.known() || !before.known()) {
    return Unknown(now.known() ? before.reason() : now.reason(),
                   machine.guest == Guest::kYes
                       ? "no command inside of the guest helps: the host keeps the counters"
                       : "the kernel counts this for Intel's CPUs only; frequency_drift shows it");
  }
  std::string found = fmt::format("{} while watched, {} before", now.value(), before.value());
  constexpr char kRemedy[] =
      "improve the cooling, or cap the clock at the base frequency by switching boost off";
  if (now.value() > 0) return Fail(std::move(found), kRemedy);
  if (before.value() > 0) return Warn(std::move(found), kRemedy);
  return Pass(std::move(found));
}

struct Check {
  const char* name;
  const char* why;
  Verdict (*examine)(const Machine&);
};

constexpr Check kChecks[] = {
    {"governor", "a governor that follows the load changes the clock during a measurement",
     ExamineGovernor},
    {"boost", "how far the clock rises depends on heat and on what other cores do", ExamineBoost},
    {"smt", "a busy sibling takes half of the core and of its caches", ExamineSmt},
    {"transparent_huge_pages",
     "without huge pages lookups in large tables measure misses of the TLB",
     ExamineTransparentHugePages},
    {"huge_pages", "points that ask for pages of hugetlbfs need reserved ones", ExamineHugePages},
    {"aslr", "intervals cover the luck of the address layout only if every process has another one",
     ExamineAslr},
    {"load", "other work takes CPU time, caches and memory bandwidth", ExamineLoad},
    {"steal", "time that the hypervisor gives to others counts as ours", ExamineSteal},
    {"cgroup_quota", "a process that has used up its quota stands still for up to 100 ms",
     ExamineCgroupQuota},
    {"cgroup_throttling", "a throttled process stands still while the clock runs",
     ExamineCgroupThrottling},
    {"clock_source", "slow clocks cost microseconds a reading, coarse ones hide short times",
     ExamineClockSource},
    {"timer", "a time must be 1000 steps long to be told to 0.1 %", ExamineTimer},
    {"memory", "points that do not fit are skipped, and reclaim disturbs those that do",
     ExamineMemory},
    {"swap", "a page that comes back from swap takes as long as 100000 lookups", ExamineSwap},
    {"build", "unoptimised or instrumented code is another program", ExamineBuild},
    {"hypervisor", "other guests share caches, memory bandwidth and the clock; counters are hidden",
     ExamineHypervisor},
    {"mitigations", "microcode against gather data sampling slows every vector gather",
     ExamineMitigations},
    {"frequency_drift", "times in ns are as unsteady as the clock", ExamineFrequencyDrift},
    {"measured_cpu", "each switch to another task takes time and empties caches",
     ExamineMeasuredCpu},
    {"other_cpus", "other CPUs share the last-level cache, memory bandwidth and the power budget",
     ExamineOtherCpus},
    {"isolation", "the scheduler may put other work on the CPU at any time", ExamineIsolation},
    {"power", "on battery the clock is held down, and more so as it empties", ExaminePower},
    {"thermal", "a hot CPU lowers its clock", ExamineThermal},
};

// `text` in lines of at most `width`, broken at blanks; longer words stay whole.
std::vector<std::string> Wrap(std::string_view text, size_t width) {
  std::vector<std::string> lines(1);
  for (const std::string_view word : SplitAtBlanks(text)) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) {
      lines.emplace_back();
    }
    if (!lines.back().empty()) lines.back().push_back(' ');
    lines.back().append(word);
  }
  return lines;
}

constexpr size_t kTextWidth = 96;

// `head`, then `text` beside it, its further lines below its first.
void AppendParagraph(std::string& report, const std::string& head, std::string_view text) {
  const std::string indent(head.size(), ' ');
  const std::string* before = &head;
  for (const std::string& line : Wrap(text, kTextWidth - head.size())) {
    report += *before + line + "\n";
    before = &indent;
  }
}

}  // namespace

std::string_view FindingStateName(FindingState state) {
  switch (state) {
    case FindingState::kPass:
      return "pass";
    case FindingState::kWarn:
      return "warn";
    case FindingState::kFail:
      return "fail";
    case FindingState::kUnknown:
      break;
  }
  return "unknown";
}

std::vector<Finding> Examine(const json& environment, const json& provenance) {
  Machine machine = {environment, provenance};
  const Fact<std::string> hypervisor = machine.Get<std::string>("hypervisor");
  if (hypervisor.known()) machine.guest = hypervisor.value() == "none" ? Guest::kNo : Guest::kYes;
  std::vector<Finding> findings;
  for (const Check& check : kChecks) {
    Verdict verdict = check.examine(machine);
    findings.push_back({check.name, verdict.state, std::move(verdict.found), check.why,
                        std::move(verdict.remedy), std::move(verdict.command)});
  }
  return findings;
}

bool Unfit(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.state == FindingState::kFail; });
}

json FindingsToJson(const std::vector<Finding>& findings) {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? json() : json(text);
  };
  json list = json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"check", finding.check},
                    {"state", FindingStateName(finding.state)},
                    {"found", finding.found},
                    {"why", finding.why},
                    {"remedy", text_or_null(finding.remedy)},
                    {"command", text_or_null(finding.command)}});
  }
  return list;
}

std::string FindingsToText(const std::vector<Finding>& findings) {
  constexpr size_t kStateWidth = 9;
  const std::string indent(kStateWidth, ' ');
  std::string report;
  size_t name_width = 0;
  for (const Finding& finding : findings) name_width = std::max(name_width, finding.check.size());
  std::array<size_t, 4> counts = {};
  for (const Finding& finding : findings) {
    ++counts[static_cast<size_t>(finding.state)];
    AppendParagraph(report,
                    fmt::format("{:<{}}{:<{}}  ", FindingStateName(finding.state), kStateWidth,
                                finding.check, name_width),
                    finding.found);
    if (finding.state == FindingState::kPass) continue;
    AppendParagraph(report, indent + "why   ", finding.why);
    if (!finding.remedy.empty()) AppendParagraph(report, indent + "mend  ", finding.remedy);
    for (const std::string_view line : SplitLines(finding.command)) {
      report += fmt::format("{}# {}\n", indent, line);
    }
  }
  const auto count = [&counts](FindingState state) { return counts[static_cast<size_t>(state)]; };
  report += fmt::format("{} fail, {} warn, {} unknown, {} pass: {}\n", count(FindingState::kFail),
                        count(FindingState::kWarn), count(FindingState::kUnknown),
                        count(FindingState::kPass),
                        Unfit(findings) ? "unfit to be measured on" : "no check fails");
  return report;
}

}  // namespace filterbench
