"""compare-cpus on synthetic machines, with one fault planted at a time."""

import csv
import io
import json
import math

import pytest

from plots import load, testing
from scripts import compare_cpus, keep

ONE, OTHER, THIRD = "cpu-one-11111111", "cpu-other-22222222", "cpu-third-33333333"
FILTERS = ("blocked_bloom", "cuckoo", "classic_bloom")


def points(**options):
    return testing.make_points(**{
        "filters": FILTERS, "bits_per_key": (8, 10), "keys": (10_000, 1_000_000),
        "shares": (1.0, 0.5), "failing": False} | options)


def write(tmp_path, machine, entries, *, run=testing.RUN_NAME, cpu=None, provenance=None,
          measure=None, **options):
    manifest = testing.make_manifest(machine=machine, run=run, cpu_brand=f"Brand of {machine}")
    manifest["environment"]["cpu"] |= cpu or {}
    manifest["provenance"] |= provenance or {}
    manifest["spec"] |= {"measure": measure or {"fpr_queries": 1_000_000}}
    return testing.write_run(tmp_path / machine / run, entries, manifest=manifest, **options)


def change_samples(path, change):
    file = path / "samples.jsonl"
    samples = [json.loads(line) for line in file.read_text().splitlines()]
    for sample in samples:
        change(sample)
    file.write_text("".join(json.dumps(sample) + "\n" for sample in samples))


@pytest.fixture
def run(capsys):
    def call(*arguments):
        capsys.readouterr()
        try:
            code = compare_cpus.main([str(argument) for argument in arguments])
        except SystemExit as exit_request:
            code = exit_request.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err
    return call


@pytest.fixture
def two(tmp_path):
    """Two machines that agree but for their times."""
    return [write(tmp_path, ONE, points()),
            write(tmp_path, OTHER, testing.on_machine(points(), everything=3.0, vectors=0.5))]


def document(run, *arguments):
    code, out, _ = run("--json", *arguments)
    return code, json.loads(out)


def test_two_machines_that_agree(two, run):
    code, out, err = run(*two)
    assert code == 0 and err == ""
    assert "all are equal" in out and "WRONG" not in out
    assert out.index("## Answers") < out.index("## Ratios") < out.index("## Order") < out.index(
        "## What vectors gain")


def test_no_time_and_no_ratio_of_times_of_two_machines_is_shown(two, run):
    """The second machine takes three times as long: were a time shown, or divided by another
    machine's, the factor would be seen. Without vectors nothing else differs."""
    (_, first), (_, second) = (document(run, *two), document(run, two[0], write(
        two[0].parent.parent / "b", OTHER, testing.on_machine(points(), everything=3.0))))
    assert "ns" not in {name for entry in first["ratios"] for name in entry}
    for entry in second["ratios"]:
        here, there = entry["machines"][ONE], entry["machines"][OTHER]
        for quantity in ("over_baseline", "over_floor"):
            if here[quantity]["value"] is not None:
                assert here[quantity]["value"] == pytest.approx(there[quantity]["value"])


@pytest.mark.parametrize("what", ["filter_digest", "answers_digest"])
def test_one_differing_digest_comes_first_and_ends_with_3(two, run, what):
    changed = []

    def change(sample):
        if not changed and sample["point"]["filter"] == "cuckoo" and sample["filter"]:
            changed.append(sample["point_id"])
            sample["filter"][what] = "f" * 16
    change_samples(two[1], change)
    code, out, _ = run(*two)
    assert code == 3
    assert out.splitlines()[2].startswith("## WRONG ANSWERS")
    assert out.index("WRONG") < out.index("## Machines")
    assert f"{what}, seed 42" in out and "f" * 16 in out and "cuckoo" in out
    code, found = document(run, *two)
    (difference,) = found["digests"]["differences"]
    assert code == 3 and difference["point"]["filter"] == "cuckoo"
    assert {entry["what"] for entry in difference["of"]} == {what}
    compared = [load.question(entry["point"]) for entry in found["ratios"]]
    assert compared and load.question(difference["point"]) not in compared
    _, out, _ = run("--csv", *two)
    assert f"{what} differs" in out.splitlines()[1]


