"""Imports a torchvision that was built for another torch: a CUDA wheel does not load its operators on a CPU build.

The import needs two operators by name, which the tests never call. Run as a script with another script as argument,
this file imports torchvision and then runs that script. torchvision is in a separate folder, with timm, because
Lightning and transformers would import it if they found it.
"""

from __future__ import annotations

import runpy
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import torch

APART = str(Path(sys.prefix) / "vision")


def is_installed(package: str) -> bool:
    """Return whether a package can be imported after `import_torchvision`."""
    return PathFinder.find_spec(package, [*sys.path, APART]) is not None


def import_torchvision() -> None:
    """Import torchvision. If its operators were not loaded, first define the two that its import needs."""
    if APART not in sys.path:
        sys.path.append(APART)
    try:
        import torchvision
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            raise
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision  # noqa: F401


if __name__ == "__main__":
    import_torchvision()
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
