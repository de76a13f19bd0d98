"""Length-grouped batches: samples of similar length together, so that little is padded."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import Int64Array, KeyedWords
from replenish.orders.arrangement import shuffle_stretches
from replenish.orders.epochs import EpochOrder
from replenish.orders.protocol import Order, check_order


class LengthGrouped(EpochOrder):
    """Every epoch is a new permutation in which the samples of each window of batches are sorted by length.

    With `shuffle_batches=False` it has the distribution of transformers' `LengthGroupedSampler` (`group_by_length`): in
    each window the longest samples come first, and the longest of all at the very start, so that too little memory
    shows at once. By default the batches of a window come in random order, so that the loss does not follow the
    lengths. A wider window needs less padding but makes batches less random; `padding_share` measures the padding.

    A jump to any step costs the draws of one epoch and a sort.

    Args:
        num_samples, batch_size, seed, drop_last: As for `RandomReshuffling`.
        lengths: The length of each sample, a whole number.
        window: How many batches are sorted together; None means 50, or a quarter of the epoch if that is less.
        shuffle_batches: Whether the batches of a window come in random order.

    Example:
        >>> lengths = [5, 90, 7, 88, 6, 91, 5, 92]
        >>> order = LengthGrouped(num_samples=8, batch_size=4, lengths=lengths, window=2)
        >>> sorted(sorted(batch.tolist()) for batch in order.batches(0, 2))
        [[0, 2, 4, 6], [1, 3, 5, 7]]
    """

    _shaped_by_its_batches = "each window of batches is sorted by length"

    def __init__(
        self,
        num_samples: int,
        batch_size: int,
        *,
        lengths: npt.ArrayLike,
        seed: int = 0,
        window: int | None = None,
        shuffle_batches: bool = True,
        drop_last: bool = False,
    ) -> None:
        super().__init__(num_samples, batch_size, seed=seed, drop_last=drop_last)
        self.lengths = checks.whole_numbers("lengths", lengths, self.num_samples)
        if window is None:
            window = max(1, min(50, self.num_samples // (4 * self.batch_size)))
        self.window = checks.integer("window", window, minimum=1)
        self.shuffle_batches = checks.boolean("shuffle_batches", shuffle_batches)

    def _permutation(self, words: KeyedWords) -> Int64Array:
        samples = super()._permutation(words)
        # The longest samples sort first. numpy sorts 16-bit integers faster, so use them where they suffice.
        shortness = self.lengths.max() - self.lengths
        shortness = shortness.astype(np.uint16) if shortness.max() < 2**16 else shortness
        size = min(self.window * self.batch_size, self.num_samples)
        whole = self.num_samples - self.num_samples % size
        for rows in (samples[:whole].reshape(-1, size), samples[np.newaxis, whole:]):  # one window per row
            by_length = np.argsort(shortness[rows], axis=1, kind="stable")  # so equal lengths stay shuffled
            rows[:] = np.take_along_axis(rows, by_length, axis=1)
        if self.shuffle_batches:
            return self._shuffled(samples, words)
        longest = int(self.lengths[samples].argmax())  # the first sample of its window
        samples[[0, longest]] = samples[[longest, 0]]
        return samples

    def _shuffled(self, samples: Int64Array, words: KeyedWords) -> Int64Array:
        """Put the full batches of each window in random order; a short batch stays last in its epoch."""
        full = self.num_samples // self.batch_size
        sizes = [self.window] * (full // self.window) + [full % self.window]
        batches = samples[: full * self.batch_size].reshape(full, self.batch_size)
        shuffle_stretches(words, batches, [size for size in sizes if size])
        return samples


def padding_share(order: Order, lengths: npt.ArrayLike, *, start: int = 0, stop: int | None = None) -> float:
    """Return the share of padding if every batch is padded to its longest sample.

    Args:
        order: Any order.
        lengths: The length of each sample.
        start: The first step.
        stop: The step to end before; None means an effective epoch later.

    Example:
        >>> from replenish import RandomReshuffling
        >>> lengths = [5, 90, 7, 88, 6, 91, 5, 92]
        >>> grouped = LengthGrouped(num_samples=8, batch_size=4, lengths=lengths, window=2)
        >>> shuffled = RandomReshuffling(num_samples=8, batch_size=4)
        >>> round(padding_share(grouped, lengths), 3), round(padding_share(shuffled, lengths), 3)
        (0.03, 0.467)
    """
    each = checks.whole_numbers("lengths", lengths, check_order(order).num_samples)
    start = checks.step(start, "start")
    used = computed = 0
    for batch in order.batches(start, start + order.steps_per_epoch if stop is None else stop):
        if len(batch):
            used += int(each[batch].sum())
            computed += len(batch) * int(each[batch].max())
    return 1 - used / computed if computed else 0.0
