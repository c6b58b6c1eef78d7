import numpy
import pytest

from plots import fpr_vs_overfill, testing

MADE_FOR = 1000


def _point(name, fill, fpr, *, held=None, bits=10.0, false_positives=None, params=None,
           keys=MADE_FOR, **options):
    held = round(keys * fill) if held is None else held
    if options.get("status", "ok") == "ok":
        options |= {"ns": 20.0, "bits": bits * keys / held, "fpr": fpr,
                    "false_positives": round(1e6 * fpr) if false_positives is None
                    else false_positives}
    return testing.make_point(name, params or {"bits_per_key": 10.0}, keys, "overfill", None,
                              "scalar", fill=fill, keys_held=held, **options)


def _lines(axes, prefix):
    return {line.get_gid(): (list(line.get_xdata()), list(line.get_ydata()))
            for line in axes.lines if (line.get_gid() or "").startswith(prefix)}


def test_points_are_measured_and_lines_expected_at_the_keys_held(make_run):
    points = [_point("blocked_bloom", fill, fpr) for fill, fpr in (
        (0.5, 0.001), (1, 0.01), (2, 0.1))]
    points[2]["fpr"]["expected"] = 0.11
    axes, = fpr_vs_overfill.draw(make_run(points)).axes
    assert _lines(axes, "measured:")["measured:blocked_bloom:"] == (
        [0.5, 1, 2], [0.001, 0.01, 0.1])
    assert _lines(axes, "theory:")["theory:blocked_bloom:"] == ([0.5, 1, 2], [0.001, 0.01, 0.11])
    assert not _lines(axes, "refuses:")


def test_a_filter_that_refuses_ends_there_and_says_how_full_it_was(make_run):
    figure = fpr_vs_overfill.draw(make_run([
        _point("cuckoo", fill, 0.002 if fill < 1 else 0.003, held=min(1037, round(1000 * fill)))
        for fill in (0.5, 1.5, 2, 3)]))
    axes, = figure.axes
    assert _lines(axes, "measured:")["measured:cuckoo:"][0] == [0.5, 1.037]
    assert _lines(axes, "refuses:")["refuses:cuckoo:"] == ([1.037], [0.003])
    assert "cuckoo: full at 1.04" in [t.get_text() for t in figure.legends[0].get_texts()]


def test_a_fill_that_is_no_whole_number_of_keys_is_no_refusal(make_run):
    figure = fpr_vs_overfill.draw(make_run([_point("blocked_bloom", 0.3333, 0.001, held=333),
                                            _point("blocked_bloom", 1.6666, 0.05, held=1666)]))
    assert not _lines(figure.axes[0], "refuses:")


def test_what_grows_what_refuses_and_what_takes_all_have_panels_of_their_own(make_run):
    figure = fpr_vs_overfill.draw(make_run(testing.make_overfilled()))
    shown = [{gid.split(":")[1] for gid in _lines(axes, "measured:")} for axes in figure.axes]
    assert shown == [{"cuckoo"}, {"classic_bloom", "blocked_bloom"}, {"scalable_bloom"}]


def test_a_hundred_fold_fill_has_a_logarithmic_axis(make_run):
    axes, = fpr_vs_overfill.draw(make_run([
        _point("scalable_bloom", fill, 0.01, bits=10.0 * max(1, fill))
        for fill in (0.5, 1, 10, 100)])).axes
    assert axes.get_xscale() == "log" and axes.get_title(loc="left") == "grow"
    assert axes.get_xlim()[0] < 0.5 and axes.get_xlim()[1] > 100


def test_no_false_positive_is_an_upper_limit(make_run):
    figure = fpr_vs_overfill.draw(make_run([_point("ribbon", 0.5, 1e-9, false_positives=0),
                                            _point("ribbon", 2.0, 0.01)]))
    assert _lines(figure.axes[0], "upper_limit:")["upper_limit:ribbon:"] == (
        [0.5], [pytest.approx(3e-6)])
    low, _ = figure.axes[0].get_ylim()
    assert 0 < low < 1.2e-6
    assert any("3/queries" in t.get_text() for t in figure.legends[0].get_texts())


def test_the_axis_ends_at_an_fpr_of_one(make_run):
    axes, = fpr_vs_overfill.draw(make_run([_point("blocked_bloom", 1, 0.1),
                                           _point("blocked_bloom", 9, 0.97)])).axes
    assert axes.get_ylim()[1] == 1


def test_one_fill_is_no_figure_and_one_fill_of_a_filter_is_said(make_run):
    gap, = fpr_vs_overfill.gaps(make_run([_point("blocked_bloom", 2, 0.1)]))
    assert gap.fatal and "one fill only" in gap.lack
    gap, = fpr_vs_overfill.gaps(make_run([
        _point("blocked_bloom", 1, 0.1), _point("blocked_bloom", 2, 0.2),
        _point("cuckoo", 2, 0.1)]))
    assert not gap.fatal and "cuckoo" in gap.lack


def test_filters_filled_up_to_their_size_are_not_overfilled(make_run):
    """A sweep of loads at another key count has more fills; it is not what is asked here."""
    loads = [_point("blocked_bloom", fill, fill / 100, keys=2 * MADE_FOR)
             for fill in (0.1, 0.3, 0.5, 0.7, 0.9, 1)]
    gap, = fpr_vs_overfill.gaps(make_run(loads))
    assert gap.fatal and "more keys than it was made for" in gap.lack
    figure = fpr_vs_overfill.draw(make_run(loads + [
        _point("blocked_bloom", 1, 0.01), _point("blocked_bloom", 2, 0.1)]))
    assert _lines(figure.axes[0], "measured:")["measured:blocked_bloom:"][0] == [1, 2]


def test_what_cannot_be_filled_is_named(make_run):
    run = make_run([_point("blocked_bloom", 1, 0.1), _point("blocked_bloom", 2, 0.2),
                    _point("xor", 1, None, status="skipped", reason="is built at once")])
    gap, = fpr_vs_overfill.gaps(run)
    assert "xor" in gap.lack and not gap.fatal
    fpr_vs_overfill.draw(run)


def test_unknown_ends_of_an_interval_are_not_drawn(make_run):
    points = [_point("blocked_bloom", 1, 0.1), _point("blocked_bloom", 2, 0.2)]
    for entry in points:
        entry["fpr"].update(low=None, high=None)
    axes, = fpr_vs_overfill.draw(make_run(points)).axes
    for collection in axes.collections:
        for bar in collection.get_segments():
            assert not len(bar) or bar[0][1] == bar[1][1]


def test_variants_and_names_in_any_script(make_run):
    names = ("\u8fc7\u6ee4\u5668", "_hidden", "cost$per$key", "tab\tline\nbreak")
    figure = fpr_vs_overfill.draw(make_run([
        _point(name, fill, fpr, params={"bits_per_key": 10.0, "mode": mode})
        for name in names for mode in ("a", "b") for fill, fpr in ((1, 0.01), (2, 0.1))]))
    labels = [t.get_text() for t in figure.legends[0].get_texts()]
    assert len(labels) == len(set(labels)) and sum("mode=" in label for label in labels) == 8
    figure.canvas.draw()
    assert numpy.isfinite(figure.axes[0].get_ylim()).all()
