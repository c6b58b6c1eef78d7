"""Figure 13: what vectors bring: how many times as many lookups per second a target does.

Left over the scalar reference, one key at a time, compiled for that same target; right over the
batched loop of target `scalar`. Ratios of medians with the intervals of ratios.py; absent keys
only. Of each variant the parameters with most targets are shown, then the representative ones
(selection.py). Rows of panels: the smallest and the largest key count, so in a cache and beyond it;
the largest alone where there are many filters.
"""

import math
from typing import NamedTuple

import matplotlib
from matplotlib import lines, ticker

from plots import ratios, selection, style

NAME = "simd_gain"
TITLE = "What vectors bring, per target"
NEEDS = ("points in modes lookup_batched and lookup_reference with negative_share 1 for several "
         "targets")
REMEDY = ('run a spec with "modes": ["lookup_batched", "lookup_reference"], '
          '"negative_shares": [1] and "targets": ["all"], such as workloads/specs/paper.json')
_MOST_KEY_COUNTS = 2
# By the place of a target from narrow to wide; filters are told apart by their row.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h")
# So many rows have a line for each of their targets; more have one line for all, and one key count,
# since the figure would be higher than a page.
_MOST_WIDE_ROWS = 24
_NAME_SHARE = 0.42  # of the page's width, for the names of the rows


class Gain(NamedTuple):
    filter: str
    variant: str
    keys: float
    target: str
    over: str            # REFERENCE or SCALAR
    ratio: ratios.Measured


REFERENCE = "own reference"
SCALAR = "target scalar"


def _select(run):
    points = selection.filters_only(selection.ok(selection.plain_keys(run.points)))
    points = points[(points["negative_share"] == 1) & points["mode"].isin(
        ["lookup_batched", "lookup_reference"])]
    keep = set()
    for (name, _), rows in points.groupby(["filter", "variant"]):
        targets = rows.groupby("params")["target"].nunique()
        most = rows[rows["params"].isin(targets.index[targets == targets.max()])]
        keep |= selection.representative_params(most)
    return points.loc[[index for index, key in zip(
        points.index, zip(points["filter"], points["params"])) if key in keep]]


def _gains(run):
    """All gains of vectors, by (filter, variant, key count), targets from narrow to wide."""
    found = []
    points = _select(run)
    for (name, variant, keys), rows in points.groupby(["filter", "variant", "keys"]):
        times = {(row["mode"], row["target"]): ratios.time(row) for _, row in rows.iterrows()}
        targets = sorted({target for mode, target in times if mode == "lookup_batched"
                          and target not in selection.SCALAR_TARGETS},
                         key=selection.target_rank)
        for target in targets:
            vectors = times["lookup_batched", target]
            for over, basis in ((REFERENCE, ("lookup_reference", target)),
                                (SCALAR, ("lookup_batched", "scalar"))):
                if basis in times:
                    found.append(Gain(name, variant, keys, target, over,
                                      times[basis].over(vectors)))
    return found


def gaps(run):
    gains = _gains(run)
    if not gains:
        return [selection.Gap("no filter was measured with vectors and, at the same key count, by "
                              "the scalar reference or the scalar loop", REMEDY, fatal=True)]
    found = []
    points = _select(run)
    names = set(points["filter"][~points["target"].isin(selection.SCALAR_TARGETS)])
    for over in (REFERENCE, SCALAR):
        lacking = names - {gain.filter for gain in gains if gain.over == over}
        if lacking:
            found.append(selection.Gap(
                f"no speed-up over {over} of {', '.join(sorted(lacking))}", REMEDY))
    return found


def _place(run, gains, keys):
    """The panel's key count, and the smallest cache that holds the filters' tables."""
    points = _select(run)
    size = points[points["keys"] == keys]["size_bytes"].median()
    text = f"{style.count(keys)} keys"
    caches = sorted((c.size_bytes, c.level) for c in run.caches if c.type.lower() != "instruction")
    if not caches or math.isnan(size):
        return text
    level = next((f"in L{level}" for cache, level in caches if size <= cache), "beyond the caches")
    return f"{text}, {level}"


