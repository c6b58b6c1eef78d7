"""Figure 1: FPR against bits per key, measured points over the lines of theory.

Of each filter and parameters the largest key count is shown. A point without false positives is an
upper limit at 3/queries (the "rule of three": a true FPR above it would have given none with a
chance below exp(-3) = 5 %). The lower panel divides measured by expected FPR, so that deviations
show which a logarithmic axis hides.
"""

import numpy
from matplotlib import ticker

from plots import selection, style

NAME = "fpr_vs_bits"
TITLE = "False-positive rate against space"
NEEDS = "points with an FPR at two or more bits per key; theory.json for the lines"
REMEDY = "run a spec with several bits_per_key, such as workloads/specs/quick.json"

# Points with fewer false positives have intervals wider than what the lower panel is to show.
_ENOUGH_FALSE_POSITIVES = 100
# Lines closer than this would hide each other.
_COINCIDING = 0.05


def points_with_fpr(run):
    """Of each filter and parameters the point with the largest key count."""
    points = selection.filters_only(selection.ok(selection.plain_keys(run.points)))
    points = points[points["fpr_measured"].notna() & points["bits_per_key"].notna()]
    # The same filter is asked in many points (modes, targets, shares): the best-known FPR is kept.
    points = points.sort_values(["keys", "queries"], kind="stable")
    return points.groupby(["filter", "params"], as_index=False).tail(1).sort_index()


def gaps(run):
    points = points_with_fpr(run)
    found = []
    if points.empty:
        found.append(selection.Gap("no point has an FPR", REMEDY, fatal=True))
    elif points.groupby(["filter", "variant"])["bits_per_key"].nunique().max() < 2:
        found.append(selection.Gap("every filter has one number of bits per key only", REMEDY))
    without = sorted(set(points["filter"]) - set(run.theory["filter"]))
    if without:
        found.append(selection.Gap(f"no theory for {', '.join(without)}",
                                   "the filter has no curve over bits per key, or theory.json of "
                                   "the run lacks it"))
    return found


def _coincide(curve, other):
    """Whether two lines of theory lie upon each other."""
    apart = numpy.interp(curve["bits_per_key"], other["bits_per_key"], numpy.log(other["fpr"]))
    inside = curve["bits_per_key"].between(other["bits_per_key"].min(),
                                           other["bits_per_key"].max())
    apart = numpy.abs(apart - numpy.log(curve["fpr"]))[inside]
    return len(apart) > 0 and float(apart.median()) < _COINCIDING


