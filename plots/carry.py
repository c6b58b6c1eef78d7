"""Times at places where a filter was not measured, from the nearest one where it was.

share   A filter that was measured at too few shares of negatives takes the ratio that its time has
        between the two shares elsewhere: at the same parameters before others, then at the nearest
        key count, then at the nearest bits per key.
size    Beyond the key counts that a filter was measured at, by the floor: the fastest touch_lines
        with one line of the run, linear in the logarithm of the table's bytes between two measured
        tables, and beyond the last one up to the factor MOST_BEYOND as it is there. To a larger
        table: between as many times the floor as before (all that the filter does is wait for
        memory) and as many ns more than the floor as before (all that it adds is computing). To a
        smaller one: between as many times the floor as before and no faster than before. The
        carried time is the geometric mean of both; its interval holds both, each with its own
        interval, and USUAL_ERROR to either side. It is no confidence interval: it tells how far
        such times were off.

        How far: 190 steps of ten or a hundred times the keys (3000 to 1e8, batched and latency)
        in two runs on a Zen 3 with neighbours, each also backwards. The carried time is off by 1.22
        times in the middle and by 1.76 in nine of ten (backwards 1.17 and 1.65), more often too
        slow than too fast, so that what was measured is preferred. The ratio to the floor alone
        would be off by 1.44 and 2.5.
"""

import math

from plots import ratios, selection
from plots.ratios import Measured

MOST_BEYOND = 4.0
USUAL_ERROR = 1.8


class Carry:
    """Of one run and mode; `negative_share` is the one that the floor is of."""

    def __init__(self, run, mode="lookup_batched", negative_share=1.0):
        points = selection.ok(selection.plain_keys(run.points))
        points = points[(points["mode"] == mode) & points["ns_per_op"].notna()]
        filters = selection.best_target(selection.filters_only(points), run.best_target)
        self._filters = {name: rows for name, rows in filters.groupby("filter")}
        self._floor = _floor(points[points["filter"] == "touch_lines"], negative_share)

    def to_share(self, time, row, negative_share):
        """`time`, which is of the point `row`, at another share; None if nothing tells."""
        known, best = self._filters[row["filter"]], None
        for (params, keys), rows in known.groupby(["params", "keys"]):
            there = _time_at(rows, row["negative_share"])
            wanted = _time_at(rows, negative_share)
            if there is None or wanted is None:
                continue
            far = (params != row["params"], _distance(keys, row["keys"]),
                   _distance(rows["bits_per_key"].iloc[0], row["bits_per_key"]), params)
            if best is None or far < best[0]:
                best = far, wanted.over(there)
        return None if best is None else Measured(*(a * b for a, b in zip(time, best[1])))

    def floor(self, size_bytes):
        """The time of one random line in a table of this size; None where it was not measured."""
        sizes = [size for size, _ in self._floor]
        if not sizes or not sizes[0] / MOST_BEYOND <= size_bytes <= sizes[-1] * MOST_BEYOND:
            return None
        above = sum(size < size_bytes for size in sizes)
        low, first = self._floor[max(above - 1, 0)]
        high, last = self._floor[min(above, len(sizes) - 1)]
        weight = math.log(size_bytes / low) / math.log(high / low) if low < high else 0.0
        return Measured(*((1 - weight) * a + weight * b for a, b in zip(first, last)))

    def to_size(self, time, size_bytes, wanted_bytes):
        """`time`, which is with a table of `size_bytes`, with one of `wanted_bytes`; None if the
        floor at one of them is not known."""
        here, there = self.floor(size_bytes), self.floor(wanted_bytes)
        if here is None or there is None:
            return None
        ratio, difference = there.value / here.value, there.value - here.value
        if wanted_bytes < size_bytes:
            difference = 0.0
        # The floor is what no lookup is below.
        both = [[max(end * ratio, there.value), max(end + difference, there.value)]
                for end in time]
        value = math.sqrt(both[0][0] * both[0][1])
        return Measured(value, min(*both[1], value / USUAL_ERROR),
                        max(*both[2], value * USUAL_ERROR))


def _distance(a, b):
    return abs(math.log(max(a, 1e-9) / max(b, 1e-9)))


def _time_at(rows, share):
    """Linear between the two measured shares around `share`; None outside of them."""
    below = rows[rows["negative_share"] <= share].sort_values("negative_share")
    above = rows[rows["negative_share"] >= share].sort_values("negative_share")
    if below.empty or above.empty:
        return None
    low, high = below.iloc[-1], above.iloc[0]
    width = high["negative_share"] - low["negative_share"]
    weight = (share - low["negative_share"]) / width if width else 0.0
    return Measured(*((1 - weight) * a + weight * b
                      for a, b in zip(ratios.time(low), ratios.time(high))))


def _floor(touches, negative_share):
    """[(size, time)] of the fastest way to read one random line, by size; of each size that share
    counts which is nearest."""
    if touches.empty or "param.lines" not in touches:
        return []
    found = []
    for size, rows in touches[touches["param.lines"] == 1].groupby("size_bytes"):
        far = (rows["negative_share"] - negative_share).abs()
        rows = rows[far == far.min()]
        fastest = rows.sort_values("ns_per_op", kind="stable").iloc[0]
        found.append((float(size), ratios.time(fastest)))
    return found
