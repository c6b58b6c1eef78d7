import pathlib
import re
import shutil
import subprocess
import sys
import zlib

import pytest

from plots import draw, load, pictures, style, tex, testing

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_NAMES = [module.NAME for module in draw.FIGURES]
_BESIDE = ("caption.md", "caption.tex")


def _drawable(*paths):
    """Figures that one of the runs has the data for: double_hashing is about filters that are built
    many times, which most synthetic runs have not."""
    runs = load.load_runs(paths)
    return [module.NAME for module in draw.FIGURES
            if not all(any(gap.fatal for gap in module.gaps(run)) for run in runs)]


def _said(result):
    """What is said besides how rough figure 10 is where filters were built once."""
    return [line for line in result.stderr.splitlines()
            if not ("double_hashing: some filters were built 1 times only" in line
                    and "(drawn without it)" in line)]


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


def _written(result):
    """The pictures and tables that a call names, without captions."""
    return [pathlib.Path(path) for path in result.stdout.split() if ".caption." not in path]


def _snapshot(path):
    return {p.relative_to(path): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_all_figures_without_display_and_environment(full_run_path, tmp_path):
    """As `env -i` would run it; what comes out on stderr is for the reader, not from libraries."""
    result = _process(full_run_path, "--out", tmp_path / "figures")
    assert result.returncode == 0
    assert _said(result) == []
    assert result.stdout.split() == [str(tmp_path / "figures" / f"{name}.{ending}")
                                     for name in _NAMES for ending in ("png", "pdf", *_BESIDE)]
    assert sorted(p.name for p in (tmp_path / "figures").iterdir()) == sorted(
        f"{name}.{ending}" for name in _NAMES for ending in ("png", "pdf", *_BESIDE))
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
    assert run_draw(tiny_run_path, "--format", "png", "--allow-missing").returncode == 0
    after = _snapshot(tiny_run_path.parent)
    new = set(after) - set(before)
    assert {p.parts[-2] for p in new} == {"figures"}
    assert len(new) == 3 * len(_drawable(tiny_run_path))
    assert all(after[p] == content for p, content in before.items())


def test_the_same_run_gives_the_same_bytes(tiny_run_path, tmp_path, run_draw):
    formats = "png,pdf,svg" + (",pgf" if tex.lacking() is None else "")
    for out in ("a", "b"):
        result = run_draw(tiny_run_path, "--out", tmp_path / out, "--only", "build_vs_keys,machine",
                          "--format", formats)
        assert result.returncode == 0
    assert _snapshot(tmp_path / "a") == _snapshot(tmp_path / "b")


# Case I2: a home that is missing, read-only or a file.
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


# Case I2: two jobs on one folder.
def test_two_jobs_at_once(tiny_run_path):
    command = [sys.executable, "-m", "plots.draw", str(tiny_run_path), "--format", "png",
               "--allow-missing"]
    jobs = [subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [job.wait() for job in jobs] == [0, 0]
    assert sorted(p.name for p in (tiny_run_path / "figures").iterdir()) == sorted(
        f"{name}.{ending}" for name in _drawable(tiny_run_path) for ending in ("png", *_BESIDE))


def _without_builds(path):
    return testing.write_run(path, testing.make_points(
        filters=("blocked_bloom",), bits_per_key=(10,), keys=(1000,), failing=False,
        modes=("lookup_batched",)))


def test_a_lack_is_said_and_is_a_failure_unless_allowed(tmp_path, run_draw):
    run = _without_builds(tmp_path / "run")
    result = run_draw(run, "--format", "png")
    assert result.returncode == draw.EXIT_INCOMPLETE
    assert "build_vs_keys: no point in mode build (not drawn); to measure it: run a spec" in (
        result.stderr)
    assert all(line.startswith("filterbench figures: ") for line in result.stderr.splitlines())
    assert not (run / "figures" / "build_vs_keys.png").exists()
    assert (run / "figures" / "fpr_vs_bits.png").exists()
    assert run_draw(run, "--format", "png", "--allow-missing").returncode == 0
    result = run_draw(run, "--format", "png", "--only", "build_vs_keys", "--only", "fpr_vs_bits")
    assert result.returncode == draw.EXIT_INCOMPLETE
    assert _written(result) == [run / "figures" / "fpr_vs_bits.png"]
    assert run_draw(run, "--format", "png", "--only", "fpr_vs_bits").returncode == 0


def test_no_figure_at_all_is_a_failure(tmp_path, run_draw):
    run = testing.write_run(tmp_path / "run", [])
    for option in ([], ["--allow-missing"]):
        result = run_draw(run, *option)
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
    assert result.stderr == f"filterbench figures: {tmp_path}/nowhere: is not a run directory\n"


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


def _named(path, run, machine=testing.MACHINE, **options):
    """A run of that name and machine."""
    points = testing.make_points(**{"failing": False, "keys": (1000, 10_000)} | options)
    return testing.write_run(path / run, points,
                             manifest=testing.make_manifest(run=run, machine=machine))


def test_of_several_runs_each_figure_is_of_the_one_that_shows_most_of_it(tmp_path, run_draw):
    """The first run has more filters, the second more builds and is newer, the third is newest and
    has least."""
    wide = _named(tmp_path, "a-wide", modes=("lookup_batched",), bits_per_key=(8, 16))
    builds = _named(tmp_path, "b-builds", filters=("cuckoo", "ribbon"), modes=("build",),
                    bits_per_key=(8, 10, 12), keys=(1000, 2000, 4000))
    least = _named(tmp_path, "c-least", filters=("cuckoo",), modes=("build", "lookup_batched"),
                   bits_per_key=(8,), keys=(1000,))
    result = run_draw(least, wide, builds, "--out", tmp_path / "out", "--format", "png",
                      "--allow-missing")
    assert result.returncode == 0
    shown = {p.name.split(".")[0]: re.search(r"run ([^,\s]+)", p.read_text())[1]
             for p in (tmp_path / "out").glob("*.caption.tex")}
    of_builds = ("build_vs_keys", "construction")
    assert shown == {name: "b-builds" if name in of_builds else "a-wide" for name in shown}
    assert set(shown) == set(_drawable(least, wide, builds))


def test_of_equal_runs_the_newest_is_drawn(tmp_path, run_draw):
    runs = [_named(tmp_path, name, filters=("cuckoo",)) for name in ("2026b", "2026a")]
    assert run_draw(*runs, "--out", tmp_path / "out", "--only", "build_vs_keys").returncode == 0
    assert b"2026b" in (tmp_path / "out" / "build_vs_keys.png").read_bytes()


def test_several_runs_need_a_folder(tmp_path, run_draw):
    runs = [_named(tmp_path, name, filters=("cuckoo",)) for name in ("a", "b")]
    result = run_draw(*runs)
    assert result.returncode == draw.EXIT_USAGE and "--out" in result.stderr
    assert not (runs[0] / "figures").exists()


def test_what_no_run_has_is_said_once(tmp_path, run_draw):
    runs = [_named(tmp_path, name, modes=("lookup_batched",)) for name in ("a", "b")]
    result = run_draw(*runs, "--out", tmp_path / "out", "--only", "build_vs_keys")
    assert result.returncode == draw.EXIT_INCOMPLETE
    assert result.stderr.count("no point in mode build (not drawn)") == 1


def test_each_machine_has_its_folder_and_figures_across_them_lie_above(tmp_path, run_draw):
    runs = [_named(tmp_path, name, machine=f"cpu-{name}", bits_per_key=(8, 10)) for name in "ab"]
    result = run_draw(*runs, "--out", tmp_path / "out", "--format", "png", "--allow-missing")
    assert result.returncode == 0
    out = tmp_path / "out"
    assert _written(result) == [out / f"{module.NAME}.png" for module in draw.ACROSS] + [
        out / f"cpu-{name}" / f"{figure}.png" for name, run in zip("ab", runs)
        for figure in _drawable(run)]


def test_a_machine_name_cannot_lead_out_of_the_folder(tmp_path, run_draw):
    runs = [_named(tmp_path, "a"), _named(tmp_path, "b", machine="../escaped")]
    result = run_draw(*runs, "--out", tmp_path / "out")
    assert result.returncode == draw.EXIT_USAGE and "no name of a directory" in result.stderr


def test_the_list_needs_no_run(run_draw):
    result = run_draw("--list")
    assert result.returncode == 0
    for entry in (*draw.FIGURES, *draw.ACROSS, *draw.tables.TABLES):
        assert f"  {entry.NAME} " in result.stdout and entry.NEEDS in result.stdout
    assert run_draw().returncode == draw.EXIT_USAGE


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


_needs_latex = pytest.mark.skipif(tex.lacking() is not None, reason="LaTeX is not installed: "
                                  f"{tex.PACKAGES}")


@pytest.mark.parametrize("width", ["column", "text"])
def test_a_pdf_is_as_wide_as_it_is_told(tiny_run_path, tmp_path, run_draw, width):
    assert run_draw(tiny_run_path, "--only", "build_vs_keys", "--theme", "paper", "--width", width,
                    "--format", "pdf", "--out", tmp_path / "out").returncode == 0
    pdf = (tmp_path / "out" / "build_vs_keys.pdf").read_bytes()
    x0, _, x1, _ = map(float, re.search(rb"/MediaBox \[ ([\d. ]+) \]", pdf)[1].split())
    assert x1 - x0 == pytest.approx(72 * {"column": 3.3, "text": 7.0}[width], abs=0.01)
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf
    assert set(re.findall(rb"/BaseFont /(?:[A-Z]{6}\+)?([A-Za-z-]+)", pdf)) == {b"DejaVuSerif"}


def test_every_file_says_what_it_is_of(tiny_run_path, tmp_path, run_draw):
    out = tmp_path / "out"
    formats = "png,pdf,svg" + (",pgf" if tex.lacking() is None else "")
    assert run_draw(tiny_run_path, "--only", "build_vs_keys", "--format", formats, "--theme",
                    "slides", "--out", out).returncode == 0
    for file in out.iterdir():
        content = file.read_bytes()
        for part in (testing.RUN_NAME, testing.MACHINE, "0123456789ab", "Example CPU 9000"):
            assert part.encode() in content, (file.name, part)
    svg = (out / "build_vs_keys.svg").read_text()
    assert "<dc:title>Building against the number of keys" in svg and "dc:subject" in svg
    assert "<image" not in svg
    pdf = (out / "build_vs_keys.pdf").read_bytes()
    assert re.search(rb"/Title|/Subject|/Keywords", pdf)


def test_without_latex_pgf_is_refused_with_a_remedy_and_the_rest_is_written(
        tiny_run_path, tmp_path, run_draw, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run_draw(tiny_run_path, "--only", "build_vs_keys", "--theme", "paper")
    assert result.returncode == draw.EXIT_INCOMPLETE
    assert "apt-get install" in result.stderr and "texlive-latex-base" in result.stderr
    assert [path.suffix for path in _written(result)] == [".pdf", ".png"]


@_needs_latex
def test_latex_takes_figures_captions_and_tables_as_they_are(full_run_path, tmp_path):
    """All of them in one document with no packages but those that are asked for."""
    out = tmp_path / "out"
    result = _process(full_run_path, "--theme", "paper", "--format", "pgf", "--out", out)
    assert (result.returncode, _said(result)) == (0, [])
    for name in _NAMES:
        text = (out / f"{name}.pgf").read_text(encoding="ascii")
        assert "\\pgfpathrectangle{\\pgfpointorigin}{\\pgfqpoint{3.300000in}" in text
        assert "\\pgfimage" not in text and "\\includegraphics" not in text
    _compile(out, [*(rf"\begin{{figure}}\fbox{{\input{{{name}.pgf}}}}\input{{{name}.caption}}"
                     rf"\end{{figure}}\clearpage" for name in _NAMES),
                   r"\input{headline}",
                   *(rf"\begin{{table}}\input{{{name}}}\end{{table}}"
                     for name in ("filters", "machine"))])
    for name in ("headline", "filters", "machine"):
        assert testing.RUN_NAME in (out / f"{name}.md").read_text()


@_needs_latex
def test_names_in_any_script_compile(tmp_path):
    names = ("\u8fc7\u6ee4\u5668", "_hidden", "cost$per$key", "50%_{of}~\\it#&^x<|>\"", "x" * 200)
    run = testing.write_run(tmp_path / "run", testing.make_points(
        filters=names, bits_per_key=(8, 12, 16), keys=(1000, 1_000_000), failing=False,
        modes=("build", "lookup_batched"), targets=("scalar", "avx2")),
        manifest=testing.make_manifest(cpu_brand="CPU 100 % & #1 \u03b1_{x} \\relax"))
    out = tmp_path / "out"
    result = _process(run, "--theme", "paper", "--format", "pgf", "--out", out, "--only",
                      "build_vs_keys,filters,headline,machine")
    assert result.returncode == 0, result.stderr
    _compile(out, [r"\begin{figure}\input{build_vs_keys.pgf}\input{build_vs_keys.caption}",
                   r"\end{figure}", r"\input{headline}", r"\begin{table}\input{filters}",
                   r"\input{machine}\end{table}"])


def _compile(folder, lines):
    (folder / "paper.tex").write_text("\n".join([
        r"\documentclass{article}", r"\usepackage{pgf,booktabs,longtable}", r"\begin{document}",
        *lines, r"\end{document}"]))
    result = subprocess.run(
        [tex.PROGRAM, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper"],
        cwd=folder, text=True, capture_output=True, errors="replace")
    assert result.returncode == 0, result.stdout[-3000:]
    assert (folder / "paper.pdf").stat().st_size > 10_000


@_needs_latex
def test_pgf_has_no_overlaps_in_the_fonts_of_latex(full_run):
    for module in draw.FIGURES[:2]:
        with style.on(style.make_page("paper", "column", for_tex=True)):
            assert pictures.faults(module.draw(full_run)) == []


def test_a_folder_that_is_read_only_as_home_and_as_place_to_be_is_no_matter(
        tiny_run_path, tmp_path):
    """Root may write anywhere, so the folders are not there at all for it."""
    out, gone = tmp_path / "out", tmp_path / "gone"
    program = ("import os, sys\nos.mkdir(sys.argv[1])\nos.chdir(sys.argv[1])\n"
               "os.rmdir(sys.argv[1])\nsys.path.insert(0, sys.argv[2])\n"
               "from plots import draw\nsys.exit(draw.main(sys.argv[3:]))")
    result = subprocess.run(
        [sys.executable, "-c", program, gone, _ROOT, tiny_run_path, "--only", "build_vs_keys",
         "--out", out, "--theme", "paper"], text=True, capture_output=True, cwd=tmp_path,
        env={"HOME": str(gone)})
    assert result.returncode == (0 if tex.lacking() is None else draw.EXIT_INCOMPLETE), (
        result.stderr)
    assert (out / "build_vs_keys.pdf").exists()
