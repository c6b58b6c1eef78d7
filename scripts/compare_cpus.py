"""Compares CPUs by runs of several machines, one run each:

    filterbench compare-cpus [RUN...] [--baseline FILTER] [--newest] [--all]
                             [--json | --csv] [--figure DIR]

Without RUN: of each machine in results/ its newest reference run (results/README.md), a run of the
spec `paper` before any other. For two runs of one machine there is `filterbench compare`; here they
are refused, or with --newest the newest counts.

First the answers: where two machines built the same filter from the same seed, its bytes and its
answers must be the same. A difference is printed before anything else and the exit code is 3. Then
what can be compared between machines: the ratio of each filter to a baseline filter and to the
machine's own floor, the order of the filters, and what vectors gain. Times of different machines
are never pooled and not shown: neither a ratio of them nor the smaller one says which filter to
take.

Markdown on stdout, or with --json or --csv everything that was found. Exit codes: 0 ok; 2 usage, or
a run that cannot be read; 3 answers differ or were wrong; 5 a run is incomplete, or the figure
could not be drawn; 6 the runs have no question or no seed in common.
"""

import argparse
import collections
import csv
import difflib
import io
import itertools
import json
import math
import pathlib
import sys

from scipy import stats

from plots import command, cpu_vs_cpu, draw, headline, load, machines, ratios, selection

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXIT_USAGE, EXIT_WRONG, EXIT_INCOMPLETE, EXIT_NOT_COMPARABLE = 2, 3, 5, 6
BASELINE = "blocked_bloom"
MOST_EXAMPLES = 3
MOST_SWAPS_SHOWN = 20
HUGE_PAGES_ALIKE = 0.05  # a difference of shares that is not worth a word


class Refused(Exception):
    """What keeps the runs from being compared; `code` is the exit code."""

    def __init__(self, message, code=EXIT_USAGE):
        super().__init__(message)
        self.code = code


# --- Which runs ---

def is_reference(path):
    """Whether a run directory was kept (scripts/keep.py)."""
    return (path / "samples.jsonl.xz").is_file()


def reference_runs(results):
    """The newest reference run of each machine, one of the spec `paper` before any other."""
    newest = {}
    for path in sorted(results.glob("*/*/")):
        if is_reference(path) and not path.name.startswith("."):  # .*: not yet whole
            run = load.load_run(path)
            rank = (run.spec == "paper", run.name)
            if run.machine not in newest or rank > newest[run.machine][0]:
                newest[run.machine] = (rank, run)
    return [run for _, run in newest.values()]


def newest_of_each(runs):
    """The newest run of each machine by its name, which begins with its time."""
    newest = {}
    for run in runs:
        if run.machine not in newest or run.name > newest[run.machine].name:
            newest[run.machine] = run
    return list(newest.values())


# --- What a machine and its program are ---

def _at(document, *way):
    for step in way:
        document = document.get(step) if isinstance(document, dict) else None
    return document


def facts(machine):
    manifest, environment = machine.run.manifest, machine.run.manifest["environment"]
    frequency = environment.get("frequency") or {}
    return {
        "machine": machine.name, "run": machine.run.name, "spec": machine.run.spec,
        "complete": machine.run.complete,
        "cpu": {name: _at(environment, "cpu", name) for name in (
            "brand", "vendor", "family", "model", "stepping", "microarchitecture", "microcode")},
        "best_target": machine.run.best_target,
        "supported_targets": _at(manifest, "targets", "supported"),
        "hypervisor": environment.get("hypervisor"),
        "governor": frequency.get("governor"), "boost": frequency.get("boost"),
        "transparent_huge_pages": _at(environment, "pages", "transparent_huge_pages"),
        **{name: _at(manifest, "provenance", name) for name in (
            "git_commit", "git_dirty", "compiler", "flags", "build_type")},
        "points": sum(row["status"] == "ok" for row in machine.rows),
        "unstable_points": sum(row["stable"] is False for row in machine.rows),
        "huge_page_share": _huge_page_share(machine),
    }


