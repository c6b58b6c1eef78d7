import json
import math
import pathlib
import re

import pytest

from plots import kernels, testing

_SPLIT = {"bits_per_key": 10.0}
_FUSE = {"arity": "3", "fingerprint_bits": "8"}
_CUCKOO = {"fingerprint_bits": "12", "load": 0.95}
_SPEC = pathlib.Path(__file__).resolve().parent.parent / "workloads" / "specs" / "kernels.json"


def _make(name, params, keys, mode="lookup_batched", share=1.0, target="avx2", **options):
    return testing.make_point(name, params, keys, mode, share, target, **{"bits": 10.0} | options)


def _touch(keys, ns, way="plain", lines=1, bits=10.0, target="avx2", **options):
    return _make("touch_lines", {"bits_per_key": bits, "lines": lines, "way": way}, keys, ns=ns,
                 bits=bits, target=target, **options)


def _rows(run, table, **cells):
    """The rows of a table that have these cells, and the sentences below."""
    _, rows, notes = table(kernels.Points(run))
    return [row for row in rows if all(row[c] == text for c, text in cells.items())], notes


def _lookup(run, label, keys, absent="100 %"):
    (row,), notes = _rows(run, kernels.lookups, filter=label, keys=f"{keys}", absent=absent)
    return row, notes


def _reason(cell, notes):
    """The reason that a dash refers to."""
    number = re.match(r"- \[(\d+)\]", cell)
    assert number, f"{cell!r} is no dash with a reason"
    return next(n for n in notes if n.startswith(f"- [{number[1]}] "))


def test_a_ratio_has_the_interval_of_both_and_meets_its_goal_or_not(make_run):
    floor = _touch(10_000, 1.0)
    from_ = [floor["point_id"]]
    run = make_run([
        floor, _make("split_block", _SPLIT, 10_000, ns=1.2, floor=1.0, floor_from=from_),
        _make("split_block", _SPLIT, 10_000, share=0.5, ns=1.35, floor=1.0, floor_from=from_),
        _make("blocked_bloom", _SPLIT, 10_000, ns=2.0, floor=1.0, floor_from=from_),
        _make("blocked_bloom", _SPLIT, 10_000, share=0.5, ns=1.65, floor=1.0, floor_from=from_)])
    row, notes = _lookup(run, "split_block 8x32", 10_000)
    assert row["ns"] == "1.20 [1.16, 1.25]" and row["floor ns"] == "1.00 [0.970, 1.04]"
    # 1.2 * 0.97 / 1.04 and 1.2 * 1.04 / 0.97
    assert row["x floor"] == "1.20 [1.12, 1.29]"
    assert row["goal"] == "<= 1.3 x floor" and row["met"] == "yes" and row["floor"] == ""
    assert _lookup(run, "split_block 8x32", 10_000, "50 %")[0]["met"] == "NO, within noise"
    assert _lookup(run, "blocked_bloom", 10_000)[0]["met"] == "NO"
    assert _lookup(run, "blocked_bloom", 10_000, "50 %")[0]["met"] == "yes, within noise"
    goals = sum(len(c.goals) * len(c.goal_shares) for c in kernels.CONTENDERS)
    assert notes[0] == (
        f"Goals (issue 3, What must be shown), {goals} in all: 1 yes, within noise; 1 yes; "
        f"{goals - 4} unknown; 1 NO, within noise; 1 NO.")


def test_a_floor_between_two_sizes_has_an_interval_between_theirs(make_run):
    below, above = _touch(10_000, 1.0, bits=7.0), _touch(10_000, 2.0, bits=13.0)
    run = make_run([below, above, _make(
        "split_block", _SPLIT, 10_000, ns=3.0, floor=1.25,
        floor_from=[below["point_id"], above["point_id"]])])
    row, _ = _lookup(run, "split_block 8x32", 10_000)
    assert row["floor ns"] == "1.25 [1.21, 1.30]"  # 1.25 * 0.97, 1.25 * 1.04


