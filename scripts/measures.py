"""What the points of a run say about one number of a claim: selections of points, the quantities
that are read from them with their intervals, and the verdict on a claimed value. The data that asks
for them is claims.json; claims.schema.json gives its form.

Selection   Which point is meant: filter, params, keys, mode, negative_share, fill. Points are of
            mixed keys, hashed before the loop, on the machine's default pages, one thread, at the
            filter's best target; what is not named may be anything, but all points that are left
            must have the same parameters. A list of values means the first that the run has, in the
            order of the list. In `of` and `over` of a curve (fpr_of_crossing, work_ns_of_crossing,
            bits_per_key_at_fpr, or `pick` without `along`) it means all of them. Many modes and
            shares ask the same filter: for all but times the point with the most FPR queries
            counts. `workload` ({"name": ..., knob: value}) means points of that
            application instead; of them too the one with the most FPR queries counts where several
            are left.

Quantity    bits_per_key, fpr, ns_per_op, floor_ratio (the time over the machine's floor, as the
            summary has it), overhead (bits per key over log2(1/FPR)), extra.NAME (what the filter
            tells of itself: the median over the builds, from the least to the greatest),
            metric.NAME (of a workload), reads_over_formula (block reads per get of a store whose
            files all overlap, over those that theory.json has for so many files at the FPR that the
            filters' own formula gives; for keys in no file, or in the one that is asked last),
            bits_per_key_at_fpr (interpolated along log FPR between measured points),
            fpr_of_crossing (where `of` and `over` take the same space), work_ns_of_crossing (the
            work saved per avoided miss from which on the filters `over` cost less than `of`). With
            `over` any other quantity is divided by that of a second selection, of `over_quantity`
            if that is another; `over_value` divides by a number.

Several     `along` measures at each value of one axis, and `pick` makes one number of them; `pick`
            without `along` takes all points of `of` that are known to 2 %. `least_filters`: how
            many filters `of` must be, to speak for all.

Intervals   Times: the summary's (results/README.md). FPR: a filter is one of many that other seeds
            would give, and a claim is about their mean, so to the Clopper-Pearson interval of the
            pooled counts comes, as independent, 1.96 standard deviations of the mean of so many
            builds, from the theory's deviation of one filter; where that is unknown, Student's
            interval of the builds' rates if it is wider; one build alone tells nothing of
            others, and the interval is unknown. The least or the greatest of several: their
            intervals are widened so that all hold at once (Bonferroni). Sizes: the same in all
            builds, no width.
            Metrics: the summary's; where false positives are in them, with the builds' deviation.
            Ratios: plots/ratios.py.

Verdict     The claimed value is a range: it takes its tolerance on either side, or one end is open.
            reproduced where the whole interval lies in the range, not reproduced where all of it
            lies outside, undecided where it reaches over an end or is unknown. A wide interval can
            therefore never reproduce a claim: what it would have to fit into is the tolerance.
"""

import itertools
import json
import math
import statistics
from typing import NamedTuple

import numpy
from scipy import stats

from plots import costs, gets, load, ratios, selection
from plots.ratios import Measured, Unknown

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
UNDECIDED, NOT_MEASURABLE = "undecided", "not measurable"
VERDICTS = (NOT_REPRODUCED, UNDECIDED, REPRODUCED, NOT_MEASURABLE)  # the first decides of a claim

TIMES = ("ns_per_op", "floor_ratio", "work_ns_of_crossing")
CROSSINGS = ("fpr_of_crossing", "work_ns_of_crossing")
CURVES = (*CROSSINGS, "bits_per_key_at_fpr")
_Z95 = 1.96
# What is known worse than this says nothing about the least of many.
_PRECISE = 1.02


class Absent(Unknown):
    """The run has no such point."""


class Note(NamedTuple):
    """Something to know about a number; `kind` is what many notes have in common."""

    kind: str
    text: str


class Found(NamedTuple):
    """A measured number and the points that it is from."""

    value: Measured
    point_ids: tuple
    notes: tuple = ()


