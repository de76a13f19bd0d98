"""The contract of positions, rule by rule: calls that set a position, errors, and copies."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from contracts import as_lists
from torch.utils.data import DataLoader
from ways import exact, refused

import replenish.integrations
import replenish.torch
from replenish import RandomReshuffling
from replenish.torch import OrderBatchSampler, Progress, ReshufflingBatchSampler, SRSBatchSampler, SRSSampler

SAMPLES, BATCH, STEPS = 40, 4, 10
MAKERS: dict[str, Any] = {
    "srs": lambda: SRSBatchSampler(range(SAMPLES), BATCH, seed=3),
    "reshuffling": lambda: ReshufflingBatchSampler(range(SAMPLES), BATCH, seed=3),
    "order": lambda: OrderBatchSampler(RandomReshuffling(SAMPLES, BATCH, seed=3)),
    "indices": lambda: SRSSampler(range(SAMPLES), BATCH, seed=3),
}


@pytest.fixture(params=list(MAKERS))
def sampler(request: pytest.FixtureRequest) -> Any:
    return MAKERS[request.param]()


def steps(sampler: Any, start: int, stop: int) -> list[Any]:
    batches = as_lists(sampler.order.batches(start, stop))
    return [index for batch in batches for index in batch] if isinstance(sampler, SRSSampler) else batches


def take(sampler: Any, count: int) -> Any:
    """Draw `count` steps of a new pass and return the pass, which keeps it alive."""
    one = iter(sampler)
    list(islice(one, count * getattr(sampler, "share_size", 1)))
    return one


class TestSetEpoch:
    @pytest.mark.parametrize("step", [20, 21, 29])
    def test_keeps_a_restored_step_of_that_epoch(self, sampler: Any, step: int) -> None:
        sampler.seek(step)
        for _ in range(2):
            sampler.set_epoch(2)
        assert sampler.epoch == 2
        assert list(sampler) == steps(sampler, step, 30)
        sampler.set_epoch(2)
        assert list(sampler) == steps(sampler, 20, 30), "after the pass, the step is no longer a restored one"

    @pytest.mark.parametrize(("step", "epoch"), [(10, 0), (25, 1), (25, 0)])
    def test_refuses_an_epoch_before_a_restored_step(self, sampler: Any, step: int, epoch: int) -> None:
        sampler.seek(step)
        with pytest.raises(
            ValueError, match=f"epoch should be at least {step // STEPS}, that of step {step}, .* but got {epoch};"
        ):
            sampler.set_epoch(epoch)
        assert list(sampler) == steps(sampler, step, (step // STEPS + 1) * STEPS), "a refusal changes nothing"

    def test_another_epoch_ends_the_pass_under_way(self, sampler: Any) -> None:
        """Resumed without the adapter, Lightning's Trainer starts its workers before it calls set_epoch."""
        running = take(sampler, 2)
        sampler.set_epoch(0)
        assert next(running) == steps(sampler, 2, 3)[0], "the same epoch"
        sampler.set_epoch(3)
        with pytest.raises(
            RuntimeError, match=r"set_epoch\(3\) was called while a pass that began at step 0 was under"
        ):
            next(running)
        assert list(sampler) == steps(sampler, 30, 40)

    def test_refuses_an_epoch_before_one_that_was_set(self, sampler: Any) -> None:
        """Accelerate and Fabric count the passes of a process: after a resumed loop sets epoch 1, they set epoch 0."""
        sampler.set_epoch(1)
        with pytest.raises(ValueError, match="epoch should be at least 1, that of step 10, .* but got 0;"):
            sampler.set_epoch(0)
        assert list(sampler) == steps(sampler, 10, 20)
        sampler.set_epoch(0)
        assert list(sampler) == steps(sampler, 0, 10)

    def test_does_nothing_if_an_adapter_disables_it(self, sampler: Any) -> None:
        sampler.ignores_set_epoch = True
        sampler.set_epoch(7)
        assert list(sampler) == steps(sampler, 0, STEPS)


