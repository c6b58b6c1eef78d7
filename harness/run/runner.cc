#include "harness/run/runner.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/record/summary.h"
#include "harness/run/case_round.h"
#include "harness/run/worker.h"
#include "harness/statistics.h"

namespace filterbench {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What is known of one point so far.
struct History {
  std::vector<Sample> times;          // of good samples nothing but what NestTimes reads
  std::optional<uint32_t> failed_in;  // the first such round

  NestedValues ValuesBefore(uint64_t end_round) const {
    std::vector<const Sample*> before;
    for (const Sample& sample : times) {
      if (sample.round < end_round) before.push_back(&sample);
    }
    return NestTimes(before);
  }
};

class Runner {
 public:
  Runner(const Plan& plan, RunDirectory& directory, const RunOptions& options)
      : plan_(plan), measure_(plan.measure), directory_(directory), options_(options) {}

  Result<RunOutcome> Execute() {
    if (const auto error = ReadEarlier()) return *error;
    if (const auto error = RecordSkipped()) return *error;
    for (uint64_t process = 0; process < measure_.max_processes; ++process) {
      const std::vector<Task> tasks = TasksOf(process);
      seconds_to_come_ = 0;
      for (const Task& task : tasks) seconds_to_come_ += Seconds(task);
      if (process < measure_.processes) {
        seconds_to_come_ += plan_.seconds_of_round() * static_cast<double>(measure_.rounds) *
                            static_cast<double>(measure_.processes - 1 - process);
      }
      process_ = process;
      if (const auto error = Do(tasks)) return *error;
      if (outcome_.interrupted) break;
    }
    return outcome_;
  }

 private:
  static std::string SizeKey(const Point& point) {
    return fmt::format("{} {}", point.filter, point.params.dump());
  }

  double Seconds(const Task& task) const {
    return task.work->seconds * static_cast<double>(task.points.size()) /
           static_cast<double>(task.work->points.size());
  }

  std::optional<Error> ReadEarlier() {
    const Result<SamplesFile> earlier = directory_.ReadSamples();
    if (!earlier) return Error{earlier.error()};
    for (const Sample& sample : earlier->samples) {
      reused_.emplace(PointId(sample.point), sample.round);
      Remember(sample);
      sequence_ = std::max(sequence_, sample.sequence + 1);
      next_worker_ = std::max(next_worker_, sample.process.value_or(sample.round) + 1);
    }
    outcome_.samples_reused = earlier->samples.size();
    samples_done_ = earlier->samples.size();
    return std::nullopt;
  }

  void Remember(const Sample& sample) {
    History& history = histories_[PointId(sample.point)];
    if (sample.status == SampleStatus::kOk) {
      Sample& times = history.times.emplace_back();
      times.round = sample.round;
      times.process = sample.process;
      times.ns_per_op = sample.ns_per_op;
    } else {
      history.failed_in = std::min(history.failed_in.value_or(sample.round), sample.round);
    }
    if (sample.status == SampleStatus::kOutOfMemory) {
      const uint64_t keys = sample.point.keys;
      const auto [found, is_new] = out_of_memory_.emplace(SizeKey(sample.point), keys);
      if (!is_new) found->second = std::min(found->second, keys);
    }
  }

  std::optional<Error> Record(Sample sample) {
    sample.sequence = sequence_++;
    sample.time_utc = FormatUtc(std::chrono::system_clock::now());
    Remember(sample);
    ++outcome_.samples_measured;
    ++samples_done_;
    if (auto error = directory_.AppendSample(sample)) return error;
    // What a loss of power may cost, against what waiting for the disk would do to the machine.
    constexpr double kSecondsBetweenSyncs = 5;
    if (SecondsSince(synced_) < kSecondsBetweenSyncs) return std::nullopt;
    synced_ = Clock::now();
    return directory_.SyncSamples();
  }

  std::optional<Error> RecordSkipped() {
    for (const SkippedPoint& skipped : plan_.skipped) {
      if (reused_.contains({PointId(skipped.point), 0})) continue;
      Sample sample;
      sample.point = skipped.point;
      sample.status = SampleStatus::kSkipped;
      sample.reason = skipped.reason;
      if (auto error = Record(std::move(sample))) return error;
    }
    return std::nullopt;
  }

  // Whether a process is to measure the point: all do that every point gets, others only if it is
  // not known well enough by those before. Samples of its own rounds do not count, so that a run
  // that was resumed measures the same.
  bool IsOpen(const Point& point, uint64_t process) const {
    const auto found = histories_.find(PointId(point));
    if (found == histories_.end()) return true;
    const History& history = found->second;
    const uint64_t first_round = process * measure_.rounds;
    if (history.failed_in && *history.failed_in < first_round) return false;
    if (process < measure_.processes) return true;
    if (!measure_.width) return false;
    const auto judged = Judge(history.ValuesBefore(first_round), *measure_.width);
    return judged && !judged->stable;
  }

