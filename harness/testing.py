"""What the tests of the whole program share."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(os.environ.get("FILTERBENCH", ROOT / "build/release/filterbench"))
NEEDS_PROGRAM = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")

# Commands that are modules of Python (harness/front_door.cc).
PYTHON_COMMANDS = {
    "compare": "scripts.compare", "compare-cpus": "scripts.compare_cpus",
    "merge": "scripts.merge", "submit": "scripts.submit", "keep": "scripts.keep",
    "figures": "plots.draw", "report": "plots.report.page", "advise": "scripts.advise",
    "claims": "scripts.claims"}


def filterbench(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=300, check=False, **options)


def write_spec(directory, spec):
    """`spec` as a file of `directory`: a dict, or text as it is."""
    path = Path(directory) / "tiny.json"
    path.write_text(spec if isinstance(spec, str) else json.dumps(spec), encoding="utf-8")
    return path


def read_samples(run):
    return [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]


def identity(sample):
    return sample["point_id"], sample["round"]


def child_of(pid):
    """The first child of a process, or None."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(children[0]) if children else None
