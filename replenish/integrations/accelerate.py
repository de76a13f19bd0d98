"""Samplers in Hugging Face Accelerate: divides batches only once, and keeps the steps trained in `save_state`."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader

try:
    from accelerate import Accelerator
    from accelerate.data_loader import prepare_data_loader
except ModuleNotFoundError as error:
    if error.name != "accelerate":
        raise  # Accelerate is installed, and one of its own imports failed
    raise ImportError(
        "replenish.integrations.accelerate needs Accelerate: pip install 'replenish[accelerate]'"
    ) from error

from replenish.torch import Progress as Progress
from replenish.torch.progress import sampler_of


def prepare(accelerator: Accelerator, loader: DataLoader[Any]) -> tuple[DataLoader[Any], Progress]:
    """Prepare a loader with a sampler of `replenish.torch`; use it instead of `accelerator.prepare(loader)`.

    The sampler gives every process its share, so Accelerate must not divide the batches again. `save_state` and
    `load_state` include the progress. Add 1 to `progress.step` after every batch, and resume the loop at
    `progress.epoch`. The accelerator's `split_batches`, `dispatch_batches`, `even_batches` and
    `use_stateful_dataloader` do not apply to this loader.

    Args:
        accelerator: The accelerator of the run.
        loader: A DataLoader whose batch sampler or sampler is one of `replenish.torch`.

    Returns:
        The loader, on the accelerator's device, and the progress.
    """
    progress = Progress(sampler_of(loader))
    accelerator.register_for_checkpointing(progress)
    prepared = prepare_data_loader(
        loader, accelerator.device, num_processes=1, process_index=0, put_on_device=True, dispatch_batches=False
    )
    return prepared, progress
