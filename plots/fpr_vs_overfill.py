"""Figure 9: the FPR of filters that hold more keys than they were made for.

Points are measured, lines the expected FPR at the keys that are held (the points' own). Filters
that refuse keys end there: an end mark at the last point, and in the legend how many keys it held,
as a multiple of those that it was made for. Those that refuse, those that go on in the same memory,
and those that take more of it stand in panels of their own, since they are filled to different
ends. Of each variant the key count with most fills and its representative parameters (selection.py)
are shown.
"""

import math
from typing import NamedTuple

import numpy
import pandas
from matplotlib import ticker

from plots import selection, style

NAME = "fpr_vs_overfill"
TITLE = "False positives of overfilled filters"
NEEDS = "points in mode overfill, with an FPR, at two or more fills, some above 1"
REMEDY = ("run a spec with mode overfill and fills from 0.5 to 3, such as "
          "workloads/specs/overfill.json")

# Memory at the highest fill over that at the lowest from which on a filter counts as growing.
_GROWTH = 1.25
# A filter that holds fewer keys than it was given refused some; the count may be rounded.
_ROUNDING_KEYS = 1


class _Series(NamedTuple):
    filter: str
    variant: str
    rows: pandas.DataFrame  # by keys held, each number of them once; `held_share` over made for
    refuses_at: float       # keys held over made for; NaN if it took all
    grows: bool


def _select(run):
    points = selection.filters_only(selection.ok(selection.plain_keys(run.filled)))
    points = points[points["fpr_measured"].notna() & (points["keys_held"] > 0)
                    & (points["keys"] > 0)]
    points = points.assign(held_share=points["keys_held"] / points["keys"],
                           refused=points["keys_held"] + _ROUNDING_KEYS
                           < points["fill"] * points["keys"])
    # A filter that was filled up to what it was made for, such as for figure 8, is not overfilled.
    most = points.groupby(["filter", "params", "keys"])["fill"].transform("max")
    points = points[most > 1]
    # The same fill may have been asked in several modes: the best-known FPR is kept.
    points = points.sort_values("queries", kind="stable")
    return points.groupby(["filter", "params", "keys", "fill"], as_index=False).tail(1).sort_index()


def _series(run):
    found = []
    points = selection.representatives(_at_one_key_count(_select(run)))
    for name, variant, rows in selection.series(points):
        refused = rows[rows["refused"]]
        ends = rows.sort_values("fill")["size_bytes"]
        grows = len(ends) > 1 and ends.iloc[-1] >= _GROWTH * ends.iloc[0]
        # What it held when it refused is the same at every fill beyond.
        once = rows.sort_values(["held_share", "fill"]).drop_duplicates("held_share")
        found.append(_Series(name, variant, once,
                             refused["held_share"].max() if len(refused) else math.nan, grows))
    return found


def _at_one_key_count(points):
    keep = []
    for _, rows in points.groupby(["filter", "variant"]):
        fills = rows.groupby("keys")["fill"].nunique()
        keys = max(fills.index[fills == fills.max()])
        keep.extend(rows.index[rows["keys"] == keys])
    return points.loc[sorted(keep)]


def gaps(run):
    points = _select(run)
    if points.empty:
        return [selection.Gap("no filter was given more keys than it was made for (mode "
                              "overfill, fills above 1)", REMEDY, fatal=True)]
    found = []
    fills = points.groupby("filter")["fill"].nunique()
    if fills.max() < 2:
        return [selection.Gap("every filter was filled to one fill only", REMEDY, fatal=True)]
    short = sorted(fills.index[fills < 2])
    if short:
        found.append(selection.Gap(f"only one fill of {', '.join(short)}", REMEDY))
    refused = run.filled[(run.filled["status"] != "ok")]
    lost = sorted(set(refused["filter"]) - set(points["filter"]))
    if lost:
        found.append(selection.Gap(
            f"no fill was measured of {', '.join(lost)}",
            "summary.json has the reason; filters that are built from all keys at once cannot be "
            "filled further"))
    return found


