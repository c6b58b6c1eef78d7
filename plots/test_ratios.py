"""Intervals of means and of ratios, on numbers of which the truth is known. Fixed seeds."""

import math

import numpy
import pytest
from scipy import stats

from plots import gets, ratios
from plots.ratios import Measured

DRAWS = 10_000


@pytest.mark.parametrize("count", [2, 3, 9])
def test_the_interval_of_a_mean_covers_95_percent(count):
    """Over 10,000 draws the share deviates by 0.0022: outside of 0.94..0.96 by chance 1 in 1e5."""
    random = numpy.random.default_rng(count)
    covered = 0
    for values in random.normal(5, 2, (DRAWS, count)):
        mean = ratios.mean(values)
        covered += mean.low <= 5 <= mean.high
    assert 0.94 <= covered / DRAWS <= 0.96


def test_the_interval_of_a_ratio_covers_what_it_promises():
    """Two intervals of 95 % make one of at least 90 %; of normal ones it covers 99 %."""
    random = numpy.random.default_rng(5)
    covered = 0
    for a, b in zip(random.normal(4, 0.1, (DRAWS, 5)), random.normal(2, 0.1, (DRAWS, 5))):
        ratio = ratios.mean(a).over(ratios.mean(b))
        covered += ratio.low <= 2 <= ratio.high
    assert 0.98 <= covered / DRAWS <= 1


def test_the_mean_of_one_value_has_no_interval_and_of_equal_ones_no_width():
    one = ratios.mean([3.0])
    assert one.value == 3 and math.isnan(one.low) and not one.has_interval()
    assert ratios.mean([3.0, 3.0, 3.0]) == Measured(3, 3, 3)


def test_an_interval_that_reaches_a_limit_is_doubt_and_one_that_is_unknown_too():
    assert Measured(1.1, 1.05, 1.2).doubt(1) == ""
    assert "within noise" in Measured(1.1, 0.99, 1.2).doubt(1)
    assert "unknown" in Measured(1.1).doubt(1)
    assert not Measured(1.1).surely_below(Measured(2, 1.9, 2.1))
    assert Measured(1, 0.9, 1.1).surely_below(Measured(2, 1.9, 2.1))
    # Intervals that touch do not tell which is less.
    assert not Measured(1, 0.9, 1.9).surely_below(Measured(2, 1.9, 2.1))


def test_the_interval_of_a_difference_covers_95_percent():
    random = numpy.random.default_rng(6)
    covered = 0
    for a, b in random.normal([7, 4], [0.3, 0.1], (DRAWS, 2)):
        found = gets.difference(Measured(a, a - 0.588, a + 0.588),
                                Measured(b, b - 0.196, b + 0.196))
        covered += found.low <= 3 <= found.high
    assert 0.94 <= covered / DRAWS <= 0.96


@pytest.mark.parametrize("trials", [1, 10, 60, 400])
def test_a_share_is_covered_with_at_least_95_percent_whatever_it_is(trials):
    """The exact chance, summed over all outcomes; no draws."""
    found = [gets.clopper_pearson(count, trials) for count in range(trials + 1)]
    low, high = (numpy.array([getattr(share, end) for share in found]) for end in ("low", "high"))
    for share in numpy.linspace(0.0025, 0.9975, 200):
        chances = stats.binom.pmf(numpy.arange(trials + 1), trials, share)
        assert chances[(low <= share) & (share <= high)].sum() >= 0.95 - 1e-9


@pytest.mark.parametrize("count, trials, low, high", [
    (1, 10, 0.0025285785444617848, 0.4450161170281954),
    (9660, 1000000, 0.009469218245970263, 0.009853629949448314),
    (500000000, 1000000000, 0.49996900974827113, 0.5000309902517288)])
def test_a_share_is_that_of_the_harness(count, trials, low, high):
    """These rows are in harness/statistics_test.cc too."""
    found = gets.clopper_pearson(count, trials)
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12)
