#ifndef FILTERBENCH_HARNESS_RUN_RUNNER_H_
#define FILTERBENCH_HARNESS_RUN_RUNNER_H_

// Does what a plan says and records it.

#include <cstdint>
#include <functional>
#include <string>

#include "filters/result.h"
#include "harness/plan/plan.h"
#include "harness/record/run_directory.h"

namespace filterbench {

struct RunProgress {
  uint64_t samples_done = 0;
  uint64_t samples_total = 0;
  double seconds = 0;  // since the start of this process's part of the run
  std::string now;     // what is being measured
};

struct RunOutcome {
  uint64_t samples_measured = 0;
  uint64_t samples_reused = 0;  // found in the directory, measured before
  bool interrupted = false;
};

struct RunOptions {
  // Called before each sample.
  std::function<void(const RunProgress&)> on_progress = [](const RunProgress&) {};
  // Asked before each sample; true ends the run after the sample under way.
  std::function<bool()> should_stop = [] { return false; };
};

// Measures every sample of the plan that the directory does not hold yet. The manifest is there
// already. The error is one of writing: what was measured until then is on disk.
Result<RunOutcome> ExecutePlan(const Plan& plan, RunDirectory& directory,
                               const RunOptions& options);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RUN_RUNNER_H_
