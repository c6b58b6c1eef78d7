#include "filters/theory/bloom.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

namespace filterbench::theory {
namespace {

// First and second moment of the k-th power of the share of set bits.
struct PowerMoments {
  double mean;
  double variance;
};

// The law of the number of set bits after `probes` independent uniform probes, exactly: with s bits
// set, the next probe sets another with probability (bits - s) / bits. Values whose probability is
// below 1e-40 are left out.
PowerMoments ExactOccupancyPower(uint64_t probes, uint64_t bits, int k) {
  const double m = static_cast<double>(bits);
  std::vector<double> law(bits + 1);
  law[0] = 1;
  uint64_t low = 0;
  uint64_t high = 0;
  for (uint64_t probe = 0; probe < probes && low < bits; ++probe) {
    high = std::min(high + 1, bits);
    for (uint64_t s = high; s > low; --s) {
      law[s] = law[s] * static_cast<double>(s) / m +
               law[s - 1] * static_cast<double>(bits - s + 1) / m;
    }
    law[low] *= static_cast<double>(low) / m;
    while (low < high && law[low] < 1e-40) law[low++] = 0;
    while (high > low && law[high] < 1e-40) law[high--] = 0;
  }
  double mean = 0;
  double mean_square = 0;
  for (uint64_t s = low; s <= high; ++s) {
    const double rate = std::pow(static_cast<double>(s) / m, k);
    mean += law[s] * rate;
    mean_square += law[s] * rate * rate;
  }
  return {mean, std::max(0.0, mean_square - mean * mean)};
}

// The same for a share of set bits that is normal with this mean and variance: the moments of a
// normal variable by M_k = mean M_(k-1) + (k - 1) variance M_(k-2), the variance of the power by
// the delta method.
PowerMoments NormalPower(double mean, double variance, int k) {
  double before_last = 1;
  double last = mean;
  for (int i = 2; i <= k; ++i) {
    const double next = mean * last + (i - 1) * variance * before_last;
    before_last = last;
    last = next;
  }
  const double slope = k * std::pow(mean, k - 1);
  return {last, slope * slope * variance};
}

// Mean and variance of the share of set bits, given the probabilities that one bit, and that two
// bits are left unset by all keys: `log_one` and `log_two` are ln of the two.
PowerMoments ShareOfSetBits(double log_one, double log_two, double bits) {
  const double one = std::exp(log_one);
  // E[Z^2] / m^2 - E[Z]^2 / m^2 for Z unset bits; the difference of the pair terms by expm1, since
  // it is O(1 / m) of either.
  const double pairs = one * one * std::expm1(log_two - 2 * log_one);
  const double two = std::exp(log_two);
  return {-std::expm1(log_one), std::max(0.0, (one - two) / bits + pairs)};
}

uint64_t MulMod(uint64_t a, uint64_t b, uint64_t m) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b % m);
}

// a^-1 mod m for coprime a and m.
uint64_t InverseMod(uint64_t a, uint64_t m) {
  if (m == 1) return 0;
  int64_t old_r = static_cast<int64_t>(a % m);
  int64_t r = static_cast<int64_t>(m);
  int64_t old_s = 1;
  int64_t s = 0;
  while (r != 0) {
    const int64_t quotient = old_r / r;
    old_r = std::exchange(r, old_r - quotient * r);
    old_s = std::exchange(s, old_s - quotient * s);
  }
  return static_cast<uint64_t>(old_s < 0 ? old_s + static_cast<int64_t>(m) : old_s);
}

