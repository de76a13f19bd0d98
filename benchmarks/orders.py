"""The time of an epoch of each order and of a peer with the same law, both as lists of ints, as a loader gets them.

    python benchmarks/orders.py                 print the table: N = 50,000, B = 64 (about a minute)
    python benchmarks/orders.py --large         N = 1,000,000, B = 256
    python benchmarks/orders.py --write         also write it to benchmarks/README.md

Ours and the peer alternate for `--rounds` epochs in one run. Times are processor times of one thread. Ratios compare
neighbouring epochs, so they hold on a busy machine. Installed peers are imported. The others are reimplemented here
after their documentation and source, and the table marks them.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from pages import write_between
from sklearn.model_selection import StratifiedKFold
from torch.utils.data import BatchSampler, RandomSampler, WeightedRandomSampler

from replenish import Order
from replenish.lab.machine import commit, processor
from replenish.orders import build_order
from replenish.torch import OrderBatchSampler

Batches = Iterable[list[int]]
CLASSES, REPEATS, SHARDS, BUFFER, SHARDS_PER_WINDOW = 10, 3, 50, 1000, 10


class Case:
    """Sizes and facts about the data, shared by our order and its peer."""

    def __init__(self, num_samples: int, batch_size: int) -> None:
        facts = np.random.default_rng(0)
        self.samples, self.size = num_samples, batch_size
        self.steps = -(-num_samples // batch_size)
        self.labels = facts.integers(0, CLASSES, num_samples)
        self.weights = facts.random(num_samples)
        self.lengths = facts.integers(1, 512, num_samples)
        self.shard = num_samples // SHARDS

    def in_batches(self, indices: Iterable[int]) -> Batches:
        """Cut indices into lists, as a DataLoader does."""
        return BatchSampler(indices, self.size, drop_last=False)  # type: ignore[arg-type]


def reshuffling(case: Case) -> Batches:
    return case.in_batches(RandomSampler(range(case.samples)))


def weighted(case: Case) -> Batches:
    return case.in_batches(WeightedRandomSampler(case.weights.tolist(), case.samples))


def shuffle_buffer(case: Case) -> Batches:
    """tf.data's `shuffle`: yield a random sample of the buffer, put the next one in its place; at the end, the rest."""

    def drawn() -> Iterator[int]:
        read, buffer = iter(range(case.samples)), []
        for sample in read:
            if len(buffer) < BUFFER:
                buffer.append(sample)
                continue
            slot = random.randrange(BUFFER)
            yield buffer[slot]
            buffer[slot] = sample
        random.shuffle(buffer)
        yield from buffer

    return case.in_batches(drawn())


def endless_buffer(case: Case) -> Batches:
    """tf.data's `repeat` before `shuffle`, with a buffer of N and a new permutation per round, far into a run."""

    def drawn() -> Iterator[int]:
        buffer = torch.randperm(case.samples).tolist()
        for sample in torch.randperm(case.samples).tolist():
            slot = random.randrange(case.samples)
            yield buffer[slot]
            buffer[slot] = sample

    return case.in_batches(drawn())


def poisson(case: Case) -> Batches:
    """Opacus' UniformWithReplacementSampler: at every step, a uniform random number for every sample."""
    for _ in range(case.steps):
        chosen = torch.rand(case.samples) < case.size / case.samples
        yield chosen.nonzero(as_tuple=False).reshape(-1).tolist()


def balls_in_bins(case: Case) -> Batches:
    """Put every sample into a batch that is drawn for it."""
    bins: list[list[int]] = [[] for _ in range(case.steps)]
    for sample, number in enumerate(torch.randint(case.steps, (case.samples,)).tolist()):
        bins[number].append(sample)
    return bins


def stratified(case: Case) -> Batches:
    """scikit-learn's folds as batches, the usual way to make stratified batches."""
    folds = StratifiedKFold(n_splits=case.steps, shuffle=True).split(np.zeros(case.samples), case.labels)
    for _, fold in folds:
        yield fold.tolist()


def repeated(case: Case) -> Batches:
    """DeiT's RASampler on one process: a permutation with each index repeated three times, cut to N indices."""
    indices = torch.repeat_interleave(torch.randperm(case.samples), REPEATS).tolist()
    return case.in_batches(indices[: case.samples])


def length_grouped(case: Case) -> Batches:
    try:
        from transformers.trainer_pt_utils import LengthGroupedSampler
    except ImportError:
        return case.in_batches(_grouped(case))
    return case.in_batches(LengthGroupedSampler(case.size, lengths=case.lengths.tolist()))


