"""Plants bugs, one at a time, and tells which no test catches.

    scripts/mutate [--list] [--sample N [--turn T]] [--jobs N] [ID...]

scripts/mutations.json says where: a file, a text that stands in it once, what is put in its place,
and the tests that are to see it. The sources stay as they are. A changed file of C++ lies in a
directory of its own that is searched before the tree's; the objects that depend on it are compiled
again and linked before those of build/release. A changed file of Python stands in a copy of the
tree. Both lie in build/mutate/<id> until their bug is caught.

A test that cannot pass without the bug proves nothing: each is run without it first.

Exit codes: 0 all are caught; 1 one is missed or cannot be tried; 2 usage, a damaged list, no tree.
"""

import argparse
import collections
import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "scripts/mutations.json"
LIMIT_SECONDS = 300  # for all tests of one bug: one that hangs is caught by this
GTEST_PROGRAMS = ("filters_test", "harness_test")
MOST_OBJECTS = 4  # a header that more objects depend on says which matter

CAUGHT, MISSED, INVALID = "caught", "missed", "invalid"


class BadList(Exception):
    """The list cannot be used as it stands; the text says where."""


class Mutation(NamedTuple):
    id: str
    file: str
    find: str
    replace: str
    shows: str     # what the bug is, in the words of one who met it
    tests: list    # "filters_test GTEST_FILTER", "harness_test GTEST_FILTER" or "pytest ARGUMENT..."
    objects: list  # parts of the names of objects; empty: all that depend on the file


class Verdict(NamedTuple):
    outcome: str
    reason: str


def read_list(path=LIST, root=ROOT):
    """All entries; BadList names the first one that is not right for the sources as they are."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["mutations"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadList(f"{path}: {error}") from error
    mutations = []
    for number, entry in enumerate(entries):
        where = f"{path}: entry {number} ({entry.get('id', 'no id')})"
        unknown = set(entry) - set(Mutation._fields)
        missing = set(Mutation._fields) - {"objects"} - set(entry)
        if unknown or missing:
            raise BadList(f"{where}: unknown fields {sorted(unknown)}, missing {sorted(missing)}")
        mutation = Mutation(**{"objects": [], **entry})
        if mutation.id in {other.id for other in mutations}:
            raise BadList(f"{where}: the id occurs twice")
        if not mutation.tests:
            raise BadList(f"{where}: field tests: names none")
        for test in mutation.tests:
            if test.split()[0] not in (*GTEST_PROGRAMS, "pytest") or len(test.split()) < 2:
                raise BadList(f"{where}: field tests: {test!r}")
        try:
            count = (root / mutation.file).read_text(encoding="utf-8").count(mutation.find)
        except OSError as error:
            raise BadList(f"{where}: field file: {error}") from error
        if count != 1:
            raise BadList(f"{where}: field find: stands {count} times in {mutation.file}, not once")
        if mutation.find == mutation.replace:
            raise BadList(f"{where}: field replace: changes nothing")
        mutations.append(mutation)
    return mutations


def sample(mutations, size, turn):
    """The `size` entries whose turn it is: every `ceil(len / size)` turns each has been tried, and
    neighbours in the list, which are of one kind, are tried in different turns."""
    turns = -(-len(mutations) // size)
    return mutations[turn % turns::turns]


def _changed(mutation, root):
    text = (root / mutation.file).read_text(encoding="utf-8")
    return text.replace(mutation.find, mutation.replace)


def _run(command, **options):
    """The exit code, None where the limit of time ended it, and the output."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", start_new_session=True, **options) as process:
        try:
            output, _ = process.communicate(timeout=LIMIT_SECONDS)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            output, _ = process.communicate()
            return None, output


def _ran_tests(test, output):
    if test.startswith("pytest"):
        return " passed" in output
    return "[==========]" in output and "[==========] 0 tests" not in output