// Divisors in ascending order.
std::vector<uint64_t> Divisors(uint64_t m) {
  std::vector<uint64_t> divisors = {1};
  const auto take = [&](uint64_t prime, int exponent) {
    const size_t before = divisors.size();
    uint64_t power = 1;
    for (int e = 0; e < exponent; ++e) {
      power *= prime;
      for (size_t i = 0; i < before; ++i) divisors.push_back(divisors[i] * power);
    }
  };
  for (uint64_t prime = 2; prime * prime <= m; ++prime) {
    int exponent = 0;
    for (; m % prime == 0; m /= prime) ++exponent;
    if (exponent > 0) take(prime, exponent);
  }
  if (m > 1) take(m, 1);
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

// How many of 1..m are coprime to m (Euler).
uint64_t Totient(uint64_t m) {
  uint64_t result = m;
  for (uint64_t prime = 2; prime * prime <= m; ++prime) {
    if (m % prime != 0) continue;
    while (m % prime == 0) m /= prime;
    result -= result / prime;
  }
  return m > 1 ? result - result / m : result;
}

// Plain double hashing with k probes in m bits; a key is a pair (a, b) of start and step.
class DoubleHashing {
 public:
  DoubleHashing(uint64_t m, int k, uint64_t forbidden_divisor)
      : m_(m),
        k_(k),
        forbidden_divisor_(forbidden_divisor),
        steps_(std::max<uint64_t>(1, m - forbidden_divisor)) {}

  struct StepClass {
    uint64_t step;  // one of the class
    double weight;  // share of the class among the steps of queries
  };

  // Steps that behave alike: b and u b for any u coprime to m, since multiplying all positions by u
  // permutes both the positions and the keys. A class is then a divisor gcd(b, m).
  std::vector<StepClass> StepClasses() const {
    std::vector<StepClass> classes;
    for (const uint64_t divisor : Divisors(m_)) {
      if (Forbidden(divisor % m_)) continue;
      classes.push_back({divisor % m_, static_cast<double>(Totient(m_ / divisor)) /
                                           static_cast<double>(steps_)});
    }
    if (classes.empty()) classes.push_back({0, 1.0});  // a table of one bit
    return classes;
  }

  // The positions of a query that starts at 0, without repetition.
  std::vector<uint64_t> Positions(uint64_t step) const {
    std::vector<uint64_t> positions;
    uint64_t position = 0;
    for (int i = 0; i < k_; ++i, position = (position + step) % m_) {
      if (std::find(positions.begin(), positions.end(), position) == positions.end()) {
        positions.push_back(position);
      }
    }
    return positions;
  }

  // For every set of the query's positions (bit j is position j): the probability that a key's
  // probes hit exactly that set. Sets that no key hits, and the empty set, are absent.
  std::map<uint64_t, double> OverlapLaw(const std::vector<uint64_t>& positions) const {
    std::map<uint64_t, double> law;
    const double per_key = 1.0 / (static_cast<double>(m_) * static_cast<double>(steps_));
    const std::vector<uint64_t> special = StepsThatMeetTwice(positions);
    // With any other step, each probe of the key meets each position from one start of its own.
    for (size_t j = 0; j < positions.size(); ++j) {
      const double single = static_cast<double>(steps_ - special.size()) * k_ * per_key;
      if (single > 0) law[uint64_t{1} << j] += single;
    }
    std::vector<std::pair<uint64_t, size_t>> starts;
    for (const uint64_t step : special) {
      starts.clear();
      uint64_t reach = 0;
      for (int i = 0; i < k_; ++i, reach = (reach + step) % m_) {
        for (size_t j = 0; j < positions.size(); ++j) {
          starts.emplace_back((positions[j] + m_ - reach) % m_, j);
        }
      }
      std::sort(starts.begin(), starts.end());
      for (size_t i = 0; i < starts.size();) {
        uint64_t hit = 0;
        const uint64_t start = starts[i].first;
        for (; i < starts.size() && starts[i].first == start; ++i) {
          hit |= uint64_t{1} << starts[i].second;
        }
        law[hit] += per_key;
      }
    }
    return law;
  }

 private:
  bool Forbidden(uint64_t step) const {
    if (forbidden_divisor_ == 0 || m_ == 1) return false;
    return step % (m_ / forbidden_divisor_) == 0;
  }

  // All steps b with d b = p - q mod m for some 0 < d < k and positions p, q of the query: those
  // with which a key can hit the query twice, or one position twice.
  std::vector<uint64_t> StepsThatMeetTwice(const std::vector<uint64_t>& positions) const {
    std::vector<uint64_t> differences;
    for (const uint64_t p : positions) {
      for (const uint64_t q : positions) differences.push_back((p + m_ - q) % m_);
    }
    std::sort(differences.begin(), differences.end());
    differences.erase(std::unique(differences.begin(), differences.end()), differences.end());
    std::vector<uint64_t> steps;
    for (uint64_t d = 1; d < static_cast<uint64_t>(k_); ++d) {
      const uint64_t common = std::gcd(d, m_);
      const uint64_t period = m_ / common;
      const uint64_t inverse = InverseMod(d / common % period, period);
      for (const uint64_t difference : differences) {
        if (difference % common != 0) continue;
        const uint64_t first = MulMod(difference / common, inverse, period);
        for (uint64_t step = first; step < m_; step += period) {
          if (!Forbidden(step)) steps.push_back(step);
        }
      }
    }
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    return steps;
  }

  uint64_t m_;
  int k_;
  uint64_t forbidden_divisor_;
  uint64_t steps_;  // how many steps keys may have
};

// P(n keys hit all positions) by inclusion-exclusion over the sets that they all miss:
// sum over U of (-1)^|U| (1 - P(a key hits U))^n.
double CoverageByInclusionExclusion(const std::map<uint64_t, double>& overlap_law,
                                    size_t positions, double n) {
  const size_t sets = size_t{1} << positions;
  std::vector<double> inside(sets);  // probability that a key hits, and only inside the set
  double any = 0;
  for (const auto& [hit, probability] : overlap_law) {
    inside[hit] = probability;
    any += probability;
  }
  for (size_t bit = 1; bit < sets; bit *= 2) {
    for (size_t set = 0; set < sets; ++set) {
      if (set & bit) inside[set] += inside[set ^ bit];
    }
  }
  double sum = 0;
  for (size_t set = 0; set < sets; ++set) {
    const double hit = std::clamp(any - inside[sets - 1 - set], 0.0, 1.0);
    const double missed_by_all = hit < 1 ? std::exp(n * std::log1p(-hit)) : 0.0;
    sum += std::popcount(set) % 2 == 0 ? missed_by_all : -missed_by_all;
  }
  return std::clamp(sum, 0.0, 1.0);
}

// By s: the probability that a key shares s positions with a query, as `first order in 1 / m` has
// it: steps uniform, no wrapping within the k probes. Element s for 2 <= s <= k.
//
// The key's step b' and the query's step b are tied by d b' = g b mod m, for coprime d and g below
// k in magnitude, d > 0; averaged over b there is one such b' for each (d, g), whatever divides m.
// Probes i of the key and j of the query meet in chains (i + t d, j + t g), one start of the key to
// a chain. The square of k x k pairs has (k - (s - 1) d) (k - (s - 1) |g|) segments of s members of
// a chain; the second difference over s counts the chains with s members in all.
std::vector<double> SharedPositionsFirstOrder(double m, int k) {
  std::vector<double> law(k + 1);
  for (int d = 1; d < k; ++d) {
    for (int g = 1; g < k; ++g) {
      if (std::gcd(d, g) != 1) continue;
      const auto segments = [&](int s) {
        return std::max(0.0, k - (s - 1.0) * d) * std::max(0.0, k - (s - 1.0) * g);
      };
      for (int s = 2; s <= k && segments(s) > 0; ++s) {
        // Twice: g and -g.
        law[s] += 2 * (segments(s) - 2 * segments(s + 1) + segments(s + 2)) / (m * m);
      }
    }
  }
  return law;
}

// Variance of an instance's rate, relative to its square, that is left when the number of set bits
// is known: how many pairs (a, b) happen to have all their bits set. Two queries that share s
// positions are both positive with p^(2k - s); the part linear in s vanishes, since every position
// is in the same number of queries. `shared`: the probability that two queries share s.
double PairingVariance(const std::vector<double>& shared, double p) {
  double variance = 0;
  for (size_t s = 2; s < shared.size(); ++s) {
    if (shared[s] == 0) continue;
    const double count = static_cast<double>(s);
    variance += shared[s] * (std::pow(p, -count) - 1 - count * (1 - p) / p);
  }
  return std::max(0.0, variance);
}

// The deviation of a rate from the variance due to the number of set bits and from PairingVariance.
// The latter may be infinite in nearly empty tables; a rate in [0, 1] has at most its mean.
double DeviationWithPairing(double occupancy_variance, double mean, double pairing_variance) {
  if (mean <= 0) return 0;
  return std::sqrt(occupancy_variance + mean * std::min(mean * pairing_variance, 1.0));
}

}  // namespace

