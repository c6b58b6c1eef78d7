#include "filters/theory.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace filterbench::theory {
namespace {

double LogBinomialProbability(uint64_t x, uint64_t trials, double p) {
  if (p <= 0) return x == 0 ? 0 : -std::numeric_limits<double>::infinity();
  if (p >= 1) return x == trials ? 0 : -std::numeric_limits<double>::infinity();
  const double n = static_cast<double>(trials);
  const double k = static_cast<double>(x);
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) + k * std::log(p) +
         (n - k) * std::log1p(-p);
}

// The rate inside one block that holds i keys, for i = 0, 1, ...: E[(S / bits)^k], S the number of
// distinct cells hit by k i balls in `bits` cells. Computed once per (bits, k), to the load where
// the rate has reached 1 for all purposes.
const std::vector<double>& RateInBlockByLoad(int block_bits, int k) {
  static std::mutex mutex;
  static std::map<std::tuple<int, int>, std::vector<double>> cache;
  const std::lock_guard lock(mutex);
  std::vector<double>& rates = cache[{block_bits, k}];
  if (!rates.empty()) return rates;

  std::vector<double> power(block_bits + 1);
  for (int s = 0; s <= block_bits; ++s) {
    power[s] = std::pow(static_cast<double>(s) / block_bits, k);
  }
  std::vector<double> occupied(block_bits + 1);  // probability of s cells hit so far
  occupied[0] = 1;
  constexpr size_t kMaxLoad = 4096;
  while (rates.size() < kMaxLoad) {
    double rate = 0;
    for (int s = 0; s <= block_bits; ++s) rate += occupied[s] * power[s];
    rates.push_back(rate);
    if (rate > 1 - 1e-12) break;
    for (int ball = 0; ball < k; ++ball) {
      for (int s = block_bits; s > 0; --s) {
        occupied[s] = occupied[s] * s / block_bits +
                      occupied[s - 1] * (block_bits - s + 1) / static_cast<double>(block_bits);
      }
      occupied[0] = 0;
    }
  }
  return rates;
}

// Mean and variance over the load X of the rate in a block, `log_probability(i)` = ln P(X = i) and
// `mean_load` = E[X].
template <class LogProbability>
FprEstimate OverLoads(const std::vector<double>& rates, double mean_load, uint64_t max_load,
                      LogProbability log_probability) {
  const double spread = 12 * std::sqrt(mean_load) + 30;  // leaves out less than 1e-20
  const uint64_t first = static_cast<uint64_t>(std::max(0.0, mean_load - spread));
  const uint64_t last =
      std::min<uint64_t>(max_load, static_cast<uint64_t>(std::ceil(mean_load + spread)));
  double mean = 0;
  double mean_square = 0;
  for (uint64_t i = first; i <= last; ++i) {
    const double probability = std::exp(log_probability(i));
    const double rate = i < rates.size() ? rates[i] : 1.0;
    mean += probability * rate;
    mean_square += probability * rate * rate;
  }
  return {std::min(mean, 1.0), std::sqrt(std::max(0.0, mean_square - mean * mean))};
}

}  // namespace

double InformationBoundBitsPerKey(double fpr) { return -std::log2(fpr); }

double HashCollisionFpr(uint64_t n, int hash_bits) {
  return -std::expm1(static_cast<double>(n) * std::log1p(-std::exp2(-hash_bits)));
}

FprEstimate BlockedBloomFpr(uint64_t n, uint64_t blocks, int k, int block_bits) {
  if (n == 0) return {0, 0};
  const std::vector<double>& rates = RateInBlockByLoad(block_bits, k);
  const double p = 1.0 / static_cast<double>(blocks);
  FprEstimate estimate =
      OverLoads(rates, static_cast<double>(n) * p, n,
                [&](uint64_t i) { return LogBinomialProbability(i, n, p); });
  // The filter's rate is the mean over its blocks. Loads of two blocks are negatively correlated:
  // taking them as independent bounds the deviation from above.
  estimate.instance_sd /= std::sqrt(static_cast<double>(blocks));
  return estimate;
}

double BlockedBloomFpr(double bits_per_key, int k, int block_bits) {
  const std::vector<double>& rates = RateInBlockByLoad(block_bits, k);
  const double mean_load = block_bits / bits_per_key;
  return OverLoads(rates, mean_load, std::numeric_limits<uint64_t>::max(),
                   [&](uint64_t i) {
                     const double x = static_cast<double>(i);
                     return x * std::log(mean_load) - mean_load - std::lgamma(x + 1);
                   })
      .mean;
}

int BlockedBloomBestK(double bits_per_key, int block_bits) {
  int best_k = 1;
  double best_fpr = BlockedBloomFpr(bits_per_key, 1, block_bits);
  for (int k = 2; k <= kMaxBlockedProbes; ++k) {
    const double fpr = BlockedBloomFpr(bits_per_key, k, block_bits);
    if (fpr >= best_fpr) break;  // the rate has one minimum over k
    best_fpr = fpr;
    best_k = k;
  }
  return best_k;
}

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
