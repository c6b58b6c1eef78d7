"""Figure 12: blocks that a get of an LSM tree reads, against the files that may hold the key.

Lines are computed: theory.json has the reads as a linear function of the FPR, and the FPR is the
one that was measured. Where the run has gets of stores whose files all overlap (workloads lsm_get
and those of real engines), marks are what these gets read; elsewhere marks are computed too. Of
each variant the representative parameters are shown (selection.py), those of the gets if there are
any.
"""

import numpy
import pandas
from matplotlib import lines, ticker

from plots import gets, selection, style
from plots.ratios import Unknown

NAME = "block_reads"
TITLE = "Block reads of a get in an LSM tree"
NEEDS = "points with an FPR, of lookups or of gets from stores; theory.json for the reads"
REMEDY = "run a spec with lookups, such as workloads/specs/quick.json, or with gets, such as lsm"
_OLD = ("for a run that is older than this part of theory.json, remove COMPLETE from a copy and "
        "call filterbench summarise --complete COPY")

_MARKED_FILES = {"absent": (1, 2, 5, 10, 20, 40), "deepest": (1, 10, 20, 30, 40)}
# FPRs whose lines help to read the others.
_GUIDES = ((1.0, "no filter"), (0.1, "10 %"), (0.01, "1 %"), (0.001, "0.1 %"))
# Engines stand side by side, this project's own store at its place.
_STEPS = dict(zip(gets.ENGINES, (0, -1, 1)))
_APART = {"absent": lambda files, step: files * 1.09 ** step,
          "deepest": lambda files, step: files + 0.7 * step}


def preference(run):
    """Runs with more measured reads are rather drawn."""
    return len(_gets(run))


def _gets(run):
    """Gets that theory speaks of, of representative parameters: of each engine, filter, variant and
    number of files the one that knows it best."""
    points = gets.of_files(selection.filters_only(gets.gets(run)))
    points = pandas.concat([gets.seeks(points, key).assign(key=key)
                            for key in gets.KEYS])
    points = points[numpy.array([gets.BLOCK_READS in metrics for metrics in points["metrics"]],
                                dtype=bool)]
    if points.empty:
        return points
    points = selection.representatives(points).sort_values(
        [f"metric.{gets.BLOCK_READS}.per", "keys"], kind="stable")
    return points.groupby(["workload", "filter", "variant", "key", "knob.files"],
                          as_index=False).tail(1).sort_index()


