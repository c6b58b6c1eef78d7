"""advise on runs in which the right answer is known by construction."""

import json
import lzma
import math
import os
import pathlib
import stat

import pytest

from plots import load, style, testing
from scripts import advise, choice

KEYS = 10 ** 6
BRAND = "Example CPU 9000 @ 3.00GHz"
ROOT = pathlib.Path(__file__).resolve().parent.parent


def entry(name, ns, fpr, *, keys=KEYS, bits=10.0, share=1.0, params=None, mode="lookup_batched",
          ends=(0.99, 1.01), fpr_ends=(0.99, 1.01), target="avx2", build=None, false_positives=None,
          queries=10 ** 6):
    """A point with exact numbers; `ends` and `fpr_ends` are its intervals as factors, None where
    they are unknown."""
    false_positives = round(fpr * queries) if false_positives is None else false_positives
    made = testing.make_point(
        name, {"bits_per_key": bits} if params is None else params, keys, mode, share, target,
        ns=ns, bits=bits, fpr=fpr, false_positives=false_positives, queries=queries,
        build_ns=build)
    low, high = (None, None) if ends is None else (end * ns for end in ends)
    made["ns_per_op"] |= {"low": low, "high": high, "min": ns if low is None else low}
    if false_positives:
        made["fpr"] |= {"measured": fpr, "low": fpr_ends[0] * fpr, "high": fpr_ends[1] * fpr}
    return made


def floor(*places):
    return [testing.make_point("touch_lines", {"bits_per_key": 10.0, "lines": 1}, keys,
                               "lookup_batched", 1.0, "avx2", ns=ns, bits=10.0)
            for keys, ns in places]


FAST = entry("blocked_bloom", 2.0, 0.05, share=0.8)
PRECISE = entry("ribbon", 6.0, 0.01, share=0.8)
# At 80 % negatives: no filter to the fast one where 0.8 m = 2 + 0.8 * 0.05 m, to the precise one
# where 2 + 0.8 * 0.05 m = 6 + 0.8 * 0.01 m.
TO_FAST, TO_PRECISE = 2 / (0.8 * 0.95), 4 / (0.8 * 0.04)
ASKED = {"--keys": "1e6", "--negatives": "0.8", "--miss-cost": "200ns"}


@pytest.fixture
def cpuinfo(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor\t: 0\nvendor_id\t: Example\ncpu family\t: 25\n"
                    f"model name\t: {BRAND}\nstepping\t: 1\n\nprocessor\t: 1\n")
    return file


@pytest.fixture
def write(tmp_path):
    def make(points, *, run=testing.RUN_NAME, machine=testing.MACHINE, brand=BRAND,
             spec="synthetic", spec_hash="89abcdef", folder="results", **options):
        manifest = testing.make_manifest(cpu_brand=brand, run=run, machine=machine)
        manifest["spec_hash"] = spec_hash
        manifest["spec"]["name"] = spec
        return testing.write_run(tmp_path / folder / machine / run, points, manifest=manifest,
                                 **options)
    return make


@pytest.fixture
def call(capsys, cpuinfo, tmp_path):
    """Calls with ASKED, changed by keywords (None leaves an option out)."""
    def ask(*words, **changed):
        asked = ASKED | {"--" + name.replace("_", "-"): value for name, value in changed.items()}
        arguments = [f"{name}={value}" for name, value in asked.items() if value is not None]
        arguments += ["--results", str(tmp_path / "results"), *map(str, words)]
        capsys.readouterr()
        try:
            code = advise.main(arguments, cpuinfo)
        except SystemExit as exit_request:
            code = exit_request.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err
    return ask


@pytest.fixture
def found(call):
    def ask(*words, **changed):
        def forbid(name):
            raise AssertionError(f"{name} in JSON")
        code, out, err = call("--json", *words, **changed)
        assert code == 0, err
        return json.loads(out, parse_constant=forbid)
    return ask


# --- The answer ---

def test_the_winner_changes_where_it_must(write, found):
    write([FAST, PRECISE])
    below, above = found(miss_cost=f"{TO_PRECISE - 1}ns"), found(miss_cost=f"{TO_PRECISE + 1}ns")
    assert below["winner"]["filter"] == above["runner_up"]["filter"] == "blocked_bloom"
    assert above["winner"]["filter"] == below["runner_up"]["filter"] == "ribbon"
    assert [(r["filter"], r["from_ns"], r["to_ns"]) for r in above["ranges"]] == [
        (None, 0, pytest.approx(TO_FAST)),
        ("blocked_bloom", pytest.approx(TO_FAST), pytest.approx(TO_PRECISE)),
        ("ribbon", pytest.approx(TO_PRECISE), None)]
    assert [e["miss_cost_ns"]["value"] for e in above["break_evens"]] == [
        pytest.approx(TO_FAST), pytest.approx(TO_PRECISE)]
    even = above["break_evens"][1]["miss_cost_ns"]
    assert even["low"] < TO_PRECISE < even["high"]
    assert above["winner"]["cost_ns"]["value"] == pytest.approx(
        6 + 0.8 * 0.01 * (TO_PRECISE + 1))
    assert above["basis"] == "measured" and above["this_cpu"] is True
    assert above["schema"] == "filterbench/advice/1"


