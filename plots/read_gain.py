"""Figure 15: what filters bring a get: its time with them and without, from files and from memory.

A row for each filter of a store, of the parameters nearest to 10 bits per key (selection.py); the
number beside it is how many times as long the same get takes without filters (always_maybe). Of
each workload the knobs are shown that most filters were measured with, among these those with the
most files, then the most keys.
"""

import json
import math
from typing import NamedTuple

import matplotlib
import pandas
from matplotlib import lines, ticker

from plots import gets, headline, load, ratios, selection, style
from plots.ratios import Unknown

NAME = "read_gain"
TITLE = "What filters bring a get"
NEEDS = ("points of workloads of gets with negative_share 0.9 and 1, reads direct and cached, of "
         f"filters and of {selection.ALWAYS_MAYBE}")
REMEDY = (f'run a spec with such a workload, "filters": [..., "{selection.ALWAYS_MAYBE}"], '
          '"negative_shares": [0.9, 1] and "reads": ["direct", "cached"], such as lsm')
_SHARES = (0.9, 1.0)
_READS = {"direct": "direct reads", "cached": "page cache"}
# More rows than these have one panel for each kind of reads, since the figure would be higher than
# a page.
_MOST_ROWS_OF_TWO_SHARES = 30
# Of the page's width, for the names of the rows: where panels stack, and where two stand abreast.
_NAME_SHARE, _NAME_SHARE_ABREAST = 0.42, 0.3


class Gain(NamedTuple):
    engine: str
    filter: str
    variant: str
    reads: str
    share: float
    time: ratios.Measured
    without: ratios.Measured

    @property
    def row(self):
        return self.engine, self.filter, self.variant

    @property
    def ratio(self):
        return self.without.over(self.time)


def _setting(row):
    """What of a point is the same in all panels, as text."""
    knobs = {name: value for name, value in json.loads(row["knobs"]).items() if name != "reads"}
    return json.dumps([row["keys"], knobs], sort_keys=True)


def _select(run):
    """The gets that the figure is about, with or without filters, of one setting for each engine."""
    points = gets.gets(run)
    if "knob.reads" not in points or points.empty:
        return points[:0]
    points = points[points["knob.reads"].isin(_READS) & points["negative_share"].isin(_SHARES)]
    kept = []
    for _, own in points.groupby("workload"):
        settings = own.apply(_setting, axis=1)

        def rank(setting, own=own, settings=settings):
            rows = own[settings == setting]
            files = rows["knob.files"].iloc[0] if "knob.files" in rows else 0
            filters = selection.filters_only(rows)
            return (selection.ALWAYS_MAYBE in set(rows["filter"]),
                    len(filters.groupby(["filter", "variant"])), len(filters.groupby(
                        ["knob.reads", "negative_share"])), files, rows["keys"].iloc[0], setting)
        kept.append(own[settings == max(set(settings), key=rank)])
    return pandas.concat(kept) if kept else points


def _gains(run):
    """All gains by engine, filter, variant, in the order of rows."""
    points = _select(run)
    filters = selection.filters_only(points)
    if filters.empty:
        return []
    reads = gets.Reads(run)
    found = []
    for engine in gets.ENGINES:
        own = filters[filters["workload"] == engine]
        if own.empty:
            continue
        for name, variant, rows in selection.series(selection.representatives(own)):
            # Of real engines the first variant of a filter, as in figure 12.
            if engine != gets.OWN and any(gain.row[:2] == (engine, name) and gain.variant != variant
                                          for gain in found):
                continue
            for row in rows.to_dict("records"):
                try:
                    without = ratios.time(reads.without(row))
                except Unknown:
                    continue
                found.append(Gain(engine, name, variant, row["knob.reads"], row["negative_share"],
                                  ratios.time(row), without))
    return found


def gaps(run):
    gains = _gains(run)
    if not gains:
        return [selection.Gap("no filter was measured in gets of 90 % or 100 % absent keys, and the "
                              "same gets without filters", REMEDY, fatal=True)]
    found = []
    for kind, text in _READS.items():
        for share in _SHARES:
            if not any((gain.reads, gain.share) == (kind, share) for gain in gains):
                found.append(selection.Gap(f"no gets with {100 * share:g} % absent keys, {text}",
                                           REMEDY))
    return found


