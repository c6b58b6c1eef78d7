"""The points of runs as the page gets them: one table for all its figures, rows and downloads."""

import collections
import json
import math
from typing import NamedTuple

import pandas

from plots import load, selection

HEALTH = ("steal_ticks", "involuntary_switches", "major_faults")


class Column(NamedTuple):
    key: str
    label: str
    kind: str          # text, id, count, number, ns, bytes, bits, share, fpr, ratio, flag
    help: str
    shown: bool = False
    text: bool = False


COLUMNS = (
    Column("run", "run", "text", "the run that measured it", text=True),
    Column("machine", "machine", "text", "the machine that it was measured on", text=True),
    Column("filter", "filter", "text", "name of the filter", True, True),
    Column("params_label", "parameters", "text", "all but the bits per key asked for", True, True),
    Column("keys", "keys", "count", "keys that the filter was made for", True),
    Column("mode", "mode", "text", "what was timed", True, True),
    Column("target", "target", "text", "SIMD target that ran", True, True),
    Column("negative_share", "absent", "share", "absent keys among those asked", True),
    Column("status", "status", "text", "ok, or what went wrong", True, True),
    Column("ns_per_op", "ns/key", "ns", "median time per operation", True),
    Column("ns_per_op_low", "from", "ns", "low end of the interval of the median", True),
    Column("ns_per_op_high", "to", "ns", "high end of the interval of the median", True),
    Column("floor_ratio", "\u00d7 floor", "ratio",
           "time over that of reading one random cache line per key in a table of the same size",
           True),
    Column("bits_per_key", "bits/key", "bits", "all bytes that a lookup may touch", True),
    Column("size_bytes", "size", "bytes", "all bytes that a lookup may touch", True),
    Column("fpr_measured", "FPR", "fpr", "false positives over absent keys asked", True),
    Column("fpr_expected", "FPR expected", "fpr", "by theory, for that very filter", True),
    Column("build_ns_per_key", "build ns/key", "ns", "of the build that was then measured", True),
    Column("asked_bits_per_key", "bits asked", "number", "the parameter bits_per_key"),
    Column("variant", "variant", "text", "what tells its curve from others of the filter",
           text=True),
    Column("key_set", "key set", "text", "kind of keys", text=True),
    Column("hashing", "hashing", "text", "what of the hash a lookup includes", text=True),
    Column("fill", "fill", "number", "keys given, over the keys that the filter was made for"),
    Column("keys_held", "keys held", "count", "keys accepted before the first that was refused"),
    Column("pages", "pages", "text", "what the tables were asked to lie on", text=True),
    Column("threads", "threads", "count", "threads that ask one filter at the same time"),
    Column("operations_per_second", "operations/s", "number", "of all threads together"),
    Column("fpr_low", "FPR from", "fpr", "95 % interval, Clopper and Pearson"),
    Column("fpr_high", "FPR to", "fpr", "95 % interval, Clopper and Pearson"),
    Column("fpr_ratio", "FPR/expected", "ratio", "measured over expected"),
    Column("fpr_ratio_low", "FPR/expected from", "ratio", "low end of its interval"),
    Column("fpr_ratio_high", "FPR/expected to", "ratio", "high end of its interval"),
    Column("fpr_check", "FPR check", "text",
           "whether chance explains how it differs from theory; see the section on checks",
           text=True),
    Column("false_positives", "false positives", "count", "absent keys that were not denied"),
    Column("queries", "absent keys asked", "count", "all rounds together"),
    Column("confidence", "confidence", "share", "of the interval of the median"),
    Column("stable", "stable", "flag", "interval as narrow as the spec asked for", text=True),
    Column("asked_width", "width asked", "share", "of the interval, over the median"),
    Column("width", "width", "share", "of the interval, over the median"),
    Column("clusters_explained_by", "two modes by", "text",
           "times fall into two modes; the level of repetition that tells them apart", text=True),
    Column("cluster_low_ns", "lower mode", "ns", "median of the faster mode"),
    Column("cluster_high_ns", "upper mode", "ns", "median of the slower mode"),
    Column("process_share", "variance: process", "share", "part of the variance of one pass"),
    Column("build_share", "variance: build", "share", "part of the variance of one pass"),
    Column("pass_share", "variance: pass", "share", "part of the variance of one pass"),
    Column("rounds", "rounds", "count", "builds of the filter"),
    Column("passes", "passes", "count", "over all rounds"),
    Column("floor_ns_per_op", "floor ns/key", "ns", "one random cache line per key"),
    Column("allocated_bytes", "allocated", "bytes", "with the slack of the allocator"),
    Column("peak_build_bytes_per_key", "peak build bytes/key", "number", "memory while building"),
    Column("huge_page_bytes", "on huge pages", "bytes", "of the table"),
    Column("steal_ticks", "steal ticks", "count", "taken by the hypervisor, all samples"),
    Column("involuntary_switches", "switches", "count", "involuntary ones, all samples"),
    Column("major_faults", "major faults", "count", "pages read from a disk, all samples"),
    Column("point_id", "point id", "id", "XXH3 of the point's canonical JSON", text=True),
    Column("params", "params", "text", "all parameters as JSON", text=True),
    Column("reason", "reason", "text", "why it is not ok", text=True),
)
_KEYS = [column.key for column in COLUMNS]

