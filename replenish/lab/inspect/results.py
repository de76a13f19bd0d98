"""`inspect_orders`: SRS, reshuffling and replacement sampling measured beside the closed forms of SRS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from replenish import SequencedReplacement, checks, theory
from replenish.diagnostics import PARTS_PER_EPOCH, Measurement, measure
from replenish.lab.inspect.independent_copies import ExpectedGaps, Floats, IndependentCopies, part_edges
from replenish.lab.inspect.noise import OrderNoise, measure_noise
from replenish.lab.inspect.shuffle import OrderShuffle, measure_shuffles
from replenish.orders import build_order

DEFAULT_CLASSES = 10
#: What SRS is set beside.
COMPARED = ("reshuffling", "replacement")
# A mean over time is taken over so many of its steps, for M = N: what changes does so smoothly, over an epoch. A larger
# pool changes more slowly, and each look costs as much more as it has more copies.
_STEPS_LOOKED_AT = 200
_EPOCHS_LOOKED_AT = 10


@dataclass(frozen=True)
class Laws:
    """The closed forms of SRS for what `Measurement` measures, from step 0 on."""

    unseen: Floats  # the part of the samples that each epoch leaves out; exact for the first
    unseen_in_the_long_run: float  # what it tends to for small steps
    never_seen: Floats  # the part that no epoch up to this one had
    counts: Floats  # which part of the samples is drawn 0, 1, 2, ... times in all epochs
    count_spread: float  # the variance of the draws over samples, exactly
    gaps: ExpectedGaps  # the gaps between two draws of a sample, in the long run
    equal_pairs: float  # pairs of equal samples in a batch, on average over all steps
    without_copy: float  # the part of the samples that have no copy in the pool at the end
    copy_spread: float  # the variance over samples of their copies in the pool at the end, exactly
    mean_age: float  # the mean age of a slot's content at the end, in effective epochs, exactly
    # The most and the least copies of a sample over an epoch, as multiples of the mean, in the long run.
    swing: tuple[float, float]
    # The rate of class 0 over the parts of an epoch, for sorted data that are refilled in their order.
    class_rates: Floats
    class_spread: float  # `ClassMeasurement.spread` for the same


@dataclass(frozen=True)
class Inspection:
    """What `inspect_orders` found: the measurements of SRS and the orders beside it, by name, from step 0 on.

    The one with the sequence `identity` is from a step on at which its pool has settled. All orders are variants of
    the first; the noise of each is empty where there is none to be measured.
    """

    order: SequencedReplacement
    epochs: int
    classes: int
    found: dict[str, Measurement]
    identity: Measurement
    laws: Laws
    noise: dict[str, OrderNoise]
    shuffles: dict[str, OrderShuffle]

    @property
    def first_class(self) -> tuple[Floats, Floats]:
        """The rates of the first class over an epoch: data refilled in their own order, and shuffled."""
        identity, shuffled = self.identity.classes, self.found["SRS"].classes
        assert identity is not None  # both were measured with labels
        assert shuffled is not None
        return identity.rates[:, 0], shuffled.rates[:, 0]


def inspect_orders(
    num_samples: int,
    batch_size: int,
    *,
    pool_size: int | None = None,
    epochs: int = 10,
    classes: int | None = None,
    seed: int = 0,
    other: str | None = None,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] = lambda doing: None,
) -> Inspection:
    """Run SRS and what it is compared with for some effective epochs, and work out the closed forms.

    The samples have equal classes, one after the other, so that the dataset is sorted: 10 if none are given, or N if
    that is less. `other` is one more of `replenish.orders.registry.ORDERS` to measure beside them, built with
    `options`; `progress` is told what is being done.

    Example:
        >>> inspection = inspect_orders(1000, 10, epochs=2)
        >>> list(inspection.found), inspection.found["reshuffling"].unseen.tolist()
        (['SRS', 'reshuffling', 'replacement'], [0.0, 0.0])
    """
    order = SequencedReplacement(num_samples, batch_size, seed=seed, pool_size=pool_size)
    orders = {"SRS": order} | {name: build_order(name, num_samples, batch_size, seed=seed) for name in COMPARED}
    if other in ("srs", *COMPARED):
        raise ValueError(f"order should be one that is not measured anyway, but got {other!r}")
    if other is not None:
        orders[other] = build_order(other, num_samples, batch_size, seed=seed, **(options or {}))
    elif options:
        raise ValueError(f"option {next(iter(options))} should come with an order that has it, but got none")
    epochs = checks.integer("epochs", epochs, minimum=1)
    wanted = min(DEFAULT_CLASSES, order.num_samples) if classes is None else classes
    classes = checks.integer("classes", wanted, minimum=1, maximum=order.num_samples)
    labels = np.arange(order.num_samples) * classes // order.num_samples
    found = {}
    for name, each in orders.items():
        progress(f"running {name}")
        found[name] = measure(each, epochs, labels=labels)
    progress("running SRS with data sorted by class")
    pool = IndependentCopies(order.num_samples, order.batch_size, order.pool_size)
    in_order = SequencedReplacement(num_samples, batch_size, seed=seed, pool_size=order.pool_size, sequence="identity")
    identity = measure(in_order, epochs, start=pool.settled, labels=labels)
    progress("measuring the noise")
    noise = measure_noise(orders, {"SRS": pool.settled}, epochs)
    progress("judging the shuffles")
    shuffles = measure_shuffles(orders)
    progress("working out the closed forms")
    return Inspection(order, epochs, classes, found, identity, _laws(pool, epochs, classes), noise, shuffles)


def _laws(pool: IndependentCopies, epochs: int, classes: int) -> Laws:
    sizes = {"num_samples": pool.num_samples, "batch_size": pool.batch_size, "pool_size": pool.pool_size}
    per_epoch, k = pool.steps_per_epoch, pool.pool_size / pool.num_samples
    end = epochs * per_epoch
    settled = pool.settled // per_epoch
    unseen = [theory.unseen_fraction(**sizes)]
    for epoch in range(1, epochs):
        # Once settled, epochs are alike.
        alike = epoch > settled + 1
        unseen.append(unseen[-1] if alike else pool.unseen(epoch * per_epoch, (epoch + 1) * per_epoch))
    never_seen = unseen[:1]
    for epoch in range(1, epochs):
        never_seen.append(pool.unseen(0, (epoch + 1) * per_epoch) if never_seen[-1] > 1e-12 else 0.0)
    expected = theory.expected_copies(step=end, **sizes)
    rates, class_spread = _class_rates(pool, epochs, classes)
    return Laws(
        unseen=np.array(unseen),
        unseen_in_the_long_run=theory.limit_unseen_fraction(k),
        never_seen=np.array(never_seen),
        counts=pool.counts(end),
        count_spread=theory.count_spread(step=end, **sizes),
        gaps=pool.gaps(epochs),
        equal_pairs=_equal_pairs(pool, end),
        without_copy=float(pool.copies(end)[1][:, 0].mean()),
        # The copies add up to M, so their mean is M/N for every seed: see `theory.count_spread`.
        copy_spread=float((theory.count_variance(step=end, **sizes) + (expected - k) ** 2).mean()),
        mean_age=_mean_age(pool, end),
        swing=(theory.limit_copies(0, k) / k, theory.limit_copies(1, k) / k),
        class_rates=rates,
        class_spread=class_spread,
    )


def _equal_pairs(pool: IndependentCopies, end: int) -> float:
    """Return the mean over the steps before `end` of `theory.expected_equal_pairs`."""
    n, b, m = pool.num_samples, pool.batch_size, pool.pool_size
    number = min(end, max(20, min(_STEPS_LOOKED_AT, _STEPS_LOOKED_AT * n // m)))
    pairs = 0.0
    for step in (2 * np.arange(number) + 1) * end // (2 * number):
        copies = theory.expected_copies(n, b, int(step), pool.places, pool_size=m)
        variance = theory.count_variance(n, b, int(step), pool.places, pool_size=m)
        pairs += float((variance - copies + copies**2).mean()) / 2  # of copies of one sample in the pool
    return pairs / number * n * (b / m) * ((b - 1) / max(m - 1, 1))


def _mean_age(pool: IndependentCopies, step: int) -> float:
    """Return the mean number of draws that a slot's content has escaped, in effective epochs."""
    stays = 1 - pool.batch_size / pool.pool_size
    # A slot keeps its content for `a` draws with probability stays^a: sum it over a = 1 ... step.
    return pool.pool_size / pool.batch_size * stays * (1 - stays**step) / pool.steps_per_epoch


