"""The tree keeps its floors, and a file that does not is found."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import check_floors

ROOT = Path(check_floors.__file__).resolve().parent.parent


def violations(root: Path) -> list[str]:
    return [str(violation) for violation in check_floors.check(root)]


def plant(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_this_tree():
    assert violations(ROOT) == []
    # An empty walk would find nothing wrong either.
    assert any((ROOT / "filters").rglob("*.h"))


ALLOWED = [
    ("filters/bloom/a.cc", '#include "filters/filter.h"'),
    ("filters/bloom/a.cc", '#include "filters/simd/loops-inl.h"'),
    ("filters/ribbon/ribbon.cc", '#include "filters/ribbon/banding.h"'),
    ("filters/contract_test.cc", '#include "filters/catalogue.h"'),
    ("workloads/keys.cc", '#include "workloads/lookups.h"'),
    ("workloads/keys.h", '#include "filters/hash.h"'),
    ("harness/run/runner.cc", '#include "harness/plan/plan.h"'),
    ("harness/record/summary.cc", '#include "harness/statistics.h"'),
    ("harness/main.cc", '#include "harness/commands/list.h"'),
    ("harness/commands/run.cc", '#include "harness/run/runner.h"'),
    ("harness/explain/scene.cc", '#include "harness/statistics.h"'),
    ("harness/commands/plan.cc", '#include "harness/commands/sweep.h"'),
    ("workloads/lsm/read_path.cc", '#include "filters/filter.h"'),
    ("workloads/lsm/read_path.cc", '#include "workloads/keys.h"'),
    ("harness/run/runner.cc", '#include "filters/catalogue.h"'),
    ("harness/run/runner.cc", '#include "workloads/lsm/read_path.h"'),
    ("harness/record/record.cc", "#include <nlohmann/json.hpp>"),
    ("filters/bloom/k.cc", '#include "hwy/foreach_target.h"'),
    ("filters/peers/a.cc", '#include "filters/bloom/leveldb_bloom.h"'),
    ("scripts/front.py", "import plots.draw"),
    ("plots/figure.py", "from plots import style"),
    ("plots/figure.py", "import numpy"),
    ("plots/report/page.py", "from scripts import regression"),
    ("plots/report/page.py", "from plots.report import data"),
    ("plots/report/page.py", "from plots import style"),
    ("harness/test_x.py", "from plots.report import page"),
]


@pytest.mark.parametrize("path,text", ALLOWED)
def test_allowed(tmp_path, path, text):
    plant(tmp_path, path, text + "\nint x;\n" if path.endswith((".h", ".cc")) else text + "\n")
    assert violations(tmp_path) == []


FORBIDDEN = [
    ("filters/filter.h", '#include "filters/bloom/blocked.h"'),
    ("filters/theory/ribbon.cc", '#include "filters/ribbon/ribbon.h"'),
    ("filters/simd/targets.cc", '#include "filters/bloom/blocked.h"'),
    ("filters/bloom/a.cc", '#include "filters/cuckoo/cuckoo.h"'),
    ("filters/bloom/a.cc", '#include "filters/peers/leveldb_peer.h"'),
    ("filters/cuckoo/cuckoo.cc", '#include "filters/ribbon/banding.h"'),
    ("filters/bloom/a.h", '#include "filters/catalogue.h"'),
    ("filters/bloom/a.h", '#include "workloads/keys.h"'),
    ("filters/wire.cc", '  #  include "harness/statistics.h"'),
    ("filters/bloom/a.cc", "#include <harness/statistics.h>"),
    ("filters/bloom/a.cc", '#include "blocked.h"'),
    ("filters/bloom/a.cc", '#include "../filter.h"'),
    ("workloads/keys.h", '#include "filters/filter.h"'),
    ("harness/spec/spec.cc", '#include "harness/plan/plan.h"'),
    ("harness/record/sample.h", '#include "harness/run/runner.h"'),
    ("harness/statistics.cc", '#include "harness/record/sample.h"'),
    ("harness/run/runner.cc", '#include "harness/commands/run.h"'),
    ("harness/explain/scene.cc", '#include "harness/run/measure.h"'),
    ("harness/front_door.cc", '#include "harness/commands/run.h"'),
    ("workloads/lookups.cc", '#include "harness/run/runner.h"'),
    ("workloads/lookups.cc", '#include "workloads/lsm/store.h"'),
    ("workloads/lsm/store.cc", '#include "harness/run/runner.h"'),
    ("workloads/lsm/store.cc", '#include "workloads/admission/cache.h"'),
    ("harness/main.cc", '#include "plots/style.h"'),
    ("plots/a.cc", '#include "filters/filter.h"'),
    ("plots/figure.py", "import scripts.merge"),
    ("plots/figure.py", "def f():\n    from harness import spec"),
    ("scripts/merge.py", "from harness.record import load"),
    ("scripts/merge.py", "from plots.report import page"),
    ("plots/draw.py", "import plots.report.page"),
    ("plots/report/page.py", "from harness import spec"),
]


@pytest.mark.parametrize("path,text", FORBIDDEN)
def test_forbidden(tmp_path, path, text):
    plant(tmp_path, path, text + "\nint x;\n" if path.endswith((".h", ".cc")) else text + "\n")
    found = violations(tmp_path)
    assert len(found) == 1
    assert found[0].startswith(f"{path}:"), found


def test_header_that_only_includes(tmp_path):
    guard = "#ifndef A_H_\n#define A_H_\n// Comment.\n#include <vector>\n\n{}#endif\n"
    plant(tmp_path, "filters/all.h", guard.format(""))
    plant(tmp_path, "filters/macro.h", guard.format("#define FILTERBENCH_X 1\n"))
    plant(tmp_path, "filters/code.h", guard.format("inline int x = 1;\n"))
    assert violations(tmp_path) == ["filters/all.h:1: a header that exists only to include others"]


def test_a_violation_planted_in_this_tree_is_found(tmp_path):
    """The real files with one include added: the rules see it among all the others."""
    for path in (ROOT / "filters").rglob("*"):
        if path.suffix in (".h", ".cc"):
            plant(tmp_path, path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    assert violations(tmp_path) == []
    hash_header = tmp_path / "filters" / "hash.h"
    lines = hash_header.read_text(encoding="utf-8").splitlines()
    lines.insert(10, '#include "workloads/keys.h"')
    hash_header.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, check_floors.__file__, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stdout.startswith('filters/hash.h:11: includes "workloads/keys.h": filters/ knows')
