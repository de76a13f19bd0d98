"""The cost of `replenish exec` for a script: an epoch of its loader, and the start of the process.

    python benchmarks/exec.py            print the tables (about two minutes)
    python benchmarks/exec.py --quick    fewer rounds
    python benchmarks/exec.py --write    also write them to docs/benchmarks.md

The first table has epochs of a loader over tensors in memory: with torch's own shuffling, and inside
`replenish.torch.using`, which is what `exec` does. They alternate in one process. The loader does as little work per
sample as possible, indexing a tensor, so the ratio is the worst case. Every loader continues from epoch to epoch, as in
a training. The second table has the time from `iter(loader)` to the first batch, which matters to a script that makes
an iterator for every step. Both are processor times. The third table has the start of a script that imports torch, by
`python` and by `replenish exec`, which ends with an error since the script makes no loader.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from machine import describe
from pages import write_between
from torch.utils.data import DataLoader, TensorDataset

from replenish.lab.sampler_benchmark import alternately, exhaust, ratio
from replenish.torch import using

SIZES = [(50_000, 128), (1_280_000, 256)]
ORDERS = ("reshuffling", "srs")


def loaders(num_samples: int, batch_size: int, contexts: ExitStack) -> dict[str, DataLoader[Any]]:
    """Return a loader with torch's shuffling and one for each order, which it keeps as long as `contexts` is open."""
    dataset = TensorDataset(torch.zeros(num_samples, 8), torch.zeros(num_samples, dtype=torch.int64))

    def make() -> DataLoader[Any]:
        return DataLoader(dataset, batch_size=batch_size, shuffle=True)

    made = {"torch": make()}
    for order in ORDERS:  # a context changes only the loaders that are made in it
        contexts.enter_context(using(order))
        made[order] = make()
    return made


def first_batch(loader: DataLoader[Any]) -> None:
    """Begin an epoch and leave it after one batch, like a script that makes an iterator for every step."""
    next(iter(loader))


def processor_seconds(rounds: int, runs: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Time `runs` alternately for this many rounds, after a round that does not count."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            start = time.process_time()
            run()
            if number:
                times[name].append(time.process_time() - start)
    return times


def epochs(rounds: int, run: Callable[[DataLoader[Any]], object], *, per_sample: bool) -> list[str]:
    lines = [
        "| N | B | torch's shuffling | with reshuffling | time over torch's | with SRS | time over torch's |",
        "|---|---|---|---|---|---|---|",
    ]
    for num_samples, batch_size in SIZES:
        with ExitStack() as contexts:
            made = loaders(num_samples, batch_size, contexts)
            runs: dict[str, Callable[[], object]] = {name: partial(run, loader) for name, loader in made.items()}
            times = processor_seconds(rounds if num_samples < 10**6 else max(4, rounds // 4), runs)
        over = {name: ratio(values, times["torch"]).text(3) for name, values in times.items()}
        each = {name: shown(statistics.median(values), num_samples, per_sample) for name, values in times.items()}
        lines.append(
            f"| {num_samples:,} | {batch_size} | {each['torch']} | {each['reshuffling']} | {over['reshuffling']} "
            f"| {each['srs']} | {over['srs']} |"
        )
        print(lines[-1], flush=True)
    return lines


def shown(seconds: float, num_samples: int, per_sample: bool) -> str:
    """Return a time as text, in nanoseconds per sample or in milliseconds."""
    return f"{seconds / num_samples * 1e9:.0f} ns" if per_sample else f"{seconds * 1e3:.2f} ms"


def starts(rounds: int) -> list[str]:
    lines = ["| a process that imports torch | time | more than `python` |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.py")
        script.write_text("import torch\n")
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}

        def start(*words: str) -> Callable[[], object]:
            return lambda: subprocess.run([sys.executable, *words, str(script)], env=environment, capture_output=True)

        times = alternately(rounds, python=start(), exec=start("-m", "replenish", "exec"))
    more = statistics.median(ours - its for ours, its in zip(times["exec"], times["python"], strict=True))
    lines.append(f"| `python script.py` | {statistics.median(times['python']):.2f} s | |")
    lines.append(f"| `replenish exec script.py` | {statistics.median(times['exec']):.2f} s | {more:+.2f} s |")
    print("\n".join(lines[-2:]), flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--write", action="store_true", help="write the tables to docs/benchmarks.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    gc.freeze()
    rounds = 5 if options.quick else 20
    tables = [
        epochs(rounds, exhaust, per_sample=True),
        epochs(rounds, first_batch, per_sample=False),
        starts(max(3, rounds // 4)),
    ]
    text = f"{describe(rounds)}\n\n" + "\n\n".join("\n".join(table) for table in tables)
    print("\n" + text)
    if options.write:
        write_between("docs/benchmarks.md", "benchmarks/exec.py", text)


if __name__ == "__main__":
    main()
