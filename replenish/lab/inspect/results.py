"""`inspect_orders`: measure SRS, reshuffling and replacement sampling, and compute the closed forms of SRS."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from replenish import SequencedReplacement, checks, theory
from replenish.checks import Floats
from replenish.diagnostics import PARTS_PER_EPOCH, Measurement, ShuffleQuality, measure, shuffle_quality
from replenish.measure.gaps import MeasuredGaps, gaps_of
from replenish.measure.reading import read_draws
from replenish.measure.spectrum import MeasuredSpectrum, spectrum_of
from replenish.orders import build_order
from replenish.orders.cursor import CursorOrder

T = TypeVar("T")
DEFAULT_CLASSES = 10
#: The orders that SRS is compared with.
COMPARED = ("reshuffling", "replacement")
#: Limits to the time and the memory for the spectra.
_MOST_DRAWS, _MOST_VALUES = 2**24, 2**26
_FEWEST_STEPS, _BANDS = 8, 24
#: How many draws the shuffle battery judges.
_JUDGED_DRAWS = 2**18
#: A copy counts as gone if the probability that the pool still holds it is smaller.
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class Laws:
    """The closed forms of SRS, by `replenish.theory`.

    "In the limit" means long after the start and for small steps.

    Attributes:
        unseen_first: The share of the samples that the first epoch leaves out, exactly.
        unseen: The share that an epoch leaves out, in the limit.
        never_seen: The share that all epochs leave out, exactly.
        count_spread: The variance over samples of the draws in all epochs, exactly.
        equal_pairs: Pairs of equal samples in a batch, in the limit.
        swing: The most and the fewest copies of a sample over an epoch as multiples of the mean, in the limit.
        class_rates: The rate of class 0 in the parts of an epoch, in the limit, for sorted data that are refilled in
            their own order.
        class_spread: `ClassMeasurement.spread` for the same data.
    """

    unseen_first: float
    unseen: float
    never_seen: float
    count_spread: float
    equal_pairs: float
    swing: tuple[float, float]
    class_rates: Floats
    class_spread: float


@dataclass(frozen=True)
class OrderNoise:
    """The noise of one order in bands of frequencies, and the gaps between two visits of a sample."""

    order: CursorOrder
    spectrum: MeasuredSpectrum
    gaps: MeasuredGaps
    law: list[float] | None  # the law of the noise in the same bands, without its lines; None where none is known
    gap_law: theory.GapLaw | None  # the law of the gaps; None where none is known

    @property
    def cycles(self) -> list[float]:
        """The frequencies of the bands, in cycles per effective epoch."""
        steps = self.order.num_samples / self.order.batch_size
        return [float(f"{each:.4g}") for each in self.spectrum.frequencies * steps]


@dataclass(frozen=True)
class Inspection:
    """The results of `inspect_orders`."""

    order: SequencedReplacement  # SRS with its default sequence; the other orders have its sizes and seed
    epochs: int  # how many effective epochs were run
    classes: int  # how many equal classes the sorted dataset has
    found: dict[str, Measurement]  # the measurements from step 0 on, by order
    identity: Measurement  # the measurement of SRS with the sequence `identity`, once its pool has settled
    laws: Laws  # the closed forms of SRS
    noise: dict[str, OrderNoise]  # noise and gaps by order; empty for fewer than two samples or too few steps
    shuffles: dict[str, ShuffleQuality]  # the quality of each order's shuffle; empty for a single sample

    @property
    def first_class(self) -> tuple[Floats, Floats]:
        """The rates of the first class over an epoch, with the sequence `identity` and with the shuffled one."""
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
) -> Inspection:
    """Measure SRS and the orders that it is compared with over some effective epochs, and compute the closed forms.

    Args:
        num_samples: The number of samples N, sorted by class.
        batch_size: The batch size B.
        pool_size: Slots of the pool; N by default.
        epochs: How many effective epochs to run.
        classes: How many equal classes the data have; by default 10, or N if that is less.
        seed: The seed of all orders.
        other: Another of `replenish.orders.registry.ORDERS` to measure.
        options: The options of `other`.

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
    found = {name: measure(each, epochs, labels=labels) for name, each in orders.items()}
    settled = _settled_step(order)
    in_order = SequencedReplacement(num_samples, batch_size, seed=seed, pool_size=order.pool_size, sequence="identity")
    identity = measure(in_order, epochs, start=settled, labels=labels)
    noise = _measure_noise(orders, {"SRS": settled}, epochs)
    shuffles = {
        name: shuffle_quality(each, num_samples, max_draws=_JUDGED_DRAWS)
        for name, each in orders.items()
        if each.num_samples > 1
    }
    return Inspection(order, epochs, classes, found, identity, _laws(order, epochs, classes), noise, shuffles)