def _huge_page_share(machine):
    """Of the samples of tables of at least a huge page of 2 MiB the share that got one or more;
    None where it is not known."""
    samples = machine.run.samples
    large = machine.points[machine.points["size_bytes"] >= 2 << 20]["point_id"]
    got = samples["huge_page_bytes"][samples["point_id"].isin(set(large))].dropna()
    return float((got > 0).mean()) if len(got) else None


# --- Answers ---

def answers_of(side):
    """What the machines answered: differences by point, and what could not be compared."""
    found = machines.digests(side)
    return {
        "compared": found.compared,
        "differences": [{"point": json.loads(question), "of": found.differing[question]}
                        for question in sorted(found.differing)],
        "wrong_answers": [
            {"machine": machine.name, "point": json.loads(row["question"]),
             "target": row["target"], "reason": row["reason"]}
            for machine in side for row in machine.rows if row["status"] == "wrong_answers"],
        "not_compared": [{"machines": [one, other], "what": kind, "reason": reason, "points": count}
                         for (one, other, kind, reason), count in sorted(found.apart.items())],
    }


# --- What only some have ---

def only_some(side):
    """Questions that were answered on some machines and not on all, by what kept the others."""
    groups = collections.defaultdict(list)
    answered = dict.fromkeys(question for machine in side for question in machine.best)
    for question in answered:
        for machine in side:
            if question in machine.best:
                continue
            rows = machine.targets(question).values()
            reason = "not in its run"
            if rows:
                worst = min(rows, key=lambda row: selection.target_rank(row["target"]))
                reason = f"{worst['status']}: {worst['reason']}"
            groups[machine.name, reason].append(question)
    return [{"machine": name, "reason": reason, "points": len(questions),
             "filters": sorted({json.loads(question)["filter"] for question in questions}),
             "examples": [json.loads(question) for question in questions[:MOST_EXAMPLES]]}
            for (name, reason), questions in sorted(groups.items())]


def targets(side):
    """{target: machines on which it was measured}, from the widest on."""
    found = collections.defaultdict(list)
    for machine in side:
        for target in set(machine.points["target"]):
            found[target].append(machine.name)
    return {target: found[target]
            for target in sorted(found, key=selection.target_rank, reverse=True)}


# --- Ratios ---

def _as_json(measured):
    return {"value": measured.value,
            **{end: None if math.isnan(value) else value
               for end, value in (("low", measured.low), ("high", measured.high))}}


def _attempt(value, *arguments):
    try:
        return _as_json(value(*arguments))
    except ratios.Unknown as unknown:
        return {"value": None, "low": None, "high": None, "reason": str(unknown)}


def choose_baseline(side, name, chosen):
    """The contender that stands for the filter `name`. Raises Refused."""
    contenders = {machines.parts(question)[1] for question in machines.common(side)}
    known = sorted({json.loads(contender)["filter"] for contender in contenders})
    if name not in known:
        near = difflib.get_close_matches(name, known, 1, 0.4)
        hint = f"did you mean {near[0]}? " if near else ""
        raise Refused(f"--baseline {name!r}: no filter that all machines measured; {hint}"
                      f"there are {', '.join(known) or 'none'}")
    own = [contender for contender in contenders if json.loads(contender)["filter"] == name]
    bits = {machines.parts(row["question"])[1]: row["bits_per_key"]
            for row in side[0].rows if row["status"] == "ok"}
    # The plain filter before a preset of it, then the size nearest to that of representatives.
    return min(own, key=lambda contender: (
        contender not in chosen, "preset" in json.loads(contender),
        abs(bits[contender] - selection.REPRESENTATIVE_BITS_PER_KEY)
        if not math.isnan(bits[contender]) else math.inf, contender))


def _over_baseline(machine, row, context, baseline):
    question = load.question(json.loads(context) | json.loads(baseline))
    if question not in machine.best:
        raise ratios.Unknown("the baseline was not measured there")
    if question == row["question"]:
        return ratios.Measured(1.0, 1.0, 1.0)
    return ratios.time(row).over(ratios.time(machine.best[question]))


