"""Figure 15 through the data in its artists."""

import pytest

from plots import read_gain, style, testing


def _draw(run):
    figure = read_gain.draw(run)
    lines = [{} for _ in figure.axes]
    for found, axes in zip(lines, figure.axes):
        for line in axes.lines:
            found.setdefault(line.get_gid(), []).append(line)
    return figure, lines


def _texts(axes):
    return {text.get_gid(): text.get_text() for text in axes.texts}


@pytest.fixture
def run(make_run):
    return make_run(testing.make_gets(
        filters=("blocked_bloom", "cuckoo"), files=(7,), cases=((1.0, "any"), (0.9, "any")),
        reads=("direct", "cached"), engines=("lsm_get", "rocksdb_get")))


def test_a_row_has_the_time_with_and_without_filters_and_their_ratio(run):
    figure, panels = _draw(run)
    points = run.workloads
    places = [(0.9, "direct"), (0.9, "cached"), (1.0, "direct"), (1.0, "cached")]
    for axes, lines, (share, reads) in zip(figure.axes, panels, places):
        here = points[(points["negative_share"] == share) & (points["knob.reads"] == reads)]

        def time(name, engine, here=here):
            return here[(here["filter"] == name) & (here["workload"] == engine)][
                "ns_per_op"].iloc[0]
        for engine, end in (("lsm_get", ""), ("rocksdb_get", ":rocksdb_get")):
            line, = lines[f"measured:cuckoo:{end}"]
            assert list(line.get_xdata()) == [time("cuckoo", engine)]
            without = [other for other in lines["floor:always_maybe:"]
                       if list(other.get_ydata()) == list(line.get_ydata())]
            assert [list(other.get_xdata()) for other in without] == [
                [time("always_maybe", engine)]]
            ratio = time("always_maybe", engine) / time("cuckoo", engine)
            assert float(_texts(axes)[f"ratio:cuckoo:{end}"]) == pytest.approx(ratio, rel=0.05)


def test_panels_are_kinds_of_reads_by_shares(run):
    figure, _ = _draw(run)
    titles = [" ".join(axes.get_title(loc="left").split()) for axes in figure.axes]
    assert titles == ["direct reads, 90 % absent keys", "page cache, 90 % absent keys",
                      "direct reads, 100 % absent keys", "page cache, 100 % absent keys"]


def test_what_was_measured_of_one_kind_alone_is_one_panel_and_a_gap(make_run):
    run = make_run(testing.make_gets(filters=("cuckoo",), files=(7,)))
    figure, _ = _draw(run)
    assert len(figure.axes) == 1
    assert {gap.lack for gap in read_gain.gaps(run)} == {
        "no gets with 90 % absent keys, direct reads", "no gets with 100 % absent keys, direct reads",
        "no gets with 90 % absent keys, page cache"}


def test_of_several_stores_the_one_that_most_filters_were_asked_in(make_run):
    many = testing.make_gets(filters=("cuckoo", "blocked_bloom"), files=(7,))
    more = testing.make_gets(filters=("cuckoo",), files=(20, 40))
    run = make_run([*many, *more])
    assert "files=7" in read_gain.draw(run).caption.conditions
    equal = testing.make_gets(filters=("cuckoo", "blocked_bloom"), files=(1, 40))
    run = make_run(list({entry["point_id"]: entry for entry in many + equal}.values()))
    assert "files=40" in read_gain.draw(run).caption.conditions


def test_gets_without_a_store_without_filters_have_no_gain(make_run):
    run = make_run(testing.make_gets(filters=("cuckoo",), files=(7,), baseline=False))
    gap, = read_gain.gaps(run)
    assert gap.fatal and "always_maybe" in gap.remedy


def test_unknown_intervals_do_no_harm(make_run):
    points = testing.make_gets(filters=("cuckoo",), files=(7,))
    for entry in points:
        entry["ns_per_op"].update(low=None, high=None, confidence=None)
    figure, (lines,) = _draw(make_run(points))
    assert lines["measured:cuckoo:"] and style.page().theme == "screen" and figure.legends
