"""filterbench figures: draws the figures of runs, and their tables.

    filterbench figures RUN... [--theme THEME] [--width WIDTH] [--format LIST] [--out DIR]
    filterbench figures --list

What was written goes to stdout, one path a line; what a figure lacks, and how to measure it, to
stderr. Beside each figure lie NAME.caption.md and NAME.caption.tex with its title, how to read it,
run, machine and commit.

One run: its figures go to RUN/figures, or to --out. Several runs of a machine: each figure is drawn
once, from the run that shows most of it (the most series, then the most values, then the fewest
gaps, then the newest run), into --out. Runs of several machines: the same in DIR/<machine>, and
figures across machines in DIR, if there is one run of each. Nothing outside that folder is written,
and a file appears there complete or not at all.

Exit codes: 0 all that was asked for was written; 2 usage, or a run that cannot be read; 5 a figure,
a table or a format that was asked for could not be made, or a file not be written. Asked for are all
figures, or those of --only; with --allow-missing it is enough that there is one.
"""

import argparse
import dataclasses
import difflib
import io
import os
import pathlib
import re
import sys
import tempfile

from plots import caption, command, tables, tex
from plots import (block_reads, build_vs_keys, construction, cpu_vs_cpu, double_hashing,
                   fpr_vs_bits, fpr_vs_overfill, load, lookup_vs_negatives, lookup_vs_size,
                   overhead_vs_fpr, read_gain, simd_gain, space_vs_speed, speed_vs_load, style,
                   winner_map)

# A figure is a module with NAME, TITLE, NEEDS, gaps(run) -> [Gap] and draw(run) -> Figure, and its
# line here. preference(run), if it has one, is asked before what a run shows.
FIGURES = (
    fpr_vs_bits,
    overhead_vs_fpr,
    lookup_vs_size,
    build_vs_keys,
    space_vs_speed,
    winner_map,
    lookup_vs_negatives,
    speed_vs_load,
    fpr_vs_overfill,
    double_hashing,
    construction,
    block_reads,
    simd_gain,
    read_gain,
)
# Figures of several machines: the same, with the list of runs in place of the run.
ACROSS = (
    cpu_vs_cpu,
)
FORMATS = ("png", "pdf", "svg", "pgf")
DEFAULT_FORMATS = {"screen": "png,pdf", "dark": "png,pdf", "slides": "png,pdf",
                   "paper": "pdf,pgf,png"}
PROGRAM = "filterbench figures"

EXIT_USAGE = 2
EXIT_INCOMPLETE = 5


def _say(text):
    print(f"{PROGRAM}: {load.one_line(text)}", file=sys.stderr)


def _choice(names, what):
    def parse(text):
        chosen = [part.strip() for part in text.split(",") if part.strip()]
        for name in chosen:
            if name not in names:
                near = difflib.get_close_matches(name, names, 1, 0.4)
                hint = f"did you mean {near[0]}? " if near else ""
                raise argparse.ArgumentTypeError(
                    f"unknown {what} {name!r}; {hint}valid: {', '.join(names)}")
        if not chosen:
            raise argparse.ArgumentTypeError(f"names no {what}; valid: {', '.join(names)}")
        return chosen
    return parse


def listing():
    """Every figure and table with what it needs."""
    lines = []
    for head, entries in (("figures of a run:", FIGURES), ("figures of several machines:", ACROSS),
                          ("tables of a run:", tables.TABLES)):
        lines += [head, *(f"  {entry.NAME:20} {entry.TITLE}; needs {entry.NEEDS}"
                          for entry in entries)]
    return "\n".join(lines)


