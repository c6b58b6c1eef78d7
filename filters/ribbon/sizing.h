#ifndef FILTERBENCH_FILTERS_RIBBON_SIZING_H_
#define FILTERBENCH_FILTERS_RIBBON_SIZING_H_

// How the size of a ribbon filter is asked for, and which keys are banded when: what the filters of
// this family share between their parameters and their builds.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "filters/result.h"
#include "filters/ribbon/banding.h"
#include "filters/table.h"

namespace filterbench {

// Bits per key, rate or columns: exactly one of the three is not 0.
struct RibbonRequest {
  static constexpr uint32_t kMaxColumns = 32;

  double bits_per_key = 0;
  double fpr = 0;
  double columns = 0;

  // `columns` and `fpr` may not both be given. Either of them takes the place of the default of
  // bits_per_key; any other value of bits_per_key beside them is refused.
  template <class Params>
  static Result<RibbonRequest> Of(const Params& params) {
    const bool default_bits = params.bits_per_key == Params{}.bits_per_key;
    const bool other = params.fpr != 0 || params.columns != 0;
    if ((params.fpr != 0 && params.columns != 0) ||
        (other && params.bits_per_key != 0 && !default_bits)) {
      return Error{fmt::format(
          "bits_per_key, fpr, columns: contradict each other, give one (are {}, {}, {})",
          params.bits_per_key, params.fpr, params.columns)};
    }
    if (!other && params.bits_per_key == 0) {
      return Error{"bits_per_key, fpr, columns: one must be given, all are 0"};
    }
    if (!(params.bits_per_key >= 0 && params.bits_per_key <= kMaxColumns)) {
      return Error{fmt::format("bits_per_key: must be 0 or in (0, {}], is {}", kMaxColumns,
                               params.bits_per_key)};
    }
    if (params.fpr != 0 && !(params.fpr >= 0x1p-32 && params.fpr <= 0.5)) {
      return Error{fmt::format("fpr: must be 0 or in [2^-32, 0.5], is {}", params.fpr)};
    }
    if (params.columns != 0 && !(params.columns >= 1 && params.columns <= kMaxColumns)) {
      return Error{
          fmt::format("columns: must be 0 or in [1, {}], is {}", kMaxColumns, params.columns)};
    }
    return RibbonRequest{other ? 0 : params.bits_per_key, params.fpr, params.columns};
  }
};

// The least number of whole columns whose rate is not below `fpr`, and the share of starts that
// need one more.
inline std::pair<uint32_t, double> RibbonColumnsForFpr(double fpr) {
  uint32_t columns = 1;
  while (std::ldexp(1.0, -static_cast<int>(columns + 1)) >= fpr) ++columns;
  return {columns, std::max(0.0, 2 * (1 - std::ldexp(fpr, static_cast<int>(columns))))};
}

// Keys ordered by the region of the table where their rows start, so that banding walks through
// memory. Within a region they keep their order.
class RibbonKeyOrder {
 public:
  // Rows of one region fit the second-level cache.
  static constexpr uint64_t kMaxRegions = 2048;
  static constexpr uint64_t kMinSlotsPerRegion = 4096;

  explicit RibbonKeyOrder(uint64_t slots) {
    while ((slots >> region_shift_) >= kMaxRegions ||
           (uint64_t{1} << region_shift_) < kMinSlotsPerRegion) {
      ++region_shift_;
    }
    ends_.resize((slots >> region_shift_) + 1);
  }

  size_t regions() const { return ends_.size(); }
  uint64_t region_slots() const { return uint64_t{1} << region_shift_; }

  // Keeps mix(key) of every key. `start_of` gives the slot where the row of a mixed key starts.
  template <class Mix, class StartOf>
  std::optional<Error> Order(std::span<const uint64_t> keys, const Mix& mix,
                             const StartOf& start_of) {
    if (keys_.size() != keys.size_bytes()) {
      Result<AlignedTable> table = AlignedTable::Allocate(keys.size_bytes());
      if (!table) return Error{table.error()};
      keys_ = std::move(*table);
    }
    std::fill(ends_.begin(), ends_.end(), 0);
    const int shift = region_shift_;
    for (const uint64_t key : keys) ++ends_[start_of(mix(key)) >> shift];
    uint64_t begin = 0;
    for (uint64_t& end : ends_) begin += std::exchange(end, begin);
    uint64_t* ordered = keys_.As<uint64_t>();
    for (const uint64_t key : keys) {
      const uint64_t mixed = mix(key);
      ordered[ends_[start_of(mixed) >> shift]++] = mixed;
    }
    return std::nullopt;
  }

  std::span<const uint64_t> All() const {
    return {keys_.As<uint64_t>(), keys_.size() / sizeof(uint64_t)};
  }
  std::span<const uint64_t> Region(size_t i) const {
    const uint64_t begin = i == 0 ? 0 : ends_[i - 1];
    return All().subspan(begin, ends_[i] - begin);
  }
  uint64_t AllocatedBytes() const {
    return keys_.allocated_bytes() + ends_.capacity() * sizeof(uint64_t);
  }

 private:
  int region_shift_ = 0;
  std::vector<uint64_t> ends_;
  AlignedTable keys_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_RIBBON_SIZING_H_
