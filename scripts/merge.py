"""Puts runs together: the shards of a sweep into one run for each machine.

    filterbench merge RUN... --into DIRECTORY

writes DIRECTORY/<machine>/<run>, one run for each machine among RUN..., and prints their paths. Records of
several machines are never pooled. Shards of one machine must come from one sweep (spec_hash) and one program
(binary_xxh3); what else makes numbers incomparable (`filterbench compare`) is refused without --force. A run
that is no shard is copied as it is. A sample that is there twice (a point and a round) is refused.

Either all runs appear in DIRECTORY or, after an error, none does; nothing is ever overwritten. Summary and
theory are written anew by the program itself.

Exit codes: 0 ok; 2 usage, a run that cannot be read, a sample that is there twice, a run that exists
already; 5 shards are missing or incomplete (--allow-missing merges what is there, and does not mark it as
complete), or writing failed; 6 runs of one machine that do not belong together.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from plots import command, load
from scripts import comparability

EXIT_USAGE, EXIT_INCOMPLETE, EXIT_NOT_COMPARABLE = 2, 5, 6
ROOT = pathlib.Path(__file__).resolve().parent.parent
_SHARD_SUFFIX = re.compile(r"-shard-\d+-of-\d+$")


class Refused(Exception):
    """Why runs are not merged, with the exit code; one sentence a line."""

    def __init__(self, problems, code):
        super().__init__("\n".join(problems))
        self.code = code


def program():
    """The filterbench that called this, or the one that was built here."""
    return os.environ.get("FILTERBENCH") or str(ROOT / "build" / "release" / "filterbench")


# --- What belongs together ---

def _same(runs, field, of):
    first = runs[0]
    problems = []
    for run in runs:
        value = of(run.manifest)
        if value is None:
            problems.append(f"{run.path}/manifest.json: {field} is unknown: whether the runs belong "
                            f"together cannot be told")
        elif value != of(first.manifest):
            problems.append(f"{run.path}/manifest.json: {field} is {value}, {first.path} has "
                            f"{of(first.manifest)}")
    if problems:
        raise Refused(problems, EXIT_NOT_COMPARABLE)


def _check_belong_together(runs, force):
    _same(runs, "spec_hash", lambda manifest: manifest.get("spec_hash"))
    _same(runs, "provenance.binary_xxh3", lambda manifest: manifest["provenance"].get("binary_xxh3"))
    first = runs[0]
    problems = [f"{run.path}/manifest.json: {field} is {comparability.text(there)}, {first.path} has "
                f"{comparability.text(here)}"
                for run in runs[1:]
                for field, here, there in comparability.differences(first.manifest, run.manifest)]
    if problems and not force:
        raise Refused([*problems, "not merged; --force does it anyway"], EXIT_NOT_COMPARABLE)


def _shard(run):
    """(index, count); a run that is no shard is all of its sweep."""
    shard = run.manifest.get("shard")
    if shard is None:
        return 0, 1
    return shard["index"], shard["count"]


def missing(runs):
    """What is not there of a sweep, one sentence each."""
    problems = [f"{run.path}: is incomplete" for run in runs if not run.complete]
    counts = {_shard(run)[1] for run in runs}
    if len(counts) > 1:
        raise Refused([f"{run.path}/manifest.json: shard: is one of {_shard(run)[1]}, {runs[0].path} is "
                       f"one of {_shard(runs[0])[1]}" for run in runs
                       if _shard(run)[1] != _shard(runs[0])[1]], EXIT_NOT_COMPARABLE)
    (count,) = counts
    absent = sorted(set(range(count)) - {_shard(run)[0] for run in runs})
    problems += [f"{runs[0].machine}: shard {index + 1} of {count} is missing" for index in absent]
    return problems


# --- Samples ---

def _samples(runs):
    """All samples in the order of time, numbered anew. Raises Refused where one is there twice."""
    seen, found = {}, []
    for number, run in enumerate(runs):
        file, lines, _ = load.sample_lines(run.path)
        for line_number, line in enumerate(lines, 1):
            sample = json.loads(line)
            place = f"{file}:{line_number}"
            key = sample["point_id"], sample["round"]
            if key in seen:
                raise Refused([f"{place}: round {key[1]} of point {key[0]} ({sample['point']['filter']}, "
                               f"{sample['point']['keys']} keys) is also in {seen[key]}"], EXIT_USAGE)
            seen[key] = place
            found.append((sample["time_utc"], number, sample["sequence"], sample))
    found.sort(key=lambda entry: entry[:3])
    return [sample | {"sequence": sequence} for sequence, (*_, sample) in enumerate(found)]


def _manifest(runs):
    """Of the run that all become: the first one's, with the environments of all."""
    first = runs[0].manifest
    merged = {name: value for name, value in first.items() if name != "shard"}
    merged["run"] = _SHARD_SUFFIX.sub("", first["run"])
    merged["merged_from"] = [
        {"run": run.manifest["run"], "time_utc": run.manifest["time_utc"],
         "environment": run.manifest["environment"]}
        | ({"shard": run.manifest["shard"]} if "shard" in run.manifest else {}) for run in runs]
    return merged


