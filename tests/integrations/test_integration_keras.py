"""Keras 3 on its torch backend: items are a pure function, and `fit` sees the stream."""

from __future__ import annotations

import doctest
import os
import sys
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")
pytest.importorskip("keras", minversion="3.0", reason="needs Keras 3: pip install 'replenish[keras]'")

import keras
import numpy as np
import torch
from integration_support import EXAMPLES, GOLDEN_FIRST, GOLDEN_MILLIONTH, MILLION, check_log, golden_order, run, stream
from torch.utils.data import DataLoader, TensorDataset

from replenish import SequencedReplacement
from replenish.integrations.keras import OrderDataset, SRSDataset
from replenish.torch import SRSBatchSampler

# Keras' variables have no `copy` in their __array__, of which numpy 2 complains.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword")

INPUTS = np.arange(1000, dtype="float32")


class Recorder(keras.Model):
    """A model that keeps what it was trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(1)
        self.seen: list[list[int]] = []

    def call(self, inputs: Any) -> Any:
        return self.dense(inputs[:, None])

    def train_step(self, data: Any) -> Any:
        self.seen.append(keras.ops.convert_to_numpy(data[0]).astype(int).tolist())
        return super().train_step(data)


def recorder() -> Recorder:
    model = Recorder()
    model.compile(keras.optimizers.SGD(1e-9), loss="mse")
    return model


def dataset(**options: Any) -> SRSDataset:
    return SRSDataset((INPUTS, INPUTS), 40, seed=3, **options)


def test_golden_vector() -> None:
    data = OrderDataset((np.arange(10),), golden_order())
    assert [data[step][0].tolist() for step in range(3)] == GOLDEN_FIRST
    assert data[MILLION][0].tolist() == GOLDEN_MILLIONTH
    assert SRSDataset((np.arange(10),), 4, seed=3, start=MILLION)[0][0].tolist() == GOLDEN_MILLIONTH


def test_items_are_pure() -> None:
    data = dataset()
    expected = stream(0, 300)
    for step in np.random.default_rng(0).integers(0, 300, 100).tolist():
        assert data[step][0].astype(int).tolist() == expected[step]
    assert data.num_batches is None
    assert data.steps_per_epoch == 25


def test_fit_sees_the_stream() -> None:
    """An unbuilt model, of which Keras looks at a batch first; epochs; then another `fit` that goes on."""
    model = recorder()
    data = dataset()
    model.fit(data, steps_per_epoch=data.steps_per_epoch, epochs=3, shuffle=False, verbose=0)
    assert model.seen == stream(0, 75)
    more = dataset(start=int(model.optimizer.iterations))
    model.fit(more, steps_per_epoch=25, initial_epoch=3, epochs=5, shuffle=False, verbose=0)
    assert model.seen == stream(0, 125)


def test_validation_data_do_not_disturb() -> None:
    model = recorder()
    data, validation = dataset(), dataset(start=10**6)
    options = {"validation_data": validation, "validation_steps": 2, "shuffle": False, "verbose": 0}
    model.fit(data, steps_per_epoch=10, epochs=4, **options)
    assert model.seen == stream(0, 40)


def test_a_function_of_indices() -> None:
    data = OrderDataset(lambda indices: (INPUTS[indices], -INPUTS[indices]), SequencedReplacement(1000, 40, seed=3))
    inputs, targets = data[4]
    assert inputs.astype(int).tolist() == stream(4, 5)[0]
    assert (targets == -inputs).all()


def test_what_cannot_work_says_so() -> None:
    with pytest.raises(ValueError, match="workers should be at most 1"):
        dataset(workers=2)
    with pytest.raises(ValueError, match="workers should be at most 1"):
        dataset(use_multiprocessing=True)
    with pytest.raises(
        ValueError, match="data should be arrays of 10 rows, the samples of the order, but got one of 9"
    ):
        OrderDataset((np.arange(10), np.arange(9)), golden_order())
    with pytest.raises(ValueError, match="start should be at least 0, but got -1"):
        dataset(start=-1)


def test_a_torch_loader() -> None:
    """Keras begins a pass to look at a batch, which moves nothing."""
    data = TensorDataset(torch.from_numpy(INPUTS), torch.from_numpy(INPUTS))
    model = recorder()
    model.fit(DataLoader(data, batch_sampler=SRSBatchSampler(data, 40, seed=3)), epochs=2, shuffle=False, verbose=0)
    assert model.seen == stream(0, 50)


def test_docstrings() -> None:
    assert doctest.testmod(sys.modules[SRSDataset.__module__]).failed == 0


@pytest.mark.slow
def test_example(tmp_path: Path) -> None:
    stop = 0
    for until in (7, 33):
        run(EXAMPLES / "train_keras.py", tmp_path, "--until", until)
        check_log(tmp_path, stop, until)
        stop = until
