"""The sampler's speed and memory compared with torch's own, as ratios measured alternately in one run.

    python benchmarks/sampler.py            print the tables (some minutes)
    python benchmarks/sampler.py --quick    smaller sizes, fewer rounds
    python benchmarks/sampler.py --write    also write them to docs/benchmarks.md
    python benchmarks/sampler.py --only-first    only the first batch, in fresh processes

The peer is `BatchSampler(RandomSampler(...))`, which `DataLoader(shuffle=True)` uses. The time of an epoch includes
everything between `iter()` and its first batch. "With building" adds the sampler's constructor, which a training calls
once.
"""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from machine import describe
from pages import write_between

from replenish import SequencedReplacement
from replenish.lab.sampler_benchmark import alternately, exhaust, one_epoch, ratio, torch_batches
from replenish.torch import SRSBatchSampler


def epochs(sizes: list[int], batch_sizes: list[int], rounds: int) -> list[str]:
    lines = [
        "| N | B | torch, lists | SRS, lists | ratio | with building | SRS, arrays | ratio | with building |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for num_samples in sizes:
        for batch_size in batch_sizes:
            n = rounds if num_samples < 10**7 else max(3, rounds // 4)
            times = alternately(n, **one_epoch(num_samples, batch_size, n))
            each = {name: statistics.median(values) / num_samples * 1e9 for name, values in times.items()}
            ratios = {name: ratio(times["torch"], values).text() for name, values in times.items()}
            lines.append(
                f"| {num_samples:,} | {batch_size} | {each['torch']:.0f} ns "
                f"| {each['lists']:.0f} ns | {ratios['lists']} | {ratios['built_lists']} "
                f"| {each['arrays']:.0f} ns | {ratios['arrays']} | {ratios['built_arrays']} |"
            )
            print(lines[-1], flush=True)
    return lines


def first_batch(num_samples: int, rounds: int) -> list[str]:
    """Time the first batch in new processes, alternately: an older process has already allocated memory."""
    lines = [
        f"| CPU time in a fresh process, N = {num_samples:,}, B = 64 | first batch | ratio | 1,000 batches | ratio |",
        "|---|---|---|---|---|",
    ]
    times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in SAMPLERS}
    for _ in range(rounds):
        for kind, found in times.items():
            first, thousandth = in_fresh_process("--first", kind, num_samples).split()
            found.append((float(first), float(thousandth)))
    for kind, label in zip(
        SAMPLERS, ["torch", 'SRS, `sequence="identity"`', "SRS, shuffled (the default)"], strict=True
    ):
        cells = []
        for torch_times, own in zip(zip(*times["torch"], strict=True), zip(*times[kind], strict=True), strict=True):
            cells += [f"{statistics.median(own) * 1e3:,.1f} ms", ratio(list(torch_times), list(own)).text(0)]
        lines.append(f"| {label} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


# Functions that build each sampler and return its batches.
SAMPLERS: dict[str, Callable[[int], Iterable[object]]] = {
    "torch": lambda num_samples: torch_batches(num_samples, 64),
    "identity": lambda num_samples: SRSBatchSampler(range(num_samples), 64, sequence="identity"),
    "shuffled": lambda num_samples: SRSBatchSampler(range(num_samples), 64),
}


def print_first(kind: str, num_samples: int) -> None:
    SAMPLERS[kind](100)  # pays for imports at first use, such as torch's generator
    start = time.process_time()
    batches = iter(SAMPLERS[kind](num_samples))
    next(batches)
    first = time.process_time() - start
    for _ in range(999):
        next(batches)
    print(first, time.process_time() - start)


def in_fresh_process(option: str, kind: str, num_samples: int) -> str:
    """Return the output of this script with an option, run in a new process."""
    command = [sys.executable, __file__, option, kind, str(num_samples)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def jumps(rounds: int) -> list[str]:
    lines = [
        "| N = 50,000, B = 64 | time | in effective epochs of `batches()` |",
        "|---|---|---|",
    ]
    order = SequencedReplacement(50_000, 64)
    times = alternately(
        rounds,
        epoch=lambda: exhaust(order.batches(0, order.steps_per_epoch)),
        million=lambda: next(order.batches(10**6)),
        billion=lambda: next(order.batches(10**9)),
    )
    for name, label in [("epoch", "one effective epoch"), ("million", "jump to step 10^6"), ("billion", "to 10^9")]:
        shown = statistics.median(times[name]) * 1e3
        lines.append(f"| {label} | {shown:.1f} ms | {ratio(times[name], times['epoch']).text(1, '')} |")
        print(lines[-1], flush=True)
    return lines


def print_growth(kind: str, num_samples: int) -> None:
    """Print by how many bytes this process grows while it draws a thousand batches."""
    before = resident_bytes()
    batches = iter(SAMPLERS[kind](num_samples))
    for _ in zip(range(1000), batches, strict=False):
        pass
    print(resident_bytes() - before)


def resident_bytes() -> int:
    """Return the memory that this process uses now. The peak could be from the imports, which would hide growth."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def memory(num_samples: int, rounds: int) -> list[str]:
    lines = [f"| memory at N = {num_samples:,}, B = 64 | growth | ratio |", "|---|---|---|"]
    grown = {
        kind: statistics.median(int(in_fresh_process("--growth", kind, num_samples)) for _ in range(rounds))
        for kind in SAMPLERS
    }
    for kind, size in grown.items():
        label = "torch" if kind == "torch" else f"SRS, {kind}"
        lines.append(f"| {label} | {size / 1e6:,.0f} MB | {grown['torch'] / size:.1f}x |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer rounds")
    parser.add_argument("--write", action="store_true", help="write the tables to docs/benchmarks.md")
    parser.add_argument("--growth", nargs=2, metavar=("KIND", "N"), help=argparse.SUPPRESS)
    parser.add_argument("--first", nargs=2, metavar=("KIND", "N"), help=argparse.SUPPRESS)
    parser.add_argument("--only-first", action="store_true", help="print the table of the first batch only")
    options = parser.parse_args()
    for asked, answer in ((options.growth, print_growth), (options.first, print_first)):
        if asked:
            answer(asked[0], int(asked[1]))
            return
    gc.freeze()
    sizes = [50_000, 1_280_000] if options.quick else [50_000, 1_280_000, 20_000_000]
    largest, rounds = sizes[-1], 5 if options.quick else 12
    if options.only_first:
        first_batch(largest, 9)
        return
    tables = [
        epochs(sizes, [64, 1024], rounds),
        first_batch(largest, 9),
        memory(largest, 3),
        jumps(rounds),
    ]
    text = f"{describe(rounds)}\n\n" + "\n\n".join("\n".join(table) for table in tables)
    print("\n" + text)
    if options.write:
        write_between("docs/benchmarks.md", "benchmarks/sampler.py", text)


if __name__ == "__main__":
    main()
