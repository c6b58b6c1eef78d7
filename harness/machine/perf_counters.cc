#include "harness/machine/perf_counters.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "harness/machine/system_files.h"

namespace filterbench {
namespace {

using nlohmann::json;

struct EventKind {
  const char* name;
  uint32_t type;
  uint64_t config;
  // Events of a group count at the same times, so that their ratios hold under multiplexing too.
  // Groups are small: the smallest PMUs in use have four registers besides that for cycles, and a
  // watchdog may hold one.
  int group;
  // Some virtual PMUs accept every event and count nothing; no program runs without these.
  bool always_moves;
  // Happens in the kernel only. With the kernel excluded it would read 0.
  bool in_kernel_only;
};

bool IsHardware(const EventKind& kind) { return kind.type != PERF_TYPE_SOFTWARE; }

constexpr uint64_t ReadMisses(uint64_t cache) {
  return cache | (uint64_t{PERF_COUNT_HW_CACHE_OP_READ} << 8) |
         (uint64_t{PERF_COUNT_HW_CACHE_RESULT_MISS} << 16);
}

constexpr EventKind kKinds[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, true, false},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0, true, false},
    {"branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 0, false, false},
    {"cache_references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, 1, false, false},
    {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 1, false, false},
    {"llc_read_misses", PERF_TYPE_HW_CACHE, ReadMisses(PERF_COUNT_HW_CACHE_LL), 1, false, false},
    {"l1d_read_misses", PERF_TYPE_HW_CACHE, ReadMisses(PERF_COUNT_HW_CACHE_L1D), 2, false, false},
    {"dtlb_read_misses", PERF_TYPE_HW_CACHE, ReadMisses(PERF_COUNT_HW_CACHE_DTLB), 2, false, false},
    {"task_clock_ns", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 3, true, false},
    {"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 3, false, false},
    {"context_switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 3, false, true},
    {"cpu_migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 3, false, true},
};

std::string ErrorText(int error) { return std::generic_category().message(error); }

std::string ParanoidText(const Fact<int64_t>& paranoid) {
  return paranoid.known() ? fmt::format("kernel.perf_event_paranoid = {}", paranoid.value())
                          : fmt::format("kernel.perf_event_paranoid: {}", paranoid.reason());
}

bool IsForbidden(int error) { return error == EACCES || error == EPERM; }

std::string WhyNotOpened(int error, const Fact<int64_t>& paranoid) {
  switch (error) {
    case EACCES:
      return fmt::format("closed to this user ({}, without CAP_PERFMON)", ParanoidText(paranoid));
    case EPERM:
      return fmt::format("perf_event_open is forbidden here, as by the profile of a container ({})",
                         ParanoidText(paranoid));
    case ENOSYS:
      return "this kernel has no perf_event_open";
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case EOPNOTSUPP:
      return fmt::format("no performance monitoring unit offers it, as in most virtual machines ({})",
                         ErrorText(error));
    case EINVAL:
      return "the kernel does not know the event for this CPU (EINVAL)";
    case EMFILE:
    case ENFILE:
      return fmt::format("no file descriptor is left for it ({}; see ulimit -n)", ErrorText(error));
    default:
      return fmt::format("perf_event_open: {}", ErrorText(error));
  }
}

class SystemCalls : public PerfKernel {
 public:
  int Open(const perf_event_attr& attributes, int leader) override {
    constexpr int kThisThread = 0;
    constexpr int kAnyCpu = -1;
    const long counter = syscall(SYS_perf_event_open, &attributes, kThisThread, kAnyCpu, leader,
                                 PERF_FLAG_FD_CLOEXEC);
    return counter < 0 ? -errno : static_cast<int>(counter);
  }

  int Switch(int leader, bool on) override {
    const unsigned long request = on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
    // Without PERF_IOC_FLAG_GROUP: members stay enabled and go on and off with their leader. With it
    // they are enabled one by one after a leader that runs already, and Linux 6.18 then schedules
    // none of them from the second time on.
    return ioctl(leader, request, 0) < 0 ? -errno : 0;
  }

  int Read(int counter, PerfReading& reading) override {
    uint64_t words[3];  // in the order of `read_format`, see Open
    const ssize_t bytes = read(counter, words, sizeof(words));
    if (bytes < 0) return -errno;
    // Nothing is read from a counter that the kernel has given up.
    if (bytes != sizeof(words)) return -ENODATA;
    reading = {.value = words[0], .enabled_ns = words[1], .running_ns = words[2]};
    return 0;
  }

  void Close(int counter) override { close(counter); }
};

}  // namespace

PerfKernel& LivePerfKernel() {
  static SystemCalls system_calls;
  return system_calls;
}

struct PerfCounters::Event {
  const EventKind* kind;
  int counter = -1;
  std::string reason;  // of a counter that is not open
  bool kernel_excluded = true;
  Fact<PerfReading> before = Fact<PerfReading>::Unknown("counting was not begun");
};

PerfCounters::PerfCounters(PerfKernel& kernel, const std::filesystem::path& root)
    : kernel_(kernel) {
  const Fact<int64_t> paranoid =
      SystemFiles(root).ReadInteger("/proc/sys/kernel/perf_event_paranoid");
  int group = -1;
  int leader = -1;
  for (const EventKind& kind : kKinds) {
    if (kind.group != group) leader = -1;
    group = kind.group;
    events_.emplace_back().kind = &kind;
    Open(events_.back(), leader, paranoid);
  }
}

PerfCounters::~PerfCounters() {
  // Members before their leader.
  for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
    if (event->counter >= 0) kernel_.Close(event->counter);
  }
}

void PerfCounters::Open(Event& event, int& leader, const Fact<int64_t>& paranoid) {
  const EventKind& kind = *event.kind;
  perf_event_attr attributes = {};
  attributes.size = sizeof(attributes);
  attributes.type = kind.type;
  attributes.config = kind.config;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.inherit = 1;
  attributes.exclude_hv = 1;

  const auto open = [&](bool exclude_kernel) {
    attributes.exclude_kernel = exclude_kernel;
    attributes.disabled = leader < 0;  // members follow their leader
    int counter = kernel_.Open(attributes, leader);
    if (counter == -EINVAL && leader >= 0) {
      // The PMU has no room for a group of this size.
      attributes.disabled = 1;
      counter = kernel_.Open(attributes, -1);
      if (counter >= 0) leader = -1;
    }
    event.kernel_excluded = exclude_kernel;
    return counter;
  };

  // What a timer interrupt does is not the filter's; and so a hardware event means the same
  // whatever the user may see.
  int counter = open(/*exclude_kernel=*/IsHardware(kind));
  if (!IsHardware(kind) && counter < 0 && IsForbidden(-counter)) {
    counter = open(/*exclude_kernel=*/true);
    if (counter >= 0 && kind.in_kernel_only) {
      kernel_.Close(counter);
      event.reason = fmt::format("happens in the kernel, whose events are closed to this user ({})",
                                 ParanoidText(paranoid));
      return;
    }
  }
  if (counter < 0) {
    event.reason = WhyNotOpened(-counter, paranoid);
    return;
  }
  event.counter = counter;
  if (leader < 0) {
    leader = counter;
    leaders_.push_back(counter);
  }
}

void PerfCounters::Begin() {
  for (Event& event : events_) {
    if (event.counter >= 0) event.before = Read(event);
  }
  switch_error_ = 0;
}

// Hardware counters are on for the shortest time, since they are what is looked at closely.
void PerfCounters::Resume() {
  for (auto leader = leaders_.rbegin(); leader != leaders_.rend(); ++leader) Switch(*leader, true);
}

void PerfCounters::Pause() {
  for (const int leader : leaders_) Switch(leader, false);
}

void PerfCounters::Switch(int leader, bool on) {
  if (const int result = kernel_.Switch(leader, on); result < 0) switch_error_ = -result;
}

Fact<PerfReading> PerfCounters::Read(const Event& event) const {
  PerfReading reading;
  if (const int result = kernel_.Read(event.counter, reading); result < 0) {
    return Fact<PerfReading>::Unknown(
        fmt::format("the counter cannot be read: {}", ErrorText(-result)));
  }
  return Fact<PerfReading>::Known(reading);
}

// What one event did since Begin, if the readings make sense.
Fact<PerfReading> PerfCounters::Counted(const Event& event) const {
  using Unknown = Fact<PerfReading>;
  if (event.counter < 0) return Unknown::Unknown(event.reason);
  if (switch_error_ != 0) {
    return Unknown::Unknown(
        fmt::format("a counter cannot be switched: {}", ErrorText(switch_error_)));
  }
  if (!event.before.known()) return event.before;
  const Fact<PerfReading> read = Read(event);
  if (!read.known()) return read;
  const PerfReading& before = event.before.value();
  const PerfReading& after = read.value();
  if (after.value < before.value) {
    return Unknown::Unknown(
        fmt::format("the counter fell from {} to {}", before.value, after.value));
  }
  if (after.enabled_ns < before.enabled_ns || after.running_ns < before.running_ns) {
    return Unknown::Unknown("the times of the counter fell");
  }
  const PerfReading counted = {.value = after.value - before.value,
                               .enabled_ns = after.enabled_ns - before.enabled_ns,
                               .running_ns = after.running_ns - before.running_ns};
  if (counted.enabled_ns == 0) return Unknown::Unknown("the counter was never on");
  if (counted.running_ns == 0) {
    return Unknown::Unknown(fmt::format(
        "it never ran during the {} ns that it was on: other counters held the registers, or it "
        "belongs to another kind of core",
        counted.enabled_ns));
  }
  if (counted.running_ns > counted.enabled_ns) {
    return Unknown::Unknown(fmt::format("the counter says that it ran {} ns of {} ns",
                                        counted.running_ns, counted.enabled_ns));
  }
  return Fact<PerfReading>::Known(counted);
}

json PerfCounters::PerOperation(uint64_t operations) const {
  std::vector<Fact<PerfReading>> counted;
  bool hardware_stands_still = false;
  for (const Event& event : events_) {
    counted.push_back(operations == 0 ? Fact<PerfReading>::Unknown("no operation was timed")
                                      : Counted(event));
    hardware_stands_still |= IsHardware(*event.kind) && event.kind->always_moves &&
                             counted.back().known() && counted.back().value().value == 0;
  }
  json counters = json::object();
  for (size_t i = 0; i < events_.size(); ++i) {
    const EventKind& kind = *events_[i].kind;
    json& entry = counters[kind.name];
    if (!counted[i].known()) {
      entry = {{"per_op", nullptr}, {"reason", counted[i].reason()}};
      continue;
    }
    const PerfReading& reading = counted[i].value();
    // Where time passes without cycles, a count of no misses says nothing either.
    if (reading.value == 0 &&
        (kind.always_moves || (IsHardware(kind) && hardware_stands_still))) {
      entry = {{"per_op", nullptr},
               {"reason", fmt::format("the counter stood still while it ran for {} ns",
                                      reading.running_ns)}};
      continue;
    }
    const double running_share =
        static_cast<double>(reading.running_ns) / static_cast<double>(reading.enabled_ns);
    entry = {{"per_op", static_cast<double>(reading.value) / running_share /
                            static_cast<double>(operations)},
             {"running_share", running_share},
             {"kernel_excluded", events_[i].kernel_excluded}};
  }
  return counters;
}

}  // namespace filterbench