class Data:
    """A run, as claims ask it."""

    def __init__(self, run):
        self.run = run
        self.by_id = {row["point_id"]: row for frame in run.frames
                      for row in frame.to_dict("records")}
        self._params = {}
        self._extras = None
        self._samples = dict(list(run.samples[run.samples["status"] == "ok"].groupby("point_id")))

    def params(self, text):
        if text not in self._params:
            self._params[text] = json.loads(text)
        return self._params[text]

    def samples(self, point_id):
        return self._samples.get(point_id)

    def processes(self, point_id):
        """How many processes measured a point."""
        samples = self.samples(point_id)
        return 0 if samples is None else samples["process"].nunique()

    def extras(self, point_id, name):
        """What each build of a point told under `name`."""
        if self._extras is None:
            self._extras = _read_extras(self.run)
        return [extra[name] for extra in self._extras.get(point_id, ()) if name in extra]

    def rows(self, wanted, curve=False):
        """The points that a selection means, as dicts. Raises Unknown if there are none."""
        frame = (self.run.workloads if "workload" in wanted else
                 self.run.points if "fill" not in wanted else self.run.filled)
        frame = frame[(frame["key_set"] == "mixed") & (frame["hashing"] == "prehashed")]
        for name in ("filter", "keys", "mode", "negative_share", "fill"):
            if name in wanted:
                frame = frame[frame[name].isin(_values(wanted[name]))]
        params = wanted.get("params", {})
        keep = [all(any(_same(self.params(text).get(name), value) for value in _values(values))
                    for name, values in params.items()) for text in frame["params"]]
        frame = frame[numpy.array(keep, dtype=bool)]
        if "workload" in wanted:
            keep = [all(any(_same((self.params(text) | {"name": name}).get(knob), value)
                            for value in _values(values))
                        for knob, values in wanted["workload"].items())
                    for name, text in zip(frame["workload"], frame["knobs"])]
            frame = frame[numpy.array(keep, dtype=bool)]
        good = selection.ok(frame)
        if good.empty:
            if len(frame):
                raise Unknown(f"{describe(wanted)}: {frame['status'].iloc[0]}: "
                              f"{frame['reason'].iloc[0]}")
            raise Absent(f"no point of {describe(wanted)}")
        if not curve and good["params"].nunique() > 1:
            raise Unknown(f"{describe(wanted)} means points of {good['params'].nunique()} sets of "
                          "parameters")
        return selection.best_target(good, self.run.best_target).to_dict("records")


def _read_extras(run):
    extras = {}
    for line in load.sample_lines(run.path)[1]:
        sample = json.loads(line)
        if sample["status"] == "ok" and sample.get("filter"):
            extras.setdefault(sample["point_id"], []).append(sample["filter"].get("extra") or {})
    return extras


def _values(value):
    return value if isinstance(value, list) else [value]


def _same(one, other):
    """Of two parameters; knobs with a short list of values write numbers as text."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-9)
    return one == other


def number(value):
    """A count or parameter as text."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and value >= 100_000:
        mantissa, exponent = f"{value:.3e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def describe(wanted):
    """A selection as text."""
    parts = [" or ".join(_values(wanted["filter"])) if "filter" in wanted else "any filter"]
    parts += [f"{name}={' or '.join(number(value) for value in _values(values))}"
              for name, values in wanted.get("params", {}).items()]
    if "keys" in wanted:
        parts.append(" or ".join(number(value) for value in _values(wanted["keys"])) + " keys")
    if "fill" in wanted:
        parts.append("fill " + " or ".join(number(value) for value in _values(wanted["fill"])))
    if "workload" in wanted:
        parts.append(" ".join([wanted["workload"]["name"], *(
            f"{knob}={' or '.join(map(str, _values(values)))}"
            for knob, values in wanted["workload"].items() if knob != "name")]))
    if "mode" in wanted:
        parts.append("mode " + " or ".join(_values(wanted["mode"])))
    if "negative_share" in wanted:
        parts.append(" or ".join(f"{100 * value:g}" for value in _values(wanted["negative_share"]))
                     + " % negatives")
    return ", ".join(parts)


# --- One selection ---