def draw(run):
    selection.require(gaps(run))
    gains = _gains(run)
    looks = style.series_looks(pandas.concat([run.points, run.workloads]) if len(run.points)
                               else run.workloads)
    rows = list(dict.fromkeys(gain.row for gain in gains))
    shares = [share for share in _SHARES if any(gain.share == share for gain in gains)]
    if len(rows) > _MOST_ROWS_OF_TWO_SHARES:
        shares = shares[-1:]
    gains = [gain for gain in gains if gain.share in shares]
    kinds = [kind for kind in _READS if any(gain.reads == kind for gain in gains)]
    engines = list(dict.fromkeys(gain.engine for gain in gains))
    figure, panels = style.new_figure(1.8 + len(shares) * (0.55 + len(rows) * 0.15),
                                      rows=len(shares), columns=len(kinds), sharey=True)
    # Names need their height, however the page shrinks its panels.
    figure.content_inches = max(figure.content_inches, len(figure.placed) * (
        len(rows) * 1.3 + 5) * matplotlib.rcParams["ytick.labelsize"] / 72)
    for share, panels_of_share in zip(shares, panels):
        for kind, axes in zip(kinds, panels_of_share):
            style.panel_title(axes, f"{_READS[kind]}, {100 * share:g} % absent keys")
            here = [gain for gain in gains if (gain.reads, gain.share) == (kind, share)]
            for gain in here:
                _draw_gain(axes, gain, 1 + rows.index(gain.row), looks)
            _bands(axes, rows)
            if here:
                style.log_axis(axes.xaxis, [value.value for gain in here
                                            for value in (gain.time, gain.without)])
            axes.set_xlabel("ns per get")
    first = panels[0][0]
    first.set_ylim(len(rows) + 0.6, 0.4)
    first.yaxis.set_major_locator(ticker.FixedLocator(range(1, len(rows) + 1)))
    first.yaxis.set_major_formatter(ticker.FixedFormatter(_row_names(rows, engines)))
    grey = style.page().grey
    handles = [lines.Line2D([], [], linestyle="none", label=style.printable(engine),
                            **style.marker_options(style.engine_look(
                                style.Look(grey, "o"), gets.ENGINES.index(engine))))
               for engine in engines]
    handles.append(lines.Line2D([], [], linestyle="none", label="without filters",
                                **style.marker_options(_without_look())))
    handles.append(style.note_handle("number: how many times as long a get takes without filters"))
    points = _select(run)
    style.finish(
        figure, run, TITLE,
        f"medians of gets; {style.counts(points['keys'])} {style.keys_text(points)}; "
        + "; ".join(f"{engine}: {_setting_text(points, engine)}" for engine in engines),
        handles=handles, caption=(
            "Medians with their intervals, and the ratio of the two. Direct reads go to the device "
            "for every block; page cache: everything was read once before. Without filters every "
            "file whose range holds the key is read. Parameters closest to "
            f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key."))
    return figure


def _setting_text(points, engine):
    row = points[points["workload"] == engine].iloc[0]
    knobs = {name: value for name, value in json.loads(row["knobs"]).items()
             if name in ("shape", "files", "value_bytes")}
    return load.params_label(knobs)


def _without_look():
    return style.Look(style.page().grey, "|")


def _row_names(rows, engines):
    """The filters, with variant and engine where there are several."""
    share = _NAME_SHARE if style.page().is_narrow else _NAME_SHARE_ABREAST
    points = share * 72 * style.page().width_inches
    characters = int(points / (0.6 * matplotlib.rcParams["ytick.labelsize"]))
    names = []
    for engine, name, variant in rows:
        variants = {other[2] for other in rows if other[:2] == (engine, name)}
        text = f"{name}, {variant}" if len(variants) > 1 else name
        end = f" ({engine.removesuffix('_get')})" if len(engines) > 1 else ""
        names.append(style.printable(text, characters - len(end)) + style.printable(end))
    return names


def _bands(axes, rows):
    """What belongs to every second engine lies on a band."""
    engines = list(dict.fromkeys(row[0] for row in rows))
    for engine in engines[1::2]:
        places = [1 + index for index, row in enumerate(rows) if row[0] == engine]
        axes.axhspan(places[0] - 0.5, places[-1] + 0.5, color=style.page().band, linewidth=0,
                     zorder=0)


def _draw_gain(axes, gain, place, looks):
    page = style.page()
    axes.plot([gain.time.value, gain.without.value], [place, place], color=page.light_grey,
              linewidth=page.line, zorder=1, gid=f"gain:{gain.filter}:{gain.variant}")
    look = style.engine_look(looks[gain.filter, gain.variant], gets.ENGINES.index(gain.engine))
    name = f"{gain.filter}:{gain.variant}" + (
        "" if gain.engine == gets.OWN else f":{gain.engine}")
    for value, its_look, gid in ((gain.without, _without_look(), "floor:always_maybe:"),
                                 (gain.time, look, f"measured:{name}")):
        ends = [[0 if math.isnan(value.low) else max(0, value.value - value.low)],
                [0 if math.isnan(value.high) else max(0, value.high - value.value)]]
        thin = 0.8 * page.line
        line, _, _ = axes.errorbar([value.value], [place], xerr=ends, linestyle="none",
                                   elinewidth=thin, capthick=thin, zorder=3,
                                   **style.marker_options(its_look))
        line.set_gid(gid)
    axes.annotate(f"{headline.number(gain.ratio.value, 2)}", (1, place),
                  xycoords=axes.get_yaxis_transform(), xytext=(3, 0), textcoords="offset points",
                  va="center", ha="left", fontsize=page.small, annotation_clip=False,
                  gid=f"ratio:{name}")
