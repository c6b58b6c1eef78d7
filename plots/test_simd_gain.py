import math

import pytest

from plots import simd_gain, testing


def _point(name, keys, mode, target, ns, params=None, **options):
    return testing.make_point(name, params or {"bits_per_key": 10.0}, keys, mode, 1.0, target,
                              ns=ns, bits=10.0, fpr=0.01, false_positives=10_000, **options)


def _of(name="cuckoo", keys=1000, times=(("avx2", 2.0),), reference=5.0, scalar=8.0, **options):
    return [_point(name, keys, "lookup_batched", "scalar", scalar, **options),
            *(_point(name, keys, mode, target, ns, **options) for target, batched in times
              for mode, ns in (("lookup_batched", batched), ("lookup_reference", reference)))]


def _dots(axes):
    """{filter: [(speed-up, filled, marker, row)]}"""
    found = {}
    for line in axes.lines:
        if (line.get_gid() or "").startswith("measured:"):
            (x,), (y,) = line.get_xdata(), line.get_ydata()
            found.setdefault(line.get_gid().split(":")[1], []).append(
                (x, line.get_markerfacecolor() != "none", line.get_marker(), y))
    return found


def test_ratios_are_over_the_same_targets_reference_and_over_scalar(make_run):
    own, scalar = simd_gain.draw(make_run(_of())).axes
    assert [dot[0] for dot in _dots(own)["cuckoo"]] == [2.5]
    assert [dot[0] for dot in _dots(scalar)["cuckoo"]] == [4.0]


def test_the_interval_of_the_ratio_holds_both_intervals(make_run):
    own, _ = simd_gain.draw(make_run(_of())).axes
    bars = [bar for c in own.collections for bar in c.get_segments() if len(bar)]
    # testing.make_point: from 0.97 to 1.04 of the median.
    assert any(sorted(bar[:, 0]) == pytest.approx([2.5 * 0.97 / 1.04, 2.5 * 1.04 / 0.97])
               for bar in bars)


def test_a_loss_stands_out(make_run):
    figure = simd_gain.draw(make_run(_of("cuckoo", times=(("sse4", 6.0), ("avx2", 2.0)))))
    own, _ = figure.axes
    assert [(round(x, 3), filled) for x, filled, _, _ in _dots(own)["cuckoo"]] == [
        (0.833, False), (2.5, True)]
    assert own.get_xlim()[0] < 0.83 and own.patches  # the side of the losses is shaded


def test_targets_go_from_narrow_to_wide_and_differ_in_marker_and_height(make_run):
    figure = simd_gain.draw(make_run(_of(times=(("avx2", 2.0), ("ssse3", 4.0), ("sse4", 3.0)))))
    dots = _dots(figure.axes[0])["cuckoo"]
    assert [dot[0] for dot in dots] == [1.25, pytest.approx(5 / 3), 2.5]
    assert len({dot[2] for dot in dots}) == 3 and sorted(d[3] for d in dots) == [
        d[3] for d in dots]
    assert [t.get_text() for t in figure.legends[0].get_texts()][:3] == ["ssse3", "sse4", "avx2"]


def test_targets_without_vectors_are_no_gain(make_run):
    run = make_run(_of(times=(("hwy_scalar", 3.0), ("avx2", 2.0))))
    assert [len(_dots(axes)["cuckoo"]) for axes in simd_gain.draw(run).axes] == [1, 1]


def test_rows_of_panels_are_the_smallest_and_the_largest_key_count(make_run):
    run = make_run([point for keys in (1000, 100_000, 100_000_000) for point in _of(keys=keys)])
    figure = simd_gain.draw(run)
    titles = [" ".join(axes.get_title(loc="left").split()) for axes in figure.axes]
    assert titles == [f"over {over}, {place}" for place in (
        "10\u00b3 keys, in L1", "10\u2078 keys, beyond the caches") for over in (
            simd_gain.REFERENCE, simd_gain.SCALAR)]


def test_without_a_reference_there_is_one_panel_and_a_gap(make_run):
    run = make_run([entry for entry in _of() if entry["point"]["mode"] == "lookup_batched"])
    gap, = simd_gain.gaps(run)
    assert "reference" in gap.lack and not gap.fatal
    axes, = simd_gain.draw(run).axes
    assert [dot[0] for dot in _dots(axes)["cuckoo"]] == [4.0]


def test_failed_points_and_unknown_intervals(make_run):
    points = _of() + [_point("ribbon", 1000, "lookup_batched", "avx2", None,
                             status="build_failed", reason="no seed")]
    for entry in points:
        if entry["ns_per_op"]:
            entry["ns_per_op"].update(low=None, high=None, confidence=None)
    own, _ = simd_gain.draw(make_run(points)).axes
    assert set(_dots(own)) == {"cuckoo"}
    assert not any(bar[0][0] != bar[1][0] for c in own.collections for bar in c.get_segments()
                   if len(bar))


def test_many_filters_and_names_in_any_script(make_run):
    names = [f"filter_{i}" for i in range(30)] + ["\u8fc7\u6ee4\u5668", "_hidden", "a$b$", "t\tb\n"]
    run = make_run([point for name in names for point in _of(
        name, times=(("sse4", 3.0), ("avx2", 2.0)))])
    figure = simd_gain.draw(run)
    labels = [t.get_text() for t in figure.axes[0].get_yticklabels()]
    assert len(set(labels)) == len(names) == len(labels)
    assert figure.get_size_inches()[1] < 11
    renderer = figure.canvas.get_renderer()
    boxes = [t.get_window_extent(renderer) for t in figure.axes[0].get_yticklabels()]
    boxes.sort(key=lambda box: box.y0)
    assert all(b.y0 > a.y0 + 0.7 * a.height for a, b in zip(boxes, boxes[1:]))


def test_the_parameters_with_most_targets_are_compared(make_run):
    """Those closest to the representative size were measured for one target only."""
    run = make_run(_of(params={"bits_per_key": 8.0}) + [
        _point("cuckoo", 1000, "lookup_batched", "avx2", 1.0, {"bits_per_key": 10.0})])
    assert [dot[0] for dot in _dots(simd_gain.draw(run).axes[0])["cuckoo"]] == [2.5]
    assert all(math.isfinite(limit) for limit in simd_gain.draw(run).axes[0].get_xlim())
