"""The figure of several machines, checked through the data in its artists."""

import json

import pytest

from plots import cpu_vs_cpu, draw, load, machines, selection, testing

NAMES = tuple(f"cpu-{name}-0a1b2c3d" for name in ("one", "two", "three", "four", "five", "six",
                                                  "seven"))


def _points(**options):
    return testing.make_points(**{"bits_per_key": (8, 10), "keys": (10_000, 1_000_000),
                                  "shares": (1.0,), "failing": False} | options)


@pytest.fixture
def make(tmp_path):
    """Runs of as many machines as there are lists of points."""
    def call(*entries, brand="Example CPU"):
        return [load.load_run(testing.write_run(
            tmp_path / name / testing.RUN_NAME, points,
            manifest=testing.make_manifest(machine=name, cpu_brand=brand)))
            for name, points in zip(NAMES, entries)]
    return call


def _measured(figure):
    """{(machine, panel): {row label: x}}; a row is found by where its marker lies."""
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    found = {}
    for axes in figure.axes:
        for line in axes.lines:
            gid = line.get_gid() or ""
            if gid.startswith("measured:"):
                _, machine, panel = gid.split(":")
                found[machine, panel] = {labels[round(y)]: x for x, y in zip(*line.get_data())}
    return found


def test_ratios_are_those_of_the_runs(make):
    runs = make(_points(), testing.on_machine(_points(), times={"cuckoo": 2.0}, vectors=0.5,
                                              everything=3.0))
    assert cpu_vs_cpu.gaps(runs) == []
    figure = cpu_vs_cpu.draw(runs)
    found = _measured(figure)
    assert {panel for _, panel in found} == {"floor 10000", "floor 1000000", "gain"}
    for run in runs:
        points = run.points[(run.points["filter"] == "cuckoo") & (run.points["keys"] == 10_000)
                            & (run.points["mode"] == "lookup_batched")
                            & (run.points["param.fingerprint_bits"] == "8")].set_index("target")
        assert found[run.machine, "floor 10000"]["cuckoo"] == pytest.approx(
            points["floor_ratio"]["avx2"])
        assert found[run.machine, "gain"]["cuckoo"] == pytest.approx(
            points["ns_per_op"]["scalar"] / points["ns_per_op"]["avx2"])
    labels = {text.get_text() for text in figure.axes[0].get_yticklabels()}
    assert labels == {"blocked_bloom", "classic_bloom", "cuckoo", "km_bloom, probing=plain",
                      "km_bloom, probing=enhanced", "ribbon, width=64", "ribbon, width=128"}
    text = " ".join(t.get_text() for t in figure.texts)
    assert text.count(f"run {testing.RUN_NAME}") == 2


@pytest.mark.parametrize("count,filters", [(2, 2), (6, 34)])
def test_nothing_overlaps_and_machines_differ_without_colour(make, count, filters):
    points = _points(filters=tuple(f"a_filter_with_a_long_name_{i}" for i in range(filters)),
                     keys=(10_000,), bits_per_key=(10,), modes=("lookup_batched",))
    runs = make(*[points] * count, brand="Example CPU " * 14)
    figure = cpu_vs_cpu.draw(runs)
    renderer, page = figure.canvas.get_renderer(), figure.bbox
    boxes = [figure.legends[0].get_window_extent(renderer),
             *(axes.get_tightbbox(renderer) for axes in figure.axes),
             *(text.get_window_extent(renderer) for text in figure.texts)]
    for box in boxes:
        assert box.x0 >= page.x0 and box.x1 <= page.x1 and box.y0 >= page.y0 and box.y1 <= page.y1
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert not a.overlaps(b) or min(a.x1, b.x1) - max(a.x0, b.x0) < 1 or (
                min(a.y1, b.y1) - max(a.y0, b.y0) < 1)
    shapes = {(line.get_marker(), line.get_markerfacecolor() == "white")
              for line in figure.axes[0].lines if (line.get_gid() or "").startswith("measured")}
    assert len(shapes) == count
    assert len(figure.axes[0].get_yticklabels()) == filters


def test_numbers_of_an_axis_do_not_touch_however_wide_it_is(make):
    names = ("cuckoo", "a_filter_whose_name_takes_room_from_all")
    wide = _points(filters=names)
    for entry in wide:
        if entry["ns_per_op"] and entry["point"]["filter"] == "cuckoo":
            for value in ("median", "low", "high", "min"):
                entry["ns_per_op"][value] *= 25.0
            if entry["floor"]:
                entry["floor"]["ratio"] *= 25.0
    figure = cpu_vs_cpu.draw(make(wide, _points(filters=names)))
    renderer = figure.canvas.get_renderer()
    for axes in figure.axes:
        low, high = axes.get_xlim()
        boxes = [text.get_window_extent(renderer) for text, tick in zip(
            axes.get_xticklabels(), axes.get_xticks()) if low <= tick <= high]
        assert len(boxes) >= 2
        for a, b in zip(boxes, boxes[1:]):
            assert a.x1 < b.x0


def test_more_machines_than_have_room_are_named(make):
    points = _points(keys=(10_000,), filters=("blocked_bloom",))
    runs = make(*[points] * 7)
    (gap,) = [gap for gap in cpu_vs_cpu.gaps(runs) if "room" in gap.lack]
    assert not gap.fatal and sorted(NAMES)[-1] in gap.lack
    assert len({machine for machine, _ in _measured(cpu_vs_cpu.draw(runs))}) == 6


