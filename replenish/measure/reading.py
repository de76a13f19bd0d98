"""Reading what a source draws, in epochs: an order, a torch loader or sampler, or lists of batches.

Nothing here imports torch. A loader is read through its `batch_sampler` or `sampler`, which reads no data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np

from replenish import checks
from replenish.draws import Int64Array, KeyedWords, Purpose, derived_seed
from replenish.orders.protocol import Order

IndexSource = Order | Iterable[Any]


@dataclass(frozen=True, eq=False)
class Epoch:
    """What one pass over a source drew, or the first batches of it.

    Attributes:
        samples: The samples drawn, in order: indices, or numbers given to the items of a stream.
        sizes: The size of each batch.
        whole: Whether the pass reached its end.
        number: The sampler's `epoch` when the pass began; None if it has none.
    """

    samples: Int64Array
    sizes: Int64Array
    whole: bool = True
    number: int | None = None

    @classmethod
    def of(cls, batches: Sequence[Int64Array], **rest: Any) -> Epoch:
        """Make an epoch of batches."""
        return cls(np.concatenate(batches), np.array([len(batch) for batch in batches], dtype=np.int64), **rest)

    def batches(self) -> list[Int64Array]:
        """Return the batches."""
        return np.split(self.samples, np.cumsum(self.sizes)[:-1])

    @cached_property
    def batch_of(self) -> Int64Array:
        """The batch of each draw, counted from 0."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def repeats(self) -> int:
        """How many draws repeat a sample of this epoch."""
        return int((np.diff(np.sort(self.samples)) == 0).sum())

    def without_sorting(self, number: int) -> Epoch:
        """Return the same batches, with the draws of each in random order if every batch is sorted.

        The order within a batch does not matter to training, but sorted batches would look alike. The epoch's `number`
        chooses the random order.
        """
        rising = self.samples[1:] > self.samples[:-1]
        inside = self.batch_of[1:] == self.batch_of[:-1]
        if not inside.any() or not rising[inside].all():
            return self
        keys = KeyedWords(derived_seed(0, "batches"), Purpose.INDEPENDENT).at(number).words(len(self.samples))
        return Epoch(self.samples[np.lexsort((keys, self.batch_of))], self.sizes)

    def distinct(self) -> Epoch:
        """Return the same batches without repeats of a sample in a batch."""
        if not self.repeats:
            return self
        by_sample = np.lexsort((self.samples, self.batch_of))
        again = (np.diff(self.samples[by_sample]) == 0) & (np.diff(self.batch_of[by_sample]) == 0)
        kept = np.ones(len(self.samples), dtype=np.bool_)
        kept[by_sample[1:][again]] = False
        return Epoch(self.samples[kept], np.bincount(self.batch_of[kept], minlength=len(self.sizes)))

    def merged(self, batches: int) -> Epoch:
        """Return the same draws with so many batches merged into one, without those left over at the end."""
        groups = len(self.sizes) // batches
        sizes = self.sizes[: groups * batches].reshape(groups, batches).sum(axis=1)
        return Epoch(self.samples[: sizes.sum()], sizes)

    def regular(self) -> Epoch:
        """Return the same without a short last batch."""
        if len(self.sizes) > 1 and self.sizes[-1] < self.sizes[0]:
            return Epoch(self.samples[: len(self.samples) - self.sizes[-1]], self.sizes[:-1])
        return self


@dataclass(frozen=True, eq=False)
class Draws:
    """The draws of some consecutive steps, from any source of samples."""

    samples: Int64Array  # the samples of all steps, in order
    sizes: Int64Array  # how many each step drew
    num_samples: int  # how many samples there are

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return len(self.sizes)

    @property
    def steps_per_epoch(self) -> float:
        """The steps of an effective epoch: N/B, where B is the usual size of a batch."""
        return self.num_samples / float(np.median(self.sizes))


def read_draws(source: IndexSource, epochs: int, *, start: int = 0, num_samples: int | None = None) -> Draws:
    """Read the steps of some epochs; the arguments are the same as for `replenish.diagnostics.noise_spectrum`.

    Each pass over an iterable of batches is an epoch. An iterator is read once, to its end.
    """
    epochs = checks.integer("epochs", epochs, minimum=1)
    start = checks.step(start, "start")
    if num_samples is not None:
        num_samples = checks.integer("num_samples", num_samples, minimum=1)
    if isinstance(source, Order):
        if num_samples not in (None, source.num_samples):
            raise ValueError(
                f"num_samples should be left out for an order, which has {source.num_samples}, but got {num_samples}"
            )
        num_samples = source.num_samples
        batches = list(source.batches(start, start + epochs * source.steps_per_epoch))
    else:
        if start:
            raise ValueError(f"start should be 0 except for an Order, which can begin at any step, but got {start}")
        if num_samples is None:
            num_samples = known_samples(source)
        sampler = index_sampler(source)
        passes = 1 if isinstance(sampler, Iterator) else epochs
        batches = [batch for _ in range(passes) for batch in one_pass(sampler)]
    if not batches:
        raise ValueError("source should yield at least one batch, but got none")
    read = Epoch.of(batches)
    if num_samples is None:
        num_samples = int(read.samples.max()) + 1
    _check_range([read], num_samples)
    return Draws(read.samples, read.sizes, num_samples)


