"""The cost of a shuffle over sources of Hugging Face `datasets`: its own buffer and the pooled stream, in one run.

    python benchmarks/stream_sources.py            print the table
    python benchmarks/stream_sources.py --write    also write it to benchmarks/README.md

There are three sources of the same items, `{"item": i}`: a Python generator, four Parquet files that are streamed, and
a table in memory as an iterable dataset. Each is measured in four ways: only reading it,
`shuffle(buffer_size=10_000).batch(64)`, `PooledStream` with a pool of 10,000 and batches of 64 that reads example by
example, and the same over rows that are read a thousand at a time. In the last way the pool holds tuples, and each
batch is turned into columns again, as `batch` returns them. Times are per item and alternate.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow
import pyarrow.parquet
from machine import describe
from pages import write_between
from stream import BATCH, POOL, exhaust, seconds

from replenish.stream import PooledStream

ITEMS = 40_000


def examples() -> Iterator[dict[str, int]]:
    for item in range(ITEMS):
        yield {"item": item}


def sources(folder: Path) -> dict[str, Any]:
    quarter = ITEMS // 4
    for number in range(4):
        table = pyarrow.table({"item": list(range(quarter * number, quarter * (number + 1)))})
        pyarrow.parquet.write_table(table, folder / f"{number}.parquet")
    files = sorted(map(str, folder.glob("*.parquet")))
    return {
        "a Python generator": datasets.IterableDataset.from_generator(examples),
        "Parquet files, streaming": datasets.load_dataset("parquet", data_files=files, split="train", streaming=True),
        "`to_iterable_dataset()`": datasets.Dataset.from_dict({"item": list(range(ITEMS))}).to_iterable_dataset(4),
    }


class Rows:
    """The rows of a dataset as tuples, read a thousand at a time."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for batch in self.source.iter(batch_size=1000):
            yield from zip(*batch.values(), strict=True)


def columns(batches: Iterable[list[tuple[Any, ...]]]) -> Iterator[dict[str, list[Any]]]:
    for rows in batches:
        yield dict(zip(("item",), map(list, zip(*rows, strict=True)), strict=True))


def ways(source: Any) -> dict[str, Iterable[object]]:
    return {
        "reading alone": source,
        "`shuffle` + `batch`": source.shuffle(seed=0, buffer_size=POOL).batch(BATCH),
        "`PooledStream`": PooledStream(source, batch_size=BATCH, pool_size=POOL, repeat=False),
        "rows": columns(PooledStream(Rows(source), batch_size=BATCH, pool_size=POOL, repeat=False)),
    }


def table(rounds: int, folder: Path) -> list[str]:
    lines = [
        "| Hugging Face source | reading alone | its `shuffle` + `batch` | `PooledStream` | over rows of `iter(1000)` "
        "| ratio of the second to the third | to the fourth |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, source in sources(folder).items():
        times: dict[str, list[float]] = {}
        for number in range(rounds + 1):
            for way, batches in ways(source).items():
                elapsed = seconds(lambda batches=batches: exhaust(batches)) / ITEMS
                if number:  # the first round warms up
                    times.setdefault(way, []).append(elapsed)
        shown = " | ".join(f"{statistics.median(values) * 1e6:.2f} us" for values in times.values())
        _, theirs, *ours = times.values()
        ratios = [statistics.median(one / other for one, other in zip(theirs, own, strict=True)) for own in ours]
        lines.append(f"| {name} | {shown} | {ratios[0]:.1f} | {ratios[1]:.1f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/README.md")
    parser.add_argument("--note", default="", help="what to say of the machine")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = table(options.rounds, Path(folder))
    note = f" {options.note}" if options.note else ""
    text = f"{describe(options.rounds)} Peer: datasets {datasets.__version__}.{note}\n\n" + "\n".join(lines)
    print(text)
    if options.write:
        write_between("benchmarks/README.md", "benchmarks/stream_sources.py", text)


if __name__ == "__main__":
    main()
