"""filterbench compare A B: is B worse than A?

    filterbench compare A B
    filterbench compare --base RUN... --new RUN...

Runs are directories, of one machine in one state. Points are matched by their parameters. Times, false-positive
rates and bits per key are compared; a regression is a point that is worse by more than the minimum effect,
beyond what chance does in all tests together (5 %). Times are corrected for how fast the machine was, as the
runs' own baselines and the other filters show; the raw ratio stands beside. Several runs a side, made in
turn (A B A B), can also tell a change of everything from a change of the machine.

Exit codes: 0 no regression; 1 regression; 2 usage, or a run that cannot be read; 5 points are missing on a
side, a run is incomplete, or with --strict a point is undecided; 6 not comparable (--force compares anyway).
"""

import argparse
import collections
import dataclasses
import json
import math
import sys

import numpy

from plots import command, headline, load, selection
from scripts import comparability, regression

EXIT_OK, EXIT_REGRESSION, EXIT_USAGE, EXIT_INCOMPLETE, EXIT_NOT_COMPARABLE = 0, 1, 2, 5, 6
QUANTITIES = ("ns", "fpr", "bits_per_key")
_UNITS = {"ns": "ns", "fpr": "FPR", "bits_per_key": "bits/key"}


@dataclasses.dataclass
class Point:
    """A point on both sides: what was asked, and the samples of it."""

    key: tuple
    row: dict                 # of the first run that has it
    status: tuple             # worst on each side
    reason: tuple
    samples: tuple            # ([samples of A], [samples of B]), each with "unit_run"


# --- Matching ---

def key_of(row):
    """What identifies a point between runs: all its parameters. A key file is known by its digest, not
    by where it lies."""
    return row["question"], row["target"]


def describe(row):
    share = "" if math.isnan(row["negative_share"]) else f", {row['negative_share']:.0%} absent"
    fill = "" if math.isnan(row["fill"]) else f", filled {row['fill']:g} times"
    keys = "" if row["key_set"] == "mixed" else f" {row['key_set']}"
    hashing = "" if row["hashing"] == "prehashed" else f", {row['hashing']}"
    extra = more(row)
    params = json.loads(row["params"])
    shown = ", ".join(f"{name}={selection.value_label(value)}"
                      for name, value in sorted(params.items()))
    what = row["mode"] if row["mode"] != load.WORKLOAD else workload(row)
    return load.one_line(f"{row['filter']} {{{shown}}} {row['keys']:.0f}{keys} keys{fill}, "
                         f"{what}{share}{hashing}{extra}, {row['target']}")


def workload(row):
    """The workload of a point with its knobs, as text."""
    return f"{row['workload']} {{{row['knobs_label']}}}"


def more(row):
    """The parameters of a point that not every point has."""
    point = json.loads(row["question"])
    return "".join(f", {name} {point[name]}" for name in ("preset", "pages", "threads")
                   if point.get(name) is not None)


def rows_of(run):
    return [row for frame in run.frames for row in frame.to_dict("records")]


def collect(runs):
    """{key: (row, worst status, its reason, samples)} of the runs of one side."""
    found = {}
    for number, run in enumerate(runs):
        by_id = collections.defaultdict(list)
        measure = run.manifest["spec"].get("measure", {})
        for sample in run.samples.to_dict("records"):
            # Before processes were recorded, all rounds of a run came from one.
            process = sample["process"] if "processes" in measure else 0
            by_id[sample["point_id"]].append(sample | {"unit_run": number, "process": process})
        for row in rows_of(run):
            key = key_of(row)
            if key not in found:
                found[key] = [row, row["status"], row["reason"], []]
            elif found[key][1] == "ok" and row["status"] != "ok":
                found[key][1:3] = row["status"], row["reason"]
            found[key][3].extend(by_id[row["point_id"]])
    return found


def match(runs_a, runs_b):
    """(points on both sides, rows only in A, rows only in B)."""
    a, b = collect(runs_a), collect(runs_b)
    both = [Point(key, a[key][0], (a[key][1], b[key][1]), (a[key][2], b[key][2]),
                  (a[key][3], b[key][3])) for key in a if key in b]
    return (both, [entry[0] for key, entry in a.items() if key not in b],
            [entry[0] for key, entry in b.items() if key not in a])


# --- From samples to what is compared ---

