"""What the page's figures show: for each choice of the reader the series and their points. Which
points these are follows plots/selection.py, as in the figures on paper; the page only draws.

A figure is {"id", "title", "how", "x", "y", "choices", "views"}. A view is what is seen for one
combination of choices: {"series": [...]} with, for each series, its place in the list of looks and
either the rows of the table of points that it goes through, or points of its own."""

import math

from plots import selection, space_vs_speed, style

_LOOKUP_MODES = (("lookup_batched", "batched (throughput)"), ("lookup_single", "one at a time"),
                 ("latency", "latency chain"), ("lookup_reference", "scalar reference"))
_NS = {"field": "ns_per_op", "low": "ns_per_op_low", "high": "ns_per_op_high"}
_THEORY_DIGITS = 6


def _axis(label, scale, field=None, low=None, high=None):
    return {"label": label, "scale": scale, "field": field, "low": low, "high": high}


class _Places:
    """Where rows of a run's frames stand in the page's table, and looks in its list."""

    def __init__(self, frame, offset, series, filters):
        self._row = {point: offset + row for row, point in enumerate(frame["point_id"])}
        names = [entry["name"] for entry in filters]
        self._look = {(names[entry["filter"]], entry["variant"]): place
                      for place, entry in enumerate(series)}
        self._first = {}
        for (name, _), place in self._look.items():
            self._first.setdefault(name, place)

    def rows(self, frame):
        return [self._row[point] for point in frame["point_id"]]

    def look(self, name, variant):
        return self._look[name, variant]

    def any_look(self, name):
        """Of one of the filter's variants; None where the run has no such filter."""
        return self._first.get(name)


def _choice(name, label, options):
    return {"name": name, "label": label,
            "options": [{"value": value, "label": text} for value, text in options]}


def _figure(figure_id, title, how, x, y, choices, views, first=None):
    """A figure; None where nothing is there. `first` is the choice that the reader finds."""
    if not views:
        return None
    return {"id": figure_id, "title": title, "how": how, "x": x, "y": y, "choices": choices,
            "first": list(first or next(iter(views))),
            "views": [{"choice": list(key), "series": view} for key, view in views.items()]}


def _fullest(views, first):
    """Of the views with this first choice the one that shows most filters; the first
    of equals."""
    return max((key for key in views if key[0] == first),
               key=lambda key: len({series["look"] for series in views[key]
                                    if series["kind"] in ("line", "points")}), default=None)


def _measured(places, rows, line):
    return [{"look": places.look(name, variant), "kind": "line" if line else "points",
             "rows": places.rows(part)} for name, variant, part in selection.series(rows)]


def _floors(places, rows, by):
    return [{"look": places.look(name, variant), "kind": "floor",
             "rows": places.rows(part.sort_values(by))}
            for name, variant, part in selection.series(selection.baselines_only(rows))]


def _best_known(points):
    """Of each filter and its parameters the point with the most absent keys asked."""
    points = points.sort_values(["keys", "queries"], kind="stable")
    return points.groupby(["filter", "params", "keys"], as_index=False).tail(1).sort_index()


def _theory(run, places, name):
    """The curves of a filter, or of the bound for None."""
    curves = run.theory[run.theory["filter"].isna() if name is None
                        else run.theory["filter"] == name]
    for _, curve in curves.groupby("curve"):
        curve = curve.sort_values("bits_per_key")
        yield {"look": None if name is None else places.any_look(name), "kind": "theory",
               "label": curve["label"].iloc[0], "source": curve["source"].iloc[0],
               "points": [[float(f"{x:.{_THEORY_DIGITS}g}"), float(f"{y:.{_THEORY_DIGITS}g}")]
                          for x, y in zip(curve["bits_per_key"], curve["fpr"])]}


def _fpr_vs_bits(run, places):
    points = selection.filters_only(selection.ok(selection.plain_keys(run.points)))
    points = points[points["fpr_measured"].notna() & points["bits_per_key"].notna()]
    if points.empty:
        return None
    points = _best_known(points)
    counts = sorted(set(points["keys"]))
    theory = [series for name in [*sorted(set(points["filter"])), None]
              for series in _theory(run, places, name)]
    views = {}
    for keys in ("most", *counts) if len(counts) > 1 else counts:
        here = (points.sort_values("keys", kind="stable").groupby(["filter", "params"]).tail(1)
                if keys == "most" else points[points["keys"] == keys])
        value = keys if keys == "most" else str(int(keys))
        measured = []
        for (name, variant), rows in here.groupby(["filter", "variant"]):
            for kind, part in (("points", rows[rows["fpr_measured"] > 0]),
                               ("limits", rows[rows["fpr_measured"] == 0])):
                if len(part):
                    measured.append({"look": places.look(name, variant), "kind": kind,
                                     "rows": places.rows(part.sort_values("bits_per_key"))})
        views["rate", value] = [*measured, {"kind": "shared", "of": "theory"}]
        compared = [series for series in measured if series["kind"] == "points"]
        if compared and (here["fpr_expected"] > 0).any():
            views["ratio", value] = compared
    figure = _figure(
        "fpr_vs_bits", "False-positive rate against space",
        "Points: measured, with 95 % intervals (Clopper and Pearson). An arrow is an upper limit, "
        "3/queries, where no false positive was seen. Lines: theory, from the run's theory.json.",
        _axis("bits per key", "linear", "bits_per_key"),
        _axis("FPR", "log", "fpr_measured", "fpr_low", "fpr_high"),
        [_choice("what", "show", [("rate", "FPR"), ("ratio", "measured / expected")]),
         _choice("keys", "keys", [("most", "most of each")] * (len(counts) > 1)
                 + [(str(int(n)), style.count(n)) for n in counts])], views)
    figure["shared"] = {"theory": theory}
    figure["y_of"] = {"ratio": _axis("FPR measured / expected", "log", "fpr_ratio",
                                     "fpr_ratio_low", "fpr_ratio_high")}
    return figure


