"""Reading the epochs of whatever draws indices, each bounded: what the shuffle battery works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from replenish.draws import Int64Array, KeyedWords, Purpose, derived_seed
from replenish.measure.reading import IndexSource, index_sampler, one_pass
from replenish.orders.protocol import Order

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Epoch:
    """The first batches of an epoch, or all of them.

    Attributes:
        indices: The indices drawn, in order.
        sizes: How many each batch drew.
    """

    indices: Int64Array
    sizes: Int64Array

    @classmethod
    def of(cls, batches: list[Int64Array]) -> Epoch:
        """Return the epoch of these batches."""
        return cls(np.concatenate(batches), np.array([len(batch) for batch in batches], dtype=np.int64))

    @cached_property
    def batch_of(self) -> Int64Array:
        """The batch of each draw, counted from 0."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def repeats(self) -> int:
        """How many draws repeat a sample of this epoch."""
        return int((np.diff(np.sort(self.indices)) == 0).sum())

    def without_sorting(self, number: int) -> Epoch:
        """Return the same batches with their draws in random order if every batch is sorted.

        A batch's own order means nothing to training, and sorted batches would look alike. Epochs of another `number`
        get other random orders.
        """
        rising = self.indices[1:] > self.indices[:-1]
        inside = self.batch_of[1:] == self.batch_of[:-1]
        if not inside.any() or not rising[inside].all():
            return self
        keys = KeyedWords(derived_seed(0, "batches"), Purpose.INDEPENDENT).at(number).words(len(self.indices))
        return Epoch(self.indices[np.lexsort((keys, self.batch_of))], self.sizes)

    def distinct(self) -> Epoch:
        """Return the same batches, each with one draw of every sample that it has."""
        if not self.repeats:
            return self
        by_sample = np.lexsort((self.indices, self.batch_of))
        again = (np.diff(self.indices[by_sample]) == 0) & (np.diff(self.batch_of[by_sample]) == 0)
        kept = np.ones(len(self.indices), dtype=np.bool_)
        kept[by_sample[1:][again]] = False
        return Epoch(self.indices[kept], np.bincount(self.batch_of[kept], minlength=len(self.sizes)))

    def merged(self, batches: int) -> Epoch:
        """Return the same draws with so many batches made one; what is left over at the end is dropped."""
        groups = len(self.sizes) // batches
        sizes = self.sizes[: groups * batches].reshape(groups, batches).sum(axis=1)
        return Epoch(self.indices[: sizes.sum()], sizes)

    def regular(self) -> Epoch:
        """Return the same without a short last batch."""
        if len(self.sizes) > 1 and self.sizes[-1] < self.sizes[0]:
            return Epoch(self.indices[: len(self.indices) - self.sizes[-1]], self.sizes[:-1])
        return self


def read_epochs(
    source: IndexSource,
    num_samples: int,
    *,
    epochs: int | None,
    steps_per_epoch: int | None,
    batch_size: int | None,
    before_epoch: Callable[[int], object] | None,
    max_draws: int,
) -> list[Epoch]:
    """Read some epochs of a source, at most `max_draws` draws; the arguments are those of `shuffle_quality`."""
    if isinstance(source, Order):
        return _of_order(source, epochs or 3, max_draws)
    passes = hasattr(source, "dataset") or epochs is not None
    sampler = index_sampler(source)
    if isinstance(sampler, Iterator) and passes:
        raise TypeError(f"source should start anew for each of its epochs, but got the {type(source).__name__} of one")
    if not passes:
        read = _in_a_row(_batches(sampler, batch_size), num_samples, steps_per_epoch, max_draws)
    else:
        read = []
        for epoch in range(epochs or 3):
            if before_epoch is not None:
                before_epoch(epoch)
            batches = _batches(sampler, batch_size)
            if steps_per_epoch is not None:
                batches = islice(batches, steps_per_epoch)
            read += _first(batches, max_draws // (epochs or 3))
    if not read:
        raise ValueError("source should yield at least one batch, but got none")
    _check_range(read, num_samples)
    return read


def _of_order(order: Order, epochs: int, max_draws: int) -> list[Epoch]:
    steps = min(order.steps_per_epoch, max(1, max_draws // (epochs * order.batch_size)))
    starts = [epoch * order.steps_per_epoch for epoch in range(epochs)]
    read = [list(order.batches(start, start + steps)) for start in starts]
    return [Epoch.of(batches) for batches in read if any(map(len, batches))]


def _batches(sampler: Iterable[Any], batch_size: int | None) -> Iterator[Int64Array]:
    """Yield batches; single indices are grouped by `batch_size`."""
    draws = iter(sampler)
    first = next(draws, None)
    if first is None:
        return
    single = np.ndim(first) == 0
    if single and batch_size is None:
        raise ValueError("batch_size should say how many indices make a batch, since the source yields single ones")
    if not single and batch_size is not None:
        raise ValueError(f"batch_size is for sources of single indices, but got {batch_size} with one of batches")
    if not single:
        yield from one_pass([first])
        yield from one_pass(draws)
        return
    kept = [first, *islice(draws, (batch_size or 1) - 1)]
    while kept:
        yield next(one_pass([kept]))
        kept = list(islice(draws, batch_size))


def _first(batches: Iterable[Int64Array], at_most: int) -> list[Epoch]:
    """Return the first batches as one epoch, up to so many draws; nothing if there are none."""
    kept, drawn = [], 0
    for batch in batches:
        kept.append(batch)
        drawn += len(batch)
        if drawn >= at_most:
            break
    return [Epoch.of(kept)] if kept else []


def _in_a_row(
    batches: Iterator[Int64Array], num_samples: int, steps_per_epoch: int | None, at_most: int
) -> list[Epoch]:
    """Return the epochs of batches in a row: each has `steps_per_epoch`, or as many as fit into N draws."""
    found: list[Epoch] = []
    kept: list[Int64Array] = []
    drawn = in_all = 0
    for batch in batches:
        ended = len(kept) == steps_per_epoch if steps_per_epoch is not None else drawn + len(batch) > num_samples
        if kept and ended:
            found.append(Epoch.of(kept))
            kept, drawn = [], 0
        kept.append(batch)
        drawn += len(batch)
        in_all += len(batch)
        if in_all >= at_most:
            break
    # A part of an epoch is worth reading where there is no other, and no longer than those before it.
    if kept and (not found or len(kept) == len(found[0].sizes)):
        found.append(Epoch.of(kept))
    return found


def _check_range(epochs: list[Epoch], num_samples: int) -> None:
    for epoch in epochs:
        if epoch.indices.min() < 0:
            raise ValueError(f"indices should not be negative, but got {epoch.indices.min()}")
        if epoch.indices.max() >= num_samples:
            raise ValueError(f"indices should be below num_samples = {num_samples}, but got {epoch.indices.max()}")
