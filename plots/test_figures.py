"""Every figure is checked through the data in its artists, never through pixels."""

import math

import numpy
import pytest

from plots import (block_reads, caption, double_hashing, draw, fpr_vs_bits, load, lookup_vs_size,
                   pictures, selection, space_vs_speed, style, testing)


def _lines(figure, prefix):
    """{gid: (x, y)} of the lines whose gid begins with `prefix`, of all axes."""
    found = {}
    for index, axes in enumerate(figure.axes):
        for line in axes.lines:
            if (line.get_gid() or "").startswith(prefix):
                found.setdefault(line.get_gid(), []).append(
                    (index, numpy.asarray(line.get_xdata(), float),
                     numpy.asarray(line.get_ydata(), float)))
    return found


def _bars(axes):
    return [segment for collection in axes.collections for segment in collection.get_segments()]


@pytest.mark.parametrize("module", draw.FIGURES, ids=lambda m: m.NAME)
def test_every_figure_shows_every_filter(module, full_run, drawn):
    figure = drawn(module)
    shown = {gid.split(":")[1] for gid in _lines(figure, "measured:")}
    assert shown == set(testing.SHOWN.get(module.NAME, testing.FILTERS))
    for series in _lines(figure, "measured:").values():
        for _, x, y in series:
            assert len(x) > 0 and numpy.isfinite(x).all() and (y > 0).all()
    for axes in figure.axes:
        assert axes.get_xlabel() or any(
            other.get_xlabel() for other in figure.axes if other is not axes)
    text = " ".join(t.get_text() for t in figure.texts)
    assert full_run.name in text and full_run.cpu_brand in text
    labels = [t.get_text().replace("\n", " ") for t in figure.legends[0].get_texts()]
    assert len(labels) == len(set(labels))
    for axes in figure.axes:  # where each filter has a row of its own
        labels += [t.get_text() for t in axes.get_yticklabels()]
    for name in shown:
        wanted = [name] if name != "ribbon" else ["ribbon, width=64", "ribbon, width=128"]
        assert all(any(label.startswith(want) for label in labels) for want in wanted)


@pytest.mark.parametrize("module", draw.FIGURES, ids=lambda m: m.NAME)
def test_every_figure_is_right_for_a_tiny_run(module, tiny_run_path):
    run = load.load_run(tiny_run_path)
    if module is double_hashing:  # is about filters that the tiny run has not
        assert any(gap.fatal for gap in module.gaps(run))
        return
    figure = module.draw(run)
    assert _lines(figure, "measured:")


# A dark page has the layout of the screen's, and the widths text and screen differ little.
PAGES = [("screen", "screen"), ("dark", "column"), ("paper", "column"), ("paper", "text"),
         ("slides", "column"), ("slides", "text")]


def _looks(figure):
    return {line.get_gid(): (line.get_color(), str(line.get_marker()))
            for axes in figure.axes for line in axes.lines
            if (line.get_gid() or "").startswith(("measured:", "upper_limit:"))
            and line.get_marker() != "None"}


@pytest.mark.parametrize("module", draw.FIGURES, ids=lambda m: m.NAME)
@pytest.mark.parametrize("page", PAGES, ids="-".join)
def test_every_figure_is_right_on_every_page(module, page, full_run, drawn):
    with style.on(style.make_page(*page)) as chosen:
        figure = module.draw(full_run)
        assert figure.get_figwidth() == chosen.width_inches
        assert pictures.faults(figure) == []
        assert pictures.alike_in_grey(figure) == []
    assert _looks(figure) == _looks(drawn(module))
    title, text = caption.sentences(figure.caption)
    assert title == module.TITLE + "."
    assert all(not sentence[0].islower() and sentence[-1] == "." for sentence in text)
    assert any(full_run.name in sentence and full_run.cpu_brand in sentence for sentence in text)
    assert chosen.is_titled == bool(figure.texts)


@pytest.mark.parametrize("module", draw.FIGURES, ids=lambda m: m.NAME)
@pytest.mark.parametrize("page", [("screen", "screen"), ("paper", "column"), ("slides", "text")],
                         ids="-".join)
