"""SRS index by index, for code that takes a `sampler` but not a batch sampler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sized
from itertools import chain, islice
from typing import Any

import numpy.typing as npt
from torch.utils.data.distributed import DistributedSampler

from replenish import checks, state
from replenish.torch.arguments import epoch_of_srs, srs_order
from replenish.torch.step_sampler import StepSampler


class SRSSampler(StepSampler[int], DistributedSampler[int]):  # type: ignore[override]
    """Sequenced-replacement sampling index by index, for code that takes a `sampler` but not a batch sampler.

    It yields this process's share of every batch, one index after the other. A DataLoader that groups them by
    `batch_size / num_replicas` gets the batches of `SRSBatchSampler`. Its length is in indices; `seek` and the state
    count steps. The arguments are those of `SRSBatchSampler`. It is a `DistributedSampler`, so Lightning and Fabric see
    that it divides its indices among processes and keep it.

    Attributes:
        dataset: The data source.
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
        steps = epoch_of_srs(order, drop_last)
        super().__init__(order, steps_per_epoch=steps, num_replicas=num_replicas, rank=rank)
        self.places_per_step = order.batch_size
        self.dataset: Any = data_source
        self.shuffle, self.drop_last, self.seed = True, drop_last, order.seed

    def __len__(self) -> int:
        return self.num_samples

    @property
    def share_size(self) -> int:
        """The indices of one batch that this process gets."""
        return self.order.batch_size // self.num_replicas

    @property
    def num_samples(self) -> int:  # type: ignore[override]
        """The indices of one epoch on this process."""
        return self.steps_per_epoch * self.share_size

    @property
    def total_size(self) -> int:  # type: ignore[override]
        """The indices of one epoch on all processes."""
        return self.num_samples * self.num_replicas

    def load_state_dict(self, state_dict: Mapping[str, int | str]) -> None:
        """Go to a position that `state_dict` returned; also one within a batch, which earlier releases saved."""
        step, offset = state.load(self.order, state_dict), state_dict.get("offset", 0)
        if offset and state_dict.get("share_size") != self.share_size:
            raise ValueError(
                f"state should come from a process with the same share of a batch, since it was saved within a batch, "
                f"but share_size is {state_dict.get('share_size')!r} in the state and {self.share_size} here"
            )
        offset = checks.integer("offset in state", offset, minimum=0, maximum=self.share_size - 1)
        self._restore(step * self.places_per_step + offset * self.num_replicas)

    @property
    def _places_per_item(self) -> int:
        return self.num_replicas

    def _items(self, start: int, end: int) -> Iterator[int]:
        step, offset = divmod(start, self.places_per_step)
        indices = chain.from_iterable(self._lists(step, end // self.places_per_step))
        return islice(indices, offset // self.num_replicas, None)
