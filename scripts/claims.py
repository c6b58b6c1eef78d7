"""Checks the published claims of the field on what a machine measured:

    filterbench claims RUN... [--only ID] [--format text|markdown|latex | --json]
    filterbench claims --list [--json]

The claims are data: scripts/claims.json holds sentence, source, which points to measure by, what is
claimed, with which tolerance and why. scripts/measures.py says how numbers and intervals come
about. A claim is of one of three kinds: exact (space or rate: holds on every machine), ratio (of
times: depends on the machine) or trend (the shape of a curve).

Verdicts, of each part of a claim and, by the first of them that one part has, of the claim:

    not reproduced   the interval lies wholly outside of the claimed value with its tolerance
    undecided        it reaches over an end (within noise), or is not known; and where it is of
                     times: fewer than three processes, or a machine that the doctor found unfit
    reproduced       it lies wholly inside
    not measurable   the runs lack the data, or no run can have it; the reason says how to measure

Parts that are not measurable do not count where others are; they are named. Several runs must be of
one machine. Each part is answered by a run that has the data, the first by these rules, which is
named beside it: of the spec that measures it best (the first that the claim names), then the
newest.

Exit codes: 0 the verdicts are printed, whatever they are; 2 usage, an unreadable run or a damaged
file of claims; 5 a claim named with --only is not measurable; 6 the runs are of several machines.
"""

import argparse
import collections
import difflib
import json
import math
import pathlib
import sys
import textwrap

import jsonschema

from plots import command, headline, load
from plots.ratios import Unknown
from scripts import measures
from scripts.measures import NOT_MEASURABLE, NOT_REPRODUCED, REPRODUCED, UNDECIDED

HERE = pathlib.Path(__file__).resolve().parent
CLAIMS = HERE / "claims.json"
SCHEMA = HERE / "claims.schema.json"
EXIT_USAGE, EXIT_NOT_MEASURABLE, EXIT_NOT_COMPARABLE = 2, 5, 6
FORMATS = ("text", "markdown", "latex")
_WIDTH = 100
_LONGEST_MESSAGE = 300
_LEAST_PROCESSES = 3
COLUMNS = ("verdict", "claim", "part", "claimed", "measured", "ratio", "run")


class ClaimsError(Exception):
    """What is wrong with a file of claims; `str()` names file, claim and field."""


# --- The file of claims ---

def read_claims(file=CLAIMS):
    """The claims in `file`, as they are. Raises ClaimsError."""
    def fail(message, line=None):
        raise ClaimsError(f"{file}{'' if line is None else f':{line}'}: {message}") from None
    try:
        document = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        fail(f"cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        fail("is not UTF-8")
    except json.JSONDecodeError as error:
        fail(f"is not JSON: {error.msg} (column {error.colno})", error.lineno)
    except (ValueError, RecursionError) as error:
        fail(f"is not JSON that can be read: {error}")
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    error = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(schema).iter_errors(document))
    if error is not None:
        fail(_place(document, error.absolute_path) + (
            error.message if len(error.message) <= _LONGEST_MESSAGE else
            f"{json.dumps(error.instance)[:40]}... is not as {SCHEMA.name} has it "
            f"({'.'.join(map(str, error.relative_schema_path))})"))
    seen = set()
    for claim in document["claims"]:
        if claim["id"] in seen:
            fail(f"claim {claim['id']}: field id: occurs twice")
        seen.add(claim["id"])
        for index, check in enumerate(claim.get("checks", ())):
            claimed = check.get("claimed", {})
            if claimed.get("low", 0) > claimed.get("high", math.inf):
                fail(f"claim {claim['id']}: field checks[{index}].claimed: low is above high")
    return document["claims"]


def _place(document, path):
    """`claim <id>: field <field>: ` for a place in the file."""
    path, claim = list(path), ""
    if path[:1] == ["claims"] and len(path) > 1:
        entry = document["claims"][path[1]]
        name = entry.get("id") if isinstance(entry, dict) else None
        claim = f"claim {name if isinstance(name, str) else f'number {path[1] + 1}'}: "
        path = path[2:]
    field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return claim + (f"field {field.lstrip('.')}: " if field else "")


