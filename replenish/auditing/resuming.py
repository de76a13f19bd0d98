"""Does a stream that is resumed go on where it was? Shuffle buffers are often lost."""

from __future__ import annotations

from itertools import islice
from typing import Any

from replenish.auditing.findings import FINE, LOOK, WRONG, Finding
from replenish.auditing.record import Key, item_hash
from replenish.auditing.untouched import left_as_it_was


def resuming(source: Any, key: Key | None, at_most: int) -> Finding | None:
    """Ask a stream with a `state_dict` for the rest of an epoch, then again after a resume; None if it has none."""
    stream = getattr(source, "dataset", source)
    if not all(hasattr(stream, name) for name in ("state_dict", "load_state_dict", "__iter__")):
        return None
    name = item_hash if key is None else key
    with left_as_it_was(source):
        length = sum(1 for _ in islice(stream, at_most))
        if length == at_most or length < 4:
            return None
        items = iter(stream)
        before = [name(item) for item in islice(items, length // 2)]
        state = stream.state_dict()
        rest = [name(item) for item in items]
        stream.load_state_dict(state)
        resumed = [name(item) for item in stream]
    lost, again = len(set(rest) - set(resumed)), len(set(resumed) & set(before))
    numbers: dict[str, int | float] = {"lost": lost, "again": again}
    if resumed == rest:
        return Finding(
            "resuming", FINE, "Resumed in the middle of an epoch, the stream goes on item for item.", numbers
        )
    if lost or again:
        text = (
            f"Resumed in the middle of an epoch, the stream leaves out {lost} of the {len(rest)} items that were to "
            f"come and repeats {again}: its shuffle buffer is not in its state."
        )
        return Finding("resuming", WRONG, text, numbers)
    return Finding("resuming", LOOK, "Resumed, the stream has the same items left, but in another order.", numbers)
