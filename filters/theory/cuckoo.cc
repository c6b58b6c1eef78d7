#include "filters/theory/cuckoo.h"

#include <algorithm>
#include <cmath>

namespace filterbench::theory {

double CuckooFpr(double fingerprint_bits, double load) {
  const double tags = std::exp2(fingerprint_bits);
  const double q = std::min(1.0, (tags + 2) / (tags * tags));
  return -std::expm1(8 * load * std::log1p(-q));
}

FprEstimate CuckooFpr(uint64_t n, uint64_t buckets, int fingerprint_bits) {
  const double keys = static_cast<double>(n);
  const double m = static_cast<double>(buckets);
  const double tags = std::exp2(fingerprint_bits);
  // Kinds of cells: how many there are, and how probable one is. Tag 1 is twice as probable as the
  // tags from 2 on; pairs of one bucket are half as probable as the others.
  struct Kind {
    double cells;
    double probability;
  };
  const Kind kinds[] = {
      {(m - 1) / 2, 2 / tags * 2 / m},
      {1, 2 / tags / m},
      {(tags - 2) * (m - 1) / 2, 1 / tags * 2 / m},
      {tags - 2, 1 / tags / m},
  };
  // The rate is the probability of the occupied cells, and 1 - that of the empty ones. For two
  // cells, P(both empty) = (1 - a - b)^n is less than the product of (1 - a)^n and (1 - b)^n.
  double mean = 0;
  double variance = 0;
  for (const Kind& a : kinds) {
    if (a.cells == 0 || a.probability >= 1) continue;
    const double empty = std::exp(keys * std::log1p(-a.probability));
    mean += a.cells * a.probability * -std::expm1(keys * std::log1p(-a.probability));
    for (const Kind& b : kinds) {
      if (b.cells == 0 || b.probability >= 1) continue;
      const double other_empty = std::exp(keys * std::log1p(-b.probability));
      const double joint = a.probability * b.probability /
                           ((1 - a.probability) * (1 - b.probability));
      variance += a.cells * a.probability * b.cells * b.probability * empty * other_empty *
                  std::expm1(keys * std::log1p(-joint));
      if (&a == &b) {  // a cell with itself, taken as a pair of two cells above
        const double covariance = empty * empty * std::expm1(keys * std::log1p(-joint));
        variance += a.cells * a.probability * a.probability * (empty - empty * empty - covariance);
      }
    }
  }
  return {mean, std::sqrt(std::max(0.0, variance))};
}

}  // namespace filterbench::theory
