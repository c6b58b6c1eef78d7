"""What a filter costs: the time of a lookup, and the work that a false positive causes.

Performance-optimal filtering (Lang, Neumann, Kemper, Boncz 2019, "Performance-Optimal Filtering:
Bloom Overtakes Cuckoo at High Throughput", PVLDB 12(5), section 2): a filter stands before work
that costs `miss_cost_ns` and is only worth doing for keys that are present. Per lookup

    cost = t_lookup + negatives * FPR * miss_cost

where `negatives` is the share of absent keys among those asked. The work for keys that are present
is the same behind every filter and left out. The cost of a candidate is a line in the miss cost,
so the best candidates are the lower envelope of lines and every break-even point is exact.

Times are of mode lookup_batched at each filter's best target (selection.py), and are taken at the
share of negatives and the key count that are asked for:

share   Linear in the share between the two measured ones around it, at the same key count; outside
        them the nearest measured share stands in.
keys    Between the two measured key counts around it, at equal parameters: log time and log FPR
        are linear in log keys. Outside them the nearest measured key count stands in, as it is,
        but only on demand: a time from within a cache says little about a table beyond it.

Each candidate says which of this happened (`share_from`, `keys_from`). Where carry.py is asked to,
it carries times to what lies outside of the measured instead.

FPR     Measured, of the point with the most queries at these parameters and keys, with its 95 %
        interval. Where none of the absent keys was a false positive, the expected FPR if it lies in
        the interval, otherwise the upper limit 3/queries (the rule of three); `fpr_from` says so.

Intervals of a cost go from the sum of the low ends to the sum of the high ones: where both hold,
it holds. Two costs are within noise of each other where their intervals meet; an unknown end is
NaN, and then nothing is certain.
"""

import math
from typing import NamedTuple

from plots import ratios, selection
from plots.ratios import Measured

# Where a number is from.
MEASURED = "measured"
INTERPOLATED = "interpolated"  # between two measured values around it
NEAREST = "nearest"            # the nearest measured value: it lies outside of all
CARRIED = "carried"            # outside of all, from the nearest by way of others (carry.py)
EXPECTED = "expected"          # FPR by theory, since no false positive was seen or none asked for
LIMIT = "limit"                # FPR at most this, since none was seen and theory is not known


class Limits(NamedTuple):
    """What a candidate may take, at the number of keys that is asked for."""

    bits_per_key: float = math.inf
    size_bytes: float = math.inf


class Candidate(NamedTuple):
    """A filter with its parameters, and what was measured of it."""

    filter: str
    variant: str          # selection.py; with `filter` the key of style.series_looks
    params: str           # canonical JSON, as in load.Run.points
    params_label: str
    target: str
    keys: float           # that were asked for
    negative_share: float
    ns: Measured          # of a lookup, at that share and key count
    fpr: Measured
    bits_per_key: float
    size_bytes: float     # at that key count
    keys_from: str        # MEASURED, INTERPOLATED, CARRIED or NEAREST
    share_from: str
    fpr_from: str         # MEASURED, EXPECTED or LIMIT
    measured_keys: tuple  # the one or two key counts that the numbers are from
    measured_shares: tuple
    point_ids: tuple      # of the times


class Stretch(NamedTuple):
    """A range of miss costs over which one candidate has the least expected cost."""

    low_ns: float
    high_ns: float
    candidate: Candidate


# --- Candidates ---

def key_counts(run):
    """{key count: (filters, parameters)} that lookups were measured at: how many candidates there
    are to choose from."""
    points = _lookups(run)
    return {keys: (rows["filter"].nunique(), rows.groupby(["filter", "params"]).ngroups)
            for keys, rows in points.groupby("keys")}


def candidates(run, keys, negative_share=1.0, limits=Limits(),
               keys_from=(MEASURED, INTERPOLATED), mode="lookup_batched", carry=None):
    """The candidates for `keys` keys, in the order of (filter, params). A filter is left out where
    it has no FPR, no known size, is beyond `limits`, or has `keys` from elsewhere than allowed.
    `carry`: a carry.Carry of the run and the mode."""
    found = []
    rates = selection.ok(selection.plain_keys(run.points))
    rates = dict(list(rates[rates["queries"] > 0].groupby(["filter", "params", "keys"])))
    for _, rows in _lookups(run, mode).groupby(["filter", "params"]):
        candidate = _at_keys(rates, rows, keys, negative_share, carry)
        if (candidate is not None and candidate.keys_from in keys_from
                and candidate.bits_per_key <= limits.bits_per_key
                and candidate.size_bytes <= limits.size_bytes):
            found.append(candidate)
    return found


def _lookups(run, mode="lookup_batched"):
    points = selection.filters_only(selection.ok(selection.plain_keys(run.points)))
    points = points[points["mode"] == mode]
    points = points[points["bits_per_key"].notna() & points["ns_per_op"].notna()]
    return selection.best_target(points, run.best_target)


