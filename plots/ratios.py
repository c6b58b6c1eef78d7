"""A median with its interval, and ratios of two of them.

A ratio is that of the medians. Its interval [low, high] goes from the low end above over the high
end below to the high end above over the low end below: where both intervals hold their medians, it
holds the ratio of these; two of 95 % make one of at least 90 %.
"""

import math
from typing import NamedTuple

import numpy
from scipy import stats

from plots import headline


class Unknown(Exception):
    """Why there is no value, in one sentence."""


class Measured(NamedTuple):
    """A median or a mean, or a ratio of two, with its interval (NaN where unknown)."""

    value: float
    low: float = math.nan
    high: float = math.nan

    def over(self, other):
        return Measured(self.value / other.value, self.low / other.high, self.high / other.low)

    def has_interval(self):
        return not (math.isnan(self.low) or math.isnan(self.high))

    def surely_below(self, other):
        """Whether all of the interval lies below the other's; False where one is unknown."""
        return self.high < other.low

    def doubt(self, limit):
        """What keeps the side of `limit` that the value is on from being certain, or nothing."""
        if not self.has_interval():
            return ", interval unknown"
        return ", within noise" if self.low <= limit < self.high else ""

    def __str__(self):
        if not self.has_interval():
            return headline.number(self.value)
        return (f"{headline.number(self.value)} [{headline.number(self.low)}, "
                f"{headline.number(self.high)}]")


class Reasons:
    """The reasons below a table, each once, by number."""

    def __init__(self):
        self._numbers = {}

    def text(self, value, *arguments):
        """value(*arguments) as text, or a dash with the number of the reason."""
        try:
            return str(value(*arguments))
        except Unknown as unknown:
            return f"- [{self._numbers.setdefault(str(unknown), len(self._numbers) + 1)}]"

    def lines(self):
        return [f"- [{number}] {reason}" for reason, number in self._numbers.items()]


def time(row):
    """The time of a point, a row of load.Run.points or a dict of one."""
    return Measured(row["ns_per_op"], row["ns_per_op_low"], row["ns_per_op_high"])


def mean(values):
    """The mean of independent values with Student's 95 % interval, unknown for a single one."""
    values = numpy.asarray(values, dtype=float)
    centre = float(values.mean())
    if len(values) < 2:
        return Measured(centre)
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return Measured(centre, centre - half, centre + half)


def floor(row, by_id):
    """The floor of a point, as the summary has it, with the interval of the points that it is from;
    `by_id` holds the points of the run by their ids. Raises Unknown."""
    value = row["floor_ns_per_op"]
    if math.isnan(value):
        raise Unknown(row["floor_reason"] or "the summary gives no floor")
    sources = row["floor_from"].split(";")
    if not all(source in by_id for source in sources):
        return Measured(value)
    times = [time(by_id[source]) for source in sources]
    # The weight that the summary gave to the second of two, found in its own numbers.
    first, last = times[0], times[-1]
    difference = last.value - first.value
    weight = min(1, max(0, (value - first.value) / difference)) if difference != 0 else 0
    return Measured(value, first.low + weight * (last.low - first.low),
                    first.high + weight * (last.high - first.high))
