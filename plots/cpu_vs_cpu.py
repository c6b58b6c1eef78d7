"""Machines side by side: each filter's negative lookups over the machine's own floor, and what
vectors gain on each machine.

A figure of several runs, one of each machine (machines.py). One row per filter, one marker per
machine in it; the columns are the smallest and the largest key count at which most filters were
answered by all machines, and the gain at the smaller of these. No time is drawn.
"""

import collections
import json
import math
import textwrap

from matplotlib import lines, ticker

from plots import machines, ratios, selection, style

NAME = "cpu_vs_cpu"
TITLE = "The same filters on different CPUs"
NEEDS = ("runs of two to six machines, one of each, with points in mode lookup_batched and "
         "negative_share 1, and touch_lines")
REMEDY = ("run the same spec, such as workloads/specs/quick.json, on each machine, and name one "
          "run of each")
MAX_MACHINES = 6
MAX_ROWS = 40
_LABEL_CHARACTERS = 30
_ROW_INCHES = 0.2
_MOST_TICKS = 6
# Okabe and Ito again, in an order of falling difference; their greys and their shapes differ too,
# and every other marker is open. None: the ink of the page.
_LOOKS = (("#0072B2", "o", "full"), ("#D55E00", "s", "open"), ("#009E73", "^", "full"),
          (None, "D", "open"), ("#E69F00", "v", "full"), ("#CC79A7", "X", "full"))


def _side(runs):
    """(machines that are drawn, names of those that are left out, how many points are left out
    since the machines answered them otherwise). Raises SeveralRuns."""
    side = machines.side_by_side(runs)
    side, left_out = side[:MAX_MACHINES], [machine.name for machine in side[MAX_MACHINES:]]
    differing = machines.digests(side).differing
    machines.leave_out(side, differing)
    return side, left_out, len(differing)


def _asked(side):
    """{keys: {contender: question}} of lookups of absent plain keys that all machines answered."""
    first = {row["question"] for row in selection.lookups(side[0].run, 1.0).to_dict("records")}
    found = collections.defaultdict(dict)
    chosen = machines.representatives(side)
    for question in machines.common(side):
        point = json.loads(question)
        if question in first and point["filter"] not in selection.BASELINES:
            contender = machines.parts(question)[1]
            if contender in chosen:
                found[point["keys"]][contender] = question
    return found


def _floor_ratio(machine, question):
    try:
        return machine.over_floor(machine.best[question])
    except ratios.Unknown:
        return None


def _key_counts(asked):
    most = max(map(len, asked.values()))
    return selection.spread(
        [keys for keys, filters in asked.items() if 2 * len(filters) >= most], 2)


def _gains(side, questions):
    """(what the gain is over, {machine: {question: ratio of the best target}}), by what more rows
    of more machines have."""
    found = {over: {machine.name: {} for machine in side}
             for over in (machines.REFERENCE, machines.SCALAR)}
    for machine in side:
        for row, over, ratio in machine.gains():
            if row["question"] in questions and row is machine.best.get(row["question"]):
                found[over][machine.name][row["question"]] = ratio
    over = max(found, key=lambda o: sum(map(len, found[o].values())))  # of equals the reference
    return over, found[over]


def gaps(runs):
    try:
        side, left_out, differing = _side(runs)
    except machines.SeveralRuns as error:
        return [selection.Gap(str(error), "name one run of each machine", fatal=True)]
    if len(side) < 2:
        return [selection.Gap("runs of at least two machines are needed", REMEDY, fatal=True)]
    found = []
    if left_out:
        found.append(selection.Gap(f"only {MAX_MACHINES} machines have room, without "
                                   f"{', '.join(left_out)}", "draw them in a second figure"))
    if differing:
        found.append(selection.Gap(
            f"WRONG ANSWERS: at {differing} points the machines differ in a filter's bytes or "
            "answers",
            "filterbench compare-cpus says where"))
    asked = _asked(side)
    if not asked:
        return [*found, selection.Gap("no filter was asked for absent keys only on all machines",
                                      REMEDY, fatal=True)]
    questions = {q for filters in asked.values() for q in filters.values()}
    without = [machine.name for machine in side
               if all(_floor_ratio(machine, q) is None for q in questions)]
    if without:
        found.append(selection.Gap(f"no floor on {', '.join(without)}",
                                   "add touch_lines to the filters of the spec",
                                   fatal=len(without) == len(side)))
    _, gains = _gains(side, set(asked[_key_counts(asked)[0]].values()))
    without = [name for name, known in gains.items() if not known]
    if without:
        found.append(selection.Gap(f"no gain of vectors on {', '.join(without)}",
                                   "add the target scalar, or mode lookup_reference, to the spec"))
    return found


