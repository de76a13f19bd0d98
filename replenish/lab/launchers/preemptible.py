"""A run inside a Slurm job: what it does when Slurm wants the machine back. Submitit pickles it and calls it there."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from types import FrameType
from typing import TYPE_CHECKING, Any

from replenish.lab.jobs import Job
from replenish.lab.launchers.following import tell_progress

if TYPE_CHECKING:
    from submitit.helpers import DelayedSubmission

#: How long a stopped job stays for the signal that asks it to be queued again, or for Slurm to end and queue it.
SECONDS_TO_BE_KILLED = 120


class Preemptible:
    """A run as submitit executes it on a machine of the cluster, where it may be asked to make room.

    Slurm's signals are `SIGUSR2` (submitit chose it) before the time is over, and `SIGTERM`, with or without the other,
    when the job is preempted or cancelled. Submitit's handler of the first ends the process at once, in the middle
    of an epoch; here it waits until the trainer, which knows `SIGTERM`, has saved after the step that it is at. So a
    run that is queued again has lost no step.

    Args:
        job: The run.

    Example:
        >>> from pathlib import Path
        >>> from replenish.lab.config import RunConfig
        >>> Preemptible(Job(RunConfig(), Path("runs/srs/seed0"))).job.folder.is_absolute()
        True
    """

    def __init__(self, job: Job) -> None:
        self.job = dataclasses.replace(job, folder=job.folder.absolute())

    def checkpoint(self) -> DelayedSubmission:
        """Return what is to be queued again: the same, since the run's folder says where to go on."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(Preemptible(self.job))

    def __call__(self) -> dict[str, Any]:
        """Train to the end, or save and be queued again."""
        # Libraries read it when they are loaded, which is now.
        os.environ["OMP_NUM_THREADS"] = str(self.job.hardware.threads)
        notice = _Notice()
        from replenish.lab.training import Stopped

        try:
            return self.job.run(tell_progress(self.job.folder))
        except Stopped as stopped:
            if notice.received:
                notice.queue_again(notice.number, None)  # the first process does not come back from this
            if notice.received or stopped.signal_number == signal.SIGTERM:
                # The signal to queue it again may follow. If it does not, the job has to be there when Slurm ends it:
                # one that ended by itself would not be queued again.
                time.sleep(SECONDS_TO_BE_KILLED)
            raise


class _Notice:
    """The signal by which Slurm says that the job has to end soon, put in the place of submitit's handler."""

    def __init__(self) -> None:
        from submitit import JobEnvironment

        self.number: int = getattr(signal, f"SIG{JobEnvironment.USR_SIG}")
        self.received = False
        self.queue_again: Any = signal.getsignal(self.number)
        self._without_trainer = signal.getsignal(signal.SIGTERM)
        signal.signal(self.number, self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = True
        if signal.getsignal(signal.SIGTERM) == self._without_trainer:  # nothing is being trained: nothing to save
            self.queue_again(number, frame)
        else:
            signal.raise_signal(signal.SIGTERM)
