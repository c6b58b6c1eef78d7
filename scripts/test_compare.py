"""`filterbench compare` from run directories to its exit code. Synthetic runs with fixed seeds."""

import copy
import json
import math

import numpy
import pytest

from plots import load, testing
from scripts import compare

FILTERS = ("blocked_bloom", "cuckoo", "ribbon", "km_bloom")


def make_points(seed=1, filters=FILTERS):
    return testing.make_points(filters=filters, bits_per_key=(10,), keys=(10_000, 1_000_000),
                               shares=(0.5, 1.0), targets=("avx2",), failing=False, seed=seed,
                               modes=("build", "lookup_batched"))


def write(directory, *, seed=1, change=None, manifest=None, points=None, samples=None, **options):
    """A run `directory`; `change` may alter manifest, points and samples before they are written."""
    points = make_points() if points is None else points
    document = testing.make_manifest()
    document["run"] = directory.name
    document["spec"]["measure"] = {"processes": options.get("processes", 3), "rounds": 2}
    for path, value in (manifest or {}).items():
        *way, last = path.split(".")
        place = document
        for step in way:
            place = place.setdefault(step, {})
        place[last] = value
    if samples is None:
        samples = testing.repeat_samples(points, numpy.random.default_rng(seed), **options)
    points, samples = copy.deepcopy(points), copy.deepcopy(samples)
    if change:
        change(points, samples)
    return testing.write_run(directory, points, manifest=document, samples=samples)


@pytest.fixture
def base(tmp_path):
    return write(tmp_path / "base", processes=6)


def run(capsys, *arguments):
    """(exit code, stdout, stderr)"""
    try:
        code = compare.main([str(argument) for argument in arguments])
    except SystemExit as exit_:
        code = exit_.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def as_json(capsys, *arguments):
    code, out, _ = run(capsys, *arguments, "--json")
    document = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert document["exit_code"] == code
    return document


@pytest.mark.parametrize("seed", range(20))
def test_the_same_program_twice_raises_no_alarm(base, tmp_path, capsys, seed):
    shift = float(numpy.random.default_rng(100 + seed).normal(0, 0.1))
    again = write(tmp_path / "again", seed=100 + seed, processes=6, shift=shift)
    code, out, _ = run(capsys, base, again)
    assert code == 0, out
    assert "no regression found; 0 better" in out


def test_one_slower_filter_is_found_through_the_drift_of_the_machine(base, tmp_path, capsys):
    new = write(tmp_path / "new", seed=2, processes=6, shift=-0.15, slower={"cuckoo": 1.05})
    document = as_json(capsys, base, new)
    assert document["exit_code"] == 1
    worse = [finding for finding in document["findings"] if finding["verdict"] == "worse"]
    assert {finding["point"]["filter"] for finding in worse} == {"cuckoo"}
    assert {finding["quantity"] for finding in worse} == {"ns"}
    assert all(1.03 < finding["ratio"] < 1.07 and finding["raw_ratio"] < 1 for finding in worse)
    assert document["machine"]["ratio"] == pytest.approx(math.exp(-0.15), rel=0.05)
    code, out, _ = run(capsys, base, new)
    assert code == 1 and "REGRESSION" in out and "cuckoo" in out
    assert "as long in B" in out
    # The same seen from the other side is no regression.
    code, out, _ = run(capsys, new, base)
    assert code == 0 and "better" in out


def test_a_larger_minimum_effect_lets_it_pass(base, tmp_path, capsys):
    new = write(tmp_path / "new", seed=2, processes=6, slower={"cuckoo": 1.05})
    assert run(capsys, base, new, "--min-effect-ns", "10%")[0] == 0


