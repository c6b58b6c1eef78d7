"""The tables of a paper, as LaTeX (booktabs) and Markdown: NAME.tex and NAME.md.

headline     what plots.headline prints: one row per key count, filter and parameters (longtable, since
             it may be longer than a page)
filters      space, FPR and speed by filter at KEYS keys, with the intervals of times
machine      machine, caches, compiler, commit, spec, processes and rounds of all runs

The LaTeX files hold the bare table, for \\input into a table environment (headline.tex as it is);
packages: booktabs, and longtable for headline.tex. Every number is taken from the files of the run.
"""

import math

from plots import caption, headline, load, selection, tex

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


TABLES = (_Headline(), _Filters(), _Machine())
