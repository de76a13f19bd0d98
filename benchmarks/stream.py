"""The pooled stream compared with the shuffle buffer of `webdataset`, in one run.

    python benchmarks/stream.py            print the tables (about two minutes)
    python benchmarks/stream.py --quick    fewer rounds
    python benchmarks/stream.py --write    also write them to docs/benchmarks.md

Both read the same list of ints through a buffer of M = 10,000 and yield batches of 64 until the list ends. The peer is
`shuffle(10_000, initial=10_000)` with `batched(64)` in a `DataPipeline`; it is left out if it is not installed. Times
are per item, from building the stream to its end. For the sources of Hugging Face `datasets`, see `stream_sources.py`.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from machine import describe
from pages import write_between

from replenish.stream import PooledStream

BATCH, POOL = 64, 10_000
MANY = 1_000_000


def exhaust(batches: Iterable[object]) -> None:
    for _ in batches:
        pass


def replenish_batches(items: list[int]) -> Iterable[object]:
    return PooledStream(items, batch_size=BATCH, pool_size=POOL, repeat=False)


def replenish_endless(items: list[int]) -> Iterable[object]:
    stream = PooledStream(items, batch_size=BATCH, pool_size=POOL)
    return (next(stream) for _ in range(len(items) // BATCH))


def webdataset_batches(items: list[int]) -> Iterable[object]:
    import webdataset

    return webdataset.DataPipeline(
        lambda: iter(items), webdataset.shuffle(POOL, initial=POOL), webdataset.batched(BATCH, collation_fn=None)
    )


# name: (package that it needs, function that returns the batches)
RUNS: dict[str, tuple[str, Callable[[list[int]], Iterable[object]]]] = {
    "`PooledStream`, to the end": ("replenish", replenish_batches),
    "`PooledStream`, repeating": ("replenish", replenish_endless),
    "`webdataset`, shuffle + batched": ("webdataset", webdataset_batches),
}


def version() -> str:
    return f"webdataset {importlib.import_module('webdataset').__version__}" if importable("webdataset") else "none"


def seconds(run: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def speed(rounds: int) -> list[str]:
    runs = {name: run for name, run in RUNS.items() if importable(run[0])}
    items = list(range(MANY))
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, (_, run) in runs.items():
            elapsed = seconds(lambda run=run: exhaust(run(items))) / MANY
            if number:  # the first round warms up
                times[name].append(elapsed)
    ours = next(iter(times.values()))
    lines = [f"| M = {POOL:,}, B = {BATCH} | an item | items a second | ratio |", "|---|---|---|---|"]
    for name, values in times.items():
        ratio = statistics.median(theirs / own for theirs, own in zip(values, ours, strict=True))
        each = statistics.median(values)
        lines.append(f"| {name} | {each * 1e9:,.0f} ns | {1 / each:,.0f} | {ratio:.1f} |")
    return lines


def importable(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def resume(rounds: int) -> list[str]:
    """Measure the time from a state to the first batch, at near and far steps."""
    items = list(range(MANY))
    lines = ["| resume at | time to the first batch | items read again |", "|---|---|---|"]
    for step in (10**2, 10**4, 10**9):
        read = 0

        def source(start: int) -> Iterator[int]:
            nonlocal read
            for item in items[start:]:
                read += 1
                yield item

        source.length = MANY  # type: ignore[attr-defined]
        stream = PooledStream(source, batch_size=BATCH, pool_size=POOL)
        stream.seek(step)
        state = stream.state_dict()

        def first_batch(source: Any = source, state: Any = state) -> None:
            resumed = PooledStream(source, batch_size=BATCH, pool_size=POOL)
            resumed.load_state_dict(state)
            next(resumed)

        shown = statistics.median(seconds(first_batch) for _ in range(rounds))
        lines.append(f"| step {step:,} | {shown * 1e3:.0f} ms | {read // rounds:,} |")
    return lines


def memory(counts: list[int]) -> list[str]:
    lines = ["| items in the stream | most memory that it held at a time |", "|---|---|"]
    for count in counts:
        tracemalloc.start()
        exhaust(PooledStream(range(count), batch_size=BATCH, pool_size=POOL, repeat=False))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        lines.append(f"| {count:,} | {peak / 1e6:.2f} MB |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--write", action="store_true", help="write the tables to docs/benchmarks.md")
    options = parser.parse_args()
    rounds = 2 if options.quick else 7
    tables = [speed(rounds), resume(rounds), memory([10**5, 10**6, 4 * 10**6])]
    text = f"{describe(rounds)} Peer: {version()}.\n\n" + "\n\n".join("\n".join(table) for table in tables)
    print(text)
    if options.write:
        write_between("docs/benchmarks.md", "benchmarks/stream.py", text)


if __name__ == "__main__":
    main()