def _parser():
    names = [entry.NAME for entry in (*FIGURES, *ACROSS, *tables.TABLES)]
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=__doc__.split("\n\n", 2)[2].rsplit("\n\n", 1)[0],
        epilog=listing() + "\n\n" + __doc__.rsplit("\n\n", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="a run directory")
    parser.add_argument("--out", type=command.path, metavar="DIR",
                        help="where the figures go (default: RUN/figures)")
    parser.add_argument("--only", type=_choice(names, "figure"), action="append", metavar="NAME",
                        help="this figure or table; may be repeated")
    parser.add_argument("--theme", choices=style.THEMES, default="screen",
                        help="screen (default) and dark have title and source in the picture, paper "
                             "(serif, small) and slides (large) have not")
    parser.add_argument("--width", choices=style.WIDTHS,
                        help=", ".join(f"{name} {inches} in" for name, inches in
                                       style.WIDTHS.items()) + "; default by theme: screen, dark "
                             "screen; paper column; slides text")
    parser.add_argument("--format", type=_choice(FORMATS, "format"), metavar="LIST",
                        help="of png, pdf, svg, pgf; default png,pdf, of paper pdf,pgf,png")
    parser.add_argument("--tables", action="store_true",
                        help="the tables too, as LaTeX and Markdown; the theme paper has them anyway")
    parser.add_argument("--allow-missing", action="store_true",
                        help="exit with 0 even if some figures could not be drawn")
    parser.add_argument("--list", action="store_true",
                        help="print every figure and table with what it needs, and end")
    return parser


def figures_folder(run, out):
    """Where the figures of `run` go. Raises OSError if RUN/figures leads out of the run."""
    if out is not None:
        return out
    folder = run.path / "figures"
    if folder.is_symlink():
        raise OSError(None, "is a link out of the run; name the folder with --out", str(folder))
    return folder


def write(folder, name, content):
    """Writes folder/name in one step, so that no reader and no second job meets half a file; a link
    of that name is replaced, not followed."""
    folder.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{name}-", dir=folder)
    target = folder / name
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise
    return target


def rendered(figure, name, file_format):
    """The bytes of a finished figure in a format; for pgf it was made for a page with `tex`."""
    with style.on(figure.page):
        if file_format != "pgf":
            content = io.BytesIO()
            figure.savefig(content, format=file_format, dpi=figure.page.dpi,
                           metadata=caption.metadata(figure.caption, file_format))
            return content.getvalue()
        text = io.StringIO()
        figure.savefig(text, format="pgf")
    # matplotlib's own head names a preamble that the file does not need.
    body = re.sub(r"\A(?:%%.*\n)+", "", text.getvalue())
    return (caption.pgf_head(figure.caption, name) + tex.ascii_only(body)).encode("ascii")


def shown(figure):
    """(series, values) that a figure shows of its run."""
    series, values = set(), 0
    for axes in figure.axes:
        for artist in axes.get_children():
            gid = artist.get_gid() or ""
            if not gid.startswith(("measured:", "upper_limit:")):
                continue
            series.add(gid.split(":", 1)[1])
            if hasattr(artist, "get_xdata"):
                values += len(artist.get_xdata())
            elif hasattr(artist, "get_offsets"):
                values += len(artist.get_offsets())
    return len(series), values


