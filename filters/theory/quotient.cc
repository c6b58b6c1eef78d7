#include "filters/theory/quotient.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace filterbench::theory {
namespace {

// Cells of one probability each.
struct CellKind {
  double cells;
  double probability;
};

// The probability of the cells that n balls occupy: mean and deviation, exactly.
FprEstimate OccupiedShare(double n, std::span<const CellKind> kinds) {
  double mean = 0;
  double variance = 0;
  for (const CellKind& a : kinds) {
    if (a.cells <= 0 || a.probability >= 1) continue;
    const double log_empty = n * std::log1p(-a.probability);
    const double empty = std::exp(log_empty);
    mean += a.cells * a.probability * -std::expm1(log_empty);
    for (const CellKind& b : kinds) {
      if (b.cells <= 0 || b.probability >= 1) continue;
      // Of two cells, P(both empty) = (1 - a - b)^n over the product of (1 - a)^n and (1 - b)^n.
      const double log_ratio =
          n * std::log1p(-a.probability * b.probability /
                         ((1 - a.probability) * (1 - b.probability)));
      const double other_empty = std::exp(n * std::log1p(-b.probability));
      variance += a.cells * a.probability * b.cells * b.probability * empty * other_empty *
                  std::expm1(log_ratio);
      // A cell with itself was taken as two cells: P(empty) in place of P(both empty).
      if (&a == &b) {
        variance += a.cells * a.probability * a.probability * empty *
                    -std::expm1(log_empty + log_ratio);
      }
    }
  }
  return {mean, std::sqrt(std::max(0.0, variance))};
}

}  // namespace

FprEstimate QuotientFpr(uint64_t n, double fingerprints) {
  const CellKind kinds[] = {{fingerprints, 1 / fingerprints}};
  return OccupiedShare(static_cast<double>(n), kinds);
}

double QuotientFpr(double remainder_bits, double load) {
  return -std::expm1(-load * std::exp2(-remainder_bits));
}

FprEstimate VectorQuotientFpr(uint64_t n, uint64_t blocks, double tags) {
  const double m = static_cast<double>(blocks);
  const CellKind kinds[] = {
      {tags * (m - 1) / 2, 2 / (tags * m)},
      {tags, 1 / (tags * m)},
  };
  return OccupiedShare(static_cast<double>(n), kinds);
}

double VectorQuotientFpr(double remainder_bits, double load, double slots, double buckets) {
  return -std::expm1(-2 * load * slots / buckets * std::exp2(-remainder_bits));
}

ForwardedShare PrefixForwardedShare(uint64_t n, uint64_t bins, int capacity) {
  if (n <= static_cast<uint64_t>(capacity)) return {};
  const double keys = static_cast<double>(n);
  const double p = 1 / static_cast<double>(bins);
  double mean = 0;
  double square = 0;
  double overflow = 0;
  const auto add = [&](double load, double probability) {
    // The share of values above the capacity-th least of `load`: Beta(load - capacity + 1,
    // capacity).
    const double above = load - capacity + 1;
    mean += probability * above / (load + 1);
    square += probability * above * (above + 1) / ((load + 1) * (load + 2));
    overflow += probability * (load - capacity);
  };
  if (bins == 1) {
    add(keys, 1);
  } else {
    // In logarithms: the probability of no key underflows where many are thrown. Nothing is left
    // some deviations above the mean.
    const double last = std::min(keys, keys * p + 40 * std::sqrt(keys * p) + 200);
    double log_probability = keys * std::log1p(-p);
    for (double load = 1; load <= last; ++load) {
      log_probability += std::log((keys - load + 1) / load * p / (1 - p));
      if (load > capacity) add(load, std::exp(log_probability));
    }
  }
  // Bins that fill up take keys from others: taking them as independent is an upper bound.
  return {mean, std::sqrt(std::max(0.0, square - mean * mean) * p), overflow / (keys * p)};
}

FprEstimate PrefixFilterFpr(uint64_t n, uint64_t bins, double fingerprints, double forwarded,
                            const FprEstimate& spare) {
  const FprEstimate equal = QuotientFpr(n, static_cast<double>(bins) * fingerprints);
  return {equal.mean + (1 - equal.mean) * forwarded * spare.mean,
          std::hypot(equal.instance_sd, forwarded * spare.instance_sd)};
}

}  // namespace filterbench::theory
