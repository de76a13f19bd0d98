"""SRS index by index, for what takes a `sampler` but no batch sampler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sized
from itertools import chain, islice
from typing import Any

import numpy.typing as npt
from torch.utils.data.distributed import DistributedSampler

from replenish import checks, state
from replenish.torch.arguments import epoch_of_srs, srs_order
from replenish.torch.position import PositionedSampler


class SRSSampler(PositionedSampler[int], DistributedSampler[int]):
    """Sequenced-replacement sampling index by index, for what takes a `sampler` but no batch sampler.

    It yields this process's share of every batch, one index after the other: cut into batches of
    `batch_size / num_replicas` by a DataLoader, they are the batches of `SRSBatchSampler`. Its length is in
    indices; `seek` and the state count steps, as everywhere (and indices within a step, where one was left).
    The arguments are those of `SRSBatchSampler`. It is a `DistributedSampler`, with the attributes of one, so that
    Lightning and Fabric know that it divides its indices among processes and leave it as it is.

    Attributes:
        dataset: The data source.
        num_samples: How many indices this process gets in an effective epoch.
        total_size: How many all processes get.
        shuffle: True.
        seed: The seed.

    Example:
        >>> from replenish.torch import SRSBatchSampler
        >>> sampler = SRSSampler(range(100), 10, seed=1)
        >>> len(sampler), list(sampler)[:10] == next(iter(SRSBatchSampler(range(100), 10, seed=1)))
        (100, True)
    """

    def __init__(
        self,
        data_source: Sized,
        batch_size: int,
        *,
        seed: int = 0,
        pool_size: int | None = None,
        sequence: str | npt.ArrayLike = "shuffled",
        num_replicas: int | None = None,
        rank: int | None = None,
        drop_last: bool = False,
    ) -> None:
        order = srs_order(data_source, batch_size, seed, pool_size, sequence)
        super().__init__(order, epoch_of_srs(order, drop_last), num_replicas, rank, drop_last=drop_last)
        self.share_size = self._items_per_step = order.batch_size // self.num_replicas
        self.dataset: Any = data_source
        self.num_samples = self.steps_per_epoch * self.share_size
        self.total_size = self.num_samples * self.num_replicas
        self.shuffle = True
        self.seed = order.seed

    @property
    def epoch(self) -> int:
        """The effective epoch that the position is in; to set it is to call `set_epoch`."""
        with self._lock.lock:
            self._settle()
            return self._start // self.num_samples

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.set_epoch(epoch)

    def __len__(self) -> int:
        return self.num_samples

    def _items(self, start: int, end: int) -> Iterator[int]:
        step, offset = divmod(start, self.share_size)
        return islice(chain.from_iterable(self._lists(step, end // self.share_size)), offset, None)

    def state_dict(self, step: int | None = None) -> dict[str, int | str]:
        """Return the position as plain ints and strings; see `OrderBatchSampler.state_dict`."""
        step, offset = divmod(self._place_to_save(step), self.share_size)
        return {**state.save(self.order, step), "offset": offset, "share_size": self.share_size}

    def load_state_dict(self, state_dict: Mapping[str, int | str]) -> None:
        """Go to a position that `state_dict` returned; see `OrderBatchSampler.load_state_dict`."""
        step = state.load(self.order, state_dict)
        offset = state_dict.get("offset", 0)
        if offset and state_dict.get("share_size") != self.share_size:
            raise ValueError(
                f"state should be of a process with the same share of a batch, since it was taken within a batch, but "
                f"share_size is {state_dict.get('share_size')!r} in the state but {self.share_size} here"
            )
        offset = checks.integer("offset in state", offset, minimum=0, maximum=self.share_size - 1)
        self._move_to(step * self.share_size + offset, restored=True)
