#!/usr/bin/python3
"""The page of faults that others met, and which tests cover them:

    scripts/cases.py            writes docs/cases.md
    scripts/cases.py --check    says what is missing, and whether the page is what would be written

The cases are data (scripts/cases.json: id, title, what is right). The tests mark themselves, by a
comment line that begins with `Case A1: what this test shows` or `Cases A1, A2: ...` and goes on to
the end of its paragraph:

- directly above a test (in Python its docstring may begin so), or inside of one: it is that test's;
- in the first comment of a file (in Python its docstring): it is the whole file's.

`Case A1 does not apply: the reason`, anywhere in a comment of a test file, says why a case cannot
concern what this file tests.

Exit codes: 0 written, or all is well; 1 a case without a test and without a reason, a mark of an
unknown case or beside no test, or with --check a page that is not up to date; 2 usage.
"""

import argparse
import ast
import collections
import dataclasses
import io
import json
import re
import sys
import tokenize
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/cases.md"
FOLDERS = ("cmake", "filters", "harness", "plots", "results", "scripts", "workloads")

IDS = r"[A-Z]\d+(?:(?:, and|,| and) [A-Z]\d+)*"
MARK = re.compile(rf"Cases? ({IDS})( does not apply| do not apply)?: *(.*)")
# What is meant as a mark but is none would be passed over in silence.
ALMOST = re.compile(r"(?i)cases? [A-Z]\d+\b")
TEST = re.compile(r"(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)")


@dataclasses.dataclass(frozen=True)
class Mark:
    path: str
    line: int
    id: str
    applies: bool
    test: str | None  # None: the whole file, or a reason why a case does not apply to it
    text: str


@dataclasses.dataclass(frozen=True)
class Problem:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclasses.dataclass
class Comment:
    """Lines of one comment or docstring, and the test that they belong to."""

    lines: list[tuple[int, str]]
    test: str | None
    of_file: bool


def _cpp_comments(text: str) -> Iterator[Comment]:
    lines = text.splitlines()
    enclosing = None
    has_code = False
    at = 0
    while at < len(lines):
        match = re.match(r"( *)//(.*)", lines[at])
        if not match:
            line = lines[at]
            # A test reaches to the brace in the first column that closes it.
            test = TEST.match(line + (lines[at + 1] if at + 1 < len(lines) else ""))
            if test:
                enclosing = f"{test[1]}.{test[2]}"
            elif line.startswith("}"):
                enclosing = None
            if line.strip() and not line.startswith("#"):
                has_code = True
            at += 1
            continue
        block = []
        while at < len(lines) and (match := re.match(r"( *)//(.*)", lines[at])):
            block.append((at + 1, match[2].strip()))
            at += 1
        below = TEST.match(" ".join(lines[at : at + 2]))
        test = f"{below[1]}.{below[2]}" if below and enclosing is None else enclosing
        yield Comment(block, test, of_file=not has_code and test is None)


def _python_comments(text: str, name: str) -> Iterator[Comment]:
    tree = ast.parse(text, filename=name)
    tests = [
        (min([node.lineno] + [d.lineno for d in node.decorator_list]), node.end_lineno, node)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
    ]

    def docstring(node, test, of_file):
        if ast.get_docstring(node) is None:
            return None
        first = node.body[0]
        lines = text.splitlines()[first.lineno - 1 : first.end_lineno]
        return Comment(
            [(first.lineno + i, line.strip().strip('"').strip()) for i, line in enumerate(lines)],
            test,
            of_file,
        )

    found = [docstring(tree, None, True)]
    found += [docstring(node, node.name, False) for _, _, node in tests]
    yield from filter(None, found)

    block: list[tuple[int, str]] = []

    def finish():
        first, last = block[0][0], block[-1][0]
        for begin, end, node in tests:
            if begin == last + 1 or begin <= first <= end:
                return Comment(list(block), node.name, False)
        return Comment(list(block), None, False)

    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT or token.line.strip() != token.string:
            continue
        if block and block[-1][0] != token.start[0] - 1:
            yield finish()
            block = []
        block.append((token.start[0], token.string.lstrip("#").strip()))
    if block:
        yield finish()