def test_points_are_matched_by_parameters_not_by_order_or_name(base, tmp_path, capsys):
    """Case H1: an order, an id or the place of a key file is no parameter."""
    def shuffle(points, samples):
        points.reverse()
        renamed = {entry["point_id"]: f"{number:016x}" for number, entry in enumerate(points)}
        for entry in [*points, *samples]:
            entry["point_id"] = renamed[entry["point_id"]]
        for entry in points:
            if entry["floor"]:
                entry["floor"]["from"] = [entry["point_id"]]

    new = write(tmp_path / "new", seed=3, processes=6, change=shuffle)
    document = as_json(capsys, base, new)
    assert document["exit_code"] == 0
    assert document["only_in_base"] == document["only_in_new"] == []


def test_rows_of_one_side_are_listed_and_no_success(base, tmp_path, capsys):
    """Case H1: one row deleted, one added, one renamed."""
    def change(points, samples):
        gone = points.pop(0)
        samples[:] = [sample for sample in samples if sample["point_id"] != gone["point_id"]]
        for entry in [*points, *samples]:
            if entry["point"]["filter"] == "ribbon":
                entry["point"]["params"]["width"] = "32"

    new = write(tmp_path / "new", seed=3, processes=6, change=change)
    code, out, _ = run(capsys, base, new)
    assert code == 5
    assert "only in A: blocked_bloom" in out
    assert "only in A: ribbon {bits_per_key=10, fpr=0, width=64}" in out
    assert "only in B: ribbon {bits_per_key=10, fpr=0, width=32}" in out
    assert run(capsys, base, new, "--allow-missing")[0] == 0


def test_runs_without_a_common_point_are_no_crash(base, tmp_path, capsys):
    def change(points, samples):
        for entry in [*points, *samples]:
            entry["point"]["keys"] += 1

    code, out, _ = run(capsys, base, write(tmp_path / "new", seed=3, processes=6, change=change))
    assert code == 5 and "0 tests on 0 points" in out


def test_a_point_that_fails_now_is_a_regression(base, tmp_path, capsys):
    def change(points, samples):
        broken = next(entry for entry in points if entry["point"]["filter"] == "cuckoo")
        broken |= {"status": "crashed", "reason": "signal 11", "ns_per_op": None, "floor": None,
                   "fpr": None}
        for sample in samples:
            if sample["point_id"] == broken["point_id"]:
                sample |= {"status": "crashed", "reason": "signal 11", "ns_per_op": []}

    new = write(tmp_path / "new", seed=3, processes=6, change=change)
    code, out, _ = run(capsys, base, new)
    assert code == 1 and "ok in A, crashed in B: cuckoo" in out and "signal 11" in out
    code, out, _ = run(capsys, new, base)
    assert code == 0 and "crashed in A, ok in B: cuckoo" in out


def test_a_worse_rate_and_a_larger_table_are_regressions(base, tmp_path, capsys):
    def change(points, samples):
        for sample in samples:
            name = sample["point"]["filter"]
            if sample["filter"]:
                sample["seed"] += 1000
            if name == "cuckoo":
                sample["fpr"]["false_positives"] = int(sample["fpr"]["false_positives"] * 1.3)
            if name == "ribbon":
                sample["filter"]["bits_per_key"] *= 1.01

    new = write(tmp_path / "new", seed=3, processes=6, change=change)
    document = as_json(capsys, base, new)
    worse = {(finding["point"]["filter"], finding["quantity"]) for finding in document["findings"]
             if finding["verdict"] == "worse"}
    assert worse == {("cuckoo", "fpr"), ("ribbon", "bits_per_key")}


def test_one_process_decides_no_time_and_says_how_many_would(tmp_path, capsys):
    a = write(tmp_path / "a", seed=4, processes=1)
    b = write(tmp_path / "b", seed=5, processes=1, slower={"cuckoo": 2})
    code, out, _ = run(capsys, a, b)
    assert code == 0 and "too few repetitions" in out and "at least 2 are needed" in out
    assert run(capsys, a, b, "--strict")[0] == 5
    noisy = [write(tmp_path / name, seed=seed, processes=2, noise=0.05)
             for name, seed in (("c", 6), ("d", 7))]
    code, out, _ = run(capsys, *noisy)
    assert code == 0 and "processes a side would do" in out
    assert "a slow-down of" in out


