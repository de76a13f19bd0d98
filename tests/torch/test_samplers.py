"""The PyTorch samplers: passes, positions, state, shares, and the known traps."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
import pytest
import torch
from contracts import CASES, as_lists
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
)
from torch.utils.data.distributed import DistributedSampler

from replenish import Order, RandomReshuffling, SequencedReplacement
from replenish.draws import DistinctDraws
from replenish.torch import OrderBatchSampler, ReshufflingBatchSampler, SRSBatchSampler, SRSSampler

DATA = range(103)
BATCH = 8
STEPS = 13  # ceil(103 / 8)


def batch_sampler(**options: Any) -> SRSBatchSampler:
    return SRSBatchSampler(DATA, BATCH, **options)


class IndexBatches(SRSSampler):
    """An SRSSampler cut into batches like in a DataLoader, so that one battery tests all samplers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(DATA, BATCH, **options)

    def __len__(self) -> int:
        return super().__len__() // self.share_size

    def __iter__(self) -> Any:
        indices = super().__iter__()
        while batch := list(islice(indices, self.share_size)):
            yield batch


MAKERS: dict[str, Callable[..., Any]] = {
    "SRSBatchSampler": batch_sampler,
    "OrderBatchSampler": lambda seed=0, **options: OrderBatchSampler(
        SequencedReplacement(len(DATA), BATCH, seed=seed), **options
    ),
    "SRSSampler": IndexBatches,
}


