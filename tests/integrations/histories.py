"""Trainings that are interrupted at random steps and resumed, until one comes to its end: the driver of all stacks.

An interruption is an exception within a step, or `kill -9` of a forked process:

    python histories.py "Lightning Trainer" 8     eight histories with kills; prints how many they were
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import sys
import tempfile
import traceback
from pathlib import Path

from trainings import TRAININGS, Training

# After so many interruptions a training is left alone: one that is interrupted before it saves would never end.
MOST_INTERRUPTIONS = 3


class Interruption(Exception):  # noqa: N818
    """Raised within a step."""


class Memory:
    """Keeps what is trained, and interrupts the step after `limit` batches."""

    def __init__(self, limit: int) -> None:
        self.limit, self.first, self.batches = limit, 0, list[list[int]]()

    def begin(self, trained_before: int) -> None:
        self.first = trained_before

    def train(self, batch: list[int]) -> None:
        if len(self.batches) == self.limit:
            self.interrupt()
        self.batches.append(batch)

    def interrupt(self) -> None:
        raise Interruption


class File(Memory):
    """Writes what is trained to a file, and kills its process."""

    def __init__(self, limit: int, path: Path) -> None:
        super().__init__(limit)
        self.path = path

    def begin(self, trained_before: int) -> None:
        self._write(trained_before)

    def train(self, batch: list[int]) -> None:
        super().train(batch)
        self._write(batch)

    def interrupt(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _write(self, what: object) -> None:
        with open(self.path, "a") as file:
            print(json.dumps(what), file=file)


def history(train: Training, seed: int, folder: Path) -> tuple[list[list[int]], list[list[int]], set[str]]:
    """Return the batches that an interrupted training trained, those that it should, and the rows that it played."""
    random.seed(seed)
    limits, kept = random.Random(seed + 10**6), list[list[int]]()
    folder.mkdir()
    for number in range(MOST_INTERRUPTIONS + 1):
        diary = Memory(limits.randint(1, 12) if number < MOST_INTERRUPTIONS else sys.maxsize)
        try:
            expected, rows = train(random.Random(seed), folder, diary)
        except Interruption:
            expected = None
        assert diary.first <= len(kept), "a checkpoint has more batches than were trained"
        kept = kept[: diary.first] + diary.batches
        if expected is not None:
            return kept, expected, rows
    raise AssertionError("a training that was left alone did not end")


def killed_history(train: Training, seed: int, folder: Path) -> int:
    """Train with kills, compare with one run without, and return how many kills there were."""
    limits, kept = random.Random(seed + 10**6), list[list[int]]()
    (folder / "whole").mkdir(parents=True)
    _, _, whole = _in_a_new_process(train, seed, folder / "whole", sys.maxsize)
    for number in range(MOST_INTERRUPTIONS + 1):
        limit = limits.randint(2, 12) if number < MOST_INTERRUPTIONS else sys.maxsize
        killed, first, batches = _in_a_new_process(train, seed, folder, limit)
        assert first <= len(kept), "a checkpoint has more batches than were trained"
        kept = kept[:first] + batches
        if not killed:
            break
    assert kept == whole, seed
    return number


def _in_a_new_process(train: Training, seed: int, folder: Path, limit: int) -> tuple[bool, int, list[list[int]]]:
    """Train; return whether it was killed, the batches that its checkpoint had, and those that it trained."""
    diary = File(limit, folder / "diary.jsonl")
    if (child := os.fork()) == 0:
        try:
            train(random.Random(seed), folder, diary)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if not killed and status != 0:
        sys.exit(f"the training of seed {seed} failed")
    first, *batches = map(json.loads, diary.path.read_text().splitlines())
    diary.path.unlink()
    return killed, first, batches


def main() -> None:
    """Play histories of one stack, with kills."""
    train = TRAININGS[sys.argv[1]]()  # imports the framework, once for all processes
    gc.freeze()
    with tempfile.TemporaryDirectory() as folder:
        kills = [killed_history(train, seed, Path(folder, str(seed))) for seed in range(int(sys.argv[2]))]
    print(json.dumps({"histories": len(kills), "kills": sum(kills)}))


if __name__ == "__main__":
    main()