def fpr(data, row):
    """The mean FPR of filters like that of a point, with the interval that the module's words
    describe. Raises Unknown."""
    if math.isnan(row["queries"]):
        raise Unknown(f"no FPR of {row['filter']}")
    rate = row["fpr_measured"]
    if rate == 0:
        raise Unknown(f"{row['filter']} ({row['params_label']}): no false positive among "
                      f"{number(row['queries'])} absent keys, which bounds the FPR and is no value")
    below, above = rate - row["fpr_low"], row["fpr_high"] - rate
    samples = data.samples(row["point_id"])
    between = _between_builds(samples)
    if between is not None:
        below, above = math.hypot(below, between), math.hypot(above, between)
    elif samples is not None:
        builds = samples[samples["queries"] > 0].drop_duplicates("seed")
        count = len(builds)
        if count == 1:
            return Measured(rate)
        if count >= 2:
            rates = builds["false_positives"] / builds["queries"]
            half = stats.t.ppf(0.975, count - 1) * rates.std(ddof=1) / math.sqrt(count)
            below, above = max(below, half), max(above, half)
    return Measured(rate, max(0.0, rate - below), min(1.0, rate + above))


def _between_builds(samples):
    """How far the mean FPR of so many builds is from that of all seeds, at 95 %, by theory; None where
    theory does not say."""
    if samples is None:
        return None
    deviations = samples[samples["queries"] > 0].drop_duplicates("seed")["fpr_instance_sd"]
    if not len(deviations) or deviations.isna().any():
        return None
    return _Z95 * math.sqrt((deviations ** 2).mean() / len(deviations))


def metric(data, row, name):
    """A metric of a workload, as the module's words have it. Raises Unknown."""
    value = gets.metric(row, name)
    found = row["metrics"][name]
    between = _between_builds(data.samples(row["point_id"]))
    if between is None or not found["trials"] > 0 or not value.has_interval():
        return value
    between *= found["trials"] / found["per"]
    return Measured(value.value, value.value - math.hypot(value.value - value.low, between),
                    value.value + math.hypot(value.high - value.value, between))


def _reads_over_formula(data, row):
    points = gets.of_files(data.run.workloads)
    points = points[points["point_id"] == row["point_id"]]
    key = next((key for key in gets.KEYS if len(gets.seeks(points, key))), None)
    if key is None:
        raise Unknown("these gets are none of those that the formula is about")
    theory = data.run.block_reads
    theory = theory[(theory["key"] == key) & (theory["candidate_files"] == row["knob.files"])]
    if theory.empty:
        raise Unknown(f"theory.json has no block_reads for {row['knob.files']} files")
    if math.isnan(row["fpr_expected"]):
        raise Unknown(f"the FPR of {row['filter']} has no closed form")
    expected = (theory["certain_reads"] + theory["reads_per_fpr"] * row["fpr_expected"]).iloc[0]
    return Measured(*(part / expected for part in metric(data, row, gets.BLOCK_READS)))


def _overhead(bits, rate):
    return Measured(*(bits / -math.log2(value) if 0 < value < 1 else math.nan for value in rate))


def _known(value, what):
    if math.isnan(value):
        raise Unknown(f"{what} is unknown")
    return Measured(value, value, value)


def of_row(data, row, quantity):
    """A quantity of a point. Raises Unknown."""
    if quantity == "fpr":
        return fpr(data, row)
    if quantity == "bits_per_key":
        return _known(row["bits_per_key"], f"the size of {row['filter']}")
    if quantity == "overhead":
        return _overhead(_known(row["bits_per_key"], f"the size of {row['filter']}").value,
                         fpr(data, row))
    if quantity == "ns_per_op":
        return ratios.time(row)
    if quantity == "floor_ratio":
        return ratios.time(row).over(ratios.floor(row, data.by_id))
    if quantity == "reads_over_formula":
        return _reads_over_formula(data, row)
    if quantity.startswith("metric."):
        return metric(data, row, quantity.removeprefix("metric."))
    name = quantity.removeprefix("extra.")
    values = data.extras(row["point_id"], name)
    if not values:
        raise Unknown(f"the records of {row['filter']} do not tell {name}")
    return Measured(statistics.median(values), min(values), max(values))


