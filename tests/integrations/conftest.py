"""Speeds up garbage collection, which Trainers call: it need not visit the objects of imported frameworks."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _ignore_imported_objects() -> Iterator[None]:
    gc.freeze()
    yield
    gc.unfreeze()
