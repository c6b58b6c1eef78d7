"""The overhead is checked against its formula, worked out by hand here."""

import math

import numpy
import pytest

from plots import overhead_vs_fpr, testing


def _point(name, bits, fpr, false_positives, queries=1_000_000, **params):
    return testing.make_point(name, {"bits_per_key": bits} | params, 1000, "lookup_batched", 1.0,
                              "avx2", ns=5.0, bits=bits, fpr=fpr, queries=queries,
                              false_positives=false_positives)


def _lines(figure, prefix):
    return {line.get_gid(): line for line in figure.axes[0].lines
            if (line.get_gid() or "").startswith(prefix)}


def _bars(figure):
    return [segment for collection in figure.axes[0].collections
            for segment in collection.get_segments() if len(segment)]


def test_the_ratio_and_its_interval_come_from_the_fpr(make_run):
    figure = overhead_vs_fpr.draw(make_run([_point("ribbon", 10.0, 1 / 1024, 976),
                                            _point("ribbon", 5.0, 1 / 16, 62_500)]))
    line = _lines(figure, "measured:")["measured:ribbon:"]
    assert list(line.get_xdata()) == [976e-6, 0.0625]
    assert list(line.get_ydata()) == pytest.approx([10 / -math.log2(976e-6), 5 / 4])
    spread = 1.96 * math.sqrt(976) / 1e6
    ends = [10 / -math.log2(976e-6 + sign * spread) for sign in (-1, 1)]
    assert any(numpy.allclose(bar[:, 1], ends) for bar in _bars(figure))


def test_no_false_positive_is_an_upper_limit_of_the_overhead(make_run):
    figure = overhead_vs_fpr.draw(make_run([_point("ribbon", 20.0, 1e-6, 0, queries=30_000),
                                            _point("ribbon", 8.0, 0.01, 10_000)]))
    line = _lines(figure, "upper_limit:")["upper_limit:ribbon:"]
    assert list(line.get_xdata()) == pytest.approx([1e-4])
    assert list(line.get_ydata()) == pytest.approx([20 / math.log2(10_000)])
    assert list(_lines(figure, "measured:")["measured:ribbon:"].get_xdata()) == [0.01]
    assert any("3/queries" in t.get_text() for t in figure.legends[0].get_texts())


def test_lines_are_the_ratio_of_the_runs_theory(make_run):
    theory = {"schema": "filterbench/theory/1", "curves": [
        {"filter": "classic_bloom", "label": "k", "source": "s", "points": [
            {"bits_per_key": b, "fpr": 2.0 ** (-b / 1.44)} for b in (2.0, 4.0, 8.0, 16.0)]},
        {"filter": None, "label": "bound", "source": None, "points": [
            {"bits_per_key": 8.0, "fpr": 2.0 ** -8}]}]}
    run = make_run([_point("classic_bloom", b, 2.0 ** (-b / 1.44), f)
                    for b, f in ((4.0, 145_816), (16.0, 452))], theory=theory)
    figure = overhead_vs_fpr.draw(run)
    line = _lines(figure, "theory:")["theory:classic_bloom"]
    assert list(line.get_ydata()) == pytest.approx([1.44] * len(line.get_ydata()))
    assert len(line.get_ydata()) >= 3
    assert set(_lines(figure, "bound")["bound"].get_ydata()) == {1}


def test_the_fpr_falls_to_the_right(drawn):
    axes, = drawn(overhead_vs_fpr).axes
    assert axes.get_xlim()[0] > axes.get_xlim()[1] and axes.get_xscale() == "log"


def test_what_takes_several_times_the_space_has_an_axis_with_numbers(make_run):
    figure = overhead_vs_fpr.draw(make_run([_point("counting_bloom", 40.0, 0.01, 10_000),
                                            _point("ribbon", 8.0, 0.01, 10_000)]))
    axes, = figure.axes
    figure.canvas.draw()
    assert axes.get_yscale() == "log" and axes.get_ylim()[1] > 40 / -math.log2(0.01)
    assert {"1", "2", "5"} <= {t.get_text() for t in axes.get_yticklabels()}


def test_an_fpr_near_one_says_nothing(make_run):
    run = make_run([_point("blocked_bloom", 1.0, 0.97, 970_000),
                    _point("blocked_bloom", 8.0, 0.02, 20_000)])
    line = _lines(overhead_vs_fpr.draw(run), "measured:")["measured:blocked_bloom:"]
    assert list(line.get_xdata()) == [0.02]
    gap, = overhead_vs_fpr.gaps(make_run([_point("blocked_bloom", 1.0, 0.97, 970_000)]))
    assert gap.fatal


def test_unknown_ends_of_an_interval_are_not_drawn(make_run):
    points = [_point("ribbon", 10.0, 1e-3, 1000), _point("ribbon", 5.0, 0.05, 50_000)]
    for entry in points:
        entry["fpr"].update(low=None, high=None)
    figure = overhead_vs_fpr.draw(make_run(points))
    for bar in _bars(figure):
        assert numpy.isfinite(bar).all() and bar[0][1] == bar[1][1]


def test_an_interval_up_to_one_leaves_the_axes_and_breaks_nothing(make_run):
    points = [_point("ribbon", 10.0, 1e-3, 1000), _point("ribbon", 5.0, 0.05, 50_000)]
    points[1]["fpr"]["high"] = 1.0
    figure = overhead_vs_fpr.draw(make_run(points))
    assert max(bar[:, 1].max() for bar in _bars(figure)) > figure.axes[0].get_ylim()[1]
    assert all(numpy.isfinite(bar).all() for bar in _bars(figure))
    assert figure.axes[0].get_ylim()[1] < 3
