"""Runs a sweep on a Slurm cluster: an array of jobs that measure a shard each, and one that merges.

    filterbench submit SPEC --shards N [OPTION...] [-- OPTION of filterbench run...]
    filterbench submit --resume DIR [--wait]    submit again what of a submission is not complete
    filterbench submit --merge DIR              merge what is complete, as the last job does

A submission is a directory, which all nodes must share:

    results/submitted/<UTC time>-<spec>/
      <spec>.json, filterbench      what is measured, and by what: copies, so that no edit and no
                                    build comes between two shards
      shards.sh, merge.sh           the jobs, as sbatch took them
      submission.json, jobs.jsonl   how they were asked for, and what their numbers are
      runs/                         runs/<machine>/<run>-shard-<I>-of-<N>/
      logs/                         <job>-shard-<I>.log, <job>-merge.log, <job>-merge.exit
      merged/                       the whole sweep: merged/<machine>/<run>/

A shard has a node for itself. One that starts again, because its node failed or by --resume, goes
on with the samples that it finds. Exit codes are those of `filterbench run`; with --wait, those of
the merged sweep.
"""

import argparse
import datetime
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from plots import command

USAGE, WRONG_ANSWERS, INCOMPLETE, INTERRUPTED = 2, 3, 5, 130

# Options of `filterbench run` that are about the measuring machine and mean nothing to a plan, with
# the number of their values.
RUN_ONLY = {"--cpu": 1, "--strict": 0, "--fork-only": 0}
# Options of `filterbench run` that a shard gets from here.
OURS = ("--shard", "--results", "--resume")

# Variables by which sbatch would take back what the scripts say.
FIXED = ("SBATCH_ARRAY_INX", "SBATCH_EXCLUSIVE", "SBATCH_JOB_NAME", "SBATCH_NO_REQUEUE",
         "SBATCH_OPEN_MODE", "SBATCH_OUTPUT", "SBATCH_REQUEUE", "SBATCH_WAIT",
         "SBATCH_MEM_PER_CPU", "SBATCH_MEM_PER_NODE")
FIXED_WHERE_GIVEN = {"partition": "SBATCH_PARTITION", "time": "SBATCH_TIMELIMIT",
                     "constraint": "SBATCH_CONSTRAINT"}

SHARDS_SH = """\
#!/bin/bash
{directives}
# A shard of the sweep: begun, or gone on with where an earlier try of it left samples.
set -euo pipefail
shopt -s nullglob
cd -- {cwd}
program={program}
spec={spec}
runs={runs}
options=({options})
shard=$SLURM_ARRAY_TASK_ID
found=()
for run in "$runs"/*/*-shard-"$shard"-of-{count}; do
  # Without a manifest nothing was measured.
  if [[ -f $run/manifest.json ]]; then found+=("$run"); fi
done
echo "shard $shard/{count} on $SLURMD_NODENAME" >&2
if ((${{#found[@]}} > 1)); then
  echo "submit: shard $shard/{count} has ${{#found[@]}} runs: move all but one away:" \
    "${{found[*]}}" >&2
  exit 2
elif ((${{#found[@]}} == 0)); then
  exec "$program" run "$spec" "${{options[@]}}" --shard "$shard/{count}" --results "$runs"
elif [[ -f ${{found[0]}}/COMPLETE ]]; then
  echo "shard $shard/{count} is complete already: ${{found[0]}}" >&2
else
  exec "$program" run "$spec" "${{options[@]}}" --shard "$shard/{count}" --resume "${{found[0]}}"
fi
"""

MERGE_SH = """\
#!/bin/bash
{directives}
# The last job: puts the shards together, or says which of them are missing.
cd -- {cwd} || exit
# The copied program has no source tree around it.
export FILTERBENCH_HOME={home}
code=0
{program} submit --merge {directory} || code=$?
echo "$code" >{logs}/"$SLURM_JOB_ID"-merge.exit
exit "$code"
"""


class Refused(Exception):
    """What the user is to be told; `code` is the exit code."""

    def __init__(self, message, code=USAGE):
        super().__init__(message)
        self.code = code


def say(message):
    print(f"submit: {message}", file=sys.stderr, flush=True)


def this_program():
    """The program whose subcommand this is; the front door names it."""
    program = os.environ.get("FILTERBENCH")
    if not program:
        program = Path(__file__).resolve().parent.parent / "build" / "release" / "filterbench"
    if not os.access(program, os.X_OK):
        raise Refused(f"{program}: no such program: build it, or call `filterbench submit`")
    return Path(program)