def marks_of(path: str, text: str) -> tuple[list[Mark], list[Problem]]:
    """The marks of one file, and what is wrong with them, unknown ids aside."""
    marks, problems = [], []
    comments = _python_comments(text, path) if path.endswith(".py") else _cpp_comments(text)
    for comment in comments:
        paragraphs: list[tuple[int, re.Match, list[str]]] = []
        open_paragraph = False
        for number, line in comment.lines:
            match = MARK.match(line)
            if match:
                paragraphs.append((number, match, [match[3]]))
                open_paragraph = True
            elif not line:
                open_paragraph = False
            elif open_paragraph:
                paragraphs[-1][2].append(line)
            if not match and ALMOST.search(line) and not open_paragraph:
                problems.append(
                    Problem(path, number, f"no mark, though it speaks of one: '{line}'")
                )
        for number, match, words in paragraphs:
            said = " ".join(filter(None, words)).strip()
            applies = match[2] is None
            if not said:
                problems.append(Problem(path, number, f"{match[0].strip()} says nothing"))
            elif applies and comment.test is None and not comment.of_file:
                problems.append(
                    Problem(
                        path,
                        number,
                        f"case {match[1]} is marked above no test: the mark stands directly above "
                        "a test, inside of one or in the first comment of the file",
                    )
                )
            else:
                for case in re.findall(r"[A-Z]\d+", match[1]):
                    test = comment.test if applies else None
                    marks.append(Mark(path, number, case, applies, test, said))
    return marks, problems


def test_files(root: Path) -> list[str]:
    """Files whose comments may carry marks, relative to `root`."""
    found = []
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            name = path.name
            if (
                name.endswith("_test.cc")
                or (name.startswith("test_") and name.endswith(".py"))
                or (path.parent.match("filters/conformance") and name.endswith(".h"))
            ):
                found.append(path.relative_to(root).as_posix())
    return sorted(found)


def all_marks(root: Path, known: set[str]) -> tuple[list[Mark], list[Problem]]:
    marks, problems = [], []
    for path in test_files(root):
        if path == "scripts/test_cases.py":  # its examples are no marks
            continue
        of_file, wrong = marks_of(path, (root / path).read_text(encoding="utf-8"))
        problems += wrong
        for mark in of_file:
            if mark.id in known:
                marks.append(mark)
            else:
                problems.append(Problem(mark.path, mark.line, f"there is no case {mark.id}"))
    return marks, problems


def read_cases(root: Path) -> dict:
    return json.loads((root / "scripts/cases.json").read_text(encoding="utf-8"))


def uncovered(cases: dict, marks: list[Mark]) -> list[str]:
    """Ids of cases that no test covers and that nothing says do not apply."""
    marked = {mark.id for mark in marks}
    return [case["id"] for case in cases["cases"] if case["id"] not in marked]


def _sentence(text: str) -> str:
    text = text[0].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else text + "."


def _escaped(text: str) -> str:
    return re.sub(r"([\\*_<>|\[\]])", r"\\\1", text)


def page(cases: dict, marks: list[Mark]) -> str:
    out = [
        "# Cases that broke others",
        "",
        "Faults that users of filters and of benchmark tools met in public. Each is tested for its",
        "whole kind. `scripts/cases.py` makes this page from marks beside the tests: edit those.",
        "",
    ]
    by_case = collections.defaultdict(list)
    for mark in marks:
        by_case[mark.id].append(mark)
    groups = collections.defaultdict(list)
    for case in cases["cases"]:
        groups[case["id"][0]].append(case)
    for letter, title in cases["groups"].items():
        out += [f"## {letter}. {title}", ""]
        for case in groups[letter]:
            out += [f"### {case['id']} {case['title']}", "", f"Right: {case['right']}.", ""]
            of_case = by_case[case["id"]]
            by_file = collections.defaultdict(list)
            for mark in of_case:
                by_file[mark.path].append(mark)
            for path, of_file in by_file.items():
                covering = [mark for mark in of_file if mark.applies]
                if covering:
                    out.append(f"- [{path}](../{path})")
                for mark in covering:
                    name = f"`{mark.test}`" if mark.test else "all of the file"
                    out.append(f"  - {name}: {_escaped(_sentence(mark.text))}")
                for mark in of_file:
                    if not mark.applies:
                        out.append(
                            f"- Does not apply ([{path}](../{path})): "
                            f"{_escaped(_sentence(mark.text))}"
                        )
            if not of_case:
                out.append("- Not covered.")
            out.append("")
    return "\n".join(out).rstrip("\n") + "\n"


def main(arguments: list[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(arguments).check
    cases = read_cases(root)
    marks, problems = all_marks(root, {case["id"] for case in cases["cases"]})
    wrong = [str(problem) for problem in problems]
    wrong += [
        f"{case}: no test covers it, and nothing says why it does not apply"
        for case in uncovered(cases, marks)
    ]
    text = page(cases, marks)
    file = root / PAGE
    if not check:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    elif not file.exists() or file.read_text(encoding="utf-8") != text:
        wrong.append(f"{PAGE}: not what the tests say; scripts/cases.py writes it anew")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
