"""Figure 8 through the data in its artists."""

import numpy
import pytest

from plots import load, selection, speed_vs_load, testing

_FILLS = (0.1, 0.5, 0.9, 1.0, 1.5)


def _lines(figure, prefix):
    """{gid: {panel: (x, y)}} of the lines whose gid begins with `prefix`."""
    found = {}
    for panel, axes in enumerate(figure.axes):
        for line in axes.lines:
            if (line.get_gid() or "").startswith(prefix):
                found.setdefault(line.get_gid(), {})[panel] = (
                    [float(x) for x in line.get_xdata()], [float(y) for y in line.get_ydata()])
    return found


def _points(**options):
    return testing.make_filled_points(**({"filters": ("blocked_bloom", "cuckoo"), "keys": 1000,
                                          "fills": _FILLS} | options))


def _floor(share, keys=1000, ns=2.5):
    return testing.make_point("touch_lines", {"bits_per_key": 12.0, "lines": 1}, keys,
                              "lookup_batched", share, "avx2", ns=ns, bits=12.0)


def _text(figure):
    return " ".join(text.get_text() for text in figure.texts)


def test_times_and_loads_are_those_of_the_file(make_run):
    run = make_run(_points())
    figure = speed_vs_load.draw(run)
    assert [axes.get_title("left") for axes in figure.axes] == [
        "inserting", "looking up present keys", "looking up absent keys"]
    lines = _lines(figure, "measured:")
    assert set(lines) == {"measured:blocked_bloom:", "measured:cuckoo:"}
    for name in ("blocked_bloom", "cuckoo"):
        rows = run.filled[run.filled["filter"] == name]
        for panel, (mode, share) in enumerate((("insert", None), ("lookup_batched", 0.0),
                                               ("lookup_batched", 1.0))):
            here = rows[rows["mode"] == mode]
            here = here[here["negative_share"].isna() if share is None
                        else here["negative_share"] == share].sort_values("fill")
            assert lines[f"measured:{name}:"][panel] == (list(_FILLS), list(here["ns_per_op"]))
    assert not _lines(figure, "full:")
    low, high = figure.axes[0].get_xlim()
    assert low == 0 and high > 1.5


def test_lookups_share_their_scale(make_run):
    figure = speed_vs_load.draw(make_run(_points()))
    inserting, present, absent = (axes.get_ylim() for axes in figure.axes)
    assert present == absent != inserting


def test_a_filter_that_refused_a_key_ends_there(make_run):
    # It is full at 970: of the last keys before 1 it took 20, before 1.5 none.
    run = make_run(_points(most={"cuckoo": 970}))
    figure = speed_vs_load.draw(run)
    assert _lines(figure, "full:").keys() == {"full:cuckoo:"}
    for panel in range(3):
        x, y = _lines(figure, "measured:cuckoo:")["measured:cuckoo:"][panel]
        assert x == [0.1, 0.5, 0.9, 0.97]
        assert _lines(figure, "full:")["full:cuckoo:"][panel] == ([0.97], [y[-1]])
        blocked = _lines(figure, "measured:blocked")["measured:blocked_bloom:"]
        assert blocked[panel][0] == list(_FILLS)
    assert "refused the next key" in [t.get_text() for t in figure.legends[0].get_texts()]


def test_where_none_of_the_last_keys_was_accepted_the_curve_ends_at_the_last_time(make_run):
    run = make_run(_points(most={"cuckoo": 940}))
    figure = speed_vs_load.draw(run)
    x, y = _lines(figure, "measured:cuckoo:")["measured:cuckoo:"][0]
    assert x == [0.1, 0.5, 0.9]
    assert _lines(figure, "full:")["full:cuckoo:"][0] == ([0.94], [y[-1]])
    assert _lines(figure, "measured:cuckoo:")["measured:cuckoo:"][1][0] == [0.1, 0.5, 0.9, 0.94]


def test_the_floor_is_that_of_the_same_share_and_keys(make_run):
    run = make_run(_points() + [_floor(0.0, ns=2.0), _floor(1.0, ns=3.0), _floor(0.5, ns=9.0),
                                _floor(1.0, keys=2000, ns=8.0)])
    assert not speed_vs_load.gaps(run)
    floors = _lines(speed_vs_load.draw(run), "floor:")["floor:touch_lines:"]
    assert {panel: y for panel, (_, y) in floors.items()} == {1: [2.0, 2.0], 2: [3.0, 3.0]}


