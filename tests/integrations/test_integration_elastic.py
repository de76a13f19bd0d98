"""Ranks join and leave, prefetch at unequal speed, die at any point: nothing is skipped or repeated."""

from __future__ import annotations

import json
import random
from itertools import islice
from typing import Any

from contracts import as_lists

from replenish import SequencedReplacement
from replenish.torch import OrderBatchSampler, SRSBatchSampler, SRSSampler

SCENARIOS = 1200


class Rank:
    """One process of a run: a sampler, and a loader that draws ahead of the training by its own amount."""

    def __init__(self, sampler: Any, prefetch: int) -> None:
        self.sampler, self.prefetch = sampler, prefetch
        self.queue: list[list[int]] = []
        self.batches = self._endless()

    def _endless(self) -> Any:
        while True:
            if isinstance(self.sampler, SRSSampler):
                indices = iter(self.sampler)
                while batch := list(islice(indices, self.sampler.share_size)):
                    yield batch
            else:
                yield from self.sampler

    def train(self) -> list[int]:
        while len(self.queue) <= self.prefetch:
            self.queue.append(next(self.batches))
        return self.queue.pop(0)


def make_rank(choose: random.Random, kind: str, order: SequencedReplacement, world: int, rank: int) -> Rank:
    data, size, seed = range(order.num_samples), order.batch_size, order.seed
    options = {"num_replicas": world, "rank": rank}
    if kind == "order":
        sampler: Any = OrderBatchSampler(order, **options)
    else:
        pool = {"pool_size": order.pool_size}
        sampler = {"batch": SRSBatchSampler, "index": SRSSampler}[kind](data, size, seed=seed, **pool, **options)
    # As a DataLoader: nothing ahead without workers, else workers * prefetch_factor batches.
    return Rank(sampler, choose.choice([0, 0, 1, 2, 4, 8, 12]))


def scenario(number: int) -> int:
    """One run of several launches; returns how often it was killed."""
    choose = random.Random(number)
    batch_size = choose.choice([8, 12, 16, 24])
    num_samples = choose.randrange(batch_size, 160)
    pool_size = choose.choice([None, None, 2 * num_samples, max(batch_size, num_samples // 2)])
    order = SequencedReplacement(num_samples, batch_size, seed=choose.randrange(2**40), pool_size=pool_size)
    worlds = [size for size in (1, 2, 3, 4, 6, 8, 12) if batch_size % size == 0]
    start = choose.choice([0, 0, choose.randrange(100), 10**6 + choose.randrange(50)])
    seen: list[list[int]] = []
    state: dict[str, int | str] = OrderBatchSampler(order).state_dict(step=start)
    launches = choose.randrange(2, 6)
    for _ in range(launches):
        world = choose.choice(worlds)
        kind = choose.choice(["batch", "order", "index"])
        ranks = [make_rank(choose, kind, order, world, rank) for rank in range(world)]
        for rank in ranks:
            rank.sampler.load_state_dict(json.loads(json.dumps(state)))
        for _ in range(choose.randrange(0, 3 * order.steps_per_epoch + 2)):
            seen.append([index for rank in ranks for index in rank.train()])
        # Any rank may write the checkpoint; it says the steps trained, not what it has drawn.
        state = choose.choice(ranks).sampler.state_dict(step=start + len(seen))
        if choose.random() < 0.3:  # killed some steps after its checkpoint: they are trained again, on the same samples
            again = choose.randrange(0, min(4, len(seen)) + 1)
            after = [[index for rank in ranks for index in rank.train()] for _ in range(again)]
            assert after == as_lists(order.batches(start + len(seen), start + len(seen) + again))
    assert seen == as_lists(order.batches(start, start + len(seen))), f"scenario {number}"
    return launches - 1


def test_a_thousand_histories() -> None:
    kills = sum(scenario(number) for number in range(SCENARIOS))
    assert kills > 2 * SCENARIOS
