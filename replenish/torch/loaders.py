"""Who draws from a sampler: the DataLoader's iterator, and what frameworks wrap around it.

A DataLoader tells its sampler neither that workers prefetch nor what it has handed on. So a pass looks, once, at the
calls that led to its first item. Nothing of a framework is imported: its classes are known by their names.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from types import CodeType
from typing import Any

from torch.utils.data import BatchSampler, DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from replenish.torch import lightning_epochs

# The calls from a loop to a sampler: a dozen in Accelerate, with a wrapper or two around each sampler.
CALLS_AWAY = 24

# The methods of Hugging Face's Trainer in which a loader's pass begins or its first batch is taken.
TRAINER_BEGINS_AN_EPOCH = ("_inner_training_loop", "_run_epoch", "get_batch_samples")


def _callers() -> Iterator[tuple[CodeType, Any]]:
    """Yield the code and the `self` of the methods that led here, the nearest first."""
    frame = sys._getframe(2)
    for _ in range(CALLS_AWAY):
        if frame.f_code.co_varnames[:1] == ("self",):
            yield frame.f_code, frame.f_locals.get("self")
        if frame.f_back is None:
            return
        frame = frame.f_back


def _is_of(instance: object, package: str, *names: str) -> bool:
    """Whether an instance is of a class of a package, or of one derived from it, by name alone."""
    return any(
        cls.__name__ in names and cls.__module__.removeprefix("pytorch_").startswith(package)
        for cls in type(instance).__mro__
    )


class LoaderIterator:
    """The DataLoader's iterator that draws a pass, watched without being kept alive.

    Around it there may be Accelerate's prepared loader, the shard, which looks one batch ahead; or timm's
    PrefetchLoader, which does so too and does not tell: then it is prefetched.

    Attributes:
        stateful: Whether it is one of torchdata's, which keeps count of what its workers prefetch by itself.
        skips: Whether Accelerate skips the first batches.
    """

    def __init__(self, iterator: Any, shard: Any, *, prefetched: bool) -> None:
        self.stateful = _is_of(iterator, "torchdata.", "_StatefulBaseDataLoaderIter")
        self.has_workers = bool(iterator._num_workers)
        self._shard = None if shard is None else weakref.ref(shard)
        self._items, self._skipped = _items_of_a_batch(iterator._index_sampler)
        self.skips = self._skipped > 0
        # Its fields, and not itself, or its workers would not end with it. They are let go when it ends.
        self._fields: dict[str, Any] = vars(iterator)
        self._ended = weakref.ref(iterator, self._keep_the_count)
        self._prefetched = prefetched

    def _keep_the_count(self, _: object) -> None:
        self._fields, self._shard = {"_num_yielded": self._given()}, None

    def _given(self) -> int:
        """Return how many batches the loop was given: Accelerate keeps one back, to know the last."""
        batches: int = self._fields["_num_yielded"]
        shard = None if self._shard is None else self._shard()
        return batches - 1 if shard is not None and not shard.end_of_dataloader else batches

    @property
    def takes_batches(self) -> bool:
        """Whether its batches are known to be those of the sampler, and no parts or groups of them."""
        return self._items is not None

    @property
    def may_be_ahead(self) -> bool:
        """Whether the loop may not have been given the last batch that was counted, which nobody can tell."""
        return self._prefetched and self._ended() is not None

    def handed_on(self, *, all_given: bool = False) -> int | None:
        """Return how many of a sampler's items its batches had that the loop was given, or None if nobody knows."""
        if self._items is None:
            return None
        batches = self._fields["_num_yielded"] if all_given else self._given()
        return batches * self._items + self._skipped if batches > 0 else 0

    def draws_from(self, one_pass: object) -> bool:
        """Whether it draws from this very pass, and not from a wrapper's iterator around it or from a later one."""
        return self._fields.get("_sampler_iter") is one_pass

    def is_same_as(self, other: LoaderIterator | None) -> bool:
        """Whether `other` watches the same iterator, whose workers persist."""
        return other is not None and other._fields is self._fields


def _items_of_a_batch(index_sampler: Any) -> tuple[int | None, int]:
    """Return how many items of our sampler a loader's batch takes, and how many are skipped before the first."""
    skipped = 0
    while _is_of(index_sampler, "accelerate.", "SkipBatchSampler", "BatchSamplerShard"):
        skipped += getattr(index_sampler, "skip_batches", 0)
        index_sampler = index_sampler.batch_sampler
    if callable(getattr(index_sampler, "seek", None)):
        return 1, skipped
    own = type(index_sampler)
    if isinstance(index_sampler, BatchSampler) and own.__module__.startswith(("torch.", "torchdata.")):
        return index_sampler.batch_size, skipped * index_sampler.batch_size
    return None, 0


