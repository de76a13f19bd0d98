"""SRS for Keras 3: a dataset without end, of which `fit` takes one effective epoch after the other."""

from __future__ import annotations

import sys
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
from replenish.integrations.versions import refuse_older
from replenish.orders.protocol import Order
from replenish.orders.sequenced_replacement import SequencedReplacement

refuse_older("keras", (3, 7))  # before, `fit` draws a batch that it does not train on

Data = Callable[[Int64Array], Any] | tuple[npt.NDArray[Any], ...]


def batches_trained(model: Any) -> int:
    """Return how many batches a model's optimizer was given, which Keras saves with the model.

    `optimizer.iterations` is not it: it counts updates, of which gradient accumulation makes fewer.
    """
    optimizer = model.optimizer
    if hasattr(optimizer, "inner_optimizer"):
        raise ValueError(
            f"start should be given with a {type(optimizer).__name__}, which leaves out batches and so does not count "
            f"them, but got None"
        )
    return int(optimizer._iterations)


class OrderDataset(keras.utils.PyDataset):  # type: ignore[misc]
    """Any `Order` as a Keras dataset: item i is the batch of a step, a pure function, without end.

    Give it to `model.fit(dataset, steps_per_epoch=dataset.steps_per_epoch, epochs=...)`. Every `fit` begins at the
    number of batches that the model's optimizer was given so far, which Keras saves with the model: so a second `fit`,
    one of a model that was loaded, and one that `BackupAndRestore` puts back go on where the training was.

    Args:
        data: Arrays of equal length, of which a batch takes the rows `array[indices]`, in the order that Keras
            expects (inputs, targets, weights); or a function from an array of indices to such a batch.
        order: Which samples make up the batch of every step.
        start: The step of the first item, from which the dataset counts by itself what `fit` takes; None means to ask
            the model, as above.
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

    def __init__(self, data: Data, order: Order, *, start: int | None = None, **options: Any) -> None:
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
        self._asks_the_model = start is None
        self.start = 0 if start is None else checks.step(start, "start")
        self._taken, self._counts = 0, False
        self._batches = RecentBatches(order)

    @property
    def steps_per_epoch(self) -> int:
        """The steps of an effective epoch: what to give to `fit` under the same name."""
        return self.order.steps_per_epoch

    @property
    def num_batches(self) -> None:
        """None: the stream has no end."""
        return

    def on_epoch_begin(self) -> None:
        """Find where a new run over the items begins; Keras calls it before every epoch, and before a look at one."""
        caller, model, epochs = _caller()
        self._counts = False
        if epochs is None:
            return
        if epochs.steps_per_epoch is None:
            raise ValueError(
                f"{'steps_per_epoch' if caller in ('fit', '_symbolic_build') else 'steps'} should be given, since the "
                f"stream has no end, but got None; {self.steps_per_epoch} steps are an effective epoch"
            )
        if caller != "fit":
            return
        if epochs._current_iterator is None:  # items will be asked for from 0 on
            self.start = batches_trained(model) if self._asks_the_model else self.start + self._taken
            self._taken = 0
        self._counts = True

    def __getitem__(self, index: int) -> Any:
        if self._counts:
            self._taken = index + 1
        indices = self._batches[self.start + index]
        if callable(self.data):
            return self.data(indices)
        return tuple(array[indices] for array in self.data)


def _caller() -> tuple[str, Any, Any]:
    """Return which of Keras' methods asks for an epoch, of which model, and Keras' count of epochs and steps."""
    frame, epochs = sys._getframe(2), None
    for _ in range(16):
        name, owner = frame.f_code.co_name, frame.f_locals.get("self")
        if epochs is None and hasattr(owner, "_enumerate_iterator"):
            epochs = owner
        if name in ("fit", "evaluate", "predict", "_symbolic_build") and isinstance(owner, keras.Model):
            return name, owner, epochs
        if frame.f_back is None:
            break
        frame = frame.f_back
    return "", None, epochs


class SRSDataset(OrderDataset):
    """Sequenced-replacement sampling (the paper's section 2) as a Keras dataset; see `OrderDataset`.

    Args:
        data: Arrays of equal length: inputs, or inputs and targets, or these and weights.
        batch_size: The paper's B.
        seed: Chooses the draws and the shuffled sequence.
        pool_size: The number of slots; None means the number of samples, the paper's.
        sequence: `"shuffled"`, `"identity"` or an array of indices.
        start: The step of the first item; None means to ask the model.
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
        start: int | None = None,
        **options: Any,
    ) -> None:
        order = SequencedReplacement(len(data[0]), batch_size, seed=seed, pool_size=pool_size, sequence=sequence)
        super().__init__(data, order, start=start, **options)
