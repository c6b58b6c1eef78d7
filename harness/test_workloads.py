"""Sweeps of applications that use filters, as a person runs them."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from harness.testing import NEEDS_PROGRAM, PROGRAM, filterbench

pytestmark = NEEDS_PROGRAM

MEASURE = {"processes": 1, "max_processes": 1, "rounds": 1, "width": None, "passes": 2,
           "pass_seconds": 0}
GETS = {"name": "lsm_get", "files": 4, "operations": 500, "reads": "cached"}
# Each with knobs that make it small.
SMALL = {
    "lsm_get": {"operations": 300, "files": 3, "reads": "cached"},
    "lsm_prefix_scan": {"operations": 200, "reads": "cached"},
    "lsm_insert_if_absent": {"operations": 200, "reads": "cached"},
    "lsm_load": {"memtable_keys": 500},
    "rocksdb_get": {"operations": 300, "files": 3, "reads": "cached"},
    "leveldb_get": {"operations": 300, "files": 3, "reads": "cached"},
    "cdn_admission": {"requests": 5000, "cache_mib": 4},
    "safe_browsing": {"operations": 5000},
    "semi_join": {"rows": 5000},
    "name_taken": {"operations": 5000},
    "adversarial_keys": {"operations": 5000, "candidates": 5000},
}
FILTER_OF = {"rocksdb_get": "rocksdb_bloom"}
WITHOUT_SHARE = {"lsm_load", "cdn_admission", "adversarial_keys"}
NO_FILTER = "always_maybe"


def spec_of(sweeps, **measure):
    return {"measure": {**MEASURE, **measure}, "sweeps": sweeps}


def run(spec, directory, *arguments, scratch=None, code=0):
    path = directory / "sweep.json"
    path.write_text(json.dumps(spec))
    done = filterbench("run", path, "--results", directory / "results", *arguments,
                       env={**os.environ, **({"TMPDIR": str(scratch)} if scratch else {})})
    assert done.returncode == code, done.stderr
    return Path(done.stdout.strip())


def points_of(directory):
    return json.loads((directory / "summary.json").read_text())["points"]


def listed():
    return json.loads(filterbench("list", "--json").stdout)["workloads"]


def test_the_list_tells_every_workload_and_its_knobs():
    workloads = {workload["name"]: workload for workload in listed()}
    assert set(workloads) == set(SMALL)
    for name, workload in workloads.items():
        if workload["not_built"]:
            continue
        assert workload["description"] and workload["operation"]
        assert workload["negative_share"] == (name not in WITHOUT_SHARE)
        assert {knob["name"] for knob in workload["parameters"]} >= set(SMALL[name])
    text = filterbench("list").stdout
    assert all(f"workload {name}" in text for name in SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_every_workload_runs_with_a_filter_and_without(tmp_path, name):
    """One that needs an engine that is not there is recorded as skipped, with the reason."""
    filters = {FILTER_OF.get(name, "blocked_bloom"): {"bits_per_key": 10}, NO_FILTER: {}}
    sweep = {"filters": filters, "workload": {"name": name, **SMALL[name]}, "keys": 3000}
    if name not in WITHOUT_SHARE:
        sweep["negative_shares"] = [0, 0.9, 1]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    directory = run(spec_of([sweep]), tmp_path, scratch=scratch)
    assert not list(scratch.iterdir()), "files of the application are left"
    points = points_of(directory)
    assert len(points) == len(filters) * (1 if name in WITHOUT_SHARE else 3)
    not_built = {w["name"]: w["not_built"] for w in listed()}[name]
    for point in points:
        assert point["point"]["mode"] == "workload"
        assert point["point"]["workload"]["name"] == name
        if not_built:
            assert point["status"] == "skipped" and "not built" in point["reason"]
            continue
        assert point["status"] == "ok", point["reason"]
        assert point["ns_per_op"]["median"] > 0
        assert point["workload"]["metrics"]
        for metric in point["workload"]["metrics"].values():
            if metric.get("trials"):
                assert metric["low"] <= metric["value"] <= metric["high"]


def test_block_reads_follow_the_formula(tmp_path):
    """Absent keys read candidates * FPR blocks, and one per file without a filter."""
    directory = run(spec_of([{"filters": {"blocked_bloom": {"bits_per_key": 10}, NO_FILTER: {}},
                              "workload": {**GETS, "files": [1, 7], "operations": 20000},
                              "keys": 7000, "negative_shares": 1}]), tmp_path)
    for point in points_of(directory):
        counters = point["workload"]["counters"]
        reads = point["workload"]["metrics"]["block_reads_per_get"]
        assert counters["candidates"] == (counters["range_skips"] + counters["not_consulted"] +
                                          counters["filter_negatives"] + counters["maybe_true"] +
                                          counters["maybe_false"])
        asked = (counters["candidates"] - counters["range_skips"]) / counters["gets"]
        if point["point"]["filter"] == NO_FILTER:
            assert reads["value"] == asked
        else:
            # The interval leaves the truth out once in twenty; seeds are fixed.
            assert reads["low"] <= asked * point["fpr"]["expected"] <= reads["high"]
            assert reads["value"] == pytest.approx(asked * point["fpr"]["measured"], rel=1e-12)


def test_the_same_sweep_counts_the_same(tmp_path):
    sweep = [{"filters": {"ribbon": {}}, "workload": GETS, "keys": 3000, "negative_shares": 0.5}]
    counted = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (point,) = points_of(run(spec_of(sweep), tmp_path / name))
        counted.append([point["workload"][part] for part in ("metrics", "counters", "parts")] +
                       [point["filter_digest"], point["answers_digest"]])
    assert counted[0] == counted[1]


@pytest.mark.parametrize("sweep, problem", [
    ({"workload": "lsm_gets"}, "unknown workload 'lsm_gets' (did you mean 'lsm_get'?)"),
    ({"workload": 7}, "must be the name of a workload"),
    ({"workload": ["lsm_get"]}, "must be the name of a workload"),
    ({"workload": {"files": 7}}, "must be the name of a workload"),
    ({"workload": {"name": "lsm_get", "flies": 7}}, "sweeps[0].workload.flies: "),
    ({"workload": {"name": "lsm_get", "files": 0}}, "sweeps[0].workload.files: "),
    ({"workload": {"name": "lsm_get", "files": [1, 65]}}, "sweeps[0].workload.files[1]: "),
    ({"workload": {"name": "lsm_get", "files": []}}, "sweeps[0].workload.files: "),
    ({"workload": {"name": "lsm_get", "reads": "warm"}}, "sweeps[0].workload.reads: "),
    ({"workload": "lsm_get", "modes": ["build"]}, "sweeps[0].modes: means nothing beside"),
    ({"workload": "lsm_get", "threads": 2}, "sweeps[0].threads: means nothing beside"),
    ({"workload": "lsm_get", "fills": 1}, "sweeps[0].fills: means nothing beside"),
    ({"workload": "lsm_load", "negative_shares": 1}, "sweeps[0].negative_shares: "),
    ({"workload": "lsm_get", "keys": 3}, "nothing to measure"),
    ({"workload": "cdn_admission", "filters": {"xor": {}}}, "takes no single keys"),
    ({"workload": "lsm_get", "filters": {"hash_only": {}}}, "is a baseline"),
    ({"workload": {"name": "lsm_get", "bits_allocation": "monkey"}}, "nothing to measure"),
    ({"modes": ["workload"]}, "unknown mode 'workload'"),
])
def test_wrong_sweeps_are_refused(tmp_path, sweep, problem):
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(spec_of([{"filters": {"blocked_bloom": {}}, **sweep}])))
    done = filterbench("run", path, "--results", tmp_path / "results")
    assert done.returncode == 2
    assert problem in done.stderr
    assert str(path) in done.stderr
    assert not (tmp_path / "results").exists()


def test_without_a_place_for_files_nothing_is_measured(tmp_path):
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(spec_of([{"filters": {"blocked_bloom": {}}, "workload": GETS,
                                         "keys": 3000}])))
    done = filterbench("run", path, "--results", tmp_path / "results",
                       env={**os.environ, "TMPDIR": str(tmp_path / "none")})
    assert done.returncode not in (0, 130)
    assert "TMPDIR" in done.stderr


def test_a_full_disk_is_a_record(tmp_path):
    """The store's files do not fit: the point fails with the file's name, and nothing is left."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", scratch],
                             capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        directory = run(spec_of([{"filters": {"blocked_bloom": {}}, "workload": GETS,
                                  "keys": 20000}]), tmp_path, scratch=scratch, code=5)
        (point,) = points_of(directory)
        assert point["status"] == "build_failed"
        assert "No space left on device" in point["reason"]
        assert not list(scratch.iterdir())
    finally:
        subprocess.run(["umount", scratch], check=True)


def test_a_killed_run_resumes(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(spec_of(
        [{"filters": {"blocked_bloom": {}, "ribbon": {}, "xor": {}, NO_FILTER: {}},
          "workload": {**GETS, "files": [1, 2, 3, 4]}, "keys": 3000}])))
    environment = {**os.environ, "TMPDIR": str(scratch)}
    process = subprocess.Popen([PROGRAM, "run", path, "--results", tmp_path / "results"],
                               env=environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        samples = list((tmp_path / "results").glob("*/*/samples.jsonl"))
        if samples and samples[0].read_text().count("\n") >= 2:
            break
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    # A run that is told to stop leaves no files of the application.
    assert not list(scratch.iterdir())
    directory = samples[0].parent
    resumed = filterbench("run", path, "--resume", directory, env=environment)
    assert resumed.returncode == 0, resumed.stderr
    assert {point["status"] for point in points_of(directory)} == {"ok"}
    assert len(points_of(directory)) == 16
