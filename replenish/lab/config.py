"""`RunConfig`: everything that decides how a training run ends; `Hardware`: what it runs on."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replenish import checks

#: The paper trains for 200 effective epochs and drops the learning rate at these (section 3.1).
PAPER_EPOCHS = 200
PAPER_DECAY_EPOCHS = (120.0, 150.0, 175.0)
#: The names of the orders that a run can have; `replenish.lab.orders` builds them.
ORDER_NAMES = ("srs", "reshuffling", "replacement", "independent", "shuffle-once", "flip-flop")
PRECISIONS = ("32-true", "16-mixed", "bf16-mixed", "bf16-true", "64-true")


@dataclass(frozen=True)
class RunConfig:
    """One training run, completely: the data, the network, the order, the recipe and the seed.

    The defaults are the paper's WRN-SRS on CIFAR-100 (section 3.1). A config is frozen and plain; a variant
    is `dataclasses.replace` of another. Two runs with equal configs are the same run.

    Args:
        dataset: A name that `replenish.lab.data.load` takes: `digits`, `cifar10`, `cifar100`, a folder, an npz.
        images_per_class: Training images that each class keeps; None for all.
        image_size: Height and width to which images are reduced; None for their own.
        pad: Pixels of padding before the random crop.
        flip: Whether half of the training images are mirrored.
        model: A name that `replenish.lab.models.build` takes, or any name for a network of your own.
        order: One of `ORDER_NAMES`.
        pool_size: The slots of the pool, for `srs`; None for as many as samples, as in the paper.
        sequence: `shuffled` or `identity`, for `srs`.
        batch_size: The global mini-batch, whatever the number of processes.
        epochs: Effective epochs in all.
        learning_rate: Until the first decay.
        decay_epochs: Effective epochs at which the learning rate drops. By default the paper's 120, 150, 175 of 200,
            scaled to `epochs`; `for_epochs` scales others.
        decay_factor: What a decay multiplies the learning rate by.
        momentum: Of SGD.
        weight_decay: On all weights.
        precision: As Lightning Fabric names it.
        seed: Of the initial weights, the order, the augmentation and the dropout, each with a stream of its own.

    Example:
        >>> RunConfig(epochs=40).decay_epochs
        (24.0, 30.0, 35.0)
        >>> RunConfig(decay_epochs=(60, 120, 160), decay_factor=0.2).for_epochs(40).decay_epochs
        (12.0, 24.0, 32.0)
    """

    dataset: str = "cifar100"
    images_per_class: int | None = None
    image_size: int | None = None
    pad: int = 4
    flip: bool = True
    model: str = "wrn-28-10"
    order: str = "srs"
    pool_size: int | None = None
    sequence: str = "shuffled"
    batch_size: int = 64
    epochs: int = PAPER_EPOCHS
    learning_rate: float = 0.1
    decay_epochs: tuple[float, ...] | None = None
    decay_factor: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0005
    precision: str = "32-true"
    seed: int = 0

    def __post_init__(self) -> None:
        _text("dataset", self.dataset)
        _text("model", self.model)
        # Kept as plain ints: numpy's are no JSON.
        object.__setattr__(self, "seed", checks.seed(self.seed))
        for name, least in {"pad": 0, "batch_size": 1, "epochs": 1}.items():
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), minimum=least))
        for name in ("images_per_class", "image_size", "pool_size"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checks.integer(name, getattr(self, name), minimum=1))
        checks.boolean("flip", self.flip)
        _one_of("order", self.order, ORDER_NAMES)
        _one_of("sequence", self.sequence, ("shuffled", "identity"))
        if self.order != "srs" and (self.pool_size is not None or self.sequence != "shuffled"):
            raise ValueError(f"pool_size and sequence are for the order 'srs', but got the order {self.order!r}")
        decays = self.decay_epochs
        if decays is None:
            decays = tuple(_scaled(epoch, self.epochs, PAPER_EPOCHS) for epoch in PAPER_DECAY_EPOCHS)
        if not isinstance(decays, (tuple, list)):
            raise TypeError(f"decay_epochs should be a tuple of numbers, but got {decays!r}")
        decays = tuple(_number("decay_epochs", epoch, above=0.0) for epoch in decays)
        if list(decays) != sorted(set(decays)) or (decays and decays[-1] >= self.epochs):
            raise ValueError(
                f"decay_epochs should rise and lie before the end, which is at {self.epochs}, but got {decays}"
            )
        object.__setattr__(self, "decay_epochs", decays)
        object.__setattr__(self, "learning_rate", _number("learning_rate", self.learning_rate, above=0.0))
        object.__setattr__(self, "decay_factor", _number("decay_factor", self.decay_factor, above=0.0))
        for name in ("momentum", "weight_decay"):
            object.__setattr__(self, name, _number(name, getattr(self, name), least=0.0))
        _one_of("precision", self.precision, PRECISIONS)

    @property
    def decays(self) -> tuple[float, ...]:
        """The effective epochs of the decays, never None."""
        assert self.decay_epochs is not None
        return self.decay_epochs

    def for_epochs(self, epochs: int) -> RunConfig:
        """Return this config with another number of effective epochs, the decays scaled with it."""
        epochs = checks.integer("epochs", epochs, minimum=1)
        decays = tuple(_scaled(epoch, epochs, self.epochs) for epoch in self.decays)
        return dataclasses.replace(self, epochs=epochs, decay_epochs=decays)

    def with_seed(self, seed: int) -> RunConfig:
        """Return this config with another seed."""
        return dataclasses.replace(self, seed=seed)

    def learning_rate_at(self, step: int, steps_per_epoch: int) -> float:
        """Return the learning rate of a step: `learning_rate` times `decay_factor` for every decay passed."""
        passed = sum(step >= round(epoch * steps_per_epoch) for epoch in self.decays)
        return self.learning_rate * self.decay_factor**passed

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**dataclasses.asdict(self), "decay_epochs": list(self.decays)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """Return the config that `to_dict` wrote.

        Raises:
            ValueError: If a field is missing, unknown or has no sensible value.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        if set(values) != names:
            odd = ", ".join(sorted(set(values) ^ names))
            raise ValueError(f"a config should have the fields of RunConfig, but these are missing or unknown: {odd}")
        return cls(**{**values, "decay_epochs": tuple(values["decay_epochs"])})

    def differences(self, other: RunConfig) -> dict[str, tuple[Any, Any]]:
        """Return the fields in which two configs differ, with both values."""
        pairs = {
            field.name: (getattr(self, field.name), getattr(other, field.name)) for field in dataclasses.fields(self)
        }
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    @property
    def slug(self) -> str:
        """A name for a folder: readable, and with a hash of every field but the seed, so that it is unique."""
        plain = {**self.to_dict(), "seed": None}
        digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:8]
        data = Path(self.dataset).stem or "data"
        parts = [data]
        if self.images_per_class:
            parts.append(f"{self.images_per_class}perclass")
        if self.image_size:
            parts.append(f"{self.image_size}px")
        parts += [self.model, self.order, f"b{self.batch_size}"]
        parts += ["-".join(f"{epoch:g}" for epoch in self.decays) or "constant", f"of{self.epochs}", digest]
        return re.sub(r"[^A-Za-z0-9._-]+", "_", "-".join(parts))[-180:]


