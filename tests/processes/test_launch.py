"""Several runs in parallel on this machine: the same results, one thread each, and an orderly end."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_runs import DIGITS, command, lines

from replenish.lab import Hardware
from replenish.lab.jobs import Job
from replenish.lab.launch import launch, processes, worker
from replenish.lab.runs import RunFolder

Events = list[tuple[int, dict[str, Any]]]
ONE_EPOCH = DIGITS.for_epochs(1)


def jobs_in(folder: Path, *, seeds: int = 2, **changes: Any) -> list[Job]:
    config = dataclasses.replace(ONE_EPOCH, **changes)
    return [Job(config.with_seed(seed), folder / f"seed{seed}") for seed in range(seeds)]


def wait_for(condition: Callable[[], object]) -> None:
    """Wait for an event; the limit is for a machine on which it never comes."""
    limit = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


@dataclasses.dataclass
class Both:
    folders: dict[int, Path]
    results: dict[int, list[dict[str, Any]]]
    events: dict[int, Events]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Run the same jobs sequentially and two in parallel."""
    found = Both({}, {}, {1: [], 2: []})
    for parallel in (1, 2):
        found.folders[parallel] = tmp_path_factory.mktemp(f"jobs{parallel}")
        found.results[parallel] = launch(
            jobs_in(found.folders[parallel]),
            parallel,
            lambda place, event: found.events[parallel].append((place, event)),  # noqa: B023
        )
    return found


@pytest.mark.slow
def test_parallel_runs_give_the_same_results(both: Both) -> None:
    hashes = {parallel: [result["weights_sha256"] for result in both.results[parallel]] for parallel in (1, 2)}
    assert hashes[1] == hashes[2]
    assert len(set(hashes[1])) == 2
    for seed in range(2):
        assert lines(both.folders[1] / f"seed{seed}") == lines(both.folders[2] / f"seed{seed}")
        result = RunFolder(both.folders[2] / f"seed{seed}").result()
        assert result == both.results[2][seed]
        assert result is not None
        assert result["hardware"]["threads"] == 1


@pytest.mark.slow
def test_every_run_reports_its_progress(both: Both) -> None:
    for place in range(2):
        for parallel in (1, 2):
            kinds = [event["event"] for where, event in both.events[parallel] if where == place]
            assert [kind for kind in kinds if kind != "step"] == ["start", "epoch", "end"]


class MadeUpProcess:
    """A process that reports a result after three looks."""

    under_way, most = 0, 0

    def __init__(self, *_: Any) -> None:
        self.looks = 0
        MadeUpProcess.under_way += 1
        MadeUpProcess.most = max(MadeUpProcess.most, MadeUpProcess.under_way)

    def over(self) -> bool:
        self.looks += 1
        return self.looks == 3

    def events(self) -> list[dict[str, Any]]:
        return [{"event": "end", "result": {"status": "finished"}}] if self.looks == 3 else []

    def finish(self) -> str:
        MadeUpProcess.under_way -= 1
        return ""


@pytest.mark.parametrize("parallel", [2, 3, 9])
def test_no_more_jobs_are_under_way_than_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parallel: int
) -> None:
    monkeypatch.setattr(processes, "SECONDS_BETWEEN_LOOKS", 0)
    monkeypatch.setattr(processes, "_Process", MadeUpProcess)
    monkeypatch.setattr(MadeUpProcess, "most", 0)
    results = launch(jobs_in(tmp_path, seeds=5), parallel, lambda *_: None)
    assert len(results) == 5
    assert (MadeUpProcess.most, MadeUpProcess.under_way) == (min(parallel, 5), 0)


@pytest.mark.slow
@pytest.mark.parametrize("parallel", [1, 2])
def test_finished_runs_are_reported_and_not_repeated(both: Both, parallel: int) -> None:
    folder = both.folders[1]
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*/*.*")}
    events: Events = []
    results = launch(jobs_in(folder), parallel, lambda place, event: events.append((place, event)))
    assert results == both.results[1]
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*/*.*")} == before
    assert sorted((place, event["event"]) for place, event in events) == [(place, "end") for place in range(2)]


@pytest.mark.slow
def test_a_run_that_fails_stops_the_others_after_they_save(tmp_path: Path) -> None:
    long = jobs_in(tmp_path, seeds=1, epochs=400)
    missing = Job(dataclasses.replace(ONE_EPOCH, dataset=str(tmp_path / "none.npz")), tmp_path / "missing")
    started = threading.Event()
    with pytest.raises(ChildProcessError, match=r"^the run in .*missing could not be run: .*none\.npz does not exist$"):
        launch([*long, missing], 2, lambda place, event: started.set() if event["event"] == "step" else None)
    assert not (tmp_path / "missing").exists()
    assert not (tmp_path / "seed0" / "result.json").exists()
    if started.is_set():
        assert (tmp_path / "seed0" / "checkpoint.pt").exists()


