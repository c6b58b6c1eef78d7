import subprocess
import sys

import pytest

from scripts import count_tests

# What `ctest --output-junit` of CMake 3.25 writes for each way in which a test can end.
CTEST = {
    "passed": '<testcase name="A.B" classname="A.B" time="0.1" status="run"/>',
    "failed": '<testcase name="A.B" classname="A.B" status="fail"><failure message="Timeout"/>'
              '<system-out>...</system-out></testcase>',
    "skipped": '<testcase name="A.B" classname="A.B" status="notrun">'
               '<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>',
    "disabled": '<testcase name="A.B" classname="A.B" status="disabled">'
                '<skipped message="Disabled"/></testcase>',
    "no program": '<testcase name="A_NOT_BUILT" classname="A_NOT_BUILT" status="notrun">'
                  '<skipped message="Unable to find executable"/></testcase>',
    "unknown": '<testcase name="A.B" classname="A.B" status="exploded"/>',
}
# And pytest 7.2.
PYTEST = {
    "passed": '<testcase classname="scripts.test_x" name="test_y" time="0.1"/>',
    "failed": '<testcase classname="scripts.test_x" name="test_y"><failure message="assert 0">'
              '</failure></testcase>',
    "error": '<testcase classname="scripts.test_x" name="test_y"><error message="no fixture"/>'
             '</testcase>',
    "skipped": '<testcase classname="scripts.test_x" name="test_y"><skipped type="pytest.skip" '
               'message="no\nnetwork"></skipped></testcase>',
}


def _report(path, *cases):
    path.write_text('<?xml version="1.0"?><testsuites><testsuite>' + "".join(cases) +
                    "</testsuite></testsuites>")
    return str(path)


@pytest.mark.parametrize("case,outcome", [
    (CTEST["passed"], "passed"), (CTEST["failed"], "failed"), (CTEST["skipped"], "skipped"),
    (CTEST["disabled"], "skipped"), (CTEST["no program"], "failed"), (CTEST["unknown"], "failed"),
    (PYTEST["passed"], "passed"), (PYTEST["failed"], "failed"), (PYTEST["error"], "failed"),
    (PYTEST["skipped"], "skipped"),
])
def test_each_end_of_a_test_is_counted_as_what_it_is(tmp_path, case, outcome):
    cases = count_tests.read_suite("suite", 0, _report(tmp_path / "r.xml", case))
    assert [c.outcome for c in cases] == [outcome]


def test_totals_run_over_all_suites_and_names_stand_above_the_count(tmp_path, capsys):
    first = _report(tmp_path / "ctest.xml", CTEST["passed"], CTEST["passed"], CTEST["no program"],
                    CTEST["disabled"])
    second = _report(tmp_path / "pytest.xml", PYTEST["passed"], PYTEST["skipped"])
    code = count_tests.main(["--suite", "ctest", "8", first, "--suite", "pytest", "0", second])
    assert code == 1
    assert capsys.readouterr().out.splitlines() == [
        "skipped: ctest: A.B (disabled)",
        "skipped: pytest: scripts.test_x.test_y (no network)",
        "failed: ctest: A_NOT_BUILT (Unable to find executable)",
        "3 passed, 1 failed, 2 skipped",
    ]


def test_success_needs_no_failure_only(tmp_path, capsys):
    report = _report(tmp_path / "r.xml", CTEST["passed"], CTEST["skipped"])
    assert count_tests.main(["--suite", "ctest", "0", report]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 0 failed, 1 skipped"


@pytest.mark.parametrize("text", [None, "", "<testsuite>", "<testsuite/>"])
def test_a_report_without_tests_fails(tmp_path, capsys, text):
    report = tmp_path / "r.xml"
    if text is not None:
        report.write_text(text)
    assert count_tests.main(["--suite", "ctest", "0", str(report)]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert str(report) in first
    assert last == "0 passed, 1 failed, 0 skipped"


def test_an_exit_code_that_no_test_explains_fails(tmp_path, capsys):
    report = _report(tmp_path / "r.xml", PYTEST["passed"])
    assert count_tests.main(["--suite", "pytest", "139", report]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "failed: pytest (exit code 139, although no test failed)", "1 passed, 1 failed, 0 skipped"]


def test_an_exit_code_that_is_no_number_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        count_tests.main(["--suite", "ctest", "none", str(tmp_path)])
    assert end.value.code == 2
    assert "'none'" in capsys.readouterr().err


def test_the_report_of_this_pytest_is_understood(tmp_path):
    (tmp_path / "test_sample.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): assert False\n"
        "@pytest.mark.skip(reason='on purpose')\n"
        "def test_skipped(): pass\n"
        "@pytest.fixture\n"
        "def broken(): raise OSError\n"
        "def test_error(broken): pass\n")
    report = tmp_path / "r.xml"
    run = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                          f"--junit-xml={report}", "test_sample.py"],
                         cwd=tmp_path, capture_output=True, check=False)
    cases = count_tests.read_suite("pytest", run.returncode, report)
    assert [(c.name.split("_")[-1], c.outcome) for c in cases] == [
        ("good", "passed"), ("bad", "failed"), ("skipped", "skipped"), ("error", "failed")]
