#include "harness/run/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "harness/machine/clock_step.h"

namespace filterbench {
namespace {

// Collects the passes and prints nothing. Google Benchmark's own files are not used: its names
// hold no structured parameters, and its JSON may hold NaN.
class PassCollector : public benchmark::BenchmarkReporter {
 public:
  explicit PassCollector(Measured* measured) : measured_(measured) {}

  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      measured_->seconds.push_back(run.real_accumulated_time);
      measured_->iterations = static_cast<uint64_t>(run.iterations);
    }
  }

 private:
  Measured* measured_;
};

// What a time may really be that reads 0 because it is shorter than a step of the clock.
double AtLeastAStep(double seconds) {
  const Fact<int64_t>& step_ns = ClockStepNs();
  return step_ns.known() ? std::max(seconds, static_cast<double>(step_ns.value()) * 1e-9) : seconds;
}

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Passes that take less than this share of what was asked are run again.
constexpr double kLeastShareOfPass = 0.25;

uint64_t IterationsFor(double one_seconds, double pass_seconds) {
  constexpr double kMaxIterations = 1e9;
  return static_cast<uint64_t>(
      std::clamp(std::ceil(pass_seconds / std::max(one_seconds, 1e-9)), 1.0, kMaxIterations));
}

void RunPasses(const MeasureOptions& options, uint64_t iterations, bool manual_time,
               Measured& measured, const std::function<void(benchmark::State&)>& body) {
  measured.seconds.clear();
  if (options.counters != nullptr) options.counters->Begin();
  benchmark::ClearRegisteredBenchmarks();
  auto* registered = benchmark::RegisterBenchmark(options.name.c_str(), body);
  registered->Iterations(static_cast<benchmark::IterationCount>(iterations))
      ->Repetitions(static_cast<int>(options.passes));
  if (manual_time) {
    registered->UseManualTime();
  } else {
    registered->UseRealTime();
  }
  PassCollector collector(&measured);
  benchmark::RunSpecifiedBenchmarks(&collector, ".");
  benchmark::ClearRegisteredBenchmarks();
  if (measured.seconds.size() != options.passes) {
    throw std::logic_error("Google Benchmark reported another number of passes than was asked for");
  }
}

// Calls `run` with a number of iterations per pass; it fills measured.seconds. `one_seconds` is an
// estimate from one iteration, which may have met an interruption or cold memory: passes that it
// made far too short tell better, and are run again.
void RunLongEnough(const MeasureOptions& options, double one_seconds, Measured& measured,
                   const std::function<void(uint64_t iterations)>& run) {
  constexpr int kMaxAttempts = 3;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const uint64_t iterations = IterationsFor(AtLeastAStep(one_seconds), options.pass_seconds);
    run(iterations);
    measured.iterations = iterations;
    if (measured.mismatches != 0 || measured.seconds.empty()) return;
    const double shortest = *std::min_element(measured.seconds.begin(), measured.seconds.end());
    if (shortest >= options.pass_seconds * kLeastShareOfPass) return;
    one_seconds = AtLeastAStep(shortest) / static_cast<double>(iterations);
  }
}

std::string WhyClockUnknown(const Fact<int64_t>& clock_step_ns) {
  return fmt::format("the resolution of the clock is not known: {}", clock_step_ns.reason());
}

}  // namespace

Measured MeasureLoop(const MeasureOptions& options, uint64_t expected,
                     const std::function<uint64_t()>& iteration) {
  Measured measured;
  // Untimed: warms caches and predictors and pages in what was not touched yet.
  measured.last_result = iteration();
  if (measured.last_result != expected) {
    measured.mismatches = 1;
    return measured;
  }
  const double one_seconds = SecondsOf([&] { measured.last_result = iteration(); });
  const auto body = [&](benchmark::State& state) {
    if (options.counters != nullptr) options.counters->Resume();
    for (auto _ : state) {
      const uint64_t result = iteration();
      benchmark::DoNotOptimize(result);
      if (result != expected) {
        ++measured.mismatches;
        measured.last_result = result;
      }
    }
    if (options.counters != nullptr) options.counters->Pause();
  };
  RunLongEnough(options, one_seconds, measured, [&](uint64_t iterations) {
    RunPasses(options, iterations, /*manual_time=*/false, measured, body);
  });
  return measured;
}

Measured MeasureTimed(const MeasureOptions& options, const std::function<double()>& iteration) {
  Measured measured;
  RunLongEnough(options, iteration(), measured, [&](uint64_t iterations) {
    RunPasses(options, iterations, /*manual_time=*/true, measured, [&](benchmark::State& state) {
      for (auto _ : state) state.SetIterationTime(iteration());
    });
  });
  return measured;
}

std::string WhyTooShort(std::span<const double> seconds, const Fact<int64_t>& clock_step_ns) {
  if (!clock_step_ns.known()) return WhyClockUnknown(clock_step_ns);
  const double shortest_ns = *std::min_element(seconds.begin(), seconds.end()) * 1e9;
  if (shortest_ns >= static_cast<double>(kMinPassSteps * clock_step_ns.value())) return {};
  return fmt::format("a pass took {:.6g} ns, less than {} steps of the clock of {} ns", shortest_ns,
                     kMinPassSteps, clock_step_ns.value());
}

std::string WhyPiecesTooShort(double shortest_seconds, const Fact<int64_t>& clock_step_ns) {
  if (!clock_step_ns.known()) return WhyClockUnknown(clock_step_ns);
  const double shortest_ns = shortest_seconds * 1e9;
  if (shortest_ns >= static_cast<double>(kMinPieceSteps * clock_step_ns.value())) return {};
  return fmt::format("a timed piece of a pass took {:.6g} ns, less than {} steps of the clock of "
                     "{} ns",
                     shortest_ns, kMinPieceSteps, clock_step_ns.value());
}

double ShortestPassSeconds(double asked_seconds, const Fact<int64_t>& clock_step_ns) {
  if (!clock_step_ns.known()) return asked_seconds;
  return std::max(asked_seconds, static_cast<double>(kMinPassSteps * clock_step_ns.value()) * 1e-9 /
                                     kLeastShareOfPass);
}

Measured MeasurePasses(const MeasureOptions& options,
                       const std::function<std::optional<double>(uint64_t iterations)>& pass) {
  Measured measured;
  if (!pass(1)) return measured;  // untimed, as in MeasureLoop
  const std::optional<double> one_seconds = pass(1);
  if (!one_seconds) return measured;
  bool failed = false;
  RunLongEnough(options, *one_seconds, measured, [&](uint64_t iterations) {
    RunPasses(options, /*iterations=*/1, /*manual_time=*/true, measured,
              [&](benchmark::State& state) {
                for (auto _ : state) {
                  std::optional<double> seconds;
                  if (!failed) seconds = pass(iterations);
                  failed |= !seconds;
                  state.SetIterationTime(seconds.value_or(0));
                }
              });
    if (failed) measured.seconds.clear();
  });
  return measured;
}

}  // namespace filterbench
