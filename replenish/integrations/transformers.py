"""SRS for the Hugging Face Trainer: a mixin that makes the Trainer's own step number the position in the stream."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader, Sampler

try:
    import transformers
    from transformers.trainer_utils import get_last_checkpoint, seed_worker
except ModuleNotFoundError as error:
    if error.name != "transformers":
        raise  # it is there, and lacks something itself
    raise ImportError(
        "replenish.integrations.transformers needs Hugging Face transformers: pip install 'replenish[transformers]'"
    ) from error

from replenish import state
from replenish.integrations.loader_sampler import sampler_of
from replenish.orders.protocol import Order
from replenish.orders.sequenced_replacement import SequencedReplacement
from replenish.torch import OrderBatchSampler, PooledIterableDataset

STATE_FILE = "replenish.json"


class MicroBatches(Sampler[list[int]]):
    """This process's share of an order's batches, each cut into the parts of gradient accumulation.

    The order's batch is that of an optimizer step over all processes, which takes `parts` forward passes. A pass is one
    effective epoch and begins at the step that `position` names, the optimizer steps done: the first one at the start
    of its epoch, since the Trainer skips what was trained of it by itself.
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
        # A pass of the Trainer is a whole epoch long, also after one that a callback cut short: from the middle of an
        # effective epoch, it takes the rest of that one and the head of the next.
        for batch in islice(chain(self.batches, self.batches), steps):
            size = len(batch) // self.parts
            yield from (batch[first : first + size] for first in range(0, len(batch), size))


class _KeepConfig(transformers.TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Puts the order's config into every checkpoint, for a resumed run to compare with its own."""

    def __init__(self, trainer: SRSTrainerMixin) -> None:
        self._trainer = trainer

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write it beside the Trainer's state."""
        folder = Path(args.output_dir, f"checkpoint-{state.global_step}")
        if state.is_world_process_zero and folder.is_dir():
            (folder / STATE_FILE).write_text(json.dumps(self._trainer.position(state.global_step)))


class SRSTrainerMixin:
    """Gives sequenced-replacement sampling to a Hugging Face `Trainer` or a subclass of it.

    The batch of SRS is the batch of an optimizer step: per_device_train_batch_size x gradient_accumulation_steps
    x processes. So `global_step` is the position in the stream, and the run may be resumed with other numbers of
    processes and of accumulation steps that have the same product. The seed is `data_seed`, or else `seed`.
    To use another order, override `make_order`.

    Example:
        >>> class MyTrainer(SRSTrainerMixin, transformers.Trainer):
        ...     pass
    """

    args: Any
    state: Any
    train_dataset: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.args.ignore_data_skip:
            raise ValueError(
                "ignore_data_skip should be False, since the stream is to go on where it was, but got True; skipping "
                "costs no reading of data, for only indices are drawn"
            )
        grouped = "group_by_length" if getattr(self.args, "group_by_length", False) else "random"  # before version 5
        strategy = getattr(self.args, "train_sampling_strategy", grouped)
        if strategy != "random":
            raise ValueError(
                f"train_sampling_strategy should be 'random', since this Trainer has an order of its own, but got "
                f"{strategy!r}; for another order, override make_order"
            )
        self.add_callback(_KeepConfig(self))  # type: ignore[attr-defined]

    def make_order(self, num_samples: int, batch_size: int) -> Order:
        """Return the order to train in; `batch_size` is the batch of an optimizer step over all processes."""
        seed = self.args.seed if self.args.data_seed is None else self.args.data_seed
        return SequencedReplacement(num_samples, batch_size, seed=seed)

    def position(self, step: int) -> state.State:
        """Return the place in the stream before `step` as plain ints and strings."""
        return state.save(self._order(), step)

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        """Train as the Trainer does, after checking that a checkpoint is of the same stream."""
        folder = resume_from_checkpoint
        if folder is True:
            folder = get_last_checkpoint(self.args.output_dir)  # type: ignore[no-untyped-call, unused-ignore]
        if folder and (saved := Path(folder, STATE_FILE)).is_file():
            state.load(self._order(), json.loads(saved.read_text()))
        return super().train(resume_from_checkpoint, *args, **kwargs)  # type: ignore[misc]

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return a loader of this process's share; it must not be prepared, which would divide it once more."""
        if self.train_dataset is None:
            raise ValueError("train_dataset should be given to train, but got None")
        dataset, collate = self.train_dataset, self.data_collator  # type: ignore[attr-defined]
        if hasattr(dataset, "remove_columns"):  # one of Hugging Face datasets
            dataset = self._remove_unused_columns(dataset, description="training")  # type: ignore[attr-defined]
        else:
            collate = self._get_collator_with_removed_columns(collate, description="training")  # type: ignore[attr-defined]
        world, rank = self.args.world_size, self.args.process_index
        batches = MicroBatches(
            self._order(), self.args.gradient_accumulation_steps, world, rank, lambda: self.state.global_step
        )
        return DataLoader(
            dataset,
            batch_sampler=batches,
            collate_fn=collate,
            num_workers=self.args.dataloader_num_workers,
            pin_memory=self.args.dataloader_pin_memory,
            persistent_workers=self.args.dataloader_persistent_workers,
            prefetch_factor=self.args.dataloader_prefetch_factor,
            worker_init_fn=functools.partial(seed_worker, num_workers=self.args.dataloader_num_workers, rank=rank),
        )

    def _order(self) -> Order:
        try:
            num_samples = len(self.train_dataset)
        except TypeError:
            raise TypeError(
                f"train_dataset should have a length, but got a {type(self.train_dataset).__name__} without one"
            ) from None
        # Before version 5 a resumed Trainer takes the checkpoint's batch in the place of the one it was asked for.
        found = self._train_batch_size if self.args.auto_find_batch_size else self.args.train_batch_size  # type: ignore[attr-defined]
        return self.make_order(num_samples, found * self.args.gradient_accumulation_steps * self.args.world_size)


class SRSTrainer(SRSTrainerMixin, transformers.Trainer):  # type: ignore[misc, unused-ignore]
    """The Hugging Face `Trainer` with sequenced-replacement sampling; see `SRSTrainerMixin`."""


class StreamPosition(transformers.TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Puts a `PooledIterableDataset` to the Trainer's own step before every epoch.

    Use it with a Trainer whose `get_train_dataloader` returns a DataLoader over the stream, and with
    `ignore_data_skip=True`, since the stream begins where it is put and has nothing to skip.

    Args:
        dataset: The stream, with `steps_per_epoch` or a known length.
    """

    def __init__(self, dataset: PooledIterableDataset[Any]) -> None:
        self.dataset = dataset
        dataset.ignores_set_epoch = True  # the Trainer calls it with numbers of passes

    def on_train_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **_: Any) -> None:
        """Refuse what would train on other batches after a resume."""
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
        """Put the stream to the batches trained."""
        self.dataset.seek(state.global_step * args.gradient_accumulation_steps)
