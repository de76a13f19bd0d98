"""What the tests of the launchers share: a run of seconds, what a watch heard, and signals at the right moment."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from replenish.lab.config import RunConfig
from replenish.lab.jobs import Job, plan
from replenish.lab.launch.progress import PROGRESS
from replenish.lab.runs.folder import METRICS

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


def send(number: int, job: Job, epochs: int) -> threading.Thread:
    """Send a signal to the process that trains a run, once it has written so many epochs."""

    def when_it_is_there() -> None:
        progress, metrics = job.folder / PROGRESS, job.folder / METRICS
        until = time.monotonic() + 300
        while not progress.exists() or (epochs and not metrics.exists()):
            assert time.monotonic() < until, f"{job.folder} has not come to epoch {epochs}"
            time.sleep(0.01)
        time.sleep(0.1)  # into the epoch: at its end the run is saved anyway
        os.kill(int(json.loads(progress.read_text())["attempt"].partition("-")[0]), number)

    thread = threading.Thread(target=when_it_is_there)
    thread.start()
    return thread