def index_sampler(source: Any) -> Iterable[Any]:
    """Return the sampler that yields a loader's indices; return anything else unchanged."""
    if reads_a_stream(source):
        raise TypeError(
            f"source should draw indices, but got a {type(source).__name__} over an iterable dataset, which has none: "
            f"replenish.audit reads streams item by item"
        )
    for name in ("batch_sampler", "sampler"):
        sampler = getattr(source, name, None)
        # Only a loader has a dataset. A batch sampler has a `sampler` too, but is read itself.
        if sampler is not None and hasattr(source, "dataset"):
            return sampler
    if not isinstance(source, Iterable):
        raise TypeError(
            f"source should be an Order, a loader or an iterable of batches of indices, but got a "
            f"{type(source).__name__}"
        )
    return source


def reads_a_stream(source: Any) -> bool:
    """Return whether a loader reads an iterable dataset, which has no indices."""
    dataset = getattr(source, "dataset", None)
    return hasattr(source, "batch_sampler") and any(
        kind.__name__ == "IterableDataset" for kind in type(dataset).__mro__
    )


def known_samples(source: Any) -> int | None:
    """Return the number of samples of a loader or sampler, or None if it is not known."""
    sampler = getattr(source, "sampler", None)
    for owner, name in ((source, "dataset"), (source, "data_source"), (sampler, "data_source"), (sampler, "dataset")):
        data: Any = getattr(owner, name, None)
        if hasattr(data, "__len__"):
            return len(data)
    order = getattr(source, "order", None)
    return order.num_samples if isinstance(order, Order) else None


def one_pass(sampler: Iterable[Any]) -> Iterator[Int64Array]:
    """Yield the batches of one pass as arrays of indices; single indices become batches of one."""
    for batch in sampler:
        indices = np.atleast_1d(np.asarray(batch))
        if indices.dtype.kind not in "iu" or indices.ndim != 1 or not indices.size:
            raise TypeError(f"each batch should be a list of indices, but got {batch!r:.80}")
        yield indices.astype(np.int64)


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
    """Read some epochs of a source, up to `max_draws` draws; the arguments are the same as for `shuffle_quality`."""
    if isinstance(source, Order):
        return order_epochs(source, epochs or 3, max_draws)
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
            found = first_batches(batches, max_draws // (epochs or 3))
            read += [] if found is None else [found]
    if not read:
        raise ValueError("source should yield at least one batch, but got none")
    _check_range(read, num_samples)
    return read


def order_epochs(order: Order, epochs: int, max_draws: int) -> list[Epoch]:
    """Return the first epochs of an order, or only their first batches if they have more than `max_draws` draws."""
    steps = min(order.steps_per_epoch, max(1, max_draws // (epochs * order.batch_size)))
    starts = [epoch * order.steps_per_epoch for epoch in range(epochs)]
    read = [list(order.batches(start, start + steps)) for start in starts]
    return [Epoch.of(batches) for batches in read if any(map(len, batches))]


def _batches(sampler: Iterable[Any], batch_size: int | None) -> Iterator[Int64Array]:
    """Yield batches; group single indices by `batch_size`."""
    draws = iter(sampler)
    first = next(draws, None)
    if first is None:
        return
    single = np.ndim(first) == 0
    if single and batch_size is None:
        raise ValueError("batch_size should say how many indices make a batch, since the source yields single ones")
    if not single and batch_size is not None:
        raise ValueError(f"batch_size is for sources of single indices, but got {batch_size} with one of batches")
    draws = chain([first], draws)
    if not single:
        yield from one_pass(draws)
        return
    while kept := list(islice(draws, batch_size)):
        yield from one_pass([kept])


def first_batches(batches: Iterable[Int64Array], at_most: int, number: int | None = None) -> Epoch | None:
    """Return the first batches of a pass as an epoch, up to `at_most` draws; None if there are none."""
    kept, drawn = [], 0
    for batch in batches:
        kept.append(batch)
        drawn += len(batch)
        if drawn >= at_most:
            break
    return Epoch.of(kept, whole=drawn < at_most, number=number) if kept else None


def _in_a_row(
    batches: Iterator[Int64Array], num_samples: int, steps_per_epoch: int | None, at_most: int
) -> list[Epoch]:
    """Split consecutive batches into epochs of `steps_per_epoch` batches, or of as many as fit into N draws."""
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
    # Keep the last epoch only if it is complete or the only one.
    if kept and (not found or len(kept) == len(found[0].sizes)):
        found.append(Epoch.of(kept))
    return found


def _check_range(epochs: list[Epoch], num_samples: int) -> None:
    for epoch in epochs:
        if epoch.samples.min() < 0:
            raise ValueError(f"indices should not be negative, but got {epoch.samples.min()}")
        if epoch.samples.max() >= num_samples:
            raise ValueError(f"indices should be below num_samples = {num_samples}, but got {epoch.samples.max()}")
