#include "filters/theory/rocksdb_bloom.h"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cmath>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "filters/hash.h"
#include "filters/theory/agreement.h"
#include "filters/theory/block_loads.h"

namespace filterbench::theory {
namespace {

constexpr int kLineBits = 512;

// --- Double hashing in a line ---

// By the load of a line, for one k, as far as was asked for.
class LegacyRates {
 public:
  explicit LegacyRates(int k) : k_(k) {
    for (int log2_step = 0; log2_step < 10; ++log2_step) AddStep((1 << log2_step) % kLineBits);
  }

  const RatesByLoad& UpTo(size_t load) {
    const RatesByLoad& uniform = RatesOfUniformProbes(kLineBits, k_);
    while (rates_.size() <= load) {
      double mean = 0;
      for (Step& step : steps_) {
        double covered = 0;
        for (size_t set = 0; set < step.missed.size(); ++set) {
          covered += std::popcount(set) % 2 == 0 ? step.power[set] : -step.power[set];
          step.power[set] *= step.missed[set];
        }
        mean += step.share * std::clamp(covered, 0.0, 1.0);
      }
      // Whether two queries are covered alike depends first of all on how many bits are set, as
      // with uniform probes; then on which (a, b) happen to be covered, a Poisson number of them,
      // mostly in pairs (a path and its reverse).
      const size_t i = rates_.size();
      const RateInBlock like = i < uniform.size() ? uniform[i] : RateInBlock{1, 1};
      const double spread =
          like.mean > 0 ? std::max(1.0, like.mean_square / (like.mean * like.mean)) : 1;
      rates_.push_back({mean, std::min(mean, mean * mean * spread + 2 * mean / kPairs)});
      if (mean > 1 - kRateIsOne) break;
    }
    return rates_;
  }

 private:
  static constexpr double kPairs = kLineBits * kLineBits;

  // Queries with this step, by sets of their positions.
  struct Step {
    double share;                // of all queries
    std::vector<double> missed;  // probability that a key misses all of the set
    std::vector<double> power;   // that all keys so far miss it
  };

  void AddStep(int step) {
    std::array<uint32_t, kLineBits> bit_of = {};
    int positions = 0;
    for (int i = 0; i < k_; ++i) {
      uint32_t& bit = bit_of[static_cast<size_t>(i * step % kLineBits)];
      if (bit == 0) bit = uint32_t{1} << positions++;
    }
    const size_t sets = size_t{1} << positions;
    std::vector<double> inside(sets);  // probability that a key hits exactly, then at most, the set
    for (int b = 0; b < kLineBits; ++b) {
      for (int a = 0; a < kLineBits; ++a) {
        uint32_t hit = 0;
        for (int i = 0, at = a; i < k_; ++i, at = (at + b) % kLineBits) {
          hit |= bit_of[static_cast<size_t>(at)];
        }
        inside[hit] += 1 / kPairs;
      }
    }
    for (size_t bit = 1; bit < sets; bit *= 2) {
      for (size_t set = 0; set < sets; ++set) {
        if (set & bit) inside[set] += inside[set ^ bit];
      }
    }
    Step result = {step == 0 ? 1.0 / kLineBits : 0.5 / step, {}, std::vector<double>(sets, 1.0)};
    for (size_t set = 0; set < sets; ++set) result.missed.push_back(inside[sets - 1 - set]);
    steps_.push_back(std::move(result));
  }