def ratio_table(side, baseline, chosen):
    """One entry per question that every machine answered."""
    entries = []
    for question in machines.common(side):
        context, contender = machines.parts(question)
        entry = {"point": json.loads(question), "representative": contender in chosen,
                 "bits_per_key": _known(side[0].best[question]["bits_per_key"]), "machines": {}}
        for machine in side:
            row = machine.best[question]
            entry["machines"][machine.name] = {
                "target": row["target"],
                "over_baseline": _attempt(_over_baseline, machine, row, context, baseline),
                "over_floor": _attempt(machine.over_floor, row)}
        entries.append(entry)
    return entries


def _known(value):
    return None if math.isnan(value) else value


# --- Orders ---

def _label(contender):
    contender = json.loads(contender)
    preset = contender.get("preset")
    text = f"preset={preset}" if preset else load.params_label(contender["params"])
    return f"{contender['filter']} ({text})" if text else contender["filter"]


def orders(side, chosen):
    """How the representative filters rank in each context: the fastest on each machine, and of each
    pair of machines Kendall's tau and the filters that swap."""
    by_context = collections.defaultdict(list)
    for question in dict.fromkeys(q for machine in side for q in machine.best):
        context, contender = machines.parts(question)
        if contender in chosen and json.loads(contender)["filter"] not in selection.BASELINES:
            by_context[context].append((contender, question))
    entries = []
    for context, asked in by_context.items():
        times = {machine.name: {contender: ratios.time(machine.best[question])
                                for contender, question in asked if question in machine.best}
                 for machine in side}
        common = [contender for contender, _ in asked
                  if all(contender in times[machine.name] for machine in side)]
        if len(common) < 2:
            continue
        fastest = {}
        for machine in side:
            order = sorted(common, key=lambda c, t=times[machine.name]: (t[c].value, c))
            first = times[machine.name][order[0]]
            fastest[machine.name] = {
                "filter": _label(order[0]), "order": [_label(c) for c in order],
                "within_noise_of": [_label(c) for c in order[1:]
                                    if not first.surely_below(times[machine.name][c])]}
        entries.append({
            "context": json.loads(context), "filters": len(common), "fastest": fastest,
            "pairs": [_pair(one.name, other.name, times) for one, other
                      in itertools.combinations(side, 2)]})
    return entries


def _pair(one, other, times):
    both = sorted(times[one].keys() & times[other].keys())
    entry = {"machines": [one, other], "filters": len(both), "kendall_tau": None, "swaps": [],
             "swaps_within_noise": []}
    if len(both) < 2:
        return entry | {"kendall_tau_reason": "fewer than two filters in common"}
    tau = stats.kendalltau([times[one][c].value for c in both],
                           [times[other][c].value for c in both]).statistic
    if math.isnan(tau):
        entry["kendall_tau_reason"] = "all times of a machine are equal"
    else:
        entry["kendall_tau"] = float(tau)
    for a, b in itertools.combinations(both, 2):
        here, there = ((times[m][a].value - times[m][b].value) for m in (one, other))
        if here * there >= 0:
            continue
        fast, slow = (a, b) if here < 0 else (b, a)
        sure = (times[one][fast].surely_below(times[one][slow])
                and times[other][slow].surely_below(times[other][fast]))
        entry["swaps" if sure else "swaps_within_noise"].append(
            {"faster_on_the_first": _label(fast), "faster_on_the_second": _label(slow)})
    return entry


# --- Vectors ---

def gains(side, chosen):
    """What each target gains on each machine that measured it and its slower twin."""
    entries = {}
    for machine in side:
        for row, over, ratio in machine.gains():
            if row["filter"] in selection.BASELINES:
                continue
            key = (row["question"], row["target"], over)
            entry = entries.setdefault(key, {
                "point": json.loads(row["question"]), "target": row["target"], "over": over,
                "representative": machines.parts(row["question"])[1] in chosen, "machines": {}})
            entry["machines"][machine.name] = _as_json(ratio)
    return list(entries.values())


# --- What must be said beside the numbers ---

