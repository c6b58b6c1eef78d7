"""keep, on synthetic runs with one fault planted at a time."""

import json
import lzma
import os
import pathlib
import subprocess

import pytest

from plots import load, testing
from scripts import keep

ROOT = pathlib.Path(__file__).resolve().parent.parent


def manifest_of(**provenance):
    manifest = testing.make_manifest()
    manifest["spec"]["name"] = "paper"
    manifest["provenance"] |= {"git_dirty": False, "build_type": "Release"} | provenance
    return manifest


def write(path, entries=None, manifest=None, **options):
    testing.write_run(path, entries or testing.tiny_points(), manifest=manifest or manifest_of(),
                      **options)
    edit(path / "summary.json", lambda summary: summary.update(spec="paper"))
    return path


def edit(file, change):
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document, indent=1))


@pytest.fixture
def made(tmp_path):
    return write(tmp_path / "elsewhere" / testing.RUN_NAME)


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results"


@pytest.fixture
def run(capsys, results):
    def call(*arguments):
        capsys.readouterr()
        try:
            code = keep.main([*(str(argument) for argument in arguments), "--results",
                              str(results)])
        except SystemExit as exit_request:
            code = exit_request.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err
    return call


def snapshot(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def refused(run, results, code, *says, arguments):
    """The call is refused and nothing is written, not even a half."""
    before = snapshot(results.parent)
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    for text in says:
        assert text in err
    assert snapshot(results.parent) == before


def test_a_run_is_kept_as_it_is_but_for_its_form(made, results, run):
    before = snapshot(made)
    code, out, err = run(made)
    kept = results / testing.MACHINE / testing.RUN_NAME
    assert code == 0 and out == f"{kept}\n" and "git add" in err
    assert snapshot(made) == before
    assert sorted(os.listdir(kept)) == [".gitignore", "COMPLETE", "manifest.json",
                                        "samples.jsonl.xz", "summary.json", "theory.json"]
    assert os.listdir(kept.parent) == [testing.RUN_NAME]
    assert lzma.decompress((kept / "samples.jsonl.xz").read_bytes()) == before["samples.jsonl"]
    one, other = load.load_run(made), load.load_run(kept)
    assert one.points.equals(other.points) and one.samples.equals(other.samples)
    assert one.theory.equals(other.theory) and other.complete and other.notes == []
    assert keep.check(kept, host="") is not None


def test_the_same_run_gives_the_same_bytes(made):
    assert keep.kept_files(made) == keep.kept_files(made)


def test_a_kept_run_is_not_overwritten(made, results, run):
    assert run(made)[0] == 0
    refused(run, results, 2, "is there already", arguments=[made])


def test_a_run_in_its_place_is_kept_there_and_nothing_of_it_is_lost(results, run):
    path = write(results / testing.MACHINE / testing.RUN_NAME)
    (path / "summary.csv").write_text("a\n")
    (path / "figures").mkdir()
    (path / "figures" / "one.png").write_bytes(b"png")
    before = snapshot(path)
    assert run(path)[0] == 0
    after = snapshot(path)
    assert lzma.decompress(after.pop("samples.jsonl.xz")) == before.pop("samples.jsonl")
    after.pop(".gitignore")
    assert after == before
    assert run(path)[0] == 0  # once more changes nothing
    after = snapshot(path)
    assert {"samples.jsonl", "summary.json.xz"}.isdisjoint(after)


def test_keeping_in_place_goes_on_after_a_kill(results, run, monkeypatch):
    """Killed at each write or removal in turn; the next call ends what was begun."""
    class Kill(BaseException):
        pass

    for steps in range(12):
        path = write(results / testing.MACHINE / testing.RUN_NAME)
        samples = (path / "samples.jsonl").read_bytes()
        left = [steps]

        def step(original):
            def call(*arguments, **options):
                if left[0] == 0:
                    raise Kill
                left[0] -= 1
                return original(*arguments, **options)
            return call
        with monkeypatch.context() as patch:
            for owner, name in ((os, "replace"), (os, "fsync"), (pathlib.Path, "unlink")):
                patch.setattr(owner, name, step(getattr(owner, name)))
            try:
                code = run(path)[0]
            except Kill:
                code = None
        data = snapshot(path)
        assert (data.get("samples.jsonl") == samples
                or lzma.decompress(data["samples.jsonl.xz"]) == samples)
        assert run(path)[0] == 0
        assert keep.load.read(path / "samples.jsonl") == samples
        assert not (path / "samples.jsonl").exists() and (path / ".gitignore").exists()
        for name in os.listdir(path):
            (path / name).unlink()
        if code == 0:
            return
    pytest.fail("never came to its end")


def test_a_failed_copy_leaves_nothing(made, results, run, monkeypatch):
    results.mkdir()

    def fail(handle):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(os, "fsync", fail)
    code, out, err = run(made)
    assert code == 5 and out == "" and "No space left on device" in err
    assert list((results / testing.MACHINE).iterdir()) == []


def test_both_forms_that_differ_are_refused(made, results, run):
    (made / "samples.jsonl.xz").write_bytes(keep.packed(b"something else\n"))
    refused(run, results, 2, "holds something else", arguments=[made])


@pytest.mark.parametrize("damage", [
    lambda data: data[:-1], lambda data: data[:20], lambda data: data + b"x",
    lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], lambda data: b"",
    lambda data: b"not xz at all"])