def _select(run):
    """One row for each filter and variant with the FPR that its line is computed from, and whether
    there are gets of it. Of lookups the largest number of keys with an FPR, and of its points the
    one that knows it best; of gets without such lookups those of our own store, since an engine may
    have filters over fewer keys, or of an engine where it alone has the filter."""
    points = selection.filters_only(selection.ok(selection.plain_keys(run.points)))
    points = points[points["fpr_measured"].notna() & points["bits_per_key"].notna()]
    measured = _gets(run)
    asked = set(zip(measured["filter"], measured["params"]))
    chosen = points[:0]
    if not points.empty:
        places = list(zip(points["filter"], points["params"]))
        variants = set(zip(measured["filter"], measured["variant"]))
        others = points[numpy.array([place not in variants for place in zip(
            points["filter"], points["variant"])], dtype=bool)]
        of_gets = numpy.array([place in asked for place in places], dtype=bool)
        chosen = pandas.concat([points[of_gets],
                                selection.representatives(others) if len(others) else others])
        chosen = chosen.sort_values(["keys", "queries"], kind="stable")
        chosen = chosen.groupby(["filter", "variant"], as_index=False).tail(1).sort_index()
    found = chosen.to_dict("records")
    known = {(row["filter"], row["params"]) for row in found}
    for place, rows in measured.groupby(["filter", "params"]):
        if place not in known:
            own = rows[rows["workload"] == gets.OWN]
            try:
                (rate, low, high), queries = gets.pooled_fpr(own if len(own) else rows)
            except Unknown:
                continue
            found.append(rows.iloc[0].to_dict() | {
                "fpr_measured": rate, "fpr_low": low, "fpr_high": high, "queries": queries})
    frame = pandas.DataFrame(found, columns=list(points.columns))
    frame["has_gets"] = [place in asked for place in zip(frame["filter"], frame["params"])]
    return frame


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
    points, measured = _select(run), _gets(run)
    is_measured = len(measured) > 0
    looks = style.series_looks(pandas.concat([run.points, run.workloads]) if is_measured
                               else run.points)
    engines = [name for name in gets.ENGINES if name in set(measured["workload"])]
    figure, (panels,) = style.new_figure(4.2, columns=2)
    handles, limited = {}, False
    for axes, key in zip(panels, gets.KEYS):
        rows = run.block_reads[run.block_reads["key"] == key].sort_values("candidate_files")
        marked = rows[rows["candidate_files"].isin(_MARKED_FILES[key])]
        files = marked["candidate_files"].to_numpy()
        style.panel_title(axes, rows["label"].iloc[0])
        shown = []
        for name, variant, (point,) in ((n, v, r.to_dict("records"))
                                        for n, v, r in selection.series(points)):
            look = looks[name, variant]
            if is_measured:
                shown += _computed_line(axes, rows, point, look)
                handles[name, variant] = style.series_handle(
                    name, variant, look if point["has_gets"] else look._replace(marker="None"))
                continue
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
        here = measured[measured["key"] == key] if is_measured else measured
        for engine in engines:
            values, has_limits = _measured(axes, here[here["workload"] == engine], key, looks)
            shown += values
            limited |= has_limits
        _guides(axes, rows, key)
        last = rows["candidate_files"].iloc[-1]
        if key == "absent":
            style.log_axis(axes.yaxis, [*shown, last])
            axes.set_xscale("log")
            axes.set_xlim(0.85 if is_measured else 0.9, last * 1.7)
        else:
            top = max(max(shown, default=1), _reads(rows, 0.012)[-1])
            axes.set_ylim(1 - 0.04 * (top - 1), 1 + 1.12 * (top - 1))
            axes.set_xlim(0, last * 1.12)
        axes.xaxis.set_major_locator(ticker.FixedLocator(_MARKED_FILES[key]))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.set_xlabel("files that may hold the key")
        axes.set_ylabel("block reads per get")
    notes = [style.note_handle("dotted: no filter, and an FPR of\n10 %, 1 % and 0.1 %")]
    if is_measured:
        notes[:0] = [style.note_handle("lines: computed; marks: measured"),
                     *(_engine_handle(engine) for engine in engines if len(engines) > 1)]
    if limited:
        notes.append(style.note_handle("arrow: no false positive seen,\nupper limit 3/"
                                       + ("gets" if is_measured else "queries")))
    bits = points["bits_per_key"]
    how = "marks measured, lines computed" if is_measured else "computed"
    style.finish(
        figure, run, TITLE,
        f"{how} from the measured FPR; {bits.min():.3g} to {bits.max():.3g} bits per key; "
        f"{style.counts(points['keys'])} {style.keys_text(points)}",
        handles=[*style.in_legend_order(handles), *notes],
        caption=_reading(engines) + (
            " A file of level 0 and one of each deeper level may hold a key; they are asked one "
            "after another until it is found. On the right the key is in the last of them; what "
            "leaves the panel reads more. Parameters closest to "
            f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key."))
    return figure


def _reading(engines):
    if not engines:
        return ("Computed, not measured: the mean number of blocks by the formula for files that "
                "all have a filter of one FPR, which is the measured one (bars: its 95 % interval, "
                "Clopper-Pearson); filters and indexes in memory.")
    leveldb = (" LevelDB's filters are over one data block each, so that of most their FPR is "
               "another than the line's." if "leveldb_get" in engines else "")
    return ("Marks: blocks that gets read per get, counted, in stores whose files all overlap "
            f"({', '.join(engines)}; bars: 95 %, Clopper-Pearson of the false positives). Lines: "
            "the mean by the formula for files that all have a filter of one FPR, which is the "
            "measured one, of lookups in the same run where it has them; a line without marks was "
            f"not measured.{leveldb}")


def _computed_line(axes, rows, point, look):
    """The formula at the FPR of a filter; its values."""
    if point["fpr_measured"] == 0:
        return []
    reads = _reads(rows, point["fpr_measured"])
    axes.plot(rows["candidate_files"], reads, color=look.colour, linestyle=look.linestyle,
              linewidth=style.page().line, zorder=2,
              gid=f"theory:{point['filter']}:{point['variant']}")
    return [*reads]


def _measured(axes, here, key, looks):
    """What the gets of one engine read; (the values, whether some are limits). Of a real one's
    filter the first variant is shown."""
    shown, limited = [], False
    for name, variants in here.groupby("filter"):
        for variant, points in sorted(variants.groupby("variant"),
                                      key=lambda entry: selection.natural(entry[0])):
            engine = points["workload"].iloc[0]
            look = style.engine_look(looks[name, variant], gets.ENGINES.index(engine))
            place = f"{name}:{variant}" + ("" if engine == gets.OWN else f":{engine}")
            step = _STEPS[engine]
            metric = f"metric.{gets.BLOCK_READS}."
            none = (points[metric + "by_chance"] == 0) & (points[metric + "certain"] == 0)
            for rows, is_limit in ((points[~none], False), (points[none], True)):
                if rows.empty:
                    continue
                rows = rows.sort_values("knob.files")
                files = _APART[key](rows["knob.files"].to_numpy(dtype=float), step)
                if is_limit:
                    limited = True
                    limits = 3 / rows[metric + "per"].to_numpy(dtype=float)
                    style.upper_limits(axes, files, limits, look, gid=f"upper_limit:{place}")
                    shown += [*limits]
                    continue
                values = [rows[metric + field].to_numpy(dtype=float)
                          for field in ("value", "low", "high")]
                style.errorbar(axes, files, *values, look, zorder=3, line=False, scale=0.8,
                               gid=f"measured:{place}")
                shown += [*values[0]]
            if engine != gets.OWN:
                break
    return shown, limited


def _engine_handle(engine):
    look = style.engine_look(style.Look(style.page().grey, "o"), gets.ENGINES.index(engine))
    return lines.Line2D([], [], linestyle="none", label=style.printable(engine),
                        **style.marker_options(look))


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
