"""The cost of orders and peers at N = 10^6, 10^9 and 10^12: memory, first batch, time per index, a far jump.

    python benchmarks/scale.py --sizes            print the table (some minutes)
    python benchmarks/scale.py --sizes --write    also write it to benchmarks/README.md
    python benchmarks/scale.py --quality          shuffle_quality of computed permutations, from 10^3 to 10^12

Each measurement is a new process, so that its memory can be read, and the candidates alternate. Times are processor
times. A peer is left out if it needs too much memory or does not accept the size.
"""

from __future__ import annotations

import json
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from replenish import Mixture, RandomReshuffling, SequencedReplacement
from replenish.diagnostics import shuffle_quality
from replenish.lab.machine import commit, processor

BATCH, STEPS, SOURCES, POOL = 1024, 976, 100, 10**6
SIZES = (10**6, 10**9, 10**12)
FAR = 10**9  # steps

Batches = Iterator[Any]


def _of_order(order: Any) -> Callable[[int], Batches]:
    return lambda start: order.batches(start)


def _computed(n: int) -> Callable[[int], Batches]:
    return _of_order(RandomReshuffling(n, BATCH, computed=True))


def _listed(n: int) -> Callable[[int], Batches]:
    return _of_order(RandomReshuffling(n, BATCH))


