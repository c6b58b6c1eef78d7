"""How every figure looks: colours, markers, sizes, fonts, ticks, legend, footer, on every page.

A page (theme and width) is one value; on(page) chooses it, page() is asked for it.

Only matplotlib's own fonts are used and a user's matplotlibrc is not, so that the same run gives
the same figure everywhere. Figures are made without pyplot: nothing that needs a display.
"""

import contextlib
import contextvars
import dataclasses
import functools
import hashlib
import math
import os
import re
import textwrap
import unicodedata
from typing import NamedTuple

import matplotlib
import numpy

matplotlib.use("Agg")

from matplotlib import figure as mpl_figure  # noqa: E402
from matplotlib import ft2font, layout_engine, lines, text as mpl_text, ticker  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.backends.backend_pgf import FigureCanvasPgf  # noqa: E402

from plots import selection, tex  # noqa: E402

MAX_LABEL = 64  # characters of a name in a legend; what is longer is cut
THEMES = ("screen", "paper", "slides", "dark")
WIDTHS = {"column": 3.3, "text": 7.0, "screen": 7.4}  # inches; a paper's column and its text

# Text in a picture is DejaVu, which matplotlib brings along; nothing else is looked for.
_FONTS = {"serif": ("DejaVu Serif", "DejaVuSerif.ttf", "dejavuserif"),
          "sans-serif": ("DejaVu Sans", "DejaVuSans.ttf", "dejavusans")}
_MARGIN_INCHES = 0.08
# Of the height that a module asks for, what title, subtitle and footer take on a titled page.
_CHROME_INCHES = 0.85
# Where a panel has a narrow page for itself it is wider than one of several abreast, and lower.
_NARROW_HEIGHT, _STACKED_HEIGHT = 0.72, 0.62
_LINE_CHARACTERS, _FEWEST_CHARACTERS = 34, 14  # of a line in a legend
# A legend that is wider than this share of a wide page, or leaves a panel less than so much, goes
# below.
_LEGEND_SHARE, _PANEL_EMS = 0.42, 14.5


@dataclasses.dataclass(frozen=True)
class Page:
    """What a figure is drawn for. All that differs between themes and widths is here: functions of
    this module and figures ask page() for it. A filter's look is not: it is the same on all."""

    theme: str
    width_inches: float
    family: str = "sans-serif"  # or serif
    size: float = 8.0           # of text, in points; the sizes below follow from it
    line: float = 1.0           # scales the widths of lines and the sizes of markers
    is_titled: bool = True      # title and footer in the picture, otherwise in its caption only
    dpi: int = 200
    background: str = "#ffffff"
    ink: str = "#000000"        # text, axes
    grey: str = "#6b6b6b"       # what explains: notes, bounds
    light_grey: str = "#b4b4b4"  # what lies behind: marks of caches, the Pareto front
    grid: str = "#e4e4e4"
    band: str = "#f3f3f3"       # every other row of a figure with named rows
    floor: str = "#222222"      # the line of touch_lines
    tex: bool = False           # LaTeX sets the text (PGF)
    is_sketch: bool = False     # only to see what a figure would show: nothing is laid out

    @property
    def small(self):
        """Text size of notes inside a panel."""
        return self._points(6.5 / 8)

    def _points(self, share):
        # LaTeX's own fonts come in whole sizes.
        return round(self.size * share) if self.tex else self.size * share

    @property
    def is_narrow(self):
        """Panels stack, and the legend is below them."""
        return self.width_inches < 5

    def rc(self):
        """matplotlib's parameters, on top of its defaults."""
        font, _, mathtext = _FONTS[self.family]
        line, size, text, ticks = self.line, *map(self._points, (1, 8.5 / 8, 7.5 / 8))
        return {
            "font.family": [self.family], f"font.{self.family}": [font],
            "mathtext.fontset": mathtext, "font.size": size,
            "axes.titlesize": text, "axes.labelsize": text, "axes.linewidth": 0.7 * line,
            "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
            "axes.grid": True, "axes.grid.which": "major", "grid.color": self.grid,
            "grid.linewidth": 0.6 * line, "xtick.labelsize": ticks, "ytick.labelsize": ticks,
            "xtick.major.width": 0.7 * line, "ytick.major.width": 0.7 * line,
            "xtick.minor.size": 1.8, "ytick.minor.size": 1.8, "legend.fontsize": ticks,
            "legend.frameon": False, "legend.handlelength": 2.6, "legend.labelspacing": 0.45,
            "legend.columnspacing": 1.2, "lines.linewidth": 1.3 * line,
            "lines.markersize": 5.0 * line, "lines.markeredgewidth": line,
            "errorbar.capsize": 2.0 * line, "text.color": self.ink, "axes.labelcolor": self.ink,
            "axes.edgecolor": self.ink, "xtick.color": self.ink, "ytick.color": self.ink,
            "axes.facecolor": self.background, "figure.facecolor": self.background,
            "savefig.facecolor": "auto", "pdf.fonttype": 42, "ps.fonttype": 42,
            "svg.fonttype": "path", "svg.hashsalt": "filterbench", "savefig.dpi": self.dpi,
            "figure.dpi": self.dpi, "pgf.texsystem": "pdflatex", "pgf.rcfonts": False,
            "pgf.preamble": tex.preamble(),
        }