def test_records_without_processes_come_from_one(tmp_path, capsys):
    def forget(points, samples):
        for sample in samples:
            del sample["process"]

    a, b = (write(tmp_path / name, seed=seed, change=forget, manifest={"spec.measure": {"rounds": 6}})
            for name, seed in (("a", 4), ("b", 5)))
    assert "1 process on a side" in run(capsys, a, b)[1]


@pytest.mark.parametrize("path, value", [
    ("machine", "other-cpu-12345678"),
    ("environment.cpu.brand", "Another CPU"),
    ("environment.cpu.microcode", "0x1"),
    ("provenance.compiler", "Clang 14.0.6"),
    ("provenance.flags", "-O2"),
    ("provenance.build_type", "Debug"),
    ("provenance.libraries", {"highway": "1.2.0"}),
    ("environment.pages.transparent_huge_pages", "always"),
    ("environment.pages.page_bytes", 65536),
    ("environment.frequency.governor", "powersave"),
    ("environment.allowed_cpus", [0]),
    ("environment.cgroup_cpu_quota", 0.5),
    ("spec.measure.stream_lookups", 4096),
])
def test_runs_that_are_not_comparable_are_refused(tmp_path, capsys, path, value):
    """Case H4: both known and different, and unknown on one side only."""
    known = {"environment.allowed_cpus": [0, 1], "spec.measure.stream_lookups": 0,
             "environment.frequency.governor": "performance"}
    known |= {path: {"machine": testing.MACHINE}.get(path, known.get(path, value))}
    if path not in ("machine", "environment.cpu.brand", "environment.pages.page_bytes",
                    "spec.measure.stream_lookups", "environment.allowed_cpus",
                    "environment.frequency.governor"):
        known.pop(path)
    else:
        known[path] = {"machine": testing.MACHINE, "environment.cpu.brand": "Example CPU",
                       "environment.pages.page_bytes": 4096}.get(path, known[path])
    a = write(tmp_path / "a", seed=4, manifest=known)
    b = write(tmp_path / "b", seed=5, manifest=known | {path: value})
    if path == "environment.cpu.microcode":
        b_manifest = json.loads((a / "manifest.json").read_text())
        b_manifest["environment"]["cpu"]["microcode"] = "0x2"
        (a / "manifest.json").write_text(json.dumps(b_manifest))
    code, out, _ = run(capsys, a, b)
    assert code == 6, out
    assert f"not comparable: {b}: " in out and path in out
    assert "REGRESSION" not in out and "no regression" not in out
    forced = run(capsys, a, b, "--force")
    assert forced[0] in (0, 1) and path in forced[1]
    assert as_json(capsys, a, b)["not_comparable"][0]["field"].endswith(
        path) or path == "provenance.libraries"


def test_another_commit_and_another_binary_are_the_point(base, tmp_path, capsys):
    new = write(tmp_path / "new", seed=3, processes=6, manifest={
        "provenance.git_commit": "f" * 40, "provenance.git_dirty": True,
        "provenance.binary_xxh3": "f" * 16, "environment.load_average": [3, 2, 1],
        "environment.kernel": "6.1.0"})
    code, out, _ = run(capsys, base, new)
    assert code == 0
    assert "note:" in out and "environment.kernel" in out


def test_streams_of_another_length_are_another_question(base, tmp_path, capsys):
    def change(points, samples):
        for sample in samples:
            sample["stream_lookups"] = 4096

    new = write(tmp_path / "new", seed=3, processes=6, change=change)
    code, out, _ = run(capsys, base, new)
    assert code == 6 and "stream_lookups" in out


def test_changed_bytes_are_told_and_no_error(base, tmp_path, capsys):
    def change(points, samples):
        for sample in samples:
            if sample["point"]["filter"] == "ribbon":
                sample["filter"]["filter_digest"] = "f" * 16

    new = write(tmp_path / "new", seed=3, processes=6, change=change)
    code, out, _ = run(capsys, base, new)
    assert code == 0
    (line,) = [line for line in out.splitlines() if line.startswith("bytes changed")]
    assert "ribbon" in line and "cuckoo" not in line
    assert "answers changed" not in out


