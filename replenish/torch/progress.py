"""Counts the steps trained, and finds the sampler of a loader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from replenish import checks
from replenish.torch.samplers import SRSSampler
from replenish.torch.step_sampler import StepSampler

if TYPE_CHECKING:
    from replenish.torch.stream import PooledIterableDataset


class Progress:
    """The number of steps trained on a sampler's batches, saved as the sampler's position.

    Loaders prefetch, so only the training loop knows the steps trained. Add 1 to `step` after every batch. Accelerate
    and Fabric save this object with the model. They also call `set_epoch` with numbers that do not count the run's
    epochs, so the sampler ignores its `set_epoch` from now on. Every pass must begin at `step`: a loop that forgets to
    count, or leaves a pass early and does not call `set_epoch` of this object, gets an error.

    Args:
        sampler: The sampler of the training loader, or the `PooledIterableDataset` that it reads. With workers, such a
            dataset needs `progress.set_epoch(epoch)` before each pass.

    Example:
        >>> from replenish.torch import SRSBatchSampler
        >>> progress = Progress(SRSBatchSampler(range(100), 10))
        >>> progress.step += 7
        >>> progress.state_dict()["step"], progress.epoch
        (7, 0)
    """

    def __init__(self, sampler: StepSampler[Any] | PooledIterableDataset[Any]) -> None:
        self.sampler = sampler
        self.step = int(sampler.state_dict()["step"])
        self._steps_per_epoch = sampler.steps_per_epoch or checks.MAX_STEP  # an endless stream is one epoch
        sampler.ignores_set_epoch, sampler.expected_start = True, self._step

    @property
    def epoch(self) -> int:
        """The epoch of `step`, at which to resume the loop."""
        return self.step // self._steps_per_epoch

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass begin at the start of `epoch`, or at the steps trained if they are within it.

        Call it before each pass if the loop leaves passes early or looks at the data.

        Raises:
            ValueError: The steps trained are beyond that epoch.
        """
        start = checks.integer("epoch", epoch, minimum=0) * self._steps_per_epoch
        if epoch < self.epoch:
            raise ValueError(
                f"epoch should be at least {self.epoch}, since {self.step} steps are trained, but got {epoch}"
            )
        self.step = max(self.step, start)
        self.sampler.seek(self.step)

    def state_dict(self) -> dict[str, int | str]:
        """Return the sampler's position at the steps trained."""
        return self.sampler.state_dict(self.step)

    def load_state_dict(self, state_dict: Mapping[str, int | str]) -> None:
        """Restore the sampler and the count to a saved position, also in a run with another number of processes."""
        self.sampler.load_state_dict(state_dict)
        self.step = int(state_dict["step"])

    def _step(self) -> int:  # not a lambda: workers get the dataset pickled
        return self.step


def sampler_of(loader: Any) -> StepSampler[Any] | PooledIterableDataset[Any]:
    """Return the sampler or stream of `replenish.torch` that a loader draws from.

    Raises:
        TypeError: The loader has none.
        ValueError: A batch is not a step, or batches are not delivered in the order in which they were drawn.
    """
    from replenish.torch.stream import PooledIterableDataset

    found = [getattr(loader, name, None) for name in ("batch_sampler", "sampler")]
    stream = getattr(loader, "dataset", None)
    candidates = [*found, stream] if loader.batch_size is None else found
    sampler = next((each for each in candidates if isinstance(each, StepSampler | PooledIterableDataset)), None)
    if sampler is None:
        raise TypeError(
            f"loader should have a sampler of replenish.torch, but its batch sampler is a {type(found[0]).__name__}"
        )
    if isinstance(sampler, SRSSampler) and loader.batch_size != sampler.share_size:
        raise ValueError(
            f"batch_size should be {sampler.share_size}, the sampler's share of a step, so that a batch is one step, "
            f"but got {loader.batch_size}"
        )
    if not getattr(loader, "in_order", True):  # an argument of DataLoader since torch 2.6
        raise ValueError(
            "in_order should be True, since the batches trained are counted in the order in which they are drawn, but "
            "got False"
        )
    return sampler
