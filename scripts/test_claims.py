"""filterbench claims: the file of claims, and what is found for each on runs made for it."""

import copy
import json
import math
import os
import pathlib
import subprocess

import jsonschema
import numpy
import pytest

from plots import load, testing
from plots.ratios import Measured, Unknown
from scripts import claims, measures

ROOT = pathlib.Path(claims.__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("FILTERBENCH", ROOT / "build/release/filterbench"))
CLAIMS = claims.read_claims()
CHECKS = [(claim["id"], index, check) for claim in CLAIMS
          for index, check in enumerate(claim.get("checks", ())) if "measure" in check]
QUERIES = 1_000_000_000  # so many that a rate has hardly an interval


# --- Synthetic points ---

def point(filter_name, params, keys, mode="lookup_batched", share=1.0, *, fill=None, **values):
    """An entry of summary.json; times with an interval of 1 % on either side."""
    if values.get("fpr") is not None:
        values.setdefault("queries", QUERIES)
        values.setdefault("false_positives", round(values["fpr"] * values["queries"]))
    floor = values.pop("floor", None)
    # Filling key by key has no share of negatives either.
    share = None if mode in ("build", "overfill", "insert") else share
    entry = testing.make_point(filter_name, params, keys, mode, share, "avx2", floor=floor,
                               **values)
    if entry["ns_per_op"] is not None:
        entry["ns_per_op"] |= {"low": 0.99 * values["ns"], "high": 1.01 * values["ns"]}
    if fill is not None:
        entry["point"]["fill"] = fill
        entry["keys_held"] = [keys]
        entry["point_id"] = testing._identity(entry["point"])  # pylint: disable=protected-access
    return entry


def samples_of(points, extras=None, deviation=0.0, processes=3):
    """Samples for each point, one of each process; `extras`: {point_id: what the filter tells of
    itself}."""
    samples = []
    for process in range(processes):
        for sample in testing.make_samples(points):
            if sample["fpr"] is not None:
                sample["fpr"]["expected_instance_sd"] = deviation
            if sample["filter"] is not None and extras:
                sample["filter"]["extra"] = extras.get(sample["point_id"], {})
            samples.append(sample | {"sequence": len(samples), "process": process,
                                     "round": process, "seed": process})
    return samples


@pytest.fixture
def write(tmp_path):
    def write_run(points, *, name=testing.RUN_NAME, machine=testing.MACHINE, **options):
        options.setdefault("samples", samples_of(points))
        return testing.write_run(tmp_path / name, points, manifest=testing.make_manifest(
            run=name, machine=machine), **options)
    return write_run


@pytest.fixture
def data(write):
    return lambda points, **options: measures.Data(load.load_run(write(points, **options)))


def rate(filter_name="blocked_bloom", fpr=0.01, keys=1000, bits=10.0, params=None, **options):
    return point(filter_name, params or {"bits_per_key": 10.0}, keys, fpr=fpr, bits=bits, ns=1.0,
                 **options)


# --- The file ---

def test_there_are_claims_of_each_kind():
    assert len(CHECKS) > 60 and len(CLAIMS) >= 30
    assert {claim["kind"] for claim in CLAIMS} == {"exact", "ratio", "trend"}
    jsonschema.Draft202012Validator.check_schema(json.loads(claims.SCHEMA.read_text()))


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """{spec: a run that has just the points that the spec plans}, of the specs that claims name."""
    runs = {}
    for spec in {spec for _, _, check in CHECKS for spec in check["specs"]}:
        plan = subprocess.run(
            [PROGRAM, "plan", ROOT / "workloads" / "specs" / f"{spec}.json", "--json"],
            capture_output=True, text=True, timeout=120, check=True)
        points = []
        for asked in json.loads(plan.stdout)["spec"]["points"]:
            params = asked["params"]
            bits = float(params.get("columns") or params.get("bits_per_key") or params.get(
                "fingerprint_bits", 10))
            entry = point(asked["filter"], params, asked["keys"], asked["mode"],
                          asked["negative_share"], ns=1.0, bits=bits, fpr=2 ** (-bits / 1.3))
            entry["point"] = asked
            entry["point_id"] = testing._identity(asked)  # pylint: disable=protected-access
            if "fill" in asked:
                entry["keys_held"] = [asked["keys"]]
            if "workload" in asked:
                reads = testing.make_metric(0, 100, 10_000, 1_000, 100.0)
                entry["workload"] = {"rounds": 1, "metrics": {"block_reads_per_get": reads},
                                     "counters": {}, "parts": [], "phases_ns": {}, "facts": {}}
            points.append(entry)
        extras = dict.fromkeys(("load", "attempts", "spare_stored", "stored", "slots_per_key"), 1)
        runs[spec] = measures.Data(load.load_run(testing.write_run(
            tmp_path_factory.mktemp("planned") / spec, points, samples=samples_of(
                points, {entry["point_id"]: extras for entry in points}))))
    return runs


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
def test_the_specs_of_a_check_measure_what_it_asks(planned):
    lacking = []
    for name, index, check in CHECKS:
        for spec in check["specs"]:
            try:
                measures.measure_in(planned[spec], check["measure"])
            except measures.Absent as absent:
                lacking.append(f"{name}, checks[{index}], {spec}: {absent}")
            except Unknown:
                pass  # the made-up numbers may have no crossing
    assert not lacking