# What a null means where neither summary nor samples say it.
_MEANINGS = {
    "fill": "built from all keys at once", "keys_held": "built from all keys at once",
    "pages": "nothing was chosen: huge pages from 2 MiB on, the heap below",
    "threads": "one thread",
    "negative_share": "nothing is looked up in this mode",
    "asked_width": "the spec asks for no width", "width": "the spec asks for no width",
    "stable": "the spec asks for no width",
    "asked_bits_per_key": "the filter has no such parameter",
    "ns_per_op_low": "too few passes for an interval",
    "ns_per_op_high": "too few passes for an interval",
    "operations_per_second": "told for several threads only",
    "clusters_explained_by": "one mode", "cluster_low_ns": "one mode",
    "cluster_high_ns": "one mode",
    "fpr_ratio": "there is no expected FPR, or it is 0", "reason": "nothing went wrong",
    "fpr_expected": "no formula gives an expectation",
    "floor_ratio": "the summary gives no floor", "floor_ns_per_op": "the summary gives no floor",
}
_REASON_OF = {"floor_ratio": "floor", "floor_ns_per_op": "floor",
              "process_share": "variance_shares", "build_share": "variance_shares",
              "pass_share": "variance_shares",
              "clusters_explained_by": "clusters", "cluster_low_ns": "clusters",
              "cluster_high_ns": "clusters"}


class Sampled(NamedTuple):
    """What the samples of a run tell that its summary does not."""

    health: dict    # {point id: {field: sum over its samples, or None}}
    reasons: dict   # {field: why it is unknown, in the samples' own words}
    totals: dict    # {field: (sum, samples that tell it, samples that have more than 0)}
    samples: int
    clocks: list    # measured clock of the core, MHz, of each sample that tells it
    pages: tuple    # (samples whose table asked for huge pages, those that got all, that got none)


_COUNTS = ("steal_ticks", "involuntary_switches", "voluntary_switches", "migrations",
           "minor_faults", "major_faults")


def read_samples(run):
    """Sums of the health of all samples; the lines have been checked when the run was loaded."""
    by_point = collections.defaultdict(lambda: dict.fromkeys(HEALTH))
    totals = {name: [0, 0, 0] for name in _COUNTS}
    reasons, clocks, asked, full, none, count = {}, [], 0, 0, 0, 0
    left_out = set(run.workloads["point_id"])
    for line in load.sample_lines(run.path)[1]:
        sample = json.loads(line)
        if sample["point_id"] in left_out:
            continue
        health = sample.get("health")
        count += 1
        if health is None:
            continue
        own = by_point[sample["point_id"]]
        for name in _COUNTS:
            value = health.get(name)
            if value is None:
                reasons.setdefault(name, health.get(f"{name}_reason"))
                continue
            totals[name] = [totals[name][0] + value, totals[name][1] + 1,
                            totals[name][2] + (value > 0)]
            if name in own:
                own[name] = (own[name] or 0) + value
        if health.get("core_clock_mhz") is not None:
            clocks.append(health["core_clock_mhz"])
        table = sample.get("filter") or {}
        wanted, got = table.get("huge_page_bytes_asked"), table.get("huge_page_bytes")
        if wanted and got is not None:
            asked, full, none = asked + 1, full + (got >= wanted), none + (got == 0)
    return Sampled(dict(by_point), reasons, {name: tuple(v) for name, v in totals.items()}, count,
                   clocks, (asked, full, none))


