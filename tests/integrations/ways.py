"""The ways to write a loop, by stack, and what a resume gives in each: what the drivers run and the docs' table shows.

A row is what tests, here and in tests/torch, have seen: `exact` compares the batches of a resumed run with those of the
same script not interrupted, `refused` wants the error, `unsupported` wants the batches to differ. Each of them fails if
the row says something else, and a file of tests fails if it names a row that none of its tests has so asserted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

EXACT, REFUSED, UNSUPPORTED = "exact", "refused", "not supported"

WAYS: dict[str, dict[str, str]] = {
    "PyTorch": {
        "whole epochs, with or without `set_epoch`": EXACT,
        "passes left early, with `set_epoch`": EXACT,
        "passes left early, without, after a state was taken": REFUSED,
        "a look at the data first": EXACT,
        "workers, persistent or not, with `state_dict()`": EXACT,
        "one iterator for ever: `while True`, `next()`, a prefetcher": EXACT,
        "`zip` of two loaders, with `set_epoch`": EXACT,
        "a step counted within the epoch alone": REFUSED,
        "optimizer steps of accumulated gradients given as the step": REFUSED,
        "`itertools.cycle(loader)`": UNSUPPORTED,
    },
    "Lightning Trainer": {
        "`max_epochs`, checkpoints at epochs' ends": EXACT,
        "checkpoints every n steps": EXACT,
        "`max_steps`, `save_checkpoint` after `fit`": EXACT,
        "`limit_train_batches`": EXACT,
        "`accumulate_grad_batches`": EXACT,
        "two optimizers": EXACT,
        "`reload_dataloaders_every_n_epochs`": EXACT,
        "`val_check_interval`": EXACT,
        "workers": EXACT,
        "several of these at once": EXACT,
        "a loader given to `fit`, without a data module": EXACT,
        "`overfit_batches`, at an epoch's end": EXACT,
        "`overfit_batches`, within an epoch": REFUSED,
        "a state saved with `global_step` under accumulation": REFUSED,
        "torchdata's `StatefulDataLoader`": REFUSED,
        "`max_time` or `should_stop` within an epoch, resumed with `max_steps`": EXACT,
        "`max_time` or `should_stop` within an epoch, resumed with `max_epochs`": REFUSED,
    },
    "Lightning Fabric": {
        "whole epochs, `set_epoch` by Fabric": EXACT,
        "a look at the data first": EXACT,
    },
    "Accelerate": {
        "loader not prepared, `Progress`": EXACT,
        "loader prepared on one process, `Progress`": EXACT,
        "loader prepared, `register_for_checkpointing(sampler)`": EXACT,
        "`skip_first_batches`": EXACT,
        "`skip_first_batches` of a sampler that a state has put there": REFUSED,
        "prepared on n processes, `split_batches=True`": EXACT,
        "prepared on n processes, without `split_batches`": REFUSED,
        "prepared, and a sampler that knows its rank": REFUSED,
        "`dispatch_batches=True`": REFUSED,
    },
    "torchdata": {
        "the loader's own state, any step": EXACT,
        "a look at the data first": EXACT,
    },
    "streams": {
        "any loader, `dataset.state_dict(step)`": EXACT,
        "torchdata, the loader's own state": EXACT,
        "a source that cannot seek, `store_items=True`, torchdata": EXACT,
        "`set_epoch` of another epoch than that of torchdata's state": REFUSED,
        "a source whose order changes, or that divides itself, over 2 workers": REFUSED,
        "a resume over a source whose order changes": REFUSED,
        "Accelerate, `prepare` and `Progress`": EXACT,
        "a loop with `Progress` that does not count": REFUSED,
        "Hugging Face Trainer, `StreamPosition`": EXACT,
        "the same without `ignore_data_skip=True`": REFUSED,
        "a stream as the dataset of `SRSTrainer`": REFUSED,
    },
    "Hugging Face Trainer": {
        "`max_steps`, `num_train_epochs`": EXACT,
        "gradient accumulation": EXACT,
        "workers": EXACT,
        "a loader of one's own with `SRSBatchSampler` or `SRSSampler`": EXACT,
        "the same, not prepared, at an epoch's end": REFUSED,
        "the same, after an epoch that a callback cut short": REFUSED,
        "`group_by_length`": REFUSED,
    },
    "Keras": {
        "one `fit` or several, with `steps_per_epoch`": EXACT,
        "`initial_epoch`, `BackupAndRestore`": EXACT,
        "`gradient_accumulation_steps`": EXACT,
        "`start=` given": EXACT,
        "`fit` without `steps_per_epoch`": REFUSED,
    },
    "grain": {
        "grain's own state": EXACT,
        "`start=`, with workers": EXACT,
    },
}


#: What the tests of the file that is running have asserted so far; tests/conftest.py compares it with `named_in`.
ASSERTED: set[tuple[str, str]] = set()


def named_in(file: Path) -> set[tuple[str, str]]:
    """Return the rows that a file of tests names: it has both the stack and the way as strings."""
    strings = {node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)}
    return {(stack, way) for stack, ways in WAYS.items() if stack in strings for way in ways if way in strings}


def exact(stack: str, *ways: str, seen: Any, whole: Any, where: object = "") -> None:
    """Check that a resumed run has seen what one not interrupted sees, as the rows say."""
    _check_rows(stack, ways, EXACT)
    assert seen == whole, where
    if whole:  # after the last checkpoint there may be nothing left to compare
        ASSERTED.update((stack, way) for way in ways)


@contextmanager
def refused(stack: str, *ways: str, error: type[Exception] = ValueError, match: str) -> Iterator[None]:
    """Make a context that an error has to leave, as the rows say."""
    _check_rows(stack, ways, REFUSED)
    with pytest.raises(error, match=match):
        yield
    ASSERTED.update((stack, way) for way in ways)


def unsupported(stack: str, *ways: str, seen: Any, whole: Any) -> None:
    """Check that a resumed run sees something else, without an error, as the rows say."""
    _check_rows(stack, ways, UNSUPPORTED)
    assert seen != whole
    ASSERTED.update((stack, way) for way in ways)


def _check_rows(stack: str, ways: tuple[str, ...], result: str) -> None:
    assert ways, "name the rows"
    assert {way: WAYS[stack].get(way) for way in ways} == dict.fromkeys(ways, result)


def table() -> str:
    """Return the table of docs/integrations/index.md."""
    lines = ["| stack | way of looping | resume |", "|---|---|---|"]
    for stack, ways in WAYS.items():
        lines += [f"| {stack} | {way} | {result} |" for way, result in ways.items()]
    return "\n".join(lines)
