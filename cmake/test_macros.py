"""Names in the preprocessor's conditions exist: a mistyped one would leave code out in silence."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DIRECTIVE = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b(.*)$")
# Defined by one compiler of several, on another processor, under a sanitizer, by a flag, or words
# of the language.
OF_COMPILERS = {
    "__SANITIZE_ADDRESS__", "__SANITIZE_THREAD__", "__has_feature", "address_sanitizer",
    "memory_sanitizer", "thread_sanitizer", "__clang__", "__clang_major__", "__GNUC__",
    "__has_include", "__aarch64__", "NDEBUG", "defined", "true", "false",
}


def used() -> dict[str, str]:
    """Every name that a condition of ours asks for, and where."""
    names = {}
    for folder in ("filters", "harness", "workloads"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".h", ".cc"):
                continue
            lines = path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
            for line in lines:
                match = DIRECTIVE.match(line.split("//")[0])
                if not match:
                    continue
                condition = re.sub(r'"[^"]*"|<[^>]*\.h>', "", match[2])
                for name in re.findall(r"[A-Za-z_]\w*", condition):
                    if not name.endswith("_H_") and "_H_" not in name:
                        names.setdefault(name, str(path.relative_to(ROOT)))
    return names


def predefined() -> set[str]:
    names = set()
    for march in ("x86-64", "x86-64-v3", "x86-64-v4", "sapphirerapids"):
        done = subprocess.run(["g++", f"-march={march}", "-dM", "-E", "-x", "c++", "/dev/null"],
                              capture_output=True, text=True)
        names |= set(re.findall(r"^#define (\w+)", done.stdout, re.MULTILINE))
    return names


def defined_somewhere() -> set[str]:
    """By our own sources and build files, by Highway and by the C library's headers that we ask."""
    texts = [path.read_text(encoding="utf-8", errors="replace")
             for folder in ("filters", "harness", "workloads")
             for path in (ROOT / folder).rglob("*") if path.suffix in (".h", ".cc")]
    names = set(re.findall(r"#\s*define\s+(\w+)", "\n".join(texts)))
    build = "\n".join(path.read_text(encoding="utf-8", errors="replace")
                      for pattern in ("CMakeLists.txt", "cmake/*", "CMakePresets.json")
                      for path in ROOT.glob(pattern) if path.is_file())
    names |= set(re.findall(r"\b(?:FILTERBENCH|HWY)_\w+", build))
    for root in ("/usr/include/hwy", "/usr/include/x86_64-linux-gnu", "/usr/include/linux"):
        for path in Path(root).rglob("*.h"):
            names |= set(re.findall(r"#\s*define\s+(\w+)", path.read_text(errors="replace")))
    return names


# Case B9: every name that code of ours depends on is one that a compiler, Highway, the build or our
# own sources define; with a typing error in it a kernel would never be compiled.
def test_every_name_in_a_condition_is_defined_by_somebody():
    if not predefined():
        pytest.skip("no g++")
    if not Path("/usr/include/hwy/highway.h").exists():
        pytest.skip("no Highway")
    known = predefined() | defined_somewhere() | OF_COMPILERS
    names = used()
    assert len(names) > 10
    assert {name: path for name, path in names.items() if name not in known} == {}
