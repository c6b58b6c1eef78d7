"""The schemas of schema/*.json, by another validator than the one in the program.

schema_cases.json holds documents that are valid and changes to them (`at` is a JSON pointer; without
a `value` the field is removed) that are valid or not. harness/record/document_test.cc checks the same
cases with the program's own validator. Reference runs are held to what scripts/keep.py asks.
"""

import copy
import json
import pathlib

import jsonschema
import pytest

from scripts import keep

HERE = pathlib.Path(__file__).parent
SCHEMAS = {path.stem: json.loads(path.read_text(encoding="utf-8"))
           for path in sorted((HERE / "schema").glob("*.json"))}
REFERENCE_RUNS = sorted(path.parent for path in HERE.glob("[!.]*/[!.]*/samples.jsonl.xz"))
# Samples are many and alike: enough of each run to see a change of the schema, in a second.
MOST_SAMPLES = 500
CASES = json.loads((HERE / "schema_cases.json").read_text(encoding="utf-8"))


def validator(name):
    return keep.validators(SCHEMAS)[name]


def errors(name, document):
    return [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(document)]


def changed(case):
    document = copy.deepcopy(CASES["documents"][case["document"]]["document"])
    *way, last = [int(step) if step.isdigit() else step for step in case["at"].split("/")[1:]]
    target = document
    for step in way:
        target = target[step]
    if "value" in case:
        target[last] = case["value"]
    else:
        del target[last]
    return document


@pytest.mark.parametrize("name", SCHEMAS)
def test_is_a_schema_of_the_2020_draft(name):
    assert SCHEMAS[name]["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])


@pytest.mark.parametrize("name", SCHEMAS)
def test_states_its_version_twice_alike(name):
    version = SCHEMAS[name]["$id"].removeprefix(f"urn:filterbench:{name}:")
    assert version.isdigit()
    if name not in ("point", "workload"):  # parts of other documents
        assert SCHEMAS[name]["properties"]["schema"] == {"const": f"filterbench/{name}/{version}"}


def test_every_schema_has_a_document():
    assert {entry["schema"] for entry in CASES["documents"].values()} == set(SCHEMAS)


@pytest.mark.parametrize("name", CASES["documents"])
def test_documents_are_valid(name):
    entry = CASES["documents"][name]
    assert errors(entry["schema"], entry["document"]) == []


@pytest.mark.parametrize("case", CASES["cases"], ids=json.dumps)
def test_changes_are_told_apart(case):
    schema = CASES["documents"][case["document"]]["schema"]
    assert (errors(schema, changed(case)) == []) == case["valid"]


def test_reference_runs_are_fit():
    for path in REFERENCE_RUNS:
        run = keep.check(path, any_spec=True, host="", most_samples=MOST_SAMPLES)
        assert (run.machine, run.name) == (path.parent.name, path.name)
        assert sum(file.stat().st_size for file in path.iterdir()
                   if file.name.removesuffix(".xz") in keep.FILES) <= keep.MOST_BYTES, path
