"""The draws of stream v1. A change needs a new stream with a new name; golden values are never edited."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_vectors import GOLDEN, GOLDEN_FILE

from replenish import (
    BallsInBins,
    BatchedReplacement,
    BlockReshuffling,
    BlockShuffle,
    FlipFlop,
    IndependentDraws,
    Jitter,
    LengthGrouped,
    Order,
    PairedReversal,
    PoissonDraws,
    RandomReshuffling,
    RepeatedAugmentation,
    SequencedReplacement,
    ShuffleBuffer,
    ShuffleOnce,
    Stratified,
    WeightedDraws,
    weighted_sequence,
)
from replenish.draws import DRAWS_PER_BLOCK, STREAM, KeyedWords, Purpose, derived_seed
from replenish.orders import ORDERS as REGISTERED
from replenish.orders.random_batch_sizes import binomial_limits
from replenish.orders.replacement import on_a_line
from replenish.stream.window import drain_order, seed_of_part

MORE_FILE = GOLDEN_FILE.with_name("v1_more.json")
MORE: dict[str, Any] = json.loads(MORE_FILE.read_text())

#: The orders of v1.json.
FIRST: dict[str, Callable[[], Order]] = {
    "srs": lambda: SequencedReplacement(10, 4, seed=3),
    "srs-identity": lambda: SequencedReplacement(10, 4, seed=3, sequence="identity"),
    "srs-half-pool": lambda: SequencedReplacement(10, 4, seed=3, pool_size=5),
    "srs-three-copies": lambda: SequencedReplacement(10, 4, seed=3, pool_size=30),
    "srs-cifar": lambda: SequencedReplacement(50_000, 64),
    "srs-cifar-large-batch": lambda: SequencedReplacement(50_000, 1024, seed=2**63 - 1),
    "srs-imagenet": lambda: SequencedReplacement(1_281_167, 256, seed=1),
    "srs-weighted": lambda: SequencedReplacement(
        5, 3, seed=3, pool_size=8, sequence=weighted_sequence([1, 2, 3, 4, 5], 30)
    ),
    "reshuffling": lambda: RandomReshuffling(10, 4, seed=3),
    "shuffle-once": lambda: ShuffleOnce(10, 4, seed=3),
    "flip-flop": lambda: FlipFlop(10, 4, seed=3),
    "batched-replacement": lambda: BatchedReplacement(10, 4, seed=3),
    "independent-draws": lambda: IndependentDraws(10, 4, seed=3),
}

SMALL: dict[str, Any] = {"num_samples": 10, "batch_size": 4, "seed": 3}
CIFAR: dict[str, Any] = {"num_samples": 50_000, "batch_size": 64}
LABELS = np.arange(50_000) * 7 % 100
LENGTHS = 20 + np.arange(50_000) * 7919 % 481

#: The orders of v1_more.json.
LATER: dict[str, Callable[[], Order]] = {
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


def digest_of_500(order: Order) -> str:
    sha = hashlib.sha256()
    for batch in order.batches(0, 500):
        sha.update(batch.astype("<i8").tobytes())
    return sha.hexdigest()[:16]


def digest_of_900(order: Order) -> str:
    """Return a digest with the size of every batch, since sizes may be random."""
    sha = hashlib.sha256()
    for batch in order.batches(0, 900):  # more than an epoch of each
        sha.update(len(batch).to_bytes(8, "little") + batch.astype("<i8").tobytes())
    return sha.hexdigest()[:16]


@pytest.mark.parametrize(
    ("file", "sha256"),
    [
        (GOLDEN_FILE, "19f122a90f92d13e2a590b6a9fddfe491748db0a1dbba72fdabb55a78fb98668"),
        (MORE_FILE, "d894b14fbacb20ffc2f57ce6f4708c6b599d7b62baafccfc5c63e9c623e74363"),
    ],
    ids=["first", "later"],
)
def test_the_golden_files_are_the_published_ones(file: Path, sha256: str) -> None:
    """Only an added vector may change a hash, which makes the change visible in a review."""
    assert hashlib.sha256(file.read_bytes()).hexdigest() == sha256


@pytest.mark.parametrize("name", list(FIRST))
def test_streams_of_the_first_orders(name: str) -> None:
    order, golden = FIRST[name](), GOLDEN["orders"][name]
    # The first four indices of each batch.
    assert [batch[:4].tolist() for batch in order.batches(0, 3)] == golden["first_batches"]
    assert order.batch(10**6)[:4].tolist() == golden["batch_at_a_million"]
    assert digest_of_500(order) == golden["sha256_of_500"]


@pytest.mark.parametrize("name", list(LATER))
def test_streams_of_later_orders(name: str) -> None:
    order, golden = LATER[name](), MORE["orders"][name]
    assert [batch[:6].tolist() for batch in order.batches(0, 3)] == golden["first_batches"]
    assert order.batch(10**6)[:6].tolist() == golden["batch_at_a_million"]
    assert digest_of_900(order) == golden["sha256_of_900"]


def test_every_golden_order_is_tested_and_every_order_is_golden() -> None:
    assert set(FIRST) == set(GOLDEN["orders"])
    assert set(LATER) == set(MORE["orders"])
    first_six = {"srs", "reshuffling", "replacement", "independent", "shuffle-once", "flip-flop"}
    assert set(REGISTERED) - first_six <= set(LATER)


def test_words() -> None:
    """numpy guarantees the raw stream of its bit generators. If this fails, everything else does too."""
    words = KeyedWords(1, Purpose.EPOCH).at(2).words(3)
    assert words.dtype == np.uint64
    assert words.tolist() == GOLDEN["words_of_seed_1_epoch_2"]
    assert (GOLDEN["stream"], GOLDEN["draws_per_block"]) == (STREAM, DRAWS_PER_BLOCK)


def test_purposes_keep_their_numbers() -> None:
    numbers = {purpose.name: purpose.value for purpose in Purpose}
    assert GOLDEN["purposes"].items() <= numbers.items()
    assert MORE["purposes"].items() <= numbers.items()


def test_the_purposes_of_the_lab_have_other_numbers() -> None:
    """Two purposes with the same number would draw the same words."""
    from replenish.lab.data.smaller_dataset import LabPurpose

    assert not {int(purpose) for purpose in Purpose} & {int(purpose) for purpose in LabPurpose}


def test_derived_seeds() -> None:
    derived = {
        "1": derived_seed(7, 1),
        "2": derived_seed(7, 2),
        "augmentation": derived_seed(7, "augmentation"),
        "augmentation 3": derived_seed(7, "augmentation", 3),
    }
    assert derived == GOLDEN["derived_seeds_of_7"]


def test_streams_of_items() -> None:
    assert drain_order(seed=7, length=10, left=6) == GOLDEN["drain_of_seed_7_length_10_left_6"]
    assert [seed_of_part(7, index) for index in range(3)] == GOLDEN["seeds_of_parts_of_7"]


def test_configs() -> None:
    """A state identifies its order by the config, so configs are as fixed as the stream."""
    assert SequencedReplacement(10, 4, seed=3).config() == {
        "order": "SequencedReplacement",
        "stream": "v1",
        "num_samples": 10,
        "batch_size": 4,
        "seed": 3,
        "pool_size": 10,
        "sequence": "shuffled",
        "sequence_length": 10,
    }
    assert {name: make().config() for name, make in LATER.items()} == MORE["configs"]


def test_tables_are_the_same_on_every_machine() -> None:
    least, limits = binomial_limits(50_000, 64)
    sha = hashlib.sha256(limits.astype("<u8").tobytes()).hexdigest()[:16]
    assert [least, len(limits), sha] == MORE["binomial_limits_of_50000_64"]
    lengths = on_a_line(1 / (1 + np.arange(50_000)))
    assert hashlib.sha256(lengths.astype("<i8").tobytes()).hexdigest()[:16] == MORE["line_of_inverse_ranks"]
