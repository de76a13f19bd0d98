"""Loops as people write them: without epochs, with a prefetcher, over two loaders, with a count of their own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, islice, repeat
from typing import Any

import pytest
import torch
from contracts import as_lists
from torch.utils.data import DataLoader, TensorDataset
from ways import exact, refused, unsupported

from replenish import SequencedReplacement
from replenish.torch import SRSBatchSampler, SRSSampler

DATA = TensorDataset(torch.arange(100))


def stream(start: int, stop: int) -> list[list[int]]:
    return as_lists(SequencedReplacement(100, 10).batches(start, stop))


def make(kind: str = "batches", **options: Any) -> tuple[Any, DataLoader[Any]]:
    if kind == "batches":
        sampler: Any = SRSBatchSampler(DATA, 10)
        return sampler, DataLoader(DATA, batch_sampler=sampler, **options)
    sampler = SRSSampler(DATA, 10)
    return sampler, DataLoader(DATA, sampler=sampler, batch_size=10, **options)


def lists(batches: Any) -> list[list[int]]:
    return [batch.tolist() for (batch,) in batches]


@pytest.fixture(params=["batches", "indices"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def endless(loader: Any) -> Iterator[Any]:
    while True:
        yield from loader


def by_next(loader: Any) -> Iterator[Any]:
    """`next()`, and a new iterator where one ends."""
    batches = iter(loader)
    while True:
        try:
            yield next(batches)
        except StopIteration:
            batches = iter(loader)
            yield next(batches)


def one_ahead(loader: Any) -> Iterator[Any]:
    """A prefetcher, as to a GPU: it has drawn the batch after the one that it gives."""
    for epoch in repeat(loader):
        batches = iter(epoch)
        ahead = next(batches, None)
        while ahead is not None:
            now, ahead = ahead, next(batches, None)
            yield now


LOOPS = {"`while True: yield from loader`": endless, "`next(batches)` for ever": by_next, "a prefetcher": one_ahead}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_without_epochs(name: str, kind: str) -> None:
    """Steps alone are counted; the state of each is as good as that of another."""
    way = "one iterator for ever: `while True`, `next()`, a prefetcher"
    for stop in range(1, 32):
        sampler, loader = make(kind)
        seen = lists(islice(LOOPS[name](loader), stop))
        state = sampler.state_dict(step=stop)
        resumed, loader = make(kind)
        resumed.load_state_dict(state)
        seen += lists(islice(LOOPS[name](loader), 12))
        exact("PyTorch", way, seen=seen, whole=stream(0, stop + 12), where=stop)


def test_cycle_keeps_the_batches_of_its_first_pass(kind: str) -> None:
    """`itertools.cycle` draws nothing after it, of which no sampler can know."""
    sampler, loader = make(kind)
    whole = lists(islice(cycle(loader), 23))
    assert whole[:13] == stream(0, 10) + stream(0, 3)
    with pytest.raises(ValueError, match="step should be within the pass .* has given 10, but got 13"):
        sampler.state_dict(step=13)
    resumed, loader = make(kind)
    resumed.load_state_dict(sampler.state_dict())
    unsupported("PyTorch", "`itertools.cycle(loader)`", seen=lists(islice(cycle(loader), 10)), whole=whole[13:])


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}], ids=["0 workers", "2 workers"])
def test_steps_of_the_optimizer_are_refused(kind: str, options: dict[str, Any]) -> None:
    way = "optimizer steps of accumulated gradients given as the step"
    sampler, loader = make(kind, **options)
    for batches, _ in enumerate(loader, start=1):
        if batches == 10:
            with refused("PyTorch", way, match="step should be the number of batches trained, .* 10 since step 0"):
                sampler.state_dict(step=5)
            assert sampler.state_dict(step=9)["step"] == 9  # the batch under way is not trained yet


def test_two_loaders_side_by_side() -> None:
    """`zip` asks the longer one for a batch too many; `set_epoch` puts both where they belong."""

    def rounds(states: Any, first: int) -> tuple[list[Any], Any]:
        short = SRSBatchSampler(range(60), 10)
        samplers, loaders = zip(make(), (short, DataLoader(range(60), batch_sampler=short)), strict=True)
        for sampler, state in zip(samplers, states or (), strict=bool(states)):
            sampler.load_state_dict(state)
        seen = []
        for epoch in range(first, 3):
            for sampler in samplers:
                sampler.set_epoch(epoch)
            for (long,), other in zip(*loaders, strict=False):
                seen.append((long.tolist(), other.tolist()))
                if len(seen) == 8 and states is None:
                    return seen, [sampler.state_dict() for sampler in samplers]
        return seen, None

    seen, states = rounds(None, 0)
    rest, _ = rounds(states, 1)
    expected = [batch for epoch in range(3) for batch in stream(10 * epoch, 10 * epoch + 6)]
    others = as_lists(SequencedReplacement(60, 10).batches(0, 18))
    whole = list(zip(expected, others, strict=True))
    exact("PyTorch", "`zip` of two loaders, with `set_epoch`", seen=seen + rest, whole=whole)
