"""Several runs side by side, point by point. Two runs of one machine are judged by the statistics
of `filterbench compare`; between machines only ratios to each one's own floor stand beside each
other, and nothing is judged."""

import math

from plots import load, machines, ratios
from scripts import comparability, compare

_MODES_OF_RATES = {"ns": "ns/key", "fpr": "FPR", "bits_per_key": "bits/key"}


def _number(value):
    return None if value is None or not math.isfinite(value) else float(value)


def _subject(point):
    row = point.row
    return {"filter": row["filter"], "params": row["params_label"], "keys": row["keys"],
            "mode": row["mode"], "target": row["target"],
            "absent": _number(row["negative_share"])}


def _no_point(name, params):
    return {"filter": name, "params": params, "keys": None, "mode": None, "target": None,
            "absent": None}


def _same_machine(base, other):
    found = compare.compare([load.without_workloads(base)], [load.without_workloads(other)])
    differences = [f"{field}: {comparability.text(b)}, the first run has {comparability.text(a)}"
                   for _, field, a, b in found.not_comparable]
    rows = []
    for point, quantity, finding in found.findings:
        subject = (_no_point("all baselines", "") if point is None else
                   _no_point(point, "all its points") if isinstance(point, str)
                   else _subject(point))
        rows.append(subject | {
            "quantity": _MODES_OF_RATES[quantity], "a": _number(finding.a),
            "b": _number(finding.b), "ratio": _number(finding.ratio), "low": _number(finding.low),
            "high": _number(finding.high), "raw": _number(finding.raw_ratio),
            "verdict": "" if differences else finding.verdict})
    notes = [] if differences else list(compare.sentences(found))
    return {
        "kind": "descriptive" if differences else "judged",
        "text": ("These runs are not comparable as two versions of one program, so nothing is "
                 "judged here; ratios are descriptive." if differences else
                 "Judged by the statistics of `filterbench compare`: times corrected for how fast "
                 "the machine was, all tests together one family with 5 % for any false alarm."),
        "notes": [load.one_line(note) for note in differences + notes],
        "only": [len(found.only_a), len(found.only_b)], "matched": len(found.points), "rows": rows}


def _over_floor(machine, row):
    try:
        return machine.over_floor(row)
    except ratios.Unknown:
        return None


def _two_machines(base, other):
    side = [machines.Machine(base), machines.Machine(other)]
    rows, matched, without = [], 0, 0
    for question in machines.common(side):
        matched += 1
        pair = [machine.best[question] for machine in side]
        over = [_over_floor(machine, row) for machine, row in zip(side, pair)]
        if None in over:
            without += 1
            continue
        ratio = over[1].over(over[0])
        row = pair[0]
        rows.append({
            "filter": row["filter"], "params": row["params_label"], "keys": row["keys"],
            "mode": row["mode"], "target": " / ".join(dict.fromkeys(r["target"] for r in pair)),
            "absent": _number(row["negative_share"]), "quantity": "\u00d7 floor",
            "a": over[0].value, "b": over[1].value, "ratio": _number(ratio.value),
            "low": _number(ratio.low), "high": _number(ratio.high), "raw": None,
            "verdict": "within noise" if ratio.has_interval() and ratio.low <= 1 <= ratio.high
                       else "" if ratio.has_interval() else "interval unknown"})
    only = [sum(question not in side[1 - i].best for question in side[i].best) for i in (0, 1)]
    differing = len(machines.digests(side).differing)
    notes = [f"{without} matched points have no floor on one side (building has none) and are left "
             "out: times of different machines are never set side by side."] * (without > 0)
    notes.append("Filters and answers are the same bytes on both, where both tell." if not differing
                 else f"{differing} questions have other bytes or answers on the other machine: "
                      "something is wrong; `filterbench compare-cpus` tells more.")
    return {"kind": "machines",
            "text": "Different machines: each time over its own machine's floor, and the ratio of "
                    "the two. Descriptive, nothing is judged; `filterbench compare-cpus` looks at "
                    "orders and gains too.",
            "notes": notes, "only": only, "matched": matched, "rows": rows}


def of_runs(runs):
    """One entry for each run but the first, against the first."""
    found = []
    for other in runs[1:]:
        base = runs[0]
        make = _same_machine if base.machine == other.machine else _two_machines
        found.append({"base": base.name, "other": other.name, "base_machine": base.machine,
                      "other_machine": other.machine} | make(base, other))
    return found
