"""Synthetic runs for the tests of plots; see testing.py."""

import pytest

from plots import load, testing


@pytest.fixture(scope="session")
def full_run_path(tmp_path_factory):
    return testing.write_run(tmp_path_factory.mktemp("full") / testing.RUN_NAME,
                             testing.full_points())


@pytest.fixture(scope="session")
def full_run(full_run_path):
    return load.load_run(full_run_path)


@pytest.fixture(scope="session")
def long_run(tmp_path_factory):
    """As many filters as the catalogue has, one of them with a name that no legend holds."""
    more = ("a_filter_whose_name_has_no_end_and_still_goes_on_" * 3,
            *(f"filter_{i}" for i in range(28)))
    points = testing.make_points(
        filters=testing.FILTERS + more, keys=(1000,), bits_per_key=(8, 16), failing=False,
        modes=("build", "lookup_batched", "latency", "lookup_reference"), shares=(0.5, 1.0),
        targets=("scalar", "avx2"))
    return load.load_run(testing.write_run(
        tmp_path_factory.mktemp("long") / testing.RUN_NAME,
        points + testing.make_overfilled(filters=testing.OVERFILLED + more, fills=(1.0, 2.0))
        + testing.make_filled_points(filters=testing.FILTERS + more, keys=1000, fills=(0.5, 1.0))
        + testing.make_gets(filters=testing.FILTERS + more, engines=("lsm_get", "rocksdb_get"),
                            files=(1, 20), cases=((1.0, "any"), (0.9, "any"), (0.0, "oldest")),
                            reads=("direct", "cached"), keys=1000),
        manifest=testing.make_manifest(cpu_brand="Example CPU " * 14)))


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
    return testing.write_run(tmp_path / "results" / testing.RUN_NAME, testing.smallest_points())


@pytest.fixture
def make_run(tmp_path):
    """Writes a run of the given points and loads it."""
    def make(points, **options):
        return load.load_run(testing.write_run(tmp_path / "made", points, **options))
    return make