def _around(values, wanted):
    """(the one or two of `values` that stand for `wanted`, the weight of the last, where from)."""
    values = sorted(set(values))
    if wanted in values:
        return (wanted,), 0.0, MEASURED
    below = [value for value in values if value < wanted]
    above = [value for value in values if value > wanted]
    if not below or not above:
        return ((above or below)[0 if above else -1],), 0.0, NEAREST
    low, high = below[-1], above[0]
    return (low, high), (wanted - low) / (high - low), INTERPOLATED


def _mix(first, last, weight):
    """Between two Measured, linearly, each end by itself."""
    return Measured(*((1 - weight) * a + weight * b for a, b in zip(first, last)))


def _log_mix(first, last, weight):
    """Between two Measured along their logarithms; an end at 0 stays 0."""
    return Measured(*(a if weight == 0 else 0.0 if a == 0 or b == 0 else
                      math.exp((1 - weight) * math.log(a) + weight * math.log(b))
                      for a, b in zip(first, last)))


def _fpr(points):
    """(FPR, where from) of points of one filter, its parameters and key count."""
    best = points.sort_values("queries", kind="stable").iloc[-1]
    interval = best["fpr_low"], best["fpr_high"]
    if best["false_positives"] > 0:
        return Measured(best["fpr_measured"], *interval), MEASURED
    limit = 3 / best["queries"]
    if 0 < best["fpr_expected"] <= max(limit, 0 if math.isnan(interval[1]) else interval[1]):
        return Measured(best["fpr_expected"], *interval), EXPECTED
    return Measured(limit, *interval), LIMIT


def _at_one_key_count(rows, negative_share, carry):
    shares, weight, share_from = _around(rows["negative_share"], negative_share)
    picked = [rows[rows["negative_share"] == share].iloc[0] for share in shares]
    times = [ratios.time(row) for row in picked]
    time = _mix(times[0], times[-1], weight)
    if share_from == NEAREST and carry is not None:
        carried = carry.to_share(time, picked[0], negative_share)
        if carried is not None:
            time, share_from = carried, CARRIED
    return time, shares, share_from, picked


def _at_keys(rates, rows, keys, negative_share, carry=None):
    row = rows.iloc[0]
    by_keys = {}
    for measured, here in rows.groupby("keys"):
        place = row["filter"], row["params"], measured
        if place in rates:
            by_keys[measured] = here, _fpr(rates[place])
    if not by_keys:
        return None
    logs = {math.log(max(measured, 1)): measured for measured in by_keys}
    asked = math.log(max(keys, 1))
    near, weight, keys_from = _around(logs, asked)
    near = [logs[log] for log in near]
    at = [_at_one_key_count(by_keys[measured][0], negative_share, carry) for measured in near]
    fprs = [by_keys[measured][1] for measured in near]
    bits = [part[3][0]["bits_per_key"] for part in at]
    bits_per_key = (1 - weight) * bits[0] + weight * bits[-1]
    row = at[0][3][0]
    ns = _log_mix(at[0][0], at[-1][0], weight)
    if keys_from == NEAREST and carry is not None:
        carried = carry.to_size(ns, row["size_bytes"], bits_per_key * keys / 8)
        if carried is not None:
            ns, keys_from = carried, CARRIED
    weakest = (LIMIT, EXPECTED, MEASURED)
    return Candidate(
        filter=row["filter"], variant=row["variant"], params=row["params"],
        params_label=row["params_label"], target=row["target"], keys=keys,
        negative_share=negative_share, ns=ns,
        fpr=_log_mix(fprs[0][0], fprs[-1][0], weight), bits_per_key=bits_per_key,
        size_bytes=(float(row["size_bytes"]) if keys_from == MEASURED
                    else bits_per_key * keys / 8),
        keys_from=keys_from, share_from=max((part[2] for part in at), key=(
            MEASURED, INTERPOLATED, CARRIED, NEAREST).index),
        fpr_from=min((source for _, source in fprs), key=weakest.index),
        measured_keys=tuple(near), measured_shares=tuple(sorted({
            share for part in at for share in part[1]})),
        point_ids=tuple(row["point_id"] for part in at for row in part[3]))


def between(low, high, params, bits_per_key, fpr):
    """A candidate with `params` between two that differ from it in their size alone: log time is
    linear in log bytes. `fpr` is known from theory; its ends are as far from it as those of the
    measured ones are from theirs. `keys_from` and `share_from` are the weaker ones of the two."""
    weight = math.log(bits_per_key / low.bits_per_key) / math.log(
        high.bits_per_key / low.bits_per_key)
    known = [row.fpr for row in (low, high) if row.fpr.value > 0]
    ends = [fpr * pick([getattr(row, end) / row.value for row in known] or [math.nan])
            for end, pick in (("low", min), ("high", max))]
    order = (MEASURED, INTERPOLATED, CARRIED, NEAREST)
    weaker = max(low, high, key=lambda row: order.index(row.keys_from))
    return low._replace(
        params=params, ns=_log_mix(low.ns, high.ns, weight), fpr=Measured(fpr, *ends),
        bits_per_key=bits_per_key, size_bytes=bits_per_key * low.keys / 8,
        keys_from=weaker.keys_from,
        share_from=max(low.share_from, high.share_from, key=order.index), fpr_from=EXPECTED,
        measured_keys=weaker.measured_keys,
        measured_shares=tuple(sorted({*low.measured_shares, *high.measured_shares})),
        point_ids=tuple(dict.fromkeys(low.point_ids + high.point_ids)))


