"""Figure 8: the time to insert a key and to look one up, against the load of the filter.

The load is keys held over keys that the filter was made for. Inserting is mode insert: what one
more key costs there, not the mean over all keys so far. Of the key counts the one with the most
loads is shown, the largest of those; of each variant the representative parameters (selection.py),
by the space that the filter was made with. A filter that refused a key ends there: what is asked
for beyond that load is the same filter.
"""

import math

import pandas
from matplotlib import lines

from plots import selection, style

NAME = "speed_vs_load"
TITLE = "Inserting and looking up against the load"
NEEDS = "points in modes insert and lookup_batched at two or more fills"
REMEDY = ("run a spec with modes insert and lookup_batched, several fills, and negative_shares 0 "
          "and 1, such as workloads/specs/paper.json")
_PANEL_INCHES = 2.1

# What each panel shows, its mode and its share of negatives.
_PANELS = (
    ("inserting", "insert", None),
    ("looking up present keys", "lookup_batched", 0.0),
    ("looking up absent keys", "lookup_batched", 1.0),
)


def _given(fill, keys):
    return math.floor(fill * keys + 0.5)  # rounded as the program does, half away from zero


def _filled(run):
    """The points of one key count, with their `load` and whether the filter is `full`: it refused a
    key. Of a filter that is full the least fill at which it was stays."""
    points = selection.filters_only(selection.plain_keys(run.filled))
    points = points[points["mode"].isin([mode for _, mode, _ in _PANELS])
                    & points["keys_held"].notna() & (points["keys"] > 0)]
    points = points.assign(
        load=points["keys_held"] / points["keys"],
        full=points["keys_held"] < [*map(_given, points["fill"], points["keys"])],
        bits_per_key=8 * points["size_bytes"] / points["keys"])
    if points.empty:
        return points
    loads = selection.ok(points).groupby("keys")["fill"].nunique()
    if loads.empty:
        return points[:0]
    points = points[points["keys"] == loads.index[loads == loads.max()].max()]
    first = points[points["full"]].groupby(["filter", "params"])["fill"].min()
    last = [first.get(key, math.inf) for key in zip(points["filter"], points["params"])]
    return selection.representatives(points[points["fill"] <= last])


def _panels(run):
    """(title, share of negatives, points) of the panels that have a curve."""
    points = _filled(run)
    found = []
    for title, mode, share in _PANELS:
        here = points[(points["mode"] == mode)
                      & (points["negative_share"].isna() if share is None
                         else points["negative_share"] == share)]
        here = selection.best_target(here, run.best_target)
        if selection.ok(here)["load"].nunique() > 1:
            found.append((title, share, here))
    return found


def _floor(run, share, keys):
    if share is None:
        return run.points[:0]
    points = selection.baselines_only(selection.lookups(run, share))
    points = points[points["keys"] == keys]
    return points if points.empty else selection.representatives(
        selection.best_target(points, run.best_target))


def gaps(run):
    panels = _panels(run)
    if not panels:
        return [selection.Gap("no filter was measured at two loads, inserting its last keys or "
                              "looking keys up", REMEDY, fatal=True)]
    drawn = {title for title, _, _ in panels}
    found = [selection.Gap(f"nothing about {title} at two loads", REMEDY)
             for title, _, _ in _PANELS if title not in drawn]
    shown = {title: set(selection.ok(points)["filter"]) for title, _, points in panels}
    for title, filters in shown.items():
        absent = sorted(set.union(*shown.values()) - filters)
        if absent:
            found.append(selection.Gap(f"nothing about {title} with {', '.join(absent)}", REMEDY))
    for title, share, points in panels:
        if share is not None and _floor(run, share, points["keys"].iloc[0]).empty:
            found.append(selection.Gap(f"no floor for {title}", "add touch_lines to the spec, "
                                       "built at once from as many keys and asked alike"))
    return found


def _slots(run, ends):
    """How full the slots are at the ends of the curves, as text, of filters that say it."""
    slots = run.samples.groupby("point_id")["slot_load"].median()
    known = {}
    for name, point in ends:
        load = slots.get(point, math.nan)
        if not math.isnan(load):
            known.setdefault(name, load)
    if not known:
        return ""
    return " Slots in use at the right end: " + "; ".join(
        f"{name}: {100 * load:.3g} %" for name, load in sorted(known.items())) + "."


def draw(run):
    selection.require(gaps(run))
    panels = _panels(run)
    looks = style.series_looks(pandas.concat([run.points, run.filled]))
    figure, grid = style.new_figure(0.9 + _PANEL_INCHES * len(panels), rows=len(panels),
                                    sharex=True)
    most = 1.04 * max(1, *(points["load"].max() for _, _, points in panels))
    handles, ends_of_curves, any_full = {}, [], False
    scales = {}  # of inserting, and one of all lookups
    for (axes,), (title, share, points) in zip(grid, panels):
        style.panel_title(axes, title)
        axes.set_ylabel("ns/key")
        panel_axes, times, ends = scales.setdefault(share is None, ([], [], []))
        panel_axes.append(axes)
        for name, variant, rows in selection.series(
                _floor(run, share, points["keys"].iloc[0])):
            look = looks[name, variant]
            style.floor_line(axes, [1], rows["ns_per_op"][:1], look, (0, most),
                             gid=f"floor:{name}:{variant}")
            times += [*rows["ns_per_op"]]
            handles[name, variant] = style.baseline_handle(name, variant, look)
        for name, variant, rows in selection.series(points):
            timed = selection.ok(rows).sort_values("load")
            if timed.empty:
                continue
            look = looks[name, variant]
            style.times(axes, timed["load"], timed, look, zorder=3,
                        gid=f"measured:{name}:{variant}")
            times += [*timed["ns_per_op"]]
            ends += [*timed["ns_per_op_low"], *timed["ns_per_op_high"]]
            handles[name, variant] = style.series_handle(name, variant, look)
            ends_of_curves.append((f"{name}, {variant}" if variant else name,
                                   timed["point_id"].iloc[-1]))
            for load in rows["load"][rows["full"]]:
                any_full = True
                axes.plot([load], timed["ns_per_op"].iloc[-1:], linestyle="none", zorder=4,
                          gid=f"full:{name}:{variant}", **_cross(look))
    for panel_axes, times, ends in scales.values():
        for axes in panel_axes:
            style.log_axis(axes.yaxis, times, ends)
    grid[-1][0].set_xlabel("load (keys held / keys made for)")
    grid[-1][0].set_xlim(0, most)
    legend = style.in_legend_order(handles)
    if any_full:
        legend.append(lines.Line2D([], [], linestyle="none", label="refused the next key",
                                   **_cross(style.Look(style.page().grey, "o"))))
    filters = pandas.concat([points for _, _, points in panels])
    lookups = filters[filters["mode"] != "insert"]
    subtitle = f"made for {style.count(filters['keys'].iloc[0])} keys; {style.keys_text(filters)}"
    if not lookups.empty:
        subtitle += f"; batched lookups, {style.targets_text(lookups)}"
    style.finish(
        figure, run, TITLE, subtitle, handles=legend,
        caption="Medians with their intervals, at the parameters closest to "
                f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key made for; inserting: of "
                "the last keys before that load, a twentieth of what the filter was made for."
                + _slots(run, ends_of_curves))
    return figure


def _cross(look):
    return style.marker_options(look._replace(marker="x", fill="full"), 1.7)
