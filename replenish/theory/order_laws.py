"""The laws of an order: the spectrum of its noise and the gaps between visits, chosen by the order's type.

A new order gets a line in each of the two tables at the end, unless it has no law in closed form. `NoLawError` then
names the function that measures it.

The noise laws average over all ways to assign numbers to samples, so they do not depend on shards, classes or lengths.
If a sample is equally likely to come at any step of an epoch, independently of other epochs, the noise is as with
reshuffling. For such orders, sizes that leave short batches or uneven blocks have no closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from replenish import checks, orders
from replenish.checks import Floats
from replenish.orders.epochs import EpochOrder
from replenish.orders.protocol import Order, check_order
from replenish.orders.sequences import IdentitySequence, ListedSequence, ReshuffledSequence, ShuffledSequence
from replenish.theory.gap_laws import GapLaw, GeometricGaps, ListedGaps, PoolGaps, epoch_gaps, palindrome_gaps
from replenish.theory.noise_laws import (
    EpochNoise,
    EpochsNoise,
    MixtureNoise,
    NoiseLaw,
    PairedEpochsNoise,
    PalindromeNoise,
    RepeatedEpochNoise,
    WhiteNoise,
)
from replenish.theory.pool_noise import BatchMeanNoise, BufferNoise, GivenSequenceNoise, PoolNoise, SequenceNoise

Law = TypeVar("Law")


class NoLawError(ValueError):
    """The order has no law in closed form; it can still be measured."""


@dataclass(frozen=True, eq=False)
class NoiseSpectrum:
    """The spectrum of an order's noise, relative to the white noise of independent draws.

    Attributes:
        frequencies: In cycles per step, between 0 and 1/2.
        continuous: The spectral density at these frequencies; independent draws have 1.
        line_frequencies: The frequencies of the lines.
        line_powers: The power of each line, at f and -f together, relative to the variance of a white step. A line at
            frequency 0 is a bias: the batches' lasting distance from the mean of the data.
    """

    frequencies: Floats
    continuous: Floats
    line_frequencies: Floats
    line_powers: Floats


def noise_spectrum(order: Order, frequencies: ArrayLike, *, values: ArrayLike | None = None) -> NoiseSpectrum:
    """Return the spectrum of the noise that an order makes, exact at finite sizes, long after the start.

    Each sample has a fixed number, such as a component of its gradient, and x_t is the mean over batch t. The spectrum
    of x_t is averaged over all ways to assign the numbers to the samples. If batches have random sizes (Poisson draws,
    balls in bins), x_t is the sum over the batch divided by the argument `batch_size`, as in private SGD. The mean over
    the samples drawn would vary more.

    Args:
        order: One of the library's orders with a law.
        frequencies: In cycles per step, between 0 and 1/2; B/N is once per effective epoch.
        values: For SRS with a fixed sequence: the number of each sample, in one column or several, to be used instead
            of the average over all ways to assign numbers.

    Raises:
        NoLawError: The order has no law in closed form; `replenish.diagnostics.noise_spectrum` measures it.

    Example:
        >>> from replenish import RandomReshuffling, SequencedReplacement
        >>> frequencies = [0, 0.001, 0.005, 0.5]  # 0.01 would be once per epoch
        >>> noise_spectrum(SequencedReplacement(1000, 10), frequencies).continuous.round(2)
        array([0.  , 0.28, 0.91, 1.  ])
        >>> noise_spectrum(RandomReshuffling(1000, 10), frequencies).continuous.round(2)
        array([0.  , 0.03, 0.6 , 1.  ])
    """
    where = checks.reals("frequencies", frequencies, maximum=0.5)
    law = noise_law(order, values)
    return NoiseSpectrum(where, law.continuous(where), *law.lines())


def visit_gaps(order: Order) -> GapLaw:
    """Return the law of the gap between two visits of a sample, in effective epochs.

    Exact for finite sizes, except for SRS, whose law is the limit of many small steps.

    Raises:
        NoLawError: The order has no law in closed form; `replenish.diagnostics.visit_gaps` measures it.

    Example:
        >>> from replenish import RandomReshuffling, SequencedReplacement
        >>> round(visit_gaps(RandomReshuffling(50_000, 50)).variance, 3)
        0.167
        >>> round(visit_gaps(SequencedReplacement(50_000, 50)).variance, 3)
        0.482
    """
    return _law(_GAP_LAWS, "gaps", "visit_gaps", order)


def noise_law(order: Order, values: ArrayLike | None = None) -> NoiseLaw:
    """Return the law of an order's noise, averaged or for the numbers `values` of the samples, or raise."""
    return (
        _law(_NOISE_LAWS, "noise", "noise_spectrum", order) if values is None else _noise_law_of_values(order, values)
    )


