"""Makes a run a reference run of the project:

    filterbench keep RUN [--any-spec] [--any-host-name]

A reference run is what others compare their machine with (`filterbench compare-cpus`), so it must
be whole and must say what made it: complete, of the spec `paper` (or any with --any-spec), by a
release build of a committed tree, without a wrong answer, and every file as its schema demands. It
goes into git for good, so it must not say who measured it where: a path outside the system's own
folders or the name of this machine anywhere in it is refused (the name may be a word that means
something else there: --any-host-name).

It is written to results/<machine>/<run>/ of this tree in one step, samples (and any other file from
1 MiB on) compressed by xz, which gives the same bytes each time; summary.csv and figures follow
from the rest and stay out. A run that lies there already becomes a reference run in place: its
samples are compressed, nothing of it is lost. No other directory is ever overwritten.

The findings of `filterbench doctor` that stand in the run, and points that are not ok, are printed:
whether they are acceptable is for you to decide. The directory is printed on stdout. Exit codes: 0
ok; 2 usage, or not fit to be kept; 3 the run has wrong answers; 5 it is incomplete, or could not be
written.
"""

import argparse
import collections
import json
import lzma
import os
import pathlib
import re
import shutil
import socket
import sys
import tempfile
import urllib.parse

import jsonschema

from plots import command, load

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "results" / "schema"
EXIT_UNFIT, EXIT_WRONG, EXIT_INCOMPLETE = 2, 3, 5
SPEC = "paper"
DOCUMENTS = {"manifest.json": "manifest", "summary.json": "summary", "theory.json": "theory"}
SAMPLES = "samples.jsonl"
FILES = (*DOCUMENTS, SAMPLES)
MOST_BYTES = 10_000_000
PLAIN_BYTES = 1 << 20  # larger files are compressed
MOST_SHOWN = 5
# Git takes no run but those that say so themselves.
GIT_RULES = "".join([
    "# A reference run (scripts/keep.py): these files are part of the project.\n*\n",
    *(f"!/{name}\n" for name in (".gitignore", "COMPLETE", *FILES)),
    *(f"!/{name}.xz\n" for name in FILES)])


class Unfit(Exception):
    """Why a run cannot be kept, a sentence a line; `code` is the exit code."""

    def __init__(self, problems, code=EXIT_UNFIT):
        super().__init__("\n".join(problems))
        self.code = code


# --- Schemas ---

def _join(base, reference):
    """Python joins no URN and fragment: "#/$defs/x" would be looked for in the schema that is
    checked, not in the one that says so."""
    if reference.startswith("#"):
        return urllib.parse.urldefrag(base).url + reference
    return urllib.parse.urljoin(base, reference)


def validators(schemas=None):
    """{name: validator} of `schemas`, {name: schema}; by default of those in results/schema."""
    if schemas is None:
        schemas = {path.stem: json.loads(path.read_text(encoding="utf-8"))
                   for path in sorted(SCHEMAS.glob("*.json"))}
    store = {schema["$id"]: schema for schema in schemas.values()}
    return {name: jsonschema.Draft202012Validator(schema, resolver=jsonschema.RefResolver(
        schema["$id"], schema, store, urljoin_cache=_join)) for name, schema in schemas.items()}