def test_a_target_that_differs_from_the_others_is_found(tmp_path, run):
    """A machine's only target of a filter is compared with another target of another machine."""
    one = write(tmp_path, ONE, points(targets=("scalar",)))
    other = write(tmp_path, OTHER, points(targets=("avx2",)))
    assert run(one, other)[0] == 0

    def change(sample):
        if sample["point"]["filter"] == "blocked_bloom" and sample["filter"]:
            sample["filter"]["answers_digest"] = "e" * 16
    change_samples(other, change)
    assert run(one, other)[0] == 3


def test_where_everything_differs_nothing_is_compared(two, run):
    def change(sample):
        if sample["filter"]:
            sample["filter"]["filter_digest"] = "f" * 16
    change_samples(two[1], change)
    code, found = document(run, *two)
    assert code == 3 and found["ratios"] == found["orders"] == found["gains"] == []
    code, out, _ = run(*two)
    assert code == 3 and out.splitlines()[2].startswith("## WRONG ANSWERS")


def test_digests_of_other_seeds_are_not_compared_and_that_is_said(two, run):
    change_samples(two[1], lambda sample: sample.update(seed=43))
    code, out, _ = run(*two)
    assert code == 6
    assert "no seed in common" in out and "NOTHING says" in out


def test_answers_to_other_numbers_of_questions_are_not_compared(tmp_path, two, run):
    other = write(tmp_path / "b", OTHER, points(), measure={"fpr_queries": 5})

    def change(sample):
        if sample["filter"]:
            sample["filter"]["answers_digest"] = "e" * 16
    change_samples(other, change)
    code, out, _ = run(two[0], other)
    assert code == 0
    assert "the number of absent keys asked differs" in out


def test_wrong_answers_of_a_run_end_with_3(tmp_path, two, run):
    entries = points()
    entries[3] |= {"status": "wrong_answers", "reason": "denies key 7", "ns_per_op": None,
                   "floor": None, "fpr": None}
    code, out, _ = run(two[0], write(tmp_path / "b", OTHER, entries))
    assert code == 3 and "denies key 7" in out
    assert out.splitlines()[2].startswith("## WRONG ANSWERS")


def test_swapped_ranks_are_found_and_noise_is_not_called_a_swap(tmp_path, run):
    def entries(cuckoo, classic):
        return [testing.make_point(name, {}, 1000, "lookup_batched", 1.0, "avx2", ns=ns, bits=10.0,
                                   floor=1.0)
                for name, ns in (("blocked_bloom", 2.0), ("cuckoo", cuckoo),
                                 ("classic_bloom", classic))]
    # Intervals reach from 0.97 to 1.04 of the median.
    one, other, third = (write(tmp_path, name, entries(*times)) for name, times in (
        (ONE, (4.0, 8.0)), (OTHER, (8.0, 4.0)), (THIRD, (4.0, 3.95))))
    code, found = document(run, one, other, third)
    assert code == 0
    (order,) = found["orders"]
    pairs = {tuple(pair["machines"]): pair for pair in order["pairs"]}
    sure = pairs[ONE, OTHER]
    assert sure["swaps"] == [{"faster_on_the_first": "cuckoo",
                              "faster_on_the_second": "classic_bloom"}]
    assert sure["swaps_within_noise"] == [] and sure["kendall_tau"] == pytest.approx(1 / 3)
    noise = pairs[ONE, THIRD]
    assert noise["swaps"] == [] and len(noise["swaps_within_noise"]) == 1
    assert pairs[OTHER, THIRD]["kendall_tau"] == 1 and not pairs[OTHER, THIRD]["swaps_within_noise"]
    assert order["fastest"][ONE]["filter"] == "blocked_bloom"
    _, out, _ = run(one, other, third)
    assert "A has cuckoo before classic_bloom, B the other way round" in out
    assert "0 + 1 within noise" in out


