"""How far each kernel is from what the machine allows: Markdown tables of a run of the spec
`kernels` (any run with these filters will do):

    /usr/bin/python3 -m plots.kernels RUN...

Lookups     batched, best target: time over the floor and, where a goal is set in them, over two or
            three random lines per key; the goal and whether it is met
One by one  single-key lookups and latency chains over those of the floor
Building    ns per key
Targets     each target's batched lookups against the scalar reference compiled for that target
Floor       every way of reading lines, so that one sees which won

The floor is the summary's (results/README.md): the fastest touch_lines with one line, over all ways
and targets, at the filter's table size. Two or three lines: the fastest at the table size that was
measured nearest to the filter's.

Intervals of ratios are those of ratios.py. What is unknown is a dash with the number of its reason.
"""

import argparse
import json
import math
import sys
from typing import NamedTuple

from plots import command, headline, load, ratios, selection
from plots.ratios import Reasons, Unknown


# --- Goals ---

KEYS = (10_000, 1_000_000, 100_000_000)
SHARES = (1.0, 0.5)  # of absent keys
GOALS_SOURCE = "issue 3, What must be shown"
# For single-key lookups and building the issue asks for at most the best peer's time (0.6 of it to
# build a ribbon). Peers are not in a run: their times are shown, and no verdict is given.
PEERS = ("Best peer: ns of another implementation of the structure on another machine (AMD Zen 5, "
         "AVX-512, g++ 12 or clang 14, one thread): shows the order of size, decides nothing.")


class Goal(NamedTuple):
    """At most `limit` times the fastest touch_lines with so many lines."""

    limit: float
    lines: int = 1


class Contender(NamedTuple):
    """A filter with the parameters that a goal speaks of, and what is asked of it by key count."""

    label: str
    filter: str
    params: dict
    goals: dict                                 # key count -> Goal, for batched lookups
    goal_shares: tuple = SHARES                 # where the goals hold
    peer_single_ns: tuple = (None, None, None)  # at KEYS; see PEERS
    peer_build_ns: tuple = (None, None, None)


def _goals(small, middle, large):
    return dict(zip(KEYS, (Goal(small), Goal(middle), large)))


_ONE_LOAD = _goals(1.3, 1.3, Goal(1.15))
_ONE_LINE = _goals(1.7, 1.5, Goal(1.15))
_THREE_BYTES = _goals(2.5, 2.5, Goal(1.0, lines=3))
_WIDE_RIBBON = _goals(4, 4, Goal(1.5))

CONTENDERS = (
    Contender("split_block 8x32", "split_block", {"bits_per_key": 10}, _ONE_LOAD,
              peer_single_ns=(1.16, 3.1, 13.6), peer_build_ns=(1.4, 2.4, 8.6)),
    Contender("register_blocked 64", "register_blocked", {"bits_per_key": 10, "word_bits": "64"},
              _ONE_LOAD, peer_single_ns=(None, 6.9, 32), peer_build_ns=(None, 9.5, 41)),
    Contender("blocked_bloom", "blocked_bloom", {"bits_per_key": 10}, _ONE_LINE,
              peer_single_ns=(2.1, 2.9, 43), peer_build_ns=(4.6, 5.4, 35)),
    Contender("split_block_512", "split_block_512", {"bits_per_key": 10}, _ONE_LINE,
              peer_single_ns=(1.62, 4.5, 18.9), peer_build_ns=(1.5, 2.7, 8.9)),
    Contender("ribbon homogeneous w=64 r=8", "ribbon",
              {"system": "homogeneous", "width": "64", "columns": 8},
              _goals(2.5, 2.5, Goal(1.15)),
              peer_single_ns=(21, 23, 101), peer_build_ns=(27, 30, 170)),
    Contender("ribbon standard w=128 r=7", "ribbon",
              {"system": "standard", "width": "128", "columns": 7}, _WIDE_RIBBON,
              peer_single_ns=(26, 32, 182), peer_build_ns=(50, 100, 324)),
    Contender("ribbon standard w=128 r=8", "ribbon",
              {"system": "standard", "width": "128", "columns": 8}, _WIDE_RIBBON,
              peer_single_ns=(23, 32, 175), peer_build_ns=(52, 102, 315)),
    Contender("binary_fuse 3-wise 8-bit", "binary_fuse", {"arity": "3", "fingerprint_bits": "8"},
              _THREE_BYTES, peer_single_ns=(2.5, 4.2, 35), peer_build_ns=(40, 42, 133)),
    Contender("xor 8-bit", "xor", {"fingerprint_bits": "8"}, _THREE_BYTES,
              peer_single_ns=(2.8, 4.8, 35), peer_build_ns=(62, 67, 190)),
    Contender("cuckoo 12-bit", "cuckoo", {"fingerprint_bits": "12"},
              _goals(3, 3, Goal(1.15, lines=2)),
              peer_single_ns=(2.5, 3.9, 25), peer_build_ns=(15, 40, 86)),
    Contender("km_bloom", "km_bloom", {"bits_per_key": 10}, _goals(5, 5, Goal(1.3, lines=2)),
              goal_shares=(1.0,)),
    Contender("classic_bloom", "classic_bloom", {"bits_per_key": 10}, {},
              peer_single_ns=(13, 18, 66), peer_build_ns=(6.9, 9.5, 58)),
)

