"""What a measurement was made on: the machine, the versions, the commit."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import numpy
import torch


def describe(rounds: int) -> str:
    """Return one sentence for under a table, and keep torch to one thread from now on."""
    torch.set_num_threads(1)
    return (
        f"Measured on {processor()}, {os.cpu_count()} cores, one thread; Python {platform.python_version()}, numpy "
        f"{numpy.__version__}, torch {torch.__version__}; commit {commit()}; median of n = {rounds} rounds (fewer at "
        f"the largest size), peer and product alternating."
    )


def processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        if names:
            return names[0]
    return platform.processor() or platform.machine()


def commit() -> str:
    here = Path(__file__).parent
    run = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=here, capture_output=True, text=True, check=False
    )
    return run.stdout.strip() or "unknown"
