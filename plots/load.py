"""Reads run directories (the format is results/README.md) into pandas frames.

Strict on purpose: a figure must never be drawn from a file that says something else than the
reader thinks. Every error names the file, the line and the field. Three things are tolerated, each
with a note in `Run.notes`: a missing COMPLETE, a missing theory.json, and a last line of
samples.jsonl that a kill cut off in the middle. Each file may be there compressed instead, as
`<name>.xz`, which is how reference runs are kept.

In the frames an unknown value (null in the files) is NaN in number columns, None in text columns.
"""

import dataclasses
import json
import lzma
import math
import pathlib
import re
import unicodedata

import numpy
import pandas

from plots import selection

SCHEMA_VERSION = 1
STATUSES = ("ok", "wrong_answers", "crashed", "timed_out", "build_failed", "out_of_memory",
            "invalid", "skipped")
WORKLOAD = "workload"  # the mode of an application that uses filters
MODES = ("build", "lookup_batched", "lookup_single", "latency", "lookup_reference", "overfill",
         "insert", WORKLOAD)
_MODES_THAT_FILL = ("overfill", "insert")  # key by key: they always have a fill
MODES_WITHOUT_LOOKUPS = ("build", *_MODES_THAT_FILL)
_MODES_OF_THREADS = ("lookup_batched", "lookup_single")
PAGES = ("4k", "thp", "hugetlb")

_LEVELS = ("process", "build", "pass")

_POINT_TEXT = ["run", "machine", "point_id", "question", "filter", "params", "params_label",
               "params_short", "variant", "key_set", "mode", "hashing", "target", "pages", "status",
               "reason", "stable", "clusters_explained_by", "floor_reason", "floor_from"]
_POINT_NUMBERS = ["keys", "fill", "keys_held", "negative_share", "rounds", "passes",
                  "ns_per_op", "ns_per_op_low", "ns_per_op_high", "confidence", "asked_width",
                  "width", "process_share", "build_share", "pass_share", "cluster_low_ns",
                  "cluster_high_ns", "cluster_low_share", "floor_ns_per_op", "floor_ratio",
                  "size_bytes", "bits_per_key", "build_ns_per_key", "threads", "allocated_bytes",
                  "peak_build_bytes_per_key", "huge_page_bytes", "slots_per_key", "builds",
                  "failed_builds", "attempts_median", "attempts_mean", "attempts_max",
                  "operations_per_second",
                  "fpr_expected", "fpr_measured", "fpr_low", "fpr_high", "false_positives",
                  "queries"]
# Of points of workloads, besides the columns of all points, `knob.NAME` and `metric.NAME.FIELD`.
_WORKLOAD_COLUMNS = ["workload", "knobs", "knobs_label", "workload_rounds", "metrics", "counters",
                     "parts", "phases_ns", "facts"]
METRIC_FIELDS = ("value", "low", "high", "expected", "certain", "by_chance", "trials", "per")
_SAMPLE_NUMBERS = ["bits_per_key", "build_ns_per_key", "table_bits", "false_positives", "queries", "fpr_instance_sd",
                   "stream_lookups", "huge_page_bytes", "slot_load"]
_SAMPLE_COLUMNS = ["run", "sequence", "time_utc", "point_id", "process", "round", "seed", "status",
                   "reason", "ns_per_op", "filter_digest", "answers_digest", *_SAMPLE_NUMBERS]
_CURVE_COLUMNS = ["run", "curve", "filter", "label", "source"]
_THEORY_COLUMNS = [*_CURVE_COLUMNS, "bits_per_key", "fpr"]
_SMALL_TABLE_COLUMNS = [*_CURVE_COLUMNS, "params", "bits", "keys", "fpr"]
_SLOTS_COLUMNS = [*_CURVE_COLUMNS, "params", "keys", "slots_per_key"]
_BLOCK_READS_COLUMNS = ["run", "key", "label", "source", "candidate_files", "certain_reads",
                        "reads_per_fpr"]


class RunError(Exception):
    """A file of a run that is missing or says what it must not; `str()` names file, line, field."""

    def __init__(self, file, message, line=None, field=None):
        place = str(file) + (f":{line}" if line is not None else "")
        super().__init__(f"{place}: " + (f"field {field}: " if field else "") + message)
        self.file, self.line, self.field = pathlib.Path(file), line, field


@dataclasses.dataclass(frozen=True)
class Cache:
    level: int
    type: str
    size_bytes: float