def _targets(run, points):
    """[(value, label, function that picks)] of the targets to choose from."""
    yield "best", "best of each", lambda rows: selection.best_target(rows, run.best_target)
    names = sorted(set(points["target"]), key=selection.target_rank)
    if len(names) > 1:
        for name in names:
            yield name, name, lambda rows, name=name: rows[rows["target"] == name]


def _share(value):
    return f"{100 * value:g} %"


def _lookup_vs_size(run, places):
    points = selection.ok(selection.plain_keys(run.points))
    points = points[points["negative_share"].notna()
                    & ((points["size_bytes"] > 0) | (points["filter"] == "hash_only"))]
    filters = selection.filters_only(points)
    if filters.empty:
        return None
    modes = [(value, label) for value, label in _LOOKUP_MODES if (filters["mode"] == value).any()]
    shares = sorted(set(filters["negative_share"]), reverse=True)
    targets = list(_targets(run, filters))
    views = {}
    for mode, _ in modes:
        for share in shares:
            asked = points[(points["mode"] == mode) & (points["negative_share"] == share)]
            for target, _, pick in targets:
                rows = pick(asked)
                shown = selection.filters_only(rows)
                if shown.empty:
                    continue
                views[mode, target, _share(share)] = _measured(
                    places, selection.representatives(shown).sort_values("size_bytes"), True
                ) + _floors(places, rows, "size_bytes")
    return _figure(
        "lookup_vs_size", "Lookups against filter size",
        "Medians with their intervals, one point per key count, at the parameters closest to "
        f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key. Thin lines without markers: the "
        "machine's floor, of the same mode. Vertical lines: the caches.",
        _axis("filter size", "bytes", "size_bytes"), _axis("lookup (ns/key)", "log", **_NS),
        [_choice("mode", "mode", modes),
         _choice("target", "target", [target[:2] for target in targets]),
         _choice("absent", "absent keys", [(_share(s), _share(s)) for s in shares])], views)


def _between(rows, target_fpr):
    """The measured rows on both sides of an FPR."""
    known = rows[rows["fpr_measured"] > 0].sort_values(["fpr_measured", "bits_per_key"],
                                                       kind="stable")
    below = known[known["fpr_measured"] < target_fpr].tail(1)
    above = known[known["fpr_measured"] >= target_fpr].head(1)
    return below, above


def _space_vs_speed(run, places):
    points = selection.best_target(selection.lookups(run, negative_share=1.0), run.best_target)
    points = points[points["bits_per_key"].notna() & (points["filter"] != "hash_only")]
    columns = ["bits_per_key", _NS["field"], _NS["low"], _NS["high"]]
    views, counts, fprs = {}, set(), set()
    for keys, here in points.groupby("keys"):
        for target_fpr in space_vs_speed.TARGET_FPRS:
            found, front = [], []
            for name, variant, rows in selection.series(selection.filters_only(here)):
                at = selection.at_fpr(rows, target_fpr, columns)
                if at is None:
                    continue
                values, other_fpr = at
                x, y, low, high = (None if math.isnan(v) else float(v) for v in values[columns])
                below, above = _between(rows, target_fpr)
                sources = places.rows(below) + places.rows(above)
                if other_fpr is None:
                    front.append((x, y))
                    note = f"interpolated along log FPR to {_share(target_fpr)}"
                else:
                    note = f"the nearest measured point, at an FPR of {100 * other_fpr:.2g} %"
                found.append({"look": places.look(name, variant), "note": note, "from": sources,
                              "kind": "points" if other_fpr is None else "pale",
                              "points": [[x, y, low, high]]})
            if not found:
                continue
            best = selection.pareto_front(front)
            if len(best) > 1:
                found.insert(0, {"look": None, "kind": "front", "points": [list(p) for p in best]})
            counts.add(keys)
            fprs.add(target_fpr)
            views[_share(target_fpr), str(int(keys))] = found + _floors(places, here,
                                                                        "bits_per_key")
    return _figure(
        "space_vs_speed", "Space against speed at equal FPR",
        "Negative batched lookups at each filter's best target. Left and low is better; the grey "
        "steps join the filters that no other beats in both, hidden ones included. Values between "
        "two measured points are interpolated along log FPR; pale: the nearest point has another "
        "FPR, and is not in the front.",
        _axis("bits per key", "linear", "bits_per_key"),
        _axis("negative lookup (ns/key)", "log", **_NS),
        [_choice("fpr", "FPR", [(_share(f), _share(f)) for f in space_vs_speed.TARGET_FPRS
                                if f in fprs]),
         _choice("keys", "keys", [(str(int(n)), style.count(n)) for n in sorted(counts)])],
        views, _fullest(dict(reversed(views.items())), next(iter(views), ("",))[0]))


