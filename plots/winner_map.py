"""Figure 6: which filter costs least, over the number of keys and the work that a false positive
causes.

Performance-optimal filtering (costs.py): t_lookup + FPR * work, from points with absent keys only,
at each filter's best target. A column is one measured number of keys and reaches half-way to its
neighbours; along the work, break-even points are exact. Nothing is interpolated between key counts
or taken from beyond them, so that only what was measured there competes. Over a column stand how
many filters and sets of parameters these are. Key counts with few choices are left out: those
where fewer than half as many filters have several sizes as where most have.

Inside a region stand its filter and bits per key, as far as there is room. A region is pale, with a
dotted line at its edge, where another filter's cost is within noise of the winner's.
"""

import math

from matplotlib import lines, patches, ticker

from plots import costs, selection, style

NAME = "winner_map"
TITLE = "Which filter costs least"
NEEDS = "points in mode lookup_batched with negative_share 1, of two or more filters"
REMEDY = ("run a spec with mode lookup_batched and negative_share 1 for several filters, bits per "
          "key and key counts, such as workloads/specs/paper.json")

WORK_NS = (1.0, 1e7)
NEGATIVES = 1.0
# The panels: all candidates, and those within this space.
TIGHT_BITS_PER_KEY = 12.0
_DOTTED = (0, (1, 2))
_HATCHES = ("", "////", "\\\\\\\\", "xxxx", "----", "||||", "++++", "....", "oo", "**")


def _candidates(run, keys, limit=math.inf):
    found = costs.candidates(run, keys, NEGATIVES, costs.Limits(bits_per_key=limit),
                             keys_from=(costs.MEASURED,))
    return [row for row in found if row.share_from == costs.MEASURED]


def _choices(run):
    """{key count: candidates} of the key counts that are shown, and those left out."""
    by_keys = {keys: _candidates(run, keys) for keys in sorted(costs.key_counts(run))}
    by_keys = {keys: rows for keys, rows in by_keys.items() if len({r.filter for r in rows}) > 1}
    sized = {}
    for keys, rows in by_keys.items():
        names = [row.filter for row in rows]
        sized[keys] = sum(names.count(name) > 1 for name in set(names))
    if not any(sized.values()):  # one size of each filter everywhere
        sized = {keys: len({row.filter for row in rows}) for keys, rows in by_keys.items()}
    most = max(sized.values(), default=0)
    shown = {keys: rows for keys, rows in by_keys.items() if 2 * sized[keys] >= most}
    return shown, sorted(set(by_keys) - set(shown))


def gaps(run):
    shown, left_out = _choices(run)
    if not shown:
        return [selection.Gap("no key count has lookups of two filters with absent keys only",
                              REMEDY, fatal=True)]
    found = []
    if len(shown) < 2:
        found.append(selection.Gap("only one key count has enough filters", REMEDY))
    names = {keys: {row.filter for row in rows} for keys, rows in shown.items()}
    everywhere = set.intersection(*names.values())
    some = sorted(set.union(*names.values()) - everywhere)
    if some:
        found.append(selection.Gap(f"not at all of these key counts: {', '.join(some)}", REMEDY))
    return found


def _columns(key_counts):
    """{key count: (left, right)}: half-way to the neighbours, at the ends as far as inside."""
    logs = [math.log(keys) for keys in key_counts]
    if len(logs) == 1:
        return {key_counts[0]: (key_counts[0] / 2, key_counts[0] * 2)}
    middles = [(a + b) / 2 for a, b in zip(logs, logs[1:])]
    edges = [2 * logs[0] - middles[0], *middles, 2 * logs[-1] - middles[-1]]
    return {keys: (math.exp(left), math.exp(right))
            for keys, left, right in zip(key_counts, edges, edges[1:])}


def _same_filter(stretches):
    """Neighbouring stretches of one filter and variant, put together."""
    groups = []
    for stretch in stretches:
        if groups and groups[-1][-1].candidate[:2] == stretch.candidate[:2]:
            groups[-1].append(stretch)
        else:
            groups.append([stretch])
    return groups