def source_tree():
    home = os.environ.get("FILTERBENCH_HOME")
    return Path(home).resolve() if home else Path(__file__).resolve().parent.parent


def plan_of(program, spec, options, *more):
    """What `filterbench plan` says of the sweep; its error is ours."""
    kept = []
    rest = list(options)
    while rest:
        option = rest.pop(0)
        name, has_value, _ = option.partition("=")
        if name not in RUN_ONLY:
            kept.append(option)
        elif not has_value:
            del rest[:RUN_ONLY[name]]
    done = subprocess.run([program, "plan", spec, *kept, *more, "--json"], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip() or f"filterbench plan ended with exit code {done.returncode}"
        raise Refused(said.removeprefix("filterbench: "))
    return json.loads(done.stdout)


def duration(seconds):
    return str(datetime.timedelta(seconds=round(seconds)))


def directives(options):
    """The #SBATCH lines of a script, from (name, value or None) pairs."""
    lines = []
    for name, value in options:
        if value is not None and re.search(r"[\x00-\x1f\x7f]", str(value)):
            raise Refused(f"--{name}: {value!r}: has a control character")
        lines.append(f"#SBATCH --{name}" if value is None
                     else f"#SBATCH --{name}={quoted_for_sbatch(value)}")
    return "\n".join(lines)


def quoted_for_sbatch(value):
    """A value as sbatch reads it from a line of a script: as a shell reads double quotes."""
    value = str(value)
    if re.fullmatch(r"[\w@%+=:,./&|*!\[\]-]+", value):
        return value
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'


class Submission:
    """A directory with everything that its jobs need, made whole before the first is submitted."""

    def __init__(self, directory, asked):
        self.directory = directory
        self.asked = asked
        self.count = asked["shards"]
        self.runs = directory / "runs"
        self.logs = directory / "logs"
        self.merged = directory / "merged"
        self.jobs_file = directory / "jobs.jsonl"

    @classmethod
    def open(cls, directory):
        directory = Path(directory).absolute()
        file = directory / "submission.json"
        try:
            asked = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(asked["shards"], int) or not isinstance(asked["name"], str):
                raise ValueError("shards, name: missing or of another type")
        except OSError as error:
            raise Refused(f"{file}: {error.strerror}: is {directory} a submission?") from error
        except (ValueError, TypeError, KeyError) as error:
            raise Refused(f"{file}: not a submission: {error}") from error
        return cls(directory, asked)

    @property
    def program(self):
        return self.directory / "filterbench"

    @property
    def spec(self):
        return self.directory / f"{self.asked['name']}.json"

    def scripts(self):
        """Texts of the two jobs."""
        asked = self.asked
        if "\\" in str(self.directory):
            raise Refused(f"--results: {self.directory}: sbatch cannot write logs below a path with"
                          " a backslash")
        both = [("nodes", 1), ("ntasks", 1), ("open-mode", "append")]
        both += [(name, asked[name]) for name in ("partition", "time") if asked[name]]
        own = [(name, asked[name]) for name in ("constraint", "exclude") if asked[name]]
        # Two samples on one node disturb each other: a shard has the node, and all of its memory.
        own += [("exclusive", None), ("mem", asked["mem"] or "0"), ("requeue", None)]
        given = []
        for option in asked["sbatch"]:
            match = re.fullmatch(r"--([a-z][a-z-]*)(?:=(.*))?", option, re.DOTALL)
            if not match:
                raise Refused(f"--sbatch={option}: must be --OPTION or --OPTION=VALUE of sbatch")
            given.append(match.groups())
        name = "filterbench-" + re.sub(r"[^\w.-]", "-", asked["name"])
        quote = shlex.quote
        shards = SHARDS_SH.format(
            directives=directives([("job-name", name), ("array", f"1-{self.count}"), *both, *own,
                                   *given]),
            cwd=quote(asked["working_directory"]), program=quote(str(self.program)),
            spec=quote(str(self.spec)), runs=quote(str(self.runs)), count=self.count,
            options=" ".join(map(quote, asked["run_options"])))
        merge = MERGE_SH.format(
            directives=directives([("job-name", name + "-merge"), *both, *given]),
            cwd=quote(asked["working_directory"]), home=quote(str(source_tree())),
            program=quote(str(self.program)), directory=quote(str(self.directory)),
            logs=quote(str(self.logs)))
        return {"shards.sh": shards, "merge.sh": merge}

    def command(self, script, log, *more):
        """How a job is submitted. Its log is named here, where no quoting can go wrong."""
        logs = str(self.logs).replace("%", "%%")
        return ["sbatch", "--parsable", *more, f"--output={logs}/{log}",
                str(self.directory / script)]

    def shards_command(self, shards):
        # On the command line it replaces the array of the script.
        array = [] if len(shards) == self.count else ["--array=" + ",".join(map(str, shards))]
        return self.command("shards.sh", "%A-shard-%a.log", *array)

    def merge_command(self, after):
        more = [f"--dependency=afterany:{after}", "--kill-on-invalid-dep=yes"] if after else []
        return self.command("merge.sh", "%j-merge.log", *more)

    def write(self, program, spec_source):
        scripts = self.scripts()
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        for folder in (self.directory, self.runs, self.logs):
            folder.mkdir()
        shutil.copy(program, self.program)
        self.spec.write_text(json.dumps(spec_source, indent=1) + "\n", encoding="utf-8")
        for name, text in scripts.items():
            (self.directory / name).write_text(text, encoding="utf-8")
        (self.directory / "submission.json").write_text(json.dumps(self.asked, indent=1) + "\n",
                                                        encoding="utf-8")

    def runs_of(self, shard):
        return [run for run in sorted(self.runs.glob(f"*/*-shard-{shard}-of-{self.count}"))
                if (run / "manifest.json").is_file()]

    def last_words_of(self, shard):
        """Where the newest log of a shard is, and its last line."""
        logs = sorted(self.logs.glob(f"*-shard-{shard}.log"), key=lambda log: log.stat().st_mtime)
        if not logs:
            return "it left no log"
        lines = logs[-1].read_text(encoding="utf-8", errors="replace").split("\n")
        lines = [line.rsplit("\r", 1)[-1].strip() for line in lines if line.strip()]
        return f"{logs[-1]} ends with: {lines[-1] if lines else 'nothing'}"

    def problem_of(self, shard):
        """Why a shard cannot be merged; None if it can."""
        runs = self.runs_of(shard)
        if len(runs) == 1 and (runs[0] / "COMPLETE").exists():
            return None
        if len(runs) > 1:
            return (f"shard {shard}/{self.count} has {len(runs)} runs: move all but one away: "
                    + ", ".join(map(str, runs)))
        state = f"is not complete: {runs[0]}" if runs else "measured nothing"
        return f"shard {shard}/{self.count} {state}; {self.last_words_of(shard)}"

    def open_shards(self):
        return {shard: problem for shard in range(1, self.count + 1)
                if (problem := self.problem_of(shard))}

    def whole(self):
        """The merged run; None if there is none yet."""
        return next((mark.parent for mark in self.merged.glob("*/*/COMPLETE")), None)

    def jobs(self):
        if not self.jobs_file.exists():
            return []
        return [json.loads(line) for line in self.jobs_file.read_text().splitlines()]

    def note_jobs(self, array, merge, shards):
        with open(self.jobs_file, "a", encoding="utf-8") as file:
            file.write(json.dumps({"time_utc": utc("%Y-%m-%dT%H:%M:%SZ"), "array": array,
                                   "merge": merge, "shards": shards}) + "\n")


def utc(form):
    return datetime.datetime.now(datetime.timezone.utc).strftime(form)


def slurm(*command, environment=None):
    """Output of a command of Slurm."""
    if shutil.which(command[0]) is None:
        raise Refused(f"{command[0]}: not found: this is no node of a Slurm cluster"
                      " (--dry-run shows the jobs without one)")
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, env=environment)
    if done.returncode != 0:
        raise Refused(f"{command[0]} refused: {done.stderr.strip() or done.stdout.strip()}")
    if done.stderr.strip():
        say(done.stderr.strip())
    return done.stdout.strip()