def _settled_step(order: SequencedReplacement) -> int:
    """Return a step at which nothing is left of the first pool, and the sequence starts again."""
    n, b, m = order.num_samples, order.batch_size, order.pool_size
    lifetime = 1 if b == m else math.ceil(math.log(_NEGLIGIBLE) / math.log1p(-b / m))
    rounds = -(-(m + lifetime * b) // n)
    return -(-(rounds * n - m) // b)


def _laws(order: SequencedReplacement, epochs: int, classes: int) -> Laws:
    n, b, m = order.num_samples, order.batch_size, order.pool_size
    k, steps = m / n, epochs * order.steps_per_epoch
    # Averages over the samples of class 0, for eight phases in each part of an epoch.
    phases = (np.arange(8 * PARTS_PER_EPOCH) + 0.5) / (8 * PARTS_PER_EPOCH)
    since_insertion = (phases[:, np.newaxis] - (np.arange(64) + 0.5) / 64 / classes) % 1
    rates = np.vectorize(theory.limit_copies)(since_insertion, k).mean(axis=1) / k
    # A rate that is off by d makes a class's count in a batch off by d B / classes. The mean square of this, relative
    # to the variance of the count in a good shuffle, is d^2 B / (classes - 1).
    spread = 1 + (b - 1) * float(((rates - 1) ** 2).mean()) / (classes - 1) if classes > 1 else math.nan
    return Laws(
        unseen_first=theory.unseen_fraction(n, b, pool_size=m),
        unseen=theory.limit_unseen_fraction(k),
        never_seen=theory.unseen_fraction(n, b, steps, pool_size=m),
        count_spread=theory.count_spread(n, b, steps, pool_size=m),
        equal_pairs=theory.limit_equal_pairs(n, b, pool_size=m),
        swing=(theory.limit_copies(0, k) / k, theory.limit_copies(1, k) / k),
        class_rates=rates.reshape(PARTS_PER_EPOCH, 8).mean(axis=1),
        class_spread=spread,
    )


def _measure_noise(orders: Mapping[str, CursorOrder], starts: Mapping[str, int], epochs: int) -> dict[str, OrderNoise]:
    """Measure the noise and the gaps of each order, from its step in `starts` or else from 0."""
    first = next(iter(orders.values()))
    epochs = min(epochs, _MOST_DRAWS // first.num_samples)
    if first.num_samples < 2 or epochs * first.steps_per_epoch < _FEWEST_STEPS:
        return {}
    numbers = int(np.clip(_MOST_VALUES // (epochs * first.num_samples), 4, 64))
    found = {}
    for name, order in orders.items():
        draws = read_draws(order, epochs, start=starts.get(name, 0))
        spectrum = spectrum_of(draws, numbers).in_bands(_BANDS)
        law = _known(theory.noise_spectrum, order, spectrum.frequencies)
        found[name] = OrderNoise(
            order,
            spectrum,
            gaps_of(draws),
            None if law is None else law.continuous.tolist(),
            _known(theory.visit_gaps, order),
        )
    return found


def _known(law: Callable[..., T], *arguments: Any) -> T | None:
    """Return the value of a law, or None if the law does not exist in closed form."""
    try:
        return law(*arguments)
    except theory.NoLawError:
        return None
