"""The law of positions (docs/howto/positions.md): a resumed run goes on as the same script would have."""

from __future__ import annotations

import gc
import random
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
import torch
from contracts import as_lists
from killing import kept_after_kills
from torch.utils.data import BatchSampler, DataLoader, TensorDataset
from ways import exact, refused

from replenish import SequencedReplacement
from replenish.torch import OrderBatchSampler, SRSBatchSampler, SRSSampler

N, BATCH, STEPS = 100, 10, 10
DATA = TensorDataset(torch.arange(N))
WORKERS = [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}]
NAMES = ["0 workers", "2 workers", "2 persistent workers"]


def stream(start: int, stop: int) -> list[list[int]]:
    return as_lists(SequencedReplacement(N, BATCH).batches(start, stop))


def make(kind: str = "batches", **options: Any) -> tuple[Any, DataLoader[Any]]:
    if kind == "batches":
        sampler: Any = SRSBatchSampler(DATA, BATCH)
        return sampler, DataLoader(DATA, batch_sampler=sampler, **options)
    sampler = SRSSampler(DATA, BATCH)
    return sampler, DataLoader(DATA, sampler=sampler, batch_size=BATCH, **options)


def lists(batches: Any) -> list[list[int]]:
    return [batch.tolist() for (batch,) in batches]


