"""Pages and a browser for the tests."""

import pytest

from plots import load
from plots.report import bundle, page, testing


@pytest.fixture(scope="session")
def browser():
    if reason := testing.why_no_browser():
        pytest.skip(reason)
    made = testing.Browser()
    yield made
    made.close()


@pytest.fixture(scope="session")
def made():
    """The bundle of this tree."""
    if reason := testing.why_no_bundle():
        pytest.skip(reason)
    return bundle.read()


@pytest.fixture(scope="session")
def full_page(full_run_path, made, tmp_path_factory):
    """The page of the full synthetic run."""
    file = tmp_path_factory.mktemp("page") / "report.html"
    page.write(file, page.render(load.load_runs([full_run_path]), made))
    return file
