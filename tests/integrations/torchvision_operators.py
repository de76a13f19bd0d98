"""torchvision beside a torch that it was not built for: a wheel for CUDA does not load its operators on a CPU build.

Its import asks for two of them by name, which nothing here calls. As a script, it runs another one after that.
"""

from __future__ import annotations

import runpy
import sys

import torch


def import_torchvision() -> None:
    """Import torchvision; where its operators are not loaded, with names for those that its import asks for."""
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
