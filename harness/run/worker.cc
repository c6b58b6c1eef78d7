#include "harness/run/worker.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/machine/cpu_affinity.h"
#include "harness/machine/oom.h"
#include "harness/run/case_round.h"
#include "harness/run/workload_round.h"
#include "harness/temporary_directory.h"

namespace filterbench {
namespace {

using nlohmann::json;

// Messages besides samples.
constexpr std::string_view kStarted = "started";
constexpr std::string_view kAlive = "alive";
constexpr std::string_view kPrepared = "prepared";

json Order(std::span<const Task> tasks, size_t points_done, const MeasureSpec& measure,
           const WorkerOptions& options, const std::string& scratch) {
  json work = json::array();
  for (const Task& task : tasks) {
    json points = json::array();
    for (size_t i = work.empty() ? points_done : 0; i < task.points.size(); ++i) {
      points.push_back(PointToJson(task.points[i]));
    }
    work.push_back({{"round", task.round},
                    {"points", std::move(points)},
                    {"thread_cpus", task.work->thread_cpus}});
  }
  json plugins = json::array();
  for (const LoadedPlugin& plugin : LoadedPlugins()) plugins.push_back(plugin.path);
  return {{"measure", MeasureToJson(measure)},
          {"cpu", options.cpu ? json(*options.cpu) : json()},
          {"scratch", scratch},
          {"plugins", std::move(plugins)},
          {"tasks", std::move(work)}};
}

// Hears a worker out: messages become samples, and its end becomes samples too.
class Listener {
 public:
  Listener(std::span<const Task> tasks, size_t points_done, const MeasureSpec& measure,
           const std::function<void(Sample)>& record)
      : tasks_(tasks), point_(points_done), measure_(measure), record_(record) {}

  void Hear(std::string_view message) {
    started_ = true;
    if (message == kStarted || message == kAlive || done()) return;
    if (message == kPrepared) {
      prepared_ = true;
      return;
    }
    const json parsed = json::parse(message, nullptr, false);
    Result<Sample> sample = parsed.is_discarded() ? Error{"no JSON"} : SampleFromJson(parsed);
    if (sample && sample->point == point()) {
      Record(std::move(*sample));
    } else {
      Fail(SampleStatus::kCrashed, "its process sent what is no sample of this point");
    }
  }

  // The worker died or was killed at the point under way.
  void Bury(const IsolatedResult& result, bool out_of_memory) {
    const SampleStatus status = result.end == IsolatedEnd::kTimedOut ? SampleStatus::kTimedOut
                                : out_of_memory                      ? SampleStatus::kOutOfMemory
                                                                     : SampleStatus::kCrashed;
    const std::string reason =
        out_of_memory ? "ran out of memory: the system killed its process" : result.reason;
    const bool give_up = !prepared_ || status != SampleStatus::kCrashed;
    const size_t task = task_;
    Fail(status, (prepared_ ? "while it was measured it " : "while it was built or verified it ") +
                     reason);
    while (give_up && !done() && task_ == task) {
      Fail(status, "not tried: another point of the filter " + reason);
    }
  }

  // It said that it was done, but samples are missing: something wrote where it should not.
  void MissRest() {
    while (!done()) Fail(SampleStatus::kCrashed, "its process sent no sample");
  }

  bool started() const { return started_; }
  bool done() const { return task_ == tasks_.size(); }
  bool ran_out_of_memory() const { return ran_out_of_memory_; }
  size_t tasks_done() const { return task_; }
  size_t points_done() const { return point_; }

 private:
  const Point& point() const { return tasks_[task_].points[point_]; }

  void Fail(SampleStatus status, std::string reason) {
    Record(UnmeasuredSample(point(), measure_.seed, tasks_[task_].round, status,
                            std::move(reason)));
  }

  void Record(Sample sample) {
    ran_out_of_memory_ = sample.status == SampleStatus::kOutOfMemory;
    record_(std::move(sample));
    if (++point_ < tasks_[task_].points.size()) return;
    ++task_;
    point_ = 0;
    prepared_ = false;
  }

  std::span<const Task> tasks_;
  size_t task_ = 0;
  size_t point_;
  bool prepared_ = false;  // the filter of the task under way
  bool started_ = false;
  bool ran_out_of_memory_ = false;  // at the last point
  const MeasureSpec& measure_;
  const std::function<void(Sample)>& record_;
};

// Ends a worker after the sample that says so: what is larger must not be tried, and whoever hears of
// it could not stop the worker in time.
struct OutOfMemory {};

template <class T>
T Must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error());
  return std::move(*result);
}

}  // namespace