@pytest.mark.parametrize("one,other,sure,noise", [
    ((4.0, 8.0), (8.0, 4.0), 1, 0),
    ((4.0, 4.1), (8.0, 4.0), 0, 1),   # the intervals overlap on the first only
    ((4.0, 8.0), (4.1, 4.0), 0, 1),   # on the second only
    ((4.0, 4.0), (8.0, 4.0), 0, 0),   # equal on one: not the other way round
    ((4.0, 8.0), (3.0, 9.0), 0, 0)])
def test_a_swap_is_sure_only_if_intervals_are_apart_on_both(tmp_path, run, one, other, sure, noise):
    def entries(times):
        return [testing.make_point(name, {}, 1000, "lookup_batched", 1.0, "avx2", ns=ns, bits=10.0)
                for name, ns in zip(("blocked_bloom", "cuckoo"), times)]
    _, found = document(run, write(tmp_path, ONE, entries(one)),
                        write(tmp_path, OTHER, entries(other)))
    ((pair,),) = [order["pairs"] for order in found["orders"]]
    assert (len(pair["swaps"]), len(pair["swaps_within_noise"])) == (sure, noise)


def test_a_fastest_filter_within_noise_says_so(tmp_path, run):
    entries = [testing.make_point(name, {}, 1000, "lookup_batched", 1.0, "avx2", ns=ns, bits=10.0)
               for name, ns in (("blocked_bloom", 2.0), ("cuckoo", 2.02))]
    _, found = document(run, write(tmp_path, ONE, entries), write(tmp_path, OTHER, entries))
    assert found["orders"][0]["fastest"][ONE]["within_noise_of"] == ["cuckoo"]


def test_a_missing_floor_is_a_reason_and_no_number(tmp_path, two, run):
    entries = points()
    for entry in entries:
        entry |= {"floor": None, "floor_reason": "no touch_lines in this run"}
    code, found = document(run, two[0], write(tmp_path / "b", OTHER, entries))
    assert code == 0
    for entry in found["ratios"]:
        assert entry["machines"][OTHER]["over_floor"] == {
            "value": None, "low": None, "high": None, "reason": "no touch_lines in this run"}
    assert any(entry["machines"][ONE]["over_floor"]["value"] for entry in found["ratios"])
    _, out, _ = run(two[0], tmp_path / "b" / OTHER / testing.RUN_NAME)
    assert "] no touch_lines in this run" in out


def test_ratios_are_those_of_the_medians(tmp_path, run):
    entries = [testing.make_point("blocked_bloom", {}, 1000, "lookup_batched", 1.0, "avx2", ns=2.0,
                                  bits=10.0, floor=1.6),
               testing.make_point("cuckoo", {}, 1000, "lookup_batched", 1.0, "avx2", ns=5.0,
                                  bits=10.0, floor=2.0),
               testing.make_point("cuckoo", {}, 1000, "lookup_batched", 1.0, "scalar", ns=15.0,
                                  bits=10.0, floor=2.0),
               testing.make_point("cuckoo", {}, 1000, "lookup_reference", 1.0, "avx2", ns=10.0,
                                  bits=10.0)]
    _, found = document(run, write(tmp_path, ONE, entries), write(tmp_path, OTHER, entries))
    values = {entry["point"]["filter"]: entry["machines"][ONE] for entry in found["ratios"]
              if entry["point"]["mode"] == "lookup_batched"}
    assert values["cuckoo"]["target"] == "avx2"
    assert values["cuckoo"]["over_baseline"]["value"] == pytest.approx(2.5)
    assert values["cuckoo"]["over_baseline"]["low"] == pytest.approx(2.5 * 0.97 / 1.04)
    assert values["cuckoo"]["over_floor"]["value"] == pytest.approx(2.5)
    assert values["blocked_bloom"]["over_baseline"] == {"value": 1, "low": 1, "high": 1}
    gains = {entry["over"]: entry["machines"][OTHER]["value"] for entry in found["gains"]}
    assert gains == {"scalar": pytest.approx(3.0), "reference": pytest.approx(2.0)}


