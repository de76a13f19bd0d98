"""The machine, versions and commit that a measurement or a run was made with."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replenish import __version__

if TYPE_CHECKING:
    import torch

PACKAGES = ("torch", "numpy", "lightning-fabric")


def processor() -> str:
    """Return the processor's name."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def commit() -> str:
    """Return the commit of the source that is running, with "-dirty" if it was changed; "unknown" outside git."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():  # an installed package may be inside another project's repository
        return "unknown"
    command = ["git", "describe", "--always", "--dirty"]
    try:
        run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except OSError:  # no git
        return "unknown"
    return run.stdout.strip() or "unknown"


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that can change the bits of a result."""
    from importlib import metadata  # slow to import

    # `__version__` is the version of the running code. The installed package may have another.
    found = {"python": platform.python_version(), "replenish": __version__}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "absent"
    return found


def describe() -> dict[str, Any]:
    """Return the machine's processor, cores and system."""
    return {"processor": processor(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"}


def gpu(device: torch.device) -> dict[str, Any]:
    """Return the name of the GPU and the versions of CUDA and cuDNN, or {} for other devices."""
    if device.type != "cuda":
        return {}
    import torch

    return {
        "gpu": torch.cuda.get_device_name(device),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]
    }


def now() -> str:
    """Return the wall-clock time in UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def first_process() -> bool:
    """Return whether this process prints and writes files; of several processes only the first does."""
    return os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")) in ("", "0")