_DARK = {"background": "#14171c", "ink": "#e6e6e6", "grey": "#a8a8a8", "light_grey": "#5f6670",
         "grid": "#2b3038", "band": "#1d2128", "floor": "#e0e0e0"}
_THEMES = {
    "screen": Page("screen", WIDTHS["screen"]),
    "paper": Page("paper", WIDTHS["column"], family="serif", size=7.0, line=0.85, is_titled=False,
                  dpi=300),
    "slides": Page("slides", WIDTHS["text"], size=11.0, line=1.4, is_titled=False, dpi=300),
    "dark": Page("dark", WIDTHS["screen"], **_DARK),
}


def make_page(theme="screen", width=None, for_tex=False):
    """The page of a theme (THEMES), of its own width or of another one (WIDTHS). `for_tex`: LaTeX
    will set its text, in the fonts of the document, which are smaller at the same nominal size."""
    chosen = _THEMES[theme]
    if width is not None:
        chosen = dataclasses.replace(chosen, width_inches=WIDTHS[width])
    if for_tex:
        size = chosen.size * (8 / 7 if chosen.family == "serif" else 1)
        chosen = dataclasses.replace(chosen, tex=True, size=size)
    return chosen


_page = contextvars.ContextVar("page", default=_THEMES["screen"])
matplotlib.rcdefaults()
matplotlib.rcParams.update(_THEMES["screen"].rc())


def page():
    """The page that is being drawn on."""
    return _page.get()


@contextlib.contextmanager
def on(chosen):
    """Figures that are made, and written, inside are for the page `chosen`."""
    token = _page.set(chosen)
    try:
        with matplotlib.rc_context(chosen.rc()):
            yield chosen
    finally:
        _page.reset(token)


class Caption(NamedTuple):
    """What is to be said about a figure, whether or not the picture itself says it."""

    title: str
    conditions: str  # what was measured how, as a list of words
    reading: str     # whole sentences: what is drawn, and how to read it
    runs: list


class Figure(mpl_figure.Figure):
    """A figure that knows its page, where on it each panel stands and, once finished, its
    caption."""

    page = caption = None
    placed = ()              # panels in the rows and columns of the page
    content_inches = 0.0     # height of all panels with their labels


class Look(NamedTuple):
    colour: str
    marker: str
    linestyle: object = "-"
    fill: str = "full"


# Okabe and Ito 2008 ("Color Universal Design") for the filters that every run has.
_KNOWN = {
    "classic_bloom": ("#0072B2", "o"),
    "km_bloom": ("#E69F00", "s"),
    "blocked_bloom": ("#D55E00", "^"),
    "ribbon": ("#009E73", "D"),
    "cuckoo": ("#CC79A7", "v"),
    "hash_only": ("#8a8a8a", "None"),
    "touch_lines": ("#222222", "None"),
    "always_maybe": ("#8a8a8a", "|"),
}
# For all others: what remains of Okabe and Ito, then colours after Paul Tol's "muted" and
# ColorBrewer's "Dark2" that differ from those above; the darkest are lighter than there, since they
# are to be seen on a dark page too.
_POOL = (("#56B4E9", "P"), ("#6A51C7", "X"), ("#999933", "p"), ("#AA3377", "*"), ("#44AA99", "h"),
         ("#DDCC77", "<"), ("#CC6677", ">"), ("#8A6347", "d"), ("#A6761D", "8"), ("#9C8CF5", "H"),
         ("#E7298A", (4, 1, 45)), ("#B0C400", (3, 0, 180)))
# The catalogue's other filters in the order of their places in the pool, so that they look the same
# in figures of different runs; the first twelve are those that most specs have. A filter that is
# not here gets its place from its name.
_ROSTER = (
    "split_block", "xor", "binary_fuse", "quotient", "vector_quotient", "morton", "prefix_filter",
    "register_blocked", "bumped_ribbon", "semi_sorted_cuckoo", "windowed_cuckoo", "split_block_512",
    "cache_sectorized", "two_choice_blocked", "rocksdb_bloom", "counting_bloom", "counting_blocked",
    "scalable_bloom", "taffy_block", "prefix_bloom", "system_bloom", "leveldb_bloom",
    "rocksdb_legacy_bloom", "rocksdb_dynamic_bloom", "impala_bloom", "acero_bloom", "leveldb_peer",
    "libbloom_peer")