@dataclasses.dataclass
class Run:
    """One run directory."""

    path: pathlib.Path
    name: str
    machine: str
    spec: str
    cpu_brand: str | None
    best_target: str | None
    caches: list[Cache]
    points: pandas.DataFrame   # one flat row per point of summary.json that was built at once
    filled: pandas.DataFrame   # the same for points that were filled key by key; they have a
                               # `fill`, and `keys_held` is the least over the rounds
    pages_and_threads: pandas.DataFrame  # the same for points that choose `pages` or have several
                               # `threads`, filled or not: they stand in neither of the others
    workloads: pandas.DataFrame  # points of mode `workload` (read_workload says which columns they
                               # have besides), which stand in none of the others: their times are
                               # per operation of an application, not per key of a filter
    samples: pandas.DataFrame  # one row per finished sample; ns_per_op: one value per pass;
                               # process: in older runs that of the round
    theory: pandas.DataFrame   # one row per (curve, bits per key); filter None: the bound
    # The rest of theory.json; empty where the run is older. `params` is canonical JSON.
    small_tables: pandas.DataFrame   # one row per (curve, bits); filter None: no filter's probes
    slots_per_key: pandas.DataFrame  # one row per (curve, keys), of the filter and its parameters
    block_reads: pandas.DataFrame    # one row per (key, candidate_files)
    complete: bool
    notes: list[str]           # what was tolerated, one sentence each
    manifest: dict             # manifest.json as it is

    @property
    def frames(self):
        """All points: each stands in one of them."""
        return *self.filter_frames, self.workloads

    @property
    def filter_frames(self):
        """All points of filters by themselves."""
        return self.points, self.filled, self.pages_and_threads


def load_run(path):
    """Reads the run directory `path`. Raises RunError."""
    path = pathlib.Path(path)
    if not path.is_dir():
        raise RunError(path, "is not a run directory")
    notes = []
    manifest = _read_json(path / "manifest.json", "manifest")
    name = manifest.field("run", str)
    if not name or name.startswith(".") or set(name) & {"/", "\\", "\0"}:
        manifest.child("run").fail(f"must be the name of a directory, found {name!r}")
    complete = (path / "COMPLETE").exists()
    if not complete:
        notes.append(f"{path}: COMPLETE is missing: the run has not finished, figures show a part")
    summary = _read_json(path / "summary.json", "summary")
    if summary.field("run", str) != name:
        summary.child("run").fail(f"is {summary.field('run', str)!r}, manifest.json has {name!r}")
    targets = manifest.object("targets")
    environment = manifest.object("environment")
    points, workloads = _read_points(summary, name)
    samples = _read_samples(path, name, notes)
    if complete:
        _check_that_all_is_told(path, samples, {*points["point_id"], *workloads["point_id"]})
    is_filled = points["fill"].notna()
    is_apart = points["pages"].notna() | points["threads"].notna()
    return Run(
        path=path, name=name, machine=summary.field("machine", str),
        spec=summary.field("spec", str),
        cpu_brand=environment.object("cpu").field("brand", str, None),
        best_target=targets.field("best", str, None), caches=_read_caches(environment),
        points=points[~is_filled & ~is_apart].reset_index(drop=True),
        filled=points[is_filled & ~is_apart].reset_index(drop=True),
        pages_and_threads=points[is_apart].reset_index(drop=True), workloads=workloads,
        samples=samples, **_read_theory(path / "theory.json", name, notes), complete=complete,
        notes=notes, manifest=manifest.value)


def load_runs(paths):
    """Reads several run directories; each run is named once. Raises RunError."""
    runs = [load_run(path) for path in paths]
    seen = {}
    for run in runs:
        key = (run.machine, run.name)
        if key in seen:
            raise RunError(run.path, f"is the same run as {seen[key]}: {run.name}")
        seen[key] = run.path
    return runs


def without_workloads(run):
    """The run as if it had measured filters by themselves alone."""
    samples = run.samples[~run.samples["point_id"].isin(run.workloads["point_id"])]
    return dataclasses.replace(run, workloads=run.workloads[:0],
                               samples=samples.reset_index(drop=True))


def one_line(text):
    """`text` with control characters as code points: names from files stay on their line."""
    return "".join(c if unicodedata.category(c)[0] != "C" else f"U+{ord(c):04X}" for c in text)


