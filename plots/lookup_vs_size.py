"""Figure 3: the time of a negative lookup against the filter's bytes, over the machine's floor.

One panel for batched lookups (throughput) and one for latency (each lookup waits for the one
before), both on the best target; without latency one for the plain scalar loop, if that was
measured. Of each variant the representative parameters are shown (selection.py), one point per key
count; those measured at one key count only are left out where others have three and more. The floor
is of the same mode and target.
"""

import pandas

from plots import selection, style

NAME = "lookup_vs_size"
TITLE = "Negative lookups against filter size"
NEEDS = ("points in modes lookup_batched and latency with negative_share 1, at two or more key "
         "counts")
REMEDY = ("run a spec with mode lookup_batched and negative_share 1 for several key counts, "
          "such as workloads/specs/quick.json")


LATENCY_REMEDY = ('add "latency" to the modes of the spec, for the filters and for touch_lines, '
                  "with negative_share 1")
# Where some filters have so many key counts, a filter with one only says nothing about size.
_MANY_KEY_COUNTS = 3


def _select(run, mode="lookup_batched"):
    points = selection.ok(selection.plain_keys(run.points))
    points = points[(points["mode"] == mode) & (points["negative_share"] == 1)]
    return points[(points["size_bytes"] > 0) | (points["filter"] == "hash_only")]


def _series(points):
    """The filters' series that are drawn, and the names of filters that are left out."""
    found = selection.series(selection.representatives(selection.filters_only(points)))
    most = max((len(rows) for _, _, rows in found), default=0)
    shown = [one for one in found if len(one[2]) > 1 or most < _MANY_KEY_COUNTS]
    return shown, sorted({name for name, _, _ in found} - {name for name, _, _ in shown})


def gaps(run):
    points = _select(run)
    filters = selection.filters_only(points)
    if filters.empty:
        return [selection.Gap("no filter was measured with absent keys only", REMEDY, fatal=True)]
    found = []
    if filters["keys"].nunique() < 2:
        found.append(selection.Gap("only one key count was measured", REMEDY))
    _, left_out = _series(selection.best_target(points, run.best_target))
    if left_out:
        found.append(selection.Gap(f"only one key count of {', '.join(left_out)}", REMEDY))
    for name in sorted(set(selection.FLOORS) - set(points["filter"])):
        found.append(selection.Gap(f"the floor line {name} is missing",
                                   f"add {name} to the filters of the spec"))
    latency = _select(run, "latency")
    if selection.filters_only(latency).empty:
        found.append(selection.Gap("no latency was measured with absent keys only", LATENCY_REMEDY))
    elif "touch_lines" not in set(latency["filter"]):
        found.append(selection.Gap("the floor of latency, touch_lines, is missing", LATENCY_REMEDY))
    if not run.caches:
        found.append(selection.Gap("the manifest has no cache sizes",
                                   "filterbench doctor says why they are unknown"))
    return found


def _panels(run):
    """(title, points) of each panel."""
    points = _select(run)
    best = selection.best_target(points, run.best_target)
    filters = selection.filters_only(best)
    panels = [("throughput (batched)", best)]
    latency = selection.best_target(_select(run, "latency"), run.best_target)
    if not selection.filters_only(latency).empty:
        return panels + [("latency", latency)]
    scalar = points[points["target"] == "scalar"]
    if set(filters["target"]) != {"scalar"} and not selection.filters_only(scalar).empty:
        panels.append(("plain scalar loop", scalar))
    return panels


def draw(run):
    selection.require(gaps(run))
    looks = style.series_looks(run.points)
    panels = _panels(run)
    figure, axes_grid = style.new_figure(3.7, columns=len(panels), sharex=True, sharey=True)
    handles, times, ends = {}, [], []
    sizes = selection.filters_only(pandas.concat([points for _, points in panels]))["size_bytes"]
    low, high = sizes.min() / 2, sizes.max() * 2
    # However small the run, its place below the first cache's size should be seen.
    data_caches = [c.size_bytes for c in run.caches if c.type.lower() != "instruction"]
    high = max([high, 16 * low, *(2 * size for size in sorted(data_caches)[:1])])
    for axes, (title, points) in zip(axes_grid[0], panels):
        style.panel_title(axes, title, above_caches=True)
        for name, variant, rows in selection.series(selection.baselines_only(points)):
            look = looks[name, variant]
            rows = rows.sort_values("size_bytes")
            if name == "hash_only":
                value = rows["ns_per_op"].median()  # it reads no table: one level for all sizes
                axes.axhline(value, zorder=2, gid=f"floor:{name}:{variant}",
                             **style.baseline_options(look))
                times.append(value)
            else:
                rows = rows[rows["size_bytes"].between(low, high)]
                if rows.empty:
                    continue
                alone = (rows["size_bytes"].min() / 1.6, rows["size_bytes"].max() * 1.6)
                style.floor_line(axes, rows["size_bytes"], rows["ns_per_op"], look, alone,
                                 gid=f"floor:{name}:{variant}")
                times += [*rows["ns_per_op"]]
            handles[name, variant] = style.baseline_handle(name, variant, look)
        for name, variant, rows in _series(points)[0]:
            rows = rows.sort_values("size_bytes")
            style.times(axes, rows["size_bytes"], rows, looks[name, variant], zorder=3,
                        gid=f"measured:{name}:{variant}")
            times += [*rows["ns_per_op"]]
            ends += [*rows["ns_per_op_low"], *rows["ns_per_op_high"]]
            handles[name, variant] = style.series_handle(name, variant, looks[name, variant])
        style.mark_caches(axes, run.caches, low, high)
        axes.set_xlabel("filter size")
    first = axes_grid[0][0]
    style.log_axis(first.yaxis, times, ends)
    style.bytes_axis(first.xaxis, low, high, most=8 if len(panels) == 1 else 5)
    first.set_ylabel("negative lookup (ns/key)")
    style.finish(
        figure, run, TITLE,
        f"all keys absent; {style.targets_text(selection.filters_only(panels[0][1]))}; "
        f"{style.keys_text(_select(run))}",
        handles=style.in_legend_order(handles), caption=(
            "Medians with their intervals, at the parameters closest to "
            f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key. Size: all bytes that a "
            "lookup may touch. Floor: touch_lines reads random cache lines, hash_only none. "
            "Latency: each lookup waits for the one before."))
    return figure
