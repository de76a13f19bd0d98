"""A lock that a forked child finds free."""

from __future__ import annotations

import os
import threading
from weakref import WeakSet


class ForkSafeLock:
    """Use it as `with self._lock.lock: ...`.

    A fork copies a lock as it is, but not the thread that holds it: in the child it would never be released. So a
    child that finds one held makes it anew. What it guards must stay right if the work under it ends anywhere, as it
    must for an interrupt too.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        _LOCKS.add(self)


_LOCKS: WeakSet[ForkSafeLock] = WeakSet()


def _free_in_the_child() -> None:
    for each in _LOCKS:
        if each.lock.locked():
            each.lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # not where there is no fork
    os.register_at_fork(after_in_child=_free_in_the_child)
