"""Reading the indices that anything draws: an order, a torch loader or sampler, lists of batches.

Nothing here imports torch: a loader is known by its `batch_sampler` and `sampler`, and only those are asked, so that no
data are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from replenish import checks
from replenish.draws import Int64Array
from replenish.orders.protocol import Order

IndexSource = Order | Iterable[Any]


@dataclass(frozen=True, eq=False)
class Draws:
    """Some steps of whatever draws samples, one after the other."""

    samples: Int64Array  # the samples of all steps, in order
    sizes: Int64Array  # how many each step drew
    num_samples: int  # how many samples there are

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return len(self.sizes)

    @property
    def step_of(self) -> Int64Array:
        """The step of each of `samples`."""
        return np.repeat(np.arange(self.steps), self.sizes)

    @property
    def steps_per_epoch(self) -> float:
        """The steps of an effective epoch: N/B, B being the usual size of a batch."""
        return self.num_samples / float(np.median(self.sizes))


def read_draws(source: IndexSource, epochs: int, *, start: int = 0, num_samples: int | None = None) -> Draws:
    """Read the steps of some epochs; the arguments are those of `replenish.diagnostics.noise_spectrum`.

    Each pass over an iterable of batches is an epoch; an iterator is read once, to its end.
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
        batches: Iterable[Any] = source.batches(start, start + epochs * source.steps_per_epoch)
        return _draws(batches, source.num_samples)
    if start:
        raise ValueError(
            f"start should be 0 for anything but an Order, which alone can begin anywhere, but got {start}"
        )
    if num_samples is None:
        num_samples = known_samples(source)
    sampler = index_sampler(source)
    passes = 1 if isinstance(sampler, Iterator) else epochs
    return _draws((batch for _ in range(passes) for batch in one_pass(sampler)), num_samples)


def index_sampler(source: Any) -> Iterable[Any]:
    """Return what yields the indices of a loader; anything else is returned as it is."""
    if reads_a_stream(source):
        raise TypeError(
            f"source should draw indices, but got a {type(source).__name__} over an iterable dataset, which has none: "
            f"replenish.audit reads streams item by item"
        )
    for name in ("batch_sampler", "sampler"):
        sampler = getattr(source, name, None)
        # A batch sampler has a `sampler` too, but is not to be taken apart: a loader is what has a dataset.
        if sampler is not None and hasattr(source, "dataset"):
            return sampler
    if not isinstance(source, Iterable):
        raise TypeError(
            f"source should be an Order, a loader or an iterable of batches of indices, but got a "
            f"{type(source).__name__}"
        )
    return source


def reads_a_stream(source: Any) -> bool:
    """Say whether a loader reads an iterable dataset, which has no indices."""
    dataset = getattr(source, "dataset", None)
    return hasattr(source, "batch_sampler") and any(
        kind.__name__ == "IterableDataset" for kind in type(dataset).__mro__
    )


def known_samples(source: Any) -> int | None:
    """Return how many samples a loader or sampler says there are, or None."""
    sampler = getattr(source, "sampler", None)
    for owner, name in ((source, "dataset"), (source, "data_source"), (sampler, "data_source"), (sampler, "dataset")):
        data: Any = getattr(owner, name, None)
        if hasattr(data, "__len__"):
            return len(data)
    order = getattr(source, "order", None)
    return order.num_samples if isinstance(order, Order) else None


def one_pass(sampler: Iterable[Any]) -> Iterator[Int64Array]:
    """Yield the batches of one pass as arrays of indices; a sampler of single indices makes batches of one."""
    for batch in sampler:
        indices = np.atleast_1d(np.asarray(batch))
        if indices.dtype.kind not in "iu" or indices.ndim != 1 or not indices.size:
            raise TypeError(f"each batch should be a list of indices, but got {batch!r:.80}")
        yield indices.astype(np.int64)


def _draws(batches: Iterable[Int64Array], num_samples: int | None) -> Draws:
    kept = list(batches)
    if not kept:
        raise ValueError("source should yield at least one batch, but got none")
    samples = np.concatenate(kept)
    if samples.min() < 0:
        raise ValueError(f"indices should not be negative, but got {samples.min()}")
    if num_samples is None:
        num_samples = int(samples.max()) + 1
    elif samples.max() >= num_samples:
        raise ValueError(f"indices should be below num_samples = {num_samples}, but got {samples.max()}")
    return Draws(samples, np.array([len(batch) for batch in kept]), num_samples)
