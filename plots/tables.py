"""The tables of a paper, as LaTeX (booktabs) and Markdown: NAME.tex and NAME.md.

headline     what plots.headline prints: one row per key count, filter and parameters (longtable, since
             it may be longer than a page)
filters      space, FPR and speed by filter at KEYS keys, with the intervals of times
workloads    what applications of filters came to: their main numbers with intervals and expectation
break_even   what filters of a store cost to build and save its gets, and ribbon against Bloom
machine      machine, caches, compiler, commit, spec, processes and rounds of all runs

The LaTeX files hold the bare table, for \\input into a table environment (headline.tex as it is);
packages: booktabs, and longtable for the long ones (headline, workloads, break_even). Every number
is taken from the files of the run.
"""

import math

from plots import caption, gets, headline, load, ratios, selection, tex

KEYS = 1_000_000
_UNKNOWN = "unknown"


class _Table:
    """What draw.py asks of a table."""

    columns, text_columns = (), ()

    def choose(self, runs):
        """The run that has most rows; of several the newest."""
        if len(runs) == 1:
            return runs[0]
        return max(runs, key=lambda run: (len(self.rows(run)), run.name))

    def runs(self, chosen):
        return [chosen]

    def notes(self, chosen):
        return []

    def _sources(self, chosen):
        return [f"Data: {caption.subject([run])}." for run in self.runs(chosen)]

    def markdown(self, chosen, rows):
        rows = [{c: load.one_line(row[c]) for c in self.columns} for row in rows]
        lines = headline.markdown(self.columns, self.text_columns, rows)
        notes = [load.one_line(note) for note in (*self.notes(chosen), *self._sources(chosen))]
        return "\n".join([f"**{self.TITLE}**", "", *lines, "", *(f"- {note}" for note in notes)]) + (
            "\n")

    environment = "tabular"

    def column_types(self):
        return "".join("l" if column in self.text_columns else "r" for column in self.columns)

    def latex(self, chosen, rows):
        def line(cells):
            return " & ".join(tex.escape(load.one_line(cell)) for cell in cells) + r" \\"
        notes = [f"{self.TITLE}.", *self.notes(chosen), *self._sources(chosen)]
        is_long = self.environment == "longtable"
        text = [*(f"% {tex.ascii_only(load.one_line(note))}" for note in notes),
                r"\begingroup\footnotesize\setlength{\tabcolsep}{3pt}%",
                rf"\begin{{{self.environment}}}{{@{{}}{self.column_types()}@{{}}}}",
                r"\toprule", line(self.columns), r"\midrule", *([r"\endhead"] if is_long else [])]
        group = None
        for row in rows:
            if group not in (None, self.group(row)):
                text.append(r"\midrule")
            group = self.group(row)
            text.append(line(row[c] for c in self.columns))
        return "\n".join([*text, r"\bottomrule", rf"\end{{{self.environment}}}", r"\endgroup", ""])

    def group(self, row):
        """Rows of two groups have a line between them."""
        del row
        return ""


class _Headline(_Table):
    NAME = "headline"
    TITLE = "Filters by key count, at the parameters nearest to " \
            f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key"
    NEEDS = "any points"
    columns, text_columns = headline.COLUMNS, ("filter", "params", "target")
    environment = "longtable"

    def rows(self, run):
        return headline.table(run)

    def gaps(self, run):
        if len(run.points):
            return []
        return [selection.Gap("the run has no points", "filterbench run quick", fatal=True)]

    def group(self, row):
        return row["keys"]

    def notes(self, chosen):
        del chosen
        return ["Medians; lookups batched, at the filter's best target.",
                "x floor: lookups of absent keys over one random cache line per key."]


