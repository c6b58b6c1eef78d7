#include "harness/run/runner.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/process/isolated.h"
#include "harness/run/case_round.h"

namespace filterbench {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Measures points of one case in one round, whose code is not ours, in a process of their own. Each
// sample is handed to `record`; points that crash or do not return become samples that say so.
class ExternalCaseRound {
 public:
  ExternalCaseRound(const Case& work, const MeasureSpec& measure, uint64_t round,
                    const std::function<bool()>& should_stop)
      : work_(work), measure_(measure), round_(round), should_stop_(should_stop) {}

  // False if it was stopped.
  template <class Record>
  bool Measure(std::span<const Point> points, const Record& record) {
    size_t done = 0;
    while (done < points.size()) {
      // Of a process that died: had it prepared the filter, so that the others may be measured?
      bool prepared = false;
      const IsolatedResult result = RunIsolated(
          {.silence_limit_seconds = measure_.plugin_seconds, .should_stop = should_stop_},
          [&](const SendMessage& send) {
            MeasureCaseRound(work_, measure_, round_, points.subspan(done),
                             {.alive = [&] { send(kAlive); },
                              .prepared = [&] { send(kPrepared); },
                              .record = [&](const Sample& sample) {
                                send(SampleToJson(sample).dump());
                              }});
          },
          [&](std::string_view message) {
            if (message == kAlive) return;
            prepared = true;
            if (message == kPrepared || done == points.size()) return;
            record(Parsed(message, points[done]));
            ++done;
          });
      if (result.end == IsolatedEnd::kStopped) return false;
      if (result.end == IsolatedEnd::kDone || done == points.size()) {
        // Done before all samples came: something wrote where it should not.
        for (; done < points.size(); ++done) {
          record(Failed(points[done], SampleStatus::kCrashed, "its process sent no sample"));
        }
        return true;
      }
      const SampleStatus status = result.end == IsolatedEnd::kTimedOut ? SampleStatus::kTimedOut
                                                                       : SampleStatus::kCrashed;
      const bool give_up = !prepared || status == SampleStatus::kTimedOut;
      record(
          Failed(points[done], status,
                 (prepared ? "while it was measured it " : "while it was built or verified it ") +
                     result.reason));
      ++done;
      for (; give_up && done < points.size(); ++done) {
        record(Failed(points[done], status, "not tried: another point of the filter " +
                                                 result.reason));
      }
    }
    return true;
  }

 private:
  // Messages of the child besides samples.
  static constexpr std::string_view kAlive = "alive";
  static constexpr std::string_view kPrepared = "prepared";

  Sample Failed(const Point& point, SampleStatus status, std::string reason) const {
    Sample sample;
    sample.point = point;
    sample.round = static_cast<uint32_t>(round_);
    sample.seed = BuildSeed(measure_.seed, round_);
    sample.status = status;
    sample.reason = std::move(reason);
    return sample;
  }

  Sample Parsed(std::string_view message, const Point& point) const {
    const nlohmann::json json = nlohmann::json::parse(message, nullptr, false);
    Result<Sample> sample = json.is_discarded() ? Error{"no JSON"} : SampleFromJson(json);
    if (!sample || !(sample->point == point)) {
      return Failed(point, SampleStatus::kCrashed,
                    "its process sent what is no sample of this point");
    }
    return std::move(*sample);
  }

  const Case& work_;
  const MeasureSpec& measure_;
  uint64_t round_;
  const std::function<bool()>& should_stop_;
};

}  // namespace

Result<RunOutcome> ExecutePlan(const Plan& plan, RunDirectory& directory,
                               const RunOptions& options) {
  RunOutcome outcome;
  const Result<SamplesFile> earlier = directory.ReadSamples();
  if (!earlier) return Error{earlier.error()};
  std::set<std::pair<std::string, uint32_t>> done;
  uint64_t sequence = 0;
  for (const Sample& sample : earlier->samples) {
    done.emplace(PointId(sample.point), sample.round);
    sequence = std::max(sequence, sample.sequence + 1);
  }

  const auto start = Clock::now();
  const uint64_t total = (plan.points() * plan.measure.rounds) + plan.skipped.size();
  uint64_t at = 0;

  const auto record = [&](Sample& sample) -> std::optional<Error> {
    sample.sequence = sequence++;
    sample.time_utc = FormatUtc(std::chrono::system_clock::now());
    ++outcome.samples_measured;
    return directory.AppendSample(sample);
  };

  for (const SkippedPoint& skipped : plan.skipped) {
    ++at;
    if (done.contains({PointId(skipped.point), 0})) continue;
    Sample sample;
    sample.point = skipped.point;
    sample.status = SampleStatus::kSkipped;
    sample.reason = skipped.reason;
    if (const auto error = record(sample)) return *error;
  }

  for (uint64_t round = 0; round < plan.measure.rounds; ++round) {
    for (const size_t index : VisitOrder(plan.cases.size(), plan.measure.seed, round)) {
      const Case& work = plan.cases[index];
      std::vector<Point> missing;
      for (const size_t p : VisitOrder(work.points.size(), plan.measure.seed + index, round)) {
        if (done.contains({PointId(work.points[p]), static_cast<uint32_t>(round)})) {
          ++outcome.samples_reused;
          ++at;
        } else {
          missing.push_back(work.points[p]);
        }
      }
      if (missing.empty()) continue;
      const auto show = [&] {
        options.on_progress(
            {.samples_done = at,
             .samples_total = total,
             .seconds = SecondsSince(start),
             .now = fmt::format("{} {} keys", work.points[0].filter, work.points[0].keys)});
      };
      const auto stopped = [&] {
        outcome.interrupted = options.should_stop();
        return outcome.interrupted;
      };
      if (stopped()) return outcome;
      show();
      if (work.type->is_external()) {
        std::optional<Error> error;
        const std::function<bool()> should_stop = [&] {
          return error.has_value() || options.should_stop();
        };
        ExternalCaseRound external(work, plan.measure, round, should_stop);
        const bool finished = external.Measure(missing, [&](Sample sample) {
          ++at;
          if (!error) error = record(sample);
          show();
        });
        if (error) return *error;
        if (!finished) {
          outcome.interrupted = true;
          return outcome;
        }
        continue;
      }
      std::optional<Error> error;
      MeasureCaseRound(work, plan.measure, round, missing, {.record = [&](Sample sample) {
                         if (error || stopped()) return;
                         ++at;
                         error = record(sample);
                         show();
                       }});
      if (error) return *error;
      if (outcome.interrupted) return outcome;
    }
  }
  return outcome;
}

}  // namespace filterbench
