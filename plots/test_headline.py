import pytest

from plots import headline, testing

_PARAMS = {"bits_per_key": 10.0, "k": 6}


def _points():
    make = testing.make_point
    fpr = {"bits": 10.0004, "fpr": 0.0096, "queries": 1_000_000, "false_positives": 9_660}
    points = [make("blocked_bloom", _PARAMS, 1_000_000, "lookup_batched", share, "avx2", ns=ns,
                   floor=0.8, build_ns=9.9, **fpr)
              for share, ns in ((1.0, 1.23), (0.5, 2.5), (0.0, 3.75))]
    points += [make("blocked_bloom", _PARAMS, 1_000_000, "lookup_batched", 1.0, "scalar", ns=7.0,
                    floor=0.8, **fpr),
               make("blocked_bloom", _PARAMS, 1_000_000, "lookup_single", 1.0, "avx2", ns=8.0,
                    floor=0.8, **fpr),
               make("blocked_bloom", _PARAMS, 1_000_000, "build", None, "scalar", ns=3.14, **fpr),
               make("blocked_bloom", {"bits_per_key": 16.0, "k": 9}, 1_000_000, "lookup_batched",
                    1.0, "avx2", ns=1.5, floor=0.9, bits=16.0, fpr=0.0011, false_positives=1100),
               make("ribbon", {"width": 64}, 1_000_000, "lookup_batched", 1.0, "avx2", ns=20.0,
                    bits=21.0, fpr=1e-7, queries=2_000_000, false_positives=0, build_ns=88.8),
               make("cuckoo", {"fingerprint_bits": 12}, 1_000_000, "lookup_batched", 1.0, "avx2",
                    status="out_of_memory", reason="needs 2 GB"),
               make("touch_lines", {"bits_per_key": 10.0, "lines": 1}, 1_000_000, "lookup_batched",
                    1.0, "avx2", ns=0.8, bits=10.0, floor=0.8)]
    return points


def _row(run, name, **options):
    return [row for row in headline.table(run, **options) if row["filter"] == name]


def test_the_numbers_are_those_of_the_summary(make_run):
    row, = _row(make_run(_points()), "blocked_bloom")
    assert row == {"keys": "1000000", "filter": "blocked_bloom", "params": "k=6", "target": "avx2",
                   "bits/key": "10.00", "FPR measured": "0.966 %", "FPR expected": "0.960 %",
                   "build ns/key": "3.14", "lookup 100% neg": "1.23", "50% neg": "2.50",
                   "0% neg": "3.75", "x floor": "1.54"}


def test_unknown_is_a_dash_and_zero_is_an_upper_limit(make_run):
    row, = _row(make_run(_points()), "ribbon")
    assert row["FPR measured"] == "< 0.000150 %" and row["FPR expected"] == "0.0000100 %"
    assert row["50% neg"] == row["0% neg"] == row["x floor"] == "-"
    assert row["build ns/key"] == "88.8"


def test_a_filter_that_failed_is_named_with_its_reason(make_run):
    run = make_run(_points())
    row, = _row(run, "cuckoo")
    assert row["lookup 100% neg"] == "out_of_memory" and row["build ns/key"] == "-"
    assert ("Not ok: cuckoo fingerprint_bits=12, 1000000 keys: out_of_memory (1 point): needs 2 GB"
            in headline.render(run))


def test_all_shows_every_parameter_and_baselines_come_last(make_run):
    run = make_run(_points())
    assert len(_row(run, "blocked_bloom", everything=True)) == 2
    assert headline.table(run)[-1]["filter"] == "touch_lines"
    assert headline.table(run)[-1]["FPR measured"] == "-"


def test_text_is_aligned(make_run):
    points = _points()
    points[0]["point"]["filter"] = "\u8fc7\u6ee4"
    lines = headline.render(make_run(points)).split("\n")
    table = [line for line in lines if "1000000  " in line or line.endswith("x floor")]
    column = headline._width(table[0].split("  target")[0])
    for line in table[1:]:
        assert any(headline._width(line[:i]) == column and line[i:i + 2] == "  "
                   for i in range(len(line)))


def test_markdown_has_one_cell_per_column(make_run):
    points = _points()
    points[0]["point"]["params"]["note"] = "a|b\nc"
    lines = [line for line in headline.render(make_run(points), "markdown").split("\n")
             if line.startswith("|")]
    cells = {line.replace("\\|", "").count("|") for line in lines}
    assert cells == {len(headline.COLUMNS) + 1}


def test_main_prints_to_stdout_and_names_bad_input(tiny_run_path, tmp_path, capsys):
    assert headline.main([str(tiny_run_path)]) == 0
    assert "blocked_bloom" in capsys.readouterr().out
    assert headline.main([str(tmp_path / "nowhere")]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "nowhere" in captured.err


@pytest.mark.parametrize("value,text", [(1234.5, "1234"), (12.345, "12.3"), (0.01234, "0.0123"),
                                        (0.0, "0"), (float("nan"), "-")])
def test_numbers_have_three_digits_and_no_exponent(value, text):
    assert headline.number(value) == text
