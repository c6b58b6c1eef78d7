"""Times carried to places that were not measured, on runs whose numbers are known by hand."""

import json
import math

import pytest

from plots import carry, costs, load, testing
from plots.ratios import Measured


def entry(name, keys, ns, *, bits=10.0, share=1.0, params=None, ends=(0.9, 1.1),
          mode="lookup_batched", fpr=0.01):
    made = testing.make_point(
        name, params or ({"bits_per_key": bits, "lines": 1} if name == "touch_lines"
                         else {"bits_per_key": bits}), keys, mode, share, "avx2", ns=ns, bits=bits,
        fpr=None if name == "touch_lines" else fpr,
        false_positives=None if name == "touch_lines" else round(1e6 * fpr))
    made["ns_per_op"] |= {"low": ends[0] * ns, "high": ends[1] * ns, "min": ends[0] * ns}
    return made


def floors(*places, **options):
    return [entry("touch_lines", keys, ns, ends=(1, 1), **options) for keys, ns in places]


@pytest.fixture
def carried(tmp_path):
    def make(points, mode="lookup_batched", share=1.0):
        run = load.load_run(testing.write_run(tmp_path / "run", points))
        return run, carry.Carry(run, mode, share)
    return make


FLOORS = floors((10 ** 5, 1.0), (10 ** 6, 2.0), (10 ** 7, 8.0))  # 0.125, 1.25 and 12.5 MB


def test_the_floor_is_linear_in_the_logarithm_of_bytes(carried):
    _, carrier = carried([*FLOORS, entry("cuckoo", 10 ** 6, 4.0)])
    assert carrier.floor(1.25e6).value == pytest.approx(2.0)
    assert carrier.floor(1.25e6 * math.sqrt(10)).value == pytest.approx(5.0)
    assert carrier.floor(12.5e6 * 3.9).value == pytest.approx(8.0)
    assert carrier.floor(0.125e6 / 3.9).value == pytest.approx(1.0)
    assert carrier.floor(12.5e6 * 4.1) is None
    assert carrier.floor(0.125e6 / 4.1) is None


def test_the_floor_is_of_one_line_in_the_mode_that_is_asked_for_and_the_fastest_way(carried):
    other = [entry("touch_lines", 10 ** 6, ns, params=params, mode=mode) for ns, params, mode in (
        (9.0, {"bits_per_key": 10.0, "lines": 1, "way": "slow"}, "lookup_batched"),
        (0.1, {"bits_per_key": 10.0, "lines": 2}, "lookup_batched"),
        (0.1, {"bits_per_key": 10.0, "lines": 1}, "latency"))]
    _, carrier = carried([*other, *FLOORS])
    assert carrier.floor(1.25e6).value == pytest.approx(2.0)


def test_the_floor_is_of_the_nearest_share(carried):
    _, carrier = carried([*floors((10 ** 6, 5.0), share=0.5), *floors((10 ** 6, 2.0), share=1.0)],
                         share=0.6)
    assert carrier.floor(1.25e6).value == pytest.approx(5.0)


def test_to_a_larger_table_between_both_rules(carried):
    _, carrier = carried(FLOORS)
    time = carrier.to_size(Measured(10.0, 9.0, 11.0), 1.25e6, 12.5e6)
    # Four times the floor's ratio: 40; 6 ns more: 16.
    assert time.value == pytest.approx(math.sqrt(40 * 16))
    assert time.low == pytest.approx(min(9.0 + 6, math.sqrt(640) / carry.USUAL_ERROR))
    assert time.high == pytest.approx(max(44.0, math.sqrt(640) * carry.USUAL_ERROR))


def test_to_a_smaller_table_never_slower_and_never_below_the_floor(carried):
    _, carrier = carried(FLOORS)
    time = carrier.to_size(Measured(10.0, 9.0, 11.0), 12.5e6, 1.25e6)
    assert time.value == pytest.approx(math.sqrt(10 * 2.5))
    assert time.high == pytest.approx(11.0)
    time = carrier.to_size(Measured(2.2, 2.2, 2.2), 12.5e6, 1.25e6)
    assert time.value == pytest.approx(math.sqrt(2.2 * 2.0))