def schema_errors(path, most_samples=None):
    """What in the files of the run `path` breaks its schema, with file, line of samples and field.
    `most_samples`: no more samples than these, at even steps, since they are many and alike."""
    by_name = validators()
    errors = []

    def check(place, schema, text):
        for error in by_name[schema].iter_errors(json.loads(text)):
            errors.append(f"{place}: {error.json_path}: {error.message[:200]}")

    for name, schema in DOCUMENTS.items():
        check(load.stored(path / name), schema, load.read(path / name))
    lines = load.read(path / SAMPLES).splitlines()
    step = 1 if most_samples is None else max(1, -(-len(lines) // most_samples))
    for number in range(0, len(lines), step):
        check(f"{load.stored(path / SAMPLES)}:{number + 1}", "sample", lines[number])
    return errors


# --- What must not be published ---

# Folders that are the same on every machine.
_PUBLIC_ROOTS = ("/proc/", "/sys/", "/dev/", "/usr/", "/etc/", "/lib/", "/lib64/", "/bin/",
                 "/sbin/")
# A path at the beginning of a text or of a word of it, or behind an option of the compiler.
_ABSOLUTE = re.compile(r"(?:(?<![\w./~)\]}%-])|(?<=-[ILB])|(?<=-isystem))"
                       r"((?:~[\w.-]*)?/(?!/)[^\s\"',;:=()\[\]]+|[A-Za-z]:\\\\[^\s\"',;]+)")


def private_texts(path, host=None):
    """What in the files of the run `path` tells where or by whom it was made: sentences with file
    and line. `host`: the name of the machine, by default this one's; empty for none."""
    host = socket.gethostname() if host is None else host
    names = {name: re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
             for name in sorted({host, host.split(".")[0]} - {"localhost"}) if len(name) > 2}
    found = collections.defaultdict(list)
    for name in FILES:
        file = load.stored(path / name)
        for number, line in enumerate(load.read(file).decode("utf-8").split("\n"), 1):
            for match in _ABSOLUTE.finditer(line.replace("\\/", "/")):
                if not f"{match[1]}/".startswith(_PUBLIC_ROOTS):
                    found[f"the path {match[1]}"].append(f"{file}:{number}")
            for text, word in names.items():
                if word.search(line):
                    found[f"the name of this machine, {text},"].append(f"{file}:{number}")
    return [f"{places[0]}{f' and {len(places) - 1} more lines' if len(places) > 1 else ''}: {what} "
            "would be published" for what, places in found.items()]


# --- Fit or not ---

def _incomplete(run):
    """What a kept run must not lack."""
    problems = list(run.notes)
    points = {row["point_id"] for frame in run.frames
              for row in frame.to_dict("records")}
    asked = {row["question"] + row["target"] for frame in run.frames
             for row in frame.to_dict("records")}
    planned = run.manifest["spec"].get("points", [])
    lacking = [point for point in planned
               if load.question(point) + str(point.get("target")) not in asked]
    if lacking:
        problems.append(f"{len(lacking)} of {len(planned)} points of the spec are not in "
                        f"summary.json, such as {json.dumps(lacking[0], sort_keys=True)}")
    sampled = set(run.samples["point_id"])
    for these, what in ((points - sampled, "summary.json has points without samples"),
                        (sampled - points, "samples.jsonl has points that summary.json lacks")):
        if these:
            problems.append(f"{what}: {', '.join(sorted(these)[:MOST_SHOWN])}")
    return problems


def _unfit(run, any_spec):
    problems = []
    provenance = run.manifest["provenance"]
    dirty = provenance.get("git_dirty")
    if dirty is not False or not provenance.get("git_commit"):
        problems.append("provenance.git_dirty is true: the program was built from a tree with "
                        "changes that nobody else has" if dirty else
                        "provenance does not say which commit the program was built from")
    if provenance.get("build_type") != "Release":
        problems.append(f"provenance.build_type is {provenance.get('build_type')!r}, not 'Release'")
    if run.spec != SPEC and not any_spec:
        problems.append(f"its spec is {run.spec!r}; reference runs are of the spec {SPEC!r}, "
                        "others only with --any-spec")
    for field in ("machine", "run"):
        value = run.manifest[field]
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value):
            problems.append(f"manifest.json: field {field}: {value!r} cannot name a directory")
    if run.manifest["machine"] != run.machine:
        problems.append(f"manifest.json: field machine: is {run.manifest['machine']!r}, "
                        f"summary.json has {run.machine!r}")
    return problems


def check(path, any_spec=False, host=None, most_samples=None):
    """The run, if it is fit to be kept; `host` and `most_samples` as above. Raises load.RunError,
    Unfit."""
    run = load.load_run(path)
    incomplete = _incomplete(run)
    if incomplete:
        raise Unfit(incomplete, EXIT_INCOMPLETE)
    for frame in run.frames:
        wrong = frame[frame["status"] == "wrong_answers"]
        if len(wrong):
            first = wrong.iloc[0]
            raise Unfit([f"{len(wrong)} points with wrong answers, such as {first['filter']} "
                         f"{first['params_label']}, {first['keys']:g} keys, {first['target']}: "
                         f"{first['reason']}"], EXIT_WRONG)
    problems = _unfit(run, any_spec)
    errors = schema_errors(run.path, most_samples)
    problems += errors[:MOST_SHOWN]
    if len(errors) > MOST_SHOWN:
        problems.append(f"and {len(errors) - MOST_SHOWN} more violations of the schemas")
    problems += private_texts(run.path, host)
    if problems:
        raise Unfit(problems)
    return run


def remarks(run):
    """What whoever keeps the run should know: the doctor's findings and points that are not ok."""
    findings = run.manifest.get("doctor")
    if findings is None:
        lines = ["the run has no findings of the doctor: an older program wrote it"]
    else:
        lines = [f"doctor: {finding['state']}: {finding['check']}: {finding['found']}"
                 for finding in findings if finding["state"] != "pass"]
    statuses = collections.Counter(
        (row["status"], row["reason"]) for frame in run.frames
        for row in frame.to_dict("records") if row["status"] != "ok")
    return lines + [f"{count} points are {status}: {reason}"
                    for (status, reason), count in statuses.most_common()]


# --- Writing ---

def packed(data):
    """The same bytes for the same data: xz has no time stamp."""
    return lzma.compress(data, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64,
                         preset=9 | lzma.PRESET_EXTREME)


def kept_files(path):
    """{name: bytes} of the run `path` as it is kept. Raises load.RunError, Unfit if too large."""
    files = {}
    for name in FILES:
        data = load.read(path / name)
        if name == SAMPLES or len(data) > PLAIN_BYTES:
            files[f"{name}.xz"] = packed(data)
        else:
            files[name] = data
    size = sum(map(len, files.values()))
    if size > MOST_BYTES:
        raise Unfit([f"{size} bytes are more than the {MOST_BYTES} that a reference run may have: "
                     + ", ".join(f"{name} {len(data)}" for name, data in files.items())
                     + "; fewer rounds or fewer points make it smaller"])
    return files | {".gitignore": GIT_RULES.encode(), "COMPLETE": b""}


def _write(file, data):
    """Beside its place, then renamed: it is there whole or not at all."""
    handle, temporary = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, file)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise


def _sync(folder):
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_copy(files, destination):
    """Makes the directory `destination`, whole or not at all. Raises OSError."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    staged = pathlib.Path(tempfile.mkdtemp(prefix=f".{destination.name}-", dir=destination.parent))
    try:
        for name, data in files.items():
            _write(staged / name, data)
        os.chmod(staged, 0o755)
        _sync(staged)
        os.rename(staged, destination)  # fails if there is such a directory with anything in it
        _sync(destination.parent)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def write_in_place(files, path):
    """Compresses what must be, in the run's own directory: first all new files, and when they are
    on the disk the plain ones go. Raises OSError."""
    for name, data in files.items():
        if not (path / name).exists():
            _write(path / name, data)
    _sync(path)
    _remove_unpacked(path)


def _remove_unpacked(path):
    """Removes plain files beside their compressed form, if that holds the same. Raises
    load.RunError if not."""
    for name in FILES:
        plain, compressed = path / name, path / f"{name}.xz"
        if plain.exists() and compressed.exists():
            if load.unpacked(compressed, compressed.read_bytes()) != plain.read_bytes():
                raise load.RunError(compressed, f"holds something else than {name} beside it")
            plain.unlink()
            _sync(path)


# --- The front ---

def _say(text):
    for line in str(text).splitlines():
        print(f"keep: {load.one_line(line)}", file=sys.stderr)


def _parser():
    parser = argparse.ArgumentParser(
        prog="filterbench keep", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__.split("\n\n", 2)[2], allow_abbrev=False)
    parser.add_argument("run", type=command.path, metavar="RUN", help="a run directory")
    parser.add_argument("--any-spec", action="store_true", help=f"also of another spec than {SPEC}")
    parser.add_argument("--any-host-name", action="store_true",
                        help="the name of this machine may stand in the run")
    parser.add_argument("--results", type=command.path, default=ROOT / "results", metavar="DIR",
                        help="where reference runs lie (default: results/ of the tree)")
    return parser


def keep(options):
    """Returns the directory. Raises load.RunError, Unfit, OSError."""
    if options.run.is_dir():
        _remove_unpacked(options.run)  # what an earlier, interrupted call left
    run = check(options.run, options.any_spec, "" if options.any_host_name else None)
    destination = options.results / run.machine / run.name
    in_place = destination.exists() and destination.samefile(options.run)
    if destination.exists() and not in_place:
        raise Unfit([f"{destination} is there already and is not overwritten"])
    for line in remarks(run):
        _say(line)
    files = kept_files(options.run)
    if in_place:
        write_in_place(files, destination)
    else:
        write_copy(files, destination)
    _say(f"{sum(map(len, files.values()))} bytes kept; commit them: git add {destination}")
    return destination


def main(arguments=None):
    options = _parser().parse_args(arguments)
    try:
        print(keep(options))
    except load.RunError as error:
        _say(error)
        return EXIT_UNFIT
    except Unfit as error:
        _say(error)
        return error.code
    except OSError as error:
        where = error.filename2 or error.filename or options.results
        _say(f"cannot write {where}: {error.strerror or error}")
        return EXIT_INCOMPLETE
    return 0


if __name__ == "__main__":
    command.run(main)