def params_label(params, names=None):
    """A parameter object as `k=6, probing=plain`: all but bits_per_key, which has a column of its
    own, or those in `names`."""
    return ", ".join(
        f"{name}={selection.value_label(value)}" for name, value in sorted(params.items())
        if name != "bits_per_key" and (names is None or name in names))


def question(point):
    """What a point asks of any machine, as text: all of it but the target, and the place of its key
    file."""
    asked = {name: value for name, value in point.items() if name != "target" and value is not None}
    if isinstance(asked.get("key_set"), dict):
        asked["key_set"] = {name: value for name, value in asked["key_set"].items()
                            if name != "path"}
    return json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


class _Node:
    """A value inside a JSON document, with the way to it, so that an error can name both."""

    __slots__ = ("file", "text", "first_line", "path", "value")

    def __init__(self, file, text, first_line, path, value):
        self.file, self.text, self.first_line = file, text, first_line
        self.path, self.value = path, value

    def child(self, step):
        value = self.value.get(step) if isinstance(self.value, dict) else self.value[step]
        return _Node(self.file, self.text, self.first_line, (*self.path, step), value)

    def fail(self, message):
        line = self.first_line + self.text.count("\n", 0, _offset(self.text, self.path))
        field = "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in self.path)
        raise RunError(self.file, message, line, field.lstrip(".") or None)

    def field(self, name, kind, *default, minimum=None, maximum=None, above=None):
        """The value of a field of type `kind` (str, int or float: a number). Null or absence is an
        error unless a default is given."""
        node = self.child(name)
        value = node.value
        if value is None:
            if default:
                return default[0]
            node.fail("is null" if name in self.value else "is missing")
        if kind is str:
            if not isinstance(value, str):
                node.fail(f"must be a string, found {_short(value)}")
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            node.fail(f"must be a number, found {_short(value)}")
        if kind is int and value != int(value):
            node.fail(f"must be an integer, found {value}")
        try:
            value = float(value)
        except OverflowError:
            node.fail("is too large")
        if minimum is not None and value < minimum or above is not None and value <= above:
            node.fail(f"must be {'at least' if above is None else 'above'} "
                      f"{minimum if above is None else above}, found {value:g}")
        if maximum is not None and value > maximum:
            node.fail(f"must be at most {maximum}, found {value:g}")
        return value

    def flag(self, name):
        value = self.child(name).value
        if not isinstance(value, bool):
            self.child(name).fail(f"must be true or false, found {_short(value)}"
                                  if name in self.value else "is missing")
        return value

    def pair(self, name, maximum=math.inf):
        """Two numbers from 0 to `maximum`."""
        node = self.child(name)
        if not isinstance(node.value, list) or len(node.value) != 2:
            node.fail(f"must be an array of two numbers, found {_short(node.value)}")
        return [node.field(i, float, minimum=0, maximum=maximum) for i in range(2)]

    def choice(self, name, values):
        value = self.field(name, str)
        if value not in values:
            self.child(name).fail(f"must be one of {', '.join(values)}; found {value!r}")
        return value

    def object(self, name, optional=False):
        node = self.child(name)
        if node.value is None and optional:
            return None
        if not isinstance(node.value, dict):
            node.fail(f"must be an object, found {_short(node.value)}" if name in self.value
                      else "is missing")
        return node

    def items(self, name):
        node = self.child(name)
        if not isinstance(node.value, list):
            node.fail(f"must be an array, found {_short(node.value)}" if name in self.value
                      else "is missing")
        for index, value in enumerate(node.value):
            item = node.child(index)
            if not isinstance(value, dict):
                item.fail(f"must be an object, found {_short(value)}")
            yield item


def _short(value):
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


_BLANKS = re.compile(r"[ \t\r\n]*")


def _offset(text, path):
    """Where in `text`, which is JSON, the value at `path` begins; what is missing counts as its
    parent. Only called to word an error, so the document is simply walked again."""
    decoder = json.JSONDecoder()

    def skip(position):
        return _BLANKS.match(text, position).end()

    position = skip(0)
    for step in path:
        parent, is_object = position, text[position] == "{"
        position, index = skip(position + 1), 0
        while text[position] not in "}]":
            key = index
            if is_object:
                key, position = json.decoder.scanstring(text, position + 1)
                position = skip(skip(position) + 1)
            if key == step:
                break
            position, index = skip(decoder.raw_decode(text, position)[1]), index + 1
            if text[position] == ",":
                position = skip(position + 1)
        else:
            return parent
    return position


