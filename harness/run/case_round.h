#ifndef FILTERBENCH_HARNESS_RUN_CASE_ROUND_H_
#define FILTERBENCH_HARNESS_RUN_CASE_ROUND_H_

// One case in one round: a filter is built with a fresh seed, verified, and measured at its points.

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "harness/plan/plan.h"
#include "harness/record/sample.h"

namespace filterbench {

// The sample of a point that came to no measurement in a round of a run of this seed.
Sample UnmeasuredSample(const Point& point, uint64_t seed, uint64_t round, SampleStatus status,
                        std::string reason);

struct CaseRoundEvents {
  // Between the steps of building and verifying, so that whoever waits for one knows which it is.
  std::function<void()> alive = [] {};
  // The filter was built and verified, well or not.
  std::function<void()> prepared = [] {};
  // One sample for each point, in their order. Its position in the run, its time and its process
  // are not known here.
  std::function<void(Sample sample)> record;
};

// What goes wrong is in the samples; `points` are points of the case.
void MeasureCaseRound(const Case& work, const MeasureSpec& measure, uint64_t round,
                      std::span<const Point> points, const CaseRoundEvents& events);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RUN_CASE_ROUND_H_
