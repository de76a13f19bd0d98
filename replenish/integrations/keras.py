"""SRS for Keras 3: a dataset without end, and a callback that resumes it where the model's training ended."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy.typing as npt

try:
    import keras
except ModuleNotFoundError as error:
    if error.name != "keras":
        raise  # Keras is installed, and its backend is not
    raise ImportError("replenish.integrations.keras needs Keras 3: pip install 'replenish[keras]'") from error

from replenish import checks
from replenish.draws import Int64Array
from replenish.orders.protocol import Order
from replenish.orders.sequenced_replacement import SequencedReplacement

if tuple(map(int, keras.__version__.split(".")[:2])) < (3, 7):
    raise ImportError(
        f"keras should be 3.7 or later, since older versions draw a batch that they do not train on, but "
        f"{keras.__version__} is installed: pip install 'replenish[keras]'"
    )

Data = Callable[[Int64Array], Any] | tuple[npt.NDArray[Any], ...]


def batches_trained(model: Any) -> int:
    """Return how many batches a model's optimizer was given. Keras saves this number with the model.

    `optimizer.iterations` counts updates instead, and gradient accumulation makes fewer updates than batches.
    """
    counts = [variable for variable in model.optimizer.variables if variable.name == "iteration"]
    if isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer) or len(counts) != 1:
        raise ValueError(
            f"start should be given with a {type(model.optimizer).__name__}, which does not count every batch, but got "
            f"None"
        )
    return int(counts[0].numpy())


class OrderDataset(keras.utils.PyDataset):  # type: ignore[misc]
    """Any `Order` as a Keras dataset without end: item i is the batch of step start + i.

    Pass the dataset and its callback to `fit`: `model.fit(dataset, steps_per_epoch=dataset.steps_per_epoch,
    callbacks=[dataset.callback])`. Every `fit` begins at the step that equals the number of batches that the model's
    optimizer was given so far. Keras saves this number with the model. So a second `fit`, a `fit` of a loaded model,
    and one that `BackupAndRestore` resumes all continue the training.

    Args:
        data: Arrays of equal length (inputs, targets, weights), whose rows `array[indices]` make a batch; or a
            function from an array of indices to a batch.
        order: The samples of the batch of every step.
        start: The step of the first item. The callback, if used, adds the batches that it counts. None means the
            number of batches that the optimizer was given, and needs the callback.
        **options: `workers` and other options of `keras.utils.PyDataset`. More than one worker is an error, since
            Keras takes a batch from the workers' queue to build a model, and does not train on it.

    Attributes:
        callback: The callback to pass to `fit`.

    Example:
        >>> import numpy as np
        >>> from replenish import SequencedReplacement
        >>> inputs = np.arange(10)
        >>> dataset = OrderDataset((inputs, 2 * inputs), SequencedReplacement(10, 4, seed=3), start=0)
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
        self.start = None if start is None else checks.step(start, "start")
        self.callback = _BeginWhereTheModelIs(self)

    @property
    def steps_per_epoch(self) -> int:
        """The number of steps in an effective epoch. Pass it to `fit` under the same name."""
        return self.order.steps_per_epoch

    @property
    def num_batches(self) -> None:
        """None, since the stream has no end."""
        return

    def __getitem__(self, index: int) -> Any:
        start = self.callback.begun_at
        if start is None and self.start is not None:
            start = self.start + self.callback.counted
        if start is None:
            # Keras reads one batch to build a model, before it calls a callback.
            self.callback.looks += 1
            if index or self.callback.looks > 1:
                raise ValueError(
                    "callbacks should have dataset.callback, which finds the batches that the model was trained on, or "
                    "start should be given (also to build a model with steps_per_execution), but the dataset got "
                    "neither"
                )
            start = 0
        indices = self.order.batch(start + index)
        if callable(self.data):
            return self.data(indices)
        return tuple(array[indices] for array in self.data)


class _BeginWhereTheModelIs(keras.callbacks.Callback):  # type: ignore[misc]
    """Finds the step at which a `fit` begins, and counts its batches.

    Attributes:
        begun_at: The step of the first item of the `fit` that is running; None if none is.
        counted: How many batches all fits had.
        looks: How many items were read while no `fit` was running, since the last one began.
    """

    def __init__(self, dataset: OrderDataset) -> None:
        super().__init__()
        self.begun_at: int | None = None
        self.counted = self.looks = 0
        self._dataset = dataset
        self._trained: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # batches trained, by model

    def on_train_begin(self, logs: Any = None) -> None:
        """Find the step at which this `fit` begins. Keras reads the dataset's items from now on."""
        start = self._dataset.start
        if self.params["steps"] is None:
            raise ValueError(
                f"steps_per_epoch should be given, since the stream has no end, but got None; "
                f"{self._dataset.steps_per_epoch} steps are an effective epoch"
            )
        self.looks = 0
        self.begun_at = batches_trained(self.model) if start is None else start + self.counted
        self._offset = self.begun_at - self.counted
        self._check_optimizer(self._trained.get(self.model, 0))

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Store the number of the first batch of an execution, which may have several."""
        self._first = batch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Count the batches of an execution."""
        self.counted += batch - self._first + 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Check that the optimizer was given every batch. In a model with its own optimizers it may not be."""
        self._trained[self.model] = self._offset + self.counted
        self._check_optimizer(self._offset + self.counted)

    def _check_optimizer(self, trained: int) -> None:
        """Raise if the next `fit` would repeat batches that the model was trained on."""
        if self._dataset.start is None and batches_trained(self.model) < trained:
            raise ValueError(
                f"start should be given, since the model was trained on {trained} batches and its optimizer had "
                f"{batches_trained(self.model)}, as after a new compile or in a model with optimizers of its own; give "
                f"start=, the batches trained"
            )

    def on_train_end(self, logs: Any = None) -> None:
        """Forget the step, since the next `fit` may train another model."""
        self.begun_at = None


class SRSDataset(OrderDataset):
    """Sequenced-replacement sampling (the paper's section 2) as a Keras dataset; see `OrderDataset`.

    Args:
        data: Arrays of equal length: inputs, or inputs and targets, or these and weights.
        batch_size: The paper's B.
        seed: Chooses the draws and the shuffled sequence.
        pool_size: The number of slots; None means the number of samples, as in the paper.
        sequence: `"shuffled"`, `"identity"` or an array of indices.
        start: The step of the first item; None means the number of batches that the model was trained on.
        **options: See `OrderDataset`.

    Example:
        >>> import numpy as np
        >>> SRSDataset((np.arange(10),), 4, seed=3, start=0)[0][0].tolist()
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
