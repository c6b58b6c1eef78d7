import json
import lzma
import math
import pathlib
import re

import pytest

from plots import load, testing
from scripts import keep


def _edit(path, name, change):
    """Applies `change` to the parsed file `name` and writes it back, NaN included."""
    value = json.loads((path / name).read_text())
    change(value)
    (path / name).write_text(json.dumps(value, indent=1))


def _error(path):
    with pytest.raises(load.RunError) as caught:
        load.load_run(path)
    return caught.value


def _line_of(path, name, text, occurrence=0):
    lines = (path / name).read_text().split("\n")
    return [i for i, line in enumerate(lines, 1) if text in line][occurrence]


def test_a_point_becomes_one_flat_row(tiny_run_path):
    run = load.load_run(tiny_run_path)
    entries = json.loads((tiny_run_path / "summary.json").read_text())["points"]
    assert len(run.points) + len(run.filled) + len(run.workloads) == len(entries)
    assert run.notes == [] and run.complete
    assert run.cpu_brand == "Example CPU 9000 @ 3.00GHz" and run.best_target == "avx2"
    assert [(c.level, c.size_bytes) for c in run.caches][:1] == [(1, 32768)]
    for entry, (_, row) in zip(entries, run.points.iterrows()):
        assert row["point_id"] == entry["point_id"]
        assert row["filter"] == entry["point"]["filter"]
        assert row["ns_per_op"] == entry["ns_per_op"]["median"]
        assert row["ns_per_op_high"] == entry["ns_per_op"]["high"]
        for name, value in entry["point"]["params"].items():
            assert row[f"param.{name}"] == value
        if entry["floor"]:
            assert row["floor_ratio"] == entry["floor"]["ratio"]
        if entry["fpr"]:
            assert row["fpr_expected"] == entry["fpr"]["expected"]
            assert row["queries"] == entry["fpr"]["queries"]
        else:
            assert math.isnan(row["fpr_measured"])
    assert len(run.samples) == len(entries)


def test_unknown_is_nan_and_never_zero(make_run):
    points = testing.tiny_points()
    points[0]["build_ns_per_key"] = None
    points[0]["ns_per_op"].update(low=None, high=None)
    row = make_run(points).points.iloc[0]
    assert math.isnan(row["build_ns_per_key"]) and math.isnan(row["ns_per_op_low"])


def _built_points():
    return [entry for entry in testing.tiny_points() if "fill" not in entry["point"]]


# A filter that is filled beyond its size must not stand in a figure as if it had been built so.
def test_filled_points_stand_apart(make_run):
    points = _built_points()
    points[0]["point"]["fill"] = 2.5
    points[0]["keys_held"] = [2500, 2400]
    run = make_run(points)
    assert len(run.points) == len(points) - 1 and run.points["fill"].isna().all()
    (row,) = run.filled.to_dict("records")
    assert row["point_id"] == points[0]["point_id"]
    assert (row["fill"], row["keys_held"]) == (2.5, 2400)


# What lies on pages of its own choice, or is asked by several threads, is no point of a curve of
# those that do not.
def test_points_of_pages_and_threads_stand_apart(make_run):
    points = _built_points()
    points[0]["point"]["pages"] = "hugetlb"
    points[0]["huge_page_bytes"] = 2097152
    points[1]["point"].update(threads=2, mode="lookup_batched", negative_share=1.0)
    points[1]["operations_per_second"] = 1e9
    points[2]["point"].update(pages="4k", fill=2.5)
    points[2]["keys_held"] = [2500]
    run = make_run(points)
    apart = {points[i]["point_id"] for i in range(3)}
    assert set(run.pages_and_threads["point_id"]) == apart
    assert len(run.points) == len(points) - 3 and run.filled.empty
    assert not apart & set(run.points["point_id"])
    rows = run.pages_and_threads.set_index("point_id")
    assert rows.loc[points[0]["point_id"], "pages"] == "hugetlb"
    assert rows.loc[points[0]["point_id"], "huge_page_bytes"] == 2097152
    assert rows.loc[points[1]["point_id"], "threads"] == 2
    assert rows.loc[points[1]["point_id"], "operations_per_second"] == 1e9
    assert run.points["pages"].isna().all() and run.points["threads"].isna().all()


