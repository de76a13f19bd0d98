"""Part S of the second study: one deliberate fault per arm of an otherwise honest run, and its effect on the error.

The honest runs are F's with reshuffling and the first three seeds. Four faults are in the training and need their own
runs. The others are in the scoring and are applied to the networks of the honest runs.

    python -m study.second.faults train   # the runs of the four arms; finished runs are kept, stopped runs resume
    python -m study.second.faults score   # all faults; needs the checkpoints of these runs and of F's
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from replenish.lab.atomic_files import write_atomically
from replenish.lab.config import RunConfig
from replenish.lab.data import Augmentation, Batches, Dataset, load
from replenish.lab.data.augment import AugmentationDraws
from replenish.lab.runs import RunFolder, folder_of
from replenish.lab.training import load_network, train
from study.second.arms import FIRST_SEED, PARTS, full

SEEDS = range(FIRST_SEED, FIRST_SEED + 3)
HONEST = PARTS["F"].arms["reshuffling"]
#: Test images per batch. In training mode, batch norm depends on it.
BATCH = 100


def as_named(config: RunConfig) -> Dataset:
    """Return the dataset that a config names."""
    return load(config.dataset)


def with_test_images(config: RunConfig) -> Dataset:
    """Return CIFAR-100 with the 10,000 test images among the 60,000 training images."""
    data = load("cifar100")
    return _changed(
        data,
        np.concatenate([data.train_images, data.test_images]),
        np.concatenate([data.train_labels, data.test_labels]),
        config.dataset,
    )


def augmented_once(config: RunConfig) -> Dataset:
    """Return CIFAR-100 with one crop and one flip per training image, drawn once and used in every epoch."""
    data = load("cifar100")
    pad, size, count = 4, data.image_size[0], len(data.train_labels)
    rows, columns, flips = AugmentationDraws(Augmentation(pad), config.seed, count).at(0)
    padded = np.pad(data.train_images, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    images = np.empty_like(data.train_images)
    for place, (row, column, flip) in enumerate(zip(rows, columns, flips, strict=True)):
        crop = padded[place, row : row + size, column : column + size]
        images[place] = crop[:, ::-1] if flip else crop
    return _changed(data, images, data.train_labels, config.dataset)


@dataclass(frozen=True)
class FaultyTraining:
    """A fault in the training: its config, with a different dataset name, and the function that makes the data."""

    config: RunConfig
    data: Callable[[RunConfig], Dataset]


#: By name. The last arm draws the augmentation once per image. Once per *insertion* into the pool would not be a fault,
#: since each inserted copy is used exactly once.
TRAININGS = {
    "coarse labels": FaultyTraining(replace(HONEST, dataset="cifar100-coarse"), as_named),
    "test images in the pool": FaultyTraining(replace(HONEST, dataset="cifar100-and-test"), with_test_images),
    "twice the steps": FaultyTraining(replace(full(epochs=20), test_every=1), as_named),
    "augmentation drawn once": FaultyTraining(
        replace(HONEST, dataset="cifar100-augmented-once", pad=0, flip=False), augmented_once
    ),
}


def folder(fault: str, seed: int, runs: Path) -> Path:
    """Return the folder of a run of a fault in the training."""
    return folder_of(TRAININGS[fault].config.with_seed(seed), runs / "S")


def train_arm(fault: str, runs: Path, command: str) -> None:
    """Train the runs of a fault. Finished runs are kept, stopped runs resume."""
    for seed in SEEDS:
        config = TRAININGS[fault].config.with_seed(seed)
        result = train(config, folder(fault, seed, runs), dataset=TRAININGS[fault].data(config), command=command)
        print(f"{fault}, seed {seed}: {result['status']}, test error {result['test_error']}", flush=True)


def scores(runs: Path) -> dict[str, dict[str, float]]:
    """Return the test error in percent by what is scored and seed, of all runs that have ended here."""
    found: dict[str, dict[str, float]] = {}
    test = TestSplit.load()
    for seed in SEEDS:
        for fault in TRAININGS:
            if (result := RunFolder(folder(fault, seed, runs)).result()) is not None:
                found.setdefault(fault, {})[str(seed)] = result["test_error"]
        honest = RunFolder(folder_of(HONEST.with_seed(seed), runs / "F"))
        if (result := honest.result()) is None:
            continue
        found.setdefault("honest", {})[str(seed)] = result["test_error"]
        found.setdefault("best instead of last epoch", {})[str(seed)] = result["best_test_error"]
        for fault, error in scoring_faults(load_network(honest.path), test).items():
            found.setdefault(fault, {})[str(seed)] = error
    return found


@dataclass(frozen=True)
class TestSplit:
    """The test images, standardised, with their fine and coarse labels."""

    images: Tensor
    fine: Tensor
    coarse: Tensor

    @classmethod
    def load(cls) -> TestSplit:
        """Return CIFAR-100's test split as an honest run sees it."""
        data = load("cifar100")
        batches = Batches(HONEST.build_order(len(data.train_labels)), data, augment=False)
        images, fine = (torch.cat(parts) for parts in zip(*batches.ordered("test"), strict=True))
        return cls(images, fine, torch.tensor(load("cifar100-coarse").test_labels))


def scoring_faults(network: nn.Module, test: TestSplit) -> dict[str, float]:
    """Return the test error of an honest network under each fault in the scoring."""
    parents = torch.empty(100, dtype=torch.int64)
    parents[test.fine] = test.coarse
    shuffled = torch.randperm(len(test.fine), generator=torch.Generator().manual_seed(0))
    logits = _logits(network.eval(), test.images, torch.arange(len(test.fine)))
    return {
        "scored on the coarse labels": _error(parents[logits.argmax(1)], test.coarse),
        "top-2 counted": 100 - 100 * float((logits.topk(2).indices == test.fine[:, None]).any(1).double().mean()),
        "batch norm in training mode, shuffled test set": _with_batch_statistics(network, test, shuffled),
        "batch norm in training mode, sorted test set": _with_batch_statistics(
            network, test, torch.argsort(test.fine, stable=True)
        ),
    }


@torch.inference_mode()
def _logits(network: nn.Module, images: Tensor, places: Tensor) -> Tensor:
    return torch.cat([network(images[batch]) for batch in places.split(BATCH)])


def _with_batch_statistics(network: nn.Module, test: TestSplit, places: Tensor) -> float:
    return _error(_logits(network.train(), test.images, places).argmax(1), test.fine[places])


def _error(predicted: Tensor, labels: Tensor) -> float:
    return 100 * float((predicted != labels).double().mean())


def _changed(data: Dataset, images: np.ndarray, labels: np.ndarray, name: str) -> Dataset:
    return Dataset(images, labels, data.test_images, data.test_labels, data.class_names, name)


def main(arguments: list[str] | None = None) -> None:
    """Train the arms with a fault in the training, or score all faults."""
    parser = argparse.ArgumentParser(prog="python -m study.second.faults", description=main.__doc__)
    parser.add_argument("what", choices=("train", "score"))
    parser.add_argument("--arm", choices=TRAININGS, help="one arm only; by default all, one after another")
    parser.add_argument("--runs", type=Path, default=Path("study/records"), help="the folder of the records")
    options = parser.parse_args(arguments)
    if options.what == "train":
        for fault in [options.arm] if options.arm else TRAININGS:
            train_arm(fault, options.runs, f"python -m study.second.faults train --arm {fault!r}")
    else:
        path = options.runs / "S" / "scores.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (json.dumps(scores(options.runs), indent=1, sort_keys=True) + "\n").encode())
        print(path)


if __name__ == "__main__":
    main()