def notes(side):
    every = [facts(machine) for machine in side]
    said = []
    for name, what in (("git_commit", "commits"), ("compiler", "compilers"),
                       ("flags", "compiler flags"), ("build_type", "build types"),
                       ("spec", "specs"), ("transparent_huge_pages", "settings of huge pages")):
        values = {fact["machine"]: fact[name] for fact in every}
        if len(set(values.values())) > 1:
            said.append(f"The runs have different {what}: " + "; ".join(
                f"{machine}: {value}" for machine, value in values.items()) + ".")
    pages = {fact["machine"]: fact["huge_page_share"] for fact in every}
    known = [share for share in pages.values() if share is not None]
    if known and (len(known) < len(pages) or max(known) - min(known) > HUGE_PAGES_ALIKE):
        said.append("Large tables did not lie in huge pages alike, which moves their times and their "
                    "floors: " + "; ".join(
                        f"{machine}: " + ("unknown" if share is None else f"{100 * share:.0f} %")
                        for machine, share in pages.items()) + " of the samples.")
    for fact in every:
        machine, cpu = fact["machine"], fact["cpu"]
        if fact["unstable_points"]:
            said.append(f"{machine}: {fact['unstable_points']} of {fact['points']} points are "
                        "unstable: the run ended before their intervals were as narrow as asked.")
        if fact["git_dirty"] is not False:
            said.append(f"{machine}: the program was built from a tree with changes of its own"
                        + ("." if fact["git_dirty"] else ", or it is not known whether."))
        unknown = [name for name in ("governor", "boost") if fact[name] is None]
        if unknown:
            said.append(f"{machine}: frequency control unknown ({' and '.join(unknown)}).")
        if fact["hypervisor"] is not None:
            said.append(f"{machine}: a virtual machine ({fact['hypervisor']}); what its neighbours "
                        "take from caches and memory is not known.")
        family = cpu["family"]
        if ((cpu["vendor"] == "AuthenticAMD" and family in (0x15, 0x16, 0x17))
                or (cpu["vendor"] == "HygonGenuine" and family == 0x18)):
            said.append(
                f"{machine}: CPU family {family:02x}h executes PDEP and PEXT as microcode, tens of "
                "cycles each. The filters of this tree do without (filters/quotient/select.h); "
                "plug-ins, peers and other implementations that use them lose here what they win "
                "on later families, and their ranks do not carry over.")
        if cpu["vendor"] == "AuthenticAMD" and family == 0x17 and (cpu["model"] or 99) < 0x30:
            said.append(f"{machine}: executes 256-bit vectors as two halves (Zen, Zen+): the gain "
                        "of avx2 over sse4 is smaller by construction.")
        if any(str(target).startswith("avx3") for target in set(_measured(side, machine))):
            said.append(
                f"{machine}: rows on avx3 may lower the clock of what follows. Points were visited "
                "in random order, so that it falls on all alike; core_clock_mhz of the samples' "
                "health has the clock before and after each.")
    return said


def _measured(side, name):
    return next(machine for machine in side if machine.name == name).points["target"]


# --- All of it ---

def compare(runs, baseline=BASELINE):
    """The comparison as a JSON document. Raises Refused, machines.SeveralRuns."""
    side = machines.side_by_side(runs)
    if len(side) < 2:
        raise Refused(f"needs runs of at least two machines, these are all of {side[0].name}"
                      if side else "needs runs of at least two machines")
    answers = answers_of(side)
    document = {
        "schema": "filterbench/cpu_comparison/1", "machines": [facts(m) for m in side],
        "digests": answers, "only_some": only_some(side), "targets": targets(side),
        "baseline": None, "ratios": [], "orders": [], "gains": [], "notes": notes(side)}
    if not machines.common(side):
        # Wrong answers are worth more than the rest that cannot be had.
        if answers["differences"] or answers["wrong_answers"]:
            return document
        raise Refused("the runs have no question in common that all machines answered",
                      EXIT_NOT_COMPARABLE)
    chosen = machines.representatives(side)
    reference = choose_baseline(side, baseline, chosen)
    machines.leave_out(side, [load.question(d["point"]) for d in answers["differences"]])
    return document | {
        "baseline": json.loads(reference), "ratios": ratio_table(side, reference, chosen),
        "orders": orders(side, chosen), "gains": gains(side, chosen)}


