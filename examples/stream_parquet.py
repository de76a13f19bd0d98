"""Parquet files streamed by Hugging Face `datasets` through a pool, resumed in the middle at the exact batch.

    pip install datasets
    python examples/stream_parquet.py

The example writes 5 files with 300 rows each, sorted by label, to a temporary folder. A file is a shard. Its footer has
the number of its rows, so the stream can begin at any row without reading the files before it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow
import pyarrow.parquet

from replenish.stream import PooledStream, Shards


def write_files(folder: Path, count: int = 5, rows: int = 300) -> list[str]:
    for number in range(count):
        table = pyarrow.table({"id": range(number * rows, (number + 1) * rows), "label": [number] * rows})
        pyarrow.parquet.write_table(table, folder / f"{number}.parquet")
    return sorted(map(str, folder.glob("*.parquet")))


def shards(files: list[str]) -> Shards[str, dict[str, Any]]:
    return Shards(files, rows, lengths=[pyarrow.parquet.read_metadata(file).num_rows for file in files])


def rows(file: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of one file.

    It uses `iter`, since a loop over the dataset would divide the file again among the workers of a DataLoader.
    """
    dataset = datasets.load_dataset(
        "parquet", data_files=[file], split="train", streaming=True, cache_dir=str(Path(file).parent / "cache")
    )
    for columns in dataset.iter(batch_size=100):
        for values in zip(*columns.values(), strict=True):
            yield dict(zip(columns, values, strict=True))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        source = shards(write_files(Path(name)))

        def stream() -> PooledStream[dict[str, Any]]:
            return PooledStream(source, batch_size=32, pool_size=600)

        batches = stream()
        for _ in range(60):  # more than a pass
            batch = next(batches)
        print("labels in batch 59:", sorted(row["label"] for row in batch))
        state = batches.state_dict()
        resumed = stream()
        resumed.load_state_dict(state)
        assert [next(resumed) for _ in range(20)] == [next(batches) for _ in range(20)]
        print("resumed from", state)


if __name__ == "__main__":
    main()
