"""The page's script and style sheet: plots/report/src and its libraries in one file each.

    /usr/bin/python3 -m plots.report.bundle       (scripts/report-bundle, which installs npm too)

They are made once, in build/report/, and again only after their sources have changed. Libraries
come from the npm registry, exactly the versions and check sums of package-lock.json.
"""

import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

from plots import command

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
COMMAND = "scripts/report-bundle"
_SETTINGS = ("package.json", "package-lock.json", ".npmrc", "build.mjs")
_MADE = ("report.js", "report.css", "licences.json")
_STAMP = "sources.sha256"
# Node has a list of its own; whoever runs a proxy has told the machine's.
_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


class Missing(Exception):
    """There is no bundle, or not one of these sources; says how to make it."""


class Bundle(NamedTuple):
    script: str
    style: str
    licences: list  # {"name", "version", "licence", "texts": [{"file", "text"}]}


def folder():
    """Where the bundle lies."""
    return TREE / "build" / "report"


def digest():
    """Of all that the bundle is made from."""
    found = hashlib.sha256()
    for path in [HERE / name for name in _SETTINGS] + sorted((HERE / "src").iterdir()):
        data = path.read_bytes()
        found.update(f"{path.relative_to(HERE).as_posix()} {len(data)}\n".encode())
        found.update(data)
    return found.hexdigest()


def _is_current(place):
    stamp = place / _STAMP
    return (stamp.is_file() and stamp.read_text().strip() == digest()
            and all((place / name).is_file() for name in _MADE))


def read(place=None):
    """The bundle of this tree. Raises Missing."""
    place = place or folder()
    if not _is_current(place):
        state = "is older than its sources" if (place / _STAMP).exists() else "is missing"
        raise Missing(f"{place}: the bundle of the page's script {state}; `{COMMAND}` makes it, "
                      "with nodejs and npm, which it installs on Debian")
    script, style, licences = ((place / name).read_text(encoding="utf-8") for name in _MADE)
    return Bundle(script, style, json.loads(licences))


def make(place=None):
    """Makes the bundle unless it is there; whether there was something to do."""
    place = place or folder()
    place.mkdir(parents=True, exist_ok=True)
    with open(place / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two jobs that find it missing make it once
        if _is_current(place):
            return False
        with tempfile.TemporaryDirectory(prefix=".bundle-", dir=place) as work:
            for name in _SETTINGS[:3]:
                shutil.copy(HERE / name, work)
            environment = dict(os.environ)
            if os.path.exists(_CERTIFICATES):
                environment.setdefault("NODE_EXTRA_CA_CERTS", _CERTIFICATES)
            subprocess.run(["npm", "ci", "--no-progress"], cwd=work, check=True,
                           stdout=subprocess.DEVNULL, env=environment)
            out = pathlib.Path(work) / "out"
            subprocess.run(["node", HERE / "build.mjs", pathlib.Path(work) / "node_modules", out],
                           check=True)
            (place / _STAMP).unlink(missing_ok=True)
            for name in _MADE:
                os.replace(out / name, place / name)
            (place / _STAMP).write_text(digest() + "\n")
    return True


def main():
    try:
        print(f"{'made' if make() else 'up to date'}: {folder()}")
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"plots.report.bundle: {error}", file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    command.run(main)
