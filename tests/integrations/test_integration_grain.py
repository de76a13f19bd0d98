"""grain: random access, the same batches on any number of workers and processes, checkpoints by grain's own state."""

from __future__ import annotations

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import pytest

pytest.importorskip("grain", reason="needs grain: pip install 'replenish[grain]'")

import grain
import numpy as np
from contracts import as_lists
from integration_support import (
    GOLDEN_FIRST,
    GOLDEN_MILLIONTH,
    MILLION,
    golden_order,
    joined,
    stream,
)
from ways import exact, refused

from replenish import Mixture, RandomReshuffling, SequencedReplacement, Skipping
from replenish.integrations.grain import KEPT_STEPS, OrderSampler, RecentBatches


def order() -> SequencedReplacement:
    return SequencedReplacement(1000, 40, seed=3)


def shards(world: int, rank: int) -> Any:
    return grain.sharding.ShardOptions(shard_index=rank, shard_count=world)


def loader(sampler: OrderSampler) -> Any:
    return sampler.loader(np.arange(1000))


def lists(batches: Any, count: int) -> list[list[int]]:
    return [batch.tolist() for batch in islice(batches, count)]


def test_golden_vector() -> None:
    sampler = OrderSampler(golden_order())
    assert [[sampler[4 * step + i].record_key for i in range(4)] for step in range(3)] == GOLDEN_FIRST
    assert [sampler[4 * MILLION + i].record_key for i in range(4)] == GOLDEN_MILLIONTH
    far = OrderSampler(golden_order(), start=MILLION)
    assert [far[i].record_key for i in range(4)] == GOLDEN_MILLIONTH


@pytest.mark.parametrize("world", [2, 4])
def test_processes(world: int) -> None:
    ranks = [lists(loader(OrderSampler(order(), shard_options=shards(world, r), start=9)), 30) for r in range(world)]
    assert joined(ranks) == stream(9, 39)


@pytest.mark.parametrize(("world", "workers"), [(1, 2), (1, 3), (2, 2), (4, 5)])
def test_workers_get_whole_batches(world: int, workers: int) -> None:
    """grain distributes records round-robin, to processes and then to workers, and reads the workers in turn."""
    shares = []
    for rank in range(world):
        sampler = OrderSampler(order(), shard_options=shards(world, rank), worker_count=workers)
        size, batches = sampler.share_size, []
        for turn in range(6):
            for worker in range(workers):
                locals_ = [(turn * size + place) * workers + worker for place in range(size)]
                batches.append([sampler[local * world + rank].record_key for local in locals_])
        shares.append(batches)
    assert joined(shares) == stream(0, 6 * workers)


@pytest.mark.parametrize("trained", [0, 7, 25, 31])
def test_checkpoint_and_restore(trained: int) -> None:
    first = iter(loader(OrderSampler(order())))
    seen = lists(first, trained)
    resumed = iter(loader(OrderSampler(order())))
    resumed.set_state(first.get_state())
    exact("grain", "grain's own state", seen=seen + lists(resumed, 40), whole=stream(0, trained + 40))
    assert lists(first, 5) == stream(trained, trained + 5)


def test_histories() -> None:
    """Interrupt three times at random steps; a new loader continues from grain's state or with `start=`."""
    whole = as_lists(SequencedReplacement(100, 10, seed=3).batches(0, 40))
    for seed in range(60):
        draw, seen, state = random.Random(seed), [], None
        for stop in sorted(draw.sample(range(1, 40), 4)):
            if state is None or draw.random() < 0.3:
                start, state = len(seen), None
            sampler = OrderSampler(SequencedReplacement(100, 10, seed=3), start=start)
            batches = iter(loader(sampler))
            if state is not None:
                batches.set_state(state)
            seen += lists(batches, stop - len(seen))
            state = batches.get_state()
        exact("grain", "grain's own state", seen=seen, whole=whole[: len(seen)], where=seed)


def test_a_checkpoint_of_another_stream_is_refused() -> None:
    state = iter(loader(OrderSampler(order()))).get_state()
    with pytest.raises(ValueError, match="Sampler in checkpoint does not match"):
        iter(loader(OrderSampler(SequencedReplacement(1000, 40, seed=4)))).set_state(state)


def test_repr_names_everything_and_pickle_keeps_it() -> None:
    sampler = OrderSampler(order(), worker_count=2, start=5)
    sampler[3]
    clone = pickle.loads(pickle.dumps(sampler))
    assert repr(clone) == repr(sampler) == repr(OrderSampler(order(), worker_count=2, start=5))
    assert "seed=3" in repr(sampler)
    assert "stream='v1'" in repr(sampler)
    assert clone[77].record_key == sampler[77].record_key


