"""Reading a loader without changing the training that follows: random states and positions are restored."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def preserved_state(loader: Any) -> Iterator[None]:
    """Restore, at the end, global random states, and generators and positions of a loader's samplers and dataset."""
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
    inner = (getattr(each, "sampler", None) for each in (loader, batch_sampler))
    parts = {id(part): part for part in (loader, batch_sampler, *inner, getattr(loader, "dataset", None))}
    for part in parts.values():
        undo += _undo(part)
    try:
        yield
    finally:
        for step in undo:
            step()


def _undo(part: Any) -> list[Callable[[], object]]:
    undo: list[Callable[[], object]] = []
    for value in getattr(part, "__dict__", {}).values():
        restore = _generator_undo(value)
        if restore is not None:
            undo.append(restore)
    if hasattr(part, "seek"):  # this library's samplers, which are copied to be read
        return undo
    if isinstance(getattr(part, "epoch", None), int) and hasattr(part, "set_epoch"):
        epoch = part.epoch
        undo.append(lambda: part.set_epoch(epoch))
    return undo


def _generator_undo(value: Any) -> Callable[[], object] | None:
    """Return what restores a random generator; None for any other value."""
    if isinstance(value, random.Random):
        state = value.getstate()
        return lambda: value.setstate(state)
    if isinstance(value, np.random.Generator):
        bits, position = value.bit_generator, value.bit_generator.state
        return lambda: setattr(bits, "state", position)
    if hasattr(value, "get_state") and hasattr(value, "set_state"):  # torch's, and numpy's RandomState
        drawn = value.get_state()
        return lambda: value.set_state(drawn)
    return None
