"""The headline table of a run, for a terminal or as Markdown:

    /usr/bin/python3 -m plots.headline RUN... [--format text|markdown] [--all]

One row per key count, filter and parameters, of each variant the representative parameters
(selection.py) unless --all; then the baselines. Every number is taken from summary.json:

bits/key      all bytes that a lookup may touch, measured
FPR           of the point with the most queries; `< x` is the upper limit 3/queries if there was no
              false positive
build         median of mode build, or of the builds that the lookups needed if there is none
lookup        median ns/key in mode lookup_batched for the filter's best target
x floor       the lookups with absent keys only over the best touch_lines of the same size and run
"""

import argparse
import math
import sys
import unicodedata

from plots import command, load, selection

COLUMNS = ("keys", "filter", "params", "target", "bits/key", "FPR measured", "FPR expected",
           "build ns/key", "lookup 100% neg", "50% neg", "0% neg", "x floor")
_TEXT_COLUMNS = ("filter", "params", "target")
_UNKNOWN = "-"


def number(value, digits=3):
    """Three significant digits, without an exponent."""
    if value is None or math.isnan(value):
        return _UNKNOWN
    if value == 0:
        return "0"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def _percent(value):
    return _UNKNOWN if value is None or math.isnan(value) else number(100 * value) + " %"


def _first(frame, column):
    values = frame[column].dropna()
    return values.iloc[0] if len(values) else math.nan


def _time(frame, intervals):
    """The first row's median as text, with its interval if asked for and known."""
    if frame.empty or math.isnan(frame["ns_per_op"].iloc[0]):
        return _UNKNOWN
    row = frame.iloc[0]
    if not intervals or math.isnan(row["ns_per_op_low"]) or math.isnan(row["ns_per_op_high"]):
        return number(row["ns_per_op"])
    return (f"{number(row['ns_per_op'])} [{number(row['ns_per_op_low'])}, "
            f"{number(row['ns_per_op_high'])}]")


def table(run, everything=False, intervals=False):
    """The rows as dicts of text by column; `intervals`: beside measured times."""
    points = selection.plain_keys(run.points)
    good = selection.ok(points)
    if not everything and not good.empty:
        chosen = selection.representative_params(good)
        # What never was ok is represented by its failure.
        missing = selection.representative_params(points)
        known = {(name, variant) for name, variant in zip(good["filter"], good["variant"])}
        keep = [(f, p) in chosen or ((f, v) not in known and (f, p) in missing)
                for f, p, v in zip(points["filter"], points["params"], points["variant"])]
        points = points[keep]
        good = selection.ok(points)
    batched = selection.best_target(good[good["mode"] == "lookup_batched"], run.best_target)
    built = selection.best_target(good[good["mode"] == "build"], run.best_target)
    rows = []
    for (keys, name, params), group in points.groupby(["keys", "filter", "params"]):
        here = selection.ok(group)
        lookups = batched[batched.index.isin(group.index)]
        by_share = {share: _time(lookups[lookups["negative_share"] == share], intervals)
                    for share in (1.0, 0.5, 0.0)}
        fpr = here[here["queries"].notna()].sort_values("queries", ascending=False, kind="stable")
        measured = _first(fpr, "fpr_measured")
        build = _time(built[built.index.isin(group.index)], intervals)
        if build == _UNKNOWN:
            build = number(_first(here, "build_ns_per_key"))
        if name in selection.BASELINES:  # setting their table up is no building
            build = _UNKNOWN
        failed = group[group["status"] != "ok"]
        filler = _UNKNOWN if len(here) or failed.empty else failed["status"].iloc[0]
        rows.append({
            "keys": f"{int(keys)}", "filter": name,
            "params": group["params_label" if everything else "params_short"].iloc[0] or _UNKNOWN,
            "target": lookups["target"].iloc[0] if len(lookups) else _UNKNOWN,
            "bits/key": _UNKNOWN if name == "hash_only"  # it has no table
                        else number(_first(here, "bits_per_key"), 4),
            "FPR measured": ("< " + _percent(3 / fpr["queries"].iloc[0])) if measured == 0
                            else _percent(measured),
            "FPR expected": _percent(_first(fpr, "fpr_expected")),
            "build ns/key": build,
            "lookup 100% neg": filler if filler != _UNKNOWN else by_share[1.0],
            "50% neg": by_share[0.5], "0% neg": by_share[0.0],
            "x floor": number(_first(lookups[lookups["negative_share"] == 1.0], "floor_ratio")),
            "_order": (keys, name in selection.BASELINES, name,
                       selection.natural(group["variant"].iloc[0]),
                       _first(here, "bits_per_key") if len(here) else math.inf,
                       selection.natural(params)),
        })
    rows.sort(key=lambda row: row.pop("_order"))
    return rows


