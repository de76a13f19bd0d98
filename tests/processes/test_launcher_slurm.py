"""The Slurm launcher, on submitit's processes of this machine, and on a Slurm of a few shell scripts."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from launching import CONFIG, Heard, at_step, in_this_process, signal_here, weights

from replenish.lab.config import Hardware, RunConfig
from replenish.lab.jobs import Job, plan
from replenish.lab.launch import slurm
from replenish.lab.launch.slurm import options
from replenish.lab.launch.slurm import run as run_on_slurm
from replenish.lab.launch.supervise import PROGRESS
from replenish.lab.runs.folder import METRICS, RunFolder

pytest.importorskip("submitit", reason="submitit is not installed: pip install 'replenish[slurm]'")


class Signalled(slurm.Preemptible):
    """A job that gets a signal, once, after step 30: in the middle of its second epoch."""

    number = 0

    def __call__(self) -> dict[str, Any]:
        at_step(30, partial(signal_here, self.number), self.job.folder / ".signalled")
        return super().__call__()


@pytest.fixture
def signalled(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Have the job of a seed signalled. Its process finds the class here, where the tests' own modules are."""
    honest = slurm.Preemptible

    def arm(number: int, seed: int) -> None:
        def make(job: Job) -> slurm.Preemptible:
            if job.config.seed != seed:
                return honest(job)
            made = Signalled(job)
            made.number = number
            return made

        monkeypatch.setattr(slurm, "Preemptible", make)
        here = [
            *(str(Path(__file__).parents[1] / name) for name in ("helpers", "lab", "")),
            os.environ.get("PYTHONPATH", ""),
        ]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(here))

    return arm


@pytest.mark.slow
def test_a_killed_job_is_gone_on_with_by_the_same_call_and_the_others_end(
    tmp_path: Path, signalled: Callable[[int, int], None]
) -> None:
    whole, killed = jobs = plan([CONFIG], [0, 3], tmp_path / "cluster")
    signalled(signal.SIGKILL, 3)
    heard = Heard()
    with pytest.raises(ChildProcessError) as raised:
        run_on_slurm(jobs, 2, heard, cluster="local")
    assert f"the run in {killed.folder} could not be run: it was killed or its machine was lost (job " in str(
        raised.value
    )
    assert "\n" not in str(raised.value)
    assert len((killed.folder / METRICS).read_text().splitlines()) == 1
    assert heard.kinds(0) == ["start", "epoch", "epoch", "epoch", "end"]
    assert not (whole.folder / PROGRESS).exists()

    again = Heard()
    results = run_on_slurm(jobs, 2, again, cluster="local")
    assert again.kinds(0) == ["end"]
    assert [event["step"] for _, event in again.events if event["event"] == "start"] == [22]
    assert weights(results) == in_this_process(CONFIG, [0, 3], tmp_path / "here")
    submitted = sorted(path.name for path in (tmp_path / "cluster" / slurm.LOGS).iterdir())
    assert run_on_slurm(jobs, 2, Heard(), cluster="local") == results
    assert sorted(path.name for path in (tmp_path / "cluster" / slurm.LOGS).iterdir()) == submitted


@pytest.mark.slow
def test_a_job_whose_time_is_over_saves_and_is_queued_again(
    tmp_path: Path, signalled: Callable[[int, int], None]
) -> None:
    [job] = plan([CONFIG], [4], tmp_path / "cluster")
    signalled(signal.SIGUSR2, 4)
    heard = Heard()
    results = run_on_slurm([job], 1, heard, cluster="local")
    # It goes on after the step it was at, not after its last whole epoch.
    assert [event["step"] for _, event in heard.events if event["event"] == "start"] == [0, 30]
    assert "stopped" in heard.kinds(0)
    assert weights(results) == in_this_process(CONFIG, [4], tmp_path / "here")


@pytest.mark.slow
def test_a_job_that_fails_says_why(tmp_path: Path) -> None:
    [bad] = plan([RunConfig(dataset="nowhere.npz", epochs=1)], [0], tmp_path)
    heard = Heard()
    with pytest.raises(ChildProcessError) as raised:
        run_on_slurm([bad], 2, heard, cluster="local")
    assert str(raised.value).startswith(f"the run in {bad.folder} could not be run: ")
    assert "nowhere.npz" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert heard.kinds(0) == ["error"]


def test_without_slurm_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    jobs = plan([CONFIG], [0], tmp_path / "runs")
    with pytest.raises(ValueError, match="srun and sbatch, which are not found here; give the command on a login node"):
        run_on_slurm(jobs, 1, Heard())
    assert not (tmp_path / "runs").exists()


def test_without_submitit_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(ValueError, match=r"submitit is not installed: pip install 'replenish\[slurm\]'"):
        run_on_slurm(plan([CONFIG], [0], tmp_path / "runs"), 1, Heard(), cluster="local")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("partition=gpu", "such as --partition=gpu or --exclusive, but got 'partition=gpu'"),
        ("--partition gpu", "but got 'gpu'"),
        ("--time=", "but got '--time='"),
        ("--comment='open", "No closing quotation"),
        ("--nodes=2", "should leave --nodes to the launcher"),
        ("--ntasks-per-node=2", "should leave --ntasks-per-node to the launcher"),
    ],
)
def test_bad_options_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="REPLENISH_SLURM") as raised:
        options(text)
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