def jobs_under_way():
    """Numbers of the user's jobs; arrays by the number of the whole."""
    return set(slurm("squeue", "--me", "--noheader", "--array", "--format=%F").split())


def start(submission, shards):
    """Submits the given shards and the merge; returns the number of the merge job."""
    fixed = (*FIXED, *(variable for name, variable in FIXED_WHERE_GIVEN.items()
                       if submission.asked[name]))
    environment = {name: value for name, value in os.environ.items() if name not in fixed}

    def submit(command):
        return slurm(*command, environment=environment).split(";")[0]

    array = submit(submission.shards_command(shards)) if shards else None
    try:
        merge = submit(submission.merge_command(array))
    except Refused:
        if array:
            subprocess.run(["scancel", array], check=False)
            say(f"job {array} was cancelled: nothing would have merged its shards")
        raise
    submission.note_jobs(array, merge, shards)
    if array:
        print(f"job {array}: shards {','.join(map(str, shards))} of {submission.count}")
    print(f"job {merge}: merges them")
    print(submission.directory, flush=True)
    return merge


def wait_for(submission, merge):
    """The exit code of the merge job, once it has ended."""
    exit_file = submission.logs / f"{merge}-merge.exit"
    pause_s, failures = 1, 0
    last = None
    while True:
        try:
            numbers = jobs_under_way()
            failures = 0
        except Refused as error:  # a controller that restarts
            failures += 1
            if failures == 30:
                raise Refused(f"{error}; the jobs may go on", INCOMPLETE) from error
            numbers = {merge}
        if merge not in numbers:
            break
        complete = submission.count - len(submission.open_shards())
        if complete != last:
            say(f"{complete} of {submission.count} shards are complete")
            last = complete
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.2, 10)
    for _ in range(30):  # a shared file system may show files late
        if exit_file.exists() and (text := exit_file.read_text().strip()):
            break
        time.sleep(1)
    else:
        if not any(submission.logs.iterdir()):
            raise Refused(f"the jobs have ended and left nothing in {submission.directory}: do the"
                          " nodes share it?", INCOMPLETE)
        raise Refused(f"job {merge} has ended and merged nothing: see {submission.logs}",
                      INCOMPLETE)
    log = submission.logs / f"{merge}-merge.log"
    sys.stderr.write(log.read_text(encoding="utf-8", errors="replace"))
    if submission.whole():
        print(submission.whole())
    return int(text)