  int k_;
  std::vector<Step> steps_;
  RatesByLoad rates_;
};

RatesByLoad LegacyRatesUpTo(int k, double mean_load) {
  static std::mutex mutex;
  static std::map<int, LegacyRates> cache;
  const std::lock_guard lock(mutex);
  return cache.try_emplace(k, k).first->second.UpTo(LastLoad(mean_load));
}

// The rate as a mean over drawn lines, keys and queries, each a 32-bit hash of its line: what is
// true whatever line, a and b have to do with each other. The deviation is the error of the mean.
FprEstimate DrawnLegacyFpr(uint64_t n, uint64_t lines, int k) {
  constexpr uint64_t kDrawnLines = 1 << 12;
  constexpr uint64_t kQueriesPerLine = 128;
  uint64_t state = 0x5eed;
  const auto draw = [&] { return Mix64(state += kGoldenGamma); };
  const double mean_load = static_cast<double>(n) / static_cast<double>(lines);
  double sum = 0;
  double sum_of_squares = 0;
  for (uint64_t i = 0; i < kDrawnLines; ++i) {
    const uint64_t line = FastRange64(draw(), lines);
    const uint64_t hashes = ((uint64_t{1} << 32) - line + lines - 1) / lines;
    const auto hash = [&] {
      return static_cast<uint32_t>(line + FastRange64(draw(), hashes) * lines);
    };
    std::bitset<kLineBits> set;
    // A Poisson number of keys: exponential gaps until they add up to the mean.
    for (double at = 0;;) {
      at -= std::log1p(-std::ldexp(static_cast<double>(draw() >> 11), -53));
      if (at > mean_load) break;
      const uint32_t key = hash();
      for (int j = 0; j < k; ++j) set.set((key + j * std::rotr(key, 17)) % kLineBits);
    }
    int covered = 0;
    for (uint64_t query = 0; query < kQueriesPerLine; ++query) {
      const uint32_t key = hash();
      int j = 0;
      while (j < k && set.test((key + j * std::rotr(key, 17)) % kLineBits)) ++j;
      covered += j == k ? 1 : 0;
    }
    const double rate = covered / static_cast<double>(kQueriesPerLine);
    sum += rate;
    sum_of_squares += rate * rate;
  }
  const double mean = sum / kDrawnLines;
  return {mean, std::sqrt((sum_of_squares / kDrawnLines - mean * mean) / kDrawnLines)};
}

// --- Pairs in words ---

constexpr int kWordBits = 64;

// E[(S / 64)^r] of a word after some uniform probes as a sum over j of coefficient[j] x_j^probes,
// x_j = 1 - j / 64: the probability that r uniform queries, of which some coincide, are all set.
// Stirling numbers of the second kind count coincidences, binomials the inclusion-exclusion.
std::vector<double> MomentCoefficients(int r) {
  std::vector<double> distinct(r + 1);  // P(r uniform queries are d different bits)
  distinct[0] = 1;
  for (int query = 0; query < r; ++query) {
    for (int d = r; d > 0; --d) {
      distinct[d] = distinct[d] * d / kWordBits +
                    distinct[d - 1] * (kWordBits - d + 1) / static_cast<double>(kWordBits);
    }
    distinct[0] = 0;
  }
  std::vector<double> coefficients(r + 1);
  for (int d = 0; d <= r; ++d) {
    double choose = 1;
    for (int j = 0; j <= d; ++j) {
      coefficients[j] += distinct[d] * (j % 2 == 0 ? choose : -choose);
      choose = choose * (d - j) / (j + 1);
    }
  }
  return coefficients;
}

// A sum over terms of coefficient * factor^keys, by the number of keys.
struct PowerSum {
  std::vector<double> coefficients;
  std::vector<double> factors;
};

// The product over words of (S / 64)^orders[word], as a function of the number of keys in the
// group, whose offsets are uniform.
PowerSum ProductOfMoments(const std::vector<int>& orders, int pairs) {
  const int words = static_cast<int>(orders.size());
  std::vector<std::vector<double>> coefficients;
  for (const int order : orders) coefficients.push_back(MomentCoefficients(order));
  PowerSum sum;
  std::vector<int> index(words);
  for (;;) {
    double coefficient = 1;
    for (int w = 0; w < words; ++w) coefficient *= coefficients[w][index[w]];
    double factor = 0;
    for (int offset = 0; offset < words; ++offset) {
      double of_key = 1;
      for (int i = 0; i < pairs; ++i) {
        const double x = 1 - static_cast<double>(index[offset ^ i]) / kWordBits;
        of_key *= x * x;
      }
      factor += of_key / words;
    }
    sum.coefficients.push_back(coefficient);
    sum.factors.push_back(factor);
    int w = 0;
    while (w < words && ++index[w] > orders[w]) index[w++] = 0;
    if (w == words) return sum;
  }
}

class DynamicRates {
 public:
  DynamicRates(int words, int pairs) {
    std::vector<int> once(words);
    for (int i = 0; i < pairs; ++i) once[i] = 2;
    mean_ = ProductOfMoments(once, pairs);
    // Two queries in the group, by how their offsets differ.
    for (int other = 0; other < words; ++other) {
      std::vector<int> orders = once;
      for (int i = 0; i < pairs; ++i) orders[other ^ i] += 2;
      PowerSum square = ProductOfMoments(orders, pairs);
      for (size_t t = 0; t < square.factors.size(); ++t) {
        mean_square_.coefficients.push_back(square.coefficients[t] / words);
        mean_square_.factors.push_back(square.factors[t]);
      }
    }
  }