def exit_code(document):
    answers = document["digests"]
    if answers["differences"] or answers["wrong_answers"]:
        return EXIT_WRONG
    if not answers["compared"]:
        return EXIT_NOT_COMPARABLE
    return 0 if all(machine["complete"] for machine in document["machines"]) else EXIT_INCOMPLETE


# --- Markdown ---

def _share(context):
    share = context.get("negative_share")
    return "" if share is None else f"{100 * share:g} %"


def _keys(context):
    extra = [f"{context['key_set']['kind']}" if context["key_set"]["kind"] != "mixed" else "",
             context["hashing"] if context["hashing"] != "prehashed" else "",
             *(f"{name}={context[name]}" for name in sorted(context) if name not in (
                 "filter", "preset", "params", "keys", "key_set", "mode", "negative_share",
                 "hashing"))]
    return ", ".join([f"{context['keys']}", *filter(None, extra)])


def _where(context):
    return {"keys": _keys(context), "mode": context["mode"], "absent": _share(context)}


def _who(point):
    return {"filter": point["filter"], "params": f"preset={point['preset']}" if point.get("preset")
            else load.params_label(point["params"])}


def _context_text(context):
    share = [f"{_share(context)} absent"] if _share(context) else []
    return ", ".join([f"{_keys(context)} keys", context["mode"], *share])


def _point_text(point):
    who, bits = _who(point), point["params"].get("bits_per_key")
    return ", ".join([f"{who['filter']} {who['params']}".strip(), _context_text(point),
                      *([f"{bits:g} bits per key asked"] if bits is not None else [])])


def _measured_text(value):
    if value["value"] is None:
        raise ratios.Unknown(value["reason"])
    if value["low"] == value["high"] == value["value"]:  # the baseline over itself
        return headline.number(value["value"])
    low, high = (math.nan if value[end] is None else value[end] for end in ("low", "high"))
    return str(ratios.Measured(value["value"], low, high))


def _main_contexts(contexts):
    """What the Markdown shows without --all: batched lookups of plain keys, all absent (or what is
    nearest to it), and building."""
    shares = {context["negative_share"] for context in contexts
              if context["mode"] == "lookup_batched"}
    share = max(shares, default=None)

    def shown(context):
        plain = (context["key_set"]["kind"], context["hashing"]) == ("mixed", "prehashed")
        return context["mode"] == "build" and plain or (
            context["mode"] == "lookup_batched" and context["negative_share"] == share and plain)
    return shown


def _sorted(entries, name):
    """By keys, mode and share of absent keys, filters by name and then the floor."""
    return sorted(entries, key=lambda entry: (
        entry[name]["keys"], entry[name]["mode"], -(entry[name].get("negative_share") or 0),
        entry[name].get("filter") in selection.BASELINES, entry[name].get("filter", ""),
        json.dumps(entry[name].get("params"), sort_keys=True)))


def _table(rows, text_columns):
    if not rows:
        return []
    return [*headline.markdown(list(rows[0]), text_columns, [
        {c: load.one_line(str(text)) for c, text in row.items()} for row in rows]), ""]


def _differences(document):
    answers = document["digests"]
    lines = []
    if answers["differences"]:
        lines += ["## WRONG ANSWERS: the machines differ", "",
                  "The same filter from the same keys and seed, and yet other bytes or answers. "
                  "These points are left out below: before that is explained no time of them means "
                  "anything.", ""]
        commits = {machine["git_commit"] for machine in document["machines"]}
        if len(commits) > 1:
            lines += ["The runs were made by different commits: a change of a filter's layout "
                      "between them explains it too.", ""]
        # Points of one build share it and its digests.
        builds = collections.defaultdict(list)
        for difference in answers["differences"]:
            builds[json.dumps(difference["of"])].append(difference)
        for alike in builds.values():
            others = [", ".join(filter(None, [d["point"]["mode"], _share(d["point"])]))
                      for d in alike[1:]]
            lines.append(f"- {_point_text(alike[0]['point'])}"
                         + (f"; the same build in {'; '.join(others)}" if others else ""))
            for entry in alike[0]["of"]:
                values = "; ".join(f"{name}: {', '.join(digests_)}"
                                   for name, digests_ in entry["digests"].items())
                lines.append(f"  - {entry['what']}, seed {entry['seed']}: {values}")
        lines.append("")
    if answers["wrong_answers"]:
        lines += ["## WRONG ANSWERS: found by a run itself", ""]
        lines += [f"- {wrong['machine']}: {_point_text(wrong['point'])}, {wrong['target']}: "
                  f"{wrong['reason']}" for wrong in answers["wrong_answers"]] + [""]
    return lines


