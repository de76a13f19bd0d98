"""Runs on a Slurm cluster, by submitit: each run is a job of an array, which Slurm may stop and queue again.

The cluster's own options (partition, account, time ...) are in the variable `REPLENISH_SLURM`, spelt as for `sbatch`:
`REPLENISH_SLURM="--partition=gpu --time=4:00:00"`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from replenish.lab.atomic_files import write_atomically
from replenish.lab.config import Hardware
from replenish.lab.jobs import WatchJobs, Work, job_from
from replenish.lab.launch.supervise import Task, forget_progress, progress_writer, supervise
from replenish.lab.stopping import GivenUpError, Stopped

if TYPE_CHECKING:
    import submitit
    from submitit.helpers import DelayedSubmission

ENVIRONMENT = "REPLENISH_SLURM"
#: Submitit's files, beside the runs' folders.
LOGS = ".submitit"
JOB_ID = ".slurm-job"
#: Options that only the launcher sets: submitit and the trainer depend on them.
DECIDED_HERE = ("array", "error", "nodes", "ntasks", "ntasks_per_node", "open_mode", "output", "signal")
#: A job has a day by default, and is queued again when its time is over.
MINUTES, MOST_TIMEOUTS = 24 * 60, 100
#: How long it may take until another machine's files are visible here.
SECONDS_FOR_FILES = 15.0
#: How long a stopped job stays for the signal that asks it to be queued again, or for Slurm to end and queue it.
SECONDS_TO_BE_KILLED = 120


def run(
    jobs: Sequence[Work], parallel: int, watch: WatchJobs, deadline: float | None = None, *, cluster: str = "slurm"
) -> list[dict[str, Any]]:
    """Run jobs on a Slurm cluster, `parallel` at once, and wait for them.

    Jobs that are in the queue from an earlier call are waited for, not submitted again. A job that is preempted, or
    whose time is over, saves and is queued again. A run that could not be run does not stop the others, and a signal
    ends the waiting, not the jobs. With `cluster="local"` they are submitit's processes on this machine, which start
    all at once: for tests.
    """
    unfinished = [job for job in jobs if job.result() is None]
    on_cluster = cluster == "slurm"
    if unfinished and on_cluster and not (shutil.which("srun") and shutil.which("sbatch")):
        raise ValueError(
            "the launcher 'slurm' needs Slurm's srun and sbatch, which are not found here; give the command on a login "
            "node of the cluster, or use the launcher 'local'"
        )
    tasks = _submitted_before(unfinished) if on_cluster else {}
    new = [job for job in unfinished if job.folder not in tasks]
    for hardware in dict.fromkeys(job.hardware for job in new):
        tasks |= _submit([job for job in new if job.hardware == hardware], hardware, parallel, cluster)
    try:
        return supervise(
            jobs,
            len(jobs),  # Slurm keeps to `parallel`
            watch,
            lambda job: tasks[job.folder],
            seconds_to_save=0,
            seconds_for_files=SECONDS_FOR_FILES if on_cluster else 0,
            deadline=deadline,
        )
    except GivenUpError:
        for task in tasks.values():
            task.submitted.cancel()
            task.finish()
        raise
    except Stopped as stopped:
        numbers = " ".join(sorted({task.submitted.job_id for task in tasks.values()}))
        raise Stopped(
            f"stopped waiting, but the jobs continue on the cluster; the same command waits for them again, and this "
            f"ends them: scancel {numbers}",
            stopped.signal_number,
        ) from None


class _SlurmJob(Task):
    """A run as submitit's job. It continues when nobody waits for it, so there is nothing to stop."""

    def __init__(self, submitted: submitit.Job[Any]) -> None:
        self.submitted = submitted
        self._in_a_queue = isinstance(submitted, _submitit().SlurmJob)

    def over(self) -> bool:
        # Submitit asks for the state now and then, and does not know all states of a job that is queued again.
        return self.submitted.done() and not (self._in_a_queue and _in_queue(self.submitted.job_id))

    def reason(self) -> str:
        paths = self.submitted.task(0).paths
        for path in (paths.stderr, paths.stdout):
            lines = path.read_text(errors="replace").split("\n") if path.exists() else []
            # Submitit's own lines say that it started something, which is no reason for an end.
            if words := [line.strip() for line in lines if line.strip() and not line.startswith("submitit ")]:
                return f"{words[-1]} ({path})"
        job = self.submitted
        return f"it was killed or its machine was lost (job {job.job_id}, state {job.state}; logs in {paths.folder})"

    def finish(self) -> None:
        if not self._in_a_queue:  # processes here should not outlive the call
            self.submitted.wait()


