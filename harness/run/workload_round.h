#ifndef FILTERBENCH_HARNESS_RUN_WORKLOAD_ROUND_H_
#define FILTERBENCH_HARNESS_RUN_WORKLOAD_ROUND_H_

// One case of a workload in one round: the application is made ready with fresh seeds and measured
// at its points.

#include <cstdint>
#include <filesystem>
#include <span>

#include "harness/plan/plan.h"
#include "harness/run/case_round.h"

namespace filterbench {

// As MeasureCaseRound. Files of the application lie below `scratch`, and are gone afterwards.
//
// A point is right if every iteration finds what it must, every answer of the counted one is right,
// and the FPR that its filters met agrees with theory (kFprFalseAlarm, per point and round).
void MeasureWorkloadRound(const Case& work, const MeasureSpec& measure, uint64_t round,
                          std::span<const Point> points, const std::filesystem::path& scratch,
                          const CaseRoundEvents& events);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RUN_WORKLOAD_ROUND_H_
