"""Figure 10: what double hashing costs in small Bloom filters.

The FPR of one small filter is luck, that of its seed; theory speaks of the mean over seeds. So the
mean is taken over builds, and its interval from how the rates of builds differ: the binomial
interval of all lookups together would be too narrow by a factor of up to ten. Divided by the exact
FPR of k independent hash functions in as many bits, from theory.json.
"""

import json
import math

import numpy
from matplotlib import lines, ticker

from plots import ratios, selection, style

NAME = "double_hashing"
TITLE = "What double hashing costs in small Bloom filters"
NEEDS = "small Bloom filters in several sizes, each built many times"
REMEDY = "run a spec with many builds of small filters, such as workloads/specs/double_hashing.json"
_OLD = ("for a run that is older than this part of theory.json, remove COMPLETE from a copy and "
        "call filterbench summarise --complete COPY; otherwise run a spec with km_bloom, such as "
        "workloads/specs/double_hashing.json")

# With fewer builds the interval is all that is seen.
_ENOUGH_BUILDS = 10
# Bits beyond which nothing is left to see.
_MOST_BITS = 2 ** 20
# Series of one size side by side.
_DODGE = 1.05


def _curves(run):
    """(curve rows, filter or None, parameters) of theory's small tables."""
    return [(rows.sort_values("bits"), rows["filter"].iloc[0], json.loads(rows["params"].iloc[0]))
            for _, rows in run.small_tables.groupby("curve")]


def _setting(params):
    """What all ways to probe share: a panel."""
    return params["bits_per_key"], params["k"]


def _select(run):
    """The points that lie on a curve, with their setting, bits, and mean FPR over builds; of points
    that ask the same filters the one with the most builds."""
    points = selection.filters_only(selection.ok(selection.plain_keys(run.points)))
    samples = {point_id: rows for point_id, rows in run.samples.groupby("point_id")}
    chosen = {}
    for _, name, wanted in _curves(run):
        for _, point in points[points["filter"] == (name or "")].iterrows():
            params = json.loads(point["params"])
            builds = samples.get(point["point_id"])
            if builds is None or any(params.get(key) != value for key, value in wanted.items()):
                continue
            builds = builds[(builds["queries"] > 0) & (builds["table_bits"] > 0)]
            if builds.empty or builds["table_bits"].iloc[0] > _MOST_BITS:
                continue
            key = (name, point["variant"], point["params"], point["keys"])
            if key in chosen and chosen[key]["builds"] >= len(builds):
                continue
            fpr = ratios.mean(builds["false_positives"] / builds["queries"])
            chosen[key] = {"filter": name, "variant": point["variant"], "keys": point["keys"],
                           "setting": _setting(wanted), "builds": len(builds),
                           "bits": float(builds["table_bits"].median()),
                           "queries": float(builds["queries"].median()), "fpr": fpr}
    # A size alone shows no course.
    found = list(chosen.values())
    return [row for row in found if len({
        other["bits"] for other in found if other["setting"] == row["setting"]}) > 1]


def gaps(run):
    if run.small_tables.empty:
        return [selection.Gap("theory.json has no small_tables", _OLD, fatal=True)]
    found = _select(run)
    if not found:
        settings = " or ".join(f"k = {k} at {bits:g} bits per key" for bits, k in sorted(
            {_setting(params) for *_, params in _curves(run)}))
        return [selection.Gap(f"no Bloom filter with {settings} in several sizes below "
                              f"{_MOST_BITS} bits", REMEDY, fatal=True)]
    result = []
    fewest = min(row["builds"] for row in found)
    if fewest < _ENOUGH_BUILDS:
        result.append(selection.Gap(f"some filters were built {fewest} times only", REMEDY))
    absent = sorted({name for _, name, params in _curves(run) if name} - {
        row["filter"] for row in found})
    if absent:
        result.append(selection.Gap(f"no small tables of {', '.join(absent)}", REMEDY))
    return result


def _independent(run, setting):
    """The curve of k independent hash functions: what all others are divided by."""
    return next(rows for rows, name, params in _curves(run)
                if name == "classic_bloom" and _setting(params) == setting)


