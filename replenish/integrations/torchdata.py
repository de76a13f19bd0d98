"""Samplers in torchdata's `StatefulDataLoader`, which asks for their state at every batch that it draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch.utils.data import Sampler

from replenish import state
from replenish.torch.step_sampler import StepSampler


class StatefulSampler(Sampler[Any]):
    """A sampler for `StatefulDataLoader` or `torchdata.nodes.SamplerWrapper`, around one of `replenish.torch`.

    Its state is the position after the batches *drawn*. The loader keeps a state with every batch, and saves the state
    of the last batch *delivered*. So its workers may prefetch.

    Args:
        sampler: A sampler of `replenish.torch`.

    Example:
        >>> from replenish.torch import SRSBatchSampler
        >>> sampler = StatefulSampler(SRSBatchSampler(range(100), 10, seed=3))
        >>> batches = iter(sampler)
        >>> next(batches) == sampler.sampler.order.batch(0).tolist(), sampler.state_dict()["step"]
        (True, 1)
    """

    def __init__(self, sampler: StepSampler[Any]) -> None:
        if not isinstance(sampler, StepSampler):
            raise TypeError(f"sampler should be a sampler of replenish.torch, but got a {type(sampler).__name__}")
        self.sampler = sampler
        self._loaded: int | None = None  # the step of the last state that was loaded

    def __len__(self) -> int:
        return len(self.sampler)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass begin at the start of `epoch`, or at the step of that epoch that a state restored.

        Raises:
            ValueError: A state restored a step of that epoch, which was drawn to its end since.
        """
        end = (epoch + 1) * self.sampler.steps_per_epoch
        if self._loaded is not None and self._loaded < end <= self.sampler.step_drawn:
            raise ValueError(
                f"epoch should be at least {epoch + 1}, since the loader's state at step {self._loaded} continued "
                f"epoch {epoch}, which was drawn to its end, but got {epoch}: save the loader's state after the end of "
                f"an epoch, not with its last batch"
            )
        self.sampler.set_epoch(epoch)

    def state_dict(self) -> dict[str, int | str]:
        """Return the position after the batches drawn, as plain ints and strings."""
        return state.save(self.sampler.order, self.sampler.step_drawn)

    def load_state_dict(self, state_dict: Mapping[str, int | str]) -> None:
        """Go to a position. The loader calls this when it makes its iterator.

        Raises:
            ValueError: `set_epoch` was called with another epoch than the state's.
        """
        step, named = state.load(self.sampler.order, state_dict), self.sampler.epoch_set
        epoch = step // self.sampler.steps_per_epoch
        if named not in (None, epoch):
            raise ValueError(
                f"set_epoch should be called with epoch {epoch}, that of the loader's state at step {step}, but it was "
                f"called with {named}; resume the loop at that epoch, or, where passes are left early, save "
                f"sampler.state_dict(step) instead of the loader's state"
            )
        self.sampler.load_state_dict(state_dict)
        self._loaded = step
