"""SRS for JAX with grain: a sampler with grain's protocol, random access and a stable `repr`."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

try:
    import grain
except ModuleNotFoundError as error:
    if error.name != "grain":
        raise  # grain is installed, and one of its own imports failed
    raise ImportError("replenish.integrations.grain needs grain: pip install 'replenish[grain]'") from error

from replenish import checks
from replenish.draws import Int64Array, derived_seed
from replenish.locks import ForkSafeLock
from replenish.orders.protocol import Order
from replenish.sharding import share_of

# How many steps a reading thread may be behind or ahead of the others without a new search in the order.
KEPT_STEPS = 128


class OrderSampler:
    """Any `Order` as a sampler for `grain.DataLoader`: record by record, without end.

    `sampler.loader(data_source)` is grain's loader of this process's share of the order's batches. grain deals
    *records*, not batches, to processes and workers in turn: record i goes to process i % P, and there to worker
    (i // P) % W. Every worker makes batches of its own records, and grain takes the workers' batches in turn. So the
    sampler needs P and W to give each worker the records of whole batches.

    grain's checkpoints hold the sampler's `repr`, which identifies the order, and grain raises if it differs. Such a
    checkpoint can be resumed only with the same P and W. To resume with others, give the steps trained as `start`.

    Args:
        order: The samples of the global batch of every step.
        shard_options: grain's number of processes and number of this process.
        worker_count: The number of grain's worker processes.
        start: The step of the first records.

    Example:
        >>> from replenish import SequencedReplacement
        >>> sampler = OrderSampler(SequencedReplacement(10, 4, seed=3))
        >>> [sampler[i].record_key for i in range(8)]
        [7, 3, 2, 6, 6, 1, 0, 8]
    """

    def __init__(
        self,
        order: Order,
        *,
        shard_options: grain.sharding.ShardOptions | None = None,
        worker_count: int = 0,
        start: int = 0,
    ) -> None:
        self.order = order
        self.start = checks.step(start, "start")
        self.worker_count = checks.integer("worker_count", worker_count, minimum=0)
        self.shard_options = grain.sharding.NoSharding() if shard_options is None else shard_options
        if getattr(order, "last_batch_size", order.batch_size) != order.batch_size:
            raise ValueError(
                f"order should have batches of one size, since grain counts records, but got {order!r}, whose last "
                f"batch of an epoch is shorter"
            )
        count, index = self.shard_options.shard_count, self.shard_options.shard_index
        self._share = share_of(order.batch_size, count, index)
        self._batches = RecentBatches(order)
        self._transform_seed = derived_seed(int(order.config().get("seed", 0)), "transforms of grain")

    @property
    def share_size(self) -> int:
        """The number of records of each batch that this process gets, which is grain's batch size."""
        return int(self._share.stop - self._share.start)

    def loader(self, data_source: Any, operations: Sequence[Any] = (), **options: Any) -> grain.DataLoader:
        """Return grain's loader of this process's batches, with the sampler's shard options and workers.

        Args:
            data_source: A data source of grain.
            operations: The transforms of single records, applied before batching.
            **options: Other options of `grain.DataLoader`.
        """
        batch = grain.transforms.Batch(self.share_size, drop_remainder=True)
        return grain.DataLoader(
            data_source=data_source,
            sampler=self,
            operations=[*operations, batch],
            worker_count=self.worker_count,
            shard_options=self.shard_options,
            **options,
        )

    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, index: int) -> grain.RecordMetadata:
        local, shard = divmod(index, self.shard_options.shard_count)
        if shard != self.shard_options.shard_index:
            raise IndexError(
                f"index should be of process {self.shard_options.shard_index}, that is, leave it as the remainder of "
                f"division by {self.shard_options.shard_count}, but got {index}: the loader and the sampler should "
                f"have the same shard_options"
            )
        workers = max(1, self.worker_count)
        of_worker, worker = divmod(local, workers)
        turn, place = divmod(of_worker, self.share_size)
        step, place = self.start + turn * workers + worker, self._share.start + place
        key = int(self._batches[step][place])
        # Every record of the run has a generator for random transforms that does not depend on process and worker.
        rng = np.random.Generator(np.random.Philox(key=[self._transform_seed, step * self.order.batch_size + place]))
        return grain.RecordMetadata(index=index, record_key=key, rng=rng)

    def __repr__(self) -> str:
        config = ", ".join(f"{name}={value!r}" for name, value in self.order.config().items())
        shards = self.shard_options
        return (
            f"{type(self).__name__}({config}, shard={shards.shard_index} of {shards.shard_count}, "
            f"worker_count={self.worker_count}, start={self.start})"
        )


class RecentBatches:
    """Keeps the latest batches of an order for grain's threads, which do not all read at the same step.

    An order is fast forwards and slow backwards, since one step back may cost a search for the place.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self._lock = ForkSafeLock()
        self._kept: deque[Int64Array] = deque(maxlen=KEPT_STEPS)
        self._next = 0  # the step after the last one kept

    def __getitem__(self, step: int) -> Int64Array:
        with self._lock.lock:
            if not self._next - len(self._kept) <= step < self._next + KEPT_STEPS:
                self._kept.clear()
                self._next = max(0, step - KEPT_STEPS // 2)  # other threads may ask for the steps just before
            while self._next <= step:
                self._kept.append(checks.read_only(self.order.batch(self._next)))  # since many readers share it
                self._next += 1
            return self._kept[step - self._next]

    def __reduce__(self) -> Any:
        return type(self), (self.order,)