def test_intervals_are_those_of_the_file(make_run):
    run = make_run(_points(filters=("cuckoo",)))
    axes = speed_vs_load.draw(run).axes[0]
    bars = {tuple(segment[:, 1]) for collection in axes.collections
            for segment in collection.get_segments()}
    rows = run.filled[run.filled["mode"] == "insert"]
    for low, high in zip(rows["ns_per_op_low"], rows["ns_per_op_high"]):
        assert any(numpy.allclose((low, high), bar) for bar in bars)


def test_the_key_count_with_the_most_loads_is_shown(make_run):
    run = make_run(_points(fills=(0.5, 1.0), keys=9000) + _points(keys=2000) + _points(keys=1000)
                   + _points(fills=(1.0,), keys=5000))
    figure = speed_vs_load.draw(run)
    assert "made for 2\u00d710\u00b3 keys" in _text(figure)
    assert _lines(figure, "measured:cuckoo:")["measured:cuckoo:"][0][0] == list(_FILLS)


def test_the_caption_says_how_full_the_slots_are(make_run):
    text = _text(speed_vs_load.draw(make_run(_points())))
    assert "Slots in use at the right end: cuckoo: 95 %." in text
    assert "Slots" not in _text(speed_vs_load.draw(make_run(_points(filters=("blocked_bloom",)))))


def test_the_load_of_slots_must_be_a_number(tmp_path):
    points = _points()
    samples = testing.make_samples(points)
    samples[-1]["filter"]["extra"] = {"load": "full"}
    path = testing.write_run(tmp_path / testing.RUN_NAME, points, samples=samples)
    field = rf"samples.jsonl:{len(samples)}: field filter.extra.load"
    with pytest.raises(load.RunError, match=field):
        load.load_run(path)


@pytest.mark.parametrize("points,lacks", [
    (_points(modes=("insert",)), ["looking up present keys at two loads",
                                  "looking up absent keys at two loads"]),
    (_points(modes=("lookup_batched",)), ["inserting at two loads", "no floor", "no floor"]),
    (_points(shares=(1.0,)), ["looking up present keys at two loads", "no floor"]),
    (_points(filters=("cuckoo",)) + _points(filters=("blocked_bloom",), modes=("insert",)),
     ["looking up present keys with blocked_bloom", "looking up absent keys with blocked_bloom",
      "no floor", "no floor"]),
], ids=["no lookups", "no insertions", "no present keys", "a filter without lookups"])
def test_what_is_lacking_is_said_and_the_rest_drawn(points, lacks, make_run):
    run = make_run(points)
    gaps = speed_vs_load.gaps(run)
    assert len(gaps) == len(lacks) and not any(gap.fatal for gap in gaps)
    for gap, lack in zip(gaps, lacks):
        assert lack in gap.lack and gap.remedy
    assert len(speed_vs_load.draw(run).axes) == 3 - sum("at two loads" in lack for lack in lacks)


@pytest.mark.parametrize("points", [
    [], _points(fills=(1.0,)), _points(modes=("overfill",)), _points(shares=(0.5,), modes=(
        "lookup_batched",)),
    [testing.make_point("cuckoo", {}, 1000, "insert", None, "scalar", fill=fill, status="invalid",
                        reason="too short") for fill in (0.5, 1.0)],
], ids=["nothing", "one load", "mean over all keys", "another share", "no times"])
def test_without_two_loads_there_is_no_figure(points, make_run):
    run = make_run(points)
    gap, = speed_vs_load.gaps(run)
    assert gap.fatal and "run a spec with modes insert" in gap.remedy
    with pytest.raises(selection.MissingData, match="two loads"):
        speed_vs_load.draw(run)


def test_filters_that_take_no_single_keys_are_left_out(make_run):
    skipped = [testing.make_point("xor", {"fingerprint_bits": "8"}, 1000, "insert", None, "scalar",
                                  fill=fill, status="skipped", reason="xor takes no single keys")
               for fill in _FILLS]
    for entry in skipped:
        entry["keys_held"] = []
    figure = speed_vs_load.draw(make_run(_points() + skipped))
    assert "measured:xor:" not in _lines(figure, "measured:")