def _not_finite(value):
    """The path to the first NaN or infinity in `value`, or None. 1e999 is an infinity too."""
    if isinstance(value, float):
        return None if math.isfinite(value) else ()
    items = (value.items() if isinstance(value, dict)
             else enumerate(value) if isinstance(value, list) else ())
    for step, item in items:
        path = _not_finite(item)
        if path is not None:
            return (step, *path)
    return None


def _parse(file, text, schema, first_line=1):
    try:
        value = json.loads(text)  # lets NaN pass, so that the check below can name the field
        path = _not_finite(value)
    except json.JSONDecodeError as error:
        raise RunError(file, f"is not JSON: {error.msg} (column {error.colno})",
                       first_line + error.lineno - 1) from None
    except (ValueError, RecursionError) as error:
        raise RunError(file, f"is not JSON that can be read: {error}", first_line) from None
    root = _Node(file, text, first_line, (), value)
    if path is not None:
        _Node(file, text, first_line, path, None).fail("is NaN or infinite; unknown is null")
    if not isinstance(value, dict):
        root.fail(f"must be an object, found {_short(value)}")
    expected = f"filterbench/{schema}/{SCHEMA_VERSION}"
    found = root.field("schema", str)
    if found != expected:
        root.child("schema").fail(f"must be {expected!r}, found {found!r}")
    return root


def read(file):
    """The bytes of a file of a run, unpacked if it is there compressed. Raises RunError."""
    return _read_text(stored(file))


def stored(file):
    """The file as it lies there, which may be compressed. Raises RunError if it is there in both
    forms: nobody could say which of them counts."""
    packed = file.with_name(file.name + ".xz")
    if not packed.exists():
        return file
    if file.exists():
        raise RunError(file, f"is there twice, beside it lies {packed.name}; remove one of them")
    return packed


def _read_text(file):
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise RunError(file, "is missing") from None
    except OSError as error:
        raise RunError(file, f"cannot be read: {error.strerror}") from None
    return unpacked(file, data) if file.suffix == ".xz" else data


def unpacked(file, data):
    """What `data` holds, one stream of xz with a check sum and nothing behind it; `file` is named
    if it is not that. Raises RunError."""
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)
    try:
        text = decompressor.decompress(data)
    except lzma.LZMAError as error:
        raise RunError(file, f"is damaged: {error}") from None
    if not decompressor.eof:
        raise RunError(file, "is damaged: its end is missing")
    if decompressor.unused_data:
        raise RunError(file, "is damaged: something follows its end")
    return text


def _decode(file, data, first_line=1):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise RunError(file, "is not UTF-8", line) from None


def _read_json(file, schema):
    file = stored(file)
    return _parse(file, _decode(file, _read_text(file)), schema)


def _read_caches(environment):
    if environment.child("caches").value is None:
        return []
    return [Cache(int(cache.field("level", int)), cache.field("type", str),
                  cache.field("size_bytes", float, above=0))
            for cache in environment.items("caches") if cache.value.get("size_bytes") is not None]


def _interval(node, name, bound):
    """The end of an interval; null where there are too few values for one."""
    value = node.field(name, float, math.nan, minimum=0)
    middle = "median" if "median" in node.value else "measured"
    centre = node.field(middle, float, minimum=0)
    if bound * (value - centre) < 0:
        node.child(name).fail(f"{value:g} lies on the wrong side of {middle} {centre:g}")
    return value


def _strings(node, name):
    values = node.value.get(name)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        node.child(name).fail(f"must be an array of strings, found {_short(values)}")
    return values


def _whole_numbers(node, name):
    values = node.child(name).value
    if not isinstance(values, list) or not all(type(value) is int and value >= 0
                                               for value in values):
        node.child(name).fail(f"must be an array of whole numbers, found {_short(values)}")
    return values


