"""A position in an order's stream as a few plain ints and strings, whatever the size of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from replenish import checks
from replenish.draws import STREAM

VERSION = 1

State = dict[str, int | str]


class Configured(Protocol):
    """An order or a stream: an object whose position can be saved."""

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that identify the object completely."""
        ...


def save(order: Configured, step: int) -> State:
    """Return the state of `order` before `step`: version, stream, step and the order's config.

    Example:
        >>> from replenish import IndependentDraws
        >>> save(IndependentDraws(num_samples=9, batch_size=3), step=7)["step"]
        7
    """
    own: State = {"version": VERSION, "stream": STREAM, "step": checks.step(step)}
    config = order.config()
    if clash := {"version", "step"} & set(config):
        raise ValueError(f"config() of an order should not use the names of the state, but has {sorted(clash)}")
    return {**own, **config}


def load(order: Configured, state: Mapping[str, int | str]) -> int:
    """Return the step of `state`, after checking that it belongs to an order equal to `order`.

    `Skipping`, `Mixture` and rebatched orders also accept a state of the order that they change, as long as all steps
    before the state's are the same.

    Raises:
        ValueError: The state belongs to another order; the message names every differing field with both values.
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"state should be a dict that state_dict() returned, but got a {type(state).__name__}")
    if "step" not in state or "version" not in state:
        raise ValueError(
            f"state should be a dict that state_dict() returned, with version and step, but got the fields "
            f"{sorted(map(str, state))}"
        )
    step = checks.step(state["step"], "step in state")
    if state["version"] != VERSION:
        raise ValueError(
            f"state should have version {VERSION}, but got version {state['version']!r}: it was saved by another "
            f"release of replenish"
        )
    # Samplers themselves check the fields that they add to a state.
    different = differences(state, save(order, step))
    same_before: Callable[[Mapping[str, int | str], int], bool] | None = getattr(order, "_same_before", None)
    if different and not (same_before is not None and same_before(state, step)):
        raise ValueError(f"state should be of an equal order, but {different}")
    return step


def differences(state: Mapping[str, int | str], here: Mapping[str, int | str]) -> str:
    """Return which fields of `here` are missing or have other values in a state; "" if none."""
    return ", ".join(
        f"{name} is {state.get(name, 'missing')!r} in the state but {value!r} here"
        for name, value in here.items()
        if name not in state or state[name] != value
    )