def test_the_text_says_all_that_matters(write, call):
    write([FAST, PRECISE])
    code, out, err = call(miss_cost="2us")
    assert code == 0 and err == ""
    lines = out.splitlines()
    assert "10\u2076 keys, 80 % of lookups for absent keys" in lines[0]
    assert "costs 2.00 us" in lines[0] and "building not counted" in lines[0]
    assert "(the CPU of this machine)" in lines[1] and BRAND in lines[1]
    assert "Take ribbon (bits_per_key=10)." in lines
    (why,) = [line for line in lines if line.startswith("ribbon (bits_per_key=10) costs")]
    assert "22.0 ns per lookup, 6.00 ns to ask it and 16.0 ns of work" in why
    assert "the 4.00 ns more that it takes save 64.0 ns of work" in why
    assert any(line.startswith("| 125 ns to") or line.startswith("| above 125 ns | ribbon")
               for line in lines)
    assert "  parameters   {\"bits_per_key\":10.0}" in lines


@pytest.mark.parametrize("miss, reason", [
    ("100ns", "the 4.00 ns less that it takes are worth more than the 3.20 ns of work"),
    ("2ns", "No filter: letting every absent key through costs 1.60 ns")])
def test_the_sentence_says_why(write, call, miss, reason):
    write([FAST, PRECISE])
    assert reason in call(miss_cost=miss)[1]


def test_one_that_is_better_in_both_is_said_to_be(write, call):
    write([FAST, entry("ribbon", 1.0, 0.01, share=0.8)])
    assert "it is the faster one and lets fewer absent keys through" in call()[1]


def test_no_filter_wins_where_a_miss_costs_next_to_nothing(write, found):
    write([FAST, PRECISE])
    answer = found(miss_cost="1ns")
    assert answer["winner"]["filter"] is None and answer["winner"]["label"] == "no filter"
    assert answer["winner"]["cost_ns"]["value"] == pytest.approx(0.8)
    assert answer["verdict"] == "Take no filter."


def test_without_absent_keys_no_filter_is_worth_its_time(write, found):
    write([entry("blocked_bloom", 2.0, 0.05, share=0.0)])
    answer = found(negatives=0, miss_cost="1s")
    assert answer["winner"]["filter"] is None and len(answer["ranges"]) == 1
    assert answer["ranges"][0]["to_ns"] is None


def test_baselines_are_never_candidates(write, found):
    write([FAST, *floor((KEYS, 0.1)), testing.make_point(
        "hash_only", {}, KEYS, "lookup_batched", 0.8, "avx2", ns=0.1, bits=0.01)])
    assert {option["filter"] for option in found()["ranking"]} == {"blocked_bloom", None}


@pytest.mark.parametrize("status", ["wrong_answers", "skipped", "invalid"])
def test_what_is_not_ok_is_no_candidate(write, found, status):
    write([FAST, testing.make_point("ribbon", {"bits_per_key": 10.0}, KEYS, "lookup_batched", 0.8,
                                    "avx2", status=status, reason="planted")])
    assert {option["filter"] for option in found()["ranking"]} == {"blocked_bloom", None}


# --- Noise ---

@pytest.mark.parametrize("ends, noise", [((0.99, 1.01), False), ((0.8, 1.4), True), (None, None)])
def test_within_noise_where_the_intervals_meet(write, found, ends, noise):
    write([entry("blocked_bloom", 8.0, 0.01, share=0.8, ends=ends),
           entry("ribbon", 10.0, 0.01, share=0.8, ends=(0.99, 1.01))])
    answer = found()
    assert answer["winner"]["filter"] == "blocked_bloom" and answer["within_noise"] is noise
    assert ("Within noise" in answer["verdict"]) == (noise is True)
    assert ("interval is missing" in answer["verdict"]) == (noise is None)
    assert answer["as_good"] == (["ribbon (bits_per_key=10)"] if noise else [])
    if noise is None:
        assert answer["winner"]["lookup_ns"]["low"] is None


def test_doubt_by_the_fpr_alone_grows_with_the_cost_of_a_miss(write, found):
    write([entry("blocked_bloom", 2.0, 0.010, share=0.8, fpr_ends=(0.8, 1.25)),
           entry("ribbon", 10.0, 0.011, share=0.8, fpr_ends=(0.8, 1.25))])
    assert found(miss_cost="10ns")["within_noise"] is False
    assert found(miss_cost="1ms")["within_noise"] is True


def test_unstable_points_are_named(write, call):
    points = [FAST, json.loads(json.dumps(PRECISE))]
    points[1]["stability"] = {"asked_width": 0.02, "width": 0.5, "stable": False}
    write(points)
    assert "ribbon (bits_per_key=10): unstable, its interval is 50.0 % wide" in call()[1]


