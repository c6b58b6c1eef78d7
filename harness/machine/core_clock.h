// The clock that the core really runs at, measured by a chain of dependent additions.
//
// Neither the time stamp counter (constant rate) nor, in a guest, /proc/cpuinfo tells it. A
// register-to-register addition takes one cycle on every x86-64 and AArch64 core that we know of
// (Fog, Instruction tables: latency of ADD r,r), so n of them in a chain take n cycles. The addend
// is a register and not a constant because newer cores (from Golden Cove on) carry out additions of
// small constants at renaming, at no cost.

#ifndef FILTERBENCH_HARNESS_MACHINE_CORE_CLOCK_H_
#define FILTERBENCH_HARNESS_MACHINE_CORE_CLOCK_H_

#include <optional>

#include "harness/machine/fact.h"

namespace filterbench {

struct CoreClock {
  double cycles_per_ns = 0;  // GHz
  // Relative difference between the fastest repetition and the third fastest.
  double relative_error = 0;
};

// Each repetition takes about 30 us; the fastest counts, since every disturbance only delays. Below
// an emulator the result describes emulated additions. Not known on other architectures, and when
// the three fastest repetitions differ by more than 2 %.
Fact<CoreClock> MeasureCoreClock(int repetitions = 64);

// The clock in cycles per nanosecond (GHz), measured at the first call and kept. nullopt when it
// cannot be measured. It is the highest clock seen during some milliseconds: accurate to 2 % then,
// while the clock at another time differs by what frequency control does (up to the ratio of boost
// and base clock). A bound "one cycle" drawn from it is therefore a bound at that clock.
std::optional<double> CoreCyclesPerNanosecond();

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_CORE_CLOCK_H_
