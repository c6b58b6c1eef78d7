"""How every figure looks: colours, markers, sizes, fonts, ticks, legend, footer, file metadata.

Only matplotlib's own fonts are used and a user's matplotlibrc is not, so that the same run gives
the same figure everywhere. Figures are made without pyplot: nothing that needs a display.
"""

import atexit
import hashlib
import math
import os
import shutil
import tempfile
import textwrap
import unicodedata
from typing import NamedTuple


def _give_matplotlib_a_directory():
    """matplotlib writes a font cache; without a home that can be written it would complain."""
    home = os.path.expanduser("~")
    if "MPLCONFIGDIR" in os.environ or (os.path.isdir(home) and os.access(home, os.W_OK)):
        return
    directory = tempfile.mkdtemp(prefix="filterbench-matplotlib-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.environ["MPLCONFIGDIR"] = directory


_give_matplotlib_a_directory()

import matplotlib  # noqa: E402  must come after the directory is set
import numpy  # noqa: E402

matplotlib.use("Agg")

from matplotlib import figure as mpl_figure  # noqa: E402
from matplotlib import ft2font, layout_engine, lines, ticker  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402

from plots import selection  # noqa: E402

WIDTH_INCHES = 7.4
DPI = 200
GREY = "#6b6b6b"
LIGHT_GREY = "#b4b4b4"
MAX_LABEL = 44
_CAPTION_CHARACTERS = 148  # what a line of the footer holds

RC = {
    "font.family": "DejaVu Sans", "font.size": 8.0, "mathtext.fontset": "dejavusans",
    "axes.titlesize": 8.5, "axes.labelsize": 8.5, "axes.linewidth": 0.7,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.grid": True, "axes.grid.which": "major", "grid.color": "#e4e4e4", "grid.linewidth": 0.6,
    "xtick.labelsize": 7.5, "ytick.labelsize": 7.5, "xtick.major.width": 0.7,
    "ytick.major.width": 0.7, "xtick.minor.size": 1.8, "ytick.minor.size": 1.8,
    "legend.fontsize": 7.5, "legend.frameon": False, "legend.handlelength": 2.6,
    "legend.labelspacing": 0.45, "lines.linewidth": 1.3, "lines.markersize": 5.0,
    "lines.markeredgewidth": 1.0, "errorbar.capsize": 2.0,
    "pdf.fonttype": 42, "ps.fonttype": 42, "savefig.dpi": DPI, "figure.dpi": DPI,
}
matplotlib.rcdefaults()
matplotlib.rcParams.update(RC)


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
}
# For all others: what remains of Okabe and Ito, then colours of Paul Tol's "muted" and of
# ColorBrewer's "Dark2" that differ from those above.
_POOL = (("#56B4E9", "P"), ("#332288", "X"), ("#999933", "p"), ("#882255", "*"), ("#44AA99", "h"),
         ("#DDCC77", "<"), ("#CC6677", ">"), ("#6F4E37", "d"), ("#A6761D", "8"), ("#7B68EE", "H"),
         ("#E7298A", (4, 1, 45)), ("#B0C400", (3, 0, 180)))
_VARIANTS = (("-", "full"), ((0, (4.5, 1.6)), "open"), ((0, (1.2, 1.4)), "left"))


_BASELINE_STYLES = {"hash_only": ("-", (0, (6, 2))),
                    "touch_lines": ((0, (6, 2)), (0, (2, 1.5)), (0, (6, 1.5, 1, 1.5)), "-")}


def filter_looks(names):
    """Colour and marker of each filter in `names`. Known filters have fixed ones. Another filter's
    place in the pool follows from its name alone; only where two unknown filters want the same
    place does the later name move on, so that no two filters of a run look alike."""
    looks = {name: Look(*_KNOWN[name]) for name in names if name in _KNOWN}
    taken = set()
    for number, name in enumerate(sorted(set(names) - set(_KNOWN))):
        turn, position = divmod(number, len(_POOL))
        if position == 0:
            taken.clear()
        wanted = int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:4], "big")
        place = wanted % len(_POOL)
        while place in taken:
            place = (place + 1) % len(_POOL)
        taken.add(place)
        # Past the pool's end a colour comes back, but with another marker.
        looks[name] = Look(_POOL[place][0], _POOL[(place + 5 * turn) % len(_POOL)][1])
    return looks


