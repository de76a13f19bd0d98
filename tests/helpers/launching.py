"""What the tests of the launchers share: a run of seconds, what a watch heard, and signals at the right moment."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from replenish.lab.config import RunConfig
from replenish.lab.jobs import plan

#: 22 steps an epoch, 66 in all.
CONFIG = RunConfig(dataset="digits", model="wrn-10-1", pad=1, flip=False, epochs=3)


class Heard:
    """The events that a watch was told."""

    def __init__(self) -> None:
        self.events: list[tuple[int, dict[str, Any]]] = []

    def __call__(self, place: int, event: dict[str, Any]) -> None:
        self.events.append((place, event))

    def kinds(self, place: int) -> list[str]:
        return [event["event"] for where, event in self.events if where == place and event["event"] != "step"]


def weights(results: list[dict[str, Any]]) -> list[str]:
    return [result["weights_sha256"] for result in results]


def in_this_process(config: RunConfig, seeds: list[int], folder: Path) -> list[str]:
    return weights([job.run() for job in plan([config], seeds, folder)])


def at_step(step: int, act: Callable[[], None], once: Path) -> None:
    """Do something after the step `step` of this process, unless the file `once` says that it has been done.

    A count and not a time: it comes to pass on any machine, and in the middle of an epoch if that is wanted.
    """
    from torch.optim.optimizer import register_optimizer_step_post_hook

    steps = itertools.count(1)

    def count(*_: Any) -> None:
        if next(steps) == step and not once.exists():
            once.touch()
            act()

    register_optimizer_step_post_hook(count)


def wait_for(condition: Callable[[], object]) -> None:
    """Wait for an event; the limit is for a machine on which it never comes."""
    limit = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


def signal_here(number: int) -> None:
    os.kill(os.getpid(), number)