  const RatesByLoad& UpTo(size_t load) {
    while (rates_.size() <= load) {
      const double mean = std::clamp(Next(mean_), 0.0, 1.0);
      const double mean_square = std::clamp(Next(mean_square_), mean * mean, mean);
      rates_.push_back({mean, mean_square});
      if (mean > 1 - kRateIsOne) break;
    }
    return rates_;
  }

 private:
  // The value now; coefficients become those of one key more.
  static double Next(PowerSum& sum) {
    double value = 0;
    for (size_t t = 0; t < sum.factors.size(); ++t) {
      value += sum.coefficients[t];
      sum.coefficients[t] *= sum.factors[t];
    }
    return value;
  }

  PowerSum mean_;
  PowerSum mean_square_;
  RatesByLoad rates_;
};

RatesByLoad DynamicRatesUpTo(int words, int pairs, double mean_load) {
  static std::mutex mutex;
  static std::map<std::pair<int, int>, DynamicRates> cache;
  const std::lock_guard lock(mutex);
  return cache.try_emplace({words, pairs}, words, pairs).first->second.UpTo(LastLoad(mean_load));
}

}  // namespace

FprEstimate RocksDbBloomFpr(uint64_t n, uint64_t lines, int k) {
  const double same_hash = static_cast<double>(n) / static_cast<double>(lines) / 0x1p32;
  return WithSameHash(FprOfBlocks(n, BlocksOf32Bits(lines), RatesOfUniformProbes(kLineBits, k)),
                      same_hash);
}

double RocksDbBloomFpr(double bits_per_key, int k) {
  return FprOfManyBlocks(kLineBits / bits_per_key, RatesOfUniformProbes(kLineBits, k));
}

FprEstimate RocksDbLegacyFpr(uint64_t n, uint64_t lines, int k) {
  const double load = static_cast<double>(n) / static_cast<double>(lines);
  const double same_pair = load / (kLineBits * kLineBits);
  const FprEstimate law =
      WithSameHash(FprOfBlocks(n, BlocksOf32Bits(lines), LegacyRatesUpTo(k, load)),
                   std::max(0.0, HashCollisionFpr(n, 32) - same_pair));
  constexpr uint64_t kFewLines = 64;  // 2^26 hashes and more to a line: a and b take all values
  constexpr double kFull = 0.99;  // whatever ties them, nothing is left to be wrong
  if (lines < kFewLines || law.mean > kFull) return law;
  const FprEstimate drawn = DrawnLegacyFpr(n, lines, k);
  constexpr double kContradicts = 5;
  if (std::abs(drawn.mean - law.mean) <= kContradicts * drawn.instance_sd) return law;
  return {drawn.mean, std::hypot(drawn.instance_sd, law.instance_sd)};
}

double RocksDbLegacyFpr(double bits_per_key, int k) {
  const double load = kLineBits / bits_per_key;
  return FprOfManyBlocks(load, LegacyRatesUpTo(k, load));
}

FprEstimate RocksDbDynamicFpr(uint64_t n, uint64_t groups, int words, int pairs) {
  const double load = static_cast<double>(n) / static_cast<double>(groups);
  return WithSameHash(FprOfBlocks(n, groups, DynamicRatesUpTo(words, pairs, load)),
                      HashCollisionFpr(n, 32));
}

double RocksDbDynamicFpr(double bits_per_key, int words, int pairs) {
  const double load = kWordBits * words / bits_per_key;
  return FprOfManyBlocks(load, DynamicRatesUpTo(words, pairs, load));
}

}  // namespace filterbench::theory
