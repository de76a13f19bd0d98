"""SRS with grain and JAX: grain's own iterator state resumes the stream.

    python train_grain.py run --until 30
    python train_grain.py run --until 60    # resumes at step 30

The samples of each step are written to `run/rank0.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import pickle
from pathlib import Path

import jax
import numpy as np
from absl import flags

from replenish import SequencedReplacement
from replenish.integrations.grain import OrderSampler


class Sums:
    """A data source for grain: rows of eight numbers, and their sums."""

    def __init__(self) -> None:
        self.features = np.random.default_rng(0).normal(size=(1000, 8)).astype("float32")

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        row = self.features[index]
        return {"index": np.asarray(index), "features": row, "target": row.sum()}

    def __repr__(self) -> str:  # grain compares it when it restores a state
        return "Sums()"


@jax.jit
def update(weights: jax.Array, features: jax.Array, target: jax.Array) -> jax.Array:
    def loss(weights: jax.Array) -> jax.Array:
        return ((features @ weights - target) ** 2).mean()

    return weights - 0.01 * jax.grad(loss)(weights)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=int, default=60, help="the step to stop at")
    parser.add_argument("--workers", type=int, default=0)
    options = parser.parse_args()
    flags.FLAGS.mark_as_parsed()  # grain's workers read absl's flags, which this script does not use
    options.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = options.folder / "checkpoint.pickle"

    # On several processes of JAX, give the sampler shard_options=grain.sharding.ShardByJaxProcess().
    sampler = OrderSampler(SequencedReplacement(1000, 40, seed=3), worker_count=options.workers)
    batches = iter(sampler.loader(Sums()))
    trained, weights = 0, np.zeros(8, dtype="float32")
    if checkpoint.exists():
        trained, weights, state = pickle.loads(checkpoint.read_bytes())
        batches.set_state(state)

    with open(options.folder / "rank0.jsonl", "a") as log:
        for step in range(trained, options.until):
            batch = next(batches)
            weights = update(weights, batch["features"], batch["target"])
            print(json.dumps([step, batch["index"].tolist()]), file=log)
    checkpoint.write_bytes(pickle.dumps((options.until, np.asarray(weights), batches.get_state())))


if __name__ == "__main__":
    main()
