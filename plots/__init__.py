"""Figures and the headline table of filterbench, drawn from the files of a run alone."""

import atexit
import os
import shutil
import tempfile


def _give_matplotlib_a_directory():
    """matplotlib writes a font cache as soon as it is imported, by whatever module; without a home
    that can be written it would complain, and in one that can be made it would make it."""
    home = os.path.expanduser("~")
    if "MPLCONFIGDIR" in os.environ or (os.path.isdir(home) and os.access(home, os.W_OK)):
        return
    directory = tempfile.mkdtemp(prefix="filterbench-matplotlib-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.environ["MPLCONFIGDIR"] = directory


_give_matplotlib_a_directory()
