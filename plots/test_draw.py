import pathlib
import re
import shutil
import subprocess
import sys
import zlib

import pytest

from plots import draw, testing

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_NAMES = [module.NAME for module in draw.FIGURES]


def _process(*arguments, env=None):
    """A process of its own, with the environment `env` and nothing else."""
    return subprocess.run([sys.executable, "-m", "plots.draw", *map(str, arguments)], cwd=_ROOT,
                          env=env or {}, text=True, capture_output=True)


@pytest.fixture
def run_draw(capsys):
    """As _process, but in this one: quicker."""
    def run(*arguments):
        capsys.readouterr()
        try:
            code = draw.main([str(argument) for argument in arguments])
        except SystemExit as exit_request:
            code = exit_request.code
        captured = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, captured.out, captured.err)
    return run


def _snapshot(path):
    return {p.relative_to(path): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_all_figures_without_display_and_environment(full_run_path, tmp_path):
    """As `env -i` would run it; what comes out on stderr is for the reader, not from libraries."""
    result = _process(full_run_path, "--out", tmp_path / "figures")
    assert result.returncode == 0
    assert result.stderr == ""
    assert result.stdout.split() == [str(tmp_path / "figures" / f"{name}.{ending}")
                                     for name in _NAMES for ending in ("png", "pdf")]
    assert sorted(p.name for p in (tmp_path / "figures").iterdir()) == sorted(
        f"{name}.{ending}" for name in _NAMES for ending in ("png", "pdf"))
    for name in _NAMES:
        png = (tmp_path / "figures" / f"{name}.png").read_bytes()
        assert png.startswith(b"\x89PNG") and testing.RUN_NAME.encode() in png
        assert b"Example CPU 9000" in png
        assert int.from_bytes(png[16:20], "big") >= 150 * 7
        pdf = (tmp_path / "figures" / f"{name}.pdf").read_bytes()
        assert pdf.startswith(b"%PDF") and testing.RUN_NAME.encode() in pdf
        assert b"/FontFile2" in pdf and b"/Type3" not in pdf
        assert set(re.findall(rb"/BaseFont /(?:[A-Z]{6}\+)?([A-Za-z-]+)", pdf)) <= {
            b"DejaVuSans", b"DejaVuSans-Bold", b"DejaVuSans-Oblique"}


def test_the_default_folder_is_in_the_run_and_nothing_else_changes(tiny_run_path, run_draw):
    before = _snapshot(tiny_run_path.parent)
    assert run_draw(tiny_run_path, "--format", "png").returncode == 0
    after = _snapshot(tiny_run_path.parent)
    new = set(after) - set(before)
    assert {p.parts[-2] for p in new} == {"figures"} and len(new) == len(_NAMES)
    assert all(after[p] == content for p, content in before.items())


def test_the_same_run_gives_the_same_bytes(tiny_run_path, tmp_path, run_draw):
    for out in ("a", "b"):
        result = run_draw(tiny_run_path, "--out", tmp_path / out, "--only", "build_vs_keys")
        assert result.returncode == 0
    assert _snapshot(tmp_path / "a") == _snapshot(tmp_path / "b")


@pytest.mark.parametrize("home", ["missing", "read_only", "a_file"])
def test_a_home_that_cannot_be_written_is_no_matter(tiny_run_path, tmp_path, home):
    path = tmp_path / home
    if home == "read_only":
        path.mkdir(mode=0o555)
    elif home == "a_file":
        path.touch()
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    result = _process(tiny_run_path, "--only", "build_vs_keys", "--format", "png",
                  env={"HOME": str(path), "TMPDIR": str(temporary)})
    assert result.returncode == 0
    assert "matplotlib" not in result.stderr.lower() and "warning" not in result.stderr.lower()
    assert list(temporary.iterdir()) == []
    assert home != "missing" or not path.exists()


def test_names_in_any_script(tmp_path):
    names = ("\u8fc7\u6ee4\u5668", "_hidden", "cost$per$key", "x" * 200, "tab\tline\nbreak")
    run = testing.write_run(tmp_path / "run", testing.make_points(
        filters=names, bits_per_key=(8, 12, 16), keys=(1000, 10_000), failing=False,
        modes=("build", "lookup_batched", "latency"), targets=("scalar", "avx2")))
    for env in ({}, {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}):
        result = _process(run, "--format", "png", "--only", "lookup_vs_size", env=env)
        assert (result.returncode, result.stderr) == (0, "")


def test_two_jobs_at_once(tiny_run_path):
    command = [sys.executable, "-m", "plots.draw", str(tiny_run_path), "--format", "png"]
    jobs = [subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [job.wait() for job in jobs] == [0, 0]
    assert sorted(p.name for p in (tiny_run_path / "figures").iterdir()) == sorted(
        f"{name}.png" for name in _NAMES)


def _without_builds(path):
    return testing.write_run(path, testing.make_points(
        filters=("blocked_bloom",), bits_per_key=(10,), keys=(1000,), failing=False,
        modes=("lookup_batched",)))


def test_a_lack_is_said_and_fails_only_what_was_asked_for_by_name(tmp_path, run_draw):
    run = _without_builds(tmp_path / "run")
    result = run_draw(run, "--format", "png")
    assert result.returncode == 0
    assert "build_vs_keys: no point in mode build (not drawn); to measure it: run a spec" in (
        result.stderr)
    assert not (run / "figures" / "build_vs_keys.png").exists()
    result = run_draw(run, "--format", "png", "--only", "build_vs_keys", "--only", "fpr_vs_bits")
    assert result.returncode == draw.EXIT_INCOMPLETE
    assert result.stdout.split() == [str(run / "figures" / "fpr_vs_bits.png")]


def test_no_figure_at_all_is_a_failure(tmp_path, run_draw):
    run = testing.write_run(tmp_path / "run", [])
    result = run_draw(run)
    assert result.returncode == draw.EXIT_INCOMPLETE and result.stdout == ""
    assert all(name in result.stderr for name in _NAMES)


@pytest.mark.parametrize("arguments,says", [
    (["--only", "fpr_vs_bit"], "did you mean fpr_vs_bits?"),
    (["--format", "gif"], "valid: png, pdf"),
    (["--format", ","], "names no format"),
])
def test_wrong_names_get_the_valid_ones(tiny_run_path, arguments, says, run_draw):
    result = run_draw(tiny_run_path, *arguments)
    assert result.returncode == draw.EXIT_USAGE and says in result.stderr
    assert not (tiny_run_path / "figures").exists()


def test_a_run_that_cannot_be_read_is_named(tmp_path, run_draw):
    result = run_draw(tmp_path / "nowhere")
    assert result.returncode == draw.EXIT_USAGE
    assert result.stderr == f"plots.draw: {tmp_path}/nowhere: is not a run directory\n"


def test_an_incomplete_run_is_drawn_and_said(tiny_run_path, run_draw):
    (tiny_run_path / "COMPLETE").unlink()
    result = run_draw(tiny_run_path, "--only", "build_vs_keys", "--format", "png")
    assert result.returncode == 0 and "COMPLETE is missing" in result.stderr


def test_links_do_not_lead_out_of_the_folder(tiny_run_path, tmp_path, run_draw):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tiny_run_path / "figures").symlink_to(outside)
    result = run_draw(tiny_run_path)
    assert result.returncode == draw.EXIT_INCOMPLETE and "--out" in result.stderr
    assert list(outside.iterdir()) == []
    (tiny_run_path / "figures").unlink()
    (tiny_run_path / "figures").mkdir()
    victim = outside / "victim"
    victim.write_text("untouched")
    (tiny_run_path / "figures" / "build_vs_keys.png").symlink_to(victim)
    assert run_draw(tiny_run_path, "--only", "build_vs_keys", "--format", "png").returncode == 0
    assert victim.read_text() == "untouched"
    assert not (tiny_run_path / "figures" / "build_vs_keys.png").is_symlink()


def test_several_runs_with_one_folder_get_one_each(tiny_run_path, tmp_path, run_draw):
    other = tmp_path / "other"
    shutil.copytree(tiny_run_path, other)
    for name in ("manifest.json", "summary.json"):
        text = (other / name).read_text().replace(testing.RUN_NAME, "second")
        (other / name).write_text(text)
    result = run_draw(tiny_run_path, other, "--out", tmp_path / "out", "--only", "build_vs_keys",
                  "--format", "png")
    assert result.returncode == 0
    assert result.stdout.split() == [str(tmp_path / "out" / name / "build_vs_keys.png")
                                     for name in (testing.RUN_NAME, "second")]


def test_a_run_name_cannot_lead_out_of_the_folder(tiny_run_path, tmp_path, run_draw):
    other = tmp_path / "other"
    shutil.copytree(tiny_run_path, other)
    for name in ("manifest.json", "summary.json"):
        text = (other / name).read_text().replace(testing.RUN_NAME, "../../escaped")
        (other / name).write_text(text)
    result = run_draw(other, "--out", tmp_path / "out", "--only", "build_vs_keys")
    assert result.returncode == draw.EXIT_USAGE and "field run" in result.stderr


def test_a_write_error_leaves_no_half_file(tiny_run_path, monkeypatch, capsys):
    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device", "figures/build_vs_keys.png")
    monkeypatch.setattr(draw.os, "replace", full)
    assert draw.main([str(tiny_run_path), "--only", "build_vs_keys"]) == draw.EXIT_INCOMPLETE
    assert "No space left on device" in capsys.readouterr().err
    assert list((tiny_run_path / "figures").iterdir()) == []


def test_the_pdf_holds_text_and_not_outlines(tiny_run_path, run_draw):
    assert run_draw(tiny_run_path, "--only", "build_vs_keys", "--format", "pdf").returncode == 0
    pdf = (tiny_run_path / "figures" / "build_vs_keys.pdf").read_bytes()
    streams = [zlib.decompress(s) for s in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.S)
               if s[:1] == b"\x78"]
    assert any(b" Tf" in s and (b" Tj" in s or b" TJ" in s) for s in streams)


def test_help_names_every_figure(run_draw):
    result = run_draw("--help")
    assert result.returncode == 0
    for module in draw.FIGURES:
        assert module.NAME in result.stdout and module.NEEDS in result.stdout
