"""Other processors, emulated by qemu-user: kernels give the bytes and answers of filters/golden.json
there, and the program those that it gives on this machine. Nothing is timed.

x86-64 without AVX runs the ordinary program; 64-bit Arm the tree of `scripts/build aarch64
filterbench kernels_test`, with SVE of three lengths.
"""

import json
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
NATIVE = ROOT / "build/release"
AARCH64 = ROOT / "build/aarch64"
SPEC = ROOT / "workloads/specs/digests.json"
BUILD_CODE = int(os.environ.get("FILTERBENCH_CROSS_BUILD_CODE", "0"))
PACKAGES_MISSING = 77
# The curve of its law takes minutes in an emulator; its bytes and answers are among the goldens.
WITHOUT = ["--exclude", "two_choice_blocked"]
# Lookups of a key at a time, lengths and places; the rest of the kernel tests needs no other CPU.
TESTS = ("*Golden*.BytesAndAnswersAreThoseOfTheFile:*Kernel*.EveryLengthAtTheEndsOfEveryKnob"
         ":*Kernel*.LookupsThatHashTheirKeys:*Kernel*.ShortInputsDoNotFollowWhatTheStackHeld")


class Cpu(NamedTuple):
    emulator: str
    cpu: str
    tree: Path
    tests: str  # program with the golden tests
    targets: frozenset

    @property
    def command(self):
        return [self.emulator, "-cpu", self.cpu]


def _arm(cpu, *targets):
    return Cpu("qemu-aarch64", cpu, AARCH64, "kernels_test",
               frozenset(targets) | {"neon", "hwy_scalar", "scalar"})


# The targets that Highway finds: SVE of 256 bits and SVE2 of 128 have targets of their own.
CPUS = {
    # Highway's SSE4 needs the AES and CLMUL of Westmere.
    "nehalem": Cpu("qemu-x86_64", "Nehalem", NATIVE, "filters_test",
                   frozenset({"ssse3", "hwy_scalar", "scalar"})),
    "neon": _arm("cortex-a72"),
    "sve128": _arm("max,sve-max-vq=1", "sve", "sve2", "sve2_128"),
    "sve256": _arm("max,sve-max-vq=2", "sve", "sve2", "sve_256"),
    "sve512": _arm("max,sve-max-vq=4", "sve", "sve2"),
}


def _require(cpu, program):
    if shutil.which(cpu.emulator) is None:
        pytest.skip(f"{cpu.emulator} is not installed (Debian: qemu-user)")
    if cpu.tree == AARCH64 and BUILD_CODE == PACKAGES_MISSING:
        pytest.skip("the packages for aarch64 cannot be installed: see scripts/build")
    if cpu.tree == AARCH64 and BUILD_CODE != 0:
        pytest.fail(f"scripts/build aarch64 ended with {BUILD_CODE}")
    if not (cpu.tree / program).exists():
        pytest.skip(f"{cpu.tree / program} is not built (scripts/build {cpu.tree.name})")


def _environment():
    # The loader and the libraries of Arm; the x86-64 emulator takes those of the machine.
    return {**os.environ, "QEMU_LD_PREFIX": str(ROOT / "build/sysroot/arm64")}


def _run(command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          timeout=1200, check=False, **options)


def _emulated(cpu, program, *arguments):
    environment = _environment() if cpu.tree == AARCH64 else None
    return _run([*cpu.command, cpu.tree / program, *arguments], env=environment)


def _digests(run):
    """{point without its target: {target: (digest of the table, digest of the answers)}}."""
    found = {}
    for point in json.loads((run / "summary.json").read_text())["points"]:
        what = {name: value for name, value in point["point"].items() if name != "target"}
        key = json.dumps(what, sort_keys=True)
        found.setdefault(key, {})[point["point"]["target"]] = (
            tuple(point["filter_digest"]), tuple(point["answers_digest"]))
    return found


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    if not (NATIVE / "filterbench").exists():
        pytest.skip("build/release/filterbench is not built")
    results = tmp_path_factory.mktemp("native")
    done = _run([NATIVE / "filterbench", "run", SPEC, *WITHOUT, "--results", results])
    assert done.returncode == 0, done.stderr
    return _digests(Path(done.stdout.strip()))


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    """The sweep on every CPU that can be emulated here, side by side."""
    def sweep(name):
        cpu = CPUS[name]
        results = tmp_path_factory.mktemp(name)
        return _emulated(cpu, "filterbench", "run", SPEC, *WITHOUT, "--fork-only",
                         "--results", results)

    return _side_by_side(sweep, lambda cpu: "filterbench")