def test_a_floor_whose_points_are_not_there_has_no_interval(make_run):
    run = make_run([_make("split_block", _SPLIT, 10_000, ns=1.2, floor=1.0)])
    row, _ = _lookup(run, "split_block 8x32", 10_000)
    assert row["x floor"] == "1.20" and row["met"] == "yes, interval unknown"


@pytest.mark.parametrize("ns,flag", [
    (0.5, "floor is wrong"), (0.98, "floor is wrong, within noise"), (1.0, ""), (1.1, "")])
def test_faster_than_the_floor_says_that_the_floor_is_wrong(make_run, ns, flag):
    floor = _touch(10_000, 1.0)
    run = make_run([floor, _make("split_block", _SPLIT, 10_000, ns=ns, floor=1.0,
                                 floor_from=[floor["point_id"]])])
    assert _lookup(run, "split_block 8x32", 10_000)[0]["floor"] == flag


def test_a_goal_in_lines_is_held_against_the_fastest_at_the_nearest_size(make_run):
    large = 100_000_000
    run = make_run([
        _make("binary_fuse", _FUSE, large, ns=24.0, floor=12.0),
        _touch(10_000_000, 30.0, lines=3, bits=100.0),
        _touch(10_000_000, 25.0, "ring_64", 3, 100.0),
        _touch(10_000_000, 20.0, lines=2, bits=100.0),            # other lines
        _touch(10_000_000, 23.0, "ahead", 3, 120.0),              # farther in size
        _touch(10_000_000, 1.0, "ahead", 3, 100.0, mode="latency")])
    row, _ = _lookup(run, "binary_fuse 3-wise 8-bit", large)
    assert row["x lines"] == "0.960 [0.895, 1.03] (3)" and row["x floor"] == "2.00"
    assert row["goal"] == "<= 1 x 3 lines" and row["met"] == "yes, within noise"
    assert row["floor"] == ""  # only one line is the floor


def test_a_table_of_another_size_is_no_yardstick(make_run):
    run = make_run([_make("cuckoo", _CUCKOO, 100_000_000, ns=24.0, floor=12.0),
                    _touch(10_000, 1.0, lines=2)])
    row, notes = _lookup(run, "cuckoo 12-bit", 100_000_000)
    assert "within a factor of 1.25" in _reason(row["x lines"], notes)
    assert "within a factor of 1.25" in _reason(row["met"], notes)
    assert row["x floor"] == "2.00"


def test_what_is_unknown_is_a_dash_with_its_reason(make_run):
    km = {"bits_per_key": 10.0}
    run = make_run([
        _make("split_block", _SPLIT, 1_000_000, ns=1.2),
        _make("cuckoo", _CUCKOO, 1_000_000, status="out_of_memory", reason="needs 2 GB"),
        _make("km_bloom", km | {"probing": "plain"}, 10_000, ns=2.0),
        _make("km_bloom", km | {"probing": "enhanced"}, 10_000, ns=3.0)])
    for label, keys, column, reason in (
            ("split_block 8x32", 10_000, "ns", kernels.NOT_IN_THE_RUN),
            ("split_block 8x32", 1_000_000, "x floor", "no touch_lines point"),
            ("split_block 8x32", 1_000_000, "met", "no touch_lines point"),
            ("cuckoo 12-bit", 1_000_000, "ns", "out_of_memory: needs 2 GB"),
            ("cuckoo 12-bit", 1_000_000, "x lines", "out_of_memory: needs 2 GB"),
            ("km_bloom", 10_000, "ns", "2 points of the run fit")):
        row, notes = _lookup(run, label, keys)
        assert reason in _reason(row[column], notes), (label, column)
    assert _lookup(run, "split_block 8x32", 1_000_000)[0]["ns"].startswith("1.20 ")


def test_the_goal_of_km_bloom_is_for_absent_keys_and_classic_bloom_has_none(make_run):
    run = make_run([_touch(10_000, 1.0)])
    assert _lookup(run, "km_bloom", 10_000)[0]["goal"] == "<= 5 x floor"
    assert _lookup(run, "km_bloom", 10_000, "50 %")[0]["goal"] == ""
    assert _lookup(run, "classic_bloom", 10_000)[0]["goal"] == ""


