"""SRS against the paper's figure and the reference; conservation and jumps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replenish import SequencedReplacement, scatter
from replenish.draws import DistinctDraws, Int64Array, steps_per_block
from replenish.orders.pool import Pool
from replenish.orders.reference import ReferencePool
from replenish.orders.sequences import IdentitySequence, ListedSequence


class ForcedDraws:
    """Draws with slots that a test chooses."""

    def __init__(self, num_slots: int, steps: list[list[int]]) -> None:
        self.num_slots, self.batch_size, self.steps_per_block = num_slots, len(steps[0]), len(steps)
        self._slots = np.array(steps, dtype=np.int64)

    def block(self, index: int) -> Int64Array:
        return self._slots


def test_figure_1() -> None:
    """N = 5, B = 2: (2, 5) is drawn, then (1, 1); pool and queue after each step, counted from 1 as printed."""
    draws = ForcedDraws(5, [[1, 4], [0, 1]])
    figure = np.array([0, 1, 2, 3, 4])
    reference = ReferencePool([1, 2, 3, 4, 5])
    assert (reference.pool, list(reference.queue)) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])  # (a)
    assert reference.step([1, 4]) == [2, 5]  # (b)
    assert (reference.pool, list(reference.queue)) == ([1, 1, 3, 4, 2], [3, 4, 5, 1, 2])  # (c)
    assert reference.step([0, 1]) == [1, 1]  # (d)
    assert (reference.pool, list(reference.queue)) == ([3, 4, 3, 4, 2], [5, 1, 2, 3, 4])  # (e)

    pool = Pool(draws, IdentitySequence(5))
    assert (pool.positions_before(0) + 1).tolist() == [1, 2, 3, 4, 5]
    assert (pool.positions_before(1) + 1).tolist() == [1, 1, 3, 4, 2]
    assert (pool.positions_before(2) + 1).tolist() == [3, 4, 3, 4, 2]
    first, rows = Pool(draws, ListedSequence(figure, 5)).rows_at(0)
    assert (first, (rows + 1).tolist()) == (0, [[2, 5], [1, 1]])


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    num_samples = draw(st.integers(1, 40))
    pool_size = draw(st.one_of(st.just(num_samples), st.integers(1, 90)))
    batch_size = draw(st.one_of(st.integers(1, pool_size), st.just(1), st.just(pool_size)))
    indices = st.lists(st.integers(0, num_samples - 1), min_size=1, max_size=60)
    return {
        "num_samples": num_samples,
        "batch_size": batch_size,
        "pool_size": pool_size,
        "seed": draw(st.integers(0, 2**63 - 1)),
        "sequence": draw(st.one_of(st.just("shuffled"), st.just("identity"), indices)),
    }


def listed(order: SequencedReplacement) -> list[int]:
    return order._sequence.at(np.arange(order._sequence.length)).tolist()


def slots_of(order: SequencedReplacement, steps: int) -> list[list[int]]:
    draws = DistinctDraws(order.pool_size, order.batch_size, order.seed)
    blocks = -(-steps // draws.steps_per_block)
    return np.concatenate([draws.block(index) for index in range(blocks)])[:steps].tolist()


@given(configurations(), st.integers(1, 300))
def test_equals_the_reference(config: dict[str, Any], steps: int) -> None:
    order = SequencedReplacement(**config)
    reference = ReferencePool(listed(order), order.pool_size)
    expected = [reference.step(slots) for slots in slots_of(order, steps)]
    assert [batch.tolist() for batch in order.batches(0, steps)] == expected
    # The pool that a fresh cursor finds, forwards or backwards, has the same samples.
    positions = order.cursor().positions_before(steps)
    assert order._sequence.at(positions).tolist() == reference.pool


@pytest.mark.parametrize(
    ("num_samples", "batch_size", "pool_size"),
    [
        (1000, 64, 1000),  # runs of many steps, slots drawn again within a run
        (1000, 7, 1000),
        (50_000, 64, 50_000),
        (4096, 1024, 4096),
        (3000, 64, 9000),
        (3000, 100, 301),
        (100, 64, 20_000),  # a sequence shorter than a run
        (20_000, 1, 20_000),
        (300, 300, 300),
    ],
)
def test_equals_the_reference_at_larger_sizes(num_samples: int, batch_size: int, pool_size: int) -> None:
    order = SequencedReplacement(num_samples, batch_size, pool_size=pool_size, seed=5)
    steps = 60_000 // batch_size
    reference = ReferencePool(listed(order), pool_size)
    expected = [reference.step(slots) for slots in slots_of(order, steps)]
    assert [batch.tolist() for batch in order.batches(0, steps)] == expected
    assert order._sequence.at(order.cursor().positions_before(steps)).tolist() == reference.pool


@pytest.mark.parametrize("seed", range(5))
def test_a_slot_drawn_three_times_in_a_run(seed: int) -> None:
    """A draw of a slot returns what the slot's previous draw left."""
    steps = np.random.default_rng(seed).permuted(np.tile(np.arange(400), (60, 1)), axis=1)[:, :30].tolist()
    pool = Pool(ForcedDraws(400, steps), IdentitySequence(2000))
    assert pool._steps_per_run > 12
    reference = ReferencePool(range(2000), 400)
    assert pool.rows_at(0)[1].tolist() == [reference.step(slots) for slots in steps]


