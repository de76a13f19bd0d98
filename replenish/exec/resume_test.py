"""The test of a script's resume: run it to its end, stop it, resume it, and compare the batches.

Each run has a working folder of its own in a scratch folder.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from replenish.auditing import Audit, Finding
from replenish.auditing.resumption import compare_resumed
from replenish.draws import Int64Array
from replenish.exec import run_script
from replenish.exec.environment import AuditTask, run_environment
from replenish.exec.run_draws import ProcessDraws, RecordedPass, read_run
from replenish.exec.script_audit import run_until_ended
from replenish.measure.findings import WARNING

#: Default patterns of checkpoints: files and folders.
CHECKPOINTS = ("**/*.pt", "**/*.pth", "**/*.ckpt", "**/checkpoint*")
PLACEHOLDER = "{checkpoint}"


@dataclass(frozen=True)
class ResumeTest:
    """A training, and how to stop and resume it.

    Attributes:
        script: The words after `python` that start the training.
        resume: The command that resumes it, with `{checkpoint}` in place of the checkpoint's path.
        steps: After how many batches a training ends; None lets it run to its end.
        stop: After how many batches it is stopped; None stops it in the middle of the middle epoch.
        checkpoints: Patterns of the checkpoints' paths below the working folder.
        inputs: Files and folders to link into each working folder.
    """

    script: Sequence[str]
    resume: str
    steps: int | None = None
    stop: int | None = None
    checkpoints: tuple[str, ...] = CHECKPOINTS
    inputs: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        _command(self.resume)  # a command that cannot be read is an error before the first run

    def run(self, report: Callable[[str], None]) -> Audit:
        """Run everything, and return a finding for each way to stop; `report` gets a line before each run.

        Raises:
            ValueError: A run failed, or drew no training batches.
        """
        with tempfile.TemporaryDirectory(prefix="replenish-resume-", ignore_cleanup_errors=True) as scratch:
            return self._run(Path(scratch), report)

    def _run(self, scratch: Path, report: Callable[[str], None]) -> Audit:
        report("running the script without a stop")
        run, code = self._record(scratch / "whole", self._words(), steps=self.steps)
        reference = TrainedBatches.of_run(run)
        total = sum(len(epoch) for epoch in reference.epochs)
        if total < 2:
            raise ValueError(f"the script should train with at least 2 batches, but trained with {total} (exit {code})")
        stop = self.stop or _middle(reference.epochs)
        if stop >= total:
            raise ValueError(f"--stop should be less than the {total} batches of the training, but got {stop}")
        findings = [
            self._stopped(scratch, name, stop, kill, reference, report)
            for name, kill in (("SIGTERM", False), ("SIGKILL", True))
        ]
        epochs = f"{len(reference.epochs)} epoch{'s' if len(reference.epochs) > 1 else ''}"
        return Audit(f"{total} batches in {epochs}, stopped after {stop}", tuple(findings))

    def _stopped(
        self,
        scratch: Path,
        name: str,
        stop: int,
        kill: bool,
        reference: TrainedBatches,
        report: Callable[[str], None],
    ) -> Finding:
        folder = scratch / name
        report(f"running it until {name} after {stop} batches")
        limits = {"steps": self.steps, "stop": stop, "kill": kill, "checkpoints": self.checkpoints}
        run, _ = self._record(folder, self._words(), **limits)
        stopped = TrainedBatches.of_run(run, reference)
        if (checkpoint := self._newest(folder)) is None:
            why = "after it no batch was trained" if kill else "the script does not save when it gets the signal"
            return Finding(name, WARNING, f"No checkpoint was written before the end of the run: {why}.")
        shown = checkpoint.relative_to(folder)
        saved = reference.trained_at(run, shown, checkpoint.stat().st_mtime_ns)
        if saved >= sum(len(epoch) for epoch in reference.epochs):
            why = "the script did not save earlier" if kill else "the script did not stop at the signal"
            return Finding(name, WARNING, f"The newest checkpoint is of the end of the training: {why}.")
        report(f"resuming from {shown}, of step {saved}")
        # Resume from a copy: one process may save again before another has read the checkpoint.
        kept = scratch.resolve() / f"{name}.kept"
        shutil.copytree(folder, kept, symlinks=True)
        words = [word.replace(PLACEHOLDER, str(kept / shown)) for word in _command(self.resume)]
        # A loop may first skip the batches of the epoch that were trained before: allow one epoch more.
        left = None if self.steps is None else self.steps - saved + max(len(epoch) for epoch in reference.epochs)
        run, code = self._record(folder, words, steps=left)
        again = TrainedBatches.of_run(run, reference)
        if code != 0 and not again.epochs:
            raise ValueError(f"the command that resumes should train, but ended with exit code {code}")
        return compare_resumed(
            name,
            reference.epochs,
            stopped.epochs,
            again.epochs or [[]],
            saved,
            limited=left is not None,
            shares=again.shares,
        )

    def _words(self) -> list[str]:
        return [sys.executable, run_script.__file__, *_located(self.script)]

    def _record(self, folder: Path, words: list[str], **limits: Any) -> tuple[list[ProcessDraws], int]:
        """Run a command in a folder, and return what its processes drew and its exit code."""
        records = Path(tempfile.mkdtemp(dir=folder.parent, prefix="records-"))
        folder.mkdir(exist_ok=True)
        for each in self.inputs:
            link = folder / each.name
            if not link.exists():
                link.symlink_to(each.resolve())
        environment = run_environment(task=AuditTask(str(records), facts=False, **limits))
        environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], os.getcwd()])  # for -m
        code = run_until_ended(words, environment, records, cwd=folder)
        return read_run(records, raw_hashes=True), code

    def _newest(self, folder: Path) -> Path | None:
        found = {path for pattern in self.checkpoints for path in folder.glob(pattern)}
        outer = [path for path in found if not any(other in path.parents for other in found)]
        return max(outer, key=lambda path: path.stat().st_mtime_ns, default=None)


@dataclass(frozen=True, eq=False)
class TrainedBatches:
    """The batches that a run trained with.

    Attributes:
        epochs: The batches of each pass over the first training loader, joined over all ranks.
        per_step: How many batches the optimizer takes per step.
        ahead: How many batches more than that the loop gets before the first step.
        shares: The batches of each process in its first epoch.
    """

    epochs: list[list[Int64Array]]
    per_step: int
    ahead: int
    shares: list[list[Int64Array]] = field(default_factory=list)

    @classmethod
    def of_run(cls, run: list[ProcessDraws], like: TrainedBatches | None = None) -> TrainedBatches:
        """Return the batches of a run. `like` is an uninterrupted run of the same script, if there was one."""
        passes = [_training_passes(process) for process in run]
        passes = [each for each in passes if each]
        if not passes:
            return cls([], 1, 0)
        per_step, ahead = (like.per_step, like.ahead) if like else _habits(passes[0])
        ranks = [[_trained(one, per_step, ahead) for one in each] for each in passes]
        epochs = [
            [np.concatenate(step) for step in zip(*together, strict=False)] for together in zip(*ranks, strict=False)
        ]
        shares = [next((epoch for epoch in each if epoch), []) for each in ranks]
        return cls([epoch for epoch in epochs if epoch], per_step, ahead, shares)

    def trained_at(self, run: list[ProcessDraws], checkpoint: Path, written: int) -> int:
        """Return how many batches were trained when a checkpoint was written, at a time in nanoseconds."""
        counts = [each for process in run for each in process.events if each["kind"] == "counts"]
        found = [each for each in counts if each["changed"].get(str(checkpoint)) == written]
        first = [each for each in run[0].events if each["kind"] == "counts"]
        if not found and any(not each["changed"] for each in first):
            # The recorder misses a save that os._exit or a launcher's second SIGTERM follows. But it counts every step
            # after the first SIGTERM, so its last count holds.
            found = first[-1:]
        if not found:
            raise ValueError(
                f"{checkpoint} was written at a time that is not known; try another --stop, or name the checkpoints "
                f"with --checkpoint"
            )
        # Ranks that train together are at most one step apart, and the one that wrote the file sees it first.
        steps, handed = (min(each[name] for each in found) for name in ("steps", "handed"))
        return int(steps * self.per_step if steps else handed)


def _training_passes(process: ProcessDraws) -> list[RecordedPass]:
    """Return the passes over the first training loader, and over loaders that a framework made from it to resume."""
    loaders = [each for each in process.loaders if each.training]
    names = ("dataset", "num_samples")
    alike = [each for each in loaders if all(each.facts[name] == loaders[0].facts[name] for name in names)]
    return sorted((one for each in alike for one in each.training), key=lambda one: one.at)


def _habits(passes: list[RecordedPass]) -> tuple[int, int]:
    """Return how many batches the optimizer takes per step, and how many more the loop gets before the first step."""
    taken = np.concatenate([np.diff(each.steps) for each in passes])
    if not len(taken):
        return 1, 0
    values, times = np.unique(taken, return_counts=True)
    per_step = max(1, int(values[np.argmax(times)]))
    return per_step, max(0, int(passes[0].steps[0]) - per_step)


def _trained(one: RecordedPass, per_step: int, ahead: int) -> list[Int64Array]:
    """Return the batches of a pass that were trained with; a loop that resumes may skip some."""
    batches = one.drawn.batches()[: one.batches_trained]
    if not len(one.steps):
        return batches
    skipped = max(0, int(one.steps[0]) - per_step - ahead)
    return batches[skipped : skipped + len(one.steps) * per_step]


def _middle(epochs: list[list[Int64Array]]) -> int:
    number = len(epochs) // 2
    return max(1, sum(len(epoch) for epoch in epochs[:number]) + len(epochs[number]) // 2)


def _command(text: str) -> list[str]:
    """Return the words of a command. `python` becomes this interpreter, and the paths of scripts become absolute."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"--resume should be a command, but got {text!r}: {error}") from None
    if not words:
        raise ValueError(f"--resume should be a command, but got {text!r}")
    if words[0] in ("python", "python3"):
        words[0] = sys.executable
    elif Path(words[0]).name != words[0]:
        words[0] = str(Path(words[0]).absolute())  # not resolved: a virtual environment's Python is a link
    elif (beside := Path(sys.executable).with_name(words[0])).is_file():  # torchrun, accelerate
        words[0] = str(beside)
    return [words[0], *_located(words[1:])]


def _located(words: Sequence[str]) -> list[str]:
    """Make the paths of Python scripts among some words absolute, since the run has another working folder."""
    return [str(Path(word).resolve()) if word.endswith(".py") and Path(word).is_file() else word for word in words]