# A table of touch_lines stands for one of another size up to this factor.
NEAR_SIZE = 1.25

NOT_IN_THE_RUN = "the run has no such point"


# --- Points ---

class Points:
    """The points of a run over plain keys, and the questions that the tables ask of them."""

    def __init__(self, run):
        self.run = run
        self.frame = selection.plain_keys(run.points)
        self._by_id = run.points.set_index("point_id").to_dict("index")
        self._params = {text: json.loads(text) for text in self.frame["params"].unique()}

    def of(self, contender):
        rows = self.frame[self.frame["filter"] == contender.filter]
        fits = {text for text, params in self._params.items()
                if all(params.get(name) == value for name, value in contender.params.items())}
        return rows[rows["params"].isin(fits)]

    def find(self, contender, keys, mode, share=None, target=None):
        """The point, which is ok. Raises Unknown."""
        rows = self.of(contender)
        rows = rows[(rows["keys"] == keys) & (rows["mode"] == mode)]
        if share is not None:
            rows = rows[rows["negative_share"] == share]
        if target is None and mode != "build":
            rows = selection.best_target(rows, self.run.best_target)
        elif target is not None:
            rows = rows[rows["target"] == target]
        if rows.empty:
            raise Unknown(NOT_IN_THE_RUN)
        if len(rows) > 1:
            raise Unknown(f"{len(rows)} points of the run fit")
        row = rows.iloc[0]
        if row["status"] != "ok":
            raise Unknown(f"{row['status']}: {row['reason']}")
        return row

    def time(self, *where):
        """The time of the point that find() finds."""
        return ratios.time(self.find(*where))

    def floor(self, *where):
        """The point's floor, as the summary has it, with the interval of the points it is from.
        Raises Unknown."""
        row = self.find(*where)
        return ratios.floor(row, self._by_id)

    def over_floor(self, *where):
        return self.time(*where).over(self.floor(*where))

    def over_lines(self, lines, *where):
        """Over the fastest touch_lines with so many lines at about the point's table size. Raises
        Unknown."""
        row = self.find(*where)
        touches = selection.ok(self.frame[self.frame["filter"] == "touch_lines"])
        if "param.lines" in touches:
            touches = touches[(touches["param.lines"] == lines) & (touches["mode"] == row["mode"])]
        if touches.empty or "param.lines" not in touches:
            raise Unknown(f"the run has no touch_lines with {lines} lines in mode {row['mode']}")
        if math.isnan(row["size_bytes"]):
            raise Unknown("the size of the table is unknown")
        distance = (touches["size_bytes"] / row["size_bytes"]).map(lambda x: abs(math.log(x)))
        if distance.min() > math.log(NEAR_SIZE):
            raise Unknown(f"no touch_lines table with {lines} lines is within a factor of "
                          f"{NEAR_SIZE} of the filter's size")
        touches = touches[distance == distance.min()]
        share = (touches["negative_share"] - row["negative_share"]).abs()
        fastest = touches[share == share.min()].sort_values("ns_per_op", kind="stable").iloc[0]
        return ratios.time(row).over(ratios.time(fastest))

    def over_goal(self, goal, *where):
        """What the goal limits."""
        return self.over_floor(*where) if goal.lines == 1 else self.over_lines(goal.lines, *where)


# --- Tables: each gives (columns of text, rows as dicts, sentences below) ---

def _share(share):
    return f"{100 * share:g} %"


def _verdict(points, goal, *where):
    ratio = points.over_goal(goal, *where)
    return ("yes" if ratio.value <= goal.limit else "NO") + ratio.doubt(goal.limit)


def _honesty(points, *where):
    """What the time of a point says of its floor."""
    try:
        ratio = points.over_floor(*where)
    except Unknown:
        return ""
    if ratio.value >= 1:
        return ""
    return f"floor is wrong{ratio.doubt(1)}"