def _law(laws: Mapping[type, Callable[[Any], Law]], what: str, measured: str, order: Order) -> Law:
    try:
        # A subclass of an order may draw differently, so it needs its own entry.
        if type(order) in laws:
            return laws[type(order)](order)
        check_order(order)
        raise NoLawError(f"order should be one whose law of the {what} is known, but got {type(order).__name__}")
    except NoLawError as why:
        raise NoLawError(f"{why}: measure it with replenish.diagnostics.{measured}(order)") from None


def _sizes(order: orders.Order) -> tuple[int, int, int]:
    return order.num_samples, order.batch_size, order.steps_per_epoch


def _require_whole_batches(order: orders.Order) -> None:
    if order.num_samples % order.batch_size:
        raise NoLawError("batch_size should divide num_samples for a law, but got one that does not")


# ---- Independent steps ----


def _batched_noise(order: orders.BatchedReplacement) -> NoiseLaw:
    n, b = order.num_samples, order.batch_size
    return WhiteNoise(n, b, level=(n - b) / max(n - 1, 1))


def _weighted_noise(order: orders.WeightedDraws) -> NoiseLaw:
    """Return the law of draws with probabilities p_i, which coincide with probability sum p^2.

    So the level is N/(N-1) (1 - sum p^2). The weighted mean differs from the plain one, and their squared distance is
    a line at frequency 0 of the power B N/(N-1) (sum p^2 - 1/N).
    """
    n, b = order.num_samples, order.batch_size
    shares = order.weights / order.weights.max()
    coincidence = float(np.sum((shares / shares.sum()) ** 2))
    factor = WhiteNoise(n, b).finite_size
    return WhiteNoise(n, b, factor * (1 - coincidence), bias=b * factor * (coincidence - 1 / n))


def _independent_gaps(order: orders.IndependentDraws) -> GapLaw:
    chance = -np.expm1(order.batch_size * np.log1p(-1 / order.num_samples)) if order.num_samples > 1 else 1.0
    return GeometricGaps(float(chance), order.num_samples / order.batch_size)


def _batched_gaps(order: orders.BatchedReplacement | orders.PoissonDraws) -> GapLaw:
    return GeometricGaps(order.batch_size / order.num_samples, order.num_samples / order.batch_size)


# ---- Permutations cut into batches ----


def _epochs_noise(law: type[EpochsNoise], order: EpochOrder) -> NoiseLaw:
    # The mean over the batches of an epoch of B / (size of the batch).
    inverse_size = 1 + (order.batch_size / order.last_batch_size - 1) / order.steps_per_epoch
    return law(*_sizes(order), inverse_size=inverse_size)


def _once_gaps(order: orders.ShuffleOnce) -> GapLaw:
    always = np.zeros(order.steps_per_epoch)
    always[-1] = 1
    return ListedGaps(always, order.num_samples / order.batch_size)


def _paired_noise(order: orders.PairedReversal) -> NoiseLaw:
    _require_whole_batches(order)
    return PairedEpochsNoise(*_sizes(order), tuple(order._arranged(np.arange(order.num_samples), epoch=1).tolist()))


# ---- Any step of the epoch, equally likely ----