def test_what_depends_on_times_is_no_exact_claim():
    for claim in CLAIMS:
        if claims.depends_on_machine(claim):
            assert claim["kind"] != "exact", claim["id"]
        else:
            assert claim["kind"] == "exact", claim["id"]


def edited(tmp_path, edit):
    document = {"schema": "filterbench/claims/1", "claims": copy.deepcopy(CLAIMS)}
    edit(document)
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(document))
    return file


def _named(document, name):
    return next(claim for claim in document["claims"] if claim["id"] == name)


def _drop(name, *path):
    def edit(document):
        target = _named(document, name)
        for step in path[:-1]:
            target = target[step]
        del target[path[-1]]
    return edit


def _set(value, name, *path):
    def edit(document):
        target = _named(document, name)
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value
    return edit


@pytest.mark.parametrize("edit, said", [
    (_drop("xor-space", "source"), ("claim xor-space", "'source'")),
    (_drop("xor-space", "checks", 1, "why"), ("claim xor-space", "field checks[1]", "'why'")),
    (_drop("xor-space", "checks"), ("claim xor-space", "'checks'")),
    (_set(1, "xor-space", "checks", 0, "measure", "colour"),
     ("claim xor-space", "checks[0].measure", "colour")),
    (_set("ns", "xor-space", "checks", 0, "measure", "quantity"),
     ("claim xor-space", "checks[0].measure.quantity", "'ns'")),
    (_set({"value": -1}, "xor-space", "checks", 0, "claimed"),
     ("claim xor-space", "checks[0].claimed")),
    (_set({"low": 2, "high": 1}, "xor-space", "checks", 0, "claimed"),
     ("claim xor-space", "checks[0].claimed", "low is above high")),
    (_set(0.9, "xor-space", "checks", 0, "tolerance"), ("claim xor-space", "checks[0].tolerance")),
    (_set("guess", "xor-space", "kind"), ("claim xor-space", "field kind", "'guess'")),
    (_set("fuse-space", "xor-space", "id"), ("claim fuse-space", "field id", "twice")),
    (_set("No Id", "xor-space", "id"), ("field id", "'No Id'")),
    (_drop("ribbon-smaller", "checks", 0, "measure", "at_fpr"), ("claim ribbon-smaller", "at_fpr")),
    (_drop("bloom-beats-cuckoo", "checks", 0, "measure", "between_ns"),
     ("claim bloom-beats-cuckoo", "between_ns")),
    (_set("x", "cuckoo-load", "checks", 0, "why"), ("claim cuckoo-load", "checks[0]")),
    (lambda document: document.update(claims=[7]), ("claim number 1", "7")),
    (lambda document: document.update(claims=[]), ("field claims",)),
    (lambda document: document.update(schema="filterbench/claims/2"), ("field schema",)),
])
def test_a_damaged_file_is_named_with_claim_and_field(tmp_path, capsys, edit, said):
    file = edited(tmp_path, edit)
    with pytest.raises(claims.ClaimsError) as error:
        claims.read_claims(file)
    assert all(part in str(error.value) for part in (str(file), *said)), str(error.value)
    assert claims.main(["--list", "--claims", str(file)]) == 2
    assert str(file) in capsys.readouterr().err


@pytest.mark.parametrize("text, said", [
    (b"{", ":1: is not JSON"), (b'{"schema":\n "a" "b"}', ":2: is not JSON"),
    (b"\xff", "is not UTF-8"), (b"[" * 100_000, "can be read"), (None, "cannot be read")],
    ids=["cut off", "no comma", "not UTF-8", "too deep", "not there"])
def test_what_is_no_file_of_claims(tmp_path, text, said):
    file = tmp_path / "mine.json"
    if text is not None:
        file.write_bytes(text)
    with pytest.raises(claims.ClaimsError, match="mine.json") as error:
        claims.read_claims(file)
    assert said in str(error.value)


# --- Each claim, on a run made for it ---

def _first(values):
    return values[0] if isinstance(values, list) else values


def gets_point(wanted, quantity, value, filter_name=None, fpr=0.01, gets=QUERIES):
    """A point of gets from a store with a number of block reads, or of that over the formula."""
    knobs = {name: _first(v) for name, v in wanted["workload"].items() if name != "name"}
    files, share = knobs["files"], _first(wanted["negative_share"])
    certain, per_get = (0, files) if share == 1 else (gets, files - 1)
    reads = value if quantity.startswith("metric.") else value * (certain / gets + per_get * fpr)
    by_chance = max(0, round(reads * gets) - certain)
    return testing.make_workload_point(
        filter_name or _first(wanted.get("filter", "xor")),
        {name: _first(v) for name, v in wanted.get("params", {}).items()}, 40_000,
        wanted["workload"]["name"], knobs, share=share, fpr=fpr, queries=per_get * gets,
        false_positives=by_chance, metrics={"block_reads_per_get": testing.make_metric(
            certain, by_chance, per_get * gets, gets, fpr * per_get * gets)})