def test_points_and_targets_that_only_one_has_are_listed_by_reason(tmp_path, run):
    one = write(tmp_path, ONE, points())
    fewer = points(filters=("blocked_bloom", "classic_bloom"), targets=("scalar",), keys=(10_000,))
    fewer[0] |= {"status": "out_of_memory", "reason": "needs 8 GiB", "ns_per_op": None,
                 "floor": None, "fpr": None}
    code, found = document(run, one, write(tmp_path, OTHER, fewer))
    assert code == 0
    reasons = {(entry["machine"], entry["reason"]): entry for entry in found["only_some"]}
    assert reasons[OTHER, "out_of_memory: needs 8 GiB"]["points"] == 1
    assert reasons[OTHER, "not in its run"]["filters"] == [
        "blocked_bloom", "classic_bloom", "cuckoo", "hash_only", "touch_lines"]
    answered = {load.question(entry["point"]) for entry in points() if entry["status"] == "ok"}
    kept = {load.question(entry["point"]) for entry in fewer if entry["status"] == "ok"}
    assert sum(entry["points"] for entry in found["only_some"]) == len(answered - kept)
    assert found["targets"]["avx2"] == [ONE]
    _, out, _ = run(one, tmp_path / OTHER / testing.RUN_NAME)
    assert f"Target avx2: on {ONE} only." in out and "needs 8 GiB" in out


def test_nothing_in_common_is_6(tmp_path, two, run):
    code, out, err = run(two[0], write(tmp_path / "b", OTHER, points(keys=(77,))))
    assert code == 6 and out == "" and "no question in common" in err


def test_an_unknown_baseline_gets_the_nearest_name(two, run):
    code, out, err = run(*two, "--baseline", "cukoo")
    assert code == 2 and out == "" and "did you mean cuckoo?" in err
    code, found = document(run, *two, "--baseline", "cuckoo")
    assert code == 0 and found["baseline"]["filter"] == "cuckoo"


def test_two_runs_of_one_machine_are_refused_or_the_newest_counts(tmp_path, two, run):
    newer = write(tmp_path, ONE, points(), run="20270101T000000Z-0123456789ab-89abcdef")
    code, out, err = run(*two, newer)
    assert code == 2 and out == ""
    assert f"2 runs of machine {ONE}" in err and str(two[0]) in err and str(newer) in err
    code, found = document(run, *two, newer, "--newest")
    assert code == 0
    assert [m["run"] for m in found["machines"]] == [newer.name, testing.RUN_NAME]
    code, _, err = run(two[0], newer, "--newest")
    assert code == 2 and "at least two machines" in err


def test_one_machine_is_not_a_comparison(two, run):
    code, _, err = run(two[0])
    assert code == 2 and ONE in err


def test_a_run_that_cannot_be_read_is_named(two, run):
    (two[1] / "summary.json").write_text("{")
    code, out, err = run(*two)
    assert code == 2 and out == "" and "summary.json:1" in err


def test_an_incomplete_run_is_compared_and_ends_with_5(two, run):
    (two[1] / "COMPLETE").unlink()
    code, out, err = run(*two)
    assert code == 5 and "(INCOMPLETE)" in out and "COMPLETE is missing" in err


def test_without_arguments_the_newest_reference_run_of_each_machine(tmp_path, run):
    results = tmp_path / "results"
    code, _, err = run("--results", results)
    assert code == 2 and "reference runs of no machine" in err
    names = [f"2026113{i}T000000Z-0123456789ab-89abcdef" for i in range(3)]
    for machine in (ONE, OTHER):
        for name in names:
            path = write(results, machine, points(keys=(10_000,)), run=name)
            if name != names[2]:  # the newest is no reference run
                keep.write_in_place(keep.kept_files(path), path)
    code, found = document(run, "--results", results)
    assert code == 0
    assert [(m["machine"], m["run"]) for m in found["machines"]] == [(ONE, names[1]),
                                                                     (OTHER, names[1])]


