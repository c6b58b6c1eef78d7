"""What is wrong with a picture: for the tests of figures, on any page."""

import itertools

import matplotlib


def _inside(box, page):
    return (box.x0 >= page.x0 - 0.5 and box.x1 <= page.x1 + 0.5 and box.y0 >= page.y0 - 0.5
            and box.y1 <= page.y1 + 0.5)


def _overlap(a, b):
    return a.overlaps(b) and min(a.x1, b.x1) - max(a.x0, b.x0) >= 1 and (
        min(a.y1, b.y1) - max(a.y0, b.y0) >= 1)


def _numbers(axis, renderer):
    """The boxes of an axis' visible numbers or names, with their text."""
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (abs(low) + abs(high))
    return [(label.get_window_extent(renderer), label.get_text())
            for place, label in zip(axis.get_majorticklocs(), axis.get_ticklabels())
            if low - slack <= place <= high + slack and label.get_text() and label.get_visible()]


def faults(figure):
    """What overlaps, and what leaves the page, as sentences."""
    renderer, page = figure.canvas.get_renderer(), figure.bbox
    parts = [(f"legend {i}", legend.get_window_extent(renderer))
             for i, legend in enumerate(figure.legends)]
    parts += [(f"panel {i}", axes.get_tightbbox(renderer)) for i, axes in enumerate(figure.axes)]
    parts += [(repr(text.get_text()), text.get_window_extent(renderer)) for text in figure.texts]
    found = [f"{name} leaves the page" for name, box in parts if not _inside(box, page)]
    found += [f"{a} overlaps {b}" for (a, box_a), (b, box_b) in itertools.combinations(parts, 2)
              if _overlap(box_a, box_b)]
    for index, axes in enumerate(figure.axes):
        panel = axes.get_window_extent(renderer)
        if panel.width < 40 or panel.height < 30:
            found.append(f"panel {index} is {panel.width:.0f} x {panel.height:.0f} pixels small")
        for axis in (axes.xaxis, axes.yaxis):
            numbers = _numbers(axis, renderer)
            found += [f"panel {index}: number {a} touches {b}" for (box_a, a), (box_b, b) in
                      itertools.combinations(numbers, 2) if _overlap(box_a, box_b)]
    return found


def grey(colour):
    """How light a colour is on a printer without colours, 0 to 1."""
    red, green, blue = matplotlib.colors.to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _shape(line):
    """What tells a line of data apart without its colour: marker, how it is filled, dashes."""
    hollow = line.get_markerfacecolor() != line.get_color()
    return (str(line.get_marker()), line.get_fillstyle(), hollow, str(line._dash_pattern))


def alike_in_grey(figure):
    """Pairs of series of a panel that nothing but their colour tells apart, on a page without
    colours. Not among them: lines of theory, on which the markers of their filter lie; series with
    a row of their own that has their name; areas, which are told apart by hatching."""
    found = []
    named = " ".join(label.get_text() for axes in figure.axes for label in axes.get_yticklabels())
    for axes in figure.axes:
        series = [line for line in axes.lines
                  if (line.get_gid() or "").startswith(("measured:", "floor:"))
                  and line.get_gid().split(":")[1] not in named
                  and line.get_color() != figure.page.background
                  and (_draws(line.get_marker()) or _draws(line.get_linestyle()))]
        for a, b in itertools.combinations(series, 2):
            if a.get_gid() != b.get_gid() and _shape(a) == _shape(b) and (
                    abs(grey(a.get_color()) - grey(b.get_color())) < 0.25):
                found.append((a.get_gid(), b.get_gid()))
    return found


def _draws(part):
    return part not in (None, "None", "none", "", " ")
