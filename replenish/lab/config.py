"""`RunConfig`: everything that decides how a training run ends; `Hardware`: what it runs on.

Later releases can add fields. `_added` declares such a field with the release and the value that all earlier runs had.
A record without the field is read with that value, and a field that has it is not part of a folder's name. So a new
field neither orphans records nor renames runs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import derived_seed
from replenish.orders import ORDERS, Order, build_order

#: The paper trains for 200 effective epochs and drops the learning rate at these (section 3.1).
PAPER_EPOCHS = 200
PAPER_DECAY_EPOCHS = (120.0, 150.0, 175.0)
ORDER_NAMES = tuple(ORDERS)
#: The first release that wrote configs. Its fields are part of every folder's name, whatever their values.
FIRST_RELEASE = "0.1.0.dev0"
PRECISIONS = ("32-true", "16-mixed", "bf16-mixed", "bf16-true", "64-true")
_CHOICES = {
    "order": ORDER_NAMES,
    "sequence": ("shuffled", "identity", "reshuffled"),
    "optimizer": ("sgd", "adamw"),
    "schedule": ("steps", "cosine", "constant"),
    "precision": PRECISIONS,
}
#: The least value of an integer field; 1 for the others.
_LEAST = {"pad": 0, "order_number": 0, "seed": 0}


def _added(release: str, default: Any, *, before: Any) -> Any:
    """Return a dataclass field that `release` added; `before` is the value that all earlier runs had."""
    return field(default=default, metadata={"since": release, "before": before})


@dataclass(frozen=True)
class RunConfig:
    """Everything that defines one training run: the data, the network, the order, the recipe and the seed.

    The defaults are the paper's WRN-SRS on CIFAR-100 (section 3.1). A config is frozen and holds plain values;
    `dataclasses.replace` makes variants. Runs with equal configs are the same run.

    Args:
        dataset: A name that `replenish.lab.data.load` takes: `digits`, `cifar10`, `cifar100`, a folder, an npz.
        images_per_class: Training images that each class keeps; None for all.
        image_size: Height and width to which images are reduced; None keeps their size.
        pad: Pixels of padding before the random crop.
        flip: Whether half of the training images are mirrored.
        model: A name that `replenish.lab.models.build` takes, or any name for a network of your own.
        order: One of `ORDER_NAMES`.
        pool_size: The slots of the pool, for `srs`; None for one per sample, as in the paper.
        sequence: `shuffled`, `identity` or `reshuffled`, for `srs`.
        batch_size: Samples in a mini-batch, over all processes.
        epochs: Effective epochs in all.
        learning_rate: The learning rate until the first decay.
        decay_epochs: Effective epochs at which the learning rate drops. By default the paper's 120, 150, 175 of 200,
            scaled to `epochs`; `for_epochs` scales others.
        decay_factor: What a decay multiplies the learning rate by.
        momentum: The momentum of SGD.
        weight_decay: The decay of all weights.
        precision: A precision of Lightning Fabric, such as `32-true`.
        seed: The seed of the initial weights, the order, the augmentation and the dropout, each with its own stream.
        drop_last: Whether N / B, the steps of an epoch, is rounded down, so that every batch is full. Otherwise it is
            rounded up, and orders that go through the data epoch by epoch end each epoch on a short batch.
        order_number: With 0, the order draws from `seed`; with another number, from a seed derived from both. So runs
            can have equal initial weights and unrelated orders of one kind.
        test_every: Effective epochs between two tests; the last is always tested.
        clean_every: Effective epochs between two measurements of the loss and the error on the training images,
            without augmentation and with the network in evaluation mode; None for never.
        optimizer: `sgd` or `adamw`; momentum is for `sgd` only.
        nesterov: Whether SGD's momentum is Nesterov's.
        schedule: `steps` (the decays), `cosine` (from the learning rate down to 0) or `constant`.
        warm_up_epochs: Effective epochs in which the learning rate rises linearly to the schedule's value.
        label_smoothing: Share of every label that is spread over all classes.
        dropout: The dropout, instead of the network's default; None keeps that.
        held_out: Whether the last epoch is also tested on the training images that `images_per_class` left out.
        alternating_flip: Whether each image is mirrored at every second visit instead of at random.

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
    drop_last: bool = _added("0.1.0", True, before=False)
    order_number: int = _added("0.1.0", 0, before=0)
    test_every: int = _added("0.1.0", 1, before=1)
    clean_every: int | None = _added("0.1.0", None, before=None)
    held_out: bool = _added("0.1.0", False, before=False)
    optimizer: str = _added("0.1.0", "sgd", before="sgd")
    nesterov: bool = _added("0.1.0", False, before=False)
    schedule: str = _added("0.1.0", "steps", before="steps")
    warm_up_epochs: float = _added("0.1.0", 0.0, before=0.0)
    label_smoothing: float = _added("0.1.0", 0.0, before=0.0)
    dropout: float | None = _added("0.1.0", None, before=None)
    alternating_flip: bool = _added("0.1.0", False, before=False)

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            if each.name != "decay_epochs":
                checked = _checked(each.name, each.type, getattr(self, each.name))
                object.__setattr__(self, each.name, checked)
        self._check_order()
        object.__setattr__(self, "decay_epochs", self._checked_decays())
        for name in ("momentum", "label_smoothing", "dropout"):
            if (share := getattr(self, name)) is not None and share >= 1:
                raise ValueError(f"{name} should be below 1, but got {share}")
        if self.alternating_flip and not self.flip:
            raise ValueError("alternating_flip should be with flip=True, but got it with flip=False")
        if self.nesterov and (self.optimizer != "sgd" or not self.momentum):
            raise ValueError(
                "nesterov should be with the optimizer 'sgd' and momentum above 0, but got True without them"
            )
        if self.warm_up_epochs >= self.epochs:
            raise ValueError(f"warm_up_epochs should end before {self.epochs}, but got {self.warm_up_epochs:g}")

    def _check_order(self) -> None:
        """Refuse an order that the lab does not train with, and options that the order does not take."""
        if ORDERS[self.order].batch_sizes_vary:
            raise ValueError(
                f"order should have batches of one size in the lab, but those of {self.order!r} have random sizes; "
                f"train with replenish.torch.OrderBatchSampler"
            )
        for name, plain in {"pool_size": None, "sequence": "shuffled"}.items():
            if getattr(self, name) != plain and name not in ORDERS[self.order].options:
                raise ValueError(f"{name} should not be given for the order {self.order!r}, which does not take it")

    def _checked_decays(self) -> tuple[float, ...]:
        """Return the epochs of the decays, scaled from the paper's where none are given."""
        decays, in_steps = self.decay_epochs, self.schedule == "steps"
        if decays and not in_steps:
            raise ValueError(f"decay_epochs should be left out with the schedule {self.schedule!r}, but got {decays}")
        if decays is None:
            decays = tuple(epoch * self.epochs / PAPER_EPOCHS for epoch in PAPER_DECAY_EPOCHS if in_steps)
        if not isinstance(decays, (tuple, list)):
            raise TypeError(f"decay_epochs should be a tuple of numbers, but got {decays!r:.60}")
        found = tuple(checks.real("decay_epochs", epoch, positive=True) for epoch in decays)
        if list(found) != sorted(set(found)) or (found and found[-1] >= self.epochs):
            raise ValueError(
                f"decay_epochs should rise and lie before the end, which is at {self.epochs}, but got {found}"
            )
        return found

    def build_order(self, num_samples: int, labels: npt.NDArray[np.int64] | None = None) -> Order:
        """Return the run's order of `num_samples` training images; some orders need their labels.

        Example:
            >>> RunConfig(order="reshuffling", seed=3).build_order(num_samples=50_000).steps_per_epoch
            781
        """
        seed = derived_seed(self.seed, self.order_number) if self.order_number else self.seed
        options = {name: getattr(self, name) for name in ORDERS[self.order].options if hasattr(self, name)}
        if "labels" in ORDERS[self.order].needs:
            options["labels"] = labels
        order = build_order(self.order, num_samples, self.batch_size, seed=seed, **options)
        if self.sequence == "identity" and labels is not None:
            from replenish.theory import sorted_data_warning  # slow to import, and needed here only

            if message := sorted_data_warning(order, labels):
                warnings.warn(message, stacklevel=2)
        return order

    def steps_per_epoch(self, num_samples: int) -> int:
        """Return the steps of an effective epoch, which do not depend on the order."""
        full, rest = divmod(num_samples, self.batch_size)
        if self.drop_last and not full:
            raise ValueError(
                f"batch_size should be at most the number of samples with drop_last, or an epoch has no step, but "
                f"got batch_size={self.batch_size} and {num_samples} samples"
            )
        return full + bool(rest and not self.drop_last)

    @property
    def decays(self) -> tuple[float, ...]:
        """The effective epochs of the decays: `decay_epochs`, without None in its type."""
        assert self.decay_epochs is not None
        return self.decay_epochs

    def for_epochs(self, epochs: int) -> RunConfig:
        """Return this config with another number of effective epochs, and its decays scaled to them."""
        epochs = checks.integer("epochs", epochs, minimum=1)
        decays = tuple(epoch * epochs / self.epochs for epoch in self.decays)
        return dataclasses.replace(self, epochs=epochs, decay_epochs=decays)

    def with_seed(self, seed: int) -> RunConfig:
        """Return this config with another seed."""
        return dataclasses.replace(self, seed=seed)

    def learning_rate_at(self, step: int, steps_per_epoch: int) -> float:
        """Return the learning rate of a step, by the warm-up and the schedule."""
        rate = self.learning_rate
        warm_up = round(self.warm_up_epochs * steps_per_epoch)
        if step < warm_up:
            return rate * (step + 1) / (warm_up + 1)
        if self.schedule == "cosine":
            total = self.epochs * steps_per_epoch
            return rate * (1 + math.cos(math.pi * (step - warm_up) / (total - warm_up))) / 2
        passed = sum(step >= round(epoch * steps_per_epoch) for epoch in self.decays)
        return rate * self.decay_factor**passed

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the first release that can read them.

        A field that a later release added is left out if it has the value that all earlier runs had. So earlier
        releases can read every config that they can run.
        """
        recorded = self._recorded()
        releases = [
            field.metadata["since"] for field in dataclasses.fields(self) if field.metadata and field.name in recorded
        ]
        return {**recorded, "version": max(releases, key=_release, default=FIRST_RELEASE)}

    def _recorded(self) -> dict[str, Any]:
        """Return the fields to record: all of the first release, and later ones unless they have their old value."""
        values = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if not field.metadata or getattr(self, field.name) != field.metadata["before"]
        }
        return {**values, "decay_epochs": list(self.decays)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfig:
        """Return the config that `to_dict` wrote, in this release or an earlier one.

        Raises:
            ValueError: A field is missing, unknown or invalid.
        """
        fields = {field.name: field for field in dataclasses.fields(cls)}
        recorded = dict(values)
        version = recorded.pop("version", FIRST_RELEASE)
        if unknown := sorted(set(recorded) - set(fields)):
            raise ValueError(
                f"a config should have fields that this release knows, but got {', '.join(unknown)}: it needs "
                f"replenish {version} or later"
            )
        before = {name: field.metadata["before"] for name, field in fields.items() if field.metadata}
        if missing := sorted(set(fields) - set(before) - set(recorded)):
            raise ValueError(f"a config should have every field of the first release, but lacks {', '.join(missing)}")
        return cls(**{**before, **recorded, "decay_epochs": tuple(recorded["decay_epochs"])})

    def differences(self, other: RunConfig) -> dict[str, tuple[Any, Any]]:
        """Return the fields in which two configs differ, with both values."""
        names = (field.name for field in dataclasses.fields(self))
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in names}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    @property
    def slug(self) -> str:
        """A readable name for a folder, made unique by a hash of all fields except the seed."""
        plain = json.dumps({**self._recorded(), "seed": None}, sort_keys=True)
        digest = hashlib.sha256(plain.encode()).hexdigest()[:8]
        parts = [Path(self.dataset).stem or "data"]
        if self.images_per_class:
            parts.append(f"{self.images_per_class}perclass")
        if self.image_size:
            parts.append(f"{self.image_size}px")
        parts += [self.model, self.order, f"b{self.batch_size}"]
        parts += ["-".join(f"{epoch:g}" for epoch in self.decays) or "constant", f"of{self.epochs}", digest]
        return re.sub(r"[^A-Za-z0-9._-]+", "_", "-".join(parts))[-180:]


@dataclass(frozen=True)
class Hardware:
    """What a run is executed on. In a single CPU process only `threads` can change the result.

    Args:
        accelerator: `auto`, `cpu`, `cuda` or `mps`, as Lightning Fabric names them.
        devices: Devices on each machine, each with its own process.
        num_nodes: Machines; start the command on each with `torchrun`.
        threads: CPU threads of each process. Another number can change the last bits of a result.
        compile: Whether `torch.compile` is used.
    """

    accelerator: str = "auto"
    devices: int = 1
    num_nodes: int = 1
    threads: int = 1
    compile: bool = False

    def __post_init__(self) -> None:
        checks.one_of("accelerator", self.accelerator, ("auto", "cpu", "cuda", "gpu", "mps"))
        for name in ("devices", "num_nodes", "threads"):
            checks.integer(name, getattr(self, name), minimum=1)
        checks.boolean("compile", self.compile)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dataclasses.asdict(self)


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers of a release, for comparing; a development version comes before all releases."""
    return () if "dev" in version else tuple(int(part) for part in version.split("."))


def _checked(name: str, kind: object, value: Any) -> Any:
    """Return a field's value as a plain value for JSON, or raise if it is invalid."""
    if value is None and str(kind).endswith("| None"):
        return None
    if name in _CHOICES:
        return checks.one_of(name, value, _CHOICES[name])
    match str(kind).removesuffix(" | None"):
        case "bool":
            return checks.boolean(name, value)
        case "int":
            return checks.integer(name, value, minimum=_LEAST.get(name, 1), maximum=checks.MAX_SEED)
        case "float":
            number = checks.real(name, value, positive=name in ("learning_rate", "decay_factor"))
            return number + 0.0  # -0.0 becomes 0.0, which it is equal to
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name} should be a name, but got {value!r:.100}")
    return value
