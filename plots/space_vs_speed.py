"""Figure 5: bits per key against the time of a negative lookup, at a given FPR.

A variant's place at the FPR follows the rule in selection.at_fpr: interpolated along log FPR
between the two measured points around it; or the nearest point, drawn pale with its own FPR above
it. The Pareto front joins the filters at the FPR that no other beats in both space and time; points
at another FPR and the baselines are not in it. Rows: the smallest and the largest key count
among those with most such points.
"""

import numpy

from plots import selection, style

NAME = "space_vs_speed"
TITLE = "Space against speed at equal FPR"
NEEDS = ("points in mode lookup_batched with negative_share 1 and bits per key on both sides of an "
         "FPR of 1 % or 0.1 %")
REMEDY = ("run a spec with mode lookup_batched, negative_share 1 and bits_per_key from 8 to 16, "
          "such as workloads/specs/quick.json")
TARGET_FPRS = (0.01, 0.001)
_COLUMNS = ["bits_per_key", "ns_per_op", "ns_per_op_low", "ns_per_op_high"]


def _select(run):
    points = selection.best_target(selection.lookups(run, negative_share=1.0), run.best_target)
    return points[points["bits_per_key"].notna() & (points["filter"] != "hash_only")]


def _places(points):
    """{(keys, target FPR): [(filter, variant, values, other FPR or None)]}, empty ones left out."""
    filters = selection.filters_only(points)
    places = {}
    for keys in sorted(set(filters["keys"])):
        for target_fpr in TARGET_FPRS:
            for name, variant, rows in selection.series(filters[filters["keys"] == keys]):
                found = selection.at_fpr(rows, target_fpr, _COLUMNS)
                if found is not None:
                    places.setdefault((keys, target_fpr), []).append((name, variant, *found))
    return places


def _key_counts(places):
    """The smallest and the largest key count among those at which most variants lie at the FPR."""
    at_the_fpr = {}
    for (keys, _), entries in places.items():
        count = sum(other_fpr is None for *_, other_fpr in entries)
        at_the_fpr[keys] = at_the_fpr.get(keys, 0) + count
    most = max(at_the_fpr.values())
    return selection.spread([keys for keys, count in at_the_fpr.items() if 2 * count >= most], 2)


def gaps(run):
    points = _select(run)
    places = _places(points)
    if not places:
        return [selection.Gap("no filter was measured near an FPR of 1 % or 0.1 %", REMEDY,
                              fatal=True)]
    found = []
    names = set(selection.filters_only(points)["filter"])
    for target_fpr in TARGET_FPRS:
        there = {name for (_, target), entries in places.items() if target == target_fpr
                 for name, *_ in entries}
        if names - there:
            found.append(selection.Gap(
                f"no point near an FPR of {100 * target_fpr:g} % of "
                f"{', '.join(sorted(names - there))}", REMEDY))
    return found


def _bound(run, target_fpr):
    """Bits per key of the information bound, from the run's own theory; None if it has none."""
    curve = run.theory[run.theory["filter"].isna()]
    if curve.empty:
        return None
    curve = curve[curve["curve"] == curve["curve"].iloc[0]].sort_values("fpr")
    if not curve["fpr"].iloc[0] <= target_fpr <= curve["fpr"].iloc[-1]:
        return None
    return float(numpy.interp(numpy.log(target_fpr), numpy.log(curve["fpr"]),
                              curve["bits_per_key"]))


def draw(run):
    selection.require(gaps(run))
    looks = style.series_looks(run.points)
    points = _select(run)
    places = _places(points)
    key_counts = _key_counts(places)
    targets = [t for t in TARGET_FPRS if any((keys, t) in places for keys in key_counts)]
    figure, axes_grid = style.new_figure(
        3.6 if len(key_counts) == 1 else 5.6, rows=len(key_counts), columns=len(targets),
        sharex="col", sharey="row")
    handles, other, has_front = {}, False, False
    shown_bits = {target: [] for target in targets}
    for row, keys in enumerate(key_counts):
        times, ends = [], []
        for column, target_fpr in enumerate(targets):
            axes = axes_grid[row][column]
            axes.set_title(f"FPR {100 * target_fpr:g} %, {style.count(keys)} keys", loc="left")
            entries = places.get((keys, target_fpr), [])
            front = selection.pareto_front(
                [(v["bits_per_key"], v["ns_per_op"]) for _, _, v, own in entries if own is None])
            if len(front) > 1:
                has_front = True
                x, y = zip(*front)
                axes.plot(x, y, drawstyle="steps-post", color=style.page().light_grey,
                          linewidth=3.5 * style.page().line, solid_joinstyle="round",
                          solid_capstyle="round", zorder=1, gid="front")
            for name, variant, values, own_fpr in entries:
                look = looks[name, variant]
                style.times(axes, [values["bits_per_key"]], values.to_frame().T, look, line=False,
                            zorder=3, alpha=1 if own_fpr is None else 0.45,
                            gid=f"measured:{name}:{variant}")
                if own_fpr is not None:
                    other = True
                    axes.annotate(f"{100 * own_fpr:.2g} %", (values["bits_per_key"],
                                                            values["ns_per_op"]),
                                  xytext=(0, 6), textcoords="offset points", ha="center",
                                  fontsize=style.page().small, color=style.page().grey, zorder=4,
                                  bbox={"facecolor": style.page().background,
                                        "edgecolor": "none", "pad": 0.6})
                times.append(values["ns_per_op"])
                ends += [values["ns_per_op_low"], values["ns_per_op_high"]]
                shown_bits[target_fpr].append(values["bits_per_key"])
                handles[name, variant] = style.series_handle(name, variant, look, line=False)
        floor_rows = selection.baselines_only(points[points["keys"] == keys])
        for name, variant, rows in selection.series(floor_rows):
            look = looks[name, variant]
            rows = rows.sort_values("bits_per_key")
            alone = (rows["bits_per_key"].min() - 0.4, rows["bits_per_key"].max() + 0.4)
            for axes in axes_grid[row]:
                style.floor_line(axes, rows["bits_per_key"], rows["ns_per_op"], look, alone,
                                 gid=f"floor:{name}:{variant}")
            times += [*rows["ns_per_op"]]
            handles[name, variant] = style.baseline_handle(name, variant, look)
        if times:
            style.log_axis(axes_grid[row][0].yaxis, times, ends)
        axes_grid[row][0].set_ylabel("negative lookup (ns/key)")
    legend = style.in_legend_order(handles)
    for column, target_fpr in enumerate(targets):
        bound = _bound(run, target_fpr)
        bits = shown_bits[target_fpr] + ([bound] if bound else [])
        air = max(0.08 * (max(bits) - min(bits)), 0.5)
        for axes in axes_grid[:, column]:
            axes.set_xlim(min(bits) - air, max(bits) + air)
            if bound:
                line = axes.axvline(bound, color=style.page().grey, linewidth=style.page().line,
                                    linestyle=(0, (1, 2)), zorder=1, gid="bound",
                                    label="bound: log2(1/FPR)")
                if len(legend) == len(handles):
                    legend.append(line)
        axes_grid[-1][column].set_xlabel("bits per key")
    if has_front:
        legend.append(style.front_handle())
    caption = ("Bits and medians (with intervals) interpolated along log FPR between the two "
               "measured points around the FPR.")
    if other:
        caption += " Pale: the nearest measured point with its own FPR, not in the front."
    filters = selection.filters_only(points)
    style.finish(figure, run, TITLE, "batched lookups, all keys absent, "
                 f"{style.targets_text(filters)}; {style.keys_text(filters)}", caption, legend)
    return figure
