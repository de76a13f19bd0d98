"""The draws are exactly uniform and distinct, and depend only on (seed, purpose, index)."""

from __future__ import annotations

from itertools import permutations
from math import comb, perm

import numpy as np
import pytest
from scipy import stats

from replenish import draws
from replenish.draws import DistinctDraws, KeyedWords, Purpose

ALPHA = 1e-6  # with fixed seeds a failure is a defect, not bad luck


def goodness_of_fit(observed: np.ndarray) -> float:
    """Return the p-value of the hypothesis that all cells are equally likely."""
    return float(stats.chisquare(observed).pvalue)


def test_words_depend_on_seed_purpose_and_index() -> None:
    keys = [(seed, purpose, index) for seed in (0, 1, 2) for purpose in Purpose for index in (0, 1, 2)]
    heads = {tuple(KeyedWords(seed, purpose).at(index).words(4).tolist()) for seed, purpose, index in keys}
    assert len(heads) == len(keys)


def test_neighbouring_keys_share_no_word() -> None:
    # Philox's counters would overlap if the index were in the counter.
    words = np.concatenate([KeyedWords(0, Purpose.SLOTS).at(index).words(1000) for index in range(50)])
    assert len(np.unique(words)) == len(words)


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 7, 64, 100])
def test_below_is_uniform(bound: int) -> None:
    values = KeyedWords(0, Purpose.SLOTS).at(0).below(bound, 200_000)
    assert len(values) == 200_000
    assert values.max() < bound
    if bound > 1:
        assert goodness_of_fit(np.bincount(values.astype(np.int64), minlength=bound)) > ALPHA


@pytest.mark.parametrize("bound", [3 * 2**30, 2**32 - 5, 2**32, 2**32 + 1, 3 * 2**40, 2**62])
def test_below_is_uniform_for_large_bounds(bound: int) -> None:
    # 3 * 2**30 rejects a quarter of the half words. Without the rejection, some values would be twice as frequent.
    values = KeyedWords(0, Purpose.SLOTS).at(0).below(bound, 100_000)
    assert len(values) == 100_000
    assert int(values.max()) < bound
    cells = np.floor(values.astype(np.float64) / bound * 64).astype(np.int64)
    assert goodness_of_fit(np.bincount(cells, minlength=64)) > ALPHA


def test_rejection_makes_lemires_method_exact() -> None:
    # With the bound 3 * 2**30, four half words map to three values. Without rejection, 0 mod 3 is twice as frequent.
    values = KeyedWords(0, Purpose.SLOTS).at(0).below(3 * 2**30, 100_000)
    assert goodness_of_fit(np.bincount(values.astype(np.int64) % 3, minlength=3)) > ALPHA


def test_permutations_are_uniform() -> None:
    rows = KeyedWords(0, Purpose.EPOCH).at(0).permutations(60_000, 4)
    index = {order: number for number, order in enumerate(permutations(range(4)))}
    counts = np.bincount([index[tuple(row)] for row in rows.tolist()], minlength=24)
    assert goodness_of_fit(counts) > ALPHA


def test_permutations_with_equal_words_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    words = KeyedWords(0, Purpose.EPOCH)
    answers = iter([[5, 1, 5, 9, 8, 7], [3, 2, 1]])
    monkeypatch.setattr(words, "words", lambda count: np.array(next(answers), dtype=np.uint64))
    assert words.permutations(2, 3).tolist() == [[2, 1, 0], [2, 1, 0]]


