"""The content of a checkpoint, and how a run resumes from it: bit for bit in a single CPU process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from replenish import state
from replenish.draws import derived_seed
from replenish.lab.training.processes import gathered

if TYPE_CHECKING:
    from replenish.lab.training.loop import Training

CHECKPOINT_VERSION = 1
#: Purposes of seeds that `derived_seed` derives from the run's seed. Order and augmentation use the seed itself.
WEIGHTS, DROPOUT = 1, 2


def checkpoint_of(run: Training) -> dict[str, Any]:
    """Return the state of a run."""
    return {
        "version": CHECKPOINT_VERSION,
        "step": run.step,
        "sampler": state.save(run.order, run.step),
        "batches": _batches(run),
        **run.own_network,
        "model": run.network.state_dict(),
        "optimizer": run.optimizer.state_dict(),
        "precision": dict(run.fabric.strategy.precision.state_dict()),
        "rng": gathered(run.fabric, _generator(run.fabric.device).get_rng_state()),
        "rng_cpu": gathered(run.fabric, torch.get_rng_state()),
        "rng_device": run.fabric.device.type,
        "metrics": run.metrics,
        **run.meter.state_dict(),
        "seconds": run.seconds(),
        "started_at": run.started_at,
        "hardware": run.all_hardware,
    }


def restore(run: Training, checkpoint: dict[str, Any]) -> None:
    """Put a run into the state of a checkpoint.

    Raises:
        ValueError: The checkpoint has another version, other data or another network.
    """
    if checkpoint.get("version") != CHECKPOINT_VERSION:
        raise ValueError(
            f"{run.folder.path} has a checkpoint of version {checkpoint.get('version')!r}, but this release "
            f"reads version {CHECKPOINT_VERSION}; give another folder"
        )
    if checkpoint["batches"] != _batches(run):
        raise ValueError(
            f"{run.folder.path} has a checkpoint of a run on other data: {run.dataset.name} has changed since; "
            f"give another folder"
        )
    check_network(run.folder.path, run.own_network.get("network"), checkpoint)
    run.step = state.load(run.order, checkpoint["sampler"])
    run.network.load_state_dict(checkpoint["model"])
    run.optimizer.load_state_dict(checkpoint["optimizer"])
    run.fabric.strategy.precision.load_state_dict(checkpoint["precision"])
    before = checkpoint.get("hardware", [])  # not in the first checkpoints
    device = run.fabric.device.type
    saved_on = checkpoint.get("rng_device", before[-1]["device"] if before else device)
    known = device == "cpu" or "rng_cpu" in checkpoint  # not in the first checkpoints
    if known and saved_on == device and len(checkpoint["rng"]) == run.fabric.world_size:
        rank = run.fabric.global_rank
        torch.set_rng_state(checkpoint.get("rng_cpu", checkpoint["rng"])[rank])
        _generator(run.fabric.device).set_rng_state(checkpoint["rng"][rank])
    else:  # other devices, or another number of processes: dropout starts a new stream; the samples stay the same
        torch.manual_seed(derived_seed(run.config.seed, DROPOUT, run.fabric.global_rank, run.step))
    run.metrics = checkpoint["metrics"]
    run.meter.load_state_dict(checkpoint)
    run.seconds_before = checkpoint["seconds"]
    run.started_at = checkpoint.get("started_at")  # not in the first checkpoints
    run.all_hardware = [*(used for used in before if used not in run.all_hardware), *run.all_hardware]


def check_network(folder: Path, own: str | None, record: Mapping[str, Any]) -> None:
    """Refuse a result or checkpoint of another network of the user's own; older ones do not name their network."""
    if own is not None and (recorded := record.get("network", own)) != own:
        raise ValueError(
            f"{folder} holds a run of the network {recorded}, but the network is now {own}; give another folder"
        )


def _batches(run: Training) -> dict[str, Any]:
    """Return the config of the batches without the order, which the sampler's state contains."""
    return {name: value for name, value in run.batches.config().items() if name != "order"}


def _generator(device: torch.device) -> Any:
    """Return torch's module of the generator for dropout. Stochastic depth draws from the CPU's on every device."""
    return {"cuda": torch.cuda, "mps": torch.mps}.get(device.type, torch)
