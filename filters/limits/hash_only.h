#ifndef FILTERBENCH_FILTERS_LIMITS_HASH_ONLY_H_
#define FILTERBENCH_FILTERS_LIMITS_HASH_ONLY_H_

// Baseline: what a lookup costs that looks nothing up. With hashing in the lookup this is the cost
// of hashing the key, with `prehashed` that of reading the stream and of one mixing step, below
// which no filter can go.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "filters/filter.h"

namespace filterbench {

class HashOnly {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "hash_only",
      .summary = "baseline: mixes the hash, reads no table",
      .source = "MurmurHash3 finalizer",
      .fpr_formula = "none: a baseline",
      .is_baseline = true,
  };

  struct Params {
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{};

  struct View {
    uint64_t seed;
    bool MayContain(uint64_t hash) const noexcept { return (Mix64(hash ^ seed) & 1) != 0; }
  };

  static Result<HashOnly> Build(std::span<const uint64_t> hashes, const Params& params);
  static Result<HashOnly> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  View view() const { return {params_.seed}; }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return sizeof(View); }
  uint64_t AllocatedBytes() const { return sizeof(*this); }
  std::span<const std::byte> Table() const { return {}; }
  Details GetDetails() const { return {}; }
  std::optional<FprEstimate> ExpectedFpr() const { return std::nullopt; }
  static std::optional<double> TheoryFpr(double) { return std::nullopt; }

 private:
  explicit HashOnly(const Params& params, uint64_t n) : params_(params) {
    report_ = {.attempts = 1, .distinct_keys = n, .peak_bytes = sizeof(*this)};
  }

  Params params_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_LIMITS_HASH_ONLY_H_
