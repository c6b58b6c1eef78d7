"""What filters cost and save in gets, against numbers computed by hand."""

import math

import pytest

from plots import gets, selection, tables, testing
from plots.ratios import Measured, Unknown

KNOBS = {"shape": "files", "files": 4, "present_keys": "any", "reads": "direct"}


def _point(name, ns, *, build_ns=None, share=1.0, bits=10.0, false_positives=0, queries=0,
           params=None, metrics=None, engine="lsm_get", **knobs):
    entry = testing.make_workload_point(
        name, params or {}, 1000, engine, KNOBS | knobs, share=share, ns=ns, build_ns=build_ns,
        bits=bits, fpr=0.01, queries=queries, false_positives=false_positives, metrics=metrics)
    entry["ns_per_op"] |= {"low": 0.9 * ns, "high": 1.1 * ns}
    return entry


def _samples(points, builds):
    """`builds`: {filter: build ns per key of each round}"""
    samples = []
    for number in range(3):
        for sample in testing.make_samples(points):
            sample["filter"]["build_ns_per_key"] = builds.get(
                sample["point"]["filter"], (None,) * 3)[number]
            samples.append(sample | {"sequence": len(samples), "round": number, "seed": number})
    return samples


@pytest.fixture
def reads(make_run):
    points = [_point("always_maybe", 5000.0, bits=0.0), _point("xor", 1000.0, build_ns=40.0)]
    return gets.Reads(make_run(points, samples=_samples(points, {"xor": (38.0, 40.0, 44.0)})))


def _row(reads, name):
    return next(row for row in reads.rows if row["filter"] == name)


def test_building_is_paid_by_what_gets_save(reads):
    # 40 ns for each of 1000 keys, 4000 ns saved by a get: 10 gets.
    found = reads.break_even_gets(_row(reads, "xor"))
    assert found.value == pytest.approx(10)
    # Saved: 5000 +- 500 less 1000 +- 100, so 4000 +- sqrt(260000) = 509.9; built for 38 to 44 ns.
    assert found.low == pytest.approx(38_000 / 4509.9, rel=1e-4)
    assert found.high == pytest.approx(44_000 / 3490.1, rel=1e-4)
    gain = reads.gain(_row(reads, "xor"))
    assert tuple(gain) == pytest.approx((5, 4500 / 1100, 5500 / 900))


def test_what_may_save_nothing_may_never_be_paid():
    found = gets.break_even_gets(Measured(10, 10, 10), 100, Measured(100, 90, 110),
                                 Measured(95, 90, 100))
    assert found.value == 200 and math.isinf(found.high)
    with pytest.raises(Unknown, match="save no time"):
        gets.break_even_gets(Measured(10, 10, 10), 100, Measured(95, 90, 100),
                             Measured(100, 90, 110))
    unknown = gets.break_even_gets(Measured(10), 100, Measured(100, 90, 110), Measured(50, 49, 51))
    assert unknown.value == 20 and not unknown.has_interval()


@pytest.mark.parametrize("change", [{"files": 5}, {"reads": "cached"}, {"engine": "rocksdb_get"},
                                    {"share": 0.9}])
def test_only_the_same_gets_without_filters_count(make_run, change):
    points = [_point("always_maybe", 5000.0, bits=0.0, **change),
              _point("xor", 1000.0, build_ns=40.0)]
    reads = gets.Reads(make_run(points))
    with pytest.raises(Unknown, match="no always_maybe with the same knobs"):
        reads.break_even_gets(_row(reads, "xor"))


def _ribbon_run(make_run, ribbon_build=70.0, ribbon_bits=8.0, false_positives=1000):
    """A ribbon at 1 % between Bloom filters of 4 % (5 bits, 10 ns) and 0.25 % (15 bits, 20 ns)."""
    query = {"queries": 100_000}
    points = [_point("blocked_bloom", ns, build_ns=build, bits=bits, false_positives=count,
                     params={"bits_per_key": bits}, **query)
              for ns, build, bits, count in ((2000.0, 10.0, 5.0, 4000), (1000.0, 20.0, 15.0, 250))]
    points.append(_point("ribbon", 1600.0, build_ns=ribbon_build, bits=ribbon_bits,
                         false_positives=false_positives, params={"bits_per_key": 8.0}, **query))
    return make_run(points)


