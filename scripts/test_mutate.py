"""Planted bugs are tried as they are told, and what cannot be tried is said to be so."""

import json
import subprocess

import pytest

from scripts import mutate

ENTRY = {"id": "planted", "file": "code.py", "find": "a + b", "replace": "a - b",
         "shows": "a sum is a difference", "tests": ["pytest test_code.py"]}
CODE = "def add(a, b):\n    return a + b\n\n\ndef unseen():\n    return 1\n"
TEST = """import pathlib

SPACE = {}
exec((pathlib.Path(__file__).parent / "code.py").read_text(encoding="utf-8"), SPACE)


def test_add():
    assert SPACE["add"](2, 1) == 3
"""


@pytest.fixture(name="root")
def _root(tmp_path):
    """A small tree with one test."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "code.py").write_text(CODE, encoding="utf-8")
    (root / "test_code.py").write_text(TEST, encoding="utf-8")
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


def _list(root, *entries):
    file = root / "mutations.json"
    file.write_text(json.dumps({"mutations": entries}), encoding="utf-8")
    return mutate.read_list(file, root)


def _verdict(root, tmp_path, **changes):
    (mutation,) = _list(root, ENTRY | changes)
    return mutate.try_mutation(mutation, mutate.Tree(root), tmp_path / "mutant")


def test_the_list_fits_the_sources():
    mutations = mutate.read_list()
    assert len(mutations) >= 60
    places = {mutation.file.split("/")[0] for mutation in mutations}
    assert {"filters", "workloads", "harness", "scripts", "plots"} <= places


def test_caught(root, tmp_path):
    assert _verdict(root, tmp_path).outcome == mutate.CAUGHT
    # The sources are as they were.
    assert (root / "code.py").read_text(encoding="utf-8") == CODE


def test_missed(root, tmp_path):
    assert _verdict(root, tmp_path, find="return 1", replace="return 2").outcome == mutate.MISSED


def test_no_tests_collected_is_not_caught(root, tmp_path):
    verdict = _verdict(root, tmp_path, tests=["pytest test_code.py -k nothing"])
    assert verdict.outcome == mutate.INVALID


def test_a_test_that_fails_by_itself(root):
    (root / "test_code.py").write_text(TEST.replace("== 3", "== 4"), encoding="utf-8")
    assert "ends with 1" in mutate.why_not_passing("pytest test_code.py", root)


def test_a_filter_without_tests(root):
    assert mutate.why_not_passing("pytest test_code.py -k nothing", root) is not None
    assert mutate.why_not_passing("pytest test_code.py", root) is None


@pytest.mark.parametrize("changes, says", [
    ({"find": "a * b"}, "field find: stands 0 times"),
    ({"find": "return"}, "field find: stands 2 times"),
    ({"file": "gone.py"}, "field file"),
    ({"replace": "a + b"}, "field replace"),
    ({"tests": []}, "field tests"),
    ({"tests": ["make check"]}, "field tests"),
    ({"color": "red"}, "unknown fields ['color']"),
])
def test_a_damaged_list(root, changes, says):
    with pytest.raises(mutate.BadList, match="planted") as error:
        _list(root, ENTRY | changes)
    assert says in str(error.value)


def test_an_id_that_occurs_twice(root):
    with pytest.raises(mutate.BadList, match="twice"):
        _list(root, ENTRY, ENTRY)


def test_rotation_tries_all():
    everything = list(range(86))
    seen = [entry for turn in range(100, 118) for entry in mutate.sample(everything, 5, turn)]
    assert sorted(seen) == everything
    assert all(len(mutate.sample(everything, 5, turn)) <= 5 for turn in range(18))


@pytest.mark.parametrize("arguments", [["--sample", "0"], ["--jobs", "x"], ["no_such_id"]])
def test_usage(arguments):
    try:
        code = mutate.main(arguments)
    except SystemExit as ended:
        code = ended.code
    assert code == 2
