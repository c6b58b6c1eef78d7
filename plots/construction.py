"""Figure 11: building filters whose construction may fail: attempts, slots and memory.

Filters with a slot, or several, for each key: a seed may not work, and then another one or a larger
table is tried. Of each variant the representative parameters are shown (selection.py). Slots per
key stand over what the filter's own rule for the size of the first table gives (theory.json).
"""

from plots import selection, style

NAME = "construction"
TITLE = "Building: attempts, slots and memory"
NEEDS = "points in mode build of filters with slots (ribbon, cuckoo, xor, ...) at several key counts"
REMEDY = ("run a spec with mode build for several key counts, such as workloads/specs/paper.json; "
          "for a run that is older than these fields, remove COMPLETE from a copy and call "
          "filterbench summarise --complete COPY")


def _select(run):
    """Builds, failed ones too, of the filters that have slots; those of one key count only where no
    filter has more."""
    points = selection.filters_only(selection.plain_keys(run.points))
    points = points[(points["mode"] == "build")
                    & ((points["status"] == "ok") | (points["failed_builds"] > 0))]
    with_slots = set(points.loc[points["slots_per_key"].notna(), "filter"])
    points = points[points["filter"].isin(with_slots)
                    | (points["failed_builds"] > 0)]
    if points.empty:
        return points
    points = selection.best_target(points, run.best_target)
    points = selection.representatives(points)
    key_counts = points.groupby(["filter", "variant"])["keys"].transform("nunique")
    return points[key_counts > 1] if (key_counts > 1).any() else points


def _built(points):
    return points[points["attempts_mean"].notna()]


def gaps(run):
    points = _select(run)
    if _built(points).empty:
        return [selection.Gap("no point in mode build has slots and attempts", REMEDY, fatal=True)]
    found = []
    if points["keys"].nunique() < 2:
        found.append(selection.Gap("only one key count was built", REMEDY))
    if run.slots_per_key.empty:
        found.append(selection.Gap("theory.json has no slots per key over several key counts",
                                   REMEDY))
    silent = sorted(set(points.loc[points["peak_build_bytes_per_key"].isna()
                                   & (points["status"] == "ok"), "filter"]))
    if silent:
        found.append(selection.Gap(f"{', '.join(silent)} do not say how much memory building took",
                                   "a filter reports it as peak_bytes (filters/filter.h)"))
    return found


def draw(run):
    selection.require(gaps(run))
    points = _select(run)
    looks = style.series_looks(run.points)
    figure, (panels,) = style.new_figure(4.4, columns=3, sharex=True)
    attempts, slots, memory = panels
    handles, tries, most_tries, shares, sizes, failed = {}, [], [], [], [], []
    page = style.page()
    for name, variant, rows in selection.series(points):
        look = looks[name, variant]
        rows = rows.sort_values("keys")
        failed += [*rows.loc[rows["failed_builds"] > 0, "keys"]]
        built = _built(rows)
        if built.empty:
            continue
        gid = f"{name}:{variant}"
        # The bar goes from the mean to the most that a build took.
        style.errorbar(attempts, built["keys"], built["attempts_mean"], built["attempts_mean"],
                       built["attempts_max"], look, zorder=3, gid=f"measured:{gid}")
        tries += [*built["attempts_mean"]]
        most_tries += [*built["attempts_max"]]
        with_slots = built[built["slots_per_key"].notna()]
        style.errorbar(slots, with_slots["keys"], with_slots["slots_per_key"],
                       with_slots["slots_per_key"], with_slots["slots_per_key"], look, line=False,
                       zorder=3, gid=f"slots:{gid}")
        curve = run.slots_per_key[(run.slots_per_key["filter"] == name)
                                  & (run.slots_per_key["params"] == rows["params"].iloc[0])]
        if not curve.empty:
            curve = curve.sort_values("keys")
            slots.plot(curve["keys"], curve["slots_per_key"], color=look.colour, zorder=2,
                       linestyle=look.linestyle, linewidth=0.9 * page.line, gid=f"theory:{gid}")
        shares += [*with_slots["slots_per_key"], *curve["slots_per_key"]]
        with_peak = built[built["peak_build_bytes_per_key"].notna()]
        if not with_peak.empty:
            peak = with_peak["peak_build_bytes_per_key"]
            style.errorbar(memory, with_peak["keys"], peak, peak, peak, look, zorder=3,
                           gid=f"peak:{gid}")
        own = built["bits_per_key"] / 8
        memory.plot(built["keys"], own, color=look.colour, linestyle=(0, (1, 1.5)), zorder=2,
                    linewidth=page.line, gid=f"table:{gid}")
        sizes += [*with_peak["peak_build_bytes_per_key"], *own]
        handles[name, variant] = style.series_handle(name, variant, look)
    style.panel_title(attempts, "attempts")
    style.log_axis(attempts.yaxis, [*tries, *most_tries])
    attempts.set_ylim(bottom=0.85)
    attempts.set_ylabel("seeds tried")
    for keys in sorted(set(failed)):
        attempts.plot([keys], [0.97], marker="x", color=page.ink, markersize=6 * page.line,
                      transform=attempts.get_xaxis_transform(), zorder=4, gid=f"failed:{keys:g}")
    style.panel_title(slots, "slots")
    if shares:
        low, high = min(shares), max(shares)
        air = 0.06 * max(high - low, 0.05)
        slots.set_ylim(low - air, high + air)
    slots.set_ylabel("slots per key")
    style.panel_title(memory, "memory")
    style.log_axis(memory.yaxis, [size for size in sizes if size > 0])
    memory.set_ylabel("most bytes held per key")
    for axes in panels:
        style.keys_axis(axes.xaxis, points["keys"])
        axes.set_xlabel("keys")
    notes = ["attempts: mean, and bar to the most", "slots: lines are theory, of the first table",
             "memory: dotted is the finished table"]
    if failed:
        notes.append("cross at the upper edge: builds failed")
    builds = sorted({int(n) for n in _built(points)["builds"]})
    count = " to ".join(str(n) for n in (builds[0], builds[-1])[:len(builds)])
    style.finish(
        figure, run, TITLE, f"{count} builds a point, {style.keys_text(points)}",
        handles=[*style.in_legend_order(handles), *map(style.note_handle, notes)], caption=(
            "Mean number of seeds that a build tried, with a bar to the most; slots of the table "
            "over its keys, on lines for the table that is tried first, so that points above are "
            "tables that had to grow; most bytes that a build held at once, the filter included "
            "and the keys that it was given left out, over the finished filter (dotted); each table "
            "of 2 MiB or more counts up to 4 MiB of addresses by which huge pages are aligned. At "
            f"the parameters closest to {selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key."))
    return figure
