"""Who iterates over a stream, found in the call stack. Only replenish.torch.stream still uses it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

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
    if fit_loop is None or loader is None or not (fit_loop.restarting or getattr(fit_loop, "is_resuming", False)):
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