def _mode(row):
    """The mode, with what else makes the machine's speed another one."""
    point = json.loads(row["question"])
    if row["mode"] == load.WORKLOAD:
        return f"{workload(row)}, negative_share {row['negative_share']:g}"
    return "".join([row["mode"], *(f", {name} {point[name]}" for name in ("pages", "threads")
                                   if point.get(name) is not None)])


def _of_workload(point):
    """The workload of a point that is on both sides, or None."""
    return point.row["workload"] if point.row["mode"] == load.WORKLOAD else None


def _level(size_bytes, caches):
    sizes = sorted({cache.size_bytes for cache in caches if cache.type != "instruction"})
    return 0 if math.isnan(size_bytes) else sum(size_bytes > size for size in sizes)


def _unit(runs_a, runs_b):
    return "run" if min(len(runs_a), len(runs_b)) >= 2 else "process"


def time_table(points, runs_a, runs_b):
    """(y, is_b, rows, unit) for regression.compare_times."""
    unit = _unit(runs_a, runs_b)
    nested = collections.defaultdict(list)  # (point, side, run, process) -> [passes of a build]
    for index, point in enumerate(points):
        for side in (0, 1):
            for sample in point.samples[side]:
                if sample["status"] == "ok":
                    nested[index, side, sample["unit_run"], sample["process"]].append(
                        sample["ns_per_op"])
    units = sorted({key[1:] for key in nested})
    y = numpy.full((len(points), len(units)), math.nan)
    for column, name in enumerate(units):
        for index in range(len(points)):
            if (index, *name) in nested:
                y[index, column] = regression.log_times(nested[(index, *name)])
    is_b = numpy.array([side for side, _, _ in units], bool)
    if unit == "run":
        runs = sorted({name[:2] for name in units})
        columns = [[i for i, name in enumerate(units) if name[:2] == run] for run in runs]
        y = numpy.array([[numpy.nanmean(line[c]) if not numpy.isnan(line[c]).all() else math.nan
                          for c in columns] for line in y]).reshape(len(points), len(runs))
        is_b = numpy.array([side for side, _ in runs], bool)
    rows = [regression.Row(filter=point.row["filter"], mode=_mode(point.row),
                           cache_level=0 if _of_workload(point) else _level(
                               point.row["size_bytes"], runs_a[0].caches),
                           is_baseline=(point.row["filter"] in selection.BASELINES
                                        and not _of_workload(point)),
                           builds=point.row["mode"] in load.MODES_WITHOUT_LOOKUPS) for point in points]
    return y, is_b, rows, unit


def builds_of(points):
    """[(point, builds of A, builds of B)]: one entry for all points of the same filters, which are
    built once a round, whatever is then measured on them."""
    grouped = {}
    for point in points:
        question = json.loads(point.key[0])
        filter_ = json.dumps({name: question.get(name) for name in (
            "filter", "preset", "params", "keys", "key_set", "fill", "hashing", "pages",
            "workload")},
            sort_keys=True)
        entry = grouped.setdefault(filter_, (point, ({}, {})))
        for side in (0, 1):
            for sample in point.samples[side]:
                place = sample["unit_run"], sample["round"]
                if not math.isnan(sample["bits_per_key"]):
                    held = entry[1][side].get(place)
                    if held is None or math.isnan(held.queries):
                        entry[1][side][place] = regression.Build(
                            seed=sample["seed"], digest=sample["filter_digest"],
                            bits_per_key=sample["bits_per_key"],
                            false_positives=sample["false_positives"], queries=sample["queries"],
                            instance_sd=sample["fpr_instance_sd"])
    return [(point, list(a.values()), list(b.values())) for point, (a, b) in grouped.values()]


def changed_digests(points):
    """{"bytes": {filter: [changed, compared]}, "answers": ...} over builds of the same seed."""
    counts = {"bytes": {}, "answers": {}}
    for point in points:
        for name, field in (("bytes", "filter_digest"), ("answers", "answers_digest")):
            a, b = ({sample["seed"]: sample[field] for sample in side if sample[field]}
                    for side in point.samples)
            for seed in a.keys() & b.keys():
                entry = counts[name].setdefault(point.row["filter"], [0, 0])
                entry[0] += a[seed] != b[seed]
                entry[1] += 1
    return counts