def frame_of(run):
    """All points of filters of a run in one frame, with the columns that only the page has."""
    frames = [frame for frame in run.filter_frames if len(frame)] or [run.points]
    frame = pandas.concat(frames, ignore_index=True)
    frame["asked_bits_per_key"] = frame.get("param.bits_per_key", math.nan)
    frame["asked_bits_per_key"] = pandas.to_numeric(frame["asked_bits_per_key"], errors="coerce")
    expected = frame["fpr_expected"].where(frame["fpr_expected"] > 0)
    for name, source in (("fpr_ratio", "fpr_measured"), ("fpr_ratio_low", "fpr_low"),
                         ("fpr_ratio_high", "fpr_high")):
        frame[name] = frame[source] / expected
    order = frame.assign(natural=[tuple(selection.natural(text)) for text in frame["params"]])
    frame = frame.loc[order.sort_values(
        ["filter", "natural", "keys", "mode", "target", "negative_share"], kind="stable").index]
    return frame.reset_index(drop=True)


def entries_of(run):
    """{point id: entry of summary.json as it is}, for the reasons of what is unknown."""
    summary = json.loads(load.read(run.path / "summary.json"))
    return {entry["point_id"]: entry for entry in summary["points"]}


def is_unknown(value):
    return value is None or isinstance(value, float) and math.isnan(value)


def _reason(key, row, entry, sampled):
    """Why the value of a column is unknown."""
    own = entry.get(f"{_REASON_OF.get(key, key)}_reason")
    if own:
        return own
    if key in HEALTH:
        return sampled.reasons.get(key) or "no sample tells it"
    if row["status"] != "ok" and key not in ("fill", "keys_held", "pages", "threads", "reason",
                                             "negative_share", "asked_bits_per_key"):
        return f"{row['status']}: {row['reason']}"
    if key.startswith("fpr") or key in ("false_positives", "queries"):
        if row["filter"] in selection.BASELINES:
            return "a baseline answers nothing: it has no FPR"
        if is_unknown(row["fpr_measured"]):
            return "no absent keys were asked"
        return _MEANINGS["fpr_ratio" if key.startswith("fpr_ratio") else "fpr_expected"]
    if key in ("floor_ratio", "floor_ns_per_op") and row["mode"] == "build":
        return "building has no floor"
    return _MEANINGS.get(key) or "the record does not say"


def _plain(value):
    """A cell as JSON: whole numbers without a fraction, unknown as null."""
    if is_unknown(value) or value is pandas.NA:
        return None
    if isinstance(value, (bool, str)):
        return value
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _packed(values):
    """Values that repeat, as the different ones and the place of each among them."""
    places = {}
    return {"indices": [places.setdefault(value, len(places)) for value in values],
            "values": list(places)}


def pack(runs, frames, sampled):
    """The columns of all points of all runs, in the order of the runs: those of text packed, those
    of numbers as lists, and the reasons of what is unknown, packed too."""
    cells = {key: [] for key in _KEYS}
    reasons = {key: [] for key in _KEYS}
    for run, frame, health in zip(runs, frames, sampled):
        entries = entries_of(run)
        for row in frame.to_dict("records"):
            row |= health.health.get(row["point_id"], dict.fromkeys(HEALTH))
            for key in _KEYS:
                value = _plain(row[key])
                cells[key].append(value)
                reasons[key].append(
                    None if value is not None
                    else _reason(key, row, entries[row["point_id"]], health))
    return {
        "columns": {column.key: _packed(cells[column.key]) if column.text else cells[column.key]
                    for column in COLUMNS},
        "reasons": {key: _packed(texts) for key, texts in reasons.items() if any(texts)},
    }