def failures(run):
    """One sentence per filter, parameters, key count and status other than ok."""
    failed = run.points[run.points["status"] != "ok"]
    sentences = []
    for (name, label, keys, status), group in failed.groupby(
            ["filter", "params_label", "keys", "status"]):
        text = " ".join(part for part in (name, label) if part)
        sentences.append(f"{text}, {int(keys)} keys: {status} ({len(group)} "
                         f"point{'s' * (len(group) > 1)}): {group['reason'].iloc[0]}")
    return sentences


def _width(text):
    """Columns that a terminal needs."""
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
               for c in text)


def _aligned(rows):
    lines = [{c: c for c in COLUMNS}, *rows]
    widths = {c: max(_width(line[c]) for line in lines) for c in COLUMNS}
    result, keys = [], None
    for line in lines:
        if keys not in (None, "keys", line["keys"]):
            result.append("")
        keys = line["keys"]
        cells = [line[c] + " " * (widths[c] - _width(line[c])) if c in _TEXT_COLUMNS
                 else " " * (widths[c] - _width(line[c])) + line[c] for c in COLUMNS]
        result.append("  ".join(cells).rstrip())
    return result


def markdown(columns, text_columns, rows):
    """The lines of a Markdown table; all but `text_columns` are aligned to the right."""
    def row(cells):
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    return [row(columns), row("---" if c in text_columns else "---:" for c in columns),
            *(row(line[c] for c in columns) for line in rows)]


def render(run, file_format="text", everything=False):
    """The table with the run's name above it and what failed below it."""
    rows = [{c: load.one_line(text) for c, text in row.items()} for row in table(run, everything)]
    head = f"run {run.name} on {run.cpu_brand or 'unknown CPU'}" + (
        "" if run.complete else " (INCOMPLETE)")
    notes = []
    if not everything:
        notes.append("Of each filter the parameters closest to "
                     f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key, and of these what "
                     "varies in the run; --all shows all.")
    notes.append("Medians; lookups batched, at the filter's best target. x floor: lookups of "
                 "absent keys over one random cache line per key.")
    notes += [load.one_line(f"Not ok: {sentence}") for sentence in failures(run)]
    if not rows:
        body = ["(no points)"]
    else:
        body = (markdown(COLUMNS, _TEXT_COLUMNS, rows) if file_format == "markdown"
                else _aligned(rows))
    if file_format == "markdown":
        return "\n".join([head, "", *body, "", *(f"- {note}" for note in notes)]) + "\n"
    return "\n".join([head, "", *body, "", *notes]) + "\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="plots.headline",
                                     description="Prints the headline table of runs.")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run directory")
    parser.add_argument("--format", choices=("text", "markdown"), default="text")
    parser.add_argument("--all", action="store_true", help="all parameters, not one per filter")
    options = parser.parse_args(arguments)
    try:
        runs = load.load_runs(options.runs)
    except load.RunError as error:
        print(f"plots.headline: {load.one_line(str(error))}", file=sys.stderr)
        return 2
    for run in runs:
        for note in run.notes:
            print(f"plots.headline: {load.one_line(note)}", file=sys.stderr)
    print("\n".join(render(run, options.format, options.all) for run in runs), end="")
    return 0


if __name__ == "__main__":
    command.run(main)