@pytest.mark.parametrize("field, value", [("pages", "2m"), ("pages", 4), ("threads", 1),
                                          ("threads", 2.5), ("threads", "2")])
def test_pages_and_threads_are_checked(tiny_run_path, field, value):
    def change(summary):
        summary["points"][0]["point"][field] = value
    _edit(tiny_run_path, "summary.json", change)
    assert _error(tiny_run_path).field == f"points[0].point.{field}"


def test_only_lookups_have_threads(tiny_run_path):
    def change(summary):
        summary["points"][0]["point"].update(mode="latency", threads=2)
    _edit(tiny_run_path, "summary.json", change)
    assert _error(tiny_run_path).field == "points[0].point.threads"


@pytest.mark.parametrize("held", [None, 5, ["many"], [1.5], [-1]])
def test_keys_held_are_whole_numbers(tiny_run_path, held):
    def change(summary):
        summary["points"][0]["point"]["fill"] = 2
        summary["points"][0]["keys_held"] = held
    _edit(tiny_run_path, "summary.json", change)
    assert _error(tiny_run_path).field == "points[0].keys_held"


def test_a_preset_is_another_variant_of_its_filter(make_run):
    points = testing.tiny_points()
    points[0]["point"]["preset"] = "cassandra-0.01"
    row = make_run(points).points.iloc[0]
    assert row["param.preset"] == "cassandra-0.01"
    assert row["params_label"] == "preset=cassandra-0.01"
    assert not any("null" in label for label in make_run(points).points["variant"])


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_not_finite_numbers_are_named_with_file_line_and_field(tiny_run_path, literal):
    file = tiny_run_path / "summary.json"
    text = file.read_text()
    matches = list(re.finditer(r'"median": ([0-9.]+),\s*"low"', text))
    start, end = matches[2].span(1)
    file.write_text(text[:start] + literal + text[end:])
    error = _error(tiny_run_path)
    assert error.file == file
    assert error.field == "points[2].ns_per_op.median"
    assert error.line == text.count("\n", 0, start) + 1
    assert str(error).startswith(f"{file}:{error.line}: field {error.field}: is NaN or infinite")


def test_nan_in_a_string_is_a_string(make_run):
    assert "NaN" in set(make_run(testing.make_points(
        filters=("NaN",), baselines=(), bits_per_key=(10,), keys=(1000,),
        failing=False)).points["filter"])


def test_nan_in_samples_names_its_line(tiny_run_path):
    file = tiny_run_path / "samples.jsonl"
    lines = file.read_text().split("\n")
    lines[2] = re.sub(r'"ns_per_op": \[[0-9.]+\]', '"ns_per_op": [NaN]', lines[2])
    file.write_text("\n".join(lines))
    error = _error(tiny_run_path)
    assert (error.line, error.field) == (3, "ns_per_op[0]")


@pytest.mark.parametrize("name", ["manifest.json", "summary.json", "theory.json"])
def test_another_schema_version_is_refused(tiny_run_path, name):
    kind = name.split(".")[0]
    _edit(tiny_run_path, name, lambda value: value.update(schema=f"filterbench/{kind}/2"))
    error = _error(tiny_run_path)
    assert error.file.name == name and error.field == "schema"
    assert error.line == _line_of(tiny_run_path, name, '"schema"')
    assert f"filterbench/{kind}/1" in str(error) and f"filterbench/{kind}/2" in str(error)


def test_another_schema_version_of_a_sample_is_refused(tiny_run_path):
    file = tiny_run_path / "samples.jsonl"
    lines = file.read_text().split("\n")
    lines[1] = lines[1].replace("filterbench/sample/1", "filterbench/sample/2")
    file.write_text("\n".join(lines))
    error = _error(tiny_run_path)
    assert (error.line, error.field) == (2, "schema")