# --- Writing ---

def _write(directory, runs, complete):
    """Makes the run of `runs` in `directory`, which holds runs of this machine; returns its name."""
    manifest = _manifest(runs)
    run = directory / manifest["run"]
    run.mkdir(parents=True)
    with open(run / "manifest.json", "x", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1, ensure_ascii=False, allow_nan=False)
        file.write("\n")
    with open(run / "samples.jsonl", "x", encoding="utf-8") as file:
        for sample in _samples(runs):
            json.dump(sample, file, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            file.write("\n")
    command = [program(), "summarise", str(run), *(["--complete"] if complete else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Refused([f"{command[0]}: cannot be run: {error.strerror}; FILTERBENCH names another"],
                      EXIT_INCOMPLETE) from None
    if done.returncode != 0:
        raise Refused([f"{command[0]} summarise failed: {done.stderr.strip()}"], EXIT_INCOMPLETE)
    return manifest["run"]


def _copy(directory, run):
    """A run that is all of its sweep stays as it is, byte by byte."""
    target = directory / run.name
    shutil.copytree(run.path, target)
    return run.name


def merge(runs, into, force=False, allow_missing=False):
    """Writes the runs; returns (their paths, what is missing of them). Raises Refused."""
    into = pathlib.Path(into)
    by_machine = collections.defaultdict(list)
    for run in sorted(runs, key=lambda run: (run.manifest["time_utc"], run.name)):
        by_machine[run.machine].append(run)
    absent = {}
    for machine, group in by_machine.items():
        if machine in ("", ".", "..") or set(machine) & {"/", "\0"}:
            raise Refused([f"{group[0].path}/manifest.json: machine: must be the name of a directory, "
                           f"found {machine!r}"], EXIT_USAGE)
        _check_belong_together(group, force)
        absent[machine] = missing(group)
    problems = [problem for list_ in absent.values() for problem in list_]
    if problems and not allow_missing:
        raise Refused([*problems, "not merged; --allow-missing merges what is there"], EXIT_INCOMPLETE)
    for machine, group in by_machine.items():
        place = into / machine / _SHARD_SUFFIX.sub("", group[0].name)
        if os.path.lexists(place):
            raise Refused([f"{place}: exists already; nothing is overwritten"], EXIT_USAGE)
    try:
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".merging-", dir=into) as beside:
            written = []
            for machine, group in by_machine.items():
                directory = pathlib.Path(beside) / machine
                whole = len(group) == 1 and "shard" not in group[0].manifest
                name = (_copy(directory, group[0]) if whole
                        else _write(directory, group, complete=not absent[machine]))
                written.append((directory / name, into / machine / name))
            for source, target in written:
                target.parent.mkdir(exist_ok=True)
                source.rename(target)
    except OSError as error:
        raise Refused([f"{error.filename or into}: {error.strerror}"], EXIT_INCOMPLETE) from None
    return [target for _, target in written], problems


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="filterbench merge", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run directories")
    parser.add_argument("--into", required=True, type=command.path, metavar="DIRECTORY",
                        help="where the runs are written, below the names of their machines")
    parser.add_argument("--allow-missing", action="store_true", help="merge though shards are missing")
    parser.add_argument("--force", action="store_true",
                        help="merge though settings of the machine differ between shards")
    arguments = parser.parse_args(arguments)
    try:
        written, problems = merge(load.load_runs(arguments.runs), arguments.into, arguments.force,
                                  arguments.allow_missing)
    except (load.RunError, Refused) as error:
        for line in str(error).splitlines():
            print(f"filterbench merge: {line}", file=sys.stderr)
        return getattr(error, "code", EXIT_USAGE)
    for problem in problems:
        print(f"filterbench merge: {problem}", file=sys.stderr)
    print("\n".join(str(path) for path in written))
    return 0


if __name__ == "__main__":
    command.run(main)