def depends_on_machine(claim):
    """Whether any number of the claim is a time."""
    if "checks" not in claim:
        return claim["kind"] == "ratio"
    return any(check["measure"]["quantity"] in measures.TIMES
               for check in claim["checks"] if "measure" in check)


# --- Checking ---

def _remedy(specs):
    return "to measure it: " + " or ".join(f"filterbench run {spec}" for spec in specs)


def _unmeasured(check, reason):
    remedy = _remedy(check["specs"]) if "specs" in check else None
    return {"label": check["label"], "verdict": NOT_MEASURABLE, "reason": reason, "remedy": remedy}


def check_part(check, runs):
    """The answer to a part of a claim as a dict; `runs` are measures.Data, the newest first."""
    if "not_measured" in check:
        return _unmeasured(check, check["not_measured"])
    reasons, found = [], None
    rank = {spec: index for index, spec in enumerate(check["specs"])}
    for data in sorted(runs, key=lambda data: rank.get(data.run.spec, len(rank))):
        try:
            found, chosen = measures.measure_in(data, check["measure"])
            break
        except Unknown as unknown:
            reasons.append(unknown)
    about = {name: check[name] for name in ("claimed", "tolerance", "why", "remark")
             if name in check} | {"quantity": check["measure"]["quantity"]}
    if "over" in check["measure"] and about["quantity"] not in measures.CROSSINGS:
        about["quantity"] += " (ratio)"
    if found is None:
        # What a run has and cannot tell says more than that another run has nothing.
        reasons.sort(key=lambda reason: isinstance(reason, measures.Absent))
        return _unmeasured(check, str(reasons[0])) | about
    verdict, reason = measures.judge(found.value, check["claimed"], check["tolerance"])
    doubt = (_doubt(data, found.point_ids) if check["measure"]["quantity"] in measures.TIMES
             else None)
    if doubt is not None:
        verdict, reason = UNDECIDED, doubt
    ratio = measures.over_claimed(found.value, check["claimed"])
    remedy = None
    if verdict == UNDECIDED:
        better = "--rigorous" if check["measure"]["quantity"] in measures.TIMES else (
            "with more absent keys (--set fpr_queries=N)")
        remedy = f"to decide it: filterbench run {check['specs'][0]} {better}"
    return {"label": check["label"], "verdict": verdict, "reason": reason, "remedy": remedy,
            **about,
            "measured": _plain(found.value), "ratio": None if ratio is None else _plain(ratio),
            "measure": chosen, "run": data.run.name, "points": list(found.point_ids),
            "notes": [note._asdict() for note in found.notes]}


def _doubt(data, point_ids):
    """Why these times can decide nothing, whatever their intervals; None if they can."""
    complaints = _complaints(data.run)
    if complaints:
        return f"the machine was unfit for times, says its doctor: {', '.join(complaints)}"
    processes = min(data.processes(point_id) for point_id in point_ids)
    if processes < _LEAST_PROCESSES:
        return (f"times of {processes} process{'es' * (processes > 1)}: how much others would "
                "differ is not known well enough")
    return None


def _plain(value):
    return {name: None if math.isnan(part) or math.isinf(part) else part
            for name, part in value._asdict().items()}


def check_claim(claim, runs):
    about = {name: claim[name] for name in ("id", "claim", "source", "kind")} | {
        "depends_on_machine": depends_on_machine(claim)}
    if "not_measured" in claim:
        return about | {"verdict": NOT_MEASURABLE, "reason": claim["not_measured"], "parts": []}
    parts = [check_part(check, runs) for check in claim["checks"]]
    verdict = next(verdict for verdict in measures.VERDICTS
                   if any(part["verdict"] == verdict for part in parts))
    return about | {"verdict": verdict, "reason": None, "parts": parts}