def _at(curve, bits):
    """The FPR of a curve at `bits`, along its logarithms."""
    return numpy.exp(numpy.interp(numpy.log(bits), numpy.log(curve["bits"]),
                                  numpy.log(curve["fpr"])))


def draw(run):
    selection.require(gaps(run))
    found = _select(run)
    looks = style.series_looks(run.points)
    settings = sorted({row["setting"] for row in found})
    figure, (panels,) = style.new_figure(4.2, columns=len(settings), sharex=True)
    handles, theory = {}, {}
    for axes, setting in zip(panels, settings):
        if len(settings) > 1:
            style.panel_title(axes, f"{setting[0]:g} bits per key, k = {setting[1]}")
        here = [row for row in found if row["setting"] == setting]
        base = _independent(run, setting)
        series = sorted({(row["filter"], row["variant"]) for row in here},
                        key=lambda key: (key[0], selection.natural(key[1])))
        most = 1.0
        for index, (name, variant) in enumerate(series):
            rows = sorted((row for row in here
                           if (row["filter"], row["variant"]) == (name, variant)),
                          key=lambda row: row["bits"])
            bits = numpy.array([row["bits"] for row in rows])
            values = [numpy.array(values) / _at(base, bits) for values in zip(
                *(row["fpr"] for row in rows))]
            most = max(most, *numpy.nan_to_num(values[2]), *values[0])
            look = looks[name, variant]
            style.errorbar(axes, bits * _DODGE ** (index - (len(series) - 1) / 2), *values, look,
                           line=False, zorder=3, gid=f"measured:{name}:{variant}")
            handles[name, variant] = style.series_handle(name, variant, look, line=False)
        top = most
        for number, (rows, name, params) in enumerate(
                curve for curve in _curves(run) if _setting(curve[2]) == setting):
            # The colour of the points that lie on the curve.
            colour = next((looks[row["filter"], row["variant"]].colour for row in here
                           if row["filter"] == name), style.page().grey)
            ratio = rows["fpr"].to_numpy() / _at(base, rows["bits"].to_numpy())
            look = {"color": colour, "linewidth": 1.1 * style.page().line,
                    "linestyle": style.THEORY_STYLES[number % len(style.THEORY_STYLES)]}
            axes.plot(rows["bits"], ratio, zorder=2, **look,
                      gid=f"theory:{name or ''}:{params.get('probing', '')}")
            label = style.printable("theory: " + rows["label"].iloc[0], style.MAX_LABEL)
            theory.setdefault(label, lines.Line2D([], [], label=label, **look))
            top = max(top, float(ratio.max()))
        axes.set_ylim(1 - 0.06 * (min(top, 1.5 * most) - 1) - 0.04,
                      1 + 1.06 * (min(top, 1.5 * most) - 1))
        _bits_axis(axes, [row["bits"] for row in here])
        axes.set_xlabel("bits of the table")
        axes.set_ylabel("FPR over that of k independent\nhash functions")
    builds = sorted({row["builds"] for row in found})
    lookups = sorted({int(row["queries"]) for row in found})
    what = "; ".join(f"{bits:g} bits per key, k = {k}" for bits, k in settings)
    style.finish(
        figure, run, TITLE,
        f"{what}; {' to '.join(str(n) for n in (builds[0], builds[-1])[:len(builds)])} builds a "
        f"point, {style.counts(lookups)} lookups in each",
        handles=[*style.in_legend_order(handles), *theory.values()], caption=(
            "Mean FPR over builds with different seeds, divided by the exact mean of k independent "
            "hash functions in as many bits. Bars: 95 % intervals for the mean, from how builds "
            "differ (Student); lookups alone would make them too narrow. Points of one size stand "
            "side by side. Lines are exact, but for the one that says first order; they bend where the "
            "number of bits has other divisors."))
    return figure


def _bits_axis(axes, values):
    low, high = min(values) / 1.3, max(values) * 1.3
    axes.set_xscale("log", base=2)
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(ticker.FixedLocator(
        [2.0 ** e for e in range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)]))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:.0f}"))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
