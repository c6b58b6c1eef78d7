"""The picture of `filterbench advise`: expected cost of a lookup against the cost of a miss.

One line for each option that is the best somewhere (scripts/choice.py): thin where another costs
less, bold with its interval where it is the best. Where the best one changes, the ground changes
its shade. The cost that was asked for is a level line across all, the answer a point with its
interval.
"""

import math

import numpy

from plots import costs, headline, style

TITLE = "Which filter costs least, by the cost of a miss"
_LINESTYLES = ("-", (0, (4.5, 1.6)), (0, (1.2, 1.4)), (0, (6, 1.5, 1, 1.5)))
_AROUND = 8.0        # how far the axis goes beyond the first and the last change, as a factor
_ALONE = 100.0       # the same where nothing changes
_LABEL_SHARE = 0.045  # of the axis: the narrowest band that holds a number


def duration(ns):
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        if ns >= factor:
            return f"{headline.number(ns / factor)} {unit}"
    return f"{headline.number(ns)} ns"


def size(value):
    """Bytes in decimal units, as memory is asked for and sold."""
    for factor, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= factor:
            return f"{headline.number(value / factor)} {unit}"
    return f"{value:g} B"


def _range(advice):
    changes = [stretch.high_ns for stretch in advice.stretches[:-1]]
    around = _AROUND if changes else _ALONE
    places = [place for place in changes if place > 0] + [advice.question.miss_cost_ns]
    return min(places) / around, max(places) * around


def _looks(options, runs):
    """A look for each option: the filter's colour and marker as in the figures of the runs, options
    of a filter told apart by line; no filter is a grey line without marker."""
    looks, seen = {}, {}
    by_filter = style.filter_looks({name for run in runs for name in run.points["filter"]})
    for option in options:
        number = seen[option.filter] = seen.get(option.filter, -1) + 1
        look = by_filter.get(option.filter, style.Look(style.page().grey, "None"))
        looks[option] = look._replace(linestyle=_LINESTYLES[number % len(_LINESTYLES)],
                                      fill=("full", "open", "left")[number % 3])
    return looks


def _costs(option, negatives, misses):
    rows = [costs.expected_cost(option, negatives, miss) for miss in misses]
    return [numpy.array([getattr(row, end) for row in rows]) for end in ("value", "low", "high")]


def _bands(axes, advice, low, high):
    """Shades the stretches in turn and numbers those that have room, as the legend does."""
    page = style.page()
    for number, stretch in enumerate(advice.stretches, 1):
        left, right = max(stretch.low_ns, low), min(stretch.high_ns, high)
        if left >= right:
            continue
        if number % 2 == 0:
            axes.axvspan(left, right, color=page.light_grey, alpha=0.25, linewidth=0, zorder=0,
                         gid=f"band:{number}")
        if math.log(right / left) > _LABEL_SHARE * math.log(high / low):
            axes.text(math.sqrt(left * right), 0.985, str(number), ha="center", va="top",
                      transform=axes.get_xaxis_transform(), color=page.grey)


def draw(advice):
    question, page = advice.question, style.page()
    low, high = _range(advice)
    best = list(dict.fromkeys(stretch.candidate for stretch in advice.stretches))
    looks = _looks(best, advice.runs)
    misses = numpy.geomspace(low, high, 241)
    figure, axes_grid = style.new_figure(4.2)
    axes = axes_grid[0][0]
    handles, on_top = [], []
    for number, stretch in enumerate(advice.stretches, 1):
        option = stretch.candidate
        look = looks[option]
        value, _, _ = _costs(option, question.negatives, misses)
        has_line = bool((value > 0).any())  # no filter and no absent key: nothing costs anything
        if has_line:
            axes.plot(misses, value, color=look.colour, linestyle=look.linestyle,
                      linewidth=0.7 * page.line, alpha=0.8, zorder=2)
        left, right = max(stretch.low_ns, low), min(stretch.high_ns, high)
        if has_line and left < right:
            own = numpy.geomspace(left, right, 33)
            value, below, above = _costs(option, question.negatives, own)
            axes.fill_between(own, below, above, color=look.colour, alpha=0.15, linewidth=0,
                              zorder=1)
            axes.plot(own, value, linestyle=look.linestyle, linewidth=2.2 * page.line, zorder=4,
                      gid=f"measured:{number}", markevery=[16], **style.marker_options(look))
            on_top += [cost for cost in value if cost > 0]
        handles.append(style.series_handle(f"{number}  {option.label}", "", look))
    _bands(axes, advice, low, high)
    answer = advice.cost(advice.winner)
    axes.axvline(question.miss_cost_ns, color=page.grey, linewidth=page.line,
                 linestyle=(0, (1, 2)), zorder=3, gid="asked")
    if answer.value > 0:
        ends = answer if answer.has_interval() else (answer.value,) * 3
        style.errorbar(axes, [question.miss_cost_ns], [answer.value], [ends[1]], [ends[2]],
                       style.Look(page.ink, "o", fill="open"), gid="measured:answer", line=False,
                       zorder=6)
        on_top += [answer.value]
    style.log_axis(axes.xaxis, list(misses))
    axes.set_xlim(low, high)
    style.log_axis(axes.yaxis, on_top or [1.0], [answer.high])
    axes.set_xlabel("cost of a miss (ns)")
    axes.set_ylabel("expected cost of a lookup (ns)")
    handles.append(style.note_handle(f"o  asked: {advice.winner.label}"))
    shown = {option.run.name for option in best if option.is_filter}
    runs = [run for run in advice.runs if run.name in shown] or advice.runs
    noise = " The answer is within noise." if advice.within_noise else ""
    basis = "" if advice.basis == "measured" else f" It is {advice.basis}."
    style.finish(
        figure, style.together(runs), TITLE,
        f"{style.count(question.keys)} keys, {100 * question.negatives:g} % absent, "
        f"{question.mode}" + ("" if math.isinf(question.memory_bytes) else
                              f", at most {size(question.memory_bytes)}"),
        "Time to ask and the work that false positives cause, per lookup (Lang et al. 2019). Bold: "
        "the best there, with the interval of its cost; thin: elsewhere. Dotted: the cost that was "
        f"asked for, and the answer with its interval.{noise}{basis}", handles)
    return figure
