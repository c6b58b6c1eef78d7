"""Intervals of means and of ratios, on numbers of which the truth is known. Fixed seeds."""

import math

import numpy
import pytest

from plots import ratios
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