def test_long_names_have_room_too(module, page, long_run, make_run):
    # Of double hashing the long run has no small tables; its figure shows two filters at most.
    run = long_run if module is not double_hashing else make_run(
        testing.small_tables(), manifest=testing.make_manifest(cpu_brand="Example CPU " * 14))
    with style.on(style.make_page(*page)):
        assert pictures.faults(module.draw(run)) == []


def test_fpr_points_and_intervals_are_those_of_the_file(full_run, drawn):
    figure = drawn(fpr_vs_bits)
    (_, x, y), = _lines(figure, "measured:blocked_bloom:")["measured:blocked_bloom:"]
    points = full_run.points
    rows = points[(points["filter"] == "blocked_bloom") & (points["keys"] == 1e8)]
    expected = dict(zip(rows["bits_per_key"], rows["fpr_measured"]))
    assert dict(zip(x, y)) == expected and len(x) == 6
    lows = {(round(s[0][0], 6), s[0][1]) for s in _bars(figure.axes[0]) if len(s)}
    for bits, low in zip(rows["bits_per_key"], rows["fpr_low"]):
        assert any(math.isclose(bits, b, abs_tol=1e-5) and math.isclose(low, end, rel_tol=1e-9)
                   for b, end in lows)


def test_theory_lines_are_those_of_the_file(full_run, drawn):
    lines = _lines(drawn(fpr_vs_bits), "theory:")
    curves = full_run.theory.groupby("curve")
    assert sum(len(series) for series in lines.values()) == curves.ngroups
    for _, curve in curves:
        assert any(numpy.array_equal(y, curve["fpr"]) for _, _, y in
                   lines[f"theory:{curve['filter'].iloc[0] or ''}"])


# Case I4: too few queries for a rate give an upper limit.
def test_no_false_positive_is_an_upper_limit_at_three_over_queries(make_run):
    points = [testing.make_point("ribbon", {"bits_per_key": b}, 1000, "lookup_batched", 1.0, "avx2",
                                 ns=5.0, bits=b, fpr=2.0 ** -b, queries=20_000, false_positives=f)
              for b, f in ((8.0, 80), (20.0, 0))]
    figure = fpr_vs_bits.draw(make_run(points))
    (_, x, y), = _lines(figure, "measured:ribbon")["measured:ribbon:"]
    assert list(x) == [8.0] and list(y) == [80 / 20_000]
    (_, x, y), = _lines(figure, "upper_limit:ribbon")["upper_limit:ribbon:"]
    assert list(x) == [20.0] and list(y) == pytest.approx([3 / 20_000])
    low, high = figure.axes[0].get_ylim()
    assert low < 0.45 * 3 / 20_000 and high > 80 / 20_000
    assert all(20.0 not in series[0][1] for series in _lines(figure, "ratio:").values())
    assert any("3/queries" in t.get_text() for t in figure.legends[0].get_texts())


def test_only_zeros_is_a_figure_too(make_run):
    points = [testing.make_point("ribbon", {"bits_per_key": 30.0}, 1000, "lookup_batched", 1.0,
                                 "avx2", ns=5.0, bits=30.0, fpr=1e-9, false_positives=0)]
    assert _lines(fpr_vs_bits.draw(make_run(points)), "upper_limit:ribbon")


def test_sizes_times_caches_and_floor_of_figure_2(full_run, drawn):
    figure = drawn(lookup_vs_size)
    points = full_run.points
    rows = points[(points["filter"] == "blocked_bloom") & (points["mode"] == "lookup_batched")
                  & (points["negative_share"] == 1) & (points["param.bits_per_key"] == 10.0)]
    latency = points[(points["filter"] == "blocked_bloom") & (points["mode"] == "latency")
                     & (points["param.bits_per_key"] == 10.0)]
    for panel, of_panel in ((0, rows), (1, latency)):
        _, x, y = _lines(figure, "measured:blocked_bloom:")["measured:blocked_bloom:"][panel]
        want = of_panel[of_panel["target"] == "avx2"].sort_values("size_bytes")
        assert list(x) == list(want["size_bytes"]) and list(y) == list(want["ns_per_op"])
    caches = {x[0] for series in _lines(figure, "cache:").values() for _, x, _ in series}
    assert caches == {32 << 10, 512 << 10, 32 << 20}
    floors = set(_lines(figure, "floor:"))
    assert floors == {"floor:hash_only:", "floor:touch_lines:lines=1", "floor:touch_lines:lines=2"}