def _point_for(wanted, quantity, value):
    """(entry, extras) of a point that a selection means and that has `value`."""
    if "workload" in wanted:
        return gets_point(wanted, quantity, value), {}
    params = {name: _first(v) for name, v in wanted.get("params", {}).items()}
    values = {"fpr": 0.01, "bits": 10.0, "ns": 20.0, "floor": 10.0}
    extra = {}
    if quantity == "fpr":
        values["fpr"] = value
    elif quantity == "bits_per_key":
        values["bits"] = value
    elif quantity == "overhead":
        values["bits"] = value * -math.log2(values["fpr"])
    elif quantity == "ns_per_op":
        values["ns"] = value
    elif quantity == "floor_ratio":
        values["ns"] = 10.0 * value
    else:
        extra = {quantity.removeprefix("extra."): value}
    entry = point(_first(wanted.get("filter", "xor")), params,
                  int(_first(wanted.get("keys", 1000))),
                  _first(wanted.get("mode", "lookup_batched")),
                  _first(wanted.get("negative_share", 1.0)), fill=_first(wanted.get("fill")),
                  **values)
    return entry, extra


def _run_for(measure, value):
    """(points, extras) on which `measure` gives `value`."""
    where, points, extras = measure.get("where", {}), {}, {}

    def add(wanted, quantity, value_):
        entry, extra = _point_for(wanted, quantity, value_)
        points.setdefault(entry["point_id"], entry)
        extras.setdefault(entry["point_id"], {}).update(extra)

    base = 0.001 if measure["quantity"] == "fpr" else 10.0
    if "along" in measure:
        (axis, values), = measure["along"].items()
        for index, place in enumerate(values):
            grown = index > 0 if measure["pick"] == "growth" else index == len(values) - 1
            factor = value if grown else 1
            add(where | measure["of"] | {axis: place}, measure["quantity"], base * factor)
    elif "pick" in measure:
        for index in range(measure["least_filters"]):
            add({"filter": f"filter_{index}"}, measure["quantity"], value * (1 + index))
    elif "over" in measure:
        add(where | measure["over"], measure.get("over_quantity", measure["quantity"]), base)
        add(where | measure["of"], measure["quantity"], base * value)
    else:
        add(where | measure["of"], measure["quantity"], value * measure.get("over_value", 1))
    if measure["quantity"] == "floor_ratio":
        points[testing.make_point("touch_lines", {}, 1, "lookup_batched", 1, "avx2")[
            "point_id"]] = point("touch_lines", {"lines": 1}, 7, ns=10.0)
        floor = next(entry["point_id"] for entry in points.values()
                     if entry["point"]["filter"] == "touch_lines")
        for entry in points.values():
            if entry["floor"] is not None:
                entry["floor"]["from"] = [floor]
    return list(points.values()), extras


def _inside(claimed):
    if "value" in claimed:
        return claimed["value"]
    if "low" in claimed:
        return (claimed["low"] + claimed["high"]) / 2
    return 1.5 * claimed["at_least"] if "at_least" in claimed else 0.8 * claimed["at_most"]


def _outside(claimed, tolerance):
    if "at_least" in claimed:
        return 0.7 * claimed["at_least"]
    end = claimed.get("value", claimed.get("high", claimed.get("at_most")))
    return end * (1.1 + tolerance)


SIMPLE = [entry for entry in CHECKS if entry[2]["measure"]["quantity"] not in measures.CURVES]


@pytest.mark.parametrize("name, index, check", SIMPLE)
def test_each_check_tells_what_keeps_the_claim_from_what_does_not(data, name, index, check):
    for value, verdict in ((_inside(check["claimed"]), claims.REPRODUCED),
                           (_outside(check["claimed"], check["tolerance"]),
                            claims.NOT_REPRODUCED)):
        if check["measure"].get("pick") == "spread":
            value = max(1, value)  # no curve has less
        points, extras = _run_for(check["measure"], value)
        run = data(points, samples=samples_of(points, extras))
        part = claims.check_part(check, [run])
        assert part["verdict"] == verdict, (name, index, value, part)
        assert part["run"] == run.run.name and part["points"]
        assert part["measured"]["value"] == pytest.approx(value, rel=1e-3)


def test_without_data_each_check_says_what_to_run(data):
    run = data([rate("made_up")])
    for name, index, check in CHECKS:
        part = claims.check_part(check, [run])
        assert part["verdict"] == claims.NOT_MEASURABLE, (name, index)
        assert part["reason"]
        assert part["remedy"].startswith(f"to measure it: filterbench run {check['specs'][0]}")


# --- Verdicts ---