def _read_point(entry, run, machine):
    point = entry.object("point")
    params = point.object("params").value
    preset = point.field("preset", str, None)
    # The name of a preset says what its parameters are, and tells its points from those that chose
    # the same by themselves.
    shown = params if preset is None else {"preset": preset}
    mode = point.choice("mode", MODES)
    status = entry.choice("status", STATUSES)
    key_set = point.object("key_set")
    kind = key_set.field("kind", str)
    length = key_set.field("length_bytes", int, math.nan)
    row = {
        "run": run, "machine": machine, "point_id": entry.field("point_id", str),
        "question": question(point.value), "filter": point.field("filter", str),
        "params": json.dumps(params, sort_keys=True, ensure_ascii=False, separators=(",", ":")),
        "params_label": params_label(shown),
        "keys": point.field("keys", int, minimum=0),
        "fill": point.field("fill", float, math.nan, above=0),
        "keys_held": math.nan,
        "key_set": kind if math.isnan(length) else f"{kind} {length:g}",
        "mode": mode, "hashing": point.field("hashing", str), "target": point.field("target", str),
        "pages": None if point.value.get("pages") is None else point.choice("pages", PAGES),
        "threads": point.field("threads", int, math.nan, minimum=2),
        "negative_share": point.field("negative_share", float, math.nan, minimum=0, maximum=1),
        "status": status, "reason": entry.field("reason", str, None),
        "rounds": entry.field("rounds", int, math.nan),
        "passes": entry.field("passes", int, math.nan),
        "floor_reason": entry.field("floor_reason", str, None),
        "size_bytes": entry.field("size_bytes", float, math.nan, minimum=0),
        "bits_per_key": entry.field("bits_per_key", float, math.nan, minimum=0),
        "build_ns_per_key": entry.field("build_ns_per_key", float, math.nan, minimum=0),
        "allocated_bytes": entry.field("allocated_bytes", float, math.nan, minimum=0),
        "peak_build_bytes_per_key": entry.field("peak_build_bytes_per_key", float, math.nan,
                                                minimum=0),
        "huge_page_bytes": entry.field("huge_page_bytes", float, math.nan, minimum=0),
        "slots_per_key": entry.field("slots_per_key", float, math.nan, above=0),
        "operations_per_second": entry.field("operations_per_second", float, math.nan, above=0),
    }
    attempts = entry.object("build_attempts", optional=True)
    if attempts is not None:
        row["builds"] = attempts.field("builds", int, minimum=0)
        row["failed_builds"] = attempts.field("failed_builds", int, minimum=0)
        for name in ("median", "mean", "max"):
            row[f"attempts_{name}"] = attempts.field(name, float, math.nan, minimum=1)
    if not math.isnan(row["threads"]) and mode not in _MODES_OF_THREADS:
        point.child("threads").fail(f"mode {mode} has one thread")
    if mode in _MODES_THAT_FILL and math.isnan(row["fill"]):
        point.child("fill").fail(f"must be a number in mode {mode}")
    if not math.isnan(row["fill"]):
        row["keys_held"] = min(_whole_numbers(entry, "keys_held"), default=math.nan)
    if ("workload" in point.value) != (mode == WORKLOAD):
        point.child("workload").fail(f"must be there in mode {WORKLOAD}, and in no other")
    if mode not in (*MODES_WITHOUT_LOOKUPS, WORKLOAD) and math.isnan(row["negative_share"]):
        point.child("negative_share").fail(f"must be a number in mode {mode}")
    if status != "ok" and row["reason"] is None:
        entry.child("reason").fail(f"is missing beside status {status!r}")
    time = entry.object("ns_per_op", optional=status != "ok")
    if time is not None:
        row["ns_per_op"] = time.field("median", float, above=0)
        row["ns_per_op_low"] = _interval(time, "low", -1)
        row["ns_per_op_high"] = _interval(time, "high", 1)
        row["confidence"] = time.field("confidence", float, math.nan, minimum=0, maximum=1)
    row |= _read_repeatability(entry)
    floor = entry.object("floor", optional=True)
    if floor is not None:
        row["floor_ns_per_op"] = floor.field("ns_per_op", float, above=0)
        row["floor_ratio"] = floor.field("ratio", float, above=0)
        row["floor_from"] = ";".join(_strings(floor, "from"))
    fpr = entry.object("fpr", optional=True)
    if fpr is not None:
        row["fpr_expected"] = fpr.field("expected", float, math.nan, minimum=0, maximum=1)
        row["false_positives"] = fpr.field("false_positives", int, minimum=0)
        row["queries"] = fpr.field("queries", int, above=0)
        row["fpr_measured"] = fpr.field("measured", float, minimum=0, maximum=1)
        row["fpr_low"] = _interval(fpr, "low", -1)
        row["fpr_high"] = _interval(fpr, "high", 1)
        if (row["fpr_measured"] == 0) != (row["false_positives"] == 0):
            fpr.child("measured").fail(f"is {row['fpr_measured']:g} with "
                                       f"{row['false_positives']:g} false positives")
    if mode == WORKLOAD:
        row |= read_workload(point.object("workload"), entry.object("workload", optional=True))
    return row, shown