def page_remarks(points):
    """Filters whose tables lay on huge pages on one side only."""
    found = {}
    for point in points:
        shares = []
        for side in point.samples:
            bytes_ = [sample["huge_page_bytes"] for sample in side
                      if not math.isnan(sample["huge_page_bytes"])]
            shares.append(numpy.mean([b > 0 for b in bytes_]) if bytes_ else None)
        if None not in shares and abs(shares[0] - shares[1]) > 0.5:
            found[point.row["filter"]] = found.get(point.row["filter"], 0) + 1
    return found


def stream_differences(points):
    """Points whose streams had other lengths: another question."""
    return sum(1 for point in points
               if len(lengths := {sample["stream_lookups"] for side in point.samples
                                  for sample in side if not math.isnan(sample["stream_lookups"])}) > 1
               and lengths)


# --- The comparison ---

@dataclasses.dataclass
class Comparison:
    runs: tuple
    limits: regression.Limits
    not_comparable: list
    remarks: list
    points: list
    only_a: list
    only_b: list
    findings: list            # (point, the name of a filter for all its points, or None for all
                              # baselines; quantity; Finding)
    status_worse: list        # points that are ok in A and not in B
    status_better: list
    failed_in_both: list
    times: regression.Times
    digests: dict
    tests: int
    drift: tuple | None       # ratio B/A of the baselines: median, low, high over them

    def of_verdict(self, verdict):
        return [entry for entry in self.findings if entry[2].verdict == verdict]

    @property
    def incomplete(self):
        return [run for side in self.runs for run in side if not run.complete]


def compare(runs_a, runs_b, limits=regression.Limits()):
    """Raises load.RunError where there is nothing to compare."""
    first = runs_a[0]
    all_runs = [*runs_a, *runs_b]
    points, only_a, only_b = match(runs_a, runs_b)
    differing, remarks = [], []
    for run in all_runs[1:]:
        for found, kind in ((differing, comparability.differences), (remarks, comparability.remarks)):
            found += [(run, *difference) for difference in kind(first.manifest, run.manifest)]
    if count := stream_differences(points):
        differing.append((runs_b[0], f"stream_lookups of {count} points", "one length", "another"))
    unknown = sorted({field for run in all_runs[1:]
                      for field in comparability.unknown(first.manifest, run.manifest)})
    if unknown:
        remarks.append(f"not known to be alike: {', '.join(unknown)}")
    for filter_, count in page_remarks(points).items():
        remarks.append(f"{filter_}: {count} points had huge pages on one side only")

    both_ok = [point for point in points if point.status == ("ok", "ok")]
    findings = []
    # What an application's operations take says nothing about lookups, nor those of one application
    # about another's: neither how far times scatter nor how fast the machine was.
    for name in sorted({_of_workload(point) for point in both_ok} - {None}):
        own = [point for point in both_ok if _of_workload(point) == name]
        of_workload = regression.compare_times(*time_table(own, runs_a, runs_b)[:3], limits,
                                               _unit(runs_a, runs_b))
        findings += [(point, "ns", finding) for point, finding in zip(own, of_workload.findings)]
        findings += [(f"{filter_} in {name}", "ns", finding)
                     for filter_, finding in of_workload.filters.items()]
    both_ok = [point for point in both_ok if _of_workload(point) is None]
    y, is_b, rows, unit = time_table(both_ok, runs_a, runs_b)
    times = regression.compare_times(y, is_b, rows, limits, unit)
    findings = [(point, "ns", finding) for point, finding in zip(both_ok, times.findings)] + [
        (filter_, "ns", finding) for filter_, finding in times.filters.items()] + findings
    if unit == "run" and (whole := regression.whole_shift(y, is_b, rows, limits)):
        findings.append((None, "ns", whole))
    for point, a, b in builds_of(points):
        for quantity, function in (("fpr", regression.compare_rates),
                                   ("bits_per_key", regression.compare_sizes)):
            if (finding := function(a, b, limits)) is not None:
                findings.append((point, quantity, finding))
    tests = regression.decide([(quantity, finding) for _, quantity, finding in findings], limits)
    raw = [finding.raw_ratio for row, finding in zip(rows, times.findings)
           if row.is_baseline and not row.builds and not math.isnan(finding.raw_ratio)]
    drift = tuple(float(numpy.quantile(raw, q)) for q in (0.5, 0.0, 1.0)) if raw else None
    return Comparison(
        runs=(runs_a, runs_b), limits=limits, not_comparable=differing, remarks=remarks,
        points=points, only_a=only_a, only_b=only_b, findings=findings,
        status_worse=[p for p in points if p.status[0] == "ok" and p.status[1] != "ok"],
        status_better=[p for p in points if p.status[0] != "ok" and p.status[1] == "ok"],
        failed_in_both=[p for p in points if "ok" not in p.status],
        times=times, digests=changed_digests(points), tests=tests, drift=drift)


