"""Writes what runs found as one page for a browser:

    filterbench report RUN... [--out FILE] [--force]

The page is one file that needs no network: headline, machine, the doctor's findings, figures that
can be zoomed and asked, all points in a table, checks, downloads of the data, and, of several runs,
a comparison with the first. It is RUN/report.html unless --out names another; of several runs it
must be named. A page of ours is written anew, any other file is not overwritten without --force.

What was written goes to stdout. Exit codes: 0 ok; 2 usage, a run that cannot be read, or a file
that would be overwritten; 5 the bundle of the page's script is missing, or the page could not be
written.
"""

import argparse
import base64
import hashlib
import html
import json
import os
import pathlib
import re
import sys
import tempfile

import pandas

from plots import command, headline, load, selection
from plots.report import bundle, checks, comparison, data, figures, looks, winners

EXIT_USAGE, EXIT_INCOMPLETE = 2, 5
_TEMPLATE = pathlib.Path(__file__).with_name("page.html")
# By which a page of ours is known.
GENERATOR = '<meta name="generator" content="filterbench report">'
_THIN = "\u202f"  # between groups of digits
_TEXT_COLUMNS = ("filter", "params", "target")  # of the headline
_STATES = ("fail", "warn", "unknown", "pass")


class Refused(Exception):
    """A file that is in the way."""


def _say(text):
    print(f"filterbench report: {load.one_line(text)}", file=sys.stderr)


# --- HTML ---

def text(value):
    """Text as HTML, whatever characters it has; controls by their code point."""
    return html.escape(load.one_line(str(value)))


def _unknown(reason):
    return f'<span class="unknown" title="{text(reason)}">\u2013</span>'


def _value(owner, name, show=str):
    """A field of the manifest, or a dash with the reason beside it in the file."""
    value = (owner or {}).get(name)
    if value is None:
        return _unknown((owner or {}).get(f"{name}_reason") or "the record does not say")
    return text(show(value))


def _swatch(place, css=""):
    return (f'<svg class="swatch f{css}" aria-hidden="true" viewBox="-1 -1 2 2">'
            f'<use href="#look{place}" x="-1" y="-1" width="2" height="2"/></svg>')


def _sprite(series):
    """The markers of all series, once, to be used by everything that shows one."""
    symbols = []
    for place, entry in enumerate(series):
        marker = entry["marker"]
        shape = ('<path d="M-1 0H1" fill="none" stroke="currentColor" stroke-width=".22"/>'
                 if marker is None else
                 f'<path d="{marker["outline"]}" class="ground"/>'
                 f'<path d="{marker["filled"]}" fill="currentColor"/>'
                 f'<path d="{marker["outline"]}" fill="none" stroke="currentColor" '
                 'stroke-width=".2"/>')
        symbols.append(f'<symbol id="look{place}" viewBox="-1 -1 2 2">{shape}</symbol>')
    return f'<svg class="sprite" aria-hidden="true">{"".join(symbols)}</svg>'


def _colours(filters):
    light = "".join(f".f{i}{{color:{f['light']}}}" for i, f in enumerate(filters))
    dark = "".join(f".f{i}{{color:{f['dark']}}}" for i, f in enumerate(filters))
    return (light + f"@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
            + "".join(f":root[data-theme=dark] .f{i}{{color:{f['dark']}}}"
                      for i, f in enumerate(filters)))


def _table(columns, rows, numeric=(), css=""):
    """A table whose cells are HTML already; `numeric` are the places of columns of numbers."""
    def line(cells, tag):
        return "<tr>" + "".join(
            f'<{tag}{" class=number" if i in numeric else ""}{" scope=col" if tag == "th" else ""}>'
            f"{cell}</{tag}>" for i, cell in enumerate(cells)) + "</tr>"
    return (f'<div class="scroll" tabindex="0" role="region" aria-label="table">'
            f'<table class="{css}"><thead>{line(columns, "th")}</thead>'
            f'<tbody>{"".join(line(row, "td") for row in rows)}</tbody></table></div>')


def _run_block(place, content):
    """A part of the page that is about one run."""
    return f'<div class="run" data-run="{place}">{content}</div>'