def test_an_fpr_that_nobody_saw_is_said_to_be_theory_or_a_limit(write, call):
    write([entry("ribbon", 6.0, 1e-7, share=0.8, false_positives=0), FAST])
    assert "its FPR is that of theory" in call(miss_cost="1ms")[1]


# --- Other numbers of keys and shares ---

def test_between_two_key_counts_it_is_interpolated(write, found):
    write([entry("blocked_bloom", ns, 0.01, keys=keys, share=0.8)
           for keys, ns in ((10 ** 5, 2.0), (10 ** 7, 8.0))])
    answer = found(miss_cost="1us")
    assert answer["winner"]["lookup_ns"]["value"] == pytest.approx(4.0)
    assert answer["basis"] == "interpolated"
    assert "(times interpolated)" in answer["verdict"]
    assert "between 10\u2075 and 10\u2077 keys" in answer["winner"]["grounds"]


def test_beyond_all_key_counts_it_is_extrapolated_by_the_floor(write, found):
    write([entry("blocked_bloom", 10.0, 1e-4, share=0.8), *floor((KEYS, 2.0), (10 ** 7, 8.0))])
    answer = found(keys="1e7", miss_cost="1ms")
    assert answer["winner"]["lookup_ns"]["value"] == pytest.approx(math.sqrt(40 * 16))
    assert answer["winner"]["basis"] == answer["basis"] == "extrapolated"
    assert answer["verdict"].startswith("Probably blocked_bloom")
    assert any("carried from 10\u2076 keys" in caveat for caveat in answer["caveats"])


def test_a_runner_up_that_is_extrapolated_makes_the_answer_so(write, found):
    write([entry("blocked_bloom", 10.0, 1e-4, share=0.8), *floor((KEYS, 2.0), (10 ** 7, 8.0)),
           entry("ribbon", 1.0, 1e-5, share=0.8, keys=10 ** 7)])
    answer = found(keys="1e7", miss_cost="1us")
    assert answer["winner"]["basis"] == "measured" and answer["basis"] == "extrapolated"
    assert answer["verdict"].startswith("Probably ribbon")


def test_what_is_on_firmer_ground_is_told(write, call):
    write([entry("blocked_bloom", 1.0, 1e-4, share=0.8), *floor((KEYS, 2.0), (10 ** 7, 8.0)),
           entry("ribbon", 90.0, 1e-4, share=0.8, keys=10 ** 7)])
    assert "the best on firmer ground, measured, is ribbon" in call(keys="1e7", miss_cost="1us")[1]


def test_without_a_floor_there_it_is_refused_with_the_way_to_measure(write, call):
    write([FAST, PRECISE, *floor((KEYS, 2.0))])
    code, out, err = call(keys="1e9")
    assert code == 5 and out == ""
    assert "nothing is known of 10\u2079 keys" in err
    assert "measured up to 10\u2076 keys" in err
    assert "filterbench run families --set keys=1000000000 --set negative_shares=0.8,1" in err


def test_some_that_are_too_far_are_left_out_and_named(write, found):
    write([FAST, PRECISE, entry("ribbon", 5.0, 0.01, keys=10 ** 8, share=0.8)])
    answer = found(keys="1e8")
    assert {option["filter"] for option in answer["ranking"]} == {"ribbon", None}
    (lost,) = answer["left_out"]
    assert lost["filter"] == "blocked_bloom" and "up to 10\u2076 keys" in lost["reason"]


def test_a_share_that_is_far_from_all_is_not_guessed(write, found):
    write([entry("blocked_bloom", 2.0, 0.05, share=1.0), entry("ribbon", 6.0, 0.01, share=0.5)])
    answer = found(negatives=0.95, miss_cost="1us")
    assert answer["winner"]["filter"] == "blocked_bloom"
    assert answer["winner"]["basis"] == "extrapolated"
    assert "as at a share of negatives of 1" in answer["winner"]["grounds"]
    (lost,) = answer["left_out"]
    assert lost["filter"] == "ribbon" and "near 0.95 (only 0.5)" in lost["reason"]


def test_a_share_comes_from_the_same_filter_elsewhere(write, found):
    write([entry("blocked_bloom", 2.0, 0.05, share=1.0),
           entry("blocked_bloom", 4.0, 0.05, share=1.0, keys=10 ** 4),
           entry("blocked_bloom", 6.0, 0.05, share=0.5, keys=10 ** 4)])
    answer = found(negatives=0.5, miss_cost="1us")
    assert answer["winner"]["lookup_ns"]["value"] == pytest.approx(3.0)
    assert "carried from a share of negatives of 1" in answer["winner"]["grounds"]


# --- Memory ---