class Tree:
    """A built tree: which commands make its programs, and which objects depend on a file."""

    def __init__(self, root=ROOT):
        self.root = root
        self.build = root / "build/release"

    @functools.cached_property
    def _commands(self):
        """What makes each file of the build tree."""
        return {entry["output"]: entry["command"] for entry in json.loads(self._ninja("compdb"))}

    @functools.cached_property
    def _dependents(self):
        """The objects that depend on each file."""
        dependents = collections.defaultdict(set)
        output = None
        for line in self._ninja("deps").splitlines():
            if line.startswith("    "):
                dependents[os.path.realpath(self.build / line.strip())].add(output)
            elif ": #deps" in line:
                output = line.split(":")[0]
        return dependents

    def _ninja(self, tool):
        if not (self.build / "build.ninja").exists():
            raise BadList(f"{self.build} is not built: scripts/build release")
        done = subprocess.run(["ninja", "-C", self.build, "-t", tool], capture_output=True,
                              text=True, check=True)
        # Ninja says on stdout where it went.
        return done.stdout.split("\n", 1)[1] if done.stdout.startswith("ninja:") else done.stdout

    def _objects(self, mutation, program):
        """Those of `program` and of the libraries that the change may reach."""
        found = sorted(output for output in self._dependents[
            str((self.root / mutation.file).resolve())]
            if output.startswith((f"CMakeFiles/{program}.dir/", "CMakeFiles/filterbench_")))
        if mutation.objects:
            found = [output for output in found
                     if any(part in output for part in mutation.objects)]
        elif len(found) > MOST_OBJECTS:
            raise BadList(f"{mutation.id}: {len(found)} objects depend on {mutation.file}: "
                          "field objects must say which matter")
        if not found:
            raise BadList(f"{mutation.id}: no object of {program} depends on {mutation.file}")
        return found

    def link(self, mutation, program, directory):
        """Builds `program` with the bug as directory/program; the compiler's output on failure."""
        overlay = directory / "overlay"
        changed = overlay / mutation.file
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.write_text(_changed(mutation, self.root), encoding="utf-8")
        objects = []
        for output in self._objects(mutation, program):
            made = directory / "objects" / output
            made.parent.mkdir(parents=True, exist_ok=True)
            objects.append(made)
            if made.exists():
                continue  # made for another program of this bug
            words = shlex.split(self._commands[output])
            for option in ("-MT", "-MF"):
                at = words.index(option)
                del words[at:at + 2]
            words.remove("-MD")
            words[words.index("-o") + 1] = str(made)
            source = words.index("-c") + 1
            if os.path.realpath(words[source]) == str((self.root / mutation.file).resolve()):
                words[source] = str(changed)
            first = next(i for i, word in enumerate(words) if word.startswith("-I"))
            words.insert(first, f"-I{overlay}")
            code, text = _run(words, cwd=self.build)
            if code != 0:
                made.unlink(missing_ok=True)
                return text
        # A command of several parts, joined by && and with `:` at its ends.
        link = next(part for part in self._commands[program].split("&&") if " -o " in part)
        words = shlex.split(link)
        kept = [word for word in words if directory / "objects" / word not in objects]
        at = kept.index("-o")
        kept[at + 1] = str(directory / program)
        kept[at:at] = [str(made) for made in objects]
        code, text = _run(kept, cwd=self.build)
        return None if code == 0 else text


def _copy_of_tree(root, directory):
    """The tracked files, with the built programs linked in. Returns its root."""
    copy = directory / "tree"
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others",
                             "--exclude-standard"], capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name)
    (copy / "build/release").mkdir(parents=True)
    for place in ("build", "build/release"):
        for entry in (root / place).iterdir() if (root / place).is_dir() else ():
            target = copy / place / entry.name
            if entry.name not in ("mutate", "release"):
                target.symlink_to(entry)
    return copy


def _command_of(test, tree_root, programs):
    program, *arguments = test.split()
    if program == "pytest":
        command = ["/usr/bin/python3", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
                   *arguments]
        return command, {"cwd": tree_root}
    return [str(programs / program), f"--gtest_filter={arguments[0]}"], {}


