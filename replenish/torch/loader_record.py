"""Where a loader was made, and what became of it: the line that is said about it in the end."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from types import FrameType

#: Frames of these packages are not where a script makes a loader.
_TORCH = {"torch", "torchdata", "replenish", "sitecustomize"}
FRAMEWORKS = {"accelerate", "lightning", "lightning_fabric", "pytorch_lightning", "transformers"}


@dataclass
class LoaderRecord:
    """One loader, or several of which each goes on with the stream of the one before."""

    place: str  # the file and the line that made it
    num_samples: int | None = None  # the samples of its dataset; None if it has no length
    batch_size: int | None = None  # the samples of a step over all processes; None if it makes no batches
    num_replicas: int = 1  # the processes that share a batch
    order: str | None = None  # what it draws with instead of shuffling; None if it was left alone
    reason: str = ""  # why it was left alone
    trained: bool = False  # whether a pass of the order has begun
    evaluated: bool = False  # whether a pass has begun with gradients switched off, which keeps torch's own order
    rebuilt: bool = False  # whether a framework made another loader of this one

    @property
    def replaced(self) -> bool:
        """Whether the training has drawn from the order."""
        return self.order is not None and self.trained

    def said(self) -> str:
        """Return what became of the loader, in a line."""
        sizes = [f"N = {self.num_samples:,}" if self.num_samples is not None else "N unknown"]
        if self.batch_size is not None:
            sizes.append(f"B = {self.batch_size:,}")
        sizes.append(f"{self.num_replicas} process" + ("es" if self.num_replicas > 1 else ""))
        return f"{self.place}: {', '.join(sizes)}: {self._outcome()}"

    def _outcome(self) -> str:
        if self.order is None:
            return f"left alone, {self.reason}"
        if self.trained:
            also = "; shuffled as before where gradients were off" if self.evaluated else ""
            return f"replaced by {self.order}{also}"
        if self.evaluated:
            return "left alone, it was iterated with gradients off alone, as in an evaluation"
        return "never iterated"


@dataclass(frozen=True)
class Place:
    """Where a loader is made."""

    line: str  # the file and the line, outside of torch and the frameworks
    in_framework: bool  # whether a framework makes it, called from there


def calling_place() -> Place:
    """Return where the loader is made that is being made."""
    frame: FrameType | None = sys._getframe(1)
    in_framework = False
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in _TORCH | FRAMEWORKS:
            return Place(f"{_short(frame.f_code.co_filename)}:{frame.f_lineno}", in_framework)
        in_framework |= package in FRAMEWORKS
        frame = frame.f_back
    return Place("?", in_framework)


def _short(path: str) -> str:
    """Return a path from here, if it lies here."""
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    return path if relative.startswith(os.pardir) else relative
