#include "harness/machine/clock_step.h"

#include <chrono>

namespace filterbench {

const Fact<int64_t>& ClockStepNs() {
  static const Fact<int64_t> step_ns = MeasureClockStepNs([]() -> int64_t {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  });
  return step_ns;
}

}  // namespace filterbench