Result<WorkerResult> RunWorker(std::span<const Task> tasks, size_t points_done,
                               const MeasureSpec& measure, const WorkerOptions& options,
                               const std::function<void(Sample sample)>& record) {
  Listener listener(tasks, points_done, measure, record);
  const auto hear = [&](std::string_view message) { listener.Hear(message); };
  const IsolatedOptions isolated = {.silence_limit_seconds = measure.point_seconds,
                                    .should_stop = options.should_stop};
  // Owned here, so that it goes however the worker ends.
  std::optional<TemporaryDirectory> scratch;
  if (std::ranges::any_of(tasks, [](const Task& task) { return task.work->workload != nullptr; })) {
    try {
      scratch.emplace();
    } catch (const std::runtime_error& error) {
      return Error{error.what()};
    }
  }
  const std::string order =
      Order(tasks, points_done, measure, options, scratch ? scratch->path().string() : "").dump();
  const Fact<int64_t> oom_kills_before = ReadOomKills();
  const IsolatedResult result =
      options.start_anew
          ? RunIsolatedProgram(isolated, {"worker"}, order, hear)
          : RunIsolated(isolated, [&](const SendMessage& send) { DoWork(order, send); }, hear);
  if (result.end == IsolatedEnd::kStopped) {
    return WorkerResult{WorkerEnd::kStopped, listener.tasks_done(), listener.points_done()};
  }
  if (!listener.started()) return Error{"the process that measures " + result.reason};
  if (result.end == IsolatedEnd::kDone && !listener.ran_out_of_memory()) listener.MissRest();
  if (result.end == IsolatedEnd::kDone || listener.done()) {
    return WorkerResult{WorkerEnd::kDone, listener.tasks_done(), listener.points_done()};
  }
  const Fact<int64_t> oom_kills = ReadOomKills();
  listener.Bury(result, result.signal == SIGKILL && oom_kills.known() && oom_kills_before.known() &&
                            oom_kills.value() > oom_kills_before.value());
  return WorkerResult{WorkerEnd::kFailed, listener.tasks_done(), listener.points_done()};
}

void DoWork(std::string_view order, const SendMessage& send) {
  send(kStarted);
  const json root = json::parse(order);
  const MeasureSpec measure = Must(ParseMeasure(
      Must(LocatedJson::Parse(json{{"measure", root.at("measure")}}.dump(), "order"))));
  for (const json& path : root.at("plugins")) {
    if (const auto error = LoadPlugin(path.get<std::string>())) {
      throw std::runtime_error(error->message);
    }
  }
  if (root.at("cpu").is_number()) {
    if (const auto problem = PinToCpu(root.at("cpu").get<int>())) {
      throw std::runtime_error("not pinned: " + *problem);
    }
  }
  std::map<std::string, KeySet> key_sets;  // a file is read once
  for (const json& item : root.at("tasks")) {
    std::vector<Point> points;
    for (const json& point : item.at("points")) points.push_back(Must(PointFromJson(point)));
    const KeySetSpec& key_set = points.front().key_set;
    const std::string name = KeySetToJson(key_set).dump();
    auto opened = key_sets.find(name);
    if (opened == key_sets.end()) {
      opened = key_sets.emplace(name, Must(KeySet::Open(key_set, KeySeed(measure.seed)))).first;
    }
    Case work = Must(CaseOfPoints(points, opened->second));
    item.at("thread_cpus").get_to(work.thread_cpus);
    const uint64_t round = item.at("round").get<uint64_t>();
    const CaseRoundEvents events = {.alive = [&] { send(kAlive); },
                                    .prepared = [&] { send(kPrepared); },
                                    .record =
                                        [&](Sample sample) {
                                          sample.time_utc =
                                              FormatUtc(std::chrono::system_clock::now());
                                          send(SampleToJson(sample).dump());
                                          if (sample.status == SampleStatus::kOutOfMemory) {
                                            throw OutOfMemory();
                                          }
                                        }};
    try {
      if (work.workload != nullptr) {
        MeasureWorkloadRound(work, measure, round, points, root.at("scratch").get<std::string>(),
                             events);
      } else {
        MeasureCaseRound(work, measure, round, points, events);
      }
    } catch (const OutOfMemory&) {
      return;
    }
  }
}

}  // namespace filterbench
