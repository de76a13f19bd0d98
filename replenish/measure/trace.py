"""What sequenced-replacement sampling does, step by step: the data of every picture of it.

`compute_trace` runs the library's own orders for some steps. It records the pool, the slots drawn, the batch, the
refill and the queue, and what reshuffling and replacement sampling draw at the same steps. The terminal view, the page
of `replenish explain` and the picture in the README all show a trace and do no sampling of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import DistinctDraws, Int64Array
from replenish.orders import BatchedReplacement, RandomReshuffling
from replenish.orders.sequenced_replacement import SequencedReplacement
from replenish.orders.sequences import make_sequence

ORDERS = ("srs", "reshuffling", "replacement")

# How many samples of the queue are kept after the next refill.
QUEUE_AHEAD = 24
# The pool is kept for every step, at 8 bytes per slot: half a gigabyte at most.
MAX_SLOTS_KEPT = 2**26


@dataclass(frozen=True, eq=False)
class Step:
    """One step of SRS: the paper's figure 1, (a) to (c).

    Attributes:
        number: The step t, counted from 0 as in `order.batch(t)`.
        pool_before: The sample in each slot before the draw.
        slots: The slots drawn, in the order of the draw.
        batch: The samples that they held.
        queue: The next samples of the sequence, of which the first `batch_size` refill the slots.
        refill: The samples that refill the slots drawn, in the same order.
        positions: The positions of the refill in the endless sequence.
        pool_after: The sample in each slot after the refill.
    """

    number: int
    pool_before: Int64Array
    slots: Int64Array
    batch: Int64Array
    queue: Int64Array
    refill: Int64Array
    positions: Int64Array
    pool_after: Int64Array


@dataclass(frozen=True, eq=False)
class Trace:
    """Some steps of SRS, and of two other orders at the same steps; `compute_trace` makes one.

    Attributes:
        num_samples: How many samples there are: N.
        batch_size: How many are drawn at a step: B.
        pool_size: How many slots the pool has: M.
        seed: The seed of all three orders.
        sequence: The name of the sequence, as in the order's config.
        pools: (steps + 1, M): the sample in each slot before step 0, 1, ... and after the last.
        slots: (steps, B): the slots drawn.
        positions: (steps, B): the positions in the endless sequence that refill them.
        queues: (steps + 1, B + QUEUE_AHEAD): the next samples of the sequence before each step and after the last.
        batches: The batches of each of `ORDERS`. If B does not divide N, reshuffling ends an epoch with a short one.
    """

    num_samples: int
    batch_size: int
    pool_size: int
    seed: int
    sequence: str
    pools: Int64Array
    slots: Int64Array
    positions: Int64Array
    queues: Int64Array
    batches: dict[str, list[Int64Array]]

    def __len__(self) -> int:
        """Return how many steps there are."""
        return len(self.slots)

    def step(self, number: int) -> Step:
        """Return one step, counted from 0."""
        number = checks.integer("number", number, minimum=0, maximum=len(self) - 1)
        return Step(
            number=number,
            pool_before=self.pools[number],
            slots=self.slots[number],
            batch=self.batches["srs"][number],
            queue=self.queues[number],
            refill=self.pools[number + 1][self.slots[number]],
            positions=self.positions[number],
            pool_after=self.pools[number + 1],
        )

    def _batches(self, order: str) -> list[Int64Array]:
        return self.batches[checks.one_of("order", order, ORDERS)]

    def counts(self, order: str, steps: int) -> Int64Array:
        """Return how often each sample was drawn in the first `steps` steps of one of `ORDERS`."""
        drawn = self._batches(order)[: checks.integer("steps", steps, minimum=0, maximum=len(self))]
        return np.bincount(np.concatenate([np.empty(0, dtype=np.int64), *drawn]), minlength=self.num_samples)

    def unseen(self, order: str) -> Int64Array:
        """Return how many samples one of `ORDERS` has not drawn yet, before step 0, 1, ... and after the last."""
        seen = np.zeros(self.num_samples, dtype=np.bool_)
        left = [self.num_samples]
        for batch in self._batches(order):
            seen[batch] = True
            left.append(self.num_samples - int(seen.sum()))
        return np.array(left, dtype=np.int64)

    def copies(self, steps: int) -> Int64Array:
        """Return how many copies of each sample the pool holds after `steps` steps."""
        steps = checks.integer("steps", steps, minimum=0, maximum=len(self))
        return np.bincount(self.pools[steps], minlength=self.num_samples)

    def to_dict(self) -> dict[str, Any]:
        """Return plain ints, strings, lists and dicts, ready for JSON."""
        return {
            "num_samples": self.num_samples,
            "batch_size": self.batch_size,
            "pool_size": self.pool_size,
            "steps": len(self),
            "seed": self.seed,
            "sequence": self.sequence,
            "pools": self.pools.tolist(),
            "slots": self.slots.tolist(),
            "refills": [self.step(number).refill.tolist() for number in range(len(self))],
            "positions": self.positions.tolist(),
            "queues": self.queues.tolist(),
            "batches": {order: [batch.tolist() for batch in self.batches[order]] for order in ORDERS},
            "unseen": {order: self.unseen(order).tolist() for order in ORDERS},
        }


def compute_trace(
    num_samples: int,
    batch_size: int,
    steps: int,
    *,
    seed: int = 0,
    pool_size: int | None = None,
    sequence: str | npt.ArrayLike = "identity",
) -> Trace:
    """Run SRS, reshuffling and replacement sampling for some steps and record what happens.

    Args:
        num_samples: How many samples there are: N.
        batch_size: How many are drawn at a step, at most N and at most `pool_size`: B.
        steps: How many steps to run.
        seed: The seed of all three orders.
        pool_size: The slots of the pool; None means N, the paper's.
        sequence: What refills the pool, as for `SequencedReplacement`; here the paper's own order is the default.

    Example:
        >>> trace = compute_trace(num_samples=5, batch_size=2, steps=20)
        >>> first = trace.step(0)
        >>> first.slots.tolist(), first.batch.tolist(), first.refill.tolist()
        ([0, 3], [0, 3], [0, 1])
        >>> first.pool_before.tolist(), first.pool_after.tolist()
        ([0, 1, 2, 3, 4], [0, 1, 2, 1, 4])
    """
    order = SequencedReplacement(num_samples, batch_size, seed=seed, pool_size=pool_size, sequence=sequence)
    n, b, m = order.num_samples, order.batch_size, order.pool_size
    orders = (order, RandomReshuffling(n, b, seed=seed), BatchedReplacement(n, b, seed=seed))
    steps = checks.integer("steps", steps, minimum=1)
    if (steps + 1) * m > MAX_SLOTS_KEPT:
        raise ValueError(
            f"(steps + 1) * pool_size should be at most {MAX_SLOTS_KEPT}, since the pool is kept for every step, but "
            f"got steps={steps} and pool_size={m}; take fewer steps or a smaller pool"
        )
    draws = DistinctDraws(m, b, order.seed)
    blocks = -(-steps // draws.steps_per_block)
    slots = np.concatenate([draws.block(index) for index in range(blocks)])[:steps]
    # Positions in the endless sequence: the next ones before each step, and those in the pool.
    ahead = m + b * np.arange(steps + 1)[:, np.newaxis] + np.arange(b + QUEUE_AHEAD)
    positions = np.arange(m)
    filled = make_sequence(sequence, n, order.seed)
    pools = [filled.at(positions % filled.period)]
    for drawn, refill in zip(slots, ahead[:-1, :b], strict=True):
        positions[drawn] = refill
        pools.append(filled.at(positions % filled.period))
    return Trace(
        num_samples=n,
        batch_size=b,
        pool_size=m,
        seed=order.seed,
        sequence=str(order.config()["sequence"]),
        pools=np.stack(pools),
        slots=slots,
        positions=ahead[:-1, :b],
        queues=filled.at(ahead % filled.period),
        batches={name: list(each.batches(0, steps)) for name, each in zip(ORDERS, orders, strict=True)},
    )
