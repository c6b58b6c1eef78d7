#include "filters/theory/agreement.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace filterbench::theory {

double LogBinomialProbability(uint64_t x, uint64_t trials, double p) {
  if (p <= 0) return x == 0 ? 0 : -std::numeric_limits<double>::infinity();
  if (p >= 1) return x == trials ? 0 : -std::numeric_limits<double>::infinity();
  const double n = static_cast<double>(trials);
  const double k = static_cast<double>(x);
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) + k * std::log(p) +
         (n - k) * std::log1p(-p);
}

double InformationBoundBitsPerKey(double fpr) { return -std::log2(fpr); }

double HashCollisionFpr(uint64_t n, int hash_bits) {
  return -std::expm1(static_cast<double>(n) * std::log1p(-std::exp2(-hash_bits)));
}

double BinomialLowerTail(uint64_t x, uint64_t trials, double p) {
  if (x >= trials) return 1;
  if (static_cast<double>(x) >= static_cast<double>(trials) * p) {
    return std::min(1.0, 1 - BinomialUpperTail(x + 1, trials, p));
  }
  double term = std::exp(LogBinomialProbability(x, trials, p));
  double sum = 0;
  const double odds = (1 - p) / p;
  for (uint64_t i = x;; --i) {
    sum += term;
    if (i == 0 || term < sum * 1e-17) break;
    term *= odds * static_cast<double>(i) / static_cast<double>(trials - i + 1);
  }
  return std::min(sum, 1.0);
}

double BinomialUpperTail(uint64_t x, uint64_t trials, double p) {
  if (x == 0) return 1;
  if (x > trials || p <= 0) return 0;
  if (p >= 1) return 1;
  if (static_cast<double>(x) <= static_cast<double>(trials) * p) {
    return std::min(1.0, 1 - BinomialLowerTail(x - 1, trials, p));
  }
  double term = std::exp(LogBinomialProbability(x, trials, p));
  double sum = 0;
  const double odds = p / (1 - p);
  for (uint64_t i = x;; ++i) {
    sum += term;
    if (i == trials || term < sum * 1e-17) break;
    term *= odds * static_cast<double>(trials - i) / static_cast<double>(i + 1);
  }
  return std::min(sum, 1.0);
}

double NormalQuantileTwoSided(double two_sided) {
  double low = 0;
  double high = 40;
  for (int i = 0; i < 200; ++i) {
    const double z = (low + high) / 2;
    (std::erfc(z / std::sqrt(2.0)) > two_sided ? low : high) = z;
  }
  return (low + high) / 2;
}

bool FprAgrees(uint64_t false_positives, uint64_t queries, const FprEstimate& estimate,
               double false_alarm) {
  const double half_width = NormalQuantileTwoSided(false_alarm / 2) * estimate.instance_sd;
  const double low = std::clamp(estimate.mean - half_width, 0.0, 1.0);
  const double high = std::clamp(estimate.mean + half_width, 0.0, 1.0);
  return BinomialLowerTail(false_positives, queries, low) >= false_alarm / 4 &&
         BinomialUpperTail(false_positives, queries, high) >= false_alarm / 4;
}

}  // namespace filterbench::theory