def test_a_ribbon_is_set_against_a_bloom_filter_of_its_own_rate(make_run):
    reads = gets.Reads(_ribbon_run(make_run))
    found = reads.bloom_exchange(_row(reads, "ribbon"))
    # Half way along log FPR: 10 bits, 15 ns, 1500 ns. 2 bits of 1000 keys are 250 bytes; 55 ns of
    # 1000 keys are 55 us.
    assert found.bloom == "blocked_bloom"
    assert found.bytes_saved == pytest.approx(250, rel=1e-2)
    assert found.build_ns_more == pytest.approx(55) and found.get_ns_more == pytest.approx(100)
    assert found.bytes_per_cpu_second == pytest.approx(250 / 55e-6, rel=1e-2)


@pytest.mark.parametrize("options, said", [
    ({"ribbon_bits": 12.0}, "saves no memory"), ({"ribbon_build": 14.0}, "no longer to build")])
def test_where_nothing_is_saved_or_paid_there_is_no_price(make_run, options, said):
    run = _ribbon_run(make_run, **options)
    reads = gets.Reads(run)
    assert math.isnan(reads.bloom_exchange(_row(reads, "ribbon")).bytes_per_cpu_second)
    table = tables.by_name("break_even")
    row = next(row for row in table.rows(run) if row["filter"] == "ribbon")
    assert row["MiB per CPU s"].startswith("n/a [")
    number = row["MiB per CPU s"].removeprefix("n/a ")
    assert any(note.startswith(number) and said in note for note in table.notes(run))


@pytest.mark.parametrize("count", [0, 20_000, 10])
def test_outside_of_the_measured_bloom_filters_nothing_is_said(make_run, count):
    reads = gets.Reads(_ribbon_run(make_run, false_positives=count))
    with pytest.raises(Unknown, match="not known" if count == 0 else "both sides"):
        reads.bloom_exchange(_row(reads, "ribbon"))


def test_rates_are_pooled_by_their_counts(make_run):
    run = make_run([_point("xor", 1.0, queries=queries, false_positives=count, files=files)
                    for queries, count, files in ((1000, 10, 2), (3000, 90, 3))])
    (rate, low, high), queries = gets.pooled_fpr(gets.gets(run))
    assert (rate, queries) == (0.025, 4000)
    # scipy.stats.binomtest(100, 4000).proportion_ci(method="exact")
    assert (low, high) == pytest.approx((0.020389, 0.030316), rel=1e-3)
    assert gets.clopper_pearson(0, 10)[1] == 0 and gets.clopper_pearson(10, 10)[2] == 1


def test_only_stores_whose_files_overlap_follow_the_formula(make_run):
    points = [_point("xor", 1.0), _point("xor", 1.0, shape="leveled"),
              _point("xor", 1.0, share=0.0, present_keys="oldest"),
              _point("xor", 1.0, share=0.0), _point("xor", 1.0, share=0.5),
              *testing.make_uses(filters=("cuckoo",))]
    run = make_run(points)
    files = gets.of_files(gets.gets(run))
    assert len(gets.gets(run)) == 5 and len(files) == 4
    absent, deepest = (gets.seeks(files, key) for key in gets.KEYS)
    assert list(absent["point_id"]) == [points[0]["point_id"]]
    assert list(deepest["point_id"]) == [points[2]["point_id"]]


def test_a_run_without_stores_is_no_error(make_run):
    for points in (testing.tiny_points(), testing.make_uses()):
        run = make_run(points)
        assert gets.of_files(gets.gets(run)).empty
        assert not gets.Reads(run).rows
    assert selection.ALWAYS_MAYBE in selection.BASELINES
