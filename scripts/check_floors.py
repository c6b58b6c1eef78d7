#!/usr/bin/python3
"""Checks that includes and imports run only downwards between the floors of the project.

    check_floors.py [ROOT]

prints one line per violation, `file:line: what and why`, and exits 1 if there is one.

Floors, from the ground up (DESIGN.md): `filters` and the keys and lookups of `workloads` know
nothing of each other or of the harness, but for the two headers that speak of hashes and errors;
application workloads (workloads/<name>/) stand on both; `harness` stands on all three, and inside
it arrows run down as in HARNESS; `plots` and `scripts` read result files only, and the page of
plots/report stands on both. Inside filters/ the
contract (filters/*.h) knows no family, and a family knows the contract, filters/simd,
filters/theory and itself; filters/peers, the filters of other libraries, knows those of ours that are alike.
"""

import ast
import re
import sys
from pathlib import Path
from typing import Iterator, NamedTuple

CPP_SUFFIXES = {".h", ".cc"}
FLOORS = {"filters", "workloads", "harness", "plots", "scripts", "results", "cmake"}
# What knows no filter, though it lies beside them: hashes of keys, errors, how parameters are
# described, what theory says of a rate, how a fuzzer is entered.
COMMON_GROUND = {"filters/hash.h", "filters/result.h", "filters/params_json.h", "filters/fpr.h",
                 "filters/fuzzer.h"}
# Folders of filters/ that are no family: what families stand on, and the tests of the contract.
FILTER_MACHINERY = {"filters/simd", "filters/theory", "filters/conformance"}
# Folder of harness/ -> folders that it may include besides itself. The front door is main.cc,
# which may include all, and commands/, which no other folder knows; the other files in harness/
# itself are tools for all, which include none.
HARNESS = {
    "spec": set(),
    "machine": set(),
    "process": set(),
    "registry": {"spec", "process"},
    "plan": {"spec", "registry"},
    "record": {"spec"},
    "explain": set(),
    "run": {"spec", "machine", "process", "registry", "plan", "record"},
}
HARNESS["commands"] = set(HARNESS)
# The page shows what scripts/ judges. scripts/ stands on the other modules of plots/, so nothing
# stands on the page.
REPORT = ("plots", "report")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# Made in the build tree from filters/catalogue.txt; it includes every family.
CATALOGUE = "filters/catalogue.h"


class Violation(NamedTuple):
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def is_test(path: str) -> bool:
    name = Path(path).name
    return name.endswith(("_test.cc", "_fuzzer.cc")) or name.startswith("test_")


def layer(path: str) -> str:
    """The part of the project that a file belongs to, as the rules below name it.

    `filters` (the contract and what it stands on), `filters/<folder>`, `workloads` (keys, lookups),
    `workloads/<application>`, `harness`, `plots`, `scripts`.
    """
    parts = Path(path).parts
    if parts[0] in ("filters", "workloads") and len(parts) > 2:
        return f"{parts[0]}/{parts[1]}"
    return parts[0]


def may_include(source: str, target: str) -> str | None:
    """Why the C++ file `source` may not include `target`; None where it may."""
    here, there = layer(source), layer(target)
    floor, target_floor = here.split("/")[0], there.split("/")[0]

    if target_floor in ("plots", "scripts", "results"):
        return f"C++ does not stand on {target_floor}/"

    if floor == "filters":
        if target_floor != "filters":
            return f"filters/ knows nothing of {target_floor}/"
        if target == CATALOGUE:
            if here == "filters" and (is_test(source) or Path(source).name == "test_support.h"):
                return None
            return "what a filter is made of does not know the catalogue"
        if there in ("filters", *FILTER_MACHINERY) or there == here:
            return None
        if here == "filters/peers":
            return None
        if here == "filters":
            return f"the contract knows no family: {there}/"
        if here in FILTER_MACHINERY:
            return f"{here}/ knows no family: {there}/"
        return f"a family knows the contract, what it stands on and itself, not {there}/"

    if floor == "workloads":
        if target_floor == "harness":
            return "workloads/ knows nothing of harness/"
        if here == "workloads":  # keys, lookups
            if target in COMMON_GROUND:
                return None
            if target_floor == "filters":
                return "keys and lookups know nothing of filters/"
            if there != "workloads":
                return f"keys and lookups know no application: {there}/"
            return None
        if target_floor == "workloads" and there not in ("workloads", here):
            return f"an application knows no other: {there}/"
        return None

    if floor == "harness":
        if target_floor != "harness" or source == "harness/main.cc":
            return None
        folder, target_folder = (
            Path(path).parts[1] if len(Path(path).parts) > 2 else None for path in (source, target)
        )
        if target_folder in (folder, None) or target_folder in HARNESS.get(folder, set()):
            return None
        return f"harness/{folder or ''} does not stand on harness/{target_folder}/"

    return f"{floor}/ holds no C++"


def may_import(source: str, target: str) -> str | None:
    """Why the Python file `source` may not import from the package `target`; None where it may."""
    floor, target_floor = Path(source).parts[0], target.split(".")[0]
    of_report = Path(source).parts[:2] == REPORT
    if target_floor not in FLOORS:
        return None
    if tuple(target.split(".")[:2]) == REPORT and not of_report and not is_test(source):
        return f"{floor}/ does not stand on {'/'.join(REPORT)}/"
    if target_floor == floor or of_report and target_floor == "scripts":
        return None
    if floor == "scripts" and target_floor == "plots":
        return None  # the fronts start what lies in plots
    if is_test(source) and target_floor in ("scripts", "plots"):
        return None
    return f"{floor}/ reads result files and knows nothing of {target_floor}/"


def cpp_violations(root: Path, path: Path) -> Iterator[Violation]:
    name = path.relative_to(root).as_posix()
    code_lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = INCLUDE.match(line)
        if match:
            target = match.group(2)
            if target.split("/")[0] in FLOORS:
                reason = may_include(name, target)
                if reason:
                    yield Violation(name, number, f'includes "{target}": {reason}')
            elif match.group(1) == '"' and not target.startswith("hwy/"):
                yield Violation(
                    name, number, f'includes "{target}": paths of the project begin at its root'
                )
        stripped = line.strip()
        if stripped and not stripped.startswith(("#", "//")):
            code_lines.append(stripped)
    if path.suffix == ".h" and not code_lines and not _defines_macros(path):
        yield Violation(name, 1, "a header that exists only to include others")


def _defines_macros(path: Path) -> bool:
    """Whether a header defines a macro other than its include guard."""
    defines = re.findall(r"^\s*#\s*define\s+(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return any(not name.endswith("_H_") for name in defines)


def python_violations(root: Path, path: Path) -> Iterator[Violation]:
    name = path.relative_to(root).as_posix()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=name)):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            targets = [node.module]
        else:
            continue
        for target in targets:
            reason = may_import(name, target)
            if reason:
                yield Violation(name, node.lineno, f"imports {target}: {reason}")


def source_files(root: Path) -> Iterator[Path]:
    for floor in sorted(FLOORS - {"cmake"}):
        yield from sorted(path for path in (root / floor).rglob("*") if path.is_file())


def check(root: Path) -> list[Violation]:
    violations = []
    for path in source_files(root):
        if path.suffix in CPP_SUFFIXES:
            violations += cpp_violations(root, path)
        elif path.suffix == ".py":
            violations += python_violations(root, path)
    return violations


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    violations = check(root)
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