def draw(run):
    selection.require(gaps(run))
    points = points_with_fpr(run)
    looks = style.series_looks(run.points)
    figure, ((axes,), (ratio_axes,)) = style.new_figure(
        5.4, rows=2, sharex=True, gridspec_kw={"height_ratios": [3.4, 1]})
    middle = (points["bits_per_key"].min() + points["bits_per_key"].max()) / 2
    reach = max((points["bits_per_key"].max() - points["bits_per_key"].min()) / 2 + 1, 4)
    limits = (max(middle - reach, 0), middle + reach)
    shown_fpr, handles = [], []

    by_variant = list(points.groupby(["filter", "variant"]))
    by_variant.sort(key=lambda item: (item[0][0], selection.natural(item[0][1])))
    measured_handles = {}
    # From the last to the first: round markers come to lie on square ones that they do not cover.
    for order, ((name, variant), rows) in reversed(list(enumerate(by_variant))):
        look = looks[name, variant]
        shift = (order - (len(by_variant) - 1) / 2) * reach * 0.006
        rows = rows.sort_values("bits_per_key")
        positive, zero = rows[rows["fpr_measured"] > 0], rows[rows["fpr_measured"] == 0]
        if not positive.empty:
            style.errorbar(axes, positive["bits_per_key"], positive["fpr_measured"],
                           positive["fpr_low"], positive["fpr_high"], look, line=False, zorder=3,
                           gid=f"measured:{name}:{variant}")
            shown_fpr += [*positive["fpr_measured"]]
        if not zero.empty:
            limit = 3 / zero["queries"]
            style.upper_limits(axes, zero["bits_per_key"] + shift, limit, look,
                               gid=f"upper_limit:{name}:{variant}")
            shown_fpr += [*(0.4 * limit)]
        compared = positive[positive["fpr_expected"] > 0]
        if not compared.empty:
            expected = compared["fpr_expected"]
            style.errorbar(ratio_axes, compared["bits_per_key"] + shift,
                           compared["fpr_measured"] / expected, compared["fpr_low"] / expected,
                           compared["fpr_high"] / expected, look, line=False, scale=0.64,
                           capsize=1.4, gid=f"ratio:{name}:{variant}")
        measured_handles.setdefault(name, []).append(
            style.series_handle(name, variant, look, line=False))

    colours = {name: look.colour for (name, _), look in looks.items()}
    theory = {name: list(curves.groupby("curve"))
              for name, curves in run.theory.fillna({"filter": ""}).groupby("filter")}
    drawn = []
    for name in [*sorted(measured_handles), ""]:
        points_handles = measured_handles.get(name, [])[::-1]
        curves = theory.get(name, [])
        # Most filters have one kind of points and one line, which then share their line here.
        shared = len(points_handles) == len(curves) == 1
        handles += points_handles
        for index, (_, curve) in enumerate(curves):
            colour = colours[name] if name else style.page().grey
            curve = curve.sort_values("bits_per_key")
            label = style.printable(("theory: " if name else "bound: ") + curve["label"].iloc[0],
                                    style.MAX_LABEL)
            turn = max(index, sum(_coincide(curve, other) for other in drawn))
            drawn.append(curve)
            line, = axes.plot(curve["bits_per_key"], curve["fpr"], color=colour,
                              linewidth=1.1 * style.page().line,
                              linestyle=style.THEORY_STYLES[turn % len(style.THEORY_STYLES)]
                              if name else (0, (1, 2)),
                              label=label, zorder=2, gid=f"theory:{name}")
            if shared:
                points_handles[0].set_linestyle(line.get_linestyle())
                points_handles[0].set_linewidth(line.get_linewidth())
            else:
                handles.append(line)
            seen = curve[curve["bits_per_key"].between(*limits)]
            shown_fpr += [*seen["fpr"]]
    if theory:
        handles.append(style.note_handle("markers: measured; lines: theory"))
    if (points["fpr_measured"] == 0).any():
        handles.append(style.note_handle("arrow: no false positive seen,\nupper limit 3/queries"))

    style.log_axis(axes.yaxis, shown_fpr)
    axes.set_xlim(*limits)
    axes.set_ylabel("FPR")
    ratio_axes.axhline(1, color=style.page().grey, linewidth=0.8 * style.page().line,
                       zorder=1)
    known = points[(points["false_positives"] >= _ENOUGH_FALSE_POSITIVES)
                   & (points["fpr_expected"] > 0)]
    ends = numpy.concatenate([[0.95, 1.05], *(known[c] / known["fpr_expected"] for c in (
        "fpr_measured", "fpr_low", "fpr_high"))])
    ends = ends[numpy.isfinite(ends)]
    air = 0.08 * (ends.max() - ends.min())
    ratio_axes.set_ylim(ends.min() - air, ends.max() + air)
    ratio_axes.set_ylabel("measured /\nexpected")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True, steps=[1, 2, 4, 5, 10]))
    ratio_axes.set_xlabel("bits per key (all bytes a lookup may touch)")
    figure.align_ylabels()
    style.finish(
        figure, run, TITLE, f"{style.counts(points['keys'])} {style.keys_text(points)}",
        handles=handles, caption=(
            "Bars: 95 % intervals (Clopper-Pearson). Arrows and the lower panel are moved sideways "
            f"by up to {reach * 0.003 * (len(by_variant) - 1):.2g} bits so that none hides "
            "another; bars of rare false positives leave the panel."))
    return figure
