"""Points of workloads: how they are read, and that nothing else changes where a run has them."""

import dataclasses
import json

import numpy
import pandas
import pytest

from plots import costs, draw, load, machines, selection, style, tables, testing
from plots.report import data
from scripts import compare, regression

OF_GETS = ("block_reads", "read_gain")
KNOBS = {"shape": "files", "files": 7, "reads": "cached"}


def _one(**options):
    return testing.make_workload_point("ribbon", {"bits_per_key": 10.0}, 1000, "lsm_get", KNOBS,
                                       share=1.0, **options)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """(a run with workloads, the same run without them)"""
    filters = testing.smallest_points()
    filters = [entry for entry in filters if entry["point"]["mode"] != "workload"]
    # Parameters that lookups have not, so that variants could change.
    more = testing.make_gets(filters=("blocked_bloom", "cuckoo", "ribbon"), bits_per_key=(4, 16),
                             keys=1000)
    for entry in more:
        if entry["point"]["filter"] == "blocked_bloom":
            entry["point"]["params"] |= {"k": 3}
            entry["point_id"] = testing._identity(entry["point"])  # pylint: disable=W0212
    more = list({entry["point_id"]: entry for entry in more}.values())
    theory = testing.make_theory(("blocked_bloom", "cuckoo"))
    return (load.load_run(testing.write_run(
                tmp_path_factory.mktemp("with") / testing.RUN_NAME,
                filters + more + testing.make_uses(), theory=theory)),
            load.load_run(testing.write_run(
                tmp_path_factory.mktemp("without") / testing.RUN_NAME, filters, theory=theory)))


# --- Reading ---

def test_a_point_has_workload_knobs_metrics_and_parts(make_run):
    metrics = {"block_reads_per_get": testing.make_metric(10, 7, 700, 100, 7.5),
               "filter_bytes": {"value": 1250.0}}
    run = make_run([_one(metrics=metrics, ns=900.0, counters={"gets": 100}, facts={"engine": "own"},
                         parts=[{"level": 0, "run": 0, "candidates": 100}],
                         phases_ns={"filter": 40.0})])
    assert run.points.empty and run.filled.empty and run.pages_and_threads.empty
    row, = run.workloads.to_dict("records")
    assert (row["workload"], row["ns_per_op"], row["workload_rounds"]) == ("lsm_get", 900.0, 3)
    assert json.loads(row["knobs"]) == KNOBS
    assert row["knobs_label"] == "files=7, reads=cached, shape=files"
    assert (row["knob.files"], row["knob.reads"]) == (7, "cached")
    reads = row["metrics"]["block_reads_per_get"]
    assert (reads["value"], reads["expected"]) == (0.17, 0.175)
    assert reads["low"] == row["metric.block_reads_per_get.low"] == pytest.approx(
        metrics["block_reads_per_get"]["low"])
    assert row["metric.filter_bytes.value"] == 1250 and pandas.isna(row["metric.filter_bytes.low"])
    assert row["counters"] == {"gets": 100} and row["facts"] == {"engine": "own"}
    assert row["parts"][0]["candidates"] == 100 and row["phases_ns"] == {"filter": 40.0}


def test_parts_that_differ_between_rounds_are_none(make_run):
    entry = _one()
    entry["workload"] |= {"parts": None, "parts_reason": "the parts differ between rounds"}
    assert make_run([entry]).workloads["parts"].iloc[0] is None


def test_a_failed_point_has_its_knobs(make_run):
    row = make_run([_one(status="crashed", reason="signal 11")]).workloads.iloc[0]
    assert row["workload"] == "lsm_get" and row["metrics"] == {} and row["status"] == "crashed"


def _metric(**fields):
    def edit(entry):
        entry["workload"]["metrics"]["x"] = testing.make_metric(0, 5, 100, 100) | fields
    return edit


@pytest.mark.parametrize("edit, field, said", [
    (lambda e: e["point"].pop("workload"), "workload", "in mode workload"),
    (lambda e: e["point"].update(mode="build"), "workload", "in no other"),
    (lambda e: e["point"]["workload"].pop("name"), "name", "missing"),
    (lambda e: e["workload"].pop("metrics"), "metrics", "missing"),
    (lambda e: e["workload"].update(parts=3), "parts", "array"),
    (lambda e: e["workload"].update(metrics={"x": 3}), "x", "object"),
    (_metric(low=0.9), "low", "wrong side"), (_metric(high=0.01), "high", "wrong side"),
    (_metric(by_chance=101), "by_chance", "more than the 100 trials"),
    (_metric(value="much"), "value", "number"), (_metric(trials=1.5), "trials", "integer")])
def test_what_a_workload_must_not_say_is_named(tmp_path, edit, field, said):
    entry = _one()
    edit(entry)
    path = testing.write_run(tmp_path / "run", [entry], samples=[])
    with pytest.raises(load.RunError, match=said) as error:
        load.load_run(path)
    assert field in error.value.field and error.value.line and "summary.json" in str(error.value)