def why_not_passing(test, root=ROOT):
    """Nothing if the test runs and passes without a bug."""
    command, options = _command_of(test, root, root / "build/release")
    code, output = _run(command, **options)
    if code != 0:
        return f"without the bug `{test}` ends with {code}: {output[-300:]}"
    if not _ran_tests(test, output):
        return f"`{test}` runs no test"
    return None


def try_mutation(mutation, tree, directory):
    """Plants the bug, runs its tests, and says what came of it."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    needs_copy = any(test.startswith("pytest") for test in mutation.tests)
    copy = _copy_of_tree(tree.root, directory) if needs_copy else None
    if not mutation.file.endswith((".cc", ".h")):
        (copy / mutation.file).write_text(_changed(mutation, tree.root), encoding="utf-8")
    else:
        for program in {"filterbench" if test.startswith("pytest") else test.split()[0]
                        for test in mutation.tests}:
            error = tree.link(mutation, program, directory)
            if error is not None:
                return Verdict(INVALID, f"does not compile: {error[-1500:]}")
            if copy is not None and program == "filterbench":
                (copy / "build/release/filterbench").unlink()
                shutil.copy2(directory / program, copy / "build/release/filterbench")
    for test in mutation.tests:
        command, options = _command_of(test, copy, directory)
        code, output = _run(command, **options)
        if code is None:
            return Verdict(CAUGHT, f"{test}: does not end")
        if test.startswith("pytest") and code not in (0, 1):
            return Verdict(INVALID, f"{test}: pytest ends with {code}: {output[-1500:]}")
        if code != 0:
            return Verdict(CAUGHT, test)
    return Verdict(MISSED, "; ".join(mutation.tests))


def _arguments(arguments):
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", metavar="ID", help="only these")
    parser.add_argument("--list", action="store_true", help="tell what there is and plant nothing")
    parser.add_argument("--sample", type=int, metavar="N", help="about N of them, by rotation")
    parser.add_argument("--turn", type=int, metavar="T",
                        help="whose turn it is (default: the number of commits)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="at once (default 1)")
    options = parser.parse_args(arguments)
    for name in ("sample", "jobs"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error(f"--{name}: at least 1")
    return options


def _commits(root):
    done = subprocess.run(["git", "-C", root, "rev-list", "--count", "HEAD"], capture_output=True,
                          text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else 0


def main(arguments=None):
    options = _arguments(arguments)
    try:
        mutations = read_list()
        unknown = set(options.ids) - {mutation.id for mutation in mutations}
        if unknown:
            raise BadList(f"{LIST} has no {', '.join(sorted(unknown))}")
        if options.ids:
            mutations = [mutation for mutation in mutations if mutation.id in options.ids]
        if options.sample is not None:
            turn = options.turn if options.turn is not None else _commits(ROOT)
            mutations = sample(mutations, options.sample, turn)
        if options.list:
            for mutation in mutations:
                print(f"{mutation.id}: {mutation.file}: {mutation.shows}")
            return 0
    except BadList as error:
        print(f"mutate: {error}", file=sys.stderr)
        return 2

    tree = Tree()
    counts = collections.Counter()
    groups = {test: why_not_passing(test) for mutation in mutations for test in mutation.tests}

    def verdict(mutation):
        directory = ROOT / "build/mutate" / mutation.id
        try:
            for test in mutation.tests:
                if groups[test] is not None:
                    return Verdict(INVALID, groups[test])
            result = try_mutation(mutation, tree, directory)
        except BadList as error:
            return Verdict(INVALID, str(error))
        if result.outcome == CAUGHT:
            shutil.rmtree(directory, ignore_errors=True)
        return result

    with ThreadPoolExecutor(options.jobs) as pool:
        for mutation, result in zip(mutations, pool.map(verdict, mutations)):
            counts[result.outcome] += 1
            print(f"{result.outcome} {mutation.id} ({mutation.shows}): {result.reason}", flush=True)
    print(f"{len(mutations)} planted, {counts[CAUGHT]} caught, {counts[MISSED]} missed, "
          f"{counts[INVALID]} invalid")
    return 0 if counts[CAUGHT] == len(mutations) else 1


if __name__ == "__main__":
    sys.exit(main())
