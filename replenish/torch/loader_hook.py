"""Sees the DataLoaders that are made, and replaces what their samplers draw.

It wraps two public methods, and restores them at the end: `__init__` of `DataLoader`, and `__iter__` of the sampler
classes to replace. The loaders and samplers remain torch's own objects, so frameworks can inspect, exchange and wrap
them.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import DataLoader

Own = Callable[[], Iterator[Any]]
Draw = Callable[[Any, Own], Iterator[Any]]

# Names of attributes: a sampler's `_Replaced`, and the original method of a wrapped `__init__`.
_MARK, _BASE = "_replenish_iter", "_replenish_base"


class LoaderHook:
    """Sees loaders, and replaces the iteration of their samplers until it is removed.

    Args:
        seen: Called with each loader that is made inside `with`.

    Example:
        >>> def backwards(sampler, own):
        ...     return reversed(list(own()))
        >>> with LoaderHook(lambda loader: hook.replace_iter(loader.batch_sampler, backwards)) as hook:
        ...     [batch.tolist() for batch in DataLoader(range(4), batch_size=2)]
        [[2, 3], [0, 1]]
    """

    def __init__(self, seen: Callable[[DataLoader[Any]], None] | None = None) -> None:
        self._seen = seen
        self._inits: list[tuple[Any, Any]] = []  # a loader class and its earlier `__init__`
        self._iters: dict[type, tuple[Any, Any]] = {}  # by sampler class: the wrapper and its earlier `__iter__`
        self.active = True

    def __enter__(self) -> LoaderHook:
        """Call `seen` with every loader made from now on. An outer hook does not see these loaders."""
        for kind in _loader_classes():
            before = kind.__init__
            self._inits.append((kind, before))
            kind.__init__ = self._wrapped_init(getattr(before, _BASE, before))
        return self

    def __exit__(self, *ignored: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Restore torch's methods. Passes that have begun continue with the replaced draws."""
        self.active = False
        for kind, before in reversed(self._inits):
            kind.__init__ = before
        for kind, (wrapper, before) in reversed(self._iters.items()):
            if vars(kind).get("__iter__") is not wrapper:
                continue  # other code wrapped ours, which does nothing once inactive
            if before is None:
                del kind.__iter__  # type: ignore[attr-defined]
            else:
                kind.__iter__ = before  # type: ignore[attr-defined]
        self._inits, self._iters = [], {}

    def replace_iter(self, sampler: Any, draw: Draw, pickled: Callable[[], None] = lambda: None) -> bool:
        """Let `iter(sampler)` return `draw(sampler, own)`, where `own()` returns the sampler's own iterator.

        If this hook has replaced it before, `own()` returns what the earlier `draw` returns. A sampler that is pickled
        gets its own iterator back in the other process; `pickled()` is called then.

        Returns:
            Whether it was replaced. A list, or another object without `__dict__`, cannot be.
        """
        try:
            before: _Replaced | None = vars(sampler).get(_MARK)
            if before is not None and before.hook is self:
                draw, pickled = functools.partial(_draw_from, before.draw, draw), before.pickled
            vars(sampler)[_MARK] = _Replaced(self, self._wrap_iter(type(sampler)), draw, pickled)
        except (TypeError, AttributeError):
            return False
        return True

    def _wrapped_init(self, make: Any) -> Any:
        @functools.wraps(make)
        def made(loader: DataLoader[Any], *args: Any, **kwargs: Any) -> None:
            make(loader, *args, **kwargs)
            if self._seen is not None:
                self._seen(loader)

        setattr(made, _BASE, make)
        return made

    def _wrap_iter(self, kind: Any) -> type:
        """Wrap a class's `__iter__`, unless it inherits a wrapped one, and return the class whose method is wrapped."""
        own = kind.__iter__
        for known, (wrapper, _) in self._iters.items():
            if own is wrapper:
                return known

        @functools.wraps(own)
        def iterate(sampler: Any) -> Iterator[Any]:
            replaced = vars(sampler).get(_MARK)
            # A subclass's `__iter__`, which began the pass, may call this one through `super()`.
            if replaced is None or replaced.hook is not self or replaced.kind is not kind or not self.active:
                return own(sampler)
            return replaced.draw(sampler, functools.partial(own, sampler))

        before = vars(kind).get("__iter__")
        kind.__iter__ = iterate
        self._iters[kind] = iterate, before
        return kind


class _Replaced:
    """How to iterate a sampler. Copies of the sampler share it. In another process it unpickles as None."""

    def __init__(self, hook: LoaderHook, kind: type, draw: Draw, pickled: Callable[[], None]) -> None:
        self.hook, self.kind, self.draw, self.pickled = hook, kind, draw, pickled

    def __deepcopy__(self, memo: Any) -> _Replaced:
        return self

    def __reduce__(self) -> Any:
        self.pickled()
        return _nothing, ()


def _draw_from(inner: Draw, outer: Draw, sampler: Any, own: Own) -> Iterator[Any]:
    return outer(sampler, lambda: inner(sampler, own))


def _nothing() -> None:
    return None


def _loader_classes() -> list[Any]:
    """Return the imported loader classes whose `__init__` does not call another loader's."""
    stateful = getattr(sys.modules.get("torchdata.stateful_dataloader"), "StatefulDataLoader", None)
    return [DataLoader] if stateful is None else [DataLoader, stateful]