def _of_selection(data, wanted, quantity):
    rows = data.rows(wanted)
    if quantity not in TIMES:
        # Many modes and shares ask the same filters: the best-known FPR counts.
        row = max(rows, key=lambda row: (not math.isnan(row["queries"]), row["queries"]))
        return Found(of_row(data, row, quantity), (row["point_id"],))
    if len(rows) > 1:
        raise Unknown(f"{describe(wanted)} means {len(rows)} points")
    row = rows[0]
    notes = []
    where = describe(wanted)
    if row["stable"] is False:
        notes.append(Note("unstable", f"an interval of {100 * row['width']:.0f} %: {where}"))
    if row["clusters_explained_by"] is not None:
        notes.append(Note("of two modes", f"{row['cluster_low_ns']:.3g} and "
                          f"{row['cluster_high_ns']:.3g} ns: {where}"))
    if row["confidence"] < 0.95:
        notes.append(Note("of two processes or one",
                          f"the interval has {100 * row['confidence']:.0f} % only: {where}"))
    return Found(of_row(data, row, quantity), (row["point_id"],), tuple(notes))


def _together(founds, value):
    return Found(value, tuple(dict.fromkeys(i for found in founds for i in found.point_ids)),
                 tuple(dict.fromkeys(note for found in founds for note in found.notes)))


def _value(data, measure, extra):
    """`quantity` of `of`, over that of `over` if there is one."""
    parts = []
    for side in ("of", "over"):
        if side in measure:
            wanted = measure.get("where", {}) | measure[side] | extra
            parts.append(_of_selection(data, wanted,
                                       measure.get(f"{side}_quantity", measure["quantity"])))
    value = parts[0].value if len(parts) == 1 else parts[0].value.over(parts[1].value)
    return _together(parts, value)


# --- Several points ---

def _ends_at_once(values, end):
    """The ends, "low" or "high", of intervals of 95 % made so wide that all of them hold at once
    with 95 %: half-widths times the ratio of the normal quantiles (Dunn 1961, Multiple comparisons
    among means, Journal of the American Statistical Association 56). For few processes, whose law
    is Student's, that is less than it should be, so the promise is one of normal values."""
    quantile = statistics.NormalDist().inv_cdf
    wider = quantile(0.025 / len(values)) / quantile(0.025)
    return [value.value + wider * (getattr(value, end) - value.value) for value in values]


def _least(values):
    """Of values that are about alike the least is least by luck: of ten, one in four would have
    an upper end below the truth."""
    return Measured(min(value.value for value in values),
                    # Of numpy, since an unknown end among them makes the whole unknown.
                    float(numpy.min([value.low for value in values])),
                    float(numpy.min(_ends_at_once(values, "high"))))


def _greatest(values):
    return Measured(max(value.value for value in values),
                    float(numpy.max(_ends_at_once(values, "low"))),
                    float(numpy.max([value.high for value in values])))


def _picked(values, how):
    """One number of several, with its interval.

    spread    the greatest over the least: how far from flat a curve is
    growth    the greatest of the later ones over the first
    least     the least of all"""
    if how == "growth":
        # As they are: of 95 % each, ratios promise 90 % and cover 99 %.
        over = [value.over(values[0]) for value in values[1:]]
        return Measured(*(float(numpy.max(ends)) for ends in zip(*over)))
    least, greatest = _least(values), _greatest(values)
    if how == "least":
        return least
    # No curve has a spread below 1, whatever the intervals would allow.
    return Measured(greatest.value / least.value,
                    float(numpy.maximum(1.0, greatest.low / least.high)),
                    greatest.high / least.low)


def _along(data, measure):
    (axis, values), = measure["along"].items()
    founds = [_value(data, measure, {axis: value}) for value in values]
    return _together(founds, _picked([found.value for found in founds], measure["pick"]))


def _over_all(data, measure):
    """The `pick` over every point of the selection that has the quantity."""
    rows = data.rows(measure.get("where", {}) | measure["of"], curve=True)
    best = {}
    for row in rows:
        place = row["filter"], row["params"], row["keys"]
        if row["filter"] not in selection.BASELINES and row["queries"] > (
                best[place]["queries"] if place in best else 0):
            best[place] = row
    founds = []
    for row in best.values():
        try:
            value = of_row(data, row, measure["quantity"])
        except Unknown:
            continue
        if value.high <= _PRECISE * value.low:
            founds.append(Found(value, (row["point_id"],)))
    if not founds:
        raise Absent(f"no point of {describe(measure['of'])} has a value")
    filters = {data.by_id[found.point_ids[0]]["filter"] for found in founds}
    if len(filters) < measure.get("least_filters", 1):
        raise Unknown(f"precise enough {'are' if len(filters) > 1 else 'is'} only "
                      f"{', '.join(sorted(filters))}")
    value = _picked([found.value for found in founds], measure["pick"])
    least = min(founds, key=lambda found: found.value.value)
    row = data.by_id[least.point_ids[0]]
    return Found(value, least.point_ids, (Note(
        "which", f"of {len(founds)} filters, parameters and key counts the least has "
        f"{row['filter']} ({row['params_label'] or 'its defaults'}) at {number(row['keys'])} "
        "keys"),))


