"""Which of a run's points a figure shows: every rule in one place, so that all figures agree.

variant         The points of a filter that lie on one curve of space against FPR. bits_per_key and
                fpr move a point along that curve, and so does any other numeric parameter with
                which the filter's space grows at least as its square root (least-squares slope of
                log bits per key over log parameter >= 1/2): the k that follows bits_per_key,
                fingerprint_bits, columns, ... A 0 ("derived from the others") says nothing. Every
                other parameter that takes several values tells variants apart: probing, the
                ribbon's width, ...
representative  Of each variant the parameters whose bits per key, as the median over the key
                counts, lie closest to REPRESENTATIVE_BITS_PER_KEY; a tie goes to the lower
                measured FPR. Parameters with at most half the points of the variant's
                most-measured ones belong to a side sweep and are not considered.
target          Of each filter the machine's best target, otherwise the widest that was measured.
keys, hashing   Mixed 64-bit keys, hashed before the loop; if a run has none of these, the
                combination with the most points.
"""

import json
import math
from typing import NamedTuple

import numpy
import pandas

FLOORS = ("hash_only", "touch_lines")  # the machine's
# always_maybe is a workload without filters.
ALWAYS_MAYBE = "always_maybe"
BASELINES = (*FLOORS, ALWAYS_MAYBE)
REPRESENTATIVE_BITS_PER_KEY = 10.0
MAX_VARIANTS = 3
SIZE_PARAMETERS = ("bits_per_key", "fpr")  # the two ways to ask for a size
SIZE_ELASTICITY = 0.5

# Narrow to wide; a target that is not here counts as wider than these, in alphabetical order.
_TARGET_ORDER = ("scalar", "emu128", "sse2", "ssse3", "sse4", "neon_without_aes", "neon", "sve",
                 "sve_256", "sve2", "sve2_128", "avx2", "avx3", "avx3_dl", "avx3_zen4", "avx3_spr")
# Targets without vectors: there is nothing to gain.
SCALAR_TARGETS = ("scalar", "hwy_scalar", "emu128")


class Gap(NamedTuple):
    """Data that a figure would show and a run does not have."""

    lack: str
    remedy: str           # how to measure it
    fatal: bool = False   # without it there is no figure


class MissingData(Exception):
    """Raised by a figure's draw() where gaps() has a fatal one."""

    def __init__(self, gap):
        super().__init__(f"{gap.lack}; {gap.remedy}")
        self.gap = gap


def require(gaps):
    for gap in gaps:
        if gap.fatal:
            raise MissingData(gap)


def _number(value):
    """A parameter's value as a number above 0, or None. Knobs with a short list of values write
    their numbers as text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 < number < math.inf else None


def _moves_size(values, bits_per_key):
    """Whether space grows with a parameter: the rule `variant` above."""
    pairs = [(_number(value), bits) for value, bits in zip(values, bits_per_key)]
    if any(number is None and value not in (0, "0") for (number, _), value in zip(pairs, values)):
        return False
    x, y = numpy.log([pair for pair in pairs if pair[0] is not None] or [(1, 1)]).T
    x = x - x.mean()
    return bool((x * x).sum() > 0 and (x * y).sum() >= SIZE_ELASTICITY * (x * x).sum())


def varying_params(group, all_params):
    """Names of the parameters that take several values among the rows `group` of one filter. Those
    of a preset, which has its name alone, are not compared with those that were chosen one by one."""
    chosen = [index for index in group.index if "preset" not in all_params[index]]
    names = {name for index in chosen for name in all_params[index]}
    varying = [name for name in sorted(names) if len({
        json.dumps(all_params[index].get(name), sort_keys=True) for index in chosen}) > 1]
    return varying + ["preset"] * (len(chosen) < len(group))


def variants(points, all_params):
    """The variant's label for each row of `points`; empty where the filter has one variant only."""
    labels = pandas.Series("", index=points.index, dtype=object)
    for _, group in points.groupby("filter"):
        sized = group.index[(group["status"] == "ok") & (group["bits_per_key"] > 0)]
        names = []
        for name in varying_params(group, all_params):
            having = [i for i in sized if all_params[i].get(name) is not None]
            if name in SIZE_PARAMETERS or _moves_size(
                    [all_params[i][name] for i in having],
                    points.loc[having, "bits_per_key"]):
                continue
            names.append(name)
        for index in group.index:
            labels[index] = ", ".join(
                f"{name}={value_label(all_params[index][name])}" for name in names
                if name in all_params[index])
    return labels


