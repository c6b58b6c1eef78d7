import re

import pytest

from plots import headline, load, tables, testing

HEADLINE, FILTERS, WORKLOADS, BREAK_EVEN, MACHINE = tables.TABLES


@pytest.fixture
def run(make_run):
    return make_run(testing.make_points(keys=(1000, tables.KEYS), failing=False)
                    + testing.workload_points())


def _tex_rows(text):
    body = text[text.index(r"\midrule"):text.index(r"\bottomrule")]
    return [[re.sub(r"\\([%_#&])", r"\1", cell) for cell in line[:-3].split(" & ")]
            for line in body.splitlines() if line.endswith(r" \\")]


def _markdown_rows(text):
    return [[cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("table", tables.TABLES, ids=lambda table: table.NAME)
def test_latex_and_markdown_hold_the_same_cells(table, run):
    chosen = table.choose([run])
    rows = table.rows(chosen)
    latex, markdown = table.latex(chosen, rows), table.markdown(chosen, rows)
    assert table.gaps(chosen) == [] and len(rows) > 5
    plain = [[row[c] for c in table.columns] for row in rows]
    assert _markdown_rows(markdown)[-len(rows):] == [[c or "" for c in row] for row in plain]
    assert [row for row in _tex_rows(latex) if row != list(table.columns)] == [
        [c.replace("<", r"\ensuremath{<}") for c in row] for row in plain]
    assert latex.isascii() and run.name in latex and run.name in markdown
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert rule in latex


def test_times_have_their_intervals(run):
    row, = (row for row in FILTERS.rows(run) if row["filter"] == "blocked_bloom")
    point = run.points[(run.points["filter"] == "blocked_bloom") & (run.points["keys"] == tables.KEYS)
                       & (run.points["param.bits_per_key"] == 10.0)
                       & (run.points["mode"] == "lookup_batched")
                       & (run.points["negative_share"] == 1.0)
                       & (run.points["target"] == "avx2")].iloc[0]
    assert row["lookup ns/key"] == "{} [{}, {}]".format(*(headline.number(point[name]) for name in (
        "ns_per_op", "ns_per_op_low", "ns_per_op_high")))
    assert re.fullmatch(r"\S+ \[\S+, \S+\]", row["build ns/key"])


def test_filters_are_those_at_that_key_count_alone(run, make_run):
    assert {row["filter"] for row in FILTERS.rows(run)} == {*testing.FILTERS, *testing.BASELINES}
    gap, = FILTERS.gaps(make_run(testing.make_points(keys=(1000,), failing=False)))
    assert gap.fatal and str(tables.KEYS) in gap.lack


def test_of_several_runs_the_one_with_most_rows(tmp_path):
    runs = [load.load_run(testing.write_run(
        tmp_path / name, testing.make_points(filters=filters, keys=(1000,)),
        manifest=testing.make_manifest(run=name)))
        for name, filters in (("a", testing.FILTERS), ("b", ("cuckoo",)), ("c", ("cuckoo",)))]
    assert HEADLINE.choose(runs).name == "a" and HEADLINE.choose(runs[1:]).name == "c"
    text = MACHINE.markdown(runs, MACHINE.rows(runs))
    assert all(f"| run | {name} |" in text for name in "abc")


def test_what_is_unknown_is_said(make_run):
    rows = {row["what"]: row["value"] for row in MACHINE.rows([make_run(
        testing.tiny_points(), manifest=testing.make_manifest(cpu_brand=None, caches=None,
                                                              best=None))])}
    assert {rows[what] for what in ("CPU", "caches", "memory", "clock", "best target",
                                    "hypervisor")} == {"unknown"}
    assert rows["passes per point"] == "15" and rows["processes per point"] == "1"
    assert rows["commit"] == "0123456789ab"


def test_workloads_have_their_main_number_and_what_was_expected(make_run):
    points = testing.make_gets(filters=("cuckoo",), files=(1, 2, 4, 7, 20), keys=1000)
    rows = WORKLOADS.rows(make_run(points + testing.make_uses(filters=("cuckoo",))))
    # Of five numbers of files the ends and the middle, of absent and of present keys.
    assert [row["case"] for row in rows if row["workload"] == "lsm_get"
            and row["filter"] == "cuckoo"] == [
                f"files={files}, present_keys={which}, {share} % absent" for files in (1, 4, 20)
                for which, share in (("any", 100), ("oldest", 0))]
    entry, = (e for e in points if e["point"]["workload"]["files"] == 20
              and e["point"]["negative_share"] == 1 and e["point"]["filter"] == "cuckoo")
    metric = entry["workload"]["metrics"]["block_reads_per_get"]
    row, = (row for row in rows if row["filter"] == "cuckoo"
            and row["case"].startswith("files=20, present_keys=any"))
    assert row["measured"] == "{} [{}, {}]".format(*(headline.number(metric[name]) for name in (
        "value", "low", "high")))
    assert row["expected"] == headline.number(metric["expected"])
    other = {row["metric"]: row for row in rows if row["workload"] == "cdn_admission"}
    assert other["byte_hit_ratio"]["measured"] == "0.610"
    assert other["byte_hit_ratio"]["expected"] == "-"
    assert other["disk_writes_saved"]["measured"] == "0.740 [0.730, 0.750]"


def test_what_data_lack_has_its_reason(make_run):
    points = testing.make_gets(filters=("ribbon",), files=(7,), baseline=False)
    run = make_run(points)
    row = BREAK_EVEN.rows(run)[0]
    assert row["x without"] == row["break-even gets"] == "n/a [1]" and row["KiB saved"] == "n/a [2]"
    notes = BREAK_EVEN.notes(run)
    assert "[1] no always_maybe with the same knobs." in notes
    assert any(note.startswith("[2] none of rocksdb_bloom") for note in notes)
    gap, = BREAK_EVEN.gaps(make_run(testing.make_uses()))
    assert gap.fatal and "lsm_get" in gap.lack
    gap, = WORKLOADS.gaps(make_run(testing.tiny_points()))
    assert gap.fatal and "workload" in gap.remedy