@pytest.mark.parametrize("value, claimed, tolerance, verdict", [
    ((1.0, 0.99, 1.01), {"value": 1}, 0.02, claims.REPRODUCED),
    ((1.0, 0.97, 1.01), {"value": 1}, 0.02, claims.UNDECIDED),   # reaches over the lower end
    ((1.0, 0.5, 2.0), {"value": 1}, 0.02, claims.UNDECIDED),     # right in the middle, but wide
    ((1.1, 1.03, 1.2), {"value": 1}, 0.02, claims.NOT_REPRODUCED),
    ((0.9, 0.8, 0.97), {"value": 1}, 0.02, claims.NOT_REPRODUCED),
    ((3.5, 3.1, 3.9), {"low": 3, "high": 4}, 0, claims.REPRODUCED),
    ((3.5, 3.1, 4.1), {"low": 3, "high": 4}, 0, claims.UNDECIDED),
    ((3.5, 3.1, 4.1), {"low": 3, "high": 4}, 0.1, claims.REPRODUCED),
    ((5.0, 4.5, 6.0), {"low": 3, "high": 4}, 0.1, claims.NOT_REPRODUCED),
    ((2.5, 2.0, 9.0), {"at_least": 2}, 0, claims.REPRODUCED),
    ((2.5, 1.9, 9.0), {"at_least": 2}, 0, claims.UNDECIDED),
    ((1.5, 1.0, 1.9), {"at_least": 2}, 0, claims.NOT_REPRODUCED),
    ((1.0, 0.2, 1.1), {"at_most": 1}, 0.1, claims.REPRODUCED),
    ((1.0, 0.2, 1.2), {"at_most": 1}, 0.1, claims.UNDECIDED),
    ((1.3, 1.2, 1.4), {"at_most": 1}, 0.1, claims.NOT_REPRODUCED),
    ((1.0, math.nan, math.nan), {"value": 1}, 0.5, claims.UNDECIDED)])
def test_verdicts(value, claimed, tolerance, verdict):
    found, reason = measures.judge(Measured(*value), claimed, tolerance)
    assert found == verdict
    assert (reason is not None) == (verdict == claims.UNDECIDED)


def test_the_worst_part_decides_of_a_claim(data):
    check = next(check for name, _, check in CHECKS if name == "xor-space")
    claim = {"id": "x", "claim": "x", "source": "x", "kind": "exact"}
    bad, none = copy.deepcopy(check), copy.deepcopy(check)
    bad["claimed"] = {"value": 99}
    none["measure"]["of"]["filter"] = "made_up"
    run = [data([rate("xor", fpr=2 ** -8, bits=9.84, keys=1_000_000,
                      params={"fingerprint_bits": "8"})])]
    for checks, verdict in (([check], claims.REPRODUCED), ([check, none], claims.REPRODUCED),
                            ([check, none, bad], claims.NOT_REPRODUCED),
                            ([none], claims.NOT_MEASURABLE)):
        answer = claims.check_claim(claim | {"checks": checks}, run)
        assert answer["verdict"] == verdict
        assert len(answer["parts"]) == len(checks)


# --- Quantities ---

def test_the_luck_of_filters_widens_the_interval_of_their_rate(data):
    entry = rate(fpr=0.01)
    measure = {"quantity": "fpr", "of": {"filter": "blocked_bloom"}}
    sharp = measures.measure_in(data([entry]), measure)[0].value
    one = samples_of([entry], deviation=0.001)[0]
    several = [one | {"seed": seed, "round": seed, "sequence": seed} for seed in range(25)]
    # The same build in another process is no further filter.
    again = [sample | {"sequence": 100 + sample["seed"], "process": 1} for sample in several]
    for samples in (several, several + again):
        wide = measures.measure_in(data([entry], samples=samples), measure)[0].value
        half = math.hypot(1.96 * 0.001 / 5, sharp.high - sharp.value)
        assert wide.value == sharp.value == 0.01
        assert wide.high - wide.value == pytest.approx(half, rel=1e-6)
        assert wide.value - wide.low == pytest.approx(half, rel=1e-3)


def test_where_theory_knows_no_luck_the_builds_tell(data):
    entry = rate(fpr=0.01)
    samples = []
    for seed, count in enumerate((8_000_000, 10_000_000, 12_000_000)):
        sample = copy.deepcopy(samples_of([entry])[0])
        sample["fpr"] |= {"expected_instance_sd": None, "false_positives": count}
        samples.append(sample | {"seed": seed, "round": seed, "sequence": seed})
    value = measures.measure_in(data([entry], samples=samples),
                                {"quantity": "fpr", "of": {"filter": "blocked_bloom"}})[0].value
    # Student's factor for 3 builds is 4.303, their deviation 0.002.
    assert value.high - 0.01 == pytest.approx(4.303 * 0.002 / math.sqrt(3), rel=1e-3)


@pytest.mark.parametrize("count", [1, 2])
def test_few_builds_of_which_theory_says_nothing_are_no_sure_rate(data, count):
    """What one filter counts, however often it is asked, tells nothing of other seeds."""
    entry = rate(fpr=0.01)
    samples = []
    for seed in range(count):
        sample = copy.deepcopy(samples_of([entry])[0])
        sample["fpr"] |= {"expected_instance_sd": None, "false_positives": (9 + 2 * seed) * 10**6}
        samples.append(sample | {"seed": seed, "round": seed, "sequence": seed})
    value = measures.measure_in(data([entry], samples=samples),
                                {"quantity": "fpr", "of": {"filter": "blocked_bloom"}})[0].value
    if count == 1:
        assert value.value == 0.01 and not value.has_interval()
    else:  # Student's factor for 2 builds is 12.706, the error of their mean 0.001
        assert value.high - 0.01 == pytest.approx(0.012706, rel=1e-3) and value.low == 0


