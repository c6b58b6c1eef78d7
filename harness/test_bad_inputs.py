"""Bad input, as data: testdata/bad_inputs/*.json says what is run on which files, how it must end and
what the message must name. Whatever comes in, nothing hangs, crashes or is half-written.

An entry has
  id      unique
  run     arguments of `filterbench`; the current directory holds the files. "script" in place of it:
          a script of scripts/ and its arguments
  files   {name: content}: a text, or {"base64"}, {"text", "times"} (repeated), {"directory"},
          {"fifo"}, {"socket"}, {"link": target}, {"spec": changes of a small one}, {"run": damages}
          (a copy of a finished run; each damage has `file` and one of `remove`, `truncate` (bytes
          kept), `replace` ([text, other text]), `set` ({path: value}, in line `line` of
          samples.jsonl), or `content`), and beside any of these "mode": permissions
  code    the exit code, 2 by itself
  says    regular expressions that stderr must match
  prints  regular expressions that stdout must match
"""

import base64
import contextlib
import hashlib
import importlib
import io
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from harness.testing import NEEDS_PROGRAM, PROGRAM, PYTHON_COMMANDS, ROOT, filterbench, write_spec

DATA = Path(__file__).parent / "testdata/bad_inputs"
LIMIT_SECONDS = 120

pytestmark = NEEDS_PROGRAM

SPEC = {
    "measure": {"processes": 1, "max_processes": 1, "rounds": 1, "width": None, "passes": 2,
                "pass_seconds": 0, "stream_lookups": 4096, "fpr_queries": 10000},
    "sweeps": [{"filters": {"blocked_bloom": {"bits_per_key": [8, 10]}, "touch_lines": {}},
                "keys": [1000], "modes": ["lookup_batched"], "negative_shares": [1]}],
}
NEVER_SAID = re.compile(r"Traceback|terminate called|ERROR: \w+Sanitizer|runtime error|core dumped|"
                        r"Assertion|\bstd::|\bNoneType\b|Errno")


def _entries():
    found = []
    for file in sorted(DATA.glob("*.json")):
        found += [pytest.param(entry, id=f"{file.stem}-{entry['id']}")
                  for entry in json.loads(file.read_text(encoding="utf-8"))["inputs"]]
    return found


ENTRIES = _entries()


def test_there_are_many_and_each_has_a_name():
    assert len(ENTRIES) >= 200
    assert len({entry.id for entry in ENTRIES}) == len(ENTRIES)


@pytest.fixture(scope="session", name="finished")
def _finished(tmp_path_factory):
    """A finished run of SPEC."""
    directory = tmp_path_factory.mktemp("finished")
    done = filterbench("run", write_spec(directory, SPEC), "--results", "results", cwd=directory)
    assert done.returncode == 0, done.stderr
    return directory / done.stdout.strip()


def _set(document, path, value):
    *parents, last = path.split(".")
    for step in parents:
        document = document[int(step) if isinstance(document, list) else step]
    if isinstance(document, list):
        document[int(last)] = value
    elif value == "REMOVE":
        del document[last]
    else:
        document[last] = value


