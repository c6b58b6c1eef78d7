#include "harness/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

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

}  // namespace filterbench