# --- Costs ---

def expected_cost(candidate, negatives, miss_cost_ns):
    """ns per lookup, of which the share `negatives` is for absent keys."""
    return Measured(*(time + negatives * fpr * miss_cost_ns
                      for time, fpr in zip(candidate.ns, candidate.fpr)))


def _slope(candidate, negatives):
    return negatives * candidate.fpr.value


def ranking(rows, negatives, miss_cost_ns):
    """The candidates by expected cost; equal ones by FPR, then by bits per key."""
    return sorted(rows, key=lambda row: (expected_cost(row, negatives, miss_cost_ns).value,
                                         row.fpr.value, row.bits_per_key, row.filter, row.params))


def runner_up(rows, winner, negatives, miss_cost_ns):
    """The best candidate that is of another filter than `winner`; None if there is none."""
    others = [row for row in rows if row.filter != winner.filter]
    return ranking(others, negatives, miss_cost_ns)[0] if others else None


def break_even(cheap, precise, negatives):
    """The miss cost at which both cost the same, with its interval; None if none above 0 does: one
    is then the better at every miss cost, or both are alike. Below it the one that is faster is the
    better, above it the one with fewer false positives. The upper end is infinite where the
    intervals of both FPRs meet."""
    if _slope(cheap, negatives) < _slope(precise, negatives):
        cheap, precise = precise, cheap
    saved = negatives * (cheap.fpr.value - precise.fpr.value)
    dearer = precise.ns.value - cheap.ns.value
    if saved <= 0 or dearer <= 0:
        return None
    low, high = math.nan, math.nan
    most_saved = negatives * (cheap.fpr.high - precise.fpr.low)
    least_saved = negatives * (cheap.fpr.low - precise.fpr.high)
    if most_saved > 0:
        low = max(0.0, precise.ns.low - cheap.ns.high) / most_saved
    if not math.isnan(least_saved):
        high = (precise.ns.high - cheap.ns.low) / least_saved if least_saved > 0 else math.inf
    return Measured(dearer / saved, low, high)


def winners(rows, negatives, low_ns, high_ns):
    """The stretches of [low_ns, high_ns] by who has the least expected cost, in order: the lower
    envelope of the candidates' lines."""
    if not rows:
        return []
    stretches, at = [], low_ns
    current = ranking(rows, negatives, low_ns)[0]
    while True:
        # Only a line that is less steep comes to lie below, and the first to do so is next.
        crossings = []
        for row in rows:
            less_steep = _slope(current, negatives) - _slope(row, negatives)
            if less_steep > 0:
                crossing = (row.ns.value - current.ns.value) / less_steep
                crossings.append((max(crossing, at), _slope(row, negatives), row.bits_per_key,
                                  row.filter, row.params, row))
        following = min(crossings, key=lambda c: c[:5]) if crossings else None
        if following is None or following[0] >= high_ns:
            return stretches + [Stretch(at, high_ns, current)]
        if following[0] > at:
            stretches.append(Stretch(at, following[0], current))
        at, current = following[0], following[5]


def within_noise(winner, other, negatives, miss_cost_ns):
    """Whether the intervals of both costs meet; None where one of them is unknown."""
    a, b = (expected_cost(row, negatives, miss_cost_ns) for row in (winner, other))
    if not (a.has_interval() and b.has_interval()):
        return None
    return not (a.surely_below(b) or b.surely_below(a))


def doubts(rows, stretch, negatives):
    """The parts [(low_ns, high_ns)] of the stretch over which some candidate of another filter is
    within noise of the winner. Exact: the ends of costs are lines in the miss cost too. Where
    an interval is unknown there is doubt."""
    winner, parts = stretch.candidate, []
    for row in rows:
        if row.filter == winner.filter:
            continue
        # In doubt where row's low end <= winner's high end: offset + slope * miss cost <= 0.
        offset = row.ns.low - winner.ns.high
        slope = negatives * (row.fpr.low - winner.fpr.high)
        low, high = stretch.low_ns, stretch.high_ns
        if math.isnan(offset) or math.isnan(slope):
            pass
        elif slope > 0:
            high = min(high, -offset / slope)
        elif slope < 0:
            low = max(low, -offset / slope)
        elif offset > 0:
            continue
        if low < high:
            parts.append((low, high))
    merged = []
    for low, high in sorted(parts):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return merged
