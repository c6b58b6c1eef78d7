#ifndef FILTERBENCH_HARNESS_RUN_VERIFY_H_
#define FILTERBENCH_HARNESS_RUN_VERIFY_H_

// The gate before any timing, in release builds too: a filter that answers wrongly is not measured.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/record/sample.h"
#include "harness/registry/erased_filter.h"

namespace filterbench {

// How often the FPR of a correct filter is called wrong, per filter and round.
inline constexpr double kFprFalseAlarm = 1e-9;

struct Verification {
  std::string problem;  // empty if all is well
  std::optional<MeasuredFpr> fpr;
  // XXH3-64 over the scalar reference's answers to the first absent keys, 16 hex digits.
  std::string answers_digest;
};

// What is asked of a built filter. Streams are in the form that the filter was built from.
struct VerifyInput {
  const FilterType* type = nullptr;
  const BuiltFilter* filter = nullptr;
  // Hands all keys to `use`, in one or more pieces.
  std::function<void(const std::function<void(const KeyStream&)>& use)> present;
  KeyStream absent;
  std::vector<std::string_view> targets;  // kernels that will be timed
};

// No false negative among all keys; each kernel's batched answers equal to the scalar reference on
// the first million present and absent keys, and its counts on all short spans of them; the FPR
// over all absent keys inside its binomial interval around theory (theory::FprAgrees). Baselines
// are only asked for equal answers.
Verification Verify(const VerifyInput& input);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RUN_VERIFY_H_