_DASHES = ("-", (0, (4.5, 1.6)), (0, (1.2, 1.4)), (0, (5, 1.5, 1.2, 1.5)))
# How markers are filled, by variant; every second time that a place of the pool comes back, so that
# a filter differs from that of the time before without its colour too.
_FILLS = (("full", "open", "left", "right"), ("bottom", "top"))


_BASELINE_STYLES = {"hash_only": ("-", (0, (6, 2))), "always_maybe": ((0, (1, 2)),),
                    "touch_lines": ((0, (6, 2)), (0, (2, 1.5)), (0, (6, 1.5, 1, 1.5)), "-")}


def _pool_look(place, turn):
    """Past the pool's end a colour comes back, but with another marker, and filled otherwise."""
    return Look(_POOL[place][0], _POOL[(place + 5 * turn) % len(_POOL)][1],
                fill=_FILLS[turn % 2][0])


def filter_looks(names):
    """Colour and marker of each filter in `names`. Filters of the catalogue have fixed ones.
    Another filter's place in the pool follows from its name alone; only where two unknown filters
    want the same place does the later name move on, so that no two of them look alike."""
    looks = {name: Look(*_KNOWN[name]) for name in names if name in _KNOWN}
    looks |= {name: _pool_look(*divmod(place, len(_POOL))[::-1])
              for place, name in enumerate(_ROSTER) if name in set(names)}
    if "touch_lines" in looks:  # nearly as dark as ink, so no colour for a dark page
        looks["touch_lines"] = looks["touch_lines"]._replace(colour=page().floor)
    taken = set()
    for number, name in enumerate(sorted(set(names) - set(looks))):
        turn, position = divmod(number, len(_POOL))
        if position == 0:
            taken.clear()
        wanted = int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:4], "big")
        place = wanted % len(_POOL)
        while place in taken:
            place = (place + 1) % len(_POOL)
        taken.add(place)
        looks[name] = _pool_look(place, turn)
    return looks


def series_looks(points):
    """The look of each (filter, variant) of a run: the filter's colour and marker everywhere, the
    variants told apart by line style and by how the marker is filled."""
    by_filter = filter_looks(sorted(points["filter"].unique()))
    looks = {}
    for name, group in points.groupby("filter"):
        fills = next(fills for fills in _FILLS if fills[0] == by_filter[name].fill)
        for index, variant in enumerate(sorted(group["variant"].unique(), key=selection.natural)):
            linestyle, fill = _DASHES[index % len(_DASHES)], fills[index % len(fills)]
            if name in selection.BASELINES:
                linestyle = _BASELINE_STYLES[name][index % len(_BASELINE_STYLES[name])]
            looks[name, variant] = by_filter[name]._replace(linestyle=linestyle, fill=fill)
    return looks


_ENGINE_FILLS = ((None, "top", "bottom"), (None, "left", "right"))


def engine_look(look, place):
    """The look of a filter inside of one of several applications by its place among them: the first
    has the filter's own, the others fill its marker otherwise."""
    turn = look.fill in _FILLS[1]
    return look._replace(fill=_ENGINE_FILLS[turn][place] or look.fill)


# Stars of the same nominal size look smaller, diamonds larger.
_MARKER_SCALE = {"*": 1.45, (4, 1, 45): 1.5, (3, 0, 180): 1.1, "d": 1.15, "D": 0.92}


def marker_options(look, scale=1.0):
    """Options of matplotlib's Line2D. Open markers are smaller, so that the variant below, often in
    the same place, stays seen."""
    is_open, here = look.fill == "open", page()
    return {"marker": look.marker, "color": look.colour, "markeredgecolor": look.colour,
            "fillstyle": "full" if is_open else look.fill, "markerfacecoloralt": here.background,
            "markerfacecolor": here.background if is_open else look.colour,
            "markersize": 5.0 * here.line * (0.78 if is_open else 1)
                          * _MARKER_SCALE.get(look.marker, 1) * scale}


def printable(text, limit=None):
    """`text` in characters that the page's font has; others by their code point, so that two names
    stay two names. What would start a formula, or is a command of LaTeX, is escaped. `limit` is how
    long it may be, in characters."""
    here = page()
    text = "".join(c if _has(here, c) else f"U+{ord(c):04X}" for c in text)
    if limit is not None and len(text) > limit:
        text = text[:limit - 1] + "\u2026"
    return tex.escape(text) if here.tex else text.replace("$", r"\$")


