#include "filters/theory/two_choice.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "filters/theory/blocked_bloom.h"

namespace filterbench::theory {
namespace {

constexpr int kBits = 512;

// The shares of blocks by their number of bits, while keys come in.
class MeanField {
 public:
  // `same` is the probability that the two blocks of a key are one.
  MeanField(int k, double same) : k_(k), same_(same), share_(kBits + 1) {
    share_[0] = 1;
    FindDistinctLaw();
    FindOrder();
  }

  // `keys` keys per block by one step: of Euler, which is one key where keys = 1 / blocks, or by
  // the rule of the midpoint.
  void StepByKeys(double keys) { Advance(share_, FlowOf(share_), keys); }
  void StepByMidpoint(double keys) {
    std::vector<double> middle = share_;
    Advance(middle, FlowOf(share_), keys / 2);
    Advance(share_, FlowOf(middle), keys);
  }

  // The rate of a query with two blocks, and its deviation in sqrt(1 / blocks).
  FprEstimate Rate() const {
    double mean_set = 0;
    double variance_set = 0;
    double rate = 0;
    double one_block = 0;
    std::vector<double> in_block(kBits + 1);
    for (const auto& [distinct, probability] : distinct_) {
      double covered = 0;
      for (int j = 0; j <= kBits; ++j) {
        const double all = AllSet(j, distinct);
        covered += share_[j] * all;
        in_block[j] += probability * all;
      }
      rate +=
          probability * (same_ * covered + (1 - same_) * (covered + covered - covered * covered));
      one_block += probability * covered;
    }
    for (int j = 0; j <= kBits; ++j) mean_set += share_[j] * j;
    double covariance = 0;
    double variance = 0;
    for (int j = 0; j <= kBits; ++j) {
      variance_set += share_[j] * (j - mean_set) * (j - mean_set);
      covariance += share_[j] * (j - mean_set) * in_block[j];
      variance += share_[j] * (in_block[j] - one_block) * (in_block[j] - one_block);
    }
    const double slope = variance_set > 0 ? covariance / variance_set : 0;
    const double of_blocks = std::max(0.0, variance - slope * covariance);
    const double choices = 2 * (1 - one_block);
    return {std::min(rate, 1.0), choices * std::sqrt(of_blocks + slope * slope * set_noise_)};
  }

 private:
  // A key, or a query, has `count` different positions with this probability.
  struct Distinct {
    int count;
    double probability;
  };
  // What can happen to a block: it has j bits and gets `added` more.
  struct Event {
    int j;
    int added;
    uint64_t cost;
  };
  struct Flow {
    std::vector<double> change;  // of shares, per key and block
    double added = 0;            // bits per key
    double added_square = 0;
  };

  void FindDistinctLaw() {
    std::vector<double> law(k_ + 1);
    law[0] = 1;
    for (int probe = 0; probe < k_; ++probe) {
      for (int d = k_; d > 0; --d) {
        law[d] = law[d] * d / kBits + law[d - 1] * (kBits - d + 1) / static_cast<double>(kBits);
      }
      law[0] = 0;
    }
    for (int d = 1; d <= k_; ++d) {
      if (law[d] > 1e-8) distinct_.push_back({d, law[d]});
    }
  }

  void FindOrder() {
    for (int j = 0; j <= kBits; ++j) {
      for (int added = 0; added <= k_ && j + added <= kBits; ++added) {
        events_.push_back({j, added, TwoChoiceCost(k_, j + added, added)});
      }
    }
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event& a, const Event& b) { return a.cost < b.cost; });
    // By event: P(`added` of the positions are new), hypergeometric.
    for (const auto& [distinct, probability] : distinct_) {
      std::vector<double>& law = added_law_.emplace_back();
      for (const Event& event : events_) {
        const int hits = distinct - event.added;
        double p = hits < 0 || hits > event.j ? 0 : 1;
        for (int i = 0; i < hits && p > 0; ++i) {
          p *= static_cast<double>(event.j - i) / (kBits - i) * (distinct - i) / (i + 1);
        }
        for (int i = 0; i < event.added && p > 0; ++i) {
          p *= static_cast<double>(kBits - event.j - i) / (kBits - std::max(hits, 0) - i);
        }
        law.push_back(p);
      }
    }
  }

