"""How often the shuffle battery finds faults in healthy orders: `python benchmarks/shuffle_false_faults.py [streams]`.

It reads every order of the library that is uniform in its own sense, with `N` samples in batches of `B`, three epochs
per stream and one seed per stream. It prints, per order, how many streams got a warning or a fault, and which.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable

import numpy as np
from pages import write_between

from replenish import (
    BallsInBins,
    BatchedReplacement,
    FlipFlop,
    IndependentDraws,
    Order,
    PairedReversal,
    PoissonDraws,
    RandomReshuffling,
    RepeatedAugmentation,
    SequencedReplacement,
    ShuffleBuffer,
    ShuffleOnce,
    Stratified,
    WeightedDraws,
)
from replenish.diagnostics import shuffle_quality
from replenish.lab.machine import commit

N, B = 1_000, 10
CLASSES = np.random.default_rng(0).integers(0, 10, N)

HEALTHY: dict[str, Callable[[int], Order]] = {
    "reshuffling": lambda seed: RandomReshuffling(N, B, seed=seed),
    "SRS": lambda seed: SequencedReplacement(N, B, seed=seed),
    "SRS, pool of N/10": lambda seed: SequencedReplacement(N, B, seed=seed, pool_size=N // 10),
    "replacement": lambda seed: BatchedReplacement(N, B, seed=seed),
    "independent draws": lambda seed: IndependentDraws(N, B, seed=seed),
    "shuffle once": lambda seed: ShuffleOnce(N, B, seed=seed),
    "flip-flop": lambda seed: FlipFlop(N, B, seed=seed),
    "paired reversal": lambda seed: PairedReversal(N, B, seed=seed, block_size=N // 4),
    "Poisson draws": lambda seed: PoissonDraws(N, B, seed=seed),
    "balls in bins": lambda seed: BallsInBins(N, B, seed=seed),
    "repeated augmentation": lambda seed: RepeatedAugmentation(N, B, seed=seed),
    "stratified": lambda seed: Stratified(N, B, seed=seed, labels=CLASSES),
    "weighted draws": lambda seed: WeightedDraws(N, B, seed=seed, weights=1 + CLASSES),
    "shuffle buffer of N": lambda seed: ShuffleBuffer(N, B, seed=seed, buffer_size=N),
}


def main() -> None:
    """Print a line per order; with --write, also write the result to docs/shuffles.md."""
    options = argparse.ArgumentParser()
    options.add_argument("streams", nargs="?", type=int, default=1000)
    options.add_argument("--write", action="store_true")
    chosen = options.parse_args()
    clean, others = [], []
    for name, make in HEALTHY.items():
        levels: Counter[str] = Counter()
        which: Counter[str] = Counter()
        for seed in range(chosen.streams):
            found = shuffle_quality(make(seed), N)
            levels[found.level] += 1
            which.update(finding.name for finding in found.findings if finding.level != "ok")
        named = ", ".join(f"{each} {times}" for each, times in which.items())
        if named:
            others.append(f"{name}: {levels['warning']} warnings, {levels['fault']} faults ({named})")
        else:
            clean.append(name)
        print(name, named or "none", flush=True)
    text = (
        f"{chosen.streams:,} streams per order, each with another seed: N = {N:,}, B = {B}, 3 epochs. No warning and "
        f"no fault: {'; '.join(clean)}."
    )
    text += "".join(f" {each.capitalize()}." for each in others)
    text += f" Measured at commit {commit()} by `python benchmarks/shuffle_false_faults.py {chosen.streams}`."
    print(text)
    if chosen.write:
        write_between("docs/shuffles.md", "false faults", text)


if __name__ == "__main__":
    main()