double ClassicBloomFpr(double bits_per_key, int k) {
  return std::pow(-std::expm1(-k / bits_per_key), k);
}

int ClassicBloomBestK(double bits_per_key) {
  const int below = std::clamp(static_cast<int>(bits_per_key * std::numbers::ln2), 1,
                               kMaxClassicProbes);
  const int above = std::min(below + 1, kMaxClassicProbes);
  return ClassicBloomFpr(bits_per_key, above) < ClassicBloomFpr(bits_per_key, below) ? above
                                                                                     : below;
}

FprEstimate ClassicBloomFpr(uint64_t n, uint64_t bits, int k) {
  if (n == 0) return {0, 0};
  constexpr uint64_t kExactBelow = 4096;
  PowerMoments moments;
  if (bits < kExactBelow) {
    moments = ExactOccupancyPower(n * static_cast<uint64_t>(k), bits, k);
  } else {
    const double m = static_cast<double>(bits);
    const double probes = static_cast<double>(n) * k;
    const PowerMoments share =
        ShareOfSetBits(probes * std::log1p(-1 / m), probes * std::log1p(-2 / m), m);
    moments = NormalPower(share.mean, share.variance, k);
  }
  return {std::min(moments.mean, 1.0), std::sqrt(moments.variance)};
}

uint64_t ForbiddenStepDivisor(uint64_t bits, int k) {
  uint64_t divisor = 1;
  for (uint64_t d = 2; d < static_cast<uint64_t>(k); ++d) {
    if (bits % d == 0) divisor = std::lcm(divisor, d);
  }
  return divisor == bits ? 1 : divisor;
}

