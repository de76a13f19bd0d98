"""Reading a loader without changing the training that follows: random states and positions are put back."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def left_as_it_was(loader: Any) -> Iterator[None]:
    """Put back, at the end, the global random states, and those of a loader's samplers and dataset."""
    undo: list[Callable[[], object]] = []
    state = random.getstate()
    undo.append(lambda: random.setstate(state))
    numbers = np.random.get_state()  # noqa: NPY002  # the user's global state, not ours
    undo.append(lambda: np.random.set_state(numbers))  # noqa: NPY002
    torch = sys.modules.get("torch")  # where it is not imported, nothing has drawn from it
    if torch is not None:
        drawn = torch.get_rng_state()
        undo.append(lambda: torch.set_rng_state(drawn))
    batch_sampler = getattr(loader, "batch_sampler", None)
    for part in (loader, batch_sampler, getattr(batch_sampler, "sampler", None), getattr(loader, "dataset", None)):
        undo += _undo(part)
    try:
        yield
    finally:
        for step in undo:
            step()


def _undo(part: Any) -> list[Callable[[], object]]:
    undo: list[Callable[[], object]] = []
    generator: Any = getattr(part, "generator", None)
    if hasattr(generator, "get_state") and hasattr(generator, "set_state"):
        state = generator.get_state()
        undo.append(lambda: generator.set_state(state))
    if isinstance(getattr(part, "epoch", None), int) and hasattr(part, "set_epoch"):
        epoch = part.epoch
        undo.append(lambda: part.set_epoch(epoch))
    elif hasattr(part, "seek") and hasattr(part, "state_dict"):  # our samplers, which go on from pass to pass
        position = part.state_dict()
        undo.append(lambda: part.load_state_dict(position))
    return undo