def test_traps_of_cpu_families_are_noted_where_they_apply(tmp_path, run):
    zen2 = {"vendor": "AuthenticAMD", "family": 0x17, "model": 0x31}
    zen1, zen3 = zen2 | {"model": 1}, zen2 | {"family": 0x19, "model": 1}
    _, out, _ = run(write(tmp_path, ONE, points(), cpu=zen2),
                    write(tmp_path, OTHER, points(), cpu=zen3))
    assert f"{ONE}: CPU family 17h executes PDEP" in out and out.count("PDEP") == 1
    assert "two halves" not in out and "lower the clock" not in out
    _, out, _ = run(write(tmp_path / "b", ONE, points(), cpu=zen1),
                    write(tmp_path / "b", OTHER, points(targets=("scalar", "avx3")), cpu=zen3))
    assert f"{ONE}: executes 256-bit vectors as two halves" in out
    assert f"{OTHER}: rows on avx3 may lower the clock" in out


def test_what_the_runs_do_not_share_is_said(tmp_path, run):
    _, out, _ = run(write(tmp_path, ONE, points(), provenance={"git_commit": "a" * 40}),
                    write(tmp_path, OTHER, points(), provenance={"flags": "-O2",
                                                                 "git_dirty": True}))
    assert "different commits" in out and "different compiler flags" in out
    assert f"{OTHER}: the program was built from a tree with changes" in out
    assert "frequency control unknown" in out


def test_unstable_points_are_counted(tmp_path, two, run):
    entries = points()
    for entry in [e for e in entries if e["ns_per_op"]][:3]:
        entry["stability"] = {"asked_width": 0.02, "width": 0.07, "stable": False}
    code, out, _ = run(two[0], write(tmp_path / "b", OTHER, entries))
    assert code == 0 and out.count("unstable") == 1
    assert f"{OTHER}: 3 of {len(entries)} points are unstable" in out


@pytest.mark.parametrize("pages,says", [
    ((4 << 20, 0), ("100 %", "0 %")), ((4 << 20, None), ("100 %", "unknown")),
    ((4 << 20, 2 << 20), None), ((None, None), None), ((0, 0), None)])
def test_huge_pages_that_not_all_obtained_are_said(tmp_path, run, pages, says):
    runs = [write(tmp_path, machine, points(keys=(10_000, 10_000_000), shares=(1.0,)))
            for machine in (ONE, OTHER)]
    for path, huge in zip(runs, pages):
        # Small tables have none anyway.
        change_samples(path, lambda sample, h=huge: sample["health"] and sample["health"].update(
            huge_page_bytes=h if sample["point"]["keys"] > 10_000 else 0))
    code, out, _ = run(*runs)
    assert code == 0 and ("huge pages alike" in out) == (says is not None)
    if says:
        assert f"{ONE}: {says[0]}; {OTHER}: {says[1]} of the samples" in out


def test_csv_has_a_line_per_number(two, run):
    code, out, _ = run("--csv", *two)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and tuple(rows[0]) == compare_cpus.CSV_COLUMNS
    _, found = document(run, *two)
    assert len(rows) == (4 * len(found["ratios"]) + sum(len(o["pairs"]) for o in found["orders"])
                         + sum(len(g["machines"]) for g in found["gains"]))
    for row in rows:
        assert row["reason"] or math.isfinite(float(row["value"]))


def test_names_in_any_script_stay_on_their_line(tmp_path, run):
    entries = points(filters=("blocked_bloom", "löschen\n| x"))
    code, out, _ = run(write(tmp_path, ONE, entries), write(tmp_path, OTHER, entries))
    assert code == 0 and "U+000A" in out


def test_the_figure_is_drawn_on_request(tmp_path, two, run):
    code, _, err = run(*two, "--figure", tmp_path / "figures")
    assert code == 0
    assert sorted(p.name for p in (tmp_path / "figures").iterdir()) == ["cpu_vs_cpu.pdf",
                                                                        "cpu_vs_cpu.png"]
    assert "cpu_vs_cpu.png" in err
