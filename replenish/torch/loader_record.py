"""What happened to a loader whose shuffling an order may replace, and its line in the summary."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(eq=False)
class LoaderRecord:
    """What happened to one loader, or to several that continued each other."""

    dataset: str  # the class of its dataset
    num_samples: int | None = None  # the samples it chooses from; None if its dataset has no length
    batch_size: int | None = None  # the samples of a step over all processes; None if it makes no batches
    num_replicas: int = 1  # the processes that share a batch
    order: str | None = None  # the order and its options; None if the loader was left alone
    seed: int | None = None  # the seed of its draws, from the first pass on
    reason: str = ""  # why it was left alone
    passes: int = 0  # how many passes over the order have begun
    left_early: int = 0  # how many of these passes have not drawn their last batch
    epochs: tuple[int, int] | None = None  # the first and the last epoch drawn
    evaluations: int = 0  # how many passes began with gradients off, and kept the loader's own order
    pickled: bool = False  # whether it was pickled: in another process it has torch's order
    drawn: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool), repr=False)  # by this process

    @property
    def distinct(self) -> int:
        """How many distinct samples this process has drawn. Loaders with workers draw ahead of the training."""
        return int(np.count_nonzero(self.drawn))

    @property
    def replaced(self) -> bool:
        """Whether a training pass has drawn from the order."""
        return self.passes > 0

    @property
    def is_unused(self) -> bool:
        """Whether it was to get the order, but was never iterated."""
        return self.order is not None and not (self.passes or self.evaluations or self.pickled)

    @property
    def title(self) -> str:
        """The loader's dataset and sizes."""
        samples = f"N = {self.num_samples:,}" if self.num_samples is not None else "N unknown"
        batch = f", B = {self.batch_size:,}" if self.batch_size is not None else ""
        processes = f" over {self.num_replicas} processes" if self.num_replicas > 1 else ""
        return f"loader over {self.dataset}, {samples}{batch}{processes}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, except `drawn`, and the properties as plain values."""
        plain = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "drawn"}
        more = ("distinct", "replaced", "is_unused", "summary")
        return {**plain, **{name: getattr(self, name) for name in more}}

    @property
    def summary(self) -> str:
        """What happened to the loader, in one line."""
        also = "; warning: it was pickled, and has torch's order in another process" if self.pickled else ""
        return f"{self.title}: {self._outcome()}{also}"

    def _outcome(self) -> str:
        if self.order is None:
            return f"left alone, {self.reason}"
        if self.passes == 0:
            if self.evaluations:
                return "left alone, it was iterated only with gradients off, as in an evaluation"
            return "never iterated"
        first, last = self.epochs or (0, 0)
        where = f"epoch {first:,}" if first == last else f"epochs {first:,} to {last:,}"
        drawn = f"{self.distinct:,} of {self.num_samples:,} samples drawn"
        process = " by this process" if self.num_replicas > 1 else ""
        also = f"; {self.evaluations:,} more with gradients off, shuffled as before" if self.evaluations else ""
        begun = f"{self.passes:,} pass{'es' if self.passes > 1 else ''} begun ({where})"
        passes = f"{begun}, {self.left_early:,} left early"
        return f"replaced by {self.order}, seed {self.seed}: {passes}, {drawn}{process}{also}"
