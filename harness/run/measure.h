#ifndef FILTERBENCH_HARNESS_RUN_MEASURE_H_
#define FILTERBENCH_HARNESS_RUN_MEASURE_H_

// The timing loop, which is Google Benchmark's. One call measures one point on one filter: the
// filter and the stream lie ready, and every pass runs the same number of iterations, found by a
// first one that is not counted.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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
};

// `iteration` runs over a whole stream and returns a number that depends on every lookup (the
// count of positive answers). The number is the sink: the optimiser cannot drop the work, and each
// iteration is compared with `expected`.
Measured MeasureLoop(const MeasureOptions& options, uint64_t expected,
                     const std::function<uint64_t()>& iteration);

// The same for work that must be timed without what surrounds it, such as the destruction of what
// it made: `iteration` returns the seconds that count.
Measured MeasureTimed(const MeasureOptions& options, const std::function<double()>& iteration);

// The same for work that is timed as a whole: `pass` does as many iterations as it is given and
// returns the seconds that count, or nothing where it failed. No further pass is then begun and
// there are no seconds.
Measured MeasurePasses(const MeasureOptions& options,
                       const std::function<std::optional<double>(uint64_t iterations)>& pass);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RUN_MEASURE_H_
