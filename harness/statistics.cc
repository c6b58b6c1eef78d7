#include "harness/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "filters/hash.h"
#include "filters/theory/agreement.h"

namespace filterbench {
namespace {

// Sorted; nothing where a value is not finite.
std::optional<std::vector<double>> Sorted(std::span<const double> values) {
  if (!std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); })) {
    return std::nullopt;
  }
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// The p between `inside` and `limit` at which `tail` falls to `alpha`. The tail decreases from
// `inside`, where it exceeds `alpha`, towards `limit`. Steps of twice the length are taken until it
// is bracketed, since far out a tail costs a long sum of zeros.
template <class Tail>
double SolveTail(double inside, double limit, double first_step, double alpha, Tail tail) {
  const double direction = limit < inside ? -1 : 1;
  double outside = limit;
  for (double step = first_step; step < std::abs(limit - inside); step *= 2) {
    const double p = inside + direction * step;
    if (tail(p) <= alpha) {
      outside = p;
      break;
    }
  }
  while (true) {
    const double p = std::midpoint(inside, outside);
    if (p == inside || p == outside || std::abs(outside - inside) < 1e-13 * p) return outside;
    (tail(p) <= alpha ? outside : inside) = p;
  }
}

// --- Nested values ---

NestedValues WithoutEmpty(const NestedValues& values) {
  NestedValues filled;
  for (const auto& process : values) {
    std::vector<std::vector<double>> builds;
    for (const std::vector<double>& build : process) {
      if (!build.empty()) builds.push_back(build);
    }
    if (!builds.empty()) filled.push_back(std::move(builds));
  }
  return filled;
}

std::vector<double> Flat(const std::vector<std::vector<double>>& process) {
  std::vector<double> all;
  for (const auto& build : process) all.insert(all.end(), build.begin(), build.end());
  return all;
}

std::vector<double> Flat(const NestedValues& values) {
  std::vector<double> all;
  for (const auto& process : values) {
    const std::vector<double> of_process = Flat(process);
    all.insert(all.end(), of_process.begin(), of_process.end());
  }
  return all;
}

bool AreTimes(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(),
                     [](double v) { return std::isfinite(v) && v > 0; });
}

double Mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The t that Student's law of `degrees` >= 1 degrees of freedom exceeds in absolute value with a
// chance of 1 - `confidence`: the finite sums for whole degrees (Abramowitz and Stegun, Handbook of
// Mathematical Functions, 1964, 26.7.3 and 26.7.4), solved by bisection in the angle atan(t /
// sqrt(degrees)).
double StudentFactor(uint64_t degrees, double confidence) {
  const auto central = [degrees](double angle) {
    const double cosine = std::cos(angle);
    const bool odd = degrees % 2 == 1;
    double term = odd ? cosine : 1;
    double sum = 0;
    for (uint64_t k = odd ? 3 : 2; k <= degrees; k += 2) {
      sum += term;
      term *= cosine * cosine * static_cast<double>(k - 1) / static_cast<double>(k);
    }
    sum *= std::sin(angle);
    return odd ? (angle + sum) * 2 / M_PI : sum;
  };
  double low = 0;
  double high = M_PI / 2;
  while (true) {
    const double middle = std::midpoint(low, high);
    if (middle == low || middle == high) break;
    (central(middle) < confidence ? low : high) = middle;
  }
  return std::tan(low) * std::sqrt(static_cast<double>(degrees));
}

// Resamples nested values and takes the median, by ranks: a resample is the number of times that
// each rank was drawn.
class HierarchicalBootstrap {
 public:
  explicit HierarchicalBootstrap(const NestedValues& values) : sorted_(Flat(values)) {
    std::vector<size_t> order(sorted_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [this](size_t a, size_t b) { return sorted_[a] < sorted_[b]; });
    std::vector<uint32_t> rank(order.size());
    for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<uint32_t>(i);
    std::sort(sorted_.begin(), sorted_.end());
    drawn_.resize(sorted_.size());

    random_ = values.size();
    size_t next = 0;
    for (const auto& process : values) {
      random_ = Mix64(random_ ^ process.size());
      std::vector<std::vector<uint32_t>>& builds = ranks_.emplace_back();
      for (const std::vector<double>& build : process) {
        random_ = Mix64(random_ ^ build.size());
        builds.emplace_back(rank.begin() + static_cast<ptrdiff_t>(next),
                            rank.begin() + static_cast<ptrdiff_t>(next + build.size()));
        next += build.size();
      }
    }
  }

