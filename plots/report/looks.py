"""Colours, markers and lines of the figures (plots/style.py) in the words of a web page, and the
families that filters are grouped by."""

import functools
import pathlib
import re

from matplotlib import colors, markers
from matplotlib.path import Path

from plots import selection, style

_FILTERS = pathlib.Path(__file__).resolve().parent.parent.parent / "filters"
# Titles of the folders of filters/; another folder is called as it is.
_FAMILIES = {"bloom": "Bloom", "cuckoo": "Cuckoo", "quotient": "Quotient and prefix",
             "fuse": "Xor and fuse", "ribbon": "Ribbon", "peers": "Other libraries",
             "limits": "The machine's floor"}
_ELSEWHERE = "Other filters"
_POINTS_TO_PIXELS = 96 / 72
_LEAST_CONTRAST = 3.0  # of graphics on a dark ground: WCAG 2.1, success criterion 1.4.11


@functools.lru_cache(maxsize=None)
def _folders():
    """{filter: folder of filters/ that defines it}."""
    found = {}
    for header in sorted(_FILTERS.glob("*/*.h")):
        for name in re.findall(r'\.name = "([^"]+)"', header.read_text(encoding="utf-8")):
            found[name] = header.parent.name
    return found


def family(name):
    """The family of a filter by its folder in the tree; plug-ins have none there."""
    folder = "limits" if name in selection.BASELINES else _folders().get(name)
    return _FAMILIES.get(folder, folder) if folder else _ELSEWHERE


def family_order(title):
    titles = [*_FAMILIES.values()]
    floor = _FAMILIES["limits"]
    return (title == floor, title == _ELSEWHERE,
            titles.index(title) if title in titles else len(titles), title)


def _luminance(rgb):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one, other):
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def seen_on(colour, ground):
    """The colour, moved towards white as far as it needs to be seen on a dark ground. A screen that
    glows in a dark room shows lines of a pixel, which dark violet would not be."""
    rgb, ground = colors.to_rgb(colour), colors.to_rgb(ground)
    for step in range(21):
        moved = tuple(c + (1 - c) * step / 20 for c in rgb)
        if _contrast(moved, ground) >= _LEAST_CONTRAST:
            break
    return colors.to_hex(moved)


def _svg(path, scale):
    """A path of matplotlib, with y upwards, as that of an SVG, with y downwards."""
    letters = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}
    words = []
    for points, code in path.iter_segments(simplify=False):
        if code == Path.CLOSEPOLY:
            words.append("Z")
        elif code in letters:
            words.append(letters[code] + " ".join(
                f"{scale * x:.3f} {-scale * y:.3f}" for x, y in points.reshape(-1, 2)))
    return "".join(words)


def _marker(look):
    """{"outline", "filled"}: the shape, and what of it has the filter's colour inside; a figure's
    usual marker is 1 wide. None for lines without markers."""
    if look.marker == "None":
        return None
    options = style.marker_options(look)
    scale = options["markersize"] / style.page().rc()["lines.markersize"]
    whole = markers.MarkerStyle(look.marker, "full")
    outline = _svg(whole.get_path().transformed(whole.get_transform()), scale)
    if look.fill == "open":
        return {"outline": outline, "filled": ""}
    if look.fill == "full":
        return {"outline": outline, "filled": outline}
    half = markers.MarkerStyle(look.marker, look.fill)
    return {"outline": outline,
            "filled": _svg(half.get_path().transformed(half.get_transform()), scale)}


def _dashes(look):
    if look.linestyle == "-":
        return []
    return [round(_POINTS_TO_PIXELS * style.page().rc()["lines.linewidth"] * length, 1)
            for length in look.linestyle[1]]


def describe(points):
    """(filters, series) of the frame `points`: [{"name", "family", "light", "dark"}] in the order
    of families and names, and [{"filter": index, "variant", "label", "marker", "dashes"}]."""
    looks = style.series_looks(points)
    names = sorted({name for name, _ in looks}, key=lambda name: (
        family_order(family(name)), name))
    light = style.filter_looks(names)
    with style.on(style.make_page("dark")) as dark_page:
        dark = style.filter_looks(names)
    filters = [{"name": name, "family": family(name), "light": colors.to_hex(light[name].colour),
                "dark": seen_on(dark[name].colour, dark_page.background)} for name in names]
    series = [{"filter": names.index(name), "variant": variant,
               "label": f"{name}, {variant}" if variant else name,
               "marker": _marker(look), "dashes": _dashes(look)}
              for (name, variant), look in sorted(
                  looks.items(), key=lambda item: (names.index(item[0][0]),
                                                   selection.natural(item[0][1])))]
    return filters, series
