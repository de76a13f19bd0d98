"""Runs on this machine: one after the other in this process, or several at once, each in its own process.

Such a process is this module as a program, with its job as JSON; its progress is in the run's folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from typing import Any

from replenish.lab.jobs import WatchJobs, Work, job_from
from replenish.lab.launch.supervise import Task, check_deadline, forget_progress, progress_writer, supervise

#: What gloo and NCCL, which connect the processes of a run, report when one of them is gone.
SIGNS_OF_LOSS = ("gloo/transport", "Connection closed by peer", "Connection reset by peer", "ncclRemoteError")


def run(jobs: Sequence[Work], parallel: int, watch: WatchJobs, deadline: float | None = None) -> list[dict[str, Any]]:
    """Run jobs here, `parallel` at once; if one cannot be run, the others save and stop."""
    if parallel == 1:
        # In this process, so that `torchrun` and Fabric can make several of it.
        return [job.run(partial(_in_time, watch, deadline, place)) for place, job in enumerate(jobs)]
    start = partial(_Process, gpus=Gpus(visible_gpus(jobs)))
    return supervise(jobs, parallel, watch, start, stop_at_failure=True, deadline=deadline)


def _in_time(watch: WatchJobs, deadline: float | None, place: int, event: dict[str, Any]) -> None:
    """Pass an event on, unless the time is over."""
    if event["event"] != "end":
        check_deadline(deadline)
    if event["event"] != "beat":
        watch(place, event)


def visible_gpus(jobs: Sequence[Work]) -> list[str]:
    """Return the GPUs that processes started here can see, as CUDA_VISIBLE_DEVICES names them."""
    if all(job.hardware.accelerator in ("cpu", "mps") for job in jobs):
        return []
    if chosen := os.environ.get("CUDA_VISIBLE_DEVICES"):
        return chosen.split(",")
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


class Gpus:
    """Shares the GPUs among the runs: each new run gets those with the fewest runs.

    Example:
        >>> gpus = Gpus(["0", "1"])
        >>> [gpus.take(1) for _ in range(3)]
        [['0'], ['1'], ['0']]
        >>> gpus.release(["1"])
        >>> gpus.take(1)
        ['1']
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._runs = dict.fromkeys(names, 0)

    def take(self, count: int) -> list[str]:
        """Return the GPUs for a run that needs `count`; an empty list on a machine without GPUs."""
        chosen = sorted(self._runs, key=self._runs.__getitem__)[:count]
        for name in chosen:
            self._runs[name] += 1
        return chosen

    def release(self, names: Sequence[str]) -> None:
        """Take back the GPUs of a run that has ended."""
        for name in names:
            self._runs[name] -= 1


class _Process(Task):
    """A process that runs `main`, and sees only the GPUs that it was given."""

    def __init__(self, job: Work, gpus: Gpus) -> None:
        forget_progress(job)
        self._gpus, self._own_gpus = gpus, gpus.take(job.hardware.devices)
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(self._own_gpus)} if self._own_gpus else {}
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - a pipe would have to be read all the time
        # In a new session, so that Ctrl-C reaches the process once, from here, and not a second time from the terminal.
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, json.dumps(job.to_dict())],
            env={**os.environ, **visible, **job.environment()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._complaints,
            start_new_session=True,
        )

    def over(self) -> bool:
        return self._process.poll() is not None

    def reason(self) -> str:
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").strip().split("\n")
        self.finish()
        return lines[-1].strip() or f"it ended with exit code {self._process.returncode}"

    def stop(self, number: int) -> None:
        self._process.send_signal(number)

    def finish(self) -> None:
        self._process.wait()
        self._complaints.close()
        self._gpus.release(self._own_gpus)


def main() -> int:
    """Execute the job of the first argument; the exit code is 0, 2 for an error, 128 + signal if stopped."""
    job = job_from(json.loads(sys.argv[1]))
    write, parent = progress_writer(job.folder), os.getppid()

    def watch(event: dict[str, Any]) -> None:
        if os.getppid() != parent:
            # The process that started this one is gone. A command's processes are ended; a training can resume later.
            if event["event"] == "beat":
                raise SystemExit(1)
            os._exit(1)
        write(event)

    try:
        job.run(watch)
    except (TypeError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except RuntimeError as error:
        if (lost := lost_process(error)) is None:
            raise
        print(lost, file=sys.stderr)
        return 1
    except KeyboardInterrupt as stopped:
        write({"event": "stopped", "message": str(stopped)})
        return 128 + getattr(stopped, "signal_number", 2)
    return 0


def lost_process(error: RuntimeError) -> str | None:
    """Return a sentence for an error that means that another process of the run is gone; None for any other error."""
    message = str(error)
    if not any(sign in message for sign in SIGNS_OF_LOSS):
        return None
    reason = message.partition("\n")[0].partition(". ")[0]
    if reason.startswith("["):  # the place in gloo's source
        reason = reason.partition("] ")[2]
    return f"another process of the run was lost ({reason:.100}); give the same command again to resume"


if __name__ == "__main__":
    sys.exit(main())
