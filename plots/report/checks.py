"""Whether the points of a run can be believed: false-positive rates against theory, answers,
stability, two modes, and the health of the samples."""

import collections
import math
from typing import NamedTuple

import numpy
from scipy import stats

from plots import headline
from plots.report import data
from scripts import regression

ALPHA = 0.05
AS_EXPECTED, UNLIKELY, RULED_OUT = "as expected", "unlikely", "ruled out"


class Section(NamedTuple):
    """One check: its state (pass, warn, fail or unknown), what was found, and rows to look at."""

    name: str
    title: str
    state: str
    text: str
    columns: tuple = ()
    rows: tuple = ()     # tuples of text, one per column
    filter: tuple = ()   # (column, value) by which the page's table shows the points


def _percent(value):
    return "-" if math.isnan(value) else headline.number(100 * value) + " %"


def _instance_variances(run):
    """{point id: variance of its pooled rate that comes from the filters' own seeds}."""
    found = {}
    for point, rows in run.samples.groupby("point_id"):
        deviations = rows["fpr_instance_sd"].dropna()
        if len(deviations):
            found[point] = float((deviations**2).mean() / len(deviations))
    return found


def _p_value(false_positives, queries, expected, variance):
    """Two-sided: the exact binomial chance, and where filters of different seeds have different
    rates that of a normal law with this variance too; the larger counts."""
    exact = min(1.0, 2 * min(stats.binom.cdf(false_positives, queries, expected),
                             stats.binom.sf(false_positives - 1, queries, expected)))
    if not variance > 0:
        return exact
    deviation = abs(false_positives / queries - expected)
    spread = math.sqrt(variance + expected * (1 - expected) / queries)
    return max(exact, float(2 * stats.norm.sf(deviation / spread)))


def rates(run, frame):
    """One entry per filter that was built and asked, however many points it has, as (first row,
    p-value, rows of all its points)."""
    variances = _instance_variances(run)
    known = frame[frame["fpr_expected"].between(0, 1, inclusive="neither")
                  & frame["fpr_measured"].notna()]
    entries = []
    for _, rows in known.groupby(["filter", "params", "keys", "key_set", "hashing", "fill",
                                  "false_positives", "queries", "fpr_expected"], dropna=False,
                                 sort=False):
        first = rows.iloc[0]
        entries.append((first, _p_value(first["false_positives"], first["queries"],
                                        first["fpr_expected"],
                                        variances.get(first["point_id"], 0.0)), rows.index))
    return entries


def mark_rates(run, frame):
    """Adds the column fpr_check; returns the entries of rates() with their adjusted p-values."""
    frame["fpr_check"] = None
    entries = rates(run, frame)
    if not entries:
        return []
    adjusted = regression.holm([p for _, p, _ in entries])
    marked = []
    for (first, p, index), p_adjusted in zip(entries, adjusted):
        verdict = (RULED_OUT if p_adjusted <= ALPHA else UNLIKELY if p <= ALPHA else AS_EXPECTED)
        frame.loc[index, "fpr_check"] = verdict
        marked.append((first, p, float(p_adjusted), verdict))
    return marked


def _rates_section(marked):
    if not marked:
        return Section("fpr", "False-positive rates", "unknown",
                       "No point has both a measured and an expected rate.")
    count = collections.Counter(verdict for *_, verdict in marked)
    unlikely = len(marked) - count[AS_EXPECTED]
    text = (f"Of {len(marked)} filters that were built and asked, {unlikely} have a rate that "
            f"theory gives with a chance below {100 * ALPHA:g} %, what filters of different seeds "
            f"differ by included; chance alone would give about {ALPHA * len(marked):.0f}. ")
    text += (f"{count[RULED_OUT]} differ by more than chance does among all of them "
             f"(Holm, {100 * ALPHA:g} %): look at these."
             if count[RULED_OUT] else
             "None differs by more than chance does among all of them "
             f"(Holm, {100 * ALPHA:g} %).")
    worst = sorted((entry for entry in marked if entry[3] != AS_EXPECTED), key=lambda e: e[1])
    rows = tuple((first["filter"], first["params_label"] or "-", f"{first['keys']:.0f}",
                  _percent(first["fpr_measured"]),
                  f"{_percent(first['fpr_low'])} to {_percent(first['fpr_high'])}",
                  _percent(first["fpr_expected"]), headline.number(first["fpr_ratio"]),
                  f"{p:.2g}", f"{p_adjusted:.2g}")
                 for first, p, p_adjusted, _ in worst)
    return Section("fpr", "False-positive rates", "warn" if count[RULED_OUT] else "pass", text,
                   ("filter", "parameters", "keys", "measured", "95 % interval", "expected",
                    "ratio", "p", "p, Holm"), rows,
                   ("fpr_check", RULED_OUT if count[RULED_OUT] else UNLIKELY) if unlikely else ())


def _point_columns(frame):
    return tuple((row["filter"], row["params_label"] or "-", f"{row['keys']:.0f}", row["mode"],
                  row["target"]) for row in frame.to_dict("records"))


