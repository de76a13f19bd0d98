"""SRS for Keras 3: a dataset without end, of which `fit` takes one effective epoch after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

try:
    import keras
except ModuleNotFoundError as error:
    if error.name != "keras":
        raise  # it is there, and lacks its backend
    raise ImportError("replenish.integrations.keras needs Keras 3: pip install 'replenish[keras]'") from error

from replenish import checks
from replenish.draws import Int64Array
from replenish.integrations.recent import RecentBatches
from replenish.order import Order
from replenish.sequenced import SequencedReplacement

Data = Callable[[Int64Array], Any] | tuple[npt.NDArray[Any], ...]


class OrderDataset(keras.utils.PyDataset):  # type: ignore[misc]
    """Any `Order` as a Keras dataset: item i is the batch of step `start + i`, a pure function, without end.

    Keras asks for items 0, 1, 2, ... over all epochs of one `fit`, if it is told how many make an epoch:
    `model.fit(dataset, steps_per_epoch=dataset.steps_per_epoch, epochs=...)`. To resume, give the steps trained,
    which Keras keeps in the optimizer: `start=int(model.optimizer.iterations)`.

    Args:
        data: Arrays of equal length, of which a batch takes the rows `array[indices]`, in the order that Keras
            expects (inputs, targets, weights); or a function from an array of indices to such a batch.
        order: Which samples make up the batch of every step.
        start: The step of the first item.
        **options: `workers` and others of `keras.utils.PyDataset`. More than one worker is refused, since Keras
            takes a batch from its queue to build a model, and that batch would be missing.

    Example:
        >>> import numpy as np
        >>> from replenish import SequencedReplacement
        >>> inputs = np.arange(10)
        >>> dataset = OrderDataset((inputs, 2 * inputs), SequencedReplacement(10, 4, seed=3))
        >>> [array.tolist() for array in dataset[0]], dataset.steps_per_epoch
        ([[7, 3, 2, 6], [14, 6, 4, 12]], 3)
    """

    def __init__(self, data: Data, order: Order, *, start: int = 0, **options: Any) -> None:
        super().__init__(**options)
        if self.workers > 1 or self.use_multiprocessing:
            raise ValueError(
                f"workers should be at most 1 and use_multiprocessing False, since Keras takes a batch from the "
                f"workers' queue to build a model, which would be missing from the stream, but got workers="
                f"{self.workers} and use_multiprocessing={self.use_multiprocessing}"
            )
        if not callable(data):
            for array in data:
                if len(array) != order.num_samples:
                    raise ValueError(
                        f"data should be arrays of {order.num_samples} rows, the samples of the order, but got one "
                        f"of {len(array)}"
                    )
        self.data = data
        self.order = order
        self.start = checks.step(start, "start")
        self._batches = RecentBatches(order)

    @property
    def steps_per_epoch(self) -> int:
        """The steps of an effective epoch: what to give to `fit` under the same name."""
        return self.order.steps_per_epoch

    @property
    def num_batches(self) -> None:
        """None: the stream has no end."""
        return

    def __getitem__(self, index: int) -> Any:
        indices = self._batches[self.start + index]
        if callable(self.data):
            return self.data(indices)
        return tuple(array[indices] for array in self.data)


class SRSDataset(OrderDataset):
    """Sequenced-replacement sampling (the paper's section 2) as a Keras dataset; see `OrderDataset`.

    Args:
        data: Arrays of equal length: inputs, or inputs and targets, or these and weights.
        batch_size: The paper's B.
        seed: Chooses the draws and the shuffled sequence.
        pool_size: The number of slots; None means the number of samples, the paper's.
        sequence: `"shuffled"`, `"identity"` or an array of indices.
        start: The step of the first item: the steps trained so far.
        **options: See `OrderDataset`.

    Example:
        >>> import numpy as np
        >>> SRSDataset((np.arange(10),), 4, seed=3)[0][0].tolist()
        [7, 3, 2, 6]
    """

    def __init__(
        self,
        data: tuple[npt.NDArray[Any], ...],
        batch_size: int,
        *,
        seed: int = 0,
        pool_size: int | None = None,
        sequence: str | npt.ArrayLike = "shuffled",
        start: int = 0,
        **options: Any,
    ) -> None:
        order = SequencedReplacement(len(data[0]), batch_size, seed=seed, pool_size=pool_size, sequence=sequence)
        super().__init__(data, order, start=start, **options)
