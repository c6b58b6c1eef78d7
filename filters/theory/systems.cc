#include "filters/theory/systems.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "filters/hash.h"
#include "filters/theory/agreement.h"
#include "filters/theory/bloom.h"

namespace filterbench::theory {
namespace {

constexpr int kMaxProbes = kMaxClassicProbes;

// Where the words of a progression wrap, and which are negative. With words in units of
// 2^word_bits, probe i is start + i step - carry[i], times sign[i].
struct Wraps {
  std::array<int, kMaxProbes> carry;
  std::array<int, kMaxProbes> sign;

  Wraps(double start, double step, int k, bool is_signed) {
    for (int i = 0; i < k; ++i) {
      const double x = start + i * step;
      carry[i] = static_cast<int>(std::floor(is_signed ? x + 0.5 : x));
      sign[i] = is_signed && x < carry[i] ? -1 : 1;
    }
  }
};

// Point `index` of a sequence that fills the unit cube of four dimensions evenly: Roberts' additive
// recurrence, whose steps are the powers of the root of x^5 = x + 1.
std::array<double, 4> EvenPoint(int index) {
  constexpr double kRoot = 1.1673039782614187;
  std::array<double, 4> point;
  double power = 1;
  for (double& x : point) {
    power /= kRoot;
    x = std::fmod(0.5 + index * power, 1.0);
  }
  return point;
}

// Ratios of two steps in greater terms share too few positions to count.
constexpr int kMaxRatio = 3;

// What follows from where words wrap; the same for all numbers of bits with the same `modulus`.
struct ProgressionLaw {
  // Of one step of a key, tied to the query's by d b' = g b + e shift: how often, over all starts,
  // it shares s >= 2 positions with the query. Summed over (d, g) with the same common divisor, by
  // the remainder of e modulo that.
  std::vector<double> shared[kMaxRatio + 1][kMaxRatio];
  // The part of it of keys with the query's start and step.
  std::vector<double> shared_same_pair;
  // Of one step of a query with d b = e shift, by d and e: how often it has so many distinct
  // positions, and how many pairs of probes coincide.
  struct OwnStep {
    std::vector<double> distinct;
    double coinciding_pairs = 0;
  };
  std::map<std::pair<int, int>, OwnStep> own_steps;
  OwnStep mirrored;
};

// Equal values and how many they are, one group at a time.
template <class Use>
void ForEachGroup(std::vector<int>& values, const Use& use) {
  std::sort(values.begin(), values.end());
  for (size_t i = 0; i < values.size();) {
    size_t end = i;
    while (end < values.size() && values[end] == values[i]) ++end;
    use(values[i], static_cast<int>(end - i));
    i = end;
  }
}

int Reduce(int value, int modulus) {
  return modulus == 0 ? value : ((value % modulus) + modulus) % modulus;
}

// Starts a and steps b of which only those with a = 2^17 b modulo `period` occur: LevelDB's. A
// query and a key whose steps are tied by d b' = +-g b + e and whose probes i0 and j0 meet f wraps
// apart need A b = B, for a step b that is uniform modulo `period`. How much more likely that makes
// it.
double LatticeWeight(uint64_t period, int64_t d, int64_t g, int64_t i0, int64_t j0, int64_t e,
                     int64_t f) {
  if (period == 1) return 1;
  constexpr int64_t kRatio = 1 << 17;
  const int64_t a = d * (kRatio + i0) - g * (kRatio + j0);
  const int64_t b = d * f - e * (kRatio + j0);
  const auto common = static_cast<int64_t>(std::gcd(static_cast<uint64_t>(std::abs(a)), period));
  return b % common == 0 ? static_cast<double>(common) : 0;
}

// `modulus`: carries count modulo this number, the order of 2^word_bits modulo `bits`; 0 where it
// is larger than any carry. `lattice`: the period of LatticeWeight, 1 for independent starts and
// steps.
ProgressionLaw ComputeProgressionLaw(int k, bool is_signed, int modulus, uint64_t lattice) {
  ProgressionLaw law;
  for (auto& by_remainder : law.shared) {
    for (auto& shared : by_remainder) shared.resize(k + 1);
  }
  law.shared_same_pair.resize(k + 1);
  law.mirrored.distinct.resize(k + 1);
  const int samples = k <= 16 ? 1024 : 128;
  const double weight = 1.0 / samples;
  std::vector<int> values;
  for (int sample = 1; sample <= samples; ++sample) {
    const std::array<double, 4> point = EvenPoint(sample);
    const Wraps query(point[0], point[1], k, is_signed);
    const Wraps key(point[2], point[3], k, is_signed);

    // Probes i0 + t g of the query meet probes j0 +- t d of the key as long as the difference of
    // their carries is e t + f.
    const auto meet = [&](int d, int g, int direction, int i0, int j0, int same_sign, int e) {
      values.clear();
      for (int t = 0;; ++t) {
        const int i = i0 + t * g;
        const int j = j0 + direction * t * d;
        if (i >= k || j < 0 || j >= k) break;
        if (query.sign[i] * key.sign[j] != same_sign) continue;
        values.push_back(Reduce(query.carry[i] - same_sign * key.carry[j] - e * t, modulus));
      }
      const int common = std::gcd(d, g);
      std::vector<double>& shared = law.shared[common][Reduce(e, common)];
      const bool same_pair =
          d == 1 && g == 1 && direction == 1 && i0 == j0 && same_sign == 1 && e == 0;
      ForEachGroup(values, [&](int f, int size) {
        if (size < 2) return;
        shared[size] += weight * LatticeWeight(lattice, direction * d, g, i0, j0, e, f);
        if (same_pair) law.shared_same_pair[size] += weight;
      });
    };
    for (int d = 1; d <= std::min(kMaxRatio, k - 1); ++d) {
      for (int g = 1; g <= std::min(kMaxRatio, k - 1); ++g) {
        for (const int direction : {1, -1}) {
          for (int i0 = 0; i0 < k; ++i0) {
            for (int j0 = 0; j0 < k; ++j0) {
              const int j_before = j0 - direction * d;
              if (i0 >= g && j_before >= 0 && j_before < k) continue;  // not where it begins
              for (int e = -d - g; e <= d + g; ++e) {
                if (modulus != 0 && (e < 0 || e >= modulus)) continue;
                meet(d, g, direction, i0, j0, 1, e);
                if (is_signed) meet(d, g, direction, i0, j0, -1, e);
              }
            }
          }
        }
      }
    }

    // Probes i and i + d of a query coincide while the carry grows by e.
    for (int d = 1; d < k; ++d) {
      for (int e = 0; e <= d; ++e) {
        if (modulus != 0 && e >= modulus) continue;
        int distinct = 0;
        double pairs = 0;
        for (int i0 = 0; i0 < d; ++i0) {
          for (const int sign : {1, -1}) {
            values.clear();
            for (int t = 0; i0 + t * d < k; ++t) {
              const int i = i0 + t * d;
              if (query.sign[i] == sign) values.push_back(Reduce(query.carry[i] - e * t, modulus));
            }
            ForEachGroup(values, [&](int, int size) {
              ++distinct;
              pairs += size * (size - 1) / 2.0;
            });
          }
        }
        if (pairs == 0) continue;
        ProgressionLaw::OwnStep& own = law.own_steps[{d, e}];
        own.distinct.resize(k + 1);
        own.distinct[distinct] += weight;
        own.coinciding_pairs += weight * pairs;
      }
    }
    // Mirrored probes i and j coincide where 2 a + (i + j) b is a multiple of the shift.
    if (!is_signed) continue;
    for (int sum = 1; sum <= 2 * k - 3; ++sum) {
      values.clear();
      for (int i = std::max(0, sum - k + 1); 2 * i < sum; ++i) {
        const int j = sum - i;
        if (query.sign[i] != query.sign[j]) {
          values.push_back(Reduce(query.carry[i] + query.carry[j], modulus));
        }
      }
      ForEachGroup(values, [&](int, int size) {
        law.mirrored.distinct[k - size] += weight;
        law.mirrored.coinciding_pairs += weight * size;
      });
    }
  }
  return law;
}

const ProgressionLaw& LawOf(int k, bool is_signed, int modulus, uint64_t lattice) {
  static std::mutex mutex;
  static std::map<std::tuple<int, bool, int, uint64_t>, ProgressionLaw> cache;
  const std::lock_guard lock(mutex);
  const auto key = std::tuple(k, is_signed, modulus, lattice);
  const auto found = cache.find(key);
  if (found != cache.end()) return found->second;
  return cache.emplace(key, ComputeProgressionLaw(k, is_signed, modulus, lattice)).first->second;
}

// The classic rate of n keys with positions that are words modulo `bits`.
FprEstimate ReducedClassicFpr(uint64_t n, uint64_t bits, int k, int word_bits) {
  if (word_bits >= 63) return ClassicBloomFpr(n, bits, k);
  const uint64_t words = uint64_t{1} << word_bits;
  const uint64_t used = std::min(bits, words);
  FprEstimate fpr = ClassicBloomFpr(n, used, k);
  const double probes = static_cast<double>(n) * k;
  const auto hit_and_set = [&](uint64_t positions, uint64_t words_of_each) {
    const double p = static_cast<double>(words_of_each) / static_cast<double>(words);
    return static_cast<double>(positions) * p * -std::expm1(probes * std::log1p(-p));
  };
  const uint64_t more = words % used;
  const double set = hit_and_set(more, words / used + 1) + hit_and_set(used - more, words / used);
  const double set_if_uniform = -std::expm1(probes * std::log1p(-1 / static_cast<double>(used)));
  if (n == 0 || set_if_uniform <= 0 || used == 1) return fpr;
  const double factor = std::pow(set / set_if_uniform, k);
  return {std::min(1.0, fpr.mean * factor), fpr.instance_sd * factor};
}

// Numbers of solutions of linear equations in steps, modulo `bits`.
class StepEquations {
 public:
  StepEquations(uint64_t bits, uint64_t shift) : bits_(bits), shift_(shift) {}