def _set(*path_and_value):
    *path, last, value = path_and_value

    def change(document):
        for step in path:
            document = document[step]
        if value is _MISSING:
            del document[last]
        else:
            document[last] = value
    return change


_MISSING = object()


@pytest.mark.parametrize("name,change,field,says", [
    ("summary.json", _set("points", 1, "ns_per_op", "median", "1.2"),
     "points[1].ns_per_op.median", "must be a number"),
    ("summary.json", _set("points", 1, "ns_per_op", "median", True),
     "points[1].ns_per_op.median", "must be a number"),
    ("summary.json", _set("points", 1, "ns_per_op", "median", 0),
     "points[1].ns_per_op.median", "must be above 0"),
    ("summary.json", _set("points", 1, "ns_per_op", "low", 1e9),
     "points[1].ns_per_op.low", "wrong side"),
    ("summary.json", _set("points", 1, "ns_per_op", None),
     "points[1].ns_per_op", "must be an object"),
    ("summary.json", _set("points", 1, "status", "fine"), "points[1].status", "must be one of"),
    ("summary.json", _set("points", 1, "status", "invalid"), "points[1].reason", "is missing"),
    ("summary.json", _set("points", 1, "point", "mode", "lookup"),
     "points[1].point.mode", "must be one of"),
    ("summary.json", _set("points", 1, "point", "negative_share", 1.5),
     "points[1].point.negative_share", "at most 1"),
    ("summary.json", _set("points", 1, "point", "keys", 10.5),
     "points[1].point.keys", "integer"),
    ("summary.json", _set("points", 1, "point", "keys", 10 ** 400),
     "points[1].point.keys", "too large"),
    ("summary.json", _set("points", 1, "point", "filter", _MISSING),
     "points[1].point.filter", "is missing"),
    ("summary.json", _set("points", 1, "fpr", "measured", 0.0),
     "points[1].fpr.low", "wrong side"),
    ("summary.json", _set("points", 1, 7), "points[1]", "must be an object"),
    ("summary.json", _set("points", {}), "points", "must be an array"),
    ("summary.json", _set("run", "another"), "run", "manifest.json has"),
    ("manifest.json", _set("environment", "cpu", _MISSING), "environment.cpu", "is missing"),
    ("manifest.json", _set("environment", "caches", 0, "size_bytes", -1),
     "environment.caches[0].size_bytes", "must be above 0"),
    ("theory.json", _set("curves", 0, "points", 3, "fpr", 2), "curves[0].points[3].fpr", "at most"),
])
def test_wrong_fields_are_named(tiny_run_path, name, change, field, says):
    _edit(tiny_run_path, name, change)
    error = _error(tiny_run_path)
    assert error.file == tiny_run_path / name
    assert error.field == field
    assert says in str(error)
    last = field.split(".")[-1].split("[")[0]
    if says != "is missing":
        assert f'"{last}"' in (tiny_run_path / name).read_text().split("\n")[error.line - 1] or (
            "[" in field.split(".")[-1])


def test_a_point_may_not_occur_twice(tiny_run_path):
    _edit(tiny_run_path, "summary.json",
          lambda value: value["points"].append(value["points"][0]))
    assert "occurs twice" in str(_error(tiny_run_path))


