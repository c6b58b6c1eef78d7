#include "filters/theory/cache_sectorized.h"

#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "filters/theory/block_loads.h"

namespace filterbench::theory {
namespace {

constexpr int kSectorsPerBlock = 8;
constexpr int kSectorBits = 64;

double MeanAt(const RatesByLoad& rates, size_t load) {
  return load < rates.size() ? rates[load].mean : 1;
}

// P(Y = y) of Y ~ Binomial(trials, p) for all y, from 0 trials on.
class BinomialRow {
 public:
  explicit BinomialRow(double p) : p_(p), probability_{1} {}
  void AddTrial() {
    probability_.push_back(0);
    for (size_t y = probability_.size() - 1; y > 0; --y) {
      probability_[y] = probability_[y] * (1 - p_) + probability_[y - 1] * p_;
    }
    probability_[0] *= 1 - p_;
  }
  double operator[](size_t y) const { return probability_[y]; }

 private:
  double p_;
  std::vector<double> probability_;
};

// By the load X of a block. With s sectors in a group, the group's rate is the mean over its
// sectors; its square needs two sectors at a time: the same one, or two whose loads are
// multinomial, and which are independent given the loads.
const RatesByLoad& Rates(int groups, int probes) {
  static std::mutex mutex;
  static std::map<std::pair<int, int>, RatesByLoad> cache;
  const std::lock_guard lock(mutex);
  RatesByLoad& rates = cache[{groups, probes}];
  if (!rates.empty()) return rates;

  const RatesByLoad& in_sector = RatesOfUniformProbes(kSectorBits, probes);
  const double sectors = static_cast<double>(kSectorsPerBlock) / groups;
  BinomialRow of_load(1 / sectors);
  BinomialRow of_rest(1 / (sectors - 1));
  // By x: the mean rate of a sector that takes a share 1 / (sectors - 1) of x keys.
  std::vector<double> other_sector;
  constexpr size_t kMaxLoad = 2048;
  for (size_t load = 0; load < kMaxLoad; ++load) {
    other_sector.push_back(0);
    double mean = 0;
    double square_of_one = 0;
    double product_of_two = 0;
    for (size_t y = 0; y <= load; ++y) other_sector[load] += of_rest[y] * MeanAt(in_sector, y);
    for (size_t y = 0; y <= load; ++y) {
      mean += of_load[y] * MeanAt(in_sector, y);
      square_of_one += of_load[y] * (y < in_sector.size() ? in_sector[y].mean_square : 1);
      product_of_two += of_load[y] * MeanAt(in_sector, y) * other_sector[load - y];
    }
    of_load.AddTrial();
    of_rest.AddTrial();
    const double square = square_of_one / sectors + (1 - 1 / sectors) * product_of_two;
    rates.push_back({std::pow(mean, groups), std::pow(square, groups)});
    if (rates.back().mean > 1 - kRateIsOne) break;
  }
  return rates;
}

}  // namespace

FprEstimate CacheSectorizedFpr(uint64_t n, uint64_t blocks, int groups, int probes) {
  return FprOfBlocks(n, blocks, Rates(groups, probes));
}

double CacheSectorizedFpr(double bits_per_key, int groups, int probes) {
  return FprOfManyBlocks(kSectorsPerBlock * kSectorBits / bits_per_key, Rates(groups, probes));
}

int CacheSectorizedBestProbes(double bits_per_key, int groups) {
  int best = 1;
  for (int probes = 2; probes <= kMaxProbesPerSector; ++probes) {
    if (CacheSectorizedFpr(bits_per_key, groups, probes) >=
        CacheSectorizedFpr(bits_per_key, groups, best)) {
      break;  // the rate has one minimum
    }
    best = probes;
  }
  return best;
}

}  // namespace filterbench::theory