def _curve(data, wanted):
    """The measured points of a curve of space over FPR: [(FPR, bits per key)] by FPR."""
    best = {}
    for row in data.rows(wanted, curve=True):
        place = row["filter"], row["params"]
        if row["queries"] > (best[place]["queries"] if place in best else 0):
            best[place] = row
    points = [(fpr(data, row), row["bits_per_key"], row["point_id"]) for row in best.values()
              if row["false_positives"] > 0]
    if len(points) < 2:
        raise Unknown(f"fewer than two points with false positives of {describe(wanted)}")
    return sorted(points)


def _log_fpr(curve, end):
    return numpy.log([getattr(point[0], end) for point in curve])


def _bits_at(data, measure):
    curve = _curve(data, measure.get("where", {}) | measure["of"])
    target, bits = math.log(measure["at_fpr"]), [point[1] for point in curve]
    if not curve[0][0].value <= measure["at_fpr"] <= curve[-1][0].value:
        raise Unknown(f"the points of {describe(measure['of'])} do not reach on both sides of FPR "
                      f"{measure['at_fpr']:g}")
    value = Measured(*(float(numpy.interp(target, _log_fpr(curve, end), bits))
                       for end in ("value", "low", "high")))
    return Found(value, tuple(point[2] for point in curve))


def _crossing(one, other):
    """Where two broken lines [(x, y)] cross, or None; the ends of what both cover."""
    (x1, y1), (x2, y2) = one, other
    low, high = max(x1.min(), x2.min()), min(x1.max(), x2.max())
    at = numpy.unique(numpy.concatenate([x1, x2, [low, high]]))
    at = at[(low <= at) & (at <= high)]
    apart = numpy.interp(at, x1, y1) - numpy.interp(at, x2, y2)
    changes = [i for i in range(len(at) - 1) if apart[i] * apart[i + 1] <= 0 and apart[i] != 0]
    if not changes:
        return None, (low, high)
    i = changes[-1]
    return at[i] + (at[i + 1] - at[i]) * apart[i] / (apart[i] - apart[i + 1]), (low, high)


def _fpr_of_crossing(data, measure):
    where = measure.get("where", {})
    curves = [_curve(data, where | measure[side]) for side in ("of", "over")]
    bits = [numpy.array([point[1] for point in curve]) for curve in curves]
    found = []
    # Each curve's FPR at one of its ends, so that the crossing lies as far off as it may.
    for ends in (("value", "value"), ("low", "high"), ("high", "low")):
        place, reach = _crossing(*(
            (_log_fpr(curve, end), size) for curve, end, size in zip(curves, ends, bits)))
        if place is None:
            raise Unknown(f"{describe(measure['of'])} and {describe(measure['over'])} do not cross "
                          f"between FPR {math.exp(reach[0]):.3g} and {math.exp(reach[1]):.3g}")
        found.append(math.exp(place))
    return Found(Measured(found[0], min(found), max(found)),
                 tuple(point[2] for curve in curves for point in curve))


