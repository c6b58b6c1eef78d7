"""`filterbench merge` on a real run that is cut into shards."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from plots import load
from scripts import merge

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("FILTERBENCH", ROOT / "build/release/filterbench"))
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")

SPEC = {
    "measure": {"processes": 2, "max_processes": 2, "rounds": 1, "passes": 2, "pass_seconds": 0,
                "stream_lookups": 4096, "fpr_queries": 10000},
    "sweeps": [{"filters": {"blocked_bloom": {"bits_per_key": [8, 10]}, "touch_lines": {}},
                "keys": [1000, 5000], "modes": ["build", "lookup_batched"],
                "negative_shares": [1], "targets": ["best"]}],
}
SHARDS = 3


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("whole")
    (directory / "spec.json").write_text(json.dumps(SPEC))
    done = subprocess.run([PROGRAM, "run", directory / "spec.json", "--results", directory],
                          capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode in (0, 5), done.stderr  # unstable is no matter here
    return pathlib.Path(done.stdout.strip())


def cut(whole, directory, index, count=SHARDS, change=None):
    """The shard `index` of `whole`: every count-th filter."""
    manifest = json.loads((whole / "manifest.json").read_text())
    samples = [json.loads(line) for line in (whole / "samples.jsonl").read_text().splitlines()]
    summary = json.loads((whole / "summary.json").read_text())
    cases = sorted({json.dumps([sample["point"][field] for field in ("filter", "params", "keys")],
                               sort_keys=True) for sample in samples})

    def mine(entry):
        case = json.dumps([entry["point"][field] for field in ("filter", "params", "keys")],
                          sort_keys=True)
        return cases.index(case) % count == index

    manifest["run"] = f"{whole.name}-shard-{index + 1}-of-{count}"
    manifest["shard"] = {"index": index, "count": count}
    samples = [sample | {"sequence": number}
               for number, sample in enumerate(filter(mine, samples))]
    summary["run"] = manifest["run"]
    summary["points"] = [entry for entry in summary["points"] if mine(entry)]
    if change:
        change(manifest, samples)
    summary["machine"] = manifest["machine"]
    run = directory / manifest["machine"] / manifest["run"]
    run.mkdir(parents=True)
    (run / "manifest.json").write_text(json.dumps(manifest))
    (run / "summary.json").write_text(json.dumps(summary))
    (run / "samples.jsonl").write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    shutil.copy(whole / "theory.json", run)
    (run / "COMPLETE").touch()
    return run


@pytest.fixture
def shards(whole, tmp_path):
    return [cut(whole, tmp_path / "shards", index) for index in range(SHARDS)]


@pytest.fixture(autouse=True)
def called_by(monkeypatch):
    monkeypatch.setenv("FILTERBENCH", str(PROGRAM))


def run(capsys, *arguments):
    try:
        code = merge.main([str(argument) for argument in arguments])
    except SystemExit as exit_:
        code = exit_.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def content(samples_file):
    """What was measured, whatever its order."""
    return sorted(json.dumps({name: value for name, value in json.loads(line).items()
                              if name != "sequence"}, sort_keys=True)
                  for line in samples_file.read_text().splitlines())


def test_shards_become_the_run_that_they_are_of(whole, shards, tmp_path, capsys):
    into = tmp_path / "merged"
    code, out, err = run(capsys, *reversed(shards), "--into", into)
    assert code == 0, err
    merged = pathlib.Path(out.strip())
    assert merged == into / whole.parent.name / whole.name
    assert (merged / "COMPLETE").exists()
    assert content(merged / "samples.jsonl") == content(whole / "samples.jsonl")
    lines = [json.loads(line) for line in (merged / "samples.jsonl").read_text().splitlines()]
    assert [sample["sequence"] for sample in lines] == list(range(len(lines)))
    assert [sample["time_utc"] for sample in lines] == sorted(s["time_utc"] for s in lines)
    # The summary is the program's own, floors between shards included.
    summaries = [json.loads((path / "summary.json").read_text()) for path in (whole, merged)]
    by_id = [{entry["point_id"]: entry for entry in summary["points"]} for summary in summaries]
    assert by_id[0] == by_id[1]
    assert (merged / "theory.json").read_bytes() == (whole / "theory.json").read_bytes()
    manifest = json.loads((merged / "manifest.json").read_text())
    assert "shard" not in manifest
    assert [entry["shard"]["index"] for entry in manifest["merged_from"]] == [0, 1, 2]
    assert load.load_run(merged).complete
    assert not [path for path in into.iterdir() if path.name.startswith(".")]


def test_machines_are_never_pooled(whole, shards, tmp_path, capsys):
    """Each machine gets a run of its own; one that is no shard is copied as it is."""
    other = tmp_path / "other" / "another-cpu-12345678" / whole.name
    shutil.copytree(whole, other)
    for name in ("manifest.json", "summary.json"):
        text = (other / name).read_text()
        (other / name).write_text(text.replace(whole.parent.name, "another-cpu-12345678"))
    into = tmp_path / "merged"
    code, out, err = run(capsys, *shards, other, "--into", into)
    assert code == 0, err
    assert len(out.split()) == 2
    copied = into / "another-cpu-12345678" / whole.name
    for name in ("manifest.json", "samples.jsonl", "summary.json", "summary.csv"):
        assert (copied / name).read_bytes() == (other / name).read_bytes()


def test_missing_shards_are_named(shards, tmp_path, capsys):
    into = tmp_path / "merged"
    code, out, err = run(capsys, shards[0], shards[2], "--into", into)
    assert code == 5 and out == "" and "shard 2 of 3 is missing" in err and not into.exists()
    code, out, err = run(capsys, shards[0], shards[2], "--into", into, "--allow-missing")
    assert code == 0 and "shard 2 of 3 is missing" in err
    merged = pathlib.Path(out.strip())
    assert not (merged / "COMPLETE").exists() and (merged / "summary.json").exists()


def test_an_unfinished_shard_is_named(shards, tmp_path, capsys):
    (shards[1] / "COMPLETE").unlink()
    code, _, err = run(capsys, *shards, "--into", tmp_path / "merged")
    assert code == 5 and f"{shards[1]}: is incomplete" in err


def test_a_sample_that_is_there_twice_is_refused_with_both_lines(whole, tmp_path, capsys):
    def also(manifest, samples):
        first = json.loads((whole / "samples.jsonl").read_text().splitlines()[0])
        if first["point_id"] in {sample["point_id"] for sample in samples}:
            samples.append(first | {"sequence": len(samples)})

    runs = [cut(whole, tmp_path / "shards", index, change=also) for index in range(SHARDS)]
    code, _, err = run(capsys, *runs, "--into", tmp_path / "merged")
    assert code == 2 and "samples.jsonl:" in err and "is also in" in err
    assert not list((tmp_path / "merged").iterdir())  # nothing half-written is left


def test_the_same_shard_twice_is_refused(whole, shards, tmp_path, capsys):
    code, _, err = run(capsys, *shards, shards[0], "--into", tmp_path / "merged")
    assert code == 2 and "is the same run as" in err

    def rename(manifest, samples):
        manifest["run"] = manifest["run"].replace("shard-1", "shard-9")

    again = cut(whole, tmp_path / "again", 0, change=rename)
    summary = json.loads((again / "summary.json").read_text())
    (again / "summary.json").write_text(json.dumps(summary | {"run": again.name}))
    code, _, err = run(capsys, *shards, again, "--into", tmp_path / "merged")
    assert code == 2 and "is also in" in err


@pytest.mark.parametrize("path, value, forced", [
    ("provenance.binary_xxh3", "f" * 16, 6), ("provenance.binary_xxh3", None, 6),
    ("spec_hash", "f" * 16, 6), ("shard.count", 4, 6),
    ("environment.pages.transparent_huge_pages", "changed", 0), ("provenance.flags", "-O0", 0),
])
def test_shards_that_do_not_belong_together_are_refused(whole, tmp_path, capsys, path, value, forced):
    def change(manifest, samples):
        *way, last = path.split(".")
        place = manifest
        for step in way:
            place = place[step]
        place[last] = value

    runs = [cut(whole, tmp_path / "shards", index, change=change if index == 1 else None)
            for index in range(SHARDS)]
    code, out, err = run(capsys, *runs, "--into", tmp_path / "merged")
    assert code == 6 and out == "" and str(runs[1]) in err and path.split(".")[0] in err
    assert not (tmp_path / "merged").exists()
    assert run(capsys, *runs, "--into", tmp_path / "merged", "--force")[0] == forced


def test_nothing_is_overwritten(shards, tmp_path, capsys):
    into = tmp_path / "merged"
    assert run(capsys, *shards, "--into", into)[0] == 0
    before = {path: path.stat().st_mtime_ns for path in into.rglob("*")}
    code, _, err = run(capsys, *shards, "--into", into)
    assert code == 2 and "exists already" in err
    assert {path: path.stat().st_mtime_ns for path in into.rglob("*")} == before


def test_a_summary_that_fails_leaves_nothing(shards, tmp_path, capsys, monkeypatch):
    into = tmp_path / "merged"
    for program, problem in ((str(tmp_path / "none"), "cannot be run"), ("/bin/false", "failed")):
        monkeypatch.setenv("FILTERBENCH", program)
        code, _, err = run(capsys, *shards, "--into", into)
        assert code == 5 and problem in err
        assert not list(into.iterdir())


def test_what_cannot_be_written_is_named(shards, capsys):
    code, _, err = run(capsys, *shards, "--into", "/proc/merged")
    assert code == 5 and "/proc" in err


def test_damage_is_named_with_its_line(shards, tmp_path, capsys):
    file = shards[1] / "samples.jsonl"
    file.write_text(file.read_text().replace('"round": 1', '"round": -1', 1))
    code, _, err = run(capsys, *shards, "--into", tmp_path / "merged")
    assert code == 2 and f"{file}:" in err and "round" in err


def test_a_machine_that_is_no_name_is_refused(whole, tmp_path, capsys):
    def change(manifest, samples):
        manifest["machine"] = "../elsewhere"

    bad = cut(whole, tmp_path / "deep" / "shards", 0, count=1, change=change)
    code, _, err = run(capsys, bad, "--into", tmp_path / "merged")
    assert code == 2 and "machine" in err
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("arguments, problem", [
    ([], "--into"), (["x"], "--into"), (["--into", "d"], "RUN"),
    (["/no/such/run", "--into", "d"], "/no/such/run")])
def test_wrong_command_lines_say_what_is_wrong(arguments, problem, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, *arguments)
    assert code == 2 and problem in err
    assert not list(tmp_path.iterdir())


def test_summarise_writes_what_a_kill_prevented(whole, tmp_path):
    """The subcommand by itself."""
    run_ = tmp_path / whole.parent.name / whole.name
    shutil.copytree(whole, run_)
    refused = subprocess.run([PROGRAM, "summarise", run_], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "complete" in refused.stderr
    for name in ("COMPLETE", "summary.json", "summary.csv", "theory.json"):
        (run_ / name).unlink()
    done = subprocess.run([PROGRAM, "summarise", run_], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (run_ / "summary.json").read_bytes() == (whole / "summary.json").read_bytes()
    assert not (run_ / "COMPLETE").exists()
    subprocess.run([PROGRAM, "summarise", run_, "--complete"], check=True, capture_output=True)
    assert (run_ / "COMPLETE").exists()