def check(claims, runs):
    """The document that --json prints; `runs` are of one machine."""
    newest_first = sorted(runs, key=lambda run: run.name, reverse=True)
    data = [measures.Data(run) for run in newest_first]
    answers = [check_claim(claim, data) for claim in claims]
    return {"schema": "filterbench/checked_claims/1", "machine": runs[0].machine,
            "cpu_brand": runs[0].cpu_brand,
            "runs": [{"run": run.name, "spec": run.spec, "complete": run.complete,
                      "doctor": _complaints(run)} for run in newest_first],
            "counts": {verdict: sum(answer["verdict"] == verdict for answer in answers)
                       for verdict in measures.VERDICTS},
            "claims": answers}


def _complaints(run):
    """What the doctor said against times of this run; None where no doctor was asked."""
    findings = run.manifest.get("doctor")
    return None if findings is None else [
        finding["check"] for finding in findings if finding["state"] == "fail"]


# --- Text ---

def _shown(value, quantity):
    """A number of a quantity with its unit."""
    if value is None or math.isnan(value):
        return "?"
    if quantity in ("fpr", "fpr_of_crossing"):
        return f"{headline.number(100 * value)} %"
    if quantity == "work_ns_of_crossing":
        return f"{headline.number(value / 1000)} us"
    if quantity in ("bits_per_key", "bits_per_key_at_fpr", "overhead"):
        return headline.number(value, 4)
    return headline.number(value)


def _interval(value, quantity):
    text = _shown(value["value"], quantity)
    if value["low"] is None or value["high"] is None:
        return f"{text} [?]"
    if value["low"] == value["high"]:
        return text
    low, high = (_shown(value[end], quantity) for end in ("low", "high"))
    unit = text.partition(" ")[1] + text.partition(" ")[2]
    return f"{text.removesuffix(unit)} [{low.removesuffix(unit)}, {high.removesuffix(unit)}]{unit}"


def _claimed(part):
    claimed, quantity = part["claimed"], part["quantity"]
    tolerance = f" +- {100 * part['tolerance']:g} %" if part["tolerance"] else ""
    if "value" in claimed:
        return _shown(claimed["value"], quantity) + tolerance
    if "low" in claimed:
        return (f"{_shown(claimed['low'], quantity)} to {_shown(claimed['high'], quantity)}"
                + tolerance)
    sign, end = (">=", "at_least") if "at_least" in claimed else ("<=", "at_most")
    return f"{sign} {_shown(claimed[end], quantity)}{tolerance}"


def rows(document):
    """The table, as dicts of text by column: a row for each part."""
    names = {run["run"]: chr(ord("A") + index) if index < 26 else f"R{index + 1}"
             for index, run in enumerate(document["runs"])}
    result = []
    for claim in document["claims"]:
        for part in claim["parts"] or [claim | {"label": ""}]:
            row = {"verdict": part["verdict"], "claim": claim["id"], "part": part["label"],
                   "claimed": _claimed(part) if "claimed" in part else "", "measured": "",
                   "ratio": "", "run": ""}
            if "measured" in part:
                row |= {"measured": _interval(part["measured"], part["quantity"]),
                        "ratio": _interval(part["ratio"], "") if part["ratio"] else "inside",
                        "run": names[part["run"]]}
            result.append(row)
    return names, result


def _head(document):
    counts = ", ".join(f"{count} {verdict}" for verdict, count in (
        (verdict, document["counts"][verdict])
        for verdict in (REPRODUCED, NOT_REPRODUCED, UNDECIDED, NOT_MEASURABLE)))
    return f"{len(document['claims'])} claims on {document['machine']}: {counts}"


