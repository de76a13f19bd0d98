"""Runs on a Slurm cluster, by submitit: each run a job, all of them arrays, stopped and queued again as Slurm likes.

What a cluster wants to be told (partition, account, time ...) is in the variable `REPLENISH_SLURM`, spelt as for
`sbatch`: `REPLENISH_SLURM="--partition=gpu --time=4:00:00"`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replenish.lab.config import Hardware
from replenish.lab.jobs import Job, WatchJobs
from replenish.lab.launchers.following import SECONDS_BETWEEN_LOOKS, Following, first_line, forget_progress
from replenish.lab.launchers.preemptible import Preemptible
from replenish.lab.records import RunFolder
from replenish.lab.whole_files import write_whole

if TYPE_CHECKING:
    import submitit

ENVIRONMENT = "REPLENISH_SLURM"
#: Submitit's files, beside the runs' folders.
LOGS = ".submitit"
JOB_ID = ".slurm-job"
#: What the launcher itself decides, so that submitit and the trainer find what they expect.
DECIDED_HERE = ("array", "error", "nodes", "ntasks", "ntasks_per_node", "open_mode", "output", "signal")
#: A job has a day, unless told otherwise, and is queued again when it is over.
MINUTES, MOST_TIMEOUTS = 24 * 60, 100
#: How long another machine's files may take to be seen here.
SECONDS_FOR_FILES = 15


def run_on_slurm(
    jobs: Sequence[Job], parallel: int, watch: WatchJobs, *, cluster: str = "slurm"
) -> list[dict[str, Any]]:
    """Run jobs on a Slurm cluster, `parallel` at once, and wait for them.

    Jobs that are in the queue from an earlier call are waited for, not submitted again. A job that is preempted, or
    whose time is over, saves where it stands and is queued again.

    Args:
        jobs: What to run. Their folders have to be on a file system that all machines see.
        parallel: How many of them Slurm may run at once (of each kind of hardware, if there are several).
        watch: Told of what happens.
        cluster: "slurm", or "local" for submitit's processes on this machine, which start all at once: for tests.

    Raises:
        KeyboardInterrupt: Stopped waiting; the jobs go on.
        ChildProcessError: A run could not be run; the others have been run to their end.
        ValueError: There is no Slurm here, or it refuses the jobs.
    """
    following = Following(jobs, watch)
    if not following.unfinished:
        return following.results()
    if cluster == "slurm" and not (shutil.which("srun") and shutil.which("sbatch")):
        raise ValueError(
            "--launcher slurm needs Slurm's srun and sbatch, which are not found here; give the command on a login "
            "node of the cluster, or use --launcher local"
        )
    waiting = _submitted_before(jobs, following.unfinished) if cluster == "slurm" else {}
    new = [place for place in following.unfinished if place not in waiting]
    for hardware in dict.fromkeys(jobs[place].hardware for place in new):
        alike = [place for place in new if jobs[place].hardware == hardware]
        waiting |= _submit(jobs, alike, hardware, parallel, cluster)
    try:
        _wait(waiting, following, on_this_machine=cluster == "local")
    except KeyboardInterrupt:
        numbers = " ".join(sorted({job.job_id for job in waiting.values()}))
        raise KeyboardInterrupt(
            f"stopped waiting, but the jobs go on on the cluster; the same command waits for them again, and this ends "
            f"them: scancel {numbers}"
        ) from None
    return following.results()


def _submit(
    jobs: Sequence[Job], places: Sequence[int], hardware: Hardware, parallel: int, cluster: str
) -> dict[int, submitit.Job[Any]]:
    """Submit the jobs of some places, which have the same hardware, as one array."""
    submitit = _submitit()
    executor = submitit.AutoExecutor(_logs(jobs), cluster=cluster, slurm_max_num_timeout=MOST_TIMEOUTS)
    gpus = hardware.devices if hardware.accelerator in ("cuda", "gpu") else None
    executor.update_parameters(
        name="replenish",
        timeout_min=MINUTES,
        nodes=hardware.num_nodes,
        tasks_per_node=hardware.devices,
        cpus_per_task=hardware.threads,
        gpus_per_node=gpus,
        slurm_array_parallelism=parallel,
        slurm_additional_parameters=options(os.environ.get(ENVIRONMENT, "")),
    )
    for place in places:
        RunFolder(jobs[place].folder).claim(jobs[place].config)
        forget_progress(jobs[place].folder)
    try:
        submitted = executor.submit_array([Preemptible(jobs[place]) for place in places])
    except submitit.core.utils.FailedJobError as error:
        raise ValueError(
            f"Slurm refused the jobs: {first_line(str(error))}; what it is told beside the hardware is in "
            f"{ENVIRONMENT}, now {os.environ.get(ENVIRONMENT, '')!r}"
        ) from error
    for place, job in zip(places, submitted, strict=True):
        write_whole(jobs[place].folder / JOB_ID, job.job_id.encode())
    return dict(zip(places, submitted, strict=True))


def _wait(waiting: dict[int, submitit.Job[Any]], following: Following, on_this_machine: bool) -> None:
    """Follow jobs until all have ended; those that have are taken out."""
    patience = 0 if on_this_machine else SECONDS_FOR_FILES
    gone: dict[int, float] = {}  # since when a job that has no result is over
    while waiting:
        time.sleep(SECONDS_BETWEEN_LOOKS)
        for place, job in list(waiting.items()):
            over = _is_over(job)  # asked before looking: what it wrote until then is seen
            if following.look(place):
                if over or not on_this_machine:  # processes here should not outlive the call
                    del waiting[place]
            elif not over:
                gone.pop(place, None)
            elif time.monotonic() - gone.setdefault(place, time.monotonic()) >= patience:
                following.fail(place, _last_words(job))
                del waiting[place]


def _is_over(job: submitit.Job[Any]) -> bool:
    # Submitit asks for the state now and then, and does not know all states of a job that is queued again.
    return job.done() and not (isinstance(job, _submitit().SlurmJob) and _in_queue(job.job_id))


def _submitted_before(jobs: Sequence[Job], places: Sequence[int]) -> dict[int, submitit.Job[Any]]:
    """Return the jobs of an earlier call that are still in the queue, by place."""
    found: dict[int, submitit.Job[Any]] = {}
    for place in places:
        path = jobs[place].folder / JOB_ID
        number = path.read_text() if path.exists() else ""
        if number and _in_queue(number):
            tasks = range(jobs[place].hardware.devices * jobs[place].hardware.num_nodes)
            found[place] = _submitit().SlurmJob(_logs(jobs), number, list(tasks))
    return found


def _in_queue(number: str) -> bool:
    command = ["squeue", "--noheader", f"--jobs={number}", "--format=%T"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:  # no squeue
        return False
    if answer.returncode:  # a controller that does not answer has not forgotten its jobs
        return "Invalid job id" not in answer.stderr
    return bool(answer.stdout.strip())


def _last_words(job: submitit.Job[Any]) -> str:
    paths = job.task(0).paths
    for path in (paths.stderr, paths.stdout):
        lines = path.read_text(errors="replace").split("\n") if path.exists() else []
        if words := [line.strip() for line in lines if line.strip()]:
            return f"{words[-1]} ({path})"
    return f"job {job.job_id} left no log in {paths.folder}"


def _logs(jobs: Sequence[Job]) -> Path:
    return jobs[0].folder.absolute().parent.parent / LOGS  # the runs are in RUNS/config/seed


def options(text: str) -> dict[str, str | bool]:
    """Return what `REPLENISH_SLURM` says: options of `sbatch`, in their long form.

    Example:
        >>> options("--partition=gpu --time=4:00:00 --exclusive --comment='for the table'")
        {'partition': 'gpu', 'time': '4:00:00', 'exclusive': True, 'comment': 'for the table'}
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{ENVIRONMENT} should be options of sbatch, but got {text!r}: {error}") from None
    found: dict[str, str | bool] = {}
    for word in words:
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not name or (equals and not value):
            raise ValueError(
                f"{ENVIRONMENT} should be options of sbatch such as --partition=gpu or --exclusive, but got {word!r}"
            )
        name = name.replace("-", "_")  # as submitit names them
        if name in DECIDED_HERE:
            raise ValueError(f"{ENVIRONMENT} should leave {word.partition('=')[0]} to the launcher, but got {word!r}")
        found[name] = value if equals else True
    return found


def _submitit() -> Any:
    try:
        import submitit
        import submitit.core.utils
    except ImportError:
        raise ValueError("submitit is not installed: pip install 'replenish[slurm]'") from None
    return submitit
