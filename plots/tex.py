"""Text for LaTeX: escapes, and the characters beyond ASCII that figures and tables use.

What is written compiles with pdflatex, in any document that loads pgf or booktabs and nothing else.
"""

import os
import shutil
import subprocess

PROGRAM = "pdflatex"
PACKAGES = "texlive-latex-base texlive-latex-recommended texlive-pictures"  # of Debian

# Characters of our own text; names from files keep those of ASCII only.
CHARACTERS = {
    **{digit: rf"\textsuperscript{{{number}}}" for number, digit in enumerate(
        "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")},
    "\u00d7": r"\ensuremath{\times}", "\u00b7": r"\ensuremath{\cdot}",
    "\u2264": r"\ensuremath{\leq}", "\u2265": r"\ensuremath{\geq}",
    "\u2248": r"\ensuremath{\approx}", "\u2192": r"\ensuremath{\rightarrow}",
    "\u2212": r"\ensuremath{-}", "\u00b1": r"\ensuremath{\pm}", "\u00b5": r"\ensuremath{\mu}",
    "\u03bc": r"\ensuremath{\mu}", "\u2013": "--", "\u2014": "---", "\u2026": r"\ldots{}",
    "\u200a": r"\,", "\u00a0": "~",
}
# < and > are other characters in LaTeX's first font encoding.
_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\ensuremath{<}", ">": r"\ensuremath{>}", "|": r"\ensuremath{|}", '"': "''",
}


def escape(text):
    """Plain text as LaTeX; characters that are not in CHARACTERS by their code point."""
    return "".join(_ESCAPES.get(c) or CHARACTERS.get(c)
                   or (c if c.isascii() and c.isprintable() else f"U+{ord(c):04X}") for c in text)


def ascii_only(text):
    """LaTeX text with the characters beyond ASCII replaced."""
    return "".join(c if c.isascii() else CHARACTERS.get(c, f"U+{ord(c):04X}") for c in text)


def preamble():
    """Makes LaTeX know CHARACTERS, for measuring text that holds them."""
    return "\n".join(rf"\DeclareUnicodeCharacter{{{ord(c):04X}}}{{{command}}}"
                     for c, command in CHARACTERS.items())


def lacking():
    """What is missing for LaTeX to set text, and its remedy; None if nothing is."""
    # TeX finds its files from where its program lies; an empty environment does not say where.
    os.environ.setdefault("PATH", os.defpath)
    remedy = f"apt-get install --no-install-recommends {PACKAGES}"
    if shutil.which(PROGRAM) is None:
        return f"{PROGRAM}, which measures the text of such a figure, is not installed", remedy
    for file in ("article.cls", "graphicx.sty", "underscore.sty"):
        if shutil.which("kpsewhich") and subprocess.run(
                ["kpsewhich", file], stdout=subprocess.DEVNULL, cwd="/", check=False).returncode != 0:
            return f"LaTeX is installed without {file}", remedy
    return None
