#ifndef FILTERBENCH_HARNESS_RUN_THREADS_H_
#define FILTERBENCH_HARNESS_RUN_THREADS_H_

// Lookups by several threads at once, each bound to a CPU of its own. All begin together, and the
// time is that of the slowest: from the common start until it is done.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "filters/result.h"
#include "harness/run/measure.h"

namespace filterbench {

// What interrupted a thread while it worked (getrusage(2), RUSAGE_THREAD).
struct ThreadUsage {
  int64_t voluntary_switches = 0;
  int64_t involuntary_switches = 0;
  int64_t minor_faults = 0;
  int64_t major_faults = 0;
};

struct TogetherRun {
  std::vector<double> seconds;  // one per thread, from the common start
  ThreadUsage usage;            // of all threads, while they worked
};

// Runs `work(thread)` on cpus.size() new threads, thread t bound to cpus[t], none before all are
// there. They have ended when it returns. The calling thread stays bound as it was, and should have
// nothing else to do: it may share its CPU with one of them. An error where a thread cannot be
// started or bound.
Result<TogetherRun> RunTogether(std::span<const int> cpus,
                                const std::function<void(size_t thread)>& work);

struct MeasuredThreads {
  // `seconds` are those of the slowest thread of each pass, `mismatches` and `last_result` (the sum
  // over the threads) are about all threads.
  Measured slowest;
  std::vector<double> fastest_seconds;  // one per pass
  ThreadUsage usage;                    // of all threads in all timed passes
  // Why there are no seconds; empty if there are: a count that is not the expected one, with its
  // thread, or threads that cannot be had.
  std::string problem;
};

// The passes of one point. `iteration(thread)` runs over the whole stream of a thread and returns
// its count, which must be expected[thread]; every thread runs the same number of iterations.
MeasuredThreads MeasureThreads(const MeasureOptions& options, std::span<const int> cpus,
                               std::span<const uint64_t> expected,
                               const std::function<uint64_t(size_t thread)>& iteration);

// HealthProbe::End() of the thread that waited, told of those that worked: what was read of the one
// thread gives way to the sums of all, or to null.
void PutThreadHealth(const ThreadUsage& usage, nlohmann::json& health);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RUN_THREADS_H_
