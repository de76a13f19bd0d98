"""The steps trained, counted by the training loop, for frameworks that save objects with a `state_dict`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from replenish import checks
from replenish.torch.step_sampler import StepSampler

if TYPE_CHECKING:
    from replenish.torch.stream import PooledIterableDataset


class Progress:
    """The number of steps trained on a sampler's batches, saved as the sampler's position.

    Only the loop knows the steps trained: loaders prefetch. Add 1 to `step` after every batch. Accelerate and Fabric
    save this object beside the model. From now on the sampler ignores `set_epoch`, which these frameworks call with
    numbers that do not count the run's epochs, and every pass must begin at `step`: a loop that forgets to count, or
    leaves a pass early without saying so, gets an error.

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
        """The epoch of `step`: the one to resume with."""
        return self.step // self._steps_per_epoch

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass belong to `epoch`: its start, or the steps trained if they are within it.

        Call it before each pass of a loop that leaves passes early or looks at the data.

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
        """Put the sampler and the count to a saved position, also in a run with another number of processes."""
        self.sampler.load_state_dict(state_dict)
        self.step = int(state_dict["step"])

    def _step(self) -> int:
        return self.step
