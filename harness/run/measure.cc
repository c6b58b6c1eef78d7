#include "harness/run/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include <benchmark/benchmark.h>

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

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

uint64_t IterationsFor(double one_seconds, double pass_seconds) {
  constexpr double kMaxIterations = 1e9;
  return static_cast<uint64_t>(
      std::clamp(std::ceil(pass_seconds / std::max(one_seconds, 1e-9)), 1.0, kMaxIterations));
}

void Run(const MeasureOptions& options, uint64_t iterations, bool manual_time, Measured& measured,
         const std::function<void(benchmark::State&)>& body) {
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
  const uint64_t iterations = IterationsFor(one_seconds, options.pass_seconds);
  Run(options, iterations, /*manual_time=*/false, measured, [&](benchmark::State& state) {
    for (auto _ : state) {
      const uint64_t result = iteration();
      benchmark::DoNotOptimize(result);
      if (result != expected) {
        ++measured.mismatches;
        measured.last_result = result;
      }
    }
  });
  return measured;
}

Measured MeasureTimed(const MeasureOptions& options, const std::function<double()>& iteration) {
  Measured measured;
  const uint64_t iterations = IterationsFor(iteration(), options.pass_seconds);
  Run(options, iterations, /*manual_time=*/true, measured, [&](benchmark::State& state) {
    for (auto _ : state) state.SetIterationTime(iteration());
  });
  return measured;
}

Measured MeasurePasses(const MeasureOptions& options,
                       const std::function<std::optional<double>(uint64_t iterations)>& pass) {
  Measured measured;
  if (!pass(1)) return measured;  // untimed, as in MeasureLoop
  const std::optional<double> one_seconds = pass(1);
  if (!one_seconds) return measured;
  const uint64_t iterations = IterationsFor(*one_seconds, options.pass_seconds);
  bool failed = false;
  Run(options, /*iterations=*/1, /*manual_time=*/true, measured, [&](benchmark::State& state) {
    for (auto _ : state) {
      std::optional<double> seconds;
      if (!failed) seconds = pass(iterations);
      failed |= !seconds;
      state.SetIterationTime(seconds.value_or(0));
    }
  });
  measured.iterations = iterations;
  if (failed) measured.seconds.clear();
  return measured;
}

}  // namespace filterbench