class _Drawing:
    """What is to be drawn, how, and what came of it."""

    def __init__(self, options):
        self.theme, self.width = options.theme, options.width
        self.formats = list(dict.fromkeys(
            options.format or DEFAULT_FORMATS[options.theme].split(",")))
        self.written = self.lacking = 0
        lack = tex.lacking() if "pgf" in self.formats else None
        if lack:
            self.lacking += 1
            self.formats.remove("pgf")
            _say(f"no pgf is written: {lack[0]}; to have it: {lack[1]}")

    def page(self, for_tex=False):
        return style.make_page(self.theme, self.width, for_tex)

    def gaps(self, entry, subject, name=""):
        """The gaps of a figure, after having said them."""
        found = entry.gaps(subject)
        for gap in found:
            outcome = "not drawn" if gap.fatal else "drawn without it"
            _say(f"{name}{entry.NAME}: {gap.lack} ({outcome}); to measure it: {gap.remedy}")
        return found

    def best(self, entry, runs):
        """The run that shows most of a figure (the rule is in --help), or None."""
        able = [run for run in runs if not any(gap.fatal for gap in entry.gaps(run))]
        if len(able) <= 1:
            return able[0] if able else None

        def rank(run):
            with style.on(dataclasses.replace(self.page(), is_sketch=True)):
                what = shown(entry.draw(run))
            prefers = getattr(entry, "preference", lambda run: 0)
            return (prefers(run), *what, -len(entry.gaps(run)), run.name)
        return max(able, key=rank)

    def figure(self, entry, subject, folder, gaps):
        """Draws and writes a figure with its caption."""
        figures = {}
        for file_format in self.formats:
            for_tex = file_format == "pgf"
            if for_tex not in figures:
                with style.on(self.page(for_tex)):
                    figures[for_tex] = entry.draw(subject)
            self._write(folder, f"{entry.NAME}.{file_format}",
                        rendered(figures[for_tex], entry.NAME, file_format))
        if not figures:  # its only format is the one that cannot be had
            return
        said = next(iter(figures.values())).caption
        self._write(folder, f"{entry.NAME}.caption.md", caption.markdown(said, gaps).encode())
        self._write(folder, f"{entry.NAME}.caption.tex",
                    caption.latex(said, entry.NAME, gaps).encode())

    def table(self, entry, runs, folder):
        """Writes a table, of the run that has most rows of it, or of all runs."""
        chosen = entry.choose(runs)
        if any(gap.fatal for gap in self.gaps(entry, chosen)):
            self.lacking += 1
            return
        rows = entry.rows(chosen)
        for ending, text in (("tex", entry.latex(chosen, rows)),
                             ("md", entry.markdown(chosen, rows))):
            self._write(folder, f"{entry.NAME}.{ending}", text.encode())

    def machine(self, entries, runs, folder):
        """The figures of one machine."""
        for entry in entries:
            run = self.best(entry, runs)
            if run is None:
                self.lacking += 1
                said = set()
                for run in reversed(runs):
                    if not said or {gap.lack for gap in entry.gaps(run)} - said:
                        said |= {gap.lack for gap in self.gaps(entry, run, f"{run.name}: ")}
                continue
            self.figure(entry, run, folder, self.gaps(entry, run, f"{run.name}: "))

    def across(self, entries, runs, folder):
        for entry in entries:
            gaps = self.gaps(entry, runs)
            if any(gap.fatal for gap in gaps):
                self.lacking += 1
            else:
                self.figure(entry, runs, folder, gaps)

    def _write(self, folder, name, content):
        print(write(folder, name, content), flush=True)
        self.written += 1


def main(arguments=None):
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        print(listing())
        return 0
    if not options.runs:
        parser.error("name a run directory, or --list")
    only = [name for names in options.only or [] for name in names]
    try:
        runs = load.load_runs(options.runs)
    except load.RunError as error:
        _say(str(error))
        return EXIT_USAGE
    for run in runs:
        for note in run.notes:
            _say(note)
    by_machine = {}
    for run in sorted(runs, key=lambda run: run.name):
        if set(run.machine) & {"/", "\\", "\0"} or run.machine.startswith("."):
            _say(f"{run.path}: machine {run.machine!r} is no name of a directory")
            return EXIT_USAGE
        by_machine.setdefault(run.machine, []).append(run)
    one_of_each = len(by_machine) == len(runs) > 1
    figures = [entry for entry in FIGURES if not only or entry.NAME in only]
    across = [entry for entry in ACROSS if entry.NAME in only or not only and one_of_each]
    wanted = [entry for entry in tables.TABLES if entry.NAME in only or not only and (
        options.tables or options.theme == "paper")]
    if options.out is None and (len(runs) > 1 or across):
        _say("figures of several runs need a folder: name it with --out")
        return EXIT_USAGE
    drawing = _Drawing(options)
    try:
        drawing.across(across, runs, options.out)
        for machine, its_runs in by_machine.items():
            folder = figures_folder(its_runs[0], options.out)
            if len(by_machine) > 1:
                folder = folder / machine
            drawing.machine(figures, its_runs, folder)
            for entry in wanted:
                drawing.table(entry, its_runs, folder)
    except OSError as error:
        _say(f"cannot write {error.filename or options.out}: {error.strerror or error}")
        return EXIT_INCOMPLETE
    if not drawing.lacking or options.allow_missing and drawing.written:
        return 0
    return EXIT_INCOMPLETE


if __name__ == "__main__":
    command.run(main)