@dataclass(frozen=True)
class Hardware:
    """What a run is executed on; on one CPU process it does not change how the run ends, but for `threads`.

    Args:
        accelerator: `auto`, `cpu`, `cuda` or `mps`, as Lightning Fabric names them.
        devices: Devices, each with a process of its own, on each machine.
        num_nodes: Machines; start the command on them with `torchrun`.
        threads: CPU threads of each process. Another number can change the last bits of a result.
        compile: Whether `torch.compile` is used.
    """

    accelerator: str = "auto"
    devices: int = 1
    num_nodes: int = 1
    threads: int = 1
    compile: bool = False

    def __post_init__(self) -> None:
        _one_of("accelerator", self.accelerator, ("auto", "cpu", "cuda", "gpu", "mps"))
        for name in ("devices", "num_nodes", "threads"):
            checks.integer(name, getattr(self, name), minimum=1)
        checks.boolean("compile", self.compile)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dataclasses.asdict(self)


def _scaled(epoch: float, epochs: int, of: int) -> float:
    return epoch * epochs / of


def _text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name} should be a name, but got {value!r}")


def _one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} should be one of {', '.join(choices)}, but got {value!r}")


def _number(name: str, value: Any, *, above: float = -math.inf, least: float = -math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} should be a number, but got {value!r} of type {type(value).__name__}")
    try:
        number = float(value) + 0.0  # -0.0 becomes 0.0, which it is equal to
    except OverflowError:  # an int beyond all floats
        number = math.inf
    if not math.isfinite(number) or number <= above or number < least:
        bound = f"above {above:g}" if math.isfinite(above) else f"at least {least:g}"
        raise ValueError(f"{name} should be a number {bound}, but got {value!r}")
    return number