_POINT = ("filter", "parameters", "keys", "mode", "target")


def _status_sections(frame):
    wrong = frame[frame["status"] == "wrong_answers"]
    total = len(frame)
    text = (f"{len(wrong)} of {total} points gave wrong answers; they were not timed."
            if len(wrong) else
            f"No point of {total} denied a key, disagreed with the scalar reference, or had a rate "
            "that theory rules out.")
    yield Section("answers", "Answers", "fail" if len(wrong) else "pass", text,
                  _POINT + ("reason",), tuple(point + (reason or "-",) for point, reason in
                                              zip(_point_columns(wrong), wrong["reason"])),
                  ("status", "wrong_answers") if len(wrong) else ())
    failed = frame[~frame["status"].isin(["ok", "wrong_answers"])]
    counts = collections.Counter(failed["status"])
    yield Section(
        "failed", "Points without a result", "warn" if len(failed) else "pass",
        f"{len(failed)} of {total} points have no result: " + ", ".join(
            f"{count} {status}" for status, count in sorted(counts.items())) + "."
        if len(failed) else "Every other point has a result.",
        _POINT + ("status", "reason"),
        tuple(point + (status, reason or "-") for point, status, reason in
              zip(_point_columns(failed), failed["status"], failed["reason"])),
        ("status", counts.most_common(1)[0][0]) if len(failed) else ())


def _stability_sections(frame):
    asked = frame[frame["stable"].notna()]
    unstable = asked[~asked["stable"].astype(bool)].sort_values("width", ascending=False)
    if asked.empty:
        yield Section("stable", "Stability", "unknown",
                      "The spec asks for no width of intervals, so no point is called unstable.")
    else:
        yield Section(
            "stable", "Stability", "warn" if len(unstable) else "pass",
            f"{len(unstable)} of {len(asked)} points did not reach the width that the spec asks "
            f"for, {100 * asked['asked_width'].iloc[0]:g} %." if len(unstable) else
            f"All {len(asked)} points reached the width that the spec asks for.",
            _POINT + ("width",),
            tuple(point + (_percent(width),) for point, width in
                  zip(_point_columns(unstable), unstable["width"])),
            ("stable", False) if len(unstable) else ())
    modes = frame[frame["clusters_explained_by"].notna()]
    yield Section(
        "modes", "Two modes", "warn" if len(modes) else "pass",
        f"The times of {len(modes)} points fall into two modes; their median describes neither."
        if len(modes) else "No point's times fall into two modes.",
        _POINT + ("lower", "upper", "told apart by"),
        tuple(point + (headline.number(low), headline.number(high), level)
              for point, low, high, level in zip(
                  _point_columns(modes), modes["cluster_low_ns"], modes["cluster_high_ns"],
                  modes["clusters_explained_by"])), ())


_HEALTH = (("steal_ticks", "steal (ticks)"), ("involuntary_switches", "involuntary switches"),
           ("voluntary_switches", "voluntary switches"), ("migrations", "migrations"),
           ("minor_faults", "minor faults"), ("major_faults", "major faults"))
# Some of these happen in every process: first touches, the end of a wait.
_DISTURBANCES = ("steal_ticks", "involuntary_switches", "migrations", "major_faults")


def _health_section(sampled):
    rows, disturbed = [], []
    for name, label in _HEALTH:
        total, told, above = sampled.totals[name]
        if told == 0:
            rows.append((label, "-", "-", sampled.reasons.get(name) or "no sample tells it"))
            continue
        rows.append((label, f"{total}", f"{above} of {told}", ""))
        if above and name in _DISTURBANCES:
            disturbed.append(f"{label} in {100 * above / told:.1f} %")
    if sampled.clocks:
        low, middle, high = numpy.quantile(sampled.clocks, [0, 0.5, 1])
        rows.append(("clock of the core (MHz)", f"{middle:.0f}",
                     f"{low:.0f} to {high:.0f}", "median; least and most"))
    asked, full, none = sampled.pages
    if asked:
        rows.append(("tables that asked for huge pages", f"{asked}",
                     f"all in {full}, none in {none}", ""))
    known = any(told for _, told, _ in sampled.totals.values())
    text = (f"Of {sampled.samples} samples: " + (", ".join(disturbed) if disturbed else
            "no steal, switch, migration or major fault was seen") + ".") if known else (
                "No sample tells what disturbed it.")
    state = "unknown" if not known else "warn" if disturbed else "pass"
    return Section("health", "Health of the samples", state, text,
                   ("what", "sum", "samples with it", "note"), tuple(rows))


def sections(run, frame, marked, sampled):
    """All checks of a run; `marked` is what mark_rates gave, `sampled` a data.Sampled."""
    assert isinstance(sampled, data.Sampled)
    found = [_rates_section(marked), *_status_sections(frame), *_stability_sections(frame),
             _health_section(sampled)]
    if not run.complete:
        found.insert(0, Section("complete", "Completeness", "fail",
                                "The run is not finished: all that follows is a part of it."))
    return found