def merge_shards(submission):
    """Merges all shards, or says which are missing; returns the exit code of the whole."""
    problems = submission.open_shards()
    if problems:
        for problem in problems.values():
            say(problem)
        raise Refused(f"not merged; go on with: filterbench submit --resume "
                      f"{shlex.quote(str(submission.directory))}", INCOMPLETE)
    runs = [submission.runs_of(shard)[0] for shard in range(1, submission.count + 1)]
    code = subprocess.run([this_program(), "merge", *runs, "--into", submission.merged],
                          check=False).returncode
    if code != 0:
        return code
    return max(map(exit_code_of, runs), key=(0, INCOMPLETE, WRONG_ANSWERS).index)


def exit_code_of(run):
    """The exit code with which a complete run ended, from its records."""
    points = json.loads((run / "summary.json").read_text(encoding="utf-8"))["points"]
    statuses = {point["status"] for point in points}
    if "wrong_answers" in statuses:
        return WRONG_ANSWERS
    unstable = any(not (point.get("stability") or {}).get("stable", True) for point in points)
    return INCOMPLETE if unstable or statuses - {"ok", "skipped"} else 0


def new_directory(results, name):
    """A name for a submission that no other has."""
    first = results.absolute() / "submitted" / f"{utc('%Y%m%dT%H%M%SZ')}-{name}"
    directory, again = first, 1
    while directory.exists():
        again += 1
        directory = first.with_name(f"{first.name}-{again}")
    return directory


def begin(arguments, run_options):
    for option in run_options:
        if option.partition("=")[0] in OURS:
            raise Refused(f"{option}: is set for each shard; leave it out")
    program = this_program()
    plan = plan_of(program, arguments.spec, run_options)
    filters = plan["filters"]
    if filters == 0:
        raise Refused(f"{arguments.spec}: there is nothing to measure")
    count = min(arguments.shards, filters)
    if count < arguments.shards:
        say(f"there are only {filters} filters to build, and none is split: {count} shards")
    first = plan_of(program, arguments.spec, run_options, "--shard", f"1/{count}")
    name = plan["spec"]["name"]
    asked = {"name": name, "shards": count, "run_options": run_options,
             "working_directory": os.getcwd(), "time_utc": utc("%Y-%m-%dT%H:%M:%SZ")}
    for option in ("partition", "time", "mem", "constraint", "exclude", "sbatch"):
        asked[option] = getattr(arguments, option)

    submission = Submission(new_directory(arguments.results, name), asked)
    if arguments.dry_run:
        for script, text in submission.scripts().items():
            print(f"# {submission.directory / script}\n{text}")
        print(shlex.join(submission.shards_command(range(1, count + 1))))
        print(shlex.join(submission.merge_command("JOB")))
        return 0

    slurm("sbatch", "--version")
    try:
        submission.write(program, plan["spec"]["source"])
    except OSError as error:
        raise Refused(f"--results: {error.filename}: {error.strerror}") from error
    least, most = (duration(first[field]) for field in ("least_seconds", "most_seconds"))
    takes = least if most == least else f"{least} to {most}"
    say(f"{name}: {count} shards; the first takes {takes} on a machine like this one")
    merge = start(submission, list(range(1, count + 1)))
    return wait_for(submission, merge) if arguments.wait else 0


