"""Does SRS help with a network and data of your own? The lab's `compare` from Python.

    python examples/compare_own_network.py [--seeds 5] [--epochs 20]

Only the call of `compare` is about Replenish: it takes any function that makes a network, and any dataset in memory.
The runs stay in `runs/`.
"""

from __future__ import annotations

import argparse

from torch import nn

from replenish.lab import compare
from replenish.lab.data import load, reduce


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="how many (default 5)")
    parser.add_argument("--epochs", type=int, default=20, help="effective epochs of a run (default 20)")
    parser.add_argument("--runs", default="runs", help="the folder of the runs' folders")
    options = parser.parse_args()

    few = reduce(load("digits"), images_per_class=40)  # any replenish.lab.data.Dataset of your own
    found = compare(few, model=network, seeds=options.seeds, epochs=options.epochs, runs=options.runs, pad=1)
    print(found)
    print(f"Page: {found.page}")


if __name__ == "__main__":
    main()