@pytest.fixture(params=["batches", "indices"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("options", WORKERS, ids=NAMES)
class TestALookAtTheData:
    def test_moves_nothing(self, kind: str, options: dict[str, Any]) -> None:
        sampler, loader = make(kind, **options)
        assert lists([next(iter(loader))]) == stream(0, 1)
        assert lists(loader) == stream(0, 10)
        state = sampler.state_dict(step=10)
        assert lists(loader) == stream(10, 20)
        resumed, loader = make(kind, **options)
        resumed.load_state_dict(state)
        exact("PyTorch", "a look at the data first", seen=lists(loader), whole=stream(10, 20))

    def test_after_a_resume(self, kind: str, options: dict[str, Any]) -> None:
        sampler, loader = make(kind, **options)
        sampler.load_state_dict(make(kind)[0].state_dict(step=13))
        next(iter(loader))
        assert lists(loader) == stream(13, 20)
        assert lists(loader) == stream(20, 30)


@pytest.mark.parametrize("options", WORKERS, ids=NAMES)
class TestWhatTheLoaderHasHandedOn:
    def test_is_what_a_state_says(self, kind: str, options: dict[str, Any]) -> None:
        sampler, loader = make(kind, **options)
        for epoch in range(2):
            for number, _ in enumerate(loader, start=1):
                assert sampler.state_dict() == sampler.state_dict(step=10 * epoch + number)
        assert sampler.state_dict()["step"] == 20

    def test_is_known_after_the_iterator_has_ended(self, kind: str, options: dict[str, Any]) -> None:
        sampler, loader = make(kind, **options)
        seen = lists(islice(loader, 5))
        gc.collect()
        state = sampler.state_dict()
        assert state["step"] == 5
        resumed, loader = make(kind, **options)
        resumed.load_state_dict(state)
        way = "workers, persistent or not, with `state_dict()`"
        exact("PyTorch", way, seen=seen + lists(loader), whole=stream(0, 10))

    def test_an_epoch_counted_by_the_loop_is_whole(self, kind: str, options: dict[str, Any]) -> None:
        """No StopIteration is ever asked for."""
        _, loader = make(kind, **options)
        seen = []
        for _ in range(3):
            batches = iter(loader)
            seen += lists([next(batches) for _ in range(10)])
        assert seen == stream(0, 30)


class TestSetEpoch:
    @pytest.mark.parametrize("options", WORKERS, ids=NAMES)
    @pytest.mark.parametrize("step", [0, 3, 9, 10, 13, 20, 29])
    def test_keeps_a_restored_position_within_its_epoch(self, kind: str, options: dict[str, Any], step: int) -> None:
        """As a loop does that resumes in the epoch it was in: `for epoch in range(step // len(loader), 4)`."""
        sampler, loader = make(kind, **options)
        sampler.load_state_dict(make(kind)[0].state_dict(step=step))
        seen = []
        for epoch in range(step // 10, 4):
            sampler.set_epoch(epoch)
            seen += lists(loader)
        assert seen == stream(step, 40)

    def test_of_the_epoch_that_ends_there_gives_nothing(self, kind: str) -> None:
        """The checkpoint was written after the last batch of epoch 0, by a loop that was in epoch 0."""
        sampler, loader = make(kind)
        sampler.load_state_dict(make(kind)[0].state_dict(step=10))
        seen = []
        for epoch in range(3):
            sampler.set_epoch(epoch)
            seen.append(lists(loader))
        assert seen == [[], stream(10, 20), stream(20, 30)]

    def test_of_another_epoch_is_absolute(self, kind: str) -> None:
        sampler, loader = make(kind)
        sampler.seek(13)
        sampler.set_epoch(5)
        assert lists(loader) == stream(50, 60)
        sampler.set_epoch(5)
        assert lists(loader) == stream(50, 60)
        assert lists(loader) == stream(60, 70)
        sampler.seek(13)
        with pytest.warns(UserWarning, match=r"set_epoch\(0\) goes back from step 13 of epoch 1"):
            sampler.set_epoch(0)
        assert lists(loader) == stream(0, 10)

    def test_is_called_through_the_batch_samplers_sampler(self) -> None:
        _, loader = make()
        loader.batch_sampler.sampler.set_epoch(3)
        assert lists(loader) == stream(30, 40)

    def test_while_a_pass_is_under_way(self, kind: str) -> None:
        sampler, loader = make(kind)
        batches = iter(loader)
        next(batches)
        sampler.set_epoch(0)  # where it is: says nothing new
        list(batches)
        assert lists(loader) == stream(10, 20)
        batches = iter(loader)
        next(batches)
        sampler.set_epoch(7)
        list(batches)
        assert lists(loader) == stream(70, 80)


class TestAPassLeftEarly:
    def test_with_set_epoch(self, kind: str) -> None:
        sampler, loader = make(kind, num_workers=2)
        seen = []
        for epoch in range(3):
            sampler.set_epoch(epoch)
            seen += lists(islice(loader, 4))
            state = sampler.state_dict()
            assert state["step"] == 10 * epoch + 4
        assert seen == stream(0, 4) + stream(10, 14) + stream(20, 24)

    def test_without_is_repeated_with_a_warning(self, kind: str) -> None:
        _, loader = make(kind)
        assert lists(islice(loader, 4)) == stream(0, 4)
        with pytest.warns(UserWarning, match=r"left after 4 of its steps, and the next one begins at step 0 like that"):
            assert lists(islice(loader, 4)) == stream(0, 4)

    def test_without_is_refused_where_a_resumed_run_would_go_on_elsewhere(self, kind: str) -> None:
        sampler, loader = make(kind)
        list(islice(loader, 4))
        state = sampler.state_dict()
        way, said = "passes left early, without, after a state was taken", r"call set_epoch\(epoch\) .* or seek\(step\)"
        with refused("PyTorch", way, error=RuntimeError, match=f"{said}.*A state was taken"):
            next(iter(loader))
        sampler.seek(4)
        assert lists(loader) == stream(4, 10)
        resumed, loader = make(kind)
        resumed.load_state_dict(state)
        assert lists(loader) == stream(4, 10)


class TestTheStepOfAState:
    def test_of_another_epoch_is_refused(self, kind: str) -> None:
        """`enumerate(loader, start=1)` within a loop over epochs."""
        sampler, loader = make(kind)
        list(loader)
        next(batches := iter(loader))
        message = "step should be within the pass .* began at step 10 and has given 1, but"
        with refused("PyTorch", "a step counted within the epoch alone", match=message):
            sampler.state_dict(step=1)
        assert len(list(batches)) == 9

    @pytest.mark.parametrize("options", WORKERS, ids=NAMES)
    def test_beyond_what_was_handed_on_is_refused(self, kind: str, options: dict[str, Any]) -> None:
        """A count of all steps in a loop whose passes are left early."""
        sampler, loader = make(kind, **options)
        list(islice(loader, 4))
        sampler.set_epoch(1)
        for trained, _ in enumerate(islice(loader, 4), start=5):
            with pytest.raises(ValueError, match=r"step should be within the pass .* began at step 10"):
                sampler.state_dict(step=trained)

    def test_a_sampler_that_nobody_drew_from_takes_any(self, kind: str) -> None:
        assert make(kind)[0].state_dict(step=12345)["step"] == 12345

    def test_has_to_be_given_where_only_the_loop_knows_it(self) -> None:
        class Regrouped(BatchSampler):
            def __iter__(self) -> Iterator[list[int]]:
                yield from super().__iter__()

        sampler = SRSSampler(DATA, BATCH)
        loader = DataLoader(DATA, batch_sampler=Regrouped(sampler, BATCH, drop_last=False), num_workers=2)
        batches = iter(loader)
        next(batches)
        with pytest.raises(ValueError, match=r"step should be given to state_dict\(\), since workers prefetch"):
            sampler.state_dict()
        assert sampler.state_dict(step=1)["step"] == 1
        list(batches)
        assert lists(loader) == stream(10, 20)


class Script:
    """A training script: epochs, looks, limits, saves; what it does depends on its own counts alone."""

    def __init__(self, seed: int, kind: str) -> None:
        draw = random.Random(seed)
        self.kind = kind
        self.workers: dict[str, Any] = draw.choice([{}, {}, WORKERS[1], WORKERS[2]]) if seed % 25 == 0 else {}
        self.limit = draw.choice([None, None, 1, 3, 7])
        self.calls_set_epoch = self.limit is not None or draw.random() < 0.5
        self.gives_steps = draw.random() < 0.5
        # With workers, a look at the last batch of an epoch cannot be told from the end of the epoch.
        self.looks = not self.workers and draw.random() < 0.3
        self.saves_every = draw.randint(1, 6)
        self.epochs = draw.randint(1, 4)
        self.set_epoch_first = draw.random() < 0.5

    def run(self, checkpoint: Any, kill_after: int) -> tuple[list[list[int]], dict[str, Any] | None, bool]:
        """Train; return what was trained on since the checkpoint, the last checkpoint, and whether it was killed."""
        sampler, loader = make(self.kind, **self.workers)
        first, done = 0, 0
        if checkpoint is not None:
            first, done = checkpoint["epoch"], checkpoint["done"]
            if self.set_epoch_first and self.calls_set_epoch:
                sampler.set_epoch(first)
            sampler.load_state_dict(checkpoint["sampler"])
        if self.looks:
            next(iter(loader))
        seen: list[list[int]] = []
        for epoch in range(first, self.epochs):
            if self.calls_set_epoch:
                sampler.set_epoch(epoch)
            if done == (self.limit or STEPS):
                done = 0
                continue
            for (batch,) in loader:
                seen.append(batch.tolist())
                done += 1
                if done % self.saves_every == 0:
                    step = 10 * epoch + done if self.gives_steps else None
                    checkpoint = {"epoch": epoch, "done": done, "sampler": sampler.state_dict(step), "seen": len(seen)}
                if len(seen) == kill_after:
                    return seen, checkpoint, True
                if done == self.limit:
                    break
            done = 0
        return seen, checkpoint, False


@pytest.mark.parametrize("kind", ["batches", "indices"])
@pytest.mark.parametrize("block", range(5))
def test_histories(block: int, kind: str) -> None:
    """Kills at random steps; from the last checkpoint on, the batches are those of the run without kills."""
    for seed in range(40 * block, 40 * block + 40):
        script = Script(seed, kind)
        whole, _, _ = script.run(None, kill_after=10**9)
        kept = kept_after_kills(script.run, seed, most_kills=19)
        early = "passes left early, with `set_epoch`"
        way = early if script.limit else "whole epochs, with or without `set_epoch`"
        exact("PyTorch", way, seen=kept, whole=whole, where=seed)


def test_no_warning_in_usual_loops() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(50):
            Script(seed * 5 + 1, "batches").run(None, kill_after=10**9)


def test_states_of_earlier_versions_load() -> None:
    """As version 0.1.0.dev0 wrote them before positions had a law of their own."""
    order = OrderBatchSampler(SequencedReplacement(N, BATCH)).state_dict(step=13)
    assert set(order) == {"version", "stream", "step", "order", "num_samples", "batch_size", "seed", "pool_size",
                          "sequence", "sequence_length"}  # fmt: skip
    sampler, loader = make("indices")
    sampler.load_state_dict({**order, "offset": 0, "share_size": 10})
    assert lists(loader) == stream(13, 20)
    iterator = iter(SRSSampler(DATA, BATCH))
    iterator.load_state_dict({"step": 13, "end": 20, "offset": 4})
    assert next(iterator) == stream(13, 14)[0][4]
    batches = iter(SRSBatchSampler(DATA, BATCH))
    batches.load_state_dict({"step": 20, "end": 20})
    assert list(batches) == []
