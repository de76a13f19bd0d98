"""Random reshuffling: training over epochs."""

from __future__ import annotations

from typing import Any

from replenish import checks
from replenish.draws import Int64Array, steps_per_block
from replenish.orders import computed as computing
from replenish.orders.cursor import Cursor
from replenish.orders.epochs import EpochOrder


class RandomReshuffling(EpochOrder):
    """Training over epochs: every epoch goes through all samples in a new uniform permutation.

    This is what `DataLoader(shuffle=True)` does and what the paper calls non-replacement sampling (section
    2, equations 1 and 2). The permutation of an epoch depends only on the seed and the epoch.
    At one seed, the permutation of epoch 0 is also the one of `ShuffleOnce`, and that of epoch e `FlipFlop`'s of epoch
    2e.

    A listed permutation takes 8 bytes per sample, and a jump to another epoch sorts N random words. With
    `computed=True` each index is computed from its place: a few kilobytes for any N up to 2**62, and any step at once.
    It is another stream of random numbers, `"computed-v1"`, and shares no permutation with the listed one. Up to 4096
    samples it is exactly uniform. Above, it is a keyed bijection (`ComputedPermutations`), which tests of uniformity do
    not tell from a uniform permutation.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many make a batch, over all processes: B.
        seed: Chooses the permutations; in [0, 2**63).
        drop_last: Whether the last N mod B samples of an epoch are left out; otherwise they make a short batch.
        computed: Whether permutations are computed rather than listed.

    Example:
        >>> order = RandomReshuffling(num_samples=5, batch_size=2)
        >>> sorted(index for batch in order.batches(0, order.steps_per_epoch) for index in batch.tolist())
        [0, 1, 2, 3, 4]
        >>> RandomReshuffling(num_samples=10**18, batch_size=4, computed=True).batch(10**15).shape
        (4,)
    """

    def __init__(
        self, num_samples: int, batch_size: int, *, seed: int = 0, drop_last: bool = False, computed: bool = False
    ) -> None:
        super().__init__(num_samples, batch_size, seed=seed, drop_last=drop_last)
        self.computed = checks.boolean("computed", computed)

    def _arguments(self) -> dict[str, Any]:
        # The listed kind is older than the argument: its configs and saved states do not have it.
        arguments = super()._arguments()
        return arguments if self.computed else {name: arguments[name] for name in arguments if name != "computed"}

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that name the order completely, the stream of random numbers among them."""
        named = super().config()
        return {**named, "stream": computing.STREAM} if self.computed else named

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _ComputedEpochs(self) if self.computed else super().cursor()


class _ComputedEpochs(Cursor):
    """The permutations of the epochs, computed where they are asked for."""

    def __init__(self, order: RandomReshuffling) -> None:
        self._order = order
        self._rounds = computing.Rounds(order.num_samples, order.seed)
        self._steps_at_once = steps_per_block(order.num_samples, order.batch_size)

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (first step, rows): full batches of the epoch of `step`, or its short last one."""
        order, size = self._order, self._order.batch_size
        epoch, place = divmod(step, order.steps_per_epoch)
        full = order.num_samples // size
        if place == full:
            rest = self._rounds.of_round(epoch, full * size, order.num_samples - full * size)
            return step, rest.reshape(1, -1).copy()
        first = place - place % self._steps_at_once
        last = min(full, first + self._steps_at_once)
        samples = self._rounds.of_round(epoch, first * size, (last - first) * size)
        return epoch * order.steps_per_epoch + first, samples.reshape(last - first, size).copy()
