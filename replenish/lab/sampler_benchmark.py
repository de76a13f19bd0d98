"""The speed of the sampler and of torch's own, as ratios of times that were measured one after the other.

The baseline is `BatchSampler(RandomSampler(...))`, which `DataLoader(shuffle=True)` uses. It alternates with the
sampler in one process, so that a busy machine slows both. The time of an epoch includes everything between `iter()` and
its first batch. "With building" adds the sampler's constructor, which a training calls once.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replenish import SequencedReplacement, checks

if TYPE_CHECKING:
    from torch.utils.data import BatchSampler

# The ways to iterate over an epoch, by their names in `one_epoch`, with their labels in a table.
WAYS = {
    "torch": "torch, BatchSampler(RandomSampler)",
    "lists": "SRS, lists",
    "built_lists": "SRS, lists, with building",
    "arrays": "SRS, arrays",
    "built_arrays": "SRS, arrays, with building",
}


@dataclass(frozen=True)
class Ratio:
    """The median and the quartiles of the ratios of many rounds."""

    low: float
    median: float
    high: float

    def text(self, digits: int = 1, unit: str = "x") -> str:
        """Return the ratio as text, such as `2.0x (1.8 to 2.1)`."""
        return f"{self.median:.{digits}f}{unit} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def ratio(over: list[float], under: list[float]) -> Ratio:
    """Return the median and the quartiles of over / under, from the times of each round.

    Example:
        >>> ratio([4.0, 6.0, 8.0], [2.0, 2.0, 2.0]).text()
        '3.0x (2.5 to 3.5)'
    """
    ratios = [first / second for first, second in zip(over, under, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Ratio(low, middle, high)


def seconds(run: Callable[[], object]) -> float:
    """Return how long a call takes."""
    gc.collect()  # cheap if older objects are frozen; visiting them would empty the caches
    gc.disable()  # a collection during the call would count as its time
    try:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start
    finally:
        gc.enable()


def alternately(rounds: int, **runs: Callable[[], object]) -> dict[str, list[float]]:
    """Time each of `runs` in turn for a number of rounds, after a warm-up round."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            elapsed = seconds(run)
            if number:
                times[name].append(elapsed)
    return times


def exhaust(batches: Iterable[object]) -> None:
    """Iterate over all batches."""
    for _ in batches:
        pass


def torch_batches(num_samples: int, batch_size: int) -> BatchSampler:
    """Return the baseline."""
    from torch.utils.data import BatchSampler, RandomSampler

    return BatchSampler(RandomSampler(range(num_samples)), batch_size, drop_last=False)


def one_epoch(num_samples: int, batch_size: int, rounds: int) -> dict[str, Callable[[], object]]:
    """Return the `WAYS` to iterate over the first epoch. Samplers whose building is not timed are built here."""
    from replenish.torch import SRSBatchSampler

    order = SequencedReplacement(num_samples, batch_size)
    fresh = iter([SRSBatchSampler(range(num_samples), batch_size) for _ in range(rounds + 1)])
    return {
        "torch": lambda: exhaust(torch_batches(num_samples, batch_size)),
        "lists": lambda: exhaust(next(fresh)),
        "arrays": lambda: exhaust(order.batches(0, order.steps_per_epoch)),
        "built_lists": lambda: exhaust(SRSBatchSampler(range(num_samples), batch_size)),
        "built_arrays": lambda: exhaust(
            SequencedReplacement(num_samples, batch_size).batches(0, order.steps_per_epoch)
        ),
    }


def measure_epochs(num_samples: int, batch_size: int, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of an epoch in each round, by the names of `WAYS`. Quartiles need two rounds or more."""
    checks.integer("n", num_samples, minimum=1)
    checks.integer("batch_size", batch_size, minimum=1, maximum=num_samples)
    checks.integer("rounds", rounds, minimum=2)
    gc.freeze()
    try:
        return alternately(rounds, **one_epoch(num_samples, batch_size, rounds))
    finally:
        gc.unfreeze()