  double ResampledMedian() {
    std::fill(drawn_.begin(), drawn_.end(), 0u);
    uint64_t total = 0;
    for (size_t p = 0; p < ranks_.size(); ++p) {
      const std::vector<std::vector<uint32_t>>& process = Choose(ranks_);
      for (size_t b = 0; b < process.size(); ++b) {
        const std::vector<uint32_t>& build = Choose(process);
        for (size_t i = 0; i < build.size(); ++i) ++drawn_[Choose(build)];
        total += build.size();
      }
    }
    size_t rank = 0;
    uint64_t passed = drawn_[0];  // values drawn up to this rank
    while (passed <= (total - 1) / 2) passed += drawn_[++rank];
    const double lower = sorted_[rank];
    while (passed <= total / 2) passed += drawn_[++rank];
    return std::midpoint(lower, sorted_[rank]);
  }

 private:
  // SplitMix (Steele, Lea, Flood 2014): most of the time goes into drawing, and the distributions
  // of the standard differ from library to library.
  template <class T>
  const T& Choose(const std::vector<T>& from) {
    random_ += kGoldenGamma;
    return from[FastRange64(Mix64(random_), from.size())];
  }

  std::vector<double> sorted_;
  std::vector<std::vector<std::vector<uint32_t>>> ranks_;  // as the values are nested
  std::vector<uint32_t> drawn_;
  uint64_t random_;  // the seed, then the state
};

// With R resamples, the (R + 1) alpha-th smallest and largest (Davison and Hinkley 1997, equation
// 5.18): these are ranks for R = 999.
Interval PercentileInterval(const NestedValues& values, double confidence) {
  constexpr size_t kResamples = 999;
  HierarchicalBootstrap bootstrap(values);
  std::vector<double> medians(kResamples);
  for (double& median : medians) median = bootstrap.ResampledMedian();
  std::sort(medians.begin(), medians.end());
  const auto rank = static_cast<size_t>(std::lround((kResamples + 1) * (1 - confidence) / 2));
  return {medians[rank - 1], medians[kResamples - rank], confidence};
}

// Whatever the levels contribute, processes are independent and alike, so Student's law holds for
// the mean of what each says: exactly for normal effects in equal numbers.
Interval StudentInterval(const NestedValues& values, double confidence) {
  std::vector<double> logs;
  for (const auto& process : values) logs.push_back(std::log(*Median(Flat(process))));
  const double n = static_cast<double>(logs.size());
  const double center = Mean(logs);
  double squares = 0;
  for (double v : logs) squares += (v - center) * (v - center);
  const double half = StudentFactor(logs.size() - 1, confidence) * std::sqrt(squares / (n - 1) / n);
  // Within the finite numbers above 0, however far apart the processes are.
  const double limit = std::log(std::numeric_limits<double>::max());
  return {std::exp(std::max(center - half, -limit)), std::exp(std::min(center + half, limit)),
          confidence};
}

// --- Modes ---

// Distinct values in order, with the numbers of values below them and up to them.
struct Steps {
  std::vector<double> at;
  std::vector<double> below;
  std::vector<double> up_to;
};

Steps CountSteps(std::span<const double> sorted) {
  Steps steps;
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || sorted[i] != sorted[i - 1]) {
      steps.at.push_back(sorted[i]);
      steps.below.push_back(static_cast<double>(i));
      steps.up_to.push_back(0);
    }
    steps.up_to.back() = static_cast<double>(i + 1);
  }
  return steps;
}

// Corners, from `first` to `last`, of the greatest convex function below the points (x, y), or,
// with `sign` -1, of the least concave one above them.
std::vector<size_t> Hull(const std::vector<double>& x, const std::vector<double>& y, size_t first,
                         size_t last, int sign) {
  std::vector<size_t> corners;
  for (size_t i = first; i <= last; ++i) {
    while (corners.size() >= 2) {
      const size_t a = corners[corners.size() - 2];
      const size_t b = corners.back();
      if (sign * ((y[b] - y[a]) * (x[i] - x[b]) - (y[i] - y[b]) * (x[b] - x[a])) < 0) break;
      corners.pop_back();
    }
    corners.push_back(i);
  }
  return corners;
}