def lookups(points):
    reasons, rows, tally = Reasons(), [], {}
    for keys in KEYS:
        for contender in CONTENDERS:
            lines = max((goal.lines for goal in contender.goals.values()), default=1)
            for share in SHARES:
                where = (contender, keys, "lookup_batched", share)
                row = {"keys": f"{keys}", "filter": contender.label, "absent": _share(share),
                       "ns": reasons.text(points.time, *where),
                       "floor ns": reasons.text(points.floor, *where),
                       "x floor": reasons.text(points.over_floor, *where),
                       "x lines": "", "goal": "", "met": "",
                       "floor": _honesty(points, *where)}
                if lines > 1:
                    row["x lines"] = reasons.text(points.over_lines, lines, *where) + f" ({lines})"
                goal = contender.goals.get(keys) if share in contender.goal_shares else None
                if goal is not None:
                    row["goal"] = f"<= {goal.limit:g}" + (
                        f" x {goal.lines} lines" if goal.lines > 1 else " x floor")
                    row["met"] = reasons.text(_verdict, points, goal, *where)
                    name = "unknown" if row["met"].startswith("-") else row["met"]
                    tally[name] = tally.get(name, 0) + 1
                rows.append(row)
    return ("filter", "absent", "goal", "met", "floor"), rows, [
        f"Goals ({GOALS_SOURCE}), {sum(tally.values())} in all: "
        + "; ".join(f"{count} {name}" for name, count in sorted(tally.items(), reverse=True)) + ".",
        "x lines: over two or three lines per key, as many as stand in brackets. Within noise: the "
        "interval of the ratio holds the goal.", *reasons.lines()]


def one_by_one(points):
    reasons, rows = Reasons(), []
    for keys in KEYS:
        for contender in CONTENDERS:
            row, flags = {"keys": f"{keys}", "filter": contender.label}, []
            for name, mode, share in (("single", "lookup_single", 1.0),
                                      ("single", "lookup_single", 0.5),
                                      ("latency", "latency", 1.0)):
                where = (contender, keys, mode, share)
                name = f"{name} {_share(share)}"
                row[f"{name} ns"] = reasons.text(points.time, *where)
                row[f"{name} x floor"] = reasons.text(points.over_floor, *where)
                if flag := _honesty(points, *where):
                    flags.append(f"{name}: {flag}")
            row["best peer single ns"] = reasons.text(_peer, contender.peer_single_ns, keys)
            row["floor"] = "; ".join(flags)
            rows.append(row)
    return ("filter", "floor"), rows, [
        "Percentages: absent keys. Floor: touch_lines with one line in the same mode. In a latency "
        "chain a filter that decides by a branch may be guessed and run ahead of its lines: there "
        "the floor may be right all the same.", PEERS, *reasons.lines()]


def _peer(values, keys):
    value = values[KEYS.index(keys)]
    if value is None:
        raise Unknown("no peer was measured")
    return f"{value:g}"


def _build(points, contender, keys):
    try:
        return points.time(contender, keys, "build")
    except Unknown:
        rows = selection.ok(points.of(contender))
        known = rows[rows["keys"] == keys]["build_ns_per_key"].dropna()
        if known.empty:
            raise
        return f"{headline.number(known.iloc[0])} *"


def building(points):
    reasons, rows = Reasons(), []
    for contender in CONTENDERS:
        row = {"filter": contender.label}
        for keys in KEYS:
            row[f"{keys} keys"] = reasons.text(_build, points, contender, keys)
            row[f"best peer, {keys}"] = reasons.text(_peer, contender.peer_build_ns, keys)
        rows.append(row)
    return ("filter",), rows, [
        "ns per key. *: median of the builds that the lookups needed, one a round, fresh memory.",
        PEERS, *reasons.lines()]


def _gain(points, losers, target, contender, keys, share):
    batched, reference = (points.time(contender, keys, mode, share, target)
                          for mode in ("lookup_batched", "lookup_reference"))
    ratio = reference.over(batched)
    text = (f"{headline.number(ratio.value)} = {headline.number(reference.value)} / "
            f"{headline.number(batched.value)}")
    if target in selection.SCALAR_TARGETS or ratio.value > 1:
        return text
    losers.append(f"{contender.label}, {keys} keys, {_share(share)} absent, {target}: "
                  f"{ratio}{ratio.doubt(1)}")
    return f"**{text}**"