def series_looks(points):
    """The look of each (filter, variant) of a run: the filter's colour and marker everywhere, the
    variants told apart by line style and by how the marker is filled."""
    by_filter = filter_looks(sorted(points["filter"].unique()))
    looks = {}
    for name, group in points.groupby("filter"):
        for index, variant in enumerate(sorted(group["variant"].unique(), key=selection.natural)):
            linestyle, fill = _VARIANTS[index % len(_VARIANTS)]
            if name in selection.BASELINES:
                linestyle = _BASELINE_STYLES[name][index % len(_BASELINE_STYLES[name])]
            looks[name, variant] = by_filter[name]._replace(linestyle=linestyle, fill=fill)
    return looks


# Stars of the same nominal size look smaller, diamonds larger.
_MARKER_SCALE = {"*": 1.45, (4, 1, 45): 1.5, (3, 0, 180): 1.1, "d": 1.15, "D": 0.92}


def marker_options(look, scale=1.0):
    """Options of matplotlib's Line2D. Open markers are smaller, so that the variant below, often in
    the same place, stays seen."""
    is_open = look.fill == "open"
    return {"marker": look.marker, "color": look.colour, "markeredgecolor": look.colour,
            "fillstyle": "full" if is_open else look.fill, "markerfacecoloralt": "white",
            "markerfacecolor": "white" if is_open else look.colour,
            "markersize": RC["lines.markersize"] * (0.78 if is_open else 1)
                          * _MARKER_SCALE.get(look.marker, 1) * scale}


def printable(text, limit=None):
    """`text` in characters that the bundled font has; others by their code point, so that two names
    stay two names. Dollar signs would start a formula."""
    characters = _font_characters()
    result = "".join(c if ord(c) in characters and unicodedata.category(c)[0] != "C"
                     else f"U+{ord(c):04X}" for c in text)
    if limit is not None and len(result) > limit:
        result = result[:limit - 1] + "\u2026"
    return result.replace("$", r"\$")


_characters = None


