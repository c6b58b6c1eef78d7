#ifndef FILTERBENCH_HARNESS_RUN_MEASURE_H_
#define FILTERBENCH_HARNESS_RUN_MEASURE_H_

// The timing loop, which is Google Benchmark's. One call measures one point on one filter: the
// filter and the stream lie ready, and every pass runs the same number of iterations, found by a
// first one that is not counted.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/machine/fact.h"
#include "harness/machine/perf_counters.h"

namespace filterbench {

struct Measured {
  std::vector<double> seconds;  // one per pass: all its iterations
  uint64_t iterations = 0;      // per pass
  // Iterations, over all passes, whose result was not the expected one.
  uint64_t mismatches = 0;
  uint64_t last_result = 0;
};

struct MeasureOptions {
  std::string name;
  uint64_t passes = 1;
  double pass_seconds = 0.02;  // iterations are chosen so that a pass takes at least that
  // Counts during the passes: begun before the first one. May be null. Not for MeasurePasses, which
  // does not know when its work begins.
  PerfCounters* counters = nullptr;
};

// `iteration` runs over a whole stream and returns a number that depends on every lookup (the
// count of positive answers). The number is the sink: the optimiser cannot drop the work, and each
// iteration is compared with `expected`.
Measured MeasureLoop(const MeasureOptions& options, uint64_t expected,
                     const std::function<uint64_t()>& iteration);

// The same for work that must be timed without what surrounds it, such as the destruction of what
// it made: `iteration` returns the seconds that count, and resumes and pauses the counters for them.
Measured MeasureTimed(const MeasureOptions& options, const std::function<double()>& iteration);

// The same for work that is timed as a whole: `pass` does as many iterations as it is given and
// returns the seconds that count, or nothing where it failed. No further pass is then begun and
// there are no seconds.
Measured MeasurePasses(const MeasureOptions& options,
                       const std::function<std::optional<double>(uint64_t iterations)>& pass);

// The shortest pass, in steps of the clock, that is a measurement: the two readings around it then
// err by 0.2 % together, at most.
inline constexpr int64_t kMinPassSteps = 1000;

// Why the clock cannot time one of the passes, with numbers; empty if it can.
std::string WhyTooShort(std::span<const double> seconds, const Fact<int64_t>& clock_step_ns);

// The shortest piece, in steps of the clock, of a pass that is the sum of many: the two readings
// around it err by 4 % together, at most, and over many pieces by less, since chance averages out.
inline constexpr int64_t kMinPieceSteps = 50;

// Why the clock cannot time pieces of which the shortest took so long; empty if it can.
std::string WhyPiecesTooShort(double shortest_seconds, const Fact<int64_t>& clock_step_ns);

// What a pass must be asked to take for kMinPassSteps: longer, because the number of its iterations
// is an estimate. Passes of less than a quarter of what was asked are run again, with a better one.
double ShortestPassSeconds(double asked_seconds, const Fact<int64_t>& clock_step_ns);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RUN_MEASURE_H_