def _has(here, character):
    if here.tex:
        return character.isascii() and character.isprintable() or character in tex.CHARACTERS
    return (ord(character) in _font_characters(_FONTS[here.family][1])
            and unicodedata.category(character)[0] != "C")


@functools.lru_cache
def _font_characters(file):
    path = os.path.join(matplotlib.get_data_path(), "fonts", "ttf", file)
    return frozenset(ft2font.FT2Font(path).get_charmap())


def series_label(name, variant):
    # A legend drops labels that begin with an underscore; a word joiner in front keeps them.
    text = printable(f"{name}, {variant}" if variant else name, MAX_LABEL)
    return "\u200a" + text if text.startswith("_") else text


def new_figure(height_inches, rows=1, columns=1, *, sharex=False, sharey=False, gridspec_kw=None):
    """A figure without pyplot, and its panels as a 2D array of `rows` times `columns`.

    On a narrow page the columns stack, whatever the array says, so a figure says only how many
    panels it has, what they share ("row", "col" or all) and, in gridspec_kw, the ratios of their
    heights. Labels of an axis that several panels share are drawn once, at the outer panels, and
    may be set on any of them. `height_inches` is that of the whole figure on the screen; on other
    pages it follows."""
    here, ratios = page(), gridspec_kw or {}
    stacked = here.is_narrow and columns > 1
    # Panels that share an axis stay neighbours.
    order = [(row, column) for row in range(rows) for column in range(columns)]
    if stacked and sharex == "col":
        order.sort(key=lambda place: place[::-1])
    if stacked:
        shape = (rows * columns, 1)
        if "height_ratios" in ratios:
            ratios = {"height_ratios": [ratios["height_ratios"][row] for row, _ in order]}
        else:
            ratios = {}
    else:
        shape = (rows, columns)
    content = max(height_inches - _CHROME_INCHES, 0.6) * max(1.0, here.size / 9)
    if here.is_narrow:
        content *= _STACKED_HEIGHT * columns if stacked else _NARROW_HEIGHT
    figure = Figure(figsize=(here.width_inches, content))
    (FigureCanvasPgf if here.tex else FigureCanvasAgg)(figure)
    figure.page, figure.content_inches = here, content
    figure.set_layout_engine("constrained")
    figure.placed = numpy.empty(shape, dtype=object)
    panels = numpy.empty((rows, columns), dtype=object)
    grid = figure.add_gridspec(*shape, **ratios)
    for index, (row, column) in enumerate(order):
        place = divmod(index, shape[1])
        panels[row, column] = figure.placed[place] = figure.add_subplot(
            grid[place], sharex=_leader(panels, sharex, row, column),
            sharey=_leader(panels, sharey, row, column))
    return figure, panels


def _leader(panels, sharing, row, column):
    """The panel whose axis the one at (row, column) takes, or None."""
    if sharing in (False, "none"):
        return None
    return panels[row if sharing == "row" else 0, column if sharing == "col" else 0]


def errorbar(axes, x, centre, low, high, look, gid, line=True, scale=1.0, **options):
    """Values with their intervals, as arrays; an end that is NaN (unknown) is not drawn. The line
    through the values, and only it, gets the name `gid`."""
    centre = numpy.asarray(centre, dtype=float)
    below = numpy.nan_to_num(centre - numpy.asarray(low, dtype=float)).clip(min=0)
    beyond = numpy.nan_to_num(numpy.asarray(high, dtype=float) - centre).clip(min=0)
    thin = 0.8 * page().line
    values, _, _ = axes.errorbar(x, centre, yerr=[below, beyond], elinewidth=thin, capthick=thin,
                                 linestyle=look.linestyle if line else "none",
                                 **(marker_options(look, scale) | options))
    values.set_gid(gid)


def times(axes, x, rows, look, **options):
    """The medians of the frame `rows` with their intervals."""
    errorbar(axes, x, rows["ns_per_op"], rows["ns_per_op_low"], rows["ns_per_op_high"], look,
             **options)


def upper_limits(axes, x, limits, look, gid):
    """Values of which is known only that they lie below `limits`: small markers with an arrow."""
    values, _, _ = axes.errorbar(x, limits, yerr=0.55 * limits, uplims=True, linestyle="none",
                                 elinewidth=0.8 * page().line, capsize=2.5 * page().line, zorder=3,
                                 **marker_options(look, scale=0.64))
    values.set_gid(gid)


def series_handle(name, variant, look, line=True):
    return lines.Line2D([], [], linestyle=look.linestyle if line else "none",
                        label=series_label(name, variant), **marker_options(look))