def _mixture(n: int) -> Callable[[int], Batches]:
    weights = np.random.default_rng(0).random(SOURCES)
    return _of_order(Mixture([n // SOURCES] * SOURCES, weights, BATCH))


def _pool(n: int) -> Callable[[int], Batches]:
    return _of_order(SequencedReplacement(n, BATCH, pool_size=min(POOL, n)))


def _torch(n: int) -> Callable[[int], Batches]:
    """Torch's `RandomSampler` in a `BatchSampler`, which can only start at the beginning of an epoch."""
    from torch.utils.data import BatchSampler, RandomSampler

    return lambda start: iter(BatchSampler(RandomSampler(range(n)), BATCH, drop_last=True))


def _grain(n: int) -> Callable[[int], Batches]:
    """Grain's index shuffle with one call per index, as in its `shuffle`."""
    from grain._src.python.experimental.index_shuffle.python import index_shuffle_module

    def batches(start: int) -> Batches:
        while True:
            first = start * BATCH % n
            yield [index_shuffle_module.index_shuffle(place, n - 1, 1, 4) for place in range(first, first + BATCH)]
            start += 1

    return batches


def _index_array(n: int) -> Callable[[int], Batches]:
    """One shuffled array of 64-bit indices per epoch, as Megatron's datasets build it and keep it in a file."""

    def batches(start: int) -> Batches:
        indices = np.arange(n, dtype=np.int64)
        np.random.RandomState(1).shuffle(indices)
        first = start * BATCH % n
        while True:
            yield indices[first : first + BATCH]
            first = (first + BATCH) % (n - BATCH)

    return batches


def _blend(n: int) -> Callable[[int], Batches]:
    """A blend as in Megatron, by the largest error so far: two arrays with the dataset and the sample of each draw."""

    def batches(start: int) -> Batches:
        weights = np.random.default_rng(0).random(SOURCES)
        weights /= weights.sum()
        given, which = np.zeros(SOURCES), np.empty(n, dtype=np.int16)
        sample = np.empty(n, dtype=np.int64)
        for place in range(n):
            source = int(np.argmax(weights * (place + 1) - given))
            which[place], sample[place] = source, given[source]
            given[source] += 1
        first = start * BATCH % n
        while True:
            yield which[first : first + BATCH], sample[first : first + BATCH]
            first = (first + BATCH) % (n - BATCH)

    return batches


#: Name: (function that makes batches from a step on, largest size to run, whether it can start at a far step).
WAYS: dict[str, tuple[Callable[[int], Callable[[int], Batches]], int, bool]] = {
    "`RandomReshuffling(computed=True)`": (_computed, 10**12, True),
    "`RandomReshuffling`, listed": (_listed, 10**6, True),
    f"`Mixture` of {SOURCES} sources": (_mixture, 10**12, True),
    f"`SequencedReplacement`, pool of {POOL:,}": (_pool, 10**12, True),
    "torch's `RandomSampler`": (_torch, 10**6, False),
    "grain's index shuffle": (_grain, 10**9, True),
    "an index array (Megatron-like)": (_index_array, 10**6, True),
    f"a blend of {SOURCES} by arrays (Megatron-like)": (_blend, 10**6, True),
}
BASE = next(iter(WAYS))


def measure(name: str, size: int) -> dict[str, float]:
    make, _, jumps = WAYS[name]
    make(10 * BATCH)  # loads code and libraries before the first measurement
    RandomReshuffling(10, 2).batch(0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start_batches = make(size)
    list(islice(start_batches(0), 2))
    found = {"bytes": 1024.0 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)}
    start = time.process_time()
    batches = start_batches(0)
    next(batches)
    found["first"] = time.process_time() - start
    drawn = BATCH + sum(BATCH for _ in islice(batches, STEPS - 1))
    found["index"] = (time.process_time() - start) / drawn
    if jumps:
        start = time.process_time()
        next(start_batches(FAR))
        found["jump"] = time.process_time() - start
    return found


def table(rounds: int, python: str | None) -> str:
    """Return the table; `python` is an interpreter that has grain, or None to leave grain out."""
    runs: dict[tuple[str, int], list[dict[str, float]]] = {}
    for _ in range(rounds):
        for size in SIZES:
            for name, (_, most, _) in WAYS.items():
                executable = python if "grain" in name else sys.executable
                if size > most or executable is None:
                    continue
                command = [executable, __file__, name, str(size)]
                result = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                runs.setdefault((name, size), []).append(json.loads(result))
    lines = [
        f"| B = {BATCH:,} | N | memory | first batch | per index | over computed's | a jump of 10^9 steps |",
        "|---|---|---|---|---|---|---|",
    ]
    for (name, size), found in sorted(runs.items(), key=lambda item: (list(WAYS).index(item[0][0]), item[0][1])):
        middle = {key: statistics.median(run[key] for run in found) for key in found[0]}
        pairs = zip(found, runs[BASE, size], strict=True)
        ratio = statistics.median(run["index"] / base["index"] for run, base in pairs)
        jump = f"{1e3 * middle['jump']:,.1f} ms" if "jump" in middle else "not possible"
        lines.append(
            f"| {name} | $10^{{{len(str(size)) - 1}}}$ | {middle['bytes'] / 1e6:,.1f} MB | "
            f"{1e3 * middle['first']:,.1f} ms | {1e9 * middle['index']:,.1f} ns | {ratio:.1f} | {jump} |"
        )
    note = (
        f"Processor times, medians of n = {rounds} rounds in which the ways take turns. The time per index is that of "
        f"the first {STEPS} steps, which are an epoch at 10^6, the first batch included. Memory is the growth of a "
        f"process's peak in the first steps. {processor()}, one thread, a loaded machine: compare ratios rather than "
        f"times. Python {platform.python_version()}, numpy {np.__version__}; commit {commit()}. Sizes are left out "
        f"where a way keeps a list of all indices, or (grain) takes only 32-bit indices."
    )
    return "\n".join(lines) + "\n\n" + note


def quality(seeds: int) -> str:
    """Return what `shuffle_quality` finds in computed permutations."""
    lines, values = [], []
    for size in (4097, 5003, *(10**power for power in range(3, 13))):
        for seed in range(seeds):
            found = shuffle_quality(RandomReshuffling(size, 100, seed=seed, computed=True), size)
            values += [finding.p for finding in found.findings]
            lines.append(f"N = {size:,}, seed {seed}: {found.level}, {len(found.findings)} findings")
    low = sum(p < 0.01 for p in values)
    return "\n".join([*lines, f"{len(values)} p-values, {low} below 0.01, the smallest {min(values):.2g}"])


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
