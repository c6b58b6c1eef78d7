"""The map is checked against costs worked out by hand, through the regions' outlines."""

import pytest

from plots import costs, load, testing, winner_map


def _point(name, keys, ns, fpr, bits=10.0):
    return testing.make_point(name, {"bits_per_key": bits}, keys, "lookup_batched", 1.0, "avx2",
                              ns=ns, bits=bits, fpr=fpr, false_positives=round(1e6 * fpr))


def _regions(axes):
    """[(filter, left, right, low, high)] of the outlines."""
    return [(line.get_gid().split(":")[1], min(line.get_xdata()), max(line.get_xdata()),
             min(line.get_ydata()), max(line.get_ydata()))
            for line in axes.lines if (line.get_gid() or "").startswith("measured:")]


def _noise(axes):
    return sorted((patch.get_y(), patch.get_y() + patch.get_height()) for patch in axes.patches
                  if patch.get_gid() == "within_noise")


def test_regions_meet_at_the_break_even_point(make_run):
    figure = winner_map.draw(make_run([_point("blocked_bloom", 1000, 2.0, 0.02),
                                       _point("cuckoo", 1000, 6.0, 0.001)]))
    axes, = figure.axes
    even = 4.0 / 0.019
    (name, left, right, low, high), other = _regions(axes)
    assert (name, low, high) == ("blocked_bloom", 1, pytest.approx(even))
    assert left < 1000 < right
    assert other[0] == "cuckoo" and other[3:] == (pytest.approx(even), 1e7)


def test_noise_is_marked_around_the_break_even_point_only(make_run):
    run = make_run([_point("blocked_bloom", 1000, 2.0, 0.02), _point("cuckoo", 1000, 6.0, 0.001)])
    axes, = winner_map.draw(run).axes
    (low, middle), (middle_again, high) = _noise(axes)
    assert middle == pytest.approx(4.0 / 0.019) and middle_again == middle
    rows = costs.candidates(run, 1000)
    for work, near in ((0.9 * low, False), (1.1 * low, True), (0.9 * high, True),
                       (1.1 * high, False)):
        assert costs.within_noise(*rows, 1.0, work) == near


def test_columns_are_the_measured_key_counts_and_touch(make_run):
    run = make_run([_point(name, keys, ns, fpr) for keys in (1000, 10_000, 1_000_000)
                    for name, ns, fpr in (("ribbon", 5.0, 0.001), ("blocked_bloom", 2.0, 0.02))])
    axes, = winner_map.draw(run).axes
    columns = sorted({(left, right) for _, left, right, _, _ in _regions(axes)})
    assert len(columns) == 3
    for (_, right), (left, _) in zip(columns, columns[1:]):
        assert right == pytest.approx(left)
    assert columns[0][1] == pytest.approx((1000 * 10_000) ** 0.5)
    assert [round(tick) for tick in axes.get_xticks()] == [1000, 10_000, 1_000_000]


def test_only_what_was_measured_at_a_key_count_competes_there(make_run):
    """The cuckoo filter is best by far at 1e4 keys and unknown at 1e3 and 1e5."""
    run = make_run([_point(name, keys, ns, 0.01) for keys in (1000, 10_000, 100_000)
                    for name, ns in (("ribbon", 5.0), ("blocked_bloom", 4.0))]
                   + [_point("cuckoo", 10_000, 1.0, 1e-5)])
    axes, = winner_map.draw(run).axes
    assert [(name, left < 10_000 < right) for name, left, right, _, _ in _regions(axes)] == [
        ("blocked_bloom", False), ("cuckoo", True), ("blocked_bloom", False)]
    gap, = winner_map.gaps(run)
    assert "cuckoo" in gap.lack and not gap.fatal


def test_key_counts_with_few_sizes_are_left_out_and_named(make_run):
    run = make_run([_point(name, keys, 5.0, 0.01, bits) for name in ("ribbon", "blocked_bloom")
                    for keys in (1000, 3000, 10_000) for bits in (8.0, 10.0)
                    if keys != 3000 or bits == 10.0])
    figure = winner_map.draw(run)
    assert {left < 3000 < right for _, left, right, _, _ in _regions(figure.axes[0])} == {
        True, False}  # inside a column by width, but no column of its own
    assert [round(tick) for tick in figure.axes[0].get_xticks()] == [1000, 10_000]
    assert "Left out, with few sizes to choose from: 3\u00d710\u00b3 keys" in figure.caption.reading


def test_the_second_panel_has_a_limit_on_space(make_run):
    run = make_run([_point("ribbon", 1000, 5.0, 1e-5, 20.0), _point("ribbon", 1000, 5.0, 0.01, 8.0),
                    _point("blocked_bloom", 1000, 2.0, 0.02, 10.0)])
    free, tight = winner_map.draw(run).axes
    assert [row[0] for row in _regions(free)] == ["blocked_bloom", "ribbon"]
    assert _regions(free)[1][4] == _regions(tight)[1][4] == 1e7
    assert _regions(tight)[1][3] == pytest.approx(3.0 / 0.01)
    assert _regions(free)[1][3] == pytest.approx(3.0 / (0.02 - 1e-5))


def test_labels_hold_the_filter_and_bits_and_stay_inside_their_regions(full_run):
    figure = winner_map.draw(full_run)
    renderer = figure.canvas.get_renderer()
    texts = [text for axes in figure.axes for text in axes.texts if text.get_bbox_patch()]
    assert any("blocked" in t.get_text() for t in texts)
    for axes in figure.axes:
        regions = [axes.transData.transform([(left, low), (right, high)])
                   for _, left, right, low, high in _regions(axes)]
        for text in axes.texts:
            if text.get_bbox_patch():
                box = text.get_window_extent(renderer)
                assert any(x0 <= box.x0 and box.x1 <= x1 and y0 <= box.y0 and box.y1 <= y1
                           for (x0, y0), (x1, y1) in regions)


def test_without_intervals_everything_is_within_noise(make_run):
    points = [_point("blocked_bloom", 1000, 2.0, 0.02), _point("cuckoo", 1000, 600.0, 0.01)]
    for entry in points:
        entry["ns_per_op"].update(low=None, high=None, confidence=None)
    axes, = winner_map.draw(make_run(points)).axes
    spans = _noise(axes)
    assert spans[0][0] == 1 and spans[-1][1] == pytest.approx(1e7)


def test_regions_differ_in_hatch_as_well_as_in_colour(full_run):
    figure = winner_map.draw(full_run)
    patches = [handle for handle in figure.legends[0].get_patches()]
    assert len({patch.get_hatch() for patch in patches}) == len(patches) >= 3


def test_the_tiny_run_has_one_column(tiny_run_path):
    axes = winner_map.draw(load.load_run(tiny_run_path)).axes[0]
    assert {(left, right) for _, left, right, _, _ in _regions(axes)} == {(500, 2000)}