def draw(run):
    selection.require(gaps(run))
    gains = _gains(run)
    looks = style.series_looks(run.points)
    wide = len({(g.filter, g.variant) for g in gains}) <= _MOST_WIDE_ROWS
    key_counts = [gain.keys for gain in gains]
    key_counts = selection.spread(key_counts, _MOST_KEY_COUNTS) if wide else [max(key_counts)]
    gains = [gain for gain in gains if gain.keys in key_counts]
    overs = [over for over in (REFERENCE, SCALAR) if any(g.over == over for g in gains)]
    rows = sorted({(g.filter, g.variant) for g in gains},
                  key=lambda row: (row[0], selection.natural(row[1])))
    targets = sorted({g.target for g in gains}, key=selection.target_rank)
    row_inches = 0.06 + 0.055 * len(targets) if wide else 0.15
    figure, axes_grid = style.new_figure(
        1.8 + len(key_counts) * (0.55 + len(rows) * row_inches),
        rows=len(key_counts), columns=len(overs), sharex=True, sharey=True)
    # Names need their height, however the page shrinks its panels.
    figure.content_inches = max(figure.content_inches, len(figure.placed) * (
        len(rows) * 1.3 + 5) * matplotlib.rcParams["ytick.labelsize"] / 72)
    for keys, axes_row in zip(key_counts, axes_grid):
        for over, axes in zip(overs, axes_row):
            style.panel_title(axes, f"over {over}, {_place(run, gains, keys)}")
            for gain in gains:
                if (gain.keys, gain.over) == (keys, over):
                    place = 1 + rows.index((gain.filter, gain.variant))
                    if wide:
                        place += 0.8 * ((targets.index(gain.target) + 0.5) / len(targets) - 0.5)
                    _draw_gain(axes, gain, place, looks[gain.filter, gain.variant],
                               _MARKERS[targets.index(gain.target) % len(_MARKERS)])
            axes.axvline(1, color=style.page().grey, linewidth=style.page().line, zorder=1,
                         gid="even")
    first = axes_grid[0][0]
    _gain_axis(first.xaxis, gains)
    for axes in axes_grid.flat:
        axes.set_xlabel("speed-up")
        axes.axvspan(first.get_xlim()[0], 1, color=style.page().light_grey, alpha=0.25,
                     linewidth=0, zorder=0)
    first.set_ylim(len(rows) + 0.6, 0.4)
    first.yaxis.set_major_locator(ticker.FixedLocator(range(1, len(rows) + 1)))
    first.yaxis.set_major_formatter(ticker.FixedFormatter(_row_names(rows)))
    handles = [lines.Line2D([], [], linestyle="none", color=style.page().grey, label=target,
                            marker=_MARKERS[index % len(_MARKERS)])
               for index, target in enumerate(targets)]
    handles.append(lines.Line2D([], [], linestyle="none", color=style.page().grey, marker="o",
                                markerfacecolor="none", label="open: slower"))
    style.finish(
        figure, run, TITLE, f"batched lookups, all keys absent; {style.keys_text(_select(run))}",
        handles=handles, caption=(
            "Ratios of medians with their intervals; long bars leave the panels. Grey: slower with "
            "vectors than without. Own reference: scalar code, compiled for the same target and "
            "asked one key at a time. Target scalar: the batched loop without vectors."))
    return figure


def _row_names(rows):
    """The filters, with their variants where there are several."""
    names = [name for name, _ in rows]
    points = _NAME_SHARE * 72 * style.page().width_inches
    characters = int(points / (0.6 * matplotlib.rcParams["ytick.labelsize"]))
    return [style.printable(f"{name}, {variant}" if names.count(name) > 1 else name, characters)
            for name, variant in rows]


def _draw_gain(axes, gain, place, look, marker):
    """One ratio with its interval, as far as it is known."""
    value, low, high = gain.ratio
    ends = [[0 if math.isnan(low) else max(0, value - low)],
            [0 if math.isnan(high) else max(0, high - value)]]
    options = style.marker_options(look._replace(marker=marker, fill="full"))
    if value < 1:
        options["markerfacecolor"] = "none"
    thin = 0.8 * style.page().line
    line, _, _ = axes.errorbar([value], [place], xerr=ends, linestyle="none", elinewidth=thin,
                               capthick=thin, zorder=3, **options)
    line.set_gid(f"measured:{gain.filter}:{gain.variant}")


def _gain_axis(axis, gains):
    """Logarithmic with ticks at powers of two, since half and double are equally far from 1."""
    values = [gain.ratio.value for gain in gains]
    least, most = min(values), max(values)
    low = 2.0 ** (math.floor(2 * math.log2(min(least, 1) * 0.93)) / 2)
    high = 2.0 ** (math.ceil(2 * math.log2(max(most, 1) * 1.07)) / 2)
    axis.axes.set_xscale("log", base=2)
    axis.axes.set_xlim(low, high)
    step = max(1, math.ceil(math.log2(high / low) / 6))
    axis.set_major_locator(ticker.FixedLocator([2.0 ** e for e in range(
        math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1) if e % step == 0]))
    axis.set_major_formatter(ticker.FuncFormatter(
        lambda value, _: f"{value:g}" if value >= 1 else f"1/{1 / value:g}"))
    axis.set_minor_locator(ticker.NullLocator())