class _Filters(_Table):
    NAME = "filters"
    TITLE = f"Space, false positives and speed at {KEYS} keys"
    NEEDS = f"points in mode lookup_batched with negative_share 1 at {KEYS} keys"
    text_columns = ("filter", "params", "target")
    columns = ("filter", "params", "target", "bits/key", "FPR measured", "FPR expected",
                "build ns/key", "lookup ns/key", "x floor")

    def rows(self, run):
        rows = [row for row in headline.table(run, intervals=True) if row["keys"] == str(KEYS)]
        return [{c: row["lookup 100% neg" if c == "lookup ns/key" else c] for c in self.columns}
                for row in rows]

    def gaps(self, run):
        points = selection.lookups(run, negative_share=1.0)
        if (selection.filters_only(points)["keys"] == KEYS).any():
            return []
        return [selection.Gap(f"no lookups of absent keys at {KEYS:.0f} keys",
                              "filterbench run quick, or any spec with these points", fatal=True)]

    def group(self, row):
        return row["filter"] in selection.BASELINES

    def notes(self, chosen):
        del chosen
        return ["Parameters nearest to "
                f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key; medians with their "
                "intervals in brackets; batched lookups of absent keys at the filter's best target.",
                "< x: no false positive was seen, upper limit 3/queries. "
                "x floor: over one random cache line per key."]


def _span(values):
    values = sorted({int(value) for value in values if not math.isnan(value)})
    if not values:
        return None
    return f"{values[0]}" if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _bytes(value):
    for factor, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= factor:
            return f"{value / factor:.3g} {name}"
    return f"{value:g} B"


class _Machine(_Table):
    NAME = "machine"
    TITLE = "Machine, program and runs"
    NEEDS = "a manifest"
    columns = text_columns = ("what", "value")

    def choose(self, runs):
        return runs

    def runs(self, chosen):
        return chosen

    def gaps(self, runs):
        del runs
        return []

    def column_types(self):
        return r"lp{0.72\linewidth}"

    def group(self, row):
        return row["group"]

    def rows(self, runs):
        """The machine as the newest run saw it, then each run."""
        entries = [("", what, value) for what, value in self._machine(runs[-1])]
        for run in runs:
            entries += [(run.name, what, value) for what, value in self._run(run)]
        return [{"what": what, "value": str(value) if value not in (None, "") else _UNKNOWN,
                 "group": group} for group, what, value in entries]

    @staticmethod
    def _machine(run):
        environment = run.manifest.get("environment") or {}

        def get(*path):
            value = environment
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            return value
        total = get("memory", "total_bytes")
        mhz = get("frequency", "mhz")
        yield "CPU", run.cpu_brand
        yield "machine", run.machine
        yield "cores, hardware threads", ", ".join(
            str(get("topology", name) or _UNKNOWN) for name in ("cores", "hardware_threads"))
        yield "caches", ", ".join(
            f"L{c.level}{'' if c.type.lower() == 'unified' else ' ' + c.type.lower()} "
            f"{_bytes(c.size_bytes)}" for c in run.caches)
        yield "memory", _bytes(total) if total else None
        yield "clock", f"{mhz:.0f} MHz" if isinstance(mhz, (int, float)) else None
        yield "governor", get("frequency", "governor")
        yield "huge pages", get("pages", "transparent_huge_pages")
        yield "kernel", get("kernel")
        yield "hypervisor", get("hypervisor")

    @staticmethod
    def _run(run):
        provenance = run.manifest.get("provenance") or {}
        libraries = provenance.get("libraries") or {}
        points = [frame for frame in run.frames if len(frame)]
        processes = run.samples.groupby("point_id")["process"].nunique()
        yield "run", run.name + ("" if run.complete else " (INCOMPLETE)")
        yield "spec, points", f"{run.spec}, {sum(map(len, points))}"
        yield "commit", caption.commit(run)
        yield "compiler, flags, build", ", ".join(
            str(provenance.get(name) or _UNKNOWN) for name in ("compiler", "flags", "build_type"))
        yield "libraries", ", ".join(f"{name} {version}" for name, version in libraries.items()
                                     if version)
        yield "best target", run.best_target
        yield "processes per point", _span(processes)
        yield "rounds per point", _span([n for frame in points for n in frame["rounds"]])
        yield "passes per point", _span([n for frame in points for n in frame["passes"]])
        yield "confidence of intervals", ", ".join(sorted(
            {f"{100 * value:g} %" for frame in points for value in frame["confidence"].dropna()}))