FprEstimate DoubleHashingFpr(uint64_t n, uint64_t bits, int k, uint64_t forbidden_divisor) {
  if (n == 0) return {0, 0};
  constexpr int kMaxExactProbes = 16;
  constexpr uint64_t kMaxExactBits = uint64_t{1} << 16;
  const double m = static_cast<double>(bits);
  const double keys = static_cast<double>(n);
  // The k probes of a key are distinct, up to steps that hardly ever occur.
  const double distinct = std::min<double>(k, m);
  const double hits_one = distinct / m;
  const double hits_two = distinct * (2 * m - distinct - 1) / (m * std::max(1.0, m - 1));
  const PowerMoments share =
      ShareOfSetBits(keys * std::log1p(-std::min(hits_one, 1 - 1e-15)),
                     keys * std::log1p(-std::min(hits_two, 1 - 1e-15)), m);
  const PowerMoments independent = NormalPower(share.mean, share.variance, k);
  const double p = share.mean;

  double mean = 0;
  std::vector<double> shared(k + 1);
  if (k <= kMaxExactProbes && bits <= kMaxExactBits) {
    const DoubleHashing hashing(bits, k, forbidden_divisor);
    for (const auto& [step, weight] : hashing.StepClasses()) {
      const std::vector<uint64_t> positions = hashing.Positions(step);
      const std::map<uint64_t, double> law = hashing.OverlapLaw(positions);
      mean += weight * CoverageByInclusionExclusion(law, positions.size(), keys);
      for (const auto& [hit, probability] : law) {
        shared[std::popcount(hit)] += weight * probability;
      }
    }
  } else {
    shared = SharedPositionsFirstOrder(m, k);
    mean = independent.mean;
    // With a key that shares s positions, a query needs p^(k - s) where it needed p^k. The terms up
    // to the square of (1 - p) / p are in the mean and variance of the number of set bits already.
    for (int s = 3; s <= k; ++s) {
      mean += keys * shared[s] *
              (std::pow(p, k - s) - std::pow(p, k) - s * (1 - p) * std::pow(p, k - 1) -
               s * (s - 1) / 2.0 * (1 - p) * (1 - p) * std::pow(p, k - 2));
    }
  }
  mean = std::clamp(mean, 0.0, 1.0);
  return {mean, DeviationWithPairing(independent.variance, mean, PairingVariance(shared, p))};
}

FprEstimate EnhancedDoubleHashingFpr(uint64_t n, uint64_t bits, int k) {
  if (n == 0) return {0, 0};
  const FprEstimate classic = ClassicBloomFpr(n, bits, k);
  const double m = static_cast<double>(bits);
  const double pairs = m * std::max(1.0, m - 1);
  const double same_pair =
      bits == 1 ? 1.0 : -std::expm1(static_cast<double>(n) * std::log1p(-1 / pairs));
  const double mean = classic.mean + (1 - classic.mean) * same_pair;
  // Besides the number of set bits, as for plain double hashing: k^2 (k-1)^2 / 2 pairs (a, b) share
  // two positions with a given one, and one pair is the same.
  const double share = std::max(std::pow(classic.mean, 1.0 / k), 1e-9);
  const double odds = (1 - share) / share;
  const double two_shared = 0.5 * k * k * (k - 1.0) * (k - 1.0) * odds * odds;
  const double pairing_variance = (two_shared + std::pow(share, -k)) / pairs;
  return {mean, DeviationWithPairing(classic.instance_sd * classic.instance_sd, mean,
                                     pairing_variance)};
}

}  // namespace filterbench::theory
