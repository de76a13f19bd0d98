"""The record behind `replenish demo`: 80 seeds of each of the two arms that differ only in the order.

    python -m study.demo --runs runs/demo-record

Finished seeds are kept, so a stopped command can be given again. After every pair of runs it writes the record, with
one line per run, to `replenish/lab/experiments/demo_runs.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from replenish.cli.demo import ARMS
from replenish.lab.atomic_files import write_atomically
from replenish.lab.experiments import find
from replenish.lab.jobs import plan

SEEDS = 80
RECORD = Path("replenish/lab/experiments/demo_runs.jsonl")
KEPT = ("status", "test_error", "best_test_error", "train_loss", "seconds", "weights_sha256", "commit", "command")


def main() -> None:
    """Run the missing runs one at a time, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--runs", type=Path, default=Path("runs/demo-record"))
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args()
    command = f"python -m study.demo {shlex.join(sys.argv[1:])}".strip()
    experiments = {name: config for name, config in find("table3", "digits").items() if name in ARMS}
    names = {config: name for name, config in experiments.items()}
    lines: list[str] = []
    for job in plan(experiments.values(), range(options.seeds), options.runs, command=command):
        result = job.run()
        run = {"experiment": names[job.config.with_seed(0)], "seed": job.config.seed}
        lines.append(json.dumps({**run, **{key: result[key] for key in KEPT}}))
        print(lines[-1], flush=True)
        if len(lines) % len(ARMS) == 0:
            write_atomically(options.record, ("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