def read_workload(asked, found):
    """The columns of a point's workload: `workload` (its name), `knobs` as canonical JSON, as text and
    one by one as `knob.NAME`, and what came of it, which a point that failed lacks: the rounds
    that were added up, `metrics` ({name: {field of METRIC_FIELDS: number}}, also one by one as
    `metric.NAME.FIELD`; a field that a metric has not is NaN), `counters`, `parts` (None where
    they differ between rounds), `phases_ns` and `facts` as they stand in the file."""
    knobs = {name: value for name, value in asked.value.items() if name != "name"}
    row = {"workload": asked.field("name", str), "knobs": canonical(knobs),
           "knobs_label": params_label(knobs), "workload_rounds": math.nan, "metrics": {},
           "counters": {}, "parts": [], "phases_ns": {}, "facts": {}}
    row |= {f"knob.{name}": value for name, value in knobs.items()}
    if found is None:
        return row
    row["workload_rounds"] = found.field("rounds", int, math.nan, minimum=1)
    metrics = found.object("metrics")
    for name in metrics.value:
        row["metrics"][name] = _read_metric(metrics.object(name))
        row |= {f"metric.{name}.{field}": value for field, value in row["metrics"][name].items()}
    for name in ("counters", "phases_ns", "facts"):
        part = found.object(name, optional=True)
        row[name] = {} if part is None else part.value
    row["parts"] = None if found.child("parts").value is None else [
        part.value for part in found.items("parts")]
    return row


def _read_metric(node):
    metric = {name: node.field(name, float, math.nan) for name in METRIC_FIELDS}
    for name in ("certain", "by_chance", "trials", "per"):
        node.field(name, int, math.nan, minimum=0)
    # Without trials it is the interval of the rounds' median, which need not hold their mean.
    for name, bound in (("low", -1), ("high", 1)) if metric["trials"] > 0 else ():
        if bound * (metric[name] - metric["value"]) < 0:
            node.child(name).fail(f"{metric[name]:g} lies on the wrong side of value "
                                  f"{metric['value']:g}")
    if metric["by_chance"] > metric["trials"]:
        node.child("by_chance").fail(f"is more than the {metric['trials']:g} trials")
    return metric


def _read_repeatability(entry):
    """What older summaries lack: whether the interval is as narrow as asked for (`stable`, None
    where nothing was asked), the levels' shares of the variance, and two modes where there are."""
    row = {"stable": None, "clusters_explained_by": None}
    stability = entry.object("stability", optional=True)
    if stability is not None:
        row["asked_width"] = stability.field("asked_width", float, above=0)
        row["width"] = stability.field("width", float, minimum=0)
        row["stable"] = stability.flag("stable")
        if row["stable"] and row["width"] > row["asked_width"]:
            stability.child("stable").fail(f"is true, but width {row['width']:g} exceeds "
                                           f"asked_width {row['asked_width']:g}")
    shares = entry.object("variance_shares", optional=True)
    if shares is not None:
        for level in _LEVELS:
            row[f"{level}_share"] = shares.field(level, float, minimum=0, maximum=1)
    clusters = entry.object("clusters", optional=True)
    if clusters is not None:
        row["cluster_low_ns"], row["cluster_high_ns"] = clusters.pair("centers_ns")
        row["cluster_low_share"] = clusters.pair("shares", 1)[0]
        row["clusters_explained_by"] = clusters.choice("explained_by", _LEVELS)
    return row


