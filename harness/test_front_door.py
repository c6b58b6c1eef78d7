"""What `filterbench NAME` hands on to Python (harness/front_door.h), as a person meets it."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from harness.testing import NEEDS_PROGRAM, PROGRAM, PYTHON_COMMANDS

pytestmark = NEEDS_PROGRAM

# Shows how it was called, and what of the environment is its own.
STAND_IN = """
import json, os, sys
print(json.dumps({"module": __spec__.name, "arguments": sys.argv[1:], "file": __file__,
                  "cwd": os.getcwd(), "program": os.environ["FILTERBENCH"],
                  "python": sys.executable}))
sys.exit(6)
"""


@pytest.fixture
def tree(tmp_path):
    """A source tree at a path with a blank, whose commands only say how they were called."""
    root = tmp_path / "source tree"
    for module in PYTHON_COMMANDS.values():
        *packages, name = module.split(".")
        folder = root
        for package in packages:
            folder /= package
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "__init__.py").touch()
        (folder / f"{name}.py").write_text(STAND_IN)
    return root


def call(*arguments, program=PROGRAM, cwd=None, **variables):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("FILTERBENCH", "PYTHON"))}
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
                          timeout=60, check=False,
                          env=environment | {name: str(value) for name, value in variables.items()})


def said(done):
    assert done.returncode == 6, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", PYTHON_COMMANDS)
def test_a_command_is_a_module_of_the_tree(tree, tmp_path, name):
    words = ["a b", "--help", "--json", "", "-x", "--", "*"]
    seen = said(call(name, *words, cwd=tmp_path, FILTERBENCH_HOME=tree))
    assert seen["module"] == PYTHON_COMMANDS[name]
    assert seen["arguments"] == words
    assert seen["cwd"] == str(tmp_path)
    assert seen["program"] == str(PROGRAM.resolve())
    assert seen["python"] == "/usr/bin/python3"


@pytest.mark.parametrize("build", ["build/release", "build"])
def test_the_tree_is_the_one_that_the_program_was_built_in(tree, tmp_path, build):
    (tree / build).mkdir(parents=True)
    program = tree / build / "filterbench"
    shutil.copy(PROGRAM, program)
    seen = said(call("merge", program=program, cwd=tmp_path))
    assert seen["file"] == str(tree / "scripts" / "merge.py")
    assert seen["program"] == str(program)
    # A link to it, say in /usr/local/bin, is the same program.
    (tmp_path / "link").symlink_to(program)
    assert said(call("merge", program=tmp_path / "link", cwd=tmp_path)) == seen


def test_what_lies_in_the_working_directory_is_not_imported(tree, tmp_path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "__init__.py").touch()
    (tmp_path / "scripts" / "compare.py").write_text("raise SystemExit(9)")
    (tmp_path / "json.py").write_text("raise SystemExit(9)")
    seen = said(call("compare", cwd=tmp_path, FILTERBENCH_HOME=tree))
    assert seen["file"] == str(tree / "scripts" / "compare.py")


def test_a_relative_home_counts_from_the_working_directory(tree):
    seen = said(call("compare", cwd=tree.parent, FILTERBENCH_HOME=tree.name))
    assert seen["file"] == str(tree / "scripts" / "compare.py")


def test_the_interpreter_can_be_chosen(tree, tmp_path):
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\necho "$@"; exec {sys.executable} "$@"\n')
    other.chmod(0o755)
    done = call("compare", "x", FILTERBENCH_HOME=tree, FILTERBENCH_PYTHON=other)
    assert done.returncode == 6 and done.stdout.splitlines()[0] == "-m scripts.compare x"


def test_a_tree_that_is_not_there_is_named(tmp_path):
    alone = tmp_path / "bin" / "filterbench"
    alone.parent.mkdir()
    shutil.copy(PROGRAM, alone)
    done = call("compare", program=alone)
    assert done.returncode == 2
    assert str(alone.parent) in done.stderr and "FILTERBENCH_HOME" in done.stderr
    done = call("compare", program=alone, FILTERBENCH_HOME=tmp_path)
    assert done.returncode == 2
    assert f"FILTERBENCH_HOME is {tmp_path}" in done.stderr and "compare.py" in done.stderr


def test_an_interpreter_that_is_not_there_is_named(tree, tmp_path):
    done = call("compare", FILTERBENCH_HOME=tree, FILTERBENCH_PYTHON=tmp_path / "python9")
    assert done.returncode == 2
    assert f"{tmp_path}/python9: cannot be run: No such file" in done.stderr
    assert "FILTERBENCH_PYTHON" in done.stderr


def test_help_has_a_line_for_each():
    shown = call("--help")
    assert shown.returncode == 0
    lines = [line.split() for line in shown.stdout.splitlines()]
    for name in PYTHON_COMMANDS:
        (line,) = [line for line in lines if line[:1] == [name]]
        assert len(line) > 4


@pytest.mark.parametrize("given, nearest", [
    ("compair", "compare"), ("comparecpus", "compare-cpus"), ("mrege", "merge"), ("rn", "run"),
    ("verfiy", "verify")])
def test_unknown_commands_get_the_nearest_name(given, nearest):
    done = call(given)
    assert done.returncode == 2
    assert f"unknown subcommand '{given}' (did you mean '{nearest}'?)" in done.stderr


def test_a_command_like_none_gets_all_names():
    done = call("frobnicate-everything")
    assert done.returncode == 2
    assert all(name in done.stderr for name in (*PYTHON_COMMANDS, "run", "list"))
