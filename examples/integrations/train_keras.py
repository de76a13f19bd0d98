"""SRS with Keras 3 (here on its torch backend): the saved model contains the position in the stream.

    python train_keras.py run --until 30
    python train_keras.py run --until 60    # resumes at step 30

The samples of each step are written to `run/rank0.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np

from replenish.integrations.keras import SRSDataset


class Log(keras.callbacks.Callback):
    """Writes the samples of each step, once it is trained."""

    def __init__(self, dataset: SRSDataset, file: Path) -> None:
        super().__init__()
        self.dataset, self.file = dataset, file

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        step = int(self.model.optimizer.iterations) - 1
        with open(self.file, "a") as log:
            print(json.dumps([step, self.dataset.order.batch(step).tolist()]), file=log)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=int, default=60, help="the step to stop at")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = options.folder / "model.keras"

    features = np.random.default_rng(0).normal(size=(1000, 8)).astype("float32")
    targets = features.sum(axis=1, keepdims=True)
    if checkpoint.exists():
        model = keras.saving.load_model(checkpoint)
    else:
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.01, momentum=0.9), loss="mse")

    start = int(model.optimizer.iterations)  # the steps trained, which Keras saves with the model
    dataset = SRSDataset((features, targets), 40, seed=3)
    # The stream has no end, so fit needs the number of steps. Here one epoch has all remaining steps; for effective
    # epochs, pass steps_per_epoch=dataset.steps_per_epoch.
    callbacks = [dataset.callback, Log(dataset, options.folder / "rank0.jsonl")]
    model.fit(dataset, steps_per_epoch=options.until - start, shuffle=False, callbacks=callbacks, verbose=0)
    model.save(checkpoint)


if __name__ == "__main__":
    main()