@pytest.fixture(params=list(MAKERS))
def make(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return MAKERS[request.param]


def stream(start: int, stop: int, seed: int = 0) -> list[list[int]]:
    return as_lists(SequencedReplacement(len(DATA), BATCH, seed=seed).batches(start, stop))


class TestEverySampler:
    def test_yields_the_orders_batches_as_lists_of_ints(self, make: Callable[..., Any]) -> None:
        seen = list(make())
        assert seen == stream(0, STEPS)
        assert len(make()) == STEPS
        assert list(make(seed=1)) == stream(0, STEPS, seed=1)
        assert all(type(batch) is list and type(index) is int for batch in seen for index in batch)

    @pytest.mark.parametrize("step", [0, 6, STEPS - 1, STEPS, 10**6])
    def test_seek_begins_there_and_ends_with_the_epoch(self, make: Callable[..., Any], step: int) -> None:
        sampler = make()
        sampler.seek(step)
        end = (step // STEPS + 1) * STEPS
        assert list(sampler) == stream(step, end)
        assert list(sampler) == stream(end, end + STEPS)

    @pytest.mark.parametrize("step", [0, 6, STEPS - 1, STEPS, 10**9])
    def test_state_resumes_at_any_step(self, make: Callable[..., Any], step: int) -> None:
        resumed = make()
        resumed.load_state_dict(json.loads(json.dumps(make().state_dict(step=step))))
        assert resumed.state_dict()["step"] == step
        assert list(resumed) == stream(step, (step // STEPS + 1) * STEPS)

    def test_nothing_is_counted_before_the_first_next(self, make: Callable[..., Any]) -> None:
        sampler = make()
        iter(sampler)
        iter(sampler)
        assert sampler.state_dict()["step"] == 0
        assert list(sampler) == stream(0, STEPS)

    def test_state_has_few_plain_values_and_loads_with_weights_only(self, make: Callable[..., Any]) -> None:
        state = make().state_dict(step=12)
        assert all(type(value) in (int, str) for value in state.values())
        assert len(json.dumps(state)) < 400
        buffer = io.BytesIO()
        torch.save(state, buffer)
        buffer.seek(0)
        assert torch.load(buffer, weights_only=True) == state

    def test_a_state_of_another_order_is_refused(self, make: Callable[..., Any]) -> None:
        sampler = make()
        sampler.seek(4)
        with pytest.raises(ValueError, match="seed is 1 in the state but 0 here"):
            sampler.load_state_dict(make(seed=1).state_dict())
        assert sampler.state_dict()["step"] == 4, "a refused state must change nothing"

    @pytest.mark.parametrize("num_replicas", [2, 4, 8])
    def test_union_over_ranks_is_the_global_batch(self, make: Callable[..., Any], num_replicas: int) -> None:
        ranks = [make(num_replicas=num_replicas, rank=rank) for rank in range(num_replicas)]
        for _ in range(2):
            shares = zip(*(list(sampler) for sampler in ranks), strict=True)
            joined = [list(chain.from_iterable(share)) for share in shares]
        assert joined == stream(STEPS, 2 * STEPS)

    def test_unequal_shares(self, make: Callable[..., Any]) -> None:
        with pytest.raises(ValueError, match="batch_size should be divisible by num_replicas.*batch_size=8"):
            make(num_replicas=3, rank=0)

    def test_bad_replicas(self, make: Callable[..., Any]) -> None:
        """Every sampler checks them. tests/test_core_parts.py has all kinds of wrong values."""
        with pytest.raises(ValueError, match="rank should be given with num_replicas=2"):
            make(num_replicas=2)
        with pytest.raises(ValueError, match=r"rank should be less than num_replicas.*rank=1 and num_replicas=1"):
            make(rank=1)

    def test_bad_positions(self, make: Callable[..., Any]) -> None:
        for call in ("seek", "set_epoch"):
            with pytest.raises(ValueError, match=r"(step|epoch) should be at (least|most) .*, but got"):
                getattr(make(), call)(2**62 + 1)
            with pytest.raises(TypeError, match=r"(step|epoch) should be an int, but got 1.0"):
                getattr(make(), call)(1.0)

    def test_repr_names_the_order_and_the_rank(self, make: Callable[..., Any]) -> None:
        shown = repr(make(seed=3, num_replicas=2, rank=1))
        for part in (
            "SequencedReplacement(num_samples=103, batch_size=8, seed=3",
            "num_replicas=2, rank=1",
        ):
            assert part in shown


def test_threads_that_share_a_pass_get_every_batch_once() -> None:
    sampler = SRSBatchSampler(range(4000), 4)
    one, seen = iter(sampler), []
    threads = [threading.Thread(target=lambda: seen.extend(map(tuple, one))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(map(tuple, SequencedReplacement(4000, 4).batches(0, 1000)))


def endless(sampler: Any) -> Iterator[list[int]]:
    while True:
        yield from sampler


@given(st.data())
def test_any_history_of_positions_and_process_numbers(data: st.DataObject) -> None:
    """Random kills and resumes, with other samplers, other numbers of processes, and loaders that draw ahead.

    Nothing is skipped or repeated.
    """
    start = step = data.draw(st.sampled_from([0, 5, 10**6]))
    seen: list[list[int]] = []
    state = batch_sampler().state_dict(step)
    for _ in range(data.draw(st.integers(1, 5))):
        make = MAKERS[data.draw(st.sampled_from(list(MAKERS)))]
        num_replicas = data.draw(st.sampled_from([1, 2, 4, 8]))
        ranks = [make(num_replicas=num_replicas, rank=rank) for rank in range(num_replicas)]
        trained, shares = data.draw(st.integers(0, 2 * STEPS)), []
        for sampler in ranks:
            sampler.load_state_dict(json.loads(json.dumps(state)))
            shares.append(list(islice(endless(sampler), trained + data.draw(st.integers(0, 12))))[:trained])
        seen += [list(chain.from_iterable(step)) for step in zip(*shares, strict=True)]
        step += trained
        state = data.draw(st.sampled_from(ranks)).state_dict(step)
    assert seen == stream(start, step)


@pytest.mark.parametrize("name", list(CASES))
def test_any_order(name: str) -> None:
    order = CASES[name]()
    sampler = OrderBatchSampler(order)
    steps = order.steps_per_epoch
    assert list(chain(sampler, sampler)) == as_lists(order.batches(0, 2 * steps))
    sampler.seek(steps + 2)
    assert list(sampler) == as_lists(order.batches(steps + 2, ((steps + 2) // steps + 1) * steps))


def test_an_order_of_your_own() -> None:
    class EveryOther:
        num_samples, batch_size, steps_per_epoch = 12, 3, 4

        def batch(self, step: int) -> np.ndarray:
            return (np.arange(3) + 3 * step) * 2 % 12

        def batches(self, start: int = 0, stop: int | None = None) -> Any:
            step = start
            while stop is None or step < stop:
                yield self.batch(step)
                step += 1

        def effective_epoch(self, step: int) -> float:
            return step / 4

        def config(self) -> dict[str, int | str]:
            return {"order": "every other"}

    assert isinstance(EveryOther(), Order)
    sampler = OrderBatchSampler(EveryOther())
    assert list(sampler)[:2] == [[0, 2, 4], [6, 8, 10]]
    ranks = [OrderBatchSampler(EveryOther(), num_replicas=3, rank=rank) for rank in range(3)]
    assert [next(iter(sampler)) for sampler in ranks] == [[0], [2], [4]]
    resumed = OrderBatchSampler(EveryOther())
    resumed.load_state_dict(sampler.state_dict(4))
    assert next(iter(resumed)) == EveryOther().batch(4).tolist()


def test_a_short_last_batch_must_be_divisible_too() -> None:
    OrderBatchSampler(RandomReshuffling(20, 8), num_replicas=4, rank=1)
    with pytest.raises(ValueError, match="the size of the last batch of an epoch should be divisible.*=3"):
        OrderBatchSampler(RandomReshuffling(19, 8), num_replicas=4, rank=1)
    shares = [list(OrderBatchSampler(RandomReshuffling(20, 8), num_replicas=4, rank=rank)) for rank in range(4)]
    assert [sum(len(share) for share in step) for step in zip(*shares, strict=True)] == [8, 8, 4]


def test_drop_last_shortens_the_epoch_only() -> None:
    for make in (SRSBatchSampler, SRSSampler):
        kept, dropped = make(DATA, BATCH), make(DATA, BATCH, drop_last=True)
        assert (kept.steps_per_epoch, dropped.steps_per_epoch) == (13, 12)
        dropped.load_state_dict(kept.state_dict(step=2))
        kept.seek(2)
        expected = list(islice(iter(kept), 5))
        assert list(islice(iter(dropped), 5)) == expected
        with pytest.raises(ValueError, match="batch_size=200 and 103 samples"):
            make(DATA, 200, pool_size=300, drop_last=True)
        with pytest.raises(TypeError, match="drop_last should be True or False, but got 1"):
            make(DATA, BATCH, drop_last=1)
    assert len(SRSSampler(DATA, BATCH)) == 104
    assert (len(SRSBatchSampler(DATA, 8, sequence=range(20))), SRSSampler(DATA, 8, sequence=range(20)).total_size) == (
        3,
        24,
    )
    assert len(SRSBatchSampler(DATA, 8, sequence=range(20), drop_last=True)) == 2
    assert OrderBatchSampler(RandomReshuffling(20, 8, drop_last=True)).drop_last is True
    assert OrderBatchSampler(RandomReshuffling(20, 8)).drop_last is False
    assert len(SRSSampler(DATA, BATCH, num_replicas=4, rank=0, drop_last=True)) == 24


class TestIndexByIndex:
    @pytest.mark.parametrize("drawn", [0, 1, 7, 8, 9, 100, 103])
    def test_loads_a_state_within_a_batch(self, drawn: int) -> None:
        """Earlier releases saved indices within a step."""
        step, offset = divmod(drawn, BATCH)
        saved = {**SRSSampler(DATA, BATCH).state_dict(step=step), "offset": offset, "share_size": BATCH}
        sampler = SRSSampler(DATA, BATCH)
        sampler.load_state_dict(saved)
        assert list(sampler) == list(chain.from_iterable(stream(0, STEPS)))[drawn:]
        if offset:
            with pytest.raises(ValueError, match="share_size is 8 in the state and 4 here"):
                SRSSampler(DATA, BATCH, num_replicas=2, rank=0).load_state_dict(saved)

    @pytest.mark.parametrize("offset", [8, 99, -1, "3"])
    def test_a_refused_offset_changes_nothing(self, offset: Any) -> None:
        sampler = SRSSampler(DATA, BATCH)
        sampler.seek(4)
        saved = {**sampler.state_dict(step=9), "offset": offset, "share_size": BATCH}
        with pytest.raises((ValueError, TypeError), match="offset in state should be .*, but got"):
            sampler.load_state_dict(saved)
        assert sampler.state_dict()["step"] == 4

    def test_attributes_of_a_distributed_sampler(self) -> None:
        theirs = DistributedSampler(DATA, num_replicas=4, rank=1, seed=7)  # type: ignore[arg-type]
        ours = SRSSampler(DATA, BATCH, num_replicas=4, rank=1, seed=7)
        for name in vars(theirs):
            assert type(getattr(ours, name)) is type(getattr(theirs, name)), name
        assert (ours.dataset, ours.shuffle, ours.seed, ours.epoch) == (DATA, True, 7, 0)
        assert (ours.num_samples, ours.total_size) == (len(list(ours)), 4 * 26)
        assert ours.epoch == 0, "like torch's, it is the epoch of the latest pass"
        ours.set_epoch(5)
        assert ours.epoch == 5
        list(islice(iter(ours), 25))  # all but the last index of the epoch
        assert ours.epoch == 5
        ours.epoch = 3
        assert list(ours) == list(chain.from_iterable(batch[2:4] for batch in stream(3 * STEPS, 4 * STEPS, seed=7)))


class TestInADataLoader:
    @pytest.mark.parametrize(
        "options",
        [{}, {"num_workers": 2, "persistent_workers": True}],
        ids=["0 workers", "2 persistent workers"],
    )
    def test_epochs_follow_each_other(self, options: dict[str, Any]) -> None:
        loader = DataLoader(TensorDataset(torch.arange(103)), batch_sampler=batch_sampler(), **options)
        assert len(loader) == STEPS
        seen = [batch.tolist() for _ in range(3) for (batch,) in loader]
        assert seen == stream(0, 3 * STEPS)


class TestKnownTraps:
    @pytest.mark.parametrize("cls", [SRSBatchSampler, SRSSampler])
    @pytest.mark.parametrize(
        "sampler",
        [RandomSampler(DATA), SequentialSampler(DATA), DistributedSampler(DATA, 2, 0)],  # type: ignore[arg-type]
        ids=lambda sampler: type(sampler).__name__,
    )
    def test_a_sampler_as_data_source(self, cls: type, sampler: Any) -> None:
        """A common mistake; Lightning and Fabric also rebuild a batch sampler this way, silently."""
        with pytest.raises(TypeError, match=r"data_source should be the dataset itself.*use_distributed_sampler=False"):
            cls(sampler, batch_size=8, drop_last=False)

    def test_a_sampler_as_order(self) -> None:
        for sampler in (RandomSampler(DATA), BatchSampler(RandomSampler(DATA), 8, False), batch_sampler()):
            with pytest.raises(TypeError, match="order should be an Order of replenish.*use_distributed_sampler=False"):
                OrderBatchSampler(sampler)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="order should be an Order of replenish, but got a list"):
            OrderBatchSampler([1, 2])  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="but got a SRSBatchSampler; give its `order`"):
            OrderBatchSampler(batch_sampler())  # type: ignore[arg-type]

    @pytest.mark.parametrize("cls", [SRSBatchSampler, SRSSampler, ReshufflingBatchSampler])
    def test_data_without_a_length(self, cls: type) -> None:
        class Stream(IterableDataset[int]):
            def __iter__(self) -> Any:
                return iter(range(5))

        class NoLength(Dataset[int]):
            def __getitem__(self, index: int) -> int:
                return index

        with pytest.raises(
            TypeError, match=r"data_source should be a dataset with a length, but got one of type int; range\(n\)"
        ):
            cls(5, 2)
        for source in (Stream(), NoLength(), iter(range(5))):
            with pytest.raises(TypeError, match=r"data_source should be a dataset with a length.*replenish\.stream"):
                cls(source, 2)
        with pytest.raises(ValueError, match="data_source should have at least one sample, but its length is 0"):
            cls([], 2)

    @pytest.mark.parametrize("cls", [SRSBatchSampler, SRSSampler])
    def test_bad_arguments_of_the_order_are_named(self, cls: type) -> None:
        for options, error, message in [
            ({"batch_size": 8.0}, TypeError, "batch_size should be an int, but got 8.0"),
            ({"batch_size": 104}, ValueError, "batch_size should be at most pool_size"),
            ({"batch_size": 8, "seed": -1}, ValueError, "seed should be at least 0, but got -1"),
            ({"batch_size": 8, "pool_size": 4}, ValueError, "batch_size=8 and pool_size=4"),
            ({"batch_size": 8, "sequence": "random"}, ValueError, "sequence should be"),
        ]:
            with pytest.raises(error, match=message):
                cls(DATA, **options)


def test_consecutive_passes_do_not_search_their_place_again(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[int] = []
    plain = DistinctDraws.block
    monkeypatch.setattr(DistinctDraws, "block", lambda self, index: blocks.append(index) or plain(self, index))
    sampler = batch_sampler()
    for _ in range(30):
        list(sampler)
    assert blocks == list(range(len(blocks)))
