// The resolution of the clock that times passes, as it is found and not as it is promised.

#ifndef FILTERBENCH_HARNESS_MACHINE_CLOCK_STEP_H_
#define FILTERBENCH_HARNESS_MACHINE_CLOCK_STEP_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "harness/machine/fact.h"

namespace filterbench {

// The smallest difference, above zero, of two successive readings of `now_ns`: the step of the
// clock or the cost of a reading, whichever is larger. At least 10000 readings, and more until
// three steps were seen: a clock of 10 ms shows them after 30 ms. A clock that stands still is given
// up after some tenths of a second.
template <class Now>
Fact<int64_t> MeasureClockStepNs(const Now& now_ns) {
  constexpr int kMinReadings = 10'000;
  constexpr int kMaxReadings = 10'000'000;
  constexpr int kMinSteps = 3;
  std::optional<int64_t> smallest_ns;
  int steps = 0;
  int64_t previous_ns = now_ns();
  for (int reading = 0; reading < kMaxReadings; ++reading) {
    if (reading >= kMinReadings && steps >= kMinSteps) break;
    const int64_t reading_ns = now_ns();
    const int64_t step_ns = reading_ns - previous_ns;
    previous_ns = reading_ns;
    if (step_ns <= 0) continue;
    ++steps;
    smallest_ns = std::min(step_ns, smallest_ns.value_or(step_ns));
  }
  if (!smallest_ns) return Fact<int64_t>::Unknown("the clock stands still");
  return Fact<int64_t>::Known(*smallest_ns);
}

// Of std::chrono::steady_clock, which Google Benchmark times by too. Measured at the first call and
// kept: the manifest and all samples of a process state the same.
const Fact<int64_t>& ClockStepNs();

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_CLOCK_STEP_H_