def value_label(value):
    """A parameter's value as text."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def natural(text):
    """A sort key in which `w=64` comes before `w=128`."""
    digits, parts = "", []
    for character in text + "\0":
        if character.isascii() and character.isdigit():
            digits += character
            continue
        if digits:
            parts.append((0, int(digits), ""))
            digits = ""
        parts.append((1, 0, character))
    return parts


def ok(points):
    return points[points["status"] == "ok"]


def filters_only(points):
    return points[~points["filter"].isin(BASELINES)]


def baselines_only(points):
    return points[points["filter"].isin(BASELINES)]


def plain_keys(points):
    """The points of one key set and one way of hashing: the rule `keys, hashing` above."""
    if points.empty:
        return points
    counts = filters_only(points).groupby(["key_set", "hashing"]).size()
    if counts.empty:
        counts = points.groupby(["key_set", "hashing"]).size()
    preferred = ("mixed", "prehashed")
    key_set, hashing = preferred if preferred in counts.index else counts.idxmax()
    return points[(points["key_set"] == key_set) & (points["hashing"] == hashing)]


def target_rank(target):
    if target in _TARGET_ORDER:
        return (_TARGET_ORDER.index(target), "")
    return (len(_TARGET_ORDER), target)


def best_target(points, best):
    """Of each filter the points of one target: the rule `target` above."""
    if points.empty:
        return points
    keep = []
    for _, group in points.groupby("filter"):
        targets = set(group["target"])
        target = best if best in targets else max(targets, key=target_rank)
        keep.extend(group.index[group["target"] == target])
    return points.loc[sorted(keep)]


def _median(values):
    known = values.dropna()
    return known.median() if len(known) else math.nan


def representative_params(points):
    """The set of (filter, params) that the rule `representative` above picks."""
    chosen = set()
    for (name, _), group in points.groupby(["filter", "variant"]):
        ranked = []
        most = group["params"].value_counts().max()
        for params, rows in group.groupby("params"):
            if len(rows) < most and 2 * len(rows) <= most:
                continue
            bits = _median(rows["bits_per_key"])
            fpr = _median(rows["fpr_measured"])
            distance = abs(bits - REPRESENTATIVE_BITS_PER_KEY)
            ranked.append((math.inf if math.isnan(distance) else round(distance, 2),
                           math.inf if math.isnan(fpr) else fpr, params))
        chosen.add((name, min(ranked)[2]))
    return chosen


def representatives(points):
    """The rows of `points` with representative parameters."""
    chosen = representative_params(points)
    return points[[key in chosen for key in zip(points["filter"], points["params"])]]


def lookups(run, negative_share=None):
    """The points in mode lookup_batched that count, of plain keys and of every target."""
    points = ok(plain_keys(run.points))
    points = points[points["mode"] == "lookup_batched"]
    return points if negative_share is None else points[points["negative_share"] == negative_share]


def builds(run):
    points = filters_only(ok(plain_keys(run.points)))
    return points[points["mode"] == "build"]


def spread(values, most):
    """At most `most` of the distinct values: the ends, and those between at even steps of rank."""
    values = sorted(set(values))
    if len(values) <= most:
        return values
    ranks = numpy.linspace(0, len(values) - 1, most).round().astype(int)
    return [values[rank] for rank in ranks]


def series(points):
    """(filter, variant, rows) in the order of legends: by name, variants in natural order, at most
    MAX_VARIANTS of a filter, the ones with the lowest median FPR."""
    result = []
    for name, group in points.groupby("filter"):
        by_variant = {variant: rows for variant, rows in group.groupby("variant")}
        fpr = {variant: _median(rows["fpr_measured"]) for variant, rows in by_variant.items()}
        kept = sorted(by_variant, key=lambda v: (math.isnan(fpr[v]), fpr[v], natural(v)))
        for variant in sorted(kept[:MAX_VARIANTS], key=natural):
            result.append((name, variant, by_variant[variant]))
    return result


def at_fpr(rows, target_fpr, columns, max_bracket=32.0, max_distance=2.0, alike=1.1):
    """A variant's values of `columns` at the FPR `target_fpr`, as (values, other_fpr), or None.

    Between the two measured points that bracket the target, values are interpolated linearly along
    log FPR, if the two FPRs are at most the factor `max_bracket` apart (a step of four fingerprint
    bits is 16); other_fpr is then None. Otherwise the point nearest in log FPR stands in if it is
    within the factor `max_distance`; beyond the factor `alike`, other_fpr is its FPR, so that the
    figure can say so. Points without false positives have no measured FPR and are not used."""
    fpr = rows["fpr_measured"].to_numpy(dtype=float)
    order = numpy.lexsort((rows["bits_per_key"].to_numpy(dtype=float), fpr))
    order = order[fpr[order] > 0]
    if len(order) == 0:
        return None
    fpr, values = fpr[order], rows[columns].to_numpy(dtype=float)[order]
    above = int(numpy.searchsorted(fpr, target_fpr))
    if 0 < above < len(fpr) and fpr[above] <= max_bracket * fpr[above - 1]:
        weight = math.log(target_fpr / fpr[above - 1]) / math.log(fpr[above] / fpr[above - 1])
        place = (1 - weight) * values[above - 1] + weight * values[above]
        return pandas.Series(place, index=columns), None
    nearest = int(numpy.argmin(numpy.abs(numpy.log(fpr / target_fpr))))
    distance = max(fpr[nearest] / target_fpr, target_fpr / fpr[nearest])
    if distance > max_distance:
        return None
    return (pandas.Series(values[nearest], index=columns),
            float(fpr[nearest]) if distance > alike else None)


def pareto_front(points):
    """Of (x, y) pairs those that no other beats in both, by x."""
    front, best = [], math.inf
    for x, y in sorted(set(points)):
        if y < best:
            front.append((x, y))
            best = y
    return front
