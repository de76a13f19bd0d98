"""SRS with tf.data: a dataset made from a generator, which yields an order's batches of indices.

    python train_tf_data.py run --until 30
    python train_tf_data.py run --until 60    # resumes at step 30

The samples of each step are written to `run/rank0.jsonl`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import tensorflow as tf

from replenish import SequencedReplacement


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=int, default=60, help="the step to stop at")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = options.folder / "checkpoint.npz"

    features = np.random.default_rng(0).normal(size=(1000, 8)).astype("float32")
    targets = features.sum(axis=1)
    order = SequencedReplacement(num_samples=1000, batch_size=40, seed=3)
    trained, weights = 0, tf.Variable(tf.zeros(8))
    if checkpoint.exists():
        saved = np.load(checkpoint)
        trained = int(saved["trained"])
        weights.assign(saved["weights"])

    # Without a resume, `from_generator(order.batches, ...)` is enough. Prefetching draws ahead, which does no harm.
    indices = tf.data.Dataset.from_generator(
        lambda: order.batches(start=trained), output_signature=tf.TensorSpec([40], tf.int64)
    )
    dataset = indices.map(lambda rows: (rows, tf.gather(features, rows), tf.gather(targets, rows)))

    with open(options.folder / "rank0.jsonl", "a") as log:
        for step, (rows, inputs, target) in enumerate(
            dataset.take(options.until - trained).prefetch(tf.data.AUTOTUNE), start=trained
        ):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.linalg.matvec(inputs, weights) - target) ** 2)
            weights.assign_sub(0.01 * tape.gradient(loss, weights))
            print(json.dumps([step, rows.numpy().tolist()]), file=log)
    np.savez(checkpoint, trained=options.until, weights=weights.numpy())  # the order's whole state is the step


if __name__ == "__main__":
    main()