def _reasons(document):
    """What there is to say about each claim that is not simply reproduced."""
    for claim in document["claims"]:
        sentences = [claim["reason"]] if claim["reason"] else []
        for part in claim["parts"]:
            said = [part["reason"], part["remedy"]]
            if part["verdict"] != REPRODUCED and "remark" in part:
                said.append(part["remark"])
            if part["verdict"] in (UNDECIDED, NOT_REPRODUCED):
                said += [f"tolerance: {part['why']}", *_notes(part["notes"])]
            said = [sentence.rstrip(".") for sentence in said if sentence]
            if said:
                sentences.append(f"{part['label']}: {'. '.join(said)}.")
        if claim["verdict"] != REPRODUCED or sentences:
            measured = sum("measured" in part for part in claim["parts"])
            about = [claim["kind"], "times: holds for this machine and program only"
                     if claim["depends_on_machine"] else "holds on every machine"]
            if 0 < measured < len(claim["parts"]):
                about.append(f"{measured} of {len(claim['parts'])} parts measured")
            yield claim, "; ".join(about), sentences


def _notes(notes):
    """Notes as sentences; of those that many points have their number."""
    counts = collections.Counter(note["kind"] for note in notes if note["kind"] != "which")
    return [*(note["text"] for note in notes if note["kind"] == "which"),
            *(f"{count} time{'s' * (count > 1)} {kind}" for kind, count in counts.items())]


def _runs(document, names):
    for run in document["runs"]:
        complaints = run["doctor"]
        doctor = (f"; times of it may mislead, doctor: {', '.join(complaints)} failed"
                  if complaints else "")
        yield (f"{names[run['run']]}: {run['run']} (spec {run['spec']}"
               f"{'' if run['complete'] else ', INCOMPLETE'}){doctor}")


_LEGEND = ("The interval in brackets: 95 %, of ratios at least 90 %. ratio: measured over claimed, "
           "of a range over its nearer end. Of a bound (<=, >=) the whole interval must keep it.")


def text(document):
    names, table = rows(document)
    lines = [_head(document), ""]
    shown = [{column: column for column in COLUMNS}]
    for above, row in zip([None, *table], table):
        same = above is not None and above["claim"] == row["claim"]
        shown.append(row | ({"claim": ""} if same else {}))
    widths = {column: max(len(row[column]) for row in shown) for column in COLUMNS}
    lines += ["  ".join(row[column].ljust(widths[column]) for column in COLUMNS).rstrip()
              for row in shown]
    lines += ["", *_runs(document, names), *textwrap.wrap(_LEGEND, _WIDTH), ""]
    for claim, about, sentences in _reasons(document):
        lines += [f"{claim['id']}: {claim['verdict']} ({about})",
                  *(line for paragraph in (f"{claim['claim']} [{claim['source']}]", *sentences)
                    for line in _wrapped(load.one_line(paragraph)))]
    return "\n".join(load.one_line(line) for line in lines).rstrip() + "\n"


def _wrapped(paragraph):
    return textwrap.wrap(paragraph, _WIDTH, initial_indent="    ", subsequent_indent="      ",
                         break_long_words=False, break_on_hyphens=False)


def markdown(document):
    names, table = rows(document)
    lines = [f"# Claims: {document['machine']}", "", _head(document) + ".", "",
             *headline.markdown(COLUMNS, COLUMNS, table), "",
             *(f"- {line}" for line in _runs(document, names)), f"- {_LEGEND}", ""]
    for claim, about, sentences in _reasons(document):
        lines += [f"- **{claim['id']}**: {claim['verdict']} ({about}). "
                  f"{claim['claim']} [{claim['source']}]",
                  *(f"  - {sentence}" for sentence in sentences)]
    return "\n".join(load.one_line(line) for line in lines).rstrip() + "\n"


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
          "<": r"\ensuremath{<}", ">": r"\ensuremath{>}",
          **{character: "\\" + character for character in "&%$#_{}"}}


def _latex(value):
    escaped = "".join(_LATEX.get(character, character) for character in load.one_line(value))
    for plain, sign in ((r"\ensuremath{>}=", r"\ensuremath{\geq}"),
                        (r"\ensuremath{<}=", r"\ensuremath{\leq}"), ("+-", r"\ensuremath{\pm}")):
        escaped = escaped.replace(plain, sign)
    return escaped