def note_handle(text):
    """A line of text in a legend."""
    return lines.Line2D([], [], linestyle="none", label="\n".join(
        printable(line, MAX_LABEL + 8) for line in text.split("\n")))


def baseline_options(look):
    """The floor is a thin line without markers, so that no filter is mistaken for it."""
    return {"color": look.colour, "linestyle": look.linestyle,
            "linewidth": page().line}


def floor_line(axes, x, y, look, alone, gid):
    """A baseline's medians `y` over `x`; a point without neighbours becomes a level line over the
    range `alone`, since a floor has no marker."""
    x, y = list(x), list(y)
    if len(x) == 1:
        x, y = list(alone), y * 2
    axes.plot(x, y, zorder=2, gid=gid, **baseline_options(look))


def baseline_handle(name, variant, look):
    return lines.Line2D([], [], label=series_label(name, variant), **baseline_options(look))


def _nice(value, upward):
    """The next number of 1, 2, 5 times a power of ten from `value`."""
    exponent = math.floor(math.log10(value))
    candidates = [m * 10.0 ** e for e in range(exponent - 1, exponent + 2) for m in (1, 2, 5)]
    if upward:
        return min(c for c in candidates if c >= value * (1 - 1e-9))
    return max(c for c in candidates if c <= value * (1 + 1e-9))


# How far intervals may stretch an axis beyond the values: what a disturbed machine measured must
# not press all filters into a corner. A bar that is longer leaves the axes.
_STRETCH = 2.0


def log_axis(axis, values, ends=()):
    """A logarithmic axis that holds `values`, and the ends of their intervals within reason, with
    air around them; it ends on 1, 2 or 5 times a power of ten, and has numbers at its ticks even if
    all values are alike."""
    values = [v for v in values if math.isfinite(v) and v > 0]
    least, most = min(values) / _STRETCH, max(values) * _STRETCH
    values += [min(max(end, least), most) for end in ends if math.isfinite(end)]
    low, high = _nice(min(values) * 0.92, False), _nice(max(values) * 1.08, True)
    _set_scale(axis, "log")
    _set_limits(axis, low, high)
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades <= 3.2 else (1,)
    axis.set_major_locator(ticker.FixedLocator(
        [m * 10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
         for m in steps if low * 0.999 <= m * 10.0 ** e <= high * 1.001]))
    powers = steps == (1,) or low < 1e-4 or high >= 1e5
    axis.set_major_formatter(ticker.FuncFormatter(
        lambda value, _: power_of_ten(value) if powers else f"{value:g}"))
    axis.set_minor_locator(ticker.LogLocator(subs=range(2, 10), numticks=99))
    axis.set_minor_formatter(ticker.NullFormatter())


def power_of_ten(value):
    exponent = math.floor(math.log10(value) + 1e-9)
    digit = round(value / 10.0 ** exponent, 3)
    return (f"${digit:g}" + r"\times " if digit != 1 else "$") + f"10^{{{exponent}}}$"


_SUPERSCRIPTS = str.maketrans("0123456789", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076"
                              "\u2077\u2078\u2079")


def count(value):
    """A number of keys, exact and short: a power of ten, a small multiple of one, or all digits."""
    value = int(value)
    digits = str(value)
    zeros = len(digits) - len(digits.rstrip("0"))
    if zeros < 3 or len(digits) - zeros > 2:
        return digits
    power = "10" + str(zeros).translate(_SUPERSCRIPTS)
    return power if digits[:-zeros] == "1" else f"{digits[:-zeros]}\u00d7{power}"


def counts(values):
    values = sorted(set(values))
    if len(values) > 2:
        return f"{count(values[0])} to {count(values[-1])}"
    return " and ".join(count(v) for v in values)


def bytes_label(value):
    for factor, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= factor:
            return f"{value / factor:.3g} {name}"
    return f"{value:g} B"


def bytes_axis(axis, low, high, most=8):
    """A logarithmic axis of bytes with ticks at powers of two, at most `most` of them."""
    _set_scale(axis, "log")
    _set_limits(axis, low, high)
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    step = max(1, math.ceil((last - first + 1) / most))
    step = step if step in (1, 2) else 2 * math.ceil(step / 2)
    ticks = [e for e in range(first, last + 1) if e % step == 0]
    axis.set_major_locator(ticker.FixedLocator([2.0 ** e for e in ticks]))
    axis.set_major_formatter(ticker.FuncFormatter(lambda v, _: bytes_label(v)))
    axis.set_minor_locator(ticker.NullLocator())


def _set_scale(axis, scale):
    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)(scale)


def _set_limits(axis, low, high):
    (axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim)(low, high)