  // (b, b') with d b' = g b + e shift, over bits, without those of the equation divided by a common
  // divisor of its three terms. `common` = gcd(d, g).
  double Tied(int common, int e) const {
    double solutions = Solutions(common, e);
    for (int f = 2; f <= common; ++f) {
      if (common % f == 0 && e % f == 0) solutions -= Tied(common / f, e / f);
    }
    return solutions;
  }

 private:
  double Solutions(int d, int e) const {
    const uint64_t common = std::gcd(static_cast<uint64_t>(d), bits_);
    return static_cast<uint64_t>(e) * shift_ % common == 0 ? static_cast<double>(common) : 0;
  }

  uint64_t bits_;
  uint64_t shift_;
};

struct ProgressionOptions {
  int word_bits = 64;
  bool is_signed = false;
  uint64_t lattice = 1;
  // Only keys with the query's start and step share more than two positions with it.
  bool only_same_pair = false;
};

FprEstimate ProgressionFpr(uint64_t n, uint64_t bits, int k, const ProgressionOptions& options) {
  if (n == 0) return {0, 0};
  const FprEstimate classic =
      ReducedClassicFpr(n, bits, k, options.word_bits - (options.is_signed ? 1 : 0));
  if (k == 1 || classic.mean >= 1) return classic;
  const double keys = static_cast<double>(n);
  const double m = static_cast<double>(bits);
  uint64_t shift = 1 % bits;
  for (int i = 0; i < options.word_bits; ++i) shift = shift * 2 % bits;
  const uint64_t order = bits / std::gcd(shift, bits);
  const int modulus = order < static_cast<uint64_t>(4 * k) ? static_cast<int>(order) : 0;
  const ProgressionLaw& law = LawOf(k, options.is_signed, modulus, options.lattice);
  const StepEquations equations(bits, shift);

  const double p = std::pow(classic.mean, 1.0 / k);
  const double q = 1 - p;
  double excess = 0;
  double pairing_variance = 0;
  for (int s = 2; s <= k; ++s) {
    double shared = options.only_same_pair ? law.shared_same_pair[s] : 0;
    for (int common = 1; common <= kMaxRatio && !options.only_same_pair; ++common) {
      for (int e = 0; e < common; ++e) {
        shared += equations.Tied(common, e) * law.shared[common][e][s];
      }
    }
    shared /= m * m;
    // With a key that shares s positions a query needs p^(k - s) where it needed p^k. The terms up
    // to the square of q / p are those of independent positions.
    excess += keys * shared *
              (std::pow(p, k - s) - std::pow(p, k) - s * q * std::pow(p, k - 1) -
               s * (s - 1) / 2.0 * q * q * std::pow(p, k - 2));
    pairing_variance += shared * (std::pow(p, -s) - 1 - s * q / p);
  }
  const auto add_own = [&](const ProgressionLaw::OwnStep& own, double solutions) {
    if (solutions == 0) return;
    double rate = -own.coinciding_pairs * (std::pow(p, k - 1) - std::pow(p, k));
    for (int distinct = 1; distinct < k; ++distinct) {
      rate += own.distinct[distinct] * (std::pow(p, distinct) - std::pow(p, k));
    }
    excess += solutions * rate / m;
  };
  if (!options.only_same_pair) {
    for (const auto& [step, own] : law.own_steps) {
      add_own(own, equations.Tied(step.first, step.second));
    }
    add_own(law.mirrored, 1);
  }
  const double mean = std::clamp(classic.mean + excess, 0.0, 1.0);
  // What is left between instances when the number of set bits is known; a rate has at most its
  // mean as a variance.
  return {mean, std::sqrt(classic.instance_sd * classic.instance_sd +
                          mean * std::min(mean * std::max(0.0, pairing_variance), 1.0))};
}

// How often keys of LevelDB's sequence visit the positions that queries ask for.
//
// Modulo 2^32 - 1, rotating right by 17 is a multiplication by 2^15: probe i is h (1 + i 2^15)
// minus its wraps. Of the divisors of 2^32 - 1 = 3 5 17 257 65537,
//   - 65537 divides 1 + 2 2^15, so that the third probe is 65537 u - c with c wraps, and has 3 2^16
//     values in all, which are soon set: k is one less in effect from some 1e5 keys on;
//   - 3, 5 or 17 divide 1 + i 2^15 for i = 1, 4, ..., for i = 3, 8, ... and for i = 15. Where they
//     divide the number of bits too, those probes avoid most residues.
// Queries ask by the same sequence and find such positions more often than uniform ones would, so
// the rate is the mean over queries of the product of the probabilities that their bits are set.
class RotatedLoads {
 public:
  RotatedLoads(uint64_t bits, int k) : bits_(bits), k_(k) {
    std::unordered_map<uint64_t, double> third;
    if (k > 2) {
      // h + 2 rotr(h, 17) = h + rotr(h, 16) - t for the bit t that the doubling moves around, and
      // the sum of the two halves of h that both halves of h + rotr(h, 16) are has a carry w: u =
      // sum + w.
      constexpr double kHalf = 0x1p-33;
      for (uint64_t u = 0; u <= 65536; ++u) {
        const auto value = static_cast<uint32_t>(65537 * u);
        third[value % bits] += static_cast<double>(u < 65536 ? u + 1 : 0) * kHalf;
        third[(value - 1) % bits] += static_cast<double>(u < 65536 ? u + 1 : 0) * kHalf;
        third[static_cast<uint32_t>(value - 1) % bits] += u == 0 ? 0 : (65536.0 - u) * kHalf;
        third[static_cast<uint32_t>(value - 2) % bits] += u == 0 ? 0 : (65536.0 - u) * kHalf;
      }
    }
    // The other probes of a key, by residue; uniform within one.
    const uint64_t g = std::gcd(uint64_t{3 * 5 * 17}, bits);
    std::vector<double> others(g);
    const auto for_each_probe = [&](int sample, const auto& use) {
      uint32_t hash = static_cast<uint32_t>(Mix64(static_cast<uint64_t>(sample) + 1));
      const uint32_t delta = std::rotr(hash, 17);
      for (int i = 0; i < k; ++i, hash += delta) use(i, hash % bits);
    };
    for (int sample = 0; sample < kSamples; ++sample) {
      for_each_probe(sample, [&](int i, uint64_t position) {
        if (i != 2) others[position % g] += 1.0 / kSamples;
      });
    }
    const double of_residue = static_cast<double>(g) / static_cast<double>(std::min(bits, kWords));
    loads_.reserve(static_cast<size_t>(kSamples) * k);
    for (int sample = 0; sample < kSamples; ++sample) {
      for_each_probe(sample, [&](int, uint64_t position) {
        const auto found = third.find(position);
        const double load = others[position % g] * of_residue +
                            (found == third.end() ? 0 : found->second);
        loads_.push_back(static_cast<float>(load));
      });
    }
  }