def _answers(document):
    answers = document["digests"]
    lines = ["## Answers", "", f"- {answers['compared']} digests of filters and of their answers "
             "stand in several runs for the same point and seed; "
             + (f"{sum(len(d['of']) for d in answers['differences'])} differ, see above."
                if answers["differences"] else
                "all are equal." if answers["compared"] else
                "so NOTHING says that the machines gave the same answers.")]
    lines += [f"- Not compared: {entry['what']} of {entry['points']} points of "
              f"{' and '.join(entry['machines'])}: {entry['reason']}."
              for entry in answers["not_compared"]]
    return [*lines, ""]


def _machines(document, letters):
    rows = []
    for fact in document["machines"]:
        cpu = fact["cpu"]
        rows.append({
            "": letters[fact["machine"]], "machine": fact["machine"],
            "CPU": cpu["brand"] or "unknown", "microarchitecture": cpu["microarchitecture"] or "-",
            "best target": fact["best_target"] or "unknown",
            "run": fact["run"] + ("" if fact["complete"] else " (INCOMPLETE)"),
            "spec": fact["spec"], "compiler": f"{fact['compiler']} {fact['flags']}"})
    return ["## Machines", "", *_table(rows, list(rows[0]))]


def _partial(document):
    lines = []
    for entry in document["only_some"]:
        lines.append(f"- {entry['machine']}: {entry['points']} points of "
                     f"{', '.join(entry['filters'])}: {entry['reason']}. Such as: "
                     + "; ".join(map(_point_text, entry["examples"])) + ".")
    every = [fact["machine"] for fact in document["machines"]]
    for target, having in document["targets"].items():
        if len(having) < len(every):
            lines.append(f"- Target {target}: on {', '.join(having)} only.")
    return ["## What only some machines have", "", *lines, ""] if lines else []


def _ratios(document, letters, shown):
    reasons, rows = ratios.Reasons(), []
    base = _label(json.dumps(document["baseline"]))
    for entry in _sorted(document["ratios"], "point"):
        if not shown(entry["point"], entry["representative"]):
            continue
        row = _where(entry["point"]) | _who(entry["point"])
        row["bits/key"] = ("-" if entry["bits_per_key"] is None
                           else headline.number(entry["bits_per_key"], 4))
        for name, values in entry["machines"].items():
            letter = letters[name]
            row[f"{letter} target"] = values["target"]
            row[f"{letter} x baseline"] = reasons.text(_measured_text, values["over_baseline"])
            row[f"{letter} x floor"] = reasons.text(_measured_text, values["over_floor"])
        rows.append(row)
    return ["## Ratios inside each machine", "",
            *_table(rows, ("mode", "filter", "params", *(f"{x} target" for x in letters.values()))),
            f"- x baseline: time over that of {base} at the same keys, mode and share of absent "
            "keys. x floor: over one random cache line per key (results/README.md). Each on the "
            "same machine and in the same run; intervals in brackets.", *reasons.lines(), ""]


