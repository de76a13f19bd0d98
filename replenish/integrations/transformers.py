"""SRS for the Hugging Face Trainer: a mixin that uses the Trainer's own step number as the position in the stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader, Sampler

try:
    import transformers
    from transformers.trainer_utils import get_last_checkpoint
except ModuleNotFoundError as error:
    if error.name != "transformers":
        raise  # transformers is installed, and one of its own imports failed
    raise ImportError(
        "replenish.integrations.transformers needs Hugging Face transformers: pip install 'replenish[transformers]'"
    ) from error

from replenish.orders.protocol import Order
from replenish.orders.sequenced_replacement import SequencedReplacement
from replenish.state import load, save
from replenish.torch.progress import sampler_of
from replenish.torch.samplers import OrderBatchSampler
from replenish.torch.stream import PooledIterableDataset

STATE_FILE = "replenish.json"

# The options that a loader keeps when it gets another batch sampler.
LOADER_OPTIONS = (
    "collate_fn",
    "num_workers",
    "pin_memory",
    "timeout",
    "worker_init_fn",
    "multiprocessing_context",
    "prefetch_factor",
    "persistent_workers",
)


class MicroBatches(Sampler[list[int]]):
    """This process's share of an order's batches, each cut into parts for gradient accumulation.

    A batch of the order belongs to one optimizer step over all processes, which takes `parts` forward passes. A pass
    is as long as one effective epoch and begins at the step that `position` returns, the number of optimizer steps
    done. The first pass begins at the start of its epoch, since the Trainer itself skips the batches trained in it.
    """

    def __init__(self, order: Order, parts: int, num_replicas: int, rank: int, position: Callable[[], int]) -> None:
        self.batches = OrderBatchSampler(order, num_replicas=num_replicas, rank=rank)
        self.parts = parts
        self._position = position
        self._first_pass = True

    def __len__(self) -> int:
        return len(self.batches) * self.parts

    def __iter__(self) -> Iterator[list[int]]:
        start, steps = self._position(), len(self.batches)
        if self._first_pass:
            start -= start % steps
        self._first_pass = False
        self.batches.seek(start)
        # The Trainer's pass is one epoch long, even if a callback cut the last one short. A pass from the middle of an
        # effective epoch takes the rest of that epoch and the beginning of the next.
        for batch in islice(chain(self.batches, self.batches), steps):
            size = len(batch) // self.parts
            yield from (batch[first : first + size] for first in range(0, len(batch), size))


class _KeepPosition(transformers.TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Saves the position in every checkpoint. A resumed run compares it with its order."""

    def __init__(self, trainer: SRSTrainerMixin) -> None:
        self._trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **_: Any) -> None:
        """Raise for a loader with another batch sampler, which the Trainer would resume by counting epochs."""
        if not isinstance(getattr(train_dataloader, "batch_sampler", None), MicroBatches):
            raise ValueError(
                f"get_train_dataloader should not be overridden, since its batches are not those of the order, but the "
                f"training loader is a {type(train_dataloader).__name__} without them; override make_loader"
            )
        if not getattr(train_dataloader, "in_order", True):
            raise ValueError("in_order should be True, for batches to come in the order's sequence, but got False")

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the position to the folder of the Trainer's checkpoint."""
        folder = Path(args.output_dir, f"checkpoint-{state.global_step}")
        if state.is_world_process_zero and folder.is_dir():
            (folder / STATE_FILE).write_text(json.dumps(save(self._trainer._order, state.global_step)))


