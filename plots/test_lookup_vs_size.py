from plots import lookup_vs_size, testing


def _point(name, keys, mode, target, ns, **options):
    params = {"lines": 1, "bits_per_key": 10.0} if name == "touch_lines" else {"bits_per_key": 10.0}
    fpr = {} if name == "touch_lines" else {"fpr": 0.01, "false_positives": 10_000}
    return testing.make_point(name, params, keys, mode, 1.0, target, ns=ns, bits=10.0, **fpr,
                              **options)


def _grid(modes=("lookup_batched", "latency"), names=("ribbon", "touch_lines"), keys=(1000, 10_000),
          targets=("avx2",)):
    return [_point(name, n, mode, target, 5.0 if mode == "latency" else 2.0) for name in names
            for mode in modes for n in keys for target in targets]


def _titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes]


def _shown(axes, prefix):
    return {line.get_gid().split(":")[1] for line in axes.lines
            if (line.get_gid() or "").startswith(prefix)}


def test_throughput_and_latency_each_over_the_floor_of_their_mode(make_run):
    figure = lookup_vs_size.draw(make_run(_grid()))
    assert _titles(figure) == ["throughput (batched)", "latency"]
    for axes, ns in zip(figure.axes, (2.0, 5.0)):
        assert _shown(axes, "floor:") == {"touch_lines"} and _shown(axes, "measured:") == {"ribbon"}
        for line in axes.lines:
            if (line.get_gid() or "").startswith(("floor:", "measured:")):
                assert set(line.get_ydata()) == {ns}
        assert _shown(axes, "cache:")


def test_without_latency_the_scalar_loop_stands_beside_and_a_gap_says_so(make_run):
    run = make_run(_grid(("lookup_batched",), targets=("avx2", "scalar")))
    lacks = [gap.lack for gap in lookup_vs_size.gaps(run)]
    assert any("latency" in lack for lack in lacks)
    assert not any(gap.fatal for gap in lookup_vs_size.gaps(run))
    assert _titles(lookup_vs_size.draw(run)) == ["throughput (batched)", "plain scalar loop"]


def test_a_latency_without_its_floor_is_said(make_run):
    run = make_run(_grid(("lookup_batched",)) + _grid(("latency",), names=("ribbon",)))
    assert any("floor of latency" in gap.lack for gap in lookup_vs_size.gaps(run))
    lookup_vs_size.draw(run)


def test_one_key_count_says_nothing_where_others_have_many(make_run):
    run = make_run(_grid(keys=(1000, 10_000, 100_000)) + _grid(names=("xor",), keys=(1000,)))
    assert any("only one key count of xor" in gap.lack for gap in lookup_vs_size.gaps(run))
    assert _shown(lookup_vs_size.draw(run).axes[0], "measured:") == {"ribbon"}
    run = make_run(_grid(keys=(1000, 10_000)) + _grid(names=("xor",), keys=(1000,)))
    assert _shown(lookup_vs_size.draw(run).axes[0], "measured:") == {"ribbon", "xor"}


def test_latency_at_larger_sizes_than_throughput_fits(make_run):
    run = make_run(_grid(("lookup_batched",)) + _grid(("latency",), keys=(1000, 10_000_000)))
    figure = lookup_vs_size.draw(run)
    assert figure.axes[1].get_xlim()[1] > 10_000_000 * 10 / 8