def _grouped(case: Case) -> list[int]:
    """The LengthGroupedSampler of transformers: windows of a permutation sorted by length."""
    indices, lengths = torch.randperm(case.samples).tolist(), case.lengths.tolist()
    window = case.size * max(1, min(50, case.samples // (4 * case.size)))
    parts = [indices[first : first + window] for first in range(0, case.samples, window)]
    parts = [sorted(part, key=lambda sample: lengths[sample], reverse=True) for part in parts]
    return [sample for part in parts for sample in part]


def _shards(case: Case, generator: np.random.Generator) -> np.ndarray:
    spans = [np.arange(first, first + case.shard) for first in range(0, case.samples, case.shard)]
    generator.shuffle(spans)  # type: ignore[arg-type]
    return np.concatenate(spans)[: case.samples]


def block_shuffle(case: Case) -> Batches:
    """mosaicml/streaming's py1b on one canonical node: shuffle shards, then the samples of each window."""
    generator = np.random.default_rng()
    samples, window = _shards(case, generator), SHARDS_PER_WINDOW * case.shard
    for first in range(0, case.samples, window):
        generator.shuffle(samples[first : first + window])
    return case.in_batches(samples.tolist())


def jitter(case: Case) -> Batches:
    """mosaicml/streaming's py1e on one canonical node: shuffle shards, shuffle within them, then move each sample."""
    generator = np.random.default_rng()
    samples, window = _shards(case, generator), SHARDS_PER_WINDOW * case.shard
    places = np.arange(case.samples, dtype=np.float64)
    for first in range(0, case.samples, case.shard):
        last = min(first + case.shard, case.samples)
        generator.shuffle(samples[first:last])
        reach = (generator.integers(int(0.75 * window), int(1.25 * window)) - case.shard) / 2
        places[first:last] += generator.uniform(max(-reach, -first), min(reach, case.samples - last), last - first)
    return case.in_batches(samples[np.argsort(places)].tolist())


ROWS: list[tuple[str, str, dict[str, object], Callable[[Case], Batches], str]] = [
    ("shuffle-buffer", "a Python shuffle buffer *", {"buffer_size": BUFFER}, shuffle_buffer, ""),
    ("srs", "the same over an endless stream *", {"sequence": "reshuffled"}, endless_buffer, ', sequence="reshuffled"'),
    ("block-shuffle", "streaming's `py1b` *", {"shard_size": "shard"}, block_shuffle, ""),
    ("jitter", "streaming's `py1e` *", {"shard_size": "shard"}, jitter, ""),
    ("poisson", "Opacus' `UniformWithReplacementSampler` *", {}, poisson, ""),
    ("balls-in-bins", "lists that samples are put into *", {}, balls_in_bins, ""),
    ("stratified", "scikit-learn's `StratifiedKFold`", {"labels": "labels"}, stratified, ""),
    ("weighted", "torch's `WeightedRandomSampler`", {"weights": "weights"}, weighted, ""),
    ("repeated", "DeiT's `RASampler` *", {"repeats": REPEATS}, repeated, ""),
    ("length-grouped", "transformers' `LengthGroupedSampler`", {"lengths": "lengths"}, length_grouped, ""),
    ("paired-reversal", "torch's `RandomSampler`", {}, reshuffling, ""),
    ("block-reshuffling", "torch's `RandomSampler`", {}, reshuffling, ""),
]


def seconds(batches: Callable[[], Batches]) -> float:
    start = time.process_time()
    for _ in batches():
        pass
    return time.process_time() - start


def compared(order: Order, peer: Callable[[], Batches], rounds: int) -> tuple[float, float, float]:
    """Return (ours, peer's, ratio): the median seconds of an epoch, and the median of peer's / ours by rounds."""
    sampler = OrderBatchSampler(order)
    next(iter(sampler))  # builds the tables that are kept
    sampler.seek(0)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(seconds(lambda: sampler))
        theirs.append(seconds(peer))
    ratios = [other / own for own, other in zip(ours, theirs, strict=True)]
    return statistics.median(ours), statistics.median(theirs), statistics.median(ratios)


def table(case: Case, rounds: int) -> str:
    lines = ["| order | peer of the same law | ours | peer | peer / ours |", "|---|---|---|---|---|"]
    for name, peer_name, given, peer, shown in ROWS:
        options = {key: getattr(case, value) if isinstance(value, str) and hasattr(case, value) else value
                   for key, value in given.items()}  # fmt: skip
        order = build_order(name, case.samples, case.size, **options)
        ours, theirs, ratio = compared(order, lambda peer=peer: peer(case), rounds)  # type: ignore[misc]
        each = [f"{1e9 * value / case.samples:,.0f} ns" for value in (ours, theirs)]
        lines.append(f"| `{name}{shown}` | {peer_name} | {each[0]} | {each[1]} | {ratio:,.1f} |")
        print(lines[-1], flush=True)
    note = (
        f"Processor time a sample, N = {case.samples:,}, B = {case.size}, median of n = {rounds} epochs, drawn in "
        f"turn; {processor()}, {os.cpu_count()} cores, one thread; Python {platform.python_version()}, numpy "
        f"{np.__version__}, torch {torch.__version__}; load {os.getloadavg()[0]:.1f}; commit {commit()}.\n\n"
        f"\\* Written anew in `benchmarks/orders.py` after its source, since it is not installed; also "
        f"`LengthGroupedSampler`, where transformers is not."
    )
    return "\n".join(lines) + "\n\n" + note


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="a million samples")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/README.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    case = Case(1_000_000, 256) if options.large else Case(50_000, 64)
    text = table(case, options.rounds)
    print(text.split("\n\n", 1)[1])
    if options.write:
        write_between("benchmarks/README.md", "benchmarks/orders.py", text)


if __name__ == "__main__":
    main()