@pytest.fixture(scope="module")
def kernels():
    """The golden tests on every CPU that can be emulated here."""
    def test(name):
        cpu = CPUS[name]
        return _emulated(cpu, cpu.tests, f"--gtest_filter={TESTS}", "--gtest_brief=1")

    return _side_by_side(test, lambda cpu: cpu.tests)


def _side_by_side(work, program_of):
    ready = [name for name, cpu in CPUS.items()
             if shutil.which(cpu.emulator) and (cpu.tree / program_of(cpu)).exists()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(ready, pool.map(work, ready)))


@pytest.fixture
def swept(request, sweeps):
    name = request.param
    _require(CPUS[name], "filterbench")
    done = sweeps[name]
    # A program that uses what the CPU lacks dies of SIGILL, the process or a measuring child.
    assert done.returncode == 0, done.stderr
    run = Path(done.stdout.strip())
    return CPUS[name], run, json.loads((run / "manifest.json").read_text())


def test_the_spec_has_every_filter():
    program = NATIVE / "filterbench"
    if not program.exists():
        pytest.skip("build/release/filterbench is not built")
    planned = _run([program, "plan", SPEC])
    assert planned.returncode == 0, planned.stderr
    # Peers are other people's code; goldens speak of them where they are built.
    ours = set(json.loads((ROOT / "filters/golden.json").read_text())) | {"touch_lines"}
    ours -= {"leveldb_peer", "libbloom_peer"}
    lines = {line.split()[0] for line in planned.stdout.splitlines() if " keys " in line}
    assert ours <= lines, ours - lines


@pytest.mark.skipif(shutil.which("qemu-x86_64") is None or shutil.which("gcc") is None,
                    reason="qemu-x86_64 or gcc is not installed")
def test_the_emulator_refuses_avx(tmp_path):
    """Or that the ordinary program runs below it would prove nothing."""
    source = tmp_path / "avx.c"
    source.write_text('int main() { __asm__ volatile("vaddps %ymm0, %ymm0, %ymm1"); return 0; }\n')
    program = tmp_path / "avx"
    assert _run(["gcc", "-o", program, source]).returncode == 0
    refused = _run(["qemu-x86_64", "-cpu", "Nehalem", program])
    assert "Illegal instruction" in refused.stderr + refused.stdout or refused.returncode == -4


@pytest.mark.parametrize("name", CPUS)
def test_kernels_answer_like_the_goldens(name, kernels):
    cpu = CPUS[name]
    _require(cpu, cpu.tests)
    done = kernels[name]
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    passed = [line for line in done.stdout.splitlines() if "PASSED" in line]
    assert passed and int(passed[0].split("]")[1].split()[0]) > 100, done.stdout[-2000:]


# Case F15: the program runs on a CPU without AVX, whose targets it finds at start; it would die of
# SIGILL there if a file were compiled for this machine.
@pytest.mark.parametrize("swept", CPUS, indirect=True)
def test_the_cpu_has_the_targets_that_it_stands_for(swept):
    cpu, _, manifest = swept
    assert set(manifest["targets"]["supported"]) == cpu.targets


@pytest.mark.parametrize("swept", CPUS, indirect=True)
def test_digests_are_those_of_this_machine(swept, native):
    cpu, run, _ = swept
    emulated = _digests(run)
    assert set(emulated) == set(native)
    wrong = {}
    for key, of_target in emulated.items():
        (expected,) = set(native[key].values())
        wrong.update({(key, target): digests for target, digests in of_target.items()
                      if digests != expected})
    assert not wrong, f"{len(wrong)} points, the first {next(iter(wrong.items()))}"
    assert {target for of_target in emulated.values() for target in of_target} == cpu.targets


@pytest.mark.parametrize("swept", CPUS, indirect=True)
def test_nothing_of_the_machine_outside_passes_for_the_emulated_one(swept):
    cpu, _, manifest = swept
    environment = manifest["environment"]
    for name in ("caches", "mitigations"):
        assert environment[name] is None and "emulated" in environment[f"{name}_reason"], name
    assert environment["topology"]["cores"] is None
    assert "emulated" in environment["topology"]["cores_reason"]
    assert environment["cpu"]["flags"] is None
    assert environment["frequency"]["core_clock_mhz"] is None
    assert environment["frequency"]["governor"] is None
    if cpu.tree == AARCH64:
        assert environment["cpu"]["architecture"] == "aarch64"
        assert environment["cpu"]["brand"] is None
        assert manifest["machine"].startswith("aarch64-")
    else:
        assert "Nehalem" in environment["cpu"]["brand"]
        assert environment["hypervisor"] == "qemu-tcg"
