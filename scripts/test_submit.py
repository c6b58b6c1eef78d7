"""Submission to a cluster: with stand-ins for Slurm's programs, and on a real Slurm of one node that
is started for it and stopped after it."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(os.environ.get("FILTERBENCH", ROOT / "build/release/filterbench"))

PLAN = {"spec": {"name": "my sweep", "source": {"sweeps": [{"filters": {"xor": {}}}]}},
        "filters": 5, "least_seconds": 30.0, "most_seconds": 90.0}


def script(path, body):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/bash\n" + body)
    path.chmod(0o755)
    return path


@pytest.fixture
def stand_in(tmp_path):
    """A program and a Slurm that only say how they were called, at paths that ask for quoting."""
    work = tmp_path / "it's a \"place\""
    work.mkdir()
    log = tmp_path / "log"
    programs = tmp_path / "bin"
    for name in ("bash", "scontrol"):
        if shutil.which(name):
            programs.mkdir(exist_ok=True)
            (programs / name).symlink_to(shutil.which(name))
    program = script(tmp_path / "build" / "filterbench",
                     'printf "%s\\n" "filterbench $*" >>"$LOG"\n'
                     '[[ $1 != plan || $2 != unknown ]] || { echo "filterbench: unknown spec" >&2;'
                     " exit 2; }\n"
                     f"[[ $1 != plan ]] || echo {shlex.quote(json.dumps(PLAN))}\n")
    script(programs / "sbatch", 'echo "sbatch $*" >>"$LOG"\n[[ $1 != --version ]] || exit 0\n'
                                'env | grep ^SBATCH >>"$LOG"\necho 17\n')
    (programs / "env").symlink_to("/usr/bin/env")
    (programs / "grep").symlink_to(shutil.which("grep"))
    script(programs / "squeue", 'echo "$JOBS"\n')
    script(programs / "scancel", 'echo "scancel $*" >>"$LOG"\n')

    def call(*arguments, **variables):
        environment = {"PATH": str(programs), "LOG": str(log), "JOBS": "",
                       "FILTERBENCH": str(program), "PYTHONPATH": str(ROOT),
                       "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(["/usr/bin/python3", "-m", "scripts.submit", *map(str, arguments)],
                              cwd=work, env=environment | variables, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=60)

    def calls(name):
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if line.startswith(name + " ")]

    call.work, call.programs, call.log, call.calls, call.program = (
        work, programs, log, calls, program)
    return call


def submitted(call, *arguments, **variables):
    done = call("my.json", "--shards", 3, *arguments, **variables)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[-1])


def made(path):
    return sorted(str(entry.relative_to(path)) for entry in path.rglob("*"))


def test_a_dry_run_shows_all_and_makes_nothing(stand_in):
    (stand_in.programs / "sbatch").unlink()
    done = stand_in("my.json", "--shards", 3, "--dry-run", "--time", "1:00", "--", "--seed", 7)
    assert done.returncode == 0, done.stderr
    assert made(stand_in.work) == []
    for line in ("#SBATCH --array=1-3", "#SBATCH --exclusive", "#SBATCH --ntasks=1",
                 "#SBATCH --time=1:00", "#SBATCH --requeue", "options=(--seed 7)"):
        assert line in done.stdout.splitlines()
    commands = [shlex.split(line) for line in done.stdout.splitlines()
                if line.startswith("sbatch ")]
    assert [Path(command[-1]).name for command in commands] == ["shards.sh", "merge.sh"]
    assert commands[0][-1].startswith(f"{stand_in.work}/results/submitted/")


def test_the_shards_are_submitted_and_then_their_merge(stand_in):
    directory = submitted(stand_in, "--partition", "p")
    assert directory.parent == stand_in.work / "results" / "submitted"
    assert directory.name.endswith("Z-my sweep")
    _, shards, merge = stand_in.calls("sbatch")
    logs = directory / "logs"
    assert shards == f"sbatch --parsable --output={logs}/%A-shard-%a.log {directory}/shards.sh"
    assert merge == (f"sbatch --parsable --dependency=afterany:17 --kill-on-invalid-dep=yes"
                     f" --output={logs}/%j-merge.log {directory}/merge.sh")
    assert made(directory) == ["filterbench", "jobs.jsonl", "logs", "merge.sh", "my sweep.json",
                               "runs", "shards.sh", "submission.json"]
    assert json.loads((directory / "my sweep.json").read_text()) == PLAN["spec"]["source"]
    assert (directory / "filterbench").read_bytes() == stand_in.program.read_bytes()
    for name in ("shards.sh", "merge.sh"):
        assert "#SBATCH --partition=p\n" in (directory / name).read_text()


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_the_jobs_are_sound_shell(stand_in):
    directory = submitted(stand_in, "--", "--filter", "a'b $c `d`")
    for name in ("shards.sh", "merge.sh"):
        check = subprocess.run(["shellcheck", "--severity=warning", directory / name], text=True,
                               capture_output=True, check=False)
        assert check.stdout == "" and check.returncode == 0


def test_the_sweep_is_planned_as_it_will_be_run(stand_in):
    submitted(stand_in, "--", "--filter", "x", "--cpu", "3", "--strict", "--cpu=2", "--seed", "7")
    assert stand_in.calls("filterbench") == [
        "filterbench plan my.json --filter x --seed 7 --json",
        "filterbench plan my.json --filter x --seed 7 --shard 1/3 --json"]


def test_no_filter_is_split(stand_in):
    done = stand_in("my.json", "--shards", 9)
    assert done.returncode == 0 and "only 5 filters" in done.stderr
    assert "#SBATCH --array=1-5\n" in (
        Path(done.stdout.splitlines()[-1]) / "shards.sh").read_text()


def test_two_submissions_of_a_second_have_their_own_directories(stand_in):
    assert len({submitted(stand_in) for _ in range(4)}) == 4


def test_the_environment_does_not_take_back_what_was_asked(stand_in):
    submitted(stand_in, "--time", "5", SBATCH_ARRAY_INX="9", SBATCH_NO_REQUEUE="1",
              SBATCH_TIMELIMIT="1", SBATCH_PARTITION="p", SBATCH_ACCOUNT="me")
    kept = [line for line in stand_in.log.read_text().splitlines() if line.startswith("SBATCH")]
    assert sorted(set(kept)) == ["SBATCH_ACCOUNT=me", "SBATCH_PARTITION=p"]


@pytest.mark.parametrize("arguments, problem", [
    (["my.json"], "--shards: needs a whole number of at least 1"),
    (["my.json", "--shards", "0"], "--shards: needs a whole number of at least 1"),
    (["my.json", "--shards", "-3"], "--shards"),
    (["my.json", "--shards", "two"], "invalid int value: 'two'"),
    (["--shards", "3"], "needs one of SPEC, --resume DIR, --merge DIR"),
    (["my.json", "--shards", "3", "--resume", "d"], "needs one of"),
    (["my.json", "--shards", "3", "--partiton", "p"], "--partiton"),
    (["unknown", "--shards", "3"], "unknown spec"),
    (["my.json", "--shards", "3", "--", "--resume", "d"], "--resume: is set for each shard"),
    (["my.json", "--shards", "3", "--", "--results=d"], "--results=d: is set for each shard"),
    (["my.json", "--shards", "3", "--time", "1\n#SBATCH --wrap=x"], "--time: '1\\n"),
    (["my.json", "--shards", "3", "--sbatch", "account"], "--sbatch=account: must be --OPTION"),
    (["my.json", "--shards", "3", "--results", "a\\b"], "backslash"),
    (["my.json", "--shards", "3", "--results", "/proc/none"], "--results: /proc/none"),
    (["--resume", "d", "--shards", "3"], "--shards: goes with SPEC only"),
    (["--merge", "d", "--dry-run"], "--dry-run: goes with SPEC only"),
    (["--merge", "d", "--", "--seed", "7"], "go with SPEC only"),
    (["--resume", "nowhere"], "nowhere/submission.json: No such file"),
])
def test_what_cannot_be_is_refused_before_anything_is_submitted(stand_in, arguments, problem):
    done = stand_in(*arguments)
    assert done.returncode == 2
    assert problem in done.stderr and "Traceback" not in done.stderr
    assert [call for call in stand_in.calls("sbatch") if call != "sbatch --version"] == []
    assert made(stand_in.work) == []


def test_a_results_directory_that_cannot_be_written_is_named(stand_in):
    (stand_in.work / "results").write_text("a file")
    done = stand_in("my.json", "--shards", 3)
    assert done.returncode == 2 and f"--results: {stand_in.work}/results" in done.stderr


def test_without_slurm_it_says_so(stand_in):
    (stand_in.programs / "sbatch").unlink()
    done = stand_in("my.json", "--shards", 3)
    assert done.returncode == 2 and "sbatch: not found" in done.stderr
    assert made(stand_in.work) == []


def test_shards_whose_merge_is_refused_are_cancelled(stand_in):
    script(stand_in.programs / "sbatch",
           'case "$*" in *--dependency*) echo "no such partition" >&2; exit 1;; esac\necho 17\n')
    done = stand_in("my.json", "--shards", 3)
    assert done.returncode == 2 and "sbatch refused: no such partition" in done.stderr
    assert stand_in.calls("scancel") == ["scancel 17"]


def test_a_refusal_of_the_shards_is_passed_on(stand_in):
    script(stand_in.programs / "sbatch",
           '[[ $1 == --version ]] || { echo "too long" >&2; exit 1; }\n')
    done = stand_in("my.json", "--shards", 3)
    assert done.returncode == 2 and "sbatch refused: too long" in done.stderr
    assert stand_in.calls("scancel") == []


def run_of(directory, shard, complete, status="ok", count=3, machine="m"):
    run = directory / "runs" / machine / f"20261201T000000Z-nogit-12345678-shard-{shard}-of-{count}"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text("{}")
    points = [{"status": "ok"}, {"status": status}]
    (run / "summary.json").write_text(json.dumps({"points": points}))
    if complete:
        (run / "COMPLETE").touch()
    return run


def task(call, directory, shard):
    """Runs the script of the shards as Slurm would."""
    before = len(call.calls("filterbench"))
    done = subprocess.run(["/bin/bash", directory / "shards.sh"], text=True, capture_output=True,
                          check=False, env={"PATH": str(call.programs), "LOG": str(call.log),
                                            "SLURMD_NODENAME": "n",
                                            "SLURM_ARRAY_TASK_ID": str(shard)})
    return done, call.calls("filterbench")[before:]


def test_a_task_begins_goes_on_with_or_leaves_its_shard(stand_in):
    directory = submitted(stand_in, "--", "--seed", "7")
    spec = f"{directory}/my sweep.json"
    done, calls = task(stand_in, directory, 2)
    assert done.returncode == 0, done.stderr
    assert calls == [f"filterbench run {spec} --seed 7 --shard 2/3 --results {directory}/runs"]

    run = run_of(directory, 2, complete=False)
    run_of(directory, 1, complete=True)
    (directory / "runs" / "m" / "20261201T000001Z-nogit-12345678-shard-2-of-3").mkdir()
    done, calls = task(stand_in, directory, 2)
    assert calls == [f"filterbench run {spec} --seed 7 --shard 2/3 --resume {run}"]

    (run / "COMPLETE").touch()
    done, calls = task(stand_in, directory, 2)
    assert done.returncode == 0 and calls == [] and "complete already" in done.stderr

    run_of(directory, 2, complete=False, machine="another")
    done, calls = task(stand_in, directory, 2)
    assert done.returncode == 2 and calls == [] and "shard 2/3 has 2 runs" in done.stderr


def test_merging_names_every_shard_that_is_missing(stand_in):
    directory = submitted(stand_in)
    run_of(directory, 1, complete=True)
    unfinished = run_of(directory, 3, complete=False)
    (directory / "logs" / "17-shard-2.log").write_text("shard 2/3 on n\nno such CPU\n\n")
    done = stand_in("--merge", directory)
    assert done.returncode == 5
    assert (f"shard 2/3 measured nothing; {directory}/logs/17-shard-2.log ends with: no such CPU"
            in done.stderr)
    assert f"shard 3/3 is not complete: {unfinished}; it left no log" in done.stderr
    assert "shard 1/3" not in done.stderr
    assert f"filterbench submit --resume {shlex.quote(str(directory))}" in done.stderr
    assert [call for call in stand_in.calls("filterbench") if " merge" in call] == []


@pytest.mark.parametrize("status, code", [("ok", 0), ("skipped", 0), ("wrong_answers", 3),
                                          ("crashed", 5), ("out_of_memory", 5)])
def test_merging_ends_with_the_worst_code_of_the_shards(stand_in, status, code):
    directory = submitted(stand_in)
    runs = [run_of(directory, shard, complete=True, status=status if shard == 2 else "ok")
            for shard in (1, 2, 3)]
    done = stand_in("--merge", directory)
    assert done.returncode == code, done.stderr
    assert stand_in.calls("filterbench")[-1] == (
        f"filterbench merge {runs[0]} {runs[1]} {runs[2]} --into {directory}/merged")


def test_resuming_submits_what_is_not_complete(stand_in):
    directory = submitted(stand_in)
    run_of(directory, 2, complete=True)
    done = stand_in("--resume", directory)
    assert done.returncode == 0, done.stderr
    assert " --array=1,3 " in stand_in.calls("sbatch")[-2]
    assert [json.loads(line)["shards"] for line in
            (directory / "jobs.jsonl").read_text().splitlines()] == [[1, 2, 3], [1, 3]]


def test_resuming_a_submission_whose_jobs_have_not_ended_is_refused(stand_in):
    directory = submitted(stand_in)
    before = len(stand_in.calls("sbatch"))
    done = stand_in("--resume", directory, JOBS="4\n17\n170")
    assert done.returncode == 2 and "job 17" in done.stderr
    assert len(stand_in.calls("sbatch")) == before


def test_what_is_complete_and_merged_is_left_alone(stand_in):
    directory = submitted(stand_in)
    for shard in (1, 2, 3):
        run_of(directory, shard, complete=True)
    before = len(stand_in.calls("sbatch"))
    assert stand_in("--resume", directory).returncode == 0
    assert len(stand_in.calls("sbatch")) == before + 1  # the merge alone
    merged = directory / "merged" / "m" / "r"
    merged.mkdir(parents=True)
    assert stand_in("--resume", directory).returncode == 0
    assert len(stand_in.calls("sbatch")) == before + 2  # a merge that was cut off
    (merged / "COMPLETE").touch()
    done = stand_in("--resume", directory)
    assert done.returncode == 0 and done.stdout == f"{merged}\n"
    assert len(stand_in.calls("sbatch")) == before + 2


def test_a_submission_that_is_none_is_refused(stand_in, tmp_path):
    for text in ("[]", "{", "{}", '{"shards": "3", "name": "x"}'):
        (tmp_path / "submission.json").write_text(text)
        done = stand_in("--merge", tmp_path)
        assert done.returncode == 2 and "submission.json: not a submission" in done.stderr


# From here on: a real Slurm.

SLURM_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scancel", "setpriv")
SLURM_CONF = """\
ClusterName=filterbench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
CredType=cred/munge
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=100 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def search_path():
    """Daemons lie in sbin, which a user's path may leave out."""
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def why_no_slurm():
    if os.geteuid() != 0:
        return "Slurm's daemons need root"
    missing = [name for name in SLURM_PROGRAMS if shutil.which(name, path=search_path()) is None]
    if missing:
        return f"not installed (slurm-wlm, munge): {', '.join(missing)}"
    if not PROGRAM.exists():
        return f"{PROGRAM} is not built"
    return None


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class OneNodeSlurm:
    """A cluster of this machine, whose files lie in one directory; stop() leaves no process."""

    def __init__(self, home):
        self.home = home
        self.daemons = []
        self.environment = os.environ | {"SLURM_CONF": str(home / "slurm.conf"),
                                         "PATH": search_path()}

    def start(self):
        for name in ("state", "spool"):
            (self.home / name).mkdir()
        key = self.home / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        ports = free_ports(2)
        host = socket.gethostname().split(".")[0]
        (self.home / "slurm.conf").write_text(SLURM_CONF.format(
            host=host, home=self.home, controller_port=ports[0], node_port=ports[1],
            cpus=os.cpu_count()))
        self._daemon("munged", "--foreground", "--force", "--num-threads=2",
                     *(f"--{name}={self.home}/munge.{end}" for name, end in (
                         ("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"),
                         ("log-file", "log"), ("seed-file", "seed"))))
        self._until("munged opens its socket", (self.home / "munge.socket").exists, 10)
        conf = str(self.home / "slurm.conf")
        self._daemon("slurmctld", "-D", "-f", conf)
        self._daemon("slurmd", "-D", "-f", conf, "-N", host)
        self._until("its node is idle", lambda: self.said(
            "sinfo", "--noheader", "--format=%T") == "idle", 60)

    def _daemon(self, name, *arguments):
        with open(self.home / f"{name}.out", "wb") as output:
            # Ends with this process, however that ends.
            self.daemons.append(subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", name, *arguments], env=self.environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.home))

    def _until(self, what, holds, seconds):
        deadline = time.monotonic() + seconds
        while not holds():
            ended = [daemon.args[3] for daemon in self.daemons if daemon.poll() is not None]
            if ended or time.monotonic() > deadline:
                tails = "".join(f"\n{file.name}: {text[-300:]}" for file in sorted(
                    self.home.glob("*.out")) if (text := file.read_text(errors="replace")))
                raise RuntimeError(f"{ended[0]} ended" if ended else
                                   f"waited {seconds} s until {what}" + tails)
            time.sleep(0.1)

    def said(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              check=False, timeout=60).stdout.strip()

    def stop(self):
        if len(self.daemons) == 3:
            self.said("scancel", "--state=PENDING", "--user=root")
            self.said("scancel", "--user=root")
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)

    def processes(self):
        """Whatever runs by the configuration of this cluster: keepers of jobs, and jobs."""
        mark = f"SLURM_CONF={self.home}/slurm.conf".encode()
        found = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in environ.read_bytes().split(b"\0"):
                    found.append(int(environ.parent.name))
            except OSError:  # it has ended
                continue
        return found


