"""`measure`: how often an `Order` draws each sample, how far apart, and how evenly over classes and time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.checks import Floats
from replenish.draws import DRAWS_PER_BLOCK, DistinctDraws, Int64Array
from replenish.measure.gaps import GapCounter
from replenish.notebook import html_table
from replenish.orders.protocol import Order, check_order
from replenish.orders.sequenced_replacement import SequencedReplacement
from replenish.stream.window import MAX_POSITION, positions_before

PARTS_PER_EPOCH = 20  # the resolution of gaps, ages and class rates, in parts of an effective epoch


@dataclass(frozen=True)
class PoolMeasurement:
    """The pool of an SRS order after the last step measured.

    Attributes:
        copies: How many samples have 0, 1, 2, ... copies in the pool.
        ages: A histogram of the time since each slot was refilled, in bins of `1 / PARTS_PER_EPOCH` effective epochs.
        mean_age: The mean of the ages, in effective epochs.
    """

    copies: Int64Array
    ages: Int64Array
    mean_age: float


@dataclass(frozen=True)
class ClassMeasurement:
    """How the classes are spread.

    Attributes:
        spread: The mean square deviation of a batch's class counts from their shares, as a ratio to a batch drawn from
            all samples without replacement: 1 for a good shuffle, more if classes come in bunches. A batch of more than
            all samples is compared with whole rounds of them and a rest drawn in this way; nan without a rest.
        rates: (PARTS_PER_EPOCH, classes): the rate of each class over the parts of an effective epoch, averaged over
            all epochs; 1 is its share of the samples.
    """

    spread: float
    rates: Floats


@dataclass(frozen=True, repr=False)
class Measurement:
    """What `measure` found; arrays over epochs have one entry for each effective epoch.

    Attributes:
        config: The order's config.
        epochs: How many effective epochs were run.
        counts: The draws of each sample over all of them.
        unseen: The fraction of samples that the epoch left out.
        never_seen: The fraction of samples that no epoch so far has drawn.
        smallest: The fewest draws of a sample within the epoch.
        largest: The most draws of a sample within the epoch.
        count_spread: The variance over samples of the draws up to the end of the epoch.
        gaps: A histogram of the gaps between successive draws of a sample, in bins of `1 / PARTS_PER_EPOCH` effective
            epochs; the last bin has all longer ones.
        mean_gap: The mean gap, in effective epochs; nan if no sample was drawn twice.
        repeats: The fraction of gaps of a single step: the sample is drawn again at once.
        equal_pairs: The mean number of pairs of equal samples in a batch.
        pool: The pool at the end, for SRS orders; otherwise None.
        classes: The spread of classes; None without labels.
    """

    config: dict[str, int | str]
    epochs: int
    counts: Int64Array
    unseen: Floats
    never_seen: Floats
    smallest: Int64Array
    largest: Int64Array
    count_spread: Floats
    gaps: Int64Array
    mean_gap: float
    repeats: float
    equal_pairs: float
    pool: PoolMeasurement | None
    classes: ClassMeasurement | None

    def _rows(self) -> list[tuple[str, str]]:
        """Return the name and value of each line to show."""
        rows = [
            ("effective epochs", f"{self.epochs:,}"),
            (
                "draws of a sample",
                f"{self.counts.min():,} to {self.counts.max():,}, variance {self.count_spread[-1]:.3f}",
            ),
            ("unseen in the last epoch", f"{100 * self.unseen[-1]:.2f} %"),
            ("draws of a sample in the last epoch", f"{self.smallest[-1]:,} to {self.largest[-1]:,}"),
            ("mean gap between two draws of a sample", f"{self.mean_gap:.3f} epochs"),
            ("pairs of equal samples in a batch", f"{self.equal_pairs:.4g}"),
        ]
        if self.classes is not None:
            rows.append(("spread of classes over batches (1 is a good shuffle)", f"{self.classes.spread:.3f}"))
        return rows

    def _title(self) -> str:
        named = {name: self.config.get(name, "?") for name in ("order", "num_samples", "batch_size")}
        return "Measurement of {order}, N = {num_samples}, B = {batch_size}".format(**named)

    def __repr__(self) -> str:
        wide = max(len(name) for name, _ in self._rows())
        return "\n".join([self._title(), *(f"  {name:{wide}}  {value}" for name, value in self._rows())])

    def _repr_html_(self) -> str:
        return html_table(self._title(), self._rows())


def measure(order: Order, epochs: int = 10, *, start: int = 0, labels: npt.ArrayLike | None = None) -> Measurement:
    """Run an order for some effective epochs and measure what it draws.

    Everything is vectorised: ten epochs of 1.28 million samples take a few seconds.

    Args:
        order: Any order.
        epochs: How many effective epochs to run.
        start: The step to begin at; a late one shows the steady state.
        labels: The class of each sample, 0, 1, ..., to measure the spread of classes too.

    Example:
        >>> from replenish import SequencedReplacement
        >>> found = measure(SequencedReplacement(num_samples=1000, batch_size=10), epochs=20)
        >>> bool(0.2 < found.unseen[-1] < 0.35), int(found.counts.sum())
        (True, 20000)
    """
    check_order(order)
    epochs = checks.integer("epochs", epochs, minimum=1)
    start = checks.step(start, "start")
    checks.step(start + epochs * order.steps_per_epoch, "start + epochs * steps_per_epoch")
    classes = None if labels is None else _Classes(order, labels)
    gaps = GapCounter(order.num_samples)
    totals = np.zeros(order.num_samples, dtype=np.int64)
    batches = order.batches(start, start + epochs * order.steps_per_epoch)  # once, since every call has to seek
    by_epoch = []
    for epoch in range(epochs):
        first = epoch * order.steps_per_epoch
        drawn = []
        for samples, steps in _draws(islice(batches, order.steps_per_epoch), order.batch_size):
            gaps.add(samples, first + steps)
            if classes is not None and len(samples):  # batches of random sizes may all be empty
                classes.add(samples, steps)
            drawn.append(samples)
        counts = np.bincount(np.concatenate(drawn), minlength=order.num_samples)
        totals += counts
        by_epoch.append((np.mean(counts == 0), np.mean(totals == 0), counts.min(), counts.max(), totals.var()))
    unseen, never_seen, smallest, largest, spread = map(np.array, zip(*by_epoch, strict=True))
    lengths = np.arange(len(gaps.counts))
    parts = np.minimum(lengths * PARTS_PER_EPOCH // order.steps_per_epoch, PARTS_PER_EPOCH * epochs)
    histogram = np.bincount(parts, weights=gaps.counts, minlength=PARTS_PER_EPOCH * epochs + 1).astype(np.int64)
    number = int(gaps.counts.sum())
    return Measurement(
        config=order.config(),
        epochs=epochs,
        counts=totals,
        unseen=unseen,
        never_seen=never_seen,
        smallest=smallest,
        largest=largest,
        count_spread=spread,
        gaps=histogram,
        mean_gap=int(gaps.counts @ lengths) / number / order.steps_per_epoch if number else float("nan"),
        repeats=int(gaps.counts[1]) / number if number else float("nan"),
        equal_pairs=gaps.pairs / (epochs * order.steps_per_epoch),
        pool=_pool(order, start + epochs * order.steps_per_epoch),
        classes=None if classes is None else classes.found(),
    )


def _draws(batches: Iterator[Int64Array], batch_size: int) -> Iterator[tuple[Int64Array, Int64Array]]:
    """Yield (samples, their steps counted from 0), many whole batches at a time."""
    first = 0
    while kept := list(islice(batches, max(1, DRAWS_PER_BLOCK // batch_size))):
        yield np.concatenate(kept), np.repeat(np.arange(first, first + len(kept)), [len(batch) for batch in kept])
        first += len(kept)


class _Classes:
    """Counts the classes in every batch, and in every part of an epoch."""

    def __init__(self, order: Order, labels: npt.ArrayLike) -> None:
        self._labels = checks.whole_numbers("labels", labels, order.num_samples)
        self._num_samples, self._steps = order.num_samples, order.steps_per_epoch
        self._shares = np.bincount(self._labels) / order.num_samples
        self._parts = np.zeros((PARTS_PER_EPOCH, len(self._shares)))
        self._squares, self._expected = 0.0, 0.0

    def add(self, samples: Int64Array, steps: Int64Array) -> None:
        classes, labels = len(self._shares), self._labels[samples]
        first = int(steps[0])
        rows = int(steps[-1]) - first + 1
        counts = np.bincount((steps - first) * classes + labels, minlength=rows * classes).reshape(rows, classes)
        sizes = counts.sum(axis=1, keepdims=True)
        rest = sizes % self._num_samples  # whole rounds have exactly the share of every class
        left = (self._num_samples - rest) / max(self._num_samples - 1, 1)
        self._squares += float(((counts - sizes * self._shares) ** 2).sum())
        self._expected += float((rest * left * self._shares * (1 - self._shares)).sum())
        parts = steps * PARTS_PER_EPOCH // self._steps
        self._parts += np.bincount(parts * classes + labels, minlength=self._parts.size).reshape(self._parts.shape)

    def found(self) -> ClassMeasurement:
        with np.errstate(invalid="ignore", divide="ignore"):  # a part without a step, a class without a sample
            rates = self._parts / self._parts.sum(axis=1, keepdims=True) / self._shares
        return ClassMeasurement(self._squares / self._expected if self._expected else float("nan"), rates)


def _pool(order: Order, step: int) -> PoolMeasurement | None:
    if not isinstance(order, SequencedReplacement):
        return None
    # A slot's position in the endless sequence shows when it was refilled. Positions wrap around at MAX_POSITION, which
    # is far more than the distance from any slot to the newest, so the distance modulo MAX_POSITION is right.
    positions = positions_before(DistinctDraws(order.pool_size, order.batch_size, order.seed), step)
    newest = (order.pool_size + step * order.batch_size - 1) % MAX_POSITION
    ages = np.minimum((newest - positions) % MAX_POSITION // order.batch_size, step)
    held = np.bincount(order.samples_in_pool(step), minlength=order.num_samples)
    return PoolMeasurement(
        copies=np.bincount(held),
        ages=np.bincount(ages * PARTS_PER_EPOCH // order.steps_per_epoch),
        mean_age=float(ages.mean()) / order.steps_per_epoch,
    )
