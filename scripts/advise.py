"""Tells which filter to take, from what runs measured:

    filterbench advise --keys 1e8 --negatives 0.9 --miss-cost 100us [--memory 150MB]
                       [--needs erase,insert,grow] [--mode lookup_batched]
                       [--lookups-per-key X] [--run RUN...] [--json] [--figure FILE]

The filter with the least expected cost of a lookup (Lang, Neumann, Kemper, Boncz 2019,
"Performance-Optimal Filtering"): the time to ask it, and for the share --negatives of lookups, of
keys that are not there, its false-positive rate times --miss-cost, the time of the work that a
false positive causes. Work for keys that are there is the same behind every filter and left out. No
filter at all is an answer too. With --lookups-per-key the time to build it counts as well, shared
by so many lookups for each key; without it, building costs nothing.

Without --run: of each spec the newest complete run in results/ that has lookups and was measured
on this machine's CPU, and what else the program of that run measured of the spec; if there is none
the newest reference run, of another CPU, which is said. Of several runs each filter's numbers are
of the run that measured it nearest to the question, then of the run with the most filters, or with
--run of the one named first. A filter that has other parameters in the newest run than in an older
one is of the newest.

What was not measured at these keys and negatives is interpolated, or extrapolated by the machine's
floor (plots/carry.py), and marked so. Where the intervals of two costs meet, the measurements do
not tell which is less: "within noise". Text on stdout, or with --json all of it. --figure also
draws expected cost against the cost of a miss; the ending of FILE says how (png, pdf, svg), --theme
for what.

Times are of batched lookups unless --mode says lookup_single (one key at a time) or latency (each
lookup waits for the one before): batched is what every run has for every filter at most sizes. The
output tells if another mode that was measured gives another filter.

Exit codes: 0 ok; 2 usage, or a run that cannot be read; 5 no filter can be advised (the message
says what would be needed), or the figure could not be written; 6 the runs are of several machines.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import re
import subprocess
import sys

from plots import advice as picture
from plots import command, costs, draw, headline, load, style
from plots.advice import duration, size
from scripts import choice
from scripts.compare_cpus import is_reference

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXIT_USAGE, EXIT_IMPOSSIBLE, EXIT_NOT_COMPARABLE = 2, 5, 6
MOST_RANKED = 8  # options in the text; the JSON has all
MOST_LEFT_OUT = 6


class Refused(Exception):
    """What keeps us from an answer; `code` is the exit code."""

    def __init__(self, message, code=EXIT_USAGE):
        super().__init__(message)
        self.code = code


def _say(text):
    print(f"advise: {load.one_line(text)}", file=sys.stderr)


# --- The question ---

_NUMBER = r"(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
_TIMES = {"ns": 1.0, "us": 1e3, "\u00b5s": 1e3, "\u03bcs": 1e3, "ms": 1e6, "s": 1e9}
_BYTES = {"B": 1, **{f"{prefix}B": 1000 ** power for power, prefix in enumerate("kMGT", 1)},
          "KB": 1000, **{f"{prefix}iB": 1024 ** power for power, prefix in enumerate("KMGT", 1)}}
_COUNTS = {"": 1, "k": 1000, "K": 1000, "M": 10 ** 6, "G": 10 ** 9}


def _quantity(units, example):
    """A parser of a number above 0 with one of `units` behind it."""
    def parse(text):
        found = re.fullmatch(_NUMBER + r" ?([^\d\s.]*)", text)
        if found is None or found[2] not in units:
            known = ", ".join(unit for unit in units if unit.isascii() and unit)
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a number with a unit of {known}, such as {example}")
        value = float(found[1]) * units[found[2]]
        if not 0 < value < math.inf:
            raise argparse.ArgumentTypeError(f"{text!r} must be above 0 and finite, such as "
                                             f"{example}")
        return value
    return parse


def _keys(text):
    try:
        value = _quantity(_COUNTS, "1e8")(text)
    except argparse.ArgumentTypeError:
        value = math.nan
    if value != value or value != int(value) or value < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number of keys from 1 on, such as 100000000, 1e8 or 100M")
    return int(value)


def _number(low, high, example):
    def parse(text):
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high or math.isinf(value):
            upper = "on" if math.isinf(high) else f"to {high:g}"
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a number from {low:g} {upper}, such as {example}")
        return value
    return parse


def _needs(text):
    needs = [need.strip() for need in text.split(",") if need.strip()]
    for need in needs:
        if need not in choice.NEEDS:
            raise argparse.ArgumentTypeError(
                f"{need!r} is not one of {', '.join(choice.NEEDS)}; several as in erase,grow")
    if not needs:
        raise argparse.ArgumentTypeError(f"names none of {', '.join(choice.NEEDS)}")
    return needs


def _figure(text):
    path = pathlib.Path(text)
    if path.suffix[1:] not in draw.FORMATS:
        raise argparse.ArgumentTypeError(
            f"{text!r} does not end with one of {', '.join('.' + f for f in draw.FORMATS)}")
    return path


def _parser():
    parser = argparse.ArgumentParser(
        prog="filterbench advise", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__.split("\n\n", 2)[2], allow_abbrev=False)
    parser.add_argument("--keys", type=_keys, required=True, metavar="N",
                        help="keys in the filter: 100000000, 1e8 or 100M")
    parser.add_argument("--negatives", type=_number(0, 1, "0.9"), required=True, metavar="SHARE",
                        help="share of lookups for keys that are not there: 0 to 1")
    parser.add_argument("--miss-cost", type=_quantity(_TIMES, "100us"), required=True,
                        metavar="TIME", help="of the work that a false positive causes: 100ns, "
                        "100us, 2ms, 0.1s")
    parser.add_argument("--memory", type=_quantity(_BYTES, "150MB"), default=math.inf,
                        metavar="BYTES", help="most bytes of the filter: 150MB, 64MiB")
    parser.add_argument("--needs", type=_needs, action="extend", default=[], metavar="LIST",
                        help="what it must be able to do: insert, erase, grow")
    parser.add_argument("--mode", choices=choice.MODES, default=choice.MODES[0],
                        help="how lookups are made (default %(default)s)")
    parser.add_argument("--lookups-per-key", type=_number(1e-9, math.inf, "10"), metavar="X",
                        help="lookups in the life of a filter over its keys: the time to build it "
                        "counts (default: it does not)")
    parser.add_argument("--run", nargs="+", action="extend", default=[], metavar="RUN",
                        dest="runs", help="run directories to answer from")
    parser.add_argument("--results", type=command.path, default=ROOT / "results", metavar="DIR",
                        help="where runs lie (default: results/ of the tree)")
    parser.add_argument("--json", action="store_true", help="a JSON document instead of text")
    parser.add_argument("--figure", type=_figure, metavar="FILE", help="also draw the answer")
    parser.add_argument("--theme", choices=style.THEMES, default=style.THEMES[0],
                        help="of the figure (default %(default)s)")
    return parser


# --- Which runs ---

def this_cpu(cpuinfo=pathlib.Path("/proc/cpuinfo")):
    """What the kernel says of this machine's first CPU, in the words of a manifest; empty if it
    says nothing."""
    try:
        first = cpuinfo.read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    except OSError:
        return {}
    said = {name.strip(): value.strip() for name, _, value in
            (line.partition(":") for line in first.splitlines())}
    return {field: said[key] for field, key in (
        ("brand", "model name"), ("family", "cpu family"), ("model", "model"),
        ("stepping", "stepping"), ("vendor", "CPU implementer"), ("part", "CPU part"))
            if said.get(key)}


def is_here(manifest, cpu):
    """Whether the run of this manifest was measured on the CPU that this machine has, as far as
    both tell."""
    measured = (manifest.get("environment") or {}).get("cpu") or {}
    both = [field for field in cpu if measured.get(field) is not None]
    return ("brand" in both or "part" in both) and all(
        str(measured[field]) == cpu[field] for field in both)


def _complete_runs(results):
    """(path, manifest) of the runs that lie in `results`, oldest first."""
    for path in sorted(results.glob("*/*/"), key=lambda path: path.name):
        if path.name.startswith(".") or not (path / "COMPLETE").exists():
            continue
        try:
            manifest = json.loads(load.read(path / "manifest.json"))
            if not isinstance(manifest, dict):
                raise ValueError("not an object")
        except (load.RunError, ValueError) as error:
            _say(f"{path}: left out: {error}")
            continue
        yield path, manifest


def _has_lookups(manifest):
    points = (manifest.get("spec") or {}).get("points")
    return not isinstance(points, list) or any(
        point.get("mode") in choice.MODES and point.get("fill") is None for point in points)


def _newest_of_each_spec(runs):
    """Of (path, manifest), oldest first: the newest of each spec, and of those with the same name
    that are another sweep (`--filter`, `--set`) what the same program measured."""
    def name(manifest):
        return (manifest.get("spec") or {}).get("name")

    def program(manifest):
        return (manifest.get("provenance") or {}).get("binary_xxh3")
    newest = {name(manifest): program(manifest) for _, manifest in runs}
    of_each = {(name(manifest), manifest.get("spec_hash")): (path, manifest)
               for path, manifest in runs}
    return [path for path, manifest in of_each.values()
            if program(manifest) == newest[name(manifest)]]


def choose_runs(results, cpu):
    """The runs to answer from if none is named (see the top). Raises Refused."""
    every = list(_complete_runs(results))
    own = [(path, manifest) for path, manifest in every
           if is_here(manifest, cpu) and _has_lookups(manifest)]
    if own:
        # Machines with one CPU may differ in cores and caches; the newest is this one most likely.
        machine = own[-1][1].get("machine")
        return load.load_runs(_newest_of_each_spec(
            [(path, manifest) for path, manifest in own if manifest.get("machine") == machine]))
    kept = [((manifest.get("spec") or {}).get("name") == "paper", path.name, path)
            for path, manifest in every if is_reference(path) and _has_lookups(manifest)]
    if not kept:
        raise Refused(f"{results} has no complete run of this machine's CPU and no reference run: "
                      "filterbench run quick measures one, --run names one", EXIT_IMPOSSIBLE)
    return [load.load_run(max(kept)[2])]


def _runs(options, cpu):
    if not options.runs:
        return choose_runs(options.results, cpu)
    runs = load.load_runs(options.runs)
    machines = {run.machine: run for run in runs}
    if len(machines) > 1:
        raise Refused("the runs are of several machines, whose times say nothing about each other: "
                      + ", ".join(f"{run.path} of {name}" for name, run in machines.items()),
                      EXIT_NOT_COMPARABLE)
    return runs


def _in_order(runs, mode, are_named):
    """As they were named; else those with most filters and parameters in the mode first."""
    if are_named:
        return runs

    def rank(run):
        here = run.points[(run.points["mode"] == mode) & (run.points["status"] == "ok")]
        return here.groupby(["filter", "params"]).ngroups, run.name
    return sorted(runs, key=rank, reverse=True)


def _catalogue():
    """What `filterbench list --json` says. Raises Refused."""
    program = os.environ.get("FILTERBENCH") or ROOT / "build" / "release" / "filterbench"
    try:
        done = subprocess.run([program, "list", "--json"], capture_output=True, text=True,
                              check=True)
        return json.loads(done.stdout)
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        raise Refused(f"--needs: {program} list --json does not say what filters can do: {error}; "
                      "FILTERBENCH names another program") from None


# --- Words ---

def _percent(share):
    return f"{headline.number(100 * share)} %"


def _interval(measured, text=duration):
    if not measured.has_interval():
        return f"{text(measured.value)} [interval unknown]"
    high = "any" if math.isinf(measured.high) else text(measured.high)
    return f"{text(measured.value)} [{text(measured.low)}, {high}]"


def _asked(question):
    limits = "" if math.isinf(question.memory_bytes) else (
        f", in at most {size(question.memory_bytes)}")
    needs = f", that can {' and '.join(question.needs)}" if question.needs else ""
    building = ("building not counted" if question.lookups_per_key is None else
                f"building shared by {question.lookups_per_key:g} lookups per key")
    return (f"{style.count(question.keys)} keys, {100 * question.negatives:g} % of lookups for "
            f"absent keys, a false positive costs {duration(question.miss_cost_ns)}{limits}{needs}"
            f"; times of mode {question.mode}, {building}")


def _waste(advice, option):
    """ns per lookup that its false positives cause."""
    return advice.question.negatives * option.fpr.value * advice.question.miss_cost_ns


def _parts(advice, option):
    return (f"{duration(option.ns.value)} to ask it and {duration(_waste(advice, option))} of work "
            "that its false positives cause")


def why(advice):
    """The sentence that says why."""
    winner, other = advice.winner, advice.runner_up
    cost = duration(advice.cost(winner).value)
    if not winner.is_filter:
        return (f"No filter: letting every absent key through costs {cost} per lookup, and "
                f"{other.label}, the best filter, already takes {duration(other.ns.value)} to "
                f"ask.")
    opening = f"{winner.label} costs {cost} per lookup, {_parts(advice, winner)}"
    if not other.is_filter:
        return f"{opening}; without a filter it would be {duration(advice.cost(other).value)}."
    slower = winner.ns.value - other.ns.value
    saves = _waste(advice, other) - _waste(advice, winner)
    against = f"{other.label} costs {duration(advice.cost(other).value)}, {_parts(advice, other)}"
    if slower <= 0 <= saves:
        reason = "it is the faster one and lets fewer absent keys through"
    elif slower > 0:
        reason = (f"the {duration(slower)} more that it takes save {duration(saves)} of work")
    else:
        reason = (f"the {duration(-slower)} less that it takes are worth more than "
                  f"the {duration(-saves)} of work that the other would save")
    return f"{opening}; {against}: {reason}."


def verdict(advice):
    """One line: what to take, and how sure that is."""
    winner, other = advice.winner, advice.runner_up
    name = winner.label if winner.is_filter else "no filter"
    if advice.within_noise is None:
        return f"Take {name}; how sure that is, is not known: an interval is missing."
    if advice.within_noise:
        rest = [option.label for option in advice.as_good if option.filter != winner.filter]
        more = f" nor from {len(rest) - 1} other choices" if len(rest) > 1 else ""
        hedge = " (extrapolated)" if advice.basis == "extrapolated" else ""
        return (f"Within noise: {name} has the least expected cost{hedge}, and the numbers do not "
                f"tell it from {other.label}{more}.")
    if advice.basis == "extrapolated":
        return f"Probably {name}: this is extrapolated, not measured."
    if advice.basis == "interpolated":
        return f"Take {name} (times interpolated)."
    return f"Take {name}."


def caveats(advice, here, modes):
    said = []
    run = advice.runs[0]
    if here is None:
        said.append("whether this machine has the CPU that was measured on is not known")
    if not here and here is not None:
        said.append(f"MEASURED ON ANOTHER CPU ({run.cpu_brand or 'unknown CPU'}): times here "
                    "differ and so may the answer; `filterbench run quick` measures this one")
    for one in advice.runs:
        if not one.complete:
            said.append(f"{one.name} is not complete")
    pair = [option for option in (advice.winner, advice.runner_up) if option.is_filter]
    for option in pair:
        if option.basis != "measured":
            said.append(f"{option.label}: {option.basis}, {option.grounds}")
        shaky = option.points[(option.points["stable"] == False)]  # noqa: E712  None is neither
        if len(shaky):
            widest = shaky["width"].max()
            said.append(f"{option.label}: unstable, its interval is {_percent(widest)} wide where "
                        f"{_percent(shaky['asked_width'].iloc[0])} was asked for")
        if option.points["clusters_explained_by"].notna().any():
            said.append(f"{option.label}: its times fall into two modes; their median describes "
                        "neither")
        if option.candidate.fpr_from == costs.LIMIT:
            said.append(f"{option.label}: no false positive was seen; its FPR is the limit 3/N")
        elif option.candidate.fpr_from == costs.EXPECTED:
            said.append(f"{option.label}: its FPR is that of theory")
    if len({option.run.name for option in pair}) > 1:
        said.append("winner and runner-up were measured in different runs: " + ", ".join(
            f"{option.label} in {option.run.name}" for option in pair))
    firmer = next((option for option in advice.options if option.is_filter
                   and option.firmness < advice.winner.firmness), None)
    if firmer is not None:
        said.append(f"the best on firmer ground, {firmer.basis}, is {firmer.label}: "
                    f"{_interval(advice.cost(firmer))}")
    if advice.beyond_memory is not None:
        more = advice.beyond_memory
        said.append(f"with {size(more.size_bytes)} of memory {more.label} would cost "
                    f"{duration(advice.cost(more).value)}")
    if "grow" in advice.question.needs:
        said.append("the times and sizes are of filters made for all keys at once; one that grew "
                    "to so many has more layers, costs more and may take more memory")
    for mode, other in modes.items():
        both = other and advice.best_of_both(other)
        if both and both[0].filter != both[1].filter:
            here_best, there_best, count = both
            said.append(f"in mode {mode} it would be {there_best.label} "
                        f"({_interval(other.cost(there_best))}, {there_best.basis}) instead of "
                        f"{here_best.label}, of the {count} that both modes were measured with")
    return said


_RANGE_COLUMNS = ("cost of a miss", "take", "bits/key", "memory", "FPR", "lookup", "known")
_RANK_COLUMNS = ("expected cost", "filter", "bits/key", "memory", "FPR", "lookup", "known")


def _row(option):
    if not option.is_filter:
        return {"bits/key": "-", "memory": "-", "FPR": "100 %", "lookup": "-", "known": "exactly"}
    return {"bits/key": headline.number(option.bits_per_key), "memory": size(option.size_bytes),
            "FPR": _percent(option.fpr.value), "lookup": _interval(option.lookup),
            "known": option.basis}


def _limits(stretch):
    if stretch.low_ns == 0:
        return "any" if math.isinf(stretch.high_ns) else f"below {duration(stretch.high_ns)}"
    if math.isinf(stretch.high_ns):
        return f"above {duration(stretch.low_ns)}"
    return f"{duration(stretch.low_ns)} to {duration(stretch.high_ns)}"


def _doubtful(advice, stretch):
    return bool(costs.doubts(advice.options, stretch, advice.question.negatives))


def _details(advice, option):
    lines = [f"  parameters   {option.params}"] if option.is_filter else []
    if option.is_filter:
        building = "" if advice.question.lookups_per_key is None else (
            f", building {_interval(option.build)} per lookup")
        lines += [f"  space        {headline.number(option.bits_per_key)} bits per key, "
                  f"{size(option.size_bytes)}",
                  f"  FPR          {_interval(option.fpr, _percent)}",
                  f"  lookup       {_interval(option.lookup)}{building}, target "
                  f"{option.candidate.target}"]
    return lines + [f"  cost         {_interval(advice.cost(option))} per lookup"]


def text(advice, here, modes):
    winner, other = advice.winner, advice.runner_up
    whose = {None: "", True: " (the CPU of this machine)", False: " (ANOTHER CPU)"}[here]
    lines = [f"Asked: {_asked(advice.question)}.",
             *(f"From run {run.name} on {run.cpu_brand or 'unknown CPU'}{whose}."
               for run in advice.runs), "",
             verdict(advice), why(advice), "",
             f"Winner: {winner.label}", *_details(advice, winner),
             f"Runner-up: {other.label}", *_details(advice, other), ""]
    lines += ["The least expected cost by the cost of a miss"
              + (" (* within noise somewhere in the range):" if any(
                  _doubtful(advice, stretch) for stretch in advice.stretches) else ":"), ""]
    lines += headline.markdown(_RANGE_COLUMNS, _RANGE_COLUMNS[:2], [
        _row(stretch.candidate) | {
            "cost of a miss": _limits(stretch),
            "take": stretch.candidate.label + (" *" if _doubtful(advice, stretch) else "")}
        for stretch in advice.stretches])
    lines += ["", *(f"- from {a.label} to {b.label}: {_interval(even)}"
                    for a, b, even in advice.break_evens), ""]
    lines += [f"The best {min(MOST_RANKED, len(advice.options))} of {len(advice.options)} at "
              f"{duration(advice.question.miss_cost_ns)}:", ""]
    lines += headline.markdown(_RANK_COLUMNS, _RANK_COLUMNS[1:2], [
        _row(option) | {"expected cost": _interval(advice.cost(option)), "filter": option.label}
        for option in advice.options[:MOST_RANKED]])
    said = caveats(advice, here, modes)
    if said:
        lines += ["", "Mind:", *(f"- {sentence}." for sentence in said)]
    if advice.left_out:
        lines += ["", "Left out:", *(
            f"- {entry.filter}{_few(entry.labels)}: {entry.reason}."
            for entry in advice.left_out[:MOST_LEFT_OUT])]
        if len(advice.left_out) > MOST_LEFT_OUT:
            lines.append(f"- and {len(advice.left_out) - MOST_LEFT_OUT} more (--json).")
    return "\n".join(load.one_line(line) for line in lines) + "\n"


def _few(labels):
    if not labels:
        return ""
    return f" ({labels[0]})" if len(labels) == 1 else f" ({labels[0]} and {len(labels) - 1} more)"


# --- JSON ---

def _known(value):
    """A number as JSON has it: null for what is unknown or without bound."""
    return value if math.isfinite(value) else None


def _measured(value):
    return {"value": _known(value.value), "low": _known(value.low), "high": _known(value.high)}


def _option(advice, option):
    candidate = option.candidate
    return {
        "filter": option.filter if option.is_filter else None, "label": option.label,
        "params": json.loads(option.params) if option.is_filter else None,
        "run": option.run.name if option.is_filter else None,
        "target": candidate.target or None,
        "bits_per_key": option.bits_per_key, "size_bytes": option.size_bytes,
        "fpr": _measured(option.fpr), "fpr_from": candidate.fpr_from,
        "lookup_ns": _measured(option.lookup),
        "build_ns_per_lookup": (None if advice.question.lookups_per_key is None
                                else _measured(option.build)),
        "cost_ns": _measured(advice.cost(option)),
        "basis": option.basis, "grounds": option.grounds or None,
        "measured_keys": list(candidate.measured_keys),
        "measured_negatives": list(candidate.measured_shares),
        "point_ids": list(candidate.point_ids)}


def _other_mode(advice, other):
    both = other and advice.best_of_both(other)
    return both and {
        "winner": _option(other, other.winner), "within_noise": other.within_noise,
        "in_both": both[2], "best_of_both_here": both[0].label, "best_of_both_there": both[1].label}


def document(advice, here, modes):
    question = advice.question
    stretches = [{
        "from_ns": _known(stretch.low_ns), "to_ns": _known(stretch.high_ns),
        "label": stretch.candidate.label,
        "filter": stretch.candidate.filter if stretch.candidate.is_filter else None,
        "params": json.loads(stretch.candidate.params) if stretch.candidate.is_filter else None,
        "within_noise_ns": [[_known(end) for end in part] for part in costs.doubts(
            advice.options, stretch, question.negatives)]} for stretch in advice.stretches]
    return {
        "schema": "filterbench/advice/1",
        "question": {
            "keys": question.keys, "negatives": question.negatives,
            "miss_cost_ns": question.miss_cost_ns, "memory_bytes": _known(question.memory_bytes),
            "needs": list(question.needs), "mode": question.mode,
            "lookups_per_key": question.lookups_per_key},
        "machine": advice.runs[0].machine, "cpu": advice.runs[0].cpu_brand, "this_cpu": here,
        "runs": [run.name for run in advice.runs],
        "verdict": verdict(advice), "why": why(advice),
        "within_noise": advice.within_noise, "basis": advice.basis,
        "winner": _option(advice, advice.winner),
        "runner_up": _option(advice, advice.runner_up),
        "as_good": [option.label for option in advice.as_good],
        "ranges": stretches,
        "break_evens": [{"below": a.label, "above": b.label, "miss_cost_ns": _measured(even)}
                        for a, b, even in advice.break_evens],
        "ranking": [_option(advice, option) for option in advice.options],
        "other_modes": {mode: _other_mode(advice, other) for mode, other in modes.items()},
        "beyond_memory": (None if advice.beyond_memory is None
                          else _option(advice, advice.beyond_memory)),
        "caveats": caveats(advice, here, modes),
        "left_out": [{"filter": entry.filter, "params": list(entry.labels),
                      "reason": entry.reason} for entry in advice.left_out]}


# --- The command ---

def _other_modes(runs, question, catalogue, are_named):
    """{mode: Advice, or None where nothing is known}."""
    found = {}
    for mode in choice.MODES:
        if mode != question.mode:
            try:
                found[mode] = choice.advise(
                    _in_order(runs, mode, are_named), dataclasses.replace(question, mode=mode),
                    catalogue)
            except choice.Impossible:
                found[mode] = None
    return found


def _draw(advice, path, theme):
    with style.on(style.make_page(theme)):
        figure = picture.draw(advice)
    return draw.write(path.parent, path.name, draw.rendered(figure, path.stem, path.suffix[1:]))


def main(arguments=None, cpuinfo=pathlib.Path("/proc/cpuinfo")):
    options = _parser().parse_args(arguments)
    question = choice.Question(
        options.keys, options.negatives, options.miss_cost, options.memory,
        tuple(dict.fromkeys(options.needs)), options.mode, options.lookups_per_key)
    try:
        cpu = this_cpu(cpuinfo)
        runs = _runs(options, cpu)
        for run in runs:
            for note in run.notes:
                _say(note)
        catalogue = _catalogue() if question.needs else None
        are_named = bool(options.runs)
        advice = choice.advise(_in_order(runs, question.mode, are_named), question, catalogue)
        modes = _other_modes(runs, question, catalogue, are_named)
    except load.RunError as error:
        _say(str(error))
        return EXIT_USAGE
    except Refused as refused:
        _say(str(refused))
        return refused.code
    except choice.Impossible as impossible:
        _say(str(impossible))
        return EXIT_IMPOSSIBLE
    here = is_here(runs[0].manifest, cpu) if cpu else None
    if here is False:
        _say(f"measured on another CPU, {runs[0].cpu_brand or 'unknown'}, not on this machine's")
    if options.json:
        json.dump(document(advice, here, modes), sys.stdout, indent=1, ensure_ascii=False,
                  allow_nan=False)
        print()
    else:
        sys.stdout.write(text(advice, here, modes))
    sys.stdout.flush()
    if options.figure is not None:
        try:
            _say(f"figure: {_draw(advice, options.figure, options.theme)}")
        except OSError as error:
            _say(f"cannot write {error.filename or options.figure}: {error.strerror or error}")
            return EXIT_IMPOSSIBLE
    return 0


if __name__ == "__main__":
    command.run(main)
