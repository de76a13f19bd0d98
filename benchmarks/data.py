"""The speed of the lab's batches compared with a DataLoader, and their share of a training step.

    python benchmarks/data.py            print the tables (about a minute)
    python benchmarks/data.py --quick    fewer rounds
    python benchmarks/data.py --write    also write them to benchmarks/README.md

The peer is a `DataLoader` over the same arrays whose dataset standardises, pads, crops and mirrors one image after
another in Python, as most CIFAR scripts do. It runs with 0 and with 2 worker processes; the faster one counts. Images
are random bytes in CIFAR's shape, so nothing needs to be downloaded.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from machine import describe
from pages import write_between
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from replenish import RandomReshuffling, SequencedReplacement
from replenish.lab.data import Batches, Dataset
from replenish.lab.models import WideResNet

BATCH = 64
PEER_BATCHES, OUR_BATCHES = 40, 400
# After a measurement, workers still fill their queues. The pause gives them time for it, which is not counted.
WARM_UP, PAUSE = 5, 0.2


def made_up(images: int = 50000) -> Dataset:
    """Random bytes in the shape of CIFAR-100."""
    rng = np.random.Generator(np.random.PCG64(0))
    pixels = rng.integers(0, 256, (images, 32, 32, 3), dtype=np.uint8)
    labels = np.arange(images) % 100
    return Dataset(pixels, labels, pixels[:1000], labels[:1000], tuple(map(str, range(100))), "made up")


class OneByOne(TorchDataset[tuple[torch.Tensor, int]]):
    """A dataset that processes one image at a time: to float, standardise, pad, crop, mirror."""

    def __init__(self, dataset: Dataset) -> None:
        self.images = torch.tensor(dataset.train_images.transpose(0, 3, 1, 2))
        self.labels = dataset.train_labels.tolist()
        self.mean = torch.tensor(dataset.mean, dtype=torch.float32).view(3, 1, 1)
        self.std = torch.tensor(dataset.std, dtype=torch.float32).view(3, 1, 1)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = self.images[index].float().div_(255)
        image = F.pad(image.sub_(self.mean).div_(self.std), (4, 4, 4, 4))
        row, column, flip = torch.randint(0, 162, (3,)).tolist()
        image = image[:, row % 9 : row % 9 + 32, column % 9 : column % 9 + 32]
        return image.flip(2) if flip % 2 else image, self.labels[index]


def endless(loader: DataLoader[tuple[torch.Tensor, int]]) -> Iterator[object]:
    while True:
        yield from loader


def rate(batches: Iterator[object], count: int) -> float:
    """Images per second over `count` batches."""
    for _ in range(WARM_UP):
        next(batches)
    start = time.perf_counter()
    for _ in range(count):
        next(batches)
    result = count * BATCH / (time.perf_counter() - start)
    time.sleep(PAUSE)
    return result


def throughput(dataset: Dataset, rounds: int) -> list[str]:
    ways: dict[str, tuple[Iterator[object], int]] = {}
    for workers in (0, 2):
        loader = DataLoader(OneByOne(dataset), BATCH, shuffle=True, num_workers=workers)
        ways[f"DataLoader, image by image, {workers} workers"] = endless(loader), PEER_BATCHES
    size = len(dataset.train_labels)
    orders = {"RandomReshuffling": RandomReshuffling(size, BATCH), "SRS": SequencedReplacement(size, BATCH)}
    for name, order in orders.items():
        for channels_last in (False, True):
            batches = Batches(order, dataset, channels_last=channels_last)
            memory = ", channels last" if channels_last else ""
            ways[f"`Batches`, {name}{memory}"] = batches.batches(), OUR_BATCHES
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (batches, count) in ways.items():
            rates[name].append(rate(batches, count))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    best = max(value for name, value in medians.items() if name.startswith("DataLoader"))
    return [
        "| batches of 64 crops of 32 x 32 x 3 | images per second | against the faster DataLoader |",
        "|---|---:|---:|",
        *(f"| {name} | {value:,.0f} | {value / best:.1f}x |" for name, value in medians.items()),
    ]


def step_share(dataset: Dataset, rounds: int) -> list[str]:
    """Return the share of a WRN-16-2 training step that goes into making its batch."""
    torch.manual_seed(0)
    model = WideResNet(3, 100, depth=16, width=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    order = SequencedReplacement(len(dataset.train_labels), BATCH)
    batches = Batches(order, dataset, channels_last=True).batches()
    data, rest = [], []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        images, labels = next(batches)
        middle = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
        data.append(middle - start)
        rest.append(time.perf_counter() - middle)
    # The first step includes one-time setup.
    batch, step = statistics.median(data[1:]), statistics.median(rest[1:])
    return [
        "| WRN-16-2, B = 64, 32 x 32 | batch, ms | rest of the step, ms | share of the batch |",
        "|---|---:|---:|---:|",
        f"| training step on the CPU | {batch * 1e3:.2f} | {step * 1e3:.0f} | {batch / (batch + step):.2%} |",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--write", action="store_true", help="also write the tables to benchmarks/README.md")
    arguments = parser.parse_args()
    rounds = 3 if arguments.quick else 9
    machine = describe(rounds)
    dataset = made_up(5000 if arguments.quick else 50000)
    tables = "\n".join([*throughput(dataset, rounds), "", *step_share(dataset, rounds), "", machine])
    print(tables)
    if arguments.write:
        write_between("benchmarks/README.md", "benchmarks/data.py", tables)


if __name__ == "__main__":
    main()
