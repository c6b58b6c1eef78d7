"""Costs are checked against sums made by hand, and the envelope against the brute force."""

import math

import numpy
import pytest

from plots import costs, testing
from plots.ratios import Measured


def _row(name, ns, fpr, *, bits=10.0, params="{}", ns_ends=None, fpr_ends=None):
    return costs.Candidate(
        filter=name, variant="", params=params, params_label="", target="avx2", keys=1000,
        negative_share=1.0, ns=Measured(ns, *(ns_ends or (ns, ns))),
        fpr=Measured(fpr, *(fpr_ends or (fpr, fpr))), bits_per_key=bits, size_bytes=1250,
        keys_from=costs.MEASURED, share_from=costs.MEASURED, fpr_from=costs.MEASURED,
        measured_keys=(1000,), measured_shares=(1.0,), point_ids=())


def _point(name="ribbon", keys=1000, share=1.0, ns=10.0, fpr=0.01, bits=10.0, target="avx2",
           false_positives=10_000, params=None, **options):
    return testing.make_point(name, params or {"bits_per_key": bits}, keys, "lookup_batched", share,
                              target, ns=ns, bits=bits, fpr=fpr, queries=1_000_000,
                              false_positives=false_positives, **options)


# --- Costs ---

def test_the_cost_is_the_lookup_and_the_work_of_false_positives():
    row = _row("a", 5, 0.01, ns_ends=(4, 7), fpr_ends=(0.008, 0.02))
    assert costs.expected_cost(row, 0.5, 1000) == pytest.approx((5 + 5, 4 + 4, 7 + 10))
    assert costs.expected_cost(row, 0, 1e9) == pytest.approx((5, 4, 7))


def test_an_unknown_end_stays_unknown():
    row = _row("a", 5, 0.01, ns_ends=(math.nan, math.nan))
    cost = costs.expected_cost(row, 1, 100)
    assert cost.value == pytest.approx(6) and not cost.has_interval()
    assert costs.within_noise(row, _row("b", 900, 0.01), 1, 100) is None


def test_break_even_is_where_both_costs_are_equal_in_whichever_order_they_come():
    fast = _row("fast", 2, 0.05, ns_ends=(1.9, 2.1), fpr_ends=(0.049, 0.051))
    precise = _row("precise", 6, 0.01, ns_ends=(5.5, 6.5), fpr_ends=(0.009, 0.011))
    even = costs.break_even(fast, precise, 0.8)
    assert even == costs.break_even(precise, fast, 0.8)
    assert even.value == pytest.approx(4 / (0.8 * 0.04))
    assert costs.expected_cost(fast, 0.8, even.value).value == pytest.approx(
        costs.expected_cost(precise, 0.8, even.value).value)
    assert even.low == pytest.approx((5.5 - 2.1) / (0.8 * (0.051 - 0.009)))
    assert even.high == pytest.approx((6.5 - 1.9) / (0.8 * (0.049 - 0.011)))


def test_without_a_crossing_there_is_no_break_even():
    better = _row("better", 2, 0.01)
    assert costs.break_even(better, _row("worse", 3, 0.02), 1) is None
    assert costs.break_even(better, _row("as precise", 3, 0.01), 1) is None
    assert costs.break_even(better, _row("precise", 3, 0.001), 0) is None


def test_a_break_even_between_fprs_that_may_be_equal_has_no_upper_end():
    even = costs.break_even(_row("a", 2, 0.02, fpr_ends=(0.01, 0.03)),
                            _row("b", 3, 0.015, fpr_ends=(0.012, 0.018)), 1)
    assert even.high == math.inf and 0 < even.low < even.value
    even = costs.break_even(_row("a", 2, 0.02, fpr_ends=(math.nan, math.nan)),
                            _row("b", 3, 0.01), 1)
    assert even.value == pytest.approx(100) and not even.has_interval()


# --- Winners ---