def finish(figure, run, title, subtitle, caption, handles):
    """Legend, labels, on titled pages the title and a footer with how to read the figure, the run
    and the CPU; then places the panels in what room remains, so that nothing overlaps and no text
    leaves the page. What the picture does not say stands in figure.caption."""
    here = figure.page
    figure.caption = Caption(title, subtitle, caption, list(getattr(run, "runs", [run])))
    if here.is_sketch:
        return
    _share_labels(figure)
    legend, is_below = _legend(figure, handles)
    legend_width, legend_height = _inches(figure, legend)
    head, foot = _head_and_foot(figure) if here.is_titled else ([], [])
    inch, width, margin = 1 / 72, here.width_inches, _MARGIN_INCHES
    top = sum(line.inches for line in head) + (0.06 if head else 0)
    bottom = sum(line.inches for line in foot) + (0.06 if foot else 0)
    if is_below:
        bottom += legend_height + margin
        height = top + figure.content_inches + bottom
        right = margin
        corner = (margin / width, (bottom - margin / 2) / height)
    else:
        height = max(top + figure.content_inches + bottom, legend_height + top + bottom + 0.15)
        right = legend_width + 3 * margin
        corner = ((width - legend_width - margin) / width, (height - top - 0.06) / height)
    figure.set_size_inches(width, height)
    legend.set_bbox_to_anchor(corner, transform=figure.transFigure)
    y = height - 0.06
    for line in head:
        figure.text(margin / width, y / height, line.text, va="top", in_layout=False, **line.font)
        y -= line.inches
    y = sum(line.inches for line in foot)
    for line in foot:
        y -= line.inches
        figure.text(margin / width, (y + 0.02) / height, line.text, va="bottom", in_layout=False,
                    **line.font)
    figure.set_layout_engine(layout_engine.ConstrainedLayoutEngine(
        rect=(margin / width, bottom / height, (width - right - margin) / width,
              (height - bottom - top) / height),
        w_pad=2.5 * inch, h_pad=3 * inch, wspace=0.03, hspace=0.05))
    # The layout is settled here, once, instead of anew for every file that is written. Labels that
    # become several lines, or shorter ones, change it.
    for _ in range(3):
        figure.get_layout_engine().execute(figure)
        changed = [_fit(figure, axes) for axes in figure.axes]
        if not any(changed):
            break
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")


def _inches(figure, artist):
    extent = artist.get_window_extent(figure.canvas.get_renderer())
    return extent.width / figure.dpi, extent.height / figure.dpi


def _share_labels(figure):
    """Panels that share an axis have one label of it; names and numbers of a shared axis stand at
    the outer panels only."""
    panels = list(figure.placed.flat)
    for name in ("x", "y"):
        def axis(panel, name=name):
            return panel.xaxis if name == "x" else panel.yaxis
        group = panels[0].get_shared_x_axes() if name == "x" else panels[0].get_shared_y_axes()
        labels = {panel: axis(panel).get_label_text() for panel in panels}
        for place, panel in numpy.ndenumerate(figure.placed):
            outward = _neighbour(figure.placed, place, name)
            if outward is not None and group.joined(panel, outward):
                axis(panel).set_label_text("")
                axis(panel).set_tick_params(which="both", **(
                    {"labelbottom": False} if name == "x" else {"labelleft": False}))
            elif not labels[panel]:
                axis(panel).set_label_text(next((labels[other] for other in panels if labels[other]
                                                 and group.joined(panel, other)), ""))


def _neighbour(placed, place, name):
    """The panel on the side on which the numbers of the axis stand, or None."""
    row, column = place
    if name == "x":
        return placed[row + 1, column] if row + 1 < len(placed) else None
    return placed[row, column - 1] if column else None


def _legend(figure, handles):
    """(the legend, whether it is below the panels): to their right where that leaves them enough,
    otherwise below, in the number of columns that makes it lowest."""
    here = figure.page
    room = here.width_inches - 2 * _MARGIN_INCHES
    size = matplotlib.rcParams["legend.fontsize"]
    labels = [handle.get_label() for handle in handles]

    def make(columns, characters, fontsize=size):
        for legend in list(figure.legends):
            legend.remove()
        for handle, label in zip(handles, labels):
            handle.set_label(_wrapped_label(label, characters))
        legend = figure.legend(handles=handles, loc="upper left", borderaxespad=0, borderpad=0,
                               bbox_to_anchor=(0.5, 0.5), ncols=columns, fontsize=fontsize)
        legend.set_in_layout(False)
        return legend, *_inches(figure, legend)

    if not here.is_narrow:
        legend, width, _ = make(1, _LINE_CHARACTERS)
        left = (here.width_inches - width) / figure.placed.shape[1]
        if width <= _LEGEND_SHARE * here.width_inches and left >= _PANEL_EMS * size / 72:
            return legend, False
    choices = []
    for columns in range(1, 5):
        text_points = 72 * room / columns - 4.6 * size  # beside the handle and between columns
        characters = int(text_points / ((0.48 if here.tex else 0.56) * size))
        if columns > 1 and (characters < _FEWEST_CHARACTERS or columns > len(handles)):
            break
        _, width, height = make(columns, characters)
        if width <= room:
            choices.append((height, columns, characters))
    if choices:
        return make(*min(choices)[1:])[0], True
    legend, width, _ = make(1, characters)
    return make(1, characters, size * min(1, 0.99 * room / width))[0], True


