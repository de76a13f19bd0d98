"""The table of shuffles: what data loaders really draw, judged by `replenish.diagnostics.shuffle_quality`.

    python benchmarks/shuffles.py                 print the table
    python benchmarks/shuffles.py --write         also write it to docs/shuffles.md
    python benchmarks/shuffles.py --only grain    only rows whose name contains this text
    python benchmarks/shuffles.py --keep FILE     read rows from FILE, add new ones, and write the file again

The table names the packages that are not installed. With `--keep`, several environments fill one table, since some of
the packages conflict; `make shuffles` does this.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import random
import statistics
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from pages import write_between

from replenish import BlockShuffle, Jitter, Order, RandomReshuffling, SequencedReplacement, ShuffleBuffer, ShuffleOnce
from replenish.diagnostics import ShuffleQuality, shuffle_quality
from replenish.lab.machine import commit

N, B, EPOCHS, SEEDS = 50_000, 512, 3, 4
LARGE = 102_400  # draws that are read per epoch if N is larger
SHARD = 1_000

Draw = Callable[[int, int], Any]  # (seed, epoch) -> the first indices of the epoch


@dataclass(frozen=True)
class Shuffle:
    """One row of the table: a shuffle, its call, and whether it is meant to be local."""

    name: str
    package: str
    call: str
    make: Callable[[], Draw]
    num_samples: int = N
    local: bool = False  # not meant to be uniform: a buffer, or windows of shards
    restated: bool = False  # reimplemented from its description, since no release contains it
    kind: str | None = None


def torch_loader() -> Draw:
    import torch
    from torch.utils.data import DataLoader

    @cache
    def epochs(seed: int) -> list[list[int]]:
        generator = torch.Generator().manual_seed(seed)
        loader = DataLoader(range(N), batch_size=B, shuffle=True, generator=generator)
        return [[index for batch in loader.batch_sampler for index in batch] for _ in range(EPOCHS)]

    return lambda seed, epoch: epochs(seed)[epoch]


def torch_distributed() -> Draw:
    from torch.utils.data import DistributedSampler

    def draw(seed: int, epoch: int) -> list[int]:
        sampler = DistributedSampler(range(N), num_replicas=1, rank=0, seed=seed)
        sampler.set_epoch(epoch)
        return list(sampler)

    return draw


def numpy_permutation() -> Draw:
    return lambda seed, epoch: np.random.default_rng([seed, epoch]).permutation(N)


def datasets_map() -> Draw:
    import datasets

    data = datasets.Dataset.from_dict({"index": range(N)})
    return lambda seed, epoch: data.shuffle(seed=1000 * seed + epoch)["index"][:]


def datasets_iterable() -> Draw:
    import datasets

    data = datasets.Dataset.from_dict({"index": range(N)}).to_iterable_dataset(num_shards=N // SHARD)

    def draw(seed: int, epoch: int) -> list[int]:
        shuffled = data.shuffle(seed=seed)
        shuffled.set_epoch(epoch)
        return [item["index"] for item in shuffled]

    return draw


def webdataset_pipeline() -> Draw:
    from webdataset.filters import shuffle

    def draw(seed: int, epoch: int) -> list[int]:
        rng = random.Random(1000 * seed + epoch)
        shards = _filtered(shuffle, range(N // SHARD), 100, rng)
        return list(_filtered(shuffle, (SHARD * shard + each for shard in shards for each in range(SHARD)), 1000, rng))

    return draw


def _filtered(shuffle: Any, items: Any, size: int, rng: random.Random) -> Iterator[int]:
    return shuffle(size, rng=rng)(iter(items))


def tf_data(buffer: int) -> Draw:
    import tensorflow as tf

    @cache
    def epochs(seed: int) -> list[list[int]]:
        data = tf.data.Dataset.range(N).shuffle(buffer, seed=seed, reshuffle_each_iteration=True)
        return [[int(index) for index in data.as_numpy_iterator()] for _ in range(EPOCHS)]

    return lambda seed, epoch: epochs(seed)[epoch]


def grain_dataset(num_samples: int) -> Draw:
    import grain

    def draw(seed: int, epoch: int) -> list[int]:
        data = grain.MapDataset.range(num_samples).seed(seed).shuffle().repeat(EPOCHS)
        start = epoch * num_samples
        return [data[start + place] % num_samples for place in range(min(num_samples, LARGE))]

    return draw


def grain_sampler() -> Draw:
    import grain

    @cache
    def sampler(seed: int) -> Any:
        options = grain.sharding.ShardOptions(shard_index=0, shard_count=1)
        return grain.samplers.IndexSampler(
            num_records=N, shuffle=True, num_epochs=EPOCHS, seed=seed, shard_options=options
        )

    return lambda seed, epoch: [sampler(seed)[epoch * N + place].record_key for place in range(N)]


def grain_rounds(num_samples: int) -> Draw:
    from grain._src.python.experimental.index_shuffle.python import index_shuffle_module

    def draw(seed: int, epoch: int) -> list[int]:
        places = range(min(num_samples, LARGE))
        key = 1000 * seed + epoch
        call = index_shuffle_module.index_shuffle
        return [call(place, max_index=num_samples - 1, seed=key, rounds=8) for place in places]

    return draw


def mosaic(algorithm: str, num_samples: int, shard: int) -> Draw:
    # The package's __init__ imports the clients of every cloud, which its shuffles do not need.
    found = importlib.metadata.distribution("mosaicml-streaming").locate_file("streaming")
    for name in ("streaming", "streaming.base"):
        module = types.ModuleType(name)
        module.__path__ = [str(Path(str(found)).joinpath(*name.split(".")[1:]))]
        sys.modules.setdefault(name, module)
    from streaming.base.shuffle import get_shuffle

    sizes = np.full(num_samples // shard, shard)
    return lambda seed, epoch: get_shuffle(algorithm, sizes, 1, seed, epoch)[:LARGE]


def litdata_streaming() -> Draw:
    import litdata

    folder = tempfile.mkdtemp(prefix="litdata-")
    litdata.optimize(fn=int, inputs=list(range(N)), output_dir=folder, chunk_size=SHARD, num_workers=1)

    def draw(seed: int, epoch: int) -> list[int]:
        data = litdata.StreamingDataset(folder, shuffle=True, seed=seed)
        data.set_epoch(epoch + 1)
        return [int(index) for index in data]

    return draw


def levanter(kind: str, num_samples: int) -> Draw:
    """Levanter's two permutations, reimplemented: a x + b, and five Feistel rounds with an odd multiplier."""

    def draw(seed: int, epoch: int) -> Any:
        rng = np.random.default_rng([seed, epoch])
        places = np.arange(min(num_samples, LARGE))
        if kind == "linear":
            factors = (int(each) for each in rng.integers(1, num_samples, 1000))
            factor = next(each for each in factors if np.gcd(each, num_samples) == 1)
            shift = int(rng.integers(num_samples))
            return np.array([(factor * int(place) + shift) % num_samples for place in places])
        bits = (num_samples - 1).bit_length()
        low = bits - bits // 2
        mask, keys = np.uint64((1 << low) - 1), rng.integers(0, 1 << low, 5, dtype=np.uint64)
        values, outside = places.astype(np.uint64), np.ones(len(places), dtype=np.bool_)
        while outside.any():
            left, right = values[outside] >> np.uint64(low), values[outside] & mask
            for key in keys:
                left, right = right, left ^ ((right * np.uint64(2654435761) + key) & mask)
            values[outside] = (left << np.uint64(low)) | right
            outside = values >= num_samples
        return values.astype(np.int64)

    return draw