@pytest.mark.parametrize("seed", range(20))
def test_the_envelope_is_what_brute_force_finds(seed):
    random = numpy.random.default_rng(seed)
    rows = [_row(f"f{i % 5}", random.uniform(1, 50), 10 ** random.uniform(-5, -0.5),
                 params=f'{{"i":{i}}}') for i in range(30)]
    negatives = random.uniform(0.1, 1)
    stretches = costs.winners(rows, negatives, 1, 1e7)
    assert stretches[0].low_ns == 1 and stretches[-1].high_ns == 1e7
    for first, second in zip(stretches, stretches[1:]):
        assert first.high_ns == second.low_ns and first.candidate != second.candidate
        even = costs.break_even(first.candidate, second.candidate, negatives)
        assert even.value == pytest.approx(first.high_ns)
    for miss_cost in 10 ** random.uniform(0, 7, 300):
        least = min(costs.expected_cost(row, negatives, miss_cost).value for row in rows)
        inside, = (s for s in stretches if s.low_ns <= miss_cost < s.high_ns)
        assert costs.expected_cost(inside.candidate, negatives, miss_cost).value == pytest.approx(
            least)


def test_three_lines_through_one_point_and_equal_lines_end():
    rows = [_row("a", 0.5, 0.3), _row("b", 1.5, 0.2), _row("c", 2.5, 0.1), _row("d", 2.5, 0.1)]
    found = costs.winners(rows, 1, 1, 1000)  # a, b and c meet at 10
    assert [s.candidate.filter for s in found] == ["a", "c"]
    assert found[0].high_ns == pytest.approx(10)
    assert costs.winners([], 1, 1, 1000) == []


def test_the_same_params_of_no_negatives_are_decided_by_time_alone():
    rows = [_row("a", 2, 0.5), _row("b", 3, 0.001)]
    assert [s.candidate.filter for s in costs.winners(rows, 0, 1, 1e9)] == ["a"]


def test_the_runner_up_is_of_another_filter():
    rows = [_row("a", 2, 0.01), _row("a", 2.1, 0.01, params='{"k":2}'), _row("b", 9, 0.01)]
    winner = costs.ranking(rows, 1, 10)[0]
    assert winner.params == "{}" and costs.runner_up(rows, winner, 1, 10).filter == "b"
    assert costs.runner_up(rows[:2], winner, 1, 10) is None


# --- Noise ---

def test_within_noise_is_where_intervals_meet():
    a = _row("a", 5, 0.01, ns_ends=(4.8, 5.2))
    assert costs.within_noise(a, _row("b", 5.3, 0.01, ns_ends=(5.1, 5.4)), 1, 0)
    assert not costs.within_noise(a, _row("b", 5.3, 0.01, ns_ends=(5.25, 5.4)), 1, 0)
    assert not costs.within_noise(_row("b", 5.3, 0.01, ns_ends=(5.25, 5.4)), a, 1, 0)


@pytest.mark.parametrize("seed", range(20))
def test_doubts_are_where_intervals_meet(seed):
    random = numpy.random.default_rng(seed)
    rows = []
    for i in range(12):
        ns, fpr = random.uniform(1, 20), 10 ** random.uniform(-4, -1)
        rows.append(_row(f"f{i % 4}", ns, fpr, params=f'{{"i":{i}}}',
                         ns_ends=(ns * random.uniform(0.8, 1), ns * random.uniform(1, 1.2)),
                         fpr_ends=(fpr * random.uniform(0.8, 1), fpr * random.uniform(1, 1.2))))
    for stretch in costs.winners(rows, 0.9, 1, 1e5):
        parts = costs.doubts(rows, stretch, 0.9)
        width = math.log(stretch.high_ns / stretch.low_ns)
        for step in random.uniform(0.001, 0.999, 40):
            miss_cost = stretch.low_ns * math.exp(step * width)
            near = any(costs.within_noise(stretch.candidate, row, 0.9, miss_cost)
                       for row in rows if row.filter != stretch.candidate.filter)
            assert near == any(low <= miss_cost <= high for low, high in parts)


def test_unknown_intervals_are_doubt_everywhere_but_not_of_the_same_filter():
    rows = [_row("a", 5, 0.01, ns_ends=(math.nan, math.nan)), _row("a", 6, 0.01, params='{"k":2}'),
            _row("b", 500, 0.01)]
    stretch, = costs.winners(rows, 1, 1, 100)
    assert costs.doubts(rows, stretch, 1) == [(1, 100)]
    assert costs.doubts(rows[:2], stretch, 1) == []


# --- Candidates ---

