"""`using`: a context in which loaders that shuffle get an order instead, in code that nobody edits."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.utils.data import DataLoader

from replenish.torch.loader_draws import IndexSampler
from replenish.torch.loader_record import Place, calling_place
from replenish.torch.replacement import OrderedIndices, Replacement

# In a loader's __dict__: what it is to iterate.
_MARK = "_replenish_noticed"
_LOADER: Any = DataLoader  # whose attributes are set here, which types do not allow


@contextmanager
def using(order: str, *, seed: int = 0, **options: Any) -> Iterator[Replacement]:
    """Give an order to every loader made inside that shuffles, also by Lightning, Accelerate or Transformers.

    What shuffles is `DataLoader(shuffle=True)`, a `RandomSampler` without replacement, a `DistributedSampler` that
    shuffles, and a `BatchSampler` over these. Loaders that do not shuffle, iterable datasets and other samplers stay as
    they are; so does a pass that begins with gradients switched off, since an evaluation wants every sample once.
    A loader keeps its length, its batch sizes and its `set_epoch`, and keeps the order when the context has ended. Each
    has draws of its own, from the seed and its number.

    Args:
        order: A name of `replenish.orders.registry.ORDERS`.
        seed: Chooses the draws.
        **options: What the order takes beside, such as `pool_size` or `sequence` of SRS.

    Yields:
        The replacement, whose `records` say what became of each loader.

    Raises:
        RuntimeError: At the end, if there was no loader to give the order to.

    Example:
        >>> with using("srs", seed=3) as replacement:
        ...     loader = DataLoader(range(10), batch_size=4, shuffle=True)
        >>> len(loader), replacement.records[0].order
        (3, 'srs, seed 3')
    """
    replacement = Replacement(order, seed, options)
    made_before, index_sampler_before = _LOADER.__init__, _LOADER._index_sampler
    install(replacement)
    try:
        yield replacement
    finally:
        _LOADER.__init__ = made_before
        # Loaders made inside keep their order; others are no longer noticed, unless by a context around this one.
        around = hasattr(index_sampler_before.fget, "_replenish_base")
        _LOADER._index_sampler = index_sampler_before if around else _noticing(index_sampler_before, None)
    if not any(record.order for record in replacement.records):
        found = "; ".join(record.said() for record in replacement.records) or "no DataLoader was made"
        raise RuntimeError(f"using({order!r}) should have a loader that shuffles to give the order to, but {found}")


def install(replacement: Replacement) -> None:
    """Give an order to the loaders that are made from now on; one installed before gets no more."""
    make = getattr(_LOADER.__init__, "_replenish_base", _LOADER.__init__)

    @functools.wraps(make)
    def made(loader: DataLoader[Any], *args: Any, **kwargs: Any) -> None:
        make(loader, *args, **kwargs)
        loader._index_sampler  # noqa: B018 - noticed now, since now it is known where

    made._replenish_base = make  # type: ignore[attr-defined]
    _LOADER.__init__ = made
    base = getattr(_LOADER._index_sampler.fget, "_replenish_base", _LOADER._index_sampler)
    _LOADER._index_sampler = _noticing(base, replacement)


def _noticing(base: property, replacement: Replacement | None) -> property:
    """Return torch's property of what a loader iterates, with the order for the loaders that get one.

    A property, so that the loader's `sampler` and `batch_sampler` stay what they are: frameworks look at them, and make
    loaders anew of them. It is also what a subclass has that makes its loaders without `DataLoader.__init__`.
    """
    read = base.fget
    assert read is not None

    def index_sampler(loader: DataLoader[Any]) -> IndexSampler:
        return to_iterate(loader, read(loader), replacement)

    index_sampler._replenish_base = base  # type: ignore[attr-defined]
    return property(index_sampler)


def to_iterate(loader: DataLoader[Any], own: IndexSampler, replacement: Replacement | None) -> IndexSampler:
    """Return what a loader is to iterate instead of `own`.

    It is found out when the loader is noticed first, and again if its samplers have been changed since. A loader keeps
    the replacement that noticed it.
    """
    noticed: _Noticed | None = vars(loader).get(_MARK)
    if noticed is None:
        if replacement is None:
            return own
        noticed = vars(loader)[_MARK] = _Noticed(loader, replacement, calling_place(), own)
    elif noticed.is_stale(own):
        noticed.find_out(loader, own)
    return noticed.iterated


class _Noticed:
    """What a loader is to iterate."""

    def __init__(self, loader: DataLoader[Any], replacement: Replacement, place: Place, own: IndexSampler) -> None:
        self._replacement = replacement
        self._place = place
        self.find_out(loader, own)

    def find_out(self, loader: DataLoader[Any], own: IndexSampler) -> None:
        self._samplers = _chain(own)
        self.iterated = self._replacement.index_sampler(loader, own, self._place)
        if isinstance(self.iterated, OrderedIndices):
            self._place = Place(self.iterated.stream.place, in_framework=True)  # found out again, it is the same loader

    def is_stale(self, own: IndexSampler) -> bool:
        chain = _chain(own)
        return len(chain) != len(self._samplers) or any(a is not b for a, b in zip(chain, self._samplers, strict=True))


def _chain(sampler: IndexSampler) -> list[IndexSampler]:
    """Return a sampler and those that it draws from: Accelerate puts others in their place after a loader is made."""
    chain: list[IndexSampler] = []
    while sampler is not None and not any(sampler is known for known in chain):  # ours is its own `sampler`
        chain.append(sampler)
        sampler = getattr(sampler, "batch_sampler", getattr(sampler, "sampler", None))
    return chain
