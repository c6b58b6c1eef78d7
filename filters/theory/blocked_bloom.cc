#include "filters/theory/blocked_bloom.h"

#include <cmath>

#include "filters/theory/block_loads.h"

namespace filterbench::theory {
namespace {

// As RatesOfUniformProbes for one probe in each word. A word's share of set bits S / bits has
// the moments P(a bit is set) and, with a second bit that is the same with probability 1 / bits,
// P(both are set); words are independent.
RatesByLoad RateInSplitBlockByLoad(int words, int word_bits) {
  const double bits = word_bits;
  RatesByLoad rates;
  constexpr int kMaxLoad = 4096;
  for (int load = 0; load < kMaxLoad; ++load) {
    const double clear = std::pow(1 - 1 / bits, load);
    const double both_clear = std::pow(1 - 2 / bits, load);
    const double set = 1 - clear;
    const double both_set = set / bits + (1 - 1 / bits) * (1 - 2 * clear + both_clear);
    rates.push_back({std::pow(set, words), std::pow(both_set, words)});
    if (rates.back().mean > 1 - kRateIsOne) break;
  }
  return rates;
}

}  // namespace

FprEstimate BlockedBloomFpr(uint64_t n, uint64_t blocks, int k, int block_bits) {
  return FprOfBlocks(n, blocks, RatesOfUniformProbes(block_bits, k));
}

double BlockedBloomFpr(double bits_per_key, int k, int block_bits) {
  return FprOfManyBlocks(block_bits / bits_per_key, RatesOfUniformProbes(block_bits, k));
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
