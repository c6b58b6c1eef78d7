#include "filters/theory/block_loads.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "filters/theory/agreement.h"

namespace filterbench::theory {
namespace {

// Moments of the rate g of a block over its load X and over where bits fell.
struct BlockMoments {
  double mean = 0;
  double variance = 0;
  double covariance_with_load = 0;
};

// `log_probability(i)` = ln P(X = i), `mean_load` = E[X].
template <class LogProbability>
BlockMoments OverLoads(const RatesByLoad& rates, double mean_load, uint64_t max_load,
                       LogProbability log_probability) {
  const double spread = 12 * std::sqrt(mean_load) + 30;  // leaves out less than 1e-20
  const uint64_t first = static_cast<uint64_t>(std::max(0.0, mean_load - spread));
  const uint64_t last =
      std::min<uint64_t>(max_load, static_cast<uint64_t>(std::ceil(mean_load + spread)));
  if (first >= rates.size()) return {1, 0, 0};
  double mean = 0;
  double mean_square = 0;
  double mean_product = 0;
  for (uint64_t i = first; i <= last; ++i) {
    const double probability = std::exp(log_probability(i));
    const RateInBlock rate = i < rates.size() ? rates[i] : RateInBlock{1, 1};
    mean += probability * rate.mean;
    mean_square += probability * rate.mean_square;
    mean_product += probability * rate.mean * (static_cast<double>(i) - mean_load);
  }
  return {std::min(mean, 1.0), std::max(0.0, mean_square - mean * mean), mean_product};
}

}  // namespace

const RatesByLoad& RatesOfUniformProbes(int bits, int k) {
  static std::mutex mutex;
  static std::map<std::pair<int, int>, RatesByLoad> cache;
  const std::lock_guard lock(mutex);
  RatesByLoad& rates = cache[{bits, k}];
  if (!rates.empty()) return rates;

  std::vector<double> power(bits + 1);
  for (int s = 0; s <= bits; ++s) power[s] = std::pow(static_cast<double>(s) / bits, k);
  std::vector<double> occupied(bits + 1);  // probability of s cells hit so far
  occupied[0] = 1;
  constexpr size_t kMaxLoad = 4096;
  while (rates.size() < kMaxLoad) {
    RateInBlock rate = {0, 0};
    for (int s = 0; s <= bits; ++s) {
      rate.mean += occupied[s] * power[s];
      rate.mean_square += occupied[s] * power[s] * power[s];
    }
    rates.push_back(rate);
    if (rate.mean > 1 - kRateIsOne) break;
    for (int ball = 0; ball < k; ++ball) {
      for (int s = bits; s > 0; --s) {
        occupied[s] = occupied[s] * s / bits +
                      occupied[s - 1] * (bits - s + 1) / static_cast<double>(bits);
      }
      occupied[0] = 0;
    }
  }
  return rates;
}

FprEstimate FprOfBlocks(uint64_t n, std::span<const BlockClass> classes, const RatesByLoad& rates) {
  if (n == 0) return {0, 0};
  double mean = 0;
  double variance = 0;
  for (const auto& [count, share] : classes) {
    if (count == 0) continue;
    const double mean_load = static_cast<double>(n) * share;
    const BlockMoments block = OverLoads(
        rates, mean_load, n, [&](uint64_t i) { return LogBinomialProbability(i, n, share); });
    // The filter's rate is the mean over its blocks. Their loads add up to n, so the part of a
    // block's rate that is linear in its load cancels in the sum: what is left is the variance
    // around the regression of the rate on the load, as if blocks were independent.
    const double load_variance = mean_load * (1 - share);
    const double explained =
        load_variance > 0
            ? block.covariance_with_load * block.covariance_with_load / load_variance
            : 0;
    mean += count * share * block.mean;
    variance += count * share * share * std::max(0.0, block.variance - explained);
  }
  return {std::min(mean, 1.0), std::sqrt(variance)};
}

FprEstimate FprOfBlocks(uint64_t n, uint64_t blocks, const RatesByLoad& rates) {
  const auto count = static_cast<double>(blocks);
  return FprOfBlocks(n, std::array<BlockClass, 1>{{{count, 1 / count}}}, rates);
}

std::vector<BlockClass> BlocksOf32Bits(uint64_t blocks) {
  constexpr double kValues = 0x1p32;
  const uint64_t larger = (uint64_t{1} << 32) % blocks;
  const double values = static_cast<double>((uint64_t{1} << 32) / blocks);
  return {{static_cast<double>(larger), (values + 1) / kValues},
          {static_cast<double>(blocks - larger), values / kValues}};
}

size_t LastLoad(double mean_load) {
  constexpr double kMaxLoad = 1 << 20;
  return static_cast<size_t>(
      std::min(kMaxLoad, std::ceil(mean_load + 12 * std::sqrt(mean_load) + 30)));
}

double FprOfManyBlocks(double keys_per_block, const RatesByLoad& rates) {
  return OverLoads(rates, keys_per_block, std::numeric_limits<uint64_t>::max(),
                   [&](uint64_t i) {
                     const double x = static_cast<double>(i);
                     return x * std::log(keys_per_block) - keys_per_block - std::lgamma(x + 1);
                   })
      .mean;
}

FprEstimate WithSameHash(FprEstimate fpr, double same) {
  return {fpr.mean + same - fpr.mean * same, std::hypot(fpr.instance_sd, 0.1 * same)};
}

}  // namespace filterbench::theory
