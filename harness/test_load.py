"""Load: many points, several runs at once, a clock that goes back, places that cannot be written.

FILTERBENCH_LOAD_POINTS=10000 makes the run of many points as long as a day of sweeping has points.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pytest

from harness.testing import (NEEDS_PROGRAM, PROGRAM, child_of, filterbench, identity, read_samples,
                             write_spec)

POINTS = int(os.environ.get("FILTERBENCH_LOAD_POINTS", "600"))

pytestmark = NEEDS_PROGRAM

MEASURE = {"processes": 1, "max_processes": 1, "rounds": 1, "width": None, "passes": 1,
           "pass_seconds": 0, "stream_lookups": 4096, "fpr_queries": 1000}
POINTS_PER_PARAMETER = 20  # five sizes, two shares, two targets


def many_points(count):
    bits = [8 + i / 1000 for i in range(count // POINTS_PER_PARAMETER)]
    return {"measure": MEASURE,
            "sweeps": [{"filters": {"blocked_bloom": {"bits_per_key": bits}},
                        "keys": [64, 100, 200, 300, 400], "modes": ["lookup_batched"],
                        "negative_shares": [0, 1], "targets": ["best", "scalar"]}]}


def start(spec, results, *arguments, **options):
    return subprocess.Popen([PROGRAM, "run", spec, "--results", results, *arguments],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def run(spec, results, *arguments, **options):
    return filterbench("run", spec, "--results", results, *arguments, **options)


def identities(samples):
    return {identity(sample) for sample in samples}


def wait_for_samples(results, process, least_bytes=1):
    while process.poll() is None:
        for path in results.glob("*/*/samples.jsonl"):
            if path.stat().st_size >= least_bytes:
                return path.parent
        time.sleep(0.005)
    pytest.fail("the run ended before it had written: " + process.communicate()[1])


def resident_kib(pid):
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    except (FileNotFoundError, ProcessLookupError):
        pass
    return None


def test_memory_stays_flat_over_many_points(tmp_path):
    """The process that measures keeps nothing of a point that is done; the one that records keeps
    what the next rounds need to know of it, which is a few numbers."""
    results = tmp_path / "results"
    with open(tmp_path / "talk", "w") as talk:
        process = subprocess.Popen([PROGRAM, "run", write_spec(tmp_path, many_points(POINTS)),
                                    "--results", results], stdout=subprocess.PIPE, stderr=talk)
        directory = wait_for_samples(results, process)
        worker = child_of(process.pid)
        bytes_per_sample = 3096  # about; only to know how far the run is
        seen = []
        while worker is not None and child_of(process.pid) == worker:
            size = (directory / "samples.jsonl").stat().st_size
            memory = resident_kib(process.pid), resident_kib(worker)
            if None not in memory:
                seen.append((size / bytes_per_sample, *memory))
            time.sleep(0.02)
        assert process.wait() == 0, (tmp_path / "talk").read_text()
    samples = read_samples(directory)
    assert len(identities(samples)) == len(samples) == POINTS
    assert {sample["status"] for sample in samples} == {"ok"}
    assert len({sample["process"] for sample in samples}) == 1
    warm = [row for row in seen if row[0] > POINTS / 5]
    assert len(warm) > 5, seen
    points = warm[-1][0] - warm[0][0]
    # Pages of the allocator come in pieces, which short runs would feel.
    slack_kib = 1024
    assert warm[-1][1] - warm[0][1] < slack_kib + 2 * points, "of the one that records"
    assert warm[-1][2] - warm[0][2] < slack_kib + 0.1 * points, "of the one that measures"


def test_runs_at_once_in_one_directory_do_not_mix(tmp_path):
    """Two specs, so that a sample in the wrong run is seen."""
    results = tmp_path / "results"
    wanted, processes = [], []
    for i in range(2):
        (tmp_path / str(i)).mkdir()
        spec = many_points(100)
        spec["sweeps"][0]["keys"] = [101 + i, 201 + i, 301 + i, 401 + i, 501 + i]
        wanted.append({keys for keys in spec["sweeps"][0]["keys"]})
        processes.append(start(write_spec(tmp_path / str(i), spec), results))
    for process, keys in zip(processes, wanted):
        out, talk = process.communicate(timeout=300)
        assert process.returncode == 0, talk
        samples = read_samples(Path(out.strip()))
        assert len(identities(samples)) == len(samples) == 100
        assert {sample["point"]["keys"] for sample in samples} == keys
        assert [sample["sequence"] for sample in samples] == list(range(100))
    assert len(list(results.glob("*/*/COMPLETE"))) == 2


CLOCK_THAT_GOES_BACK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
/* Each reading of the time of day is an hour before the one before. */
int clock_gettime(clockid_t id, struct timespec* time) {
  static long calls;
  int (*real)(clockid_t, struct timespec*) =
      (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  int code = real(id, time);
  if (id == CLOCK_REALTIME) time->tv_sec -= 3600 * __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  return code;
}
"""