  // P(d given positions are all set) in a block of j bits.
  static double AllSet(int j, int d) {
    double p = 1;
    for (int i = 0; i < d && p > 0; ++i)
      p *= std::max(0.0, static_cast<double>(j - i)) / (kBits - i);
    return p;
  }

  Flow FlowOf(const std::vector<double>& share) const {
    Flow flow = {std::vector<double>(kBits + 1)};
    for (size_t d = 0; d < distinct_.size(); ++d) {
      const std::vector<double>& law = added_law_[d];
      double dearer = 1;  // probability that the other block costs more
      for (size_t first = 0, end = 0; first < events_.size(); first = end) {
        double alike = 0;
        for (; end < events_.size() && events_[end].cost == events_[first].cost; ++end) {
          alike += share[events_[end].j] * law[end];
        }
        if (alike == 0) continue;
        dearer = std::max(0.0, dearer - alike);
        // Either of the two is this one and the other dearer, or both cost the same.
        const double taken = (1 - same_) * (2 * dearer + alike) + same_;
        for (size_t i = first; i < end; ++i) {
          const auto& [j, added, cost] = events_[i];
          const double rate = distinct_[d].probability * share[j] * law[i] * taken;
          flow.change[j] -= rate;
          flow.change[j + added] += rate;
          flow.added += rate * added;
          flow.added_square += rate * added * added;
        }
      }
    }
    return flow;
  }

  // The number of bits that keys add varies; more of them now leave fewer to be added later.
  void Advance(std::vector<double>& share, const Flow& flow, double keys) {
    for (int j = 0; j <= kBits; ++j) share[j] = std::max(0.0, share[j] + keys * flow.change[j]);
    if (&share != &share_) return;
    const double variance = flow.added_square - flow.added * flow.added;
    set_noise_ += keys * (variance - 2.0 * k_ / kBits * set_noise_);
  }

  int k_;
  double same_;
  std::vector<double> share_;
  double set_noise_ = 0;  // variance of the mean number of set bits, times the number of blocks
  std::vector<Distinct> distinct_;
  std::vector<Event> events_;                    // from the cheapest on
  std::vector<std::vector<double>> added_law_;   // by distinct_, by event
};

FprEstimate ManyKeys(int k, double same, double keys_per_block) {
  MeanField field(k, same);
  const int steps = static_cast<int>(std::ceil(64 + 4 * keys_per_block));
  for (int step = 0; step < steps; ++step) field.StepByMidpoint(keys_per_block / steps);
  return field.Rate();
}

}  // namespace

FprEstimate TwoChoiceFpr(uint64_t n, uint64_t blocks, int k) {
  if (n == 0) return {0, 0};
  if (blocks == 1) return BlockedBloomFpr(n, 1, k, kBits);
  // Beyond, less than e^-40 of the bits are clear.
  if (static_cast<double>(n) / static_cast<double>(blocks) * k > 40.0 * kBits) return {1, 0};
  static std::mutex mutex;
  static std::map<std::tuple<uint64_t, uint64_t, int>, FprEstimate> cache;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = cache.try_emplace({n, blocks, k});
  if (!is_new) return entry->second;
  const double per_block = 1 / static_cast<double>(blocks);
  constexpr uint64_t kMaxSingleKeys = 4096;
  if (n <= kMaxSingleKeys) {
    MeanField field(k, per_block);
    for (uint64_t key = 0; key < n; ++key) field.StepByKeys(per_block);
    entry->second = field.Rate();
  } else {
    entry->second = ManyKeys(k, per_block, static_cast<double>(n) * per_block);
  }
  entry->second.instance_sd *= std::sqrt(per_block);
  return entry->second;
}

double TwoChoiceFpr(double bits_per_key, int k) {
  return ManyKeys(k, 0, kBits / bits_per_key).mean;
}

int TwoChoiceBestK(double bits_per_key) {
  // Element i: bits per key from which on k = i + 2 beats k = i + 1.
  static constexpr double kNext[] = {1.14,  2.42,  3.7,   5.04,  6.46, 7.85,  9.26, 10.65,
                                     12.04, 13.46, 14.87, 16.28, 17.7, 19.14, 20.6};
  static_assert(std::size(kNext) + 1 == kMaxTwoChoiceProbes);
  return 1 + static_cast<int>(std::upper_bound(std::begin(kNext), std::end(kNext), bits_per_key) -
                              std::begin(kNext));
}

}  // namespace filterbench::theory
