"""Frameworks are hundreds of thousands of objects, which the Trainers' own collections of garbage need not look at."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _imported_objects_are_no_garbage() -> Iterator[None]:
    gc.freeze()
    yield
    gc.unfreeze()
