#include "filters/theory/blocked_bloom.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "filters/theory/agreement.h"

namespace filterbench::theory {
namespace {

// The rate inside one block that holds i keys, and its square, as means over where the keys' probes
// fell: E[(S / bits)^k] and E[(S / bits)^2k], S the number of distinct cells hit by k i balls in
// `bits` cells.
struct RateInBlock {
  double mean;
  double mean_square;
};

// For i = 0, 1, ... to the load where the rate has reached 1 for all purposes. Computed once per
// (bits, k).
const std::vector<RateInBlock>& RateInBlockByLoad(int block_bits, int k) {
  static std::mutex mutex;
  static std::map<std::tuple<int, int>, std::vector<RateInBlock>> cache;
  const std::lock_guard lock(mutex);
  std::vector<RateInBlock>& rates = cache[{block_bits, k}];
  if (!rates.empty()) return rates;

  std::vector<double> power(block_bits + 1);
  for (int s = 0; s <= block_bits; ++s) {
    power[s] = std::pow(static_cast<double>(s) / block_bits, k);
  }
  std::vector<double> occupied(block_bits + 1);  // probability of s cells hit so far
  occupied[0] = 1;
  constexpr size_t kMaxLoad = 4096;
  while (rates.size() < kMaxLoad) {
    RateInBlock rate = {0, 0};
    for (int s = 0; s <= block_bits; ++s) {
      rate.mean += occupied[s] * power[s];
      rate.mean_square += occupied[s] * power[s] * power[s];
    }
    rates.push_back(rate);
    if (rate.mean > 1 - 1e-12) break;
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

// Moments of the rate g of a block over its load X and over where probes fell.
struct BlockMoments {
  double mean = 0;
  double variance = 0;
  double covariance_with_load = 0;
};

// `log_probability(i)` = ln P(X = i), `mean_load` = E[X].
template <class LogProbability>
BlockMoments OverLoads(const std::vector<RateInBlock>& rates, double mean_load, uint64_t max_load,
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

// The rate of n keys in `blocks` blocks, given that of a block by its load.
FprEstimate FprOfBlocks(uint64_t n, uint64_t blocks, const std::vector<RateInBlock>& rates) {
  if (n == 0) return {0, 0};
  const double p = 1.0 / static_cast<double>(blocks);
  const double mean_load = static_cast<double>(n) * p;
  const BlockMoments block = OverLoads(
      rates, mean_load, n, [&](uint64_t i) { return LogBinomialProbability(i, n, p); });
  // The filter's rate is the mean over its blocks. Their loads add up to n, so the part of a block's
  // rate that is linear in its load cancels in the sum: what is left is the variance around the
  // regression of the rate on the load, as if blocks were independent.
  const double load_variance = mean_load * (1 - p);
  const double explained =
      load_variance > 0 ? block.covariance_with_load * block.covariance_with_load / load_variance
                        : 0;
  return {block.mean, std::sqrt(std::max(0.0, block.variance - explained) * p)};
}

// The limit for n to infinity: loads follow the Poisson law.
double FprOfManyBlocks(double mean_load, const std::vector<RateInBlock>& rates) {
  return OverLoads(rates, mean_load, std::numeric_limits<uint64_t>::max(),
                   [&](uint64_t i) {
                     const double x = static_cast<double>(i);
                     return x * std::log(mean_load) - mean_load - std::lgamma(x + 1);
                   })
      .mean;
}

// The same as RateInBlockByLoad for one probe in each word. A word's share of set bits S / bits has
// the moments P(a bit is set) and, with a second bit that is the same with probability 1 / bits,
// P(both are set); words are independent.
std::vector<RateInBlock> RateInSplitBlockByLoad(int words, int word_bits) {
  const double bits = word_bits;
  std::vector<RateInBlock> rates;
  constexpr int kMaxLoad = 4096;
  for (int load = 0; load < kMaxLoad; ++load) {
    const double clear = std::pow(1 - 1 / bits, load);
    const double both_clear = std::pow(1 - 2 / bits, load);
    const double set = 1 - clear;
    const double both_set = set / bits + (1 - 1 / bits) * (1 - 2 * clear + both_clear);
    rates.push_back({std::pow(set, words), std::pow(both_set, words)});
    if (rates.back().mean > 1 - 1e-12) break;
  }
  return rates;
}

}  // namespace

FprEstimate BlockedBloomFpr(uint64_t n, uint64_t blocks, int k, int block_bits) {
  return FprOfBlocks(n, blocks, RateInBlockByLoad(block_bits, k));
}

double BlockedBloomFpr(double bits_per_key, int k, int block_bits) {
  return FprOfManyBlocks(block_bits / bits_per_key, RateInBlockByLoad(block_bits, k));
}

FprEstimate SplitBlockFpr(uint64_t n, uint64_t blocks, int words, int word_bits) {
  return FprOfBlocks(n, blocks, RateInSplitBlockByLoad(words, word_bits));
}

double SplitBlockFpr(double bits_per_key, int words, int word_bits) {
  return FprOfManyBlocks(words * word_bits / bits_per_key,
                         RateInSplitBlockByLoad(words, word_bits));
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

}  // namespace filterbench::theory
