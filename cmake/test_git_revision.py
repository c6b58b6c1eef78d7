"""Tests of cmake/git_revision.cmake on repositories made for the purpose."""

import os
import pathlib
import re
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).with_name("git_revision.cmake")


def git(repository, *arguments):
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    command = ["git", "-C", str(repository), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def write_header(source, output, **environment):
    command = ["cmake", f"-DSOURCE_DIR={source}", f"-DOUTPUT={output}", "-P", str(SCRIPT)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    text = output.read_text()
    return dict(re.findall(r'#define FILTERBENCH_GIT_(\w+) "?(.*?)"?$', text, re.MULTILINE))


@pytest.fixture(name="output")
def make_output(tmp_path):
    return tmp_path / "build" / "git_revision.h"


@pytest.fixture(name="repository")
def make_repository(tmp_path):
    path = tmp_path / "source"
    path.mkdir()
    git(path, "init", "--quiet")
    (path / ".gitignore").write_text("ignored\n")
    (path / "file").write_text("one\n")
    git(path, "add", ".")
    git(path, "commit", "--quiet", "-m", "First")
    return path


def test_clean(repository, output):
    (repository / "ignored").write_text("x")
    facts = write_header(repository, output)
    assert facts == {"COMMIT": git(repository, "rev-parse", "HEAD"), "DIRTY": "0", "REASON": ""}
    assert len(facts["COMMIT"]) == 40


@pytest.mark.parametrize("name", ["file", "new_file"])
def test_changed_or_untracked_files_are_dirty(repository, output, name):
    (repository / name).write_text("two\n")
    assert write_header(repository, output)["DIRTY"] == "1"


def test_written_only_when_changed(repository, output):
    write_header(repository, output)
    os.utime(output, ns=(1, 1))
    write_header(repository, output)
    assert output.stat().st_mtime_ns == 1
    (repository / "file").write_text("two\n")
    write_header(repository, output)
    assert output.stat().st_mtime_ns != 1


def test_outside_of_git(tmp_path, output):
    source = tmp_path / "unpacked"
    source.mkdir()
    facts = write_header(source, output, GIT_CEILING_DIRECTORIES=str(tmp_path))
    assert facts["COMMIT"] == ""
    assert "not a git repository" in facts["REASON"]


def test_inside_of_another_repository(repository, output):
    source = repository / "third_party" / "filterbench"
    source.mkdir(parents=True)
    facts = write_header(source, output)
    assert facts["COMMIT"] == ""
    assert facts["REASON"] == "the source directory is not the top of a git repository"


def test_without_a_commit(tmp_path, output):
    source = tmp_path / "fresh"
    source.mkdir()
    git(source, "init", "--quiet")
    facts = write_header(source, output)
    assert facts["COMMIT"] == ""
    assert facts["REASON"]


def test_git_that_fails(repository, output, tmp_path):
    # CMake also looks in system directories, so a git that fails stands in for one that is missing.
    tools = tmp_path / "tools"
    tools.mkdir()
    fake = tools / "git"
    fake.write_text("#!/bin/sh\nexit 127\n")
    fake.chmod(0o755)
    facts = write_header(repository, output, PATH=f"{tools}:{os.environ['PATH']}")
    assert facts["COMMIT"] == ""
    assert facts["REASON"] == "git rev-parse --show-toplevel failed"


def test_variables_of_a_git_hook_are_ignored(repository, output, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    facts = write_header(repository, output, GIT_DIR=str(other / ".git"))
    assert facts["COMMIT"] == git(repository, "rev-parse", "HEAD")