@pytest.fixture(scope="module")
def slurm():
    if reason := why_no_slurm():
        pytest.skip(reason)
    # Not below pytest's own directory: a socket's path has at most 107 characters.
    home = Path(tempfile.mkdtemp(prefix="slurm-"))
    cluster = OneNodeSlurm(home)
    try:
        try:
            cluster.start()
        except RuntimeError as error:
            pytest.skip(f"Slurm does not start: {error}")
        yield cluster
    finally:
        cluster.stop()
        left = cluster.processes()
        shutil.rmtree(home, ignore_errors=True)
        assert left == []


TINY = {
    "measure": {"seed": 5, "processes": 2, "max_processes": 2, "rounds": 1, "passes": 2,
                "width": None, "pass_seconds": 1e-4, "stream_lookups": 4096,
                "fpr_queries": 10000},
    "sweeps": [{"filters": {"touch_lines": {}, "blocked_bloom": {"bits_per_key": [8, 10, 12]},
                            "xor": {}, "cuckoo": {}}, "keys": [1000, 10000],
                "modes": ["build", "lookup_batched"], "negative_shares": [0, 1]}]}


@pytest.fixture
def cluster(slurm, tmp_path):
    """Calls of the real program on the real cluster, from a directory that asks for quoting."""
    work = tmp_path / "it's a \"100 %j\" place"
    work.mkdir()
    (work / "tiny.json").write_text(json.dumps(TINY))

    def call(*arguments, program=(PROGRAM,), **variables):
        return subprocess.run([*program, *map(str, arguments)], cwd=work, text=True,
                              env=slurm.environment | variables, stdin=subprocess.DEVNULL,
                              capture_output=True, check=False, timeout=300)

    call.work = work
    return call


