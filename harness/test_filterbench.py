"""The program as a person runs it: exit codes, kills, resuming, bad input."""

import json
import os
import random
import resource
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from harness import testing
from harness.testing import (NEEDS_PROGRAM, PROGRAM, ROOT, child_of, filterbench, identity,
                             read_samples)

pytestmark = NEEDS_PROGRAM

TINY = {
    "measure": {"processes": 1, "max_processes": 1, "rounds": 2, "width": None, "passes": 2, "pass_seconds": 0, "stream_lookups": 4096,
                "fpr_queries": 10000},
    "sweeps": [{"filters": {"blocked_bloom": {"bits_per_key": [8, 10]}, "touch_lines": {}},
                "keys": [1000, 5000], "modes": ["build", "lookup_batched", "latency"],
                "negative_shares": [0, 1], "targets": ["best", "scalar"]}],
}


# Filters (parameters times keys), each with one build and two modes of two shares and two targets.
POINTS_OF_TINY = (2 * 2 + 2) * (1 + 2 * 2 * 2)


def write_spec(directory, spec=TINY):
    return testing.write_spec(directory, spec)


def only_run(results):
    (run,) = results.glob("*/*")
    return run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    directory = tmp_path_factory.mktemp("finished")
    done = filterbench("run", write_spec(directory), "--results", directory / "results")
    assert done.returncode == 0, done.stderr
    run = Path(done.stdout.strip())
    return run


def test_a_run_is_complete_and_says_where(finished):
    assert (finished / "COMPLETE").exists()
    samples = read_samples(finished)
    assert [sample["sequence"] for sample in samples] == list(range(len(samples)))
    assert {sample["status"] for sample in samples} == {"ok"}
    summary = json.loads((finished / "summary.json").read_text())
    assert len(summary["points"]) * 2 == len(samples)


def test_samples_carry_counters_and_the_step_of_the_clock(finished):
    """Cases F3 and F5: what cannot be counted is null with a reason, and the sample still counts."""
    samples = read_samples(finished)
    names = set(samples[0]["counters"])
    assert {"cycles", "branch_misses", "task_clock_ns", "context_switches"} <= names
    for sample in samples:
        step_ns = sample["health"]["clock_step_ns"]
        assert min(sample["ns_per_op"]) * sample["operations_per_pass"] >= 1000 * step_ns
        assert set(sample["counters"]) == names
        for counter in sample["counters"].values():
            assert (counter["per_op"] is None) == ("reason" in counter) != ("running_share" in counter)
    for point in json.loads((finished / "summary.json").read_text())["points"]:
        assert set(point["counters"]) == names
        unknown = [name for name, value in point["counters"].items() if value is None]
        assert all(name in point.get("counters_reason", "") for name in unknown)


def test_one_parameter_arrives_from_spec_to_summary(finished):
    manifest = json.loads((finished / "manifest.json").read_text())
    asked = {point["params"]["bits_per_key"] for point in manifest["spec"]["points"]
             if point["filter"] == "blocked_bloom"}
    summary = json.loads((finished / "summary.json").read_text())
    measured = {point["point"]["params"]["bits_per_key"]: point["bits_per_key"]
                for point in summary["points"]
                if point["point"]["filter"] == "blocked_bloom" and point["point"]["keys"] == 5000}
    assert asked == set(measured) == {8.0, 10.0}
    for bits, real in measured.items():
        assert bits <= real <= bits * 1.15


def test_two_runs_give_the_same_bytes_and_answers(finished, tmp_path):
    again = filterbench("run", write_spec(tmp_path), "--results", tmp_path / "results")
    assert again.returncode == 0, again.stderr
    digests = [{identity(sample): (sample["filter"]["filter_digest"],
                                   sample["filter"]["answers_digest"])
                for sample in read_samples(run)}
               for run in (finished, Path(again.stdout.strip()))]
    assert digests[0] == digests[1]