def test_the_best_target_is_taken_and_the_parameters_must_fit(make_run):
    run = make_run([_make("cuckoo", _CUCKOO, 10_000, ns=3.0),
                    _make("cuckoo", _CUCKOO, 10_000, target="scalar", ns=1.5),
                    _make("cuckoo", {"fingerprint_bits": "8"}, 10_000, ns=1.0)])
    assert _lookup(run, "cuckoo 12-bit", 10_000)[0]["ns"].startswith("3.00 ")


def test_single_lookups_and_chains_have_the_floor_of_their_mode(make_run):
    run = make_run([_make("xor", {"fingerprint_bits": "8"}, 10_000, mode, share, ns=ns, floor=floor)
                    for mode, share, ns, floor in (("lookup_single", 1.0, 2.0, 1.0),
                                                   ("lookup_single", 0.5, 3.0, 1.0),
                                                   ("latency", 1.0, 9.0, 10.0))])
    (row,), _ = _rows(run, kernels.one_by_one, filter="xor 8-bit", keys="10000")
    assert row["single 100 % x floor"] == "2.00" and row["single 50 % x floor"] == "3.00"
    assert row["latency 100 % x floor"] == "0.900"
    assert row["floor"] == "latency 100 %: floor is wrong, interval unknown"
    assert row["best peer single ns"] == "2.8"


def test_building_is_timed_or_taken_from_the_builds_of_the_lookups(make_run):
    run = make_run([_make("cuckoo", _CUCKOO, 10_000, "build", None, "scalar", ns=30.0),
                    _make("cuckoo", _CUCKOO, 10_000, ns=3.0, build_ns=99.0),
                    _make("cuckoo", _CUCKOO, 1_000_000, ns=3.0, build_ns=45.0)])
    (row,), notes = _rows(run, kernels.building, filter="cuckoo 12-bit")
    assert row["10000 keys"] == "30.0 [29.1, 31.2]" and row["1000000 keys"] == "45.0 *"
    assert kernels.NOT_IN_THE_RUN in _reason(row["100000000 keys"], notes)
    (row,), notes = _rows(run, kernels.building, filter="km_bloom")
    assert "no peer" in _reason(row["best peer, 10000"], notes)


def test_targets_that_do_not_beat_their_scalar_reference_are_named(make_run):
    def pair(target, batched, reference):
        return [_make("xor", {"fingerprint_bits": "8"}, 10_000, mode, target=target, ns=ns)
                for mode, ns in (("lookup_batched", batched), ("lookup_reference", reference))]
    run = make_run([*pair("avx2", 2.0, 5.0), *pair("sse4", 5.0, 4.0), *pair("ssse3", 4.0, 4.0),
                    *pair("scalar", 4.1, 4.0),
                    _make("cuckoo", _CUCKOO, 10_000, ns=1.0),
                    _touch(10_000, 9.0), _touch(10_000, 1.0, mode="lookup_reference")])
    (row,), notes = _rows(run, kernels.targets, filter="xor 8-bit", absent="100 %", keys="10000")
    assert row["avx2"] == "2.50 = 5.00 / 2.00" and row["sse4"] == "**0.800 = 4.00 / 5.00**"
    assert row["ssse3"] == "**1.00 = 4.00 / 4.00**" and row["scalar"] == "0.976 = 4.00 / 4.10"
    losers = next(note for note in notes if note.startswith("Does not beat"))
    assert re.findall(r", (\w+): ", losers) == ["ssse3", "sse4"]
    assert "ssse3: 1.00 [0.933, 1.07], within noise" in losers
    (row,), notes = _rows(run, kernels.targets, filter="cuckoo 12-bit", absent="100 %")
    assert kernels.NOT_IN_THE_RUN in _reason(row["avx2"], notes)