@pytest.mark.parametrize("count", [1, 2, 6, 30])
def test_the_least_and_the_spread_of_values_that_are_alike_cover_95_percent(count):
    """Of independent normal values. 10,000 draws deviate by 0.0022: below 0.94 by chance 1 in 1e5.
    By the ends as they are, the least of 30 would cover 47 %."""
    random = numpy.random.default_rng(count)
    least = spread = 0
    for draw in random.normal(10, 0.1, (10_000, count)):
        values = [Measured(value, value - 0.196, value + 0.196) for value in draw]
        found = measures._picked(values, "least")
        least += found.low <= 10 <= found.high
        found = measures._picked(values, "spread")
        spread += found.low <= 1 <= found.high
    assert least >= 9400 and spread >= 9400


def test_an_unknown_end_makes_what_is_picked_unknown_wherever_it_stands():
    known, unknown = Measured(2.0, 1.9, 2.1), Measured(1.5)
    for values in ([known, unknown], [unknown, known]):
        for how in ("least", "spread", "growth"):
            assert not measures._picked(values, how).has_interval(), how


def test_no_false_positive_is_no_rate(data):
    run = data([rate(fpr=1e-12, false_positives=0)])
    with pytest.raises(Unknown, match="no false positive among 1e9"):
        measures.measure_in(run, {"quantity": "fpr", "of": {"filter": "blocked_bloom"}})


def test_the_point_with_the_most_queries_counts(data):
    run = data([rate(fpr=0.02, queries=1000), rate(fpr=0.01, share=0.5)])
    assert measures.measure_in(run, {"quantity": "fpr", "of": {"filter": "blocked_bloom"}})[
        0].value.value == pytest.approx(0.01)


def test_a_list_means_the_first_that_the_run_has(data):
    run = data([rate(keys=1000, fpr=0.01), rate("xor", keys=1000, fpr=0.02),
                rate(keys=2000, fpr=0.03)])
    measure = {"quantity": "fpr", "where": {"keys": [3000, 2000, 1000]},
               "of": {"filter": "blocked_bloom"}}
    found, chosen = measures.measure_in(run, measure)
    assert (found.value.value, chosen["where"]["keys"]) == (pytest.approx(0.03), 2000)
    # Both sides of a ratio are of the same keys.
    found, chosen = measures.measure_in(run, measure | {"over": {"filter": "xor"}})
    assert (found.value.value, chosen["where"]["keys"]) == (pytest.approx(0.5), 1000)


def test_several_parameters_are_not_mixed(data):
    run = data([rate(params={"bits_per_key": 10.0, "k": k}) for k in (6, 7)])
    with pytest.raises(Unknown, match="2 sets of parameters"):
        measures.measure_in(run, {"quantity": "fpr", "of": {"filter": "blocked_bloom"}})
    assert measures.measure_in(run, {"quantity": "fpr", "of": {
        "filter": "blocked_bloom", "params": {"bits_per_key": 10, "k": 6}}})


def test_a_point_that_failed_says_why(data):
    entry = point("xor", {}, 1000, ns=None, status="build_failed", reason="no seed of 64 did it")
    with pytest.raises(Unknown, match="build_failed: no seed of 64 did it"):
        measures.measure_in(data([entry, rate()]), {"quantity": "fpr", "of": {"filter": "xor"}})


# Half-widths at which three intervals hold at once: 1 % times the normal quantiles of 1 - 0.025 / 3
# and 0.975.
_OF_THREE = 0.01 * 2.3939798 / 1.9599640


@pytest.mark.parametrize("pick, values, expected", [
    ("spread", (10, 12, 8),
     (1.5, 1.5 * (1 - _OF_THREE) / (1 + _OF_THREE), 1.5 * 1.01 / 0.99)),
    ("spread", (10, 10, 10), (1, 1, 1.01 / 0.99)),
    ("growth", (10, 8, 11), (1.1, 1.1 * 0.99 / 1.01, 1.1 * 1.01 / 0.99)),
    ("growth", (10, 8, 9), (0.9, 0.9 * 0.99 / 1.01, 0.9 * 1.01 / 0.99)),
    ("least", (10, 8, 9), (8, 8 * 0.99, 8 * (1 + _OF_THREE)))])
def test_several_times_as_one_number(data, pick, values, expected):
    run = data([point("cuckoo", {}, 1000, share=share, ns=float(value))
                for share, value in zip((0.0, 0.5, 1.0), values)])
    measure = {"quantity": "ns_per_op", "where": {"mode": "lookup_batched"},
               "of": {"filter": "cuckoo"}, "along": {"negative_share": [0, 0.5, 1]}, "pick": pick}
    found = measures.measure_in(run, measure)[0]
    assert tuple(found.value) == pytest.approx(expected)
    assert len(found.point_ids) == 3
    measure["along"] = {"negative_share": [0, 0.75, 1]}
    with pytest.raises(Unknown, match="75 % negatives"):
        measures.measure_in(run, measure)


