"""Figure 3: the time to build a filter, per key, against the number of keys.

Of each variant the representative parameters are shown (selection.py).
"""

from plots import selection, style

NAME = "build_vs_keys"
TITLE = "Building against the number of keys"
NEEDS = "points in mode build, at two or more key counts"
REMEDY = "run a spec with mode build for several key counts, such as workloads/specs/quick.json"


def gaps(run):
    points = selection.builds(run)
    if points.empty:
        return [selection.Gap("no point in mode build", REMEDY, fatal=True)]
    found = []
    if points["keys"].nunique() < 2:
        found.append(selection.Gap("only one key count was built", REMEDY))
    absent = sorted(set(selection.filters_only(run.points)["filter"]) - set(points["filter"]))
    if absent:
        found.append(selection.Gap(f"no build of {', '.join(absent)}", REMEDY))
    return found


def draw(run):
    selection.require(gaps(run))
    looks = style.series_looks(run.points)
    points = selection.best_target(selection.builds(run), run.best_target)
    points = selection.representatives(points)
    figure, ((axes,),) = style.new_figure(3.7)
    handles, times, ends = {}, [], []
    for name, variant, rows in selection.series(points):
        rows = rows.sort_values("keys")
        style.times(axes, rows["keys"], rows, looks[name, variant], zorder=3,
                    gid=f"measured:{name}:{variant}")
        times += [*rows["ns_per_op"]]
        ends += [*rows["ns_per_op_low"], *rows["ns_per_op_high"]]
        handles[name, variant] = style.series_handle(name, variant, looks[name, variant])
    style.log_axis(axes.yaxis, times, ends)
    style.keys_axis(axes.xaxis, points["keys"])
    axes.set_xlabel("keys")
    axes.set_ylabel("build (ns/key)")
    style.finish(
        figure, run, TITLE, style.keys_text(points), handles=style.in_legend_order(handles),
        caption="Medians with their intervals, at the parameters closest to "
                f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key.")
    return figure
