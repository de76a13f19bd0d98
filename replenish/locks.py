"""A lock that is free in a forked child, and a cached property without a lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

Value = TypeVar("Value")


class ForkSafeLock:
    """A lock that is never held when a forked child starts; use it as `with self._lock.lock: ...`.

    A fork copies a held lock but not the thread that holds it, so the child would wait for ever. The child therefore
    replaces held locks. So what a lock guards must be valid at every moment, even in the middle of the work.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        _LOCKS.add(self)


_LOCKS: WeakSet[ForkSafeLock] = WeakSet()


def _free_in_the_child() -> None:
    for each in _LOCKS:
        if each.lock.locked():
            each.lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_free_in_the_child)


class kept_property(Generic[Value]):  # noqa: N801, as `property` and `functools.cached_property`
    """A property that is computed once per instance, without a lock: threads may compute it twice.

    Before Python 3.12, `functools.cached_property` has one lock for all instances of a class. A fork while another
    thread holds it hangs the child.

    Example:
        >>> class Circle:
        ...     @kept_property
        ...     def area(self):
        ...         print("computed")
        ...         return 3.14
        >>> circle = Circle()
        >>> circle.area, circle.area
        computed
        (3.14, 3.14)
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]
        value = self._compute(instance)
        vars(instance)[self._name] = value  # from now on found before this descriptor
        return value
