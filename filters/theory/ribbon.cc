#include "filters/theory/ribbon.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace filterbench::theory {

double RibbonSlotsPerKey(uint64_t n, int width) {
  // Knots at powers of two, between them linear in n.
  struct Knot {
    int log2_n;
    double w64;
    double w128;
  };
  static constexpr Knot kKnots[] = {
      {0, 1.049, 1.023},  {10, 1.049, 1.023}, {13, 1.067, 1.026}, {17, 1.096, 1.037},
      {20, 1.121, 1.048}, {23, 1.148, 1.061}, {27, 1.178, 1.075}, {36, 1.252, 1.109},
  };
  const double x = static_cast<double>(std::max<uint64_t>(n, 1));
  size_t i = 1;
  while (i + 1 < std::size(kKnots) && std::ldexp(1.0, kKnots[i].log2_n) < x) ++i;
  const Knot& low = kKnots[i - 1];
  const Knot& high = kKnots[i];
  // log2(x) by the chord between powers of two: at most 0.09 less.
  int exponent;
  const double mantissa = std::frexp(x, &exponent);
  const double log2_x = exponent - 1 + (2 * mantissa - 1);
  const double t = (log2_x - low.log2_n) / (high.log2_n - low.log2_n);
  return width == 64 ? low.w64 + t * (high.w64 - low.w64) : low.w128 + t * (high.w128 - low.w128);
}

double HomogeneousRibbonSlotsPerKey(double columns, int width) {
  return 1 + (4 + columns / 4) / width;
}

int HomogeneousRibbonExtraSlots(int width) { return width / 4; }

double RibbonFpr(int columns, double wide_share) {
  return std::ldexp(1.0, -columns) * (1 - wide_share / 2);
}

double RibbonFpr(double columns) {
  const double whole = std::floor(columns);
  return RibbonFpr(static_cast<int>(whole), columns - whole);
}

FprEstimate HomogeneousRibbonFpr(uint64_t n, int columns, double wide_share, int width) {
  const double nominal = RibbonFpr(columns, wide_share);
  // The rows that wait for a free slot form a queue of load 1 - excess. A region is solved when
  // about `width` wait: a share of the starts that falls with exp(-2 excess width) (Kingman's
  // heavy-traffic law). Both constants are fitted to simulations with random rows.
  const double real_columns = columns + wide_share;
  const double excess = HomogeneousRibbonSlotsPerKey(real_columns, width) - 1;
  const double in_span = 20 * std::exp(-2 * excess * width);
  const double mean = nominal + (1 - nominal) * in_span;
  // Solved regions are rare and long: few instances have any. Their number is Poisson, their
  // length exponential with mean 2 / excess^2, so the rate is compound Poisson. Its tail is
  // exponential, not normal: three mean lengths stand for the deviation, so that a bound of 6
  // deviations covers 18 mean lengths, exceeded with probability exp(-18).
  const double keys = static_cast<double>(std::max<uint64_t>(n, 1));
  const double region_share = std::min(1.0, 2 / (excess * excess * keys));
  return {mean, std::max(std::sqrt(2 * in_span * region_share), 3 * region_share)};
}

}  // namespace filterbench::theory
