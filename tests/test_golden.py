"""The draws of stream v1. A change needs a new stream with a new name; golden values are never edited."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import pytest
from golden_vectors import GOLDEN, GOLDEN_FILE

from replenish import (
    BatchedReplacement,
    FlipFlop,
    IndependentDraws,
    Order,
    RandomReshuffling,
    SequencedReplacement,
    ShuffleOnce,
    weighted_sequence,
)
from replenish.draws import DRAWS_PER_BLOCK, STREAM, KeyedWords, Purpose, derived_seed
from replenish.stream.window import drain_order, seed_of_part

ORDERS: dict[str, Callable[[], Order]] = {
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


def digest(order: Order) -> str:
    sha = hashlib.sha256()
    for batch in order.batches(0, 500):
        sha.update(batch.astype("<i8").tobytes())
    return sha.hexdigest()[:16]


def test_the_golden_file_is_the_one_that_was_published() -> None:
    """Only an added vector may change this hash, which makes the change visible in a review."""
    found = hashlib.sha256(GOLDEN_FILE.read_bytes()).hexdigest()
    assert found == "19f122a90f92d13e2a590b6a9fddfe491748db0a1dbba72fdabb55a78fb98668"


@pytest.mark.parametrize("name", list(ORDERS))
def test_streams(name: str) -> None:
    order, golden = ORDERS[name](), GOLDEN["orders"][name]
    # The first four indices of each batch.
    assert [batch[:4].tolist() for batch in order.batches(0, 3)] == golden["first_batches"]
    assert order.batch(10**6)[:4].tolist() == golden["batch_at_a_million"]
    assert digest(order) == golden["sha256_of_500"]


def test_every_golden_order_is_tested() -> None:
    assert set(ORDERS) == set(GOLDEN["orders"])


def test_words() -> None:
    """numpy guarantees the raw stream of its bit generators. If this fails, everything else does too."""
    words = KeyedWords(1, Purpose.EPOCH).at(2).words(3)
    assert words.dtype == np.uint64
    assert words.tolist() == GOLDEN["words_of_seed_1_epoch_2"]
    assert (GOLDEN["stream"], GOLDEN["draws_per_block"]) == (STREAM, DRAWS_PER_BLOCK)


def test_purposes_keep_their_numbers() -> None:
    assert GOLDEN["purposes"].items() <= {purpose.name: purpose.value for purpose in Purpose}.items()


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


def test_config_names_the_stream() -> None:
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


def test_the_purposes_of_the_lab_have_other_numbers() -> None:
    """Two purposes with the same number would draw the same words."""
    from replenish.lab.data.smaller_dataset import LabPurpose

    assert not {int(purpose) for purpose in Purpose} & {int(purpose) for purpose in LabPurpose}