def test_the_least_of_few_filters_is_none_of_all(data):
    run = data([rate("xor", fpr=2 ** -8, bits=9.84), rate("cuckoo", fpr=2 ** -8, bits=12.0),
                point("touch_lines", {}, 1000, ns=1.0, bits=1.0)])
    measure = {"quantity": "overhead", "of": {}, "pick": "least", "least_filters": 2}
    found = measures.measure_in(run, measure)[0]
    assert found.value.value == pytest.approx(1.23, rel=1e-6) and "xor" in found.notes[0].text
    with pytest.raises(Unknown, match="only cuckoo, xor"):
        measures.measure_in(run, measure | {"least_filters": 3})


def _curves(bits_of):
    """Points of two filters on curves of space over log2(1/FPR)."""
    return [rate(name, fpr=2.0 ** -log, bits=bits_of[name](log), params={"size": log})
            for name in bits_of for log in (4, 8, 12)]


def test_the_fpr_at_which_two_filters_take_the_same_space(data):
    curves = {"cuckoo": lambda log: (log + 3) / 0.95,
              "classic_bloom": lambda log: log / math.log(2)}
    measure = {"quantity": "fpr_of_crossing", "of": {"filter": "cuckoo"},
               "over": {"filter": "classic_bloom"}}
    value = measures.measure_in(data(_curves(curves)), measure)[0].value
    log = (3 / 0.95) / (1 / math.log(2) - 1 / 0.95)
    assert value.value == pytest.approx(2 ** -log, rel=1e-3)
    assert value.low < value.value < value.high < 1.01 * value.value
    curves["cuckoo"] = lambda log: log + 30
    with pytest.raises(Unknown, match="do not cross between FPR 0.000244 and 0.0625"):
        measures.measure_in(data(_curves(curves)), measure)


def test_bits_per_key_between_measured_rates(data):
    run = data(_curves({"ribbon": lambda log: 1.05 * log}))
    measure = {"quantity": "bits_per_key_at_fpr", "at_fpr": 2 ** -6.5, "of": {"filter": "ribbon"}}
    value = measures.measure_in(run, measure)[0].value
    assert value.value == pytest.approx(1.05 * 6.5, rel=1e-4)
    assert value.low <= value.value <= value.high
    over = measures.measure_in(run, measure | {"over_value": 10})[0].value
    assert over.value == pytest.approx(value.value / 10)
    with pytest.raises(Unknown, match="both sides of FPR 0.2"):
        measures.measure_in(run, measure | {"at_fpr": 0.2})


def test_the_work_from_which_on_the_precise_filter_costs_less(data):
    check = next(check for name, _, check in CHECKS if name == "bloom-beats-cuckoo")
    others = [rate(name, fpr=0.02, keys=1_000_000) for name in (
        "register_blocked", "split_block", "split_block_512")]
    points = [rate("blocked_bloom", fpr=0.01, keys=1_000_000),
              rate("xor", fpr=1e-4, keys=1_000_000),
              point("cuckoo", {"slots": "4"}, 1_000_000, fpr=0.002, bits=12.6, ns=9.0), *others]
    found = measures.measure_in(data(points), check["measure"])[0]
    # 8 ns more, 0.008 false positives less. The xor filter is no party to this.
    assert found.value.value == pytest.approx(1000, rel=1e-3)
    assert found.value.low < 1000 < found.value.high
    assert claims.check_part(check, [data(points)])["verdict"] == claims.REPRODUCED
    points[2]["fpr"] = rate("x", fpr=0.02)["fpr"]
    with pytest.raises(Unknown, match="blocked_bloom .* no crossing"):
        measures.measure_in(data(points), check["measure"])
    with pytest.raises(Unknown, match="there is only blocked_bloom"):
        measures.measure_in(data(points[:3]), check["measure"])


def test_a_floor_without_interval_decides_nothing(data):
    check = next(check for name, _, check in CHECKS if name == "blocked-one-miss")
    points, _ = _run_for(check["measure"], 1.0)
    points = [entry for entry in points if entry["point"]["filter"] != "touch_lines"]
    part = claims.check_part(check, [data(points)])
    assert part["verdict"] == claims.UNDECIDED and "unknown" in part["reason"]
    assert part["measured"] == {"value": pytest.approx(1.0), "low": None, "high": None}


@pytest.mark.parametrize("processes, doctor, said", [
    (3, [], None), (2, [], "times of 2 processes"), (1, [], "times of 1 process:"),
    (3, [{"check": "load", "state": "fail"}, {"check": "boost", "state": "warn"}], "doctor: load")])
def test_times_that_decide_nothing(tmp_path, processes, doctor, said):
    check = next(check for name, _, check in CHECKS if name == "xor-faster")
    for value in (_inside(check["claimed"]), _outside(check["claimed"], 0)):
        points, _ = _run_for(check["measure"], value)
        run = measures.Data(load.load_run(testing.write_run(
            tmp_path / f"{value}", points, samples=samples_of(points, processes=processes),
            manifest=testing.make_manifest() | {"doctor": doctor})))
        part = claims.check_part(check, [run])
        assert (part["verdict"] == claims.UNDECIDED) == (said is not None)
        assert said is None or said in part["reason"] and "--rigorous" in part["remedy"]