def draw(run):
    selection.require(gaps(run))
    shown, left_out = _choices(run)
    looks = style.series_looks(run.points)
    tight = {keys: [row for row in rows if row.bits_per_key <= TIGHT_BITS_PER_KEY]
             for keys, rows in shown.items()}
    panels = [("any space", shown)]
    if all(tight.values()) and any(len(tight[keys]) < len(shown[keys]) for keys in shown):
        panels.append((f"at most {TIGHT_BITS_PER_KEY:g} bits per key", tight))
    figure, axes_grid = style.new_figure(4.2, columns=len(panels), sharex=True, sharey=True)
    columns = _columns(list(shown))
    hatches, labels, in_doubt = {}, [], False
    for axes, (title, by_keys) in zip(axes_grid[0], panels):
        style.panel_title(axes, title, above_caches=True)
        axes.set_yscale("log")
        axes.set_ylim(*WORK_NS)
        axes.grid(False)
        for keys, rows in by_keys.items():
            left, right = columns[keys]
            axes.annotate(f"{len({row.filter for row in rows})}\n{len(rows)}", (keys, 1),
                          xycoords=("data", "axes fraction"), xytext=(0, 2), ha="center",
                          textcoords="offset points", va="bottom",
                          fontsize=style.page().small, color=style.page().grey, linespacing=1.1)
            for group in _same_filter(costs.winners(rows, NEGATIVES, *WORK_NS)):
                winner = group[0].candidate
                look = looks[winner.filter, winner.variant]
                hatch = hatches.setdefault((winner.filter, winner.variant),
                                           _HATCHES[len(hatches) % len(_HATCHES)])
                for stretch in group:
                    _fill(axes, left, right, stretch.low_ns, stretch.high_ns, look, hatch)
                    labels.append((axes, left, right, stretch))
                for low, high in _doubts(rows, group):
                    in_doubt = True
                    _pale(axes, left, right, low, high)
                _outline(axes, left, right, group, winner)
    first = axes_grid[0][0]
    style.keys_axis(first.xaxis, list(shown))
    first.set_xlim(columns[min(shown)][0], columns[max(shown)][1])
    first.xaxis.set_major_locator(ticker.FixedLocator(list(shown)))
    first.xaxis.set_minor_locator(ticker.NullLocator())
    first.xaxis.set_major_formatter(ticker.FuncFormatter(lambda keys, _: style.count(keys)))
    first.yaxis.set_major_locator(ticker.LogLocator(numticks=12))
    first.yaxis.set_major_formatter(ticker.FuncFormatter(lambda ns, _: _duration(ns)))
    first.yaxis.set_minor_locator(ticker.NullLocator())
    first.set_ylabel("work per false positive")
    for axes in axes_grid[0]:
        axes.set_xlabel("keys")
    handles = [patches.Patch(facecolor=looks[key].colour, hatch=hatch, linewidth=0,
                             edgecolor=style.page().background, label=style.series_label(*key))
               for key, hatch in sorted(hatches.items(), key=lambda item: item[0])]
    if in_doubt:
        handles.append(lines.Line2D([], [], color=style.page().ink, linestyle=_DOTTED,
                                    linewidth=1.2 * style.page().line,
                                    label="pale: another filter is within noise"))
    filters = [row.filter for rows in shown.values() for row in rows]
    caption = ("Least t_lookup + FPR \u00d7 work (Lang, Neumann, Kemper, Boncz 2019), all keys "
               "absent. A column is one measured number of keys; nothing is interpolated between "
               "them. Above it: how many filters and sets of parameters were measured there. In "
               "it: the winner's bits per key.")
    if left_out:
        caption += (" Left out, with few sizes to choose from: "
                    f"{', '.join(style.count(keys) for keys in left_out)} keys.")
    points = selection.lookups(run, negative_share=NEGATIVES)
    points = points[points["filter"].isin(filters)]
    best = selection.best_target(points, run.best_target)
    style.finish(figure, run, TITLE, f"batched lookups, {style.targets_text(best)}; "
                 f"{style.keys_text(points)}", caption, handles)
    _write_labels(figure, labels)
    return figure


def _duration(ns):
    for factor, unit in ((1e6, "ms"), (1e3, "\u00b5s")):
        if ns >= factor * (1 - 1e-9):
            return f"{ns / factor:g} {unit}"
    return f"{ns:g} ns"


def _doubts(rows, group):
    parts = []
    for stretch in group:
        for low, high in costs.doubts(rows, stretch, NEGATIVES):
            if parts and parts[-1][1] == low:
                low = parts.pop()[0]
            parts.append((low, high))
    return parts


def _fill(axes, left, right, low, high, look, hatch):
    axes.add_patch(patches.Rectangle((left, low), right - left, high - low, hatch=hatch,
                                     facecolor=look.colour, edgecolor=style.page().background,
                                     linewidth=0.4, zorder=2))


def _pale(axes, left, right, low, high):
    axes.add_patch(patches.Rectangle((left, low), right - left, high - low, alpha=0.55,
                                     facecolor=style.page().background, linewidth=0, zorder=2.5,
                                     gid="within_noise"))
    edge = left * (right / left) ** 0.03
    axes.plot([edge, edge], [low, high], color=style.page().ink, linestyle=_DOTTED,
              linewidth=1.2 * style.page().line, zorder=3, gid="within_noise")


def _outline(axes, left, right, group, winner):
    low, high = group[0].low_ns, group[-1].high_ns
    axes.plot([left, right, right, left, left], [low, low, high, high, low], zorder=3.5,
              color=style.page().background, linewidth=1.4 * style.page().line,
              solid_joinstyle="miter", gid=f"measured:{winner.filter}:{winner.variant}")


def _write_labels(figure, labels):
    """The filter and its bits per key into each stretch where there is room; the bits alone where
    there is less."""
    renderer = figure.canvas.get_renderer()
    for axes, left, right, stretch in labels:
        (x0, y0), (x1, y1) = axes.transData.transform([(left, stretch.low_ns),
                                                       (right, stretch.high_ns)])
        bits = f"{stretch.candidate.bits_per_key:.1f}"
        middle = math.sqrt(left * right), math.sqrt(stretch.low_ns * stretch.high_ns)
        name = stretch.candidate.filter
        for words in ((name, bits), (*name.split("_"), bits), (bits,)):
            label = axes.text(*middle, "\n".join(style.printable(word) for word in words),
                              ha="center", va="center", fontsize=0.9 * style.page().small,
                              linespacing=1.05, zorder=4, in_layout=False, bbox={
                                  "facecolor": style.page().background, "edgecolor": "none",
                                  "alpha": 0.75, "pad": 0.8})
            extent = label.get_window_extent(renderer)
            if extent.width <= 0.94 * (x1 - x0) and extent.height <= 0.94 * (y1 - y0):
                break
            label.remove()