def test_huge_pages_on_one_side_are_labelled(base, tmp_path, capsys):
    """Case F13: rows of other pages are labelled where they are compared."""
    def with_pages(bytes_):
        def change(points, samples):
            for sample in samples:
                sample["health"]["huge_page_bytes"] = bytes_
        return change

    a = write(tmp_path / "a", seed=3, processes=6, change=with_pages(1 << 21))
    b = write(tmp_path / "b", seed=4, processes=6, change=with_pages(0))
    assert "had huge pages on one side only" in run(capsys, a, b)[1]
    assert "huge pages on one side" not in run(capsys, a, base)[1]


def test_an_unfinished_run_is_no_success(base, tmp_path, capsys):
    new = write(tmp_path / "new", seed=3, processes=6)
    (new / "COMPLETE").unlink()
    code, out, err = run(capsys, base, new)
    assert code == 5 and f"incomplete: {new}" in out and "COMPLETE is missing" in err
    assert run(capsys, base, new, "--allow-missing")[0] == 0


def test_several_runs_a_side(tmp_path, capsys):
    sides = {name: [write(tmp_path / f"{name}{i}", seed=10 * i + (name == "b"), processes=2,
                          shift=0.05 * (-1) ** i, slower={"cuckoo": 1.08} if name == "b" else None)
                    for i in range(4)] for name in ("a", "b")}
    document = as_json(capsys, "--base", *sides["a"], "--new", *sides["b"])
    assert document["unit"] == "run" and document["exit_code"] == 1
    assert {finding["point"]["filter"] for finding in document["findings"]
            if finding["verdict"] == "worse"} == {"cuckoo"}


@pytest.mark.parametrize("arguments, problem", [
    ([], "two runs are compared"), (["{base}"], "two runs are compared"),
    (["{base}", "{base}"], "is the same run as"),
    (["{base}", "/no/such/run"], "/no/such/run: is not a run directory"),
    (["{base}", "--base", "{base}", "--new", "{base}"], "either two runs"),
    (["--base", "{base}"], "either two runs"),
    (["{base}", "x", "--min-effect-ns", "-1"], "is no percentage"),
    (["{base}", "x", "--min-effect-ns", "nan"], "is no percentage"),
    (["{base}", "x", "--frobnicate"], "--frobnicate"),
])
def test_wrong_command_lines_say_what_is_wrong(base, capsys, arguments, problem):
    code, out, err = run(capsys, *(argument.format(base=base) for argument in arguments))
    assert code == 2 and problem in err and out == ""


def test_a_damaged_sample_is_named_with_its_line(base, tmp_path, capsys):
    def change(points, samples):
        samples[2]["process"] = -1

    new = write(tmp_path / "new", seed=3, change=change)
    code, _, err = run(capsys, base, new)
    assert code == 2 and f"{new}/samples.jsonl:3: field process" in err


def test_all_shows_every_point_and_the_default_does_not(base, tmp_path, capsys):
    new = write(tmp_path / "new", seed=3, processes=6)
    few, all_ = run(capsys, base, new)[1], run(capsys, base, new, "--all")[1]
    assert all_.count("lookup_batched") >= len(make_points()) * 0.6 > few.count("lookup_batched")


def test_a_point_is_described_by_all_its_parameters(tmp_path):
    """Two points of one run never have one description."""
    points = testing.make_points(keys=(1000,), failing=False)
    for entry in points[:20]:
        twin = copy.deepcopy(entry)
        twin["point"]["pages"] = "4k"
        twin["point_id"] = f"{len(points):016x}"
        points.append(twin)
    loaded = load.load_run(testing.write_run(tmp_path, points))
    shown = [compare.describe(row) for row in compare.rows_of(loaded)]
    assert len(shown) == len(points)
    assert len(set(shown)) == len(shown)