// The function with these corners at every point between the first and the last, from index 0 on.
std::vector<double> Along(const std::vector<size_t>& corners, const std::vector<double>& x,
                          const std::vector<double>& y) {
  std::vector<double> heights = {y[corners[0]]};
  for (size_t c = 1; c < corners.size(); ++c) {
    const size_t a = corners[c - 1];
    const size_t b = corners[c];
    for (size_t i = a + 1; i < b; ++i) {
      heights.push_back(y[a] + (y[b] - y[a]) * ((x[i] - x[a]) / (x[b] - x[a])));
    }
    heights.push_back(y[b]);
  }
  return heights;
}

// What uniform values exceed with a chance of 0.01, by simulation (1e6 samples up to 100 values,
// 4e5 of 200, 1.5e5 of 500); of the unimodal laws the uniform one has the greatest dips, in the
// limit of many values (Hartigan and Hartigan 1985). Between these sizes the square root of n times
// the dip is linear in the logarithm of n, beyond them constant.
double CriticalDip(size_t values) {
  constexpr std::pair<double, double> kTable[] = {
      {6, 0.19188}, {7, 0.18418}, {8, 0.17298}, {9, 0.16405}, {10, 0.15954}, {11, 0.15385}, {12,
      0.14851}, {14, 0.13946}, {16, 0.13244}, {20, 0.12075}, {25, 0.10988}, {30, 0.10151}, {40,
      0.08957}, {60, 0.07476}, {100, 0.05895}, {200, 0.04262}, {500, 0.02741}};
  const double n = static_cast<double>(values);
  const auto* above = std::find_if(std::begin(kTable), std::end(kTable),
                                   [n](const auto& row) { return row.first >= n; });
  const auto scaled = [](const auto& row) { return row.second * std::sqrt(row.first); };
  if (above == std::end(kTable)) return scaled(*(above - 1)) / std::sqrt(n);
  if (above == std::begin(kTable)) return above->second;
  const auto* below = above - 1;
  const double weight = std::log(n / below->first) / std::log(above->first / below->first);
  return std::lerp(scaled(*below), scaled(*above), weight) / std::sqrt(n);
}

// How many of the sorted values make the lower one of two clusters: those with the least sum of
// distances to their medians, which a few outliers move less than means. Each has a tenth of the
// values and two of them at least.
size_t BestSplit(const std::vector<double>& sorted) {
  const size_t n = sorted.size();
  std::vector<double> sum_to(n + 1, 0.0);
  std::partial_sum(sorted.begin(), sorted.end(), sum_to.begin() + 1);
  // Of sorted[first, last): the upper half less the lower half.
  const auto distances = [&](size_t first, size_t last) {
    const size_t half = (last - first) / 2;
    return sum_to[last] - sum_to[last - half] - (sum_to[first + half] - sum_to[first]);
  };
  const size_t least = std::max<size_t>(2, (n + 9) / 10);
  size_t best = least;
  for (size_t split = least; split <= n - least; ++split) {
    if (distances(0, split) + distances(split, n) < distances(0, best) + distances(best, n)) {
      best = split;
    }
  }
  return best;
}

// Whether each group has values on one side of `bound` only. Groups of one value explain nothing.
bool Explains(const std::vector<std::vector<double>>& groups, double bound) {
  const auto is_low = [bound](double v) { return v < bound; };
  bool has_several = false;
  for (const std::vector<double>& group : groups) {
    const auto low = std::count_if(group.begin(), group.end(), is_low);
    if (low != 0 && low != std::ssize(group)) return false;
    has_several |= group.size() > 1;
  }
  return has_several;
}

}  // namespace

std::optional<double> Median(std::span<const double> values) {
  const auto sorted = Sorted(values);
  if (!sorted || sorted->empty()) return std::nullopt;
  const size_t n = sorted->size();
  return std::midpoint((*sorted)[(n - 1) / 2], (*sorted)[n / 2]);
}

std::optional<Interval> MedianInterval(std::span<const double> values, double confidence) {
  const auto sorted = Sorted(values);
  if (!sorted || sorted->empty()) return std::nullopt;
  const uint64_t n = sorted->size();
  // The number of values below the median is Binomial(n, 1/2): the interval from the value of rank
  // r (from 1) to its mirror image misses the median with twice the probability of r - 1 or fewer.
  const auto coverage = [n](uint64_t r) {
    return 1 - 2 * theory::BinomialLowerTail(r - 1, n, 0.5);
  };
  uint64_t rank = 1;
  uint64_t too_high = n / 2 + 1;
  while (too_high - rank > 1) {
    const uint64_t middle = std::midpoint(rank, too_high);
    (coverage(middle) >= confidence ? rank : too_high) = middle;
  }
  return Interval{(*sorted)[rank - 1], (*sorted)[n - rank], std::max(0.0, coverage(rank))};
}

