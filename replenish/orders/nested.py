"""Configs within configs: the order that another one changes, or orders that one is made of, as JSON in a string."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from replenish.orders.cursor import CursorOrder


def to_json(value: Any) -> str:
    """Return what a config holds for lists and for other configs: JSON without spaces.

    Example:
        >>> to_json([[10, 20], [30, 40]])
        '[[10,20],[30,40]]'
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def from_json(name: str, value: object) -> Any:
    """Return what a config's string of JSON stands for; what is not a string stands for itself."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError(f"{name} in the config should be JSON, but got {value!r}") from None


def same_before(order: CursorOrder, config: Mapping[str, Any], step: int) -> bool:
    """Return whether the order that `config` names has the same batches as `order` in all steps before `step`.

    Then a state saved with the one is a place in the other: after a range was skipped, a batch size or a mixture's
    shares changed, all from `step` on.
    """
    if all(config.get(name) == value for name, value in order.config().items()):
        return True
    own = getattr(order, "_same_before", None)
    return bool(own is not None and own(config, step))
