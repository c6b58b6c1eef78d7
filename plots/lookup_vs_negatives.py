"""Figure 4: the time of a lookup against the share of absent keys among those asked.

One panel per key count, at most three: the smallest, the largest and the one between them. Of each
variant the representative parameters are shown (selection.py), for its best target.
"""

from plots import selection, style

NAME = "lookup_vs_negatives"
TITLE = "Lookups against the share of absent keys"
NEEDS = "points in mode lookup_batched at two or more values of negative_share"
REMEDY = ("run a spec with mode lookup_batched and several values of negative_share, "
          "such as workloads/specs/quick.json")
_MOST_PANELS = 3


def gaps(run):
    filters = selection.filters_only(selection.lookups(run))
    if filters.empty:
        return [selection.Gap("no filter was measured in mode lookup_batched", REMEDY, fatal=True)]
    if filters["negative_share"].nunique() < 2:
        return [selection.Gap("only one share of negatives was measured", REMEDY, fatal=True)]
    shares = filters.groupby("filter")["negative_share"].nunique()
    short = sorted(shares.index[shares < 2])
    if short:
        return [selection.Gap(f"only one share of negatives for {', '.join(short)}", REMEDY)]
    return []


def draw(run):
    selection.require(gaps(run))
    looks = style.series_looks(run.points)
    points = selection.representatives(
        selection.best_target(selection.lookups(run), run.best_target))
    filters = selection.filters_only(points)
    shares = filters.groupby(["keys", "filter", "params"])["negative_share"].nunique()
    key_counts = selection.spread(shares[shares >= 2].index.get_level_values("keys"), _MOST_PANELS)
    figure, axes_grid = style.new_figure(3.7, columns=len(key_counts), sharex=True, sharey=True)
    handles, times, ends = {}, [], []
    for axes, keys in zip(axes_grid[0], key_counts):
        here = points[points["keys"] == keys]
        style.panel_title(axes, f"{style.count(keys)} keys")
        for name, variant, rows in selection.series(selection.baselines_only(here)):
            look = looks[name, variant]
            rows = rows.sort_values("negative_share")
            style.floor_line(axes, 100 * rows["negative_share"], rows["ns_per_op"], look, (0, 100),
                             gid=f"floor:{name}:{variant}")
            times += [*rows["ns_per_op"]]
            handles[name, variant] = style.baseline_handle(name, variant, look)
        for name, variant, rows in selection.series(selection.filters_only(here)):
            rows = rows.sort_values("negative_share")
            style.times(axes, 100 * rows["negative_share"], rows, looks[name, variant], zorder=3,
                        gid=f"measured:{name}:{variant}")
            times += [*rows["ns_per_op"]]
            ends += [*rows["ns_per_op_low"], *rows["ns_per_op_high"]]
            handles[name, variant] = style.series_handle(name, variant, looks[name, variant])
        axes.set_xlim(-6, 106)
        axes.set_xticks([0, 25, 50, 75, 100])
        axes.set_xlabel("absent keys (%)")
    style.log_axis(axes_grid[0][0].yaxis, times, ends)
    axes_grid[0][0].set_ylabel("lookup (ns/key)")
    style.finish(
        figure, run, TITLE,
        f"batched lookups, {style.targets_text(filters)}; {style.keys_text(filters)}",
        handles=style.in_legend_order(handles),
        caption="Medians with their intervals, at the parameters closest to "
                f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key.")
    return figure
