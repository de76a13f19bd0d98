"""The line above a benchmark's table: the machine, the versions, the commit."""

from __future__ import annotations

import os
import platform

import numpy
import torch

from replenish.lab.machine import commit, processor


def describe(rounds: int) -> str:
    """Set torch to one thread, and return the line with the number of rounds."""
    torch.set_num_threads(1)
    return (
        f"{processor()}, {os.cpu_count()} cores, one thread; Python {platform.python_version()}, numpy "
        f"{numpy.__version__}, torch {torch.__version__}; commit {commit()}; n = {rounds}."
    )