_MOST_VALUES = 3   # of a knob that has many, the ends and those between
_MOST_METRICS = 3
_REPRESENTATIVE = ("Parameters nearest to "
                   f"{selection.REPRESENTATIVE_BITS_PER_KEY:g} bits per key")


def _knobs(points):
    """(the knobs that take several values among the points of one workload, those that are alike)"""
    names = [name for name in points.columns if name.startswith("knob.") and points[name].notna().any()]
    varying = [name for name in names if points[name].nunique() > 1]
    return varying, [name for name in names if name not in varying]


def _of_few_values(points):
    """Of knobs with many values the points of a few; so that a table is no list of all points."""
    for name in _knobs(points)[0]:
        values = points[name].unique()
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
            points = points[points[name].isin(selection.spread(values, _MOST_VALUES))]
    return points


def _case(row, varying):
    """What tells the points of one filter in one workload apart, as text."""
    parts = [f"{name.removeprefix('knob.')}={selection.value_label(row[name])}" for name in varying
             if row[name] is not None and row[name] == row[name]]
    if not math.isnan(row["negative_share"]):
        parts.append(f"{100 * row['negative_share']:g} % absent")
    return ", ".join(parts)


class _OfWorkloads(_Table):
    environment = "longtable"

    def _cases(self, run):
        raise NotImplementedError

    def notes(self, chosen):
        alike = []
        for name, points in self._cases(chosen):
            same = [f"{knob.removeprefix('knob.')}={selection.value_label(points[knob].iloc[0])}"
                    for knob in _knobs(points)[1]]
            alike += [f"{name}: {', '.join(same)}"] if same else []
        return [*alike, *self.sentences(chosen)]

    def group(self, row):
        return row["group"]


class _Workloads(_OfWorkloads):
    NAME = "workloads"
    TITLE = "Applications that use filters"
    NEEDS = "points of workloads"
    text_columns = ("workload", "case", "filter", "params", "metric")
    columns = ("workload", "case", "filter", "params", "bits/key", "metric", "measured", "expected",
               "ns/operation")

    def _cases(self, run):
        points = selection.best_target(selection.ok(selection.plain_keys(run.workloads)),
                                       run.best_target)
        for name, own in points.groupby("workload"):
            filters = selection.filters_only(own)
            if len(filters):
                filters = selection.representatives(filters)
            keep = filters.index.union(selection.baselines_only(own).index)
            yield name, _of_few_values(own.loc[keep])

    @staticmethod
    def _metrics(row):
        metrics = row["metrics"]
        if gets.BLOCK_READS in metrics:
            return [gets.BLOCK_READS]
        return sorted(metrics, key=lambda name: not metrics[name]["trials"] > 0)[:_MOST_METRICS]

    def rows(self, run):
        found = []
        for name, points in self._cases(run):
            varying = _knobs(points)[0]
            for row in points.sort_values(["filter", "params", *varying, "negative_share"],
                                          kind="stable").to_dict("records"):
                for metric in self._metrics(row):
                    value = row["metrics"][metric]
                    found.append({
                        "group": name, "workload": name, "case": _case(row, varying),
                        "filter": row["filter"], "params": row["params_short"],
                        "bits/key": headline.number(row["bits_per_key"]), "metric": metric,
                        "measured": str(ratios.Measured(value["value"], value["low"],
                                                        value["high"])),
                        "expected": headline.number(value["expected"]),
                        "ns/operation": str(ratios.time(row))})
        return found

    def gaps(self, run):
        if self.rows(run):
            return []
        return [selection.Gap("the run has no points of workloads",
                              "run a spec with a workload, such as lsm", fatal=True)]

    def sentences(self, chosen):
        del chosen
        return [f"{_REPRESENTATIVE}; of a knob with many values the ends and one between. Intervals "
                "in brackets: of ratios with chance in them 95 %, Clopper-Pearson; else over the "
                "rounds.",
                "expected: from the filters' own formulas, at the counts of the run; - where there "
                "is none."]