def test_doubts_about_times_are_told(data):
    entry = point("cuckoo", {}, 1000, ns=10.0)
    entry["ns_per_op"]["confidence"] = 0.8
    entry["stability"] = {"asked_width": 0.02, "width": 0.3, "stable": False}
    entry["clusters"] = {"centers_ns": [8.0, 12.0], "shares": [0.5, 0.5],
                         "explained_by": "process"}
    found = measures.measure_in(data([entry]), {"quantity": "ns_per_op",
                                                "of": {"filter": "cuckoo"}})[0]
    assert [note.kind for note in found.notes] == [
        "unstable", "of two modes", "of two processes or one"]


# --- Several runs ---

OLD, NEW = "20261130T152001Z-0123456789ab-89abcdef", "20261201T152001Z-0123456789ab-89abcdef"


def test_the_newest_run_that_has_the_data_answers(write, capsys):
    xor = rate("xor", fpr=2 ** -8, bits=9.84, keys=1_000_000, params={"fingerprint_bits": "8"})
    old = write([xor, rate("split_block", fpr=0.0065, keys=1_000_000,
                           params={"bits_per_key": 11.54, "blocks": "any"})], name=OLD)
    new = write([xor | {"bits_per_key": 9.9}], name=NEW)
    assert claims.main([str(old), str(new), "--json", "--only", "xor-space,parquet-optimum"]) == 0
    document = json.loads(capsys.readouterr().out)
    xor_space, parquet = document["claims"]
    assert {part["run"] for part in xor_space["parts"]} == {NEW}
    assert xor_space["parts"][1]["measured"]["value"] == 9.9
    assert parquet["parts"][0]["run"] == OLD and parquet["verdict"] == claims.NOT_REPRODUCED
    assert parquet["parts"][0]["ratio"]["value"] == pytest.approx(1.3)
    assert [run["run"] for run in document["runs"]] == [NEW, OLD]
    assert document["counts"] == {"reproduced": 0, "not reproduced": 2, "undecided": 0,
                                  "not measurable": 0}


def test_the_spec_that_measures_a_claim_best_comes_before_a_newer_run(write, capsys):
    def xor(bits):
        return [rate("xor", fpr=2 ** -8, bits=bits, keys=1_000_000,
                     params={"fingerprint_bits": "8"})]
    old = write(xor(9.84), name=OLD)
    summary = json.loads((old / "summary.json").read_text())
    (old / "summary.json").write_text(json.dumps(summary | {"spec": "quick"}))
    new = write(xor(9.9), name=NEW)
    assert claims.main([str(new), str(old), "--json", "--only", "xor-space"]) == 0
    claim, = json.loads(capsys.readouterr().out)["claims"]
    assert {part["run"] for part in claim["parts"]} == {OLD}


def test_several_machines_are_refused(write, capsys):
    one = write([rate()], name=OLD)
    other = write([rate()], name=NEW, machine="another-cpu-1")
    assert claims.main([str(one), str(other)]) == 6
    assert "another-cpu-1" in capsys.readouterr().err


# --- The command ---

@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """A run of the usual synthetic grid, with a measured filter that a table must escape."""
    return testing.write_run(tmp_path_factory.mktemp("full") / testing.RUN_NAME,
                             testing.make_points())


@pytest.mark.parametrize("form", claims.FORMATS)
def test_every_form_has_every_claim(full, capsys, form):
    assert claims.main([str(full), "--format", form]) == 0
    out = capsys.readouterr().out
    for claim in CLAIMS:
        assert claim["id"] in out
    assert testing.RUN_NAME in out
    if form == "text":
        table = out[:out.index("\nA: ")]
        assert "+- 2 %" in table
        # What follows the table is made for a terminal.
        assert max(map(len, out[out.index("\nA: "):].splitlines())) <= 100
    if form == "latex":
        body = out[out.index(r"\begin"):]
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert len({line.count(" & ") for line in rows}) == 1
        assert not [line for line in rows if " %" in line or "_" in line.replace(r"\_", "")]


def test_the_document_is_strict_json_and_whole(full, capsys):
    assert claims.main([str(full), "--json"]) == 0

    def refuse(constant):
        raise AssertionError(constant)
    document = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert [claim["id"] for claim in document["claims"]] == [claim["id"] for claim in CLAIMS]
    assert sum(document["counts"].values()) == len(CLAIMS)
    for claim in document["claims"]:
        assert claim["verdict"] in measures.VERDICTS
        if claim["verdict"] == claims.NOT_MEASURABLE:
            assert claim["reason"] or all(part["reason"] for part in claim["parts"])


def test_a_claim_that_was_asked_for_and_cannot_be_measured(full, capsys):
    assert claims.main([str(full), "--only", "lsm-negative"]) == 5
    out = capsys.readouterr()
    assert "block reads" in out.out and "lsm-negative" in out.err
    assert claims.main([str(full), "--only", "vqf-flat", "--only", "cuckoo-space"]) == 5
    assert claims.main([str(full), "--only", "impala-sizes,parquet-optimum"]) == 5


