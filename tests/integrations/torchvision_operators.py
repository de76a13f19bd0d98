"""torchvision beside a torch that it was not built for: a wheel for CUDA does not load its operators on a CPU build.

Its import asks for two of them by name, which nothing here calls. As a script, it runs another one after that. It is
installed in a folder apart, with timm, since Lightning and transformers import a torchvision that they find.
"""

from __future__ import annotations

import runpy
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import torch

APART = str(Path(sys.prefix) / "vision")


def is_installed(package: str) -> bool:
    """Tell whether a package can be imported after `import_torchvision`."""
    return PathFinder.find_spec(package, [*sys.path, APART]) is not None


def import_torchvision() -> None:
    """Import torchvision; where its operators are not loaded, with names for those that its import asks for."""
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