def exit_code(comparison, arguments):
    if comparison.not_comparable and not arguments.force:
        return EXIT_NOT_COMPARABLE
    if comparison.status_worse or comparison.of_verdict(regression.WORSE):
        return EXIT_REGRESSION
    missing = comparison.only_a or comparison.only_b or comparison.incomplete
    if missing and not arguments.allow_missing:
        return EXIT_INCOMPLETE
    if arguments.strict and comparison.of_verdict(regression.UNDECIDED):
        return EXIT_INCOMPLETE
    return EXIT_OK


# --- Output ---

def _change(ratio):
    return f"{ratio - 1:+.1%}" if math.isfinite(ratio) else "-"


def _interval(finding):
    if math.isnan(finding.low):
        return "-"
    high = f"{finding.high - 1:+.1%}" if math.isfinite(finding.high) else "any"
    return f"[{finding.low - 1:+.1%}, {high}]"


def table(comparison, everything):
    """Aligned lines: the findings that matter, worst first."""
    order = {regression.WORSE: 0, regression.BETTER: 1, regression.UNDECIDED: 2, regression.SAME: 3}
    shown = [entry for entry in comparison.findings
             if everything or entry[2].verdict in (regression.WORSE, regression.BETTER)
             or entry[2].verdict == regression.UNDECIDED and entry[2].low > 1]
    shown.sort(key=lambda entry: (order[entry[2].verdict], -entry[2].ratio))
    if not shown:
        return []
    lines = [("verdict", "", "A", "B", "change", "95 %", "raw", "p", "point")]
    for point, quantity, finding in shown:
        lines.append((
            finding.verdict, _UNITS[quantity], _number(finding.a, quantity),
            _number(finding.b, quantity), _change(finding.ratio), _interval(finding),
            _change(finding.raw_ratio) if quantity == "ns" else "-",
            "-" if finding.p_adjusted is None else f"{finding.p_adjusted:.2g}",
            _subject(point)))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return ["  ".join(cell.rjust(width) if 2 <= i <= 7 else cell.ljust(width)
                      for i, (cell, width) in enumerate(zip(line, widths))).rstrip()
            for line in lines]


def _subject(point):
    if point is None:
        return "all baselines"
    return f"{point}, all its points" if isinstance(point, str) else describe(point.row)


def _number(value, quantity):
    if quantity == "fpr":
        return f"{value:.3%}"
    return headline.number(value, 4)


def _several(count, word):
    return f"{count} {word}{'' if count == 1 else 's'}"


def sentences(comparison, force=False):
    """What came out, in words."""
    limits, times = comparison.limits, comparison.times
    worse = len(comparison.of_verdict(regression.WORSE))
    failed = len(comparison.status_worse)
    counts = [f"{len(comparison.of_verdict(verdict))} {word}" for verdict, word in (
        (regression.BETTER, "better"), (regression.SAME, "not worse"),
        (regression.UNDECIDED, "undecided"))]
    head = (f"REGRESSION: {worse} worse" + (f", {failed} failed" if failed else "")
            if worse or failed else "no regression found")
    undecided = len(comparison.of_verdict(regression.UNDECIDED))
    if 2 * undecided > comparison.tests:
        head += ", BUT MOST IS UNDECIDED"
    yield (f"{head}; {', '.join(counts)} ({comparison.tests} tests on "
           f"{_several(len(comparison.points), 'point')}; minimum effects: time {limits.ns:.1%}, FPR "
           f"{limits.fpr:.1%}, bits per key {limits.bits:.2%})")
    if comparison.drift:
        middle, low, high = comparison.drift
        yield (f"machine: the baselines took {middle:.3f} times as long in B ({low:.3f} to {high:.3f}); "
               f"times are corrected for it, and the raw change stands beside")
    if times.scatter > 0.001:
        yield (f"machine: ratios scatter by {times.scatter:.1%} more than the processes of each run "
               f"explain; this is added to every interval")
    for mode, level, ratio, low, high in times.groups:
        if times.unit == "process" and not 1 / (1 + limits.ns) < ratio < 1 + limits.ns and (
                low > 1 or high < 1):
            yield (f"all filters in {mode}, cache level {level + 1}, moved by {_change(ratio)} against the "
                   f"baselines: the machine, or code that all share; several runs a side, made in turn, "
                   f"would tell")
    undecided = [finding for _, quantity, finding in comparison.of_verdict(regression.UNDECIDED)
                 if quantity == "ns"]
    if undecided:
        yield from _undecided(undecided, times.unit)
    finds = sorted(finding.finds for finding in times.findings if not math.isnan(finding.finds))
    if finds:
        yield (f"a slow-down of {_found(finds[len(finds) // 2])} would have been found in half of the "
               f"points, of {_found(finds[len(finds) * 9 // 10])} in nine of ten (with a chance of "
               f"{regression.FOUND_CHANCE:.0%})")
    for name, by_filter in comparison.digests.items():
        changed = [f"{filter_} ({count} of {total})" for filter_, (count, total) in by_filter.items()
                   if count]
        if changed:
            yield f"{name} changed, for the same keys and seed: {', '.join(changed)}"