def draw(run):
    selection.require(gaps(run))
    series = _series(run)
    looks = style.series_looks(run.filled)
    panels = [(title, chosen) for title, chosen in (
        ("refuse when full", [s for s in series if not math.isnan(s.refuses_at)]),
        ("take more keys", [s for s in series if math.isnan(s.refuses_at) and not s.grows]),
        ("grow", [s for s in series if math.isnan(s.refuses_at) and s.grows])) if chosen]
    figure, axes_grid = style.new_figure(4.2, columns=len(panels), sharey=True)
    handles, shown, has_end, has_zero = {}, [], False, False
    for axes, (title, chosen) in zip(axes_grid[0], panels):
        style.panel_title(axes, title)
        for order, one in reversed(list(enumerate(chosen))):
            look = looks[one.filter, one.variant]
            shown += _draw_series(axes, one, look)
            label = style.series_label(one.filter, one.variant)
            handle = style.series_handle(one.filter, one.variant, look, line=False)
            if not math.isnan(one.refuses_at):
                has_end = True
                handle.set_label(f"{label}: full at {one.refuses_at:.3g}")
            has_zero |= (one.rows["fpr_measured"] == 0).any()
            handles[one.filter, one.variant] = handle
        _fill_axis(axes, chosen)
        axes.axvline(1, color=style.page().grey, linewidth=0.8 * style.page().line, zorder=1,
                     gid="made_for")
        axes.set_xlabel("keys held / made for")
    style.log_axis(axes_grid[0][0].yaxis, shown)
    low, high = axes_grid[0][0].get_ylim()
    axes_grid[0][0].set_ylim(low, min(high, 1))
    axes_grid[0][0].set_ylabel("FPR")
    legend = style.in_legend_order(handles)
    legend.append(style.note_handle("markers: measured; lines: expected"))
    if has_end:
        legend.append(style.note_handle("bar across: refuses more keys"))
    if has_zero:
        legend.append(style.note_handle(
            "arrow: no false positive seen,\nupper limit at 3/queries"))
    rows = pandas.concat([one.rows for one in series])
    style.finish(
        figure, run, TITLE, f"made for {style.counts(rows['keys'])} {style.keys_text(rows)}",
        handles=legend, caption=(
            "Bars: 95 % intervals (Clopper-Pearson). Expected: theory for the keys that the filter "
            "holds. A filter that is full refuses further keys and keeps the FPR it has."))
    return figure


def _draw_series(axes, one, look):
    """Draws, and returns the FPRs that the axis must hold."""
    rows = one.rows
    seen, unseen = rows[rows["fpr_measured"] > 0], rows[rows["fpr_measured"] == 0]
    known = rows[rows["fpr_expected"] > 0]
    if not known.empty:
        axes.plot(known["held_share"], known["fpr_expected"], color=look.colour,
                  linewidth=1.1 * style.page().line, linestyle=look.linestyle, zorder=2,
                  gid=f"theory:{one.filter}:{one.variant}")
    if not seen.empty:
        style.errorbar(axes, seen["held_share"], seen["fpr_measured"], seen["fpr_low"],
                       seen["fpr_high"], look, line=False, zorder=3,
                       gid=f"measured:{one.filter}:{one.variant}")
    limit = 3 / unseen["queries"]
    if not unseen.empty:
        style.upper_limits(axes, unseen["held_share"], limit, look,
                           gid=f"upper_limit:{one.filter}:{one.variant}")
    if not math.isnan(one.refuses_at):
        last = rows[rows["held_share"] == one.refuses_at].iloc[0]
        line = style.page().line
        axes.plot([last["held_share"]], [last["fpr_measured"] or 3 / last["queries"]], marker="|",
                  markersize=14 * line, markeredgewidth=1.6 * line, color=look.colour,
                  linestyle="none", zorder=3.5, gid=f"refuses:{one.filter}:{one.variant}")
    return [*seen["fpr_measured"], *known["fpr_expected"], *(0.4 * limit)]


def _fill_axis(axes, chosen):
    """Linear, or logarithmic where filters are filled many times over."""
    shares = numpy.concatenate([one.rows["held_share"] for one in chosen])
    low, high = min(shares.min(), 1), max(shares.max(), 1)
    if high > 8:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.3, high * 1.3)
        axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5), numticks=12))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        return
    air = 0.06 * (high - low) or 0.5
    axes.set_xlim(low - air, high + air)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 5, 10]))
