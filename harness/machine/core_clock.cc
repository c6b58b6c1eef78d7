#include "harness/machine/core_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace filterbench {
namespace {

#if defined(__x86_64__) || defined(__aarch64__)

// Long enough that the loop's own counter and branch, which run beside the chain, stay hidden.
constexpr int64_t kAdditionsPerLoop = 128;
constexpr int64_t kLoops = 800;
constexpr double kCycles = static_cast<double>(kAdditionsPerLoop * kLoops);

// One chain of kCycles dependent additions.
void RunAdditions() {
  uint64_t sum = 1;
  const uint64_t addend = 3;
  for (int64_t loop = 0; loop < kLoops; ++loop) {
#if defined(__x86_64__)
    asm volatile(".rept 128\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(addend) : "cc");
#else
    asm volatile(".rept 128\n\tadd %0, %0, %1\n\t.endr" : "+r"(sum) : "r"(addend));
#endif
  }
}
static_assert(kAdditionsPerLoop == 128, "the .rept count above");

double TimeAdditionsNs() {
  const auto begin = std::chrono::steady_clock::now();
  RunAdditions();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::nano>(end - begin).count();
}

#endif

}  // namespace

Fact<CoreClock> MeasureCoreClock(int repetitions) {
#if defined(__x86_64__) || defined(__aarch64__)
  constexpr double kMaxRelativeError = 0.02;
  std::vector<double> times_ns;
  for (int i = 0; i < std::max(repetitions, 3); ++i) times_ns.push_back(TimeAdditionsNs());
  std::partial_sort(times_ns.begin(), times_ns.begin() + 3, times_ns.end());
  if (times_ns[0] <= 0) return Fact<CoreClock>::Unknown("the clock is too coarse");
  const double relative_error = times_ns[2] / times_ns[0] - 1;
  if (relative_error > kMaxRelativeError) {
    return Fact<CoreClock>::Unknown(
        fmt::format("the three fastest of {} repetitions differ by {:.1f} %", times_ns.size(),
                    relative_error * 100));
  }
  return Fact<CoreClock>::Known({kCycles / times_ns[0], relative_error});
#else
  static_cast<void>(repetitions);
  return Fact<CoreClock>::Unknown("no measuring loop for this architecture");
#endif
}

std::optional<double> CoreCyclesPerNanosecond() {
  static const std::optional<double> cycles_per_ns = [] {
    const Fact<CoreClock> clock = MeasureCoreClock();
    return clock.known() ? std::optional<double>(clock.value().cycles_per_ns) : std::nullopt;
  }();
  return cycles_per_ns;
}

}  // namespace filterbench