def _font_characters():
    global _characters
    if _characters is None:
        path = os.path.join(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
        _characters = frozenset(ft2font.FT2Font(path).get_charmap())
    return _characters


def series_label(name, variant):
    # A legend drops labels that begin with an underscore; a word joiner in front keeps them.
    text = printable(f"{name}, {variant}" if variant else name, MAX_LABEL)
    return "\u200a" + text if text.startswith("_") else text


def new_figure(height_inches, rows=1, columns=1, **options):
    """A figure without pyplot and its axes as a 2D array."""
    figure = mpl_figure.Figure(figsize=(WIDTH_INCHES, height_inches))
    FigureCanvasAgg(figure)
    figure.set_layout_engine("constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def errorbar(axes, x, centre, low, high, look, gid, line=True, scale=1.0, **options):
    """Values with their intervals, as arrays; an end that is NaN (unknown) is not drawn. The line
    through the values, and only it, gets the name `gid`."""
    centre = numpy.asarray(centre, dtype=float)
    below = numpy.nan_to_num(centre - numpy.asarray(low, dtype=float)).clip(min=0)
    beyond = numpy.nan_to_num(numpy.asarray(high, dtype=float) - centre).clip(min=0)
    values, _, _ = axes.errorbar(x, centre, yerr=[below, beyond], elinewidth=0.8, capthick=0.8,
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
                                 elinewidth=0.8, capsize=2.5, zorder=3,
                                 **marker_options(look, scale=0.64))
    values.set_gid(gid)


def series_handle(name, variant, look, line=True):
    return lines.Line2D([], [], linestyle=look.linestyle if line else "none",
                        label=series_label(name, variant), **marker_options(look))


def note_handle(text):
    """A line of text in a legend."""
    return lines.Line2D([], [], linestyle="none", label=printable(text, MAX_LABEL + 8))


def baseline_options(look):
    """The floor is a thin line without markers, so that no filter is mistaken for it."""
    return {"color": look.colour, "linestyle": look.linestyle, "linewidth": 1.0}


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
    """Title, legend to the right of the axes, and a footer with how to read the figure, the run and
    the CPU; then places the axes in what room remains, so that nothing overlaps."""
    width, height = figure.get_size_inches()
    inch = 1 / 72
    margin = 0.08
    legend = figure.legend(handles=handles, loc="upper left", borderaxespad=0, borderpad=0,
                           bbox_to_anchor=(0.5, 0.5))
    legend.set_in_layout(False)
    extent = legend.get_window_extent(figure.canvas.get_renderer())
    legend_width, legend_height = extent.width / figure.dpi, extent.height / figure.dpi
    top = 0.24 + (0.18 if subtitle else 0)
    footer = textwrap.wrap(caption, _CAPTION_CHARACTERS)
    footer += [f"{'run' if r.complete else 'INCOMPLETE run'} {r.name} on "
               f"{r.cpu_brand or 'unknown CPU'}" for r in getattr(run, "runs", [run])]
    bottom = 0.06 + 0.135 * len(footer)
    needed = legend_height + top + bottom + 0.15
    if needed > height:
        height = needed
        figure.set_size_inches(width, height)
    right = legend_width + 2 * margin
    figure.set_layout_engine(layout_engine.ConstrainedLayoutEngine(
        rect=(margin / width, bottom / height, (width - right - margin) / width,
              (height - bottom - top) / height),
        w_pad=2.5 * inch, h_pad=3 * inch, wspace=0.03, hspace=0.05))
    corner = ((width - legend_width - margin) / width, (height - top - 0.06) / height)
    legend.set_bbox_to_anchor(corner, transform=figure.transFigure)
    left = margin / width
    _fitting_text(figure, left, 1 - 0.06 / height, title, va="top", fontsize=10, weight="bold")
    if subtitle:
        _fitting_text(figure, left, 1 - 0.26 / height, subtitle, va="top", fontsize=8, color=GREY)
    # The layout is settled here, once, instead of anew for every file that is written.
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")
    for index, line in enumerate(footer):
        _fitting_text(figure, left, (bottom - 0.02 - 0.135 * (index + 1)) / height, line,
                      va="bottom", fontsize=6.5, color=GREY)


def _fitting_text(figure, x, y, text, **options):
    """A line of text that ends with an ellipsis where it would leave the page."""
    artist = figure.text(x, y, printable(text), ha="left", in_layout=False, **options)
    room = figure.bbox.width * (1 - x)
    length = len(text)
    while artist.get_window_extent(figure.canvas.get_renderer()).width > room:
        length = int(0.97 * length)
        artist.set_text(printable(text, length))


class _Together(NamedTuple):
    name: str
    machine: str
    cpu_brand: str
    runs: list


def together(runs):
    """What finish() and metadata() ask of a run, of several."""
    return _Together(", ".join(run.name for run in runs), ", ".join(run.machine for run in runs),
                     ", ".join(run.cpu_brand or "unknown CPU" for run in runs),
                     list(runs))


def metadata(run, title, file_format):
    """What a file says about itself. No date, so that the same run gives the same bytes."""
    subject = f"filterbench run {run.name}, machine {run.machine}, CPU {run.cpu_brand or 'unknown'}"
    if file_format == "pdf":
        return {"Title": title, "Subject": subject, "Keywords": f"filterbench, {run.name}",
                "Creator": "filterbench plots", "CreationDate": None}
    if file_format == "png":
        return {"Title": title, "Description": subject, "Software": "filterbench plots"}
    return None



THEORY_STYLES = ("-", (0, (5, 3)), (0, (1.5, 3)), (0, (5, 2, 1, 2)))


def mark_caches(axes, caches, low_bytes, high_bytes):
    """A vertical line with a label above the axes at each size of a cache that holds data."""
    for level, kind, size in sorted({(c.level, c.type, c.size_bytes) for c in caches}):
        if kind.lower() == "instruction" or not low_bytes < size < high_bytes:
            continue
        axes.axvline(size, color=LIGHT_GREY, linewidth=1.0, linestyle=(0, (3, 2)), zorder=1,
                     gid=f"cache:L{level}")
        axes.annotate(f"L{level}{'d' if kind.lower() == 'data' else ''}\n{bytes_label(size)}",
                      (size, 1), xycoords=("data", "axes fraction"), xytext=(0, 2),
                      textcoords="offset points", ha="center", va="bottom", fontsize=6.5,
                      color=GREY, linespacing=1.1)


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
    return lines.Line2D([], [], color=LIGHT_GREY, linewidth=3.5, label="Pareto front")


def keys_text(points):
    """Which keys the points of a plain-keys selection have, and what a lookup does to them."""
    return (f"{points['key_set'].iloc[0]} keys, {points['hashing'].iloc[0]}" if len(points) else "")


def targets_text(points):
    """Which target the points of a best-target selection ran on."""
    targets = sorted(set(points["target"]), key=selection.target_rank, reverse=True)
    return "target " + ", else ".join(targets)