  bool IsOf(uint64_t bits, int k) const { return bits_ == bits && k_ == k; }

  // The rate of n keys with the deviation that comes from the sample of queries and from the few
  // positions of the third probe.
  FprEstimate Fpr(uint64_t n) const {
    double sum = 0;
    double sum_of_squares = 0;
    for (size_t first = 0; first < loads_.size(); first += k_) {
      double all_set = 1;
      for (int i = 0; i < k_; ++i) {
        all_set *= -std::expm1(-static_cast<double>(n) * loads_[first + i]);
      }
      sum += all_set;
      sum_of_squares += all_set * all_set;
    }
    const double mean = sum / kSamples;
    const double of_sample = (sum_of_squares / kSamples - mean * mean) / kSamples;
    const double of_third = k_ > 2 ? 0.25 * mean * mean / (3 * 65536.0) : 0;
    return {mean, std::sqrt(std::max(0.0, of_sample) + of_third)};
  }

 private:
  static constexpr int kSamples = 1 << 16;
  static constexpr uint64_t kWords = uint64_t{1} << 32;

  uint64_t bits_;
  int k_;
  std::vector<float> loads_;  // visits per key of the positions of each sampled query
};

FprEstimate RotatedLoadsFpr(uint64_t n, uint64_t bits, int k) {
  static std::mutex mutex;
  static std::deque<RotatedLoads> recent;
  const std::lock_guard lock(mutex);
  for (const RotatedLoads& loads : recent) {
    if (loads.IsOf(bits, k)) return loads.Fpr(n);
  }
  constexpr size_t kKept = 8;
  if (recent.size() == kKept) recent.pop_front();
  return recent.emplace_back(bits, k).Fpr(n);
}

}  // namespace

FprEstimate WordProbesFpr(uint64_t n, uint64_t bits, int k, int word_bits,
                          WordSequence sequence) {
  switch (sequence) {
    case WordSequence::kPlain:
      return ProgressionFpr(n, bits, k, {.word_bits = word_bits});
    case WordSequence::kPlainSigned:
      return ProgressionFpr(n, bits, k, {.word_bits = word_bits, .is_signed = true});
    case WordSequence::kEnhanced:
      return ProgressionFpr(n, bits, k, {.word_bits = word_bits, .only_same_pair = true});
    case WordSequence::kIndependent:
      break;
  }
  return ReducedClassicFpr(n, bits, k, word_bits);
}

FprEstimate RotatedDoubleHashingFpr(uint64_t n, uint64_t bits, int k) {
  if (n == 0) return {0, 0};
  const FprEstimate fpr = ProgressionFpr(
      n, bits, k, {.word_bits = 32, .lattice = std::gcd(uint64_t{UINT32_MAX}, bits)});
  const FprEstimate uniform = ReducedClassicFpr(n, bits, k, 32);
  const FprEstimate loads = RotatedLoadsFpr(n, bits, k);
  // Of independent positions: (1 - e^(-k n / bits))^k, which the loads take the place of.
  const double used = std::min(static_cast<double>(bits), 0x1p32);
  const double unweighted = std::pow(-std::expm1(-static_cast<double>(n) * k / used), k);
  const double factor = unweighted > 0 ? loads.mean / unweighted : 1;
  const double mean = std::clamp(uniform.mean * factor + (fpr.mean - uniform.mean), 0.0, 1.0);
  return {mean + (1 - mean) * HashCollisionFpr(n, 32),
          std::hypot(fpr.instance_sd * std::max(1.0, factor), loads.instance_sd)};
}

}  // namespace filterbench::theory
