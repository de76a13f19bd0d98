"""SRS for Hugging Face Accelerate: what `Accelerator.save_state` is to keep of a sampler.

It needs nothing of Accelerate, and serves any framework that saves objects with `state_dict` and `load_state_dict`.
"""

from __future__ import annotations

from collections.abc import Mapping

from replenish.torch import OrderBatchSampler, SRSSampler


class Progress:
    """The number of steps trained on a sampler's batches, saved as the sampler's position.

    A sampler counts the steps *drawn*, which workers do ahead of the training; only the loop knows the steps
    trained. Increase `step` after every one, and register this object instead of the sampler:
    `accelerator.register_for_checkpointing(progress)`.

    Args:
        sampler: The sampler to put to the position when a state is loaded.

    Example:
        >>> from replenish.torch import SRSBatchSampler
        >>> progress = Progress(SRSBatchSampler(range(100), 10))
        >>> progress.step += 7
        >>> progress.state_dict()["step"]
        7
    """

    def __init__(self, sampler: OrderBatchSampler | SRSSampler) -> None:
        self.sampler = sampler
        self.step = 0

    def state_dict(self) -> dict[str, int | str]:
        """Return the sampler's position at the steps trained."""
        return self.sampler.state_dict(step=self.step)

    def load_state_dict(self, state_dict: Mapping[str, int | str]) -> None:
        """Put the sampler and the count to a position saved, also one of another number of processes."""
        self.sampler.load_state_dict(state_dict)
        self.step = int(state_dict["step"])
