"""Figure 12: blocks that a get of an LSM tree reads, against the files that may hold the key.

Computed, not measured: theory.json has the reads as a linear function of the FPR, and the FPR is
the one that was measured. Of each variant the representative parameters are shown (selection.py).
"""

from matplotlib import ticker

from plots import selection, style

NAME = "block_reads"
TITLE = "Block reads of a get in an LSM tree"
NEEDS = "points with an FPR; theory.json for the reads"
REMEDY = "run a spec with lookups, such as workloads/specs/quick.json"
_OLD = ("for a run that is older than this part of theory.json, remove COMPLETE from a copy and "
        "call filterbench summarise --complete COPY")

_MARKED_FILES = {"absent": (1, 2, 5, 10, 20, 40), "deepest": (1, 10, 20, 30, 40)}
# FPRs whose lines help to read the others.
_GUIDES = ((1.0, "no filter"), (0.1, "10 %"), (0.01, "1 %"), (0.001, "0.1 %"))


def _select(run):
    """Of each filter and its representative parameters, the largest number of keys with an FPR, and
    of its points the one that knows it best."""
    points = selection.filters_only(selection.ok(selection.plain_keys(run.points)))
    points = points[points["fpr_measured"].notna() & points["bits_per_key"].notna()]
    if points.empty:
        return points
    points = selection.representatives(points)
    points = points.sort_values(["keys", "queries"], kind="stable")
    return points.groupby(["filter", "variant"], as_index=False).tail(1).sort_index()


def gaps(run):
    found = []
    if run.block_reads.empty:
        found.append(selection.Gap("theory.json has no block_reads", _OLD, fatal=True))
    if _select(run).empty:
        found.append(selection.Gap("no point has an FPR", REMEDY, fatal=True))
    return found


def _reads(rows, fpr):
    return (rows["certain_reads"] + rows["reads_per_fpr"] * fpr).to_numpy()


def draw(run):
    selection.require(gaps(run))
    points = _select(run)
    looks = style.series_looks(run.points)
    figure, (panels,) = style.new_figure(4.2, columns=2)
    handles, limited = {}, False
    for axes, key in zip(panels, ("absent", "deepest")):
        rows = run.block_reads[run.block_reads["key"] == key].sort_values("candidate_files")
        marked = rows[rows["candidate_files"].isin(_MARKED_FILES[key])]
        files = marked["candidate_files"].to_numpy()
        style.panel_title(axes, rows["label"].iloc[0])
        shown = []
        for name, variant, (point,) in ((n, v, r.to_dict("records"))
                                        for n, v, r in selection.series(points)):
            look = looks[name, variant]
            if point["fpr_measured"] == 0:
                limited = True
                limit = _reads(marked, 3 / point["queries"])
                style.upper_limits(axes, files, limit, look, gid=f"upper_limit:{name}:{variant}")
                handles[name, variant] = style.series_handle(name, variant, look, line=False)
                shown += [*limit]
                continue
            values = [_reads(marked, point[column])
                      for column in ("fpr_measured", "fpr_low", "fpr_high")]
            style.errorbar(axes, files, *values, look, zorder=3, scale=0.8,
                           gid=f"measured:{name}:{variant}")
            shown += [*values[0]]
            handles[name, variant] = style.series_handle(name, variant, look)
        _guides(axes, rows, key)
        last = rows["candidate_files"].iloc[-1]
        if key == "absent":
            style.log_axis(axes.yaxis, [*shown, last])
            axes.set_xscale("log")
            axes.set_xlim(0.9, last * 1.7)
        else:
            top = max(max(shown), _reads(rows, 0.012)[-1])
            axes.set_ylim(1 - 0.04 * (top - 1), 1 + 1.12 * (top - 1))
            axes.set_xlim(0, last * 1.12)
        axes.xaxis.set_major_locator(ticker.FixedLocator(_MARKED_FILES[key]))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.set_xlabel("files that may hold the key")
        axes.set_ylabel("block reads per get")
    notes = [style.note_handle("dotted: no filter, and an FPR of\n10 %, 1 % and 0.1 %")]
    if limited:
        notes.append(style.note_handle("arrow: no false positive seen,\nupper limit 3/queries"))
    bits = points["bits_per_key"]
    style.finish(
        figure, run, TITLE,
        f"computed from the measured FPR; {bits.min():.3g} to {bits.max():.3g} bits per key; "
        f"{style.counts(points['keys'])} {style.keys_text(points)}",
        handles=[*style.in_legend_order(handles), *notes], caption=(
            "Computed, not measured: the mean number of blocks by the formula for files that all "
            "have a filter of one FPR, which is the measured one (bars: its 95 % interval, "
            "Clopper-Pearson); filters and indexes in memory. A file of level 0 and one of each "
            "deeper level may hold a key; they are asked one after another until it is found. On "
            "the right the key is in the last of them; what leaves the panel reads more. "
            "Parameters closest to "
            f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key."))
    return figure


def _guides(axes, rows, key):
    page = style.page()
    files = rows["candidate_files"].to_numpy()
    for fpr, label in _GUIDES:
        reads = _reads(rows, fpr)
        axes.plot(files, reads, color=page.grey, linewidth=0.8 * page.line,
                  linestyle=(0, (1, 2)), zorder=1, gid=f"guide:{key}:{fpr:g}")
        axes.annotate(label.replace(" ", "\u00a0"), (files[-1], reads[-1]), xytext=(6, 0),
                      textcoords="offset points", va="center", fontsize=page.small,
                      color=page.grey, annotation_clip=True)