def _headline(run, filters, series):
    places = {}
    for place, entry in enumerate(series):
        places.setdefault(filters[entry["filter"]]["name"], (place, entry["filter"]))
    rows = headline.table(run, intervals=True)
    words = "".join(f"<p>{text(sentence)}</p>" for sentence in winners.sentences(run))
    facts = "".join(f"<div><dt>{text(label)}</dt><dd>{text(value)}</dd></div>"
                    for label, value in winners.summary(run))
    bodies, columns = [], [c for c in headline.COLUMNS if c != "keys"]
    for keys in dict.fromkeys(row["keys"] for row in rows):
        lines = []
        for row in (row for row in rows if row["keys"] == keys):
            place, number = places[row["filter"]]
            cells = []
            for column in columns:
                value = text(row[column])
                if row[column] == "-":
                    value = _unknown("nothing varies" if column == "params" else "not measured")
                if column == "filter":
                    value = f"{_swatch(place, number)}{value}"
                numeric = "" if column in _TEXT_COLUMNS else " class=number"
                cells.append(f"<td{numeric}>{value}</td>")
            lines.append(f'<tr data-filter="{number}">{"".join(cells)}</tr>')
        bodies.append(f'<tbody data-keys="{text(keys)}"><tr class="group"><th scope="rowgroup" '
                      f'colspan="{len(columns)}">{f"{int(keys):,}".replace(",", _THIN)} keys</th>'
                      f'</tr>{"".join(lines)}</tbody>')
    head = "".join(f'<th scope="col"{"" if c in _TEXT_COLUMNS else " class=number"}>{text(c)}</th>'
                   for c in columns)
    notes = ["Medians in ns per key, with their intervals; lookups batched, at the filter's best "
             "target; neg: absent keys among those asked. \u00d7 floor: lookups of absent keys over "
             "one random cache line per key in a table of the same size. Of each filter the "
             f"parameters closest to {selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key."]
    notes += [f"Not ok: {sentence}" for sentence in headline.failures(run)[:20]]
    if not rows:
        return (f'<div class="verdict">{words}</div><dl class="facts">{facts}</dl>'
                '<p class="note">The run has no points that the headline table is about.</p>')
    return (f'<div class="verdict">{words}</div><dl class="facts">{facts}</dl>'
            f'<div class="keys-choice" hidden></div>'
            f'<div class="scroll" tabindex="0" role="region" aria-label="headline table">'
            f'<table class="headline"><thead><tr>{head}</tr></thead>{"".join(bodies)}</table></div>'
            + "".join(f'<p class="note">{text(note)}</p>' for note in notes))


def _bytes(value):
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value} B"


def _flag(value):
    return {True: "yes", False: "no"}.get(value, str(value))


def _machine(run):
    manifest = run.manifest
    environment, provenance = manifest["environment"], manifest["provenance"]
    cpu, topology = environment["cpu"], environment.get("topology")
    caches = environment.get("caches")
    spec = manifest["spec"]
    groups = [
        ("Processor", [
            ("CPU", _value(cpu, "brand")), ("microarchitecture", _value(cpu, "microarchitecture")),
            ("family, model, stepping", ", ".join(_value(cpu, n) for n in (
                "family", "model", "stepping"))),
            ("microcode", _value(cpu, "microcode")), ("cores", _value(topology, "cores")),
            ("hardware threads", _value(topology, "hardware_threads")),
            ("NUMA nodes", _value(topology, "numa_nodes")),
            ("targets", text(", ".join(manifest["targets"]["supported"]))),
            ("best target", _value(manifest["targets"], "best"))]),
        ("Memory", [("caches", _unknown("the manifest has none") if not caches else "<br>".join(
            text(f"L{c['level']} {c['type']}") + " " + _value(c, "size_bytes", _bytes)
            for c in caches)),
            ("memory", _value(environment.get("memory"), "total_bytes", _bytes)),
            ("available", _value(environment.get("memory"), "available_bytes", _bytes)),
            ("huge pages", _value(environment.get("pages"), "transparent_huge_pages"))]),
        ("System", [("machine", text(run.machine)), ("kernel", _value(environment, "kernel")),
                    ("hypervisor", _value(environment, "hypervisor")),
                    ("governor", _value(environment.get("frequency"), "governor")),
                    ("boost", _value(environment.get("frequency"), "boost", _flag)),
                    ("clock", _value(environment.get("clock"), "source"))]),
        ("Program", [("compiler", _value(provenance, "compiler")),
                     ("flags", _value(provenance, "flags")),
                     ("build", _value(provenance, "build_type")),
                     ("commit", _value(provenance, "git_commit", lambda v: v[:12])),
                     ("uncommitted changes", _value(provenance, "git_dirty", _flag)),
                     ("binary", _value(provenance, "binary_xxh3")),
                     ("libraries", "<br>".join(
                         f"{text(name)} {_value(provenance['libraries'], name)}"
                         for name in sorted(provenance["libraries"])
                         if not name.endswith("_reason")) or _unknown("none is named"))]),
        ("Run", [("run", text(run.name)), ("time", _value(manifest, "time_utc")),
                 ("spec", text(run.spec)), ("spec hash", _value(manifest, "spec_hash")),
                 ("seed", _value(manifest, "seed")),
                 ("measure", text(", ".join(f"{name} {value}" for name, value in sorted(
                     (spec.get("measure") or {}).items())) or "-"))])]
    return '<div class="groups">' + "".join(
        f"<section><h3>{title}</h3><dl>" + "".join(
            f"<dt>{text(name)}</dt><dd>{value}</dd>" for name, value in entries) + "</dl></section>"
        for title, entries in groups) + "</div>"


