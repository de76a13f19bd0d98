"""Sequenced-replacement sampling (the paper's section 2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import DistinctDraws, Int64Array
from replenish.orders.cursor import CursorOrder
from replenish.orders.pool import Pool
from replenish.orders.pool_search import ONE_PROCESS, SearchGroup
from replenish.orders.sequences import ListedSequence, make_sequence


class SequencedReplacement(CursorOrder):
    """Sequenced-replacement sampling, SRS: random draws from a pool that is refilled in order.

    A fixed sequence of sample indices repeats without end. A pool of `pool_size` slots starts with its first positions.
    Every step draws `batch_size` distinct slots, uniformly, by a choice that depends only on the seed and the step. The
    contents of these slots are the batch. Then the slots are refilled, not with what was drawn, but with the next
    positions of the sequence (the paper's section 2 and figure 1). Two slots may hold the same sample, so a batch may
    hold a sample twice: that is the method, not a fault.

    Consecutive steps cost O(batch_size) each. A jump to any step costs about M (ln M + 3) draws for a pool of M slots,
    however far it is. The pool takes 4 bytes per slot (8 from 2**31 positions on, and with `"reshuffled"`).

    With the same seed, SRS and `BatchedReplacement` over as many samples as the pool has slots draw the same slots at
    every step: with `"identity"` their first batches are equal. For independent orders, use different seeds.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many samples are drawn per step, over all processes: B.
        seed: Chooses the draws and the shuffled sequence; in [0, 2**63).
        pool_size: The number M of slots, at least `batch_size`. None means the sequence's length: N as in the paper,
            unless `sequence` is an array. Fewer slots make a shuffle buffer, and kN slots a pool of k copies, which is
            closer to independent draws.
        sequence: `"shuffled"` is a fixed permutation drawn from the seed. `"identity"` is the paper's, and makes the
            rate of each class swing once per epoch if the data are sorted by class. `"reshuffled"` is a new permutation
            in every round, which is not the paper's and costs as much per draw as reshuffling does. Or pass an array of
            indices, in which some may repeat (see `weighted_sequence`) or be missing (a subset). An effective epoch is
            one round of the sequence.

    Example:
        >>> order = SequencedReplacement(num_samples=5, batch_size=2, sequence="identity")
        >>> [batch.tolist() for batch in order.batches(stop=3)]
        [[0, 3], [1, 0], [2, 4]]
        >>> order.batch(2).tolist()
        [2, 4]
    """

    def __init__(
        self,
        num_samples: int,
        batch_size: int,
        *,
        seed: int = 0,
        pool_size: int | None = None,
        sequence: str | npt.ArrayLike = "shuffled",
    ) -> None:
        super().__init__(num_samples, batch_size, seed=seed)
        self._sequence = make_sequence(sequence, self.num_samples, self.seed)
        self.sequence = self._sequence.indices if isinstance(self._sequence, ListedSequence) else self._sequence.name
        self._warm: list[Pool] = []  # at most one
        if pool_size is None:
            pool_size = self._sequence.length
        self.pool_size = checks.integer("pool_size", pool_size, minimum=1, maximum=2**40)
        if self.batch_size > self.pool_size:
            raise ValueError(
                f"batch_size should be at most pool_size, since a batch is drawn from distinct slots, but got "
                f"batch_size={self.batch_size} and pool_size={self.pool_size}; take a smaller batch_size or a "
                f"larger pool_size"
            )

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that identify the order completely; an array is replaced by its SHA-256."""
        return {**super().config(), "sequence_length": self._sequence.length}

    @property
    def sequence_length(self) -> int:
        """The number of positions in a round of the sequence: num_samples, unless the sequence is an array."""
        return self._sequence.length

    @property
    def steps_per_epoch(self) -> int:
        """How many steps make an effective epoch, a round of the sequence: its length / batch_size, rounded up."""
        return -(-self._sequence.length // self.batch_size)

    def samples_at(self, positions: npt.ArrayLike) -> Int64Array:
        """Return the samples at `positions` of the sequence, which repeats without end.

        Example:
            >>> SequencedReplacement(10, 2, sequence=[7, 1, 4]).samples_at([0, 1, 2, 3]).tolist()
            [7, 1, 4, 7]
        """
        array = checks.array("positions", positions)
        if array.dtype.kind not in "iu" or (array.size and array.min() < 0):
            raise ValueError(f"positions should be integers from 0 on, but got {positions!r}")
        return self._sequence.at(np.asarray(array % self._sequence.period, dtype=np.int64))

    def copies_inserted(self, step: int) -> Int64Array:
        """Return how many copies of each sample were put into the pool before `step`, including the first copies."""
        rounds, rest = divmod(self.pool_size + checks.step(step) * self.batch_size, self._sequence.length)
        length = self._sequence.length
        begun = rounds * length % self._sequence.period  # the current round
        copies = np.full(self.num_samples, rounds, dtype=np.int64)
        if isinstance(self._sequence, ListedSequence):
            copies *= np.bincount(self._sequence.indices, minlength=self.num_samples)
        return copies + np.bincount(self._sequence.at(begun + np.arange(rest)), minlength=self.num_samples)

    def counts_before(self, step: int) -> Int64Array:
        """Return how often each sample was drawn in the steps before `step`: copies inserted minus copies in the pool.

        It costs a jump to `step`.
        """
        return self.copies_inserted(step) - np.bincount(self.samples_in_pool(step), minlength=self.num_samples)

    def samples_in_pool(self, step: int) -> Int64Array:
        """Return the sample that each slot of the pool holds just before `step` draws."""
        return self._sequence.at(self.cursor().positions_before(checks.step(step)))

    def warm(self, step: int, group: SearchGroup = ONE_PROCESS) -> None:
        """Move to a distant `step` now, possibly together with other processes. The next cursor starts there for free.

        Args:
            step: The step, usually the one at which a run is resumed.
            group: The processes that search together; see `replenish.torch.warm`.
        """
        pool = self._new_pool()
        pool.warm(checks.step(step), group)
        self._warm[:] = [pool]

    def cursor(self) -> Pool:
        """Return a new cursor: a pool at the start, or at the step of the last `warm`."""
        try:
            return self._warm.pop()
        except IndexError:
            return self._new_pool()

    def _new_pool(self) -> Pool:
        return Pool(DistinctDraws(self.pool_size, self.batch_size, self.seed), self._sequence)