@pytest.mark.parametrize(("processes", "workers", "start"), [(1, 2, 0), (2, 0, 3), (2, 2, 5), (4, 3, 1)])
def test_a_record_has_the_same_generator_in_any_process_and_worker(processes: int, workers: int, start: int) -> None:
    """Also after a resume, no two records of a run share a generator."""
    plain, size = OrderSampler(order()), order().batch_size
    steps = 4 * max(1, workers)
    expected = {plain[i].rng.integers(2**62): plain[i].record_key for i in range(start * size, (start + steps) * size)}
    found = {}
    for index in range(processes):
        sampler = OrderSampler(order(), shard_options=shards(processes, index), worker_count=workers, start=start)
        for local in range(steps * size // processes):
            record = sampler[local * processes + index]
            found[record.rng.integers(2**62)] = record.record_key
    assert len(found) == steps * size
    assert found == expected


def test_a_loader_without_the_shard_options() -> None:
    with refused("grain", "a loader without the sampler's shard options", match="No shard options were provided"):
        grain.DataLoader(data_source=np.arange(1000), sampler=OrderSampler(order()), operations=[])


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="batch_size should be divisible by num_replicas"):
        OrderSampler(order(), shard_options=shards(3, 0))
    with pytest.raises(ValueError, match="order should have batches of one size"):
        OrderSampler(RandomReshuffling(10, 4))
    with pytest.raises(IndexError, match="the same shard_options"):
        OrderSampler(order(), shard_options=shards(2, 0))[1]


@pytest.mark.parametrize("workers", [0, 2, 3])
def test_a_start_changes_no_record_and_no_generator(workers: int) -> None:
    """For any first record, in any worker."""

    def drawn(sampler: OrderSampler, steps: int) -> dict[tuple[int, int], tuple[int, int]]:
        found, count = {}, max(1, sampler.worker_count)
        for index in range(steps * 40):
            turn, place = divmod(index // count, 40)
            step = sampler.start + turn * count + index % count
            record = sampler[index]
            found[step, place] = (record.record_key, int(record.rng.integers(2**62)))
        return found

    whole = drawn(OrderSampler(order()), 24)
    assert len({drawn for _, drawn in whole.values()}) == len(whole)
    for start in range(1, 9):
        part = drawn(OrderSampler(order(), worker_count=workers, start=start), 12)
        same = {place: whole[place] for place in part}
        exact("grain", "`start=`, with workers", seen=part, whole=same, where=start)


def test_a_mixture_keeps_its_shares_and_resumes() -> None:
    mixture = Mixture([700, 300], [3, 1], 40, seed=3)
    seen = lists(loader(OrderSampler(mixture)), 60)
    assert seen == as_lists(mixture.batches(0, 60))
    assert {sum(index >= 700 for index in batch) for batch in seen} == {10}
    skipping = Skipping(mixture, [(10, 20)])
    assert lists(loader(OrderSampler(skipping, start=8)), 5) == as_lists(skipping.batches(8, 13))


class Recorded(SequencedReplacement):
    """An order that records the steps of its `batch` calls."""

    def __init__(self) -> None:
        super().__init__(1000, 40, seed=3)
        self.asked: list[int] = []

    def batch(self, step: int) -> np.ndarray:
        self.asked.append(step)
        return super().batch(step)


def test_nearly_ordered_reads_draw_each_step_once_and_in_order() -> None:
    order = Recorded()
    batches = RecentBatches(order)
    expected = stream(0, 1000)
    steps = sorted(range(1000), key=lambda step: step + random.Random(step).randrange(50))
    assert all(batches[step].tolist() == expected[step] for step in steps)
    assert order.asked == list(range(1000))


def test_a_jump_leaves_room_for_readers_just_behind() -> None:
    order = Recorded()
    batches = RecentBatches(order)
    for step in (10**6, 10**6 - KEPT_STEPS // 4, 10**6 + 3):
        assert batches[step].tolist() == SequencedReplacement(1000, 40, seed=3).batch(step).tolist()
    assert order.asked == sorted(set(order.asked))
    assert batches[0].tolist() == stream(0, 1)[0]


def test_threads_share_recent_batches() -> None:
    batches, expected = RecentBatches(Recorded()), stream(0, 400)
    with ThreadPoolExecutor(16) as pool:
        assert [batch.tolist() for batch in pool.map(batches.__getitem__, range(400))] == expected


def test_shared_batches_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        RecentBatches(Recorded())[0][0] = 1


def test_pickled_recent_batches() -> None:
    batches = RecentBatches(SequencedReplacement(1000, 40, seed=3))
    batches[5]
    assert pickle.loads(pickle.dumps(batches))[7].tolist() == stream(7, 8)[0]