def _even_sizes(order: orders.Order) -> tuple[int, int, int]:
    """Return the sizes, or raise and name the reason why the steps of a sample are not equally likely."""
    why = ""
    if order.num_samples % order.batch_size:
        why = "batch_size should divide num_samples"
    elif isinstance(order, (orders.BlockShuffle, orders.Jitter)) and len(set(order._shards.sizes.tolist())) > 1:
        why = "shard_size should be one for all shards"
    elif isinstance(order, orders.BlockShuffle) and (order.staggered or order.window % int(order._shards.sizes[0])):
        why = "window should be of whole shards"
    elif isinstance(order, orders.BlockReshuffling) and order.num_samples % order.block_size:
        why = "block_size should divide num_samples"
    elif isinstance(order, orders.LengthGrouped) and not order.shuffle_batches:
        why = "shuffle_batches should be True"
    elif isinstance(order, orders.Stratified):
        uneven = any(len(members) % order.steps_per_epoch for members in order._members)
        if uneven or order.weights is not None or order.within != "reshuffling":
            why = "every class should have as many samples in each batch"
    if why:
        raise NoLawError(f"{why} for a law in closed form, but got {type(order).__name__} where it is not so")
    return _sizes(order)


def _bins_noise(order: orders.BallsInBins) -> NoiseLaw:
    """Return the law of reshuffling with samples that are independent of each other: S/S0 = N/(B T) (1 - F/T)."""
    n, b, steps = _sizes(order)
    level = (n - 1) / (b * steps)
    return EpochNoise(n, b, steps, inverse_size=level, dip=level / steps)


def _bins_gaps(order: orders.BallsInBins) -> GapLaw:
    n, b, steps = _sizes(order)
    return epoch_gaps(steps, 1, steps, n / b)


def _repeated_sizes(order: orders.RepeatedAugmentation) -> tuple[int, int, int]:
    if order.num_samples % order.batch_size or order.batch_size % order.repeats:
        raise NoLawError("batch_size should divide num_samples and be a multiple of repeats for a law, but got others")
    return _sizes(order)