def _found(slow_down):
    # Beyond a doubling the number says only that nothing is known.
    return f"{slow_down:.1%}" if slow_down <= 1 else "more than 100%"


def _undecided(findings, unit):
    plural = {"process": "processes", "run": "runs"}[unit]
    too_few = [finding for finding in findings if math.isnan(finding.low)]
    if too_few:
        yield (f"too few repetitions for {_several(len(too_few), 'time')}: {too_few[0].reason}")
    wide = [finding for finding in findings if not math.isnan(finding.low)]
    if not wide:
        return
    known = sorted(finding.needed for finding in wide if finding.needed)
    hopeless = len(wide) - len(known)
    words = []
    if known:
        enough = known[min(len(known) - 1, len(known) * 9 // 10)]
        words.append(f"{enough} {plural} a side would do for nine of ten of {len(known)}")
    if hopeless:
        words.append(f"for {hopeless} no number of {plural} helps"
                     + ("; give several runs a side" if unit == "process" else ""))
    yield (f"the intervals of {_several(len(wide), 'time')} reach beyond the minimum effect: "
           + "; ".join(words))


def render(comparison, arguments):
    names = [", ".join(str(run.path) for run in side) for side in comparison.runs]
    lines = [f"A: {names[0]}", f"B: {names[1]}"]
    for run, field, a, b in comparison.not_comparable:
        lines.append(f"not comparable: {run.path}: {field}: {comparability.text(b)}, "
                     f"A has {comparability.text(a)}")
    if comparison.not_comparable and not arguments.force:
        return lines + ["not compared; --force does it anyway"]
    for remark in comparison.remarks:
        lines.append("note: " + (remark if isinstance(remark, str) else
                                 f"{remark[0].path}: {remark[1]}: {comparability.text(remark[3])}, "
                                 f"A has {comparability.text(remark[2])}"))
    for run in comparison.incomplete:
        lines.append(f"incomplete: {run.path}")
    for side, rows in (("A", comparison.only_a), ("B", comparison.only_b)):
        lines += [f"only in {side}: {describe(row)}" for row in rows]
    for point in comparison.status_worse:
        lines.append(f"worse: ok in A, {point.status[1]} in B: {describe(point.row)}: "
                     f"{load.one_line(point.reason[1])}")
    for point in comparison.status_better:
        lines.append(f"better: {point.status[0]} in A, ok in B: {describe(point.row)}")
    if comparison.failed_in_both:
        lines.append(f"{_several(len(comparison.failed_in_both), 'point')} failed on both sides")
    lines += table(comparison, arguments.all)
    return lines + list(sentences(comparison))


def _finite(value):
    return value if value is None or math.isfinite(value) else None


def as_json(comparison, code):
    def name(row):
        question, target = key_of(row)
        return json.loads(question) | {"target": target}

    return {
        "schema": "filterbench/comparison/1", "exit_code": code,
        "base": [str(run.path) for run in comparison.runs[0]],
        "new": [str(run.path) for run in comparison.runs[1]],
        "minimum_effect": {"ns": comparison.limits.ns, "fpr": comparison.limits.fpr,
                           "bits_per_key": comparison.limits.bits},
        "alpha": comparison.limits.alpha, "tests": comparison.tests, "unit": comparison.times.unit,
        "not_comparable": [{"run": str(run.path), "field": field, "base": a, "new": b}
                           for run, field, a, b in comparison.not_comparable],
        "notes": [remark if isinstance(remark, str) else f"{remark[0].path}: {remark[1]}: "
                  f"{comparability.text(remark[3])}, A has {comparability.text(remark[2])}"
                  for remark in comparison.remarks],
        "incomplete": [str(run.path) for run in comparison.incomplete],
        "only_in_base": [name(row) for row in comparison.only_a],
        "only_in_new": [name(row) for row in comparison.only_b],
        "failed_in_new": [{"point": name(p.row), "status": p.status[1], "reason": p.reason[1]}
                          for p in comparison.status_worse],
        "mended_in_new": [{"point": name(p.row), "status": p.status[0]}
                          for p in comparison.status_better],
        "failed_in_both": [name(p.row) for p in comparison.failed_in_both],
        "machine": None if comparison.drift is None else dict(
            zip(("ratio", "least", "most"), comparison.drift)),
        "scatter": comparison.times.scatter,
        "digests_changed": {kind: {filter_: {"changed": int(changed), "compared": total}
                                   for filter_, (changed, total) in by_filter.items()}
                            for kind, by_filter in comparison.digests.items()},
        "findings": [{
            "point": (None if point is None else {"filter": point} if isinstance(point, str)
                      else name(point.row)), "quantity": quantity,
            "verdict": finding.verdict, "reason": finding.reason, "reference": finding.reference,
            **{field: _finite(getattr(finding, field)) for field in (
                "a", "b", "ratio", "low", "high", "raw_ratio", "p_worse", "p_better", "p_adjusted",
                "finds")},
            "needed": finding.needed} for point, quantity, finding in comparison.findings],
        "summary": list(sentences(comparison)),
    }


def _percent(text):
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError:
        value = math.nan
    if not 0 <= value < 10:
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage of at least 0")
    return value


def parse(arguments):
    limits = regression.Limits()
    parser = argparse.ArgumentParser(prog="filterbench compare", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="A and B")
    parser.add_argument("--base", nargs="+", metavar="RUN", default=[], help="the runs of side A")
    parser.add_argument("--new", nargs="+", metavar="RUN", default=[], help="the runs of side B")
    for name, of, default in (("ns", "times", limits.ns), ("fpr", "rates", limits.fpr),
                              ("bits", "bits per key", limits.bits)):
        parser.add_argument(f"--min-effect-{name}", type=_percent, default=default,
                            metavar="PERCENT", help=f"smaller changes of {of} are none "
                            f"(default {100 * default:g})")
    parser.add_argument("--allow-missing", action="store_true",
                        help="points of one side only and incomplete runs are no failure")
    parser.add_argument("--strict", action="store_true", help="undecided points are a failure")
    parser.add_argument("--force", action="store_true",
                        help="compare though machine, compiler or settings differ")
    parser.add_argument("--all", action="store_true", help="show every point")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parsed = parser.parse_args(arguments)
    if parsed.base or parsed.new:
        if parsed.runs or not (parsed.base and parsed.new):
            parser.error("either two runs, or --base RUN... and --new RUN...")
    elif len(parsed.runs) == 2:
        parsed.base, parsed.new = parsed.runs[:1], parsed.runs[1:]
    else:
        parser.error(f"two runs are compared, found {len(parsed.runs)}; several a side: "
                     "--base RUN... --new RUN...")
    return parsed


def main(arguments=None):
    arguments = parse(arguments)
    try:
        runs = load.load_runs([*arguments.base, *arguments.new])
    except load.RunError as error:
        print(f"filterbench compare: {error}", file=sys.stderr)
        return EXIT_USAGE
    sides = runs[:len(arguments.base)], runs[len(arguments.base):]
    comparison = compare(*sides, regression.Limits(
        ns=arguments.min_effect_ns, fpr=arguments.min_effect_fpr, bits=arguments.min_effect_bits))
    code = exit_code(comparison, arguments)
    for run in runs:
        for note in run.notes:
            print(f"filterbench compare: {note}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(as_json(comparison, code), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(render(comparison, arguments)))
    return code


if __name__ == "__main__":
    command.run(main)