def test_a_measured_candidate_is_the_point_of_the_file(full_run):
    rows = costs.candidates(full_run, 1_000_000)
    assert {row.filter for row in rows} == set(testing.FILTERS)
    points = full_run.points.set_index("point_id")
    for row in rows:
        point, = (points.loc[point_id] for point_id in row.point_ids)
        assert (point["mode"], point["negative_share"], point["keys"]) == (
            "lookup_batched", 1.0, 1_000_000)
        assert row.ns == (point["ns_per_op"], point["ns_per_op_low"], point["ns_per_op_high"])
        assert row.size_bytes == point["size_bytes"] and row.target == point["target"]
        assert (row.keys_from, row.share_from) == (costs.MEASURED, costs.MEASURED)
    assert {row.target for row in rows if row.filter == "blocked_bloom"} == {"avx2"}


def test_shares_between_measured_ones_are_linear_and_beyond_them_the_nearest(make_run):
    run = make_run([_point(share=0.5, ns=10), _point(share=0.9, ns=20), _point(share=0.0, ns=99)])
    row, = costs.candidates(run, 1000, 0.6)
    assert row.ns.value == pytest.approx(12.5) and row.ns.low == pytest.approx(0.97 * 12.5)
    assert row.share_from == costs.INTERPOLATED and row.measured_shares == (0.5, 0.9)
    row, = costs.candidates(run, 1000, 1.0)
    assert row.ns.value == 20 and row.share_from == costs.NEAREST and row.measured_shares == (0.9,)


def test_keys_between_measured_ones_follow_the_logarithms(make_run):
    run = make_run([_point(keys=1000, ns=4, fpr=0.01, bits=10, false_positives=10_000),
                    _point(keys=100_000, ns=16, fpr=0.02, bits=10, false_positives=20_000,
                           params={"bits_per_key": 10})])
    row, = costs.candidates(run, 10_000)
    assert row.ns.value == pytest.approx(8) and row.keys_from == costs.INTERPOLATED
    assert row.fpr.value == pytest.approx(math.sqrt(0.01 * 0.02))
    assert row.size_bytes == pytest.approx(10 * 10_000 / 8)
    assert row.measured_keys == (1000, 100_000) and len(row.point_ids) == 2
    for keys, nearest, ns in ((100, 1000, 4), (10 ** 8, 100_000, 16)):
        assert costs.candidates(run, keys) == []
        row, = costs.candidates(run, keys, keys_from=(costs.NEAREST,))
        assert (row.ns.value, row.keys_from, row.measured_keys) == (ns, costs.NEAREST, (nearest,))
        assert row.size_bytes == pytest.approx(10 * keys / 8)


def test_limits_hold_at_the_keys_that_are_asked_for(make_run):
    run = make_run([_point(bits=8.0), _point(bits=16.0)])
    assert len(costs.candidates(run, 1000)) == 2
    row, = costs.candidates(run, 1000, limits=costs.Limits(bits_per_key=12))
    assert row.bits_per_key == 8
    assert len(costs.candidates(run, 1000, limits=costs.Limits(size_bytes=1200))) == 1
    anywhere = (costs.MEASURED, costs.NEAREST)
    size = costs.Limits(size_bytes=1.2e6)
    assert len(costs.candidates(run, 10 ** 6, limits=size, keys_from=anywhere)) == 1
    assert costs.candidates(run, 10 ** 9, limits=size, keys_from=anywhere) == []


def test_no_false_positive_is_theory_within_the_interval_or_the_rule_of_three(make_run):
    row, = costs.candidates(make_run([_point(fpr=1e-7, false_positives=0)]), 1000)
    assert row.fpr_from == costs.EXPECTED and row.fpr.value == 1e-7
    assert row.fpr.low == 0 and row.fpr.high == pytest.approx(3.69e-6)
    row, = costs.candidates(make_run([_point(fpr=1e-3, false_positives=0)]), 1000)
    assert row.fpr_from == costs.LIMIT and row.fpr.value == pytest.approx(3e-6)


def test_failures_baselines_and_points_without_fpr_are_no_candidates(make_run):
    without = _point(name="cuckoo")
    without["fpr"] = None
    run = make_run([_point(name="touch_lines"), without, _point(
        name="xor", status="build_failed", reason="no seed", ns=None)])
    assert costs.candidates(run, 1000) == []
    assert costs.candidates(make_run([]), 1000) == []


def test_how_many_there_are_to_choose_from(full_run):
    counts = costs.key_counts(full_run)
    assert sorted(counts) == [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000]
    filters, params = counts[1_000_000]
    assert filters == len(testing.FILTERS) and params == len(costs.candidates(full_run, 1_000_000))
