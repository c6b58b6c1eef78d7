"""Figure 10 through the data in its artists."""

import math

import numpy
import pytest

from plots import double_hashing, load, ratios, testing

KEYS = (13, 102, 819)


def _small_run(tmp_path, rates, probing="plain", queries=1000):
    """Filters of several sizes, each built once for every rate in `rates`."""
    points = [testing.make_point("km_bloom", {"bits_per_key": 10.0, "k": 7, "probing": probing}, n,
                                 "lookup_batched", 1.0, "avx2", ns=5.0, bits=10.0, fpr=0.01,
                                 queries=queries, false_positives=10) for n in KEYS]
    samples = []
    for number, rate in enumerate(rates):
        for sample in testing.make_samples(points):
            samples.append(sample | {"sequence": len(samples), "round": number, "fpr": sample["fpr"]
                                     | {"false_positives": int(rate * queries)}})
    path = testing.write_run(tmp_path / "small", points, samples=samples,
                             theory=testing.make_theory(("classic_bloom", "km_bloom")))
    return load.load_run(path)


def _artists(figure, prefix):
    return {line.get_gid(): line for axes in figure.axes for line in axes.lines
            if (line.get_gid() or "").startswith(prefix)}


def test_ratio_and_interval_are_those_of_the_builds(tmp_path):
    rates = [0.002, 0.03, 0.004, 0.02]
    run = _small_run(tmp_path, rates)
    figure = double_hashing.draw(run)
    line, = _artists(figure, "measured:").values()
    # The synthetic classic curve is 0.0085 at every size.
    assert line.get_ydata() == pytest.approx([numpy.mean(rates) / 0.0085] * len(KEYS))
    assert line.get_xdata() == pytest.approx([10 * n for n in KEYS])
    bars = [segment for axes in figure.axes for collection in axes.collections
            for segment in collection.get_segments()]
    want = ratios.mean(rates)
    # Student's quantile for 3 degrees of freedom is 3.182; the binomial interval of 4000 lookups
    # would be a third as wide.
    assert want.high - want.value == pytest.approx(
        3.182 * numpy.std(rates, ddof=1) / math.sqrt(4), rel=1e-3)
    assert bars[0][:, 1] == pytest.approx([want.low / 0.0085, want.high / 0.0085])


def test_lines_are_theory_over_independent_hash_functions(tmp_path):
    lines = _artists(double_hashing.draw(_small_run(tmp_path, [0.01] * 12)), "theory:")
    assert set(lines) == {"theory:classic_bloom:", "theory::", "theory:km_bloom:plain",
                          "theory:km_bloom:enhanced"}
    assert list(lines["theory:classic_bloom:"].get_ydata()) == pytest.approx([1] * 10)
    plain = lines["theory:km_bloom:plain"]
    assert plain.get_ydata() == pytest.approx(1 + 100 / numpy.asarray(plain.get_xdata()))


def test_few_builds_and_what_was_not_measured_are_said(tmp_path):
    few = [gap.lack for gap in double_hashing.gaps(_small_run(tmp_path, [0.01] * 3))]
    assert any("built 3 times only" in lack for lack in few)
    assert any("classic_bloom" in lack for lack in few)
    enough = [gap.lack for gap in double_hashing.gaps(_small_run(tmp_path, [0.01] * 10))]
    assert not any("times only" in lack for lack in enough)


def test_points_that_are_on_no_curve_are_left_out(tmp_path):
    run = _small_run(tmp_path, [0.01] * 3, probing="another")
    assert [gap.fatal for gap in double_hashing.gaps(run)] == [True]


def test_one_build_has_no_interval():
    assert not ratios.mean([0.01]).has_interval()