def test_more_rows_than_have_room_become_one_per_filter(make, monkeypatch):
    monkeypatch.setattr(cpu_vs_cpu, "MAX_ROWS", 5)
    figure = cpu_vs_cpu.draw(make(_points(), _points()))
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert sorted(labels) == sorted(testing.FILTERS)
    assert "2 more variants are not shown" in " ".join(t.get_text() for t in figure.texts)


def _without_floor(points):
    for entry in points:
        entry |= {"floor": None, "floor_reason": "no touch_lines"}
    return points


def test_a_machine_without_a_floor_is_named_and_keeps_its_gains(make):
    runs = make(_points(), _without_floor(_points()))
    (gap,) = cpu_vs_cpu.gaps(runs)
    assert not gap.fatal and NAMES[1] in gap.lack and "touch_lines" in gap.remedy
    assert {key for key in _measured(cpu_vs_cpu.draw(runs)) if key[0] == NAMES[1]} == {
        (NAMES[1], "gain")}


def test_without_a_slower_twin_there_is_no_panel_of_gains(make):
    runs = make(_points(targets=("avx2",)), _points(targets=("avx2",)))
    gaps = cpu_vs_cpu.gaps(runs)
    assert [gap.fatal for gap in gaps] == [False] and "gain" in gaps[0].lack
    assert {panel for _, panel in _measured(cpu_vs_cpu.draw(runs))} == {"floor 10000",
                                                                       "floor 1000000"}


def test_the_reference_for_the_same_target_comes_before_the_scalar_loop(make):
    def entries():
        return _points(filters=("cuckoo",), bits_per_key=(10,), keys=(10_000,),
                       modes=("lookup_batched", "lookup_reference"), targets=("scalar", "avx2"))
    figure = cpu_vs_cpu.draw(make(entries(), entries()))
    assert figure.axes[-1].get_xlabel() == "reference / best target"


@pytest.mark.parametrize("entries,lack", [
    (lambda: [_points(keys=(10_000,))], "two machines"),
    (lambda: [_points(keys=(10_000,)), _points(keys=(77,))], "absent keys"),
    (lambda: [_points(modes=("build",))] * 2, "absent keys"),
    (lambda: [[], []], "absent keys"),
    (lambda: [_without_floor(_points(keys=(10_000,)))] * 2, "no floor")])
def test_what_is_lacking_is_said(make, entries, lack):
    runs = make(*entries())
    (gap,) = [gap for gap in cpu_vs_cpu.gaps(runs) if gap.fatal]
    assert lack in gap.lack
    with pytest.raises(selection.MissingData):
        cpu_vs_cpu.draw(runs)


def test_two_runs_of_one_machine_are_no_two_machines(tmp_path):
    runs = [load.load_run(testing.write_run(tmp_path / run, testing.tiny_points(),
                                            manifest=testing.make_manifest(run=run)))
            for run in ("a", "b")]
    (gap,) = cpu_vs_cpu.gaps(runs)
    assert gap.fatal and f"2 runs of machine {testing.MACHINE}" in gap.lack
    with pytest.raises(machines.SeveralRuns):
        machines.side_by_side(runs)


def test_draw_takes_it_with_several_runs_and_a_folder(make, tmp_path, capsys):
    runs = make(_points(keys=(10_000,)), _points(keys=(10_000,)))
    paths = [str(run.path) for run in runs]
    out = tmp_path / "figures"
    assert draw.main([*paths, "--only", "cpu_vs_cpu", "--format", "png", "--out", str(out)]) == 0
    assert capsys.readouterr().out.split() == [
        str(out / f"cpu_vs_cpu.{ending}") for ending in ("png", "caption.md", "caption.tex")]
    png = (out / "cpu_vs_cpu.png").read_bytes()
    assert png.startswith(b"\x89PNG") and NAMES[1].encode() in png
    assert draw.main([*paths, "--only", "cpu_vs_cpu"]) == 2
    assert "--out" in capsys.readouterr().err
    assert draw.main([paths[0], "--only", "cpu_vs_cpu", "--out", str(out)]) == 5
    assert "two machines" in capsys.readouterr().err


def test_the_best_target_of_each_machine_counts(make):
    def entries(*targets):
        return [testing.make_point("cuckoo", {}, 1000, "lookup_batched", 1.0, target, ns=ns,
                                   bits=10.0, floor=1.0) for target, ns in targets]
    runs = make(entries(("avx3", 1.0), ("avx2", 2.0)), entries(("sse4", 5.0), ("scalar", 9.0)))
    one, two = machines.side_by_side(runs)[0], machines.side_by_side(runs)[1]
    (question,) = machines.common([one, two])
    assert json.loads(question)["filter"] == "cuckoo"
    by_name = {m.name: m.best[question]["target"] for m in (one, two)}
    # The manifest names avx2 as the best of both; the second has not measured it.
    assert by_name == {NAMES[0]: "avx2", NAMES[1]: "sse4"}


def test_points_with_differing_answers_are_left_out_and_said(make):
    runs = make(_points(keys=(10_000,)), _points(keys=(10_000,)))
    samples = runs[1].samples
    of_cuckoo = set(runs[1].points[runs[1].points["filter"] == "cuckoo"]["point_id"])
    samples.loc[samples["point_id"].isin(of_cuckoo), "answers_digest"] = "f" * 16
    (gap,) = cpu_vs_cpu.gaps(runs)
    assert "WRONG ANSWERS" in gap.lack and not gap.fatal
    figure = cpu_vs_cpu.draw(runs)
    assert "cuckoo" not in [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert "differing answers are left out" in " ".join(t.get_text() for t in figure.texts)
