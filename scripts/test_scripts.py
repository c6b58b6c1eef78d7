"""The shell scripts, each in a tree of its own with stand-ins for the programs that it calls."""

import pathlib
import shutil
import subprocess

import pytest

SCRIPTS = pathlib.Path(__file__).resolve().parent
ROOT = SCRIPTS.parent
SHELL = [SCRIPTS / name for name in ("setup", "build", "bench", "fuzz", "test", "sysroot",
                                     "report-bundle", "usage.sh")]
SHELL.append(ROOT / ".ci" / "run")


def _program(path, body):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/bash\n" + body)
    path.chmod(0o755)


@pytest.fixture
def tree(tmp_path):
    """A checkout that holds the scripts, at a path with a blank."""
    root = tmp_path / "check out"
    (root / "scripts").mkdir(parents=True)
    for name in ("setup", "build", "bench", "fuzz", "test", "sysroot", "report-bundle", "usage.sh",
                 "count_tests.py"):
        shutil.copy(SCRIPTS / name, root / "scripts" / name)
    return root


@pytest.fixture
def run(tree, tmp_path):
    """Runs a script of the tree with only the programs of `commands` and of tmp_path/bin."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("awk", "bash", "cat", "dirname", "env", "grep", "mkdir", "nproc", "readlink",
                 "realpath", "rm", "sed", "sort", "tail"):
        (programs / name).symlink_to(shutil.which(name))
    _program(programs / "sleep", "")

    def call(script, *arguments, cwd=None):
        return subprocess.run(
            [tree / "scripts" / script, *arguments], cwd=cwd or tmp_path, text=True,
            env={"PATH": str(programs), "LOG": str(tmp_path / "log"), "TREE": str(tree)},
            stdin=subprocess.DEVNULL, capture_output=True, check=False)

    call.programs = programs
    call.log = tmp_path / "log"
    return call


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
@pytest.mark.parametrize("path", SHELL, ids=lambda path: path.name)
def test_shellcheck_has_no_complaint(path):
    check = subprocess.run(["shellcheck", path], capture_output=True, text=True,
                           check=False)
    assert check.stdout == "" and check.returncode == 0


@pytest.mark.parametrize("name", ["setup", "build", "bench", "fuzz", "test", "sysroot",
                                  "report-bundle"])
def test_help_succeeds_and_an_unknown_option_does_not(run, name):
    shown = run(name, "--help")
    assert shown.returncode == 0 and f"scripts/{name}" in shown.stdout
    assert "#" not in shown.stdout and "pipefail" not in shown.stdout
    refused = run(name, "--nonsense")
    assert refused.returncode == 2 and "--nonsense" in refused.stderr and refused.stdout == ""


def test_every_package_has_a_reason_and_stands_once():
    lines = (SCRIPTS / "packages.txt").read_text().splitlines()
    entries = [line.split("#", 1) for line in lines if line and not line.startswith("#")]
    assert all(len(e) == 2 and len(e[0].split()) == 1 and e[1].strip() for e in entries)
    names = [e[0].strip() for e in entries]
    assert len(names) == len(set(names)) > 10


def _machine(run, tree, installed, user=0, sudo=False):
    """A Debian with these packages, given as `STATUS ARCHITECTURE NAME`. The file `log` gets every
    call of apt-get; `sudo` turns the caller into root."""
    (tree / "scripts" / "packages.txt").write_text("# list\nalpha  # a\nbeta++ # b\n\ngamma # c\n")
    lines = "\n".join(installed)
    _program(run.programs / "dpkg", "echo amd64\n")
    _program(run.programs / "dpkg-query", f"cat <<'END'\n{lines}\nEND\n[[ -z '{lines}' ]] && exit 1"
                                          "\nexit 0\n")
    _program(run.programs / "apt-get", 'echo "$(id -u) $*" >>"$LOG"\n')
    _program(run.programs / "id", f'echo "${{AS_ROOT-{user}}}"\n')
    if sudo:
        _program(run.programs / "sudo", 'AS_ROOT=0 exec "$@"\n')


ALL = ("installed amd64 alpha", "installed all beta++", "installed amd64 gamma")


def test_setup_leaves_apt_alone_when_nothing_is_missing(run, tree):
    _machine(run, tree, ALL, user=1000)
    assert run("setup").returncode == 0
    assert not run.log.exists()


@pytest.mark.parametrize("user,sudo", [(0, False), (1000, True)])
def test_setup_installs_what_is_missing_as_root(run, tree, user, sudo):
    _machine(run, tree, ["installed amd64 alpha", "config-files amd64 beta++",
                         "installed arm64 gamma"], user, sudo)
    assert run("setup", "delta").returncode == 0
    update, install = run.log.read_text().splitlines()
    assert update.startswith("0 ") and update.endswith(" update")
    assert install.startswith("0 ")
    assert install.endswith(" install --no-install-recommends beta++ delta gamma")


def test_setup_installs_all_where_none_is_known(run, tree):
    _machine(run, tree, [])
    assert run("setup").returncode == 0
    assert run.log.read_text().splitlines()[-1].endswith(" alpha beta++ gamma")


def test_setup_asks_for_fresh_lists_again_then_tries_with_those_there_are(run, tree):
    _machine(run, tree, ALL[:2])
    _program(run.programs / "apt-get", 'echo "$*" >>"$LOG"; [[ $* != *update ]]\n')
    assert run("setup").returncode == 0
    calls = [line.split()[-1] for line in run.log.read_text().splitlines()]
    assert calls == ["update", "update", "update", "gamma"]


def test_setup_fails_when_apt_does(run, tree):
    _machine(run, tree, ALL[:2])
    _program(run.programs / "apt-get", "[[ $* == *update ]] || exit 100\n")
    assert run("setup").returncode == 100


def test_setup_says_what_to_do_without_root_and_sudo(run, tree):
    _machine(run, tree, ALL[:1], user=1000)
    end = run("setup")
    assert end.returncode == 1 and not run.log.exists()
    assert "apt-get install --no-install-recommends beta++ gamma" in end.stderr
    assert "sudo" in end.stderr


def test_setup_goes_on_where_there_is_no_apt(run, tree):
    (tree / "scripts" / "packages.txt").write_text("alpha # a\n")
    end = run("setup")
    assert end.returncode == 0 and "packages.txt" in end.stderr


def test_build_passes_the_preset_on_and_asks_for_clang_only_where_it_is_used(run, tree):
    _program(tree / "scripts" / "setup", 'echo "setup $*" >>"$LOG"\n')
    _program(run.programs / "cmake", 'echo "cmake $* in $PWD" >>"$LOG"\n')
    assert run("build").returncode == 0 and run("build", "release-clang").returncode == 0
    assert run.log.read_text().splitlines() == [
        "setup ", f"cmake --preset release in {tree}", f"cmake --build --preset release --target all in {tree}",
        "setup clang", f"cmake --preset release-clang in {tree}",
        f"cmake --build --preset release-clang --target all in {tree}"]


@pytest.mark.parametrize("missing", ["setup", "sysroot"])
def test_build_tells_packages_that_cannot_be_had_from_code_that_does_not_compile(run, tree,
                                                                                 missing):
    for name in ("setup", "sysroot"):
        _program(tree / "scripts" / name,
                 f'echo "{name} $*" >>"$LOG"\nexit {1 if name == missing else 0}\n')
    _program(run.programs / "cmake", 'echo "cmake $*" >>"$LOG"; exit 1\n')
    assert run("build", "aarch64", "one", "two").returncode == 77
    assert run.log.read_text().splitlines()[0] == "setup g++-aarch64-linux-gnu qemu-user"
    assert "cmake" not in run.log.read_text()
    _program(tree / "scripts" / missing, "")
    assert run("build", "aarch64", "one", "two").returncode == 1


def test_build_takes_several_targets(run, tree):
    _program(tree / "scripts" / "setup", "")
    _program(run.programs / "cmake", 'echo "cmake $*" >>"$LOG"\n')
    assert run("build", "release", "one", "two").returncode == 0
    assert run.log.read_text().splitlines()[-1].endswith("--target one two")


def test_build_makes_the_page_script_where_npm_is_and_can_do_without(run, tree):
    _program(tree / "scripts" / "setup", "")
    _program(run.programs / "cmake", "")
    _program(tree / "scripts" / "report-bundle", 'echo bundle >>"$LOG"; exit 5\n')
    assert run("build").returncode == 0 and not run.log.exists()
    for name in ("node", "npm"):
        _program(run.programs / name, "")
    end = run("build")
    assert end.returncode == 0 and "scripts/report-bundle tries again" in end.stderr
    assert run.log.read_text() == "bundle\n"
    assert run("build", "debug").returncode == 0 and run.log.read_text() == "bundle\n"


def test_report_bundle_installs_npm_only_where_it_is_missing(run, tree):
    package = tree / "plots" / "report"
    package.mkdir(parents=True)
    (package / "bundle.py").write_text("print('made')\n")
    _program(tree / "scripts" / "setup", 'echo "setup $*" >>"$LOG"\n')
    assert run("report-bundle").stdout == "made\n"
    assert run.log.read_text() == "setup nodejs npm\n"
    for name in ("node", "npm"):
        _program(run.programs / name, "")
    assert run("report-bundle").stdout == "made\n"
    assert run.log.read_text() == "setup nodejs npm\n"


def test_sysroot_asks_nobody_when_its_list_of_packages_is_there(run, tree):
    (tree / "scripts" / "packages.txt").write_text("libone-dev # a\nprogram # b\ntwo-dev # c\n")
    sysroot = tree / "build" / "sysroot" / "arm64"
    sysroot.mkdir(parents=True)
    (sysroot / "packages").write_text("libone-dev two-dev\n")
    _program(run.programs / "apt-get", 'echo "$*" >>"$LOG"; exit 100\n')
    assert run("sysroot").returncode == 0 and not run.log.exists()


def _sweep(tree, code, leaves_summary=True):
    _program(tree / "scripts" / "build", 'echo "build $*" >>"$LOG"\n')
    summary = 'mkdir -p results/m/r; echo "{}" >results/m/r/summary.json\n' * leaves_summary
    _program(tree / "build" / "release" / "filterbench",
             f'echo "filterbench $*" >>"$LOG"\n{summary}echo checked\necho results/m/r\n'
             f"exit {code}\n")
    (tree / "plots").mkdir()
    (tree / "plots" / "draw.py").write_text(
        "import pathlib, sys\npathlib.Path(sys.argv[1], 'figures').mkdir()\n")
    (tree / "plots" / "headline.py").write_text("import sys\nprint('table of', sys.argv[1])\n")
    (tree / "plots" / "kernels.py").write_text("import sys\nprint('kernels of', sys.argv[1])\n")


@pytest.mark.parametrize("arguments,passed_on", [
    ([], "quick"), (["smoke"], "smoke"), (["smoke", "--seed", "7 8"], "smoke --seed 7 8")])
def test_bench_runs_the_sweep_and_ends_with_results_figures_and_table(run, tree, arguments,
                                                                      passed_on):
    _sweep(tree, 0)
    end = run("bench", *arguments)
    assert end.returncode == 0
    assert run.log.read_text().splitlines() == ["build release filterbench", f"filterbench run {passed_on}"]
    assert end.stdout.splitlines()[-4:] == [
        f"results: {tree}/results/m/r", f"figures: {tree}/results/m/r/figures", "",
        "table of results/m/r"]


def test_bench_finds_a_spec_file_from_where_it_was_called(run, tree, tmp_path):
    _sweep(tree, 0)
    (tmp_path / "mine.json").write_text("{}")
    assert run("bench", "mine.json", cwd=tmp_path).returncode == 0
    assert run.log.read_text().splitlines()[-1] == f"filterbench run {tmp_path}/mine.json"


@pytest.mark.parametrize("spec", ["kernels", "workloads/specs/kernels.json"])
def test_bench_ends_the_sweep_of_kernels_with_their_table(run, tree, spec):
    _sweep(tree, 0)
    (tree / "workloads" / "specs").mkdir(parents=True)
    (tree / "workloads" / "specs" / "kernels.json").touch()
    end = run("bench", spec, cwd=tree)
    assert end.returncode == 0
    assert end.stdout.splitlines()[-1] == "kernels of results/m/r"


@pytest.mark.parametrize("code", [3, 5])
def test_bench_draws_a_sweep_that_found_something_and_keeps_its_exit_code(run, tree, code):
    _sweep(tree, code)
    end = run("bench")
    assert end.returncode == code and "table of" in end.stdout


@pytest.mark.parametrize("code,leaves_summary,expected", [
    (130, True, 130), (2, False, 2), (0, False, 1)])
def test_bench_draws_nothing_of_an_interrupted_or_empty_sweep(run, tree, code, leaves_summary,
                                                              expected):
    _sweep(tree, code, leaves_summary)
    end = run("bench")
    assert end.returncode == expected
    assert "table of" not in end.stdout and "nothing to draw" in end.stderr


@pytest.mark.parametrize("module", ["draw", "headline"])
def test_bench_tells_when_drawing_failed(run, tree, module):
    _sweep(tree, 0)
    with open(tree / "plots" / f"{module}.py", "a", encoding="utf-8") as file:
        file.write("sys.exit(5)\n")
    end = run("bench")
    assert end.returncode == 5 and "results: " in end.stdout


def test_a_failed_build_is_counted_as_a_failure(run, tree):
    _program(tree / "scripts" / "build", "exit 1\n")
    end = run("test", "--preset", "debug")
    assert end.returncode == 1
    assert end.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def _tests(run, tree, ctest_case, ctest_code):
    _program(tree / "scripts" / "build", "")
    _program(run.programs / "ctest",
             'echo "ctest $*" >>"$LOG"\n'
             f"""echo '<testsuite>{ctest_case}</testsuite>' >"${{@: -1}}"\nexit {ctest_code}\n""")
    (tree / "test_sample.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    (tree / "scripts" / "test_matrix.py").write_text("def test_minutes(): pass\n")


def test_the_count_runs_over_ctest_and_pytest(run, tree):
    _tests(run, tree, '<testcase name="A" status="run"/>', 0)
    end = run("test", "--preset", "asan")
    assert end.stdout.splitlines()[-1] == "3 passed, 0 failed, 0 skipped"
    assert end.returncode == 0
    assert run.log.read_text().startswith("ctest --preset asan -j ")


def test_what_takes_minutes_goes_by_turns(run, tree):
    _tests(run, tree, '<testcase name="A" status="run"/>', 0)
    end = run("test")
    (told,) = [line for line in end.stderr.splitlines() if "at this turn" in line]
    parts = told.split(": ")[2].split(" (")[0].split()
    assert len(parts) == 2 and parts[0] in ("cross", "fuzz") and parts[1] == "mutate"
    end = run("test", "--all")
    assert "cross fuzz fuzz_all sanitize mutate" in end.stderr
    assert end.stdout.splitlines()[-1] == "4 passed, 0 failed, 0 skipped"


def test_what_only_some_tests_need_is_asked_for_at_once_and_then_one_by_one(run, tree):
    _tests(run, tree, '<testcase name="A" status="run"/>', 0)
    _program(tree / "scripts" / "setup", 'echo "setup $*" >>"$LOG"; exit 100\n')
    _program(run.programs / "sbatch", "")
    end = run("test")
    assert end.returncode == 0
    asked = [line for line in run.log.read_text().splitlines() if line.startswith("setup")]
    browser = "chromium chromium-driver python3-selenium"
    assert asked[:3] == [f"setup nodejs npm {browser}", "setup nodejs npm", f"setup {browser}"]
    assert f"not installed: {browser}" in end.stderr
    assert "no script for the report's page" in end.stderr


def test_a_failure_of_ctest_does_not_keep_pytest_from_running(run, tree):
    _tests(run, tree, '<testcase name="A" status="fail"><failure/></testcase>', 8)
    end = run("test")
    assert end.stdout.splitlines()[-2:] == ["failed: ctest: A", "3 passed, 1 failed, 0 skipped"]
    assert end.returncode == 1


def test_a_report_of_an_earlier_run_is_not_counted(run, tree):
    _tests(run, tree, "", 0)
    reports = tree / "build" / "release" / "reports"
    reports.mkdir(parents=True)
    (reports / "ctest.xml").write_text('<testsuite><testcase name="A" status="run"/></testsuite>')
    _program(run.programs / "ctest", "exit 8\n")
    end = run("test")
    assert end.stdout.splitlines()[-1] == "3 passed, 1 failed, 0 skipped"
    assert end.returncode == 1


def _fuzzers(tree, **bodies):
    """A tree with these fuzzers, beside each other in filters/; the body is that of the program."""
    _program(tree / "scripts" / "build", 'echo "build $*" >>"$LOG"\n')
    (tree / "filters").mkdir()
    for name, body in bodies.items():
        (tree / "filters" / f"{name}_fuzzer.cc").touch()
        _program(tree / "build" / "asan-clang" / f"{name}_fuzzer",
                 f'echo "{name} $*" >>"$LOG"\n{body}')


RUNS = "echo stat::number_of_executed_units: {}\n"


def test_fuzz_runs_all_fuzzers_on_their_corpora_and_adds_up(run, tree):
    _fuzzers(tree, wire=RUNS.format(40), keys=RUNS.format(2))
    end = run("fuzz", "--seconds", "7")
    assert end.returncode == 0
    assert end.stdout.splitlines() == ["keys: 2 executions, finding: none",
                                       "wire: 40 executions, finding: none",
                                       "2 fuzzers, 42 executions, 0 findings"]
    build, *calls = run.log.read_text().splitlines()
    assert build == "build asan-clang keys_fuzzer wire_fuzzer"
    for name, call in zip(["keys", "wire"], sorted(calls), strict=True):
        words = call.split()
        assert words[0] == name and "-max_total_time=7" in words
        # New inputs go to the first folder, which is no part of the tree's sources.
        assert words[-3:] == [f"build/fuzz/{name}/corpus", f"build/fuzz/{name}/found",
                              f"filters/testdata/fuzz/{name}"]


def test_fuzz_reports_a_finding_with_the_input_that_shows_it(run, tree):
    _fuzzers(tree, wire=RUNS.format(5) + "echo Test unit written to here/crash-1 >&2; exit 77\n",
             keys=RUNS.format(3), spec="exit 1\n")
    end = run("fuzz", "wire", "keys", "spec", "wire")
    assert end.returncode == 1
    assert end.stdout.splitlines() == [
        "keys: 3 executions, finding: none",
        "spec: 0 executions, finding: exit code 1, see build/fuzz/spec/log",
        "wire: 5 executions, finding: here/crash-1",
        "3 fuzzers, 8 executions, 2 findings"]
    assert "crash-1" in end.stderr


def test_fuzz_refuses_what_it_does_not_know_before_it_builds(run, tree):
    _fuzzers(tree, wire="")
    end = run("fuzz", "wires")
    assert end.returncode == 2 and "there are: wire" in end.stderr
    for wrong in (["--seconds", "0"], ["--seconds"], ["--preset"]):
        assert run("fuzz", *wrong).returncode == 2
    assert not run.log.exists()


def test_fuzz_that_cannot_build_fails(run, tree):
    _fuzzers(tree, wire="")
    _program(tree / "scripts" / "build", "exit 1\n")
    end = run("fuzz")
    assert end.returncode == 1 and "nothing ran" in end.stderr and not run.log.exists()
