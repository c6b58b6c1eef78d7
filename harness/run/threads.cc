#include "harness/run/threads.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "harness/machine/cpu_affinity.h"
#include "harness/machine/fact.h"

namespace filterbench {
namespace {

using Clock = std::chrono::steady_clock;

// Opens when all have come. Waiting threads stay awake: to be woken takes the kernel tens of
// microseconds, and not the same for each. They yield, for the thread that starts the others may
// need their CPU.
class StartGate {
 public:
  explicit StartGate(size_t threads) : missing_(threads) {}

  // False where the start was called off.
  bool Pass() {
    missing_.fetch_sub(1);
    while (missing_.load() != 0) {
      if (is_off_.load()) return false;
      std::this_thread::yield();
    }
    return !is_off_.load();
  }
  void CallOff() { is_off_.store(true); }

 private:
  std::atomic<size_t> missing_;
  std::atomic<bool> is_off_ = false;
};

ThreadUsage UsageOfThisThread() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);  // fails for no thread that asks about itself
  return {.voluntary_switches = usage.ru_nvcsw,
          .involuntary_switches = usage.ru_nivcsw,
          .minor_faults = usage.ru_minflt,
          .major_faults = usage.ru_majflt};
}

void AddDifference(const ThreadUsage& before, const ThreadUsage& after, ThreadUsage& sum) {
  sum.voluntary_switches += after.voluntary_switches - before.voluntary_switches;
  sum.involuntary_switches += after.involuntary_switches - before.involuntary_switches;
  sum.minor_faults += after.minor_faults - before.minor_faults;
  sum.major_faults += after.major_faults - before.major_faults;
}

// What a thread leaves behind, each in lines of its own.
struct alignas(128) Left {
  Clock::time_point start;
  Clock::time_point end;
  ThreadUsage before;
  ThreadUsage after;
  std::optional<std::string> problem;
};

}  // namespace

Result<TogetherRun> RunTogether(std::span<const int> cpus,
                                const std::function<void(size_t thread)>& work) {
  std::vector<Left> left(cpus.size());
  StartGate gate(cpus.size());
  std::vector<std::thread> threads;
  threads.reserve(cpus.size());
  std::optional<std::string> problem;
  for (size_t t = 0; t < cpus.size(); ++t) {
    try {
      threads.emplace_back([&, t] {
        Left& mine = left[t];
        mine.problem = PinToCpu(cpus[t]);
        if (mine.problem) gate.CallOff();
        if (!gate.Pass()) return;
        mine.before = UsageOfThisThread();
        mine.start = Clock::now();
        try {
          work(t);
        } catch (const std::exception& error) {
          mine.problem = fmt::format("thread {}: {}", t, error.what());
        }
        mine.end = Clock::now();
        mine.after = UsageOfThisThread();
      });
    } catch (const std::system_error& error) {
      problem = fmt::format("cannot start thread {}: {}", t, error.what());
      gate.CallOff();
      break;
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < cpus.size() && !problem; ++t) problem = left[t].problem;
  if (problem) return Error{*problem};

  TogetherRun run;
  const Clock::time_point start =
      std::min_element(left.begin(), left.end(), [](const Left& a, const Left& b) {
        return a.start < b.start;
      })->start;
  for (const Left& one : left) {
    run.seconds.push_back(std::chrono::duration<double>(one.end - start).count());
    AddDifference(one.before, one.after, run.usage);
  }
  return run;
}

MeasuredThreads MeasureThreads(const MeasureOptions& options, std::span<const int> cpus,
                               std::span<const uint64_t> expected,
                               const std::function<uint64_t(size_t thread)>& iteration) {
  MeasuredThreads measured;
  uint64_t mismatches = 0;
  uint64_t last_result = 0;
  size_t passes_begun = 0;
  const auto pass = [&](uint64_t iterations) -> std::optional<double> {
    struct alignas(128) Counts {
      uint64_t mismatches = 0;
      uint64_t last = 0;   // of the last iteration
      uint64_t wrong = 0;  // of the last one that was not the expected one
    };
    std::vector<Counts> counts(cpus.size());
    const Result<TogetherRun> run = RunTogether(cpus, [&](size_t thread) {
      Counts mine;
      for (uint64_t i = 0; i < iterations; ++i) {
        mine.last = iteration(thread);
        if (mine.last != expected[thread]) {
          ++mine.mismatches;
          mine.wrong = mine.last;
        }
      }
      counts[thread] = mine;
    });
    if (!run) {
      measured.problem = run.error();
      return std::nullopt;
    }
    last_result = 0;
    for (size_t thread = 0; thread < counts.size(); ++thread) {
      mismatches += counts[thread].mismatches;
      last_result += counts[thread].mismatches == 0 ? counts[thread].last : counts[thread].wrong;
      if (counts[thread].mismatches != 0 && measured.problem.empty()) {
        measured.problem = fmt::format(
            "thread {} of {} counted {} positive answers in the timed loop, expected {}", thread,
            counts.size(), counts[thread].wrong, expected[thread]);
      }
    }
    if (!measured.problem.empty()) return std::nullopt;
    constexpr size_t kUntimedPasses = 2;  // MeasurePasses: one to warm up, one to choose iterations
    if (++passes_begun > kUntimedPasses) {
      measured.fastest_seconds.push_back(
          *std::min_element(run->seconds.begin(), run->seconds.end()));
      AddDifference({}, run->usage, measured.usage);
    }
    return *std::max_element(run->seconds.begin(), run->seconds.end());
  };
  measured.slowest = MeasurePasses(options, pass);
  measured.slowest.mismatches = mismatches;
  measured.slowest.last_result = last_result;
  if (!measured.problem.empty()) measured.fastest_seconds.clear();
  return measured;
}

void PutThreadHealth(const ThreadUsage& usage, nlohmann::json& health) {
  health["voluntary_switches"] = usage.voluntary_switches;
  health["involuntary_switches"] = usage.involuntary_switches;
  health["minor_faults"] = usage.minor_faults;
  health["major_faults"] = usage.major_faults;
  for (const char* field : {"voluntary_switches", "involuntary_switches", "minor_faults",
                            "major_faults"}) {
    health.erase(std::string(field) + "_reason");
  }
  PutUnknown(health, "migrations", "not counted for several threads, each bound to a CPU");
  for (const char* field : {"cpu", "cpu_before", "steal_ticks", "frequency_mhz",
                            "frequency_mhz_before", "core_clock_mhz", "core_clock_mhz_before"}) {
    PutUnknown(health, field, "of several threads on several CPUs: see threads.cpus");
  }
}

}  // namespace filterbench