def _build_vs_keys(run, places):
    points = selection.builds(run)
    if points.empty:
        return None
    views = {(value,): _measured(places, selection.representatives(rows).sort_values("keys"), True)
             for value, _, pick in _targets(run, points) if len(rows := pick(points))}
    return _figure(
        "build_vs_keys", "Building against the number of keys",
        "Medians with their intervals, at the parameters closest to "
        f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key.",
        _axis("keys", "keys", "keys"), _axis("build (ns/key)", "log", **_NS),
        [_choice("target", "target", [target[:2] for target in _targets(run, points)])], views)


def _lookup_vs_negatives(run, places):
    points = selection.ok(selection.plain_keys(run.points))
    points = selection.best_target(points[points["negative_share"].notna()], run.best_target)
    filters = selection.filters_only(points)
    if filters["negative_share"].nunique() < 2:
        return None
    modes = [(value, label) for value, label in _LOOKUP_MODES
             if filters[filters["mode"] == value]["negative_share"].nunique() > 1]
    counts = sorted(set(filters["keys"]))
    views = {}
    for mode, _ in modes:
        of_mode = points[points["mode"] == mode]
        shown = selection.representatives(selection.filters_only(of_mode))
        for keys in counts:
            rows = shown[shown["keys"] == keys].sort_values("negative_share")
            if rows["negative_share"].nunique() > 1:
                views[mode, str(int(keys))] = _measured(places, rows, True) + _floors(
                    places, of_mode[of_mode["keys"] == keys], "negative_share")
    return _figure(
        "lookup_vs_negatives", "Lookups against the share of absent keys",
        "Medians with their intervals, at each filter's best target and the parameters closest to "
        f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key.",
        _axis("absent keys", "share", "negative_share"), _axis("lookup (ns/key)", "log", **_NS),
        [_choice("mode", "mode", modes),
         _choice("keys", "keys", [(str(int(n)), style.count(n)) for n in counts])], views,
        _fullest(dict(reversed(views.items())), next(iter(views), ("",))[0]))


def _fill_scale(points):
    """Filters that grow are given up to a hundred times as many keys."""
    return "log" if points["fill"].max() > 20 * points["fill"].min() else "linear"


def _overfill(run, places):
    """Where a run fills filters key by key: FPR and time against how far they are filled."""
    points = selection.filters_only(selection.ok(selection.plain_keys(run.filled)))
    if points.empty:
        return None
    views, counts = {}, sorted(set(points["keys"]))
    for keys in counts:
        here = points[points["keys"] == keys]
        rates = here[here["fpr_measured"] > 0].sort_values("queries", kind="stable")
        rates = rates.groupby(["filter", "params", "fill"]).tail(1).sort_values("fill")
        insert = here[here["mode"] == "overfill"]
        insert = selection.best_target(insert, run.best_target).sort_values("fill")
        for what, rows in (("rate", rates), ("insert", insert)):
            if len(rows):
                views[what, str(int(keys))] = _measured(places, selection.representatives(rows),
                                                        True)
    figure = _figure(
        "overfill", "Beyond the promise: filled key by key",
        "Filters made for the keys chosen, given more or fewer, until they refuse one.",
        _axis("keys given, over keys promised", _fill_scale(points), "fill"),
        _axis("FPR", "log", "fpr_measured", "fpr_low", "fpr_high"),
        [_choice("what", "show", [("rate", "FPR"), ("insert", "insert (ns/key)")]),
         _choice("keys", "made for", [(str(int(n)), style.count(n)) for n in counts])],
        views, _fullest(views, "rate" if any(what == "rate" for what, _ in views) else "insert"))
    if figure:
        figure["y_of"] = {"insert": _axis("insert (ns/key)", "log", **_NS)}
    return figure


_FIGURES = (_fpr_vs_bits, _lookup_vs_size, _space_vs_speed, _build_vs_keys, _lookup_vs_negatives,
            _overfill)


def caches(run):
    """[{"label", "bytes"}] of the caches that hold data."""
    sizes = sorted({(c.level, c.type.lower(), c.size_bytes) for c in run.caches})
    return [{"label": f"L{level}{'d' if kind == 'data' else ''} {style.bytes_label(size)}",
             "bytes": size} for level, kind, size in sizes if kind != "instruction"]


def of_run(run, frame, offset, series, filters):
    """The figures of a run; `frame` holds its points, the first of which is row `offset`."""
    places = _Places(frame, offset, series, filters)
    return [figure for make in _FIGURES if (figure := make(run, places)) is not None]
