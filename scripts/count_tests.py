"""Counts the tests of several JUnit reports, names those that failed or were skipped, and ends with
the line `N passed, N failed, N skipped`:

    /usr/bin/python3 scripts/count_tests.py --suite NAME EXIT_CODE REPORT [--suite ...]

EXIT_CODE is that of the program that wrote REPORT. A report that is missing, unreadable or empty
counts as one failed test, and so does an exit code that none of its tests explains: a suite that
died early must not look like one that passed.

Exit codes: 0 nothing failed; 1 something did; 2 usage.
"""

import argparse
import collections
import sys
import xml.etree.ElementTree

Case = collections.namedtuple("Case", "name outcome reason")

# CTest reports a test whose program is missing as skipped, too; only these reasons are a test's own
# decision.
CTEST_SKIPS = ("SKIP_RETURN_CODE", "SKIP_REGULAR_EXPRESSION_MATCHED")


def _case(suite, element):
    owner = element.get("classname")
    name = element.get("name", "?")
    full = f"{suite}: {name}" if owner in (None, "", name) else f"{suite}: {owner}.{name}"

    def child(tag):
        found = element.find(tag)
        return None if found is None else " ".join((found.get("message") or "").split())

    for tag in ("failure", "error"):
        if child(tag) is not None:
            return Case(full, "failed", child(tag))
    status = element.get("status", "run")
    if status == "disabled":
        return Case(full, "skipped", "disabled")
    skipped = child("skipped")
    if status == "notrun" and not (skipped or "").startswith(CTEST_SKIPS):
        return Case(full, "failed", skipped or "did not run")
    if skipped is not None:
        return Case(full, "skipped", skipped)
    if status != "run":
        return Case(full, "failed", f"unknown status {status!r}")
    return Case(full, "passed", "")


def read_suite(name, exit_code, report):
    """The cases of one report, with one failed case more if the report does not account for
    `exit_code`."""
    try:
        root = xml.etree.ElementTree.parse(report).getroot()
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        return [Case(name, "failed", f"exit code {exit_code}, no readable report {report}: {error}")]
    cases = [_case(name, element) for element in root.iter("testcase")]
    if not cases:
        cases.append(Case(name, "failed", f"exit code {exit_code}, {report} holds no test"))
    elif exit_code != 0 and not any(case.outcome == "failed" for case in cases):
        cases.append(Case(name, "failed", f"exit code {exit_code}, although no test failed"))
    return cases


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="count_tests.py", description="Counts JUnit reports.")
    parser.add_argument("--suite", nargs=3, action="append", required=True,
                        metavar=("NAME", "EXIT_CODE", "REPORT"))
    suites = []
    for name, code, report in parser.parse_args(arguments).suite:
        try:
            suites.append((name, int(code), report))
        except ValueError:
            parser.error(f"--suite {name}: EXIT_CODE {code!r} is not a number")
    cases = [case for suite in suites for case in read_suite(*suite)]
    for outcome in ("skipped", "failed"):
        for case in cases:
            if case.outcome == outcome:
                print(f"{outcome}: {case.name}" + (f" ({case.reason})" if case.reason else ""))
    count = collections.Counter(case.outcome for case in cases)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