def test_beyond_the_floor_nothing_is_said(carried):
    _, carrier = carried(FLOORS)
    assert carrier.to_size(Measured(10.0), 1.25e6, 1e9) is None
    assert carrier.to_size(Measured(10.0), 1.0, 1.25e6) is None
    _, carrier = carried([entry("cuckoo", 10 ** 6, 4.0)])
    assert carrier.to_size(Measured(10.0), 1.25e6, 1.25e6) is None


def test_an_unknown_interval_stays_unknown(carried):
    _, carrier = carried(FLOORS)
    time = carrier.to_size(Measured(10.0), 1.25e6, 12.5e6)
    assert not math.isnan(time.value)
    assert math.isnan(time.low) and math.isnan(time.high)


def test_another_share_by_the_ratio_of_the_same_filter(carried):
    points = [entry("cuckoo", 10 ** 5, 10.0, bits=12.0), entry("cuckoo", 10 ** 6, 5.0),
              entry("cuckoo", 10 ** 6, 8.0, share=0.5), entry("cuckoo", 10 ** 6, 50.0, bits=12.0),
              entry("km_bloom", 10 ** 5, 1.0), entry("km_bloom", 10 ** 5, 100.0, share=0.5)]
    run, carrier = carried(points)
    (row,) = [row for _, row in run.points.iterrows()
              if row["keys"] == 10 ** 5 and row["filter"] == "cuckoo"]
    time = carrier.to_share(Measured(10.0, 9.0, 11.0), row, 0.5)
    assert time.value == pytest.approx(16.0)
    assert time.low == pytest.approx(9.0 * 7.2 / 5.5)
    assert time.high == pytest.approx(11.0 * 8.8 / 4.5)
    # Between the two shares there too.
    assert carrier.to_share(Measured(10.0), row, 0.75).value == pytest.approx(13.0)
    assert carrier.to_share(Measured(10.0), row, 0.4) is None


def test_the_same_parameters_come_before_a_nearer_key_count(carried):
    points = [entry("cuckoo", 10 ** 5, 10.0),
              entry("cuckoo", 10 ** 7, 10.0), entry("cuckoo", 10 ** 7, 20.0, share=0.5),
              entry("cuckoo", 10 ** 5, 10.0, bits=12.0),
              entry("cuckoo", 10 ** 5, 70.0, bits=12.0, share=0.5)]
    run, carrier = carried(points)
    (row,) = [row for _, row in run.points.iterrows() if row["keys"] == 10 ** 5
              and row["bits_per_key"] == 10 and row["negative_share"] == 1]
    assert carrier.to_share(Measured(10.0), row, 0.5).value == pytest.approx(20.0)


def test_candidates_say_what_was_carried(carried):
    points = [*FLOORS, entry("cuckoo", 10 ** 6, 10.0), entry("cuckoo", 10 ** 5, 5.0, bits=8.0),
              entry("cuckoo", 10 ** 5, 10.0, bits=8.0, share=0.5)]
    run, carrier = carried(points)
    everything = (costs.MEASURED, costs.INTERPOLATED, costs.CARRIED, costs.NEAREST)
    rows = {json.loads(row.params)["bits_per_key"]: row for row in costs.candidates(
        run, 10 ** 7, 0.5, keys_from=everything, carry=carrier)}
    assert (rows[10].keys_from, rows[10].share_from) == (costs.CARRIED, costs.CARRIED)
    assert rows[10].ns.value == pytest.approx(math.sqrt(80 * 26))
    assert (rows[8].keys_from, rows[8].share_from) == (costs.CARRIED, costs.MEASURED)
    without = costs.candidates(run, 10 ** 7, 0.5, keys_from=everything)
    assert {row.keys_from for row in without} == {costs.NEAREST}
