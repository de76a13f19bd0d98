"""The cost of SRS for one rank of a very large run: N = 10^9 samples, 1,024 ranks, a global batch of 65,536.

    python benchmarks/scale.py            print the table (about five minutes, 8 GB of memory)
    python benchmarks/scale.py --quick    N = 10^7 for 10^8, and 10^8 for 10^9
    python benchmarks/scale.py --write    also write it to docs/integrations/many_machines.md
    python benchmarks/scale.py --jump N   only a far jump in a pool of N, alternating with the plain replay
    python benchmarks/scale.py --sizes    several orders and peers at N = 10^6 to 10^12: see sizes.py
    python benchmarks/scale.py --quality  how uniform computed permutations are, from 10^3 to 10^12

Every rank draws whole global batches and takes its share, so one machine is enough to measure one rank of 1,024. Values
that would take too long to measure are computed and marked.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import zlib

import numpy
import sizes
from pages import write_between

from replenish import SequencedReplacement, state
from replenish.lab.machine import commit, processor

BATCH, RANKS, RANKS_PER_NODE, STEPS = 65_536, 1024, 8, 100


def order(num_samples: int) -> SequencedReplacement:
    return SequencedReplacement(num_samples, BATCH)


def drawing(num_samples: int) -> dict[str, float]:
    """Measure the first batch, the steps after it, the memory and the size of a checkpoint."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    batches = order(num_samples).batches()
    next(batches)
    first = time.perf_counter() - start
    steps = []
    for _ in range(STEPS):
        start = time.perf_counter()
        next(batches)
        steps.append(time.perf_counter() - start)
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    size = len(json.dumps(state.save(order(num_samples), 10**9)))
    return {"first": first, "step": statistics.median(steps), "bytes": grown, "checkpoint": size}


def resuming(num_samples: int, epochs: int) -> dict[str, float]:
    """Measure the first batch of a run that resumes after this many effective epochs."""
    new = order(num_samples)
    step = epochs * new.steps_per_epoch
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    new.batch(step)
    elapsed = time.perf_counter() - start
    return {"seconds": elapsed, "bytes": 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)}


def jumping(num_samples: int, plainly: int) -> dict[str, float]:
    """Measure a jump of 1,000 effective epochs; if `plainly`, by replaying every draw of the last ln N + 3 epochs."""
    cursor = order(num_samples).cursor()
    if plainly:
        cursor._threaded = None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, processor_start = time.perf_counter(), time.process_time()
    positions = cursor.positions_before(1000 * order(num_samples).steps_per_epoch + 1)
    found = {"seconds": time.perf_counter() - start, "processor_seconds": time.process_time() - processor_start}
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    return {**found, "bytes": grown, "checksum": zlib.crc32(positions.tobytes())}


