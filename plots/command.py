"""What every command of this project does around its own work."""

import argparse
import os
import pathlib
import sys
import traceback


def path(text):
    """A path of the command line, for argparse: pathlib would take an empty one for the current
    directory."""
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return pathlib.Path(text)


def run(main):
    """Ends the program with the exit code of `main()`. A reader that has seen enough (`| head`) is no
    error of ours: like other programs, 141 tells it, without a traceback."""
    # A name in any script must not end the program where the locale knows ASCII only.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered would fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except Exception:  # pylint: disable=broad-except
        # Python's own 1 would say that a regression was found.
        traceback.print_exc()
        code = 70
    sys.exit(code)
