#include "filters/theory/growing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

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
  // Filters ask for the same few rates again and again; an answer takes milliseconds.
  static std::mutex mutex;
  static std::map<std::tuple<double, int, int>, double> known;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = known.try_emplace({fpr, words, word_bits}, 0);
  if (!is_new) return entry->second;
  constexpr double kUnit = 64;
  int low = static_cast<int>(0.5 * kUnit);
  int high = static_cast<int>(8192 * kUnit);
  while (low < high) {
    const int middle = (low + high) / 2;
    if (SplitBlockFpr(middle / kUnit, words, word_bits) > fpr) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return entry->second = high / kUnit;
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
