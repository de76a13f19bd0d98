"""Frameworks that are too old to be exact are refused when an adapter is imported, not found out in a training."""

from __future__ import annotations

import importlib.metadata


def refuse_older(package: str, lowest: tuple[int, int]) -> None:
    """Refuse a version with which a training would see other batches than it should, without a word.

    The framework's name is that of its extra as well; the lowest version is the first exact one, as the tests found.

    Raises:
        ImportError: It is older.
    """
    try:
        installed = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return  # taken from a source tree, which says nothing of its version
    major, minor = installed.split(".")[:2]
    if (int(major), int(minor)) < lowest:
        needed = ".".join(map(str, lowest))
        raise ImportError(
            f"{package} should be {needed} or later to train on the right batches, but {installed} is installed: pip "
            f"install 'replenish[{package}]'"
        )