def ours(make: Callable[[int], Order]) -> Draw:
    def draw(seed: int, epoch: int) -> Any:
        order = make(seed)
        start = epoch * order.steps_per_epoch
        steps = min(order.steps_per_epoch, LARGE // B)
        return np.concatenate(list(order.batches(start, start + steps)))

    return draw


def rows() -> list[Shuffle]:
    """Return the rows of the table."""
    return [
        Shuffle("torch DataLoader", "torch", "DataLoader(shuffle=True)", torch_loader),
        Shuffle("torch DistributedSampler", "torch", "DistributedSampler, set_epoch", torch_distributed),
        Shuffle("numpy", "numpy", "Generator.permutation", numpy_permutation),
        Shuffle("Hugging Face Dataset", "datasets", "Dataset.shuffle", datasets_map),
        Shuffle("Hugging Face IterableDataset", "datasets", "shuffle(), 50 shards", datasets_iterable, local=True),
        Shuffle("WebDataset", "webdataset", "50 shards: shuffle(100), shuffle(1000)", webdataset_pipeline, local=True),
        *(_tf_data(size) for size in (10_000, N)),
        Shuffle("grain IndexSampler", "grain", "IndexSampler(shuffle=True)", grain_sampler),
        *(_grain("MapDataset.shuffle()", grain_dataset, number) for number in (N, 10**6, 10**9, 3 * 10**9)),
        *(_grain("index_shuffle(rounds=8)", grain_rounds, number) for number in (N, 10**9, 3 * 10**9)),
        *(_mosaic(name, N, SHARD) for name in ("naive", "py1br", "py1e")),
        *(_mosaic(name, N, SHARD, local=True) for name in ("py2s", "py1s")),
        *(_mosaic(name, 2_000_000, 10_000, local=True) for name in ("py1br", "py1e")),
        Shuffle("litdata", "litdata", "StreamingDataset(shuffle=True), chunks of 1,000", litdata_streaming, local=True),
        *(_levanter(kind, number) for kind in ("feistel", "linear") for number in (N, 2**20)),
        _ours(RandomReshuffling),
        *(_ours(RandomReshuffling, number, computed=True) for number in (N, 3 * 10**9)),
        _ours(SequencedReplacement, kind="replacement"),
        _ours(ShuffleOnce, kind="related epochs"),
        _ours(ShuffleBuffer, local=True, buffer_size=10_000),
        _ours(BlockShuffle, local=True, shard_size=SHARD),
        _ours(Jitter, local=True, shard_size=SHARD),
    ]


def _tf_data(size: int) -> Shuffle:
    return Shuffle("tf.data", "tensorflow-cpu", f"shuffle({size})", lambda: tf_data(size), local=size < N)


def _grain(call: str, make: Callable[[int], Draw], number: int) -> Shuffle:
    return Shuffle("grain", "grain", call, lambda: make(number), number)


def _mosaic(algorithm: str, number: int, shard: int, *, local: bool = False) -> Shuffle:
    call = f"get_shuffle('{algorithm}'), shards of {shard:,}"
    return Shuffle(
        "Mosaic streaming", "mosaicml-streaming", call, lambda: mosaic(algorithm, number, shard), number, local
    )


def _levanter(kind: str, number: int) -> Shuffle:
    call = {"feistel": "5 Feistel rounds", "linear": "a x + b modulo N"}[kind]
    return Shuffle(f"Levanter {kind}", "levanter", call, lambda: levanter(kind, number), number, restated=True)


def _ours(
    order: Callable[..., Order], number: int = N, *, local: bool = False, kind: str | None = None, **options: Any
) -> Shuffle:
    shown = ", ".join(f"{name}={value}" for name, value in options.items())
    make = partial(order, number, B, **options)
    call = f"{order.__name__}({shown})"
    return Shuffle("Replenish", "replenish", call, lambda: ours(lambda seed: make(seed=seed)), number, local, kind=kind)


def judge(row: Shuffle, draw: Draw, seed: int) -> ShuffleQuality:
    """Return the battery's answer for one seed, compared with another seed."""

    def stream(key: int) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
        for epoch in range(EPOCHS):
            indices = np.asarray(draw(key, epoch), dtype=np.int64)
            if row.num_samples > N:
                indices = indices[: len(indices) // B * B]
            yield from (indices[start : start + B] for start in range(0, len(indices), B))

    steps = -(-N // B) if row.num_samples == N else LARGE // B
    # Seeds far apart: some libraries add the epoch to the seed, so neighbouring seeds would share epochs.
    one, other = 1000 * seed, 1000 * (seed + SEEDS)
    return shuffle_quality(stream(one), row.num_samples, steps_per_epoch=steps, kind=row.kind, other_seed=stream(other))


def measure(row: Shuffle) -> dict[str, Any]:
    """Return the results of a row over all seeds."""
    draw = row.make()
    found = [judge(row, draw, seed) for seed in range(SEEDS)]
    spreads = [each["batch mean"].effect or 0.0 for each in found]
    others: dict[str, list[float]] = {}
    ps: dict[str, float] = {}
    for each in found:
        for finding in each.findings:
            if finding.level != "ok":
                others.setdefault(finding.name, []).append(abs(finding.effect or 0.0))
                ps[finding.name] = max(ps.get(finding.name, 0.0), finding.p or 0.0)
    version = importlib.metadata.version(row.package) if not row.restated else "restated"
    return {
        "name": row.name,
        "call": row.call,
        "version": version,
        "num_samples": row.num_samples,
        "draws": found[0].draws,
        "local": row.local,
        "levels": dict(Counter(each.level for each in found)),
        "spread": spreads,
        "p": [each["batch mean"].p for each in found],
        "findings": {name: [statistics.median(effects), len(effects), ps[name]] for name, effects in others.items()},
    }


def line(result: dict[str, Any]) -> str:
    """Return a row of the Markdown table."""
    spread = result["spread"]
    error = statistics.stdev(spread) / len(spread) ** 0.5
    levels = ", ".join(f"{level} {times}/{SEEDS}" for level, times in result["levels"].items())
    name = ("local: " if result["local"] else "") + result["name"]
    mean = statistics.mean(spread)
    digits = f"{mean:.2f} ± {error:.2f}" if mean < 10 else f"{mean:.0f} ± {error:.0f}"
    return (
        f"| {name} {result['version']} | `{result['call']}` | {result['num_samples']:,} | {digits} | {levels} | "
        f"{len(result['findings'])} |"
    )


def main() -> None:
    """Measure and print the rows; with --write, also write the table to docs/shuffles.md."""
    options = argparse.ArgumentParser()
    options.add_argument("--write", action="store_true")
    options.add_argument("--only", default="")
    options.add_argument("--keep", type=Path)
    chosen = options.parse_args()
    kept: dict[str, Any] = {}
    if chosen.keep and chosen.keep.exists():
        kept = json.loads(chosen.keep.read_text())
    missing = {}
    for row in rows():
        key = f"{row.name}|{row.call}|{row.num_samples}"
        if chosen.only in key:
            try:
                kept[key] = measure(row)
            except ImportError as error:
                missing[row.name] = str(error)
                continue
            print(line(kept[key]), flush=True)
            if chosen.keep:
                chosen.keep.write_text(json.dumps(kept, indent=1))
    ordered = [kept[key] for row in rows() if (key := f"{row.name}|{row.call}|{row.num_samples}") in kept]
    heads = "shuffle|call|N|variance of a batch's mean index|judgement|findings not ok"
    text = "\n".join([f"| {heads.replace('|', ' | ')} |", "|---|---|---:|---:|---|---:|", *map(line, ordered)])
    absent = [row.name for row in rows() if f"{row.name}|{row.call}|{row.num_samples}" not in kept]
    text += (
        f"\n\n{SEEDS} seeds per row, each with {EPOCHS} epochs in batches of {B}, and as many of another seed to "
        f"compare with; at N above {N:,} the first {LARGE:,} draws of an epoch. The variance is the mean over seeds "
        f"and its standard error, as a ratio to a uniform shuffle. Measured at commit {commit()} by `make shuffles`."
    )
    if absent:
        text += f" Not measured: {', '.join(sorted(set(absent)))}."
    if missing:
        print("could not run:", missing, file=sys.stderr)
    print(text)
    if chosen.write:
        write_between("docs/shuffles.md", "shuffles", text)


if __name__ == "__main__":
    main()
