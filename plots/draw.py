"""Draws the figures of runs:

    /usr/bin/python3 -m plots.draw RUN... [--out DIR] [--only NAME] [--format png,pdf]

What was written goes to stdout, one path a line; what a figure lacks, and how to measure it, to
stderr. Each run gets its own figures, in RUN/figures unless --out; with several runs and --out, in
DIR/<run>. Figures across machines go to DIR itself: they need --out and runs of two machines, one
of each. Nothing outside that folder is written, and a file appears there complete or not at all.

Exit codes: 0 ok; 2 usage, or a run that cannot be read; 5 a figure that was asked for by name could
not be drawn, or none could, or a file could not be written.
"""

import argparse
import difflib
import os
import pathlib
import sys
import tempfile

from plots import command
from plots import (block_reads, build_vs_keys, construction, cpu_vs_cpu, double_hashing,
                   fpr_vs_bits, load, lookup_vs_negatives, lookup_vs_size, space_vs_speed, style)

# A figure is a module with NAME, TITLE, NEEDS, gaps(run) -> [Gap] and draw(run) -> Figure, and its
# line here.
FIGURES = (
    fpr_vs_bits,
    lookup_vs_size,
    build_vs_keys,
    lookup_vs_negatives,
    space_vs_speed,
    double_hashing,
    construction,
    block_reads,
)
# Figures of several machines: the same, with the list of runs in place of the run.
ACROSS = (
    cpu_vs_cpu,
)
FORMATS = ("png", "pdf", "svg")

EXIT_USAGE = 2
EXIT_INCOMPLETE = 5


def _say(text):
    print(f"plots.draw: {load.one_line(text)}", file=sys.stderr)


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


def _parser():
    figures = "\n".join(f"  {m.NAME:20} {m.TITLE}; needs {m.NEEDS}" for m in FIGURES + ACROSS)
    parser = argparse.ArgumentParser(
        prog="plots.draw", description="Draws the figures of runs.", epilog="figures:\n" + figures,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run directory")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR",
                        help="where the figures go (default: RUN/figures)")
    parser.add_argument("--only", type=_choice([m.NAME for m in FIGURES + ACROSS], "figure"),
                        action="append", metavar="NAME", help="this figure; may be repeated")
    parser.add_argument("--format", type=_choice(FORMATS, "format"), default=["png", "pdf"],
                        metavar="LIST", help="png, pdf, svg; default png,pdf")
    return parser


def figures_folder(run, out, several):
    """Where the figures of `run` go. Raises OSError if RUN/figures leads out of the run."""
    if out is not None:
        return out / run.name if several else out
    folder = run.path / "figures"
    if folder.is_symlink():
        raise OSError(None, "is a link out of the run; name the folder with --out", str(folder))
    return folder


def save(figure, folder, name, file_format, metadata):
    """Writes folder/name.file_format in one step, so that no reader and no second job meets half a
    file; a link of that name is replaced, not followed."""
    folder.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{name}-", suffix=f".{file_format}", dir=folder)
    target = folder / f"{name}.{file_format}"
    try:
        with os.fdopen(handle, "wb") as file:
            figure.savefig(file, format=file_format, dpi=figure.page.dpi, metadata=metadata)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise
    return target


def _drawable(module, subject, name):
    """Whether the module can draw `subject`, a run or several; says what it lacks."""
    gaps = module.gaps(subject)
    for gap in gaps:
        outcome = "not drawn" if gap.fatal else "drawn without it"
        _say(f"{name}{module.NAME}: {gap.lack} ({outcome}); to measure it: {gap.remedy}")
    return not any(gap.fatal for gap in gaps)


def draw_across(module, runs, folder, formats):
    """Draws and writes a figure of several machines; returns the paths."""
    figure = module.draw(runs)
    return [save(figure, folder, module.NAME, file_format,
                 style.metadata(style.together(runs), module.TITLE, file_format))
            for file_format in formats]


def draw_run(run, folder, modules, formats):
    """Draws and writes; returns the names of the figures that were written."""
    drawn = []
    for module in modules:
        if not _drawable(module, run, f"{run.name}: "):
            continue
        figure = module.draw(run)
        for file_format in formats:
            print(save(figure, folder, module.NAME, file_format,
                       style.metadata(run, module.TITLE, file_format)), flush=True)
        drawn.append(module.NAME)
    return drawn


def main(arguments=None):
    options = _parser().parse_args(arguments)
    only = [name for names in options.only or [] for name in names]
    modules = [m for m in FIGURES if not only or m.NAME in only]
    across = [m for m in ACROSS if m.NAME in only]
    if across and options.out is None:
        _say(f"{across[0].NAME} is a figure of several runs: name the folder with --out")
        return EXIT_USAGE
    try:
        runs = load.load_runs(options.runs)
    except load.RunError as error:
        _say(str(error))
        return EXIT_USAGE
    for run in runs:
        for note in run.notes:
            _say(note)
    code = 0
    if not only and options.out is not None and len({run.machine for run in runs}) == len(runs) > 1:
        across = ACROSS
    for module in across:
        try:
            if not _drawable(module, runs, ""):
                code = EXIT_INCOMPLETE if only else code
                continue
            for path in draw_across(module, runs, options.out, dict.fromkeys(options.format)):
                print(path, flush=True)
        except OSError as error:
            _say(f"cannot write {error.filename or module.NAME}: {error.strerror or error}")
            return EXIT_INCOMPLETE
    for run in runs if modules else ():
        try:
            folder = figures_folder(run, options.out, len(runs) > 1)
            drawn = draw_run(run, folder, modules, dict.fromkeys(options.format))
        except OSError as error:
            _say(f"cannot write {error.filename or run.name}: {error.strerror or error}")
            return EXIT_INCOMPLETE
        if not drawn or (only and len(drawn) < len(modules)):
            code = EXIT_INCOMPLETE
    return code


if __name__ == "__main__":
    command.run(main)