def _orders(document, letters, shown):
    lines, rows, swaps = [], [], []
    for entry in _sorted(document["orders"], "context"):
        if not shown(entry["context"], True):
            continue
        row = _where(entry["context"]) | {"filters": entry["filters"]}
        for name, fastest in entry["fastest"].items():
            near = len(fastest["within_noise_of"])
            row[f"fastest on {letters[name]}"] = fastest["filter"] + (
                f", within noise of {near} other{'s' * (near > 1)}" if near else "")
        for pair in entry["pairs"]:
            one, other = (letters[name] for name in pair["machines"])
            tau = pair["kendall_tau"]
            row[f"tau {one}{other}"] = "-" if tau is None else f"{tau:.2f}"
            row[f"swaps {one}{other}"] = (
                f"{len(pair['swaps'])} + {len(pair['swaps_within_noise'])} within noise")
            swaps += [f"- {_context_text(entry['context'])}: {one} has {swap['faster_on_the_first']} before "
                      f"{swap['faster_on_the_second']}, {other} the other way round."
                      for swap in pair["swaps"]]
        rows.append(row)
    lines += ["## Order of the filters", "", *_table(rows, [
        column for row in rows[:1] for column in row if not column.startswith("tau")])]
    lines += ["- Each filter with the parameters nearest to "
              f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key, on the machine's best "
              "target. tau: Kendall's, 1 for the same order, -1 for the reverse. Swaps: pairs of "
              "filters in another order, their intervals apart on both machines; within noise: "
              "they overlap on one.", *swaps[:MOST_SWAPS_SHOWN]]
    if len(swaps) > MOST_SWAPS_SHOWN:
        lines.append(f"- and {len(swaps) - MOST_SWAPS_SHOWN} more (--json has all)")
    return [*lines, ""]


def _gains(document, letters, shown):
    rows = []
    for entry in sorted(_sorted(document["gains"], "point"), key=lambda e: e["over"]):
        if shown(entry["point"], entry["representative"]):
            rows.append(_where(entry["point"]) | _who(entry["point"]) | {
                "target": entry["target"], "over": entry["over"],
                **{letters[name]: _measured_text(entry["machines"][name])
                   if name in entry["machines"] else "" for name in letters}})
    note = ("- Time of the slower twin over that of the target on the same machine. over "
            "reference: the scalar reference one key at a time, compiled for that target; over "
            "scalar: the plain loop of the baseline compilation in the same mode. Empty: the "
            "machine lacks the target, or the run the twin.")
    return ["## What vectors gain", "",
            *_table(rows, ("mode", "filter", "params", "target", "over")),
            note if rows else "- No run has a target with vectors beside its slower twin "
            "(targets `all`, or mode `lookup_reference`).", ""]


def markdown(document, everything=False):
    letters = {fact["machine"]: chr(ord("A") + index) if index < 26 else f"M{index + 1}"
               for index, fact in enumerate(document["machines"])}
    main = _main_contexts([entry["point"] for entry in document["ratios"]])

    def shown(context, representative):
        return everything or representative and main(context)

    lines = ["# CPUs compared", "", *_differences(document), *_machines(document, letters),
             *_answers(document), *_partial(document)]
    if document["ratios"]:
        if not everything:
            lines += ["Shown: batched lookups of absent keys and building, filters near "
                      f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key; --all, --json and "
                      "--csv have all.", ""]
        lines += [*_ratios(document, letters, shown), *_orders(document, letters, shown),
                  *_gains(document, letters, shown)]
    lines += ["## Notes", "", "- Times of different machines stand nowhere in one number. A "
              "machine is one run: how far the next run of it would differ, `filterbench compare` "
              "says.",
              *(f"- {note}" for note in document["notes"])]
    return "\n".join(load.one_line(line) for line in lines) + "\n"


# --- CSV ---

CSV_COLUMNS = ("quantity", "machine", "other_machine", "keys", "key_set", "fill", "pages",
               "threads", "mode", "negative_share", "hashing", "filter", "preset", "params", "target",
               "value", "low", "high", "reason")