def documents(run):
    return json.loads((run / "manifest.json").read_text()), json.loads(
        (run / "summary.json").read_text())


def facts(summary):
    """What does not depend on time: what was measured, on which filters, with which answers."""
    return {point["point_id"]: (point["status"], point["filter_digest"], point["answers_digest"])
            for point in summary["points"]}


def the_merged(directory):
    (mark,) = directory.glob("merged/*/*/COMPLETE")
    return mark.parent


def test_a_sweep_in_three_shards_is_the_sweep(cluster):
    done = cluster("submit", "tiny.json", "--shards", 3, "--wait", "--time", "10",
                   "--sbatch=--comment=it's 100 % \"mine\"", "--", "--seed", "9")
    assert done.returncode == 0, done.stderr
    directory = Path(done.stdout.splitlines()[2])
    shards = sorted(directory.glob("runs/*/*"))
    manifests = [documents(run)[0] for run in shards]
    assert sorted(one["shard"]["index"] for one in manifests) == [0, 1, 2]
    for run, one in zip(shards, manifests):
        assert run.name.endswith(f"-shard-{one['shard']['index'] + 1}-of-3")

    whole = cluster("run", "tiny.json", "--seed", "9", "--results", "whole")
    assert whole.returncode == 0, whole.stderr
    manifest, summary = documents(cluster.work / whole.stdout.strip())
    assert {one["spec_hash"] for one in manifests} == {manifest["spec_hash"]}
    assert facts(documents(the_merged(directory))[1]) == facts(summary)
    assert done.stdout.splitlines()[-1] == str(the_merged(directory))
    measured = [point for run in shards for point in facts(documents(run)[1])]
    assert len(measured) == len(set(measured)) and set(measured) == set(facts(summary))


