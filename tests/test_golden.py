"""What stream v1 draws. A change here is a new stream with a new name, never an edit of these values."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import pytest

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
from replenish.draws import DRAWS_PER_BLOCK, STREAM, KeyedWords, Purpose

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

# The first four indices of the first three batches and of the batch at step 10**6; SHA-256 of the first 500 batches.
GOLDEN: dict[str, tuple[list[list[int]], list[int], str]] = {
    "srs": (
        [[7, 3, 2, 6], [6, 1, 0, 8], [9, 4, 5, 2]],
        [6, 7, 3, 5],
        "5c5377ed14835986",
    ),
    "srs-identity": (
        [[8, 2, 5, 3], [3, 0, 9, 1], [7, 4, 6, 5]],
        [3, 8, 2, 6],
        "c4af18c939c667be",
    ),
    "srs-half-pool": (
        [[8, 3, 4, 6], [2, 7, 1, 5], [1, 0, 8, 3]],
        [3, 6, 4, 4],
        "9720fb0d3ec7be9f",
    ),
    "srs-three-copies": (
        [[2, 7, 2, 1], [8, 4, 9, 8], [9, 4, 3, 1]],
        [5, 1, 5, 9],
        "8afd2be5e9046ba9",
    ),
    "srs-cifar": (
        [[44388, 32919, 4317, 40871], [7155, 23419, 41726, 46860], [12705, 33185, 23220, 26608]],
        [9307, 14420, 615, 40664],
        "08484068239dce3e",
    ),
    "srs-cifar-large-batch": (
        [[26906, 30129, 15828, 20421], [13930, 7171, 12506, 35642], [3630, 11054, 33672, 49699]],
        [16389, 6434, 47301, 43005],
        "4e99bdea00b582ce",
    ),
    "srs-imagenet": (
        [[524762, 864451, 1069512, 174773], [1095078, 179265, 396586, 185749], [470970, 1060222, 846863, 1183125]],
        [107493, 565939, 803686, 774783],
        "6ff23b410d0a7bf9",
    ),
    "srs-weighted": (
        [[4, 2, 1], [4, 2, 3], [2, 1, 3]],
        [4, 3, 4],
        "e9c1c71b7125e25d",
    ),
    "reshuffling": (
        [[6, 0, 2, 8], [4, 1, 9, 3], [7, 5]],
        [1, 9, 7, 4],
        "d72308389fb3a9d8",
    ),
    "shuffle-once": (
        [[6, 0, 2, 8], [4, 1, 9, 3], [7, 5]],
        [4, 1, 9, 3],
        "3e33913c655dcab4",
    ),
    "flip-flop": (
        [[6, 0, 2, 8], [4, 1, 9, 3], [7, 5]],
        [5, 4, 8, 6],
        "63b6e438a150068c",
    ),
    "batched-replacement": (
        [[8, 2, 5, 3], [3, 8, 9, 2], [2, 4, 6, 8]],
        [0, 6, 5, 9],
        "02d71f9ce4e23811",
    ),
    "independent-draws": (
        [[1, 9, 2, 7], [9, 3, 5, 0], [9, 6, 3, 6]],
        [5, 6, 0, 1],
        "a7faf6e5efea7a71",
    ),
}


def digest(order: Order) -> str:
    sha = hashlib.sha256()
    for batch in order.batches(0, 500):
        sha.update(batch.astype("<i8").tobytes())
    return sha.hexdigest()[:16]


@pytest.mark.parametrize("name", list(ORDERS))
def test_streams(name: str) -> None:
    order = ORDERS[name]()
    first, far, sha = GOLDEN[name]
    assert [batch[:4].tolist() for batch in order.batches(0, 3)] == first
    assert order.batch(10**6)[:4].tolist() == far
    assert digest(order) == sha


def test_words() -> None:
    """numpy guarantees the raw stream of its bit generators; if this fails, everything else would too."""
    words = KeyedWords(1, Purpose.EPOCH).at(2).words(3)
    assert words.dtype == np.uint64
    assert words.tolist() == [8522060295706411025, 5118440093117415833, 15351165725290032319]
    assert (STREAM, DRAWS_PER_BLOCK) == ("v1", 16384)
    assert [(purpose.name, purpose.value) for purpose in Purpose] == [
        ("SLOTS", 0),
        ("SEQUENCE", 1),
        ("EPOCH", 2),
        ("INDEPENDENT", 3),
        ("DRAIN", 64),
        ("DERIVED_SEED", 65),
    ]


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


def test_purposes_of_the_lab_are_others() -> None:
    """No two purposes share a number: their words would be the same."""
    from replenish.lab.data.choice import LabPurpose

    assert not {int(purpose) for purpose in Purpose} & {int(purpose) for purpose in LabPurpose}
