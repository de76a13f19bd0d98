"""What the epoch numbers of Lightning's Trainer mean after a resume.

The Trainer calls `set_epoch` with its own count of epochs, before each. Saved in the middle of an epoch, or after a fit
that `max_steps` ended, that count may be ahead of the data: the rest of an epoch is then trained, or found to be empty,
under the number of the next. What can be relied on is how many batches of the epoch under way it has trained. Nothing
of Lightning is imported: its loops are known by their attributes.
"""

from __future__ import annotations

import uuid
from typing import Any

# Where the difference is kept: the Trainer may ask for a new loader, and so a new sampler, before every epoch.
EPOCHS_AHEAD = "_replenish_epochs_ahead"


def is_first_epoch(fit_loop: Any) -> bool:
    """Whether a fit is about to begin its first epoch, as far as a sampler has to do with it."""
    return resumes(fit_loop) or not hasattr(fit_loop, EPOCHS_AHEAD)


def resumes(fit_loop: Any) -> bool:
    """Whether a fit goes on from a checkpoint, and has yet to end its first epoch."""
    return bool(fit_loop.restarting or getattr(fit_loop, "is_resuming", False))


def resume_mark(fit_loop: Any) -> tuple[str, int] | None:
    """Return what tells a resume from others until its first batch is trained, or None if the fit resumes nothing."""
    if not resumes(fit_loop):
        return None
    # The loop keeps a name of its own: its id may be that of an earlier Trainer's, which is gone.
    name = vars(fit_loop).setdefault("_replenish_name", uuid.uuid4().hex)
    return name, fit_loop.epoch_loop.batch_progress.total.ready


def counted_step(fit_loop: Any, steps_per_epoch: int) -> int:
    """Return the step that a resumed Trainer's own counts name, for a sampler whose state the checkpoint has not."""
    batches, of_epoch = fit_loop.epoch_loop.batch_progress, _batches_of_an_epoch(fit_loop)
    before = batches.total.ready - batches.current.ready
    if before and before % of_epoch:
        raise ValueError(
            f"the sampler's state should be in the checkpoint, kept by a data module, since the Trainer has trained "
            f"{before} batches in earlier epochs, no multiple of an epoch's {of_epoch}, but the sampler has none"
        )
    return int(before // of_epoch if before else 0) * steps_per_epoch + int(batches.current.ready)


def _batches_of_an_epoch(fit_loop: Any) -> int:
    """Return how many batches the Trainer takes of a loader in an epoch, which may be limited."""
    loaders = fit_loop._combined_loader
    # `max_batches` is not known yet where workers are asked for items when the loader's iterator is made.
    return int(min(loaders.limits) if loaders._mode == "min_size" else max(loaders.limits))


def resumed_step(fit_loop: Any, step: int, steps_per_epoch: int, *, counts_are_reset: bool) -> tuple[int, bool]:
    """Return where a sampler that was put to `step` is to begin, and whether nothing is left of that epoch.

    A fit that resumes nothing begins at that step, and counts its epochs from 0 whatever that is. The loop's counts are
    restored; if they are reset since, because it has begun to run, it counts an epoch that is over.
    """
    batches, number = fit_loop.epoch_loop.batch_progress, fit_loop.epoch_progress.current.processed
    trained = batches.current.ready
    if not resumes(fit_loop):
        setattr(fit_loop, EPOCHS_AHEAD, number - step // steps_per_epoch)
        return step, False
    epoch, differs = divmod(step - trained, steps_per_epoch)
    if differs or epoch < 0:
        raise ValueError(
            f"state should be of the batch that the Trainer was at, {trained} batches into an epoch of "
            f"{steps_per_epoch} steps, but its step is {step}; save sampler.state_dict() without the Trainer's "
            f"global_step, which counts steps of optimizers"
        )
    if fit_loop.trainer.overfit_batches:
        if fit_loop.restarting and trained:
            raise ValueError(
                f"overfit_batches should be 0 to resume within an epoch, since the same batches come in every one, but "
                f"got {fit_loop.trainer.overfit_batches}"
            )
        return step - trained, False
    if not fit_loop.restarting:  # the epoch was over, and the number is the next one's
        if trained and not batches.is_last_batch:
            raise ValueError(
                f"max_epochs should be -1, with max_steps, to resume within an epoch that was cut short (by max_time, "
                f"should_stop, max_steps or a hook), here after {trained} batches, since the Trainer would leave out "
                f"its rest, but got {fit_loop.max_epochs}"
            )
        setattr(fit_loop, EPOCHS_AHEAD, number - epoch - bool(trained))
        return (epoch + bool(trained)) * steps_per_epoch, False
    if _ends_with_its_last_batch(fit_loop, counts_are_reset):
        setattr(fit_loop, EPOCHS_AHEAD, number - epoch - counts_are_reset)
        return (epoch + 1) * steps_per_epoch, False
    setattr(fit_loop, EPOCHS_AHEAD, number - epoch)
    return step, trained >= _batches_of_an_epoch(fit_loop)


def _ends_with_its_last_batch(fit_loop: Any, counts_are_reset: bool) -> bool:
    """Whether it was saved in the hook after an epoch's last batch: the Trainer then goes on with a new epoch."""
    batches, epochs = fit_loop.epoch_loop.batch_progress, fit_loop.epoch_progress.total
    within_the_hook = batches.total.completed == batches.total.processed - 1
    within_the_epoch = (
        fit_loop.restarted_mid_epoch if counts_are_reset else epochs.processed == epochs.started - 1 == epochs.ready - 1
    )
    return bool(batches.is_last_batch and within_the_hook and within_the_epoch)


def epoch_of(fit_loop: Any, number: int) -> int:
    """Return the effective epoch of the Trainer's `number`."""
    return number - int(getattr(fit_loop, EPOCHS_AHEAD, 0))