def _badge(state):
    state = state if state in _STATES else "unknown"
    return f'<span class="badge {state}">{state}</span>'


def _doctor(run):
    findings = run.manifest.get("doctor")
    if not findings:
        return ("<p>The record has no findings of the doctor: it is older than they are, or they "
                "were not asked for. <code>filterbench doctor</code> tells them of this "
                "machine.</p>")
    findings = sorted(findings, key=lambda f: _STATES.index(f["state"])
                      if f["state"] in _STATES else 2)
    count = ", ".join(f"{n} {state}" for state in _STATES
                      if (n := sum(f["state"] == state for f in findings)))
    cards = []
    for finding in findings:
        remedy = finding.get("remedy")
        shell = finding.get("command")
        cards.append(
            f'<details class="finding"{" open" if finding["state"] in ("fail", "warn") else ""}>'
            f'<summary>{_badge(finding["state"])}'
            f'<span class="what">{text(finding["check"].replace("_", " "))}</span>'
            f'<span class="found">{text(finding["found"])}</span></summary>'
            f'<p><b>Why it matters.</b> {text(finding["why"])}.</p>'
            + (f"<p><b>Remedy.</b> {text(remedy)}.</p>" if remedy else "")
            + (f'<pre tabindex="0"><code>{_lines(shell)}</code></pre>' if shell else "")
            + "</details>")
    return f"<p>{text(count)}.</p>" + "".join(cards)


def _lines(shell):
    return "\n".join(text(line) for line in shell.split("\n"))


_MOST_ROWS = 20
_NUMBER = re.compile(r"-$|[\d.]+(e-?\d+)?( %)?$|[\d.]+ % to ")


def _grouped(cell):
    """A whole number of many digits with its groups apart."""
    return f"{int(cell):,}".replace(",", _THIN) if cell.isdecimal() else cell


def _checks(place, sections):
    parts = []
    for section in sections:
        rows = [tuple(text(_grouped(cell)) for cell in row) for row in section.rows[:_MOST_ROWS]]
        more = len(section.rows) - len(rows)
        numeric = {i for i in range(len(section.columns))
                   if all(_NUMBER.match(row[i]) for row in section.rows)}
        body = _table([text(c) for c in section.columns], rows, numeric) if rows else ""
        if more > 0:
            body += f'<p class="note">The first {_MOST_ROWS} of {len(section.rows)}.</p>'
        if section.filter:
            column, value = section.filter
            body += (f'<button type="button" class="to-points" data-run="{place}" '
                     f'data-column="{text(column)}" data-value="{text(json.dumps(value))}">'
                     "Show these points in the table</button>")
        parts.append(f'<details class="check" id="check-{section.name}-{place}"'
                     f'{" open" if section.state in ("fail",) else ""}><summary>'
                     f'{_badge(section.state)}<span class="what">{text(section.title)}</span>'
                     f'<span class="found">{text(section.text)}</span></summary>{body}</details>')
    return "".join(parts)


def _comparison(pairs):
    parts = []
    for place, pair in enumerate(pairs):
        notes = "".join(f"<li>{text(note)}</li>" for note in pair["notes"])
        parts.append(
            f'<section class="pair"><h3>{text(pair["other"])} against {text(pair["base"])}</h3>'
            f'<p>{text(pair["text"])}</p><p>{pair["matched"]} points were asked of both; '
            f'{pair["only"][0]} of the first only, {pair["only"][1]} of the second only.</p>'
            f'<ul class="notes">{notes}</ul><div class="pair-table" data-pair="{place}"></div>'
            "</section>")
    return "".join(parts)


def _licences(licences):
    return "".join(
        f'<details class="licence"><summary>{text(entry["name"])} {text(entry["version"])}, '
        f'{text(entry["licence"])}</summary>' + "".join(
            f"<h4>{text(part['file'])}</h4><pre tabindex=0>{_lines(part['text'])}</pre>"
            for part in entry["texts"]) + "</details>" for entry in licences)


# --- The page ---

def embedded(value):
    """JSON that may stand inside of a script element: no character of it ends the element, begins a
    comment, or ends a line of JavaScript."""
    packed = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        packed = packed.replace(character, f"\\u{ord(character):04x}")
    # Lone surrogates are legal in JSON and not in UTF-8.
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", packed)


def _digest(content):
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _fill(template, parts):
    pieces = re.split(r"\{\{(\w+)\}\}", template)
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))


