"""Samplers under Lightning's Trainer: a callback that saves their positions in the Trainer's checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.utilities import CombinedLoader
except ModuleNotFoundError as error:
    if error.name != "lightning":
        raise  # Lightning is installed, and one of its own imports failed
    raise ImportError("replenish.integrations.lightning needs Lightning: pip install 'replenish[lightning]'") from error

from replenish import checks
from replenish.torch.progress import sampler_of
from replenish.torch.step_sampler import StepSampler
from replenish.torch.stream import PooledIterableDataset


class SamplerCheckpoint(Callback):  # type: ignore[misc]
    """Saves the positions of samplers in all checkpoints of the Trainer.

    It counts the batches trained in `on_train_batch_end`, and seeks before every epoch. An epoch of the Trainer begins
    at the start of an effective epoch, even after `limit_train_batches` has shortened the one before. The Trainer
    calls `set_epoch` with numbers that may be ahead of the data, so the samplers ignore it from now on.

    Args:
        *samplers: All samplers of `replenish.torch` in the training loaders. For a loader over a
            `PooledIterableDataset` with steps per epoch, give that dataset.

    Example:
        >>> from replenish.torch import SRSBatchSampler
        >>> sampler = SRSBatchSampler(range(1000), 40)
        >>> trainer = Trainer(
        ...     callbacks=[SamplerCheckpoint(sampler)], use_distributed_sampler=False, accelerator="cpu", logger=False
        ... )
    """

    def __init__(self, *samplers: StepSampler[Any] | PooledIterableDataset[Any]) -> None:
        for sampler in samplers:
            if not isinstance(sampler, StepSampler | PooledIterableDataset):
                raise TypeError(f"samplers should be samplers of replenish.torch, but got a {type(sampler).__name__}")
            if sampler.steps_per_epoch is None:
                raise ValueError(
                    "samplers should have steps per epoch, but got a stream without a length; give it steps_per_epoch"
                )
            sampler.ignores_set_epoch = True
        if not samplers:
            raise TypeError("samplers should be the samplers of the training loaders, but got none")
        self.samplers = samplers
        self._lengths = [sampler.steps_per_epoch or 1 for sampler in samplers]  # the steps per epoch of each sampler
        self._steps = [int(sampler.state_dict()["step"]) for sampler in samplers]
        self._batches = 0  # the batches trained in the Trainer's epoch
        self._knows_the_run = False  # whether it has counted all batches, in this run and before its checkpoint
        self._passes_begin = False  # whether the loaders are about to begin the passes of an epoch

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Seek before the workers begin, and raise for `overfit_batches`, which repeats the same batches."""
        if stage != "fit":
            return
        self._seek()
        if trainer.overfit_batches:
            raise ValueError(
                f"overfit_batches should be 0, since a sampler has other batches in every epoch, but got "
                f"{trainer.overfit_batches}; to overfit, train on a Subset of the data"
            )

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Check the training loaders, and raise if the position is not known."""
        self._check_loaders(trainer)
        if trainer.global_step and not self._knows_the_run:
            raise ValueError(
                f"ckpt_path should be a checkpoint that was saved with SamplerCheckpoint among the callbacks, but it "
                f"has no positions of samplers, after {trainer.global_step} optimizer steps; without ckpt_path, call "
                f"seek(step) on the sampler"
            )
        self._seek()  # the loaders may begin again before the first batch

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Check loaders that `reload_dataloaders_every_n_epochs` may have replaced, and seek to the batches trained."""
        self._check_loaders(trainer)
        self._seek()

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Check that the Trainer is at the same batch of the epoch as the samplers."""
        if self._passes_begin:  # they have begun now, and a loader that ends early begins again with its next epoch
            for sampler, step, length in zip(self.samplers, self._steps, self._lengths, strict=True):
                sampler.seek((step // length + 1) * length)
            self._passes_begin = False
        if batch_idx != self._batches:
            raise ValueError(
                f"the Trainer continues with batch {batch_idx} of its epoch, but {self._batches} batches of that epoch "
                f"were trained, so batches would be left out or repeated: resume an epoch that max_time, should_stop "
                f"or max_steps cut short with max_steps and max_epochs=-1, and a checkpoint of an epoch's end with "
                f"max_epochs; otherwise resume from an earlier checkpoint"
            )
        if _lacks_a_part(trainer.train_dataloader, batch):
            raise ValueError(
                "mode of the CombinedLoader should be 'max_size_cycle' or 'min_size', since a loader that has ended "
                "begins again when an epoch is resumed, but got 'max_size'"
            )

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count the batch."""
        self._batches, self._knows_the_run = self._batches + 1, True
        self._steps = [step + 1 for step in self._steps]
        if self._batches == trainer.num_training_batches:
            self._end_the_epoch()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Seek to the next epoch, since new loaders begin before `on_train_epoch_start`."""
        cut_short = trainer.should_stop or 0 <= trainer.max_steps <= trainer.global_step
        if self._batches and not cut_short:  # a hook returned -1 to skip the rest of the epoch
            self._end_the_epoch()
        self._seek()

    def state_dict(self) -> dict[str, Any]:
        """Return the samplers' positions after the batches trained. A batch that is being trained does not count."""
        states = [sampler.state_dict(step) for sampler, step in zip(self.samplers, self._steps, strict=True)]
        return {"batches": self._batches, "samplers": states}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Seek to saved positions, also in a run with another number of processes."""
        states = state_dict["samplers"]
        if len(states) != len(self.samplers):
            raise ValueError(
                f"samplers should be those of the checkpoint, in their order, but got {len(self.samplers)} of "
                f"{len(states)}"
            )
        for sampler, saved in zip(self.samplers, states, strict=True):
            sampler.load_state_dict(saved)
        self._steps = [int(saved["step"]) for saved in states]
        self._batches = checks.integer("batches in state", state_dict["batches"], minimum=0)
        self._knows_the_run = True

    def _end_the_epoch(self) -> None:
        self._steps = [-(-step // length) * length for step, length in zip(self._steps, self._lengths, strict=True)]
        self._batches = 0

    def _seek(self) -> None:
        self._passes_begin = True
        for sampler, step in zip(self.samplers, self._steps, strict=True):
            sampler.seek(step)

    def _check_loaders(self, trainer: Trainer) -> None:
        found = []
        for loader in CombinedLoader(trainer.train_dataloader).flattened:
            if callable(getattr(loader, "load_state_dict", None)):
                raise ValueError(
                    f"loader should be torch's DataLoader, but got a {type(loader).__name__}, to which the Trainer "
                    f"restores its own position"
                )
            try:
                found.append(sampler_of(loader))
            except TypeError:
                continue  # it has another sampler
        if {id(each) for each in found} != {id(each) for each in self.samplers}:
            raise ValueError(
                f"samplers should be those of the training loaders, but the loaders have {found} and SamplerCheckpoint "
                f"has {list(self.samplers)}; make a sampler once, and let train_dataloader() use it again"
            )


def _lacks_a_part(loaders: Any, batch: Any) -> bool:
    """Return whether one of several loaders has ended, so that its part of the batch is None."""
    if isinstance(loaders, Mapping):
        return isinstance(batch, Mapping) and any(_lacks_a_part(loaders[name], batch.get(name)) for name in loaders)
    if isinstance(loaders, list | tuple):
        return isinstance(batch, list | tuple) and any(map(_lacks_a_part, loaders, batch))
    return batch is None