def test_a_damaged_archive_is_named(made, results, run, damage):
    run(made)
    kept = results / testing.MACHINE / testing.RUN_NAME
    file = kept / "samples.jsonl.xz"
    file.write_bytes(damage(file.read_bytes()))
    refused(run, results, 2, str(file), "damaged", arguments=[kept])
    with pytest.raises(load.RunError, match="damaged"):
        load.load_run(kept)


@pytest.mark.parametrize("provenance,says", [
    ({"git_dirty": True}, "git_dirty is true"), ({"git_dirty": None}, "which commit"),
    ({"git_commit": None}, "which commit"), ({"build_type": "Debug"}, "build_type is 'Debug'"),
    ({"build_type": None}, "build_type is None")])
def test_a_program_that_nobody_can_build_again_is_refused(tmp_path, results, run, provenance, says):
    path = write(tmp_path / "made", manifest=manifest_of(**provenance))
    refused(run, results, 2, says, arguments=[path])


def test_another_spec_needs_a_word(made, results, run):
    edit(made / "summary.json", lambda summary: summary.update(spec="quick"))
    refused(run, results, 2, "its spec is 'quick'", "--any-spec", arguments=[made])
    assert run(made, "--any-spec")[0] == 0


def test_an_incomplete_run_is_refused(made, results, run):
    (made / "COMPLETE").unlink()
    refused(run, results, 5, "COMPLETE is missing", arguments=[made])


def test_a_torn_last_line_is_refused(made, results, run):
    with open(made / "samples.jsonl", "a") as file:
        file.write('{"schema"')
    refused(run, results, 5, "cut off", arguments=[made])


def test_points_of_the_spec_that_were_not_measured_are_named(made, results, run):
    point = testing.make_point("cuckoo", {}, 77, "build", None, "scalar")["point"]
    edit(made / "manifest.json", lambda manifest: manifest["spec"].update(points=[point]))
    refused(run, results, 5, "1 of 1 points", '"keys": 77', arguments=[made])


def test_points_without_samples_are_named(made, results, run):
    lines = (made / "samples.jsonl").read_text().splitlines(keepends=True)
    (made / "samples.jsonl").write_text("".join(lines[1:]))
    refused(run, results, 5, "points without samples", json.loads(lines[0])["point_id"],
            arguments=[made])


def test_wrong_answers_are_refused(tmp_path, results, run):
    entries = testing.tiny_points()
    entries[0] |= {"status": "wrong_answers", "reason": "denies key 7", "ns_per_op": None,
                   "floor": None, "floor_reason": "no time", "fpr": None}
    refused(run, results, 3, "1 points with wrong answers", "denies key 7",
            arguments=[write(tmp_path / "made", entries)])


def test_other_failures_are_kept_and_told(tmp_path, run):
    entries = testing.tiny_points()
    entries[0] |= {"status": "out_of_memory", "reason": "needs 8 GiB", "ns_per_op": None,
                   "floor": None, "floor_reason": "no time", "fpr": None}
    code, _, err = run(write(tmp_path / "made", entries))
    assert code == 0 and "1 points are out_of_memory: needs 8 GiB" in err


@pytest.mark.parametrize("name,field", [("manifest.json", "seed"), ("summary.json", "spec"),
                                        ("theory.json", "curves")])
def test_a_document_against_its_schema_is_refused(made, results, run, name, field):
    edit(made / name, lambda document: document.update({"more": 1} if name != "manifest.json"
                                                       else {field: -1}))
    refused(run, results, 2, name, arguments=[made])


def test_a_sample_against_its_schema_is_refused_with_its_line(made, results, run):
    lines = (made / "samples.jsonl").read_text().splitlines(keepends=True)
    sample = json.loads(lines[2])
    sample["health"] = {"cpu": -1}
    lines[2] = json.dumps(sample) + "\n"
    (made / "samples.jsonl").write_text("".join(lines))
    refused(run, results, 2, "samples.jsonl:3", "$.health", arguments=[made])


@pytest.mark.parametrize("text", [
    "/home/alice/mine.so", "-O3 -fdebug-prefix-map=/home/alice/x=.", "-I/home/alice/include",
    "cannot open '/mnt/keys': No such file", "~/keys.txt", "~alice/keys.txt", "C:\\Users\\alice",
    "a:/root/x", "(/work/x)", "/home", "file:/root/a"])