@pytest.mark.slow
def test_a_killed_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system kills a process when memory runs out."""
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nkill -9 $$\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    with pytest.raises(ChildProcessError, match=r"seed0 could not be run: it ended with exit code -9$"):
        launch(jobs_in(tmp_path, seeds=1), 2, lambda *_: None)


def test_an_error_while_waiting_leaves_no_process_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = jobs_in(tmp_path, seeds=1)
    script = tmp_path / "python"
    script.write_text(f"""#!/bin/sh\necho $$ > {tmp_path}/process\necho '{{"event": "epoch"}}'\nexec sleep 600\n""")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))

    def watch(place: int, event: dict[str, Any]) -> None:
        raise LookupError(event["event"])

    with pytest.raises(LookupError, match="epoch"):
        launch([job], 2, watch)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "process").read_text()), 0)


def test_what_a_killed_process_wrote_last_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = jobs_in(tmp_path, seeds=1)
    script = tmp_path / "python"
    script.write_text("""#!/bin/sh\necho '{"event": "start"}'\nprintf '{"event": "sta'\nsleep 9 2>&- &\nexit 1\n""")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    events: Events = []
    with pytest.raises(ChildProcessError, match="it ended with exit code 1"):  # although `sleep` holds its pipe
        launch([job], 2, lambda place, event: events.append((place, event)))
    assert [event["event"] for _, event in events] == ["start", "error"]


def test_workers_have_the_threads_of_their_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = jobs_in(tmp_path, seeds=1)
    script = tmp_path / "python"
    script.write_text("""#!/bin/sh\necho '{"event": "end", "result": {"threads": '$OMP_NUM_THREADS'}}'\n""")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    jobs = [job, dataclasses.replace(job, folder=tmp_path / "three", hardware=Hardware(threads=3))]
    assert launch(jobs, 2, lambda *_: None) == [{"threads": threads} for threads in (1, 3)]


def test_the_worker_prints_its_error_and_returns_the_exit_code(tmp_path: Path) -> None:
    job = Job(dataclasses.replace(ONE_EPOCH, dataset=str(tmp_path / "none.npz")), tmp_path / "run")
    command = [sys.executable, "-m", worker.__name__, json.dumps(job.to_dict())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"{tmp_path / 'none.npz'} does not exist\n")


@pytest.mark.slow
def test_a_worker_ends_with_its_parent(tmp_path: Path) -> None:
    """If the parent is killed, another process can resume the run."""
    (job,) = jobs_in(tmp_path, seeds=1, epochs=400)
    code = (
        "import json, sys; from replenish.lab.jobs import job_from; from replenish.lab.launch import launch\n"
        "launch([job_from(json.loads(sys.argv[1]))], 2, lambda place, event: None)"
    )
    with subprocess.Popen([sys.executable, "-c", code, json.dumps(job.to_dict())]) as parent:
        wait_for((job.folder / "metrics.jsonl").exists)
        listed = subprocess.run(["pgrep", "-P", str(parent.pid)], capture_output=True, text=True, check=True)
        parent.kill()
    worker_id = int(listed.stdout)
    wait_for(lambda: not Path(f"/proc/{worker_id}").exists() or "Z" in Path(f"/proc/{worker_id}/stat").read_text())
    assert RunFolder(job.folder).result() is None


@pytest.mark.slow
def test_sigterm_with_two_at_once_saves_and_is_exit_code_143(tmp_path: Path) -> None:
    arguments = (
        "run",
        "table3/wrn-srs-b64-120-150-175",
        "--scale",
        "digits",
        "--epochs",
        "400",
        "--seeds",
        "2",
        "--jobs",
        "2",
    )
    with subprocess.Popen(command(*arguments), cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: len(list(tmp_path.glob("runs/*/*/metrics.jsonl"))) == 2)
        process.terminate()
        _, complaint = process.communicate(timeout=300)
    assert process.returncode == 143
    assert "stopped; every run has saved, so give the same command again" in complaint
    assert "Traceback" not in complaint
    assert "\x1b" not in complaint
    assert len(list(tmp_path.glob("runs/*/*/checkpoint.pt"))) == 2


# -- the script for Slurm's arrays

ARRAY = Path(__file__).parents[2] / "examples" / "integrations" / "slurm_array.sh"


@pytest.mark.parametrize(
    ("exit_code", "state", "queued_again"),
    [(0, "RUNNING", False), (143, "RUNNING", True), (143, "COMPLETING", False), (2, "RUNNING", False)],
    ids=["ended", "time is over", "cancelled", "failed"],
)
def test_the_array_script_queues_a_stopped_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exit_code: int, state: str, queued_again: bool
) -> None:
    """Slurm is a few scripts here, and a run is its exit code."""
    for name, line in {
        "srun": 'exec "$@"',
        "replenish": f'echo "$*" > {tmp_path}/asked; exit {exit_code}',
        "squeue": f"echo {state}",
        "scontrol": f'echo "$*" > {tmp_path}/queued',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    assert subprocess.run(["bash", str(ARRAY)], check=False).returncode == exit_code
    assert "run table3 --seeds 3-3 " in (tmp_path / "asked").read_text()
    assert (tmp_path / "queued").exists() == queued_again
    if queued_again:
        assert (tmp_path / "queued").read_text() == "requeue 17\n"
