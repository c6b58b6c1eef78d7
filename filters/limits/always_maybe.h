#ifndef FILTERBENCH_FILTERS_LIMITS_ALWAYS_MAYBE_H_
#define FILTERBENCH_FILTERS_LIMITS_ALWAYS_MAYBE_H_

// Baseline: no filter. Workloads that use filters (workloads/workload.h) do without one where a
// sweep names it; in loops over lookups it is what the loop itself costs.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "filters/filter.h"

namespace filterbench {

class AlwaysMaybe {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "always_maybe",
      .summary = "baseline: no filter, maybe for every key",
      .source = "none",
      .fpr_formula = "none: a baseline",
      .is_baseline = true,
  };

  struct Params {
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{};

  struct View {
    bool MayContain(uint64_t) const noexcept { return true; }
  };

  static Result<AlwaysMaybe> Build(std::span<const uint64_t> hashes, const Params& params);
  static Result<AlwaysMaybe> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  View view() const { return {}; }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return 0; }
  uint64_t AllocatedBytes() const { return sizeof(*this); }
  std::span<const std::byte> Table() const { return {}; }
  Details GetDetails() const { return {}; }
  std::optional<FprEstimate> ExpectedFpr() const { return std::nullopt; }
  static std::optional<double> TheoryFpr(double) { return std::nullopt; }

 private:
  explicit AlwaysMaybe(const Params& params, uint64_t n) : params_(params) {
    report_ = {.attempts = 1, .distinct_keys = n, .peak_bytes = sizeof(*this)};
  }

  Params params_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_LIMITS_ALWAYS_MAYBE_H_