def _read_points(summary, run):
    """(the points of filters, those of workloads), each as a frame."""
    machine = summary.field("machine", str)
    rows, all_params, seen = [], [], set()
    for entry in summary.items("points"):
        row, params = _read_point(entry, run, machine)
        if row["point_id"] in seen:
            entry.child("point_id").fail(f"{row['point_id']!r} occurs twice")
        seen.add(row["point_id"])
        rows.append(row)
        all_params.append(params)
    # What workloads chose must not make variants of what was measured without them.
    filters = [i for i, row in enumerate(rows) if row["mode"] != WORKLOAD]
    points = _frame([rows[i] for i in filters], [all_params[i] for i in filters])
    if len(filters) == len(rows):
        return points, _frame([], [], _WORKLOAD_COLUMNS)
    known = {(row["filter"], row["params"]): row for row in points.to_dict("records")}
    more = sorted({name for row in rows for name in row if name.startswith(("knob.", "metric."))})
    workloads = _frame(rows, all_params, _WORKLOAD_COLUMNS + more)
    workloads = workloads[workloads["mode"] == WORKLOAD].reset_index(drop=True)
    knobs = [name for name in more if name.startswith("knob.")]
    workloads[knobs] = pandas.DataFrame(  # as they stand in the file, numbers or text
        {name: [row.get(name) for row in rows if row["mode"] == WORKLOAD] for name in knobs},
        dtype=object, index=workloads.index)
    # A filter is called alike wherever it stands.
    for column in ("variant", "params_short"):
        workloads[column] = [
            known.get((row["filter"], row["params"]), row)[column]
            for row in workloads.to_dict("records")]
    return points, workloads


def _frame(rows, all_params, more=()):
    """Points as a frame with all that follows from them together: variants and short parameters."""
    frame = pandas.DataFrame(rows, columns=_POINT_TEXT + _POINT_NUMBERS + list(more))
    frame[_POINT_NUMBERS] = frame[_POINT_NUMBERS].astype(float)
    frame[_POINT_TEXT] = frame[_POINT_TEXT].astype(object).where(frame[_POINT_TEXT].notna(), None)
    names = sorted({name for params in all_params for name in params})
    columns = {f"param.{name}": pandas.Series([params.get(name) for params in all_params],
                                              dtype=object, index=frame.index) for name in names}
    frame = pandas.concat([frame, pandas.DataFrame(columns, index=frame.index)], axis=1)
    frame["variant"] = selection.variants(frame, all_params)
    # What all points of a filter have in common says nothing in a table of one run.
    for _, group in frame.groupby("filter"):
        names = selection.varying_params(group, all_params)
        frame.loc[group.index, "params_short"] = [
            params_label(all_params[index], names) for index in group.index]
    return frame


def sample_lines(path):
    """(the file as it lies there, its finished lines, whether a kill cut off one more)."""
    file = stored(pathlib.Path(path) / "samples.jsonl")
    lines = _read_text(file).split(b"\n")
    cut_off = lines.pop()  # a line is finished by its line feed; what follows the last is no sample
    return file, lines, bool(cut_off)


def _read_samples(path, run, notes):
    rows = []
    file, lines, cut_off = sample_lines(path)
    for number, line in enumerate(lines, 1):
        rows.append(_read_sample(_parse(file, _decode(file, line, number), "sample", number), run))
    if cut_off:
        notes.append(f"{file}:{len(lines) + 1}: the last line is cut off and was left out")
    frame = pandas.DataFrame(rows, columns=_SAMPLE_COLUMNS)
    frame[_SAMPLE_NUMBERS] = frame[_SAMPLE_NUMBERS].astype(float)
    return frame.astype({name: object for name in ("filter_digest", "answers_digest")}).replace(
        {"filter_digest": {numpy.nan: None}, "answers_digest": {numpy.nan: None}})


def _check_that_all_is_told(path, samples, told):
    """The summary of a complete run speaks of every sample: none is lost without a word."""
    lost = samples.index[~samples["point_id"].isin(told)]
    if len(lost):
        raise RunError(stored(path / "samples.jsonl"),
                       f"summary.json has no point {samples['point_id'][lost[0]]!r}",
                       int(lost[0]) + 1, "point_id")