  // What a process has to do, without what the directory holds.
  std::vector<Task> TasksOf(uint64_t process) const {
    std::vector<Task> tasks;
    for (uint64_t build = 0; build < measure_.rounds; ++build) {
      const uint64_t round = process * measure_.rounds + build;
      for (const size_t index : VisitOrder(plan_.cases.size(), measure_.seed, round)) {
        const Case& work = plan_.cases[index];
        Task task{&work, round, {}};
        for (const size_t p : VisitOrder(work.points.size(), measure_.seed + index, round)) {
          const Point& point = work.points[p];
          if (reused_.contains({PointId(point), static_cast<uint32_t>(round)})) continue;
          if (IsOpen(point, process)) task.points.push_back(point);
        }
        if (!task.points.empty()) tasks.push_back(std::move(task));
      }
    }
    return tasks;
  }

  bool RanOutOfMemoryBefore(const Case& work) const {
    const auto found = out_of_memory_.find(SizeKey(work.points.front()));
    return found != out_of_memory_.end() && work.keys >= found->second;
  }

  std::optional<Error> RecordTooLarge(const Task& task, size_t points_done) {
    for (size_t i = points_done; i < task.points.size(); ++i) {
      const Point& point = task.points[i];
      if (auto error = Record(UnmeasuredSample(
              point, measure_.seed, task.round, SampleStatus::kSkipped,
              fmt::format("ran out of memory before with {} keys",
                          out_of_memory_.at(SizeKey(point)))))) {
        return error;
      }
    }
    return std::nullopt;
  }

  // How many of the tasks one worker gets. Code that is not ours gets one of its own, so that what it
  // breaks is broken for nobody else.
  static size_t TasksOfOneWorker(std::span<const Task> tasks) {
    if (tasks.front().work->type->is_external()) return 1;
    size_t count = 1;
    while (count < tasks.size() && !tasks[count].work->type->is_external()) ++count;
    return count;
  }

  std::optional<Error> Do(std::span<const Task> tasks) {
    size_t points_done = 0;  // of the first task
    while (!tasks.empty()) {
      if (options_.should_stop()) {
        outcome_.interrupted = true;
        return std::nullopt;
      }
      if (RanOutOfMemoryBefore(*tasks.front().work)) {
        if (auto error = RecordTooLarge(tasks.front(), points_done)) return error;
        seconds_to_come_ -= Seconds(tasks.front());
        tasks = tasks.subspan(1);
        points_done = 0;
        continue;
      }
      const std::span<const Task> chunk = tasks.first(TasksOfOneWorker(tasks));
      std::optional<Error> error;
      const uint32_t worker = next_worker_++;
      size_t task = 0;
      size_t point = points_done;
      Show(chunk[0]);
      const Result<WorkerResult> result = RunWorker(
          chunk, points_done, measure_,
          {.start_anew = options_.start_anew,
           .cpu = options_.cpu,
           .should_stop = [&] { return error || options_.should_stop(); }},
          [&](Sample sample) {
            if (error) return;
            sample.process = worker;
            error = Record(std::move(sample));
            const double seconds = Seconds(chunk[task]) /
                                   static_cast<double>(chunk[task].points.size());
            seconds_to_come_ -= seconds;
            estimated_seconds_done_ += seconds;
            if (++point == chunk[task].points.size()) {
              ++task;
              point = 0;
            }
            if (task < chunk.size()) Show(chunk[task]);
          });
      if (error) return error;
      if (!result) return Error{result.error()};
      if (result->end == WorkerEnd::kStopped) {
        outcome_.interrupted = true;
        return std::nullopt;
      }
      // After a failure or a lack of memory a new worker gets what is left.
      tasks = tasks.subspan(result->tasks_done);
      points_done = result->points_done;
    }
    return std::nullopt;
  }

  void Show(const Task& task) const {
    // The estimate is corrected by how it went so far.
    const double pace = estimated_seconds_done_ > 0
                            ? SecondsSince(start_) / estimated_seconds_done_
                            : 1;
    const uint64_t certain = plan_.points() * measure_.rounds *
                                 std::max(measure_.processes, process_ + 1) +
                             plan_.skipped.size();
    options_.on_progress({.samples_done = samples_done_,
                          .samples_total = std::max(certain, samples_done_),
                          .seconds_left = std::max(0.0, seconds_to_come_) * pace,
                          .process = process_,
                          .now = fmt::format("{} {} keys", task.points[0].filter,
                                             task.points[0].keys)});
  }

  const Plan& plan_;
  const MeasureSpec& measure_;
  RunDirectory& directory_;
  const RunOptions& options_;
  RunOutcome outcome_;
  std::set<std::pair<std::string, uint32_t>> reused_;  // point, round
  std::map<std::string, History> histories_;           // by point
  std::map<std::string, uint64_t> out_of_memory_;      // SizeKey -> least keys
  uint64_t sequence_ = 0;
  uint32_t next_worker_ = 0;

  const Clock::time_point start_ = Clock::now();
  Clock::time_point synced_ = start_;
  uint64_t process_ = 0;
  uint64_t samples_done_ = 0;
  double seconds_to_come_ = 0;         // estimated, of what is to come for certain
  double estimated_seconds_done_ = 0;  // of what this process has done
};

}  // namespace

Result<RunOutcome> ExecutePlan(const Plan& plan, RunDirectory& directory,
                               const RunOptions& options) {
  return Runner(plan, directory, options).Execute();
}

}  // namespace filterbench