def _damage(run, damage):
    file = run / damage["file"]
    if "remove" in damage:
        file.unlink()
    elif "truncate" in damage:
        os.truncate(file, damage["truncate"])
    elif "content" in damage:
        file.write_bytes(damage["content"].encode("utf-8", "surrogateescape"))
    elif "replace" in damage:
        text = file.read_text(encoding="utf-8")
        assert damage["replace"][0] in text, f"{file} has no {damage['replace'][0]}"
        file.write_text(text.replace(*damage["replace"], 1), encoding="utf-8")
    else:
        lines = file.read_text(encoding="utf-8").splitlines()
        at = slice(damage["line"] - 1, damage["line"]) if "line" in damage else slice(None)
        document = json.loads("\n".join(lines[at]))
        for path, value in damage["set"].items():
            _set(document, path, value)
        lines[at] = [json.dumps(document, indent=None if "line" in damage else 1)]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _make(place, content, finished):
    """Makes one file; returns what must be closed at the end."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        content = {"text": content}
    opened = None
    if "base64" in content:
        place.write_bytes(base64.b64decode(content["base64"]))
    elif "directory" in content:
        place.mkdir()
    elif "fifo" in content:
        os.mkfifo(place)
    elif "socket" in content:
        opened = socket.socket(socket.AF_UNIX)
        opened.bind(str(place))
    elif "link" in content:
        place.symlink_to(content["link"])
    elif "spec" in content:
        spec = json.loads(json.dumps(SPEC))
        for path, value in content["spec"].items():
            _set(spec, path, value)
        place.write_text(json.dumps(spec, indent=1), encoding="utf-8")
    elif "run" in content:
        shutil.copytree(finished, place)
        for damage in content["run"]:
            _damage(place, damage)
    else:
        with open(place, "w", encoding="utf-8") as stream:
            for _ in range(content.get("times", 1)):
                stream.write(content["text"])
    if "mode" in content:
        place.chmod(int(content["mode"], 8))
    return opened


def _snapshot(directory):
    """What lies in a directory, with the content of its files."""
    found = {}
    for place in sorted(directory.rglob("*")):
        name = str(place.relative_to(directory))
        status = place.lstat()
        kind = stat.S_IFMT(status.st_mode)
        content = None
        if stat.S_ISLNK(status.st_mode):
            content = os.readlink(place)
        elif stat.S_ISREG(status.st_mode):
            # Of the largest inputs the size will do.
            content = (status.st_size if status.st_size >= 1 << 24
                       else hashlib.sha256(place.read_bytes()).hexdigest())
        found[name] = kind, content
    return found


def _has_permissions(entry):
    """Whether a file of the entry may not be read, which root would not notice."""
    return any(isinstance(content, dict) and "mode" in content
               for content in entry.get("files", {}).values())


def _give_up_rights():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def _call_module(module, arguments, directory, environment):
    """(exit code, stdout, stderr) of a command of Python, in a process that has it loaded already:
    loading takes longer than all else."""
    module = importlib.import_module(module)
    out, err = directory.parent / "stdout", directory.parent / "stderr"
    child = os.fork()
    if child == 0:
        code = 70
        try:
            signal.alarm(LIMIT_SECONDS)
            os.chdir(directory)
            os.environ.clear()
            os.environ.update(environment)
            for number, file in ((1, out), (2, err)):
                os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            command = importlib.import_module("plots.command")
            sys.stdout, sys.stderr = (io.TextIOWrapper(os.fdopen(number, "wb", closefd=False),
                                                       encoding="utf-8") for number in (1, 2))
            sys.argv = ["filterbench", *arguments]
            try:
                command.run(lambda: module.main(arguments))
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 1
            with contextlib.suppress(ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
        finally:
            os._exit(code)  # pylint: disable=protected-access
    _, status = os.waitpid(child, 0)
    return (os.waitstatus_to_exitcode(status), out.read_text(encoding="utf-8"),
            err.read_text(encoding="utf-8"))


def _run(entry, directory, environment):
    if "script" in entry:
        command = [ROOT / "scripts" / entry["script"][0], *entry["script"][1:]]
    elif entry["run"] and entry["run"][0] in PYTHON_COMMANDS:
        return _call_module(PYTHON_COMMANDS[entry["run"][0]], entry["run"][1:], directory,
                            environment)
    else:
        command = [PROGRAM, *entry["run"]]
    as_nobody = _has_permissions(entry) and os.getuid() == 0
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True,
                          errors="replace", timeout=LIMIT_SECONDS, check=False,
                          stdin=subprocess.DEVNULL,
                          preexec_fn=_give_up_rights if as_nobody else None)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("entry", ENTRIES)
def test_bad_input(entry, finished, tmp_path):
    if entry.get("run", [""])[:1] == ["report"]:
        bundle = importlib.import_module("plots.report.bundle")
        try:
            bundle.read()
        except bundle.Missing as missing:
            pytest.skip(str(missing))
    directory = tmp_path / "here"
    directory.mkdir()
    opened = [_make(directory / name, content, finished)
              for name, content in entry.get("files", {}).items()]
    if _has_permissions(entry):
        for parent in (directory, *directory.parents):
            if parent.stat().st_uid == os.getuid() and parent.is_relative_to(Path("/tmp")):
                parent.chmod(parent.stat().st_mode | 0o755)
    before = _snapshot(directory)
    environment = {**os.environ, "FILTERBENCH": str(PROGRAM)}
    code, out, err = _run(entry, directory, environment)
    for stream in opened:
        if stream is not None:
            stream.close()

    told = f"exit code {code}\n--- stdout\n{out[:2000]}\n--- stderr\n{err[:4000]}"
    assert code == entry.get("code", 2), told
    for pattern in entry["says"]:
        assert re.search(pattern, err, re.MULTILINE), f"nothing matches {pattern!r}: {told}"
    for pattern in entry.get("prints", []):
        assert re.search(pattern, out, re.MULTILINE), f"nothing matches {pattern!r}: {told}"
    assert not NEVER_SAID.search(err), told
    # A message is for a person: not the input once more.
    assert len(err) < 20_000, told
    after = _snapshot(directory)
    assert not set(after) - set(before), f"left behind: {sorted(set(after) - set(before))}\n{told}"
    assert after == before, told