@pytest.mark.parametrize(("num_slots", "batch_size"), [(5, 2), (6, 3), (7, 3), (6, 1), (5, 3), (6, 5), (4, 4), (9, 4)])
def test_all_ordered_choices_are_equally_likely(num_slots: int, batch_size: int) -> None:
    draw = DistinctDraws(num_slots, batch_size, seed=1)
    rows = np.concatenate([draw.block(index) for index in range(-(-40_000 // draw.steps_per_block))])
    assert (np.diff(np.sort(rows, axis=1), axis=1) > 0).all()
    choice = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        choice = choice * num_slots + column
    observed = np.unique(choice, return_counts=True)[1]
    ordered = perm(num_slots, batch_size)
    assert len(observed) == ordered
    assert goodness_of_fit(observed) > ALPHA
    # So are the C(M, B) sets, with fewer cells and therefore a sharper test.
    sets = np.unique((1 << rows).sum(axis=1), return_counts=True)[1]
    assert len(sets) == comb(num_slots, batch_size)
    if len(sets) > 1:
        assert goodness_of_fit(sets) > ALPHA


def test_steps_of_a_block_are_independent() -> None:
    draw = DistinctDraws(4, 2, seed=3)
    rows = np.concatenate([draw.block(index) for index in range(3000)])
    sets = np.unique((1 << rows).sum(axis=1), return_inverse=True)[1]
    pairs = np.bincount(sets[:-1] * 6 + sets[1:], minlength=36)
    assert goodness_of_fit(pairs) > ALPHA


@pytest.mark.parametrize(
    ("num_slots", "batch_size"),
    [
        (50_000, 64),
        (50_000, 1024),
        (50_000, 25_000),
        (50_000, 25_001),
        (50_000, 50_000),
        (2**33, 64),
        (100, 50),
        (1, 1),
    ],
)
def test_slots_are_distinct_and_in_range(num_slots: int, batch_size: int) -> None:
    slots = DistinctDraws(num_slots, batch_size, seed=0).block(5)
    assert slots.dtype == np.int64
    assert slots.min() >= 0
    assert slots.max() < num_slots
    assert (np.diff(np.sort(slots, axis=1), axis=1) > 0).all()


def test_packing_does_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = DistinctDraws(3000, 700, seed=0)
    wide = DistinctDraws(3000, 700, seed=0)
    assert narrow._packed is np.uint32
    monkeypatch.setattr(wide, "_packed", np.uint64)
    monkeypatch.setattr(wide, "_steps_and_places", wide._steps_and_places.astype(np.uint64))
    for index in range(3):
        assert (narrow.block(index) == wide.block(index)).all()


@pytest.mark.parametrize(("num_slots", "batch_size"), [(40, 15), (40, 20), (500, 100), (7, 3)])
def test_slow_and_plain_rejection_gives_the_same_draws(num_slots: int, batch_size: int) -> None:
    """The vectorised rejection equals its definition, written out with sets."""
    draw = DistinctDraws(num_slots, batch_size, seed=9)
    words = KeyedWords(9, Purpose.SLOTS).at(2)
    steps = draw.steps_per_block
    size, spare_size = steps * batch_size, 16 + steps * batch_size**2 // num_slots
    drawn = words.below(num_slots, size + spare_size).tolist()
    slots = [drawn[start : start + batch_size] for start in range(0, size, batch_size)]
    spare = drawn[size:]
    kept: list[set[int]] = [set() for _ in range(steps)]
    wanting = []
    for step, row in enumerate(slots):
        for place, slot in enumerate(row):
            if slot in kept[step]:
                wanting.append((step, place))
            kept[step].add(slot)
    while wanting:
        again = []
        if len(spare) < len(wanting):
            spare += words.below(num_slots, len(wanting) + spare_size).tolist()
        candidates, spare = spare[: len(wanting)], spare[len(wanting) :]
        for (step, place), slot in zip(wanting, candidates, strict=True):
            if slot in kept[step]:
                again.append((step, place))
            else:
                slots[step][place] = slot
                kept[step].add(slot)
        wanting = again
    assert draw.block(2).tolist() == slots


@pytest.mark.parametrize("num_values", [20_000, 50_000, 1_281_167])
@pytest.mark.parametrize("batch_size", [1, 64, 1000, 20_000])
def test_blocks_tile_an_epoch(num_values: int, batch_size: int) -> None:
    steps = draws.steps_per_block(num_values, batch_size)
    epoch = -(-num_values // batch_size)
    blocks = -(-epoch // steps)
    assert 0 <= blocks * steps - epoch < max(blocks, 2)
    assert steps * batch_size < 1.6 * draws.DRAWS_PER_BLOCK + batch_size