def test_a_clock_that_goes_back_harms_nothing(tmp_path):
    """Durations and the order of samples do not come from the time of day."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "clock.c").write_text(CLOCK_THAT_GOES_BACK)
    library = tmp_path / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", tmp_path / "clock.c", "-o", library,
                    "-ldl"], check=True)
    done = run(write_spec(tmp_path, many_points(40)), tmp_path / "results",
               env={**os.environ, "LD_PRELOAD": str(library)})
    assert done.returncode == 0, done.stderr
    directory = Path(done.stdout.strip())
    samples = read_samples(directory)
    if "libasan" not in done.stderr:
        hours = [datetime.fromisoformat(sample["time_utc"]) for sample in samples]
        assert all(later < earlier for earlier, later in zip(hours, hours[1:])), "it did go back"
    assert [sample["sequence"] for sample in samples] == list(range(40))
    assert all(sample["status"] == "ok" and min(sample["ns_per_op"]) > 0 for sample in samples)
    assert (directory / "COMPLETE").exists()


def in_namespace(script, *arguments):
    """A shell script as root of a user namespace of its own, where file systems can be mounted."""
    probe = subprocess.run(["unshare", "-rm", "sh", "-c", "mount -t tmpfs x /mnt"],
                           capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"no file system can be mounted: {probe.stderr.strip()}")
    return subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", *map(str, arguments)],
                          capture_output=True, text=True, timeout=300)


def test_a_file_system_of_64_kib_fills_up_and_the_run_goes_on_from_there(tmp_path):
    """Case G6: what was written before is whole, and comes again in the run that is resumed."""
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    spec = write_spec(tmp_path, many_points(40))
    done = in_namespace('mount -t tmpfs -o size=64k x "$3" && { "$1" run "$2" --results "$3";'
                        ' code=$?; cp -r "$3" "$4"; exit $code; }', PROGRAM, spec, disk, kept)
    assert done.returncode == 5, done.stderr
    assert f"{disk}/" in done.stderr and "No space left on device" in done.stderr
    (directory,) = kept.glob("*/*")
    before = read_samples(directory)
    assert before and not (directory / "COMPLETE").exists()
    assert not list(directory.glob("*.tmp"))
    done = run(spec, kept, "--resume", directory)
    assert done.returncode == 0, done.stderr
    after = read_samples(directory)
    assert after[:len(before)] == before and len(identities(after)) == len(after) == 40


def test_a_disk_without_room_for_the_manifest_is_left_as_it_was(tmp_path):
    """Case G6: a directory without a manifest is no run, and could not be resumed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = in_namespace('mount -t tmpfs -o size=4k x "$3" && { "$1" run "$2" --results "$3";'
                        ' code=$?; find "$3" -type f; find "$3" -mindepth 2; exit $code; }',
                        PROGRAM, write_spec(tmp_path, many_points(20)), disk)
    assert done.returncode == 2, done.stderr
    assert "manifest.json" in done.stderr and "No space left on device" in done.stderr
    assert done.stdout == ""


def test_a_read_only_place_is_named(tmp_path):
    """Case G6: a file system that is, as root may write into any directory."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = in_namespace('mount -t tmpfs -o ro x "$3" && exec "$1" run "$2" --results "$3"',
                        PROGRAM, write_spec(tmp_path, many_points(20)), disk)
    assert done.returncode == 2
    assert f"{disk}/" in done.stderr and "Read-only file system" in done.stderr


@pytest.mark.parametrize("place", ["file", "file/below", "/dev/full"])
def test_a_place_that_is_no_directory_is_named(tmp_path, place):
    """Case G6: a file, what would lie below one, and a device."""
    (tmp_path / "file").write_text("mine")
    results = place if place.startswith("/") else tmp_path / place
    done = run(write_spec(tmp_path, many_points(20)), results)
    assert done.returncode == 2
    assert f"{results}/" in done.stderr and "Not a directory" in done.stderr
    assert (tmp_path / "file").read_text() == "mine"


def test_a_place_that_is_missing_is_made(tmp_path):
    done = run(write_spec(tmp_path, many_points(20)), tmp_path / "not" / "yet" / "there")
    assert done.returncode == 0, done.stderr
    assert (Path(done.stdout.strip()) / "COMPLETE").exists()


def test_a_directory_that_is_removed_during_the_run_ends_it(tmp_path):
    """Case G6: at the next sample, and not when all was measured for nothing."""
    spec = many_points(20)
    spec["measure"] = {**MEASURE, "pass_seconds": 0.2}
    process = start(write_spec(tmp_path, spec), tmp_path / "results")
    directory = wait_for_samples(tmp_path / "results", process)
    shutil.rmtree(directory)
    _, talk = process.communicate(timeout=120)
    assert process.returncode == 5, talk
    assert f"{directory}/samples.jsonl: " in talk
    assert not directory.exists()


@pytest.mark.parametrize("victim", ["supervisor", "worker"])
@pytest.mark.parametrize("least_bytes", [0, 1, 60000])
def test_a_kill_at_any_stage_loses_nothing(tmp_path, victim, least_bytes):
    """Case G6: before the first sample, at the first, and in the middle."""
    path, results = write_spec(tmp_path, many_points(60)), tmp_path / "results"
    process = start(path, results)
    while not list(results.glob("*/*/manifest.json")):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.002)
    directory = wait_for_samples(results, process, least_bytes)
    if victim == "supervisor":
        process.kill()
    else:
        worker = child_of(process.pid)
        while worker is None and process.poll() is None:
            worker = child_of(process.pid)
        if worker is None:
            pytest.skip("the run was over before the kill")
        os.kill(worker, signal.SIGKILL)
    _, talk = process.communicate(timeout=120)
    if (directory / "COMPLETE").exists():
        samples = read_samples(directory)
        assert {sample["status"] for sample in samples} <= {"ok", "crashed"}
        assert process.returncode == (5 if any(s["status"] != "ok" for s in samples) else 0), talk
    else:
        text = (directory / "samples.jsonl").read_text()
        before = [json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n"]
        done = run(path, results, "--resume", directory)
        assert done.returncode == 0, done.stderr
        samples = read_samples(directory)
        assert samples[:len(before)] == before
    assert len(identities(samples)) == len(samples) == 60
    assert (directory / "COMPLETE").exists()
