"""What is written about a figure beside it and inside its file: caption, runs, machine, commit.

NAME.caption.md and NAME.caption.tex say the same. The second is a whole \\caption command with the
label fig:NAME, for \\input inside a figure environment.
"""

from plots import load, tex

CREATOR = "filterbench figures"


def commit(run):
    """The commit that a run was measured at, short; None if the manifest does not know."""
    provenance = run.manifest.get("provenance") or {}
    name = provenance.get("git_commit")
    if not name:
        return None
    return name[:12] + (" with local changes" if provenance.get("git_dirty") else "")


def _source(run):
    """Where the data of a run come from, as a sentence."""
    return (f"Data: {'run' if run.complete else 'INCOMPLETE run'} {run.name}, spec {run.spec}, on "
            f"{run.cpu_brand or 'an unknown CPU'} (machine {run.machine}), commit "
            f"{commit(run) or 'unknown'}.")


def sentences(caption, gaps=()):
    """The caption as (title, the sentences after it)."""
    conditions = caption.conditions.strip()
    text = [f"Measured: {conditions}."] if conditions else []
    text += [caption.reading.strip()] if caption.reading.strip() else []
    text += [f"Not in the data: {gap.lack}." for gap in gaps if not gap.fatal]
    text += [_source(run) for run in caption.runs]
    return caption.title + ".", [load.one_line(sentence) for sentence in text]


def _markdown_text(text):
    return "".join("\\" + c if c in "\\`*_[]<>#|" else c for c in text)


def markdown(caption, gaps=()):
    title, text = sentences(caption, gaps)
    return f"**{_markdown_text(title)}** {_markdown_text(' '.join(text))}\n"


def latex(caption, name, gaps=()):
    title, text = sentences(caption, gaps)
    lines = [f"% {name} of {', '.join(run.name for run in caption.runs)}",
             rf"\caption[{tex.escape(title[:-1])}]{{%",
             rf"  \textbf{{{tex.escape(title)}}}", *(f"  {tex.escape(line)}" for line in text)]
    return "\n".join(lines) + f"}}\n\\label{{fig:{name}}}\n"


def subject(runs):
    return "filterbench " + "; ".join(
        f"run {run.name}, spec {run.spec}, machine {run.machine}, CPU {run.cpu_brand or 'unknown'}, "
        f"commit {commit(run) or 'unknown'}" for run in runs)


def metadata(caption, file_format):
    """What a file says about itself, for matplotlib. No date, so that the same run gives the same
    bytes."""
    about = load.one_line(subject(caption.runs))
    keywords = ["filterbench", *(run.name for run in caption.runs)]
    if file_format == "pdf":
        return {"Title": caption.title, "Subject": about, "Keywords": ", ".join(keywords),
                "Creator": CREATOR, "CreationDate": None}
    if file_format == "png":
        return {"Title": caption.title, "Description": about, "Keywords": ", ".join(keywords),
                "Software": CREATOR}
    if file_format == "svg":
        return {"Title": caption.title, "Description": about, "Keywords": keywords,
                "Creator": CREATOR, "Date": None}
    return None


def pgf_head(caption, name):
    """The comment lines at the head of a PGF file."""
    return "".join(f"% {tex.ascii_only(load.one_line(line))}\n" for line in (
        f"{caption.title}. {subject(caption.runs)}.",
        f"Keywords: filterbench, {', '.join(run.name for run in caption.runs)}",
        f"Needs \\usepackage{{pgf}}. Include it with \\input{{{name}.pgf}}, its caption with "
        f"\\input{{{name}.caption}}."))