def render(runs, made):
    """The page of runs as text; `made` is a bundle.Bundle."""
    frames = [data.frame_of(run) for run in runs]
    sampled = [data.read_samples(run) for run in runs]
    marked = [checks.mark_rates(run, frame) for run, frame in zip(runs, frames)]
    filters, series = looks.describe(pandas.concat(frames, ignore_index=True))
    pairs = comparison.of_runs(runs)
    offsets = [0]
    for frame in frames:
        offsets.append(offsets[-1] + len(frame))
    several = len(runs) > 1
    columns = [column._asdict() | {"shown": column.shown or several and column.key == "run"}
               for column in data.COLUMNS]
    content = {
        "runs": [{"name": run.name, "machine": run.machine, "cpu": run.cpu_brand or "unknown CPU",
                  "complete": run.complete, "rows": [offsets[i], offsets[i + 1]],
                  "caches": figures.caches(run),
                  "figures": figures.of_run(run, frames[i], offsets[i], series, filters)}
                 for i, run in enumerate(runs)],
        "filters": filters, "series": series, "columns": columns,
        "points": data.pack(runs, frames, sampled), "pairs": [pair["rows"] for pair in pairs]}
    script = made.script.strip()
    style = made.style.strip() + _colours(filters)
    if re.search("</(script|style)|<!--", script + style, re.IGNORECASE):
        raise ValueError("the bundle holds what would end its own element")
    cpus = list(dict.fromkeys(run.cpu_brand or "unknown CPU" for run in runs))
    block = lambda make: "".join(_run_block(i, make(i, run)) for i, run in enumerate(runs))
    parts = {
        "generator": GENERATOR,
        "policy": text("default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; "
                       "base-uri 'none'; form-action 'none'; "
                       f"script-src 'sha256-{_digest(script)}'"),
        "title": text(f"filterbench report: {', '.join(run.name for run in runs)}"),
        "style": style, "sprite": _sprite(series),
        "heading": text(" and ".join(cpus)),
        "subtitle": "".join(
            f"<li>{'' if run.complete else '<b>incomplete</b> '}{text(run.name)} "
            f"<span>{text(run.spec)}</span></li>" for run in runs),
        "choose_run": "" if not several else
                      '<label>run <select id="run">' + "".join(
                          f'<option value="{i}">{text(run.name)}</option>'
                          for i, run in enumerate(runs)) + "</select></label>",
        "headline": block(lambda i, run: _headline(run, filters, series)),
        "machine": block(lambda i, run: _machine(run)),
        "doctor": block(lambda i, run: _doctor(run)),
        "checks": block(lambda i, run: _checks(i, checks.sections(run, frames[i], marked[i],
                                                                   sampled[i]))),
        "comparison": f'<section id="comparison"><h2>Comparison</h2>{_comparison(pairs)}</section>'
                      if pairs else "",
        "comparison_link": '<li><a href="#comparison">Comparison</a></li>' if pairs else "",
        "licences": _licences(made.licences),
        "data": embedded(content), "script": script,
    }
    return _fill(_TEMPLATE.read_text(encoding="utf-8"), parts)


def _is_ours(path):
    with open(path, "rb") as file:
        return GENERATOR.encode() in file.read(4096)


def write(path, content, force=False):
    """Writes the page in one step. Raises Refused where another file is in the way, and OSError."""
    path = pathlib.Path(path)
    if path.is_dir():
        raise Refused(f"{path} is a directory; --out names a file")
    if path.exists() and not force and not (path.is_file() and _is_ours(path)):
        raise Refused(f"{path} exists and is no report; --force overwrites it")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise


def _parser():
    parser = argparse.ArgumentParser(prog="filterbench report", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run directory")
    parser.add_argument("--out", type=command.path, metavar="FILE",
                        help="the page (default: RUN/report.html)")
    parser.add_argument("--force", action="store_true",
                        help="overwrite a file that is no report")
    return parser


def main(arguments=None):
    options = _parser().parse_args(arguments)
    if options.out is None and len(options.runs) > 1:
        _say("of several runs: name the page with --out FILE")
        return EXIT_USAGE
    try:
        runs = load.load_runs(options.runs)
    except load.RunError as error:
        _say(str(error))
        return EXIT_USAGE
    for run in runs:
        for note in run.notes:
            _say(note)
    out = options.out or runs[0].path / "report.html"
    try:
        write(out, render(runs, bundle.read()), options.force)
    except bundle.Missing as error:
        _say(str(error))
        return EXIT_INCOMPLETE
    except Refused as error:
        _say(str(error))
        return EXIT_USAGE
    except OSError as error:
        _say(f"cannot write {error.filename or out}: {error.strerror or error}")
        return EXIT_INCOMPLETE
    print(out)
    return 0


if __name__ == "__main__":
    command.run(main)