Interval BinomialInterval(uint64_t successes, uint64_t trials, double confidence) {
  if (!(confidence < 1) || trials == 0) return {0, 1, 1};
  confidence = std::max(confidence, 0.0);
  successes = std::min(successes, trials);
  const double alpha = (1 - confidence) / 2;
  const double n = static_cast<double>(trials);
  const double rate = static_cast<double>(successes) / n;
  const double first_step = std::sqrt(rate * (1 - rate) / n) + 1 / n;
  Interval interval{0, 1, confidence};
  if (successes > 0) {
    interval.low = SolveTail(rate, 0, first_step, alpha, [&](double p) {
      return theory::BinomialUpperTail(successes, trials, p);
    });
  }
  if (successes < trials) {
    interval.high = SolveTail(rate, 1, first_step, alpha, [&](double p) {
      return theory::BinomialLowerTail(successes, trials, p);
    });
  }
  return interval;
}

std::optional<Interval> NestedMedianInterval(const NestedValues& values) {
  const NestedValues filled = WithoutEmpty(values);
  const std::vector<double> all = Flat(filled);
  if (all.empty() || !AreTimes(all)) return std::nullopt;
  if (filled.size() == 1) return MedianInterval(all);
  const double confidence = filled.size() < kLeastProcesses ? 0.8 : 0.95;
  const Interval percentile = PercentileInterval(filled, confidence);
  const Interval student = StudentInterval(filled, confidence);
  const double median = *Median(all);
  return Interval{std::min({percentile.low, student.low, median}),
                  std::max({percentile.high, student.high, median}), confidence};
}

std::optional<Stability> Judge(const NestedValues& values, double asked_width) {
  const auto interval = NestedMedianInterval(values);
  if (!interval) return std::nullopt;
  const NestedValues filled = WithoutEmpty(values);
  // Of ratios, since a difference may be infinite.
  const double median = *Median(Flat(filled));
  const double width = std::min(interval->high / median - interval->low / median,
                                std::numeric_limits<double>::max());
  return Stability{asked_width, width, filled.size() >= kLeastProcesses && width <= asked_width};
}

Result<VarianceShares> ShareVariance(const NestedValues& values) {
  const NestedValues filled = WithoutEmpty(values);
  const std::vector<double> all = Flat(filled);
  if (!std::all_of(all.begin(), all.end(), [](double v) { return std::isfinite(v); })) {
    return Error{"a value is not finite"};
  }
  size_t builds = 0;
  for (const auto& process : filled) builds += process.size();
  if (filled.size() < 2) return Error{"there are fewer than two processes"};
  if (builds == filled.size()) return Error{"no process has two builds"};
  if (all.size() == builds) return Error{"no build has two passes"};

  // Sums of squares of the three levels, and the sums of squared counts that their expectations
  // have as coefficients. With n values, n_i of process i, n_ij of its build j:
  //   E[MS pass]    = pass
  //   E[MS build]   = pass + (n - sum n_ij^2 / n_i) / (builds - processes) build
  //   E[MS process] = pass + (sum n_ij^2 / n_i - sum n_ij^2 / n) / (processes - 1) build
  //                   + (n - sum n_i^2 / n) / (processes - 1) process
  const double n = static_cast<double>(all.size());
  const double mean = Mean(all);
  double ss_process = 0, ss_build = 0, ss_pass = 0;
  double n_i_squared = 0, n_ij_squared = 0, n_ij_squared_over_n_i = 0;
  for (const auto& process : filled) {
    const std::vector<double> of_process = Flat(process);
    const double n_i = static_cast<double>(of_process.size());
    const double process_mean = Mean(of_process);
    ss_process += n_i * (process_mean - mean) * (process_mean - mean);
    n_i_squared += n_i * n_i;
    for (const std::vector<double>& build : process) {
      const double n_ij = static_cast<double>(build.size());
      const double build_mean = Mean(build);
      ss_build += n_ij * (build_mean - process_mean) * (build_mean - process_mean);
      n_ij_squared += n_ij * n_ij;
      n_ij_squared_over_n_i += n_ij * n_ij / n_i;
      for (double v : build) ss_pass += (v - build_mean) * (v - build_mean);
    }
  }
  const double processes_df = static_cast<double>(filled.size() - 1);
  const double builds_df = static_cast<double>(builds - filled.size());
  const double pass = ss_pass / static_cast<double>(all.size() - builds);
  const double build =
      std::max(0.0, (ss_build / builds_df - pass) * builds_df / (n - n_ij_squared_over_n_i));
  const double build_in_process =
      (n_ij_squared_over_n_i - n_ij_squared / n) / processes_df * build;
  const double process = std::max(0.0, (ss_process / processes_df - pass - build_in_process) *
                                           processes_df / (n - n_i_squared / n));
  const double total = process + build + pass;
  if (!std::isfinite(total)) return Error{"the values are too far apart"};
  if (total == 0) return Error{"the values do not differ"};
  return VarianceShares{process / total, build / total, pass / total};
}

