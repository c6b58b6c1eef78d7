"""Tests of cmake/catalogue.cmake: what configuring makes of its options. Nothing is built."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def configure(build, *options):
    command = ["cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_filters_from_outside_join_with_the_sources_beside_them(tmp_path):
    header = tmp_path / "mine" / "my_filter.h"
    header.parent.mkdir()
    header.write_text((ROOT / "filters/plugin/example_filter.h").read_text())
    (header.parent / "my_filter_kernel.cc").write_text("// kernels\n")
    done = configure(tmp_path / "build", "-DFILTERBENCH_ONLY=BlockedBloom;TouchLines",
                     f"-DFILTERBENCH_EXTERNAL_FILTERS=WordBloom={header}")
    assert done.returncode == 0, done.stderr
    generated = tmp_path / "build" / "generated" / "filters"
    catalogue = (generated / "catalogue.h").read_text()
    assert "using Catalogue = TypeList<BlockedBloom, TouchLines, WordBloom>;" in catalogue
    assert f'#include "{header}"' in catalogue
    assert '{"Cuckoo", "left out by FILTERBENCH_ONLY"}' in catalogue
    tests = sorted(path.name for path in (generated / "conformance").glob("*_test.cc"))
    assert tests == ["BlockedBloom_TouchLines_test.cc", "WordBloom_test.cc"]
    assert "IS_EXTERNAL 1" in (generated / "conformance" / "WordBloom_test.cc").read_text()
    assert "my_filter_kernel.cc" in (tmp_path / "build" / "build.ninja").read_text()


@pytest.mark.parametrize("option, says", [
    ("-DFILTERBENCH_ONLY=NoSuchFilter", "has no type NoSuchFilter"),
    ("-DFILTERBENCH_EXTERNAL_FILTERS=NoHeader", "'NoHeader': expected TYPE=HEADER"),
    ("-DFILTERBENCH_EXTERNAL_FILTERS=Mine=/no/such/file.h", "there is no file /no/such/file.h"),
])
def test_what_means_nothing_is_refused(tmp_path, option, says):
    done = configure(tmp_path / "build", option)
    assert done.returncode != 0
    assert says in " ".join(done.stderr.split())