def _wrapped_label(text, characters):
    """`text` in lines of about that many characters, broken after blanks and underscores."""
    lines = [""]
    for piece in re.findall(r"\n|[^ _\n]+[ _]*|[ _]+", text):
        if piece == "\n" or lines[-1] and len(lines[-1]) + len(piece.rstrip()) > characters:
            lines.append("")
        lines[-1] += piece.strip("\n")
    return "\n".join(line.rstrip(" ") for line in lines)


class _Line(NamedTuple):
    text: str
    font: dict
    inches: float


def _head_and_foot(figure):
    """The lines of title and subtitle, and of the footer."""
    here, caption = figure.page, figure.caption
    note = {"fontsize": here.small, "color": here.grey}
    head = _lines(figure, caption.title, {"fontsize": here.size * 10 / 8, "weight": "bold"}, 1.44)
    if caption.conditions:
        head += _lines(figure, caption.conditions, {"fontsize": here.size, "color": here.grey}, 1.6)
    foot = _lines(figure, caption.reading, note, 1.5)
    for run in caption.runs:
        foot += _lines(figure, f"{'run' if run.complete else 'INCOMPLETE run'} {run.name} on "
                       f"{run.cpu_brand or 'unknown CPU'}", note, 1.5)
    return head, foot


def _lines(figure, text, font, spacing):
    room = figure.page.width_inches - 2 * _MARGIN_INCHES
    return [_Line(line, font, spacing * font["fontsize"] / 72)
            for line in _wrap(figure, printable(text), room, font)]


def _wrap(figure, text, room_inches, font):
    """`text` in lines that are no longer than that."""
    probe = figure.text(0, 0, "", in_layout=False, **font)

    def width(line):
        probe.set_text(line)
        return _inches(figure, probe)[0]

    lines = [line for line in text.split("\n") if line]
    widest = max((width(line) / len(line) for line in lines), default=1)
    characters = max(4, int(1.1 * room_inches / widest)) if widest > 0 else MAX_LABEL
    while any(width(line) > room_inches for line in lines):
        lines = [part for line in text.split("\n") for part in textwrap.wrap(line, characters)]
        if characters <= 4:
            break
        characters = min(characters - 1, int(0.96 * characters))
    probe.remove()
    return lines


def _fit(figure, axes):
    """Wraps what is longer than its panel, and drops numbers that would touch; whether it did."""
    renderer = figure.canvas.get_renderer()
    axes.get_tightbbox(renderer)  # puts ticks in their places
    box = axes.get_window_extent(renderer)
    width, height = box.width / figure.dpi, box.height / figure.dpi
    # A title begins at its panel, and on a narrow page nothing is to the right of it.
    beyond = (figure.bbox.x1 - box.x1) / figure.dpi if figure.page.is_narrow else 0
    titles = [(text, width + beyond, "width") for text in axes.get_children()
              if isinstance(text, mpl_text.Text) and text not in axes.texts]
    changed = False
    for label, room, length in (*titles, (axes.xaxis.label, width, "width"),
                                (axes.yaxis.label, height, "height")):
        extent = label.get_window_extent(renderer)
        if label.get_text() and getattr(extent, length) > room * figure.dpi:
            font = {"fontsize": label.get_fontsize(), "weight": label.get_weight()}
            text = "\n".join(_wrap(figure, label.get_text().replace("\n", " "), room, font))
            changed |= text != label.get_text()
            label.set_text(text)
    _shorten_cache_labels(axes, renderer)
    _thin(figure, axes.xaxis, "x0", "x1")
    _thin(figure, axes.yaxis, "y0", "y1")
    return changed


def _shorten_cache_labels(axes, renderer):
    """Leaves out the caches' sizes where they would touch."""
    labels = [text for text in axes.texts if text.get_gid() == _CACHE_LABEL]
    boxes = sorted((text.get_window_extent(renderer) for text in labels), key=lambda box: box.x0)
    if any(a.x1 + 1 > b.x0 for a, b in zip(boxes, boxes[1:])):
        for label in labels:
            label.set_text(label.get_text().split("\n")[0])