def _class_rates(pool: IndependentCopies, epochs: int, classes: int) -> tuple[Floats, float]:
    """Return what `ClassMeasurement` has for sorted data in its own order: the rates of class 0, and the spread.

    The rate of a class is the copies that its samples have in the pool, over the mean. Where it is off by a part d, the
    count in a batch is so by d B / classes; the mean square of this over that of a batch without it,
    B (1 - 1 / classes) / classes, is d^2 B / (classes - 1), of which chance would have had d^2 / (classes - 1).
    """
    n, b, m = pool.num_samples, pool.batch_size, pool.pool_size
    size = -(-n // classes)
    number = min(size, 64)
    places = (2 * np.arange(number) + 1) * size // (2 * number)
    number = min(epochs, max(1, min(_EPOCHS_LOOKED_AT, _EPOCHS_LOOKED_AT * n // m)))
    rates = np.full((number, PARTS_PER_EPOCH, 2), np.nan)
    edges = part_edges(pool.steps_per_epoch, 1)
    for row, epoch in enumerate(np.linspace(0, epochs - 1, number).round().astype(int)):
        for part, (start, stop) in enumerate(pairwise(edges.tolist())):
            if start == stop:
                continue
            for side in range(2):  # two of its steps, as far from its middle
                inside = start + round((stop - 1 - start) * (1 + 2 * side) / 4)
                step = int(pool.settled + epoch * pool.steps_per_epoch + inside)
                rates[row, part, side] = theory.expected_copies(n, b, step, places, pool_size=m).mean() * n / m
    # One class has nothing to be spread: `measure` says nan too.
    spread = 1 + (b - 1) * float(np.nanmean((rates - 1) ** 2)) / (classes - 1) if classes > 1 else float("nan")
    return rates.mean(axis=(0, 2)), spread