def test_what_is_not_json_is_named_with_its_line(tiny_run_path):
    file = tiny_run_path / "summary.json"
    lines = file.read_text().split("\n")
    lines[4] = lines[4] + " oops"
    file.write_text("\n".join(lines))
    error = _error(tiny_run_path)
    assert error.file == file and error.line in (5, 6) and "is not JSON" in str(error)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe{}", b"[" * 100_000, b"[]", b"1" * 5000])
def test_rubbish_is_an_error_and_not_a_traceback(tiny_run_path, content):
    (tiny_run_path / "manifest.json").write_bytes(content)
    assert _error(tiny_run_path).file == tiny_run_path / "manifest.json"


@pytest.mark.parametrize("name", ["manifest.json", "summary.json", "samples.jsonl"])
def test_a_missing_file_is_named(tiny_run_path, name):
    (tiny_run_path / name).unlink()
    assert str(_error(tiny_run_path)) == f"{tiny_run_path / name}: is missing"


def test_a_path_that_is_no_run(tmp_path):
    assert "is not a run directory" in str(_error(tmp_path / "nowhere"))


@pytest.mark.parametrize("keep", [1, 40, -2, None])
def test_a_cut_off_last_line_is_tolerated_and_reported(tiny_run_path, keep):
    file = tiny_run_path / "samples.jsonl"
    lines = file.read_bytes().rstrip(b"\n").split(b"\n")
    file.write_bytes(b"\n".join(lines[:-1] + [lines[-1][:keep]]))
    run = load.load_run(tiny_run_path)
    assert len(run.samples) == len(lines) - 1
    assert run.notes == [f"{file}:{len(lines)}: the last line is cut off and was left out"]


def test_a_cut_off_line_that_is_not_the_last_is_an_error(tiny_run_path):
    file = tiny_run_path / "samples.jsonl"
    lines = file.read_bytes().split(b"\n")
    lines[1] = lines[1][:40]
    file.write_bytes(b"\n".join(lines))
    assert _error(tiny_run_path).line == 2


_SCHEMAS = pathlib.Path(__file__).resolve().parent.parent / "results" / "schema"


@pytest.mark.skipif(not _SCHEMAS.is_dir(), reason="needs results/schema")
def test_the_runs_of_these_tests_obey_the_schemas(full_run_path):
    """A loader tested with files that no program writes would prove nothing."""
    validators = keep.validators()
    documents = [json.loads((full_run_path / f"{kind}.json").read_text())
                 for kind in ("manifest", "summary", "theory")]
    lines = (full_run_path / "samples.jsonl").read_text().splitlines()
    for document in [*documents, *map(json.loads, lines[::97])]:
        kind, version = document["schema"].split("/")[1:]
        assert validators[kind].schema["$id"] == f"urn:filterbench:{kind}:{version}"
        validators[kind].validate(document)


def test_a_run_without_complete_is_reported(tiny_run_path):
    (tiny_run_path / "COMPLETE").unlink()
    run = load.load_run(tiny_run_path)
    assert not run.complete
    assert len(run.notes) == 1 and "COMPLETE" in run.notes[0]


def test_a_run_without_theory_is_reported(tiny_run_path):
    (tiny_run_path / "theory.json").unlink()
    run = load.load_run(tiny_run_path)
    assert run.theory.empty and "theory.json" in run.notes[0]


def test_the_same_run_twice_is_refused(tiny_run_path):
    with pytest.raises(load.RunError, match="is the same run"):
        load.load_runs([tiny_run_path, tiny_run_path])


def _with_repeatability(entry):
    entry["stability"] = {"asked_width": 0.02, "width": 0.013, "stable": True}
    entry["variance_shares"] = {"process": 0.25, "build": 0.25, "pass": 0.5}
    entry["clusters"] = {"centers_ns": [10, 16], "shares": [0.25, 0.75], "explained_by": "build"}


def test_what_repetitions_say_is_in_the_row(make_run):
    points = testing.tiny_points()
    _with_repeatability(points[0])
    points[1].update(variance_shares=None, variance_shares_reason="no process has two builds",
                     clusters=None, clusters_reason="one mode explains the values")
    frame = make_run(points).points
    row = frame.iloc[0]
    assert row["stable"] is True and (row["asked_width"], row["width"]) == (0.02, 0.013)
    assert (row["process_share"], row["build_share"], row["pass_share"]) == (0.25, 0.25, 0.5)
    assert (row["cluster_low_ns"], row["cluster_high_ns"]) == (10, 16)
    assert row["cluster_low_share"] == 0.25 and row["clusters_explained_by"] == "build"
    for _, row in frame.iloc[1:].iterrows():
        assert row["stable"] is None and row["clusters_explained_by"] is None
        assert math.isnan(row["width"]) and math.isnan(row["process_share"])
        assert math.isnan(row["cluster_low_ns"])


@pytest.mark.parametrize("place, value, field, message", [
    (("stability", "stable"), "yes", "points[0].stability.stable", "true or false"),
    (("stability", "width"), 0.03, "points[0].stability.stable", "exceeds asked_width"),
    (("stability", "width"), None, "points[0].stability.width", "is null"),
    (("variance_shares", "pass"), 1.5, "points[0].variance_shares.pass", "at most 1"),
    (("clusters", "centers_ns"), [10], "points[0].clusters.centers_ns", "two numbers"),
    (("clusters", "centers_ns"), [10, "x"], "points[0].clusters.centers_ns[1]", "a number"),
    (("clusters", "explained_by"), "cpu", "points[0].clusters.explained_by", "must be one of"),
])
def test_what_repetitions_cannot_say(tiny_run_path, place, value, field, message):
    def change(summary):
        _with_repeatability(summary["points"][0])
        summary["points"][0][place[0]][place[1]] = value
    _edit(tiny_run_path, "summary.json", change)
    error = _error(tiny_run_path)
    assert error.field == field and message in str(error)


def test_a_sample_names_its_process_where_it_does(tiny_run_path):
    lines = (tiny_run_path / "samples.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    first["process"] = 2
    (tiny_run_path / "samples.jsonl").write_text("\n".join([json.dumps(first), *lines[1:], ""]))
    samples = load.load_run(tiny_run_path).samples
    assert samples["process"].iloc[0] == 2
    assert (samples["process"].iloc[1:] == samples["round"].iloc[1:]).all()


def test_every_file_may_be_there_compressed(tiny_run_path):
    plain = load.load_run(tiny_run_path)
    for name in ("manifest.json", "summary.json", "theory.json", "samples.jsonl"):
        file = tiny_run_path / name
        file.with_name(f"{name}.xz").write_bytes(lzma.compress(file.read_bytes()))
        with pytest.raises(load.RunError, match=f"{name}: is there twice") as caught:
            load.load_run(tiny_run_path)
        assert caught.value.file == file
        file.unlink()
    packed = load.load_run(tiny_run_path)
    assert packed.points.equals(plain.points) and packed.samples.equals(plain.samples)
    assert packed.theory.equals(plain.theory) and packed.notes == plain.notes == []


@pytest.mark.parametrize("name", ["samples.jsonl", "summary.json"])
def test_a_compressed_file_that_is_cut_off_or_goes_on_is_refused(tiny_run_path, name):
    """Its lines up to there would pass for a whole run of fewer rows."""
    file = tiny_run_path / name
    whole = lzma.compress(file.read_bytes())
    file.unlink()
    for damaged, says in ((whole[:-20], "its end is missing"), (whole + b"x", "follows its end"),
                          (whole[:40] + bytes(4) + whole[44:], "is damaged")):
        file.with_name(f"{name}.xz").write_bytes(damaged)
        with pytest.raises(load.RunError, match=says):
            load.load_run(tiny_run_path)


def test_errors_in_a_compressed_file_name_its_line(tiny_run_path):
    file = tiny_run_path / "samples.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    lines[1] = b"{}\n"
    packed = file.with_name("samples.jsonl.xz")
    packed.write_bytes(lzma.compress(b"".join(lines)))
    file.unlink()
    with pytest.raises(load.RunError) as caught:
        load.load_run(tiny_run_path)
    assert (caught.value.file, caught.value.line) == (packed, 2)


def test_a_question_is_a_point_without_its_target_and_the_place_of_its_keys():
    point = {"filter": "xor", "params": {"b": 1, "a": 2}, "target": "avx2", "preset": None,
             "key_set": {"kind": "file", "path": "keys.txt", "digest": "0a"}}
    assert load.question(point) == (
        '{"filter":"xor","key_set":{"digest":"0a","kind":"file"},"params":{"a":2,"b":1}}')
    assert load.question(point | {"pages": "4k"}) != load.question(point)
