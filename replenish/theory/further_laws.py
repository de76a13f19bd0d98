"""The laws of the orders that came after the first six; importing this adds them to `noise_law` and `gap_law`.

The noise laws average over all ways to hand out numbers to samples, so that they know nothing of shards, classes or
lengths: where a sample's step is equally likely to be any of its epoch's, and independent from epoch to epoch, the
noise is reshuffling's. Sizes that leave short batches or uneven blocks have no closed form here.
"""

from __future__ import annotations

import numpy as np

from replenish.orders.balls_in_bins import BallsInBins
from replenish.orders.block_reshuffling import BlockReshuffling
from replenish.orders.block_shuffle import BlockShuffle
from replenish.orders.cursor import CursorOrder
from replenish.orders.jitter import Jitter
from replenish.orders.length_grouped import LengthGrouped
from replenish.orders.paired_reversal import PairedReversal
from replenish.orders.poisson_draws import PoissonDraws
from replenish.orders.repeated_augmentation import RepeatedAugmentation
from replenish.orders.shuffle_buffer import ShuffleBuffer
from replenish.orders.stratified import Stratified
from replenish.orders.weighted_draws import WeightedDraws
from replenish.theory.further_noise import BinsNoise, BufferNoise, PairedEpochsNoise, WeightedNoise
from replenish.theory.gap_laws import GapLaw, ListedGaps, epoch_gaps
from replenish.theory.noise_laws import EpochNoise, NoiseLaw, WhiteNoise
from replenish.theory.order_laws import LawsByOrder, batched_gaps, gap_law, noise_law

# ---- Random batch sizes ----


@noise_law.of(PoissonDraws)
def _(order: PoissonDraws) -> NoiseLaw:
    return WhiteNoise(order.num_samples, order.batch_size, level=1 - order.batch_size / order.num_samples)


gap_law.of(PoissonDraws)(batched_gaps)


@noise_law.of(BallsInBins)
def _(order: BallsInBins) -> NoiseLaw:
    return BinsNoise(order.num_samples, order.batch_size, order.steps_per_epoch)


@gap_law.of(BallsInBins)
def _(order: BallsInBins) -> GapLaw:
    return _of_steps(order, epoch_gaps(order.steps_per_epoch, 1, order.steps_per_epoch))


def _of_steps(order: CursorOrder, law: GapLaw) -> GapLaw:
    """Return gaps of whole steps in units of this order's epoch."""
    assert isinstance(law, ListedGaps)
    return ListedGaps(law._probabilities, order.num_samples / order.batch_size)


@noise_law.of(WeightedDraws)
def _(order: WeightedDraws) -> NoiseLaw:
    shares = order.weights / order.weights.max()
    return WeightedNoise(order.num_samples, order.batch_size, float(np.sum((shares / shares.sum()) ** 2)))


# ---- A step of its epoch, any equally likely ----


_EVEN = (BlockShuffle, BlockReshuffling, Jitter, LengthGrouped, Stratified)


def _uneven(order: CursorOrder) -> str:
    """Return what keeps the steps of a sample from being equally likely, or nothing."""
    if order.num_samples % order.batch_size:
        return "batch_size should divide num_samples"
    if isinstance(order, (BlockShuffle, Jitter)) and len(set(order._shards.sizes.tolist())) > 1:
        return "shard_size should be one for all shards"
    if isinstance(order, BlockShuffle) and (order.staggered or order.window % int(order._shards.sizes[0])):
        return "window should be of whole shards"
    if isinstance(order, BlockReshuffling) and order.num_samples % order.block_size:
        return "block_size should divide num_samples"
    if isinstance(order, LengthGrouped) and not order.shuffle_batches:
        return "shuffle_batches should be True"
    if isinstance(order, Stratified):
        uneven = any(len(members) % order.steps_per_epoch for members in order._members)
        if uneven or order.weights is not None or order.within != "reshuffling":
            return "every class should have as many samples in each batch"
    return ""


@noise_law.of(*_EVEN)
def _(order: CursorOrder) -> NoiseLaw:
    _require_even(noise_law, order)
    return EpochNoise(order.num_samples, order.batch_size, order.steps_per_epoch)


@gap_law.of(*_EVEN)
def _(order: CursorOrder) -> GapLaw:
    _require_even(gap_law, order)
    return epoch_gaps(order.num_samples, order.batch_size, order.steps_per_epoch)


def _require_even(laws: LawsByOrder[NoiseLaw] | LawsByOrder[GapLaw], order: CursorOrder) -> None:
    if why := _uneven(order):
        raise laws.missing(f"{why} for a law in closed form, but got {type(order).__name__} where it is not so")


# ---- Others ----


def _require_whole_repeats(laws: LawsByOrder[NoiseLaw] | LawsByOrder[GapLaw], order: RepeatedAugmentation) -> None:
    if order.num_samples % order.batch_size or order.batch_size % order.repeats:
        raise laws.missing(
            "batch_size should divide num_samples and be a multiple of repeats for a law, but got others"
        )


@noise_law.of(RepeatedAugmentation)
def _(order: RepeatedAugmentation) -> NoiseLaw:
    """A batch meets itself with probability repeats/B: so many times white noise, less the dip of reshuffling."""
    _require_whole_repeats(noise_law, order)
    return EpochNoise(order.num_samples, order.batch_size, order.steps_per_epoch, inverse_size=order.repeats)


@gap_law.of(RepeatedAugmentation)
def _(order: RepeatedAugmentation) -> GapLaw:
    _require_whole_repeats(gap_law, order)
    return _of_steps(order, epoch_gaps(order.num_samples, order.batch_size // order.repeats, order.steps_per_epoch))


@noise_law.of(PairedReversal)
def _(order: PairedReversal) -> NoiseLaw:
    if order.num_samples % order.batch_size:
        raise noise_law.missing("batch_size should divide num_samples for a law, but got one that does not")
    places = tuple(order._arranged(np.arange(order.num_samples), epoch=1).tolist())
    return PairedEpochsNoise(order.num_samples, order.batch_size, order.steps_per_epoch, places)


@noise_law.of(ShuffleBuffer)
def _(order: ShuffleBuffer) -> NoiseLaw:
    n, b = order.num_samples, order.batch_size
    if n % b:
        raise noise_law.missing("batch_size should divide num_samples for a law, but got one that does not")
    if len(order._shards.sizes) > 1:
        raise noise_law.missing("shard_size should be None for a law, but got shards")
    if order.buffer_size >= n:
        return EpochNoise(n, b, order.steps_per_epoch)
    return BufferNoise(n, b, order.buffer_size, order.steps_per_epoch)
