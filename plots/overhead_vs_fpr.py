"""Figure 2: space over the information bound, bits per key / log2(1/FPR), against FPR.

The FPR falls to the right, as space grows. Of each filter and parameters the largest key count is
shown. The interval of an FPR is one of the overhead: the same bits over log2(1/low) and log2(1/
high). A point without false positives has an FPR below 3/queries (the rule of three), and so an
overhead below bits / log2(queries/3): an upper limit there. Lines are the run's own theory.

Bits per key are those at the measured number of keys, while theory is about many of them: what a
small table wastes lies above its line.
"""

import numpy
from matplotlib import ticker

from plots import fpr_vs_bits, selection, style

NAME = "overhead_vs_fpr"
TITLE = "Space over the information bound"
NEEDS = "points with an FPR at two or more bits per key; theory.json for the lines"

# An FPR near 1 has next to no bound: the ratio says nothing there.
_LARGEST_FPR = 0.5


def _select(run):
    points = fpr_vs_bits.points_with_fpr(run)
    points = points[(points["fpr_measured"] <= _LARGEST_FPR) & (points["bits_per_key"] > 0)]
    return points[(points["fpr_measured"] > 0) | (3 / points["queries"] <= _LARGEST_FPR)]


def gaps(run):
    points = _select(run)
    if points.empty:
        return [selection.Gap(f"no point has an FPR up to {_LARGEST_FPR:g}", fpr_vs_bits.REMEDY,
                              fatal=True)]
    return fpr_vs_bits.gaps(run)


# Where the upper end of an FPR's interval is 1, the ratio has none: its bar leaves the page.
_BEYOND = 1e6


def _overhead(bits_per_key, fpr):
    """The ratio, at most _BEYOND; NaN where the FPR is unknown."""
    with numpy.errstate(divide="ignore"):
        bound = numpy.abs(numpy.log2(numpy.asarray(fpr, dtype=float)))
        return numpy.minimum(numpy.asarray(bits_per_key, dtype=float) / bound, _BEYOND)


def _theory(run, name):
    """The filter's lines as (bits per key, FPR, overhead) frames."""
    for _, curve in run.theory[run.theory["filter"] == name].groupby("curve"):
        curve = curve[curve["fpr"] <= _LARGEST_FPR].sort_values("bits_per_key")
        if len(curve):
            yield curve.assign(overhead=_overhead(curve["bits_per_key"], curve["fpr"]))


def draw(run):
    selection.require(gaps(run))
    points = _select(run)
    looks = style.series_looks(run.points)
    figure, ((axes,),) = style.new_figure(4.4)
    shown_fpr, shown_overhead, handles = [], [], {}
    for name, variant, rows in reversed(selection.series(points)):
        look = looks[name, variant]
        rows = rows.sort_values("fpr_measured")
        seen, unseen = rows[rows["fpr_measured"] > 0], rows[rows["fpr_measured"] == 0]
        if not seen.empty:
            overhead = _overhead(seen["bits_per_key"], seen["fpr_measured"])
            style.errorbar(axes, seen["fpr_measured"], overhead,
                           _overhead(seen["bits_per_key"], seen["fpr_low"]),
                           _overhead(seen["bits_per_key"], seen["fpr_high"]), look, line=False,
                           zorder=3, gid=f"measured:{name}:{variant}")
            shown_fpr += [*seen["fpr_measured"]]
            shown_overhead += [*overhead]
        if not unseen.empty:
            limit = 3 / unseen["queries"]
            overhead = _overhead(unseen["bits_per_key"], limit)
            style.upper_limits(axes, limit, overhead, look, gid=f"upper_limit:{name}:{variant}")
            shown_fpr += [*limit]
            shown_overhead += [*overhead]
        handles[name, variant] = style.series_handle(name, variant, look, line=False)
    style.log_axis(axes.xaxis, shown_fpr)
    low, high = axes.get_xlim()
    has_theory = False
    for name in sorted(set(points["filter"])):
        for index, curve in enumerate(_theory(run, name)):
            curve = curve[curve["fpr"].between(low, high)]
            if curve.empty:
                continue
            has_theory = True
            axes.plot(curve["fpr"], curve["overhead"], linewidth=style.page().line, zorder=2,
                      color=next(look.colour for (n, _), look in looks.items() if n == name),
                      linestyle=style.THEORY_STYLES[index % len(style.THEORY_STYLES)],
                      gid=f"theory:{name}")
    axes.invert_xaxis()
    axes.set_xlabel("FPR")
    axes.axhline(1, color=style.page().grey, linewidth=style.page().line, zorder=1, gid="bound")
    _limit(axes, shown_overhead)
    axes.set_ylabel("bits per key / log2(1/FPR)")
    legend = style.in_legend_order(handles)
    if has_theory:
        legend.append(style.note_handle("markers: measured; lines: theory"))
    if (points["fpr_measured"] == 0).any():
        legend.append(style.note_handle(
            "arrow: no false positive seen,\nupper limit at 3/queries"))
    style.finish(
        figure, run, TITLE, f"{style.counts(points['keys'])} {style.keys_text(points)}",
        handles=legend, caption=(
            "1 is the least space that any filter of this FPR can have. Bars: 95 % intervals of "
            "the FPR (Clopper-Pearson), carried into the ratio. Space: all bytes a lookup may "
            "touch."))
    return figure


def _limit(axes, overheads):
    """Linear from just below the bound, or logarithmic where a filter takes several times more."""
    most = max(overheads)
    if most <= 4:
        axes.set_ylim(0.95, most + 0.08 * (most - 0.95) + 0.05)
        axes.yaxis.set_major_locator(ticker.MaxNLocator(steps=[1, 2, 5, 10]))
        return
    axes.set_yscale("log")
    axes.set_ylim(0.95, most * 1.15)
    axes.yaxis.set_major_locator(ticker.FixedLocator(
        [tick for tick in (1, 1.2, 1.5, 2, 3, 5, 7, 10, 20, 50, 100, 1000) if tick <= most * 1.15]))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
