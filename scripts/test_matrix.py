"""What takes minutes: fuzzers, sanitizers, valgrind, planted bugs. `scripts/test` has the parts of
one turn, which FILTERBENCH_PARTS names, and `scripts/test --all` has all."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent
PARTS = os.environ.get("FILTERBENCH_PARTS", "").split()


def _run(part, *command):
    """Runs a script whose exit code says whether all is well, and shows what it found if not."""
    if part not in PARTS:
        pytest.skip(f"{part} is not among FILTERBENCH_PARTS ({' '.join(PARTS) or 'empty'})")
    done = subprocess.run([SCRIPTS / command[0], *command[1:]], capture_output=True, text=True,
                          check=False)
    print(done.stdout.splitlines()[-1:])
    assert done.returncode == 0, (f"{' '.join(command)} ends with {done.returncode}\n"
                                  f"{done.stdout[-6000:]}\n{done.stderr[-3000:]}")


def test_fuzzers_of_filters():
    _run("fuzz", "fuzz", "--seconds", "60", "kernel", "wire")


def test_all_fuzzers():
    _run("fuzz_all", "fuzz", "--seconds", "60")


@pytest.mark.parametrize("preset", ["tsan", "scalar"])
def test_sanitizer(preset):
    """`scalar` is for valgrind."""
    _run("sanitize", "sanitize", "--quick", preset)


def test_planted_bugs():
    """A few at each turn: all of them are tried in some twenty."""
    _run("mutate", "mutate", "--sample", os.environ.get("FILTERBENCH_PLANTED_BUGS", "4"),
         "--jobs", str(os.cpu_count()))