def test_a_filter_has_one_name_for_its_variant_in_lookups_and_workloads(make_run):
    run = make_run(testing.make_points(filters=("ribbon",), keys=(1000,), failing=False)
                   + testing.make_gets(filters=("ribbon", "km_bloom"), files=(7,)))
    known = dict(zip(run.points["params"], run.points["variant"]))
    ribbon = run.workloads[run.workloads["filter"] == "ribbon"]
    assert set(ribbon["variant"]) == {"width=64", "width=128"}
    assert all(known[row["params"]] == row["variant"] for _, row in ribbon.iterrows())
    assert set(run.workloads["variant"][run.workloads["filter"] == "km_bloom"]) == {
        "probing=plain", "probing=enhanced"}


# --- Nothing else changes ---

def test_frames_of_filters_are_those_of_the_run_without_workloads(both):
    for with_them, without in zip(both[0].filter_frames, both[1].filter_frames):
        pandas.testing.assert_frame_equal(with_them, without)
    assert len(both[0].workloads) == len(pandas.concat(both[0].frames)) - len(
        pandas.concat(both[1].frames)) > 0
    alone = load.without_workloads(both[0])
    pandas.testing.assert_frame_equal(alone.samples.drop(columns="sequence"),
                                      both[1].samples.drop(columns="sequence"))


def _drawn(module, run):
    with style.on(dataclasses.replace(style.make_page(), is_sketch=True)):
        figure = module.draw(run)
    return figure.caption[:3], [
        (line.get_gid(), list(line.get_xdata()), list(line.get_ydata()), line.get_color(),
         str(line.get_marker())) for axes in figure.axes for line in axes.lines]


@pytest.mark.parametrize("module", [module for module in draw.FIGURES if module.NAME not in OF_GETS],
                         ids=lambda module: module.NAME)
def test_figures_of_filters_stay_as_they_are(module, both):
    assert module.gaps(both[0]) == module.gaps(both[1])
    if not any(gap.fatal for gap in module.gaps(both[0])):
        assert _drawn(module, both[0]) == _drawn(module, both[1])


@pytest.mark.parametrize("name", ["headline", "filters"])
def test_tables_of_filters_stay_as_they_are(name, both):
    table = tables.by_name(name)
    assert table.rows(both[0]) == table.rows(both[1])


def test_report_machines_and_costs_see_filters_only(both):
    for of in (lambda run: data.frame_of(run), lambda run: machines.Machine(run).points):
        pandas.testing.assert_frame_equal(of(both[0]), of(both[1]))
    assert data.read_samples(both[0]) == data.read_samples(both[1])
    assert costs.candidates(both[0], 1000, 1.0) == costs.candidates(both[1], 1000, 1.0)


# --- Comparing ---

def _two_runs(tmp_path, points, slower=None):
    runs = []
    for index, factors in enumerate(({}, slower or {})):
        # Each kind of points has its own noise, so that it is the same with the other kind or not.
        samples = []
        for kind in (False, True):
            own = [entry for entry in points if (entry["point"]["mode"] == "workload") == kind]
            samples += testing.repeat_samples(own, numpy.random.default_rng(7 + index + 10 * kind),
                                              processes=4, slower=factors if kind else None)
        for number, sample in enumerate(samples):
            sample["sequence"] = number
        manifest = testing.make_manifest(run=f"run{index}")
        manifest["spec"]["measure"] = {"processes": [4, 4]}
        runs.append(load.load_run(testing.write_run(
            tmp_path / f"{len(points)}-{index}", points, samples=samples, manifest=manifest)))
    return runs


def _findings(comparison, workload):
    return [(point.key, quantity, finding.ratio, finding.low, finding.high, finding.p_worse)
            for point, quantity, finding in comparison.findings
            if isinstance(point, compare.Point) and (point.row["mode"] == "workload") == workload]


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """(with workloads, of which the ribbon is slower; without)"""
    names = ("blocked_bloom", "km_bloom", "cuckoo", "ribbon")
    filters = testing.make_points(filters=names, keys=(1000,), bits_per_key=(10,), failing=False,
                                  shares=(1.0,), targets=("avx2",))
    reads = testing.make_gets(filters=names, files=(1, 7, 20), keys=1000)
    path = tmp_path_factory.mktemp("compared")
    return tuple(compare.compare(*([run] for run in _two_runs(path, points, {"ribbon": 1.5})))
                 for points in (filters + reads, filters))


def test_times_of_workloads_are_not_pooled_with_lookups(compared):
    with_them, without = compared
    numpy.testing.assert_equal(_findings(with_them, False), _findings(without, False))
    assert with_them.times.scatter == without.times.scatter
    assert with_them.times.groups == without.times.groups
    assert with_them.drift == without.drift


def test_a_slower_application_is_found_and_named(compared):
    worse = [(point, finding) for point, quantity, finding in compared[0].findings
             if finding.verdict == regression.WORSE and quantity == "ns"]
    assert worse
    for point, finding in worse:
        assert finding.ratio == pytest.approx(1.5, rel=0.05)
        if isinstance(point, str):
            assert point == "ribbon in lsm_get"
        else:
            assert point.row["filter"] == "ribbon"
            assert "lsm_get {files=" in compare.describe(point.row)
    assert not any(point.row["filter"] == selection.ALWAYS_MAYBE
                   for point, _ in worse if not isinstance(point, str))


def test_filters_of_a_store_are_no_builds_of_a_filter_by_itself(compared):
    places = [point.key for point, quantity, _ in compared[0].findings
              if quantity == "bits_per_key"]
    assert len(places) == len(set(places)) > len(
        [1 for _, quantity, _ in compared[1].findings if quantity == "bits_per_key"])
