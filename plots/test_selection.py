import math

import pandas
import pytest

from plots import selection, testing


def test_what_moves_the_size_is_no_variant(full_run):
    variants = {name: sorted(group.unique(), key=selection.natural)
                for name, group in full_run.points.groupby("filter")["variant"]}
    assert variants == {
        "blocked_bloom": [""], "classic_bloom": [""], "cuckoo": [""], "hash_only": [""],
        "km_bloom": ["probing=enhanced", "probing=plain"],
        "ribbon": ["width=64", "width=128"], "touch_lines": ["lines=1", "lines=2"]}


def test_a_parameter_that_follows_the_size_only_roughly_is_no_variant(make_run):
    """A ribbon's result bits differ a little between widths at the same bits per key."""
    points = [testing.make_point("ribbon", {"width": w, "result_bits": bits / (1 + 5 / w)}, 10_000,
                                 "build", None, "scalar", ns=10.0, bits=bits)
              for bits in (8.0, 10.0, 12.0, 16.0) for w in (64, 128)]
    assert sorted(set(make_run(points).points["variant"])) == ["width=128", "width=64"]


def test_ways_to_ask_for_a_size_are_no_variants(make_run):
    """A ribbon may be asked for bits per key, for result columns or for an FPR; 0: not asked."""
    asked = [({"bits_per_key": 8.0}, 8.0), ({"bits_per_key": 12.0}, 12.0), ({"columns": 6.0}, 6.4),
             ({"columns": 11.0}, 11.7), ({"fpr": 0.01}, 7.0), ({"fpr": 0.001}, 10.6)]
    points = [testing.make_point("ribbon", {"bits_per_key": 0.0, "columns": 0.0, "fpr": 0.0,
                                            "width": w} | params, 1000, "build", None, "scalar",
                                 ns=10.0, bits=bits)
              for params, bits in asked for w in ("64", "128")]
    assert sorted(set(make_run(points).points["variant"])) == ["width=128", "width=64"]


def test_a_side_sweep_is_not_represented(make_run):
    points = [testing.make_point("cuckoo", {"bits_per_key": bits}, keys, "build", None, "scalar",
                                 ns=10.0, bits=bits)
              for bits, key_counts in ((8.0, (1000, 2000, 3000)), (10.0, (1000,)))
              for keys in key_counts]
    assert selection.representative_params(make_run(points).points) == {
        ("cuckoo", '{"bits_per_key":8.0}')}


def test_representatives_lie_closest_to_ten_bits(full_run):
    chosen = dict(selection.representative_params(selection.ok(
        selection.filters_only(full_run.points))))
    assert chosen["blocked_bloom"] == '{"bits_per_key":10.0,"k":6}'
    assert chosen["cuckoo"] == '{"fingerprint_bits":"8","load":0.95}'


def test_the_best_target_is_the_machines_if_the_filter_has_it(full_run):
    lookups = selection.best_target(selection.lookups(full_run), "sse4")
    targets = lookups.groupby("filter")["target"].unique().apply(list).to_dict()
    assert targets["blocked_bloom"] == ["sse4"]
    assert targets["classic_bloom"] == ["scalar"]
    unknown_best = selection.best_target(selection.lookups(full_run), "avx512_of_tomorrow")
    assert set(unknown_best[unknown_best["filter"] == "cuckoo"]["target"]) == {"avx2"}


def test_other_keys_are_used_where_no_plain_ones_are(make_run):
    points = [testing.make_point("cuckoo", {}, 1000, "build", None, "scalar", ns=1.0, bits=8.0,
                                 key_set={"kind": "bytes", "length_bytes": length})
              for length in (16, 40)]
    run = make_run(points)
    assert sorted(run.points["key_set"]) == ["bytes 16", "bytes 40"]
    assert len(selection.plain_keys(run.points)) == 1


def _rows(*pairs):
    return pandas.DataFrame([{"fpr_measured": fpr, "bits_per_key": bits} for fpr, bits in pairs])


def test_values_between_two_points_are_interpolated_along_log_fpr():
    values, other = selection.at_fpr(_rows((0.1, 5.0), (0.001, 15.0)), 0.01, ["bits_per_key"],
                                     max_bracket=200)
    assert values["bits_per_key"] == pytest.approx(10.0) and other is None


def test_a_point_near_the_target_stands_in_with_its_own_fpr():
    values, other = selection.at_fpr(_rows((0.018, 8.0), (0.2, 4.0)), 0.01, ["bits_per_key"])
    assert (values["bits_per_key"], other) == (8.0, 0.018)
    assert selection.at_fpr(_rows((0.0102, 8.0)), 0.01, ["bits_per_key"])[1] is None


def test_no_place_without_a_point_near_the_target():
    assert selection.at_fpr(_rows((0.03, 8.0)), 0.01, ["bits_per_key"]) is None
    assert selection.at_fpr(_rows((0.2, 4.0), (0.001, 20.0)), 0.01, ["bits_per_key"]) is None
    assert selection.at_fpr(_rows((0.0, 8.0)), 0.01, ["bits_per_key"]) is None
    assert selection.at_fpr(_rows((0.01, 8.0))[:0], 0.01, ["bits_per_key"]) is None


def test_the_pareto_front_holds_what_nothing_beats():
    assert selection.pareto_front([(3, 1), (1, 5), (2, 6), (2, 4), (3, 2), (4, 1)]) == [
        (1, 5), (2, 4), (3, 1)]


def test_spread_keeps_the_ends():
    assert selection.spread([5, 1, 3, 2, 4], 3) == [1, 3, 5]
    assert selection.spread([7, 7], 3) == [7]


def test_natural_order_counts():
    assert sorted(["w=128", "w=64", "w=8"], key=selection.natural) == ["w=8", "w=64", "w=128"]


def test_medians_of_nothing_are_silent(full_run, recwarn):
    selection.representative_params(full_run.points)
    assert not recwarn.list
    assert math.isnan(selection._median(pandas.Series([math.nan])))