def _repeated_gaps(order: orders.RepeatedAugmentation) -> GapLaw:
    n, b, steps = _repeated_sizes(order)
    return epoch_gaps(n, b // order.repeats, steps, n / b)


# ---- Pools and buffers ----


def _buffer_noise(order: orders.ShuffleBuffer) -> NoiseLaw:
    _require_whole_batches(order)
    if len(order._shards.sizes) > 1:
        raise NoLawError("shard_size should be None for a law, but got shards")
    whole = order.buffer_size >= order.num_samples
    return EpochNoise(*_sizes(order)) if whole else BufferNoise(*_sizes(order), order.buffer_size)


def _pool_noise(order: orders.SequencedReplacement) -> NoiseLaw:
    n, b = order.num_samples, order.batch_size
    sequence: NoiseLaw
    if not isinstance(order._sequence, ReshuffledSequence):
        _require_every_sample_once(order)
        sequence = SequenceNoise(n, b)
    else:
        sequence = EpochNoise(n, b, n // b) if n % b == 0 else BatchMeanNoise(n, b, EpochNoise(n, 1, n))
    return PoolNoise(n, b, order.pool_size, sequence)


def _pool_gaps(order: orders.SequencedReplacement) -> GapLaw:
    if isinstance(order._sequence, ReshuffledSequence):
        raise NoLawError("sequence should be fixed for a law of the gaps, but got one that is reshuffled")
    _require_every_sample_once(order)
    return PoolGaps(order.pool_size / order.num_samples)


def _require_every_sample_once(order: orders.SequencedReplacement) -> None:
    sequence = order._sequence
    if isinstance(sequence, ListedSequence):
        once = sequence.length == order.num_samples == len(np.unique(sequence.indices))
    else:
        once = isinstance(sequence, (IdentitySequence, ShuffledSequence))
    if not once:
        raise NoLawError(
            "order should refill its pool by a fixed sequence of every sample once for a law, but got another sequence"
        )


def _noise_law_of_values(order: Order, values: ArrayLike) -> NoiseLaw:
    """Return the law of SRS with a fixed sequence for the numbers of the samples, in one column or several."""
    if type(order) is not orders.SequencedReplacement or isinstance(order._sequence, ReshuffledSequence):
        raise NoLawError(
            "values should be left out, unless order is SRS with a fixed sequence: only its lines know them"
        )
    _require_every_sample_once(order)
    n, b = order.num_samples, order.batch_size
    array = checks.array("values", values)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"values should be real numbers, but got an array of dtype {array.dtype}")
    columns = array.astype(np.float64).reshape(len(array) if array.ndim else 0, -1)
    if len(columns) != n or not np.isfinite(columns).all() or not (columns.std(axis=0) > 0).all():
        raise ValueError(
            f"values should be {n} finite numbers that differ, one for each sample, but got {values!r:.80}"
        )
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    by_position = columns[order.samples_at(np.arange(n))]
    return PoolNoise(n, b, order.pool_size, GivenSequenceNoise(n, b, by_position))


def _mixture_noise(order: orders.Mixture) -> NoiseLaw:
    if order.stages:
        raise NoLawError("stages should be left out for a law, but got some")
    weights = np.array(order.sizes if order.weights is None else order.weights, dtype=np.float64)
    shares = (weights / weights.sum()).tolist()
    sources = zip(shares, order._orders(), strict=True)
    parts = tuple((share, _source_noise(own, share * order.batch_size)) for share, own in sources if share)
    return MixtureNoise(order.num_samples, order.batch_size, parts)


def _source_noise(order: orders.Order, batch_size: float) -> NoiseLaw:
    """Return the law of a source that gives `batch_size` samples per step, not always a whole number."""
    n, steps = order.num_samples, round(order.num_samples / batch_size)
    if steps < 2:
        raise NoLawError(f"each source should have two batches' parts for a law, but one has {n} samples")
    size: Any = batch_size
    if isinstance(order, orders.RandomReshuffling) and order.has_every_sample_once:
        return EpochNoise(n, size, steps, dip=1 / steps)  # its epochs end anywhere: F of the nearest whole number
    if isinstance(order, orders.IndependentDraws):
        return WhiteNoise(n, size)
    if isinstance(order, orders.SequencedReplacement) and not isinstance(order._sequence, ReshuffledSequence):
        _require_every_sample_once(order)
        return PoolNoise(n, size, order.pool_size, RepeatedEpochNoise(n, size, steps))
    raise NoLawError(f"each source should be reshuffled, SRS or drawn independently, but got {type(order).__name__}")


# ---- The tables ----

_EVEN = (orders.BlockShuffle, orders.BlockReshuffling, orders.Jitter, orders.LengthGrouped, orders.Stratified)

_NOISE_LAWS: Mapping[type, Callable[[Any], NoiseLaw]] = {
    orders.IndependentDraws: lambda order: WhiteNoise(order.num_samples, order.batch_size),
    orders.BatchedReplacement: _batched_noise,
    orders.PoissonDraws: lambda order: WhiteNoise(*_sizes(order)[:2], 1 - order.batch_size / order.num_samples),
    orders.WeightedDraws: _weighted_noise,
    orders.RandomReshuffling: partial(_epochs_noise, EpochNoise),
    orders.FlipFlop: partial(_epochs_noise, PalindromeNoise),
    orders.ShuffleOnce: partial(_epochs_noise, RepeatedEpochNoise),
    orders.PairedReversal: _paired_noise,
    **dict.fromkeys(_EVEN, lambda order: EpochNoise(*_even_sizes(order))),
    orders.BallsInBins: _bins_noise,
    # Samples of a batch coincide with probability repeats/B: `repeats` times white noise, minus reshuffling's dip.
    orders.RepeatedAugmentation: lambda order: EpochNoise(*_repeated_sizes(order), inverse_size=order.repeats),
    orders.ShuffleBuffer: _buffer_noise,
    orders.SequencedReplacement: _pool_noise,
    orders.Mixture: _mixture_noise,
}
_GAP_LAWS: Mapping[type, Callable[[Any], GapLaw]] = {
    orders.IndependentDraws: _independent_gaps,
    orders.BatchedReplacement: _batched_gaps,
    orders.PoissonDraws: _batched_gaps,
    orders.RandomReshuffling: lambda order: epoch_gaps(*_sizes(order)),
    orders.FlipFlop: lambda order: palindrome_gaps(*_sizes(order)),
    orders.ShuffleOnce: _once_gaps,
    **dict.fromkeys(_EVEN, lambda order: epoch_gaps(*_even_sizes(order))),
    orders.BallsInBins: _bins_gaps,
    orders.RepeatedAugmentation: _repeated_gaps,
    orders.SequencedReplacement: _pool_gaps,
}
