"""What a loader drew, pass by pass: the data that every question of an audit is asked of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from replenish.auditing.datasets import Identity
from replenish.draws import Int64Array
from replenish.measure.reading import Draws


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass of a loader, as a rule an epoch.

    Attributes:
        samples: What it drew, in order: positions in the loader's dataset, or numbers given to the items of a stream.
        sizes: How many samples each batch has.
        whole: Whether the pass reached its end.
        told: The `epoch` of the sampler when the pass began; None if it has none.
    """

    samples: Int64Array
    sizes: Int64Array
    whole: bool = True
    told: int | None = None

    @classmethod
    def of_batches(cls, batches: Sequence[Any], **rest: Any) -> Pass:
        """Return the pass of some batches of indices."""
        arrays = [np.asarray(batch, dtype=np.int64) for batch in batches]
        return cls(np.concatenate(arrays), np.array([len(each) for each in arrays], dtype=np.int64), **rest)

    def batches(self) -> list[Int64Array]:
        """Return the batches."""
        return np.split(self.samples, np.cumsum(self.sizes)[:-1])


@dataclass(frozen=True, eq=False)
class Record:
    """The passes of one loader.

    Attributes:
        passes: The passes, in order.
        num_samples: How many samples the dataset has; of a stream, how many different items came.
        is_stream: Whether items were told apart by their hash.
        items: Of a stream, the first item of each number, where labels are asked of them.
        identity: Which samples of which dataset the positions are, where that is known.
        weights: The weights of a sampler that has some.
    """

    passes: list[Pass]
    num_samples: int
    is_stream: bool = False
    items: list[Any] = field(default_factory=list)
    identity: Identity | None = None
    weights: np.ndarray[Any, np.dtype[np.float64]] | None = None

    @property
    def whole_passes(self) -> list[Pass]:
        """The passes that reached their end."""
        return [each for each in self.passes if each.whole]

    def draws(self) -> Draws:
        """Return all passes as one run of steps."""
        return Draws(
            np.concatenate([each.samples for each in self.passes]),
            np.concatenate([each.sizes for each in self.passes]),
            self.num_samples,
        )

    def counts(self) -> Int64Array:
        """Return how often each sample came in each whole pass, (passes, num_samples)."""
        return np.stack([np.bincount(each.samples, minlength=self.num_samples) for each in self.whole_passes])

    @property
    def batch_size(self) -> int:
        """The usual size of a batch."""
        return int(np.median(np.concatenate([each.sizes for each in self.passes])))
