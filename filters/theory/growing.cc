#include "filters/theory/growing.h"

#include <algorithm>
#include <cmath>

#include "filters/theory/blocked_bloom.h"

namespace filterbench::theory {

double FilledBloomFpr(uint64_t set, uint64_t bits, int k) {
  return std::pow(static_cast<double>(set) / static_cast<double>(bits), k);
}

FprEstimate UnionFpr(std::span<const FprEstimate> parts) {
  double log_none = 0;
  for (const FprEstimate& part : parts) log_none += std::log1p(-std::min(part.mean, 1.0));
  const double none = std::exp(log_none);
  double variance = 0;
  for (const FprEstimate& part : parts) {
    if (part.mean >= 1) continue;
    const double others_none = none / (1 - part.mean);
    variance += others_none * others_none * part.instance_sd * part.instance_sd;
  }
  return {-std::expm1(log_none), std::sqrt(variance)};
}

double SplitBlockBitsPerKey(double fpr, int words, int word_bits) {
  double low = 0.5;
  double high = 8192;
  while (high - low > 1e-4) {
    const double middle = (low + high) / 2;
    (SplitBlockFpr(middle, words, word_bits) > fpr ? low : high) = middle;
  }
  return std::ceil(high * 64) / 64;
}

FprEstimate SharedPrefixFpr(uint64_t n, int prefix_bits) {
  const double prefixes = std::exp2(prefix_bits);
  const double keys = static_cast<double>(n);
  if (prefix_bits == 0) return {n == 0 ? 0.0 : 1.0, 0};
  const double log_free = keys * std::log1p(-1 / prefixes);
  const double log_pair_free =
      prefix_bits == 1 ? (n == 0 ? 0.0 : -HUGE_VAL) : keys * std::log1p(-2 / prefixes);
  const double free = std::exp(log_free);
  const double pair_free = std::exp(log_pair_free);
  // Of the number of free prefixes over their count: (P(free) - P(pair free)) / prefixes + P(pair
  // free) - P(free)^2, the last difference by expm1 since it is O(1 / prefixes) of either.
  const double pairs = free == 0 ? 0 : free * free * std::expm1(log_pair_free - 2 * log_free);
  return {-std::expm1(log_free), std::sqrt(std::max(0.0, (free - pair_free) / prefixes + pairs))};
}

}  // namespace filterbench::theory
