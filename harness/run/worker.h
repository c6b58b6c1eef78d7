#ifndef FILTERBENCH_HARNESS_RUN_WORKER_H_
#define FILTERBENCH_HARNESS_RUN_WORKER_H_

// The process that measures. It is told what to do as data, sends back samples, and writes no file:
// what may happen to it cannot happen to the records.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/plan/plan.h"
#include "harness/process/isolated.h"
#include "harness/record/sample.h"
#include "harness/spec/spec.h"

namespace filterbench {

// Points of one case that are measured on one build of its filter.
struct Task {
  const Case* work = nullptr;
  uint64_t round = 0;  // number of the build in the run, from 0
  std::vector<Point> points;
};

struct WorkerOptions {
  // Fresh starts of the program; else forks of this one, whose addresses are the same in all. Where
  // a program cannot start itself (under an emulator) only forks work.
  bool start_anew = true;
  std::optional<int> cpu;  // to measure on; nothing: wherever the system lets it run
  std::function<bool()> should_stop = [] { return false; };
};

enum class WorkerEnd {
  kDone,     // all tasks are done, or those up to a point that ran out of memory
  kStopped,  // as should_stop said; the sample under way is lost
  kFailed,   // crashed, or was silent for too long; what it was at has become samples
};

struct WorkerResult {
  WorkerEnd end = WorkerEnd::kDone;
  size_t tasks_done = 0;   // the first ones
  size_t points_done = 0;  // the first ones of the task after them
};

// One process that measures the tasks in turn, from `points_done` points of the first one on.
// Samples, also those of points that crashed it, are handed to `record` as they come. An error if
// there could be no such process.
Result<WorkerResult> RunWorker(std::span<const Task> tasks, size_t points_done,
                               const MeasureSpec& measure, const WorkerOptions& options,
                               const std::function<void(Sample sample)>& record);

// What such a process does: `order` is its input. To be called first thing in main.
void DoWork(std::string_view order, const SendMessage& send);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RUN_WORKER_H_
