"""The ways to write a loop, by stack, and the result of a resume in each: the table of docs/integrations/index.md.

`exact` compares the batches of a resumed run with the batches of an uninterrupted one, `refused` expects an error,
`warned` expects the framework's own warning, and `lost` expects different batches. Each fails if the row states another
result. A test file fails if it names a row that none of its tests has asserted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

EXACT, REFUSED, WARNED, LOST = "exact", "error", "the framework warns", "not kept"

# Way to loop: (result, what to write instead if it is not exact).
WAYS: dict[str, dict[str, tuple[str, str]]] = {
    "PyTorch": {
        "whole epochs, with or without `set_epoch`": (EXACT, ""),
        "epochs left early, with `set_epoch`": (EXACT, ""),
        "epochs left early, without `set_epoch`": (REFUSED, "`sampler.set_epoch(epoch)` before each epoch"),
        "a look at the data, then `seek` or `set_epoch`": (EXACT, ""),
        "a look at the data, then training": (REFUSED, "`sampler.set_epoch(epoch)` or `seek(step)` after the look"),
        "an exception within a step": (EXACT, ""),
        "workers, persistent or not": (EXACT, ""),
        "a prefetcher: one batch ahead, or a thread with a queue": (EXACT, "`state_dict(step)`, the steps trained"),
        "a prefetcher that begins the next epoch after one left early": (REFUSED, "prefetch epoch by epoch"),
        "`state_dict()` without a step, within an epoch": (REFUSED, "`state_dict(step)`, the steps trained"),
        "a step counted within the epoch": (REFUSED, "epoch * `len(loader)` + the batches trained in it"),
        "optimizer steps of accumulated gradients given as the step": (LOST, "count batches"),
        "batches of another size than the `SRSSampler`'s given as the step": (LOST, "`batch_size=sampler.share_size`"),
        "`zip(loader, loader)`": (REFUSED, "two samplers"),
        "`seek` or `load_state_dict` within a pass": (REFUSED, "`iter(loader)` after it"),
        "copies of the sampler, made within an epoch": (REFUSED, "`load_state_dict(state_dict(step))`"),
        "a sampler made before `init_process_group`": (EXACT, ""),
        "`ReshufflingBatchSampler`, `OrderBatchSampler`": (EXACT, ""),
        "a loop under `torch.compile`": (EXACT, ""),
        "wrappers, subclasses and threads around the loader": (EXACT, ""),
        "`in_order=False`, at epochs' ends": (EXACT, ""),
        "`in_order=False`, within an epoch": (LOST, "save at epochs' ends"),
        "`itertools.cycle(loader)`": (LOST, "`while True: yield from loader`"),
    },
    "Lightning Trainer": {
        "checkpoints at epochs' ends": (EXACT, ""),
        "checkpoints every n steps": (EXACT, ""),
        "`OnExceptionCheckpoint`": (EXACT, ""),
        "`save_checkpoint` from a signal handler": (EXACT, ""),
        "an exception within a step": (EXACT, ""),
        "`max_steps`": (EXACT, ""),
        "`limit_train_batches`": (EXACT, ""),
        "`accumulate_grad_batches`": (EXACT, ""),
        "two optimizers": (EXACT, ""),
        "`Tuner.lr_find` before `fit`": (EXACT, ""),
        "`reload_dataloaders_every_n_epochs`": (EXACT, ""),
        "`val_check_interval`": (EXACT, ""),
        "workers": (EXACT, ""),
        "several loaders of unequal length in a dict": (EXACT, ""),
        'several loaders, `CombinedLoader(mode="max_size")`': (REFUSED, "another mode"),
        "`max_time` or `should_stop` within an epoch, resumed with `max_steps`": (EXACT, ""),
        "`max_time` or `should_stop` within an epoch, resumed with `max_epochs`": (
            REFUSED,
            "`max_steps`, `max_epochs=-1`",
        ),
        "`max_steps`, from a checkpoint at an epoch's end, without validation": (
            REFUSED,
            "`max_epochs`, or save every n steps",
        ),
        "a checkpoint saved without the callback": (REFUSED, "`SamplerCheckpoint` in every run"),
        "a new sampler in every `train_dataloader()`": (REFUSED, "make it once, in `__init__`"),
        "`overfit_batches`": (REFUSED, "a `Subset` of the data"),
        "torchdata's `StatefulDataLoader`": (REFUSED, "`DataLoader`"),
        "without the adapter: not resumed": (EXACT, ""),
        "without the adapter: resumed at an epoch's end": (EXACT, ""),
        "without the adapter: resumed at an epoch's end, with workers": (REFUSED, "`SamplerCheckpoint`"),
        "without the adapter: resumed within an epoch": (WARNED, "`SamplerCheckpoint`"),
    },
    "Lightning Fabric": {
        "whole epochs": (EXACT, ""),
        "epochs left early, with `progress.set_epoch`": (EXACT, ""),
        "a look at the data, then `progress.set_epoch`": (EXACT, ""),
        "an exception within a step": (EXACT, ""),
        "workers": (EXACT, ""),
        "without `Progress`: not resumed": (EXACT, ""),
        "without `Progress`: resumed": (REFUSED, "`Progress`"),
        "without `Progress`: a look at the data": (REFUSED, "`Progress`"),
    },
    "Accelerate": {
        "whole epochs": (EXACT, ""),
        "epochs left early, with `progress.set_epoch`": (EXACT, ""),
        "a look at the data, then `progress.set_epoch`": (EXACT, ""),
        "an exception within a step": (EXACT, ""),
        "workers": (EXACT, ""),
        "`prepare` of the adapter": (EXACT, ""),
        "`accelerator.prepare` on one process, with `Progress`": (EXACT, ""),
        "a loader that is not prepared, with `Progress`": (EXACT, ""),
        "a loop that does not count, or leaves an epoch without `progress.set_epoch`": (
            REFUSED,
            "`progress.step += 1`",
        ),
        "`in_order=False`": (REFUSED, "`in_order=True`"),
        "`skip_first_batches`, after `set_epoch`": (EXACT, ""),
        "without the adapter: prepared on one process, resumed": (REFUSED, "`prepare` of the adapter"),
        "without the adapter: `skip_first_batches` in a later epoch, after `set_epoch`": (
            REFUSED,
            "`prepare` of the adapter",
        ),
        "without the adapter: `skip_first_batches` in a later epoch, without `set_epoch`": (
            LOST,
            "`prepare` of the adapter",
        ),
        "without the adapter: `register_for_checkpointing(sampler)`": (REFUSED, "`prepare` of the adapter"),
        "without the adapter: `use_stateful_dataloader=True`": (REFUSED, "`prepare` of the adapter"),
        "without the adapter: a batch sampler prepared on n processes": (REFUSED, "`prepare` of the adapter"),
        "without the adapter: `SRSSampler` prepared on n processes": (LOST, "`prepare` of the adapter"),
        "without the adapter: `dispatch_batches=True` on n processes": (LOST, "`prepare` of the adapter"),
    },
    "torchdata": {
        "the loader's own state": (EXACT, ""),
        "a look at the data, then the state before it": (EXACT, ""),
        "an exception within a step": (EXACT, ""),
        "workers": (EXACT, ""),
        "`set_epoch` with the epoch of the state": (EXACT, ""),
        "`torchdata.nodes`: `SamplerWrapper(StatefulSampler(sampler))`": (EXACT, ""),
        "`torchdata.nodes`: the same, saved with an epoch's last batch": (REFUSED, "save after the epoch"),
        "`set_epoch` with another epoch, as after one left early": (REFUSED, "save `sampler.state_dict(step)`"),
        "a prefetcher around the loader": (LOST, "save `sampler.state_dict(step)`"),
        "without the adapter": (REFUSED, "`StatefulSampler`"),
    },
    "Hugging Face Trainer": {
        "`max_steps`, `num_train_epochs`": (EXACT, ""),
        "gradient accumulation, another after a resume": (EXACT, ""),
        "epochs that a callback cuts short": (EXACT, ""),
        "an exception within a step": (EXACT, ""),
        "workers": (EXACT, ""),
        "your own loader, by `make_loader`": (EXACT, ""),
        "your own loader, by `get_train_dataloader`": (REFUSED, "`make_loader`"),
        "`ignore_data_skip=True`": (REFUSED, "leave it out"),
        "`group_by_length`": (REFUSED, "`make_order`"),
        "gradient accumulation over an order whose batches do not divide into equal parts": (
            REFUSED,
            "`drop_last=True`",
        ),
        "without the adapter: a loader with our sampler": (EXACT, ""),
        "without the adapter: a loader with our sampler, after an epoch that was cut short": (LOST, "`SRSTrainer`"),
        "without the adapter: a loader with our sampler and `ignore_data_skip=True`": (LOST, "`SRSTrainer`"),
    },
    "Keras": {
        "a saved model, at any batch": (EXACT, ""),
        "`BackupAndRestore`": (EXACT, ""),
        "`gradient_accumulation_steps`": (EXACT, ""),
        "an exception within a step": (EXACT, ""),
        "several `fit`s, `evaluate` between them, `start=` given or not": (EXACT, ""),
        "`fit` without `steps_per_epoch`": (REFUSED, "`steps_per_epoch=dataset.steps_per_epoch`"),
        "`fit` without the callback": (REFUSED, "`callbacks=[dataset.callback]`"),
        "a `LossScaleOptimizer` without `start=`": (REFUSED, "`start=`, the batches trained"),
        "optimizers of your own, or a new `compile`, without `start=`": (REFUSED, "`start=`, the batches trained"),
        "a torch `DataLoader`": (REFUSED, "`OrderDataset`"),
    },
    "grain": {
        "grain's own state": (EXACT, ""),
        "`start=`, with workers": (EXACT, ""),
        "a loader without the sampler's shard options": (REFUSED, "`sampler.loader(data_source)`"),
    },
    "streams": {
        "any loader, `dataset.state_dict(step)`": (EXACT, ""),
        "torchdata, the loader's own state": (EXACT, ""),
        "a source that cannot seek, `store_items=True`, torchdata": (EXACT, ""),
        "`set_epoch` of another epoch than that of torchdata's state": (REFUSED, "the epoch of the state"),
        "a source whose order changes, or that divides itself, over 2 workers": (
            REFUSED,
            "a source with a fixed order",
        ),
        "a resume over a source whose order changes": (REFUSED, "a source with a fixed order"),
        "Accelerate, `prepare` and `Progress`": (EXACT, ""),
        "a loop with `Progress` that does not count": (REFUSED, "`progress.step += 1`"),
        "Lightning Trainer, `SamplerCheckpoint(dataset)`, checkpoints every n steps": (EXACT, ""),
        "Hugging Face Trainer, `StreamPosition`": (EXACT, ""),
        "`StreamPosition` without `ignore_data_skip=True`": (REFUSED, "`ignore_data_skip=True`"),
        "a stream as the dataset of `SRSTrainer`": (REFUSED, "`StreamPosition`"),
    },
}


#: The rows that the running test file has asserted so far. tests/conftest.py compares them with `named_in`.
ASSERTED: set[tuple[str, str]] = set()


def named_in(file: Path) -> set[tuple[str, str]]:
    """Return the rows whose stack and way are both strings in a test file, or in the trainings that it uses."""
    files = [file, file.with_name("trainings.py")] if file.name == "test_resume.py" else [file]
    trees = [ast.parse(each.read_text()) for each in files]
    strings = {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    return {(stack, way) for stack, ways in WAYS.items() if stack in strings for way in ways if way in strings}


def exact(stack: str, *ways: str, seen: Any, whole: Any, where: object = "") -> None:
    """Check that a resumed run trained on the batches of an uninterrupted one, and that the rows state this."""
    _check_rows(stack, ways, EXACT)
    assert seen == whole, (where, ways)
    if whole:  # empty if no batch was left after the last checkpoint
        ASSERTED.update((stack, way) for way in ways)


@contextmanager
def refused(stack: str, *ways: str, error: type[Exception] = ValueError, match: str) -> Iterator[None]:
    """Expect an error, and check that the rows state it."""
    _check_rows(stack, ways, REFUSED)
    with pytest.raises(error, match=match):
        yield
    ASSERTED.update((stack, way) for way in ways)


@contextmanager
def warned(stack: str, *ways: str, match: str) -> Iterator[None]:
    """Expect a warning of the framework itself, and check that the rows state it."""
    _check_rows(stack, ways, WARNED)
    with pytest.warns(UserWarning, match=match):
        yield
    ASSERTED.update((stack, way) for way in ways)


def lost(stack: str, *ways: str, seen: Any, whole: Any) -> None:
    """Check that a resumed run trains on other batches without an error, and that the rows state this."""
    _check_rows(stack, ways, LOST)
    assert seen != whole
    ASSERTED.update((stack, way) for way in ways)


def _check_rows(stack: str, ways: tuple[str, ...], result: str) -> None:
    assert ways, "name the rows"
    assert {way: WAYS[stack].get(way, ("no row", ""))[0] for way in ways} == dict.fromkeys(ways, result)


def table() -> str:
    """Return the table of docs/integrations/index.md: the ways that train on other batches without our error."""
    lines = ["| framework | not kept | write instead |", "|---|---|---|"]
    for stack, ways in WAYS.items():
        for way, (outcome, remedy) in ways.items():
            if outcome in (LOST, WARNED):
                lines.append(f"| {stack} | {way}{' (it warns)' if outcome == WARNED else ''} | {remedy} |")
    return "\n".join(lines)
