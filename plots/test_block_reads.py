"""Figure 12 through the data in its artists."""

import pytest

from plots import block_reads, testing


def _lines(axes, prefix):
    return {line.get_gid(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines
            if (line.get_gid() or "").startswith(prefix)}


def _run(make_run, false_positives, keys=(1000,)):
    return make_run([testing.make_point("ribbon", {"bits_per_key": 10.0}, n, "lookup_batched", 1.0,
                                        "avx2", ns=5.0, bits=10.0, fpr=0.01, queries=10_000 * n,
                                        false_positives=f * n)
                     for n, f in zip(keys, (false_positives, 300))])


def test_reads_are_the_exported_line_at_the_measured_fpr(make_run):
    run = _run(make_run, 200)  # 2 %, where 1 % is expected
    absent, deepest = block_reads.draw(run).axes
    files, reads = _lines(absent, "measured:")["measured:ribbon:"]
    assert files == [1, 2, 5, 10, 20, 40] and reads == pytest.approx([0.02 * n for n in files])
    files, reads = _lines(deepest, "measured:")["measured:ribbon:"]
    assert reads == pytest.approx([1 + 0.02 * (n - 1) for n in files])
    bars = {round(segment[0][0]): segment[:, 1] for segment in
            absent.collections[0].get_segments()}
    low, high = run.points[["fpr_low", "fpr_high"]].iloc[0]
    assert bars[40] == pytest.approx([40 * low, 40 * high])
    # Without a filter every file is read, wherever the key is.
    for axes, key in ((absent, "absent"), (deepest, "deepest")):
        files, reads = _lines(axes, "guide:")[f"guide:{key}:1"]
        assert reads == files == [*range(1, 41)]


def test_the_fpr_is_that_of_the_most_keys(make_run):
    absent, _ = block_reads.draw(_run(make_run, 200, keys=(1000, 2000))).axes
    assert _lines(absent, "measured:")["measured:ribbon:"][1][0] == pytest.approx(0.03)


def test_no_false_positive_is_an_upper_limit(make_run):
    figure = block_reads.draw(_run(make_run, 0))
    assert not _lines(figure.axes[0], "measured:")
    _, limits = _lines(figure.axes[0], "upper_limit:")["upper_limit:ribbon:"]
    assert limits[-1] == pytest.approx(40 * 3 / 10_000_000)


def test_it_says_that_it_is_computed(make_run):
    figure = block_reads.draw(_run(make_run, 200))
    assert "not measured" in figure.caption.reading and "computed" in figure.caption.conditions
