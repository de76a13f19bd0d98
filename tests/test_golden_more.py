"""The draws of stream v1 for the orders after the first six. These vectors are never edited either."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from replenish import (
    BallsInBins,
    BlockReshuffling,
    BlockShuffle,
    Jitter,
    LengthGrouped,
    Order,
    PairedReversal,
    PoissonDraws,
    RepeatedAugmentation,
    SequencedReplacement,
    ShuffleBuffer,
    Stratified,
    WeightedDraws,
)
from replenish.draws import Purpose
from replenish.orders import ORDERS as LISTED
from replenish.orders.random_batch_sizes import binomial_limits
from replenish.orders.replacement import on_a_line

GOLDEN_FILE = Path(__file__).parent / "golden" / "v1_more.json"
GOLDEN: dict[str, Any] = json.loads(GOLDEN_FILE.read_text())

SMALL: dict[str, Any] = {"num_samples": 10, "batch_size": 4, "seed": 3}
CIFAR: dict[str, Any] = {"num_samples": 50_000, "batch_size": 64}
LABELS = np.arange(50_000) * 7 % 100
LENGTHS = 20 + np.arange(50_000) * 7919 % 481

ORDERS: dict[str, Callable[[], Order]] = {
    "srs-reshuffled": lambda: SequencedReplacement(**SMALL, sequence="reshuffled"),
    "srs-reshuffled-cifar": lambda: SequencedReplacement(**CIFAR, sequence="reshuffled"),
    "shuffle-buffer": lambda: ShuffleBuffer(**SMALL, buffer_size=3),
    "shuffle-buffer-cifar": lambda: ShuffleBuffer(**CIFAR, shard_size=1000),
    "block-shuffle": lambda: BlockShuffle(**SMALL, shard_size=[3, 2, 5], window=4),
    "block-shuffle-cifar": lambda: BlockShuffle(**CIFAR, shard_size=1000, window=8192, staggered=True),
    "jitter": lambda: Jitter(**SMALL, shard_size=2, window=6),
    "jitter-cifar": lambda: Jitter(**CIFAR, shard_size=1000),
    "poisson": lambda: PoissonDraws(**SMALL),
    "poisson-most": lambda: PoissonDraws(10, 7, seed=3),
    "poisson-cifar": lambda: PoissonDraws(**CIFAR),
    "balls-in-bins": lambda: BallsInBins(**SMALL),
    "balls-in-bins-cifar": lambda: BallsInBins(**CIFAR),
    "stratified": lambda: Stratified(**SMALL, labels=[0, 0, 0, 0, 0, 0, 1, 1, 1, 5]),
    "stratified-cifar": lambda: Stratified(**CIFAR, labels=LABELS),
    "stratified-srs-balanced": lambda: Stratified(**CIFAR, labels=LABELS // 9, weights="balanced", within="srs"),
    "stratified-weights": lambda: Stratified(**CIFAR, labels=LABELS // 25, weights=[0.1, 0.2, 0.3, 0.4]),
    "weighted": lambda: WeightedDraws(**SMALL, weights=range(10)),
    "weighted-cifar": lambda: WeightedDraws(**CIFAR, weights=1 / (1 + np.arange(50_000))),
    "repeated": lambda: RepeatedAugmentation(**SMALL),
    "repeated-cifar": lambda: RepeatedAugmentation(**CIFAR, repeats=3, drop_last=True),
    "length-grouped": lambda: LengthGrouped(**SMALL, lengths=[5, 1, 4, 4, 2, 9, 7, 1, 3, 8], window=2),
    "length-grouped-cifar": lambda: LengthGrouped(**CIFAR, lengths=LENGTHS, shuffle_batches=False),
    "paired-reversal": lambda: PairedReversal(**SMALL, block_size=3),
    "block-reshuffling": lambda: BlockReshuffling(**SMALL, block_size=3),
    "block-reshuffling-cifar": lambda: BlockReshuffling(**CIFAR),
}


def digest(order: Order) -> str:
    """Return a digest like that of the first six, but with the size of every batch, since sizes may be random."""
    sha = hashlib.sha256()
    for batch in order.batches(0, 900):  # more than an epoch of each
        sha.update(len(batch).to_bytes(8, "little") + batch.astype("<i8").tobytes())
    return sha.hexdigest()[:16]


def drawn(order: Order) -> dict[str, Any]:
    return {
        "first_batches": [batch[:6].tolist() for batch in order.batches(0, 3)],
        "batch_at_a_million": order.batch(10**6)[:6].tolist(),
        "sha256_of_900": digest(order),
    }


def test_the_golden_file_is_the_one_that_was_published() -> None:
    """Only an added vector may change this hash, which makes the change visible in a review."""
    found = hashlib.sha256(GOLDEN_FILE.read_bytes()).hexdigest()
    assert found == "d894b14fbacb20ffc2f57ce6f4708c6b599d7b62baafccfc5c63e9c623e74363"


@pytest.mark.parametrize("name", list(ORDERS))
def test_streams(name: str) -> None:
    assert drawn(ORDERS[name]()) == GOLDEN["orders"][name]


def test_every_golden_order_is_tested_and_every_order_is_golden() -> None:
    assert set(ORDERS) == set(GOLDEN["orders"])
    first_six = {"srs", "reshuffling", "replacement", "independent", "shuffle-once", "flip-flop"}
    assert set(LISTED) - first_six <= set(ORDERS)


def test_configs() -> None:
    """A state identifies its order by the config, so configs are as fixed as the stream."""
    assert {name: make().config() for name, make in ORDERS.items()} == GOLDEN["configs"]


def test_purposes_keep_their_numbers() -> None:
    assert GOLDEN["purposes"].items() <= {purpose.name: purpose.value for purpose in Purpose}.items()


def test_tables_are_the_same_on_every_machine() -> None:
    least, limits = binomial_limits(50_000, 64)
    sha = hashlib.sha256(limits.astype("<u8").tobytes()).hexdigest()[:16]
    assert [least, len(limits), sha] == GOLDEN["binomial_limits_of_50000_64"]
    lengths = on_a_line(1 / (1 + np.arange(50_000)))
    assert hashlib.sha256(lengths.astype("<i8").tobytes()).hexdigest()[:16] == GOLDEN["line_of_inverse_ranks"]
