"""Every case is covered or said not to apply; the page says what the tests say."""

import re
import subprocess
from pathlib import Path

import pytest

from scripts import cases

ROOT = cases.ROOT


def marks(text: str, path: str = "filters/a_test.cc") -> list[tuple]:
    found, problems = cases.marks_of(path, text)
    assert problems == []
    return [(mark.id, mark.applies, mark.test, mark.text) for mark in found]


def problems(text: str, path: str = "filters/a_test.cc") -> list[str]:
    return [str(problem) for problem in cases.marks_of(path, text)[1]]


def test_this_tree(capsys):
    assert cases.main(["--check"]) == 0, capsys.readouterr().out


def test_the_list_of_cases():
    known = cases.read_cases(ROOT)
    ids = [case["id"] for case in known["cases"]]
    assert len(ids) == len(set(ids)) == 45
    assert ids == sorted(ids, key=lambda case: (case[0], int(case[1:])))
    assert list(known["groups"]) == sorted({case[0] for case in ids})
    for case in known["cases"]:
        assert set(case) == {"id", "title", "right"}
        assert not case["title"].endswith(".") and not case["right"].endswith(".")


@pytest.mark.parametrize("program", ["filters_test", "harness_test"])
def test_the_tests_that_are_named_exist(program):
    """A macro that is compiled out is no test, though it can be read in the source."""
    built = ROOT / "build/release" / program
    if not built.exists():
        pytest.skip(f"{built} is not built")
    lists = subprocess.run([built, "--gtest_list_tests"], capture_output=True, text=True,
                           check=True)
    exist, suite = set(), ""
    for line in lists.stdout.splitlines():
        name = line.split("#")[0].rstrip()
        if line.startswith(" "):
            exist.add(f"{suite}.{name.strip().split('/')[0]}")
        elif name.endswith("."):
            # `Instance/Suite.`, `Suite/type.`: the suite is one of the parts.
            parts = name[:-1].split("/")
            suite = next((part for part in parts if part[0].isupper()), parts[0])
            if len(parts) > 1 and parts[1][0].isupper():
                suite = parts[1]
    in_filters = program == "filters_test"
    named = {
        mark.test
        for mark in cases.all_marks(ROOT, {c["id"] for c in cases.read_cases(ROOT)["cases"]})[0]
        if mark.test and not mark.path.endswith(".py")
        and mark.path.startswith("filters/") == in_filters
    }
    assert named and named - exist == set()


def test_marks_of_tests_in_cpp():
    assert marks("""// What this file is about.

#include <x>

// Case A1: all of the table
// is reached.
TEST(Suite, Name) {
  int x = 1;
  // Case B2: inside
  // of it.
  EXPECT_EQ(x, 1);
}

// Cases A2, B10: two at once.
//
// Not theirs.
TYPED_TEST(Typed,
           Wrapped) {}
""") == [
        ("A1", True, "Suite.Name", "all of the table is reached."),
        ("B2", True, "Suite.Name", "inside of it."),
        ("A2", True, "Typed.Wrapped", "two at once."),
        ("B10", True, "Typed.Wrapped", "two at once."),
    ]


def test_marks_of_files_and_what_does_not_apply():
    assert marks("""// Case F8: the whole file.
// Case C2: and another.
// Case B10 does not apply: nothing is shared.

#include <x>
namespace a {

// Case D1 does not apply: it has no counters.

}
""") == [
        ("F8", True, None, "the whole file."),
        ("C2", True, None, "and another."),
        ("B10", False, None, "nothing is shared."),
        ("D1", False, None, "it has no counters."),
    ]


def test_marks_in_python():
    assert marks(
        '''"""Case F8: the file."""
import pytest

# Case G1: above
# decorators.
@pytest.mark.parametrize("x", [1])
def test_one(x):
    pass

class TestClass:
    def test_two(self):
        """Cases G2 and G5: a docstring
        of two lines.

        Not part of it.
        """
        # Case G6: inside.
        assert True
''',
        "scripts/test_x.py",
    ) == [
        ("F8", True, None, "the file."),
        ("G2", True, "test_two", "a docstring of two lines."),
        ("G5", True, "test_two", "a docstring of two lines."),
        ("G1", True, "test_one", "above decorators."),
        ("G6", True, "test_two", "inside."),
    ]


def test_marks_that_are_wrong():
    no_test = "// About.\n\nnamespace a {\n\n// Case A1: for nobody.\nint x;\n\nTEST(A, B) {}\n}\n"
    assert problems(no_test) == [
        "filters/a_test.cc:5: case A1 is marked above no test: the mark stands directly above a "
        "test, inside of one or in the first comment of the file"
    ]
    assert problems("// Case A1:\nTEST(A, B) {}\n") == [
        "filters/a_test.cc:1: Case A1: says nothing"
    ]
    for almost in ("Case A1.", "--- Steps (case A5) ---", "About case B2, more or less"):
        assert problems(f"int x;\n// {almost}\nTEST(A, B) {{}}\n") == [
            f"filters/a_test.cc:2: no mark, though it speaks of one: '{almost}'"
        ]


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "filters/conformance").mkdir(parents=True)
    (tmp_path / "scripts/cases.json").write_text(
        '{"groups": {"A": "Sizes"}, "cases": ['
        '{"id": "A1", "title": "One", "right": "it is so"},'
        '{"id": "A2", "title": "Two", "right": "it is not"}]}'
    )
    (tmp_path / "filters/a_test.cc").write_text("int x;\n// Case A1: a sum_of\nTEST(A, B) {}\n")
    (tmp_path / "filters/conformance/b.h").write_text("// Case A2 does not apply: no\n")
    return tmp_path


def test_the_page(tree, capsys):
    assert cases.main([], tree) == 0
    assert capsys.readouterr().out == ""
    assert cases.main(["--check"], tree) == 0
    assert (tree / cases.PAGE).read_text().partition("## ")[2] == """A. Sizes

### A1 One

Right: it is so.

- [filters/a_test.cc](../filters/a_test.cc)
  - `A.B`: A sum\\_of.

### A2 Two

Right: it is not.

- Does not apply ([filters/conformance/b.h](../filters/conformance/b.h)): No.
"""


@pytest.mark.parametrize("path,text,message", [
    ("filters/b_test.cc", "// Case A3: who?\n\nTEST(A, B) {}\n",
     "filters/b_test.cc:1: there is no case A3"),
    ("filters/b_test.cc", "// Case A1: a new one.\n", "docs/cases.md: not what the tests say"),
    ("filters/a_test.cc", "int x;\n", "A1: no test covers it"),
    ("filters/conformance/b.h", "int x;\n", "A2: no test covers it"),
    ("docs/cases.md", "", "docs/cases.md: not what the tests say"),
])
def test_what_check_finds(tree, capsys, path, text, message):
    assert cases.main([], tree) == 0
    (tree / path).write_text(text)
    assert cases.main(["--check"], tree) == 1
    assert message in capsys.readouterr().out


def test_usage(tree):
    with pytest.raises(SystemExit) as exit_code:
        cases.main(["--no-such-option"], tree)
    assert exit_code.value.code == 2


def test_links_of_the_page():
    text = (ROOT / cases.PAGE).read_text(encoding="utf-8")
    links = re.findall(r"\]\(\.\./([^)]+)\)", text)
    assert links and all((Path(ROOT) / link).is_file() for link in links)