def _rows(side, asked, key_counts):
    """The contenders as (label, contender), the fastest over its floor on top: by the median over
    the machines at the smallest key count at which it has one."""
    def rank(contender):
        for keys in key_counts:
            known = [ratio.value for machine in side
                     if contender in asked[keys]
                     and (ratio := _floor_ratio(machine, asked[keys][contender])) is not None]
            if known:
                return sorted(known)[len(known) // 2]
        return math.inf
    kept = sorted({c for keys in key_counts for c in asked[keys]}, key=lambda c: (rank(c), c))
    if len(kept) > MAX_ROWS:  # the best variant of each filter
        first = {}
        for contender in kept:
            first.setdefault(json.loads(contender)["filter"], contender)
        kept = list(first.values())[:MAX_ROWS]
    count = collections.Counter(json.loads(contender)["filter"] for contender in kept)
    variant = {contender: side[0].best[question]["variant"]
               for keys in key_counts for contender, question in asked[keys].items()}
    return [(style.series_label(name, variant[contender] if count[name] > 1 else ""), contender)
            for contender in kept for name in [json.loads(contender)["filter"]]]


def _ratio_axis(axes, values, ends, title):
    style.log_axis(axes.xaxis, [*values, 1.0], ends)
    ticks = axes.xaxis.get_majorticklocs()
    if len(ticks) > _MOST_TICKS:  # the panels are narrow
        axes.xaxis.set_major_locator(ticker.FixedLocator(
            [tick for tick in ticks if math.log10(tick) == round(math.log10(tick))]))
    axes.axvline(1.0, color=style.page().grey, linewidth=style.page().line,
                 linestyle=(0, (3, 2)), zorder=1)
    axes.set_title(title, loc="left")


def draw(runs):
    selection.require(gaps(runs))
    side, _, differing = _side(runs)
    asked = _asked(side)
    key_counts = _key_counts(asked)
    rows = _rows(side, asked, key_counts)
    gain_questions = asked[key_counts[0]]
    over, gains = _gains(side, set(gain_questions.values()))
    has_gains = any(gains.values())
    columns = len(key_counts) + has_gains
    row_inches = max(_ROW_INCHES, 0.05 * len(side) + 0.06)
    figure, grid = style.new_figure(1.2 + row_inches * max(len(rows), 6), columns=columns,
                                    sharey=True)
    looks = [style.Look(colour or style.page().ink, marker, "none", fill)
             for colour, marker, fill in _LOOKS]
    # Machines share a row from top to bottom, in the order of the legend.
    offsets = [0.68 * ((index + 0.5) / len(side) - 0.5) for index in range(len(side))]

    def panel(axes, title, value):
        values, ends = [], []
        for machine, look, offset in zip(side, looks, offsets):
            found = [(index + offset, ratio) for index, (_, contender) in enumerate(rows)
                     if (ratio := value(machine, contender)) is not None]
            if not found:
                continue
            y, ratio = zip(*found)
            x = [r.value for r in ratio]
            below = [0 if math.isnan(r.low) else max(0, r.value - r.low) for r in ratio]
            beyond = [0 if math.isnan(r.high) else max(0, r.high - r.value) for r in ratio]
            line, _, _ = axes.errorbar(x, y, xerr=[below, beyond], linestyle="none",
                                       elinewidth=0.7, capsize=0, zorder=3,
                                       **style.marker_options(look, 0.8))
            line.set_gid(f"measured:{machine.name}:{axes.get_gid()}")
            values += x
            ends += [end for r in ratio for end in (r.low, r.high)]
        _ratio_axis(axes, values, ends, title)

    for axes, keys in zip(grid[0], key_counts):
        axes.set_gid(f"floor {keys}")
        panel(axes, f"{style.count(keys)} keys",
              lambda machine, c, k=keys: _floor_ratio(machine, asked[k][c])
              if c in asked[k] else None)
        axes.set_xlabel("lookup / floor")
    if has_gains:
        axes = grid[0][-1]
        axes.set_gid("gain")
        panel(axes, f"gain, {style.count(key_counts[0])} keys",
              lambda machine, c: gains[machine.name].get(gain_questions.get(c)))
        axes.set_xlabel(f"{over} / best target")
    first = grid[0][0]
    first.set_yticks(range(len(rows)), [label for label, _ in rows])
    first.set_ylim(len(rows) - 0.5, -0.5)
    for axes in grid[0]:
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.yaxis.set_minor_locator(ticker.NullLocator())
        for index in range(1, len(rows), 2):
            axes.axhspan(index - 0.5, index + 0.5, color=style.page().band, linewidth=0, zorder=0)
    best = {machine.name: sorted({machine.best[q]["target"] for f in asked.values()
                                  for q in f.values()}, key=selection.target_rank, reverse=True)
            for machine in side}
    handles = [lines.Line2D([], [], linestyle="none", **style.marker_options(look),
                            label=_machine_label(machine, best[machine.name]))
               for machine, look in zip(side, looks)]
    gain_note = {machines.REFERENCE: "the scalar reference one key at a time, compiled for the "
                                     "same target, over batched lookups",
                 machines.SCALAR: "batched lookups in the plain scalar loop over those on the best "
                                  "target"}[over]
    hidden = len({c for keys in key_counts for c in asked[keys]}) - len(rows)
    style.finish(
        figure, style.together([machine.run for machine in side]), TITLE,
        "batched lookups, all keys absent, over the machine's own floor",
        handles=handles, caption=(
            "Ratios of medians inside one run, with intervals; parameters closest to "
            f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key. Floor: one random cache line "
            "per key." + (f" Gain: {gain_note}." if has_gains else "")
            + (f" {hidden} more variants are not shown." if hidden else "")
            + (f" {differing} points with differing answers are left out." if differing else "")))
    return figure


def _machine_label(machine, targets):
    text = textwrap.wrap(style.printable(machine.name, style.MAX_LABEL), _LABEL_CHARACTERS)
    return "\n".join([*text, f"target {', else '.join(targets[:2])}"])
