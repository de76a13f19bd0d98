"""A script that is killed and resumed until it ends, and what of its training is kept."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any


def kept_after_kills(run: Callable[[Any, int], tuple[list[Any], Any, bool]], seed: int, most_kills: int) -> list[Any]:
    """Return the batches that stand when `run(checkpoint, kill_after)` has been killed at random steps and resumed.

    `run` returns the batches since the checkpoint, the last checkpoint, with how many of these it has "seen", and
    whether it was killed.
    """
    kills = random.Random(seed + 10**6)
    checkpoint, kept, killed, rounds = None, [], True, 0
    while killed:
        rounds += 1
        seen, after, killed = run(checkpoint, kills.randint(1, 15) if rounds <= most_kills else 10**9)
        if not killed:
            kept += seen
        elif after is not checkpoint:  # else it was killed before it could save
            kept += seen[: after["seen"]]
        checkpoint = after
    return kept
