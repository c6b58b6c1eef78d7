"""Figure 12 through the data in its artists."""

import pytest

from plots import block_reads, draw, testing


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


# --- Measured reads ---

@pytest.fixture
def stores(make_run):
    """Gets alone: no lookups."""
    return make_run(testing.make_gets(filters=("ribbon", "blocked_bloom"), files=(1, 2, 7, 20),
                                      engines=("lsm_get", "rocksdb_get")))


def test_marks_are_measured_and_lines_computed_at_the_rate_of_the_gets(stores):
    figure = block_reads.draw(stores)
    absent, deepest = figure.axes
    rows = stores.workloads[(stores.workloads["filter"] == "blocked_bloom")
                            & (stores.workloads["workload"] == "lsm_get")].sort_values("knob.files")
    for axes, share in ((absent, 1.0), (deepest, 0.0)):
        own = rows[rows["negative_share"] == share]
        assert _lines(axes, "measured:")["measured:blocked_bloom:"] == (
            list(own["knob.files"]), list(own["metric.block_reads_per_get.value"]))
        ends = {tuple(segment[:, 1]) for collection in axes.collections
                for segment in collection.get_segments()}
        for low, high in zip(own["metric.block_reads_per_get.low"].dropna(),
                             own["metric.block_reads_per_get.high"].dropna()):
            assert any((low, high) == pytest.approx(pair) for pair in ends)
    # An engine may have its filters over fewer keys.
    rate = rows["false_positives"].sum() / rows["queries"].sum()
    files, reads = _lines(absent, "theory:")["theory:blocked_bloom:"]
    assert reads == pytest.approx([rate * n for n in files]) and len(files) == 40
    files, reads = _lines(deepest, "theory:")["theory:blocked_bloom:"]
    assert reads == pytest.approx([1 + rate * (n - 1) for n in files])
    assert "computed, not" not in figure.caption.reading.lower()
    assert "counted" in figure.caption.reading


def test_a_real_engine_stands_beside_with_another_face(stores):
    axes = block_reads.draw(stores).axes[0]
    lines = {line.get_gid(): line for line in axes.lines}
    own, other = (lines[f"measured:blocked_bloom:{engine}"] for engine in ("", ":rocksdb_get"))
    assert own.get_marker() == other.get_marker() and own.get_color() == other.get_color()
    assert own.get_fillstyle() != other.get_fillstyle()
    assert all(x < place for x, place in zip(other.get_xdata(), own.get_xdata()))


def test_lines_are_of_lookups_where_the_run_has_them(make_run):
    gets = testing.make_gets(filters=("ribbon",), files=(7,))
    params = next(entry["point"]["params"] for entry in gets
                  if entry["point"]["params"].get("width") == "64")
    lookups = [testing.make_point(name, its, 1000, "lookup_batched", 1.0, "avx2", ns=5.0, bits=10.0,
                                  fpr=0.02, queries=10_000, false_positives=200)
               for name, its in (("ribbon", params), ("xor", {"bits_per_key": 10.0}))]
    axes = block_reads.draw(make_run(gets + lookups)).axes[0]
    files, reads = _lines(axes, "theory:")["theory:ribbon:"]
    assert reads == pytest.approx([0.02 * n for n in files])
    # What was not asked of a store has a line alone.
    assert "theory:xor:" in _lines(axes, "theory:")
    assert not [gid for gid in _lines(axes, "measured:") if "xor" in gid]


def test_gets_without_false_positives_are_upper_limits(make_run):
    def point(n, by_chance):
        return testing.make_workload_point(
            "ribbon", {"bits_per_key": 10.0}, 1000, "lsm_get",
            {"shape": "files", "files": n, "present_keys": "any"}, share=1.0, fpr=1e-4,
            queries=1000 * n, false_positives=by_chance, metrics={
                "block_reads_per_get": testing.make_metric(0, by_chance, 1000 * n, 1000)})
    axes = block_reads.draw(make_run([point(2, 0), point(20, 5)])).axes[0]
    assert _lines(axes, "upper_limit:")["upper_limit:ribbon:"] == ([2], [0.003])
    assert _lines(axes, "measured:")["measured:ribbon:"] == ([20], [0.005])


def test_the_run_with_measured_reads_is_drawn(stores, tmp_path, capsys):
    other = testing.write_run(tmp_path / "other", testing.make_points(
        filters=testing.FILTERS, keys=(1000,), failing=False), manifest=testing.make_manifest(
            run="zzz"))
    assert draw.main([str(other), str(stores.path), "--out", str(tmp_path / "out"), "--only",
                      "block_reads", "--format", "svg"]) == 0, capsys.readouterr().err
    assert stores.name in (tmp_path / "out" / "block_reads.caption.md").read_text()
