"""`compare` on a large folder of small JPEGs: time to the first step and memory, before and after the cache.

    python benchmarks/folder.py                     100,000 images of 64 x 64 (about ten minutes), print the table
    python benchmarks/folder.py --images 5000       fewer
    python benchmarks/folder.py --write             also write it to benchmarks/README.md

The images are made up: 100 classes of smooth noise, so that a file has about the size of a photograph's. Their folder
is removed at the end. Each measurement is a new process that loads the folder and takes the first training step of
WRN-10-1 in batches of 64. The first process decodes every file, the second finds them in the cache. Memory is the
process's own, PyTorch's libraries included, without the mapped part of the cache's file, which the system can take back
at any time. Images that need more than `--in-memory` bytes stay in that file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from machine import describe
from pages import write_between
from PIL import Image

CLASSES, SIZE = 100, 64


def write_class(folder: str, label: int, count: int) -> None:
    """Write the images of one class: smooth noise, seeded by its label."""
    random = np.random.default_rng(label)
    place = Path(folder, f"class{label:03}")
    place.mkdir(parents=True)
    for number in range(count):
        coarse = random.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((SIZE, SIZE), Image.Resampling.BICUBIC).save(place / f"{number}.jpg", quality=85)


def write_folder(folder: Path, images: int) -> None:
    """Write all classes, with file times in the past."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        list(
            pool.map(
                write_class, *zip(*((str(folder), label, images // CLASSES) for label in range(CLASSES)), strict=True)
            )
        )
    time.sleep(3)  # the cache skips files that were changed a moment ago


def first_step(folder: str, in_memory: int) -> None:
    """Load the folder and take a step; print times and memory as JSON. It runs in its own process."""
    import torch

    from replenish.lab.config import RunConfig
    from replenish.lab.data import Batches, load
    from replenish.lab.data import images as stacks
    from replenish.lab.models import build

    torch.set_num_threads(1)
    imported, work = time.perf_counter(), time.process_time()
    stacks.IN_MEMORY = in_memory
    dataset = load(folder)
    loaded, decoding = time.perf_counter(), time.process_time() - work
    config = RunConfig(dataset=folder)
    batches = Batches(config.build_order(len(dataset.train_labels)), dataset)
    network = build("wrn-10-1", 3, dataset.num_classes, SIZE)
    images, labels = batches.batch(0)
    torch.nn.functional.cross_entropy(network(images), labels).backward()
    ended = time.perf_counter()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    memory = {name: int(status[name].split()[0]) / 1e6 for name in ("RssAnon", "RssFile", "VmHWM")}
    print(json.dumps({"load": loaded - imported, "work": decoding, "step": ended - loaded, **memory}))


def measure(folder: Path, cache: Path, in_memory: int) -> dict[str, float]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--measure", str(folder), "--in-memory", str(in_memory)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=100_000, help="how many (default 100,000)")
    parser.add_argument("--in-memory", type=int, help="bytes up to which images are held in memory")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/README.md")
    options = parser.parse_args()
    if options.measure:
        first_step(options.measure, options.in_memory)
        return
    lines = [
        f"| {options.images:,} JPEGs of {SIZE} x {SIZE} | the folder is read in | of processors | the first step takes "
        "| own memory | at most, with what is mapped |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "images")
        write_folder(folder, options.images)
        size = options.images * SIZE * SIZE * 3
        for name, limit in {"in memory": 10 * size, "in a file": options.in_memory or size // 4}.items():
            cache = Path(place, f"cache {name}")
            for state in ("decoded", "from the cache"):
                found = measure(folder, cache, limit)
                lines.append(
                    f"| {state}, held {name} | {found['load']:.1f} s | {found['work']:.1f} s | {found['step']:.1f} s | "
                    f"{found['RssAnon']:.2f} GB | {found['VmHWM']:.2f} GB |"
                )
                print(lines[-1], flush=True)
    text = f"{describe(1)}\n\n" + "\n".join(lines)
    print("\n" + text)
    if options.write:
        write_between("benchmarks/README.md", "benchmarks/folder.py", text)


if __name__ == "__main__":
    main()
