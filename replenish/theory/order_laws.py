"""Which law an order obeys: the one place where orders and their laws meet.

`noise_law` and `gap_law` choose by the type of the order. A new order says its laws by adding itself:

    @noise_law.of(MyOrder)
    def _(order: MyOrder) -> NoiseLaw: ...

Orders with no law in closed form are left out; `NoLawError` then says how to measure them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from replenish.orders.batched_replacement import BatchedReplacement
from replenish.orders.cursor import CursorOrder
from replenish.orders.flip_flop import FlipFlop
from replenish.orders.independent_draws import IndependentDraws
from replenish.orders.protocol import Order, check_order
from replenish.orders.random_reshuffling import RandomReshuffling
from replenish.orders.sequenced_replacement import SequencedReplacement
from replenish.orders.sequences import IdentitySequence, ListedSequence, ReshuffledSequence, ShuffledSequence
from replenish.orders.shuffle_once import ShuffleOnce
from replenish.theory.gap_laws import GapLaw, GeometricGaps, ListedGaps, PoolGaps, epoch_gaps, palindrome_gaps
from replenish.theory.noise_laws import EpochNoise, NoiseLaw, PalindromeNoise, WhiteNoise
from replenish.theory.pool_noise import PoolNoise
from replenish.theory.sequence_noise import BatchMeanNoise, RepeatedEpochNoise, SequenceNoise

Law = TypeVar("Law")


class NoLawError(ValueError):
    """The order has no law in closed form; it can still be measured."""


class LawsByOrder(Generic[Law]):
    """The laws of one kind, by the type of the order.

    A subclass of an order does not have its law unless it is added too: it may do something else.

    Args:
        what: What the laws are about, for the message if there is none.
        measured: The function of `replenish.diagnostics` that measures the same.
    """

    def __init__(self, what: str, measured: str) -> None:
        self._what, self._measured = what, measured
        self._laws: dict[type, Callable[[Any], Law]] = {}

    def of(self, *order_classes: type) -> Callable[[Callable[[Any], Law]], Callable[[Any], Law]]:
        """Return a decorator for the function that makes the law of such orders."""

        def add(law: Callable[[Any], Law]) -> Callable[[Any], Law]:
            self._laws.update(dict.fromkeys(order_classes, law))
            return law

        return add

    def __call__(self, order: Order) -> Law:
        """Return the law of an order, or raise."""
        if type(order) in self._laws:
            return self._laws[type(order)](order)
        check_order(order)
        raise self.missing(
            f"order should be one whose law of the {self._what} is known, but got {type(order).__name__}"
        )

    def missing(self, why: str) -> NoLawError:
        """Return the error that says why there is no law, and how to measure."""
        return NoLawError(f"{why}: measure it with replenish.diagnostics.{self._measured}(order)")


noise_law: LawsByOrder[NoiseLaw] = LawsByOrder("noise", "noise_spectrum")
gap_law: LawsByOrder[GapLaw] = LawsByOrder("gaps", "visit_gaps")

# ---- Steps that know nothing of each other ----


@noise_law.of(IndependentDraws)
def _(order: IndependentDraws) -> NoiseLaw:
    return WhiteNoise(order.num_samples, order.batch_size)


@gap_law.of(IndependentDraws)
def _(order: IndependentDraws) -> GapLaw:
    chance = -np.expm1(order.batch_size * np.log1p(-1 / order.num_samples)) if order.num_samples > 1 else 1.0
    return GeometricGaps(float(chance), order.num_samples / order.batch_size)


@noise_law.of(BatchedReplacement)
def _(order: BatchedReplacement) -> NoiseLaw:
    n, b = order.num_samples, order.batch_size
    return WhiteNoise(n, b, level=(n - b) / max(n - 1, 1))


@gap_law.of(BatchedReplacement)
def batched_gaps(order: CursorOrder) -> GapLaw:
    """Return the gaps where each step has a sample with probability B/N."""
    return GeometricGaps(order.batch_size / order.num_samples, order.num_samples / order.batch_size)


# ---- Permutations cut into batches ----


_NOISE: dict[type, Callable[[int, int, int, float], NoiseLaw]] = {
    RandomReshuffling: EpochNoise,
    FlipFlop: PalindromeNoise,
    ShuffleOnce: RepeatedEpochNoise,
}
_GAPS = {RandomReshuffling: epoch_gaps, FlipFlop: palindrome_gaps}


@noise_law.of(*_NOISE)
def _(order: RandomReshuffling | FlipFlop | ShuffleOnce) -> NoiseLaw:
    # The mean over the batches of an epoch of B / (size of the batch).
    inverse_size = 1 + (order.batch_size / order.last_batch_size - 1) / order.steps_per_epoch
    return _NOISE[type(order)](order.num_samples, order.batch_size, order.steps_per_epoch, inverse_size)


@gap_law.of(*_GAPS)
def _(order: RandomReshuffling | FlipFlop) -> GapLaw:
    return _GAPS[type(order)](order.num_samples, order.batch_size, order.steps_per_epoch)


@gap_law.of(ShuffleOnce)
def _(order: ShuffleOnce) -> GapLaw:
    always = np.zeros(order.steps_per_epoch)
    always[-1] = 1
    return ListedGaps(always, order.num_samples / order.batch_size)


# ---- Pools ----


@noise_law.of(SequencedReplacement)
def _(order: SequencedReplacement) -> NoiseLaw:
    n, b = order.num_samples, order.batch_size
    if isinstance(order._sequence, ReshuffledSequence):
        rounds = EpochNoise(n, b, n // b) if n % b == 0 else BatchMeanNoise(n, b, EpochNoise(n, 1, n))
        return PoolNoise(n, b, order.pool_size, rounds)
    if not _has_every_sample_once(order):
        raise noise_law.missing(_UNEVEN)
    return PoolNoise(n, b, order.pool_size, SequenceNoise(n, b))


@gap_law.of(SequencedReplacement)
def _(order: SequencedReplacement) -> GapLaw:
    if isinstance(order._sequence, ReshuffledSequence):
        raise gap_law.missing("sequence should be fixed for a law of the gaps, but got one that is reshuffled")
    if not _has_every_sample_once(order):
        raise gap_law.missing(_UNEVEN)
    return PoolGaps(order.pool_size / order.num_samples)


_UNEVEN = "order should refill its pool by a fixed sequence of every sample once for a law, but got another sequence"


def _has_every_sample_once(order: SequencedReplacement) -> bool:
    sequence = order._sequence
    if isinstance(sequence, ListedSequence):
        return sequence.length == order.num_samples == len(np.unique(sequence.indices))
    return isinstance(sequence, (IdentitySequence, ShuffledSequence))
