"""Keras: random histories of fits, accumulation, saved models and given starts, compared with one run."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")
pytest.importorskip("keras", minversion="3.0", reason="needs Keras 3: pip install 'replenish[keras]'")

import keras
import numpy as np
from integration_support import stream
from ways import exact, refused

from replenish.integrations.keras import SRSDataset, batches_trained

# Keras' variables have no `copy` in their __array__, of which numpy 2 complains.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword")

INPUTS = np.arange(1000, dtype="float32")


@keras.saving.register_keras_serializable("replenish-tests")
class Recorder(keras.Model):
    """A model that keeps what it was trained on; Keras has to look at a batch to build it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.dense = keras.layers.Dense(1)
        self.seen: list[list[int]] = []

    def call(self, inputs: Any) -> Any:
        return self.dense(inputs[:, None])

    def train_step(self, data: Any) -> Any:
        self.seen.append(keras.ops.convert_to_numpy(data[0]).astype(int).tolist())
        return super().train_step(data)


def model(accumulate: int | None = None) -> Recorder:
    made = Recorder()
    made.compile(keras.optimizers.SGD(1e-9, gradient_accumulation_steps=accumulate), loss="mse")
    return made


def dataset(**options: Any) -> SRSDataset:
    return SRSDataset((INPUTS, INPUTS), 40, seed=3, **options)


@pytest.mark.parametrize("accumulate", [None, 2, 3])
@pytest.mark.parametrize("gives_start", [False, True])
def test_histories(accumulate: int | None, gives_start: bool, tmp_path: Path) -> None:
    """Several fits on one dataset or on new ones, epochs of any length, models saved and loaded in between."""
    ways = ["one `fit` or several, with `steps_per_epoch`"]
    ways += ["`gradient_accumulation_steps`"] if accumulate else []
    ways += ["`start=` given"] if gives_start else []
    for seed in range(35):
        draw = random.Random(seed)
        trained = model(accumulate)
        data, seen = dataset(**({"start": 0} if gives_start else {})), []
        for _ in range(4):
            trained.seen, epoch = [], draw.randint(0, 3)
            options = {"validation_data": dataset(start=10**6), "validation_steps": 1} if draw.random() < 0.3 else {}
            trained.fit(
                data, steps_per_epoch=draw.randint(1, 7), initial_epoch=epoch, epochs=epoch + draw.randint(1, 3),
                verbose=0, shuffle=False, **options,
            )  # fmt: skip
            seen += trained.seen
            if draw.random() < 0.3:
                trained.evaluate(data, steps=2, verbose=0)
            if draw.random() < 0.3:
                trained.save(tmp_path / "model.keras")
                trained = keras.saving.load_model(tmp_path / "model.keras")
                trained.seen = []
            if draw.random() < 0.4:
                data = dataset(**({"start": len(seen)} if gives_start else {}))
            assert batches_trained(trained) == len(seen)
        exact("Keras", *ways, seen=seen, whole=stream(0, len(seen)), where=seed)


def test_backup_and_restore(tmp_path: Path) -> None:
    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if epoch == 1:
                raise KeyboardInterrupt

    seen = []
    for callbacks in ([Stop()], []):
        trained = model()
        backup = keras.callbacks.BackupAndRestore(str(tmp_path / "backup"))
        try:
            trained.fit(
                dataset(), steps_per_epoch=5, epochs=4, callbacks=[backup, *callbacks], shuffle=False, verbose=0
            )
        except KeyboardInterrupt:
            seen += trained.seen
    exact("Keras", "`initial_epoch`, `BackupAndRestore`", seen=seen + trained.seen, whole=stream(0, 20))


def test_what_cannot_work_says_so() -> None:
    message = "steps_per_epoch should be given, since the stream has no end.*25 steps"
    trained = model()
    for options in ({}, {"steps_per_epoch": 1}, {}):  # of a model not built, which Keras does first, and of one built
        if options:
            trained.fit(dataset(), shuffle=False, verbose=0, **options)
            continue
        with refused("Keras", "`fit` without `steps_per_epoch`", match=message):
            trained.fit(dataset(), shuffle=False, verbose=0)
    with pytest.raises(ValueError, match="steps should be given"):
        trained.evaluate(dataset(), verbose=0)
    scaled = Recorder()
    scaled.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1e-9)), loss="mse")
    with pytest.raises(ValueError, match="start should be given with a LossScaleOptimizer"):
        scaled.fit(dataset(), steps_per_epoch=2, shuffle=False, verbose=0)