# -- a Slurm of a few shell scripts: it takes jobs, and lists them as long as there is a file `queued`


@pytest.fixture
def fake_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    programs = tmp_path / "bin"
    programs.mkdir()

    def program(name: str, script: str) -> None:
        (programs / name).write_text(f"#!/bin/sh\ncd {tmp_path}\n{script}\n")
        (programs / name).chmod(0o755)

    program("srun", "exit 1")
    program("sbatch", 'cat "$1" > sbatch.sh; touch queued; echo "Submitted batch job 17"')
    program("squeue", "test -e queued && echo RUNNING || true")
    program("sacct", "echo 'JobID|State|NodeList'; test -e queued || echo '17_[0-1]|FAILED|here'")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    # The states of jobs are kept for the whole process, and the job here has always the same number.
    import submitit

    submitit.SlurmJob.watcher.clear()
    monkeypatch.setattr(submitit.SlurmJob.watcher, "_delay_s", 1)
    monkeypatch.setattr(slurm, "SECONDS_FOR_FILES", 0)
    return program


def interrupting(jobs: list[Job]) -> None:
    """Stop waiting for jobs as Ctrl-C does, as soon as somebody waits for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slurm._SlurmJob, "over", lambda self: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt, match="the jobs continue on the cluster.*scancel 17_0 17_1"):
            run_on_slurm(jobs, 1, Heard())


@pytest.mark.usefixtures("fake_slurm")
def test_jobs_are_submitted_once_with_what_they_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLENISH_SLURM", "--partition=gpu --time=4:00:00 --cpus-per-task=9 --exclusive")
    jobs = plan([CONFIG], [0, 1], tmp_path / "runs", hardware=Hardware("cuda", devices=2, num_nodes=3, threads=4))
    interrupting(jobs)
    lines = {line.removeprefix("#SBATCH --") for line in (tmp_path / "sbatch.sh").read_text().splitlines()}
    assert {"array=0-1%1", "nodes=3", "ntasks-per-node=2", "gpus-per-node=2", "cpus-per-task=9"} <= lines
    assert {"partition=gpu", "time=4:00:00", "exclusive", "job-name=replenish", "signal=USR2@90"} <= lines
    assert "cpus-per-task=4" not in lines

    # The same command waits for the jobs that are in the queue, and does not submit them again.
    (tmp_path / "sbatch.sh").unlink()
    interrupting(jobs)
    assert not (tmp_path / "sbatch.sh").exists()
    for job in jobs:
        RunFolder(job.folder).write_result({"status": "finished", "test_error": 1.0, "seed": job.config.seed})
    assert [result["seed"] for result in run_on_slurm(jobs, 1, Heard())] == [0, 1]
    assert not (tmp_path / "sbatch.sh").exists()


def test_a_job_that_leaves_the_queue_without_a_result_has_failed(
    fake_slurm: Callable[[str, str], None], tmp_path: Path
) -> None:
    jobs = plan([CONFIG], [0, 1], tmp_path / "runs")
    # They are in the queue when Slurm is asked for the first time, and not any more after that.
    known = "echo 'JobID|State|NodeList'; test -e queued || echo '17_[0-1]|FAILED|here'"
    fake_slurm("sacct", f"{known}; rm -f queued")
    log = tmp_path / "runs" / slurm.LOGS / "17_0_0_log.err"
    log.parent.mkdir(parents=True)
    log.write_text("many words\nsubmitit INFO - Starting\nslurmstepd: error: Detected 1 oom_kill event\n\n")
    with pytest.raises(ChildProcessError, match="Detected 1 oom_kill event .*and so for 1 others"):
        run_on_slurm(jobs, 2, Heard())


# -- signals in the job


class Queued(Exception):  # noqa: N818
    """Stands for the end of the process after it has been queued again."""


@pytest.fixture
def queue_again(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Handlers such as submitit's, which are in place when the job starts."""

    def queue(number: int, frame: object) -> None:
        raise Queued

    before = {number: signal.getsignal(number) for number in (signal.SIGUSR2, signal.SIGTERM)}
    signal.signal(signal.SIGUSR2, queue)
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("queue_again")
def test_sigterm_then_the_other_signal_is_queued_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Preemption: SIGTERM comes first, and is answered by saving; the job is there for what follows."""
    [job] = plan([CONFIG], [0], tmp_path)
    at_step(5, partial(signal_here, signal.SIGTERM), tmp_path / "signalled")
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        assert RunFolder(job.folder).checkpoints.load()[0] is not None
        signal.raise_signal(signal.SIGUSR2)

    monkeypatch.setattr(slurm.time, "sleep", lambda seconds: sleep(seconds) if seconds > 60 else None)
    with pytest.raises(Queued):
        slurm.Preemptible(job)()
    assert slept == [slurm.SECONDS_TO_BE_KILLED]


@pytest.mark.usefixtures("queue_again")
def test_a_job_that_does_not_train_yet_is_queued_again_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Job, "run", lambda self, watch: signal.raise_signal(signal.SIGUSR2))
    [job] = plan([CONFIG], [0], tmp_path)
    again = slurm.Preemptible(job)
    with pytest.raises(Queued):
        again()
    assert again.checkpoint().function.job == again.job