@pytest.mark.parametrize("arguments, said", [
    (["RUN", "--only", "xor_space"], "did you mean xor-space"),
    (["RUN", "--only", "parquet"], "parquet-sizing"),
    (["RUN", "--only", ","], "names no claim"),
    (["RUN", "--only", "zzzzzzzz"], "--list"),
    (["/nowhere"], "/nowhere"),
    (["RUN", "RUN"], "is the same run"),
    ([], "name a run")])
def test_usage_errors(full, capsys, arguments, said):
    assert claims.main([str(full) if word == "RUN" else word for word in arguments]) == 2
    assert said in capsys.readouterr().err


def test_the_list_needs_no_run(capsys):
    assert claims.main(["--list"]) == 0
    out = capsys.readouterr().out
    for claim in CLAIMS:
        assert f"\n{claim['id']} ({claim['kind']}" in "\n" + out
    assert claims.main(["--list", "--json", "--only", "fuse-build"]) == 0
    listed, = json.loads(capsys.readouterr().out)
    assert listed["id"] == "fuse-build" and listed["depends_on_machine"] is True


def test_other_claims_can_be_checked(tmp_path, write, capsys):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"schema": "filterbench/claims/1", "claims": [{
        "id": "mine", "claim": "so it is", "source": "me", "kind": "exact", "checks": [{
            "label": "all", "measure": {"quantity": "fpr", "of": {"filter": "blocked_bloom"}},
            "claimed": {"value": 0.01}, "tolerance": 0.01, "why": "it is mine",
            "specs": ["smoke"]}]}]}))
    assert claims.main([str(write([rate()])), "--claims", str(file)]) == 0
    assert "1 reproduced" in capsys.readouterr().out


def test_numbers_in_words():
    assert [measures.number(value) for value in (51, 1000.0, 1_000_000, 33_554_432, 9.6815, "8")] \
        == ["51", "1000", "1e6", "3.355e7", "9.6815", "8"]
    assert numpy.isnan(claims.measures.over_claimed(Measured(1.0), {"value": 1}).low)


# --- Gets from stores ---

ABSENT = {"workload": {"name": "lsm_get", "shape": "files", "files": 7, "present_keys": "any"},
          "negative_share": 1, "filter": "blocked_bloom", "params": {"bits_per_key": 10}}


def test_reads_over_the_formula_are_those_of_the_expected_rate(data):
    # 7 files at 1 %: 0.07 reads by the formula; 0.0735 were counted.
    point_ = gets_point(ABSENT, "metric.block_reads_per_get", 0.0735, gets=100_000)
    run = data([point_])
    measure = {"quantity": "reads_over_formula", "of": ABSENT}
    found = measures.measure_once(run, measure).value
    assert found.value == pytest.approx(1.05)
    # 7350 false positives among 700,000: Clopper-Pearson is close to a normal interval here.
    half = 1.96 * math.sqrt(7350 * (1 - 0.0105)) / 7000
    assert (found.low, found.high) == pytest.approx((1.05 - half, 1.05 + half), rel=2e-3)


def test_other_seeds_of_the_filters_widen_the_reads(data):
    point_ = gets_point(ABSENT, "metric.block_reads_per_get", 0.07, gets=100_000)
    found = measures.measure_once(
        data([point_], samples=samples_of([point_], deviation=0.001)),
        {"quantity": "metric.block_reads_per_get", "of": ABSENT}).value
    # Three builds, each of 7 files a get.
    between = 1.96 * 0.001 / math.sqrt(3) * 7
    within = 1.96 * math.sqrt(7000 * 0.99) / 100_000
    assert found.high - found.value == pytest.approx(math.hypot(between, within), rel=2e-2)


def test_gets_are_told_apart_by_their_knobs_and_from_lookups(data):
    points = [gets_point(ABSENT | {"workload": ABSENT["workload"] | {"files": files}},
                         "metric.block_reads_per_get", files / 100) for files in (1, 7, 20)]
    run = data([*points, rate(fpr=0.3, params={"bits_per_key": 10})])
    assert measures.measure_once(run, {"quantity": "metric.block_reads_per_get",
                                       "of": ABSENT}).point_ids == (points[1]["point_id"],)
    assert measures.measure_once(run, {"quantity": "fpr", "of": {
        "filter": "blocked_bloom"}}).value.value == pytest.approx(0.3)
    with pytest.raises(measures.Absent, match="lsm_get shape=files files=9"):
        measures.measure_once(run, {"quantity": "fpr", "of": ABSENT | {
            "workload": ABSENT["workload"] | {"files": 9}}})
    with pytest.raises(Unknown, match="tells no block_writes"):
        measures.measure_once(run, {"quantity": "metric.block_writes", "of": ABSENT})


def test_of_gets_that_the_formula_is_not_about_nothing_is_said(data):
    half = ABSENT | {"negative_share": 0.5}
    run = data([gets_point(half, "metric.block_reads_per_get", 0.6)])
    with pytest.raises(Unknown, match="none of those that the formula is about"):
        measures.measure_once(run, {"quantity": "reads_over_formula", "of": half})