def _submitit() -> Any:
    try:
        import submitit
    except ImportError:
        raise ValueError("submitit is not installed: pip install 'replenish[slurm]'") from None
    return submitit


def _submit(jobs: Sequence[Work], hardware: Hardware, parallel: int, cluster: str) -> dict[Path, _SlurmJob]:
    """Submit jobs that have the same hardware as one array, with the options of `REPLENISH_SLURM`."""
    submitit = _submitit()
    text = os.environ.get(ENVIRONMENT, "")
    executor = submitit.AutoExecutor(_logs(jobs[0]), cluster=cluster, slurm_max_num_timeout=MOST_TIMEOUTS)
    executor.update_parameters(
        name="replenish",
        timeout_min=MINUTES,
        nodes=hardware.num_nodes,
        tasks_per_node=hardware.devices,
        cpus_per_task=hardware.threads,
        gpus_per_node=hardware.devices if hardware.accelerator in ("cuda", "gpu") else None,
        slurm_array_parallelism=parallel,
        slurm_additional_parameters=options(text),
    )
    for job in jobs:
        job.claim()
        forget_progress(job)
    try:
        submitted = executor.submit_array([Preemptible(job) for job in jobs])
    except submitit.core.utils.FailedJobError as error:
        raise ValueError(
            f"Slurm refused the jobs: {str(error).strip().partition(chr(10))[0]}; options beside the hardware are in "
            f"{ENVIRONMENT}, now {text!r}"
        ) from error
    found = {job.folder: _SlurmJob(queued) for job, queued in zip(jobs, submitted, strict=True)}
    for folder, task in found.items():
        write_atomically(folder / JOB_ID, task.submitted.job_id.encode())
    return found


def _submitted_before(jobs: Sequence[Work]) -> dict[Path, _SlurmJob]:
    """Return the jobs of an earlier call that are still in the queue, by folder."""
    found: dict[Path, _SlurmJob] = {}
    for job in jobs:
        path = job.folder / JOB_ID
        number = path.read_text() if path.exists() else ""
        if number and _in_queue(number):
            tasks = range(job.hardware.devices * job.hardware.num_nodes)
            found[job.folder] = _SlurmJob(_submitit().SlurmJob(_logs(job), number, list(tasks)))
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


def _logs(job: Work) -> Path:
    return job.folder.absolute().parent.parent / LOGS  # the runs are in RUNS/config/seed


def options(text: str) -> dict[str, str | bool]:
    """Return the options in `REPLENISH_SLURM`: those of `sbatch`, in their long form.

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


class Preemptible:
    """A run as submitit executes it on a machine of the cluster, where it may be preempted.

    Slurm sends `SIGUSR2` (submitit's choice) before the time is over. When the job is preempted or cancelled, it sends
    `SIGTERM`, with or without the other. Submitit's handler of `SIGUSR2` would end the process at once, in the middle
    of an epoch. Here the handler passes it to the trainer as `SIGTERM`, the trainer saves after the current step, and
    then the job is queued again. So no step is lost.
    """

    def __init__(self, job: Work) -> None:
        self.job = job_from({**job.to_dict(), "folder": str(job.folder.absolute())})

    def checkpoint(self) -> DelayedSubmission:
        """Return what is queued again: the same job, since the run's folder has its checkpoint."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(Preemptible(self.job))

    def __call__(self) -> dict[str, Any]:
        """Train to the end, or save and be queued again."""
        # Before the libraries that read it are loaded.
        os.environ.update(self.job.environment())
        from submitit import JobEnvironment

        notice = signal.Signals[f"SIG{JobEnvironment.USR_SIG}"]
        queue_again: Any = signal.getsignal(notice)
        without_trainer = signal.getsignal(signal.SIGTERM)
        noticed = False

        def receive(number: int, frame: FrameType | None) -> None:
            nonlocal noticed
            noticed = True
            if signal.getsignal(signal.SIGTERM) == without_trainer:  # training has not begun: there is nothing to save
                queue_again(number, frame)
            else:
                signal.raise_signal(signal.SIGTERM)

        signal.signal(notice, receive)
        try:
            return self.job.run(progress_writer(self.job.folder))
        except Stopped as stopped:
            if noticed:
                queue_again(notice, None)  # this ends the first process
            if noticed or stopped.signal_number == signal.SIGTERM:
                # SIGUSR2 may follow. If it does not, the job has to be running when Slurm ends it: Slurm does not queue
                # a job again that ended by itself.
                time.sleep(SECONDS_TO_BE_KILLED)
            raise