def _work_of_crossing(data, measure):
    where = measure["where"]
    sides = {}
    for side in ("of", "over"):
        rows = data.rows(where | measure[side], curve=True)
        filters = {row["filter"] for row in rows}
        if side == "of" and len(filters) < measure.get("least_filters", 1):
            raise Unknown(f"of {describe(measure[side])} there is only "
                          f"{', '.join(sorted(filters))}")
        sides[side] = {(row["filter"], row["params"]) for row in rows}
    keys, share = where["keys"], where["negative_share"]
    candidates = {side: [row for row in costs.candidates(data.run, keys, share,
                                                         keys_from=(costs.MEASURED,))
                         if (row.filter, row.params) in places]
                  for side, places in sides.items()}
    if not all(candidates.values()):
        raise Unknown("no lookups with FPR and size at "
                      f"{number(keys)} keys, {100 * share:g} % negatives")
    low, high = measure["between_ns"]
    stretches = costs.winners([row for rows in candidates.values() for row in rows], share, low,
                              high)
    cheap, precise = sides["of"], sides["over"]
    names = [(stretch.candidate.filter, stretch.candidate.params) for stretch in stretches]
    borders = [i for i in range(1, len(names)) if names[i - 1] in cheap and names[i] in precise]
    if not borders or names[-1] not in precise:
        last = stretches[-1].candidate
        raise Unknown(f"{last.filter} ({last.params_label}) still costs least at a work of "
                      f"{measure['between_ns'][1]:g} ns: there is no crossing below")
    before, after = stretches[borders[-1] - 1].candidate, stretches[borders[-1]].candidate
    value = costs.break_even(before, after, share)
    return Found(value, before.point_ids + after.point_ids, (Note(
        "which", f"from {before.filter} ({before.params_label or 'its defaults'}, "
        f"{before.bits_per_key:.3g} bits per key) to {after.filter} ({after.params_label})"),))


def measure_once(data, measure):
    found = _undivided(data, measure)
    over = measure.get("over_value", 1)
    return found._replace(value=Measured(*(part / over for part in found.value)))


def _undivided(data, measure):
    quantity = measure["quantity"]
    if quantity == "bits_per_key_at_fpr":
        return _bits_at(data, measure)
    if quantity == "fpr_of_crossing":
        return _fpr_of_crossing(data, measure)
    if quantity == "work_ns_of_crossing":
        return _work_of_crossing(data, measure)
    if "along" in measure:
        return _along(data, measure)
    if "pick" in measure:
        return _over_all(data, measure)
    return _value(data, measure, {})


def _alternatives(measure):
    """The measure with every list that means "the first that the run has" replaced by one of its
    values, in the order of preference."""
    is_curve = measure["quantity"] in CURVES or ("pick" in measure and "along" not in measure)
    places = []
    for side in ("where", "of", "over"):
        if is_curve and side != "where":
            continue
        part = measure.get(side, {})
        places += [(side, None, name) for name, value in part.items() if isinstance(value, list)]
        places += [(side, inner, name) for inner in ("params", "workload")
                   for name, value in part.get(inner, {}).items() if isinstance(value, list)]
    lists = [measure[side][name] if inner is None else measure[side][inner][name]
             for side, inner, name in places]
    for values in itertools.product(*lists):
        chosen = json.loads(json.dumps(measure))
        for (side, inner, name), value in zip(places, values):
            (chosen[side] if inner is None else chosen[side][inner])[name] = value
        yield chosen


def measure_in(data, measure):
    """(what was found, the measure with one value for each list). Raises Unknown, with the reason
    of the first alternative that has points, or of the first."""
    reasons = []
    for chosen in _alternatives(measure):
        try:
            return measure_once(data, chosen), chosen
        except Unknown as unknown:
            reasons.append(unknown)
    raise min(reasons, key=lambda reason: isinstance(reason, Absent))


# --- The verdict ---

def accepted(claimed, tolerance):
    """The range (low, high) that a claimed value takes with its tolerance."""
    low = claimed.get("value", claimed.get("low", claimed.get("at_least", -math.inf)))
    high = claimed.get("value", claimed.get("high", claimed.get("at_most", math.inf)))
    return (low * (1 - tolerance) if math.isfinite(low) else low,
            high * (1 + tolerance) if math.isfinite(high) else high)


def judge(value, claimed, tolerance):
    """(verdict, what there is to say about it or None)."""
    low, high = accepted(claimed, tolerance)
    if not value.has_interval():
        return UNDECIDED, "the interval is unknown: too few processes"
    if low <= value.low and value.high <= high:
        return REPRODUCED, None
    if value.high < low or value.low > high:
        return NOT_REPRODUCED, None
    return UNDECIDED, "within noise: the interval reaches over the end of what is claimed"


def over_claimed(value, claimed):
    """Measured over claimed, of a range over its nearer end; None inside of it."""
    low = claimed.get("value", claimed.get("low", claimed.get("at_least")))
    high = claimed.get("value", claimed.get("high", claimed.get("at_most")))
    if "low" in claimed and low <= value.value <= high:
        return None
    end = high if low is None or (high is not None and value.value > high) else low
    return Measured(*(part / end for part in value))