def jump_table(num_samples: int, rounds: int) -> str:
    lines = [
        f"| a far jump, N = {num_samples:,}, B = {BATCH:,} | time | of all processors | memory |",
        "|---|---|---|---|",
    ]
    runs: dict[int, list[dict[str, float]]] = {1: [], 0: []}
    for _ in range(rounds):
        for plainly, kept in runs.items():
            kept.append(measured("jumping", num_samples, plainly))
    if len({run["checksum"] for kept in runs.values() for run in kept}) != 1:
        raise SystemExit("the two ways found different pools")
    for plainly, label in {1: "every draw replayed in turn", 0: "as it is done"}.items():
        each = [
            statistics.median(run[name] for run in runs[plainly]) for name in ("seconds", "processor_seconds", "bytes")
        ]
        lines.append(f"| {label} | {seconds(each[0])} | {seconds(each[1])} | {each[2] / 1e9:.2f} GB |")
    ratios = [
        statistics.median(one[name] / other[name] for one, other in zip(runs[1], runs[0], strict=True))
        for name in ("seconds", "processor_seconds")
    ]
    lines.append(f"| ratio | {ratios[0]:.1f} | {ratios[1]:.1f} | |")
    return (
        "\n".join(lines)
        + f"\n\nThe same pool. Median of n = {rounds}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    )


def measured(what: str, *arguments: int) -> dict[str, float]:
    """Measure in a new process, so that its memory counts only this measurement."""
    command = [sys.executable, __file__, "--measure", what, *map(str, arguments)]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(what, *arguments, result, file=sys.stderr, flush=True)
    return result


def seconds(value: float) -> str:
    if value < 1:
        return f"{1e3 * value:,.1f} ms"
    return f"{value:,.1f} s" if value < 200 else f"{value / 60:,.0f} min"


def table(small: int, large: int) -> str:
    draws = {size: measured("drawing", size) for size in (small, large)}
    epoch = {size: measured("resuming", size, 1)["seconds"] for size in (small, large)}
    far = {size: measured("resuming", size, 1000) for size in (small, large)}

    def row(label: str, a: str, b: str, computed: bool = False) -> str:
        return f"| {label} | {a} | {b}{' *' if computed else ''} |"

    small_bytes, large_bytes = draws[small]["bytes"], draws[large]["bytes"]
    lines = [
        f"| B = {BATCH:,}, {RANKS:,} ranks, {RANKS_PER_NODE} a node | N = {small:,} | N = {large:,} |",
        "|---|---|---|",
        row("the draw of a step, in every rank", seconds(draws[small]["step"]), seconds(draws[large]["step"])),
        row("the first batch of a run", seconds(draws[small]["first"]), seconds(draws[large]["first"])),
        row("a checkpoint", f"{draws[small]['checkpoint']:.0f} bytes", f"{draws[large]['checkpoint']:.0f} bytes"),
        row("resume after one effective epoch", seconds(epoch[small]), seconds(epoch[large])),
        row("resume after 1,000 (the most there is)", *(seconds(each["seconds"]) for each in far.values())),
        row("memory while it looks for that place", *(f"{each['bytes'] / 1e9:.2f} GB" for each in far.values())),
        row("memory of a rank, a pool each", f"{small_bytes / 1e9:.2f} GB", f"{large_bytes / 1e9:.2f} GB"),
        row(
            "memory of a node, a pool each",
            f"{RANKS_PER_NODE * small_bytes / 1e9:.1f} GB *",
            f"{RANKS_PER_NODE * large_bytes / 1e9:.1f} GB",
            computed=True,
        ),
    ]
    note = (
        f"Measured on {processor()}, {os.cpu_count()} cores, one thread, except for far resumes, which use all; Python "
        f"{platform.python_version()}, numpy {numpy.__version__}; commit {commit()}. Steps: median "
        f"of n = {STEPS}; the rest: n = 1.\n\n"
        f"\\* Computed: the memory of a node is that of a rank times {RANKS_PER_NODE}."
    )
    return "\n".join(lines) + "\n\n" + note


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="sizes a tenth of the real ones")
    parser.add_argument("--write", action="store_true", help="write the table to docs/integrations/many_machines.md")
    parser.add_argument("--jump", type=float, help="only a far jump in a pool of so many")
    parser.add_argument("--rounds", type=int, default=3, help="of the far jump, or of --sizes")
    parser.add_argument("--sizes", action="store_true", help="only any order at any size; --rounds of it")
    parser.add_argument("--grain", metavar="PYTHON", help="with --sizes: an interpreter that has grain")
    parser.add_argument("--quality", action="store_true", help="only the quality of computed permutations")
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        what, *arguments = options.measure
        kinds = {"drawing": drawing, "resuming": resuming, "jumping": jumping}
        print(json.dumps(kinds[what](*map(int, arguments))))
        return
    if options.quality:
        print(sizes.quality(seeds=2))
        return
    if options.sizes:
        text = sizes.table(options.rounds, options.grain)
        print(text)
        if options.write:
            write_between("benchmarks/README.md", "benchmarks/scale.py --sizes", text)
        return
    if options.jump:
        print(jump_table(int(options.jump), options.rounds))
        return
    text = table(*((10**7, 10**8) if options.quick else (10**8, 10**9)))
    print(text)
    if options.write:
        write_between("docs/integrations/many_machines.md", "benchmarks/scale.py", text)


if __name__ == "__main__":
    main()