def _read_sample(node, run):
    status = node.choice("status", STATUSES)
    times = node.child("ns_per_op")
    if not isinstance(times.value, list):
        times.fail(f"must be an array, found {_short(times.value)}")
    for index, value in enumerate(times.value):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            times.child(index).fail(f"must be a number above 0, found {_short(value)}")
    if (status == "ok") != bool(times.value):
        times.fail(f"has {len(times.value)} values with status {status!r}")
    reason = node.field("reason", str, None)
    if status != "ok" and reason is None:
        node.child("reason").fail(f"is missing beside status {status!r}")
    row = {"run": run, "sequence": node.field("sequence", int, minimum=0),
           "time_utc": node.field("time_utc", str), "point_id": node.field("point_id", str),
           # Records older than the field had one build in each process.
           "process": int(node.field("process", int, node.field("round", int, minimum=0),
                                     minimum=0)),
           "round": node.field("round", int, minimum=0), "seed": node.value.get("seed"),
           "status": status, "reason": reason, "ns_per_op": tuple(times.value),
           "stream_lookups": node.field("stream_lookups", int, math.nan, minimum=0)}
    held = node.object("filter", optional=True)
    if held is not None:
        row |= {name: held.field(name, str, None) for name in ("filter_digest", "answers_digest")}
        for name in ("bits_per_key", "build_ns_per_key"):
            row[name] = held.field(name, float, math.nan, minimum=0)
        extra = held.object("extra", optional=True)
        if extra is not None:  # the size of Bloom filters; of slots, the part that is in use
            row["table_bits"] = extra.field("bits", float, math.nan, minimum=0)
            row["slot_load"] = extra.field("load", float, math.nan, minimum=0)
    fpr = node.object("fpr", optional=True)
    if fpr is not None:
        row["false_positives"] = fpr.field("false_positives", int, minimum=0)
        row["queries"] = fpr.field("queries", int, above=0)
        row["fpr_instance_sd"] = fpr.field("expected_instance_sd", float, math.nan, minimum=0)
        if row["false_positives"] > row["queries"]:
            fpr.child("false_positives").fail(f"is more than the {row['queries']:g} queries")
    health = node.object("health", optional=True)
    if health is not None:
        row["huge_page_bytes"] = health.field("huge_page_bytes", int, math.nan, minimum=0)
    return row


def canonical(params):
    """Parameters as the text that stands in `params` of all frames."""
    return json.dumps(params, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _read_curves(theory, name, run, read_point):
    """One row per point of all curves of the array `name`, which older files lack."""
    rows = []
    for number, curve in enumerate(theory.items(name) if name in theory.value else ()):
        common = {"run": run, "curve": number, "label": curve.field("label", str),
                  "source": curve.field("source", str, None)}
        if name == "block_reads":
            common["key"] = curve.choice("key", ("absent", "deepest"))
        else:
            common["filter"] = curve.field("filter", str, None)
        if name in ("small_tables", "slots_per_key"):
            common["params"] = canonical(curve.object("params").value)
        rows += [common | read_point(point) for point in curve.items("points")]
    return rows


def _read_theory(file, run, notes):
    """The frames that come from theory.json, by their names in Run."""
    rows = {"theory": [], "small_tables": [], "slots_per_key": [], "block_reads": []}
    if stored(file).exists():
        theory = _read_json(file, "theory")
        # Null: the formula has no value there (a filter that cannot be so small).
        rows["theory"] = [row for row in _read_curves(theory, "curves", run, lambda point: {
            "bits_per_key": point.field("bits_per_key", float, minimum=0),
            "fpr": point.field("fpr", float, math.nan, above=0, maximum=1)})
            if not math.isnan(row["fpr"])]
        rows["small_tables"] = _read_curves(theory, "small_tables", run, lambda point: {
            "bits": point.field("bits", float, above=0),
            "keys": point.field("keys", float, above=0),
            "fpr": point.field("fpr", float, above=0, maximum=1)})
        rows["slots_per_key"] = _read_curves(theory, "slots_per_key", run, lambda point: {
            "keys": point.field("keys", float, above=0),
            "slots_per_key": point.field("slots_per_key", float, above=0)})
        rows["block_reads"] = _read_curves(theory, "block_reads", run, lambda point: {
            "candidate_files": point.field("candidate_files", float, minimum=1),
            "certain_reads": point.field("certain_reads", float, minimum=0),
            "reads_per_fpr": point.field("reads_per_fpr", float, minimum=0)})
    else:
        notes.append(f"{file} is missing: no theory is drawn")
    columns = {"theory": _THEORY_COLUMNS, "small_tables": _SMALL_TABLE_COLUMNS,
               "slots_per_key": _SLOTS_COLUMNS, "block_reads": _BLOCK_READS_COLUMNS}
    numbers = ("bits_per_key", "bits", "keys", "fpr", "slots_per_key", "candidate_files",
               "certain_reads", "reads_per_fpr")
    frames = {}
    for name, found in rows.items():
        frame = pandas.DataFrame(found, columns=columns[name])
        frame = frame.astype({column: float for column in columns[name] if column in numbers})
        frames[name] = frame.replace({numpy.nan: None}) if frame.empty else frame
    return frames
