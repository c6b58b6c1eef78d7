#include "workloads/zipf.h"

#include <algorithm>
#include <cmath>

#include "filters/hash.h"

namespace filterbench {

ZipfSampler::ZipfSampler(double exponent, uint64_t ranks)
    : exponent_(exponent), ranks_(static_cast<double>(ranks)) {
  // The bar of rank 1 has its whole weight to the left of 1.5.
  area_first_ = Area(1.5) - 1;
  area_last_ = Area(ranks_ + 0.5);
  always_accepted_ = 2 - AreaInverse(Area(2.5) - Weight(2));
}

uint64_t ZipfSampler::Draw(uint64_t& state) const {
  for (;;) {
    state += kGoldenGamma;
    const double uniform = static_cast<double>(Mix64(state) >> 11) * 0x1p-53;
    const double area = area_last_ + uniform * (area_first_ - area_last_);
    const double x = AreaInverse(area);
    const double rank = std::clamp(std::round(x), 1.0, ranks_);
    if (rank - x <= always_accepted_ || area >= Area(rank + 0.5) - Weight(rank)) {
      return static_cast<uint64_t>(rank);
    }
  }
}

double ZipfSampler::Area(double x) const {
  const double log_x = std::log(x);
  const double power = (1 - exponent_) * log_x;
  // (x^(1 - s) - 1) / (1 - s), which is log x in the limit.
  return std::abs(power) > 1e-12 ? std::expm1(power) / power * log_x : log_x;
}

double ZipfSampler::AreaInverse(double area) const {
  const double scaled = std::max(-1.0, area * (1 - exponent_));
  return std::exp(std::abs(scaled) > 1e-12 ? std::log1p(scaled) / scaled * area : area);
}

double ZipfSampler::Weight(double x) const { return std::exp(-exponent_ * std::log(x)); }

}  // namespace filterbench
