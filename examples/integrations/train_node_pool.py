"""SRS with one pool per machine, for data so many that a pool in every process would be too large.

    torchrun --nnodes 4 --nproc-per-node 8 ... train_node_pool.py run --until 60

Each rank writes which samples it saw at which step to `run/rank<r>.jsonl`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import tempfile
from pathlib import Path

import torch.distributed as dist
from torch.utils.data import DataLoader

from replenish import SequencedReplacement
from replenish.integrations.node import NodeOrder, serve
from replenish.torch import OrderBatchSampler


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--until", type=int, default=60, help="the step to stop at")
    parser.add_argument("--trained", type=int, default=0, help="the steps trained before")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    dist.init_process_group("gloo")

    order = SequencedReplacement(1000, 40, seed=3)
    # The same path for all processes of a node and for no other run on it, in a folder of this user alone.
    job = os.environ.get("SLURM_JOB_ID") or os.environ.get("TORCHELASTIC_RUN_ID", "run")
    path = Path(tempfile.gettempdir(), f"replenish-{os.getuid()}", f"{job}-{os.environ['MASTER_PORT']}")
    path.parent.mkdir(mode=0o700, exist_ok=True)
    drawing = serve(order, path) if os.environ["LOCAL_RANK"] == "0" else contextlib.nullcontext()
    with drawing, open(options.folder / f"rank{dist.get_rank()}.jsonl", "a") as log:
        sampler = OrderBatchSampler(NodeOrder(order, path))  # the rest is as with any order
        sampler.seek(options.trained)
        loader = DataLoader(range(1000), batch_sampler=sampler, num_workers=1)
        step = options.trained
        while step < options.until:
            for indices in loader:
                print(json.dumps([step, indices.tolist()]), file=log)
                step += 1
                if step == options.until:
                    break
        dist.barrier()  # the drawing process must outlive the last reader
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