class _BreakEven(_OfWorkloads):
    NAME = "break_even"
    TITLE = "What filters of a store cost and save"
    NEEDS = (f"points of the workload {gets.OWN} of shape files with negative_share 1, of filters "
             f"and of {selection.ALWAYS_MAYBE}")
    text_columns = ("case", "filter", "params")
    columns = ("case", "filter", "params", "bits/key", "FPR", "build ns/key", "ns/get",
               "x without", "break-even gets", "KiB saved", "build ns/key more", "ns/get more",
               "MiB per CPU s")

    def _cases(self, run):
        points = gets.seeks(gets.of_files(gets.gets(run)), "absent")
        points = selection.filters_only(points[points["workload"] == gets.OWN])
        if len(points):
            yield gets.OWN, _of_few_values(points)

    def _rows(self, run):
        """(rows, reasons)"""
        reads, reasons, found = gets.Reads(run), _Reasons(), []
        for _, points in self._cases(run):
            varying = _knobs(points)[0]
            for row in points.sort_values([*varying, "filter", "bits_per_key"],
                                          kind="stable").to_dict("records"):
                case = _case(row, varying)
                cells = {"group": case, "case": case, "filter": row["filter"],
                         "params": row["params_short"],
                         "bits/key": headline.number(row["bits_per_key"]),
                         "FPR": _rate(row),
                         "build ns/key": reasons.text(reads.build_ns_per_key, row),
                         "ns/get": str(ratios.time(row)),
                         "x without": reasons.text(reads.gain, row),
                         "break-even gets": reasons.text(
                             lambda row: _count(reads.break_even_gets(row)), row)}
                if row["filter"] in gets.RIBBONS:
                    cells |= self._exchange(reads, reasons, row)
                found.append({column: "" for column in self.columns} | cells)
        return found, reasons

    @staticmethod
    def _exchange(reads, reasons, row):
        def cell(make):
            return reasons.text(lambda: make(reads.bloom_exchange(row)))

        def rate(exchange):
            return headline.number(gets.bytes_per_cpu_second(
                exchange.bytes_saved, row["keys"], exchange.build_ns_more) / 2**20)
        return {"KiB saved": cell(lambda found: headline.number(found.bytes_saved / 1024)),
                "build ns/key more": cell(lambda found: headline.number(found.build_ns_more)),
                "ns/get more": cell(lambda found: headline.number(found.get_ns_more)),
                "MiB per CPU s": cell(rate)}

    def rows(self, run):
        return self._rows(run)[0]

    def gaps(self, run):
        if not self.rows(run):
            return [selection.Gap(f"no gets of absent keys of {gets.OWN} with shape files",
                                  "run a spec with them, such as lsm", fatal=True)]
        return []

    def sentences(self, chosen):
        bloom = gets.bloom_of(gets.Reads(chosen).rows)[0]
        return ["All keys absent. x without: how many times as long a get takes without filters. "
                "break-even gets: gets of absent keys after which the filters have paid their "
                "building; each file's own, if all are alike. build ns/key: the median, from the "
                "least to the greatest of the builds.",
                f"Ribbon against Bloom ({bloom or 'none was measured'}) at the ribbon's FPR, "
                "interpolated between measured Bloom filters: memory saved, and what building and "
                "gets take more. MiB per CPU s: memory saved over the CPU time that building takes "
                "more; filters held for T seconds buy T times as many MiB seconds.",
                *self._rows(chosen)[1].lines()]


class _Reasons(ratios.Reasons):
    def text(self, value, *arguments):
        return super().text(value, *arguments).replace("- [", "n/a [", 1)

    def lines(self):
        return [line.removeprefix("- ") + "." for line in super().lines()]


def _rate(row):
    if row["fpr_measured"] == 0:
        return f"< {headline.number(300 / row['queries'])} %"
    return "-" if math.isnan(row["fpr_measured"]) else (
        f"{headline.number(100 * row['fpr_measured'])} %")


def _count(value):
    """A number of gets with its interval, which may have no end."""
    def end(number):
        return "no end" if math.isinf(number) else headline.number(number)
    if not value.has_interval():
        return headline.number(value.value)
    return f"{headline.number(value.value)} [{end(value.low)}, {end(value.high)}]"


TABLES = (_Headline(), _Filters(), _Workloads(), _BreakEven(), _Machine())


def by_name(name):
    return next(table for table in TABLES if table.NAME == name)