class SRSTrainerMixin:
    """Gives sequenced-replacement sampling to a Hugging Face `Trainer` or a subclass of it.

    The batch of SRS is the batch of an optimizer step: per_device_train_batch_size x gradient_accumulation_steps
    x processes. So `global_step` is the position in the stream, and a run can resume with any numbers that have the
    same product. The seed is `data_seed`, or else `seed`. To use another order, override `make_order`. To use your own
    DataLoader, override `make_loader`.

    Example:
        >>> class MyTrainer(SRSTrainerMixin, transformers.Trainer):
        ...     pass
    """

    args: Any
    state: Any
    train_dataset: Any
    _order: Order
    _resumed_from: str | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.args.ignore_data_skip:
            raise ValueError(
                "ignore_data_skip should be False, since a resumed run continues in the stream, but got True; skipping "
                "reads no data, only indices are drawn"
            )
        grouped = "group_by_length" if getattr(self.args, "group_by_length", False) else "random"  # before version 5
        strategy = getattr(self.args, "train_sampling_strategy", grouped)
        if strategy != "random":
            raise ValueError(
                f"train_sampling_strategy should be 'random', since this Trainer has its own order, but got "
                f"{strategy!r}; for another order, override make_order"
            )
        self.add_callback(_KeepPosition(self))  # type: ignore[attr-defined]

    def make_order(self, num_samples: int, batch_size: int) -> Order:
        """Return the order to train in. `batch_size` counts the samples of an optimizer step over all processes."""
        seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
        return SequencedReplacement(num_samples, batch_size, seed=seed)

    def make_loader(self, batch_sampler: Sampler[list[int]]) -> DataLoader[Any]:
        """Return the training loader with this batch sampler, on the Trainer's dataset.

        Do not prepare it with Accelerate, which would divide the batches among the processes again.
        """
        theirs = super().get_train_dataloader()  # type: ignore[misc]
        options = {name: getattr(theirs, name) for name in LOADER_OPTIONS}
        return DataLoader(theirs.dataset, batch_sampler=batch_sampler, **options)

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        """Train as the Trainer does. `get_train_dataloader` checks that the checkpoint has the same order."""
        folder = resume_from_checkpoint
        if folder is True:
            folder = get_last_checkpoint(self.args.output_dir)  # type: ignore[no-untyped-call, unused-ignore]
        self._resumed_from = folder or None
        return super().train(resume_from_checkpoint, *args, **kwargs)  # type: ignore[misc]

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return a loader of this process's share of the order's batches."""
        try:
            num_samples = len(self.train_dataset)
        except TypeError:
            raise TypeError(
                f"train_dataset should have a length, but got a {type(self.train_dataset).__name__} without one"
            ) from None
        parts, world, rank = self.args.gradient_accumulation_steps, self.args.world_size, self.args.process_index
        micro_batch = self.args.train_batch_size * world
        if self.args.auto_find_batch_size:  # only the Trainer's own loader has the size that it found
            micro_batch = super().get_train_dataloader().total_batch_size  # type: ignore[misc]
        self._order = self.make_order(num_samples, micro_batch * parts)
        last = getattr(self._order, "last_batch_size", 0)
        varies = getattr(self._order, "batch_sizes_vary", False)
        if parts > 1 and (varies or last % (parts * world)):
            raise ValueError(
                f"gradient_accumulation_steps should be 1 for an order with batches that do not divide into equal "
                f"parts on {world} processes, but got {parts} for {self._order!r}; or give the order drop_last=True"
            )
        if self._resumed_from and (saved := Path(self._resumed_from, STATE_FILE)).is_file():
            load(self._order, json.loads(saved.read_text()))
        return self.make_loader(MicroBatches(self._order, parts, world, rank, lambda: self.state.global_step))


class SRSTrainer(SRSTrainerMixin, transformers.Trainer):  # type: ignore[misc, unused-ignore]
    """The Hugging Face `Trainer` with sequenced-replacement sampling; see `SRSTrainerMixin`."""


class StreamPosition(transformers.TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Seeks a `PooledIterableDataset` to the Trainer's step before every epoch.

    Use it with a Trainer whose `get_train_dataloader` returns a DataLoader over the stream, and with
    `ignore_data_skip=True`, since the stream already begins at the right step.

    Args:
        dataset: The stream, with `steps_per_epoch` or a known length.
    """

    def __init__(self, dataset: PooledIterableDataset[Any]) -> None:
        self.dataset = dataset
        dataset.ignores_set_epoch = True  # the Trainer calls it with numbers that count its own passes

    def on_train_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **_: Any) -> None:
        """Raise for settings with which a resumed run would train on other batches."""
        parts, steps = args.gradient_accumulation_steps, len(self.dataset)
        if not args.ignore_data_skip:
            raise ValueError(
                "ignore_data_skip should be True with StreamPosition, since the stream begins at the step of the "
                "checkpoint and the Trainer would skip the batches of its epoch again, but got False"
            )
        if steps % parts:
            raise ValueError(
                f"gradient_accumulation_steps should divide the {steps} steps of an epoch, so that the Trainer's steps "
                f"count the batches, but got {parts}"
            )
        if sampler_of(train_dataloader) is not self.dataset:
            raise ValueError("dataset should be the one that the training loader reads, but got another")

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Seek to the batches trained."""
        self.dataset.seek(state.global_step * args.gradient_accumulation_steps)