def test_of_the_ways_to_read_lines_the_fastest_is_seen(make_run):
    run = make_run([_touch(10_000, 1.5), _touch(10_000, 1.2, target="sse4"),
                    _touch(10_000, 0.9, "gather"), _touch(10_000, 4.0, "plain", 2),
                    _touch(10_000, None, "ring_16", status="skipped", reason="no such way here"),
                    _make("hash_only", {}, 10_000, ns=0.4, bits=0.0128)])
    (one, two), notes = _rows(run, kernels.ways)
    assert one["plain"] == "1.20" and one["gather"] == "**0.900**" and one["hash_only"] == "0.400"
    assert one["fastest"] == "gather, avx2" and one["lines"] == "1" and one["table KiB"] == "12.2"
    assert "no such way here" in _reason(one["ring_16"], notes)
    assert two["plain"] == "**4.00**" and kernels.NOT_IN_THE_RUN in _reason(two["gather"], notes)


def test_a_run_of_something_else_gives_dashes_and_no_zero(make_run, tiny_run_path, capsys):
    text = kernels.render(make_run(testing.make_points()))
    assert "mode lookup_reference" in text and "no batched touch_lines by way" in text
    assert "nan" not in text and "| 0 |" not in text
    assert "cuckoo fingerprint_bits=16, load=0.95, 100000000 keys: out_of_memory" in text
    assert kernels.main([str(tiny_run_path)]) == 0
    assert capsys.readouterr().out.startswith("# Kernels: run ")


def test_every_row_of_a_table_has_its_cells(full_run):
    widths = []
    for line in kernels.render(full_run).split("\n"):
        widths.append(line.count("|") if line.startswith("|") else None)
    assert {here for here, before in zip(widths[1:], widths) if here and before and here != before
            } == set()


def test_main_names_bad_input(tmp_path, capsys):
    assert kernels.main([str(tmp_path / "nowhere")]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "nowhere" in captured.err


def _spec():
    text = re.sub(r"^\s*//.*$", "", _SPEC.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return json.loads(text)


def _as_list(value):
    return value if isinstance(value, list) else [value]


def _asks(sweep, contender, mode, keys, share):
    grid = sweep["filters"].get(contender.filter)
    return (grid is not None and mode in _as_list(sweep["modes"]) and keys in sweep["keys"]
            and share in _as_list(sweep["negative_shares"])
            and all(value in _as_list(grid.get(name)) for name, value in contender.params.items()))


@pytest.mark.parametrize("contender", kernels.CONTENDERS, ids=lambda c: c.label)
def test_the_spec_measures_what_the_tables_show(contender):
    sweeps = _spec()["sweeps"]
    for keys in kernels.KEYS:
        for mode, share in (("lookup_batched", 1), ("lookup_batched", 0.5), ("lookup_single", 1),
                            ("lookup_single", 0.5), ("latency", 1)):
            assert any(_asks(s, contender, mode, keys, share) for s in sweeps), (keys, mode, share)
        for share in kernels.SHARES if keys < kernels.KEYS[-1] else ():
            asked = [s for s in sweeps if _asks(s, contender, "lookup_reference", keys, share)]
            assert any(s.get("targets") == "all" for s in asked), (keys, share)


def test_the_spec_measures_lines_at_the_sizes_of_the_filters_by_every_way():
    grids = {}
    for sweep in _spec()["sweeps"]:
        grid = sweep["filters"].get("touch_lines")
        for lines in _as_list(grid["lines"]) if grid else ():
            for keys in _as_list(sweep["keys"]):
                for bits in grid["bits_per_key"]:
                    grids.setdefault((lines, keys * bits), set()).update(_as_list(grid["way"]))
    assert len({tuple(sorted(ways)) for ways in grids.values()}) == 1
    for contender in kernels.CONTENDERS:
        for goal, keys in ((goal, keys) for keys, goal in contender.goals.items()):
            bits = 12 / 0.95 if contender.filter == "cuckoo" else 10
            nearest = min(abs(math.log(size / (bits * keys))) for lines, size in grids
                          if lines == goal.lines)
            assert nearest < math.log(kernels.NEAR_SIZE), (contender.label, keys)
