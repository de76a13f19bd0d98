"""How often an audit finds a fault in a healthy loader: ten kinds, a thousand of each, with random sizes and seeds.

    python benchmarks/audit_false_alarms.py [--loaders 1000] [--seed 0]

Prints, for each kind, how many loaders got a fault and how many a warning, and which questions gave them.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    DataLoader,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from replenish import audit
from replenish.torch import SRSBatchSampler

Draw = np.random.Generator


def dataset(draw: Draw, least: int = 20, most: int = 600) -> tuple[TensorDataset, np.ndarray]:
    """Return data of a random size in up to ten classes, and their labels."""
    number = int(draw.integers(least, most))
    labels = draw.integers(0, draw.integers(1, 11), number)
    return TensorDataset(torch.arange(number), torch.as_tensor(labels)), labels


def batch_size(draw: Draw, number: int) -> int:
    """Return a random batch size, at most a quarter of the data."""
    return int(draw.integers(1, max(2, number // 4)))


def shuffled(draw: Draw, **options: Any) -> dict[str, Any]:
    """A loader with shuffle=True."""
    data, labels = dataset(draw)
    loader = DataLoader(data, batch_size=batch_size(draw, len(data)), shuffle=True, **options)
    return {"loader": loader, "labels": labels}


def replacement(draw: Draw) -> dict[str, Any]:
    """Independent draws."""
    data, labels = dataset(draw)
    sampler = RandomSampler(data, replacement=True)
    return {"loader": DataLoader(data, batch_size=batch_size(draw, len(data)), sampler=sampler), "labels": labels}


def balanced(draw: Draw) -> dict[str, Any]:
    """Weighted draws that give classes of unequal size the same share."""
    data, labels = dataset(draw)
    sampler = WeightedRandomSampler((1 / np.bincount(labels)[labels]).tolist(), len(data))
    return {"loader": DataLoader(data, batch_size=batch_size(draw, len(data)), sampler=sampler), "labels": labels}


def split_by_sampler(draw: Draw) -> dict[str, Any]:
    """A split into training and validation by two SubsetRandomSamplers."""
    data, _ = dataset(draw)
    order = draw.permutation(len(data)).tolist()
    cut = int(draw.integers(10, len(data) - 5))
    parts = {"train": order[:cut], "validation": order[cut:]}
    size = batch_size(draw, cut)
    return {
        "loader": {name: DataLoader(data, batch_size=size, sampler=SubsetRandomSampler(p)) for name, p in parts.items()}
    }


def split_by_subset(draw: Draw) -> dict[str, Any]:
    """A split into training and validation by two Subsets."""
    data, labels = dataset(draw)
    order = draw.permutation(len(data)).tolist()
    cut = int(draw.integers(10, len(data) - 5))
    train, validation = Subset(data, order[:cut]), Subset(data, order[cut:])
    loaders = {
        "train": DataLoader(train, batch_size=7, shuffle=True),
        "validation": DataLoader(validation, batch_size=9),
    }
    return {"loader": loaders, "labels": labels[order[:cut]]}


def distributed(draw: Draw) -> dict[str, Any]:
    """All ranks of a DistributedSampler, with set_epoch."""
    data, labels = dataset(draw)
    ranks, size, seed = int(draw.integers(2, 5)), int(draw.integers(1, 5)), int(draw.integers(2**31))
    loaders = [
        DataLoader(data, batch_size=size, sampler=DistributedSampler(data, ranks, rank, seed=seed))
        for rank in range(ranks)
    ]

    def before_epoch(epoch: int) -> None:
        for each in loaders:
            each.sampler.set_epoch(epoch)

    return {"loader": loaders, "labels": labels, "before_epoch": before_epoch}


def one_rank(draw: Draw) -> dict[str, Any]:
    """One rank of a DistributedSampler that drops the last samples."""
    data, _ = dataset(draw)
    sampler = DistributedSampler(data, 3, int(draw.integers(3)), drop_last=True)
    return {"loader": DataLoader(data, batch_size=4, sampler=sampler), "before_epoch": sampler.set_epoch}


def subset_per_rank(draw: Draw) -> dict[str, Any]:
    """A disjoint Subset for each rank."""
    data, _ = dataset(draw, 40)
    share = len(data) // 2
    parts = [Subset(data, range(rank * share, (rank + 1) * share)) for rank in range(2)]
    return {"loader": [DataLoader(part, batch_size=5, shuffle=True) for part in parts]}


def srs(draw: Draw) -> dict[str, Any]:
    """Sequenced replacement."""
    data, labels = dataset(draw)
    size = batch_size(draw, len(data))
    sampler = SRSBatchSampler(data, size, seed=int(draw.integers(2**31)))
    return {"loader": DataLoader(data, batch_sampler=sampler), "labels": labels}


KINDS: dict[str, Callable[[Draw], dict[str, Any]]] = {
    "shuffled": shuffled,
    "shuffled, drop_last": lambda draw: shuffled(draw, drop_last=True),
    "replacement": replacement,
    "balanced weights": balanced,
    "split by SubsetRandomSampler": split_by_sampler,
    "split by Subset": split_by_subset,
    "all ranks": distributed,
    "one rank": one_rank,
    "a Subset per rank": subset_per_rank,
    "SRS": srs,
}


def main() -> None:
    """Audit the loaders of each kind, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loaders", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    total = 0
    for number, (name, make) in enumerate(KINDS.items()):
        draw = np.random.Generator(np.random.Philox([options.seed, number]))
        torch.manual_seed(options.seed)
        counts: Counter[str] = Counter()
        faulty = warned = 0
        for _ in range(options.loaders):
            found = audit(**make(draw), epochs=int(draw.integers(2, 5)), call_dataset=False)
            faulty += found.level == "fault"
            warned += found.level == "warning"
            counts.update(f"{each.level} {each.name}" for each in found.findings if each.level != "ok")
        total += faulty
        named = ", ".join(f"{key} {count}" for key, count in counts.most_common()) or "nothing"
        print(f"{name}: {faulty} faults, {warned} warnings of {options.loaders} ({named})", flush=True)
    print(f"{total} of {len(KINDS) * options.loaders} healthy loaders got a fault")


if __name__ == "__main__":
    main()