def latex(document):
    """A table for the package booktabs; what runs are behind it stands in a comment."""
    names, table = rows(document)
    lines = [f"% {load.one_line(line)}" for line in (_head(document), *_runs(document, names))]
    lines += [r"\begin{tabular}{lllllll}", r"\toprule",
              " & ".join(COLUMNS) + r" \\", r"\midrule"]
    lines += [" & ".join(_latex(row[column]) for column in COLUMNS) + r" \\" for row in table]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def listing(claims):
    lines = []
    for claim in claims:
        specs = dict.fromkeys(spec for check_ in claim.get("checks", ())
                              for spec in check_.get("specs", ()))
        machine = ", depends on the machine" if depends_on_machine(claim) else ""
        end = (f"measured by: {', '.join(specs)}" if specs
               else f"not measurable: {claim['not_measured']}")
        lines += [f"{claim['id']} ({claim['kind']}{machine})",
                  *(line for paragraph in (claim["claim"], f"source: {claim['source']}", end)
                    for line in _wrapped(load.one_line(paragraph)))]
    return "\n".join(lines) + "\n"


# --- The front ---

def _say(message):
    print(f"claims: {load.one_line(message)}", file=sys.stderr)


def _parser():
    parser = argparse.ArgumentParser(
        prog="filterbench claims", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__.split("\n\n", 2)[2], allow_abbrev=False)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="a run directory of one machine")
    parser.add_argument("--only", action="append", default=[], metavar="ID",
                        help="this claim; may be repeated, or take several with commas")
    parser.add_argument("--list", action="store_true", help="the claims, without checking any")
    parser.add_argument("--claims", type=command.path, default=CLAIMS, metavar="FILE",
                        help="other claims than those of the project, in the same form")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="all that was found, as JSON")
    form.add_argument("--format", choices=FORMATS, default="text")
    return parser


def _chosen(claims, only):
    """The claims named by --only, in the order of the file; all if none is."""
    names = [name.strip() for text_ in only for name in text_.split(",") if name.strip()]
    known = [claim["id"] for claim in claims]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3, 0.4)
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            raise ClaimsError(f"unknown claim {name!r}; {hint}`filterbench claims --list` names "
                              "all")
    if only and not names:
        raise ClaimsError("--only names no claim; `filterbench claims --list` names all")
    return [claim for claim in claims if not names or claim["id"] in names]


def main(arguments=None):
    options = _parser().parse_args(arguments)
    try:
        claims = _chosen(read_claims(options.claims), options.only)
        if options.list:
            listed = [claim | {"depends_on_machine": depends_on_machine(claim)}
                      for claim in claims]
            print(json.dumps(listed, indent=1, ensure_ascii=False) + "\n" if options.json
                  else listing(claims), end="")
            return 0
        if not options.runs:
            _say("name a run directory, or --list")
            return EXIT_USAGE
        runs = load.load_runs(options.runs)
    except (ClaimsError, load.RunError) as error:
        _say(str(error))
        return EXIT_USAGE
    machines = sorted({run.machine for run in runs})
    if len(machines) > 1:
        _say(f"the runs are of {', '.join(machines)}: a claim is checked on one machine at a time")
        return EXIT_NOT_COMPARABLE
    for run in runs:
        for note in run.notes:
            _say(note)
    document = check(claims, runs)
    if options.json:
        print(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False))
    else:
        print({"text": text, "markdown": markdown, "latex": latex}[options.format](document),
              end="")
    missing = [claim["id"] for claim in document["claims"] if claim["verdict"] == NOT_MEASURABLE]
    if options.only and missing:
        _say(f"not measurable: {', '.join(missing)}")
        return EXIT_NOT_MEASURABLE
    return 0


if __name__ == "__main__":
    command.run(main)
