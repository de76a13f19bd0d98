"""Computed permutations are bijections of any size, uniform and frozen; listed ones need little memory."""

from __future__ import annotations

import copy
import tracemalloc

import numpy as np
import pytest

from replenish import Mixture, RandomReshuffling, state
from replenish.diagnostics import shuffle_quality
from replenish.draws import KeyedWords, Purpose, UInt64Array
from replenish.orders import arrangement
from replenish.orders.computed import ComputedPermutations

SMALL = [[7, 8, 9, 6], [2, 4, 1, 3], [5, 0]]
LARGE = [[3953, 4624, 2210, 4250, 4662, 4529], [3422, 2822, 1093, 3248, 341, 4670]]
VAST = [204668368582, 243665917108, 479793145399, 61087720922]
MIXED = [
    [2778, 553212206052, 1, 6, 753615424677, 0, 2079, 260665025119],
    [907768440881, 2, 168019555506, 1146, 7, 3011, 8, 3729],
    [804, 3, 642707993222, 9, 5, 1230, 57364381588, 495],
    [4532, 990154552554, 7, 4, 734968402309, 1218, 6, 0],
]


@pytest.mark.parametrize("num_samples", [1, 2, 3, 97, 4096, 4097, 5003, 2**14, 70_001, 2**18 - 1])
def test_every_epoch_is_a_different_permutation(num_samples: int) -> None:
    order = RandomReshuffling(num_samples, 1000, seed=1, computed=True)
    each = order.steps_per_epoch
    epochs = [np.concatenate(list(order.batches(e * each, (e + 1) * each))) for e in (0, 1, 10**9)]
    for epoch in epochs:
        assert (np.sort(epoch) == np.arange(num_samples)).all()
    if num_samples > 50:
        assert not (epochs[0] == epochs[1]).all()


@pytest.mark.parametrize("num_samples", [10**6, 10**9, 10**12, 2**62])
def test_any_size_and_any_step_take_little_memory(num_samples: int) -> None:
    order = RandomReshuffling(num_samples, 512, seed=1, computed=True)
    order.batch(0)
    tracemalloc.start()
    batches = [order.cursor().rows_at(step)[1] for step in (0, 10**9, 2**62)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3e6
    for rows in batches:
        assert len(np.unique(rows)) == rows.size
        assert rows.max() > 0.9 * num_samples


@pytest.mark.parametrize("num_samples", [1000, 5003, 10**6, 10**9, 10**12])
def test_a_computed_permutation_passes_the_battery(num_samples: int) -> None:
    found = shuffle_quality(RandomReshuffling(num_samples, 100, seed=5, computed=True), num_samples, max_draws=2**17)
    assert found.level == "ok", found


def test_many_permutations_at_once_equal_single_ones() -> None:
    sizes = [5003, 10**9, 2**62, 4097]
    keys = KeyedWords(0, Purpose.COMPUTED).at(7).words(48).reshape(4, 12)
    which = np.random.default_rng(0).integers(0, 4, 1000)
    places = np.random.default_rng(1).integers(0, 2**62, 1000) % np.array(sizes)[which]
    together = ComputedPermutations(sizes, keys).at(places, which)
    for number, size in enumerate(sizes):
        mine = which == number
        alone = ComputedPermutations([size], keys[number : number + 1]).at(places[mine])
        assert together[mine].tolist() == alone.tolist()


def test_the_streams_are_frozen() -> None:
    """A change of any of these numbers needs a new stream with a new name."""
    small = RandomReshuffling(10, 4, seed=3, computed=True)
    assert small.config()["stream"] == "computed-v1"
    assert [batch.tolist() for batch in small.batches(0, 3)] == SMALL
    large = RandomReshuffling(5003, 6, seed=3, computed=True)
    assert [large.batch(0).tolist(), large.batch(10**6).tolist()] == LARGE
    assert RandomReshuffling(10**12, 4, seed=3, computed=True).batch(10**15).tolist() == VAST
    mixture = Mixture([10, 5003, 10**12], [3, 2, 1.5], 8, seed=3, stages=[(2, [1, 1, 1])])
    assert mixture.config()["stream"] == "mixture-v1"
    assert [mixture.batch(step).tolist() for step in (0, 1, 2, 10**9)] == MIXED


def test_listed_and_computed_are_different_streams() -> None:
    listed, computed = RandomReshuffling(97, 8), RandomReshuffling(97, 8, computed=True)
    assert "computed" not in listed.config()  # as in states from before the argument existed
    assert listed.batch(0).tolist() != computed.batch(0).tolist()
    with pytest.raises(ValueError, match="stream is 'v1' in the state but 'computed-v1' here"):
        state.load(computed, state.save(listed, 5))
    with pytest.raises(ValueError, match="stream is 'computed-v1' in the state but 'v1' here"):
        state.load(listed, state.save(computed, 5))
    with pytest.raises(TypeError, match="computed should be True or False, but got 1"):
        RandomReshuffling(97, 8, computed=1)  # type: ignore[arg-type]


class NearWords(KeyedWords):
    """Words that are often equal in their upper bits, and so differ only in bits that the sort replaces by places."""

    bits = 0

    def words(self, count: int) -> UInt64Array:
        drawn = super().words(count)
        return drawn & np.uint64(2**self.bits - 1) | (drawn >> np.uint64(60)) << np.uint64(60)


@pytest.mark.parametrize(("size", "bits"), [(4096, 32), (70_000, 42), (200_001, 44)])
def test_a_listed_permutation_is_sorted_by_whole_words(size: int, bits: int) -> None:
    words = NearWords(3, Purpose.EPOCH).at(5)
    words.bits = bits
    drawn = copy.deepcopy(words).words(size)
    kept = drawn >> np.uint64((size - 1).bit_length())
    assert len(np.unique(drawn)) == size > len(np.unique(kept))
    assert arrangement.permutation(words, size).tolist() == np.argsort(drawn).tolist()