def loader_that_draws(num_replicas: int) -> LoaderIterator | None:
    """Return the DataLoader's iterator that is drawing, if one is.

    Raises:
        ValueError: Accelerate divides the batches once more, or hands them on in another order.
    """
    iterator = shard = None
    prefetched = False
    for _, caller in _callers():
        if iterator is None and isinstance(caller, _BaseDataLoaderIter):
            iterator = caller
        elif _is_of(caller, "accelerate.", "BatchSamplerShard"):
            _check_division(caller, num_replicas)
        elif _is_of(caller, "accelerate.", "DataLoaderDispatcher"):
            raise ValueError(
                "dispatch_batches should be False for a loader with this sampler, since every process draws its own "
                "share of the same stream, but Accelerate reads in one process for all"
            )
        elif _is_of(caller, "accelerate.", "DataLoaderShard"):
            shard = caller
        elif _is_of(caller, "timm.", "PrefetchLoader"):
            prefetched = True
    return None if iterator is None else LoaderIterator(iterator, shard, prefetched=prefetched)


def _check_division(shard: Any, num_replicas: int) -> None:
    if num_replicas > 1:
        raise ValueError(
            f"num_replicas should be 1, with rank=0, for a loader that Accelerate prepared, which divides the batches "
            f"by itself, but got {num_replicas}; or do not give the loader to prepare()"
        )
    if shard.num_processes > 1 and not shard.split_batches:
        raise ValueError(
            f"split_batches should be True in Accelerate's DataLoaderConfiguration, or each of the "
            f"{shard.num_processes} processes would get whole batches in turn, but got False; or do not give the "
            f"loader to prepare()"
        )


def calling_fit_loop() -> Any:
    """Return Lightning's fit loop that led here, or None."""
    return next((caller for _, caller in _callers() if _is_of(caller, "lightning", "_FitLoop")), None)


def check_stream_is_resumed(*, told: bool) -> None:
    """Refuse a stream that Lightning's Trainer resumes elsewhere than where it was.

    The Trainer asks every loader for its length before it begins, in the process that has its counts; `told` is whether
    the stream was told which epoch is next.
    """
    fit_loop = calling_fit_loop()
    loader = next((caller for _, caller in _callers() if isinstance(caller, DataLoader)), None)
    if fit_loop is None or loader is None or not lightning_epochs.resumes(fit_loop):
        return
    batches = fit_loop.epoch_loop.batch_progress
    if not fit_loop.restarting or batches.is_last_batch:
        if not told:
            raise ValueError(
                "dataset.state_dict() should be in the checkpoint, kept by a data module, for a stream to go on with "
                "another epoch, but the dataset was told of none"
            )
    elif batches.current.ready and not hasattr(loader, "load_state_dict"):
        raise ValueError(
            f"loader should be torchdata's StatefulDataLoader to resume a stream within an epoch, of which "
            f"{batches.current.ready} batches were trained, but got a {type(loader).__name__}; or save at epochs' ends"
        )


def check_trainer_goes_on(epoch: int, steps_per_epoch: int) -> None:
    """Refuse a stream that would begin `epoch` where Hugging Face's Trainer goes on with another.

    The Trainer sets the epoch of loaders that Accelerate prepared, and of no other that is begun from its start. Where
    it is behind the stream, the Trainer was told to train anew. What it tells is its steps divided by those of an
    epoch, which is wrong after an epoch that a callback cut short.
    """
    for code, caller in _callers():
        if not _is_of(caller, "transformers.", "Trainer"):
            continue
        if code.co_name not in TRAINER_BEGINS_AN_EPOCH:  # the nearest: it may evaluate in the midst of training
            return
        updates = -(-steps_per_epoch // caller.args.gradient_accumulation_steps)
        if epoch < (trained := caller.state.global_step // updates):
            raise ValueError(
                f"loader should be prepared, by self.accelerator.prepare(loader) in get_train_dataloader, for the "
                f"Trainer to tell the stream that it goes on with epoch {trained}, but the stream would begin epoch "
                f"{epoch}"
            )
        if epoch < (reached := int(caller.state.epoch or 0)):
            raise ValueError(
                f"epochs should not be cut short by should_epoch_stop where a Trainer is to be resumed, which takes "
                f"its steps for those of whole epochs and would go on with epoch {epoch}, but it was in epoch "
                f"{reached}; use replenish.integrations.transformers.SRSTrainer, which goes by the steps alone"
            )


def is_restored_by_a_loader() -> bool:
    """Whether a loader's iterator puts a dataset where it was: torchdata's do so when a pass begins."""
    return any(isinstance(caller, _BaseDataLoaderIter) for _, caller in _callers())


def is_numbered_by_a_loader() -> bool:
    """Whether `set_epoch` is called with a number that is none of the run's.

    Fabric and Accelerate number the passes of a loader in each process from 0, whatever was resumed, for the sake
    of samplers that would repeat themselves.
    """
    return any(
        code.co_name == "__iter__"
        and (
            _is_of(caller, "accelerate.", "DataLoaderShard", "DataLoaderDispatcher")
            or _is_of(caller, "lightning", "_FabricDataLoader")
        )
        for code, caller in _callers()
    )