// The algorithm of Hartigan, Computation of the Dip Statistic to Test for Unimodality, Applied
// Statistics 34, 1985 (AS 217): the interval that holds the mode shrinks until the convex function
// below and the concave one above it are no further apart there than the distribution function is
// from them outside.
double Dip(std::span<const double> values) {
  const auto sorted = Sorted(values);
  if (!sorted || sorted->empty()) return 0;
  const Steps steps = CountSteps(*sorted);
  size_t first = 0;
  size_t last = steps.at.size() - 1;
  double dip = 1;  // times 2 n
  while (first < last) {
    const std::vector<size_t> convex = Hull(steps.at, steps.below, first, last, 1);
    const std::vector<size_t> concave = Hull(steps.at, steps.up_to, first, last, -1);
    const std::vector<double> below = Along(convex, steps.at, steps.below);
    const std::vector<double> above = Along(concave, steps.at, steps.up_to);
    const auto distance = [&](size_t i) { return above[i - first] - below[i - first]; };

    double greatest = 0;
    size_t mode_first = first;
    size_t mode_last = last;
    for (size_t i : convex) {
      if (distance(i) <= greatest) continue;
      greatest = distance(i);
      mode_first = i;
      mode_last = *std::lower_bound(concave.begin(), concave.end(), i);
    }
    for (size_t i : concave) {
      if (distance(i) <= greatest) continue;
      greatest = distance(i);
      mode_first = *(std::upper_bound(convex.begin(), convex.end(), i) - 1);
      mode_last = i;
    }
    if (greatest <= dip) break;
    for (size_t i = first; i < mode_first; ++i) {
      dip = std::max(dip, steps.up_to[i] - below[i - first]);
    }
    for (size_t i = mode_last + 1; i <= last; ++i) {
      dip = std::max(dip, above[i - first] - steps.below[i]);
    }
    first = mode_first;
    last = mode_last;
  }
  return dip / (2 * static_cast<double>(sorted->size()));
}

Result<Clusters> FindClusters(const NestedValues& values) {
  constexpr size_t kLeastValues = 6;
  constexpr double kLeastRatio = 1.05;
  std::vector<double> sorted = Flat(values);
  if (!AreTimes(sorted)) return Error{"a value is not finite and above 0"};
  if (sorted.size() < kLeastValues) {
    return Error{"fewer than " + std::to_string(kLeastValues) + " values"};
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> logs;
  for (double v : sorted) logs.push_back(std::log(v));
  if (Dip(logs) <= CriticalDip(logs.size())) return Error{"one mode explains the values"};

  const size_t split = BestSplit(logs);
  const std::span<const double> all(sorted);
  Clusters clusters;
  clusters.centers = {*Median(all.first(split)), *Median(all.subspan(split))};
  clusters.shares[0] = static_cast<double>(split) / static_cast<double>(sorted.size());
  clusters.shares[1] = 1 - clusters.shares[0];
  if (clusters.centers[1] < kLeastRatio * clusters.centers[0]) {
    return Error{"two modes, less than 5 % apart"};
  }
  std::vector<std::vector<double>> processes;
  std::vector<std::vector<double>> builds;
  for (const auto& process : values) {
    processes.push_back(Flat(process));
    builds.insert(builds.end(), process.begin(), process.end());
  }
  clusters.explained_by = Explains(processes, sorted[split]) ? Level::kProcess
                          : Explains(builds, sorted[split])  ? Level::kBuild
                                                             : Level::kPass;
  return clusters;
}

}  // namespace filterbench
