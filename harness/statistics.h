#ifndef FILTERBENCH_HARNESS_STATISTICS_H_
#define FILTERBENCH_HARNESS_STATISTICS_H_

// The statistics of records. All functions are total: no input makes them return NaN or infinity.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "filters/result.h"

namespace filterbench {

struct Interval {
  double low = 0;
  double high = 0;
  // Probability that an interval made this way covers the true value; what was reached, which can
  // be more than was asked for, or less where there are too few values.
  double confidence = 0;
};

// Half-way between the two middle values where their number is even. Nothing where there are no
// values or one of them is not finite.
std::optional<double> Median(std::span<const double> values);

// Distribution-free interval of the median of a continuous law, of independent values: the
// narrowest symmetric pair of order statistics that covers it with at least `confidence` (David
// and Nagaraja, Order Statistics, 2003, section 7.1). Where no pair does, which at 95 % is below 6
// values, the range of the values with the confidence that it has: 1 - 2^(1 - n), so 0 for one
// value. Nothing where Median has none.
std::optional<Interval> MedianInterval(std::span<const double> values, double confidence = 0.95);

// Clopper-Pearson interval of a proportion (Clopper, Pearson 1934): covers with at least
// `confidence` whatever the proportion is. No success gives low = 0 and an upper limit, only
// successes high = 1 and a lower one; no trial gives 0..1. successes <= trials.
Interval BinomialInterval(uint64_t successes, uint64_t trials, double confidence = 0.95);

// --- Values that were measured at three levels of repetition ---

// process -> build of the filter -> pass. Builds and processes without values count for nothing.
using NestedValues = std::vector<std::vector<std::vector<double>>>;

// Below this number of processes no interval of 95 % is worth its width, and nothing is stable.
inline constexpr size_t kLeastProcesses = 3;

// Interval of the median of times, all above 0: the wider at each end of
// (a) the percentile interval of the hierarchical bootstrap, which resamples processes, within them
//     builds and within these passes (Davison and Hinkley, Bootstrap Methods and their Application,
//     1997, section 3.8; for benchmarks Kalibera and Jones, Rigorous Benchmarking in Reasonable
//     Time, ISMM 2013), and
// (b) Student's interval of the logarithms of the processes' medians,
// with the median of all values inside. (a) alone covers three of four times where three processes
// differ and their passes do not, (b) whatever the three levels contribute. (a) stays as wide as
// the passes are apart where a few processes agree by chance, which is when sampling stops.
//
// Confidence is 0.95; with two processes 0.8, since Student's factor for 0.95 is then 12.7. One
// process tells nothing about others: the interval is MedianInterval of its values, as if
// independent. Deterministic: the bootstrap's seed follows from the numbers of values. Nothing
// where there are no values or one is not finite and above 0.
std::optional<Interval> NestedMedianInterval(const NestedValues& values);

// Whether to stop sampling a point.
struct Stability {
  double asked_width = 0;
  double width = 0;  // (high - low) / median of NestedMedianInterval
  bool stable = false;

  bool operator==(const Stability&) const = default;
};

// Stable: as narrow as asked for, over kLeastProcesses processes or more. A pure function of its
// arguments, so that a run and its summary agree. Nothing where NestedMedianInterval has nothing.
std::optional<Stability> Judge(const NestedValues& values, double asked_width);

// Shares of the variance of one value that come from each level; they add up to 1.
struct VarianceShares {
  double process = 0;
  double build = 0;
  double pass = 0;

  bool operator==(const VarianceShares&) const = default;
};

// Variance components of the nested random model, unbalanced data allowed, by the method of moments
// (Searle, Casella and McCulloch, Variance Components, 1992, chapter 5). Negative estimates count
// as 0. An error, which is the reason, where a level has one member everywhere, and where the
// values do not differ.
Result<VarianceShares> ShareVariance(const NestedValues& values);

enum class Level { kProcess, kBuild, kPass };
inline constexpr std::string_view kLevelNames[] = {"process", "build", "pass"};

// Two modes that values fall into.
struct Clusters {
  std::array<double, 2> centers{};  // medians, the lower first
  std::array<double, 2> shares{};   // of the values; they add up to 1
  // The highest level whose members all keep to one cluster; kPass where builds have values in
  // both. Few processes or builds that merely differ may look like clusters that they explain.
  Level explained_by = Level::kPass;

  bool operator==(const Clusters&) const = default;
};

// An error, which is the reason, where one mode explains the values: fewer than 6, a dip (Hartigan
// and Hartigan, The Dip Test of Unimodality, Annals of Statistics 13, 1985) that is exceeded with a
// chance of 0.01 by independent uniform values and seldomer by others of one mode (normal ones:
// 0.0035 of 6, 0.0004 of 30), or centers less than 5 % apart.
Result<Clusters> FindClusters(const NestedValues& values);

// The dip of a sample: the least distance, as the greatest difference, of its distribution function
// from a unimodal one. 0 where there are no values or one is not finite.
double Dip(std::span<const double> values);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_STATISTICS_H_
