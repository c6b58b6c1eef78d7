#ifndef FILTERBENCH_HARNESS_RUN_RUNNER_H_
#define FILTERBENCH_HARNESS_RUN_RUNNER_H_

// Does what a plan says and records it: decides what is measured when, by processes of their own
// (harness/run/worker.h), and when a point has been measured often enough.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "filters/result.h"
#include "harness/plan/plan.h"
#include "harness/record/run_directory.h"

namespace filterbench {

struct RunProgress {
  uint64_t samples_done = 0;   // of this process of the run, and of those before
  uint64_t samples_total = 0;  // the same, with those that are to come for certain
  double seconds_left = 0;     // for those to come for certain
  uint64_t process = 0;        // from 0
  std::string now;             // what is being measured
};

struct RunOutcome {
  uint64_t samples_measured = 0;
  uint64_t samples_reused = 0;  // found in the directory, measured before
  bool interrupted = false;
};

struct RunOptions {
  // Called before each sample.
  std::function<void(const RunProgress&)> on_progress = [](const RunProgress&) {};
  // Asked all the time; true ends the run, without the sample under way.
  std::function<bool()> should_stop = [] { return false; };
  std::optional<int> cpu;  // to measure on
  bool start_anew = true;  // see WorkerOptions
};

// Measures every sample of the plan that the directory does not hold yet. The manifest is there
// already.
//
// Every process visits all cases, each of its builds in a seeded order (VisitOrder). From the
// second build on of a case that ran out of memory, and for larger numbers of keys of the same
// filter and parameters, samples say that it was skipped. A point that failed is not measured by
// later processes; one whose interval is as narrow as asked, and all points after max_processes,
// are done.
//
// The error is one of writing or of starting processes: what was measured until then is on disk.
Result<RunOutcome> ExecutePlan(const Plan& plan, RunDirectory& directory,
                               const RunOptions& options);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RUN_RUNNER_H_
