"""Synthetic runs for the tests of plots; see testing.py."""

import pytest

from plots import load, testing


@pytest.fixture(scope="session")
def full_run_path(tmp_path_factory):
    return testing.write_run(tmp_path_factory.mktemp("full") / testing.RUN_NAME,
                             testing.make_points() + testing.make_filled_points(
                                 most={"cuckoo": 98_000}))


@pytest.fixture(scope="session")
def full_run(full_run_path):
    return load.load_run(full_run_path)


@pytest.fixture(scope="session")
def drawn(full_run):
    """The figure of a module for the full run, drawn once; not to be changed."""
    figures = {}

    def get(module):
        if module.NAME not in figures:
            figures[module.NAME] = module.draw(full_run)
        return figures[module.NAME]
    return get


@pytest.fixture
def tiny_run_path(tmp_path):
    return testing.write_run(tmp_path / "results" / testing.RUN_NAME,
                             testing.tiny_points() + testing.tiny_filled_points())


@pytest.fixture
def make_run(tmp_path):
    """Writes a run of the given points and loads it."""
    def make(points, **options):
        return load.load_run(testing.write_run(tmp_path / "made", points, **options))
    return make
