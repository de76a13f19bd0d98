"""A folder of WebDataset .tar shards through a pool, resumed in the middle at the exact batch.

    pip install webdataset
    python examples/stream_webdataset.py

The example writes 6 shards with 200 samples each, sorted by class, to a temporary folder. `webdataset` opens and
decodes a shard, and the pool chooses the samples of a batch. The number of samples in each shard is known (WebDataset
folders often have it in a JSON file), so the stream can begin at any sample without opening the shards before it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import webdataset

from replenish.stream import PooledStream, Shards

PER_SHARD = 200


def write_shards(folder: Path, count: int = 6) -> None:
    sizes = {f"{number:03}.tar": PER_SHARD for number in range(count)}
    for number in range(count):
        with (folder / f"{number:03}.tar").open("wb") as file, webdataset.TarWriter(file) as shard:
            for place in range(PER_SHARD):
                shard.write({"__key__": f"{number:03}{place:06}", "txt": f"sample {place}", "cls": number})
    (folder / "sizes.json").write_text(json.dumps(sizes))


def shards(folder: Path) -> Shards[str, dict[str, Any]]:
    sizes = json.loads((folder / "sizes.json").read_text())
    return Shards([str(folder / shard) for shard in sizes], samples, lengths=list(sizes.values()))


def samples(shard: str) -> Iterator[dict[str, Any]]:
    """Yield the decoded samples of one shard, in the order of the shard.

    `WebDataset(shard)` would divide the shards again among the workers of a DataLoader.
    """
    yield from webdataset.DataPipeline(
        webdataset.SimpleShardList([shard]), webdataset.tarfile_to_samples(), webdataset.decode()
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_shards(folder)
        source = shards(folder)

        def stream() -> PooledStream[dict[str, Any]]:
            return PooledStream(source, batch_size=32, pool_size=500, repeat=False)

        batches, seen, state = stream(), [], {}
        for batch in batches:
            seen.append([sample["__key__"] for sample in batch])
            if batches.step == 20:
                state = batches.state_dict()
                print("classes in batch 20:", sorted(sample["cls"] for sample in batch))
        keys = [key for batch in seen for key in batch]
        assert len(keys) == len(set(keys)) == source.length  # every sample exactly once

        resumed = stream()
        resumed.load_state_dict(state)
        assert [[sample["__key__"] for sample in batch] for batch in resumed] == seen[20:]
        print(f"{len(keys)} samples in {len(seen)} batches; resumed at batch 20 from {state}")


if __name__ == "__main__":
    main()
