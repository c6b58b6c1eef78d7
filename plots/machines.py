"""What several machines measured, one run of each, side by side. Times of two machines are never
put into one number: what is compared are ratios inside a machine, and orders.

question   a point without its target (load.question): what can be asked of every machine
context    a question without filter, preset and parameters: the filters in one context compete
contender  filter, preset and parameters
digests    of a filter's bytes and of its answers: they depend on the build (question and seed)
           alone; where they differ between machines, or targets of one, something is wrong
Of the targets that a machine measured for a question its best one counts, otherwise the widest.
"""

import collections
import functools
import itertools
import json
from typing import NamedTuple

import pandas

from plots import ratios, selection

REFERENCE, SCALAR = "reference", "scalar"
# Modes in which a target may have a gain, and against what: the scalar reference compiled for the
# same target goes one key at a time over the same stream as batched lookups do.
_GAIN_MODES = {"lookup_batched": (REFERENCE, SCALAR), "lookup_single": (SCALAR,),
               "latency": (SCALAR,)}


class SeveralRuns(Exception):
    """Runs of one machine where one is needed."""

    def __init__(self, runs):
        self.runs = sorted(runs, key=lambda run: run.name)
        super().__init__(f"{len(runs)} runs of machine {runs[0].machine}: "
                         f"{', '.join(str(run.path) for run in self.runs)}")


class Machine:
    """One machine by its run."""

    def __init__(self, run):
        self.run, self.name = run, run.machine
        frames = [frame for frame in run.filter_frames if len(frame)]
        self.points = pandas.concat(frames, ignore_index=True) if frames else run.points
        rows = self.points.to_dict("records")
        self.rows = rows
        self._by_id = {row["point_id"]: row for row in rows}
        self._by_question = collections.defaultdict(dict)
        for row in rows:
            self._by_question[row["question"]][row["target"]] = row

    @property
    def questions(self):
        return self._by_question.keys()

    def targets(self, question):
        """{target: row} of the points that ask `question`, whatever came of them."""
        return self._by_question.get(question, {})

    def leave_out(self, questions):
        """As if these had no answer."""
        for question in questions:
            self.best.pop(question, None)

    @functools.cached_property
    def best(self):
        """{question: row} of the points that are ok, on the target that counts."""
        found = {}
        for question, targets in self._by_question.items():
            good = [row for row in targets.values() if row["status"] == "ok"]
            if good:
                found[question] = max(good, key=lambda row: (
                    row["target"] == self.run.best_target, selection.target_rank(row["target"])))
        return found

    def over_floor(self, row):
        """The time of one of this machine's points over its floor. Raises ratios.Unknown."""
        return ratios.time(row).over(ratios.floor(row, self._by_id))

    def gains(self):
        """(row, what it is over, ratio) for every target with vectors whose slower twin was
        measured too: the gain is the twin's time over the target's."""
        for question in self.best:
            targets, asked = self._by_question[question], json.loads(question)
            for over in _GAIN_MODES.get(asked["mode"], ()):
                twins = targets if over == SCALAR else self._by_question.get(
                    json.dumps(asked | {"mode": "lookup_reference"}, sort_keys=True,
                               ensure_ascii=False, separators=(",", ":")), {})
                for target, row in targets.items():
                    twin = twins.get("scalar" if over == SCALAR else target)
                    if (target not in selection.SCALAR_TARGETS and twin is not None
                            and {row["status"], twin["status"]} == {"ok"}):
                        yield row, over, ratios.time(twin).over(ratios.time(row))


def side_by_side(runs):
    """A Machine for each run, by name. Raises SeveralRuns."""
    by_machine = collections.defaultdict(list)
    for run in runs:
        by_machine[run.machine].append(run)
    for same in by_machine.values():
        if len(same) > 1:
            raise SeveralRuns(same)
    return [Machine(by_machine[name][0]) for name in sorted(by_machine)]


class Digests(NamedTuple):
    compared: int    # digests of which there is one of several machines
    differing: dict  # question -> [{"what", "seed", "digests": {machine: [digest]}}]
    apart: collections.Counter  # (machine, machine, what, reason) -> questions not compared


def _absent_asked(machine):
    """How many absent keys the digest of the answers may be about."""
    measure = machine.run.manifest["spec"].get("measure") or {}
    return measure.get("fpr_queries")


def digests(side):
    found = collections.defaultdict(lambda: collections.defaultdict(set))
    asked = collections.defaultdict(lambda: collections.defaultdict(set))
    for machine in side:
        question_of = dict(zip(machine.points["point_id"], machine.points["question"]))
        samples = machine.run.samples
        for point_id, seed, *values in zip(samples["point_id"], samples["seed"],
                                           samples["filter_digest"], samples["answers_digest"]):
            question = question_of.get(point_id)
            for kind, condition, digest in zip(
                    ("filter_digest", "answers_digest"), (None, _absent_asked(machine)), values):
                if question is not None and digest is not None:
                    found[question, kind, condition, seed][machine.name].add(digest)
                    asked[question, kind][machine.name].add((condition, seed))
    compared, differing, apart = 0, {}, collections.Counter()
    for (question, kind, _, seed), by_machine in found.items():
        compared += len(by_machine) > 1
        if len(set().union(*by_machine.values())) > 1:
            differing.setdefault(question, []).append({
                "what": kind, "seed": seed,
                "digests": {name: sorted(values) for name, values in sorted(by_machine.items())}})
    for (_, kind), by_machine in asked.items():
        for one, other in itertools.combinations(sorted(by_machine), 2):
            if not by_machine[one] & by_machine[other]:
                alike = {seed for _, seed in by_machine[one]} & {s for _, s in by_machine[other]}
                apart[one, other, kind, "the number of absent keys asked differs (fpr_queries)"
                      if alike else "no seed in common"] += 1
    return Digests(compared, differing, apart)


def leave_out(side, questions):
    for machine in side:
        machine.leave_out(questions)


@functools.lru_cache(maxsize=None)
def parts(question):
    """(context, contender) of a question, as text."""
    asked = json.loads(question)
    contender = {name: asked.pop(name) for name in ("filter", "preset", "params") if name in asked}
    return (json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":")),
            json.dumps(contender, sort_keys=True, ensure_ascii=False, separators=(",", ":")))


def common(machines):
    """The questions that every machine has answered, in the order of the first."""
    return [question for question in machines[0].best
            if all(question in machine.best for machine in machines[1:])]


def representatives(machines):
    """The contenders that stand for their variants (selection.py), chosen among what all machines
    have answered, so that they are the same for all."""
    first = machines[0]
    asked = set(common(machines))
    points = selection.ok(first.points)
    points = points[points["question"].isin(asked)]
    if points.empty:
        return set()
    chosen = selection.representative_params(points)
    return {parts(row["question"])[1] for row in points.to_dict("records")
            if (row["filter"], row["params"]) in chosen}
