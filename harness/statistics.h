#ifndef FILTERBENCH_HARNESS_STATISTICS_H_
#define FILTERBENCH_HARNESS_STATISTICS_H_

// The statistics of records. All functions are total: no input makes them return NaN or infinity.

#include <cstdint>
#include <optional>
#include <span>

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

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_STATISTICS_H_
