#include "filters/theory/rotated_masks.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace filterbench::theory {

constexpr int kWordBits = 64;

RotatedMaskLaw::RotatedMaskLaw(std::span<const uint64_t> masks) : masks_(masks.size()) {
  std::vector<uint64_t> rotated;
  for (const uint64_t mask : masks) {
    for (int by = 0; by < kWordBits; ++by) rotated.push_back(std::rotl(mask, by));
  }
  const auto keys = static_cast<double>(rotated.size());
  std::vector<double> queries_inside(masks_);  // by mask of a key: how many masks lie in it
  for (const uint64_t query : masks) {
    std::array<int, kMaxMaskBits> position = {};
    const int bits = std::popcount(query);
    uint64_t rest = query;
    for (int i = 0; i < bits; ++i, rest &= rest - 1) position[i] = std::countr_zero(rest);
    // Bits that the query has not are never hit.
    const uint64_t valid = (uint64_t{1} << bits) - 1;
    std::array<double, kSets> inside = {};  // that a key hits exactly, then at most, the set
    for (size_t key = 0; key < rotated.size(); ++key) {
      uint64_t hit = 0;
      for (int i = 0; i < kMaxMaskBits; ++i) hit |= (rotated[key] >> position[i] & 1) << i;
      hit &= valid;
      inside[hit] += 1;
      if (hit == valid) queries_inside[key / kWordBits] += 1;
    }
    for (size_t bit = 1; bit < kSets; bit *= 2) {
      for (size_t set = 0; set < kSets; ++set) {
        if (set & bit) inside[set] += inside[set ^ bit];
      }
    }
    for (size_t set = 0; set < kSets; ++set) {
      const bool in_query = (set & ~valid) == 0;
      missed_.push_back(in_query ? inside[valid & ~set] / keys : 0);
      signs_.push_back(!in_query ? 0 : std::popcount(set) % 2 == 0 ? 1 : -1);
    }
  }
  for (const double queries : queries_inside) {
    square_of_one_key_ += queries / keys * (queries / keys) / static_cast<double>(masks_);
  }
}

RatesByLoad RotatedMaskLaw::UpTo(double mean_load) const {
  const size_t last = LastLoad(mean_load);
  const RatesByLoad& of_four = RatesOfUniformProbes(kWordBits, 4);
  const RatesByLoad& of_five = RatesOfUniformProbes(kWordBits, 5);
  std::vector<double> power = signs_;
  RatesByLoad rates;
  for (size_t load = 0; load <= last; ++load) {
    double sum = 0;
    for (size_t i = 0; i < power.size(); ++i) {
      sum += power[i];
      power[i] *= missed_[i];
    }
    const double mean = std::clamp(sum / static_cast<double>(masks_), 0.0, 1.0);
    double square = mean * mean;
    if (load == 1) {
      square = square_of_one_key_;
    } else if (load > 1 && load < std::min(of_four.size(), of_five.size())) {
      const auto spread = [](const RateInBlock& r) { return r.mean_square / (r.mean * r.mean); };
      square = std::min(mean, square * (spread(of_four[load]) + spread(of_five[load])) / 2);
    }
    rates.push_back({mean, square});
    if (mean > 1 - kRateIsOne) break;
  }
  return rates;
}

FprEstimate RotatedMaskLaw::Fpr(uint64_t n, uint64_t words) const {
  return FprOfBlocks(n, words, UpTo(static_cast<double>(n) / static_cast<double>(words)));
}

double RotatedMaskLaw::Fpr(double bits_per_key) const {
  const double load = kWordBits / bits_per_key;
  return FprOfManyBlocks(load, UpTo(load));
}

}  // namespace filterbench::theory