@given(configurations(), st.integers(0, 200))
def test_conservation(config: dict[str, Any], steps: int) -> None:
    """Inserted = drawn + pooled, for every sample, at every step."""
    order = SequencedReplacement(**config)
    sequence = np.array(listed(order))
    inserted = sequence[np.arange(order.pool_size + steps * order.batch_size) % len(sequence)]
    drawn = [index for batch in order.batches(0, steps) for index in batch.tolist()]
    pooled = order._sequence.at(order.cursor().positions_before(steps))
    counts = [np.bincount(part, minlength=order.num_samples) for part in (inserted, np.array(drawn, int), pooled)]
    assert (counts[0] == counts[1] + counts[2]).all()


@pytest.mark.parametrize("pool_size", [400, 1000, 2500])
def test_a_backward_search_equals_forward_steps(pool_size: int) -> None:
    order = SequencedReplacement(1000, 16, pool_size=pool_size, seed=2)
    for block in (3, 8, 20):
        forward, backward = order.cursor(), order.cursor()
        for step in range(block):
            forward.rows_at(step * forward._draws.steps_per_block)
        for start in (block, block - 1, max(0, block - 2), 0):  # from searching all slots to searching none
            assert (backward._find_positions(block, start) == forward._move_to(block)).all()


def test_the_cost_of_a_jump_does_not_depend_on_its_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs about M (ln M + c) draws. They are counted, not timed."""
    blocks = []
    plain = DistinctDraws.block
    monkeypatch.setattr(DistinctDraws, "block", lambda self, index: blocks.append(index) or plain(self, index))
    for step in (10**6, 10**9, 2**62):
        order = SequencedReplacement(2000, 64)
        blocks.clear()
        order.batch(step)
        draws = len(blocks) * 16_384
        assert draws < 2000 * (np.log(2000) + 8) + 2 * 16_384


def test_steps_in_a_row_draw_each_block_once(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = []
    plain = DistinctDraws.block
    monkeypatch.setattr(DistinctDraws, "block", lambda self, index: blocks.append(index) or plain(self, index))
    order = SequencedReplacement(5000, 64)
    for step in range(1000):
        order.batch(step)
    assert blocks == list(range(-(-1000 // steps_per_block(5000, 64))))


@given(st.integers(1, 3), st.integers(0, 50))
def test_pool_of_one_slot_is_the_sequence_itself(num_samples: int, step: int) -> None:
    order = SequencedReplacement(num_samples, 1, pool_size=1, sequence="identity")
    assert order.batch(step).tolist() == [step % num_samples]


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (9, ValueError, "batch_size should be at most pool_size.*batch_size=10 and pool_size=9"),
        (0, ValueError, "pool_size should be at least 1, but got 0"),
        (100.0, TypeError, "pool_size should be an int, but got 100.0"),
    ],
)
def test_bad_pool_size(bad: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SequencedReplacement(100, 10, pool_size=bad)  # type: ignore[arg-type]


def test_an_array_as_sequence_sets_the_pool_and_the_epoch() -> None:
    order = SequencedReplacement(50_000, 10, sequence=range(100))
    assert (order.pool_size, order.sequence_length, order.steps_per_epoch) == (100, 100, 10)
    assert order.effective_epoch(20) == 2.0
    assert len(order.samples_in_pool(0)) == 100
    order = SequencedReplacement(50_000, 10, pool_size=30, sequence=range(100))
    assert (order.pool_size, order.steps_per_epoch) == (30, 10)
    shown = repr(SequencedReplacement(2000, 10, sequence=range(2000)))
    assert "\n" not in shown
    assert "sha256:" in shown
    with pytest.raises(ValueError, match="take a smaller batch_size or a larger pool_size"):
        SequencedReplacement(10, 11)
    assert len(SequencedReplacement(10, 11, pool_size=20).batch(0)) == 11


def test_samples_at_positions() -> None:
    shuffled = SequencedReplacement(50, 5, seed=2)
    assert sorted(shuffled.samples_at(range(50)).tolist()) == list(range(50))
    assert (shuffled.samples_at(range(50)) == shuffled.samples_in_pool(0)).all()
    assert SequencedReplacement(9, 2, sequence=[7, 1]).samples_at([[0, 3], [2**40, 1]]).tolist() == [[7, 1], [7, 1]]
    for bad in ([-1], [0.5], "x"):
        with pytest.raises(ValueError, match="positions should be integers from 0 on, but got"):
            shuffled.samples_at(bad)


@pytest.mark.parametrize("config", [(5000, 64, 5000), (300, 4, 300), (97, 8, 400), (2000, 600, 2000)])
def test_a_numpy_whose_last_write_does_not_win(config: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws stay the same with the assignment that does not depend on numpy's order of writes."""
    num_samples, batch_size, pool_size = config
    order = SequencedReplacement(num_samples, batch_size, pool_size=pool_size, seed=5)
    steps = 20_000 // batch_size

    def drawn() -> list[list[int]]:
        near = [batch.tolist() for batch in order.batches(0, steps)]
        return [*near, order.cursor().positions_before(777).tolist(), next(order.batches(10**6)).tolist()]

    expected = drawn()
    monkeypatch.setattr(scatter, "assign_in_turn", scatter.assign_distinct)
    assert drawn() == expected
