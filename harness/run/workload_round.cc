#include "harness/run/workload_round.h"

#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "filters/hash.h"
#include "filters/theory/agreement.h"
#include "harness/machine/clock_step.h"
#include "harness/machine/health.h"
#include "harness/record/workload_record.h"
#include "harness/registry/key_filters.h"
#include "harness/run/measure.h"
#include "harness/run/seeds.h"
#include "harness/run/verify.h"

namespace filterbench {
namespace {

using Clock = std::chrono::steady_clock;

class WorkloadRound {
 public:
  WorkloadRound(const Case& work, const MeasureSpec& measure, uint64_t round,
                const std::filesystem::path& scratch, const std::function<void()>& alive)
      : work_(work),
        measure_(measure),
        seeds_(measure.seed, round),
        directory_(scratch / "application"),
        alive_(alive) {
    base_.round = static_cast<uint32_t>(round);
    base_.seed = seeds_.filter;
  }
  ~WorkloadRound() {
    state_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  WorkloadRound(const WorkloadRound&) = delete;
  WorkloadRound& operator=(const WorkloadRound&) = delete;

  // What is wrong is remembered: samples then carry it.
  void Prepare() {
    try {
      std::error_code error;
      std::filesystem::create_directory(directory_, error);
      if (error) {
        return Fail(base_, fmt::format("{}: {}", directory_.string(), error.message()),
                    SampleStatus::kBuildFailed);
      }
      filters_ = MakeFilterSource(*work_.type, work_.params, work_.points.front().target);
      auto state = work_.workload->Prepare({.knobs = work_.knobs,
                                            .filters = filters_.get(),
                                            .key_set = &work_.key_set,
                                            .keys = work_.keys,
                                            .seed = seeds_.hash,
                                            .directory = directory_,
                                            .alive = alive_});
      if (!state) return Fail(base_, state.error(), SampleStatus::kBuildFailed);
      state_ = std::move(*state);
      NoteFilters();
    } catch (const std::bad_alloc&) {
      Fail(base_, "out of memory while it was made ready", SampleStatus::kOutOfMemory);
    }
  }

  Sample Measure(const Point& point) {
    Sample sample = base_;
    sample.point = point;
    if (sample.status != SampleStatus::kOk) return sample;
    try {
      Run(sample);
    } catch (const std::bad_alloc&) {
      Fail(sample, "out of memory while it was measured", SampleStatus::kOutOfMemory);
    }
    // Facts about filters go with what they answered.
    if (sample.filter && sample.filter->answers_digest.empty()) sample.filter.reset();
    return sample;
  }

 private:
  // What an error of the workload means, if it does not say: `otherwise`.
  static void Fail(Sample& sample, std::string reason, SampleStatus otherwise) {
    sample.status = reason.starts_with(kWrongAnswer)      ? SampleStatus::kWrongAnswers
                    : reason.starts_with(kNotHere)        ? SampleStatus::kSkipped
                    : reason.starts_with("out of memory") ? SampleStatus::kOutOfMemory
                                                          : otherwise;
    sample.reason = std::move(reason);
    sample.ns_per_op.clear();
  }

  void Run(Sample& sample) {
    if (std::string reason = WhyNoSuchStream(sample.point); !reason.empty()) {
      return Fail(sample, std::move(reason), SampleStatus::kSkipped);
    }
    const auto run = state_->Start(sample.point.negative_share, seeds_.lookups);
    if (!run) return Fail(sample, run.error(), SampleStatus::kInvalid);
    Time(**run, sample);
    if (sample.status == SampleStatus::kOk) Count(**run, sample);
  }

  std::string WhyNoSuchStream(const Point& point) const {
    if (!point.negative_share) return {};
    if (work_.keys == 0 && *point.negative_share < 1) {
      return "no keys: all operations are about absent ones";
    }
    if (work_.key_set.size() == work_.keys && *point.negative_share > 0) {
      return "every key of the set is present: there is no absent one to ask for";
    }
    return {};
  }

  void NoteFilters() {
    const WorkloadFilters filters = state_->filters();
    FilterFacts facts;
    facts.size_bytes = filters.size_bytes;
    facts.allocated_bytes = filters.size_bytes;
    facts.peak_build_bytes = filters.peak_build_bytes;
    facts.distinct_keys = filters.keys;
    if (filters.keys != 0) {
      const double keys = static_cast<double>(filters.keys);
      facts.bits_per_key = static_cast<double>(filters.size_bytes) * 8 / keys;
      facts.build_ns_per_key = filters.build_ns / keys;
    }
    facts.extra = {{"filters", static_cast<double>(filters.filters)},
                   {"builds", static_cast<double>(filters.builds)}};
    facts.filter_digest = filters.digest;
    facts.hash_bits = work_.type->info().hash_bits;
    base_.filter = std::move(facts);
  }

  void Time(WorkloadRun& run, Sample& sample) {
    std::optional<uint64_t> expected = run.positives_expected();
    std::optional<std::string> problem;
    // One iteration, in seconds; nothing once something went wrong.
    const auto iterate = [&]() -> std::optional<double> {
      if (const auto error = run.Reset()) {
        problem = error->message;
        return std::nullopt;
      }
      const Clock::time_point start = Clock::now();
      const Result<uint64_t> positives = run.Iterate();
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      alive_();
      if (!positives) {
        problem = positives.error();
      } else if (!expected) {
        expected = *positives;
      } else if (*positives != *expected) {
        problem = fmt::format("{}{} of {} operations found something, {} must", kWrongAnswer,
                              *positives, run.operations(), *expected);
      }
      if (problem) return std::nullopt;
      return seconds;
    };
    HealthProbe health;
    health.Begin();
    const Measured measured = MeasurePasses(
        {.name = PointId(sample.point),
         .passes = measure_.passes,
         .pass_seconds = ShortestPassSeconds(measure_.pass_seconds, ClockStepNs())},
        [&](uint64_t iterations) -> std::optional<double> {
          double seconds = 0;
          for (uint64_t i = 0; i < iterations; ++i) {
            const std::optional<double> one = iterate();
            if (!one) return std::nullopt;
            seconds += *one;
          }
          return seconds;
        });
    sample.health = health.End();
    sample.stream_lookups = run.operations();
    sample.positives = expected;
    sample.positives_expected = expected;
    if (problem) return Fail(sample, std::move(*problem), SampleStatus::kInvalid);
    sample.iterations_per_pass = measured.iterations;
    sample.operations_per_pass = measured.iterations * run.operations();
    if (std::string reason = WhyTooShort(measured.seconds, ClockStepNs()); !reason.empty()) {
      return Fail(sample, std::move(reason), SampleStatus::kInvalid);
    }
    for (const double seconds : measured.seconds) {
      sample.ns_per_op.push_back(seconds * 1e9 / static_cast<double>(*sample.operations_per_pass));
    }
    const uint64_t digest = expected.value_or(0);
    sample.filter->answers_digest = fmt::format("{:016x}", HashU64(digest, run.operations()));
  }

  void Count(WorkloadRun& run, Sample& sample) {
    if (const auto error = run.Reset()) {
      return Fail(sample, error->message, SampleStatus::kInvalid);
    }
    const Result<WorkloadReport> report = run.Report();
    alive_();
    if (!report) return Fail(sample, report.error(), SampleStatus::kInvalid);
    sample.workload = WorkloadToJson(*report);
    const WorkloadReport::Fpr& met = report->fpr;
    if (met.queries == 0 || work_.type->info().is_baseline) return;
    sample.fpr = MeasuredFpr{.expected = met.expected,
                             .expected_instance_sd = met.expected_instance_sd,
                             .false_positives = met.false_positives,
                             .queries = met.queries};
    if (met.expected && !theory::FprAgrees(met.false_positives, met.queries,
                                           {.mean = *met.expected,
                                            .instance_sd = met.expected_instance_sd.value_or(0)},
                                           kFprFalseAlarm)) {
      Fail(sample,
           fmt::format("FPR: {} false positives among {} absent keys, theory says {:.6g}",
                       met.false_positives, met.queries, *met.expected),
           SampleStatus::kWrongAnswers);
    }
  }

  const Case& work_;
  const MeasureSpec& measure_;
  const Seeds seeds_;
  const std::filesystem::path directory_;
  const std::function<void()>& alive_;
  Sample base_;  // what all samples of this case and round share
  std::unique_ptr<FilterSource> filters_;
  std::unique_ptr<WorkloadState> state_;
};

}  // namespace

void MeasureWorkloadRound(const Case& work, const MeasureSpec& measure, uint64_t round,
                          std::span<const Point> points, const std::filesystem::path& scratch,
                          const CaseRoundEvents& events) {
  WorkloadRound workload_round(work, measure, round, scratch, events.alive);
  workload_round.Prepare();
  events.prepared();
  for (const Point& point : points) events.record(workload_round.Measure(point));
}

}  // namespace filterbench