def test_paths_are_not_published(tmp_path, results, run, text):
    refused(run, results, 2, "manifest.json:", "would be published",
            arguments=[write(tmp_path / "made", manifest=manifest_of(flags=text))])


@pytest.mark.parametrize("text", [
    "-O3 -DNDEBUG", "cannot open /sys/devices/system/cpu/cpufreq/boost: No such file",
    "/usr/share/dict/words", "./mine.so", "workloads/keys.txt", "usercopy/swapgs barriers",
    "n/a", "1/2", "x / y", "https://example.org/a/b", "-O3 -I/usr/include", "FPR/bits",
    "50%/50%", "(a)/(b)"])
def test_what_says_nothing_of_a_place_is_let_through(tmp_path, run, text):
    path = write(tmp_path / "made", manifest=manifest_of(flags=text))
    assert keep.private_texts(path, host="") == []


def test_a_path_in_a_sample_or_summary_is_named_with_its_line(made):
    key_set = {"kind": "file", "path": "/home/alice/keys", "digest": "0"}
    write(made, [testing.make_point("blocked_bloom", {}, 1000, "build", None, "scalar", ns=1.0,
                                    bits=10.0, build_ns=1.0, key_set=key_set)])
    (one,) = keep.private_texts(made, host="")
    assert "/home/alice/keys" in one and "summary.json:" in one and "1 more line" in one


def test_the_name_of_the_machine_is_not_published(tmp_path):
    path = write(tmp_path / "made", manifest=manifest_of(compiler="GCC 12 on bench7.example.org"))
    (one, other) = keep.private_texts(path, host="bench7.example.org")
    assert "bench7" in one and "manifest.json:" in one and "example.org" in other
    assert keep.private_texts(path, host="bench") == []
    assert keep.private_texts(path, host="localhost") == []


def test_a_run_that_is_too_large_is_refused_with_the_sizes(made, results, run, monkeypatch):
    monkeypatch.setattr(keep, "MOST_BYTES", 2000)
    refused(run, results, 2, "more than the 2000", "samples.jsonl.xz", "summary.json",
            arguments=[made])


def test_large_documents_are_compressed_too(made, results, run, monkeypatch):
    monkeypatch.setattr(keep, "PLAIN_BYTES", 3000)
    assert run(made)[0] == 0
    kept = results / testing.MACHINE / testing.RUN_NAME
    assert {"summary.json.xz", "samples.jsonl.xz"} <= set(os.listdir(kept))
    assert load.load_run(kept).points.equals(load.load_run(made).points)


@pytest.mark.parametrize("field", ["run", "machine"])
@pytest.mark.parametrize("value", ["..", "a/b", "-x", "a b"])
def test_a_name_cannot_lead_out_of_the_results(made, results, run, field, value):
    for name in ("manifest.json", "summary.json"):
        edit(made / name, lambda document: document.update({field: value}))
    before = snapshot(results.parent)
    assert run(made)[0] == 2 and snapshot(results.parent) == before


def test_findings_of_the_doctor_are_printed(made, run):
    edit(made / "manifest.json", lambda manifest: manifest.update(doctor=[
        {"check": "governor", "state": "warn", "found": "powersave"},
        {"check": "clock", "state": "pass", "found": "tsc"}]))
    text = "\n".join(keep.remarks(load.load_run(made)))
    assert "warn: governor: powersave" in text and "clock" not in text


def test_git_takes_kept_runs_and_no_others(made, results, run, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".gitignore").write_bytes((ROOT / ".gitignore").read_bytes())
    own = write(tree / "results" / testing.MACHINE / "20261201T000000Z-0123456789ab-89abcdef")
    keep.write_copy(keep.kept_files(made), tree / "results" / testing.MACHINE / testing.RUN_NAME)
    kept = tree / "results" / testing.MACHINE / testing.RUN_NAME
    (kept / "summary.csv").touch()
    (kept / ".samples.jsonl.xz-abc").touch()
    (tree / "results" / "schema").mkdir()
    (tree / "results" / "schema" / "new.json").touch()

    def git(*arguments):
        return subprocess.run(["git", "-C", tree, *arguments], check=True, text=True,
                              capture_output=True, env={"HOME": str(tmp_path),
                                                        "PATH": os.environ["PATH"]}).stdout
    git("init", "-q")
    git("add", ".")
    assert own.exists()
    assert sorted(git("ls-files").splitlines()) == [
        ".gitignore", *sorted(f"results/{testing.MACHINE}/{testing.RUN_NAME}/{name}" for name in (
            ".gitignore", "COMPLETE", "manifest.json", "samples.jsonl.xz", "summary.json",
            "theory.json")), "results/schema/new.json"]