def _csv_rows(document):
    def common(point):
        row = {name: point.get(name) for name in (
            "keys", "fill", "pages", "threads", "mode", "negative_share", "hashing", "filter",
            "preset")}
        row["key_set"] = json.dumps(point["key_set"], sort_keys=True)
        return row | {"params": json.dumps(point["params"], sort_keys=True)
                      if "params" in point else None}
    for difference in document["digests"]["differences"]:
        for entry in difference["of"]:
            for name, values in entry["digests"].items():
                yield common(difference["point"]) | {
                    "quantity": f"{entry['what']} differs", "machine": name,
                    "value": ";".join(values), "reason": f"seed {entry['seed']}"}
    for entry in document["ratios"]:
        for name, values in entry["machines"].items():
            for quantity in ("over_baseline", "over_floor"):
                yield common(entry["point"]) | values[quantity] | {
                    "quantity": quantity, "machine": name, "target": values["target"]}
    for entry in document["orders"]:
        for pair in entry["pairs"]:
            yield common(entry["context"]) | {
                "quantity": "kendall_tau", "machine": pair["machines"][0],
                "other_machine": pair["machines"][1], "value": pair["kendall_tau"],
                "reason": pair.get("kendall_tau_reason")}
    for entry in document["gains"]:
        for name, value in entry["machines"].items():
            yield common(entry["point"]) | value | {
                "quantity": f"gain_over_{entry['over']}", "machine": name,
                "target": entry["target"]}


def as_csv(document):
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in _csv_rows(document):
        writer.writerow({name: "" if value is None else value for name, value in row.items()})
    return text.getvalue()


# --- The front ---

def _say(text):
    print(f"compare-cpus: {load.one_line(text)}", file=sys.stderr)


def _parser():
    parser = argparse.ArgumentParser(
        prog="filterbench compare-cpus", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__.split("\n\n", 2)[2], allow_abbrev=False)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="a run directory")
    parser.add_argument("--baseline", default=BASELINE, metavar="FILTER",
                        help="the filter that the others are divided by (default %(default)s)")
    parser.add_argument("--newest", action="store_true",
                        help="of several runs of one machine take the newest")
    parser.add_argument("--all", action="store_true", help="every point in the Markdown")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="a JSON document instead of Markdown")
    form.add_argument("--csv", action="store_true", help="one line per number instead of Markdown")
    parser.add_argument("--figure", type=command.path, metavar="DIR",
                        help="also draw the figure, as PNG and PDF, into DIR")
    parser.add_argument("--results", type=command.path, default=ROOT / "results", metavar="DIR",
                        help="where the reference runs lie (default: results/ of the tree)")
    return parser


def _runs(options):
    if not options.runs:
        runs = reference_runs(options.results)
        if len(runs) < 2:
            raise Refused(f"{options.results} has reference runs of "
                          f"{', '.join(run.machine for run in runs) or 'no machine'}; name the "
                          "runs, or keep one of another machine (results/README.md)")
        return runs
    runs = load.load_runs(options.runs)
    if options.newest:
        chosen = newest_of_each(runs)
        for run in runs:
            if not any(run is other for other in chosen):
                _say(f"{run.path}: not compared, its machine has a newer run")
        runs = chosen
    return runs


def _draw(runs, folder):
    gaps = cpu_vs_cpu.gaps(runs)
    for gap in gaps:
        _say(f"figure: {gap.lack}; to measure it: {gap.remedy}")
    if any(gap.fatal for gap in gaps):
        return False
    figure = cpu_vs_cpu.draw(runs)
    for ending in ("png", "pdf"):
        content = draw.rendered(figure, cpu_vs_cpu.NAME, ending)
        _say(f"figure: {draw.write(folder, f'{cpu_vs_cpu.NAME}.{ending}', content)}")
    return True


def main(arguments=None):
    options = _parser().parse_args(arguments)
    try:
        runs = _runs(options)
        document = compare(runs, options.baseline)
    except load.RunError as error:
        _say(str(error))
        return EXIT_USAGE
    except machines.SeveralRuns as error:
        _say(f"{error}. One run of each machine is compared: name one, or --newest takes "
             f"{error.runs[-1].name}; two of one machine: `filterbench compare`")
        return EXIT_USAGE
    except Refused as error:
        _say(str(error))
        return error.code
    for run in runs:
        for note in run.notes:
            _say(note)
    if options.json:
        print(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print(as_csv(document) if options.csv else markdown(document, options.all), end="")
    code = exit_code(document)
    if options.figure is not None:
        try:
            drawn = _draw(runs, options.figure)
        except OSError as error:
            _say(f"cannot write {error.filename or options.figure}: {error.strerror or error}")
            drawn = False
        code = code or (0 if drawn else EXIT_INCOMPLETE)
    return code


if __name__ == "__main__":
    command.run(main)