@pytest.mark.parametrize("seed", range(4))
def test_a_killed_sweep_stays_readable_and_resumes(tmp_path, seed):
    """Case G6: SIGKILL at a random moment."""
    spec = json.loads(json.dumps(TINY))
    spec["measure"]["pass_seconds"] = 0.002
    path = write_spec(tmp_path, spec)
    results = tmp_path / "results"
    process = subprocess.Popen([PROGRAM, "run", path, "--results", results],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(results.glob("*/*/manifest.json")):
        time.sleep(0.005)
    time.sleep(random.Random(seed).uniform(0, 0.5))
    process.kill()
    process.wait()
    run = only_run(results)
    if (run / "COMPLETE").exists():
        pytest.skip("the sweep was over before the kill")
    text = (run / "samples.jsonl").read_text()
    before = [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    done = filterbench("run", path, "--results", results, "--resume", run)
    assert done.returncode == 0, done.stderr
    assert f"{len(before)} reused" in done.stderr
    after = read_samples(run)
    assert after[:len(before)] == before
    assert len({identity(sample) for sample in after}) == len(after) == POINTS_OF_TINY * 2
    assert (run / "COMPLETE").exists()


def test_a_torn_line_is_measured_again(tmp_path):
    results = tmp_path / "results"
    path = write_spec(tmp_path)
    assert filterbench("run", path, "--results", results).returncode == 0
    run = only_run(results)
    lines = (run / "samples.jsonl").read_text().splitlines(keepends=True)
    (run / "samples.jsonl").write_text("".join(lines[:5]) + lines[5][:40])
    (run / "COMPLETE").unlink()
    done = filterbench("run", path, "--results", results, "--resume", run)
    assert done.returncode == 0, done.stderr
    assert "5 reused" in done.stderr
    assert len(read_samples(run)) == len(lines)


def test_what_is_not_finished_is_not_marked_as_complete(tmp_path):
    results = tmp_path / "results"
    path = write_spec(tmp_path)
    assert filterbench("run", path, "--results", results).returncode == 0
    run = only_run(results)
    lines = (run / "samples.jsonl").read_text().splitlines(keepends=True)
    (run / "samples.jsonl").write_text("".join(lines[:-1]))
    (run / "COMPLETE").unlink()
    done = filterbench("summarise", run, "--complete")
    assert done.returncode == 5 and "has no sample of round 1" in done.stderr, done.stderr
    assert not (run / "COMPLETE").exists()
    (run / "samples.jsonl").write_text("".join(lines))
    assert filterbench("summarise", run, "--complete").returncode == 0
    assert (run / "COMPLETE").exists()


@pytest.mark.parametrize("tail", [b"\0" * 4096, b'{"schema": "filterb\0\0\0', b"\xff\xfe"])
def test_what_a_loss_of_power_leaves_is_cut_off(tmp_path, tail):
    """A file system may extend a file before it writes what stands there."""
    results = tmp_path / "results"
    path = write_spec(tmp_path)
    assert filterbench("run", path, "--results", results).returncode == 0
    run = only_run(results)
    lines = (run / "samples.jsonl").read_bytes().splitlines(keepends=True)
    (run / "samples.jsonl").write_bytes(b"".join(lines[:7]) + tail)
    (run / "COMPLETE").unlink()
    done = filterbench("run", path, "--results", results, "--resume", run)
    assert done.returncode == 0, done.stderr
    assert "7 reused" in done.stderr and "cut off" in done.stderr
    assert len(read_samples(run)) == len(lines)


def test_a_full_disk_is_named_and_the_run_resumes(tmp_path):
    """Case G6: a full file system of 256 KiB, which grows afterwards."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "filterbench", disk],
                           capture_output=True, text=True)
    if mount.returncode != 0:
        pytest.skip(f"no file system can be mounted: {mount.stderr.strip()}")
    try:
        path = write_spec(tmp_path, {**TINY, "measure": {**TINY["measure"], "rounds": 8}})
        done = filterbench("run", path, "--results", disk)
        assert done.returncode == 5, done.stderr
        run = only_run(disk)
        assert f"{run}/samples.jsonl" in done.stderr and "No space left" in done.stderr
        kept = read_samples(run)
        assert kept and not (run / "COMPLETE").exists()
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        done = filterbench("run", path, "--results", disk, "--resume", run)
        assert done.returncode == 0, done.stderr
        after = read_samples(run)
        assert after[:len(kept)] == kept and len(after) == POINTS_OF_TINY * 8
    finally:
        subprocess.run(["umount", disk], check=True)


def test_interrupting_ends_with_130_and_usable_results(tmp_path):
    spec = json.loads(json.dumps(TINY))
    spec["measure"]["pass_seconds"] = 0.05
    results = tmp_path / "results"
    process = subprocess.Popen([PROGRAM, "run", write_spec(tmp_path, spec), "--results", results,
                                "--set", "keys=1000,2000"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not any(path.stat().st_size for path in results.glob("*/*/samples.jsonl")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, talk = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume" in talk
    run = only_run(results)
    assert not (run / "COMPLETE").exists()
    assert json.loads((run / "summary.json").read_text())["points"]
    words = shlex.split(talk.split("go on with: ")[1].splitlines()[0])
    assert words[0] == "filterbench"
    assert filterbench(*words[1:]).returncode == 0
    assert (run / "COMPLETE").exists()


def test_resuming_with_another_spec_is_refused(finished, tmp_path):
    other = json.loads(json.dumps(TINY))
    other["measure"]["rounds"] = 3
    done = filterbench("run", write_spec(tmp_path, other), "--resume", finished)
    assert done.returncode == 2
    assert str(finished) in done.stderr


@pytest.mark.parametrize("arguments, problem", [
    ([], "subcommand is required"),
    (["measure"], "subcommand"),
    (["run"], "spec is required"),
    (["run", "quik"], "did you mean 'quick'?"),
    (["plan", "/no/such/spec.json"], "/no/such/spec.json"),
    (["plan", "/dev"], "/dev"),
    (["list", "--jsn"], "--jsn"),
    (["run", "smoke", "--resume", "/no/such/run"], "/no/such/run"),
    (["run", "smoke", "--results", "/proc/results"], "/proc/results"),
    (["run", "smoke", "--results", "/dev/null/results"], "/dev/null"),
])
def test_wrong_command_lines_say_what_is_wrong(arguments, problem, tmp_path):
    done = filterbench(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert problem in done.stderr + done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text, problem", [
    ("", "tiny.json:1: "),
    ('{"sweeps": [{"filters": {"bloked_bloom": {}}}]}', "did you mean 'blocked_bloom'?"),
    ('{"sweeps": [{"filters": {"cuckoo": {"load": 2}}}]}', "load: must be a number in"),
    ('{"sweeps": [{"filters": {"blocked_bloom": {}}, "keys": "many"}]}', "sweeps[0].keys: "),
    ("\x00\x01\x02", "tiny.json:1: not JSON"),
    ('{"sweeps": [{"filters": {"blocked_bloom": {}}}]} trailing', "tiny.json:1: not JSON"),
    ("\ufeff", "tiny.json:1: not JSON"),
    ("[" * 100000, "tiny.json:"),
])
def test_wrong_specs_leave_nothing_behind(text, problem, tmp_path):
    path = write_spec(tmp_path, text)
    done = filterbench("run", path, "--results", tmp_path / "results")
    assert done.returncode == 2, done.stderr
    assert problem in done.stderr
    assert not (tmp_path / "results").exists()


def test_numbers_are_the_same_in_every_locale(finished, tmp_path):
    """Case G2: what is written; the locale may be missing on this machine, and then nothing is shown."""
    done = filterbench("export", env={"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"})
    assert done.stdout == filterbench("export", env={"LC_ALL": "C"}).stdout
    json.loads(done.stdout)


def test_list_shows_every_filter_of_the_catalogue():
    """Case B9: a filter that is not compiled must not vanish."""
    types = [line.split()[0] for line in (ROOT / "filters/catalogue.txt").read_text().splitlines()
             if line and not line.startswith("#")]
    listed = json.loads(filterbench("list", "--json").stdout)
    assert len(types) == len(listed["filters"]) + len(listed["not_built"])
    for entry in listed["filters"]:
        assert entry["targets"][-1] == "scalar"
        assert entry["source"] and entry["fpr_formula"]
        assert entry["name"] in filterbench("list").stdout


@pytest.mark.parametrize("content, keys, problem", [
    (b"", 1, "has no keys"),
    (b"one", 2, "2 keys are asked for"),
    (b"a\n" + b"x" * 70000, 1, "keys.txt:2: a key of more than"),
])
def test_key_files_that_cannot_serve_are_refused_before_the_run(tmp_path, content, keys, problem):
    (tmp_path / "keys.txt").write_bytes(content)
    spec = {"sweeps": [{"filters": {"blocked_bloom": {}}, "keys": keys,
                        "key_sets": {"kind": "file", "path": str(tmp_path / "keys.txt")}}]}
    done = filterbench("run", write_spec(tmp_path, spec), "--results", tmp_path / "results")
    assert done.returncode == 2
    assert problem in done.stderr and "tiny.json:1: sweeps[0]" in done.stderr
    assert not (tmp_path / "results").exists()


def test_a_share_of_absent_keys_that_cannot_be_had_is_skipped(tmp_path):
    """No row may speak of absent keys where there were none."""
    (tmp_path / "keys.txt").write_text("one\ntwo\n")
    spec = {"measure": TINY["measure"],
            "sweeps": [{"filters": {"blocked_bloom": {}}, "keys": 2, "negative_shares": [0, 1],
                        "key_sets": {"kind": "file", "path": str(tmp_path / "keys.txt")}},
                       {"filters": {"blocked_bloom": {}}, "keys": 0, "negative_shares": [0, 1]}]}
    done = filterbench("run", write_spec(tmp_path, spec), "--results", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    status = {(sample["point"]["keys"], sample["point"]["negative_share"]): sample["status"]
              for sample in read_samples(Path(done.stdout.strip()))}
    assert status == {(2, 0.0): "ok", (2, 1.0): "skipped", (0, 0.0): "skipped", (0, 1.0): "ok"}


def test_a_full_standard_output_is_no_success():
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "list"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 5 and "standard output" in done.stderr


def test_keys_of_a_file(tmp_path):
    """A list of real file paths and, where it is installed, a real word list."""
    files = tmp_path / "paths.txt"
    files.write_text("\n".join(str(path) for path in sorted(Path("/usr").rglob("*"))[:50000]))
    words = Path("/usr/share/dict/american-english-large")
    for path in [files] + ([words] if words.exists() else []):
        spec = {"measure": TINY["measure"],
                "sweeps": [{"filters": {"blocked_bloom": {}, "classic_bloom": {}}, "keys": 2000,
                            "key_sets": {"kind": "file", "path": str(path)},
                            "hashings": ["prehashed", "xxh3_bytes"],
                            "negative_shares": [0, 0.5, 1]}]}
        done = filterbench("run", write_spec(tmp_path, spec), "--results", tmp_path / "results")
        assert done.returncode == 0, done.stderr
        samples = read_samples(Path(done.stdout.strip()))
        assert {sample["status"] for sample in samples} == {"ok"}
        assert all(sample["point"]["key_set"]["digest"] for sample in samples)


PLUGINS = PROGRAM.parent
needs_plugins = pytest.mark.skipif(not (PLUGINS / "misbehaving_plugin.so").exists(),
                                   reason="the plug-ins of the tests are not built")
MISBEHAVING = {
    **TINY,
    "plugins": [str(PLUGINS / "misbehaving_plugin.so")],
    "measure": {**TINY["measure"], "fpr_queries": 1000000, "point_seconds": 1},
    "sweeps": [{"filters": {"flawless": {}, "crashes_in_build": {}, "crashes_in_lookups": {},
                            "never_returns": {}, "denies_a_key": {}, "exits": {}, "prints": {},
                            "states_another_rate": {}, "batch_differs": {}, "blocked_bloom": {},
                            "hangs_in_lookups": {}, "miscounts_long_spans": {}, "states_no_rate": {}},
                "keys": [1000], "modes": ["build", "lookup_batched", "latency"],
                "negative_shares": [0.5]}],
}


def worker_of(process):
    """The process that measures for `process`, once it is there."""
    while process.poll() is None:
        worker = child_of(process.pid)
        if worker is not None:
            return worker
        time.sleep(0.005)
    pytest.fail("the run ended before its worker was seen")


@pytest.mark.parametrize("name, status, reason", [
    (signal.SIGKILL, "crashed", "signal 9"), (signal.SIGSEGV, "crashed", "signal 11"),
    (signal.SIGSTOP, "timed_out", "within 1 s")])
def test_what_happens_to_a_worker_is_a_record_and_the_sweep_goes_on(tmp_path, name, status, reason):
    spec = json.loads(json.dumps(TINY))
    spec["measure"].update(pass_seconds=0.02, point_seconds=1)
    process = subprocess.Popen([PROGRAM, "run", write_spec(tmp_path, spec),
                                "--results", tmp_path / "results"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    worker = worker_of(process)
    while not any(path.stat().st_size for path in tmp_path.glob("results/*/*/samples.jsonl")):
        time.sleep(0.005)
    os.kill(worker, name)
    _, talk = process.communicate(timeout=120)
    assert process.returncode == 5, talk
    run = only_run(tmp_path / "results")
    samples = read_samples(run)
    assert len({identity(sample) for sample in samples}) == len(samples) == POINTS_OF_TINY * 2
    failed = [sample for sample in samples if sample["status"] != "ok"]
    assert failed and {sample["status"] for sample in failed} == {status}
    assert reason in failed[0]["reason"]
    assert len({(s["point"]["filter"], s["point"]["keys"], s["round"],
                 s["point"]["params"].get("bits_per_key")) for s in failed}) == 1
    assert {sample["process"] for sample in samples} == {0, 1}
    assert (run / "COMPLETE").exists()


def test_larger_sizes_of_what_ran_out_of_memory_are_skipped(tmp_path):
    """Case F14: the records before stay, other filters go on."""
    spec = {"measure": {**TINY["measure"], "rounds": 1},
            "sweeps": [{"filters": {"blocked_bloom": {}, "xor": {}},
                        "keys": [1e4, 1e5, 6e7, 7e7, 8e7, 1.2e8]}]}
    limit = 400 << 20
    done = filterbench("run", write_spec(tmp_path, spec), "--results", tmp_path / "results",
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert done.returncode == 5, done.stderr
    status = {(s["point"]["filter"], s["point"]["keys"]): (s["status"], s["reason"])
              for s in read_samples(only_run(tmp_path / "results"))}
    assert len(status) == 12
    for name in ("blocked_bloom", "xor"):
        assert status[name, 10000][0] == status[name, 100000][0] == "ok"
        # Whichever came first in the order of the round.
        large = [status[name, keys] for keys in (60000000, 70000000, 80000000, 120000000)]
        assert large[0][0] == "out_of_memory"
        assert all(end == "out_of_memory" or "ran out of memory before" in reason
                   for end, reason in large)
    # Not all of them in both filters came in falling order.
    assert any(end == "skipped" for end, _ in status.values())


LEVELS = {
    "measure": {"processes": 3, "max_processes": 4, "rounds": 2, "passes": 3, "pass_seconds": 0,
                "width": 0.0001, "stream_lookups": 4096, "fpr_queries": 1000},
    "sweeps": [{"filters": {"blocked_bloom": {}, "touch_lines": {}}, "keys": [1000],
                "modes": ["lookup_batched"]}],
}


def test_three_levels_and_points_that_stay_unstable(tmp_path):
    done = filterbench("run", write_spec(tmp_path, LEVELS), "--results", tmp_path / "results")
    assert done.returncode == 5 and "unstable" in done.stderr, done.stderr
    run = only_run(tmp_path / "results")
    samples = read_samples(run)
    assert len(samples) == 2 * 4 * 2
    assert all(s["process"] == s["round"] // 2 and len(s["ns_per_op"]) == 3 for s in samples)
    for entry in json.loads((run / "summary.json").read_text())["points"]:
        assert entry["stability"]["asked_width"] == 0.0001 and not entry["stability"]["stable"]
        assert abs(sum(entry["variance_shares"].values()) - 1) < 1e-9


def test_stable_points_are_not_measured_on(tmp_path):
    spec = json.loads(json.dumps(LEVELS))
    spec["measure"]["width"] = 1
    done = filterbench("run", write_spec(tmp_path, spec), "--results", tmp_path / "results")
    samples = read_samples(only_run(tmp_path / "results"))
    if done.returncode == 0:
        assert len(samples) == 2 * 3 * 2
    else:  # a machine so busy that intervals are wider than their medians
        assert done.returncode == 5 and len(samples) > 2 * 3 * 2


# Case F12: rows come in random order.
def test_the_order_is_balanced_and_follows_from_the_seed(tmp_path):
    """Within a process every build of a case is as far from the start as the next from the end."""
    orders = []
    for seed in (1, 1, 2):
        results = tmp_path / str(len(orders))
        done = filterbench("run", write_spec(tmp_path), "--results", results, "--seed", seed)
        assert done.returncode == 0, done.stderr
        orders.append([identity(sample) for sample in read_samples(only_run(results))])
    rounds = [[point for point, round_ in orders[0] if round_ == wanted] for wanted in (0, 1)]
    assert rounds[0] == rounds[1][::-1]
    assert orders[0] == orders[1] and orders[0] != orders[2]


def test_strict_refuses_what_the_doctor_finds_unfit(tmp_path):
    """A machine is made unfit by what runs on all of its CPUs."""
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count() + 1)]
    try:
        time.sleep(0.3)
        done = filterbench("run", write_spec(tmp_path), "--results", tmp_path / "results",
                           "--strict")
    finally:
        for process in busy:
            process.kill()
    assert done.returncode == 4, done.stderr
    assert "unfit" in done.stderr and "other_cpus" in done.stderr
    assert not (tmp_path / "results").exists()


def test_the_doctors_findings_are_in_the_manifest(finished):
    manifest = json.loads((finished / "manifest.json").read_text())
    findings = {finding["check"]: finding for finding in manifest["doctor"]}
    assert {"governor", "clock_source", "other_cpus", "build"} <= set(findings)
    assert {finding["state"] for finding in findings.values()} <= {
        "pass", "warn", "fail", "unknown"}
    assert manifest["cpus"] and manifest["memory_limit_bytes"] > 0


def test_a_command_line_changes_a_sweep(tmp_path):
    done = filterbench("plan", "quick", "--json", "--filter", "cuckoo", "--exclude", "hash_only",
                       "--set", "keys=1e4", "--set", "cuckoo.fingerprint_bits=8", "--quick",
                       "--seed", 5)
    plan = json.loads(done.stdout)
    assert {point["filter"] for point in plan["spec"]["points"]} == {"cuckoo", "touch_lines"}
    assert {point["keys"] for point in plan["spec"]["points"]} == {10000}
    assert plan["spec"]["measure"]["seed"] == 5
    assert plan["spec"]["measure"]["rounds"] == 1 and plan["spec"]["measure"]["passes"] == 3
    assert 0 < plan["least_seconds"] <= plan["most_seconds"]


@pytest.mark.parametrize("arguments, problem", [
    (["--set", "pases=3"], "did you mean 'passes'"),
    (["--set", "keys=many"], "sweeps[0].keys"),
    (["--set", "passes=0"], "measure.passes"),
    (["--set", "max_processes=1"], "max_processes: must be at least processes"),
    (["--filter", "coockoo"], "did you mean 'cuckoo'"),
    (["--exclude", "*"], "no filter of the spec is left"),
    (["--seed", "-1"], "--seed"),
    (["--quick", "--rigorous"], "excludes"),
    (["--cpu", "99999"], "--cpu 99999"),
    (["--resume", ""], "--resume"),
])
def test_wrong_changes_say_what_is_wrong(arguments, problem, tmp_path):
    done = filterbench("run", "quick", "--results", tmp_path / "results", *arguments)
    assert done.returncode == 2, done.stderr
    assert problem in done.stderr
    assert not (tmp_path / "results").exists()


def test_two_runs_of_one_second_have_directories_of_their_own(tmp_path):
    path = write_spec(tmp_path)
    runs = [subprocess.Popen([PROGRAM, "run", path, "--results", tmp_path / "results"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    assert [run.wait(timeout=120) for run in runs] == [0, 0]
    assert len(list((tmp_path / "results").glob("*/*"))) == 2


# Case G5: a filter that prints to standard output, among others.
@needs_plugins
def test_a_plug_in_spoils_its_own_rows_and_no_others(tmp_path):
    done = filterbench("run", write_spec(tmp_path, MISBEHAVING), "--results", tmp_path / "results")
    assert done.returncode == 3, done.stderr
    run = Path(done.stdout.strip())  # what the plug-in prints is not mixed in
    assert (run / "COMPLETE").exists()
    statuses, reasons = {}, {}
    for sample in read_samples(run):
        statuses.setdefault(sample["point"]["filter"], []).append(sample["status"])
        reasons.setdefault(sample["point"]["filter"], set()).add(sample["reason"])
    assert {name: len(all_) for name, all_ in statuses.items()} == {
        name: 6 for name in MISBEHAVING["sweeps"][0]["filters"]}
    assert {name: set(all_) for name, all_ in statuses.items()} == {
        "flawless": {"ok"}, "prints": {"ok"}, "blocked_bloom": {"ok"},
        "crashes_in_build": {"crashed"}, "crashes_in_lookups": {"crashed"}, "exits": {"crashed"},
        "never_returns": {"timed_out"}, "denies_a_key": {"wrong_answers"},
        "states_another_rate": {"wrong_answers"}, "batch_differs": {"wrong_answers"},
        "hangs_in_lookups": {"timed_out"}, "miscounts_long_spans": {"wrong_answers"},
        "states_no_rate": {"build_failed"}}
    assert any("signal 11" in reason for reason in reasons["crashes_in_build"])
    assert any("within 1 s" in reason for reason in reasons["never_returns"])
    manifest = json.loads((run / "manifest.json").read_text())
    (plugin,) = manifest["spec"]["plugins"]
    assert plugin["path"] == MISBEHAVING["plugins"][0]
    assert len(plugin["xxh3"]) == 16
    assert "flawless" in plugin["filters"]


@needs_plugins
def test_verify_says_which_rule_a_plug_in_breaks():
    good = filterbench("verify", "--plugin", PLUGINS / "example_plugin.so")
    assert (good.returncode, good.stdout) == (0, "word_bloom: keeps 14 of 14 rules\n")
    bad = filterbench("verify", "--plugin", PLUGINS / "misbehaving_plugin.so", "denies_a_key")
    assert bad.returncode == 3
    assert "A filter holds every key" in bad.stdout
    assert "1 of 1000 keys are denied" in bad.stdout


@needs_plugins
def test_plug_ins_are_listed_and_named_in_errors(tmp_path):
    example = PLUGINS / "example_plugin.so"
    listed = json.loads(filterbench("list", "--json", "--plugin", example).stdout)
    assert listed["filters"][-1]["name"] == "word_bloom"
    wrong = {**TINY, "plugins": [str(tmp_path / "missing.so")]}
    path = write_spec(tmp_path, json.dumps(wrong, indent=1))
    done = filterbench("plan", path)
    assert done.returncode == 2
    assert f"{path}:" in done.stderr and "plugins[0]" in done.stderr, done.stderr
    assert "missing.so" in done.stderr
    done = filterbench("list", "--plugin", tmp_path)
    assert done.returncode == 2 and "is not a file" in done.stderr


OVERFILL = {
    **TINY,
    "sweeps": [{"filters": {"blocked_bloom": {}, "cuckoo": {}, "xor": {}}, "keys": [1000],
                "modes": ["overfill", "lookup_batched"], "fills": [0.5, 1, 3],
                "negative_shares": [0.5]}],
}


def test_overfill_records_what_is_beyond_the_promise(tmp_path):
    done = filterbench("run", write_spec(tmp_path, OVERFILL), "--results", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    run = Path(done.stdout.strip())
    points = json.loads((run / "summary.json").read_text())["points"]
    held, rate = {}, {}
    for entry in points:
        point = entry["point"]
        key = point["filter"], point["fill"]
        if point["filter"] == "xor":
            assert entry["status"] == "skipped" and "takes no single keys" in entry["reason"]
        else:
            assert entry["status"] == "ok", entry
            assert len(entry["keys_held"]) == TINY["measure"]["rounds"]
            assert held.setdefault(key, entry["keys_held"]) == entry["keys_held"]
            rate[key] = entry["fpr"]["expected"]
    assert held["blocked_bloom", 3] == [3000, 3000]
    assert held["cuckoo", 1] == [1000, 1000]
    assert all(1000 <= keys < 1200 for keys in held["cuckoo", 3])  # the point where it is full
    assert rate["blocked_bloom", 0.5] < rate["blocked_bloom", 1] < rate["blocked_bloom", 3]
    header, *lines = (run / "summary.csv").read_text().splitlines()
    assert "fill" in header.split(",") and "keys_held" in header.split(",")


def test_insert_times_the_last_keys_before_a_load(tmp_path):
    keys, stretch = 100_000, 5_000
    spec = {**OVERFILL, "sweeps": [{**OVERFILL["sweeps"][0], "keys": keys,
                                    "modes": ["insert", "overfill"], "fills": [0.02, 1, 1.5]}]}
    done = filterbench("run", write_spec(tmp_path, spec), "--results", tmp_path / "results")
    assert done.returncode == 0, done.stderr
    run = Path(done.stdout.strip())
    timed = {}
    for line in (run / "samples.jsonl").read_text().splitlines():
        sample = json.loads(line)
        point, held = sample["point"], sample["filter"]
        name, fill = point["filter"], point.get("fill")
        if name == "xor":
            assert sample["status"] == "skipped" and "takes no single keys" in sample["reason"]
            continue
        given = round(fill * keys)
        assert held["keys_held"] == given or (name, fill) == ("cuckoo", 1.5), sample
        if point["mode"] == "overfill":
            operations = held["keys_held"]
        elif (name, fill) == ("cuckoo", 1.5):
            assert sample["status"] == "skipped" and not sample["ns_per_op"]
            assert f"it accepted {held['keys_held']} keys" in sample["reason"]
            continue
        else:
            operations = min(stretch, given)
        assert sample["status"] == "ok", sample
        assert sample["operations_per_pass"] == sample["iterations_per_pass"] * operations
        timed.setdefault((name, fill, sample["round"]), set()).add(held["filter_digest"])
    # Both modes are about the same filter.
    assert len(timed) == 6 * TINY["measure"]["rounds"]
    assert all(len(digests) == 1 for digests in timed.values())


@pytest.mark.parametrize("fills", [[0], [-1], [101], ["1"], [1, 1], []])
def test_fills_that_mean_nothing_are_refused(tmp_path, fills):
    spec = {**OVERFILL, "sweeps": [{**OVERFILL["sweeps"][0], "fills": fills}]}
    done = filterbench("plan", write_spec(tmp_path, spec))
    assert done.returncode == 2
    assert "tiny.json:1: sweeps[0].fills" in done.stderr


def test_doctor_exits_with_4_exactly_where_a_check_fails():
    done = filterbench("doctor", "--json")
    report = json.loads(done.stdout)
    states = [finding["state"] for finding in report["findings"]]
    assert done.returncode == (4 if "fail" in states else 0)
    assert report["fit"] == ("fail" not in states)
    assert len(states) == len({finding["check"] for finding in report["findings"]})
    assert all(finding["remedy"] for finding in report["findings"] if finding["state"] != "pass")
    assert report["activity"]["cpu"] in os.sched_getaffinity(0)


def test_doctor_counts_the_states_in_its_last_line():
    done = filterbench("doctor")
    *_, last = done.stdout.splitlines()
    assert ("unfit" in last) == (done.returncode == 4)
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_doctor_refuses_a_cpu_that_it_may_not_use():
    done = filterbench("doctor", "--cpu", 65535)
    assert done.returncode == 2
    assert "65535" in done.stderr and not done.stdout