def _thin(figure, axis, begin, end):
    """Leaves out numbers of an axis that would touch: of a logarithmic one those between powers of
    ten first, then all but every second, third, ... Names are never left out."""
    if axis.get_scale() != "log" and not isinstance(axis.get_major_formatter(),
                                                    ticker.ScalarFormatter):
        return
    low, high = sorted(axis.get_view_interval())
    renderer, gap = figure.canvas.get_renderer(), 0.3 * figure.page.size / 72 * figure.dpi
    places, boxes = [], []
    for place, label in zip(axis.get_majorticklocs(), axis.get_ticklabels()):
        if low * (1 - 1e-9) <= place <= high * (1 + 1e-9) and label.get_text() and (
                label.get_visible()):
            places.append(place)
            boxes.append(label.get_window_extent(renderer))

    def touch(kept):
        kept = sorted((boxes[index] for index in kept), key=lambda box: getattr(box, begin))
        return any(getattr(a, end) + gap > getattr(b, begin) for a, b in zip(kept, kept[1:]))

    all_of_them = range(len(places))
    choices = [all_of_them]
    if axis.get_scale() == "log":
        tens = [i for i in all_of_them
                if abs(math.log10(places[i]) - round(math.log10(places[i]))) < 1e-6]
        if len(tens) >= 2:
            choices.append(tens)
    choices += [choices[-1][::step] for step in range(2, len(choices[-1]))]
    kept = next((choice for choice in choices if not touch(choice)), choices[-1])
    if len(kept) < len(places):
        axis.set_major_locator(ticker.FixedLocator([places[index] for index in kept]))


class _Together(NamedTuple):
    name: str
    machine: str
    cpu_brand: str
    runs: list


def together(runs):
    """What finish() asks of a run, of several."""
    return _Together(", ".join(run.name for run in runs), ", ".join(run.machine for run in runs),
                     ", ".join(run.cpu_brand or "unknown CPU" for run in runs),
                     list(runs))


THEORY_STYLES = ("-", (0, (5, 3)), (0, (1.5, 3)), (0, (5, 2, 1, 2)))


_CACHE_LABEL = "cache label"


def panel_title(axes, text, above_caches=False):
    """The title of a panel, which has room for the names of mark_caches() below it if told so."""
    axes.set_title(printable(text), loc="left",
                   pad=2.6 * page().small + 4 if above_caches else None)


def mark_caches(axes, caches, low_bytes, high_bytes):
    """A vertical line with a label above the axes at each size of a cache that holds data."""
    for level, kind, size in sorted({(c.level, c.type, c.size_bytes) for c in caches}):
        if kind.lower() == "instruction" or not low_bytes < size < high_bytes:
            continue
        axes.axvline(size, color=page().light_grey, linewidth=page().line,
                     linestyle=(0, (3, 2)), zorder=1, gid=f"cache:L{level}")
        axes.annotate(f"L{level}{'d' if kind.lower() == 'data' else ''}\n{bytes_label(size)}",
                      (size, 1), xycoords=("data", "axes fraction"), xytext=(0, 2),
                      textcoords="offset points", ha="center", va="bottom",
                      fontsize=page().small, color=page().grey, linespacing=1.1,
                      gid=_CACHE_LABEL)


def keys_axis(axis, values):
    """A logarithmic axis of key counts, at least two decades wide."""
    low, high = min(values), max(values)
    widen = max(1.5, 10 / math.sqrt(high / low))
    _set_scale(axis, "log")
    _set_limits(axis, max(low, 1) / widen, high * widen)
    axis.set_major_locator(ticker.LogLocator(numticks=12))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: power_of_ten(value)))
    axis.set_minor_formatter(ticker.NullFormatter())


def in_legend_order(handles):
    """Handles by (filter, variant): filters by name, then the floor."""
    return [handles[key] for key in sorted(handles, key=lambda key: (
        key[0] in selection.BASELINES, key[0], selection.natural(key[1])))]


def front_handle():
    return lines.Line2D([], [], color=page().light_grey, linewidth=3.5 * page().line,
                        label="Pareto front")


def keys_text(points):
    """Which keys the points of a plain-keys selection have, and what a lookup does to them."""
    return (f"{points['key_set'].iloc[0]} keys, {points['hashing'].iloc[0]}" if len(points) else "")


def targets_text(points):
    """Which target the points of a best-target selection ran on."""
    targets = sorted(set(points["target"]), key=selection.target_rank, reverse=True)
    return "target " + ", else ".join(targets)