def test_the_front_and_the_bound_of_figure_5(drawn):
    figure = drawn(space_vs_speed)
    fronts = _lines(figure, "front")["front"]
    assert len(fronts) == 4
    for index, x, y in fronts:
        places = [(px[0], py[0]) for gid, series in _lines(figure, "measured:").items()
                  for panel, px, py in series if panel == index]
        assert set(zip(x, y)) <= set(places)
        assert list(x) == sorted(x) and list(y) == sorted(y, reverse=True)
    bounds = {round(x[0], 3) for _, x, _ in _lines(figure, "bound")["bound"]}
    assert bounds == {round(math.log2(100), 3), round(math.log2(1000), 3)}


@pytest.mark.parametrize("module,points,lack", [
    ("fpr_vs_bits", {"filters": ()}, "no point has an FPR"),
    ("lookup_vs_size", {"shares": (0.0,)}, "absent keys only"),
    ("build_vs_keys", {"modes": ("lookup_batched",)}, "mode build"),
    ("lookup_vs_negatives", {"shares": (1.0,)}, "one share of negatives"),
    ("lookup_vs_negatives", {"modes": ("lookup_single",)}, "mode lookup_batched"),
    ("overhead_vs_fpr", {"filters": ()}, "no point has an FPR"),
    ("winner_map", {"shares": (0.0,)}, "two filters"),
    ("winner_map", {"filters": ("ribbon",)}, "two filters"),
    ("fpr_vs_overfill", {}, "mode overfill"),
    ("simd_gain", {"targets": ("avx2",)}, "measured with vectors"),
    ("simd_gain", {"filters": ("km_bloom",), "modes": ("lookup_reference",)}, "with vectors"),
    ("block_reads", {"filters": ("touch_lines",)}, "no point has an FPR"),
    ("construction", {"modes": ("lookup_batched",)}, "slots and attempts"),
    ("double_hashing", {"bits_per_key": (8,)}, "several sizes"),
    ("space_vs_speed", {"bits_per_key": (4,), "filters": ("classic_bloom",)}, "near an FPR"),
    ("speed_vs_load", {}, "two loads"),
    ("read_gain", {}, "the same gets without filters"),
])
def test_missing_data_is_said_with_how_to_measure_it(module, points, lack, make_run):
    module, = (m for m in draw.FIGURES if m.NAME == module)
    run = make_run(testing.make_points(keys=(1000,), failing=False, **points))
    fatal = [gap for gap in module.gaps(run) if gap.fatal]
    assert len(fatal) == 1 and lack in fatal[0].lack and "run a spec" in fatal[0].remedy
    with pytest.raises(selection.MissingData, match=lack):
        module.draw(run)


@pytest.mark.parametrize("module", draw.FIGURES, ids=lambda m: m.NAME)
def test_no_points_at_all_is_a_gap_and_not_a_traceback(module, make_run):
    assert any(gap.fatal for gap in module.gaps(make_run([])))


@pytest.mark.parametrize("module", draw.FIGURES, ids=lambda m: m.NAME)
def test_only_failed_points_is_a_gap_and_not_a_traceback(module, make_run):
    run = make_run([testing.make_point("ribbon", {"width": 64}, 1000, "lookup_batched", 1.0, "avx2",
                                       status="build_failed", reason="no seed")])
    assert any(gap.fatal for gap in module.gaps(run))


@pytest.mark.parametrize("module", draw.FIGURES, ids=lambda m: m.NAME)
def test_unknown_intervals_caches_cpu_and_theory_do_no_harm(module, tiny_run_path, make_run):
    points = testing.smallest_points()
    for entry in points:
        entry["ns_per_op"].update(low=None, high=None, confidence=None)
    manifest = testing.make_manifest(cpu_brand=None, caches=None, best=None)
    run = make_run(points, manifest=manifest,
                   theory={"schema": "filterbench/theory/1", "curves": []})
    if module in (block_reads, double_hashing):  # nothing to draw but what theory says
        assert any(gap.fatal and "theory.json" in gap.lack for gap in module.gaps(run))
        return
    figure = module.draw(run)
    assert _lines(figure, "measured:")
    assert any("unknown CPU" in t.get_text() for t in figure.texts)