# Shard 2 dies as soon as it has written two samples, the first time that it is run.
DIES_ONCE = """\
if [[ $* != *"--shard 2/3"* || -e {mark} ]]; then exec {program} "$@"; fi
touch {mark}
{program} "$@" &
for ((i = 0; i < 3000; ++i)); do
  lines=$(cat "${{@: -1}}"/*/*-shard-2-of-3/samples.jsonl 2>/dev/null | wc -l)
  if ((lines >= 2)); then break; fi
  sleep 0.01
done
kill -KILL $!
wait
echo "killed by the test" >&2
exit 137
"""


def test_a_shard_that_died_is_named_and_resumed(cluster, tmp_path):
    slow = dict(TINY, measure=TINY["measure"] | {"pass_seconds": 0.02})
    (cluster.work / "tiny.json").write_text(json.dumps(slow))
    program = script(tmp_path / "wrapped" / "filterbench", DIES_ONCE.format(
        program=shlex.quote(str(PROGRAM)), mark=shlex.quote(str(tmp_path / "mark"))))
    done = cluster("tiny.json", "--shards", 3, "--wait",
                   program=("/usr/bin/python3", "-m", "scripts.submit"),
                   FILTERBENCH=str(program), PYTHONPATH=str(ROOT))
    assert done.returncode == 5, done.stderr
    directory = Path(done.stdout.splitlines()[2])
    (unfinished,) = [run for run in directory.glob("runs/*/*") if not (run / "COMPLETE").exists()]
    assert f"shard 2/3 is not complete: {unfinished}; {directory}/logs/" in done.stderr
    assert "-shard-2.log ends with: killed by the test" in done.stderr
    assert "submit --resume" in done.stderr
    assert not (directory / "merged").exists()

    before = (unfinished / "samples.jsonl").read_text()
    before = before[:before.rfind("\n") + 1]
    assert before.count("\n") >= 2
    done = cluster("submit", "--resume", directory, "--wait")
    assert done.returncode == 0, done.stderr
    assert (unfinished / "samples.jsonl").read_text().startswith(before)
    points = [point for run in directory.glob("runs/*/*") for point in facts(documents(run)[1])]
    assert len(points) == len(set(points))
    assert set(facts(documents(the_merged(directory))[1])) == set(points)
