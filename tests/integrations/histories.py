"""Runs a training of any stack, interrupts it at random steps and resumes it, until it ends."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from trainings import Training

# Later attempts are not interrupted. Otherwise a training that never gets to save would never end.
MOST_INTERRUPTIONS = 3


class Interruption(Exception):  # noqa: N818
    """Raised within a training step."""


class Memory:
    """A diary that keeps the trained batches and interrupts the step after `limit` batches."""

    def __init__(self, limit: int) -> None:
        self.limit, self.first, self.batches = limit, 0, list[list[int]]()

    def begin(self, trained_before: int) -> None:
        self.first = trained_before

    def train(self, batch: list[int]) -> None:
        if len(self.batches) == self.limit:
            raise Interruption
        self.batches.append(batch)


def history(train: Training, seed: int, folder: Path) -> tuple[list[list[int]], list[list[int]], set[str]]:
    """Return the batches of an interrupted training, the expected batches, and the rows of `ways.WAYS` that it used."""
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
    raise AssertionError("an uninterrupted training did not end")