class TestAPassLeftEarly:
    def test_leaves_no_position(self, sampler: Any) -> None:
        take(sampler, 3)
        message = r"left before its end: call set_epoch\(epoch\) before each pass"
        for _ in range(2):
            ways = "epochs left early, without `set_epoch`", "a look at the data, then training"
            with refused("PyTorch", *ways, error=RuntimeError, match=message):
                next(iter(sampler))
        sampler.set_epoch(1)
        assert list(sampler) == steps(sampler, 10, 20)

    def test_a_second_pass_at_the_same_time_needs_its_own_position(self, sampler: Any) -> None:
        first = take(sampler, 2)
        with refused("PyTorch", "`zip(loader, loader)`", error=RuntimeError, match="position is unknown"):
            next(iter(sampler))
        assert list(first) == steps(sampler, 2, 10)
        assert list(sampler) == steps(sampler, 10, 20)

    @pytest.mark.parametrize("step", [3, 17])
    def test_raises_if_the_position_is_set_during_it(self, sampler: Any, step: int) -> None:
        """A loop that returns to a checkpoint, or loads one after iter(loader), would train on other steps."""
        first = take(sampler, 5)
        sampler.seek(step)
        with pytest.raises(RuntimeError, match=rf"seek\({step}\) was called while a pass that began at step 0"):
            next(first)
        with pytest.raises(ValueError, match=f"step should be {step}, .* until a new pass begins, but got {step + 1}"):
            sampler.state_dict(step + 1)  # as if trained on prefetched batches
        assert sampler.state_dict(step)["step"] == step
        assert list(sampler) == steps(sampler, step, (step // STEPS + 1) * STEPS)

    @pytest.mark.parametrize("step", [0, 10])
    def test_continues_if_the_position_is_set_to_its_start_or_end(self, sampler: Any, step: int) -> None:
        """Lightning's Trainer begins a pass before its callbacks seek."""
        first = take(sampler, 2)
        sampler.seek(step)
        assert list(first) == steps(sampler, 2, 10)
        assert list(sampler) == steps(sampler, step, step + 10)


class TestState:
    def test_without_a_step_only_before_anything_is_drawn(self, sampler: Any) -> None:
        assert sampler.state_dict()["step"] == 0
        for _ in range(2):
            list(sampler)  # a thread or worker may have drawn the whole pass before the loop has trained on it
            with pytest.raises(ValueError, match="step should be the number of steps trained.*but got None"):
                sampler.state_dict()
        sampler.set_epoch(2)
        assert sampler.state_dict()["step"] == 20

    def test_without_a_step_not_while_an_older_pass_is_drawn(self, sampler: Any) -> None:
        """Frameworks prefetch a batch, call set_epoch, and continue."""
        first = take(sampler, 2)
        sampler.set_epoch(0)
        next(first)
        with pytest.raises(ValueError, match="step should be the number of steps trained"):
            sampler.state_dict()

    def test_takes_every_step_drawn(self, sampler: Any) -> None:
        sampler.seek(13)
        list(sampler)
        running = take(sampler, 5)  # like a prefetcher that is already in the next epoch
        for step in range(13, 26):
            assert sampler.state_dict(step)["step"] == step
        for step in (0, 12, 24, 26, 29):
            message = f"step should be from 25, the step saved .*, to 25, the steps drawn, but got {step}"
            with pytest.raises(ValueError, match=message):
                sampler.state_dict(step)
        assert sampler.state_dict(30)["step"] == 30, "the loop may count the epoch as finished"
        del running

    def test_refuses_steps_of_an_earlier_epoch(self, sampler: Any) -> None:
        """After a look at epoch 0, epoch 1 must not be saved with the steps of epoch 0."""
        take(sampler, 1)
        sampler.set_epoch(1)
        running = take(sampler, 4)
        with pytest.raises(ValueError, match="step should be from 10, .* to 14, the steps drawn, but got 4"):
            sampler.state_dict(4)
        del running


class TestCopies:
    @pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
    def test_keep_a_position_that_is_known(self, sampler: Any, duplicate: Any) -> None:
        sampler.seek(12)
        assert list(duplicate(sampler)) == steps(sampler, 12, 20)
        one = take(sampler, 3)
        within = duplicate(sampler)
        way = "copies of the sampler, made within an epoch"
        with refused("PyTorch", way, error=RuntimeError, match="position is unknown"):
            list(within)
        within.set_epoch(0)
        assert list(within) == steps(sampler, 0, 10)
        with pytest.raises(TypeError, match="a pass over a sampler cannot be copied"):
            duplicate(one)


class TestProcesses:
    def test_a_sampler_made_before_the_processes_are_launched(self, sampler: Any, monkeypatch: Any) -> None:
        """Its share follows from the process group at the start of a pass."""
        sampler.seek(3)
        expected = steps(sampler, 3, 10)
        for name, value in (("is_initialized", True), ("get_world_size", 2), ("get_rank", 1)):
            monkeypatch.setattr(torch.distributed, name, lambda *_, value=value: value)
        assert (sampler.num_replicas, sampler.rank) == (2, 1)
        if isinstance(sampler, SRSSampler):
            assert (len(sampler), sampler.share_size, sampler.total_size) == (20, 2, 40)
            expected = [expected[at : at + BATCH] for at in range(0, len(expected), BATCH)]
            assert list(sampler) == [index for batch in expected for index in batch[2:]]
        else:
            way = "a sampler made before `init_process_group`"
            exact("PyTorch", way, seen=list(sampler), whole=[batch[2:] for batch in expected])


class TestProgress:
    def test_counts_saves_and_resumes(self, sampler: Any) -> None:
        progress = Progress(sampler)
        sampler.set_epoch(5)  # as a framework calls it; ignored
        take(sampler, 3)
        progress.step += 3
        assert progress.state_dict()["step"] == 3
        resumed = Progress(
            copy.deepcopy(MAKERS["srs"]()) if not isinstance(sampler, SRSSampler) else MAKERS["indices"]()
        )
        if resumed.sampler.order.config() == sampler.order.config():
            resumed.load_state_dict(progress.state_dict())
            assert list(resumed.sampler) == steps(sampler, 3, 10)

    def test_refuses_a_loop_that_does_not_count(self, sampler: Any) -> None:
        progress = Progress(sampler)
        list(sampler)
        progress.step += 8  # the loop ended early, and workers had prefetched the rest
        with pytest.raises(RuntimeError, match="would begin at step 10, but the progress is at step 8"):
            next(iter(sampler))
        progress.set_epoch(1)
        assert progress.step == 10
        assert list(sampler) == steps(sampler, 10, 20)
        progress.step = 20
        with pytest.raises(ValueError, match="epoch should be at least 2, since 20 steps are trained, but got 1"):
            progress.set_epoch(1)


@pytest.mark.parametrize("name", ["srs", "indices"])
def test_a_look_at_fewer_batches_than_workers_prefetch(name: str) -> None:
    """All batches are drawn, so the sampler considers the pass finished, but the progress does not."""
    sampler = MAKERS[name]()
    own = {"sampler": sampler, "batch_size": BATCH} if name == "indices" else {"batch_sampler": sampler}
    loader = DataLoader(range(SAMPLES), num_workers=2, persistent_workers=True, collate_fn=list, **own)
    progress = Progress(sampler)
    progress.load_state_dict(sampler.state_dict(step=7))
    next(iter(loader))
    with pytest.raises(RuntimeError, match="would begin at step 10, but the progress is at step 7"):
        next(iter(loader))
    progress.set_epoch(0)
    assert list(loader) == as_lists(sampler.order.batches(7, 10))


def test_the_reshuffling_sampler_has_its_order() -> None:
    sampler = ReshufflingBatchSampler(range(10), 4, seed=2, drop_last=True)
    assert sampler.order == RandomReshuffling(10, 4, seed=2, drop_last=True)
    assert (len(sampler), sampler.drop_last) == (2, True)
    with pytest.raises(TypeError, match="drop_last should be"):
        ReshufflingBatchSampler(range(10), 4, drop_last=1)  # type: ignore[arg-type]


def test_a_library_that_divides_batches_is_refused() -> None:
    assert SRSBatchSampler(range(8), 4).batch_size == 4
    with pytest.raises(ValueError, match="batch_size should not be read where several processes run"):
        SRSBatchSampler(range(8), 4, num_replicas=2, rank=0).batch_size  # noqa: B018


def foreign_looks(tree: ast.AST, own_names: set[str]) -> list[str]:
    """Return suspicious names in a module: call stack, private attributes of others, class names as strings."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in {"_getframe", "currentframe", "__mro__", "__qualname__"}:
            found.append(node.attr)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            found += [node.attr] if node.attr not in own_names else []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            found += [side.attr for side in sides if isinstance(side, ast.Attribute) and side.attr == "__name__"]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            foreign = re.fullmatch("_(?!replenish)[a-z]\\w+", node.value) and node.value not in own_names
            found += [node.value] if foreign or node.value in FRAMEWORK_CLASSES else []
    return found


def names_defined_in(folder: Path) -> set[str]:
    """Return the functions, classes and attributes that a package defines."""
    names = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
    return names


FRAMEWORK_CLASSES = {
    *("BatchSamplerShard", "DataLoaderDispatcher", "DataLoaderShard", "SkipBatchSampler", "PrefetchLoader", "Trainer"),
    *("_FitLoop", "_FabricDataLoader", "_BaseDataLoaderIter", "MultiEpochsDataLoader"),
}


@pytest.mark.parametrize("room", [replenish.torch, replenish.integrations], ids=lambda room: room.__name__)
def test_nothing_is_guessed(room: Any) -> None:
    """The code reads no call stack, no private fields of other libraries, and no names of their classes."""
    (folder,) = room.__path__
    own_names = names_defined_in(Path(replenish.__file__).parent)
    found = {file.name: foreign_looks(ast.parse(file.read_text()), own_names) for file in Path(folder).rglob("*.py")}
    assert {name: looks for name, looks in found.items() if looks} == {}


@pytest.mark.parametrize(
    "line",
    [
        "sys._getframe(2)",
        "loader._iterator",
        "getattr(loader, '_num_yielded')",
        "type(loader).__name__ == name",
        "is_of(loader, 'DataLoaderShard')",
        "cls.__mro__",
    ],
)
def test_a_guess_is_found(line: str) -> None:
    assert foreign_looks(ast.parse(line), {"_restore"}) != []
