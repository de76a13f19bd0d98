"""Measurements of a run: the loss while training, the samples seen, and loss and error on whole splits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from torch import Tensor, nn

from replenish.draws import Int64Array
from replenish.lab.config import RunConfig
from replenish.lab.data.batches import Batches, Split
from replenish.lab.training.processes import agreed

NEVER = torch.iinfo(torch.int64).max


class DivergedError(ArithmeticError):
    """The loss, or another measurement, is not a finite number."""


class OnlineMeter:
    """The sum of the losses of an epoch, kept on the device so that no step waits for it, and the samples seen."""

    def __init__(self, fabric: Fabric, num_samples: int) -> None:
        self._fabric = fabric
        number = torch.float32 if fabric.device.type == "mps" else torch.float64
        self.loss_sum = torch.zeros((), dtype=number, device=fabric.device)
        self.loss_count = 0
        self.seen = np.zeros(num_samples, dtype=np.bool_)
        self._first_bad_step = torch.full((), NEVER, device=fabric.device)

    def add(self, step: int, indices: Int64Array, loss: Tensor, own: int) -> None:
        """Add a step: the indices of its global batch, and the mean loss of this process's `own` samples."""
        self.seen[indices] = True
        self.loss_sum += loss.detach() * own
        self.loss_count += own
        now_bad = torch.where(loss.detach().isfinite(), NEVER, step)
        self._first_bad_step = torch.minimum(self._first_bad_step, now_bad)

    def bad_step(self) -> int | None:
        """Return the first step whose loss is not finite, in any process; None if there is none."""
        step = int(agreed(self._fabric, self._first_bad_step, "min"))
        return None if step == NEVER else step

    def totals(self) -> tuple[float, int]:
        """Return the sum of the losses since the epoch began, and the number of samples, over all processes."""
        count = torch.tensor(self.loss_count, device=self._fabric.device)
        return float(agreed(self._fabric, self.loss_sum, "sum")), int(agreed(self._fabric, count, "sum"))

    def begin_epoch(self) -> None:
        """Reset the sums."""
        self.loss_sum.zero_()
        self.loss_count = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint, which does not depend on the number of processes."""
        loss_sum, count = self.totals()
        return {"loss_sum": loss_sum, "loss_count": count, "seen": torch.from_numpy(np.packbits(self.seen))}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from a state that `state_dict` returned."""
        if self._fabric.is_global_zero:  # the sums are over all processes: one of them continues them
            self.loss_sum.fill_(saved["loss_sum"])
            self.loss_count = saved["loss_count"]
        self.seen = np.unpackbits(saved["seen"].numpy(), count=len(self.seen)).astype(np.bool_)


@torch.inference_mode()
def evaluate(fabric: Fabric, network: nn.Module, batches: Batches, split: Split) -> dict[str, float]:
    """Return loss and errors (in percent) on a split, without augmentation, dropout or label smoothing.

    `error` gives every image the same weight, `balanced_error` every class.
    """
    network.eval()
    if fabric.world_size > 1:  # all processes take the running means of the first, which are saved
        for buffer in network.buffers():
            torch.distributed.broadcast(buffer, src=0)
    convert = fabric.strategy.precision.convert_input
    number = torch.float32 if fabric.device.type == "mps" else torch.float64
    loss = torch.zeros((), dtype=number, device=fabric.device)
    counts = torch.zeros(2, batches.dataset.num_classes, dtype=number, device=fabric.device)  # wrong and all images
    with fabric.autocast():
        for images, labels in batches.ordered(split):
            logits = network(convert(images)).float()
            loss += F.cross_entropy(logits, labels, reduction="sum")
            wrong = (logits.argmax(dim=1) != labels).to(number)
            counts[0].index_add_(0, labels, wrong)
            counts[1].index_add_(0, labels, torch.ones_like(wrong))
    wrong_ones, all_ones = agreed(fabric, counts, "sum")
    return {
        "loss": float(agreed(fabric, loss, "sum") / all_ones.sum()),
        "error": float(100 * wrong_ones.sum() / all_ones.sum()),
        "balanced_error": float(100 * (wrong_ones / all_ones)[all_ones > 0].mean()),
    }


def due(config: RunConfig, epoch: int) -> dict[str, Split]:
    """Return the splits to measure after an effective epoch, by the prefix that their fields have in the metrics."""
    last = epoch == config.epochs
    found: dict[str, Split] = {}
    if last or epoch % config.test_every == 0:
        found["test"] = "test"
    if config.clean_every is not None and (last or epoch % config.clean_every == 0):
        found["clean"] = "train"
    if last and config.held_out:
        found["held_out"] = "held_out"
    return found


def check_finite(line: Mapping[str, Any], samples: Int64Array) -> None:
    """Raise `DivergedError` with the samples of the last batch if a line of metrics has a value that is not finite."""
    for name, value in line.items():
        if value is not None and not math.isfinite(value):
            raise DivergedError(
                f"the {name.replace('_', ' ')} is not a finite number after step {line['step'] - 1} (effective epoch "
                f"{line['epoch']}, learning rate {line['learning_rate']:g}); the batch's samples are {samples.tolist()}"
            )