def targets(points):
    reasons, rows, losers = Reasons(), [], []
    measured = points.frame[points.frame["mode"] == "lookup_reference"]
    measured = selection.filters_only(measured)
    names = sorted(set(measured["target"]), key=selection.target_rank)
    for keys in (keys for keys in KEYS if keys in set(measured["keys"])):
        for contender in CONTENDERS:
            for share in SHARES:
                row = {"keys": f"{keys}", "filter": contender.label, "absent": _share(share)}
                for target in names:
                    row[target] = reasons.text(_gain, points, losers, target, contender, keys,
                                               share)
                rows.append(row)
    notes = ["Gain = ns of the scalar reference, one key at a time / ns of batched lookups, both "
             "compiled for the target."]
    if not rows:
        notes.append("The run has no filter in mode lookup_reference at these key counts.")
    elif losers:
        notes.append(f"Does not beat its scalar reference: {'; '.join(losers)}.")
    else:
        notes.append("Every vector target that was measured beats its scalar reference.")
    return ("filter", "absent"), rows, [*notes, *reasons.lines()]


def _way(group, way):
    rows = group[group["param.way"] == way]
    good = selection.ok(rows)
    if rows.empty:
        raise Unknown(NOT_IN_THE_RUN)
    if good.empty:
        raise Unknown(f"{rows['status'].iloc[0]}: {rows['reason'].iloc[0]}")
    text = headline.number(good["ns_per_op"].min())
    return f"**{text}**" if good["ns_per_op"].min() == group["ns_per_op"].min() else text


def _hash_only(points, keys):
    times = points[(points["filter"] == "hash_only") & (points["keys"] == keys)]["ns_per_op"]
    if times.isna().all():
        raise Unknown(NOT_IN_THE_RUN)
    return headline.number(times.min())


def ways(points):
    reasons, rows = Reasons(), []
    batched = points.frame[points.frame["mode"] == "lookup_batched"]
    touches = batched[batched["filter"] == "touch_lines"]
    names = sorted(set(touches["param.way"].dropna()) if "param.way" in touches else ())
    for (keys, lines, bits), group in touches.groupby(
            ["keys", "param.lines", "param.bits_per_key"]) if names else ():
        good = selection.ok(group).sort_values("ns_per_op", kind="stable")
        row = {"keys": f"{int(keys)}", "bits/key": f"{bits:g}",
               "table KiB": reasons.text(_kib, group), "lines": f"{lines:g}",
               "fastest": "" if good.empty else
                          f"{good['param.way'].iloc[0]}, {good['target'].iloc[0]}"}
        for way in names:
            row[way] = reasons.text(_way, group, way)
        row["hash_only"] = reasons.text(_hash_only, batched, keys)
        rows.append(row)
    notes = ["ns per key, each way at its best target; the fastest counts. The size of the table "
             "decides, not the number of keys: few keys with many bits each stand for many keys. "
             "hash_only: mixes the hash and reads nothing."]
    if not rows:
        notes.append("The run has no batched touch_lines by way.")
    return ("fastest",), rows, [*notes, *reasons.lines()]


def _kib(group):
    size = group["size_bytes"].min()
    if math.isnan(size):
        raise Unknown("the size of the table is unknown")
    return headline.number(size / 1024)


TABLES = (("Batched lookups and their goals", lookups), ("One key at a time", one_by_one),
          ("Building", building), ("Each target against its own scalar reference", targets),
          ("Ways of reading lines: the floor", ways))


def render(run):
    lines = [f"# Kernels: run {run.name} on {run.cpu_brand or 'unknown CPU'}"
             + ("" if run.complete else " (INCOMPLETE)"), ""]
    points = Points(run)
    for title, table in TABLES:
        text_columns, rows, notes = table(points)
        lines += [f"## {title}", ""]
        if rows:
            lines += [*headline.markdown(list(rows[0]), text_columns, [
                {c: load.one_line(text) for c, text in row.items()} for row in rows]), ""]
        lines += [note if note.startswith("- ") else f"- {note}" for note in
                  map(load.one_line, notes)] + [""]
    failed = [f"- {load.one_line(sentence)}" for sentence in headline.failures(run)]
    return "\n".join(lines + (["## Not ok", "", *failed, ""] if failed else []))


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="plots.kernels", description="Prints the kernels of runs against the machine's floor.")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run directory")
    options = parser.parse_args(arguments)
    try:
        runs = load.load_runs(options.runs)
    except load.RunError as error:
        print(f"plots.kernels: {load.one_line(str(error))}", file=sys.stderr)
        return 2
    for run in runs:
        for note in run.notes:
            print(f"plots.kernels: {load.one_line(note)}", file=sys.stderr)
    print("\n".join(render(run) for run in runs), end="")
    return 0


if __name__ == "__main__":
    command.run(main)