def go_on(submission, wait):
    under_way = jobs_under_way()
    for jobs in submission.jobs():
        alive = [job for job in (jobs["array"], jobs["merge"]) if job in under_way]
        if alive:
            raise Refused(f"{submission.directory}: job {' and '.join(alive)} of it has not ended:"
                          " wait, or scancel it")
    problems = submission.open_shards()
    for problem in problems.values():
        say(problem)
    if not problems and submission.whole():
        say("all shards are complete and merged")
        print(submission.whole())
        return 0
    merge = start(submission, list(problems))
    return wait_for(submission, merge) if wait else 0


def main(words):
    ours, run_options = words, []
    if "--" in words:
        at = words.index("--")
        ours, run_options = words[:at], words[at + 1:]
    parser = argparse.ArgumentParser(
        prog="filterbench submit", allow_abbrev=False, description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="filterbench submit SPEC --shards N [OPTION...] [-- OPTION of filterbench run...]\n"
              "       filterbench submit --resume DIR [--wait]\n"
              "       filterbench submit --merge DIR")
    parser.add_argument("spec", nargs="?", metavar="SPEC", help="name of a spec, or its file")
    parser.add_argument("--shards", type=int, metavar="N",
                        help="parts of the sweep; at most one per filter that is built")
    parser.add_argument("--results", type=command.path, default=Path("results"), metavar="DIR",
                        help="where the submission is kept (results)")
    parser.add_argument("--partition", metavar="P")
    parser.add_argument("--time", metavar="T", help="time limit of each job, as sbatch takes it")
    parser.add_argument("--mem", metavar="M", help="memory of a shard (all that the node has)")
    parser.add_argument("--constraint", metavar="C",
                        help="features of the nodes: all must have the same CPU")
    parser.add_argument("--exclude", metavar="NODES", help="nodes that are not to be used")
    parser.add_argument("--sbatch", action="append", default=[], metavar="OPTION",
                        help="one more option of all jobs: --sbatch=--account=me; may be repeated")
    parser.add_argument("--dry-run", action="store_true",
                        help="show the jobs, write and submit nothing")
    parser.add_argument("--wait", action="store_true", help="until all is merged")
    parser.add_argument("--resume", metavar="DIR", help="an earlier submission to complete")
    parser.add_argument("--merge", metavar="DIR", help="an earlier submission to merge")
    arguments = parser.parse_args(ours)

    ways = [way for way in ("spec", "resume", "merge") if getattr(arguments, way) is not None]
    if len(ways) != 1:
        parser.error("needs one of SPEC, --resume DIR, --merge DIR")
    if ways == ["spec"]:
        if arguments.shards is None or arguments.shards < 1:
            parser.error("--shards: needs a whole number of at least 1")
    else:
        allowed = {ways[0], "wait"} if ways == ["resume"] else set(ways)
        for action in parser._actions:  # what a submission was asked with holds for its resuming
            if (action.dest not in {*allowed, "help"}
                    and getattr(arguments, action.dest) != action.default):
                parser.error(f"--{action.dest.replace('_', '-')}: goes with SPEC only")
        if run_options:
            parser.error("options of filterbench run go with SPEC only")
    try:
        if ways == ["spec"]:
            return begin(arguments, run_options)
        submission = Submission.open(getattr(arguments, ways[0]))
        return merge_shards(submission) if ways == ["merge"] else go_on(submission, arguments.wait)
    except Refused as refused:
        say(refused)
        return refused.code
    except KeyboardInterrupt:
        say("interrupted; jobs that were submitted go on")
        return INTERRUPTED


if __name__ == "__main__":
    command.run(lambda: main(sys.argv[1:]))
