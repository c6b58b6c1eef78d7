"""Figure 11 through the data in its artists."""

import pytest

from plots import construction, testing


def _point(name, params, keys, **more):
    built = testing.make_point(name, params, keys, "build", None, "scalar", ns=20.0, bits=10.0,
                               build_ns=20.0)
    return built | more


RIBBON = {"bits_per_key": 10.0, "fpr": 0.0, "width": "128"}


def _lines(figure, prefix):
    return {line.get_gid(): (list(line.get_xdata()), list(line.get_ydata()))
            for axes in figure.axes for line in axes.lines
            if (line.get_gid() or "").startswith(prefix)}


def _attempts(mean, most, failed=0):
    return {"builds": 4, "failed_builds": failed, "median": 1, "mean": mean, "max": most}


def test_attempts_slots_and_memory_are_those_of_the_file(make_run):
    points = [_point("ribbon", RIBBON, n, build_attempts=_attempts(mean, most), slots_per_key=slots,
                     peak_build_bytes_per_key=peak)
              for n, mean, most, slots, peak in ((10_000, 1.5, 3, 1.06, 25.0),
                                                 (100_000, 1, 1, 1.07, 24.0))]
    figure = construction.draw(make_run(points))
    x = [10_000, 100_000]
    assert _lines(figure, "measured:")["measured:ribbon:"] == (x, [1.5, 1])
    bar, = (segment for segment in figure.axes[0].collections[0].get_segments()
            if segment[0][0] == 10_000)
    assert list(bar[:, 1]) == [1.5, 3]
    assert _lines(figure, "slots:")["slots:ribbon:"] == (x, [1.06, 1.07])
    assert _lines(figure, "peak:")["peak:ribbon:"] == (x, [25.0, 24.0])
    assert _lines(figure, "table:")["table:ribbon:"] == (x, [1.25, 1.25])
    keys, slots = _lines(figure, "theory:")["theory:ribbon:"]
    assert keys == [10 ** e for e in range(4, 9)]
    assert slots[0] == testing.make_theory(["ribbon"])["slots_per_key"][1]["points"][0][
        "slots_per_key"]


def test_builds_that_failed_are_marked_whether_or_not_others_succeeded(make_run):
    none = {"builds": 0, "failed_builds": 4, "median": None, "mean": None, "max": None,
            "reason": "no build succeeded"}
    points = [_point("ribbon", RIBBON, 1000), _point("ribbon", RIBBON, 10_000)]
    failed = [testing.make_point("ribbon", RIBBON, n, "build", None, "scalar",
                                 status="build_failed", reason="no seed works")
              for n in (100_000, 1_000_000)]
    failed[0]["build_attempts"] = none
    failed[1]["build_attempts"] = _attempts(2, 3, failed=1)
    figure = construction.draw(make_run(points + failed))
    assert set(_lines(figure, "failed:")) == {"failed:100000", "failed:1e+06"}
    assert any("cross" in text.get_text() for text in figure.legends[0].get_texts())


def test_filters_without_slots_are_left_out(make_run):
    points = [_point("blocked_bloom", {"bits_per_key": 10.0, "k": 6}, n) for n in (1000, 10_000)]
    gap, = construction.gaps(make_run(points))
    assert gap.fatal and "slots and attempts" in gap.lack


def test_unknown_memory_is_said_and_drawn_without(make_run):
    points = [_point("ribbon", RIBBON, n, peak_build_bytes_per_key=None,
                     peak_build_bytes_per_key_reason="the filter does not say")
              for n in (1000, 10_000)]
    run = make_run(points)
    assert any("how much memory" in gap.lack for gap in construction.gaps(run))
    figure = construction.draw(run)
    assert not _lines(figure, "peak:") and _lines(figure, "table:")


def test_parameters_without_a_curve_have_no_line(make_run):
    other = RIBBON | {"bits_per_key": 12.0}
    figure = construction.draw(make_run([_point("ribbon", other, n) for n in (1000, 10_000)]))
    assert _lines(figure, "slots:") and not _lines(figure, "theory:")
    assert pytest.approx(1.25) == _lines(figure, "table:")["table:ribbon:"][1][0]
