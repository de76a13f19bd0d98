"""Stratified batches: every batch has each class's share, to within one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import DRAWS_PER_BLOCK, Int64Array, KeyedWords, Purpose, derived_seed
from replenish.orders.arrangement import stable_order
from replenish.orders.cursor import Cursor, CursorOrder, SampleReader
from replenish.orders.epochs import RandomReshuffling
from replenish.orders.sequenced_replacement import SequencedReplacement
from replenish.orders.shares import Quotas, whole_shares

WITHIN: dict[str, type[CursorOrder]] = {"reshuffling": RandomReshuffling, "srs": SequencedReplacement}


class Stratified(CursorOrder):
    """Every batch has each class's share, rounded down or up. Within a class the samples are shuffled.

    Each class has its own order, which is read one sample at a time: reshuffling, or SRS with a pool of the class's
    size. A class with the share w gets the whole part of B w places in each batch, and at some steps one place more.
    The seed chooses these steps, spread so that the count of a class up to any step stays within a few of its share.
    The places of the classes in a batch are shuffled, so that several processes can take equal parts of it. If B
    divides N, an epoch of reshuffled classes has every sample once. With `weights` the classes have other shares than
    their sizes: small classes then go through their samples more often, without independent draws.

    Consecutive steps cost O(batch_size) each. A jump costs a jump in every class: all samples once for reshuffling,
    N (ln N + 3) draws for SRS.

    Args:
        num_samples, batch_size, seed: As for `RandomReshuffling`.
        labels: The class of each sample, a whole number.
        weights: The shares of the classes: None for their sizes, `"balanced"` for equal ones, or an array with one
            non-negative number for each class, in the order of the labels.
        within: How a class's samples are drawn: `"reshuffling"` or `"srs"`.

    Example:
        >>> labels = [0] * 6 + [1] * 3
        >>> order = Stratified(num_samples=9, batch_size=3, labels=labels)
        >>> [sorted(batch.tolist())[2] >= 6 and sorted(batch.tolist())[1] < 6 for batch in order.batches(0, 3)]
        [True, True, True]
    """

    _shaped_by_its_batches = "each batch has every class's share"

    def __init__(
        self,
        num_samples: int,
        batch_size: int,
        *,
        labels: npt.ArrayLike,
        seed: int = 0,
        weights: str | npt.ArrayLike | None = None,
        within: str = "reshuffling",
    ) -> None:
        super().__init__(num_samples, batch_size, seed=seed)
        self.labels = checks.whole_numbers("labels", labels, self.num_samples)
        self.within = checks.one_of("within", within, WITHIN)
        _, classes, sizes = np.unique(self.labels, return_inverse=True, return_counts=True)
        self.weights, shares = _shares(weights, sizes)
        self._quotas = Quotas(shares, self.batch_size, self.seed)
        # One array of samples per class.
        by_class = stable_order(classes, len(sizes))
        self._members = np.split(by_class, np.cumsum(sizes)[:-1])

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that identify the order completely; arrays are replaced by their SHA-256."""
        named = super().config()
        return {**named, "weights": "sizes"} if self.weights is None else named

    def counts_before(self, step: int) -> Int64Array:
        """Return how often each sample was drawn in the steps before `step`; it costs a jump in every class."""
        counts = np.empty(self.num_samples, dtype=np.int64)
        drawn = self._quotas.counts_before(checks.step(step))
        for order, members, draws in zip(self._orders(), self._members, drawn, strict=True):
            counts[members] = order.counts_before(draws)
        return counts

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _StratifiedCursor(self)

    def _orders(self) -> list[CursorOrder]:
        """Return the order of each class, which draws one sample per step."""
        return [
            WITHIN[self.within](len(members), 1, seed=derived_seed(self.seed, "class", number))
            for number, members in enumerate(self._members)
        ]


def _shares(
    weights: str | npt.ArrayLike | None, sizes: Int64Array
) -> tuple[str | npt.NDArray[np.float64] | None, list[int]]:
    """Return (weights, shares): the checked argument, and the shares of the classes as whole numbers."""
    if weights is None:
        return None, sizes.tolist()
    if isinstance(weights, str):
        if weights != "balanced":
            raise ValueError(f'weights should be None, "balanced" or an array of numbers, but got {weights!r}')
        return weights, [1] * len(sizes)
    array = checks.array("weights", weights)
    if array.shape != sizes.shape:
        raise ValueError(
            f"weights should have one entry for each of the {len(sizes)} classes, but got an array of shape "
            f"{array.shape}"
        )
    checks.check_weights("weights", array)
    kept = checks.read_only(array.astype(np.float64))
    return kept, whole_shares(kept)


class _StratifiedCursor(Cursor):
    """How often each class was drawn before the current block, and a reader of each class's order."""

    def __init__(self, order: Stratified) -> None:
        self._quotas, self._members, self._batch_size = order._quotas, order._members, order.batch_size
        self._readers = [SampleReader(each) for each in order._orders()]
        # Each class costs some microseconds per block, however few its draws: more classes need larger blocks.
        draws = min(order.num_samples, max(DRAWS_PER_BLOCK, 256 * len(self._members)))
        self._steps = -(-draws // order.batch_size)
        self._words = KeyedWords(order.seed, Purpose.STRATA)
        # A block's number and the counts before it: one pair, so that an interrupt cannot separate them.
        self._counted = (0, [0] * len(self._members))

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (first step, samples) of the block that `step` is in."""
        block = step // self._steps
        at, counts = self._counted
        if at != block:
            counts = self._quotas.counts_before(block * self._steps)
        classes = self._quotas.classes(block * self._steps, self._steps)
        places = self._words.at(block).permutations(self._steps, self._batch_size)
        shuffled = np.take_along_axis(classes, places, axis=1).ravel()
        drawn = np.bincount(shuffled, minlength=len(self._members)).tolist()
        samples = np.empty(shuffled.size, dtype=np.int64)
        classes_drawn = zip(self._members, self._readers, counts, drawn, strict=True)
        samples[stable_order(shuffled, len(self._members))] = np.concatenate(
            [members[reader.read(before, count)] for members, reader, before, count in classes_drawn if count]
        )
        self._counted = (block + 1, [before + count for before, count in zip(counts, drawn, strict=True)])
        return block * self._steps, samples.reshape(self._steps, self._batch_size)