def sizes(theory=True):
    """split_block at 8 and 16 bits per key: 2 and 4 ns, FPR 1e-2 and 1e-4."""
    curve = [{"bits_per_key": bits, "fpr": 10 ** (-bits / 4)} for bits in (4.0, 8.0, 12.0, 16.0)]
    points = [entry("split_block", ns, fpr, share=0.8, bits=bits)
              for bits, ns, fpr in ((8.0, 2.0, 1e-2), (16.0, 4.0, 1e-4))]
    return points, {"schema": "filterbench/theory/1", "curves": theory * [
        {"filter": "split_block", "label": "its own", "source": "planted", "points": curve}]}


def test_memory_takes_the_largest_that_just_fits(write, found):
    points, theory = sizes()
    write(points, theory=theory)
    answer = found(memory="1500000B", miss_cost="100us")  # 12 bits per key
    winner = answer["winner"]
    assert winner["params"] == {"bits_per_key": 12.0} and winner["size_bytes"] <= 1.5e6
    assert winner["fpr"]["value"] == pytest.approx(1e-3)
    # Linear in the logarithm of bytes: 12 is log(1.5)/log(2) on the way from 8 to 16.
    assert winner["lookup_ns"]["value"] == pytest.approx(2 * 2 ** math.log2(1.5))
    assert winner["basis"] == "interpolated" and winner["fpr_from"] == "expected"
    assert winner["fpr"]["low"] == pytest.approx(0.99e-3)
    assert winner["grounds"] == "between 8 and 16 bits per key"
    assert answer["beyond_memory"]["params"] == {"bits_per_key": 16.0}
    assert any("with 2.00 MB of memory split_block (bits_per_key=16)" in caveat
               for caveat in answer["caveats"])


@pytest.mark.parametrize("change", ["no curve", "another curve", "the larger does not exist"])
def test_without_agreeing_theory_only_measured_sizes_are_taken(write, found, change):
    points, theory = sizes(theory=change != "no curve")
    if change == "another curve":
        for point in theory["curves"][0]["points"]:
            point["fpr"] /= 2
    write(points[:1] if change == "the larger does not exist" else points, theory=theory)
    assert found(memory="1.5MB", miss_cost="100us")["winner"]["params"] == {"bits_per_key": 8.0}


def test_a_size_that_fits_exactly_fits(write, found):
    write([entry("ribbon", 6.0, 0.01, share=0.8)])
    assert found(memory="1250000B", miss_cost="1us")["winner"]["filter"] == "ribbon"


def test_too_little_memory_for_any_says_what_the_smallest_takes(write, call):
    write([FAST, PRECISE])
    code, out, err = call(memory="1kB")
    assert code == 5 and out == ""
    assert "takes 1250000 bytes for 10\u2076 keys (10 bits per key), the limit is 1000" in err


# --- Needs ---

@pytest.fixture
def catalogue(tmp_path, monkeypatch):
    def make(text=None):
        document = {"filters": [
            {"name": name, "insert": insert, "erase": erase, "grow": name == "taffy_block",
             "is_baseline": name == "touch_lines"}
            for name, insert, erase in (
                ("blocked_bloom", True, False), ("ribbon", False, False), ("cuckoo", True, True),
                ("taffy_block", True, False), ("touch_lines", True, True))]}
        (tmp_path / "catalogue.json").write_text(json.dumps(document) if text is None else text)
        program = tmp_path / "filterbench"
        program.write_text('#!/bin/sh\n'
                           f'[ "$*" = "list --json" ] && cat {tmp_path}/catalogue.json\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("FILTERBENCH", str(program))
    make()
    return make


@pytest.mark.parametrize("needs, winner", [
    ("insert", "blocked_bloom"), ("erase", "cuckoo"), ("insert,erase", "cuckoo"),
    ("grow", "taffy_block")])
def test_only_what_can_do_it_is_taken(write, found, catalogue, needs, winner):
    write([FAST, entry("ribbon", 0.1, 1e-5, share=0.8), entry("cuckoo", 3.0, 0.05, share=0.8),
           entry("taffy_block", 9.0, 0.02, share=0.8)])
    answer = found(needs=needs)
    assert answer["winner"]["filter"] == winner
    assert any("made for all keys at once" in text for text in answer["caveats"]) == (
        needs == "grow")


def test_a_need_that_no_run_answers_names_who_could(write, call, catalogue):
    write([FAST, PRECISE])
    code, _, err = call(needs="erase")
    assert code == 5 and "can erase (cuckoo) no run has one" in err
    assert "filterbench run families" in err and "--filter cuckoo" in err


def test_needs_that_no_filter_has_together(write, call, catalogue):
    write([FAST, PRECISE])
    code, _, err = call(needs="erase,grow")
    assert code == 5 and "no filter of the catalogue can erase and grow" in err
    assert "--needs erase leaves cuckoo; --needs grow leaves taffy_block" in err


@pytest.mark.parametrize("text", ["", "not JSON"])
def test_a_program_that_does_not_tell_what_filters_can_do(write, call, catalogue, text):
    write([FAST])
    catalogue(text)
    code, _, err = call(needs="erase")
    assert code == 2 and "FILTERBENCH names another program" in err


def test_the_program_is_not_asked_without_needs(write, call, monkeypatch):
    write([FAST])
    monkeypatch.setenv("FILTERBENCH", "/nonexistent")
    assert call()[0] == 0
    assert call(needs="erase")[0] == 2


# --- Building ---

def test_building_counts_if_it_is_asked_for(write, found):
    builds = [testing.make_point(name, {"bits_per_key": 10.0}, KEYS, "build", None, "avx2", ns=ns,
                                 bits=10.0, build_ns=ns)
              for name, ns in (("blocked_bloom", 5.0), ("ribbon", 105.0))]
    write([FAST, PRECISE, *builds])
    # At 625 ns a miss the precise one saves 20 - 4 ns, and costs 100 ns a key more to build.
    assert found(miss_cost="625ns")["winner"]["filter"] == "ribbon"
    assert found(miss_cost="625ns")["winner"]["build_ns_per_lookup"] is None
    assert found(miss_cost="625ns", lookups_per_key=7)["winner"]["filter"] == "ribbon"
    answer = found(miss_cost="625ns", lookups_per_key=6)
    assert answer["winner"]["filter"] == "blocked_bloom"
    assert answer["winner"]["build_ns_per_lookup"]["value"] == pytest.approx(5 / 6)
    assert answer["winner"]["cost_ns"]["value"] == pytest.approx(2 + 5 / 6 + 0.8 * 0.05 * 625)


def test_a_build_that_was_not_repeated_has_no_interval(write, found):
    write([entry("ribbon", 6.0, 0.01, share=0.8, build=60.0)])
    built = found(miss_cost="1us", lookups_per_key=10)["winner"]["build_ns_per_lookup"]
    assert built == {"value": 6.0, "low": None, "high": None}


def test_without_a_build_time_it_cannot_count(write, found, call):
    write([FAST, entry("ribbon", 6.0, 0.01, share=0.8, build=60.0)])
    (lost,) = found(miss_cost="1us", lookups_per_key=10)["left_out"]
    assert lost["filter"] == "blocked_bloom"
    assert lost["reason"] == "the time to build it was not measured"


# --- Names ---

def test_a_label_tells_what_made_the_size(write, found):
    def ribbon(bits, columns, size, ns):
        return entry("ribbon", ns, 2.0 ** -size, share=0.8, bits=size, params={
            "bits_per_key": bits, "columns": columns, "fpr": 0.0})
    write([ribbon(8.0, 0, 8.0, 1.0), ribbon(10.0, 0, 10.0, 2.0), ribbon(10.0, 8, 8.2, 3.0),
           entry("split_block", 4.0, 0.01, share=0.8, bits=16.0, params={
               "bits_per_key": 12.0, "blocks": "power_of_two"}),
           entry("split_block", 5.0, 0.01, share=0.8, bits=16.0, params={
               "bits_per_key": 9.0, "blocks": "power_of_two"}),
           entry("cuckoo", 6.0, 0.01, share=0.8, params={"fingerprint_bits": "8"})])
    assert [option["label"] for option in sorted(
        found()["ranking"], key=lambda option: option["lookup_ns"]["value"])] == [
        "no filter", "ribbon (bits_per_key=8)", "ribbon (bits_per_key=10)", "ribbon (columns=8)",
        "split_block (bits_per_key=12)", "split_block (bits_per_key=9)", "cuckoo"]


# --- Modes ---

def test_another_mode_that_would_choose_otherwise_is_told(write, found, call):
    points = [FAST, PRECISE, entry("blocked_bloom", 90.0, 0.05, share=0.8, mode="latency"),
              entry("ribbon", 9.0, 0.01, share=0.8, mode="latency")]
    write(points)
    answer = found(miss_cost="100ns")
    assert answer["winner"]["filter"] == "blocked_bloom"
    assert answer["other_modes"]["lookup_single"] is None
    assert answer["other_modes"]["latency"]["winner"]["filter"] == "ribbon"
    assert any("in mode latency it would be ribbon" in caveat for caveat in answer["caveats"])
    assert found(miss_cost="100ns", mode="latency")["winner"]["filter"] == "ribbon"


def test_modes_are_compared_on_what_both_measured(write, found):
    write([FAST, entry("ribbon", 1.0, 1e-5, share=0.8, bits=20.0),
           entry("blocked_bloom", 90.0, 0.05, share=0.8, mode="latency")])
    answer = found(miss_cost="1us")
    assert answer["winner"]["filter"] == "ribbon"
    assert answer["other_modes"]["latency"]["in_both"] == 1
    assert not any("in mode latency" in caveat for caveat in answer["caveats"])


def test_the_target_is_the_machines_best(write, found):
    write([FAST, entry("blocked_bloom", 0.5, 0.05, share=0.8, target="sse4")])
    assert found()["winner"]["target"] == "avx2"


# --- Runs ---

OLD, NEW = "20261101T000000Z-aaaaaaaaaaaa-11111111", "20261102T000000Z-bbbbbbbbbbbb-22222222"


def test_the_newest_run_of_each_sweep_counts(write, found):
    write([entry("blocked_bloom", 1.0, 0.01, share=0.8)], run=OLD)
    write([entry("blocked_bloom", 3.0, 0.01, share=0.8)], run=NEW)
    answer = found(miss_cost="1us")
    assert answer["runs"] == [NEW] and answer["winner"]["lookup_ns"]["value"] == 3.0


def test_runs_of_other_sweeps_add_what_they_have(write, found):
    write([FAST, PRECISE], run=OLD, spec="first", spec_hash="1")
    write([entry("blocked_bloom", 9.0, 0.05, share=0.8), entry("cuckoo", 1.0, 0.001, share=0.8)],
          run=NEW, spec_hash="2")
    answer = found()
    by_filter = {option["filter"]: option["run"] for option in answer["ranking"]}
    # Both have two filters in the mode; the newer one comes first.
    assert by_filter == {"blocked_bloom": NEW, "ribbon": OLD, "cuckoo": NEW, None: None}


def test_the_run_that_measured_nearest_to_the_question_counts(write, found):
    write([entry("ribbon", ns, 0.01, share=0.8, keys=keys) for keys, ns in (
        (10 ** 5, 1.0), (10 ** 7, 4.0))] + [FAST], run=OLD, spec="rich")
    write([PRECISE], run=NEW)
    (ribbon,) = [option for option in found()["ranking"] if option["filter"] == "ribbon"]
    assert ribbon["run"] == NEW and ribbon["basis"] == "measured"


def change_manifest(path, **changes):
    manifest = json.loads((path / "manifest.json").read_text())
    for field, change in changes.items():
        manifest[field] |= change
    (path / "manifest.json").write_text(json.dumps(manifest))


def test_of_a_spec_only_what_the_program_of_its_newest_run_measured(write, found):
    first = write([FAST], run=OLD, spec_hash="1")
    second = write([PRECISE], run=NEW, spec_hash="2")
    change_manifest(first, provenance={"binary_xxh3": "a"})
    change_manifest(second, provenance={"binary_xxh3": "b"})
    assert found()["runs"] == [NEW]
    change_manifest(first, provenance={"binary_xxh3": "b"})
    assert sorted(found()["runs"]) == [OLD, NEW]
    change_manifest(first, provenance={"binary_xxh3": "a"}, spec={"name": "another"})
    assert sorted(found()["runs"]) == [OLD, NEW]


def test_runs_without_lookups_are_not_read(write, found):
    write([FAST], run=OLD, spec="lookups")
    path = write([PRECISE], run=NEW, spec="fills")
    change_manifest(path, spec={"points": [{"mode": "overfill", "fill": 2},
                                           {"mode": "lookup_batched", "fill": 2}]})
    (path / "summary.json").write_text("never read")
    assert found()["runs"] == [OLD]


def test_what_an_older_program_called_otherwise_is_left_out(write, found):
    write([entry("blocked_bloom", 0.1, 0.001, share=0.8)], run=OLD, spec="older")
    write([entry("blocked_bloom", 2.0, 0.05, share=0.8, params={"bits_per_key": 10.0, "k": 0})],
          run=NEW)
    answer = found()
    assert answer["winner"]["lookup_ns"]["value"] == 2.0 and len(answer["ranking"]) == 2
    assert answer["left_out"][0]["reason"] == choice.OTHER_PARAMETERS


def test_different_runs_of_winner_and_runner_up_are_told(write, call):
    write([FAST], run=OLD, spec_hash="1")
    write([PRECISE], run=NEW, spec_hash="2")
    assert "measured in different runs" in call()[1]


def test_incomplete_and_hidden_runs_are_not_taken(write, call):
    write([FAST], run=OLD, complete=False)
    code, _, err = call()
    assert code == 5 and "filterbench run quick" in err


def test_a_damaged_run_is_told_and_left_out(write, call):
    write([FAST], run=OLD)
    path = write([PRECISE], run=NEW)
    (path / "manifest.json").write_text("[]")
    code, out, err = call()
    assert code == 0 and OLD in out and f"{NEW}: left out" in err.replace(str(path), NEW)


def test_the_reference_run_of_another_cpu_is_said_loudly(write, call, found):
    path = write([FAST, PRECISE], brand="Another CPU", machine="other-1")
    code, _, err = call()
    assert code == 5 and "no reference run" in err
    (path / "samples.jsonl").rename(path / "plain")
    (path / "samples.jsonl.xz").write_bytes(lzma.compress((path / "plain").read_bytes()))
    code, out, err = call()
    assert code == 0
    assert "measured on another CPU, Another CPU" in err
    assert "(ANOTHER CPU)" in out and "MEASURED ON ANOTHER CPU (Another CPU)" in out
    assert found()["this_cpu"] is False


def test_own_runs_come_before_reference_runs_of_others(write, found):
    write([PRECISE], brand="Another CPU", machine="other-1", run=NEW)
    write([FAST], run=OLD)
    assert found()["runs"] == [OLD]


def test_runs_that_are_named_count_in_their_order(write, found, call):
    first = write([entry("blocked_bloom", 5.0, 0.01, share=0.8)], run=OLD, folder="elsewhere")
    second = write([entry("blocked_bloom", 3.0, 0.01, share=0.8), PRECISE], run=NEW,
                   folder="elsewhere")
    answer = found("--run", first, second, miss_cost="1us")
    assert answer["runs"] == [OLD, NEW] and answer["winner"]["lookup_ns"]["value"] == 5.0
    answer = found("--run", second, "--run", first, miss_cost="1us")
    assert answer["winner"]["lookup_ns"]["value"] == 3.0


def test_runs_of_two_machines_are_refused(write, call):
    paths = [write([FAST], machine=machine) for machine in ("one-1", "other-2")]
    code, out, err = call("--run", *paths)
    assert code == 6 and out == "" and "several machines" in err
    assert all(str(path) in err for path in paths)


def test_a_run_that_cannot_be_read(write, call, tmp_path):
    code, _, err = call("--run", tmp_path / "nowhere")
    assert code == 2 and "nowhere: is not a run directory" in err
    path = write([FAST])
    text = (path / "summary.json").read_text().replace('"status": "ok"', '"status": "fine"')
    (path / "summary.json").write_text(text)
    code, _, err = call("--run", path)
    assert code == 2 and "summary.json:" in err and "status" in err


@pytest.mark.parametrize("manifest, here", [
    ({"brand": BRAND, "family": 25, "stepping": 1}, True),
    ({"brand": BRAND, "family": 26}, False), ({"brand": "Other"}, False), ({"family": 25}, False),
    ({}, False), (None, False)])
def test_whose_cpu_it_is(cpuinfo, manifest, here):
    assert advise.is_here({"environment": {"cpu": manifest}}, advise.this_cpu(cpuinfo)) is here


def test_whose_cpu_it_is_on_arm(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n")
    cpu = advise.this_cpu(file)
    assert advise.is_here({"environment": {"cpu": {"vendor": "0x41", "part": "0xd40",
                                                   "brand": None}}}, cpu)
    assert not advise.is_here({"environment": {"cpu": {"vendor": "0x41", "part": "0xd4f"}}}, cpu)


def test_a_kernel_that_does_not_tell_its_cpu(write, capsys, tmp_path):
    path = write([FAST])
    code = advise.main(["--keys", "1e6", "--negatives", "0.8", "--miss-cost", "1us", "--run",
                        str(path)], tmp_path / "nothing")
    out = capsys.readouterr().out
    assert code == 0 and "whether this machine has the CPU that was measured on is not known" in out


# --- Words that are not understood ---

@pytest.mark.parametrize("option, value, hint", [
    ("miss_cost", "100", "a number with a unit of ns, us, ms, s, such as 100us"),
    ("miss_cost", "100 parsecs", "such as 100us"), ("miss_cost", "-1ns", "unit"),
    ("miss_cost", "0ns", "above 0"), ("miss_cost", "1e400s", "finite"),
    ("miss_cost", "nan", "such as 100us"), ("miss_cost", "", "such as 100us"),
    ("memory", "150", "such as 150MB"), ("memory", "150mb", "such as 150MB"),
    ("memory", "0B", "above 0"),
    ("keys", "many", "such as 100000000, 1e8 or 100M"), ("keys", "0", "whole number"),
    ("keys", "1.5", "whole number"), ("keys", "-5", "whole number"), ("keys", "inf", "whole"),
    ("keys", "1e8MB", "whole number"),
    ("negatives", "90", "a number from 0 to 1, such as 0.9"), ("negatives", "-0.1", "0 to 1"),
    ("negatives", "nan", "0 to 1"), ("negatives", "90%", "0 to 1"),
    ("needs", "delete", "insert, erase, grow"), ("needs", ",", "names none of insert"),
    ("lookups_per_key", "0", "such as 10"), ("lookups_per_key", "inf", "such as 10"),
    ("mode", "build", "lookup_batched"), ("figure", "picture", ".png, .pdf"),
    ("figure", "picture.docx", ".png, .pdf"),
    ("keys", None, "required"), ("negatives", None, "required"), ("miss_cost", None, "required")])
def test_bad_values_get_the_valid_form(write, call, option, value, hint):
    write([FAST])
    code, out, err = call(**{option: value})
    assert code == 2 and out == ""
    assert hint in err
    assert "--" + option.replace("_", "-") in err


@pytest.mark.parametrize("text, ns", [
    ("100ns", 100), ("100us", 1e5), ("100\u00b5s", 1e5), ("2ms", 2e6), ("0.1s", 1e8), (".5us", 500),
    ("1e3ns", 1000), ("2 ms", 2e6)])
def test_times(write, found, text, ns):
    write([FAST])
    assert found(miss_cost=text)["question"]["miss_cost_ns"] == pytest.approx(ns)


@pytest.mark.parametrize("text, size", [
    ("150MB", 150e6), ("150MiB", 150 * 2 ** 20), ("1GB", 1e9), ("2GiB", 2 ** 31),
    ("1250kB", 1.25e6), ("2000KiB", 2000 * 1024), ("1250000B", 1.25e6), ("1e3 MB", 1e9)])
def test_bytes(write, found, text, size):
    write([FAST])
    assert found(memory=text)["question"]["memory_bytes"] == pytest.approx(size)


@pytest.mark.parametrize("text, keys", [("1000000", 10 ** 6), ("1e6", 10 ** 6), ("1M", 10 ** 6),
                                        ("1000k", 10 ** 6), ("1.0e6", 10 ** 6)])
def test_keys(write, found, text, keys):
    write([FAST])
    assert found(keys=text)["question"]["keys"] == keys


def test_help_says_how_and_what_the_exit_codes_mean(call):
    code, out, _ = call("--help")
    assert code == 0 and "Exit codes" in out and "--lookups-per-key" in out


# --- The picture ---

@pytest.mark.parametrize("theme, ending", [
    ("screen", "png"), ("paper", "pdf"), ("slides", "svg"), ("dark", "png")])
def test_the_picture(write, call, tmp_path, theme, ending):
    write([FAST, PRECISE])
    file = tmp_path / "pictures" / f"answer.{ending}"
    code, _, err = call(figure=file, theme=theme)
    assert code == 0 and f"figure: {file}" in err
    assert os.listdir(file.parent) == [file.name] and file.stat().st_size > 5000


def test_a_picture_that_cannot_be_written(write, call, tmp_path):
    write([FAST, PRECISE])
    (tmp_path / "file").touch()
    code, out, err = call(figure=tmp_path / "file" / "answer.png")
    assert code == 5 and "cannot write" in err and "Asked:" in out


@pytest.fixture
def drawn(write):
    def make(points, **question):
        run = load.load_run(write(points))
        advice = choice.advise([run], choice.Question(**{
            "keys": KEYS, "negatives": 0.8, "miss_cost_ns": 200.0} | question))
        return advice, advise.picture.draw(advice)
    return make


def test_the_picture_shows_each_winner_where_it_wins(drawn):
    _, figure = drawn([FAST, PRECISE])
    axes = figure.axes[0]
    lines = {line.get_gid(): line for line in axes.get_lines() if line.get_gid()}
    ends = [(lines[f"measured:{n}"].get_xdata()[0], lines[f"measured:{n}"].get_xdata()[-1])
            for n in (1, 2, 3)]
    assert ends[0][1] == pytest.approx(TO_FAST) == pytest.approx(ends[1][0])
    assert ends[1][1] == pytest.approx(TO_PRECISE) == pytest.approx(ends[2][0])
    y = lines["measured:3"].get_ydata()
    assert y[0] == pytest.approx(6 + 0.8 * 0.01 * TO_PRECISE)
    assert lines["asked"].get_xdata()[0] == 200.0
    assert lines["measured:answer"].get_ydata()[0] == pytest.approx(6 + 0.8 * 0.01 * 200)
    assert lines["measured:2"].get_color() == style.filter_looks(["blocked_bloom"])[
        "blocked_bloom"].colour
    low, high = axes.get_xlim()
    assert low < TO_FAST and TO_PRECISE < high and axes.get_xscale() == axes.get_yscale() == "log"
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[0].endswith("no filter") and "ribbon" in labels[2] and "asked" in labels[-1]


@pytest.mark.parametrize("question", [
    {"negatives": 0.0}, {"miss_cost_ns": 1e-9}, {"miss_cost_ns": 1e12}])
def test_pictures_at_the_edges(drawn, question):
    points = [entry("blocked_bloom", 2.0, 0.05, share=share, ends=None) for share in (0.0, 0.8)]
    advice, figure = drawn(points, **question)
    low, high = figure.axes[0].get_xlim()
    assert low <= advice.question.miss_cost_ns <= high


def test_many_parameters_of_one_filter_differ_in_line(drawn):
    points = [entry("blocked_bloom", ns, fpr, share=0.8, bits=bits) for bits, ns, fpr in (
        (4.0, 1.0, 0.2), (8.0, 2.0, 0.02), (16.0, 4.0, 0.001))]
    _, figure = drawn(points)
    lines = {line.get_gid(): line for line in figure.axes[0].get_lines() if line.get_gid()}
    assert len({str(lines[f"measured:{n}"]._dash_pattern) for n in (2, 3, 4)}) == 3
    assert len({lines[f"measured:{n}"].get_color() for n in (2, 3, 4)}) == 1
